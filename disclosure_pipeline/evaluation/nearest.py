"""`nearest()`: whether the synthetic records are nearer to people than other people are."""

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
from disclosure_pipeline.evaluation.frames import FiguresFrame, frame_of, names_of, row_of
from disclosure_pipeline.measures.exact import IntArray, Mask, total
from disclosure_pipeline.measures.nearest import DistancesToParts, Nearness, near_copies, nearness
from disclosure_pipeline.tables.alignment import number_owners
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.sources import Syntheses, TableSource

EVERYBODY = 20_000
"""The largest number of GT records that are all looked at; of more it is a sample."""

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

    It sees near copies, which equality cannot. The larger of SD and the other GT records is thinned to the
    size of the smaller, by a seeded draw: a fresh sample of the same population is nearer to 50 %.

    Distances are taken three ways, each a sum over the columns that all tables have. "ranks": 0 or 1, and for
    numbers and dates the difference of their mid-ranks in both tables together, divided by their number of
    records. "values": the same with the difference of the values, divided by the range of the middle nine
    tenths of them, at most 1. "columns": how many disagree, numbers and dates by more than a twentieth of
    that range. A missing value disagrees with everything but a missing value. Of large tables only records
    are compared that agree in at least one of a few blocks of columns: the same choice for SD and for the
    other GT records.

    Args:
        ground_truth: The confidential records, one a row, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        sample: How many GT records are looked at, at most, a seeded draw; None for all of up to 20,000, and
            for 2,000 of more.
        seed: Of all draws.
        unit: The column of GT that says whose record each is, where people have several: see `disclosure()`.

    Returns:
        Index (synthesis, distance); `nearer`: percent of the GT records looked at that are nearer to an SD
        record, where equally near counts half; `nearer_low`, `nearer_high`: the Wilson interval of 95 % for
        all GT records; `much_nearer`: percentage points, those with an SD record at half the distance of the
        nearest other GT record or less, minus those the other way round (0 in a fresh sample), and
        `much_nearer_either_way`, both together; `records`: how many were looked at. High is a risk.

    Raises:
        InputError: No column is in all tables, one has no common kind of value, GT has one record only (or
            the records of one unit), or the unit is in a synthetic table or lacks values.

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
    owners = None if unit is None else number_owners(tables.frames, unit)
    comparisons = draw_comparisons(columns, seed, sample, owners)
    return FiguresFrame(nearness_frame(nearest_distances(columns, comparison) for comparison in comparisons))


def draw_comparisons(
    columns: Sequence[CodedColumn], seed: int, sample: int | None = None, unit: IntArray | None = None
) -> Iterator[Comparison]:
    """Return what `nearest` compares, of each synthesis, by the numbers of records. InputError as there.

    `unit`: whose each GT record is, where people have several: all of them are left out for each of them.
    """
    N_d, *N_s = (total(counts) for counts in columns[0].counts)
    if N_d == 1 or (unit is not None and (unit == unit[0]).all()):
        raise InputError("The ground truth has one record: there are no others to be nearer.")
    if sample is None:
        sample = N_d if N_d <= EVERYBODY else SAMPLE
    persons = np.flatnonzero(_draw_records(N_d, min(sample, N_d), np.random.default_rng([seed, 0])))
    for synthesis, records in enumerate(N_s, start=1):
        most = 1 if unit is None else int(np.bincount(unit).max())
        n = min(records, N_d - most)
        rng = np.random.default_rng([seed, 1])
        if unit is None or most == 1:
            others, left_out = _thinned_others(N_d, n, persons, rng)
        else:
            others, left_out = _others_of_units(unit, most, n, persons, rng)
        shown = _draw_records(records, n, np.random.default_rng([seed, 2]))
        tables = (ComparedTable(synthesis, shown), ComparedTable(0, others))
        yield Comparison(persons, tables, (np.full(len(persons), -1), left_out))


def nearness_frame(distances: Iterable[Sequence[IntArray]]) -> pd.DataFrame:
    """Return what `nearest` returns, from the distances of persons to SD and to others, of each synthesis."""
    rows = {
        (synthesis, kind): row_of(nearness(to_SD[row], to_others[row]))
        for synthesis, (to_SD, to_others) in enumerate(distances, start=1)
        for row, kind in enumerate(DISTANCES)
    }
    return frame_of(rows, ["synthesis", "distance"], names_of(Nearness))


def _draw_records(records: int, n: int, rng: np.random.Generator) -> Mask:
    """Marks n records of so many, by a draw: of these, or of the others if they are fewer."""
    others = records - n < n
    drawn = np.full(records, others)
    drawn[rng.choice(records, records - n if others else n, replace=False, shuffle=False)] = not others
    return drawn


def _thinned_others(N_d: int, n: int, persons: IntArray, rng: np.random.Generator) -> tuple[Mask, IntArray]:
    """Draw n + 1 GT records, and for each person the one of them to leave out: n others for everybody."""
    drawn = _draw_records(N_d, n + 1, rng)
    one_of_drawn = np.flatnonzero(drawn)[rng.integers(n + 1)]
    return drawn, np.where(drawn[persons], persons, one_of_drawn)


