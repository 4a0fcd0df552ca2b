"""`disclosure()`: two tables in, all measures out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from disclosure_pipeline import comparison
from disclosure_pipeline.elsewhere import Elsewhere, relational_tables, tables_given
from disclosure_pipeline.engines import memory, partitioned
from disclosure_pipeline.engines.counted import TABLES, Counted, OfTarget
from disclosure_pipeline.engines.job import Target
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.exclusions import Exclusions, check_exclusions, code_exclusions
from disclosure_pipeline.measures.attribute import attribute
from disclosure_pipeline.measures.attribution import Attribution, attribution
from disclosure_pipeline.measures.chance import chance
from disclosure_pipeline.measures.checks import OneWay, TwoWay, one_way, two_way
from disclosure_pipeline.measures.exact import Mask, percent
from disclosure_pipeline.measures.exclusions import STEPS
from disclosure_pipeline.measures.frequency import combine_keys
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.identity import Identity, Uniques, identity
from disclosure_pipeline.measures.overlap import Overlap
from disclosure_pipeline.measures.uniques import unique_records
from disclosure_pipeline.progress import Progress, shown, silent
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.alignment import (
    Grouping,
    Tables,
    check_names,
    check_not_empty,
    check_tables,
    check_values,
    table_names,
)
from disclosure_pipeline.tables.distinct import code_distinct
from disclosure_pipeline.tables.grouping import Edges
from disclosure_pipeline.tables.levels import CodedColumn

Thresholds = tuple[float, float]

ONE_WAY: Thresholds = (50, 90)
TWO_WAY: Thresholds = (4, 80)


def disclosure(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    targets: Any = None,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    exclude: Exclusions | None = None,
    one_way: Thresholds = ONE_WAY,
    two_way: Thresholds = TWO_WAY,
    engine: str = "auto",
    progress: bool = False,
) -> Disclosure:
    """Measure what a synthetic table gives away about the records it was made from.

    Args:
        ground_truth: The confidential records, one a row: a data frame; the path of a file, or another
            source (`FileSource`, `SqlSource`, `DuckDBSource`); or a table of Ibis.
        synthetic: The synthetic table, or a sequence of m of them that were made from the same records.
        keys: The columns that an intruder knows (quasi-identifiers).
        targets: The column or columns that an intruder wants to learn; None for every shared column that
            is no key.
        groups: Numeric column -> number of groups, for keys and targets. By default a number is a level.
        special_values: Column -> codes (such as -8 for "not applicable") that take no part in the grouping
            and stay levels of their own.
        edges: Where groups end. "pooled": quantiles of GT and all syntheses; "ground_truth": quantiles of
            GT alone, which stay put from release to release; "equal_width"; or column -> explicit edges.
            The outermost edges are opened, so that every value has a group. Fewer than 3 groups from
            quantiles: equal width instead. Columns outside a mapping use "pooled".
        exclude: Cells to leave out of the measures.
        one_way: A target level is flagged when it has more DiSCO records than the first number and more
            than the second in percent of all of them.
        two_way: A pair of target and key level is flagged when it has DiSCO cells of more records than the
            first number, and more than the second in percent of the key level's GT records have the target
            level.
        engine: Who counts; every figure is the same. "memory"; "partitioned": files are read in batches, and
            what does not fit into memory is put aside, encrypted, in the folder for temporary files; the URL
            of a database for Ibis (extra `ibis`), such as "duckdb://": tables are then the names of its
            tables, or files that it reads, and are counted there. "auto" chooses between the first two by
            the tables' size and the memory that is free, and takes tables of Ibis where they are;
            `Disclosure.engine` tells what was chosen.
        progress: Whether to show on the standard error stream how far the work is.

    Returns:
        Frames with a row per synthesis and target; percentages of all GT records unless they say otherwise.

    Raises:
        InputError: The tables cannot be compared or the arguments contradict them; nothing was computed.

    Source: Raab, Nowok & Dibben 2024 (arXiv:2406.16826), sections 3 to 5 and appendices 1 and 2.
    """
    grouping = Grouping(groups or {}, special_values or {}, edges)
    thresholds = (_check_thresholds("one_way", one_way), _check_thresholds("two_way", two_way))
    larger_than = thresholds[1][0]
    exclusions = exclude or Exclusions()
    with (
        shown() if progress else nullcontext(silent) as show,
        tables_given(ground_truth, synthetic, engine) as given,
    ):
        if isinstance(given, Elsewhere):
            counts = count_elsewhere(given, keys, targets, grouping, exclusions, larger_than, show)
        else:
            tables = check_tables(*given.tables, keys, targets, grouping)
            counts = count(tables, exclusions, larger_than, show, given.engine)
        return replace(figures(counts, *thresholds), engine=given.told)


@dataclass(frozen=True)
class Counts:
    """The columns that were counted, what was found, and the number of records of each table (GT first).

    `strange`: warnings of columns that are in one table alone, or number the records; not looked for where
    only the keys are counted.
    """

    keys: Sequence[CodedColumn]
    targets: Sequence[CodedColumn]
    found: Counted
    records: tuple[int, ...]
    strange: Sequence[str]

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' names in messages."""
        return table_names(len(self.records))


