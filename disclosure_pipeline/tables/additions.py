"""Finding what a synthetic table adds to the ground truth: identifiers, new levels, longer or finer values.

A value that is longer, finer or further out than all of GT's can encode a record. No message shows one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.measures.chance import holds_real_values, is_like_identifier
from disclosure_pipeline.measures.copies import Combinations
from disclosure_pipeline.measures.exact import percent, total
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.canonical import to_own_zone
from disclosure_pipeline.tables.coding import Distinct
from disclosure_pipeline.tables.dictionary import (
    CATEGORIES,
    DATES,
    NUMERIC,
    TIME_UNITS,
    Column,
    Dictionary,
    Violation,
)
from disclosure_pipeline.tables.levels import EXACT_IN_FLOAT, CodedColumn, IntArray
from disclosure_pipeline.tables.messages import listed

GT_IDENTIFIER = "holds identifiers of the ground truth"
IDENTIFIER = "is a text identifier, which no synthetic table may have: leave the column out"

# Letters and digits of an identifier, from which on it counts within a longer text.
_LEAST_WITHIN = 6

_PROBED_RECORDS, _PROBED_SHARE = 10_000, 0.8


def holds_identifiers(identifiers: Iterable[str | None], texts: Sequence[str]) -> bool:
    """Return whether a text is or contains one of the identifiers, in any spelling.

    Case, blanks, punctuation, zero-width characters and Unicode forms do not matter. Within a longer text an
    identifier counts from 6 letters or digits on: shorter ones occur by chance.

    >>> holds_identifiers(["PL-0042-X"], ["person pl0042x"]), holds_identifiers(["17"], ["1789"])
    (True, False)
    """
    folded_texts = {folded for text in texts if (folded := fold(text))}
    if not folded_texts:
        return False
    folded_identifiers = {fold(identifier) for identifier in identifiers if identifier is not None} - {""}
    if folded_identifiers & folded_texts:
        return True
    lengths = sorted(
        {len(identifier) for identifier in folded_identifiers if len(identifier) >= _LEAST_WITHIN}
    )
    return any(
        text[start : start + length] in folded_identifiers
        for text in folded_texts
        for length in lengths
        for start in range(len(text) - length + 1)
    )


def fold(text: str) -> str:
    r"""Return the letters and digits of a text without accents, in one case and one Unicode form.

    >>> fold(" Pl\u200b-00\uff14\uff12 "), fold("P\u0301l-\u0664\u0662")
    ('pl0042', 'pl42')
    """
    # NFKD separates accents, which are neither letters nor digits.
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(str(unicodedata.decimal(letter, letter)) for letter in folded if letter.isalnum())


@dataclass(frozen=True)
class RealValues:
    """A column that is like an identifier, of which a synthesis has GT's values.

    alone: percent of the GT records whose value no other person has. found: percent of the SD records with
    such a value.
    """

    synthesis: int
    column: Any
    alone: float
    found: float


def find_real_values(
    column: CodedColumn,
    synthesis: int,
    comparisons: int,
    values: Combinations | None = None,
    records_per_unit: float = 1,
) -> RealValues | None:
    """Return the column if a synthesis has GT's values of it, and it is like an identifier, else None.

    `comparisons` is the number of columns and tables that are looked at: see `holds_real_values`. With the
    `values` of units, one that a unit has several times is its own as long as no other has it.
    """
    sizes = Sizes(*(total(column.counts[table]) for table in (0, synthesis)))
    values = values or Combinations.of_records(column.counts[0][:-1])
    counts = values.count_copies(column.counts[synthesis][:-1])
    if not holds_real_values(counts, sizes, comparisons, records_per_unit):
        return None
    alone, found = percent(counts.people.alone, sizes.N_d), percent(counts.unique.hits, sizes.N_s)
    return RealValues(synthesis, column.name, alone, found)


def find_real_values_in(
    columns: Sequence[CodedColumn],
    tables: Sequence[Any],
    names: Sequence[str],
    may_identify: Callable[[Any], bool],
    code: Callable[[Any, tuple[Any, Any], tuple[str, str]], CodedColumn | None],
) -> list[RealValues]:
    """Return the columns of each synthesis with real values; `columns` are those already coded.

    `tables` are frames or mappings from names. Of the others, those of GT that `may_identify` are coded by
    `code`, which returns None if their values cannot be compared.
    """
    coded = {column.name: column for column in columns}
    comparisons = sum(len(list(table)) for table in tables[1:])
    found = []
    for synthesis, table in enumerate(tables[1:], start=1):
        for name in (name for name in table if name in tables[0]):
            if name in coded:
                found.append(find_real_values(coded[name], synthesis, comparisons))
            elif may_identify(tables[0][name]):
                both = code(name, (tables[0][name], table[name]), (names[0], names[synthesis]))
                of_both = find_real_values(both, 1, comparisons) if both else None
                found.append(of_both and replace(of_both, synthesis=synthesis))
    return [values for values in found if values is not None]


def have_own_values(values: Distinct) -> bool:
    """Return whether nearly all GT records have a value of their own."""
    return is_like_identifier(int((values.counts[:-1] == 1).sum()), values.records)


def may_have_own_values(values: pd.Series[Any]) -> bool:
    """Return whether a sample of GT's values of a column leaves open that nearly all occur once."""
    drawn = values.iloc[:: max(1, len(values) // _PROBED_RECORDS)]
    try:
        return bool((~drawn.duplicated(keep=False) & drawn.notna()).mean() >= _PROBED_SHARE)
    except TypeError:  # values that cannot be compared, in a column that nobody asked for
        return False


NAMES_PEOPLE = (
    "has, for more than half of the records, a value that no other record has, as an identifier does: do not "
    "publish it, declare its levels, or make it coarser"
)


def find_naming_columns(
    dictionary: Dictionary, published: Iterable[str], count_levels: Callable[[str], IntArray], table: str
) -> list[Violation]:
    """Return the published categories and times of GT in which most records have a value of their own.

    Categories with declared levels, and columns in which fewer than two records have a value, are left out.
    `count_levels` returns the number of records with each value of a column.
    """
    violations = []
    for name in published:
        column = dictionary[name]
        if column.type not in (*CATEGORIES, "datetime") or column.levels is not None:
            continue
        records = count_levels(name)
        alone, total = int((records == 1).sum()), int(records.sum())
        if total > 1 and 2 * alone > total:
            violations.append(Violation(table, name, NAMES_PEOPLE))
    return violations


A_SYNTHETIC_TABLE = "a synthetic table"

UNKNOWN_LEVEL = (
    "holds {} the ground truth does not have: correct the synthetic table, declare the levels if such "
    "a level may occur or, if any may, set unknown_levels: keep"
)
"""The rule, to be filled with the levels that are shown, or with `A_LEVEL`."""
A_LEVEL = "a level that"
_MOST_SHOWN = 3  # levels in a message, and letters of one:
_LONGEST_SHOWN = 40
MORE_DECIMALS = (
    "has more decimals than declared, or more decimals and digits than the ground truth: round the numbers"
)
FINER_NUMBERS = "has numbers that are less round than all of the ground truth's: round them likewise"
FINER_TIMES = "has times in a finer unit than declared, or than the ground truth has: round the times"
FAR_OUTSIDE = (
    "lies outside the range of the ground truth by more than ten times its width: leave such values out, or "
    "declare the range"
)
LONGER_TEXT = "holds a text that is longer than the longest level"
FORMULA = "holds text that a spreadsheet would run as a formula: change it, or set formulas: quote"

_STARTS_FORMULA = r"^[=+\-@\t\r]"
_PLAIN_NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?$"
_MOST_DECIMALS = 15
_WIDTHS = 10  # fresh samples of skewed amounts were outside by up to nine times the width
_MOST_ZEROS = 18  # of a 64-bit integer


def find_additions(
    ground_truth: Mapping[str, Any],
    syntheses: Mapping[str, Mapping[str, Any]],
    dictionary: Dictionary,
    *,
    refuse_formulas: bool,
    show_levels: bool = True,
) -> list[Violation]:
    """Return the rules that synthetic tables break by adding to GT, each rule once a column.

    A table is given as column -> Arrow array of its distinct values, `syntheses` by their names in messages.
    Columns that GT or the dictionary lacks are ignored. `show_levels`: whether levels that are no value of GT
    may be named, which further confidential tables may have.
    """
    violations = [
        violation
        for table, columns in syntheses.items()
        for name, values in columns.items()
        if name in ground_truth and name in dictionary
        for violation in _find_in_column(
            table, name, dictionary[name], ground_truth, values, refuse_formulas, show_levels
        )
    ]
    return list(dict.fromkeys(violations))


def _find_in_column(
    table: str,
    name: str,
    column: Column,
    ground_truth: Mapping[str, Any],
    in_SD: Any,
    refuse_formulas: bool,
    show_levels: bool,
) -> Iterator[Violation]:
    in_GT = ground_truth[name]
    if column.type == "number" and _has_more_decimals(column, in_GT, in_SD):
        yield Violation(A_SYNTHETIC_TABLE, name, MORE_DECIMALS)
    if column.type == "integer" and count_zeros(_leave_out(in_SD, column)) < count_zeros(
        _leave_out(in_GT, column)
    ):
        yield Violation(A_SYNTHETIC_TABLE, name, FINER_NUMBERS)
    if column.type == "datetime":
        unit = column.unit or find_time_unit(to_own_zone(column, in_GT))
        if TIME_UNITS[find_time_unit(to_own_zone(column, in_SD))] < TIME_UNITS[unit]:
            yield Violation(A_SYNTHETIC_TABLE, name, FINER_TIMES)
    if column.type in (*NUMERIC, *DATES) and column.range is None and _is_far_outside(column, in_GT, in_SD):
        yield Violation(A_SYNTHETIC_TABLE, name, FAR_OUTSIDE)
    if column.type not in CATEGORIES:
        return
    known = pa.concat_arrays([_as_text(in_GT), pa.array(column.level_names or (), pa.string())])
    texts = _as_text(in_SD)
    new = texts.filter(pc.invert(pc.is_in(texts, value_set=known))).to_pylist()
    if column.levels is None and column.unknown_levels == "refuse" and new:
        shown = _list_levels_to_show(new, ground_truth) if show_levels else []
        what = f"{listed(shown)}, which" if shown else A_LEVEL
        yield Violation(A_SYNTHETIC_TABLE, name, UNKNOWN_LEVEL.format(what))
    if _longest(texts) > _longest(known):
        yield Violation(A_SYNTHETIC_TABLE, name, LONGER_TEXT)
    if refuse_formulas and starts_formula(texts).any():
        yield Violation(table, name, FORMULA)


def _list_levels_to_show(new: Sequence[str], ground_truth: Mapping[str, Any]) -> list[str]:
    """Return a few of SD's own levels: short, with letters, and no value of any column of GT in any spelling.

    What looks like a number is not shown: it could be one of GT's, written in another way.
    """
    candidates = [
        level
        for level in new
        if len(level) <= _LONGEST_SHOWN and level.isprintable() and any(map(str.isalpha, level))
    ]
    if not candidates:
        return []
    of_GT = [text for values in ground_truth.values() for text in _as_text(values).to_pylist()]
    return [level for level in candidates[:_MOST_SHOWN] if not holds_identifiers(of_GT, [level])]


def starts_formula(texts: Any) -> npt.NDArray[np.bool_]:
    """Mark the texts of an Arrow array that a spreadsheet would run, by their first character.

    Plain numbers are not marked. Full-width characters count as their ASCII forms, as in some spreadsheets.

    >>> import pyarrow as pa
    >>> starts_formula(pa.array(["=1+1", "-8", "@SUM(A1)", "a=b", None])).tolist()
    [True, False, True, False, False]
    """
    narrow = pa.array(
        [None if text is None else unicodedata.normalize("NFKC", text) for text in texts.to_pylist()],
        pa.string(),
    )
    runs = pc.and_(
        pc.match_substring_regex(narrow, _STARTS_FORMULA),
        pc.invert(pc.match_substring_regex(narrow, _PLAIN_NUMBER)),
    )
    return np.asarray(pc.fill_null(runs, False).to_numpy(zero_copy_only=False), dtype=bool)


def count_digits(values: Any) -> dict[int, int]:
    """Return the largest number of digits by number of decimals in an Arrow array; 16 stands for more.

    Leading zeros do not count.

    >>> import pyarrow as pa
    >>> count_digits(pa.array([3.0, 0.25, 0.075, 17.5])), count_digits(pa.array([0.1 + 0.2]))
    ({0: 1, 1: 3, 2: 2, 3: 2}, {16: 16})
    """
    numbers = np.asarray(values.drop_null().cast(pa.float64()).to_numpy(zero_copy_only=False))
    digits = {}
    for decimals in range(_MOST_DECIMALS + 1):
        scale = 10.0**decimals
        scaled = np.rint(numbers * scale)
        # Both are exact below 2^53, so that the quotient is the float nearest to the decimal.
        written = (scaled / scale == numbers) & (np.abs(scaled) < EXACT_IN_FLOAT)
        if written.any():
            digits[decimals] = len(str(int(np.abs(scaled[written]).max())))
        numbers = numbers[~written]
    if len(numbers):
        digits[_MOST_DECIMALS + 1] = _MOST_DECIMALS + 1
    return digits


def _has_more_decimals(column: Column, in_GT: Any, in_SD: Any) -> bool:
    """Return whether SD has more decimals than declared or, if none are, more decimals and digits than GT.

    So SD may have 0.0012 if GT has 0.012 and 0.12.
    """
    SD_digits = count_digits(in_SD)
    if column.decimals is not None:
        return max(SD_digits, default=0) > column.decimals
    GT_digits = count_digits(in_GT)
    most_decimals, most_digits = max(GT_digits, default=0), max(GT_digits.values(), default=0)
    return any(decimals > most_decimals and digits > most_digits for decimals, digits in SD_digits.items())


def _leave_out(values: Any, column: Column) -> Any:
    special = pa.array([float(value) for value in column.special_values], pa.float64())
    return values.filter(pc.invert(pc.is_in(values.cast(pa.float64(), safe=False), value_set=special)))


def count_zeros(values: Any) -> int:
    """Count the zeros that all integers of an Arrow array end with; 0 if every number is 0.

    >>> import pyarrow as pa
    >>> count_zeros(pa.array([100, -2500, 0])), count_zeros(pa.array([12, 40]))
    (2, 0)
    """
    numbers = np.asarray(values.drop_null().cast(pa.int64()).to_numpy(zero_copy_only=False))
    zeros = 0
    while zeros < _MOST_ZEROS and numbers.any() and not (numbers % 10 ** (zeros + 1)).any():
        zeros += 1
    return zeros


def find_time_unit(values: Any) -> str:
    """Return the largest unit that divides all times of an Arrow array.

    >>> import datetime
    >>> import pyarrow as pa
    >>> find_time_unit(pa.array([datetime.datetime(2024, 5, 1, 8, 30)]))
    'minute'
    """
    times = values.drop_null().cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False)
    numbers = np.asarray(times.cast(pa.int64()).to_numpy(zero_copy_only=False))
    return next(name for name, unit in TIME_UNITS.items() if not (numbers % unit).any())


def _is_far_outside(column: Column, in_GT: Any, in_SD: Any) -> bool:
    known, found = (_as_numbers(column, values) for values in (in_GT, in_SD))
    if not len(known) or not len(found):
        return bool(len(found))  # GT has no values to compare with
    low, high = float(known.min()), float(known.max())
    # If an integer is the same in all of a small GT, another sample may well have its neighbour.
    margin = _WIDTHS * max(high - low, column.type == "integer")
    return bool(found.min() < low - margin or found.max() > high + margin)


def _as_numbers(column: Column, values: Any) -> npt.NDArray[np.float64]:
    """Return numbers without the special ones, or days and times as numbers."""
    values = values.drop_null()
    if column.type in NUMERIC:
        numbers = _leave_out(values, column)
    else:
        numbers = values.cast(pa.timestamp("us", getattr(values.type, "tz", None))).cast(pa.int64())
    return np.asarray(numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def list_new_texts(in_GT: Any, in_SD: Any) -> list[str]:
    """Return SD's texts that GT lacks, from Arrow arrays of a column's distinct values.

    >>> import pyarrow as pa
    >>> list_new_texts(pa.array(["a", "b"]), pa.array(["b", "c", None]))
    ['c']
    """
    texts = _as_text(in_SD)
    new: list[str] = texts.filter(pc.invert(pc.is_in(texts, value_set=_as_text(in_GT)))).to_pylist()
    return new


def _as_text(values: Any) -> Any:
    return values.drop_null().cast(pa.string())


def _longest(texts: Any) -> int:
    return int(pc.max(pc.utf8_length(texts)).as_py() or 0)
