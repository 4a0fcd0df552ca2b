"""`replicated_uniques()` and `remove_uniques()`: the synthetic records that point at one person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.comparability import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.measures.exact import Mask, percent
from disclosure_pipeline.measures.identity import unique_records
from disclosure_pipeline.tables.alignment import check_tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of

Which = Literal["replicated", "in_original"]


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


@overload
def replicated_uniques(
    ground_truth: Any,
    synthetic: Sequence[Any],
    keys: Sequence[Any],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> tuple[ReplicatedUniques, ...]: ...


@overload
def replicated_uniques(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> ReplicatedUniques: ...


def replicated_uniques(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> ReplicatedUniques | tuple[ReplicatedUniques, ...]:
    """Find the synthetic records that point at one person. Arguments and errors as in `disclosure()`.

    For a sequence of syntheses a tuple with the result of each, in their order.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 50, 50]})
        >>> synthetic = pd.DataFrame({"sex": ["f", "m", "m"], "age": [30, 50, 60]})
        >>> uniques = dp.replicated_uniques(patients, synthetic, ["sex", "age"])
        >>> uniques.replicated.tolist(), uniques.in_original.tolist()
        ([True, False, False], [True, True, False])

    Source: synthpop `replicated.uniques`.
    """
    grouping = grouping_of(groups, special_values, edges)
    tables = check_tables(ground_truth, synthetic, keys, (), grouping)
    key_columns = tables.code(tables.keys)
    warn_of_doubts(find_doubts(tables, key_columns))
    combinations = combine_columns(key_columns)
    results = tuple(
        _result(*unique_records(combinations, synthesis)) for synthesis in range(1, len(tables.frames))
    )
    return results if isinstance(synthetic, Sequence) else results[0]


def _result(replicated: Mask, in_original: Mask) -> ReplicatedUniques:
    records, n_replicated, n_in_original = len(replicated), int(replicated.sum()), int(in_original.sum())
    return ReplicatedUniques(
        replicated=replicated,
        in_original=in_original,
        n_replicated=n_replicated,
        n_in_original=n_in_original,
        pct_replicated=percent(n_replicated, records),
        pct_in_original=percent(n_in_original, records),
    )


@overload
def remove_uniques(
    synthetic: Sequence[Any], uniques: Sequence[ReplicatedUniques], which: Which = "replicated"
) -> tuple[tuple[Any, int], ...]: ...


@overload
def remove_uniques(
    synthetic: pd.DataFrame, uniques: ReplicatedUniques, which: Which = "replicated"
) -> tuple[pd.DataFrame, int]: ...


@overload
def remove_uniques(
    synthetic: Any, uniques: ReplicatedUniques, which: Which = "replicated"
) -> tuple[Any, int]: ...


def remove_uniques(synthetic: Any, uniques: Any, which: Which = "replicated") -> Any:
    """Return the synthetic table without the records of `which` kind, and how many records that took.

    The table keeps its type, and what was given stays as it is. Of a sequence of syntheses, with the tuple
    that `replicated_uniques` returns for them, a tuple of such pairs in their order.

    Raises InputError where `uniques` are of another table or `which` is neither of the two.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 50, 50]})
        >>> synthetic = pd.DataFrame({"sex": ["f", "m", "m"], "age": [30, 50, 60]})
        >>> uniques = dp.replicated_uniques(patients, synthetic, ["sex", "age"])
        >>> dp.remove_uniques(synthetic, uniques)
        (  sex  age
        1   m   50
        2   m   60, 1)
    """
    if which not in {"replicated", "in_original"}:
        raise InputError(f"which must be 'replicated' or 'in_original', not {which!r}.")
    if not isinstance(synthetic, Sequence):
        return _without(synthetic, uniques, which)
    if not isinstance(uniques, Sequence) or len(uniques) != len(synthetic):
        raise InputError(
            f"uniques must be the results of these {len(synthetic)} syntheses: call replicated_uniques on "
            "them."
        )
    return tuple(_without(table, of_table, which) for table, of_table in zip(synthetic, uniques, strict=True))


def _without(synthetic: Any, uniques: Any, which: str) -> tuple[Any, int]:
    if not isinstance(uniques, ReplicatedUniques):
        raise InputError(
            f"uniques must be what replicated_uniques returns for the table, not {type(uniques).__name__}."
        )
    mask: Mask = getattr(uniques, which)
    if len(mask) != len(synthetic):
        raise InputError(
            f"uniques are of a table with {len(mask)} records, this one has {len(synthetic)}: "
            "call replicated_uniques on this table."
        )
    if isinstance(synthetic, pd.DataFrame):
        return synthetic.loc[~mask].copy(), int(mask.sum())
    return synthetic.filter(~mask), int(mask.sum())  # the method of Polars and Arrow
