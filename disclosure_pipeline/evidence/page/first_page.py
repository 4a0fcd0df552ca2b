"""The first page: verdict, four questions with answers, a chart of the risks; and sentences on people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.errors import choose_form, write_count
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.frames import LABELS, find_words
from disclosure_pipeline.evaluation.long_table import find_entry, view_frame
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.evidence.dossier import describe_broken_clauses
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.charts import (
    Chart,
    PageTable,
    join_names,
    rank,
    write_figures,
)
from disclosure_pipeline.evidence.page.clauses_section import (
    QUESTIONS,
    TriedRemedy,
    advise,
    find_question,
    list_deciding,
    write_baselines,
)
from disclosure_pipeline.evidence.page.sections import list_worst_by_target
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.policy.clauses import find_required_bound
from disclosure_pipeline.policy.sentences import (
    MISSING,
    Content,
    compare,
    name_quoted,
    state,
    write_bound,
    write_figure,
    write_finding,
    write_others,
    write_rounded,
    write_subject,
)
from disclosure_pipeline.policy.verdict import (
    Judgement,
    compute_share_of_bound,
    order_judgements,
    read_judgements,
)
from disclosure_pipeline.tables.messages import capitalized, escape_markdown

_COPIED, *_, _TRUSTED = QUESTIONS
# Outcome -> mark, answer on a risk, answer on the figures.
_ANSWERS = {
    "exceeded": ("✗", "more than allowed", "no"),
    "undetermined": ("?", "not determined", "not determined"),
    "waived": ("≈", "more than allowed, and waived", "waived"),
    "kept": ("✓", "no more than allowed", "yes"),
}
_MOST_ROWS = 10


@dataclass(frozen=True)
class Answer:
    """The answer to a question, from the clause that decides it, as texts. `kind` is the outcome."""

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
    """Answer each question that has a clause."""
    asked: dict[str, list[Judgement]] = {question: [] for question in QUESTIONS}
    for judgement in list_ordered(content):
        asked[find_question(judgement.clause)].append(judgement)
    return [_answer(question, judged, content, power) for question, judged in asked.items() if judged]


def write_headline(content: Content) -> str:
    """Write the verdict and its reason: the first broken clause in the order of the questions."""
    decision = content["decision"]
    if decision is None:
        return f"Measured: {_state_largest(content)}"
    if decision == "approved":
        return f"Approved: {_state_approval(list_ordered(content))}"
    reason = find_reason(content)
    if decision == "undetermined":
        stated = state(reason, content) if reason else "no clause could be compared with the figures"
        return f"Could not be determined: {stated}"
    if reason is None:
        return "Refused: a waiver for this content is refused"
    return f"Refused: {state(reason, content)}"


def _state_approval(judgements: Sequence[Judgement]) -> str:
    """State what the kept clauses mean, and how many are not kept but waived."""
    copied = [judged for judged in judgements if find_question(judged.clause) == _COPIED]
    is_strict = not any(judged.waiver or judged.clause.loosened_from is not None for judged in copied)
    copies = "no sign of copied people" if is_strict else "no more copied people than the policy allows"
    told = "the table tells no more about them than the policy allows"
    clauses = [judged.clause for judged in judgements]
    disclosed = [clause.statistic for clause in clauses if find_required_bound(clause) == "attribute"]
    if set(disclosed) == {"beyond"}:
        told += " beyond other people's records"
    waived = sum(judged.waiver is not None for judged in judgements)
    but = f", but for {write_count(waived, 'clause')} that {choose_form(waived, 'is', 'are')} waived"
    return f"{copies}, and {told}{but if waived else ''}"


def label_columns(content: Content) -> Content:
    """Return the dossier with the labels of columns instead of their names in keys, targets and rows."""
    labels = content.get("labels") or {}
    names = ("target", "key", "column", "columns")
    sets = {
        form.format(name): form.format(label)
        for name, label in labels.items()
        for form in ("all but {}", "{} alone")
    }

    def label_row(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, **{name: (sets | labels).get(row[name], row[name]) for name in names if name in row}}

    def label_figure(row: Mapping[str, Any]) -> dict[str, Any]:
        entry, about = find_entry(row["figure"]), row["about"]
        if entry is not None and entry.about in names:
            about = (sets | labels).get(about, about)
        labelled = {**row, "about": about}
        if "where" in row:
            labelled["where"] = name_quoted(row["where"], content)
        if "group" in row:
            labelled["group"] = list(row["group"])
            labelled["group"][::2] = [labels.get(column, column) for column in row["group"][::2]]
        return labelled

    def label_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
        labelled: dict[str, Any] = {}
        for name, figure in figures.items():
            labelled[name] = figure
            if name in {"keys", "targets"}:
                labelled[name] = [labels.get(column, column) for column in figure]
            elif name == "within":
                labelled[name] = {labels.get(column, column): text for column, text in figure.items()}
            elif name == "table":
                labelled[name] = list(map(label_figure, figure))
            elif name in COLUMNS:  # a frame that an earlier version stored
                labelled[name] = list(map(label_row, figure))
        return labelled

    return {**content, "figures": label_figures(content["figures"])} if labels else content


def write_first_page(
    content: Content, power: GatePower | None = None, remedies: Sequence[TriedRemedy] | None = None
) -> str:
    """Return the first page of a dossier as Markdown: verdict, four answers, and every reason.

    `power` and `remedies` as in `render_page()`.
    """
    content = label_columns(content)
    figures = content["figures"]
    power = power if power is not None and power.is_measured else None
    rows = [
        f"| {' | '.join(map(escape_markdown, (of.question, of.answer, f'{of.sentence} {of.kept}.')))} |"
        for of in answer_questions(content, power)
    ]
    smallest = content["smallest_count"]
    reasons = [f"- {escape_markdown(reason)}" for reason in describe_broken_clauses(content, smallest)]
    records = ", ".join(f"{records:,}" for records in figures["N_s"])
    people = write_count(figures["N_d"], "person", "people")
    advice = None if remedies is None else advise(content, remedies, find_reason(content))
    parts = [
        f"# {escape_markdown(write_headline(content))}.",
        f"Candidate {escape_markdown(str(content['candidate']))} of gate "
        f"{escape_markdown(str(content['gate']))}. {people} in the confidential table; synthetic records: "
        f"{records}. {escape_markdown(content['columns'])}. An intruder is assumed to know a person's "
        f"{escape_markdown(join_names(figures['keys']))}, and to want to learn "
        f"{escape_markdown(join_names(figures['targets']))}.",
        escape_markdown(describe_detection(content)),
        "" if power is None else escape_markdown(power.summarize()),
        "\n".join(["| Question | Answer | Finding |", "|---|---|---|", *rows]) if rows else "",
        "Compare with what equally many records of other real people would show.",
        "\n".join(["## Reasons", "", *reasons]) if reasons else "",
        f"## Refused, what now?\n\n{escape_markdown(advice.sentence)}" if advice else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def find_reason(content: Content) -> Judgement | None:
    """Return the judgement of the headline; None if no clause forbids a release."""
    outcome = "undetermined" if content["decision"] == "undetermined" else "exceeded"
    return next((judgement for judgement in list_ordered(content) if judgement.outcome == outcome), None)


def show_bounds(content: Content) -> Chart | None:
    """Draw the bounded risks as shares of their bounds, largest first."""
    rows = [
        judgement
        for judgement in list_deciding(read_judgements(content))
        if find_question(judgement.clause) != _TRUSTED
        and judgement.value is not None
        and not judgement.clause.at_least
        and (judgement.limit or 0) > 0
    ]
    if not rows:
        return None
    beyond = sum(judgement.outcome == "exceeded" for judgement in rows)
    risks = write_count(len(rows), "risk")
    title = (
        f"{beyond} of {risks} {choose_form(beyond, 'is beyond its bound', 'are beyond their bounds')}"
        if beyond
        else f"None of {risks} is beyond its bound"
    )
    rows.sort(key=lambda judged: compute_share_of_bound(judged.value, judged.limit), reverse=True)
    rows = rows[:_MOST_ROWS]
    marks = {
        "this table": charts.DOT,
        "the bound": charts.TICK,
        "other people's records": charts.RING,
    }
    points: list[tuple[str, str, float]] = []
    for judgement in rows:
        words, limit = judgement.clause.words, judgement.limit or 0.0
        value = write_figure(judgement.value, words).partition(" ")[0]
        label = f"{write_subject(judgement, content)}: {value} of {write_figure(limit, words)}"
        if any(label == drawn for drawn, _, _ in points):
            label += f" ({judgement.clause.name})"
        figures = (judgement.value, limit, _find_others(judgement))
        points += [
            (label, mark, figure / limit)
            for mark, figure in zip(marks, figures, strict=True)
            if figure is not None
        ]
    table = PageTable(
        "The risks nearest to their bound, or farthest beyond it",
        ("Risk", "Figure", "Bound", "Others'"),
        tuple(
            (
                f"{capitalized(write_subject(judgement, content))} ({judgement.clause.name})",
                write_figure(judgement.value, judgement.clause.words),
                write_bound(judgement),
                write_baselines(judgement).others,
            )
            for judgement in rows
        ),
    )
    return Chart(
        title,
        charts.draw_rows(
            points,
            marks,
            "figure divided by its bound",
            row_height=16,
            width=charts.BESIDE_LONG_NAMES,
            longest_name=charts.LONG_NAMES,
        ),
        "Each risk divided by its bound: above 1 it is more than the policy allows.",
        table,
    )


def show_power(power: GatePower) -> Chart | None:
    """Draw how often the gate refuses tables with planted copies; None if too few tables were tried."""
    frame = power.to_frame().dropna()
    if frame.empty:
        return None
    headings = ("Planted", "% of people", "Refused", "% refused", "95 % interval")
    rows = []
    for row in frame.to_dict("records"):
        refused = f"{row['refused']} of {row['tries']}"
        interval = f"{row['low']:.0f} to {row['high']:.0f} %"
        rows.append((row["planted"], f"{row['share']} %", refused, f"{row['percent']:.0f} %", interval))
    return Chart(
        power.state_finding(),
        charts.draw_power(power),
        "The share of tables that the gate refuses, by the share of the people who are copied.",
        PageTable("Refused tries by the kind and share of planted copies", headings, tuple(rows)),
    )


def list_ordered(content: Content) -> list[Judgement]:
    """Return the deciding judgements in the order in which they are stated.

    In the edition for publication, `PLACES_OF_CLAUSES` of the content orders them by the exact figures.
    """
    places: Mapping[str, int] = content.get(PLACES_OF_CLAUSES, {})
    judgements = order_judgements(list_deciding(read_judgements(content)))
    return sorted(judgements, key=lambda judged: places.get(judged.clause.name, 0))


def place_clauses(content: Content) -> dict[str, int]:
    """Return the place of each deciding clause among all."""
    return {judged.clause.name: place for place, judged in enumerate(list_ordered(content))}


PLACES_OF_CLAUSES = "places_of_clauses"
"""The part of the edition for publication with each clause's place by the exact figures."""


