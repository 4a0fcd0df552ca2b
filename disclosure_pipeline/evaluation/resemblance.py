"""Resemblance of two tables: shared values, signs that they are coded differently, and distances.

A mismatch makes a leak look safe: if GT says 1 and SD says 1.0, no key of GT is in SD, and every risk is 0.
"""

from __future__ import annotations

import math
import sys
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.counting.memory.cell_tables import count_pair
from disclosure_pipeline.counting.opening import read_shared_columns
from disclosure_pipeline.errors import ComparabilityWarning
from disclosure_pipeline.evaluation.frames import build_frame, to_row
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.exact import Floats, IntArray, percent
from disclosure_pipeline.measures.resemblance import (
    LEAST_SHARED,
    RANK_GROUPS,
    JointTables,
    Overlap,
    RankGroups,
    SharedCounts,
    distance_relabelled,
    find_heaps,
    looks_renumbered,
    overlap,
    overlap_within,
)
from disclosure_pipeline.measures.resemblance import resemblance as resemblance_of
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.additions import RealValues
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Kind, level_label
from disclosure_pipeline.tables.messages import listed, table_names
from disclosure_pipeline.tables.sources import Syntheses, TableSource
from disclosure_pipeline.tables.text_forms import find_date_forms

if TYPE_CHECKING:
    import altair as alt

Rows = dict[tuple[Any, int], dict[str, Any]]

WHOLE_KEY = "(whole key)"
"""Names the combination of all keys in the frame `key_overlap`."""


# The most levels of a column that are compared to find out how their spelling differs.
_MOST_COMPARED = 100_000

# Percentage points: the smallest gap in missing shares for which a level in place of them is searched.
_MISSING_GAP = 5
_SIZE_OF_GAP = (0.5, 1.5)  # times the gap: the shares that such a level may have

# Usual codes for missing values. Only these levels are quoted in a warning.
_CODES_FOR_MISSING = {
    *("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", ".", "-", "#n/a", "<na>"),
    *("-1", "-8", "-9", "-88", "-98", "-99", "-998", "-999", "-9999", "99", "999", "9999"),
}

_CONSEQUENCE = "Risks read too low where the tables are not coded alike."


def compare_column(
    column: CodedColumn, names: Sequence[str], least: float, band: Band | None = None
) -> tuple[Rows, list[str]]:
    """Return the overlap of a column with each synthesis, and doubts about its coding.

    Amounts that have a `band` are shared if they lie within it.

    Records without a value are left out: missing values are not shared values. There is a doubt for each
    synthesis that shares values with GT in less than `least` percent of the records of either, or spells some
    differently; `names` are those of the tables.
    """
    counts_GT, *counts_SD = (table_counts[: column.missing] for table_counts in column.counts)
    rows: Rows = {}
    warnings = []
    for synthesis, counts in enumerate(counts_SD, start=1):
        shares = rows[column.name, synthesis] = to_row(
            overlap_within(counts_GT, counts, band) if band else overlap(counts_GT, counts)
        )
        if band is None:
            warnings += _find_overlap_doubts(column, shares, (counts_GT, counts), names[synthesis], least)
        elif not is_shared(shares, least):
            warnings.append(
                f"Column {column.name!r}: the tables share few amounts, even within the band around them. "
                f"{_describe_shares(shares, names[synthesis])}. Are both in one unit? {_CONSEQUENCE}"
            )
    return rows, warnings


def whole_key_overlap(shared: Sequence[SharedCounts], N_d: int, N_s: Sequence[int]) -> Rows:
    """Return the overlap of the combination of all keys by synthesis; missing values are levels."""
    return {
        (WHOLE_KEY, synthesis): to_row(
            Overlap(percent(records.GT_in_SD, N_d), percent(records.SD_in_GT, N_s[synthesis - 1]))
        )
        for synthesis, records in enumerate(shared, start=1)
    }


def find_whole_key_doubts(whole_key: Rows, names: Sequence[str], least: float) -> list[str]:
    """Return a doubt for each synthesis that shares the whole key in less than `least` percent of records."""
    return [
        f"The whole key is hardly shared. {_describe_shares(shares, names[synthesis])}."
        for (_, synthesis), shares in whole_key.items()
        if not is_shared(shares, least)
    ]


