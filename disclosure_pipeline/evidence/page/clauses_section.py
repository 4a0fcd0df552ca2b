"""All clauses in tables: with what stands beside a figure, what changed, and what remedies would change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.catalogue_entry import STRICTLY, Question
from disclosure_pipeline.evaluation.frames import find_words
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.evidence.page.charts import (
    MISSING,
    Content,
    PageTable,
    write_bound,
    write_figure,
    write_subject,
)
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.policy.registry import (
    CONTROLS,
    GUARDS,
    JUDGED,
    OF_CONFIDENTIAL,
    SMALLER_OF,
    find_measure,
)
from disclosure_pipeline.tables.messages import capitalized

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
_GRAVEST = ("undetermined", "exceeded", "waived", "warned", "kept")
# Side by side on paper: so many columns, and so many letters of their names.
_MOST_COLUMNS, _MOST_LETTERS = 5, 90
_HEADINGS = ("Clause", "Figure", "Bound", "Own", "Others'", "Chance", "Holdout", "Outcome")
_Clause = Mapping[str, Any]


@dataclass(frozen=True)
class ClauseRow:
    """A row of texts. `kind` is the gravest outcome in it, by which it is coloured; empty beside figures."""

    cells: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class ClauseTable:
    """Clauses of one question, those that are not kept first."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[ClauseRow, ...]


def tabulate_clauses(content: Mapping[str, Any]) -> list[ClauseTable]:
    """Return all clauses by their question: those of the whole table, and those of columns side by side."""
    tables = []
    figures = content["figures"]
    for question in QUESTIONS:
        asked = [clause for clause in content["clauses"] if find_question(clause) == question]
        whole = [clause for clause in asked if clause["column"] is None]
        if whole:
            tables.append(_drop_empty_columns(question, [_write_row(clause, figures) for clause in whole]))
        for columns, families in _gather(asked).items():
            rows_of_columns = [row for family in families for row in _write_family(family, columns, figures)]
            headings = ("Clause", "Bound", *columns)
            apart = "further table" if families[0][0]["measure"] in OF_CONFIDENTIAL else "column"
            tables.append(ClauseTable(f"{question} By {apart}", headings, tuple(rows_of_columns)))
    return tables


