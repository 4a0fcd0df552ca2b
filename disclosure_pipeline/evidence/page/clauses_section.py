"""Tables of all clauses with their baselines, of changed figures, and of the effect of remedies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.catalogue_entry import STRICT_SUFFIX, Question
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
from disclosure_pipeline.policy.clauses import find_measure_words
from disclosure_pipeline.policy.registry import (
    BANDS,
    CONFIDENTIAL,
    CONFIDENTIAL_GUARDS,
    CONTROLS,
    GUARDS,
    JUDGED,
    OVER_RELEASES,
    SMALLER_OF,
    find_entry,
    find_measure,
)
from disclosure_pipeline.policy.verdict import ALL_FILES, ANY_FILE, WITH_RELEASES, Part
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
# Columns side by side on paper, and letters of their names, at most.
_MOST_COLUMNS, _MOST_LETTERS = 5, 90
_HEADINGS = ("Clause", "Figure", "Bound", "Own", "Others'", "Chance", "Holdout", "Outcome")
_Clause = Mapping[str, Any]


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
    """Return all clauses by question: those on the whole table, then those on columns side by side."""
    tables = []
    figures = content["figures"]
    for question in QUESTIONS:
        clauses = [clause for clause in content["clauses"] if find_question(clause) == question]
        whole = [clause for clause in clauses if clause["column"] is None]
        if whole:
            tables.append(_drop_empty_columns(question, [_write_row(clause, figures) for clause in whole]))
        for columns, families in _group_by_columns(clauses).items():
            rows = [row for family in families for row in _write_family(family, columns, figures)]
            headings = ("Clause", "Bound", *columns)
            subject = "further table" if families[0][0]["measure"] in CONFIDENTIAL_GUARDS else "column"
            tables.append(ClauseTable(f"{question} By {subject}", headings, tuple(rows)))
    return tables


def _group_by_columns(clauses: Sequence[_Clause]) -> dict[tuple[str, ...], list[list[_Clause]]]:
    """Return the families of clauses that differ only in their column, by the columns that fit one table."""
    families: dict[tuple[Any, ...], list[_Clause]] = {}
    for clause in clauses:
        if clause["column"] is not None:
            kind = tuple(clause[name] for name in ("measure", "share_of", "over", "at_least", "warns"))
            families.setdefault(kind, []).append(clause)
    by_columns: dict[tuple[str, ...], list[list[_Clause]]] = {}
    for family in families.values():
        longest = max(len(str(clause["column"])) for clause in family)
        columns = max(1, min(_MOST_COLUMNS, _MOST_LETTERS // (longest + 4)))
        for start in range(0, len(family), columns):
            part = family[start : start + columns]
            by_columns.setdefault(tuple(str(clause["column"]) for clause in part), []).append(part)
    return by_columns


def list_deciding(content: Content) -> list[Mapping[str, Any]]:
    """Return the clauses that do not only warn."""
    return [clause for clause in content["clauses"] if not clause["warns"]]


def find_question(clause: Mapping[str, Any]) -> str:
    """Return the question of the page that a clause answers."""
    entry = JUDGED.get(clause["measure"])
    topic = "trusted" if entry is None else entry.question
    return next(question for question, topics in QUESTIONS.items() if topic in topics)


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
    words = find_measure_words(clause["measure"])
    outcome = f"{_MARKS[clause['outcome']]} {_OUTCOMES[clause['outcome']]}"
    if _find_kind(clause) == "warned":
        outcome += ", only warns"
    if clause["outcome"] == "waived":
        outcome += f" by {clause['waiver']}"
    cells = (
        clause["name"],
        write_figure(clause["value"], words),
        write_bound(clause, words),
        *astuple(write_baselines(clause, figures)),
        outcome,
    )
    return ClauseRow(cells, _find_kind(clause))


def _write_family(
    family: Sequence[_Clause], columns: Sequence[str], figures: Mapping[str, Any]
) -> Iterator[ClauseRow]:
    """Yield the row of a family's figures by column, then a row for each baseline that they have."""
    first = family[0]
    words = find_measure_words(first["measure"])
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
    baselines = zip(*(astuple(write_baselines(clause, figures)) for clause in family), strict=True)
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


# Columns of baselines that are not named after their measure, and baselines that are constants.
_OWN = {"DiSCO": "Dorig", "DiSDiO": "Dorig", "repU": "UiO", "UiOiS": "UiO", "DCAP": "CAPd"}
_CHANCE = {"DiSCO": "DiSCO_chance", "DiSCO_any": "DiSCO_any_by_chance"}
_FIGURES = {"DiSCO_any": "any"}
_SAME = {"DiSCO_in_releases": "DiSCO_any"}
_IN_FRESH_SAMPLE = {"nearer": 50.0, "much_nearer": 0.0}


