"""The verdict: pure functions from clauses, figures and waivers to a decision."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

import pandas as pd

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import (
    DOUBTS,
    JUDGED,
    OVER_RELEASES,
    OVERLAPS,
    compute_rounding_step,
    find_entry,
    find_fewest_records,
    find_figures,
    find_smallest_overlap,
    has_public_value,
    round_figure,
)
from disclosure_pipeline.policy.reviewed_files import Waiver

Outcome = Literal["kept", "exceeded", "undetermined", "waived"]
Decision = Literal["approved", "refused", "undetermined"]
Part = int | str
ALL_FILES = "all files"
"""The part of a figure of all files of a candidate as one table."""
ANY_FILE = "any file"
"""The part of a figure of people whom at least one file of a candidate concerns."""
WITH_RELEASES = "with all releases"
"""The part of a figure of a candidate together with everything published."""


@dataclass(frozen=True)
class Judgement:
    """The outcome of one clause.

    Attributes:
        limit: the bound in the measure's own unit
        outcome: of the exact figure, even if `value` is rounded; "waived" if the clause is broken and
            `waiver` lets it pass
        note: the meaning of a broken clause whose figure does not explain itself; of an overlap, what to do
        rounded_to: the number of records that `value` is rounded to for publication; None if it is exact
        part: the file (1 for the first) or files that `value` is of; None if it is a mean or not determined
    """

    clause: Clause
    value: float | None
    limit: float | None
    outcome: Outcome
    waiver: Waiver | None = None
    note: str = ""
    rounded_to: int | None = None
    part: Part | None = None

    def __str__(self) -> str:
        clause = self.clause
        if self.rounded_to is None and (self.value is None or self.limit is None):
            return f"{clause.name} could not be determined"
        if self.note and clause.measure not in OVERLAPS:
            return f"{clause.name}: {self.note}"
        bound = f"{self.limit:.4g}" if self.rounded_to is None else f"{clause.bound:.4g}"
        if self.rounded_to is not None and clause.share_of:
            bound += f" of {clause.share_of}"
        if clause.loosened_from is not None:
            bound += f" (loosened; the default is {clause.loosened_from:g})"
        if self.value is None:
            figure = "keeps its bound" if self.outcome == "kept" else "breaks its bound"
        elif self.rounded_to is None:
            figure = f"is {self.value:.4g}"
        else:
            side, way = ("at least", "down") if clause.at_least else ("at most", "up")
            value = _write_apart(self.value, clause.bound)
            figure = f"is {side} {value} (rounded {way} to {write_count(self.rounded_to, 'record')})"
        sentence = f"{clause.name} {figure}; the {'minimum' if clause.at_least else 'limit'} is {bound}"
        if self.note:
            sentence += f". {self.note}"
        if self.waiver is None:
            return sentence
        until = self.waiver.expires.isoformat()
        return f"{sentence}; waived until {until} by {self.waiver.approver}: {self.waiver.reason}"

    @property
    def limit_text(self) -> str | None:
        """The limit in words, such as "at most 8", or None."""
        if self.limit is None:
            return None
        return f"{'at least' if self.clause.at_least else 'at most'} {self.limit:.4g}"

    @property
    def short_limit(self) -> str | None:
        """The limit without a line break, such as "≤8", or None."""
        return None if self.limit is None else f"{'≥' if self.clause.at_least else '≤'}{self.limit:.4g}"

    @property
    def outcome_text(self) -> str:
        """The outcome; "exceeded, warns" if the clause only warns."""
        is_warning = self.clause.warns and self.outcome == "exceeded"
        return f"{self.outcome}, warns" if is_warning else self.outcome

    @property
    def summary(self) -> str:
        """The clause, figure and limit, such as "repU 10.9 > 8"."""
        if self.value is None or self.limit is None:
            return f"{self.clause.name} could not be determined"
        if self.clause.at_least:
            sign = ">=" if self.value >= self.limit else "<"
        else:
            sign = "<=" if self.value <= self.limit else ">"
        return f"{self.clause.name} {self.value:.4g} {sign} {self.limit:.4g}"

    def public(self, smallest_count: int, fewest: int, limits: Sequence[float]) -> Judgement:
        """Return the judgement with its figure rounded for publication.

        A share is rounded to `smallest_count` of `fewest` records, a number of records to a multiple of
        `smallest_count`; `limits` are all limits of this figure (`find_limits`). A value that cannot be
        rounded is withheld, as is a limit that would tell GT's own risk.
        """
        clause, value = self.clause, self.value
        limit = None if clause.share_of is not None else self.limit
        if value is None or self.limit is None:
            return replace(self, value=None, limit=limit)
        # A broken overlap ends a candidate: its figure is in no release, but says how far off it is.
        is_broken_overlap = clause.measure in OVERLAPS and self.outcome != "kept"
        if has_public_value(clause.measure, clause.share_of) or is_broken_overlap:
            is_count = JUDGED[clause.measure].published == "records"
            step = float(smallest_count) if is_count else compute_rounding_step(fewest, smallest_count)
            highest = math.inf if is_count else 100.0
            value = round_figure(value, step, limits, highest=highest, at_least=clause.at_least)
        else:
            value = None
        return replace(self, value=value, limit=limit, rounded_to=smallest_count)

    def to_row(self) -> dict[str, Any]:
        """Return the judgement as plain data, with the name of its waiver."""
        return {
            "name": self.clause.name,
            **asdict(self.clause),
            "value": self.value,
            "limit": self.limit,
            "outcome": self.outcome,
            "waiver": None if self.waiver is None else self.waiver.name,
            "loosened_from": self.clause.loosened_from,
            "note": self.note,
            "part": self.part,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], waiver: Waiver | None = None) -> Judgement:
        """Return the judgement of a row of `to_row`, perhaps of an earlier version without `note` and `part`.

        Raise KeyError if another field is missing.
        """
        clause, note, part = Clause.from_row(row), row.get("note", ""), row.get("part")
        return cls(clause, row["value"], row["limit"], row["outcome"], waiver, note, part=part)


def _write_apart(value: float, bound: float) -> str:
    """Return a figure with three digits, or as many as distinguish it from its bound.

    >>> _write_apart(12.6667, 3.0), _write_apart(8.00123, 8.0), _write_apart(8.0, 8.0)
    ('12.7', '8.001', '8')
    """
    digits = (f"{value:.{number}g}" for number in range(3, 16))
    return next((text for text in digits if value == bound or float(text) != bound), f"{value:.3g}")


def read_judgements(content: Mapping[str, Any]) -> list[Judgement]:
    """Return the judgements of a dossier, each with the waiver that it names.

    Raise KeyError if a field or a waiver is missing, ValidationError if a waiver is invalid.
    """
    rows = {row["name"]: row for row in content.get("waivers", ())}

    def find_waiver(name: str | None) -> Waiver | None:
        return Waiver(**{field: rows[name][field] for field in Waiver.model_fields}) if name else None

    return [Judgement.from_row(row, find_waiver(row["waiver"])) for row in content["clauses"]]


def round_judgements(
    judgements: Sequence[Judgement], records: Sequence[int], smallest_count: int
) -> tuple[Judgement, ...]:
    """Return the judgements with their figures rounded for publication, in the same order.

    `records` has the number of records of GT, then of each synthetic table. Shares are rounded as if they
    were of the smallest of these tables.
    """
    fewest = find_fewest_records(records, smallest_count)
    return tuple(
        judgement.public(
            smallest_count,
            fewest,
            find_limits(judgement.clause.measure, judgement.clause.column, judgements),
        )
        for judgement in judgements
    )


def find_limits(measure: str, column: str | None, judgements: Sequence[Judgement]) -> list[float]:
    """Return all absolute limits of one figure, including the ceilings of waivers."""
    same = [
        judgement
        for judgement in judgements
        if (judgement.clause.measure, judgement.clause.column) == (measure, column)
        and judgement.clause.share_of is None
    ]
    ceilings = [judgement.waiver.ceiling for judgement in same if judgement.waiver is not None]
    return [*(judgement.limit for judgement in same if judgement.limit is not None), *ceilings]


def judge(clauses: Sequence[Clause], result: Disclosure) -> tuple[Judgement, ...]:
    """Judge every clause. Only a finite figure within a finite bound is `kept`.

    A clause over the worst of several syntheses holds for each of them and for all as one table, see
    `covers_stacked`.
    """
    return tuple(_judge(clause, result) for clause in clauses)


def _judge(clause: Clause, result: Disclosure) -> Judgement:
    results = [result]
    parts: list[Part] = list(range(1, len(result.N_s) + 1))
    if is_about_release(clause):  # one figure, unless there are figures of more files than the candidate has
        is_whole = 0 < len(parts) >= max(result.identity.index, default=0)
        parts = [_name_part(clause.measure, len(parts))] if is_whole else []
    if len(parts) > 1 and covers_stacked(clause):
        parts.append(ALL_FILES)
        results += [result.stacked] if result.stacked is not None else []

    def figures(measure: str) -> list[float]:
        return [figure for result in results for figure in find_figures(result, measure, clause.column)]

    originals = None if clause.share_of is None else figures(clause.share_of)
    found = figures(clause.measure)
    judgement = judge_figures(clause, found, len(parts), originals)
    if judgement.value is not None and clause.over == "worst":
        judgement = replace(judgement, part=parts[found.index(judgement.value)])
    return judgement if judgement.outcome == "kept" else replace(judgement, note=_explain(clause, results))


def _name_part(measure: str, files: int) -> Part:
    """Name the part that the single figure of a candidate's `files` is of."""
    entry = find_entry(measure, files)
    if not entry.is_of_release:
        return 1
    return WITH_RELEASES if entry.frame in OVER_RELEASES else ANY_FILE