def is_shared(shares: Mapping[str, float], least: float) -> bool:
    """Return True if both shares are at least `least` percent; NaN (a table without values) is not."""
    return all(share >= least for share in shares.values())


def find_missing_value_doubts(columns: Iterable[CodedColumn], names: Sequence[str]) -> list[str]:
    """Return a doubt for each column and synthesis where a level of one table seems to mean missing.

    That is, the shares of missing values differ by more than 5 percentage points, and the table that lacks
    them has a level of about that share that the other does not have. `columns` are not grouped.
    """
    warnings = []
    for column in columns:
        counts_GT, *counts_SD = column.counts
        for name, counts in zip(names[1:], counts_SD, strict=True):
            missing_GT, missing_SD = (percent(int(c[-1]), int(c.sum())) for c in (counts_GT, counts))
            gap = abs(missing_GT - missing_SD)
            if not gap > _MISSING_GAP:
                continue
            in_SD = missing_GT > missing_SD
            code = _find_level(counts, counts_GT, gap) if in_SD else _find_level(counts_GT, counts, gap)
            if code is None:
                continue
            label = level_label(column.levels[code])
            is_usual = in_SD and label.strip().casefold() in _CODES_FOR_MISSING  # never quote GT
            level = f"a level {label!r}" if is_usual else "a level"
            has, lacks = (name, "GT") if in_SD else ("GT", name)
            warnings.append(
                f"Column {column.name!r}: {missing_GT:.2f} % of the GT records have no value, "
                f"{missing_SD:.2f} % of those of {name}, and {has} has {level} of about that size that "
                f"{lacks} lacks. Does it stand for missing values? {_CONSEQUENCE}"
            )
    return warnings


def _find_level(counts: IntArray, other_counts: IntArray, gap: float) -> int | None:
    """Return the most frequent level that the other table lacks, if its share is close to the gap."""
    counts_if_new = np.where(other_counts[:-1] == 0, counts[:-1], 0)
    if not len(counts_if_new):
        return None
    code = int(counts_if_new.argmax())
    low, high = (times * gap for times in _SIZE_OF_GAP)
    return code if low <= percent(int(counts_if_new[code]), int(counts.sum())) <= high else None


def _find_overlap_doubts(
    column: CodedColumn,
    shares: Mapping[str, float],
    counts: tuple[IntArray, IntArray],
    table: str,
    least: float,
) -> list[str]:
    is_low = not is_shared(shares, least)
    difference = _find_spelling_difference(column, *counts)
    forms = None if difference else _find_two_date_forms(column, *counts)
    dates = "" if forms is None else f"hold dates, in two forms: {forms[0]} in GT, {forms[1]} in {table}"
    if not is_low:
        hint = dates and f"both tables {dates}"
        hint = f"values of {table} differ from GT's only by {difference}" if difference else hint
        return [f"Column {column.name!r}: {hint}. {_CONSEQUENCE}"] if hint else []
    hint = _CONSEQUENCE
    if difference:
        hint = f"Some differ only by {difference}. {_CONSEQUENCE}"
    elif dates:
        hint = f"Both {dates}. {_CONSEQUENCE}"
    elif shares["SD_in_GT"] >= least:
        hint = (
            f"The values of {table} are written as in GT, but it lacks those of many GT records, whose risks "
            "read low because it says nothing about them. Does it lack a level or a range?"
        )
    few = f"the tables share few values. {_describe_shares(shares, table)}"
    return [f"Column {column.name!r}: {few}. {hint}"]


def _describe_shares(shares: Mapping[str, float], table: str) -> str:
    if math.isnan(shares["GT_in_SD"]):
        return "No GT record has a value"
    if math.isnan(shares["SD_in_GT"]):
        return f"No record of {table} has a value"
    return (
        f"{shares['GT_in_SD']:.2f} % of the GT records have a value that is in {table}, "
        f"{shares['SD_in_GT']:.2f} % the other way round"
    )


