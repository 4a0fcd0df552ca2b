"""The verdict: pure functions from clauses, figures and waivers to a decision."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any, Literal

import pandas as pd

from disclosure_pipeline.evaluation.long_table import (
    ALL_FILES,
    ANY_FILE,
    FURTHER,
    NUMBERS,
    OVER_RELEASES,
    WITH_RELEASES,
    FigureRow,
    Part,
    tabulate_figures,
    tabulate_key_overlap,
)
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.entry import QUESTIONS
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.policy.clauses import KEY_OVERLAPS, Clause
from disclosure_pipeline.policy.reviewed_files import Waiver
from disclosure_pipeline.policy.rounding import (
    compute_rounding_step,
    find_fewest_records,
    round_figure,
)
from disclosure_pipeline.tables.messages import quote_name

Outcome = Literal["kept", "exceeded", "undetermined", "waived"]
Decision = Literal["approved", "refused", "undetermined"]

OVERLAPS = (*KEY_OVERLAPS, "target_overlap")
"""The figures on shared values."""

ADVISED = (*OVERLAPS, "detection_limit", "detection_limit_nearly")
"""The figures whose broken bound needs an advice beside the figure."""


@dataclass(frozen=True)
class Judgement:
    """The outcome of one clause, with the very row of the long table that it was held against.

    Attributes:
        value: what is bounded of the row; None if there is no finite figure
        limit: the bound in the figure's own unit
        outcome: of the exact figure, even if `value` is rounded; "waived" if the clause is broken and
            `waiver` lets it pass
        note: the meaning of a broken clause whose figure does not explain itself; of an overlap, what to do
        rounded_to: the number of records that `value` is rounded to for publication; None if it is exact
        row: the worst row; for a mean, the mean of the rows; None if it is not determined
    """

    clause: Clause
    value: float | None
    limit: float | None
    outcome: Outcome
    waiver: Waiver | None = None
    note: str = ""
    rounded_to: int | None = None
    row: FigureRow | None = None

    @property
    def subject(self) -> str:
        """The clause's name, and of a clause on several columns the one that is worst."""
        about = None if self.row is None else self.row.about
        if about is None or self.clause.column is not None:
            return self.clause.name
        return f"{self.clause.name} of {about}"

    @property
    def column(self) -> str | None:
        """The column or confidential table that the worst figure is about."""
        return self.clause.column if self.row is None or self.row.about is None else self.row.about

    @property
    def limit_text(self) -> str | None:
        """The limit in words, such as "at most 8", or None."""
        return None if self.limit is None else f"{self.clause.side} {self.limit:.4g}"

    @property
    def short_limit(self) -> str | None:
        """The limit without a line break, such as "≤8", or None."""
        return None if self.limit is None else f"{'≥' if self.clause.at_least else '≤'}{self.limit:.4g}"

    @property
    def outcome_text(self) -> str:
        """The outcome; "exceeded, warns" if the clause only warns."""
        is_warning = self.clause.warns and self.outcome == "exceeded"
        return f"{self.outcome}, warns" if is_warning else self.outcome

    def public(self, smallest_count: int, fewest: int, limits: Sequence[float]) -> Judgement:
        """Return the judgement with its figure rounded for publication; of its row only the place is left.

        A share is rounded to `smallest_count` of `fewest` records, a number of records to a multiple of
        `smallest_count`; `limits` are all limits of this figure (`find_limits`). A value that cannot be
        rounded is withheld, as is a limit that would tell GT's own risk.
        """
        clause, value = self.clause, self.value
        limit = None if clause.share_of is not None else self.limit
        row = None if self.row is None else FigureRow(self.row.figure, self.row.about, self.row.part)
        if value is None or self.limit is None:
            return replace(self, value=None, limit=limit, row=row)
        # A broken overlap ends a candidate: its figure is in no release, but says how far off it is.
        is_broken_overlap = clause.figure in OVERLAPS and self.outcome != "kept"
        if has_public_value(clause) or is_broken_overlap:
            step = compute_rounding_step(fewest, smallest_count)
            value = round_figure(value, step, limits, highest=100.0, at_least=clause.at_least)
        else:
            value = None
        return replace(self, value=value, limit=limit, row=row, rounded_to=smallest_count)

    def to_row(self) -> dict[str, Any]:
        """Return the judgement as plain data, with the name of its waiver."""
        return {
            "name": self.clause.name,
            **self.clause.to_row(),
            "value": self.value,
            "limit": self.limit,
            "outcome": self.outcome,
            "waiver": None if self.waiver is None else self.waiver.name,
            "loosened_from": self.clause.loosened_from,
            "note": self.note,
            "row": None if self.row is None else self.row.to_record(),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], waiver: Waiver | None = None) -> Judgement:
        """Return the judgement of a row of `to_row`, perhaps of an earlier version.

        Raise KeyError if another field is missing.
        """
        clause, note, judged = Clause.from_row(row), row.get("note", ""), row.get("row")
        figure_row = None if judged is None else FigureRow.from_record(judged)
        return cls(clause, row["value"], row["limit"], row["outcome"], waiver, note, row=figure_row)


