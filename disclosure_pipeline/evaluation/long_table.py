"""The long table of figures: one row a figure, what it is about, and the part of a candidate that it is of.

A gate judges these rows, Great Expectations compares them, and the dossier, its page and the statement show
them: nobody looks a figure up again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.frames import find_words, list_names_and_rows
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.entry import GROUPS, About, Figure, Place
from disclosure_pipeline.measures.words import COUNT, RECORDS, SYNTHETIC, Basis, Words

if TYPE_CHECKING:
    from disclosure_pipeline.evaluation.result import Disclosure

Group = tuple[str | None, ...]
"""People by a column and its level, or by several of them; a level is None where the value is missing."""

Part = int | str
"""The file of a candidate (1 for the first), or which of them together."""

ALL_FILES = "all files"
"""The part of a figure of all files of a candidate as one table."""
ANY_FILE = "any file"
"""The part of a figure of people whom at least one file of a candidate concerns."""
WITH_RELEASES = "with all releases"
"""The part of a figure of a candidate together with everything published."""

CONFIDENTIAL = "confidential"
"""The frame of copies of further confidential tables, and the level of its index that names them."""

FOUND_OF_CONFIDENTIAL = "confidential_found"
"""The frame of the people of further confidential tables who are found."""

OVER_RELEASES = ("over_releases", "released_targets", "released_found")
"""The frames of figures of the first releases together; the last row includes the candidate."""

OF_ALL_FILES = ("together", "together_identity")
"""The frames of what all files of a candidate disclose together."""

Record = Mapping[str, Any]
"""A row of a frame of a result, with its index."""

LARGEST_DEVIATION = 6.0
"""The largest deviation of a control from its expectation, in standard errors."""


@dataclass(frozen=True, eq=False)
class FigureRow:
    """A figure and what stands beside it, in the figure's own unit; NaN where there is none.

    about: the target, key or confidential table; None for the whole table and GT. at_n: the figure at as many
    records as there are of other people. others: the same of other people's records, of as many. beyond:
    their difference, with its standard error `se` and what chance adds to it (`by_chance`). beyond_chance:
    the part that is beyond chance. own: GT's own risk. permuted: the figure if SD's targets are permuted.
    holdout: the figure of a holdout. is_larger: whether the part has more records than GT.
    where: by which columns people are found, within which tolerance, in which group. group: the people whom
    it is of, as columns and their levels; empty for everyone.
    """

    figure: str
    about: str | None
    part: Part
    basis: Basis = "records"
    value: float = math.nan
    at_n: float = math.nan
    others: float = math.nan
    beyond: float = math.nan
    se: float = math.nan
    by_chance: float = math.nan
    beyond_chance: float = math.nan
    own: float = math.nan
    permuted: float = math.nan
    holdout: float = math.nan
    is_larger: bool = False
    where: str = ""
    group: Group = ()

    def __eq__(self, other: object) -> bool:
        # From Python 3.13 on, a dataclass with NaN would not equal its copy.
        return isinstance(other, FigureRow) and self.to_record() == other.to_record()

    def __hash__(self) -> int:
        return hash((self.figure, self.place))

    @property
    def place(self) -> tuple[str | None, Group, Part, bool]:
        """(about, group, part, True if it is by weight), by which the rows of a figure differ."""
        return self.about, self.group, self.part, self.basis == "people"

    def to_record(self) -> dict[str, Any]:
        """Return the row as plain JSON, without empty columns; a value that is not finite is None."""
        values = vars(self)
        record = {name: values[name] for name in ("figure", "about", "part", "basis")} | {"value": None}
        record |= {name: number for name in NUMBERS if math.isfinite(number := values[name])}
        record |= {name: values[name] for name in ("is_larger", "where") if values[name]}
        return record | {"group": list(self.group)} if self.group else record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> FigureRow:
        """Read the output of `to_record`, also of earlier versions. KeyError or TypeError if damaged."""
        values = {name: record[name] for name in ROW_COLUMNS if record.get(name) is not None}
        values |= {"about": record["about"], "group": tuple(record.get("group", ()))}
        if values.get("where", "").startswith(_EARLIER_BASIS):
            rest = values["where"].removeprefix(_EARLIER_BASIS).removeprefix(", ")
            values |= {"basis": SYNTHETIC, "where": rest}
        return cls(**values)


_EARLIER_BASIS = "counted by synthetic records"
"""How an earlier version began `where` instead of having a basis."""

ROW_COLUMNS = tuple(column.name for column in fields(FigureRow))
"""The columns of the long table, in order."""
NUMBERS = tuple(column.name for column in fields(FigureRow) if column.type == "float")
"""The columns of the long table that are numbers."""


def tabulate_figures(result: Disclosure, entries: Iterable[Figure] | None = None) -> tuple[FigureRow, ...]:
    """Return the rows of figures, of each file and of all of them together.

    `entries`: by default those that a gate bounds or shows.
    """
    read, read_stacked = (
        cache(lambda name, of=of: [] if of is None else _list_records(of.frame(name)))
        for of in (result, result.stacked)
    )
    listed = FIGURES.values() if entries is None else entries
    return tuple(row for entry in listed for row in _list_rows(entry, result, read, read_stacked))


def frame_figures(rows: Sequence[FigureRow]) -> pd.DataFrame:
    """Return the long table as a frame, with groups as text."""
    records = [vars(row) | {"group": name_group(row.group)} for row in rows]
    return pd.DataFrame(records, columns=list(ROW_COLUMNS))


def name_group(group: Iterable[str | None]) -> str:
    """Return the columns and levels of a group as text.

    >>> name_group(("work", "student", "region", None))
    'work: student: region: missing'
    """
    return ": ".join("missing" if name is None else name for name in group)


PLACES = "places"
"""The places of a row among those of its frame, by exact figures, in the edition for publication."""


def view_frame(figures: Mapping[str, Any], frame: str) -> list[dict[str, Any]]:
    """Return the rows of the long table of a dossier's `figures` as a frame of the library, by its names.

    Each has what it is about, the `synthesis` (or the `releases` that it is of), and the figures in the
    order of the frame; `<figure>_holdout` is the figure of a holdout. In the edition for publication,
    `PLACES` orders them.
    """
    if frame in figures:  # earlier versions stored flags and controls so
        return list(figures[frame])
    rows: dict[Any, dict[str, Any]] = {}
    numbers_of: Counter[Any] = Counter()
    in_frame = cache(lambda name: _find_entry_of(frame, name))
    for record in figures["table"]:
        entry, about, part = in_frame(record["figure"]), record["about"], record["part"]
        if entry is None or not _has_part(frame, part):
            continue
        place, group = entry.find_place(record["basis"]), record.get("group", ())
        is_own = frame == place.frame and place.about in {"", about}
        if (not is_own and frame not in entry.also) or (frame in GROUPS) != bool(group) or not place.columns:
            continue
        label = None if is_own and place.about else entry.about or None
        key = (label and about, *group, part)
        # Names of rare levels are withheld: groups may share one. People found have a row for each basis.
        of_figure = entry.name, "" if place.frame == "found" else record["basis"], key
        number = numbers_of[of_figure] = numbers_of[of_figure] + 1
        row = rows.setdefault((key, number), {} if label is None else {str(label): about})
        row.update(zip(GROUPS.get(frame, ()), group, strict=False))
        if frame not in OF_ALL_FILES:
            row["releases" if frame in OVER_RELEASES else "synthesis"] = part
        if place.frame == "found":
            row |= {"where": record.get("where", ""), "basis": record["basis"]}
        elif frame == "bands":
            row["within"] = figures.get("within", {}).get(about)
        row |= {
            name: _to_whole(record.get(of), find_words(name, frame)) for of, name in place.columns.items()
        }
        if record.get("holdout") is not None:
            row[f"{entry.name}_holdout"] = record["holdout"]
    order = {name: place for place, name in enumerate(COLUMNS[frame])}
    ordered = [
        {name: row[name] for name in sorted(row, key=lambda of: order.get(of, -1))} for row in rows.values()
    ]
    places = figures.get(PLACES, {}).get(frame)
    if places is None:
        return ordered
    return [{**row, PLACES: placed} for row, placed in zip(ordered, places, strict=True)]


def _find_entry_of(frame: str, figure: str) -> Figure | None:
    """Return the entry of a figure that a frame of the library may have; None for any other."""
    entry = find_entry(figure)
    if entry is None or frame in {entry.place.frame, *entry.also}:
        return entry
    return entry if entry.weighed is not None and entry.weighed.frame == frame else None


def _to_whole(number: float | None, words: Words | None) -> float | None:
    """Return a number of records or of anything else as a whole number, if it is one."""
    is_count = words is not None and words.unit in {COUNT, RECORDS}
    return int(number) if is_count and number is not None and float(number).is_integer() else number


def tabulate_key_overlap(key_overlap: pd.DataFrame, files: int) -> tuple[FigureRow, ...]:
    """Return the rows of the shared values of keys from their frame alone; `files`: a candidate's."""
    records, sizes = _list_records(key_overlap), _Sizes(1, (1,) * files)
    entries = [entry for entry in list_entries() if entry.place.frame == "key_overlap"]
    return tuple(row for entry in entries for row in _read_place(entry, entry.place, records, sizes))


