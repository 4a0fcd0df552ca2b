"""The first page: verdict, four questions with their answers, a chart of all that matters; and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.frames import LABELS, find_words
from disclosure_pipeline.evaluation.plots.pictures import title_power
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.evidence.dossier import count_kept
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.charts import (
    Content,
    Figure,
    PageTable,
    join_names,
    write_bound,
    write_figure,
    write_figures,
    write_subject,
)
from disclosure_pipeline.evidence.page.clauses_section import (
    QUESTIONS,
    base_measure,
    find_baselines,
    find_beside,
    find_question,
    list_deciding,
)
from disclosure_pipeline.evidence.page.sections import list_worst_by_target
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.policy.registry import JUDGED, SMALLER_OF
from disclosure_pipeline.policy.verdict import use_of_bound
from disclosure_pipeline.tables.messages import capitalized

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
        doubtful = [clause for clause in list_deciding(content) if clause["outcome"] == "undetermined"]
        # Where the engine or the tables cannot be trusted, no other figure counts.
        doubtful.sort(key=lambda clause: (not clause["control"], find_question(clause) != _TRUSTED))
        return doubtful[0] if doubtful else None
    gravest = (clauses[0] for question in QUESTIONS if (clauses := _list_clauses(content, question)))
    return next((clause for clause in gravest if clause["outcome"] == "exceeded"), None)


def show_bounds(content: Content) -> Figure | None:
    """Draw each risk that the policy bounds as a share of its bound, the farthest beyond first."""
    rows = [
        clause
        for clause in list_deciding(content)
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


def _list_clauses(content: Content, question: str) -> list[_Clause]:
    """Return the clauses that answer a question, the gravest first."""
    clauses = [clause for clause in list_deciding(content) if find_question(clause) == question]
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


def tell_intruder(content: Content) -> list[str]:
    """Return what somebody could do who knows the keys of a person: the most for one target."""
    figures = content["figures"]
    keys = join_names(figures["keys"])
    rows = list_worst_by_target(content)
    sentences = []
    if rows:
        worst = max(rows, key=lambda row: float(row["DiSCO"]))
        found, told = write_figures(worst, "attribute", "iS", "DiSCO")
        sentences.append(
            f"Somebody who knows {keys} of a person finds {found} of the people in the synthetic table. For "
            f"{told} of all people it then claims their {worst['target']} with certainty, and rightly."
        )
    return [*sentences, *_tell_frames(figures)]


def tell_found(content: Content) -> str:
    """Return how many people are singled out by their keys, and found so."""
    figures = content["figures"]
    if not figures["identity"]:
        return "Whether people can be found was not measured."
    worst = max(figures["identity"], key=lambda row: row.get("repU") or 0.0)
    unique, both = write_figures(worst, "identity", "UiO", "repU")
    return (
        f"{unique} of the people are the only ones with their combination of {join_names(figures['keys'])}. "
        f"For {both} the synthetic table holds exactly one such record, which looks like them, whether it "
        "was made from them or not."
    )


# What stands in the frames that not every dossier has, one sentence a row, in this order.
_TOLD = {
    "holdout": (
        "Of the people who took no part in the synthesis, {holdout} can be told their {target}; of those who "
        "did, {ground_truth} (table {synthesis})."
    ),
    "membership": (
        "By whole records it is told who took part with an advantage of {advantage_records}; by the nearest "
        "record {TPR_at_1} of those who did are found at 1 % false alarms (table {synthesis})."
    ),
    "units": (
        "Somebody who knows these columns of everybody names {individual_risk} of the people rightly by "
        "table {synthesis}, and at least one of {household_risk} of the units that they belong to."
    ),
    "bands": (
        "The {target} of {DiSCO_within} of the people is told to within {within} by table {synthesis}, of "
        "{DiSCO_within_others} by other people's records; the median of their keys is as near for "
        "{guessed_within}, and for {guessed_within_others} among other people."
    ),
    "population": (
        "Somebody who does not know who took part names {repU_population} of the people rightly by table "
        "{synthesis}; of matches with exactly one confidential record {DIS} would be right."
    ),
    "population_targets": (
        "Without knowing who took part, the {target} of {DiSCO_population} of the people is told{by_weight} "
        "(table {synthesis})."
    ),
    "together": (
        "If all synthetic tables are published, at least one tells the {target} of {any} of the people, and "
        "several that agree that of {agreed}. As many draws of other people's records tell it of "
        "{DiSCO_any_others}, as many fresh samples of {DiSCO_any_fresh} at most."
    ),
}


def _tell_frames(figures: Content) -> Iterator[str]:
    for frame, sentence in _TOLD.items():
        for row in figures.get(frame, ()):
            if row.get("measure", "DiSCO") != "DiSCO":
                continue
            written = {
                name: value if name in LABELS else write_figure(value, find_words(name, frame))
                for name, value in row.items()
            }
            if row.get("DiSCO_weighted") is not None:
                weighted = f"; by weight, DiSCO is {written['DiSCO_weighted']} of the population"
                yield sentence.format(**written, by_weight=weighted)
            else:
                yield sentence.format(**written, by_weight="")
