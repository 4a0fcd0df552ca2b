"""Which clause of a verdict comes first for a reader: the one that stands most against a release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from disclosure_pipeline.policy.verdict import Judgement

_OVERLAPS = ("key_overlap", "target_overlap")


def use_of_bound(value: float | None, limit: float | None, *, at_least: bool = False) -> float:
    """How much of its bound a figure takes, as a share: over 1 it is broken; infinite where nothing is known.

    >>> use_of_bound(10.0, 8.0), use_of_bound(50.0, 40.0, at_least=True)
    (1.25, 0.8)
    >>> use_of_bound(3.0, 0.0), use_of_bound(0.0, 0.0), use_of_bound(-0.7, 2.5)
    (inf, 0.0, 0.0)
    """
    if value is None or limit is None or not (math.isfinite(value) and math.isfinite(limit)):
        return math.inf
    part, whole = (limit, value) if at_least else (value, limit)
    if part <= 0:
        return 0.0
    return part / whole if whole > 0 else math.inf


def find_worst_judgement(judgements: Iterable[Judgement]) -> Judgement | None:
    """The judgement that stands most against a release; None of none.

    >>> from disclosure_pipeline.policy.clauses import Clause
    >>> from disclosure_pipeline.policy.verdict import hold
    >>> clauses = [Clause("repU", None, 8), Clause("DiSCO", "work", 10)]
    >>> worst = find_worst_judgement(hold(clause, [7.5], 1) for clause in clauses)
    >>> worst.clause.name if worst else None
    'repU'
    """
    return max(judgements, key=_rank_judgement, default=None)


def find_worst_row(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The same among the clauses of a dossier, as its rows.

    >>> find_worst_row([]) is None
    True
    """
    return max(rows, key=_rank_row, default=None)


def _rank_judgement(judgement: Judgement) -> tuple[int, float]:
    clause = judgement.clause
    return _rank(
        clause.measure,
        judgement.outcome,
        use_of_bound(judgement.value, judgement.limit, at_least=clause.at_least),
        warns=clause.warns,
        control=clause.control,
    )


def _rank_row(row: Mapping[str, Any]) -> tuple[int, float]:
    return _rank(
        row["measure"],
        row["outcome"],
        use_of_bound(row["value"], row["limit"], at_least=row["at_least"]),
        warns=row["warns"],
        control=row["control"],
    )


def _rank(measure: str, outcome: str, use: float, *, warns: bool, control: bool) -> tuple[int, float]:
    """First a control that is not kept, then what refuses, what is not determined, what is waived.

    Of what is kept that which takes most of its bound: of the risks, for a control is at its bound by its
    nature, an overlap says that the tables are alike, and what only warns does not decide.
    """
    if outcome == "kept":
        return (0, use) if control or warns or measure in _OVERLAPS else (2, use)
    if control:
        return (6, use)
    if warns and outcome == "exceeded":
        return (1, use)
    return ({"waived": 3, "undetermined": 4}.get(outcome, 5), use)
