"""`disclosure()`: two tables in, all measures out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import pandas as pd

from disclosure_pipeline import comparison
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.exclusions import Exclusions, check_exclusions, code_exclusions, level_exclusions
from disclosure_pipeline.measures.attribute import DisclosureTables, attribute, disclosure_tables
from disclosure_pipeline.measures.attribution import Attribution, attribution
from disclosure_pipeline.measures.chance import chance
from disclosure_pipeline.measures.checks import OneWay, TwoWay, one_way, two_way
from disclosure_pipeline.measures.exact import Mask, percent
from disclosure_pipeline.measures.exclusions import STEPS, CodedExclusions, exclude, nothing_excluded
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, combine_keys, frequency_tables
from disclosure_pipeline.measures.identity import Identity, identity
from disclosure_pipeline.measures.overlap import Overlap
from disclosure_pipeline.measures.uniques import unique_records
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.alignment import Grouping, Tables, check_tables
from disclosure_pipeline.tables.grouping import Edges
from disclosure_pipeline.tables.levels import CodedColumn

Thresholds = tuple[float, float]


def disclosure(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Any = None,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    exclude: Exclusions | None = None,
    one_way: Thresholds = (50, 90),
    two_way: Thresholds = (4, 80),
) -> Disclosure:
    """Measure what a synthetic table gives away about the records it was made from.

    Args:
        ground_truth: The confidential records, one a row.
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

    Returns:
        Frames with a row per synthesis and target; percentages of all GT records unless they say otherwise.

    Raises:
        InputError: The tables cannot be compared or the arguments contradict them; nothing was computed.

    Source: Raab, Nowok & Dibben 2024 (arXiv:2406.16826), sections 3 to 5 and appendices 1 and 2.
    """
    grouping = Grouping(groups or {}, special_values or {}, edges)
    tables = check_tables(ground_truth, synthetic, keys, targets, grouping)
    return evaluate(tables, exclude or Exclusions(), one_way, two_way)


def evaluate(
    tables: Tables,
    exclusions: Exclusions,
    one_way: Thresholds,
    two_way: Thresholds,
    *,
    with_attribution: bool = True,
    with_chance: bool = True,
) -> Disclosure:
    """The measures of checked tables: `disclosure()`, where a family of measures can be left out."""
    if not tables.targets:
        raise InputError("targets is empty: name at least one column, or pass None for all that are no keys.")
    check_exclusions(exclusions, tables.keys, tables.targets)
    thresholds = (_check_thresholds("one_way", one_way), _check_thresholds("two_way", two_way))

    key_columns = [tables.coded(key) for key in tables.keys]
    # A level that does not exist is refused before anything is counted.
    for name in level_exclusions(exclusions):
        code_exclusions(exclusions, tables.coded(name), key_columns)
    coded = combine_keys([column.codes for column in key_columns], [column.size for column in key_columns])
    rows = _Rows.empty()
    for synthesis in range(1, len(tables.frames)):
        rows.identity[(synthesis,)] = asdict(_identity_of_all(coded, synthesis))
    for key in key_columns:
        shares, doubts = comparison.compare(key, tables.names)
        rows.key_overlap.update(shares)
        rows.warnings.extend(doubts)
    whole_key = comparison.whole_key_overlap(coded)
    rows.key_overlap.update(whole_key)
    rows.warnings.extend(comparison.warnings(tables, whole_key))
    for name in tables.targets:
        target = tables.coded(name)
        shares, doubts = comparison.compare(target, tables.names)
        rows.target_overlap.update(shares)
        rows.warnings.extend(doubts)
        wanted = code_exclusions(exclusions, target, key_columns)
        cells = frequency_tables(coded, target.codes, target.size)
        for synthesis, f in enumerate(cells, start=1):
            cells_left = _measure(rows, f, coded, synthesis, target, key_columns, wanted, thresholds)
            if with_attribution:
                rows.attribution[name, synthesis] = asdict(attribution(f, cells_left))
            if with_chance:
                rows.attribute[name, synthesis] |= asdict(chance(f, cells_left))
    return _result(rows, tables)


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


def _identity_of_all(keys: Keys, synthesis: int) -> Identity:
    d_q, s_q = keys.counts[0], keys.counts[synthesis]
    return identity(d_q, s_q, s_q > 0, len(keys.q[0]), len(keys.q[synthesis]))


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
    columns = [tables.coded(key) for key in tables.keys]
    whole = combine_keys([column.codes for column in columns], [column.size for column in columns])
    rows = comparison.whole_key_overlap(whole)
    for column in columns:
        rows |= comparison.compare(column, tables.names)[0]
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
    rows = []
    for name in (*tables.keys, *tables.targets):
        if grouping.grouped(name):
            column = tables.coded(name)
            counts = [np.bincount(codes, minlength=column.size) for codes in column.codes]
            rows += [
                {"column": name, "level": column.label(code), "GT": int(counts[0][code]), "SD": int(of_code)}
                for code, of_code in enumerate(np.sum(counts[1:], axis=0))
            ]
    return pd.DataFrame(rows, columns=["column", "level", "GT", "SD"])


def _measure(
    rows: _Rows,
    f: FrequencyTable,
    keys: Keys,
    synthesis: int,
    target: CodedColumn,
    key_columns: Sequence[CodedColumn],
    wanted: CodedExclusions,
    thresholds: tuple[Thresholds, Thresholds],
) -> DisclosureTables:
    """What is always told about one target in one synthesis, added to the rows; what the exclusions leave."""
    at = (target.name, synthesis)
    cells = disclosure_tables(f)
    if wanted:
        cells, taken = exclude(f, cells, keys, wanted)
        d_q, s_q = f.per_key(cells.original.values()), f.per_key(cells.synthetic.values())
        after = identity(d_q, s_q, keys.counts[synthesis] > 0, f.N_d, f.N_s)
    else:
        taken = nothing_excluded(cells)
        after = _identity_of_all(keys, synthesis)
    rows.attribute[at] = asdict(attribute(f, cells))
    rows.identity_after_exclusions[at] = asdict(after)
    rows.excluded.update({(*at, table): counts for table, counts in taken.items()})
    first = {"target": target.name, "synthesis": synthesis}
    for one in one_way(f, cells, thresholds[0]):
        rows.one_way.append(first | asdict(one) | {"level": target.label(one.level)})
    for two in two_way(f, cells, keys, thresholds[1]):
        key = key_columns[two.key]
        labels = {
            "target_level": target.label(two.target_level),
            "key": key.name,
            "key_level": key.label(two.key_level),
        }
        rows.two_way.append(first | asdict(two) | labels)
    return cells


def _result(rows: _Rows, tables: Tables) -> Disclosure:
    per_target = ["target", "synthesis"]
    return Disclosure(
        keys=tables.keys,
        targets=tables.targets,
        N_d=len(tables.frames[0]),
        N_s=tuple(len(frame) for frame in tables.frames[1:]),
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
