"""Tables of all clauses with their baselines, of changed figures, and of the effect of remedies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.frames import find_words
from disclosure_pipeline.evaluation.long_table import view_frame
from disclosure_pipeline.evidence.page.charts import PageTable
from disclosure_pipeline.measures.entry import Question
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.sentences import (
    MISSING,
    Content,
    name_column,
    write_bound,
    write_figure,
    write_subject,
)
from disclosure_pipeline.policy.verdict import Judgement, read_judgements
from disclosure_pipeline.tables.messages import capitalized

QUESTIONS: Mapping[str, Question] = {
    "Were people copied?": "copied",
    "Can people be found?": "found",
    "Can something be learned of them?": "learned",
    "Can these figures be trusted?": "trusted",
}
_MARKS = {"kept": "✓", "exceeded": "✗", "undetermined": "?", "waived": "≈"}
_OUTCOMES = {
    "kept": "kept",
    "exceeded": "not kept",
    "undetermined": "not determined",
    "waived": "waived",
}
_GRAVEST = ("undetermined", "exceeded", "waived", "warned", "kept")
# Columns side by side on paper, and letters of their names, at most.
_MOST_COLUMNS, _MOST_LETTERS = 5, 90
_HEADINGS = ("Clause", "Figure", "Bound", "Own", "Others'", "Chance", "Holdout", "Outcome")


@dataclass(frozen=True)
class ClauseRow:
    """A row of texts. `kind` is its gravest outcome, which gives its colour; empty for baselines."""

    cells: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class ClauseTable:
    """Clauses of one question, broken ones first."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[ClauseRow, ...]


def tabulate_clauses(content: Mapping[str, Any]) -> list[ClauseTable]:
    """Return all clauses by question: those on the whole table, then those on one column side by side."""
    tables, judgements = [], read_judgements(content)
    for question in QUESTIONS:
        asked = [judgement for judgement in judgements if find_question(judgement.clause) == question]
        whole = [judgement for judgement in asked if judgement.clause.column is None]
        if whole:
            tables.append(_drop_empty_columns(question, [_write_row(judgement) for judgement in whole]))
        for columns, families in _group_by_columns(asked).items():
            rows = [row for family in families for row in _write_family(family)]
            headings = ("Clause", "Bound", *(name_column(column, content) for column in columns))
            entry = families[0][0].clause.entry
            subject = "way" if entry is not None and entry.about == "way" else "column"
            tables.append(ClauseTable(f"{question} By {subject}", headings, tuple(rows)))
    return tables


