"""Near copies in a table much larger than GT: thinned to GT's size, few of them would be left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from disclosure_pipeline.counting.memory.nearest_records import (
    DISTANCES,
    ComparedTable,
    Comparison,
    nearest_distances,
)
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.measures.nearness import DistancesToParts, near_copies
from disclosure_pipeline.tables.levels import CodedColumn

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
