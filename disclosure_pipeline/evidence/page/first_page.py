"""The first page: verdict, four questions with their answers, a chart of all that matters, and what now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evaluation.plots.pictures import title_power
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.evidence.dossier import count_kept
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.charts import (
    MISSING,
    Figure,
    PageTable,
    write_bound,
    write_figure,
    write_subject,
)
from disclosure_pipeline.evidence.page.clauses_section import (
    QUESTIONS,
    base_measure,
    find_baselines,
    find_beside,
    find_question,
)
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.policy.registry import JUDGED, SMALLER_OF
from disclosure_pipeline.policy.verdict import use_of_bound
from disclosure_pipeline.tables.messages import capitalized

Content = Mapping[str, Any]
_Clause = Mapping[str, Any]

_TRUSTED = list(QUESTIONS)[-1]
# The gravest outcome first, each with its mark, and the answer about a risk and about the figures.
_ANSWERS = {
    "exceeded": ("✗", "more than allowed", "no"),
    "undetermined": ("?", "not determined", "not determined"),
    "waived": ("≈", "more than allowed, and waived", "waived"),
    "kept": ("✓", "no more than allowed", "yes"),
}
_GRAVEST = list(_ANSWERS)
_MOST_ROWS = 10
_BY_OTHERS = {
    "copied": "in a fresh sample",
    "found": "with other people's records",
    "learned": "from other people's records",
}
# The control that says most to a reader: what is found in a copy of everybody.
_OF_A_COPY = "copy_repU"


@dataclass(frozen=True)
class Answer:
    """The answer to a question, with the clause that decides it; texts only. `kind` is its outcome."""

    question: str
    kind: str
    answer: str
    kept: str
    sentence: str
    value: str
    bound: str
    others: str
    chance: str


def answer_questions(content: Content, power: GatePower | None = None) -> list[Answer]:
    """Return the answer to each question that a clause is about."""
    asked = [(question, _list_clauses(content, question)) for question in QUESTIONS]
    return [_answer(question, clauses, content, power) for question, clauses in asked if clauses]


def write_headline(content: Content) -> str:
    """Return the verdict and its reason: the worst answer, in the order of the questions."""
    decision = content["decision"]
    if decision is None:
        return f"Measured: {_state_largest(content)}"
    if decision == "approved":
        return f"Approved: {count_kept(content['clauses'])}"
    reason = find_reason(content)
    if decision == "undetermined":
        stated = _state(reason) if reason else "no clause could be held against the figures"
        return f"Could not be determined: {stated}"
    if reason is None:
        return "Refused: a waiver for this content is refused"
    side = "at least " if reason["at_least"] else ""
    limit = write_figure(reason["limit"], words_of(reason["measure"]))
    return f"Refused: {_state(reason)}; allowed are {side}{limit}"


def find_reason(content: Content) -> _Clause | None:
    """Return the clause of the headline; None where none stands against a release."""
    if content["decision"] == "undetermined":
        doubtful = [clause for clause in _list_deciding(content) if clause["outcome"] == "undetermined"]
        # Where the engine or the tables cannot be trusted, no other figure counts.
        doubtful.sort(key=lambda clause: (not clause["control"], find_question(clause) != _TRUSTED))
        return doubtful[0] if doubtful else None
    gravest = (clauses[0] for question in QUESTIONS if (clauses := _list_clauses(content, question)))
    return next((clause for clause in gravest if clause["outcome"] == "exceeded"), None)


def show_bounds(content: Content) -> Figure | None:
    """Draw each risk that the policy bounds as a share of its bound, the farthest beyond first."""
    rows = [
        clause
        for clause in _list_deciding(content)
        if find_question(clause) != _TRUSTED
        and clause["value"] is not None
        and not clause["at_least"]
        and (clause["limit"] or 0) > 0
    ]
    if not rows:
        return None
    beyond = sum(clause["outcome"] == "exceeded" for clause in rows)
    title = (
        f"{beyond} of {len(rows)} risks {_is_or_are(beyond)} beyond their bound"
        if beyond
        else f"None of {len(rows)} risks is beyond its bound"
    )
    rows = sorted(rows, key=_use, reverse=True)[:_MOST_ROWS]
    marks = {
        "this table": charts.DOT,
        "the bound": charts.TICK,
        "other people's records": charts.RING,
    }
    points: list[tuple[str, str, float]] = []
    for clause in rows:
        words = words_of(clause["measure"])
        value = write_figure(clause["value"], words).partition(" ")[0]
        label = f"{write_subject(clause)}: {value} of {write_figure(clause['limit'], words)}"
        if any(label == drawn for drawn, _, _ in points):
            label += f" ({clause['name']})"
        others = _others(clause, content)
        figures = (clause["value"], clause["limit"], others)
        points += [
            (label, mark, figure / clause["limit"])
            for mark, figure in zip(marks, figures, strict=True)
            if figure is not None
        ]
    headings = ("Risk", "Figure", "Bound", "Others'")
    table = PageTable(
        "The risks nearest to their bound, or farthest beyond it",
        headings,
        tuple(
            (
                f"{capitalized(write_subject(clause))} ({clause['name']})",
                write_figure(clause["value"], words_of(clause["measure"])),
                write_bound(clause, words_of(clause["measure"])),
                find_beside(clause, content["figures"]).others,
            )
            for clause in rows
        ),
    )
    return Figure(
        title,
        charts.draw_rows(
            points,
            marks,
            "figure divided by its bound",
            row_height=16,
            width=charts.BESIDE_LONG_NAMES,
            longest_name=charts.LONG_NAMES,
        ),
        "Each risk divided by its bound: beyond 1 it is more than the policy allows.",
        table,
    )


def show_power(power: GatePower) -> Figure:
    """Draw how often the gate refuses tables with planted copies."""
    headings = ("Planted", "% of people", "Refused", "% refused", "95 % interval")
    rows = []
    for row in power.to_frame().to_dict("records"):
        refused = f"{row['refused']} of {row['tries']}"
        interval = f"{row['low']:.0f} to {row['high']:.0f} %"
        rows.append((row["planted"], f"{row['share']} %", refused, f"{row['percent']:.0f} %", interval))
    return Figure(
        title_power(power),
        charts.draw_power(power),
        "Tables in which a share of the people is copied, and how many of them the gate refuses.",
        PageTable("Tries that were refused, by what was planted", headings, tuple(rows)),
    )


def _list_deciding(content: Content) -> list[_Clause]:
    return [clause for clause in content["clauses"] if not clause["warns"]]


def _list_clauses(content: Content, question: str) -> list[_Clause]:
    """Return the clauses that answer a question, the gravest first."""
    clauses = [clause for clause in _list_deciding(content) if find_question(clause) == question]
    return sorted(
        clauses,
        key=lambda clause: (
            _GRAVEST.index(clause["outcome"]),
            clause["outcome"] == "kept" and clause["measure"] != _OF_A_COPY,
            not clause["control"],
            -_use(clause, from_lowest=True),
        ),
    )


def _use(clause: _Clause, *, from_lowest: bool = False) -> float:
    """Return how much of its bound a clause takes; less than any of what is withheld, or at it by nature.

    `from_lowest`: from where the bound can begin, such as the half of the people that anybody is near to.
    """
    entry = JUDGED[clause["measure"]]
    is_exact = clause["share_of"] is not None and clause["control"]
    if clause["value"] is None or (clause["outcome"] == "kept" and (is_exact or entry.role == "overlap")):
        return -1.0
    lowest = entry.bound.lowest if entry.bound and from_lowest else 0.0
    limit = clause["limit"] - lowest if clause["limit"] is not None else None
    return use_of_bound(clause["value"] - lowest, limit, at_least=clause["at_least"])


def _answer(question: str, clauses: Sequence[_Clause], content: Content, power: GatePower | None) -> Answer:
    clause = clauses[0]
    words = words_of(clause["measure"])
    kind = clause["outcome"]
    mark, about_risk, about_figures = _ANSWERS[kind]
    answer = f"{mark} {capitalized(about_figures if question == _TRUSTED else about_risk)}"
    sentence = f"{capitalized(_compare(clause, content))}."
    if question == _TRUSTED and kind == "kept":
        sentence = "In a copy of everybody, all who stand out are found; both tables are coded alike."
        if power is not None and power.is_blind:
            kind, answer = "waived", "≈ Only in part"
            sentence = "The figures are right, but this gate does not notice copies reliably."
    beside = find_beside(clause, content["figures"])
    kept = sum(clause["outcome"] == "kept" for clause in clauses)
    return Answer(
        question=question,
        kind=kind,
        answer=answer,
        kept=f"{kept} of {len(clauses)} clauses {_is_or_are(kept)} kept",
        sentence=sentence,
        value=write_figure(clause["value"], words),
        bound=f"at {'least' if clause['at_least'] else 'most'} {write_figure(clause['limit'], words)}",
        others=beside.others,
        chance=beside.chance,
    )


def _compare(clause: _Clause, content: Content) -> str:
    """Return what was found beside what others' records show; the difference last, where a clause is one."""
    base = base_measure(clause["measure"])
    baselines = find_baselines(clause, content["figures"])
    figure, words = baselines.get("figure", (None, None))
    others, others_words = baselines.get("others", (None, None))
    if clause["note"] or clause["value"] is None or base == clause["measure"]:
        return _state(clause)
    if figure is None or others is None or words is None or not words.finding:
        return _state(clause)
    by_others = _BY_OTHERS.get(JUDGED[clause["measure"]].question, "by others")
    sentence = f"{_fill(words, figure, clause['column'])}; {by_others} {write_figure(others, others_words)}"
    if clause["measure"] in SMALLER_OF and (chance := baselines["chance"])[0] is not None:
        sentence += f", by chance {write_figure(*chance)}"
    at_most = "at most " if content.get("is_rounded") else ""
    more = f"{at_most}{write_figure(clause['value'], words_of(clause['measure']))}"
    return f"{sentence}: {f'{more} more' if clause['value'] > 0 else 'no more than chance explains'}"


