"""The policy as an expectation suite over metric tables: a second path to the verdict, kept as evidence.

Great Expectations sees the metric tables and nothing else: no record of GT or SD.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.comparison import WHOLE_KEY
from disclosure_pipeline.policy.measured import CONTROLS, MEASURES, Measure
from disclosure_pipeline.policy.policy import Clause

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource
    from great_expectations.expectations.expectation import BatchExpectation

Row = Mapping[str, Any]

_OVERLAPS = ("key_overlap", "target_overlap")
_CHECKS = ("one_way", "two_way")
_LABELS = ("key", "target", "synthesis")


@dataclass(frozen=True)
class Validation:
    """What the suites found.

    `kept`: whether the expectation of each clause succeeded, by the clause's name; never true where it is
    not there exactly once. `results`: the validation result of each metric table as plain data, the same for
    the same figures. `of_tables`: the same as Great Expectations' own objects, to be rendered.
    """

    kept: dict[str, bool]
    results: dict[str, Any]
    of_tables: Mapping[str, ExpectationSuiteValidationResult] = field(repr=False, compare=False)


def validate(clauses: Sequence[Clause], figures: Mapping[str, Any]) -> Validation:
    """Hold every clause against the figures of a dossier, as one expectation over its metric table."""
    with _garbage_left():
        import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    # Nothing of it is on disk, in the home folder or from the environment.
    context = gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            analytics_enabled=False,
            progress_bars=ProgressBarsConfig(globally=False),
        ),
    )
    source = context.data_sources.add_pandas("figures")
    syntheses = len(figures["N_s"])
    found = {}
    for name, table in metric_tables(figures).items():
        stated = [_expectation(clause, syntheses) for clause in clauses if _table_of(clause) == name]
        found[name] = _validated(source, name, table, stated)
    results = {name: _plain(result) for name, result in found.items()}
    return Validation(_kept(clauses, results), results, found)


@contextmanager
def _garbage_left() -> Iterator[None]:
    """Collect no garbage: an import hardly makes any, and is faster by an eighth without a search for it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _validated(
    source: PandasDatasource, name: str, table: pd.DataFrame, stated: Sequence[BatchExpectation]
) -> ExpectationSuiteValidationResult:
    import great_expectations as gx

    batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe(name)
    return batch.get_batch({"dataframe": table}).validate(gx.ExpectationSuite(name, stated))


def _expectation(clause: Clause, syntheses: int) -> BatchExpectation:
    """The expectation that states a clause; its `meta` says which one it is."""
    from disclosure_pipeline.evidence import expectations

    common: dict[str, Any] = {
        "measure": clause.measure,
        "bound": clause.bound,
        "where": _where(clause),
        "over": clause.over,
        "syntheses": syntheses,
        "severity": "warning" if clause.warns else "critical",
        "meta": {"clause": clause.name, "words": str(clause)},
    }
    if clause.share_of is not None:
        common["share_of"] = clause.share_of
    kind = {
        (False, False): expectations.ExpectMeasureToBeAtMost,
        (False, True): expectations.ExpectMeasureToBeAtLeast,
        (True, False): expectations.ExpectMeasureRatioToBeAtMost,
        (True, True): expectations.ExpectMeasureRatioToBeAtLeast,
    }[clause.share_of is not None, clause.at_least]
    return kind(**common)


def _table_of(clause: Clause) -> str:
    """The metric table that a clause is about."""
    if clause.measure in _OVERLAPS:
        return "overlap"
    if clause.measure in CONTROLS:
        return "controls"
    at = MEASURES.get(clause.measure)
    return "attribute" if at is None or at.per_target else "identity"


def _where(clause: Clause) -> dict[str, str | None]:
    """The rows that a clause is about."""
    if clause.measure == "key_overlap":
        return {"key": WHOLE_KEY if clause.column is None else clause.column}
    return {} if _table_of(clause) == "identity" else {"target": clause.column}


def _plain(result: ExpectationSuiteValidationResult) -> dict[str, Any]:
    """A validation result as plain data, without the time of the run."""
    plain: dict[str, Any] = result.to_json_dict()  # type: ignore[no-untyped-call]
    plain["meta"].pop("batch_markers", None)
    return plain