def has_public_value(clause: Clause) -> bool:
    """Return whether a clause's figure is published rounded; that of a relative bound would tell GT's risk.

    >>> [has_public_value(Clause("DiSCO", word, 1, ("work",))) for word in ("at_most", "at_most_share")]
    [True, False]
    """
    if clause.entry is None or clause.statistic == "at_most_share":
        return False
    return clause.entry.find_published(clause.statistic) == "share"


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
        judgement.public(smallest_count, fewest, find_limits(judgement.clause, judgements))
        for judgement in judgements
    )


def find_limits(clause: Clause, judgements: Sequence[Judgement]) -> list[float]:
    """Return all absolute limits of what a clause bounds, including the ceilings of waivers."""
    bounded = (clause.figure, clause.about, clause.statistic == "beyond")
    same = [
        judgement
        for judgement in judgements
        for other in [judgement.clause]
        if (other.figure, other.about, other.statistic == "beyond") == bounded and other.share_of is None
    ]
    ceilings = [judgement.waiver.ceiling for judgement in same if judgement.waiver is not None]
    return [*(judgement.limit for judgement in same if judgement.limit is not None), *ceilings]


def judge(clauses: Sequence[Clause], result: Disclosure) -> tuple[Judgement, ...]:
    """Judge every clause. Only a finite figure within a finite bound is `kept`."""
    bounded = {clause.figure: clause.entry for clause in clauses if clause.entry is not None}
    judged = judge_rows(clauses, tabulate_figures(result, bounded.values()), len(result.N_s))
    return tuple(
        judgement if judgement.outcome == "kept" else replace(judgement, note=_explain(judgement, result))
        for judgement in judged
    )


def judge_rows(clauses: Sequence[Clause], rows: Sequence[FigureRow], files: int) -> tuple[Judgement, ...]:
    """Judge every clause by the rows of its figure, of a candidate of so many `files`.

    A clause over the worst of several files holds for each of them and for all as one table. The outcome is
    undetermined unless there is exactly one finite row of everything that the clause is about.
    """
    by_figure: dict[str, list[FigureRow]] = {}
    for row in rows:
        by_figure.setdefault(row.figure, []).append(row)
    return tuple(_judge(clause, by_figure.get(clause.figure, []), files) for clause in clauses)


def list_expected(
    clause: Clause, rows: Sequence[FigureRow], files: int
) -> list[tuple[str | None, tuple[str, ...], Part, bool]]:
    """List the place of each row that a clause must have; `rows` are those of its figure.

    None can be expected if the catalogue does not know the figure, or if there are rows of more files.
    """
    entry = clause.entry
    if entry is None or any(isinstance(row.part, int) and row.part > files for row in rows):
        return []
    parts: list[Part] = list(range(1, files + 1))
    if entry.name == "DiSCO_any":
        parts = [1] if files == 1 else [ANY_FILE]
        parts += [WITH_RELEASES] if any(row.part == WITH_RELEASES for row in rows) else []
    elif entry.is_of_release:
        parts = [WITH_RELEASES] if entry.place.frame in OVER_RELEASES else [ANY_FILE]
    elif files > 1 and entry.is_stacked and clause.over == "worst":
        parts.append(ALL_FILES)
    weights = (False, True) if clause.by_weight else (False,)
    everyone: tuple[str, ...] = ()
    listed = list(product(clause.about or (None,), (everyone,), parts, weights))
    if clause.column in WAYS:  # by weight, and of further confidential tables, files alone are looked at
        listed.append((clause.column, everyone, WITH_RELEASES, False))
    return listed