def _find_spelling_difference(column: CodedColumn, counts_GT: IntArray, counts_SD: IntArray) -> str:
    """Name the only difference between some values of GT and of SD, if there is one; otherwise empty."""
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


def _find_two_date_forms(
    column: CodedColumn, counts_GT: IntArray, counts_SD: IntArray
) -> tuple[str, str] | None:
    """Return a form of GT's dates and one of SD's further dates, if no form fits both; otherwise None."""
    only_SD = (counts_SD > 0) & (counts_GT == 0)
    if column.kind is not Kind.TEXT or not only_SD.any():
        return None
    forms_SD = find_date_forms(_list_values(column.levels[only_SD]))
    if not forms_SD:
        return None
    forms_GT = find_date_forms(_list_values(column.levels[counts_GT > 0]))
    return None if not forms_GT or set(forms_GT) & set(forms_SD) else (forms_GT[0], forms_SD[0])


def _list_values(levels: npt.NDArray[Any]) -> list[str]:
    """Return the first levels as text, without usual codes for missing values."""
    texts = map(str, levels[:_MOST_COMPARED])
    return [text for text in texts if text.strip().casefold() not in _CODES_FOR_MISSING]


def _normalise_number(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        return text


_NORMAL_FORMS: Mapping[str, Callable[[str], str]] = {
    "outer blanks": str.strip,
    "Unicode form": lambda text: unicodedata.normalize("NFC", text),
    "upper and lower case": str.casefold,
    "how a number is written": _normalise_number,
    "a decimal comma": lambda text: _normalise_number(text.replace(",", ".", 1)),
    "blanks, case and Unicode form": lambda text: unicodedata.normalize("NFC", text.strip()).casefold(),
}


def identifier_warnings(
    columns: Sequence[Sequence[Any]], found: Sequence[RealValues], accepted: Collection[Any] = ()
) -> list[str]:
    """Return warnings of columns that GT lacks, and of real values of columns that are like identifiers.

    `columns`: the names of each table's columns. `found`: their real values; of `accepted` columns, these may
    be in SD.
    """
    columns_GT, *columns_SD = columns
    names = table_names(len(columns))
    warnings = []
    for synthesis, (columns_of_table, name) in enumerate(zip(columns_SD, names[1:], strict=True), start=1):
        extra = [column for column in columns_of_table if column not in columns_GT]
        if extra:
            warnings.append(f"GT lacks columns that {name} has, {listed(extra)}: they are not measured.")
        warnings += [
            f"Column {values.column!r} is like an identifier: {values.alone:.0f} % of the GT records have a "
            f"value that nobody else has, and {values.found:.1f} % of the records of {name} have such a real "
            "value, more than by chance. Leave the column out, or draw or round its values anew."
            for values in found
            if values.synthesis == synthesis and values.column not in accepted
        ]
    return warnings


_PACKAGE = __name__.partition(".")[0]


def find_doubts(tables: Tables, columns: Sequence[CodedColumn]) -> list[str]:
    """Return signs that these columns are not coded alike in all tables."""
    doubts = []
    for column in columns:
        least = LEAST_SHARED.target if column.name in tables.targets else LEAST_SHARED.key
        doubts += compare_column(column, tables.names, least)[1]
    ungrouped = [column for column in columns if not tables.grouping.groups_column(column.name)]
    return doubts + find_missing_value_doubts(ungrouped, tables.names)


def warn_of_doubts(doubts: Iterable[str], kind: type[UserWarning] = ComparabilityWarning) -> None:
    """Issue a warning for each doubt, at the line that called the library."""
    level = _find_caller_level()
    for doubt in doubts:
        warnings.warn(doubt, kind, stacklevel=level)


def _find_caller_level() -> int:
    """Return the number of frames from `warn_of_doubts` up to the first one outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level


GROUPS = 5


@dataclass(frozen=True, repr=False, eq=False)
class TablesResemblance:
    """The distances between GT and its syntheses; low values mean that they are alike.

    `columns`: index (column, synthesis). TVD, the total variation distance, and TVD_expected, that of a fresh
    sample of the same population, are shares of 1; pMSE; df; S_pMSE, and S_pMSE_expected, that of a fresh
    sample; TVD_relabelled: the distance after matching levels by frequency. If TVD is large and
    TVD_relabelled small, the levels may merely be renamed. `pairs`: index (column_1, column_2, synthesis),
    without TVD_relabelled; empty if there is one column.
    """

    columns: pd.DataFrame
    pairs: pd.DataFrame

    def __str__(self) -> str:
        worst = self.columns if self.pairs.empty else self.pairs
        names = list(worst.index.names)
        shown = worst.sort_values("S_pMSE", ascending=False, kind="stable").head(10)
        compared = "columns" if self.pairs.empty else "pairs of columns"
        rows = shown.reset_index()[[*names, *shown.columns]].to_string(index=False, line_width=80)
        heading = "Resemblance of GT and SD: low values mean alike; TVD is a share of 1."
        return f"{heading}\nThe least similar {compared}:\n\n{rows}"

    __repr__ = __str__

    def plot(self) -> alt.LayerChart:
        """Draw the S_pMSE of every column (on the diagonal) and pair, the largest over the syntheses."""
        from disclosure_pipeline.evaluation.plots.pictures import plot_resemblance

        return plot_resemblance(self.columns["S_pMSE"], self.pairs.get("S_pMSE"))


def resemblance(ground_truth: TableSource, synthetic: Syntheses) -> TablesResemblance:
    """Measure how far apart the tables are in every shared column, and in every pair of shared columns.

    Numbers are put into 5 quantile groups of the pooled tables (of equal width if these are fewer than 3);
    missing is a level. Distances show how useful SD is, and which columns were recoded, for which figures of
    disclosure mean nothing. A large distance is no proof: bad synthesizers are far from GT, too.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.

    Returns:
        Frames `columns` and `pairs`: see `TablesResemblance`. `plot()` draws a heat map of S_pMSE, which
        synthpop advises to keep below 10, or better below 3.

    Raises:
        InputError: No column is in all tables, or a column has values of different kinds.

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
    return measure_resemblance(tables.code(tables.keys))


def measure_resemblance(coded: Sequence[CodedColumn]) -> TablesResemblance:
    """Return the resemblance of columns that are coded but not grouped."""
    columns = [group_numbers(column) for column in coded]
    column_rows = {
        (column.name, synthesis): to_row(resemblance_of(column.counts[0], s))
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
        build_frame(column_rows, ["column", "synthesis"]),
        build_frame(pair_rows, ["column_1", "column_2", "synthesis"]) if pair_rows else pd.DataFrame(),
    )


def _compare_pair(first: CodedColumn, second: CodedColumn) -> list[dict[str, float]]:
    counts_GT, *counts_SD = count_pair(first, second)
    return [to_row(resemblance_of(counts_GT, counts)) for counts in counts_SD]


def group_numbers(column: CodedColumn) -> CodedColumn:
    """Group a column of numbers as `resemblance` does; return other columns unchanged."""
    groups = {column.name: GROUPS} if column.kind is Kind.NUMBER else {}
    return grouping_of(groups=groups).apply(column)


_MOST_LOOKED_UP = 50_000_000  # values of all pairs of columns
_FEWEST = 100  # records that suffice for twenty groups


def find_renumbered(columns: Sequence[CodedColumn]) -> dict[tuple[Any, int], float]:
    """Return `looks_renumbered` of each ordered column by (column, synthesis); 0 for too few records."""
    ordered = [column for column in columns if column.kind in ORDERED_KINDS]
    step = max(1, len(ordered) * len(columns) * len(columns[0].codes[0]) // _MOST_LOOKED_UP)
    levels = {id(column): group_numbers(column) for column in columns}
    return {
        (column.name, synthesis): _measure_column(
            column, [levels[id(other)] for other in columns if other is not column], synthesis, step
        )
        for column in ordered
        for synthesis in range(1, len(column.codes))
    }


def _measure_column(column: CodedColumn, others: Sequence[CodedColumn], synthesis: int, step: int) -> float:
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
                count(0, by_GT, other), count(synthesis, by_SD, other), count(synthesis, by_GT, other)
            )
            for other in others
            if other.size <= len(column.codes[0])
        ]
    )
