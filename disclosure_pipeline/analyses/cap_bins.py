"""The individual CAP of all GT records in bins, from the frequency table: as few for millions as for ten.

A CAP of exactly 1, one of exactly 0 (the key is in SD, and never with the record's own level), and a key that
is not in SD at all are what matters most: each has a band of its own beside the axis from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.measures.exact import IntArray, percent, percent_of_quotients
from disclosure_pipeline.measures.frequency import FrequencyTable

INNER_BINS = 20
NOT_IN_SD, NEVER, ALWAYS = 0, 1, INNER_BINS + 2
"""The bins of their own; from 2 on, the inner ones are closed on the left."""

BINS = INNER_BINS + 3
BAND, GAP = 0.06, 0.02
NAMES = {NOT_IN_SD: "key not in SD", NEVER: "0", ALWAYS: "1"}

Floats = npt.NDArray[np.float64]


def joint_bins(f: FrequencyTable) -> pd.DataFrame:
    """Number of GT records in each pair of bins, of CAP under GT and under SD; pairs that occur."""
    under_GT, under_SD = bin_of(f.d, f.d_q), bin_of(f.s, f.s_q)
    records = np.zeros(BINS**2, dtype=np.int64)
    np.add.at(records, under_GT * BINS + under_SD, f.d)
    pair = np.flatnonzero(records)
    under_GT, under_SD = np.divmod(pair, BINS)
    frame = pd.DataFrame({"records": records[pair]})
    for name, bins in (("GT", under_GT), ("SD", under_SD)):
        frame[f"{name}_from"], frame[f"{name}_to"] = place(bins)
        frame[name] = [name_of(int(number)) for number in bins]
    return frame


def bins_of_synthesis(f: FrequencyTable, synthesis: int) -> pd.DataFrame:
    """Number and percentage of GT records in each bin of CAP under SD, with the averages in percent."""
    records = np.zeros(BINS, dtype=np.int64)
    np.add.at(records, bin_of(f.s, f.s_q), f.d)
    bins = np.arange(BINS)
    low, high = place(bins)
    average = percent_of_quotients(f.s * f.d, f.s_q, f.N_d)
    return pd.DataFrame(
        {
            "synthesis": synthesis,
            "row": f"Synthesis {synthesis}: average {average:.1f} %",
            "CAP": [name_of(int(number)) for number in bins],
            "low": low,
            "high": high,
            "records": records,
            "percent": 100 * records / f.N_d,
            "average": average,
            "GT_average": percent_of_quotients(f.d * f.d, f.d_q, f.N_d),
        }
    )


@dataclass(frozen=True)
class ChangedChances:
    """Percent of GT records that are easier, and harder, to guess from SD than from GT.

    `not_in_SD`: those of the harder ones whose key is not in SD.
    """

    easier: float
    harder: float
    not_in_SD: float


def compare_chances(f: FrequencyTable) -> ChangedChances:
    """Return each GT record's CAP under SD against its CAP under GT, in integers."""
    from_SD, from_GT = f.s * f.d_q, f.d * f.s_q
    not_in_SD = f.s_q == 0
    return ChangedChances(
        easier=percent(f.d[from_SD > from_GT].sum(), f.N_d),
        harder=percent(f.d[(from_SD < from_GT) | not_in_SD].sum(), f.N_d),
        not_in_SD=percent(f.d[not_in_SD].sum(), f.N_d),
    )


def bin_of(count: IntArray, of_key: IntArray) -> IntArray:
    """Return the bin of count / of_key, in integers."""
    inner = INNER_BINS * count // np.maximum(of_key, 1) + NEVER + 1
    return np.select([of_key == 0, count == 0], [NOT_IN_SD, NEVER], inner)


def place(bins: IntArray) -> tuple[Floats, Floats]:
    """Return where each bin lies on the axis in percent: from, to."""
    low = (bins - NEVER - 1) / INNER_BINS
    high = low + 1 / INNER_BINS
    below = -GAP - BAND
    own = [bins == NOT_IN_SD, bins == NEVER, bins == ALWAYS]
    low = np.select(own, [below - GAP - BAND, below, 1 + GAP], low)
    high = np.select(own, [below - GAP, -GAP, 1 + GAP + BAND], high)
    return 100 * low, 100 * high


def name_of(number: int) -> str:
    """Return what a bin is called."""
    low = 100 * (number - NEVER - 1) // INNER_BINS
    return NAMES.get(number) or f"{low} to {low + 100 // INNER_BINS}"
