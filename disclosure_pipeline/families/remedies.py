"""Remedies for a synthetic table that discloses too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.opening import share_columns
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import require_whole_number
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.measures.exact import Floats, Mask
from disclosure_pipeline.measures.frequency import Keys, frequency_tables, is_only_level
from disclosure_pipeline.measures.identity import mark_unique_records
from disclosure_pipeline.tables.alignment import Tables, is_column
from disclosure_pipeline.tables.coding import code_column, decode_arrow
from disclosure_pipeline.tables.levels import CodedColumn, Kind, widen_column
from disclosure_pipeline.tables.messages import describe_argument, suggest_names

OTHER = "(other)"
Frames = tuple[pd.DataFrame, ...]
_LARGEST = 8  # bytes of an integer


@dataclass(frozen=True, repr=False, eq=False)
class Remedy:
    """A change of the tables, to be measured by `compare_remedies()`.

    A remedy that recodes a column recodes it in GT, too: an intruder recodes what is known about a person in
    the same way, and tables that are coded differently would share no key and look safe. A remedy that
    removes records or values, or smooths numbers, changes SD only. Missing and special values do not change.

    Example:
        >>> import disclosure_pipeline as dp
        >>> dp.Remedy.top_code("age", at=90)
        top_code('age', at=90)

    Sources: Raab, Nowok & Dibben 2024 (arXiv:2406.16826), section 6, and synthpop's `sdc` (removal of
    replicated uniques, top and bottom coding, smoothing); Hundepool et al. 2012, "Statistical disclosure
    control" (recoding, suppression, rounding, microaggregation).
    """

    name: str
    _change: Callable[[Tables], Frames]

    def __repr__(self) -> str:
        return self.name

    @staticmethod
    def remove_replicated_uniques() -> Remedy:
        """Remove the SD records whose key combination is unique in SD and in GT."""
        return Remedy("remove_replicated_uniques()", _remove_replicated_uniques)

    @staticmethod
    def remove_unique_copies() -> Remedy:
        """Remove the SD records that equal exactly one GT record in all shared columns."""
        return Remedy("remove_unique_copies()", _remove_unique_copies)

    @staticmethod
    def blank_copied_targets() -> Remedy:
        """Set a target to missing in SD records that cause DiSCO and equal a GT record.

        Their key combination has a single level of the target in SD, which a GT record with these keys also
        has, and they equal a GT record in all shared columns.
        """
        return Remedy("blank_copied_targets()", _blank_copied_targets)

    @staticmethod
    def top_code(column: Hashable, *, at: float) -> Remedy:
        """Replace every number above `at` by `at`."""
        return Remedy(f"top_code({column!r}, at={at!r})", partial(_limit, column, at, np.minimum))

    @staticmethod
    def bottom_code(column: Hashable, *, at: float) -> Remedy:
        """Replace every number below `at` by `at`."""
        return Remedy(f"bottom_code({column!r}, at={at!r})", partial(_limit, column, at, np.maximum))

    @staticmethod
    def round_numbers(column: Hashable, *, to: float) -> Remedy:
        """Round every number to a multiple of `to`, and ties to the even multiple."""
        return Remedy(f"round_numbers({column!r}, to={to!r})", partial(_round, column, to))

    @staticmethod
    def smooth_numbers(column: Hashable, *, over: int) -> Remedy:
        """Replace each number of SD by the mean of its group: `over` numbers in a row, by size.

        Known as microaggregation. GT does not change. The last group may be larger.
        """
        return Remedy(f"smooth_numbers({column!r}, over={over!r})", partial(_smooth, column, over))

    @staticmethod
    def group_numbers(column: Hashable, *, edges: Sequence[float]) -> Remedy:
        """Replace every number by the lower edge of its group, or by the first edge if it is smaller."""
        return Remedy(f"group_numbers({column!r}, edges={edges!r})", partial(_group, column, edges))

    @staticmethod
    def merge_levels(column: Hashable, *, into: Mapping[str, str]) -> Remedy:
        """Merge levels of a text column: `into` maps a level to its group; other levels do not change."""
        return Remedy(f"merge_levels({column!r}, into={into!r})", partial(_merge, column, into))

    @staticmethod
    def merge_small_levels(column: Hashable, *, fewest: int) -> Remedy:
        """Merge the levels of a text column that fewer than `fewest` GT records have into "(other)"."""
        return Remedy(
            f"merge_small_levels({column!r}, fewest={fewest!r})", partial(_merge_small, column, fewest)
        )


def _remove_replicated_uniques(tables: Tables) -> Frames:
    q = combine_columns(tables.code(tables.keys))
    return _remove_records(tables, [mark_unique_records(q, i)[0] for i in range(1, len(tables.frames))])


def _remove_unique_copies(tables: Tables) -> Frames:
    whole = _combine_whole_records(tables)
    alone = whole.counts[0] == 1
    return _remove_records(tables, [alone[records] for records in whole.q[1:]])


def _blank_copied_targets(tables: Tables) -> Frames:
    whole = _combine_whole_records(tables)
    q = combine_columns(tables.code(tables.keys))
    changed = [frame.copy() for frame in tables.frames]
    for target in tables.code(tables.targets):
        tables_of_target = frequency_tables(q, target.codes, target.size)
        for i, f in enumerate(tables_of_target, start=1):
            cell = f.find_cell(q.q[i], target.codes[i])
            discloses = (is_only_level(f.s, f.s_q) & (f.d > 0))[cell]
            copied = whole.counts[0][whole.q[i]] > 0
            changed[i][target.name] = _blank(changed[i][target.name], discloses & copied)
    return tuple(changed)


def _limit(column: Any, at: float, limit: Callable[[Any, float], Any], tables: Tables) -> Frames:
    number = _require_number("at", at)
    return _recode_numbers(tables, column, lambda numbers: limit(numbers, number))


def _round(column: Any, to: float, tables: Tables) -> Frames:
    step = _require_number("to", to)
    if step <= 0:
        raise InputError(f"to must be a number above 0, not {to!r}.")

    exact_step = Fraction(repr(step))

    def round_to_step(numbers: Any) -> Any:
        with np.errstate(over="ignore"):
            steps = np.round(numbers / step)
            is_finite = np.isfinite(steps * step)  # infinite or too large: as it was
        counts, place = np.unique(steps[is_finite], return_inverse=True)
        multiples = np.array([float(exact_step * int(count)) for count in counts], np.float64)
        rounded = numbers.copy()
        rounded[is_finite] = multiples[place]  # 0.3, where three times 0.1 is 0.30000000000000004
        return rounded

    return _recode_numbers(tables, column, round_to_step)


def _smooth(column: Any, over: int, tables: Tables) -> Frames:
    size = require_whole_number("over", over, 2)

    def smooth(numbers: Any) -> Any:
        order = np.argsort(numbers, kind="stable")
        starts = np.arange(max(1, len(numbers) // size)) * size
        sizes = np.diff([*starts, len(numbers)])
        with np.errstate(over="ignore"):
            means = np.add.reduceat(numbers[order], starts) / sizes if len(numbers) else numbers
        smoothed = np.empty_like(numbers)
        smoothed[order] = np.repeat(means, sizes) if len(numbers) else means
        return np.where(np.isfinite(smoothed), smoothed, numbers)  # infinite or too large: as it was

    GT, *_ = tables.frames
    _, *SD = _recode_numbers(tables, column, smooth, is_kept_whole=True)
    return (GT, *SD)


def _group(column: Any, edges: Sequence[float], tables: Tables) -> Frames:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise InputError("edges must be a list of ascending numbers, such as (20, 40, 60).")
    numbers_of_edges = np.array([_require_number("edges", edge) for edge in edges])
    if not len(numbers_of_edges) or (np.diff(numbers_of_edges) <= 0).any():
        raise InputError("edges must be at least one number, in ascending order.")

    def lower_edge(numbers: Any) -> Any:
        return numbers_of_edges[np.maximum(np.searchsorted(numbers_of_edges, numbers, side="right") - 1, 0)]

    return _recode_numbers(tables, column, lower_edge)


def _merge(column: Any, into: Mapping[str, str], tables: Tables) -> Frames:
    if not isinstance(into, Mapping):
        raise InputError("into must map a level to its group, such as {'Kent': 'South East'}.")
    _code_text(tables, column)
    return _recode_texts(tables, column, into)


def _merge_small(column: Any, fewest: int, tables: Tables) -> Frames:
    least = require_whole_number("fewest", fewest, 1)
    coded = _code_text(tables, column)
    small = coded.counts[0][: coded.missing] < least
    return _recode_texts(tables, column, dict.fromkeys(coded.levels[small].tolist(), OTHER))


def apply_remedy(remedy: Remedy | tuple[Remedy, ...], tables: Tables) -> tuple[Tables, list[int]]:
    """Apply a remedy, or several of a tuple in turn; return the tables and the values changed per synthesis.

    Values of removed records are not counted.
    """
    changed = [0] * (len(tables.frames) - 1)
    for step in remedy if isinstance(remedy, tuple) else (remedy,):
        after = replace(tables, frames=tuple(step._change(tables)))
        for i, (old, new) in enumerate(zip(tables.frames[1:], after.frames[1:], strict=True)):
            if not len(new):
                raise InputError(f"{step!r} leaves no record of {tables.names[i + 1]}.")
            changed[i] += _count_changed(old, new) if len(old) == len(new) else 0
        tables = after
    return tables, changed


def _code_text(tables: Tables, column: Any) -> CodedColumn:
    """Return the column coded over all tables. InputError unless it holds text."""
    coded = _code(tables, column)
    if coded.kind is not Kind.TEXT:
        raise InputError(f"Column {column!r} holds {coded.kind.value}: only levels of text can be merged.")
    return coded


def _recode_texts(tables: Tables, column: Any, into: Mapping[str, str]) -> tuple[pd.DataFrame, ...]:
    """Replace the texts that `into` maps, in each table."""
    frames = []
    for frame in tables.frames:
        texts = frame[column]
        new = texts.astype(object).map(lambda level: into.get(level, level), na_action="ignore")
        is_category = isinstance(texts.dtype, pd.CategoricalDtype)
        frames.append(_replace_column(frame, column, new.astype("category" if is_category else texts.dtype)))
    return tuple(frames)


def _recode_numbers(
    tables: Tables, column: Any, recode: Callable[[Any], Any], *, is_kept_whole: bool = False
) -> tuple[pd.DataFrame, ...]:
    """Recode every number but special values, in each table; keep the type of integers where possible.

    `is_kept_whole`: the numbers of a table that has only whole ones are rounded to whole ones.
    """
    coded = _code(tables, column)
    if coded.kind is Kind.EMPTY:
        return tables.frames
    if coded.kind is not Kind.NUMBER:
        raise InputError(f"Column {column!r} holds {coded.kind.value}: this remedy needs numbers.")
    special = [float(value) for value in tables.grouping.special_values.get(column, ())]
    frames = []
    for frame in tables.frames:
        held = widen_column(frame[column]).astype(object)
        numbers = pd.to_numeric(held).to_numpy(np.float64, na_value=np.nan)
        ordinary = ~np.isnan(numbers) & ~np.isin(numbers, special)
        new = numbers.copy()
        new[ordinary] = recode(numbers[ordinary])
        if is_kept_whole and (numbers[ordinary] % 1 == 0).all():
            new[ordinary] = np.round(new[ordinary])
        changed = ordinary & (new != numbers)
        if not changed.any():
            frames.append(frame)
            continue
        recoded = pd.Series(new, index=frame.index)
        is_integer = bool(pd.api.types.is_integer_dtype(frame[column].dtype))
        if is_integer and (new[changed] % 1 == 0).all():
            recoded = _replace_integers(frame[column], changed, new)
        frames.append(_replace_column(frame, column, recoded))
    return tuple(frames)


def _replace_integers(column: pd.Series[Any], changed: Mask, new: Floats) -> pd.Series[Any]:
    """Return integers of which some change, in a larger type if these need one; others keep all digits.

    If no type of integers holds them all, the numbers are floats.
    """
    values = [int(value) for value in new[changed]]
    own: Any = column.dtype
    for integers in (column, column.astype("Int64") if own.itemsize < _LARGEST else column):
        limits = np.iinfo(getattr(integers.dtype, "numpy_dtype", integers.dtype))
        if limits.min <= min(values) and max(values) <= limits.max:
            replaced = integers.array.copy()
            replaced[changed] = values
            return pd.Series(replaced, index=column.index)
    return pd.Series(new, index=column.index)


def _require_number(argument: str, value: Any) -> float:
    """Return the value as a float. InputError unless it is a finite number."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # a whole number that no float holds
            number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{argument} of a remedy must be a finite number, not {describe_argument(value)}.")
    return number