def _answer(
    question: str, judgements: Sequence[Judgement], content: Content, power: GatePower | None
) -> Answer:
    judgement = judgements[0]
    words, kind = judgement.clause.words, str(judgement.outcome)
    mark, about_risk, about_figures = _ANSWERS[kind]
    answer = f"{mark} {capitalized(about_figures if question == _TRUSTED else about_risk)}"
    sentence = f"{capitalized(compare(judgement, content))}."
    is_checked = question == _TRUSTED and kind == "kept"
    if is_checked:
        sentence = "The measurement was checked: fed with the real table, it finds everybody it should."
        if power is not None and power.unnoticed is not None:
            kind, answer = "waived", "≈ Only in part"
            sentence = f"The figures are right, but this gate does not notice {power.unnoticed} reliably."
    baselines = write_baselines(judgement)
    kept = sum(judged.outcome == "kept" for judged in judgements)
    return Answer(
        question=question,
        kind=kind,
        answer=answer,
        kept=f"{kept} of {write_count(len(judgements), 'clause')} {choose_form(kept, 'is', 'are')} kept",
        sentence=sentence,
        value=MISSING if is_checked else write_figure(judgement.value, words),
        bound=MISSING if is_checked else f"{judgement.clause.side} {write_figure(judgement.limit, words)}",
        others=baselines.others,
        chance=baselines.chance,
    )


