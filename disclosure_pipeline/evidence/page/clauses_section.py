"""The verdict in one sentence, and each clause in one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.comparability import WHOLE_KEY
from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evidence.page.parts import MISSING, write_bound, write_figure
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.policy.registry import CONTROLS, GUARDS, JUDGED, SMALLER_OF, find_measure
from disclosure_pipeline.tables.messages import capitalized

_GROUPS = (
    "What the policy bounds",
    "Whether the tables can be compared",
    "Whether the engine can be trusted",
)
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
    title: str
    sentence: str
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


def write_headline(content: Mapping[str, Any]) -> str:
    """Return the verdict and its reason, in one sentence."""
    decision = content["decision"]
    clauses = content["clauses"]
    if decision is None:
        return f"Measured: {_state_largest(content)}"
    if decision == "refused":
        broken = [clause for clause in clauses if clause["outcome"] == "exceeded" and not clause["warns"]]
        if not broken:
            return "Refused: a waiver for this content is refused"
        return f"Refused: {_state_finding(min(broken, key=_rank), content)}"
    if decision == "undetermined":
        doubtful = [clause for clause in clauses if clause["outcome"] == "undetermined"]
        reason = _state_doubt(doubtful[0]) if doubtful else "no clause could be held against the figures"
        return f"Could not be determined: {reason}"
    waived = any(clause["outcome"] == "waived" for clause in clauses)
    kept = "every clause of the policy is kept or waived" if waived else "every clause of the policy is kept"
    return f"Approved: {kept}; {_state_largest(content)}"


def list_broken(content: Mapping[str, Any]) -> list[str]:
    """Return what stands against a release, a sentence each, the gravest first."""
    against = [
        clause
        for clause in content["clauses"]
        if clause["outcome"] in {"exceeded", "undetermined"} and not clause["warns"]
    ]
    sentences = []
    for clause in sorted(against, key=_rank):
        words = words_of(clause["measure"])
        if clause["outcome"] == "undetermined":
            sentences.append(f"{capitalized(_state_doubt(clause))} ({clause['name']}).")
            continue
        finding = capitalized(_fill(words, clause["value"], clause["column"]))
        sentences.append(f"{finding}. The policy allows {write_bound(clause, words)} ({clause['name']}).")
    return sentences


def group_clauses(content: Mapping[str, Any]) -> list[ClauseGroup]:
    """Return all clauses, in three groups."""
    groups: tuple[list[Mapping[str, Any]], ...] = ([], [], [])
    for clause in content["clauses"]:
        question = JUDGED[clause["measure"]].question
        place = 2 if clause["control"] else 1 if question == "comparable" else 0
        groups[place].append(clause)
    return [
        ClauseGroup(heading, tuple(_write_row(clause, content) for clause in sorted(clauses, key=_is_kept)))
        for heading, clauses in zip(_GROUPS, groups, strict=True)
        if clauses
    ]


def _is_kept(clause: Mapping[str, Any]) -> bool:
    return clause["outcome"] == "kept"


def _rank(clause: Mapping[str, Any]) -> tuple[int, float]:
    value, limit = clause["value"], clause["limit"]
    over = 0.0 if value is None or limit is None else abs(value - limit)
    return JUDGED[clause["measure"]].rank, -over


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
        title=capitalized(words.title) + (f": {clause['column']}" if clause["column"] else ""),
        sentence=(clause["note"] and f"{capitalized(clause['note'])}.") or words.sentence,
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


def find_beside(clause: Mapping[str, Any], figures: Mapping[str, Any]) -> Beside:
    """Return the baselines of a clause's figure, of the synthesis that the figure is of."""
    measure = clause["measure"]
    if clause["control"]:
        return Beside()
    base = base_measure(measure)
    rows = list(_rows_of(clause, figures))
    row = next((row for row in rows if row.get(measure) == clause["value"]), rows[0] if rows else {})
    if measure in SMALLER_OF:
        row = max(rows, key=lambda row: row.get("DiSCO_beyond") or 0.0, default={})

    def write(name: str | None) -> str:
        if name is None or row.get(name) is None:
            return MISSING
        return write_figure(row[name], find_words(name))

    of_holdout = next(
        (
            other["holdout"]
            for other in figures.get("holdout", ())  # of each table, not of all of them as one
            if (other["target"], other["measure"], other["synthesis"], False)
            == (clause["column"] or WHOLE_KEY, base, row.get("synthesis"), row.get("stacked"))
        ),
        None,
    )
    return Beside(
        own=write(_OWN.get(base)),
        others="50.0 %" if measure == "nearer" else write(f"{base}_others"),
        chance=write(f"{base}_by_chance" if measure in GUARDS else _CHANCE.get(base)),
        holdout=write_figure(of_holdout, find_words(base)),
    )


def base_measure(measure: str) -> str:
    """Return the figure that a difference is about, such as DiSCO for DiSCO_beyond."""
    for ending in ("_beyond_both", "_beyond", "_excess", "_after_exclusions"):
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


def _state_finding(clause: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Return what a clause that is not kept has found, beside what other people's records would tell."""
    measure, column = clause["measure"], clause["column"]
    base = base_measure(measure)
    words = find_words(base)
    rows = list(_rows_of(clause, content["figures"]))
    with_base = [row for row in rows if row.get(base) is not None]
    if base == measure or words is None or not words.finding or not with_base:
        finding = _fill(words_of(measure), clause["value"], column)
    else:
        worst = max(with_base, key=lambda row: row.get(measure) or 0.0)
        finding = _fill(words, worst[base], column)
    others = find_beside(clause, content["figures"]).others
    if others == MISSING:
        return finding
    if base in {"DiSCO", "guessed", "DCAP"}:
        return f"{finding}; other people's records would tell {others}"
    return f"{finding}; a fresh sample of other people would show {others}"


def _state_largest(content: Mapping[str, Any]) -> str:
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


def _state_doubt(clause: Mapping[str, Any]) -> str:
    words = words_of(clause["measure"])
    if clause["note"]:
        return str(clause["note"])
    if clause["value"] is None:
        return f"there is no figure for {words.title}"
    return _fill(words, clause["value"], clause["column"])


def _fill(words: Words, value: Any, column: str | None) -> str:
    written = write_figure(value, words)
    if not words.finding:
        return f"{words.title} is {written}{f' for {column}' if column else ''}"
    if words.unit == "percentage points":
        written = written.removesuffix(" points") + " percentage points"
    # The name of a column may hold braces of its own.
    parts = words.finding.split("{column}")
    return (column or "keys").join(part.replace("{value}", written) for part in parts)


def count_outcomes(clauses: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many clauses have each outcome."""
    return {name: sum(clause["outcome"] == kind for clause in clauses) for kind, name in _OUTCOMES.items()}
