"""Disclosure of groups of GT records, and which groups are large enough to be reported.

A group is attacked with all of SD, and compared with all other GT records, not only with those of the group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from disclosure_pipeline.measures.baselines import (
    baseline_counts,
    compare_guesses,
    standard_error,
    sum_of_squares,
)
from disclosure_pipeline.measures.exact import SCALE, IntArray, Mask, percent, sum_by_position, total
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.guesses import Guessing
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, to_integer_chances, wilson
from disclosure_pipeline.measures.words import (
    BEYOND_OTHERS,
    BY_OTHERS,
    BY_SYNTHETIC,
    NONE,
    RAAB,
    RECORDS,
    WILSON,
    described,
    figure,
    interval_end,
    neutral,
    points,
    standard_error_of,
)

_FEWEST_MERGED = 2


@dataclass(frozen=True)
class Subgroup:
    """Percent of the group's `records`; each `beyond` in percentage points. Intervals are of 95 %.

    lift: the group's share of the records that DiSCO counts, divided by its share of GT; 1 is the average.
    NaN if DiSCO counts no record.
    """

    records: int = neutral(
        "people of the group", "Confidential records that belong to the group.", RECORDS, beside="people"
    )
    DiSCO: float = figure(
        "disclosed in the synthetic table and correct",
        "People of the group whose target is disclosed.",
        denominator="group's records",
        source=RAAB,
        beside=BY_SYNTHETIC,
    )
    DiSCO_low: float = interval_end("DiSCO", "lower", denominator="group's records", source=WILSON)
    DiSCO_high: float = interval_end("DiSCO", "upper", denominator="group's records", source=WILSON)
    DiSCO_others: float = neutral(
        "DiSCO by other people's records",
        "People of the group whose target other people's records would disclose.",
        denominator="group's records",
        beside=BY_OTHERS,
    )
    DiSCO_beyond: float = points(
        "DiSCO beyond other people's records",
        "How many more people of the group have their target disclosed than by other people's records.",
        beside=BEYOND_OTHERS,
    )
    DiSCO_beyond_se: float = described(standard_error_of("DiSCO_beyond"))
    guessed_beyond: float = points(
        "guessed beyond other people's records",
        "How many more people of the group have their target guessed correctly than from other people's "
        "records.",
    )
    guessed_beyond_se: float = described(standard_error_of("guessed_beyond"))
    lift: float = figure(
        "lift",
        "How many times as often as the average the group's target is disclosed; 1 is the average.",
        NONE,
        beside="times the average",
    )
    lift_low: float = interval_end("lift", "lower", NONE, source=WILSON)
    lift_high: float = interval_end("lift", "upper", NONE, source=WILSON)


def subgroup(f: FrequencyTable, d: IntArray, no_guess: Mask) -> Subgroup:
    """Compute the figures of the GT records `d` of each cell of `f` (shape: cells)."""
    sizes = Sizes(f.N_d, f.N_s)
    records = int(d.sum())
    exposed_cells = (f.s > 0) & (f.s == f.s_q)
    exposed, everybody = total(d, exposed_cells), total(f.d, exposed_cells)
    at_n, by_others = sum_disclosure(f, d, sizes)
    counts = baseline_counts(f, sizes, no_guess, d)
    guessed_beyond, error = math.nan, math.nan
    if records:
        d_t, s_t, people_t = (f.per_target(records_by_cell) for records_by_cell in (f.d, f.s, d))
        n = min(sizes.n, records)
        guessing = Guessing(sizes, d_t, s_t, people_t, no_guess)
        right, right_others, error = compare_guesses(counts, guessing, records, n)
        guessed_beyond = percent(right - right_others, records * SCALE)
    squares = counts.squares.DiSCO
    return Subgroup(
        **_disclosure_of_group(records, exposed, at_n, by_others, squares, everybody, f.N_d),
        guessed_beyond=guessed_beyond,
        guessed_beyond_se=error,
    )


def _disclosure_of_group(
    records: int, exposed: int, at_n: float, by_others: float, squares: int, everybody: int, N_d: int
) -> dict[str, Any]:
    """Compute the figures of a group from its sums, in records; `everybody`: all records that DiSCO counts.

    `squares`: squares of what the group's records of each q add to DiSCO_beyond (`sum_of_squares`).
    """
    low, high = wilson(exposed, records)
    share = records / N_d
    ends = [end / share for end in wilson(exposed, everybody)] if everybody else [math.nan, math.nan]
    return {
        "records": records,
        "DiSCO": percent(exposed, records),
        "DiSCO_low": 100 * low,
        "DiSCO_high": 100 * high,
        "DiSCO_others": 100 * by_others / records,
        "DiSCO_beyond": 100 * (at_n - by_others) / records,
        "DiSCO_beyond_se": standard_error(squares, records),
        "lift": exposed / everybody / share if everybody else math.nan,
        "lift_low": ends[0],
        "lift_high": ends[1],
    }


@dataclass(frozen=True)
class RecordDisclosure:
    """The contribution of each GT record to DiSCO (`exposed`, 0 or 1), DiSCO at n, and DiSCO_others.

    The last two are in units of 1 / `CHANCE_SCALE`. `q` is the record's combination of keys.
    """

    q: IntArray
    exposed: IntArray
    at_n: IntArray
    by_others: IntArray

    @classmethod
    def from_table(
        cls, f: FrequencyTable, position: IntArray, unit: IntArray | None = None
    ) -> RecordDisclosure:
        """Compute from the cell of `f` of each GT record (`position`).

        `unit`: the unit of each record if people have several: see `units`.
        """
        exposed = ((f.s > 0) & (f.s == f.s_q)).astype(np.int64)[position]
        d_q, d_tq, s_q, s_tq = (counts[position] for counts in (f.d_q, f.d, f.s_q, f.s))
        if unit is None:
            own = own_q = own_tq = np.ones_like(exposed)
        else:
            own, own_q, own_tq = (
                count_records_of_unit(unit, of_records) for of_records in (None, f.q[position], position)
            )
        at_n, by_others = np.zeros_like(exposed), np.zeros_like(exposed)
        for number in np.unique(own).tolist():
            sizes, chosen = Sizes(f.N_d, f.N_s, number), own == number
            others, others_t = (d_q - own_q)[chosen], (d_tq - own_tq)[chosen]
            at_n[chosen] = to_integer_chances(sizes.q0((s_q - s_tq)[chosen]) - sizes.q0(s_q[chosen]))
            by_others[chosen] = to_integer_chances(sizes.p0(others - others_t) - sizes.p0(others))
        return cls(f.q[position], exposed, at_n, by_others)

    def restrict_to(self, members: Mask) -> RecordDisclosure:
        """Return the same with all other contributions set to 0."""
        return RecordDisclosure(self.q, self.exposed * members, self.at_n * members, self.by_others * members)

    def by_group(self, group: IntArray, groups: int) -> list[dict[str, Any]]:
        """Return the figures of `Subgroup`, except guesses, for each group (shape of `group`: GT records)."""
        records = sum_by_position(group, 1, groups)
        sums = [sum_by_position(group, part, groups) for part in (self.exposed, self.at_n, self.by_others)]
        everybody, keys = int(self.exposed.sum()), int(self.q.max(initial=0)) + 1
        places, number = np.unique(group * keys + self.q, return_inverse=True)
        added = sum_by_position(number.reshape(-1), self.at_n - self.by_others, len(places))
        squares = [sum_of_squares(added[places // keys == place]) for place in range(groups)]
        return [
            _disclosure_of_group(
                int(of_group),
                int(exposed),
                int(at_n) / CHANCE_SCALE,
                int(by_others) / CHANCE_SCALE,
                of_squares,
                everybody,
                len(group),
            )
            for of_group, exposed, at_n, by_others, of_squares in zip(records, *sums, squares, strict=True)
        ]


def count_records_of_unit(unit: IntArray, place: IntArray | None) -> IntArray:
    """Return, for each record, the number of records of its unit, or of its unit in the same place."""
    numbers = unit if place is None else unit * (int(place.max()) + 1) + place
    _, alike, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    of_records: IntArray = counts[alike.reshape(-1)]
    return of_records


def sum_disclosure(f: FrequencyTable, d: IntArray, sizes: Sizes) -> tuple[float, float]:
    """Return DiSCO at n and DiSCO_others of the GT records `d` of each cell, in records: see `baselines`."""
    occupied = np.flatnonzero(d)
    d_q, d_tq, s_q, s_tq = f.d_q[occupied], f.d[occupied], f.s_q[occupied], f.s[occupied]
    at_n = d[occupied] * (sizes.q0(s_q - s_tq) - sizes.q0(s_q))
    by_others = d[occupied] * (sizes.p0(d_q - d_tq) - sizes.p0(d_q - 1))
    return math.fsum(at_n.tolist()), math.fsum(by_others.tolist())


def merged_groups(records: IntArray, smallest: int) -> IntArray:
    """Return the positions of the groups to be reported together: those with fewer than `smallest` records.

    If that is a single group, or they have fewer records in total, their figures could be obtained as the
    difference to the whole; then the next larger groups are added.
    """
    order = np.argsort(records, kind="stable")
    number = int((records < smallest).sum())
    if not number:
        return order[:0]
    up_to = np.cumsum(records[order])
    while number < len(order) and (number < _FEWEST_MERGED or up_to[number - 1] < smallest):
        number += 1
    return order[:number]
