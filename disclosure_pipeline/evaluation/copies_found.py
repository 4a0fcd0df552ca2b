"""The people found copied in synthetic tables, in sentences: what the guards of copies say of a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd

from disclosure_pipeline.evaluation.catalogue import DEFAULTS
from disclosure_pipeline.tables.messages import GROUND_TRUTH, table_names

_STACKED = "all synthetic tables together"
_NOT_LOOKED_FOR = (
    "Copied people were not looked for: outside memory, and in tables this large, that takes much longer "
    "than these figures. A gate and `disclosure-pipeline measure --format html` look for them."
)
_NOT_COMPUTED = "It could not be computed whether people were copied."
_NOT_COMPARED = (
    "Copied people were looked for by equal values only: comparing near records takes long in tables of this "
    "size. dp.nearest, a gate and `disclosure-pipeline measure --format html` compare them."
)


@dataclass(frozen=True)
class CopiesFinding:
    """A guard of copies that is beyond the default bound of a gate.

    `table`: the name of the synthetic table. `value`: the guard's figure beyond chance. `headline` states the
    finding in short; `sentence` adds what a fresh table would show.
    """

    table: str
    guard: str
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


@dataclass(frozen=True)
class CopyFrames:
    """The frames `guards`, `partial_copies` and `columns_apart` of a result."""

    guards: pd.DataFrame
    partial_copies: pd.DataFrame
    columns_apart: pd.DataFrame

    @property
    def frames(self) -> dict[str, Any]:
        """The frames by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def find_copied_people(frames: CopyFrames, stacked: CopyFrames | None, N_d: int) -> CopiesFound:
    """Return what the guards say of each synthesis, and of all of them stacked if a guard holds in each."""
    if frames.guards.empty:
        return CopiesFound(not_examined=(_NOT_LOOKED_FOR,))
    names = table_names(len(frames.guards) + 1)[1:]
    found = [
        finding
        for synthesis, name in enumerate(names, start=1)
        for finding in _find_in_table(frames, synthesis, name)
    ]
    if stacked is not None and not stacked.guards.empty and not found:
        found += _find_in_table(stacked, 1, _STACKED)
    is_computed = frames.guards[[_bounded(guard) for guard in _OF_EQUAL_VALUES]].notna().all(axis=None)
    is_compared = N_d == 1 or frames.guards["nearer"].notna().all()  # one person has no others
    not_examined = ((_NOT_COMPUTED, is_computed), (_NOT_COMPARED, is_compared))
    return CopiesFound(
        tuple(sorted(found, key=lambda finding: (_GRAVEST.index(finding.guard), -finding.value))),
        tuple(sentence for sentence, is_examined in not_examined if not is_examined),
    )


_PEOPLE, _RECORDS, _PARTIAL, _GROUP, _NEAR, _NEARER = _GRAVEST = (
    "people_copied",
    "unique_copies",
    "partial_copies",
    "group_copied",
    "much_nearer",
    "nearer",
)
_OF_EQUAL_VALUES = (_PEOPLE, _RECORDS, _PARTIAL, _GROUP)


def _find_in_table(frames: CopyFrames, synthesis: int, table: str) -> Iterator[CopiesFinding]:
    """Yield the findings of a table, leaving out those that follow from another one."""
    figures = frames.guards.to_dict("index")[synthesis]
    beyond = {
        guard: float(value)
        for guard in _GRAVEST
        if (value := figures[_bounded(guard)]) > DEFAULTS[guard]  # not for NaN: see `not_examined`
    }
    whole = [guard for guard in (_PEOPLE, _RECORDS) if guard in beyond][:1]
    yield from (_describe_copies(guard, figures, beyond[guard], table) for guard in whole)
    if _PARTIAL in beyond and beyond[_PARTIAL] > DEFAULTS[_PARTIAL] + sum(beyond[guard] for guard in whole):
        label, row = _find_worst_set(frames.partial_copies, synthesis)
        guard = _PEOPLE if row[_bounded(_PEOPLE)] > DEFAULTS[_PARTIAL] else _RECORDS
        compared = "all but the column without a name" if label == "all but " else repr(label)
        found = _describe_copies(guard, row, beyond[_PARTIAL], table, f" (compared: {compared})")
        yield replace(found, guard=_PARTIAL, bound=DEFAULTS[_PARTIAL])
    if whole or _PARTIAL in beyond:
        return
    if _GROUP in beyond:
        groups = frames.columns_apart.xs(synthesis, level="synthesis")[_bounded(_GROUP)]
        yield _describe_group(groups.idxmax(), figures, beyond[_GROUP], table)
        return
    yield from (
        _describe_nearness(guard, figures, beyond[guard], table)
        for guard in (_NEAR, _NEARER)
        if guard in beyond
    )


