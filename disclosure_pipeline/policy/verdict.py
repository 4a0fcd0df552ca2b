"""The verdict: one pure function from clauses and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from disclosure_pipeline.policy.measured import values
from disclosure_pipeline.policy.policy import Clause
from disclosure_pipeline.result import Disclosure

Outcome = Literal["kept", "exceeded", "undetermined"]
Decision = Literal["approved", "refused", "undetermined"]


@dataclass(frozen=True)
class Judgement:
    """One clause held against the figures; `limit` is its bound in the measure's own unit."""

    clause: Clause
    value: float | None
    limit: float | None
    outcome: Outcome

    def __str__(self) -> str:
        if self.value is None or self.limit is None:
            return f"{self.clause.name} could not be determined"
        bound = f"{'at least' if self.clause.at_least else 'at most'} {self.limit:.4g}"
        verb = "keeps" if self.outcome == "kept" else "breaks"
        return f"{self.clause.name}: the {self.clause.over} value {self.value:.4g} {verb} the bound, {bound}"


def judge(clauses: Sequence[Clause], result: Disclosure) -> tuple[Judgement, ...]:
    """Hold every clause against the figures. Only a finite number within a finite bound is `kept`."""
    return tuple(_judge(clause, result) for clause in clauses)


def _judge(clause: Clause, result: Disclosure) -> Judgement:
    originals = None if clause.share_of is None else values(result, clause.share_of, clause.column)
    return hold(clause, values(result, clause.measure, clause.column), len(result.N_s), originals)


def hold(
    clause: Clause, figures: Sequence[float], syntheses: int, originals: Sequence[float] | None = None
) -> Judgement:
    """Hold one figure per synthesis against a clause; `originals` are what a relative bound is a share of.

    Undetermined unless every synthesis has a finite figure.
    """
    value = _over(figures, clause, syntheses)
    limit: float | None = clause.bound
    if originals is not None:
        original = _over(originals, clause, syntheses)
        limit = None if original is None else clause.bound * original
    if value is None or limit is None or not math.isfinite(limit):
        return Judgement(clause, None, None, "undetermined")
    kept = value >= limit if clause.at_least else value <= limit
    broken: Outcome = "undetermined" if clause.control else "exceeded"
    return Judgement(clause, value, limit, "kept" if kept else broken)


def _over(figures: Sequence[float], clause: Clause, syntheses: int) -> float | None:
    """The worst or mean figure; None unless every synthesis has a finite one."""
    if not figures or len(figures) != syntheses or not all(math.isfinite(figure) for figure in figures):
        return None
    if clause.over == "mean":
        return math.fsum(figures) / len(figures)
    return min(figures) if clause.at_least else max(figures)


def decide(judgements: Sequence[Judgement]) -> Decision:
    """`approved` only where every clause is kept; one that warns may be exceeded, but must be determined.

    Where a control is not kept no figure can be trusted, neither for an approval nor for a refusal.
    """
    if any(judgement.clause.control and judgement.outcome != "kept" for judgement in judgements):
        return "undetermined"
    binding = [judgement for judgement in judgements if not judgement.clause.warns]
    if any(judgement.outcome == "exceeded" for judgement in binding):
        return "refused"
    determined = all(judgement.outcome in {"kept", "exceeded"} for judgement in judgements)
    return "approved" if binding and determined else "undetermined"