def judge_key_overlap(clause: Clause, frame: pd.DataFrame, syntheses: int) -> Judgement:
    """Judge a clause on the shared values of keys by the frame `key_overlap` of all syntheses."""
    judgement = judge_figures(clause, find_smallest_overlap(frame, clause.column), syntheses)
    return judgement if judgement.outcome == "kept" else replace(judgement, note=_advise(clause, [frame]))


def _advise(clause: Clause, frames: Sequence[pd.DataFrame]) -> str:
    """Return what to do about a broken clause on shared values."""
    level, name = OVERLAPS[clause.measure], clause.column
    if name is None:
        return (
            "The combinations of all keys are hardly shared: compare how each key is written in both tables; "
            "where nearly everyone is unique by them, group keys, or lower policy.whole_key_overlap knowingly"
        )
    bound = clause.measure
    of_SD = [
        frame.reindex(columns=["SD_in_GT"])[frame.index.get_level_values(level) == name]
        for frame in frames
        if level in frame.index.names
    ]
    if all((shares >= clause.bound).all(axis=None) for shares in of_SD):
        return (
            f"The values of {name!r} are written alike, but those of many ground truth records are absent "
            "from the synthetic table, and risks read low because it says nothing about these records: look "
            f"for absent levels or ranges and have them made, or lower policy.{bound} knowingly"
        )
    return (
        f"The synthetic table has values of {name!r} that the ground truth lacks: compare in both tables how "
        f"they are written (units, decimals, spelling), or group them; else lower policy.{bound} knowingly"
    )