def write_baselines(clause: Mapping[str, Any], figures: Mapping[str, Any]) -> BaselineTexts:
    """Write the baselines of a clause's figure, from the same synthesis."""
    baselines = find_baselines(clause, figures)
    shown = ("own", "others", "chance", "holdout")
    return BaselineTexts(**{kind: write_figure(*baselines[kind]) for kind in shown if kind in baselines})


def find_baselines(
    clause: Mapping[str, Any], figures: Mapping[str, Any]
) -> dict[str, tuple[float | None, Words | None]]:
    """Return the baselines with their words.

    `figure` is the minuend if the clause bounds a difference, and `at_n` the same of as many records as GT
    has, if the table has more: other people's records are as many as GT's.
    """
    measure = clause["measure"]
    if clause["control"]:
        return {}
    judged = find_entry(measure, len(figures["N_s"])).name if measure in JUDGED else measure
    base = _SAME.get(base_measure(judged), base_measure(judged))
    row = find_judged_row(clause, figures)
    holdout = next(
        (
            other["holdout"]
            for other in figures.get("holdout", ())  # has rows of single tables only
            if (other["target"], other["measure"], other["synthesis"], False)
            == (clause["column"] or WHOLE_KEY, base, row.get("synthesis"), row.get("stacked"))
        ),
        None,
    )
    expected = [f"{base}_others", f"{base}_apart"] if f"{base}_others" in row else [f"{base}_expected"]
    others = max(expected, key=lambda name: row.get(name) or 0.0)
    chance = f"{base}_by_chance" if measure in GUARDS else _CHANCE.get(base, "")
    columns = {
        "figure": _FIGURES.get(base, base),
        "own": _OWN.get(base, ""),
        "others": others,
        "chance": chance,
    }
    baselines = {kind: (row.get(name), find_words(name)) for kind, name in columns.items()}
    if measure in _IN_FRESH_SAMPLE:
        baselines["others"] = _IN_FRESH_SAMPLE[measure], find_words(measure)
    if row.get("is_larger"):
        at_n = row.get(f"{base}_at_n")
        beyond = row.get(f"{base}_beyond")
        if at_n is None and None not in (row.get(others), beyond) and row["frame"] in _WITHOUT_AT_N:
            at_n = row[others] + beyond
        baselines["at_n"] = at_n, find_words(_FIGURES.get(base, base))
    return baselines | {"holdout": (holdout, find_words(base))}


# Frames whose figures beyond other people's records are of as many records as GT has, but do not show those.
_WITHOUT_AT_N = frozenset((BANDS, "together", "released_targets"))