def _others(clause: _Clause, content: Content) -> float | None:
    """Return the same figure of other people's records; a difference from them is nothing for themselves."""
    if base_measure(clause["measure"]) != clause["measure"]:
        return 0.0
    return find_baselines(clause, content["figures"])["others"][0]


def _state(clause: _Clause) -> str:
    """Return what was found, with the figure of the clause itself."""
    words = words_of(clause["measure"])
    if clause["note"]:
        return str(clause["note"])
    if clause["value"] is None:
        withheld = clause["outcome"] == "exceeded"
        return f"{words.title} is beyond its bound" if withheld else f"there is no figure for {words.title}"
    return _fill(words, clause["value"], clause["column"])


def _state_largest(content: Content) -> str:
    """Return what the table tells at most about a target, beside what other people's records would tell."""
    rows = [row for row in content["figures"]["attribute"] if row.get("DiSCO") is not None]
    if not rows:
        return "no target could be measured"
    worst = max(rows, key=lambda row: (row.get("DiSCO_beyond") or 0.0, row["DiSCO"]))
    words = find_words("DiSCO", "attribute")
    assert words is not None
    sentence = _fill(words, worst["DiSCO"], str(worst["target"]))
    if worst.get("DiSCO_others") is None:
        return sentence
    return f"{sentence}; other people's records would tell {write_figure(worst['DiSCO_others'], words)}"


