"""The first page: the verdict, four questions with their answers, and one chart of all that matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evaluation.plots.pictures import title_power
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.clauses_section import (
    QUESTIONS,
    base_measure,
    find_baselines,
    find_beside,
    find_question,
)
from disclosure_pipeline.evidence.page.parts import Figure, PageTable, write_bound, write_figure
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.policy.registry import JUDGED
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
_MOST_ROWS = 12


@dataclass(frozen=True)
class Answer:
    """The answer to a question, with the clause that decides it; texts only. `kind` is its outcome."""

    question: str
    kind: str
    answer: str
    sentence: str
    name: str
    value: str
    bound: str
    others: str
    chance: str


def answer_questions(content: Content) -> list[Answer]:
    """Return the answer to each question that a clause is about."""
    asked = [(question, _list_clauses(content, question)) for question in QUESTIONS]
    return [_answer(question, clauses, content) for question, clauses in asked if clauses]


def write_headline(content: Content) -> str:
    """Return the verdict and its reason: the worst answer, in the order of the questions."""
    decision = content["decision"]
    if decision is None:
        return f"Measured: {_state_largest(content)}"
    if decision == "approved":
        return f"Approved: {count_kept(content['clauses'])}"
    if decision == "undetermined":
        doubtful = [clause for clause in _list_deciding(content) if clause["outcome"] == "undetermined"]
        # Where the engine or the tables cannot be trusted, no other figure counts.
        doubtful.sort(key=lambda clause: (not clause["control"], find_question(clause) != _TRUSTED))
        reason = _state(doubtful[0]) if doubtful else "no clause could be held against the figures"
        return f"Could not be determined: {reason}"
    for question in QUESTIONS:
        clauses = _list_clauses(content, question)
        if clauses and clauses[0]["outcome"] == "exceeded":
            return f"Refused: {_state(clauses[0])}; allowed are {_name_bound(clauses[0])}"
    return "Refused: a waiver for this content is refused"


def count_kept(clauses: Sequence[_Clause]) -> str:
    """Return how many clauses are kept, of those that decide and of those that only warn.

    Example:
        >>> count_kept([{"warns": False, "outcome": "kept"}, {"warns": True, "outcome": "exceeded"}])
        '1 of 1 deciding clauses is kept; 1 of 1 that only warn is not'
    """
    deciding = [clause["outcome"] for clause in clauses if not clause["warns"]]
    warning = [clause["outcome"] for clause in clauses if clause["warns"]]
    kept, waived = deciding.count("kept"), deciding.count("waived")
    text = f"{kept} of {len(deciding)} deciding clauses {_is_or_are(kept)} kept"
    text += f", {waived} waived" if waived else ""
    broken = len(warning) - warning.count("kept")
    return text + (f"; {broken} of {len(warning)} that only warn {_is_or_are(broken)} not" if broken else "")


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
    points = []
    for clause in rows:
        others = _others(clause, content)
        figures = (clause["value"], clause["limit"], others)
        points += [
            (clause["name"], mark, figure / clause["limit"])
            for mark, figure in zip(marks, figures, strict=True)
            if figure is not None
        ]
    headings = ("Clause", "Figure", "Bound", "Others'")
    table = PageTable(
        "The risks nearest to their bound, or farthest beyond it",
        headings,
        tuple(
            (
                clause["name"],
                write_figure(clause["value"], words_of(clause["measure"])),
                write_bound(clause, words_of(clause["measure"])),
                find_beside(clause, content["figures"]).others,
            )
            for clause in rows
        ),
    )
    return Figure(
        title,
        charts.draw_rows(points, marks, "figure divided by its bound", row_height=21),
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
        key=lambda clause: (_GRAVEST.index(clause["outcome"]), not clause["control"], -_use(clause)),
    )


def _use(clause: _Clause) -> float:
    """Return how much of its bound a clause takes; less than any of what is withheld, or at it by nature."""
    is_exact = clause["share_of"] is not None and clause["control"]
    is_alike = JUDGED[clause["measure"]].role == "overlap"
    if clause["value"] is None or (clause["outcome"] == "kept" and (is_exact or is_alike)):
        return -1.0
    return use_of_bound(clause["value"], clause["limit"], at_least=clause["at_least"])


def _answer(question: str, clauses: Sequence[_Clause], content: Content) -> Answer:
    clause = clauses[0]
    words = words_of(clause["measure"])
    kind = clause["outcome"]
    mark, about_risk, about_figures = _ANSWERS[kind]
    beside = find_beside(clause, content["figures"])
    if kind == "kept":
        nearest = words.title.removesuffix(": where beyond chance") + (
            f" ({clause['column']})" if clause["column"] else ""
        )
        sentence = f"All {len(clauses)} clauses are kept. Nearest to its bound: {nearest}."
    else:
        sentence = f"{capitalized(_state(clause))}."
    return Answer(
        question=question,
        kind=kind,
        answer=f"{mark} {capitalized(about_figures if question == _TRUSTED else about_risk)}",
        sentence=sentence,
        name=clause["name"],
        value=write_figure(clause["value"], words),
        bound=write_bound(clause, words),
        others=beside.others,
        chance=beside.chance,
    )


def _others(clause: _Clause, content: Content) -> float | None:
    """Return the same figure of other people's records; a difference from them is nothing for themselves."""
    if base_measure(clause["measure"]) != clause["measure"]:
        return 0.0
    return find_baselines(clause, content["figures"])["others"][0]


def _name_bound(clause: _Clause) -> str:
    words = words_of(clause["measure"])
    side = "at least " if clause["at_least"] else ""
    return f"{side}{write_figure(clause['limit'], words)}"


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