def find_judged_row(clause: Mapping[str, Any], figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row of figures that a clause was judged by; for a mean, the mean of the files' rows.

    Dossiers of earlier versions do not name the part: their row is found by the figure.
    """
    rows = list(_rows_of(clause, figures))
    if clause["over"] == "mean":
        return _average([row for row in rows if not row["stacked"]])
    part = clause.get("part")
    if part is not None:
        return next((row for row in rows if row["part"] == part), {})
    return next((row for row in rows if row[clause["measure"]] == clause["value"]), rows[0] if rows else {})


def _average(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return a row with the mean of each figure that all rows have."""

    def is_number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    names = [name for name in rows[0] if all(is_number(row.get(name)) for row in rows)] if rows else []
    means = {name: math.fsum(row[name] for row in rows) / len(rows) for name in names if name != "synthesis"}
    if not rows:
        return {}
    return {**means, "is_larger": any(row["is_larger"] for row in rows), "frame": rows[0]["frame"]}


def base_measure(measure: str) -> str:
    """Return the minuend of a difference, such as DiSCO for DiSCO_beyond."""
    for ending in (STRICT_SUFFIX, "_beyond_both", "_beyond", "_excess", "_after_exclusions"):
        measure = measure.removesuffix(ending)
    return measure


def _rows_of(clause: Mapping[str, Any], figures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a clause's figure, each with the part of the candidate that it is of."""
    measure, column = clause["measure"], clause["column"]
    pair = SMALLER_OF.get(measure, ())
    name = pair[0] if pair else measure
    if find_measure(name) is None and name not in CONTROLS:
        return
    entry = find_entry(name, len(figures["N_s"]))
    frame, label = entry.frame, "target" if entry.per_target else None
    if measure in CONFIDENTIAL_GUARDS and column is not None:
        frame = label = CONFIDENTIAL
    names = [JUDGED[part].column for part in pair] or [entry.column]
    sources = [(figures, False), *([(figures["stacked"], True)] if figures.get("stacked") else [])]
    for source, is_stacked in sources:
        rows = [row for row in source.get(frame, ()) if label is None or row.get(label) == column]
        for row in rows[-1:] if frame in OVER_RELEASES else rows:
            part = ALL_FILES if is_stacked else _PARTS.get(frame, row.get("synthesis"))
            judged = [row.get(name) for name in names]
            yield {
                **row,
                measure: None if None in judged else min(judged),
                "part": part,
                "stacked": is_stacked,
                "frame": frame,
                "is_larger": _count_records(part, figures) > figures["N_d"],
            }


_PARTS: Mapping[str, Part] = {"together": ANY_FILE} | dict.fromkeys(OVER_RELEASES, WITH_RELEASES)


def _count_records(part: Part | None, figures: Mapping[str, Any]) -> int:
    records: Sequence[int] = figures["N_s"]
    if part == ALL_FILES:
        return sum(records)
    return records[part - 1] if isinstance(part, int) and part <= len(records) else max(records)


def compare_with_last(content: Content, last: Content | None) -> PageTable | None:
    """Return the clauses whose figure changed since the last candidate; None if there is none."""
    if last is None:
        return None
    before = {clause["name"]: clause for clause in last["clauses"]}
    rows = []
    for clause in content["clauses"]:
        earlier = before.get(clause["name"])
        if clause["control"] or earlier is None or earlier["value"] == clause["value"]:
            continue
        words = find_measure_words(clause["measure"])
        are_known = clause["value"] is not None and earlier["value"] is not None
        change = f"{clause['value'] - earlier['value']:+.3g}" if are_known else MISSING
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


def list_definitions(content: Content) -> dict[str, list[tuple[str, str, Words]]]:
    """Return name, subject and words of each risk on the page, by question; checks and controls need none."""
    figures = content["figures"]
    drawn = {"attribute": ("DiSCO", "DiSCO_others", "Dorig"), "identity": ("UiO", "repU")}
    names = {name for frame, columns in drawn.items() if figures[frame] for name in columns}
    names |= {clause["measure"] for clause in content["clauses"] if clause["measure"] in _DEFINED}
    definitions: dict[str, list[tuple[str, str, Words]]] = {question: [] for question in QUESTIONS}
    for name in sorted(names, key=str.lower):
        words = find_measure_words(name)
        subject = (words.subject or words.title).replace("whose {column}", "whose target")
        subject = subject.replace("{column}", "a target")
        definitions[find_question({"measure": name})].append((name, subject, words))
    return definitions


_DEFINED = {entry.name for entry in JUDGED.values() if entry.role in {"bound", "beyond", "guard"}}


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


def advise(content: Content, tried: Sequence[TriedRemedy], reason: _Clause | None) -> Advice:
    """Advise on a refusal; `reason` is the clause of the headline."""
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
    broken = [clause for clause in list_deciding(content) if clause["outcome"] not in {"kept", "waived"}]
    return Advice(
        sentence, _tabulate_remedies(content, tried, reason, len(broken)), _tabulate_clauses(broken, tried)
    )


def _tabulate_clauses(broken: Sequence[_Clause], tried: Sequence[TriedRemedy]) -> PageTable:
    rows = []
    for clause in broken:
        words = find_measure_words(clause["measure"])
        cells = [clause["name"], write_bound(clause, words), write_figure(clause["value"], words)]
        for remedy in tried:
            mark = "✗" if clause["name"] in remedy.broken else "✓"
            cells.append(f"{mark} {write_figure(remedy.values.get(clause['name']), words)}")
        rows.append(tuple(cells))
    headings = ("Clause", "Bound", "Without a remedy", *(remedy.name for remedy in tried))
    return PageTable("Broken clauses after each remedy", headings, tuple(rows))


def _tabulate_remedies(
    content: Content, tried: Sequence[TriedRemedy], reason: _Clause | None, broken: int
) -> PageTable:
    distances = [row["TVD"] for row in content["figures"]["columns_apart"] if row.get("TVD") is not None]
    words = None if reason is None else find_measure_words(reason["measure"])
    subject = [] if reason is None else [capitalized(write_subject(reason))]
    headings = ["Remedy", "Taken out or blanked", "Clauses not kept", *subject]

    def write_row(name: str, cost: str, number: int, value: Any, distance: float | None) -> tuple[str, ...]:
        figure = [] if reason is None else [write_figure(value, words)]
        percent = MISSING if distance is None else f"{100 * distance:.1f} %"
        return (name, cost, str(number), *figure, percent)

    rows = [write_row("none", MISSING, broken, reason and reason["value"], max(distances, default=None))]
    for remedy in tried:
        value = reason and remedy.values.get(reason["name"])
        rows.append(write_row(remedy.name, _write_cost(remedy), len(remedy.broken), value, remedy.distance))
    return PageTable("Effect of each remedy", (*headings, "Least similar column, off by"), tuple(rows))


def _write_cost(remedy: TriedRemedy) -> str:
    lost = f"{write_count(remedy.lost, 'record')}" if remedy.lost else ""
    blanked = f"{write_count(remedy.blanked, 'value')}" if remedy.blanked else ""
    return ", ".join(filter(None, (lost, blanked))) or MISSING
