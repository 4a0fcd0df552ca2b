"""Key combinations as rows of numbers: one-hot categories and scaled numbers, or numbered categories.

Scikit-learn's scaler and pipelines are not used, because they sum over records, so the last digits of their
figures depend on the order of a table. Sums here run over levels and their numbers of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import combine_keys
from disclosure_pipeline.tables.grouping import mark_special
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Kind

# In wider matrices most entries are 0, and a sparse matrix is smaller and faster.
_WIDEST_DENSE = 128
# The most levels that scikit-learn's boosted trees take as categories.
_MOST_CATEGORIES = 255


def convert_levels(column: CodedColumn, special: Sequence[float] = ()) -> Floats:
    """Return the number of each code (shape: size): NaN for missing and special values.

    Dates and durations count from the smallest one. InputError if a value is infinite or too large to be
    squared.
    """
    numbers = np.full(column.size, np.nan)
    if column.kind is Kind.NUMBER:
        ordinary = ~mark_special(column.levels, special)
        numbers[:-1][ordinary] = [_to_float(level) for level in column.levels[ordinary].tolist()]
        if not (np.abs(numbers[:-1][ordinary]) < 1e150).all():  # noqa: PLR2004 (its square is a float)
            raise InputError(
                f"Column {column.name!r} holds infinite values, or values beyond 1e150, which cannot be "
                "predicted or compared. Declare them as special values, or make them missing."
            )
    elif len(column.levels):
        numbers[:-1] = (column.levels - column.levels[0]).astype(np.int64)
    return numbers


def _to_float(level: Any) -> float:
    try:
        return float(level)
    except OverflowError:
        return np.inf


@dataclass(frozen=True)
class KeyColumn:
    """A key, and the number and category of each of its codes.

    An ordered code has a number and no category (-1); a missing, special or unordered code has a category
    and, if the key has numbers at all, the number NaN.
    """

    column: CodedColumn
    numbers: Floats | None
    category: IntArray


def describe_key(column: CodedColumn, special: Sequence[float], *, unordered: bool) -> KeyColumn:
    """Return a key's numbers and categories: numbers, dates and durations are ordered unless `unordered`.

    InputError as in `convert_levels`.
    """
    if unordered or column.kind not in ORDERED_KINDS:
        return KeyColumn(column, None, np.arange(column.size))
    numbers = convert_levels(column, special)
    return KeyColumn(column, numbers, np.where(np.isnan(numbers), np.arange(column.size), -1))


@dataclass(frozen=True)
class FeatureSpace:
    """The key combinations of some tables, encoded for a learner.

    `features` has a row per combination (dense, or sparse if it is wide); `q[i]` has the row of each record
    of table i. `categorical` marks the features that are numbered categories.
    """

    features: Any
    categorical: Mask
    q: tuple[IntArray, ...]


def encode_one_hot(keys: Sequence[KeyColumn], tables: Sequence[int]) -> FeatureSpace:
    """Encode every category that occurs in one of the tables as a column of 0 and 1, and scale every number.

    Numbers are scaled by mean and standard deviation of GT, the first table; a missing or special number is
    set to the mean and marked by a column of 0 and 1. So two different categories, two random numbers, and a
    number and a missing one are equally far from each other, on average.
    """
    q, codes = _combine_keys(keys, tables)
    columns, values = [], []
    width = 0
    for key, key_codes in zip(keys, codes, strict=True):
        occurs = _mark_occurring(key, tables)
        if key.numbers is not None:
            scaled = np.nan_to_num(_scale(key.numbers, key.column.codes[0], occurs))
            columns.append(np.full(len(key_codes), width))
            values.append(scaled[key_codes])
            width += 1
        category, categories = _renumber(key.category, occurs)
        columns.append(np.where(category >= 0, category + width, -1)[key_codes])
        values.append(np.ones(len(key_codes)))
        width += categories
    from scipy.sparse import csr_matrix

    rows = np.tile(np.arange(len(columns[0])), len(columns))
    column, value = np.concatenate(columns), np.concatenate(values)
    kept = column >= 0
    matrix = csr_matrix((value[kept], (rows[kept], column[kept])), shape=(len(columns[0]), width))
    return FeatureSpace(matrix if width > _WIDEST_DENSE else matrix.toarray(), np.zeros(width, dtype=bool), q)


def encode_numbered(keys: Sequence[KeyColumn], tables: Sequence[int]) -> FeatureSpace:
    """Encode each key as a column of numbers (or NaN), if it has any, and a column of numbered categories."""
    q, codes = _combine_keys(keys, tables)
    features, categorical = [], []
    for key, key_codes in zip(keys, codes, strict=True):
        if key.numbers is not None:
            features.append(key.numbers[key_codes])
            categorical.append(False)
        category, categories = _renumber(key.category, _mark_occurring(key, tables))
        if categories:
            features.append(category[key_codes].astype(np.float64))
            features[-1][category[key_codes] < 0] = np.nan
            categorical.append(categories <= _MOST_CATEGORIES)
    return FeatureSpace(np.column_stack(features), np.array(categorical, dtype=bool), q)


def _combine_keys(
    keys: Sequence[KeyColumn], tables: Sequence[int]
) -> tuple[tuple[IntArray, ...], list[IntArray]]:
    """Return the combination of each record, and the codes of each key by combination."""
    combined = combine_keys(
        [[key.column.codes[i] for i in tables] for key in keys], [key.column.size for key in keys]
    )
    return combined.q, [combined.level_of(k) for k in range(len(keys))]


def _mark_occurring(key: KeyColumn, tables: Sequence[int]) -> Mask:
    occurs = np.zeros(key.column.size, dtype=bool)
    for i in tables:
        occurs[key.column.codes[i]] = True
    return occurs


def _renumber(category: IntArray, occurs: Mask) -> tuple[IntArray, int]:
    """Renumber the categories that occur as 0, 1, 2, …, others as -1; also return their number."""
    used = occurs & (category >= 0)
    return np.where(used, np.cumsum(used) - 1, -1), int(used.sum())


def _scale(numbers: Floats, codes_GT: IntArray, occurs: Mask) -> Floats:
    """Scale by mean and standard deviation of GT, or of all levels that occur if GT has a single number."""
    largest = np.nanmax(np.abs(numbers[occurs]), initial=0.0)
    shrunk = numbers / (largest or 1.0)  # so that squares do not overflow
    counts = np.bincount(codes_GT, minlength=len(numbers))
    for weights in (counts, occurs.astype(np.int64)):
        weighted = ~np.isnan(shrunk) & (weights > 0)
        if len(np.unique(shrunk[weighted])) > 1:
            center = np.average(shrunk[weighted], weights=weights[weighted])
            spread = np.sqrt(np.average((shrunk[weighted] - center) ** 2, weights=weights[weighted]))
            if spread > 0:
                return np.asarray((shrunk - center) / spread, dtype=np.float64)
    return np.zeros(len(numbers))