def _find_others(judgement: Judgement) -> float | None:
    """Return the figure of other people's records; 0 for a difference, which is from these."""
    if judgement.clause.statistic == "beyond":
        return 0.0
    row = judgement.row
    return row.others if row is not None and math.isfinite(row.others) else None


def _state_largest(content: Content) -> str:
    """State the most disclosed target, compared with other people's records."""
    rows = [row for row in view_frame(content["figures"], "attribute") if row.get("DiSCO") is not None]
    if not rows:
        return "no target could be measured"
    worst = max(rows, key=lambda row: (rank(row, "DiSCO_beyond"), rank(row, "DiSCO")))
    return _state_disclosed(worst, content)


def _state_disclosed(row: Mapping[str, Any], content: Content) -> str:
    """State the DiSCO of a row beside that of other people's records."""
    entry, target = FIGURES["DiSCO"], str(row["target"])
    sentence = write_finding(entry.words, row["DiSCO"], target, content)
    if row.get("DiSCO_others") is None:
        return sentence
    return f"{sentence}; {write_others(entry, row['DiSCO_others'], target, content)}"


def describe_intruder(content: Content) -> list[str]:
    """Describe what somebody who knows a person's keys learns about the most disclosed target."""
    figures = content["figures"]
    keys = join_names(figures["keys"])
    rows = list_worst_by_target(content)
    sentences = []
    if rows:
        worst = max(rows, key=lambda row: rank(row, "DiSCO"))
        [matched] = write_figures(content, worst, "attribute", "iS")
        sentences.append(
            f"Somebody who knows {keys} of a person finds {matched} of the people in the synthetic table. "
            f"{capitalized(_state_disclosed(worst, content))}."
        )
        told, right = worst.get("DiS") or 0.0, worst["DiSCO"]
        if not content.get("is_rounded") and told > 2 * right:
            sentences.append(f"Of those whom it seems to tell, {100 * right / told:.0f} % are right.")
    return [*sentences, *_describe_frames(content)]


