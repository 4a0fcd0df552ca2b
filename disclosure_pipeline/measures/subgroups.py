"""The measures of some of the GT records, and groups that are large enough to be reported.

The records of a group are attacked as they are: with all of SD, and with all other GT records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from disclosure_pipeline.measures.baselines import guessed_from_others
from disclosure_pipeline.measures.exact import ONE, IntArray, Mask, percent, total
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.guesses import guess_counts, guess_counts_without_self, guessed
from disclosure_pipeline.measures.intervals import wilson
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import NONE, POINTS, RAAB, RECORDS, WILSON, Words

_FEWEST_MERGED = 2


@dataclass(frozen=True)
class Subgroup:
    """Percent of the `records` of a group; each `beyond` in percentage points; lift is a quotient.

    lift: the group's share of the GT records that DiSCO counts, divided by its share of GT; 1 where it is as
    exposed as everybody, NaN where DiSCO counts nobody. Intervals of 95 %.
    """

    records: Annotated[
        int,
        Words(
            "people of the group",
            "So many confidential records are of the group.",
            unit=RECORDS,
            high_is="neither",
        ),
    ]
    DiSCO: Annotated[
        float,
        Words(
            "disclosed in the synthetic table and correct",
            "So many people of the group can be told their target.",
            of="group's records",
            source=RAAB,
        ),
    ]
    DiSCO_low: Annotated[
        float,
        Words(
            "DiSCO, lower end",
            "The lower end of its interval.",
            of="group's records",
            high_is="neither",
            source=WILSON,
        ),
    ]
    DiSCO_high: Annotated[
        float,
        Words(
            "DiSCO, upper end",
            "The upper end of its interval.",
            of="group's records",
            high_is="neither",
            source=WILSON,
        ),
    ]
    DiSCO_others: Annotated[
        float,
        Words(
            "DiSCO by other people's records",
            "So many people of the group could be told their target from other people's records.",
            of="group's records",
            high_is="neither",
        ),
    ]
    DiSCO_beyond: Annotated[
        float,
        Words(
            "DiSCO beyond other people's records",
            "So many more people of the group can be told their target than from other people's records.",
            unit=POINTS,
            of="",
        ),
    ]
    guessed_beyond: Annotated[
        float,
        Words(
            "guessed beyond other people's records",
            "The targets of so many more people of the group are guessed rightly than from "
            "other people's records.",
            unit=POINTS,
            of="",
        ),
    ]
    lift: Annotated[
        float,
        Words(
            "lift",
            "How many times as often as the average the group is disclosed; 1 is the average.",
            unit=NONE,
            of="",
        ),
    ]
    lift_low: Annotated[
        float,
        Words(
            "lift, lower end",
            "The lower end of its interval.",
            unit=NONE,
            of="",
            high_is="neither",
            source=WILSON,
        ),
    ]
    lift_high: Annotated[
        float,
        Words(
            "lift, upper end",
            "The upper end of its interval.",
            unit=NONE,
            of="",
            high_is="neither",
            source=WILSON,
        ),
    ]


def subgroup(
    f: FrequencyTable, d: IntArray, for_guess: FrequencyTable, d_for_guess: IntArray, no_guess: Mask
) -> Subgroup:
    """Of the GT records `d` of each cell of `f` (shape: cells).

    Guesses are of tables of one size: of the cells `for_guess`, and the group's GT records in them.
    """
    sizes = Sizes(f.N_d, f.N_s)
    records = int(d.sum())
    exposed_cells = (f.s > 0) & (f.s == f.s_q)
    exposed, everybody = total(d, exposed_cells), total(f.d, exposed_cells)
    at_n, by_others = disclosed_of(f, d, sizes)
    low, high = wilson(exposed, records)
    share = records / f.N_d
    ends = [end / share for end in wilson(exposed, everybody)] if everybody else [math.nan, math.nan]
    return Subgroup(
        records=records,
        DiSCO=percent(exposed, records),
        DiSCO_low=100 * low,
        DiSCO_high=100 * high,
        DiSCO_others=100 * by_others / records,
        DiSCO_beyond=100 * (at_n - by_others) / records,
        guessed_beyond=guessed_beyond_of(for_guess, d_for_guess, no_guess),
        lift=exposed / everybody / share if everybody else math.nan,
        lift_low=ends[0],
        lift_high=ends[1],
    )


def disclosed_of(f: FrequencyTable, d: IntArray, sizes: Sizes) -> tuple[float, float]:
    """DiSCO at n and DiSCO_others of some GT records, in records: see `baselines`."""
    occupied = np.flatnonzero(d)
    d_q, d_tq, s_q, s_tq = f.d_q[occupied], f.d[occupied], f.s_q[occupied], f.s[occupied]
    at_n = d[occupied] * (sizes.q0(s_q - s_tq) - sizes.q0(s_q))
    by_others = d[occupied] * (sizes.p0(d_q - d_tq) - sizes.p0(d_q - 1))
    return math.fsum(at_n.tolist()), math.fsum(by_others.tolist())


def guessed_beyond_of(f: FrequencyTable, d: IntArray, no_guess: Mask) -> float:
    """Percentage points; SD and the other GT records are as many. NaN where the group has no record."""
    by_SD = guessed(guess_counts(f, d, f.s, no_guess), f.per_target(d), f.per_target(f.s), no_guess)
    without_self = guess_counts_without_self(f, d, f.d, no_guess)
    by_others = guessed_from_others(without_self, f.per_target(f.d), f.per_target(d), no_guess)
    return percent(by_SD - by_others, int(d.sum()) * ONE)


def merged_groups(records: IntArray, smallest: int) -> IntArray:
    """The groups that are reported together, as positions in `records`: those of fewer than `smallest`.

    Where there is one such group, or all of them have fewer records together, the difference to the whole
    would tell of them: then the next larger group is among them too.
    """
    order = np.argsort(records, kind="stable")
    number = int((records < smallest).sum())
    if not number:
        return order[:0]
    up_to = np.cumsum(records[order])
    while number < len(order) and (number < _FEWEST_MERGED or up_to[number - 1] < smallest):
        number += 1
    return order[:number]