def find_bounded(clause: Clause, row: FigureRow) -> float:
    """Return what a clause bounds of a row; NaN if it cannot be told.

    Beyond other people's records: what is beyond chance, too, unless the clause leaves nothing to chance; and
    not more than what is beyond a table whose targets are permuted. Of a figure for which chance is allowed:
    the part beyond chance.
    """
    entry = clause.entry
    assert entry is not None
    if clause.statistic == "beyond":
        beyond = row.beyond_chance if clause.chance else row.beyond
        if not entry.place.permuted:
            return beyond
        excess = row.value - row.permuted
        return min(beyond, excess) if math.isfinite(beyond) and math.isfinite(excess) else math.nan
    counts_by_chance = bool(entry.place.beyond_chance) and "beyond" not in entry.statistics
    return row.beyond_chance if counts_by_chance and clause.chance else row.value


def _judge(clause: Clause, rows: Sequence[FigureRow], files: int) -> Judgement:
    undetermined = Judgement(clause, None, None, "undetermined")
    expected = list_expected(clause, rows, files)
    places = [row.place for row in rows]
    if not expected or any(places.count(place) != 1 for place in expected):
        return undetermined
    judged = [rows[places.index(place)] for place in expected]
    figures = [(find_bounded(clause, row), _find_limit(clause, row), row) for row in judged]
    if not all(math.isfinite(value) and math.isfinite(limit) for value, limit, _ in figures):
        return undetermined
    if clause.over == "mean":
        value, limit, row = _average(figures)
    else:
        find_worst = min if clause.at_least else max
        value, limit, row = find_worst(figures, key=lambda figure: figure[0] - figure[1])
    kept = value >= limit if clause.at_least else value <= limit
    is_doubt = clause.entry is not None and clause.entry.is_doubt
    broken: Outcome = "undetermined" if is_doubt else "exceeded"
    return Judgement(clause, value, limit, "kept" if kept else broken, row=row)


def _find_limit(clause: Clause, row: FigureRow) -> float:
    return clause.bound * row.own if clause.statistic == "at_most_share" else clause.bound


def _average(figures: Sequence[tuple[float, float, FigureRow]]) -> tuple[float, float, FigureRow]:
    def mean(values: Sequence[float]) -> float:
        return math.fsum(values) / len(values)

    values, limits, rows = zip(*figures, strict=True)
    first: FigureRow = rows[0]
    of_rows: dict[str, Any] = {name: mean([getattr(row, name) for row in rows]) for name in NUMBERS}
    row = replace(first, part="mean", is_larger=any(row.is_larger for row in rows), **of_rows)
    return mean(values), mean(limits), row


def judge_key_overlap(
    clauses: Sequence[Clause], key_overlap: pd.DataFrame, files: int
) -> tuple[Judgement, ...]:
    """Judge the clauses on shared values of keys by their frame, of a candidate of so many files."""
    rows = tabulate_key_overlap(key_overlap, files)
    return tuple(
        judgement if judgement.outcome == "kept" else replace(judgement, note=_advise(judgement, rows))
        for judgement in judge_rows(clauses, rows, files)
    )


