"""Resemblance of two tables: the values they share, signs that they are coded differently, and distances.

A mismatch makes a leak look safe: where GT says 1 and SD says 1.0, no key of GT is in SD, every risk is 0.
"""

from __future__ import annotations

import math
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.memory.cell_tables import count_pair
from disclosure_pipeline.counting.opening import OpenedTables, read_shared_columns
from disclosure_pipeline.errors import ComparabilityWarning
from disclosure_pipeline.evaluation.frames import frame_of, names_of, row_of
from disclosure_pipeline.measures.exact import Floats, IntArray, percent
from disclosure_pipeline.measures.resemblance import (
    RANK_GROUPS,
    JointTables,
    Overlap,
    RankGroups,
    Resemblance,
    SharedCounts,
    distance_relabelled,
    find_heaps,
    looks_renumbered,
    overlap,
)
from disclosure_pipeline.measures.resemblance import resemblance as resemblance_of
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Kind, level_label
from disclosure_pipeline.tables.messages import listed, table_names
from disclosure_pipeline.tables.sources import Syntheses, TableSource

if TYPE_CHECKING:
    import altair as alt

Rows = dict[tuple[Any, int], dict[str, Any]]

WHOLE_KEY = "(whole key)"
"""Stands for the combination of all keys in the frame `key_overlap`."""

# Percent of records: below, a user is warned. A policy has bounds of its own.
LOW_OVERLAP, LOW_WHOLE_KEY = 50, 1

# The levels of a column that are looked at to say in what the tables differ.
_MOST_COMPARED = 100_000

# In percentage points: a level that takes the place of missing values is looked for from there on.
_MISSING_GAP = 5
_ABOUT_THAT_SIZE = (0.5, 1.5)  # times the difference of the missing shares

# What is written for a missing value where nothing is declared. Only such a level is named in a warning.
_CODES_FOR_MISSING = {
    *("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", ".", "-", "#n/a", "<na>"),
    *("-1", "-8", "-9", "-88", "-98", "-99", "-998", "-999", "-9999", "99", "999", "9999"),
}

_CONSEQUENCE = "Risks read too low where the tables are not coded alike."


def compare_column(column: CodedColumn, names: Sequence[str]) -> tuple[Rows, list[str]]:
    """One column: how many records have a value that the other table has too, and what is doubtful of it.

    Records whose value is missing take no part: tables that share nothing but gaps share nothing. A doubt
    for each synthesis that shares few values with GT, or writes some otherwise; `names` are the tables'.
    """
    counts_GT, *counts_SD = (table_counts[: column.missing] for table_counts in column.counts)
    rows: Rows = {}
    warnings = []
    for synthesis, counts in enumerate(counts_SD, start=1):
        shares = rows[column.name, synthesis] = row_of(overlap(counts_GT, counts))
        difference = _difference_in_form(column, counts_GT, counts)
        warnings += _overlap_doubts(column.name, shares, difference, names[synthesis])
    return rows, warnings


def whole_key_overlap(shared: Sequence[SharedCounts], N_d: int, N_s: Sequence[int]) -> Rows:
    """Return the overlap of the combination of all keys, by synthesis; a missing value is a level."""
    return {
        (WHOLE_KEY, synthesis): row_of(
            Overlap(percent(records.GT_in_SD, N_d), percent(records.SD_in_GT, N_s[synthesis - 1]))
        )
        for synthesis, records in enumerate(shared, start=1)
    }


def whole_key_doubts(whole_key: Rows, names: Sequence[str]) -> list[str]:
    """Return a doubt for each synthesis that hardly shares the whole key with GT (`whole_key_overlap`)."""
    return [
        f"The whole key is hardly shared. {_shares(shares, names[synthesis])}."
        for (_, synthesis), shares in whole_key.items()
        if not is_shared(shares, LOW_WHOLE_KEY)
    ]