def describe_detection(content: Content) -> str:
    """Describe how many copies an approval would have missed; nothing without a gate's clause on it."""
    of_clause = [judged for judged in read_judgements(content) if judged.clause.figure == "detection_limit"]
    return "".join(f"{capitalized(compare(judged, content))}." for judged in of_clause)


def describe_found(content: Content) -> str:
    """Describe how many people their keys single out, in GT and in both tables."""
    figures = content["figures"]
    rows = view_frame(figures, "identity")
    if not rows:
        return "Whether people can be found was not measured."
    worst = max(rows, key=lambda row: rank(row, "repU"))
    unique, both = write_figures(content, worst, "identity", "UiO", "repU")
    return (
        f"{capitalized(unique)} of the people are the only ones with their combination of "
        f"{join_names(figures['keys'])}. For {both}, the synthetic table holds exactly one such record, "
        "which looks like them, whether it was made from them or not."
    )


# A sentence for each row of the frames that not every dossier has.
_SENTENCES = {
    "attribute": (
        "Table {synthesis} discloses the {target} of {by_holdout} of the people who took no part in the "
        "synthesis, and of {DiSCO} of those who did."
    ),
    "membership": (
        "Whole records of table {synthesis} show who took part with an advantage of {advantage_records}"
        "{by_distance}."
    ),
    "units": (
        "From table {synthesis}, somebody who knows these columns of everybody names {individual_risk} of "
        "the people rightly, and at least one member of {household_risk} of their units."
    ),
    "bands": (
        "Table {synthesis} shows the {target} of {DiSCO_within} of the people to within {within}; other "
        "people's records show that of {DiSCO_within_others}. The amount around which most records with the "
        "same keys lie is as near for {guessed_within}, and for {guessed_within_others} among other people."
    ),
    "population": (
        "Of matches with exactly one confidential record, {DIS} would be right for somebody who does not "
        "know who took part. From table {synthesis}, that somebody names {repU_population} of the people "
        "rightly, if the model of the population holds."
    ),
    "population_targets": (
        "Table {synthesis} shows the {target} of {DiSCO_population} of the people to somebody who does not "
        "know who took part, if the model of the population holds{by_weight}."
    ),
    "together": (
        "If all synthetic tables are published, at least one shows the {target} of {any} of the people, and "
        "several agree on that of {agreed}. As many tables of other people's records show it for "
        "at most {DiSCO_any_others}."
    ),
}


def _describe_frames(content: Content) -> Iterator[str]:
    for frame, sentence in _SENTENCES.items():
        for row in view_frame(content["figures"], frame):
            by_holdout = write_rounded(row.get("DiSCO_holdout"), FIGURES["DiSCO"].words, content)
            if frame == "attribute" and by_holdout == MISSING:
                continue
            written = {
                name: write_rounded(value, find_words(name, frame), content)
                if not isinstance(value, str) and name not in LABELS
                else value
                for name, value in row.items()
            }
            by_weight = ""
            if row.get("DiSCO_weighted") is not None:
                by_weight = f"; by weight, DiSCO is {written['DiSCO_weighted']} of the population"
            by_distance = ""
            if row.get("TPR_at_1") is not None:
                by_distance = (
                    f"; the nearest records find {written['TPR_at_1']} of those who did, at 1 % false alarms"
                )
            yield sentence.format(
                **written,
                by_weight=by_weight,
                by_distance=by_distance,
                by_holdout=by_holdout,
            )