def _explain(clause: Clause, results: Sequence[Disclosure]) -> str:
    if clause.measure in OVERLAPS:
        return _advise(clause, [result.frame(clause.measure) for result in results])
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


def covers_stacked(clause: Clause) -> bool:
    """Return whether a clause also holds for all files of a candidate as one table."""
    entry = JUDGED.get(clause.measure)
    return clause.over == "worst" and not clause.control and entry is not None and entry.is_stacked


def is_about_release(clause: Clause) -> bool:
    """Return whether a clause bounds a single figure of all files of a candidate."""
    entry = JUDGED.get(clause.measure)
    return entry is not None and entry.is_of_release


def judge_figures(
    clause: Clause, figures: Sequence[float], syntheses: int, originals: Sequence[float] | None = None
) -> Judgement:
    """Judge a clause by one figure per synthesis; `originals` are the figures that a bound is a share of.

    The outcome is undetermined unless every synthesis has a finite figure.
    """
    value = _aggregate(figures, clause, syntheses)
    limit: float | None = clause.bound
    if originals is not None:
        original = _aggregate(originals, clause, syntheses)
        limit = None if original is None else clause.bound * original
    if value is None or limit is None or not math.isfinite(limit):
        return Judgement(clause, None, None, "undetermined")
    kept = value >= limit if clause.at_least else value <= limit
    broken: Outcome = "undetermined" if clause.control or clause.measure in DOUBTS else "exceeded"
    return Judgement(clause, value, limit, "kept" if kept else broken)


