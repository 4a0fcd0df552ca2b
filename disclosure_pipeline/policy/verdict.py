"""The verdict: one pure function from clauses and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import (
    DOUBTS,
    JUDGED,
    count_fewest,
    has_public_value,
    round_figure,
    step_of_share,
    values,
)
from disclosure_pipeline.policy.reviewed_files import Waiver

Outcome = Literal["kept", "exceeded", "undetermined", "waived"]
Decision = Literal["approved", "refused", "undetermined"]


@dataclass(frozen=True)
class Judgement:
    """One clause held against the figures; `limit` is its bound in the measure's own unit.

    `waived` is the outcome of a clause that is not kept and that `waiver` lets pass. `note` says what it
    means where a number does not. `rounded_to` is the number of records that `value` is rounded to for those
    who may not see exact figures; None where the figures are exact. The outcome is always the true one.
    """

    clause: Clause
    value: float | None
    limit: float | None
    outcome: Outcome
    waiver: Waiver | None = None
    note: str = ""
    rounded_to: int | None = None

    def __str__(self) -> str:
        clause = self.clause
        if self.rounded_to is None and (self.value is None or self.limit is None):
            return f"{clause.name} could not be determined"
        if self.note:
            return f"{clause.name}: {self.note}"
        bound = f"{self.limit:.4g}" if self.rounded_to is None else f"{clause.bound:.4g}"
        if self.rounded_to is not None and clause.share_of:
            bound += f" of {clause.share_of}"
        if clause.loosened_from is not None:
            bound += f" (loosened: by default {clause.loosened_from:g})"
        if self.value is None:
            figure = "keeps its bound" if self.outcome == "kept" else "breaks its bound"
        elif self.rounded_to is None:
            figure = f"is {self.value:.4g}"
        else:
            side, way = ("at least", "down") if clause.at_least else ("at most", "up")
            value = _write_apart(self.value, clause.bound)
            figure = f"is {side} {value} (rounded {way} to {self.rounded_to} records)"
        sentence = f"{clause.name} {figure}; {'required' if clause.at_least else 'allowed'} are {bound}"
        if self.waiver is None:
            return sentence
        until = self.waiver.expires.isoformat()
        return f"{sentence}; waived until {until} by {self.waiver.approver}: {self.waiver.reason}"

    @property
    def limit_in_words(self) -> str | None:
        """The limit in words, such as "at most 8"; None where there is none."""
        if self.limit is None:
            return None
        return f"{'at least' if self.clause.at_least else 'at most'} {self.limit:.4g}"

    @property
    def limit_in_short(self) -> str | None:
        """The limit as a sign that no line breaks, such as "≤8"; None where there is none."""
        return None if self.limit is None else f"{'≥' if self.clause.at_least else '≤'}{self.limit:.4g}"

    @property
    def outcome_in_words(self) -> str:
        """The outcome, and that it only warns where it does."""
        is_warning = self.clause.warns and self.outcome == "exceeded"
        return f"{self.outcome}, warns" if is_warning else self.outcome

    @property
    def in_short(self) -> str:
        """Clause, figure and limit, such as "repU 10.9 > 8"."""
        if self.value is None or self.limit is None:
            return f"{self.clause.name} could not be determined"
        if self.clause.at_least:
            sign = ">=" if self.value >= self.limit else "<"
        else:
            sign = "<=" if self.value <= self.limit else ">"
        return f"{self.clause.name} {self.value:.4g} {sign} {self.limit:.4g}"

    def public(self, smallest_count: int, fewest: int, limits: Sequence[float]) -> Judgement:
        """Return the judgement for readers who may not see exact figures.

        A share of records is rounded to `smallest_count` of `fewest` records, a number of records to a
        multiple of it; `limits` is all that the figure is held against. The value is withheld where it cannot
        be rounded so, and so is a limit that would tell GT's own risk.
        """
        clause, value = self.clause, self.value
        limit = None if clause.share_of is not None else self.limit
        if value is None or self.limit is None:
            return replace(self, value=None, limit=limit)
        if has_public_value(clause.measure, clause.share_of):
            is_count = JUDGED[clause.measure].published == "records"
            step = float(smallest_count) if is_count else step_of_share(fewest, smallest_count)
            highest = math.inf if is_count else 100.0
            value = round_figure(value, step, limits, highest=highest, at_least=clause.at_least)
        else:
            value = None
        return replace(self, value=value, limit=limit, rounded_to=smallest_count)

    def to_row(self) -> dict[str, Any]:
        """Return its clause, figure, bound and outcome as plain data; of its waiver only the name."""
        return {
            "name": self.clause.name,
            **asdict(self.clause),
            "value": self.value,
            "limit": self.limit,
            "outcome": self.outcome,
            "waiver": None if self.waiver is None else self.waiver.name,
            "loosened_from": self.clause.loosened_from,
            "note": self.note,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], waiver: Waiver | None = None) -> Judgement:
        """Return the judgement of such a row, and its waiver. KeyError where a field is missing."""
        clause = Clause.from_row(row)
        return cls(clause, row["value"], row["limit"], row["outcome"], waiver, row["note"])


def _write_apart(value: float, bound: float) -> str:
    """Return a figure with three digits, or with as many as it takes to tell it from its bound.

    >>> _write_apart(12.6667, 3.0), _write_apart(8.00123, 8.0), _write_apart(8.0, 8.0)
    ('12.7', '8.001', '8')
    """
    digits = (f"{value:.{number}g}" for number in range(3, 16))
    return next((text for text in digits if value == bound or float(text) != bound), f"{value:.3g}")


def read_judgements(content: Mapping[str, Any]) -> list[Judgement]:
    """Return the judgements of a dossier, each with the waiver that it names.

    KeyError where a field or a waiver is missing, ValidationError where a waiver is none.
    """
    rows = {row["name"]: row for row in content.get("waivers", ())}

    def find_waiver(name: str | None) -> Waiver | None:
        return Waiver(**{field: rows[name][field] for field in Waiver.model_fields}) if name else None

    return [Judgement.from_row(row, find_waiver(row["waiver"])) for row in content["clauses"]]


def publish(
    judgements: Sequence[Judgement], records: Sequence[int], smallest_count: int
) -> tuple[Judgement, ...]:
    """Return the judgements for readers who may not see exact figures, in the same order.

    `records` are the numbers of records of GT (first) and of each synthetic table. A share of the records is
    rounded as if it were one of the smallest of these tables.
    """
    fewest = count_fewest(records, smallest_count)
    return tuple(
        judgement.public(
            smallest_count,
            fewest,
            find_limits(judgement.clause.measure, judgement.clause.column, judgements),
        )
        for judgement in judgements
    )


def find_limits(measure: str, column: str | None, judgements: Sequence[Judgement]) -> list[float]:
    """Return all limits of a measure of a column, for every outcome is told."""
    same = [
        judgement
        for judgement in judgements
        if (judgement.clause.measure, judgement.clause.column) == (measure, column)
        and judgement.clause.share_of is None
    ]
    ceilings = [judgement.waiver.ceiling for judgement in same if judgement.waiver is not None]
    return [*(judgement.limit for judgement in same if judgement.limit is not None), *ceilings]


def judge(clauses: Sequence[Clause], result: Disclosure) -> tuple[Judgement, ...]:
    """Hold every clause against the figures. Only a finite number within a finite bound is `kept`.

    Of several syntheses, each has to keep it, and all of them as one table: see `counts_stack`.
    """
    return tuple(_judge(clause, result) for clause in clauses)


def _judge(clause: Clause, result: Disclosure) -> Judgement:
    results = [result]
    tables = len(result.N_s)
    if is_of_release(clause):  # one figure, where no more files have figures than there are
        tables = int(0 < tables >= max(result.identity.index, default=0))
    if tables > 1 and counts_stack(clause):
        tables += 1
        results += [result.stacked] if result.stacked is not None else []

    def figures(measure: str) -> list[float]:
        return [figure for result in results for figure in values(result, measure, clause.column)]

    originals = None if clause.share_of is None else figures(clause.share_of)
    judgement = hold(clause, figures(clause.measure), tables, originals)
    return judgement if judgement.outcome == "kept" else replace(judgement, note=_explain(clause, results))


def _explain(clause: Clause, results: Sequence[Disclosure]) -> str:
    entry = JUDGED.get(clause.measure)
    if entry is None or not entry.by_column:
        return "" if entry is None else entry.meaning
    names: dict[str, None] = {}
    for result in results:
        apart = result.frame("columns_apart")
        if entry.by_column in apart.columns:
            columns = apart[apart[entry.by_column] > clause.bound]
            names |= dict.fromkeys(map(str, columns.index.get_level_values("column")))
    return f"{entry.meaning}: {', '.join(names)}"


def counts_stack(clause: Clause) -> bool:
    """Return whether a clause holds for all files of a candidate as one table, beside each by itself."""
    entry = JUDGED.get(clause.measure)
    return clause.over == "worst" and not clause.control and entry is not None and entry.is_stacked


def is_of_release(clause: Clause) -> bool:
    """Return whether a clause is about one figure of all files of a candidate."""
    entry = JUDGED.get(clause.measure)
    return entry is not None and entry.of_release


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
    broken: Outcome = "undetermined" if clause.control or clause.measure in DOUBTS else "exceeded"
    return Judgement(clause, value, limit, "kept" if kept else broken)


def _over(figures: Sequence[float], clause: Clause, syntheses: int) -> float | None:
    if not figures or len(figures) != syntheses or not all(math.isfinite(figure) for figure in figures):
        return None
    if clause.over == "mean":
        return math.fsum(figures) / len(figures)
    return min(figures) if clause.at_least else max(figures)


@dataclass(frozen=True)
class RefusedWaiver:
    """A waiver for this very content that does not apply, and why."""

    waiver: Waiver
    problem: str

    def __str__(self) -> str:
        return f"waiver {self.waiver.name} is refused: {self.problem}"


def can_be_waived(clause: Clause) -> bool:
    """Return whether a waiver can let a clause pass: no guard, nor where tables or engine are in doubt."""
    entry = JUDGED.get(clause.measure)
    return not clause.control and entry is not None and entry.can_be_waived


def waive(
    judgements: Sequence[Judgement],
    waivers: Sequence[Waiver],
    *,
    gate: str,
    snapshot: str,
    policy_digest: str,
    now: datetime,
) -> tuple[tuple[Judgement, ...], tuple[RefusedWaiver, ...]]:
    """Apply the waivers for this content; return the judgements and the refused waivers.

    Every waiver for this content that does not let its clause pass is refused, also where none is needed:
    somebody relied on it. Waivers for other content have no say.
    """
    by_clause = {judgement.clause.name: judgement for judgement in judgements}
    waivable = [name for name, judgement in by_clause.items() if can_be_waived(judgement.clause)]
    for_content = [waiver for waiver in waivers if waiver.snapshot == snapshot]
    refused = []
    for waiver in for_content:
        problem = waiver.problem(gate, policy_digest, waivable, now)
        if problem is None and sum(other.clause == waiver.clause for other in for_content) > 1:
            problem = f"another waiver is for {waiver.clause} too"
        if problem is None:
            problem = _why_not_waived(by_clause[waiver.clause], waiver)
        if problem is None:
            by_clause[waiver.clause] = replace(by_clause[waiver.clause], outcome="waived", waiver=waiver)
        else:
            refused.append(RefusedWaiver(waiver, problem))
    return tuple(by_clause.values()), tuple(refused)


def _why_not_waived(judgement: Judgement, waiver: Waiver) -> str | None:
    value, clause = judgement.value, judgement.clause
    if judgement.outcome == "kept":
        return f"{clause.name} is kept without it"
    if judgement.outcome != "exceeded" or value is None:
        return f"{clause.name} could not be determined"
    within = value >= waiver.ceiling if clause.at_least else value <= waiver.ceiling
    return None if within else f"the value is beyond its ceiling, {waiver.ceiling:.4g}"


def decide(judgements: Sequence[Judgement], refused_waivers: Sequence[RefusedWaiver] = ()) -> Decision:
    """Return `approved` only if every clause is kept or waived.

    One that warns may be exceeded, but must be determined. Where a control is not kept no figure can be
    trusted, neither for an approval nor for a refusal. A refused waiver refuses the candidate.
    """
    if any(judgement.clause.control and judgement.outcome != "kept" for judgement in judgements):
        return "undetermined"
    binding = [judgement for judgement in judgements if not judgement.clause.warns]
    if refused_waivers or any(judgement.outcome == "exceeded" for judgement in binding):
        return "refused"
    determined = all(judgement.outcome in {"kept", "exceeded", "waived"} for judgement in judgements)
    return "approved" if binding and determined else "undetermined"


def use_of_bound(value: float | None, limit: float | None, *, at_least: bool = False) -> float:
    """Return the share of its bound that a figure takes: over 1 it is broken; infinite where it is unknown.

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
    """Return the judgement that stands most against a release; None if there is none.

    >>> from disclosure_pipeline.policy.clauses import Clause
    >>> from disclosure_pipeline.policy.verdict import hold
    >>> clauses = [Clause("repU", None, 8), Clause("DiSCO", "work", 10)]
    >>> worst = find_worst_judgement(hold(clause, [7.5], 1) for clause in clauses)
    >>> worst.clause.name if worst else None
    'repU'
    """
    return max(judgements, key=_rank, default=None)


def _rank(judgement: Judgement) -> tuple[int, float]:
    """Rank broken controls first, then refusals, undetermined and waived clauses, then kept risks by use.

    Last come kept clauses that are no risk: a control is at its bound by its nature, an overlap says that the
    tables are alike, and a warning does not decide.
    """
    clause, outcome = judgement.clause, judgement.outcome
    use = use_of_bound(judgement.value, judgement.limit, at_least=clause.at_least)
    if outcome == "kept":
        entry = JUDGED.get(clause.measure)
        is_overlap = entry is not None and entry.role == "overlap"
        return (0, use) if clause.control or clause.warns or is_overlap else (2, use)
    if clause.control:
        return (6, use)
    if clause.warns and outcome == "exceeded":
        return (1, use)
    return ({"waived": 3, "undetermined": 4}.get(outcome, 5), use)
