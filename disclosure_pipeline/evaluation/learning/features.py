"""Key combinations as rows of numbers: one-hot categories and scaled numbers, or numbered categories.

Not by scikit-learn's scaler and pipelines, which add up records, so that the last digits of their figures
depend on how a table is sorted: here sums are over levels and the records that have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import combine_keys
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Kind

# Wider than this, most entries are zeros, and a sparse matrix is smaller and faster.
_WIDEST_DENSE = 128
# The most levels that scikit-learn's boosted trees take as categories.
_MOST_CATEGORIES = 255


def numbers_of_levels(column: CodedColumn, special: Sequence[float] = ()) -> Floats:
    """Return the number that each code stands for (shape: size): NaN for missing and special values.

    Dates and durations count from the earliest one. InputError where a value is infinite or too large to
    be squared.
    """
    numbers = np.full(column.size, np.nan)
    if column.kind is Kind.NUMBER:
        ordinary = ~np.isin(column.levels, list(special))
        numbers[:-1][ordinary] = [_float(level) for level in column.levels[ordinary].tolist()]
        if not (np.abs(numbers[:-1][ordinary]) < 1e150).all():  # noqa: PLR2004 (its square is a float)
            raise InputError(
                f"Column {column.name!r} holds infinite values, or values beyond 1e150: they cannot be "
                "predicted or compared. Make them special values, or missing."
            )
    elif len(column.levels):
        numbers[:-1] = (column.levels - column.levels[0]).astype(np.int64)
    return numbers


def _float(level: Any) -> float:
    try:
        return float(level)
    except OverflowError:
        return np.inf


@dataclass(frozen=True)
class KeyColumn:
    """A key, and which number and category each of its codes stands for.

    A code on a line has a number and no category (-1); a missing, special or unordered one has a category
    and, if the key has numbers at all, NaN.
    """

    column: CodedColumn
    numbers: Floats | None
    category: IntArray


def describe_key(column: CodedColumn, special: Sequence[float], *, unordered: bool) -> KeyColumn:
    """Return a key's numbers and categories: numbers, dates and durations lie on a line unless `unordered`.

    InputError as `numbers_of_levels`.
    """
    if unordered or column.kind not in ORDERED_KINDS:
        return KeyColumn(column, None, np.arange(column.size))
    numbers = numbers_of_levels(column, special)
    return KeyColumn(column, numbers, np.where(np.isnan(numbers), np.arange(column.size), -1))


@dataclass(frozen=True)
class FeatureSpace:
    """The key combinations of some tables as a learner is given them.

    `features` has one row per combination (dense, or sparse where it is wide); `q[i]` holds the row of each
    record of table i. `categorical` marks the features that are numbered categories.
    """

    features: Any
    categorical: Mask
    q: tuple[IntArray, ...]


def encode_one_hot(keys: Sequence[KeyColumn], tables: Sequence[int]) -> FeatureSpace:
    """Every category that occurs in one of the tables becomes a column of 0 and 1, every number is scaled.

    Scaled by mean and standard deviation of GT, the first table. A missing or special number lies at the
    mean and has a column of 0 and 1 of its own. So two records that differ in one category, two random
    numbers, and a number and a missing one are, on average, equally far from each other.
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
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

    rows = np.tile(np.arange(len(columns[0])), len(columns))
    column, value = np.concatenate(columns), np.concatenate(values)
    kept = column >= 0
    matrix = csr_matrix((value[kept], (rows[kept], column[kept])), shape=(len(columns[0]), width))
    return FeatureSpace(matrix if width > _WIDEST_DENSE else matrix.toarray(), np.zeros(width, dtype=bool), q)


def encode_numbered(keys: Sequence[KeyColumn], tables: Sequence[int]) -> FeatureSpace:
    """Return a column of numbers for each key that has them (else NaN), and one of numbered categories."""
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
    """Return the combination of each record, and of each key the code in each combination."""
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
    """Return the categories that occur as 0, 1, 2, …, and how many they are; -1 stays."""
    used = occurs & (category >= 0)
    return np.where(used, np.cumsum(used) - 1, -1), int(used.sum())


def _scale(numbers: Floats, codes_GT: IntArray, occurs: Mask) -> Floats:
    """(x - mean) / standard deviation, both of GT; of all that occurs where GT has no two numbers."""
    largest = np.nanmax(np.abs(numbers[occurs]), initial=0.0)
    shrunk = numbers / (largest or 1.0)  # so that no square is lost
    counts = np.bincount(codes_GT, minlength=len(numbers))
    for weights in (counts, occurs.astype(np.int64)):
        weighted = ~np.isnan(shrunk) & (weights > 0)
        if len(np.unique(shrunk[weighted])) > 1:
            center = np.average(shrunk[weighted], weights=weights[weighted])
            spread = np.sqrt(np.average((shrunk[weighted] - center) ** 2, weights=weights[weighted]))
            if spread > 0:
                return np.asarray((shrunk - center) / spread, dtype=np.float64)
    return np.zeros(len(numbers))
