"""`copies()` and `replicated_uniques()`: SD records that equal a GT record, or point at one person."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.counting.memory.partial_records import count_records
from disclosure_pipeline.counting.memory.whole_records import count_copies
from disclosure_pipeline.counting.opening import OpenedTables, link_tables, read_frames, read_shared_columns
from disclosure_pipeline.errors import InputError, UnitWarning
from disclosure_pipeline.evaluation.counts import TARGETS_ALONE, combine_columns, count_record_sets
from disclosure_pipeline.evaluation.frames import FiguresFrame, row_of, show_frame
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.attribute import unique_records
from disclosure_pipeline.measures.copies import (
    ENOUGH_RECORDS,
    MANY_REPEATS,
    CopyCounts,
    UnitCombinations,
    repeats_beyond_independence,
)
from disclosure_pipeline.measures.copies import copies as copies_of
from disclosure_pipeline.measures.exact import Floats, IntArray, percent
from disclosure_pipeline.measures.frequency import combine_keys
from disclosure_pipeline.measures.people import people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.alignment import check_tables, number_owners
from disclosure_pipeline.tables.events import Events
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import GROUND_TRUTH
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

ALL_COLUMNS = "all columns"


def copies(
    ground_truth: TableSource,
    synthetic: Syntheses,
    targets: Columns = None,
    *,
    unit: Hashable = None,
    events: Events | None = None,
) -> pd.DataFrame:
    """Count SD records that equal a GT record, in all columns and nearly, beside a fresh sample.

    Args:
        ground_truth: The confidential records, one a row, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        targets: The column or columns that are compared without the others, too.
        unit: The column of GT that says whose record each is, where people have several: see `disclosure()`.
        events: A second table of what happened to the people: see `disclosure()`.

    Returns:
        Index (synthesis, columns), where `columns` is "all columns", "all but …" for each column that all
        tables have, and "targets alone": near copies are seen where all that was changed is left out. Percent
        of the SD records: `copies` equal a GT record; `unique_copies` equal a GT record that no other GT
        record equals. `copies_others`: percent of the GT records that equal another one;
        `unique_copies_others`: percent of new records of the same population that would equal exactly one GT
        record (Good-Turing). Percent of the GT records, which no honest records beside copies dilute:
        `people_copied` equal no other GT record and are in the synthetic table, `people_copied_expected`
        would be in as large a fresh one. `…_beyond`: the differences, in percentage points; high is a risk;
        `…_beyond_se`: their standard errors; `people_copied_by_chance`: how far chance takes it. Missing
        values are equal to each other.

    Warns:
        UnitWarning: GT's records repeat, and no unit was given.

    Raises:
        InputError: No column is in all tables, one has no common kind of value, a target is not in all, or
            the unit is in a synthetic table or lacks values.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 30, 41, 52], "town": ["a", "a", "b", "c"]})
        >>> sd = pd.DataFrame({"age": [30, 41, 60, 61], "town": ["a", "b", "b", "c"]})
        >>> dp.copies(gt, sd)[["copies", "copies_others", "unique_copies", "people_copied"]]
                                copies  copies_others  unique_copies  people_copied
        synthesis columns
        1         all columns     50.0           50.0           25.0           25.0
                  all but age    100.0           50.0           75.0           50.0
                  all but town    50.0           50.0           25.0           25.0

    Source: this project's own; Good 1953, "The population frequencies of species and the estimation of
    population parameters".
    """
    if events is not None:
        ground_truth, synthetic = link_tables(ground_truth, synthetic, unit, events)
    tables = read_shared_columns(ground_truth, synthetic)
    columns = tables.code(tables.keys)
    names = [column.name for column in columns]
    wanted = [] if targets is None else _check_targets(targets, names)
    per_unit = 1.0
    if unit is None:
        sets: dict[str, Sequence[CopyCounts]] = {ALL_COLUMNS: count_copies(columns)}
        if len(columns) > 1:
            without = zip(names, count_records(columns).without, strict=True)
            sets |= {f"all but {name}": counts for name, counts in without}
        _warn_of_repeats(columns, list(sets.values()))
    else:
        owners = number_owners(tables.frames, unit)
        per_unit = len(owners) / len(np.unique(owners))
        count = partial(_count_by_unit, owners)
        sets = {ALL_COLUMNS: count(columns)}
        if len(columns) > 1:
            sets |= {
                f"all but {left_out.name}": count([column for column in columns if column is not left_out])
                for left_out in columns
            }
    if wanted:
        of_targets = [columns[names.index(name)] for name in wanted]
        sets[TARGETS_ALONE] = count_copies(of_targets) if unit is None else count(of_targets)
    rows = {
        (synthesis, label): figures
        for label, set_counts in sets.items()
        for synthesis, figures in enumerate(copy_figures(columns, set_counts, per_unit), start=1)
    }
    labels = sorted(rows, key=lambda label: label[0])  # by synthesis, and by set in their order
    index = pd.MultiIndex.from_tuples(labels, names=["synthesis", "columns"])
    return FiguresFrame([rows[label] for label in labels], index=index)


def _count_by_unit(unit: IntArray, columns: Sequence[CodedColumn]) -> list[CopyCounts]:
    q = combine_keys([column.codes for column in columns], [column.size for column in columns])
    counted = UnitCombinations.from_records(q.q[0], unit, q.size)
    return [
        CopyCounts(
            int(s[counted.d > 0].sum()),
            counted.count_repeated(),
            counted.count_hits(s),
            counted.count_people(s),
        )
        for s in q.counts[1:]
    ]


def _warn_of_repeats(columns: Sequence[CodedColumn], sets: Sequence[Sequence[CopyCounts]]) -> None:
    """Warn where more records repeat than by chance: in all columns, and without each in turn."""
    N = len(columns[0].tables[0].stored)
    shares = {
        column.name: (column.counts[0] / N)[column.tables[0].codes(slice(0, ENOUGH_RECORDS))]
        for column in columns
    }
    without = ([column for column in columns if column is not left_out] for left_out in columns)
    alone = [counts[0].people.alone for counts in sets]
    repeats = _find_most_repeats(zip([columns, *without], alone, strict=False), shares, N)
    if repeats > MANY_REPEATS:
        warnings.warn(
            f"{repeats:.0f} % of the records of {GROUND_TRUTH}, beyond chance, equal another one in all "
            "columns but one at most. Where people have several records, give the column that says whose "
            "each is as unit: else they count as other people's.",
            UnitWarning,
            stacklevel=3,
        )


MOST_CELLS = 1_000_000_000
"""Values that are looked at, at most, to see whether the records of a table repeat: a minute or less."""

_FEWEST_SETS = 3


def find_repeats(opened: OpenedTables, columns: Sequence[CodedColumn]) -> tuple[float, float]:
    """Return the percent of GT records that equal another one in all of the columns, and of repeats.

    These are in all columns, or in all but one: the largest beyond what columns drawn apart show, see
    `MANY_REPEATS`. Of very large, wide tables only a few columns are left out in turn, those of the most
    levels: what changes from one record of a person to the next is a time, an amount or the like.
    """
    N = int(columns[0].counts[0].sum())
    shares = {
        column.name: (column.counts[0] / column.counts[0].sum())[column.codes[0]]
        for column in opened.code_records(columns, ENOUGH_RECORDS, 0)
    }
    alone = _count_alone(opened, columns, N)
    most = [(of_set, number) for of_set, number in alone if len(of_set) >= len(columns) - 1]
    return percent(N - alone[0][1], N), _find_most_repeats(most, shares, N)


def _find_most_repeats(
    alone: Iterable[tuple[Sequence[CodedColumn], int]], shares: Mapping[Any, Floats], records: int
) -> float:
    """Return the largest `repeats_beyond_independence` of some sets of columns."""
    return max(
        repeats_beyond_independence(records - number, [shares[column.name] for column in of_set], records)
        for of_set, number in alone
    )


def _count_alone(
    opened: OpenedTables, columns: Sequence[CodedColumn], records: int
) -> list[tuple[Sequence[CodedColumn], int]]:
    """Return all columns first, then all but some, each with the number of records that no other equals."""
    if records * len(columns) ** 2 <= MOST_CELLS:
        _, sets = count_record_sets(opened, [], columns, [])
        alone = [found[0].people.alone for found in sets.partial.values()]
        return [(columns, sets.whole[0].people.alone), *zip(sets.columns.values(), alone, strict=True)]
    by_levels = sorted(columns, key=lambda column: -int((column.counts[0] > 0).sum()))
    left_out = by_levels[: max(_FEWEST_SETS, MOST_CELLS // (records * len(columns)))]
    chosen = [columns, *([column for column in columns if column is not one] for one in left_out)]
    counted = opened.count([CountRequest(of_set) for of_set in chosen], ignore_progress)
    return [(of_set, of.keys[0].people.alone) for of_set, of in zip(chosen, counted, strict=True)]


def _check_targets(targets: Any, shared: Sequence[Any]) -> list[Any]:
    is_one_name = isinstance(targets, str) or not isinstance(targets, Iterable)
    names = [targets] if is_one_name else list(targets)
    for name in names:
        if name not in shared:
            raise InputError(f"Target {name!r} is not in all tables.")
    if not names:
        raise InputError("targets is empty: name at least one column, or leave it out.")
    return names


def copy_figures(
    columns: Sequence[CodedColumn], counts: Sequence[CopyCounts], records_per_unit: float = 1
) -> list[dict[str, float]]:
    """Return the figures of each synthesis, from its counts."""
    N_d, *N_s = (len(table.stored) for table in columns[0].tables)
    return [
        row_of(copies_of(of_synthesis, Sizes(N_d, n), records_per_unit))
        | row_of(
            people_copied(
                of_synthesis.people,
                Sizes(N_d, n),
                records_per_unit=records_per_unit,
                triples=of_synthesis.unique.triples,
            )
        )
        for of_synthesis, n in zip(counts, N_s, strict=True)
    ]


def copies_frame(columns: int, copies: Sequence[int], records: Sequence[int]) -> pd.DataFrame:
    """Return the frame of exact copies, from the `copies` in each synthesis of so many `records`."""
    return pd.DataFrame(
        [
            {"columns": columns, "copies": number, "percent": percent(number, total)}
            for number, total in zip(copies, records, strict=True)
        ],
        index=pd.RangeIndex(1, len(copies) + 1, name="synthesis"),
    )


Which = Literal["replicated", "in_original"]


@dataclass(frozen=True, repr=False, eq=False)
class ReplicatedUniques:
    """The synthetic records whose key combination is unique in their table.

    `replicated`: those that are unique in GT too; `in_original`: those that occur in GT, unique or not. Each
    has a mask for every synthesis over its records, in their order. `figures`: index synthesis; n_replicated
    and n_in_original, numbers of records, and pct_replicated and pct_in_original, percent of the SD records.
    """

    keys: tuple[Any, ...]
    replicated: tuple[npt.NDArray[np.bool_], ...]
    in_original: tuple[npt.NDArray[np.bool_], ...]
    figures: pd.DataFrame
    _syntheses: tuple[pd.DataFrame, ...]

    def remove(self, which: Which = "replicated") -> tuple[pd.DataFrame, ...]:
        """Return each synthesis without its records of `which` kind, as pandas' frame with its index.

        For a table of Polars, `table.filter(~uniques.replicated[0])` does the same.
        """
        if which not in {"replicated", "in_original"}:
            raise InputError(f"which must be 'replicated' or 'in_original', not {which!r}.")
        masks = self.replicated if which == "replicated" else self.in_original
        return tuple(frame.loc[~mask].copy() for frame, mask in zip(self._syntheses, masks, strict=True))

    def __str__(self) -> str:
        return (
            f"Records that are unique in the keys {', '.join(map(str, self.keys))}\n\n"
            f"{show_frame(self.figures)}"
        )

    __repr__ = __str__


def replicated_uniques(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> ReplicatedUniques:
    """Find the synthetic records that point at one person.

    Arguments and errors as in `disclosure()`; the tables are read into memory.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 50, 50]})
        >>> synthetic = pd.DataFrame({"sex": ["f", "m", "m"], "age": [30, 50, 60]})
        >>> uniques = dp.replicated_uniques(patients, synthetic, ["sex", "age"])
        >>> uniques.replicated[0].tolist(), uniques.in_original[0].tolist()
        ([True, False, False], [True, True, False])
        >>> [without] = uniques.remove()
        >>> without
          sex  age
        1   m   50
        2   m   60

    Source: synthpop `replicated.uniques`.
    """
    grouping = grouping_of(groups, special_values, edges)
    frames = read_frames(ground_truth, synthetic, grouping.numeric)
    tables = check_tables(frames[0], frames[1:], keys, (), grouping)
    key_columns = tables.code(tables.keys)
    warn_of_doubts(find_doubts(tables, key_columns))
    q = combine_columns(key_columns)
    syntheses = tables.frames[1:]
    replicated, in_original = zip(*(unique_records(q, i + 1) for i in range(len(syntheses))), strict=True)
    figures: dict[str, list[float]] = {}
    for name, masks in (("replicated", replicated), ("in_original", in_original)):
        numbers = [int(mask.sum()) for mask in masks]
        figures[f"n_{name}"] = list(numbers)
        figures[f"pct_{name}"] = [percent(n, len(mask)) for n, mask in zip(numbers, masks, strict=True)]
    index = pd.RangeIndex(1, len(syntheses) + 1, name="synthesis")
    return ReplicatedUniques(
        tables.keys, replicated, in_original, pd.DataFrame(figures, index=index), syntheses
    )
