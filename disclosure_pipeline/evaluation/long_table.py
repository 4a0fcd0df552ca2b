"""The long table of figures: one row a figure, what it is about, and the part of a candidate that it is of.

A gate judges these rows, Great Expectations compares them, and the dossier, its page and the statement show
them: nobody looks a figure up again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.entry import Figure, Place
from disclosure_pipeline.measures.words import SYNTHETIC, Basis

if TYPE_CHECKING:
    from disclosure_pipeline.evaluation.result import Disclosure

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

OF_GROUPS = "subgroups"
"""The frame of figures of groups of people; its index begins with `_GROUP`."""

_GROUP = ("column", "group")

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
    it is of, as a column and its level; empty for everyone.
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
    group: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        # From Python 3.13 on, a dataclass with NaN would not equal its copy.
        return isinstance(other, FigureRow) and self.to_record() == other.to_record()

    def __hash__(self) -> int:
        return hash((self.figure, self.place))

    @property
    def place(self) -> tuple[str | None, tuple[str, ...], Part, bool]:
        """(about, group, part, True if it is by weight), by which the rows of a figure differ."""
        return self.about, self.group, self.part, self.basis == "people"

    def to_record(self) -> dict[str, Any]:
        """Return the row as plain JSON: a number that is not finite is None, and everyone is no group."""
        record = {name: _to_plain(value) for name, value in asdict(self).items() if name != "group"}
        return record | {"group": list(self.group)} if self.group else record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> FigureRow:
        """Read the output of `to_record`. Raise KeyError or TypeError if it is damaged."""
        values: dict[str, Any] = {
            name: record[name] for name in _NAMES if name in record or name not in _LATER
        }
        values["group"] = tuple(values.get("group", ()))
        if values.get("where", "").startswith(_EARLIER_BASIS):
            rest = values["where"].removeprefix(_EARLIER_BASIS).removeprefix(", ")
            values |= {"basis": SYNTHETIC, "where": rest}
        return cls(**values | {name: math.nan for name in NUMBERS if values[name] is None})


_EARLIER_BASIS = "counted by synthetic records"
"""How an earlier version began `where` instead of having a basis."""

_LATER = ("where", "group")
"""The columns that rows of earlier versions lack."""

_NAMES = tuple(column.name for column in fields(FigureRow))
NUMBERS = tuple(column.name for column in fields(FigureRow) if column.type == "float")
"""The columns of the long table that are numbers."""


def _to_plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def tabulate_figures(result: Disclosure) -> tuple[FigureRow, ...]:
    """Return the rows of all figures of the catalogue, of each file and of all of them together."""
    return tuple(row for entry in FIGURES.values() for row in list_rows(entry, result))


def frame_figures(rows: Sequence[FigureRow]) -> pd.DataFrame:
    """Return the long table as a frame, with groups as text."""
    records = [asdict(row) | {"group": ": ".join(row.group)} for row in rows]
    return pd.DataFrame(records, columns=list(_NAMES))


PLACES = "places"
"""The places of a row among those of its frame, by exact figures, in the edition for publication."""


def view_frame(figures: Mapping[str, Any], frame: str) -> list[dict[str, Any]]:
    """Return the rows of the long table of a dossier's `figures` as a frame of the library, by its names.

    Each has the `synthesis` (or the `releases` that it is of), what it is about, and the columns of the frame
    that the catalogue has; `<figure>_holdout` is the figure of a holdout. In the edition for publication,
    `PLACES` orders them.
    """
    rows: dict[Any, dict[str, Any]] = {}
    for record in figures["table"]:
        entry, about, part = FIGURES.get(record["figure"]), record["about"], record["part"]
        if entry is None or not _has_part(frame, part):
            continue
        place, group = entry.find_place(record["basis"]), record.get("group", ())
        is_own = frame == place.frame and place.about in {"", about}
        if (not is_own and frame not in entry.also) or (frame == OF_GROUPS) != bool(group):
            continue
        label = None if is_own and place.about else entry.about or None
        of_row = dict(zip(_GROUP, group, strict=False)) | ({} if label is None else {str(label): about})
        row = rows.setdefault((label and about, *group, part), of_row)
        row["releases" if frame in OVER_RELEASES else "synthesis"] = part
        for name in NUMBERS:
            column = getattr(place, name, f"{entry.name}_{name}")
            if column and isinstance(column, str):
                row[column] = record[name]
        if record["where"]:
            row["where"] = record["where"]
    places = figures.get(PLACES, {}).get(frame)
    if places is None:
        return list(rows.values())
    return [{**row, PLACES: placed} for row, placed in zip(rows.values(), places, strict=True)]


def tabulate_key_overlap(key_overlap: pd.DataFrame, files: int) -> tuple[FigureRow, ...]:
    """Return the rows of the shared values of keys from their frame alone; `files`: a candidate's."""
    overlaps = [FIGURES[name] for name in ("key_overlap", "whole_key_overlap")]
    sizes = _Sizes(1, (1,) * files)
    return tuple(row for entry in overlaps for row in _read_place(entry, entry.place, key_overlap, sizes))


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