def _kept(clauses: Sequence[Clause], results: Mapping[str, Any]) -> dict[str, bool]:
    """Whether there is exactly one expectation of each clause, and it succeeded."""
    successes: dict[str, list[bool]] = {clause.name: [] for clause in clauses}
    for result in results.values():
        for each in result["results"]:
            successes[each["expectation_config"]["meta"]["clause"]].append(each["success"] is True)
    return {name: found == [True] for name, found in successes.items()}


def disagreements(kept: Mapping[str, bool], clauses: Sequence[Mapping[str, Any]]) -> list[str]:
    """The clauses of a dossier (`dossier["clauses"]`) about which suite and policy disagree.

    They agree where an expectation succeeded exactly if the outcome is "kept". What only one of them knows is
    a disagreement, and so is a clause that is there twice.
    """
    times = Counter(clause["name"] for clause in clauses)
    found = [
        clause["name"]
        for clause in clauses
        if times[clause["name"]] > 1 or kept.get(clause["name"]) is not (clause["outcome"] == "kept")
    ]
    return list(dict.fromkeys([*found, *(name for name in kept if name not in times)]))


def metric_tables(figures: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """The figures of a dossier as metric tables: numbers, and the names of columns.

    `identity` has a row per synthesis; `attribute` one per target and synthesis, with all measures of a
    target and the number of flags; `overlap` one per key, or target, and synthesis; `controls` one per target
    and synthesis, and those of the whole table without a target. A missing figure is NaN.
    """
    of_targets = dict.fromkeys(at.frame for at in MEASURES.values() if at.per_target)
    return {
        "identity": _joined(["synthesis"], _measured(figures, "identity", MEASURES)),
        "attribute": _joined(
            ["target", "synthesis"],
            *(_measured(figures, frame, MEASURES) for frame in of_targets),
            *(_flags(figures, check) for check in _CHECKS),
        ),
        "overlap": _joined(["key", "target", "synthesis"], *(_shares(figures, frame) for frame in _OVERLAPS)),
        "controls": _joined(
            ["target", "synthesis"],
            _measured(figures, "control_identity", CONTROLS),
            _measured(figures, "control_attribute", CONTROLS),
        ),
    }


def _joined(labels: Sequence[str], *parts: Iterable[Row]) -> pd.DataFrame:
    """The rows of several parts side by side where their labels agree; a doubled row stays doubled."""
    joined: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        times: Counter[tuple[Any, ...]] = Counter()
        for row in part:
            label = tuple(row.get(name) for name in labels)
            times[label] += 1
            whole = joined.setdefault((*label, times[label]), dict(zip(labels, label, strict=True)))
            whole.update(
                {name: math.nan if row[name] is None else row[name] for name in row if name not in _LABELS}
            )
    return pd.DataFrame(list(joined.values()))


def _measured(figures: Mapping[str, Any], frame: str, measures: Mapping[str, Measure]) -> Iterable[Row]:
    """The measures that stand in one of the frames, by their own names."""
    columns = {name: at.column for name, at in measures.items() if at.frame == frame}
    for row in figures.get(frame, []):
        found = {name: row[column] for name, column in columns.items() if column in row}
        yield {name: row.get(name) for name in _LABELS} | found


def _flags(figures: Mapping[str, Any], check: str) -> Iterable[Row]:
    """How many flags a check raises; of the levels that it names nothing is taken over."""
    if check not in figures:
        return
    raised = Counter((flag.get("target"), flag.get("synthesis")) for flag in figures[check])
    for target in figures.get("targets", []):
        for synthesis in dict.fromkeys(row.get("synthesis") for row in figures.get("identity", [])):
            yield {"target": target, "synthesis": synthesis, f"{check}_flags": raised[target, synthesis]}


def _shares(figures: Mapping[str, Any], frame: str) -> Iterable[Row]:
    """Both shares of a key or target, and the smaller one under the name that a policy bounds."""
    for row in figures.get(frame, []):
        shares = {name: row.get(name) for name in ("GT_in_SD", "SD_in_GT")}
        known = [share for share in shares.values() if share is not None]
        smaller = min(known) if len(known) == len(shares) else None
        labels = {name: row.get(name) for name in _LABELS}
        yield {**labels, **shares, frame: smaller}