def _group_by_columns(judgements: Sequence[Judgement]) -> dict[tuple[str, ...], list[list[Judgement]]]:
    """Return the families of clauses that differ only in their column, by the columns that fit one table."""
    families: dict[tuple[Any, ...], list[Judgement]] = {}
    for judgement in judgements:
        clause = judgement.clause
        if clause.column is not None:
            kind = (clause.figure, clause.statistic, clause.over, clause.warns)
            families.setdefault(kind, []).append(judgement)
    by_columns: dict[tuple[str, ...], list[list[Judgement]]] = {}
    for family in families.values():
        longest = max(len(str(judgement.clause.column)) for judgement in family)
        columns = max(1, min(_MOST_COLUMNS, _MOST_LETTERS // (longest + 4)))
        for start in range(0, len(family), columns):
            part = family[start : start + columns]
            by_columns.setdefault(tuple(str(judged.clause.column) for judged in part), []).append(part)
    return by_columns


def list_deciding(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Return the judgements of clauses that do not only warn."""
    return [judgement for judgement in judgements if not judgement.clause.warns]


def find_question(clause: Clause) -> str:
    """Return the question of the page that a clause answers."""
    topic = "trusted" if clause.entry is None else clause.entry.question
    return next(question for question, of in QUESTIONS.items() if of == topic)


def _drop_empty_columns(caption: str, rows: Sequence[ClauseRow]) -> ClauseTable:
    places = [
        place for place in range(len(_HEADINGS)) if any(row.cells[place] not in {MISSING, ""} for row in rows)
    ]
    kept = [ClauseRow(tuple(row.cells[place] for place in places), row.kind) for row in rows]
    kept.sort(key=lambda row: row.kind == "kept")
    return ClauseTable(caption, tuple(_HEADINGS[place] for place in places), tuple(kept))


def _find_kind(judgement: Judgement) -> str:
    is_warning = judgement.clause.warns and judgement.outcome == "exceeded"
    return "warned" if is_warning else judgement.outcome


def _write_row(judgement: Judgement) -> ClauseRow:
    outcome = f"{_MARKS[judgement.outcome]} {_OUTCOMES[judgement.outcome]}"
    if _find_kind(judgement) == "warned":
        outcome += ", only warns"
    if judgement.waiver is not None:
        outcome += f" by {judgement.waiver.name}"
    cells = (
        judgement.subject,
        write_figure(judgement.value, judgement.clause.words),
        write_bound(judgement),
        *astuple(write_baselines(judgement)),
        outcome,
    )
    return ClauseRow(cells, _find_kind(judgement))


def _write_family(family: Sequence[Judgement]) -> Iterator[ClauseRow]:
    """Yield the row of a family's figures by column, then a row for each baseline that they have."""
    first = family[0].clause
    name = first.name.replace(f"[{first.column}]", "", 1)
    bounds = [write_bound(judgement) for judgement in family]
    is_same = len(set(bounds)) == 1
    bound = bounds[0] if is_same else "beside each"
    if first.share_of:
        is_same, bound = True, f"{first.side} {first.bound:g} of {first.share_of}"
    cells = []
    for judgement, of_column in zip(family, bounds, strict=True):
        value = write_figure(judgement.value, first.words).removesuffix(f" {first.words.unit}")
        cell = f"{_MARKS[judgement.outcome]} {value}"
        cells.append(cell if is_same else f"{cell} ({of_column})")
    name += ", only warns" if first.warns else ""
    yield ClauseRow((name, bound, *cells), min(map(_find_kind, family), key=_GRAVEST.index))
    baselines = zip(*(astuple(write_baselines(judgement)) for judgement in family), strict=True)
    for heading, texts in zip(("own", "others'", "chance", "holdout"), baselines, strict=True):
        if set(texts) != {MISSING}:
            yield ClauseRow((f"{name}: {heading}", "", *texts), "")


@dataclass(frozen=True)
class BaselineTexts:
    """The same figure, as text, of GT itself, of other people's records, by chance, and of a holdout."""

    own: str = MISSING
    others: str = MISSING
    chance: str = MISSING
    holdout: str = MISSING


def write_baselines(judgement: Judgement) -> BaselineTexts:
    """Write what stands beside a clause's figure in the very row that was judged."""
    row, entry = judgement.row, judgement.clause.entry
    if row is None or entry is None:
        return BaselineTexts()
    # By chance: the figure of a permuted table, or what chance adds to the one that is bounded.
    is_permuted = bool(entry.place.permuted)
    chance, words = (row.permuted, entry.words) if is_permuted else (row.by_chance, judgement.clause.words)
    return BaselineTexts(
        own=_write(row.own, entry.words),
        others=_write(row.others, entry.words),
        chance=_write(chance, words),
        holdout=_write(row.holdout, entry.words),
    )


def _write(value: float, words: Words) -> str:
    return write_figure(value, words) if math.isfinite(value) else MISSING


def compare_with_last(content: Content, last: Content | None) -> PageTable | None:
    """Return the clauses whose figure changed since the last candidate; None if there is none."""
    if last is None:
        return None
    before = {judgement.clause.name: judgement for judgement in read_judgements(last)}
    rows = []
    for judgement in read_judgements(content):
        earlier, words = before.get(judgement.clause.name), judgement.clause.words
        if judgement.clause.control or earlier is None or earlier.value == judgement.value:
            continue
        change = MISSING
        if judgement.value is not None and earlier.value is not None:
            change = f"{judgement.value - earlier.value:+.3g}"
        outcomes = [earlier.outcome, judgement.outcome]
        rows.append(
            (
                judgement.clause.name,
                write_figure(earlier.value, words),
                write_figure(judgement.value, words),
                change,
                outcomes[1] if outcomes[0] == outcomes[1] else f"{outcomes[0]}, now {outcomes[1]}",
            )
        )
    caption = f"Clauses whose figure changed since candidate {last['candidate']}"
    return PageTable(caption, ("Clause", "Before", "Now", "Change", "Outcome"), tuple(rows))


def list_definitions(content: Content) -> dict[str, list[tuple[str, str, Words]]]:
    """Return name, subject and words of each risk on the page, by question; doubts and controls need none."""
    figures = content["figures"]
    _, found, learned, _ = QUESTIONS
    drawn = {
        ("attribute", learned): ("DiSCO", "DiSCO_others", "Dorig"),
        ("identity", found): ("UiO", "repU"),
    }
    names = {
        name: (question, words)
        for (frame, question), columns in drawn.items()
        if view_frame(figures, frame)
        for name in columns
        if (words := find_words(name, frame)) is not None
    }
    for judgement in read_judgements(content):
        clause = judgement.clause
        if clause.entry is not None and clause.entry.question != "trusted":
            beyond = " beyond" if clause.statistic == "beyond" else ""
            names[f"{clause.figure}{beyond}"] = find_question(clause), clause.words
    definitions: dict[str, list[tuple[str, str, Words]]] = {question: [] for question in QUESTIONS}
    for name, (question, words) in sorted(names.items(), key=lambda item: item[0].lower()):
        subject = (words.subject or words.title).replace("whose {column}", "whose target")
        subject = subject.replace(" ({column})", "").replace("{column}", "a target")
        definitions[question].append((name, subject, words))
    return definitions


@dataclass(frozen=True)
class TriedRemedy:
    """A remedy, and the figures of a candidate's tables after it.

    `lost`: number of removed records. `blanked`: number of values made missing. `broken`: clauses not kept
    after it. `values`: clause -> figure. `distance`: total variation distance (0 to 1) of the column farthest
    from GT's.
    """

    name: str
    lost: int
    blanked: int
    broken: tuple[str, ...]
    values: Mapping[str, float | None]
    distance: float


@dataclass(frozen=True)
class Advice:
    """A sentence for a reader in a hurry; the tried remedies, and each broken clause after them, if any."""

    sentence: str
    table: PageTable | None = None
    clauses: PageTable | None = None


_OTHERWISE = "train the model differently: with larger leaves, fewer columns, or noise."


def advise(content: Content, tried: Sequence[TriedRemedy], reason: Judgement | None) -> Advice:
    """Advise on a refusal; `reason` is that of the headline."""
    if not tried:
        untried = "No remedy was tried: the tables are too large or not in memory."
        return Advice(f"{untried} {_OTHERWISE.capitalize()}")
    best = min(tried, key=lambda remedy: (len(remedy.broken), remedy.lost + remedy.blanked))
    if best.broken:
        sentence = f"None of the tried remedies keeps every clause, so {_OTHERWISE}"
    else:
        sentence = (
            f"“{best.name}” would let this table keep every clause. The model's next table would copy again, "
            f"so rather {_OTHERWISE}"
        )
    deciding = list_deciding(read_judgements(content))
    broken = [judgement for judgement in deciding if judgement.outcome not in {"kept", "waived"}]
    return Advice(
        sentence, _tabulate_remedies(content, tried, reason, len(broken)), _tabulate_clauses(broken, tried)
    )


def _tabulate_clauses(broken: Sequence[Judgement], tried: Sequence[TriedRemedy]) -> PageTable:
    rows = []
    for judgement in broken:
        name, words = judgement.clause.name, judgement.clause.words
        cells = [judgement.subject, write_bound(judgement), write_figure(judgement.value, words)]
        for remedy in tried:
            mark = "✗" if name in remedy.broken else "✓"
            cells.append(f"{mark} {write_figure(remedy.values.get(name), words)}")
        rows.append(tuple(cells))
    headings = ("Clause", "Bound", "Without a remedy", *(remedy.name for remedy in tried))
    return PageTable("Broken clauses after each remedy", headings, tuple(rows))


def _tabulate_remedies(
    content: Content, tried: Sequence[TriedRemedy], reason: Judgement | None, broken: int
) -> PageTable:
    apart = view_frame(content["figures"], "columns_apart")
    distances = [row["TVD"] for row in apart if row["TVD"] is not None]
    subject = [] if reason is None else [capitalized(write_subject(reason, content))]
    headings = ["Remedy", "Taken out or blanked", "Clauses not kept", *subject]

    def write_row(name: str, cost: str, number: int, value: Any, distance: float | None) -> tuple[str, ...]:
        figure = [] if reason is None else [write_figure(value, reason.clause.words)]
        percent = MISSING if distance is None else f"{100 * distance:.1f} %"
        return (name, cost, str(number), *figure, percent)

    value = None if reason is None else reason.value
    rows = [write_row("none", MISSING, broken, value, max(distances, default=None))]
    for remedy in tried:
        value = None if reason is None else remedy.values.get(reason.clause.name)
        rows.append(write_row(remedy.name, _write_cost(remedy), len(remedy.broken), value, remedy.distance))
    return PageTable("Effect of each remedy", (*headings, "Least similar column, off by"), tuple(rows))


def _write_cost(remedy: TriedRemedy) -> str:
    costs = ((remedy.lost, "record"), (remedy.blanked, "value"))
    return ", ".join(write_count(number, noun) for number, noun in costs if number) or MISSING
