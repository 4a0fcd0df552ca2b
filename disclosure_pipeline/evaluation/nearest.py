"""`nearest()`: how many GT records are nearer to a synthetic record than to any other GT record."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.memory.nearest_records import (
    DISTANCES,
    ComparedTable,
    Comparison,
    nearest_distances,
)
from disclosure_pipeline.counting.opening import read_shared_columns
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import require_whole_number
from disclosure_pipeline.evaluation.frames import FiguresFrame, build_frame, to_row
from disclosure_pipeline.measures.exact import IntArray, Mask, total
from disclosure_pipeline.measures.nearest import nearness
from disclosure_pipeline.tables.alignment import number_owners
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.sources import Syntheses, TableSource

EVERYBODY = 20_000
"""The largest number of GT records that are all compared; of more, only a sample is."""

SAMPLE = 2_000


def nearest(
    ground_truth: TableSource,
    synthetic: Syntheses,
    *,
    sample: int | None = None,
    seed: int = 0,
    unit: Hashable | None = None,
) -> pd.DataFrame:
    """Count GT records that are nearer to a synthetic record than to any other GT record.

    This finds near copies, which a test for equality cannot. The larger of SD and the other GT records is
    thinned to the size of the smaller by a seeded draw, so a fresh sample of the same population is nearer to
    50 % of the GT records.

    Three distances are measured, each summed over the columns that all tables have. "ranks": 0 or 1, and for
    numbers and dates the difference of their mid-ranks in both tables together, divided by the number of
    records. "values": the same with the difference of the values, divided by the range of their middle nine
    tenths, at most 1. "columns": the number of columns that disagree, numbers and dates by more than a
    twentieth of that range. A missing value disagrees with everything but a missing value. In large tables
    only records that agree in at least one of a few blocks of columns are compared; SD and the other GT
    records are treated alike.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        sample: The most GT records to compare, in a seeded draw; None for all of them up to 20,000, and for
            2,000 of more.
        seed: The seed of all draws.
        unit: The column of GT that says whose record each is, where people have several: see `disclosure()`.

    Returns:
        Index (synthesis, distance); `nearer`: percent of the compared GT records that are nearer to an SD
        record, with ties counted as half; `nearer_low`, `nearer_high`: its 95 % Wilson interval;
        `much_nearer` (percentage points): records whose nearest SD record is at most half as far as the
        nearest other GT record, minus those the other way round (0 in a fresh sample);
        `much_nearer_either_way`: the sum of both; `records`: the number of compared records. High is a risk.

    Raises:
        InputError: No column is in all tables, a column has values of different kinds, GT has a single record
            (or unit), or the unit is in a synthetic table or lacks values.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> ages = np.random.default_rng(1).integers(18, 90, (300, 3))
        >>> gt = pd.DataFrame(ages, columns=["a", "b", "c"])
        >>> dp.nearest(gt, gt + 1).loc[1, "much_nearer"].round(1).to_dict()
        {'ranks': 69.0, 'values': 75.3, 'columns': 74.0}

    Source: this project's own.
    """
    if sample is not None:
        require_whole_number("sample", sample, 1)
    require_whole_number("seed", seed, 0)
    tables = read_shared_columns(ground_truth, synthetic)
    columns = tables.code(tables.keys)
    owners = number_owners(tables.frames, unit)
    comparisons = draw_comparisons(columns, seed, owners, sample)
    return FiguresFrame(_build_frame(nearest_distances(columns, comparison) for comparison in comparisons))


def draw_comparisons(
    columns: Sequence[CodedColumn], seed: int, unit: IntArray, sample: int | None = None
) -> Iterator[Comparison]:
    """Draw the records that `nearest` compares, for each synthesis. InputError as there.

    `unit`: whose each GT record is; nobody is compared with their own records.
    """
    N_d, *N_s = (total(counts) for counts in columns[0].counts)
    if (unit == unit[0]).all():
        raise InputError("The ground truth has a single record (or unit): there are no others to compare.")
    if sample is None:
        sample = N_d if N_d <= EVERYBODY else SAMPLE
    persons = np.flatnonzero(_draw_records(N_d, min(sample, N_d), np.random.default_rng([seed, 0])))
    for synthesis, records in enumerate(N_s, start=1):
        most = int(np.bincount(unit).max())
        n = min(records, N_d - most)
        rng = np.random.default_rng([seed, 1])
        others, left_out = _draw_others(unit, most, n, persons, rng)
        shown = _draw_records(records, n, np.random.default_rng([seed, 2]))
        nobody = np.full(len(persons), -1)
        tables = (ComparedTable(synthesis, shown, nobody), ComparedTable(0, others, left_out))
        yield Comparison(persons, tables)


def _build_frame(distances: Iterable[Sequence[IntArray]]) -> pd.DataFrame:
    """Return the frame of `nearest` from the distances of persons to SD and to others, by synthesis."""
    rows = {
        (synthesis, kind): to_row(nearness(to_SD[row], to_others[row]))
        for synthesis, (to_SD, to_others) in enumerate(distances, start=1)
        for row, kind in enumerate(DISTANCES)
    }
    return build_frame(rows, ["synthesis", "distance"])


def _draw_records(records: int, n: int, rng: np.random.Generator) -> Mask:
    """Return a mask of n records, drawn at random (by drawing the others if they are fewer)."""
    draws_others = records - n < n
    drawn = np.full(records, draws_others)
    number = records - n if draws_others else n
    drawn[rng.choice(records, number, replace=False, shuffle=False)] = not draws_others
    return drawn


def _draw_others(
    unit: IntArray, most: int, n: int, persons: IntArray, rng: np.random.Generator
) -> tuple[Mask, IntArray]:
    """Draw n + `most` GT records, and the `most` to leave out for each person (shape: most, persons).

    These are the records of the person's unit, and random others if it has fewer.
    """
    drawn = _draw_records(len(unit), n + most, rng)
    numbers = np.flatnonzero(drawn)
    # One of another person is enough for somebody with a single record.
    pool = numbers[rng.integers(len(numbers), size=1)] if most == 1 else rng.permutation(numbers)[: 2 * most]
    by_unit = numbers[np.argsort(unit[numbers], kind="stable")]
    first = np.searchsorted(unit[by_unit], unit[persons])
    last = np.searchsorted(unit[by_unit], unit[persons], side="right")
    is_own = unit[pool][:, np.newaxis] == unit[persons]
    others = pool[np.argsort(is_own, axis=0, kind="stable")][:most]
    place = np.arange(most)[:, np.newaxis]
    own, further = np.minimum(first + place, len(numbers) - 1), np.maximum(place - (last - first), 0)
    is_left = place < last - first
    return drawn, np.where(is_left, by_unit[own], np.take_along_axis(others, further, axis=0))
