"""Small tables of (q, t) records, as lists and as data frames."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from reference.cap import Level, Record

import disclosure_pipeline as dp
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows, combine_keys, frequency_tables
from disclosure_pipeline.measures.totals import AnySums, count_figures, measure_figures
from support.paths import SD2011

KEYS = ["k1", "k2"]
KEY_LEVELS: tuple[Level, ...] = ("1", "2", None)
TARGET_LEVELS: tuple[Level, ...] = ("a", "b", "c", None)
NO_GUESS: Mask = np.array([level is None for level in TARGET_LEVELS])
# Any record, drawn in one go: many times faster than value by value.
RECORD: SearchStrategy[Record] = st.sampled_from(
    list(product(product(KEY_LEVELS, KEY_LEVELS), TARGET_LEVELS))
)

QUASI_IDENTIFIERS = list(product(KEY_LEVELS, repeat=2))


def tables(most: int = 12) -> SearchStrategy[list[Record]]:
    """Tables that often share keys, with missing values in keys and target."""
    return st.lists(RECORD, min_size=1, max_size=most)


def cells(gt: Sequence[Record], sd: Sequence[Record]) -> FrequencyTable:
    """The frequency table of records whose target levels are TARGET_LEVELS."""
    codes = [np.array([QUASI_IDENTIFIERS.index(q) for q, _ in table]) for table in (gt, sd)]
    t = [np.array([TARGET_LEVELS.index(level) for _, level in table]) for table in (gt, sd)]
    keys = combine_keys([codes], [len(QUASI_IDENTIFIERS)])
    return frequency_tables(keys, t, len(TARGET_LEVELS))[0]


def frame(records: Sequence[Record]) -> pd.DataFrame:
    rows = [(*q, t) for q, t in records]
    return pd.DataFrame(rows, columns=[*KEYS, "t"], dtype=object)


def from_counts(counts: Sequence[Sequence[int]]) -> list[Record]:
    """The records of a table of counts: a row for each target level, a column for each key level."""
    return [
        ((f"K{k}", ""), f"T{t}")
        for t, row in enumerate(counts, start=1)
        for k, count in enumerate(row, start=1)
        for _ in range(count)
    ]


def measured(
    gt: Sequence[Record], sd: Sequence[Record], exclude: dp.Exclusions | None = None
) -> dict[str, float]:
    """Every figure of the frames `identity`, `attribute` and `cap`."""
    result = dp.disclosure(frame(gt), frame(sd), KEYS, "t", exclude=exclude)
    return {
        str(name): figure
        for part in (result.identity, result.attribute, result.cap)
        for name, figure in part.iloc[0].to_dict().items()
    }


def sd2011(name: str) -> pd.DataFrame:
    """A table of the example data; without it, the test is skipped."""
    if not SD2011.is_dir():
        pytest.skip("the example data are not here")
    return pd.read_csv(SD2011 / f"{name}.csv")


def measure_counts(
    rows: Rows, figures: Sequence[Figure], sums: Sequence[AnySums], people_t: IntArray
) -> dict[str, float]:
    """Return what was counted of all cells as figures, and what compares them with other people's records."""
    levels = Rows(rows.by_level, np.arange(rows.f.targets), no_guess=rows.no_guess, band=rows.band)
    values, compared = measure_figures(figures, sums, rows.f.N_d, rows.f.N_s, levels, people_t)
    return values | compared


def measure_cells(
    f: FrequencyTable, figures: Sequence[Figure], no_guess: Mask, band: Band | None = None
) -> dict[str, float]:
    """Return the figures of all cells, and what compares them with other people's records."""
    rows = Rows(f, np.arange(len(f.q)), no_guess=no_guess, band=band)
    [sums] = count_figures(rows, figures)
    return measure_counts(rows, figures, sums, f.per_target(f.d))