def is_shared(shares: Mapping[str, float], least: float) -> bool:
    """Return whether both shares (percent) are at least so large; NaN, of tables without a value, is not."""
    return all(share >= least for share in shares.values())


def missing_value_doubts(columns: Iterable[CodedColumn], names: Sequence[str]) -> list[str]:
    """Return a doubt for each column and synthesis in which a level seems to stand for GT's missing values.

    Or the other way round: the missing shares differ by more than 5 points, and one table has a level of
    about that size that the other lacks. `columns` are not grouped.
    """
    warnings = []
    for column in columns:
        counts_GT, *counts_SD = column.counts
        for name, counts in zip(names[1:], counts_SD, strict=True):
            missing_GT, missing_SD = (
                percent(int(of_table[-1]), int(of_table.sum())) for of_table in (counts_GT, counts)
            )
            gap = abs(missing_GT - missing_SD)
            if not gap > _MISSING_GAP:
                continue
            in_SD = missing_GT > missing_SD
            code = _level_of_size(counts, counts_GT, gap) if in_SD else _level_of_size(counts_GT, counts, gap)
            if code is None:
                continue
            label = level_label(column.levels[code])
            is_usual = in_SD and label.strip().casefold() in _CODES_FOR_MISSING  # no value of GT is named
            level = f"a level {label!r}" if is_usual else "a level"
            has, lacks = (name, "GT") if in_SD else ("GT", name)
            warnings.append(
                f"Column {column.name!r}: {missing_GT:.2f} % of the GT records have no value, "
                f"{missing_SD:.2f} % of those of {name}, and {has} has {level} of about that size that "
                f"{lacks} lacks. Does it stand for missing values? {_CONSEQUENCE}"
            )
    return warnings


def _level_of_size(counts: IntArray, other_counts: IntArray, gap: float) -> int | None:
    """Return the most frequent level that the other table lacks, if its share is about the gap."""
    counts_if_new = np.where(other_counts[:-1] == 0, counts[:-1], 0)
    if not len(counts_if_new):
        return None
    code = int(counts_if_new.argmax())
    low, high = (times * gap for times in _ABOUT_THAT_SIZE)
    return code if low <= percent(int(counts_if_new[code]), int(counts.sum())) <= high else None


def _overlap_doubts(name: Any, shares: Mapping[str, float], difference: str, table: str) -> list[str]:
    if not is_shared(shares, LOW_OVERLAP):
        hint = f"Some differ only by {difference}. " if difference else ""
        return [
            f"Column {name!r}: the tables share few values. {_shares(shares, table)}. {hint}{_CONSEQUENCE}"
        ]
    if difference:
        return [f"Column {name!r}: values of {table} differ from GT's only by {difference}. {_CONSEQUENCE}"]
    return []


def _shares(shares: Mapping[str, float], table: str) -> str:
    if math.isnan(shares["GT_in_SD"]):
        return "No GT record has a value"
    if math.isnan(shares["SD_in_GT"]):
        return f"No record of {table} has a value"
    return (
        f"{shares['GT_in_SD']:.2f} % of the GT records have a value that is in {table}, "
        f"{shares['SD_in_GT']:.2f} % the other way round"
    )


def _difference_in_form(column: CodedColumn, counts_GT: IntArray, counts_SD: IntArray) -> str:
    """In what values that GT does not have differ from values of GT, if they agree otherwise."""
    if column.kind is not Kind.TEXT:
        return ""
    only_SD = column.levels[(counts_SD > 0) & (counts_GT == 0)]
    if not len(only_SD):
        return ""
    in_GT = column.levels[counts_GT > 0]
    texts_GT, texts_SD = ([str(level) for level in levels[:_MOST_COMPARED]] for levels in (in_GT, only_SD))
    for difference, normalise in _NORMAL_FORMS.items():
        if {normalise(text) for text in texts_GT} & {normalise(text) for text in texts_SD}:
            return difference
    return ""