def list_rows(entry: Figure, result: Disclosure) -> Iterator[FigureRow]:
    """Yield the rows of one figure: see `tabulate_figures`."""
    if entry.name == "controls":
        yield from _count_failed_controls(result)
        return
    files, stacked = len(result.N_s), result.stacked
    sizes = _Sizes(result.N_d, result.N_s, _find_holdout(result, entry.name))
    parts = [(result, False)]
    if entry.is_stacked and not entry.is_of_release and stacked is not None and files > 1:
        parts.append((stacked, True))
    for measured, is_stacked in parts:
        for place, basis in _list_places(entry, files):
            frame = measured.frame(place.frame)
            yield from _read_place(entry, place, frame, sizes, basis, is_stacked=is_stacked)
        if entry.is_per_confidential_table:
            name = FOUND_OF_CONFIDENTIAL if entry.about == "way" else CONFIDENTIAL
            frame, place = measured.frame(name), entry.place
            yield from _read_frame(entry, place, frame, CONFIDENTIAL, sizes, is_stacked=is_stacked)


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
    frame: pd.DataFrame,
    sizes: _Sizes,
    basis: Basis = "records",
    *,
    is_stacked: bool = False,
) -> Iterator[FigureRow]:
    if frame.empty:
        return
    if place.frame == "key_overlap":
        is_whole = frame.index.get_level_values("key") == WHOLE_KEY
        frame = frame[is_whole == (entry.about == "")]
    label = None if place.about else entry.about or None
    yield from _read_frame(entry, place, frame, label, sizes, basis, is_stacked=is_stacked)


def _read_frame(
    entry: Figure,
    place: Place,
    frame: pd.DataFrame,
    label: str | None,
    sizes: _Sizes,
    basis: Basis = "records",
    *,
    is_stacked: bool,
) -> Iterator[FigureRow]:
    """Yield a row for each row of a frame; none if the frame has not what is bounded."""
    if frame.empty or not _has_figure(place, frame):
        return
    is_of_groups = place.frame == OF_GROUPS
    holdout = {} if is_stacked or is_of_groups or basis == "people" else sizes.holdout
    last = frame.index.get_level_values("releases").max() if place.frame in OVER_RELEASES else None
    of_figure = frame[frame.columns.intersection([*place.columns, "where", "basis"])]
    for row in of_figure.reset_index().to_dict("records"):
        about = place.about or (None if label is None else str(row[label]))
        if label == CONFIDENTIAL and entry.about == "way":
            about = name_way(row["way"], str(about))
        part = _name_part(place.frame, row, last, is_stacked=is_stacked)
        value = _read_value(place, row)
        if last not in {None, row.get("releases")} and math.isnan(value):
            continue
        yield FigureRow(
            entry.name,
            about,
            part,
            row.get("basis", basis),
            value=value,
            at_n=_read_at_n(place, row),
            others=_read_others(place, row),
            beyond=_read(row, place.beyond),
            se=_read(row, place.se),
            by_chance=_read(row, place.by_chance),
            beyond_chance=_read(row, place.beyond_chance),
            own=_read(row, place.own),
            permuted=_read(row, place.permuted),
            holdout=holdout.get((about or WHOLE_KEY, part), math.nan),
            is_larger=sizes.count(part) > sizes.N_d,
            where=row.get("where", ""),
            group=tuple(str(row[name]) for name in _GROUP) if is_of_groups else (),
        )


