"""The people found copied in synthetic tables, in sentences: what a gate's figures say of a result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from disclosure_pipeline.measures.catalogue import DEFAULTS, FIGURES
from disclosure_pipeline.measures.found import ALL_BUT_ONE, WAYS, WHOLE
from disclosure_pipeline.measures.words import SYNTHETIC
from disclosure_pipeline.tables.messages import GROUND_TRUTH, table_names

_STACKED = "all synthetic tables together"
_NOT_LOOKED_FOR = (
    "Copied people were not looked for: outside memory, and in tables this large, that takes much longer "
    "than these figures. A gate and `disclosure-pipeline measure --format html` look for them."
)
_NOT_COMPUTED = "It could not be computed whether people were copied."
_NOT_COMPARED = (
    "Copied people were looked for by equal values only: comparing near records takes long in tables of this "
    "size. dp.found, a gate and `disclosure-pipeline measure --format html` compare them."
)


@dataclass(frozen=True)
class CopiesFinding:
    """People found in one of the `WAYS`, beyond the default bound of a gate.

    `table`: the name of the synthetic table. `value`: the figure beyond chance, or 1 for the content of GT.
    `headline` states the finding in short; `sentence` adds what a fresh table would show.
    """

    table: str
    way: str
    value: float
    bound: float
    headline: str
    sentence: str


@dataclass(frozen=True)
class CopiesFound:
    """The people found copied, the gravest finding first, and what was not examined.

    No finding means that nobody was found only if `not_examined` is empty.
    """

    findings: tuple[CopiesFinding, ...] = ()
    not_examined: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The gravest finding in short; empty if there is none."""
        return self.findings[0].headline if self.findings else ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each finding."""
        return tuple(finding.sentence for finding in self.findings)


def find_copied_people(
    found: pd.DataFrame,
    guards: pd.DataFrame,
    stacked: tuple[pd.DataFrame, pd.DataFrame] | None,
    files: int,
) -> CopiesFound:
    """Return what is found in each synthesis, and in all of them stacked if nothing is found in one.

    By the frames `found` and `guards` of the result, and of all its `files` stacked, which may be empty.
    """
    if found.empty:
        return CopiesFound(not_examined=(_NOT_LOOKED_FOR,))
    findings = [
        finding
        for synthesis, name in enumerate(table_names(files + 1)[1:], start=1)
        for finding in _find_in_table(found, guards, synthesis, name)
    ]
    if stacked is not None and not stacked[0].empty and not findings:
        findings += _find_in_table(*stacked, 1, _STACKED)
    measured = found["found_beyond_chance"].notna()
    by_equality = measured[measured.index.get_level_values("way").isin([WHOLE, ALL_BUT_ONE])]
    not_examined = ((_NOT_COMPUTED, by_equality.all()), (_NOT_COMPARED, measured.all()))
    return CopiesFound(
        tuple(sorted(findings, key=lambda finding: (WAYS.index(finding.way), -finding.value))),
        tuple(sentence for sentence, is_examined in not_examined if not is_examined),
    )


def _find_in_table(
    found: pd.DataFrame, guards: pd.DataFrame, synthesis: int, table: str
) -> Iterator[CopiesFinding]:
    """Yield the findings of a table, leaving out those that follow from another one."""
    default = FIGURES["found"].default
    assert default is not None
    rows = found.reset_index().to_dict("records")
    by_way = {row["way"]: row for row in rows if row["synthesis"] == synthesis}
    explained = 0.0
    for way in WAYS:
        row = by_way[way]
        value, bound = float(row["found_beyond_chance"]), default.find_bound(way)
        is_of_equality = way in {WHOLE, ALL_BUT_ONE}
        if explained and not is_of_equality:
            return
        if value > bound + explained:  # not for NaN: see `not_examined`
            yield _describe(way, row, value, bound, table)
            explained += value
    # So coarse or small a table may show anybody by chance, but not everybody.
    if not explained and guards.loc[synthesis, "equal_content"]:
        headline = f"Every record of {table} is in {GROUND_TRUTH}, or the other way round"
        sentence = f"{headline}, unchanged; a fresh table would lack some: people were copied."
        yield CopiesFinding(table, WHOLE, 1.0, 0.0, headline, sentence)


def _describe(way: str, row: dict[Any, Any], value: float, bound: float, table: str) -> CopiesFinding:
    shown, where = f"{row['shown']:.0f} %", row["where"]
    fresh = f"in a fresh table {row['expected']:.1f} % would"
    if row["basis"] == SYNTHETIC:
        headline = ", ".join(filter(None, (f"{shown} of the records of {table} copy one person each", where)))
        sentence = f"{headline}; {fresh}: people were copied."
    else:
        place = ", ".join(filter(None, (table, where)))
        headline = f"{shown} of the people are copied in {place}"
        sentence = f"{shown} of the people are in {place}; {fresh} be: people were copied."
    return CopiesFinding(table, way, value, bound, headline, sentence)


def describe_alike(guards: pd.DataFrame) -> list[str]:
    """Return a doubt if the records of GT are all alike, so that copies could not be noticed."""
    percentage: float = guards["alike"].iloc[0]
    if not percentage > DEFAULTS["alike"]:
        return []
    return [
        f"There is nothing to measure here, {GROUND_TRUTH} tells no one apart: {percentage:.1f} % of its "
        "records equal another person's in every column, so a copy could not be noticed."
    ]