def count(
    tables: Tables,
    exclusions: Exclusions,
    larger_than: float = math.inf,
    progress: Progress = silent,
    engine: str = "memory",
    keys_only: bool = False,
) -> Counts:
    """Count what the measures are made of; DiSCO cells of more records than `larger_than` one by one.

    `engine`: "memory", "partitioned" or the URL of a database, to which the frames are brought. InputError
    where there is no target, unless `keys_only`; and where an exclusion names nothing.
    """
    _check_asked(exclusions, tables.keys, tables.targets, keys_only)
    if "://" in engine:
        with relational_tables(tables.frames, engine) as elsewhere:
            asked_of = (tables.keys, tables.targets, tables.grouping, exclusions, larger_than, progress)
            return count_elsewhere(elsewhere, *asked_of, keys_only=keys_only)
    columns = tables.code((*tables.keys, *tables.targets))
    keys, asked = _asked(columns, len(tables.keys), exclusions, larger_than)
    if engine == "partitioned":
        found = partitioned.count(keys, asked, partitioned.in_memory(columns), progress)
    else:
        found = memory.count(keys, asked, progress)
    records = tuple(len(frame) for frame in tables.frames)
    strange = [] if keys_only else comparison.strange_columns(tables)
    return Counts(keys, columns[len(keys) :], found, records, strange)


def count_elsewhere(
    tables: Elsewhere,
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
    exclusions: Exclusions,
    larger_than: float = math.inf,
    progress: Progress = silent,
    keys_only: bool = False,
) -> Counts:
    """As `count`, of tables that are not frames; `keys` and `targets` are checked as `check_tables` does."""
    key_names, target_names = check_names(tables.columns, keys, targets, grouping)
    _check_asked(exclusions, key_names, target_names, keys_only)
    names = (*key_names, *target_names)
    ungrouped = code_elsewhere(tables, names, grouping, progress)
    columns = [grouping.apply(column) for column in ungrouped]
    asked_keys, asked = _asked(columns, len(key_names), exclusions, larger_than)
    found = tables.count(asked_keys, asked, progress)
    strange = [] if keys_only else comparison.strange_coded(tables.columns, ungrouped)
    records = tuple(int(counts.sum()) for counts in columns[0].counts)
    return Counts(asked_keys, columns[len(key_names) :], found, records, strange)


def code_elsewhere(
    tables: Elsewhere, names: Sequence[Any], grouping: Grouping, progress: Progress = silent
) -> list[CodedColumn]:
    """Columns coded over their values, not grouped yet. InputError as `check_tables`."""
    distinct = tables.distinct(names, progress)
    check_not_empty([of_table.records for of_table in distinct[names[0]]])
    for name in names:
        check_values(name, [of_table.values for of_table in distinct[name]], grouping)
    return [code_distinct(name, distinct[name], table_names(len(tables.columns))) for name in names]