def _fill(words: Words, value: Any, column: str | None) -> str:
    written = write_figure(value, words)
    if not words.finding:
        return f"{words.title} is {written}{f' for {column}' if column else ''}"
    # The name of a column may hold braces of its own.
    parts = words.finding.split("{column}")
    return (column or "keys").join(part.replace("{value}", written) for part in parts)


def _is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"


@dataclass(frozen=True)
class TriedRemedy:
    """A remedy, and the figures of a candidate's tables after it.

    `lost` records are taken out, `blanked` values made missing. `broken`: the clauses that are not kept then.
    `values`: clause -> its figure. `distance`: that of the column that is farthest from the confidential one,
    a share of 1.
    """

    name: str
    lost: int
    blanked: int
    broken: tuple[str, ...]
    values: Mapping[str, float | None]
    distance: float


@dataclass(frozen=True)
class WhatNow:
    """A sentence for a reader in a hurry; what was tried, in short and by clause, None where nothing was."""

    sentence: str
    table: PageTable | None = None
    clauses: PageTable | None = None


_OTHERWISE = "train the model otherwise: with larger leaves, fewer columns, or noise."


def advise(content: Content, tried: Sequence[TriedRemedy], reason: _Clause | None) -> WhatNow:
    """Return what to do about a refusal; `reason` is the clause of the headline."""
    if not tried:
        untried = "No remedy was tried: the tables are too large for that, or do not lie in memory."
        return WhatNow(f"{untried} {_OTHERWISE.capitalize()}")
    best = min(tried, key=lambda remedy: (len(remedy.broken), remedy.lost + remedy.blanked))
    if best.broken:
        sentence = f"None of the remedies that were tried keeps every clause, so {_OTHERWISE}"
    else:
        sentence = (
            f"“{best.name}” would let this table keep every clause. The same model's next table would copy "
            f"again, so rather {_OTHERWISE}"
        )
    broken = [clause for clause in _list_deciding(content) if clause["outcome"] not in {"kept", "waived"}]
    return WhatNow(
        sentence, _tabulate_remedies(content, tried, reason, len(broken)), _tabulate_clauses(broken, tried)
    )