@dataclass(frozen=True)
class _Sizes:
    """The numbers of records of GT and of each file; the holdout's figures by target and file."""

    N_d: int
    N_s: tuple[int, ...]
    holdout: Mapping[tuple[str, Part], float] = field(default_factory=dict)

    def count(self, part: Part) -> int:
        """Return the number of records of a part."""
        if part == ALL_FILES:
            return sum(self.N_s)
        return self.N_s[part - 1] if isinstance(part, int) and part <= len(self.N_s) else max(self.N_s)


def _list_records(frame: pd.DataFrame) -> list[Record]:
    names, rows = list_names_and_rows(frame)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _list_rows(
    entry: Figure,
    result: Disclosure,
    read: Callable[[str], list[Record]],
    read_stacked: Callable[[str], list[Record]],
) -> Iterator[FigureRow]:
    """Yield the rows of one figure; the functions return a frame of the result, and of all files stacked."""
    if entry.name == "controls":
        yield from _count_failed_controls(result)
        return
    files = len(result.N_s)
    sizes = _Sizes(result.N_d, result.N_s, _find_holdout(result, entry.name))
    parts = [(read, False)]
    if entry.is_stacked and not entry.is_of_release and files > 1:
        parts.append((read_stacked, True))
    for read_frame, is_stacked in parts:
        for place, basis in _list_places(entry, files):
            yield from _read_place(entry, place, read_frame(place.frame), sizes, basis, is_stacked=is_stacked)
        if entry.is_per_confidential_table:
            records, place = read_frame(FOUND_OF_CONFIDENTIAL), entry.place
            yield from _read_place(entry, place, records, sizes, is_stacked=is_stacked, label=CONFIDENTIAL)