def _check_asked(
    exclusions: Exclusions, keys: Sequence[Any], targets: Sequence[Any], keys_only: bool
) -> None:
    if not targets and not keys_only:
        raise InputError("targets is empty: name at least one column, or pass None for all that are no keys.")
    check_exclusions(exclusions, keys, targets)


def _asked(
    columns: Sequence[CodedColumn], keys: int, exclusions: Exclusions, larger_than: float
) -> tuple[Sequence[CodedColumn], list[Target]]:
    """The keys, and what is asked of the targets. A level that does not exist is refused before counting."""
    of_keys, targets = columns[:keys], columns[keys:]
    return of_keys, [Target(one, code_exclusions(exclusions, one, of_keys), larger_than) for one in targets]


def figures(
    counts: Counts,
    one_way: Thresholds,
    two_way: Thresholds,
    *,
    with_attribution: bool = True,
    with_chance: bool = True,
) -> Disclosure:
    """The measures, from what was counted."""
    found, thresholds = counts.found, (one_way, two_way)
    rows = _Rows.empty()
    N_d, *N_s = counts.records
    for synthesis, of_keys in enumerate(found.keys, start=1):
        rows.identity[(synthesis,)] = asdict(identity(of_keys.uniques, N_d, N_s[synthesis - 1]))
    for key in counts.keys:
        shares, doubts = comparison.compare(key, counts.names)
        rows.key_overlap.update(shares)
        rows.warnings.extend(doubts)
    whole_key = comparison.whole_key_overlap([of_keys.shared for of_keys in found.keys], N_d, N_s)
    rows.key_overlap.update(whole_key)
    rows.warnings.extend([*comparison.low_whole_key(whole_key, counts.names), *counts.strange])
    for target, of_target, pairs in zip(counts.targets, found.targets, found.pairs_of_key, strict=True):
        shares, doubts = comparison.compare(target, counts.names)
        rows.target_overlap.update(shares)
        rows.warnings.extend(doubts)
        for synthesis, of_one in enumerate(of_target, start=1):
            at = (target.name, synthesis)
            N = (N_d, N_s[synthesis - 1])
            d_t, s_t = target.counts[0], target.counts[synthesis]
            rows.attribute[at] = asdict(attribute(of_one.totals, *N))
            if with_attribution:
                rows.attribution[at] = asdict(attribution(of_one.totals, of_one.cells, d_t, *N))
            if with_chance:
                DiSCO = of_one.totals.records.DiSCO
                rows.attribute[at] |= asdict(chance(DiSCO, of_one.cells.drawn, s_t, *N))
            _after_exclusions(rows, at, of_one, found.keys[synthesis - 1].uniques, N)
            _checks(rows, at, of_one, pairs, target, counts.keys, thresholds)
    return _result(rows, counts)


@dataclass(frozen=True)
class _Rows:
    """The rows of the result's frames, by their index."""

    identity: dict[tuple[Any, ...], dict[str, Any]]
    attribute: dict[tuple[Any, ...], dict[str, Any]]
    attribution: dict[tuple[Any, ...], dict[str, Any]]
    identity_after_exclusions: dict[tuple[Any, ...], dict[str, Any]]
    excluded: dict[tuple[Any, ...], dict[str, Any]]
    key_overlap: dict[tuple[Any, ...], dict[str, Any]]
    target_overlap: dict[tuple[Any, ...], dict[str, Any]]
    one_way: list[dict[str, Any]]
    two_way: list[dict[str, Any]]
    warnings: list[str]

    @classmethod
    def empty(cls) -> _Rows:
        return cls({}, {}, {}, {}, {}, {}, {}, [], [], [])