def _as_number(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        return text


_NORMAL_FORMS: Mapping[str, Callable[[str], str]] = {
    "outer blanks": str.strip,
    "the form of Unicode": lambda text: unicodedata.normalize("NFC", text),
    "upper and lower case": str.casefold,
    "how a number is written": _as_number,
    "blanks, case and form of Unicode": lambda text: unicodedata.normalize("NFC", text.strip()).casefold(),
}


def identifier_warnings(opened: OpenedTables, columns: Sequence[CodedColumn]) -> list[str]:
    """Warnings of columns that GT lacks, and of those that identify every record."""
    columns_GT, *columns_SD = opened.columns
    names = table_names(len(opened.columns))
    identifiers = opened.find_identifiers(columns)
    warnings = []
    for synthesis, (columns_of_table, name) in enumerate(zip(columns_SD, names[1:], strict=True), start=1):
        more = [column for column in columns_of_table if column not in columns_GT]
        if more:
            warnings.append(f"GT lacks columns that {name} has, {listed(more)}: they are not measured.")
        warnings += [
            f"Column {column!r} has a value of its own for every GT record, and most of its values in {name} "
            "are of GT: is it an identifier? Then it must not be in a synthetic table."
            for table, column in identifiers
            if table == synthesis
        ]
    return warnings


_PACKAGE = __name__.partition(".")[0]


def find_doubts(tables: Tables, columns: Sequence[CodedColumn]) -> list[str]:
    """Return what says of these columns, as they are grouped, that the tables may not be coded alike."""
    doubts = [doubt for column in columns for doubt in compare_column(column, tables.names)[1]]
    ungrouped = [column for column in columns if not tables.grouping.groups_column(column.name)]
    return doubts + missing_value_doubts(ungrouped, tables.names)


def warn_of_doubts(doubts: Iterable[str]) -> None:
    """Return a `ComparabilityWarning` of each, at the line that called the library."""
    level = _level_of_caller()
    for doubt in doubts:
        warnings.warn(doubt, ComparabilityWarning, stacklevel=level)


def _level_of_caller() -> int:
    """Return how far above `warn_of_doubts` the first line stands that is none of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level


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
    columns = [group_numbers(column) for column in coded]
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
        frame_of(column_rows, ["column", "synthesis"], [*names_of(Resemblance), "TVD_relabelled"]),
        frame_of(pair_rows, ["column_1", "column_2", "synthesis"], names_of(Resemblance))
        if pair_rows
        else pd.DataFrame(),
    )


def _compare_pair(first: CodedColumn, second: CodedColumn) -> list[dict[str, float]]:
    counts_GT, *counts_SD = count_pair(first, second)
    return [row_of(resemblance_of(counts_GT, counts)) for counts in counts_SD]


def group_numbers(column: CodedColumn) -> CodedColumn:
    """Return a column of numbers in as many groups as `resemblance` takes them, any other as it is."""
    groups = {column.name: GROUPS} if column.kind is Kind.NUMBER else {}
    return grouping_of(groups=groups).apply(column)


_MOST_LOOKED_UP = 50_000_000  # values of all pairs of columns
_FEWEST = 100  # records that say anything of twenty groups


def find_renumbered(columns: Sequence[CodedColumn]) -> dict[tuple[Any, int], float]:
    """Return `looks_renumbered` of each (column, synthesis) with an order; 0 of too few records."""
    ordered = [column for column in columns if column.kind in ORDERED_KINDS]
    step = max(1, len(ordered) * len(columns) * len(columns[0].codes[0]) // _MOST_LOOKED_UP)
    levels = {id(column): group_numbers(column) for column in columns}
    return {
        (column.name, synthesis): _measure(
            column, [levels[id(other)] for other in columns if other is not column], synthesis, step
        )
        for column in ordered
        for synthesis in range(1, len(column.codes))
    }


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