def _list_places(entry: Figure, files: int) -> Iterator[tuple[Place, Basis]]:
    if entry.name == "DiSCO_any":
        # What a single file discloses is DiSCO.
        yield (FIGURES["DiSCO"].place if files == 1 else entry.place), "records"
    else:
        yield entry.place, "records"
    for frame in entry.also:
        yield replace(entry.place, frame=frame, about=""), "records"
    if entry.weighed is not None:
        yield entry.weighed, "people"


def _read_place(
    entry: Figure,
    place: Place,
    records: Sequence[Record],
    sizes: _Sizes,
    basis: Basis = "records",
    *,
    is_stacked: bool = False,
    label: str | None = None,
) -> Iterator[FigureRow]:
    """Yield a row for each record of a frame; none if the frame has not what is bounded.

    `label`: the level of the index that says what a record is about, by default as the entry says.
    """
    if place.frame == "key_overlap" and entry.statistics:
        records = [record for record in records if (record["key"] == WHOLE_KEY) == (entry.about == "")]
    if not records or not _has_figure(place, records[0]):
        return
    label = label or (None if place.about else entry.about or None)
    names = GROUPS.get(place.frame, ())
    holdout = {} if is_stacked or names or basis == "people" else sizes.holdout
    beside = {number: column for number, column in place.columns.items() if number not in _READ_SPECIALLY}
    last = max(of["releases"] for of in records) if place.frame in OVER_RELEASES else None
    for record in records:
        about = place.about or (None if label is None else str(record[label]))
        if label == CONFIDENTIAL:
            about = name_way(record["way"], str(about))
        part = _name_part(place.frame, record, last, is_stacked=is_stacked)
        value = _read_value(place, record)
        if last not in {None, record.get("releases")} and math.isnan(value):
            continue
        yield FigureRow(
            entry.name,
            about,
            part,
            record.get("basis", basis),
            value=value,
            at_n=_read_at_n(place, record),
            others=_read_others(place, record),
            holdout=holdout.get((about or WHOLE_KEY, part), math.nan),
            is_larger=sizes.count(part) > sizes.N_d,
            where=record.get("where", ""),
            group=tuple(None if record[name] is None else str(record[name]) for name in names),
            **{number: _read(record, column) for number, column in beside.items()},
        )


_READ_SPECIALLY = ("value", "at_n", "others")
"""The numbers of a row that may come from several columns of a frame."""


def name_way(way: str, table: str) -> str:
    """Return what people who are found in a way are called if they are those of a further table."""
    return f"{way} of {table}"


def _has_figure(place: Place, record: Record) -> bool:
    columns = place.value if isinstance(place.value, tuple) else (place.value or place.beyond,)
    return any(column in record for column in columns)