def name_way(way: str, table: str) -> str:
    """Return what people who are found in a way are called if they are those of a further table."""
    return f"{way} of {table}"


def _has_figure(place: Place, frame: pd.DataFrame) -> bool:
    columns = place.value if isinstance(place.value, tuple) else (place.value or place.beyond,)
    return any(column in frame.columns for column in columns)


def _has_part(frame: str, part: Part) -> bool:
    """Return True if a frame of the library has rows of a part."""
    if frame in OVER_RELEASES:
        return part not in {ALL_FILES, ANY_FILE} and isinstance(part, str)
    return part == ANY_FILE if frame == "together" else isinstance(part, int)


def _name_part(frame: str, row: Mapping[Any, Any], last: Any, *, is_stacked: bool) -> Part:
    """Return the part that a row is of; `last`: the number of releases together with the candidate."""
    if is_stacked:
        return ALL_FILES
    if frame in OVER_RELEASES:
        return WITH_RELEASES if row["releases"] == last else write_count(row["releases"], "release")
    return ANY_FILE if frame == "together" else int(row["synthesis"])


def _read(row: Mapping[Any, Any], column: str) -> float:
    value = row.get(column)
    return math.nan if value is None else float(value)


def _read_value(place: Place, row: Mapping[Any, Any]) -> float:
    """Return the figure: of several columns the smallest, NaN if one is not finite."""
    if isinstance(place.value, str):
        return _read(row, place.value)
    values = [_read(row, column) for column in place.value if column in row or not place.is_of_any]
    return min(values) if values and all(map(math.isfinite, values)) else math.nan


def _read_others(place: Place, row: Mapping[Any, Any]) -> float:
    names = (place.others,) if isinstance(place.others, str) else place.others
    values = [value for name in names if math.isfinite(value := _read(row, name))]
    return max(values, default=math.nan)


# Frames whose differences are of as many records as GT has, but which do not show the figure of these.
_WITHOUT_AT_N = ("bands", "together", "released_targets")


def _read_at_n(place: Place, row: Mapping[Any, Any]) -> float:
    if place.frame in _WITHOUT_AT_N:
        return _read_others(place, row) + _read(row, place.beyond)
    return _read(row, place.at_n)


def _find_holdout(result: Disclosure, figure: str) -> dict[tuple[str, Part], float]:
    """Return the figure of the holdout by target and synthesis."""
    if result.holdout.empty:
        return {}
    rows = result.holdout.reset_index()
    rows = rows[rows["measure"] == figure]
    return {
        (str(target), int(synthesis)): float(value)
        for target, synthesis, value in zip(rows["target"], rows["synthesis"], rows["holdout"], strict=True)
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
        deviations = [
            (float(identity.loc[synthesis, "copy_UiO"]) - float(identity.loc[synthesis, "copy_repU"]), 0.0),
            *((missed, 0.0) for missed in of_file["copy_Dorig"] - of_file["copy_DiSCO"]),
            *((difference, 0.0) for difference in of_file["copy_difference"]),
            *((deviation, LARGEST_DEVIATION) for deviation in of_file["permuted_deviation"]),
            *((deviation, LARGEST_DEVIATION) for deviation in of_file["half_deviation"]),
        ]
        is_measured = is_complete and not any(math.isnan(deviation) for deviation, _ in deviations)
        failed = sum(deviation > largest for deviation, largest in deviations)
        yield FigureRow("controls", None, int(synthesis), value=float(failed) if is_measured else math.nan)