def _gather(clauses: Sequence[_Clause]) -> dict[tuple[str, ...], list[list[_Clause]]]:
    """Return the clauses about columns, those of one kind together, by the columns that they are about."""
    families: dict[tuple[Any, ...], list[_Clause]] = {}
    for clause in clauses:
        if clause["column"] is not None:
            kind = tuple(clause[name] for name in ("measure", "share_of", "over", "at_least", "warns"))
            families.setdefault(kind, []).append(clause)
    gathered: dict[tuple[str, ...], list[list[_Clause]]] = {}
    for family in families.values():
        longest = max(len(str(clause["column"])) for clause in family)
        columns = max(1, min(_MOST_COLUMNS, _MOST_LETTERS // (longest + 4)))
        for start in range(0, len(family), columns):
            part = family[start : start + columns]
            gathered.setdefault(tuple(str(clause["column"]) for clause in part), []).append(part)
    return gathered


def list_deciding(content: Content) -> list[Mapping[str, Any]]:
    """Return the clauses that do not only warn."""
    return [clause for clause in content["clauses"] if not clause["warns"]]


def find_question(clause: Mapping[str, Any]) -> str:
    """Return the question of the page that a clause is about."""
    asked = JUDGED[clause["measure"]].question
    return next(text for text, questions in QUESTIONS.items() if asked in questions)


def _drop_empty_columns(caption: str, rows: Sequence[ClauseRow]) -> ClauseTable:
    places = [
        place for place in range(len(_HEADINGS)) if any(row.cells[place] not in {MISSING, ""} for row in rows)
    ]
    kept = [ClauseRow(tuple(row.cells[place] for place in places), row.kind) for row in rows]
    kept.sort(key=lambda row: row.kind == "kept")
    return ClauseTable(caption, tuple(_HEADINGS[place] for place in places), tuple(kept))


def _find_kind(clause: _Clause) -> str:
    return "warned" if clause["warns"] and clause["outcome"] == "exceeded" else str(clause["outcome"])


def _write_row(clause: _Clause, figures: Mapping[str, Any]) -> ClauseRow:
    words = words_of(clause["measure"])
    beside = find_beside(clause, figures)
    outcome = f"{_MARKS[clause['outcome']]} {_OUTCOMES[clause['outcome']]}"
    if _find_kind(clause) == "warned":
        outcome += ", only warns"
    if clause["outcome"] == "waived":
        outcome += f" by {clause['waiver']}"
    cells = (
        clause["name"],
        write_figure(clause["value"], words),
        write_bound(clause, words),
        *(beside.own, beside.others, beside.chance, beside.holdout),
        outcome,
    )
    return ClauseRow(cells, _find_kind(clause))


def _write_family(
    family: Sequence[_Clause], columns: Sequence[str], figures: Mapping[str, Any]
) -> Iterator[ClauseRow]:
    """Yield the figures of one kind of clause by column, then each kind of figure that stands beside them."""
    first = family[0]
    words = words_of(first["measure"])
    name = str(first["name"]).replace(f"[{first['column']}]", "", 1)
    bounds = {clause["column"]: write_bound(clause, words) for clause in family}
    is_same = len(set(bounds.values())) == 1
    bound = bounds[first["column"]] if is_same else "beside each"
    if first["share_of"]:
        is_same, side = True, "at least" if first["at_least"] else "at most"
        bound = f"{side} {first['bound']:g} of {first['share_of']}"
    cells = []
    for clause in family:
        value = write_figure(clause["value"], words).removesuffix(f" {words.unit}")
        cell = f"{_MARKS[clause['outcome']]} {value}"
        cells.append(cell if is_same else f"{cell} ({bounds[clause['column']]})")
    name += ", only warns" if first["warns"] else ""
    kind = min((_find_kind(clause) for clause in family), key=_GRAVEST.index)
    yield ClauseRow((name, bound, *cells), kind)
    beside = [find_beside(clause, figures) for clause in family]
    for place, heading in (
        ("own", "own"),
        ("others", "others'"),
        ("chance", "chance"),
        ("holdout", "holdout"),
    ):
        texts = [getattr(of_clause, place) for of_clause in beside]
        if set(texts) != {MISSING}:
            yield ClauseRow((f"{name}: {heading}", "", *texts), "")


@dataclass(frozen=True)
class Beside:
    """The texts beside a figure: GT's own, other people's, by chance, and of a holdout."""

    own: str = MISSING
    others: str = MISSING
    chance: str = MISSING
    holdout: str = MISSING


_OWN = {"DiSCO": "Dorig", "DiSDiO": "Dorig", "repU": "UiO", "UiOiS": "UiO", "DCAP": "CAPd"}
_CHANCE = {"DiSCO": "DiSCO_chance", "DiSCO_any": "DiSCO_any_by_chance"}
_FIGURES = {"DiSCO_any": "any"}
_SAME = {"DiSCO_in_releases": "DiSCO_any"}
_IN_FRESH_SAMPLE = {"nearer": 50.0, "much_nearer": 0.0}


def find_beside(clause: Mapping[str, Any], figures: Mapping[str, Any]) -> Beside:
    """Return the baselines of a clause's figure, of the synthesis that the figure is of."""
    baselines = find_baselines(clause, figures)
    texts = {place: write_figure(figure, words) for place, (figure, words) in baselines.items()}
    return Beside(**{place: text for place, text in texts.items() if place != "figure"})


def find_baselines(
    clause: Mapping[str, Any], figures: Mapping[str, Any]
) -> dict[str, tuple[float | None, Words | None]]:
    """Return the same as numbers, each with its words; `figure` is the one that a difference is of."""
    measure = clause["measure"]
    if clause["control"]:
        return {}
    base = _SAME.get(base_measure(measure), base_measure(measure))
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
    named = {
        "figure": _FIGURES.get(base, base),
        "own": _OWN.get(base, ""),
        "others": others,
        "chance": chance,
    }
    found = {place: (row.get(name), find_words(name)) for place, name in named.items()}
    if measure in _IN_FRESH_SAMPLE:
        found["others"] = _IN_FRESH_SAMPLE[measure], find_words(measure)
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


def compare_with_last(content: Content, last: Content | None) -> PageTable | None:
    """Return what the clauses say now, and said of the candidate before; None where there is none."""
    if last is None:
        return None
    before = {clause["name"]: clause for clause in last["clauses"]}
    rows = []
    for clause in content["clauses"]:
        earlier = before.get(clause["name"])
        if clause["control"] or earlier is None or earlier["value"] == clause["value"]:
            continue
        words = words_of(clause["measure"])
        both_known = clause["value"] is not None and earlier["value"] is not None
        change = f"{clause['value'] - earlier['value']:+.3g}" if both_known else MISSING
        outcomes = [earlier["outcome"], clause["outcome"]]
        rows.append(
            (
                clause["name"],
                write_figure(earlier["value"], words),
                write_figure(clause["value"], words),
                change,
                outcomes[1] if outcomes[0] == outcomes[1] else f"{outcomes[0]}, now {outcomes[1]}",
            )
        )
    caption = f"Clauses whose figure changed since candidate {last['candidate']}"
    return PageTable(caption, ("Clause", "Before", "Now", "Change", "Outcome"), tuple(rows))


def define(content: Content) -> dict[str, list[tuple[str, str, Words]]]:
    """Return the risks that the page shows, each with its name on the charts, by question.

    Checks and controls say what they are.
    """
    figures = content["figures"]
    shown = {"attribute": ("DiSCO", "DiSCO_others", "Dorig"), "identity": ("UiO", "repU")}
    names = {name for frame, columns in shown.items() if figures[frame] for name in columns}
    names |= {clause["measure"] for clause in content["clauses"] if clause["measure"] in _DEFINED}
    defined: dict[str, list[tuple[str, str, Words]]] = {question: [] for question in QUESTIONS}
    for name in sorted(names, key=str.lower):
        words = words_of(name)
        subject = (words.subject or words.title).replace("{column}", "a target")
        defined[find_question({"measure": name})].append((name, subject, words))
    return defined


_DEFINED = {entry.name for entry in JUDGED.values() if entry.role in {"bound", "beyond", "guard"}}


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
    broken = [clause for clause in list_deciding(content) if clause["outcome"] not in {"kept", "waived"}]
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