def _has_part(frame: str, part: Part) -> bool:
    """Return True if a frame of the library has rows of a part."""
    if frame in OVER_RELEASES:
        return part not in {ALL_FILES, ANY_FILE} and isinstance(part, str)
    return part == ANY_FILE if frame in OF_ALL_FILES else isinstance(part, int)


def _name_part(frame: str, record: Record, last: Any, *, is_stacked: bool) -> Part:
    """Return the part that a record is of; `last`: the number of releases together with the candidate."""
    if is_stacked:
        return ALL_FILES
    if frame in OVER_RELEASES:
        return WITH_RELEASES if record["releases"] == last else write_count(record["releases"], "release")
    return ANY_FILE if frame in OF_ALL_FILES else int(record["synthesis"])


def _read(record: Record, column: str) -> float:
    value = record.get(column)
    return math.nan if value is None else float(value)


def _read_value(place: Place, record: Record) -> float:
    """Return the figure: of several columns the smallest, NaN if one is not finite."""
    if isinstance(place.value, str):
        return _read(record, place.value)
    values = [_read(record, column) for column in place.value if column in record or not place.is_of_any]
    return min(values) if values and all(map(math.isfinite, values)) else math.nan


def _read_others(place: Place, record: Record) -> float:
    names = (place.others,) if isinstance(place.others, str) else place.others
    values = [value for name in names if math.isfinite(value := _read(record, name))]
    return max(values, default=math.nan)


# Frames whose differences are of as many records as GT has, but which do not show the figure of these.
_WITHOUT_AT_N = ("bands", "together", "released_targets")


def _read_at_n(place: Place, record: Record) -> float:
    if place.frame in _WITHOUT_AT_N:
        return _read_others(place, record) + _read(record, place.beyond)
    return _read(record, place.at_n)


def _find_holdout(result: Disclosure, figure: str) -> dict[tuple[str, Part], float]:
    """Return the figure of the holdout by target and synthesis."""
    if result.holdout.empty:
        return {}
    figures: dict[Any, float] = result.holdout["holdout"].to_dict()
    return {
        (str(target), int(synthesis)): float(value)
        for (target, synthesis, measure), value in figures.items()
        if measure == figure
    }


def _count_failed_controls(result: Disclosure) -> Iterator[FigureRow]:
    """Yield the number of failed controls of each file; NaN if one of them could not be measured."""
    identity, attribute = result.control_identity, result.control_attribute
    if identity.empty or attribute.empty:
        return
    for synthesis in identity.index:
        if synthesis not in attribute.index.get_level_values("synthesis"):
            continue
        of_file = attribute.xs(synthesis, level="synthesis")
        is_complete = set(map(str, of_file.index)) >= set(map(str, result.targets))
        exact = [
            float(identity.loc[synthesis, "copy_UiO"]) - float(identity.loc[synthesis, "copy_repU"]),
            *(of_file["copy_Dorig"] - of_file["copy_DiSCO"]),
            *of_file["copy_difference"],
        ]
        drawn = [*of_file["permuted_deviation"], *of_file["half_deviation"]]
        is_measured = is_complete and not any(map(math.isnan, (*exact, *drawn)))
        failed = sum(missed > 0 for missed in exact) + sum(off > LARGEST_DEVIATION for off in drawn)
        yield FigureRow("controls", None, int(synthesis), value=float(failed) if is_measured else math.nan)


def _list_further() -> Iterator[Figure]:
    """Yield the columns of the frames that no figure has, under names such as attribute.Dsyn."""
    abouts: dict[str, About] = {}
    taken: dict[str, set[str]] = {}
    for entry in FIGURES.values():
        for place in (entry.place, entry.weighed or entry.place):
            for frame in (place.frame, *(entry.also if place is entry.place else ())):
                if not place.about or frame in entry.also:
                    abouts.setdefault(frame, entry.about)
                taken.setdefault(frame, set()).update(place.columns.values())
    for frame, about in abouts.items():
        named = {*taken[frame], *GROUPS.get(frame, ()), "within"}
        for column, words in COLUMNS[frame].items():
            if column not in named:
                yield Figure(f"{frame}.{column}", words, Place(frame, column), about=about)


FURTHER: Mapping[str, Figure] = {entry.name: entry for entry in _list_further()}
"""The figures that stand in the library's frames alone: neither bounded, shown nor published."""


def list_entries() -> list[Figure]:
    """Return the entries of all columns of all frames."""
    return [*FIGURES.values(), *FURTHER.values()]


def find_entry(name: str) -> Figure | None:
    """Return the entry of a figure of the long table; None if this version has none."""
    return FIGURES.get(name) or FURTHER.get(name)