def _code(tables: Tables, column: Any) -> CodedColumn:
    for frame, name in zip(tables.frames, tables.names, strict=True):
        if not is_column(column, frame.columns):
            raise InputError(
                f"Column {describe_argument(column)} of a remedy is not in {name}. "
                f"{suggest_names(column, list(frame.columns))}"
            )
    return code_column(column, [frame[column] for frame in tables.frames], tables.names)


def _replace_column(frame: pd.DataFrame, column: Any, values: pd.Series[Any]) -> pd.DataFrame:
    changed = frame.copy(deep=False)
    changed[column] = values
    return changed


def _count_changed(old: pd.DataFrame, new: pd.DataFrame) -> int:
    """Count the values that differ, record by record; missing values are equal."""
    number = 0
    for column in old.columns:
        if new[column] is old[column]:
            continue
        was, now = (widen_column(frame[column]).astype(object) for frame in (old, new))
        missing, missing_now = was.isna().to_numpy(), now.isna().to_numpy()
        known = ~(missing | missing_now)
        number += int((missing != missing_now).sum())
        number += int((was.to_numpy()[known] != now.to_numpy()[known]).sum())
    return number


def _remove_records(tables: Tables, masks: Sequence[Mask]) -> tuple[pd.DataFrame, ...]:
    GT, *SD = tables.frames
    return (GT, *(frame.loc[~mask] for frame, mask in zip(SD, masks, strict=True)))


def _combine_whole_records(tables: Tables) -> Keys:
    shared = share_columns(tables.frames)
    return combine_columns(shared.code(shared.keys))


def _blank(series: pd.Series[Any], mask: Mask) -> pd.Series[Any]:
    """Set the masked values to missing, in a type that can represent it."""
    if not mask.any():
        return series
    series = decode_arrow(series)  # in whose dictionaries pandas would fill what is missing
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu":
        series = series.astype("UInt64" if series.dtype.kind == "u" else "Int64")
    elif series.dtype == bool:
        series = series.astype("boolean")
    return series.mask(mask)