def _aggregate(figures: Sequence[float], clause: Clause, syntheses: int) -> float | None:
    if not figures or len(figures) != syntheses or not all(math.isfinite(figure) for figure in figures):
        return None
    if clause.over == "mean":
        return math.fsum(figures) / len(figures)
    return min(figures) if clause.at_least else max(figures)


@dataclass(frozen=True)
class RefusedWaiver:
    """A waiver for the candidate's content that does not apply."""

    waiver: Waiver
    problem: str

    def __str__(self) -> str:
        return f"waiver {self.waiver.name} is refused: {self.problem}"


def can_be_waived(clause: Clause) -> bool:
    """Return whether a waiver can let a clause pass: not a guard, nor a doubt about tables or engine."""
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
    """Apply the waivers for this content and return the judgements and the refused waivers.

    A waiver that does not let its clause pass is refused, even if the clause is kept without it, because
    somebody relied on it. Waivers for other content are ignored.
    """
    by_clause = {judgement.clause.name: judgement for judgement in judgements}
    waivable = [name for name, judgement in by_clause.items() if can_be_waived(judgement.clause)]
    for_content = [waiver for waiver in waivers if waiver.snapshot == snapshot]
    refused = []
    for waiver in for_content:
        problem = waiver.find_problem(gate, policy_digest, waivable, now)
        if problem is None and sum(other.clause == waiver.clause for other in for_content) > 1:
            problem = f"there is another waiver for {waiver.clause}"
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
    """Return `approved` only if every clause is kept or waived and no waiver is refused.

    A clause that warns may be exceeded but must be determined. If a control is broken, no figure can be
    trusted: the candidate is undetermined.
    """
    if any(judgement.clause.control and judgement.outcome != "kept" for judgement in judgements):
        return "undetermined"
    binding = [judgement for judgement in judgements if not judgement.clause.warns]
    if refused_waivers or any(judgement.outcome == "exceeded" for judgement in binding):
        return "refused"
    determined = all(judgement.outcome in {"kept", "exceeded", "waived"} for judgement in judgements)
    return "approved" if binding and determined else "undetermined"


def compute_share_of_bound(value: float | None, limit: float | None, *, at_least: bool = False) -> float:
    """Return a figure as a share of its bound: above 1 if it is broken, infinite if either is unknown.

    >>> compute_share_of_bound(10.0, 8.0), compute_share_of_bound(50.0, 40.0, at_least=True)
    (1.25, 0.8)
    >>> [compute_share_of_bound(value, bound) for value, bound in [(3.0, 0.0), (0.0, 0.0), (-0.7, 2.5)]]
    [inf, 0.0, 0.0]
    """
    if value is None or limit is None or not (math.isfinite(value) and math.isfinite(limit)):
        return math.inf
    part, whole = (limit, value) if at_least else (value, limit)
    if part <= 0:
        return 0.0
    return part / whole if whole > 0 else math.inf


def find_worst_judgement(judgements: Iterable[Judgement]) -> Judgement | None:
    """Return the judgement that weighs most against a release; None if there are no judgements.

    >>> clauses = [Clause("repU", None, 8), Clause("DiSCO", "work", 10)]
    >>> worst = find_worst_judgement(judge_figures(clause, [7.5], 1) for clause in clauses)
    >>> worst.clause.name if worst else None
    'repU'
    """
    return max(judgements, key=_rank, default=None)


def _rank(judgement: Judgement) -> tuple[int, float]:
    """Rank broken controls highest, then refusals, undetermined and waived clauses, then kept risks.

    Kept controls, overlaps and warnings rank lowest: a control is always at its bound, an overlap shows that
    the tables are alike, and a warning does not decide.
    """
    clause, outcome = judgement.clause, judgement.outcome
    share = compute_share_of_bound(judgement.value, judgement.limit, at_least=clause.at_least)
    if outcome == "kept":
        entry = JUDGED.get(clause.measure)
        is_overlap = entry is not None and entry.role == "overlap"
        return (0, share) if clause.control or clause.warns or is_overlap else (2, share)
    if clause.control:
        return (6, share)
    if clause.warns and outcome == "exceeded":
        return (1, share)
    return ({"waived": 3, "undetermined": 4}.get(outcome, 5), share)
