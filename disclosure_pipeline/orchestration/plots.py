"""The numbers that Dagster plots over the releases: a figure, its bound and what others would show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.orchestration.clause_checks import name_check
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import find_measure, values
from disclosure_pipeline.policy.verdict import Judgement

# Dagster plots a hundred numbers of an asset and leaves out the others: five targets have fewer of these.
_ALWAYS = ("UiO", "UiS", "UiOiS", "repU", "Dorig", "iS", "DiSCO", "TCAP")


def show_numbers(figures: Mapping[str, float | None]) -> dict[str, dg.FloatMetadataValue]:
    """Numbers as metadata; what is missing or not finite is left out.

    >>> show_numbers({"value": 1, "bound": None})
    {'value': FloatMetadataValue(value=1.0)}
    """
    return {
        name: dg.MetadataValue.float(float(value))
        for name, value in figures.items()
        if value is not None and math.isfinite(value)
    }


def show_plots(
    result: Disclosure, judgements: Iterable[Judgement], targets: Sequence[str | None]
) -> dict[str, dg.FloatMetadataValue]:
    """The riskiest figures of an asset under names that sort together.

    Such as DiSCO__income, DiSCO__income__bound and DiSCO__income__others, what other people's records would
    show. `targets`: those of the asset's figures, None for those of the whole table.
    """
    figures: dict[str, float | None] = {}
    for target in targets:
        for measure in _ALWAYS:
            figures |= _figures_of(result, measure, target)
    for judgement in judgements:
        if name_check(judgement.clause).startswith(("bound_", "guard_")):
            figures |= _figures_of(result, judgement.clause.measure, judgement.clause.column)
            figures |= _figures_of_clause(judgement)
    return dict(sorted(show_numbers(figures).items()))


def _figures_of(result: Disclosure, measure: str, target: str | None) -> dict[str, float | None]:
    """The worst value over the syntheses, and what others would show."""
    label = measure if target is None else f"{measure}__{target}"
    figures = {label: _find_worst(result, measure, target)}
    if not measure.endswith("_others"):
        figures[f"{label}__others"] = _find_worst(result, f"{measure}_others", target)
    return figures


def _find_worst(result: Disclosure, measure: str, target: str | None) -> float | None:
    registered = find_measure(measure)
    if registered is None or registered.per_target == (target is None):
        return None
    figures = values(result, measure, target)
    return (min if registered.high_is_safe else max)(figures, default=None)


def _figures_of_clause(judgement: Judgement) -> dict[str, float | None]:
    """The value and the limit of a clause."""
    clause = judgement.clause
    label = clause.measure if clause.column is None else f"{clause.measure}__{clause.column}"
    return {_name_value(clause, label): judgement.value, _name_bound(clause, label): judgement.limit}


def _name_value(clause: Clause, label: str) -> str:
    return f"{label}__mean" if clause.over == "mean" else label


def _name_bound(clause: Clause, label: str) -> str:
    share = "" if clause.share_of is None else f"_of_{clause.share_of}"
    least = "__at_least" if clause.at_least else "__bound"
    return f"{_name_value(clause, label)}{least}{share}"