def _tabulate_clauses(broken: Sequence[_Clause], tried: Sequence[TriedRemedy]) -> PageTable:
    rows = []
    for clause in broken:
        words = words_of(clause["measure"])
        cells = [clause["name"], write_bound(clause, words), write_figure(clause["value"], words)]
        for remedy in tried:
            mark = "✗" if clause["name"] in remedy.broken else "✓"
            cells.append(f"{mark} {write_figure(remedy.values.get(clause['name']), words)}")
        rows.append(tuple(cells))
    headings = ("Clause", "Bound", "As it is", *(remedy.name for remedy in tried))
    return PageTable("Clauses that are not kept, after each remedy", headings, tuple(rows))


def _tabulate_remedies(
    content: Content, tried: Sequence[TriedRemedy], reason: _Clause | None, broken: int
) -> PageTable:
    distances = [row["TVD"] for row in content["figures"]["columns_apart"] if row.get("TVD") is not None]
    words = None if reason is None else words_of(reason["measure"])
    subject = [] if reason is None else [capitalized(write_subject(reason))]
    headings = ["Tried on this table", "Taken out or blanked", "Clauses not kept", *subject]

    def write_row(name: str, cost: str, number: int, value: Any, distance: float | None) -> tuple[str, ...]:
        figure = [] if reason is None else [write_figure(value, words)]
        apart = MISSING if distance is None else f"{100 * distance:.1f} %"
        return (name, cost, str(number), *figure, apart)

    rows = [write_row("as it is", MISSING, broken, reason and reason["value"], max(distances, default=None))]
    for remedy in tried:
        value = reason and remedy.values.get(reason["name"])
        rows.append(write_row(remedy.name, _write_cost(remedy), len(remedy.broken), value, remedy.distance))
    return PageTable("What each would do", (*headings, "Least alike column, off by"), tuple(rows))


def _write_cost(remedy: TriedRemedy) -> str:
    lost = f"{remedy.lost:,} records" if remedy.lost else ""
    blanked = f"{remedy.blanked:,} values" if remedy.blanked else ""
    return ", ".join(filter(None, (lost, blanked))) or MISSING
