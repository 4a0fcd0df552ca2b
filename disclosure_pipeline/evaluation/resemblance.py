"""`resemblance()`: how far apart the tables are in every column, and in every pair of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.memory.cell_tables import count_pair
from disclosure_pipeline.counting.opening import read_shared_columns
from disclosure_pipeline.evaluation.frames import row_of
from disclosure_pipeline.measures.exact import Floats
from disclosure_pipeline.measures.resemblance import (
    RANK_GROUPS,
    JointTables,
    RankGroups,
    distance_relabelled,
    find_heaps,
    looks_renumbered,
)
from disclosure_pipeline.measures.resemblance import resemblance as resemblance_of
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Kind
from disclosure_pipeline.tables.sources import Syntheses, TableSource

if TYPE_CHECKING:
    import altair as alt


GROUPS = 5


@dataclass(frozen=True, repr=False, eq=False)
class TablesResemblance:
    """The distances between GT and its syntheses; low values mean alike.

    `columns`: index (column, synthesis). TVD, the total variation distance, and TVD_expected, that of a fresh
    sample of the same population, are shares of 1; pMSE; df; S_pMSE, and S_pMSE_expected, that of a fresh
    sample; TVD_relabelled: the distance once levels are matched by how frequent they are. Where TVD is large
    and TVD_relabelled small, levels may only have other names. `pairs`: index (column_1, column_2,
    synthesis), without TVD_relabelled; empty where there is one column.
    """

    columns: pd.DataFrame
    pairs: pd.DataFrame

    def __str__(self) -> str:
        worst = self.columns if self.pairs.empty else self.pairs
        names = list(worst.index.names)
        shown = worst.sort_values("S_pMSE", ascending=False, kind="stable").head(10)
        compared = "columns" if self.pairs.empty else "pairs of columns"
        rows = shown.reset_index()[[*names, *shown.columns]].to_string(index=False, line_width=80)
        heading = "Resemblance of GT and SD: low is alike; TVD is a share of 1."
        return f"{heading}\nThe {compared} least alike:\n\n{rows}"

    __repr__ = __str__

    def plot(self) -> alt.LayerChart:
        """Return the S_pMSE of every column (on the diagonal) and pair; the largest over the syntheses."""
        from disclosure_pipeline.evaluation.plots.pictures import heat_map

        return heat_map(self.columns["S_pMSE"], self.pairs.get("S_pMSE"))


def resemblance(ground_truth: TableSource, synthetic: Syntheses) -> TablesResemblance:
    """Measure how far apart the tables are in every column that all have, and in every pair of columns.

    Numbers are taken in 5 quantile groups of the pooled tables (equal widths where fewer than 3 form); a
    missing value is a level. It says how useful SD is, and what is disguised: no figure of disclosure means
    anything where a column is recoded. Distance alone proves nothing: bad synthesizers are far from GT too.

    Args:
        ground_truth: The confidential records, one a row, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.

    Returns:
        Frames `columns` and `pairs`: see `TablesResemblance`. `plot()` draws the heat map of S_pMSE, which
        synthpop advises to keep below 10, better 3.

    Raises:
        InputError: No column is in all tables, or one has no common kind of value.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"sex": ["f", "m"] * 50, "smokes": ["n"] * 80 + ["y"] * 20})
        >>> sd = gt.assign(smokes=["n", "y"] * 50)
        >>> dp.resemblance(gt, sd).pairs[["TVD", "TVD_expected", "df", "S_pMSE"]].round(2)
                                        TVD  TVD_expected  df  S_pMSE
        column_1 column_2 synthesis
        sex      smokes   1             0.5          0.09   3   51.85

    Sources: Raab, Nowok & Dibben 2021, "Assessing, visualizing and improving the utility of synthetic data";
    TVD_expected and TVD_relabelled are this project's own.
    """
    tables = read_shared_columns(ground_truth, synthetic)
    return resemblance_of_columns(tables.code(tables.keys))


def resemblance_of_columns(coded: Sequence[CodedColumn]) -> TablesResemblance:
    """Return what `resemblance` returns, of columns that are coded but not grouped."""
    numbers = [column.name for column in coded if column.kind is Kind.NUMBER]
    grouping = grouping_of(groups=dict.fromkeys(numbers, GROUPS))
    columns = [grouping.apply(column) for column in coded]
    column_rows = {
        (column.name, synthesis): row_of(resemblance_of(column.counts[0], s))
        | {"TVD_relabelled": distance_relabelled(column.counts[0], s)}
        for column in columns
        for synthesis, s in enumerate(column.counts[1:], start=1)
    }
    pairs = list(combinations(columns, 2))
    threads = threads_for(sum(len(table.stored) for table in coded[0].tables))
    figures_of_pairs = run_in_threads([partial(_compare_pair, *pair) for pair in pairs], threads)
    pair_rows = {
        (first.name, second.name, synthesis): figures
        for (first, second), pair_figures in zip(pairs, figures_of_pairs, strict=True)
        for synthesis, figures in enumerate(pair_figures, start=1)
    }
    return TablesResemblance(
        _build_frame(column_rows, ["column", "synthesis"]),
        _build_frame(pair_rows, ["column_1", "column_2", "synthesis"]),
    )


def _compare_pair(first: CodedColumn, second: CodedColumn) -> list[dict[str, float]]:
    counts_GT, *counts_SD = count_pair(first, second)
    return [row_of(resemblance_of(counts_GT, counts)) for counts in counts_SD]


def _build_frame(rows: dict[Any, dict[str, float]], names: list[Any]) -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(list(rows), names=names) if rows else None
    return pd.DataFrame(list(rows.values()), index=index)


_MOST_LOOKED_UP = 50_000_000  # values of all pairs of columns
_FEWEST = 100  # records that say anything of twenty groups


def find_renumbered(columns: Sequence[CodedColumn]) -> dict[tuple[Any, int], float]:
    """Return `looks_renumbered` of each (column, synthesis) with an order; 0 of too few records."""
    ordered = [column for column in columns if column.kind in ORDERED_KINDS]
    step = max(1, len(ordered) * len(columns) * len(columns[0].codes[0]) // _MOST_LOOKED_UP)
    levels = {id(column): _group_levels(column) for column in columns}
    return {
        (column.name, synthesis): _measure(
            column, [levels[id(other)] for other in columns if other is not column], synthesis, step
        )
        for column in ordered
        for synthesis in range(1, len(column.codes))
    }


def _group_levels(column: CodedColumn) -> CodedColumn:
    if column.kind is not Kind.NUMBER:
        return column
    return grouping_of(groups={column.name: GROUPS}).apply(column)


def _measure(column: CodedColumn, others: Sequence[CodedColumn], synthesis: int, step: int) -> float:
    heaps = find_heaps(column.counts[0], column.counts[synthesis])
    d, s = (np.where(heaps, 0, column.counts[table]) for table in (0, synthesis))
    if min(d.sum(), s.sum()) < _FEWEST or np.count_nonzero(d) < RANK_GROUPS:
        return 0.0
    by_GT, by_SD = map(RankGroups.from_counts, (d, s))

    def count(table: int, groups: RankGroups, other: CodedColumn) -> Floats:
        codes = column.codes[table][::step]
        counted = np.flatnonzero(~heaps[codes])
        pairs = groups.row[codes[counted]] * other.size + other.codes[table][::step][counted]
        rows = groups.shares.shape[1]
        return groups.add_up(np.bincount(pairs, minlength=rows * other.size).reshape(rows, other.size))

    return looks_renumbered(
        [
            JointTables(
                count(0, by_GT, other),
                count(synthesis, by_SD, other),
                count(synthesis, by_GT, other),
            )
            for other in others
            if other.size <= len(column.codes[0])
        ]
    )
