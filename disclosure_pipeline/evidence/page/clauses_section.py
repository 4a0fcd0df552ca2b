"""Each clause in one row, with what stands beside its figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.catalogue_entry import STRICTLY, Question
from disclosure_pipeline.evaluation.comparability import WHOLE_KEY
from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evidence.page.parts import MISSING, write_bound, write_figure
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.policy.registry import CONTROLS, GUARDS, JUDGED, SMALLER_OF, find_measure

QUESTIONS: Mapping[str, tuple[Question, ...]] = {
    "Were people copied?": ("copied",),
    "Can people be found?": ("found",),
    "Can something be learned of them?": ("learned",),
    "Can these figures be trusted?": ("trusted", "comparable"),
}
_MARKS = {"kept": "✓", "exceeded": "✗", "undetermined": "?", "waived": "≈"}
_OUTCOMES = {
    "kept": "kept",
    "exceeded": "not kept",
    "undetermined": "not determined",
    "waived": "waived",
}


@dataclass(frozen=True)
class ClauseRow:
    """A clause as the page shows it: texts only. `kind` is the outcome, by which it is coloured."""

    name: str
    value: str
    bound: str
    own: str
    others: str
    chance: str
    holdout: str
    kind: str
    outcome: str


@dataclass(frozen=True)
class ClauseGroup:
    """Clauses under one heading, those that are not kept first."""

    heading: str
    rows: tuple[ClauseRow, ...]


def group_clauses(content: Mapping[str, Any]) -> list[ClauseGroup]:
    """Return all clauses by the question that they answer, each kind together, what is not kept first."""
    groups: dict[str, list[Mapping[str, Any]]] = {question: [] for question in QUESTIONS}
    for clause in content["clauses"]:
        groups[find_question(clause)].append(clause)
    return [
        ClauseGroup(
            question,
            tuple(
                _write_row(clause, content)
                for clause in sorted(clauses, key=lambda clause: clause["outcome"] == "kept")
            ),
        )
        for question, clauses in groups.items()
        if clauses
    ]


def find_question(clause: Mapping[str, Any]) -> str:
    """Return the question of the page that a clause is about."""
    asked = JUDGED[clause["measure"]].question
    return next(text for text, questions in QUESTIONS.items() if asked in questions)


def _write_row(clause: Mapping[str, Any], content: Mapping[str, Any]) -> ClauseRow:
    words = words_of(clause["measure"])
    beside = find_beside(clause, content["figures"])
    kind = "warned" if clause["warns"] and clause["outcome"] == "exceeded" else clause["outcome"]
    outcome = f"{_MARKS[clause['outcome']]} {_OUTCOMES[clause['outcome']]}"
    if kind == "warned":
        outcome += ", only warns"
    if clause["outcome"] == "waived":
        outcome += f" by {clause['waiver']}"
    return ClauseRow(
        name=clause["name"],
        value=write_figure(clause["value"], words),
        bound=write_bound(clause, words),
        own=beside.own,
        others=beside.others,
        chance=beside.chance,
        holdout=beside.holdout,
        kind=kind,
        outcome=outcome,
    )


@dataclass(frozen=True)
class Beside:
    """What stands beside a figure, as texts: GT's own, other people's, by chance, and of a holdout."""

    own: str = MISSING
    others: str = MISSING
    chance: str = MISSING
    holdout: str = MISSING


_OWN = {"DiSCO": "Dorig", "DiSDiO": "Dorig", "repU": "UiO", "UiOiS": "UiO", "DCAP": "CAPd"}
_CHANCE = {"DiSCO": "DiSCO_chance"}
_NEARER_IN_FRESH_SAMPLE = 50.0


def find_beside(clause: Mapping[str, Any], figures: Mapping[str, Any]) -> Beside:
    """Return the baselines of a clause's figure, of the synthesis that the figure is of."""
    baselines = find_baselines(clause, figures)
    return Beside(**{place: write_figure(figure, words) for place, (figure, words) in baselines.items()})


def find_baselines(
    clause: Mapping[str, Any], figures: Mapping[str, Any]
) -> dict[str, tuple[float | None, Words | None]]:
    """Return the same as numbers, each with its words."""
    measure = clause["measure"]
    if clause["control"]:
        return {}
    base = base_measure(measure)
    rows = list(_rows_of(clause, figures))
    row = next((row for row in rows if row.get(measure) == clause["value"]), rows[0] if rows else {})
    if measure in SMALLER_OF:
        row = max(rows, key=lambda row: row.get("DiSCO_beyond") or 0.0, default={})
    of_holdout = next(
        (
            other["holdout"]
            for other in figures.get("holdout", ())  # of each table, not of all of them as one
            if (other["target"], other["measure"], other["synthesis"], False)
            == (clause["column"] or WHOLE_KEY, base, row.get("synthesis"), row.get("stacked"))
        ),
        None,
    )
    others = f"{base}_others" if f"{base}_others" in row else f"{base}_expected"
    chance = f"{base}_by_chance" if measure in GUARDS else _CHANCE.get(base, "")
    named = {"own": _OWN.get(base, ""), "others": others, "chance": chance}
    found = {place: (row.get(name), find_words(name)) for place, name in named.items()}
    if measure == "nearer":
        found["others"] = _NEARER_IN_FRESH_SAMPLE, find_words(measure)
    return found | {"holdout": (of_holdout, find_words(base))}


def base_measure(measure: str) -> str:
    """Return the figure that a difference is about, such as DiSCO for DiSCO_beyond."""
    for ending in (STRICTLY, "_beyond_both", "_beyond", "_excess", "_after_exclusions"):
        measure = measure.removesuffix(ending)
    return measure


def _rows_of(clause: Mapping[str, Any], figures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the rows with a clause's figure, of each synthesis and of all together, and those beside it.

    `stacked` tells which of both.
    """
    measure = clause["measure"]
    if measure in SMALLER_OF:
        measure = SMALLER_OF[measure][0]
    registered = find_measure(measure) or CONTROLS.get(measure)
    if registered is None:
        return
    for part in (figures, figures.get("stacked")):
        for row in part.get(registered.frame, ()) if part else ():
            if not registered.per_target or row.get("target") == clause["column"]:
                yield {**row, clause["measure"]: row.get(registered.column), "stacked": part is not figures}
