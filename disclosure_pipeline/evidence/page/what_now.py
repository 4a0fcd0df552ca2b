"""The last block of a refusal's first page: what remedies would change, and where to read on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evidence.page.parts import (
    MISSING,
    PageTable,
    write_bound,
    write_figure,
    write_subject,
)
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.tables.messages import capitalized


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


def advise(
    content: Mapping[str, Any], tried: Sequence[TriedRemedy], reason: Mapping[str, Any] | None
) -> WhatNow:
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
    broken = [
        clause
        for clause in content["clauses"]
        if clause["outcome"] not in {"kept", "waived"} and not clause["warns"]
    ]
    return WhatNow(sentence, _tabulate(content, tried, reason, len(broken)), _list_clauses(broken, tried))


def _list_clauses(broken: Sequence[Mapping[str, Any]], tried: Sequence[TriedRemedy]) -> PageTable:
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


def _tabulate(
    content: Mapping[str, Any], tried: Sequence[TriedRemedy], reason: Mapping[str, Any] | None, broken: int
) -> PageTable:
    distances = [row["TVD"] for row in content["figures"]["columns_apart"] if row.get("TVD") is not None]
    words = None if reason is None else words_of(reason["measure"])
    headings = ["Tried on this table", "Taken out or blanked", "Clauses not kept"]
    headings += [
        *([] if reason is None else [capitalized(write_subject(reason))]),
        "Least alike column, off by",
    ]

    def write_row(
        name: str, cost: str, number: int, value: float | None, distance: float | None
    ) -> list[str]:
        figure = [] if reason is None else [write_figure(value, words)]
        return [name, cost, str(number), *figure, MISSING if distance is None else f"{100 * distance:.1f} %"]

    as_it_is = None if reason is None else reason["value"]
    rows = [write_row("as it is", MISSING, broken, as_it_is, max(distances, default=None))]
    for remedy in tried:
        value = None if reason is None else remedy.values.get(reason["name"])
        rows.append(write_row(remedy.name, _write_cost(remedy), len(remedy.broken), value, remedy.distance))
    return PageTable("What each would do", tuple(headings), tuple(map(tuple, rows)))


def _write_cost(remedy: TriedRemedy) -> str:
    lost = f"{remedy.lost:,} records" if remedy.lost else ""
    blanked = f"{remedy.blanked:,} values" if remedy.blanked else ""
    return ", ".join(filter(None, (lost, blanked))) or MISSING