def _bounded(guard: str) -> str:
    """Return the column that a gate bounds."""
    return f"{guard}_beyond_chance"


def _find_worst_set(partial_copies: pd.DataFrame, synthesis: int) -> tuple[Any, Mapping[Any, float]]:
    """Return the set of columns in which most people are copied, or else most records, and its figures."""
    rows = zip(partial_copies.index.tolist(), partial_copies.to_dict("records"), strict=True)
    sets = {label: row for (label, table), row in rows if table == synthesis}
    by_people = any(row[_bounded(_PEOPLE)] > DEFAULTS[_PARTIAL] for row in sets.values())
    column = _bounded(_PEOPLE if by_people else _RECORDS)
    return max(sets.items(), key=lambda item: item[1][column])


def _describe_copies(
    guard: str, figures: Mapping[Any, float], value: float, table: str, compared: str = ""
) -> CopiesFinding:
    unique = "values" if compared else "a record"
    if guard == _PEOPLE:
        people = f"{figures['people_copied']:.0f} % of the people are"
        headline = f"{people} copied in {table}{compared}"
        sentence = (
            f"{people} in {table}{compared}, each with {unique} that nobody else has; a fresh table would "
            f"hold {figures['people_copied_expected']:.1f} %: it copies them."
        )
    else:
        copied = f"{figures['unique_copies']:.0f} % of the records of {table}"
        expected = max(figures["unique_copies_others"], figures["unique_copies_apart"])
        headline = f"{copied} copy one person each{compared}"
        sentence = (
            f"{copied} have {unique} that exactly one person has{compared}; of a fresh table "
            f"{expected:.1f} % would: it copies people."
        )
    return CopiesFinding(table, guard, value, DEFAULTS[guard], headline, sentence)


def _describe_group(column: Any, figures: Mapping[Any, float], value: float, table: str) -> CopiesFinding:
    points = f"{figures['group_copied_beyond']:.0f}"
    return CopiesFinding(
        table,
        _GROUP,
        value,
        DEFAULTS[_GROUP],
        f"People with one value of {column!r} are copied in {table}",
        f"{points} % more of the people with one value of {column!r} are in {table} than would be in a fresh "
        "table: it copies them.",
    )


def _describe_nearness(guard: str, figures: Mapping[Any, float], value: float, table: str) -> CopiesFinding:
    people = f"{figures[guard]:.0f} %"
    if guard == _NEAR:
        headline = f"{people} of the people have a near copy in {table}"
        sentence = (
            f"{people} more of the people are at most half as far from a record of {table} as from the "
            "nearest other person than the other way round; with a fresh table, 0 % would be: it holds near "
            "copies."
        )
    else:
        headline = f"{people} of the people are nearer to {table} than to other people"
        sentence = (
            f"{people} of the people are nearer to a record of {table} than to any other person; with a "
            "fresh table, 50 % would be: it imitates them."
        )
    return CopiesFinding(table, guard, value, DEFAULTS[guard], headline, sentence)


def describe_alike(guards: pd.DataFrame) -> list[str]:
    """Return a doubt if the records of GT are all alike, so that copies could not be noticed."""
    alike: Iterable[float] = guards["alike"].head(1) if len(guards) else ()
    return [
        f"There is nothing to measure here, {GROUND_TRUTH} tells no one apart: {percentage:.1f} % of its "
        "records equal another person's in every column, so a copy could not be noticed."
        for percentage in alike
        if percentage > DEFAULTS["alike"]
    ]