def _others_of_units(
    unit: IntArray, most: int, n: int, persons: IntArray, rng: np.random.Generator
) -> tuple[Mask, IntArray]:
    """Leave out the records of each person's unit, and others where it has fewer than `most`.

    n records more than `most` are drawn. Left out are `most` for each person (shape: most, persons).
    """
    drawn = _draw_records(len(unit), n + most, rng)
    numbers = np.flatnonzero(drawn)
    pool = rng.permutation(numbers)[: 2 * most]
    by_unit = numbers[np.argsort(unit[numbers], kind="stable")]
    first = np.searchsorted(unit[by_unit], unit[persons])
    last = np.searchsorted(unit[by_unit], unit[persons], side="right")
    left_out = np.empty((most, len(persons)), dtype=np.int64)
    for person, (start, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        rest = pool[unit[pool] != unit[persons[person]]][: most - (end - start)]
        left_out[:, person] = np.concatenate((by_unit[start:end], rest))
    return drawn, left_out


MANY_TIMES = 2
"""At more SD records than so many times GT's, all of them are looked at."""

MOST_RECORDS = 400_000
"""Records of each table, at most, of which the nearest are looked for."""

_PERSONS = 1_000
_PARTS = 3


def is_diluted(columns: Sequence[CodedColumn], synthesis: int) -> bool:
    """Return whether a synthesis has many times the GT records."""
    return total(columns[0].counts[synthesis]) > MANY_TIMES * total(columns[0].counts[0])


def find_near_copies(
    columns: Sequence[CodedColumn], synthesis: int, seed: int, unit: IntArray | None = None
) -> tuple[float, float]:
    """Return the largest `near_copies` of the distances: points, and how far chance takes them.

    `columns` have a code for each record, and are not grouped. People are cut into three parts, by a draw:
    each in turn is looked at beside the other two. `unit`: whose each GT record is; a unit is in one part.
    """
    pair = _in_order([column.only((0, synthesis)) for column in columns], unit)
    columns, owners = pair
    rng = np.random.default_rng([seed, 3])
    N_d, N_s = (total(counts) for counts in columns[0].counts)
    owner, number = np.unique(owners, return_inverse=True)
    part_of_GT = rng.permutation(np.arange(len(owner)) % _PARTS)[number]
    part_of_SD = rng.permutation(np.arange(N_s) % _PARTS)
    turned = [column.only((1, 0)) for column in columns]
    all_of_SD = np.ones(N_s, dtype=bool)
    of_people: list[list[IntArray]] = []
    of_SD: list[list[IntArray]] = []
    for part in range(_PARTS):
        others = [part_of_GT == other for other in range(_PARTS) if other != part]
        persons = _draw(np.flatnonzero(part_of_GT == part), rng)
        records = _draw(np.flatnonzero(part_of_SD == part), rng)
        nobody, nothing = np.full(len(persons), -1), np.full(len(records), -1)
        of_people.append(
            nearest_distances(
                columns,
                Comparison(
                    persons,
                    (ComparedTable(1, all_of_SD), *(ComparedTable(0, other) for other in others)),
                    (nobody, nobody, nobody),
                ),
            )
        )
        of_SD.append(
            nearest_distances(
                turned,
                Comparison(
                    records,
                    (ComparedTable(0, all_of_SD), *(ComparedTable(1, other) for other in others)),
                    (records, nothing, nothing),
                    ground_truth=1,
                ),
            )
        )
    looked_at = sum(distances[0].shape[1] for distances in of_people)
    units = 1 / (N_d / len(owner) / looked_at + 1 / len(owner))
    found = [
        near_copies(_join(of_people, kind), _join(of_SD, kind), _PARTS * N_s / N_d, units, len(DISTANCES))
        for kind in range(len(DISTANCES))
    ]
    return max(found, key=lambda figure: (figure[0] > figure[1], figure[0]))


def _in_order(columns: Sequence[CodedColumn], unit: IntArray | None) -> tuple[list[CodedColumn], IntArray]:
    """Return the records in the order of their values, for engines have their own, and GT's owners."""
    positions = [np.lexsort([column.codes[table] for column in columns]) for table in (0, 1)]
    owners = np.arange(len(positions[0])) if unit is None else unit[positions[0]]
    return [column.draw(positions) for column in columns], owners


def _draw(positions: IntArray, rng: np.random.Generator) -> IntArray:
    most = _PERSONS // _PARTS
    return positions if len(positions) <= most else np.sort(rng.choice(positions, most, replace=False))


def _join(of_parts: Sequence[Sequence[IntArray]], kind: int) -> DistancesToParts:
    return DistancesToParts(
        *(np.concatenate([distances[table][kind] for distances in of_parts]) for table in range(3))
    )