def key_overlap(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """What the tables share of each key and of the whole key: `key_overlap` of `disclosure()`, alone.

    Tables that share few values cannot be compared: every risk would read near 0. Errors as there.
    """
    tables = check_tables(
        ground_truth, synthetic, keys, (), Grouping(groups or {}, special_values or {}, edges)
    )
    return overlap_of(count(tables, Exclusions(), keys_only=True))


def overlap_of(counts: Counts) -> pd.DataFrame:
    """The frame `key_overlap` of what was counted."""
    N_d, *N_s = counts.records
    rows = comparison.whole_key_overlap([of_keys.shared for of_keys in counts.found.keys], N_d, N_s)
    for column in counts.keys:
        rows |= comparison.compare(column, counts.names)[0]
    return _frame(rows, ["key", "synthesis"], _names(Overlap))


def bins(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Any,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """The levels of every grouped column, and the records in each: columns column, level, GT, SD.

    SD counts are summed over the syntheses. Arguments and errors as in `disclosure()`.
    """
    grouping = Grouping(groups or {}, special_values or {}, edges)
    tables = check_tables(ground_truth, synthetic, keys, targets, grouping)
    grouped = [name for name in (*tables.keys, *tables.targets) if grouping.grouped(name)]
    return bins_of([tables.coded(name) for name in grouped])


def bins_of(columns: Sequence[CodedColumn]) -> pd.DataFrame:
    """The frame of `bins` from the columns that are grouped."""
    rows = []
    for column in columns:
        counts = column.counts
        rows += [
            {
                "column": column.name,
                "level": column.label(code),
                "GT": int(counts[0][code]),
                "SD": int(of_code),
            }
            for code, of_code in enumerate(np.sum(counts[1:], axis=0))
        ]
    return pd.DataFrame(rows, columns=["column", "level", "GT", "SD"])


def _after_exclusions(
    rows: _Rows, at: tuple[Any, int], found: OfTarget, of_all: Uniques, N: tuple[int, int]
) -> None:
    """What the exclusions took out and what is left, added to the rows."""
    excluded = found.excluded
    rows.identity_after_exclusions[at] = asdict(identity(excluded.uniques if excluded else of_all, *N))
    taken = excluded.taken.tolist() if excluded else [[0] * len(STEPS)] * len(TABLES)
    for table, counts in zip(TABLES, taken, strict=True):
        remaining = getattr(found.totals.records, table)
        rows.excluded.update({(*at, table): dict(zip(STEPS, counts, strict=True)) | {"remaining": remaining}})


def _checks(
    rows: _Rows,
    at: tuple[Any, int],
    found: OfTarget,
    pairs_of_key: Sequence[Grouped],
    target: CodedColumn,
    keys: Sequence[CodedColumn],
    thresholds: tuple[Thresholds, Thresholds],
) -> None:
    """The flags of one target in one synthesis, added to the rows."""
    original_t = Grouped.of(np.arange(target.size), target.counts[0])
    if found.excluded:
        original_t, pairs_of_key = found.excluded.original_t, found.excluded.pairs_of_key
    first = {"target": at[0], "synthesis": at[1]}
    for one in one_way(found.cells.DiSCO_t, original_t, thresholds[0]):
        rows.one_way.append(first | asdict(one) | {"level": target.label(one.level)})
    if not len(found.large.t):
        return
    for two in two_way(found.large, pairs_of_key, target.size, thresholds[1][1]):
        key = keys[two.key]
        labels = {
            "target_level": target.label(two.target_level),
            "key": key.name,
            "key_level": key.label(two.key_level),
        }
        rows.two_way.append(first | vars(two) | labels)  # there can be many


def _result(rows: _Rows, counts: Counts) -> Disclosure:
    per_target = ["target", "synthesis"]
    return Disclosure(
        keys=tuple(key.name for key in counts.keys),
        targets=tuple(target.name for target in counts.targets),
        N_d=counts.records[0],
        N_s=counts.records[1:],
        identity=_frame(rows.identity, ["synthesis"], _names(Identity)),
        attribute=_frame(rows.attribute, per_target, list(next(iter(rows.attribute.values())))),
        attribution=_frame(rows.attribution, per_target, _names(Attribution)),
        identity_after_exclusions=_frame(rows.identity_after_exclusions, per_target, _names(Identity)),
        one_way=pd.DataFrame(rows.one_way, columns=["target", "synthesis", *_names(OneWay)]),
        two_way=pd.DataFrame(rows.two_way, columns=["target", "synthesis", *_names(TwoWay)]),
        excluded=_frame(rows.excluded, [*per_target, "table"], [*STEPS, "remaining"]),
        key_overlap=_frame(rows.key_overlap, ["key", "synthesis"], _names(Overlap)),
        target_overlap=_frame(rows.target_overlap, per_target, _names(Overlap)),
        warnings=tuple(rows.warnings),
    )


def _frame(
    rows: Mapping[tuple[Any, ...], Mapping[str, Any]], index: list[str], columns: list[str]
) -> pd.DataFrame:
    labels = pd.DataFrame(list(rows), columns=index)
    frame: pd.DataFrame = pd.concat([labels, pd.DataFrame(list(rows.values()), columns=columns)], axis=1)
    return frame.set_index(index)


def _names(measures: type) -> list[str]:
    return [field.name for field in fields(measures)]


def _check_thresholds(name: str, thresholds: Thresholds) -> Thresholds:
    pair = tuple(thresholds) if isinstance(thresholds, Iterable) else ()
    numbers = all(
        isinstance(number, (int, float)) and not isinstance(number, bool) and number >= 0 for number in pair
    )
    if len(pair) != 2 or not numbers:  # noqa: PLR2004 (a pair)
        raise InputError(f"{name} must be two numbers from 0 on (records, percent), not {thresholds!r}.")
    return (pair[0], pair[1])


@dataclass(frozen=True)
class ReplicatedUniques:
    """The synthetic records whose key combination is unique in the synthetic table.

    `replicated`: those that are unique in GT too; `in_original`: those that occur in GT, unique or not.
    Both are masks over the synthetic records, in their order; percentages are of all synthetic records.
    """

    replicated: Mask
    in_original: Mask
    n_replicated: int
    n_in_original: int
    pct_replicated: float
    pct_in_original: float


def replicated_uniques(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame,
    keys: Sequence[Any],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> ReplicatedUniques:
    """Find the synthetic records that point at one person. Arguments and errors as in `disclosure()`.

    Source: synthpop `replicated.uniques`.
    """
    if not isinstance(synthetic, pd.DataFrame):
        raise InputError("replicated_uniques takes one synthetic table: call it for each synthesis.")
    grouping = Grouping(groups or {}, special_values or {}, edges)
    tables = check_tables(ground_truth, synthetic, keys, (), grouping)
    columns = [tables.coded(key) for key in tables.keys]
    found, in_GT = unique_records(combine_keys([c.codes for c in columns], [c.size for c in columns]))
    return ReplicatedUniques(
        replicated=found,
        in_original=in_GT,
        n_replicated=int(found.sum()),
        n_in_original=int(in_GT.sum()),
        pct_replicated=percent(int(found.sum()), len(synthetic)),
        pct_in_original=percent(int(in_GT.sum()), len(synthetic)),
    )


def remove_uniques(
    synthetic: pd.DataFrame,
    found: ReplicatedUniques,
    which: Literal["replicated", "in_original"] = "replicated",
) -> tuple[pd.DataFrame, int]:
    """The synthetic table without the records found, and how many that took. The input stays as it is.

    Raises InputError where `found` is of another table or `which` is neither of the two.
    """
    if which not in {"replicated", "in_original"}:
        raise InputError(f"which must be 'replicated' or 'in_original', not {which!r}.")
    mask: Mask = getattr(found, which)
    if len(mask) != len(synthetic):
        raise InputError(
            f"found is of a table with {len(mask)} records, this one has {len(synthetic)}: "
            "call replicated_uniques on this table."
        )
    return synthetic.loc[~mask].copy(), int(mask.sum())