def _advise(judgement: Judgement, rows: Sequence[FigureRow]) -> str:
    """Return what to do about a broken clause on shared values, of a key or of a target."""
    figure, name = judgement.clause.figure, judgement.column
    if figure == "whole_key_overlap":
        return (
            "The combinations of all keys are hardly shared: compare how each key is written in both tables; "
            "where nearly everyone is unique by them, group keys, or lower policy.whole_key_overlap knowingly"
        )
    if name is None:
        return "Some values of it could not be compared: compare how they are written in both tables"
    by_column = "" if judgement.clause.entry is None else judgement.clause.entry.by_column
    of_SD = [row for row in rows if row.figure == by_column and row.about == name]
    if all(row.value >= judgement.clause.bound for row in of_SD):
        return (
            f"The values of {quote_name(name)} are written alike, but those of many ground truth records are "
            "absent from the synthetic table, and risks read low because it says nothing about these: "
            f"look for absent levels or ranges and have them made, or lower policy.{figure} knowingly"
        )
    return (
        f"The synthetic table has values of {quote_name(name)} that the ground truth lacks: compare in both "
        "tables how they are written (units, decimals, spelling), or group them; else lower "
        f"policy.{figure} knowingly"
    )


def _explain(judgement: Judgement, result: Disclosure) -> str:
    entry = judgement.clause.entry
    if entry is None:
        return ""
    if entry.follows and judgement.value is None:
        return (
            f"fewer people have {quote_name(judgement.column)} than may be reported on: join the level with "
            "another, or remove it from sensitive"
        )
    by_column = FURTHER.get(entry.by_column)
    rows = () if by_column is None else tabulate_figures(result, [by_column])
    if entry.name in OVERLAPS:
        return _advise(judgement, rows)
    if by_column is None:
        return entry.meaning
    names = dict.fromkeys(row.about for row in rows if row.value > judgement.clause.bound)
    return f"{entry.meaning}: {', '.join(map(quote_name, names))}"


@dataclass(frozen=True)
class RefusedWaiver:
    """A waiver for the candidate's content that does not apply."""

    waiver: Waiver
    problem: str

    def __str__(self) -> str:
        return f"waiver {self.waiver.name} is refused: {self.problem}"


def can_be_waived(clause: Clause) -> bool:
    """Return whether a waiver can let a clause pass: few guards, and no doubt about tables or engine."""
    return not clause.control and clause.entry is not None and clause.entry.can_be_waived


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
    if judgement.outcome not in {"exceeded", "undetermined"} or value is None:
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


def order_judgements(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return the judgements in the order in which they are stated, the reasons against a release first.

    Broken clauses stand in the order of the page's questions: copies, and then what follows from them. Kept
    ones follow by how near they are to their bounds.

    >>> clauses = [Clause("DiSCO", "at_most", 2, ("work",)), Clause("repU", "at_most", 8)]
    >>> rows = [FigureRow("repU", None, 1, value=8.5), FigureRow("DiSCO", "work", 1, value=90)]
    >>> [judgement.clause.name for judgement in order_judgements(judge_rows(clauses, rows, 1))]
    ['repU', 'DiSCO[work]']
    """
    return sorted(judgements, key=_rank)


def find_worst_judgement(judgements: Iterable[Judgement]) -> Judgement | None:
    """Return the judgement that weighs most against a release; None if there are no judgements."""
    return min(judgements, key=_rank, default=None)


def _rank(judgement: Judgement) -> tuple[int, int, bool, float]:
    """Rank broken controls first, then refusals, undetermined and waived clauses, then kept risks.

    Kept clauses that no policy bounds, overlaps and warnings rank last: the first are always at their bound,
    an overlap shows that the tables are alike, and a warning does not decide. A copied record also is in what
    was released.
    """
    clause, outcome, entry = judgement.clause, judgement.outcome, judgement.clause.entry
    share = compute_share_of_bound(judgement.value, judgement.limit, at_least=clause.at_least)
    if outcome == "kept":
        is_fixed = entry is not None and not entry.statistics
        is_unranked = is_fixed or clause.warns or clause.figure in OVERLAPS
        return (6 if is_unranked else 4, 0, False, -share)
    if clause.control or clause.warns:
        return (0 if clause.control else 5, 0, False, -share)
    question = QUESTIONS.index("trusted" if entry is None else entry.question)
    if outcome == "undetermined":  # where the tables cannot be trusted, no other figure counts
        question = (question + 1) % len(QUESTIONS)
    of_release = entry is not None and entry.is_of_release
    return ({"waived": 3, "undetermined": 2}.get(outcome, 1), question, of_release, -share)
