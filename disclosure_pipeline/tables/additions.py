"""What a synthetic table may not add to the ground truth: levels, decimals, longer text, formulas.

Everything here is about distinct values in canonical form. No rule says how many records break it, and
where the ground truth decides none says which table does: that would answer questions about it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.tables.contract import Violation
from disclosure_pipeline.tables.dictionary import CATEGORIES, Column, Dictionary

A_SYNTHETIC_TABLE = "a synthetic table"

UNKNOWN_LEVEL = (
    "holds a level that the ground truth does not have: declare the levels, or unknown_levels: keep"
)
MORE_DECIMALS = "has more decimals than declared, or than the ground truth has: round the numbers"
LONGER_TEXT = "holds a text that is longer than the longest level"
FORMULA = "holds text that a spreadsheet would run as a formula: write it otherwise, or set formulas: quote"

_STARTS_FORMULA = r"^[=+\-@\t\r]"
_PLAIN_NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?$"
_MOST_DECIMALS = 15
_EXACT_IN_FLOAT = 2.0**53


def find_additions(
    ground_truth: Mapping[str, Any],
    syntheses: Mapping[str, Mapping[str, Any]],
    dictionary: Dictionary,
    *,
    refuse_formulas: bool,
) -> list[Violation]:
    """What the synthetic tables add to GT, each rule once a column.

    Tables are given as column -> Arrow array of the distinct values that it holds, `syntheses` by the names
    that messages give them. Columns that GT or the dictionary lacks are not looked at.
    """
    violations = [
        violation
        for table, columns in syntheses.items()
        for name, values in columns.items()
        if name in ground_truth and name in dictionary
        for violation in _find_in_column(
            table, name, dictionary[name], ground_truth[name], values, refuse_formulas
        )
    ]
    return list(dict.fromkeys(violations))


def _find_in_column(
    table: str, name: str, column: Column, in_GT: Any, in_SD: Any, refuse_formulas: bool
) -> Iterator[Violation]:
    if column.type == "number":
        allowed = count_decimals(in_GT) if column.decimals is None else column.decimals
        if count_decimals(in_SD) > allowed:
            yield Violation(A_SYNTHETIC_TABLE, name, MORE_DECIMALS)
    if column.type not in CATEGORIES:
        return
    known = pa.concat_arrays([_as_text(in_GT), pa.array(column.level_names or (), pa.string())])
    texts = _as_text(in_SD)
    if column.levels is None and column.unknown_levels == "refuse" and not _all_in(texts, known):
        yield Violation(A_SYNTHETIC_TABLE, name, UNKNOWN_LEVEL)
    if _longest(texts) > _longest(known):
        yield Violation(A_SYNTHETIC_TABLE, name, LONGER_TEXT)
    if refuse_formulas and starts_formula(texts).any():
        yield Violation(table, name, FORMULA)


def starts_formula(texts: Any) -> npt.NDArray[np.bool_]:
    """Which texts of an Arrow array a spreadsheet would run: by their first sign, and no plain numbers.

    Full-width signs are taken for the ones that they stand for, as some spreadsheets do.

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


def count_decimals(values: Any) -> int:
    """The number of decimals that are needed to write all numbers of an Arrow array; 16: more than 15.

    >>> import pyarrow as pa
    >>> count_decimals(pa.array([3.0, 0.25, 17.5])), count_decimals(pa.array([0.1 + 0.2]))
    (2, 16)
    """
    numbers = np.asarray(values.drop_null().cast(pa.float64()).to_numpy(zero_copy_only=False))
    for decimals in range(_MOST_DECIMALS + 1):
        scale = 10.0**decimals
        scaled = np.rint(numbers * scale)
        # Both are exact below 2^53, so that the quotient is the float that is nearest to such a decimal.
        written = (scaled / scale == numbers) & (np.abs(scaled) < _EXACT_IN_FLOAT)
        numbers = numbers[~written]
        if not len(numbers):
            return decimals
    return _MOST_DECIMALS + 1


def list_new_texts(in_GT: Any, in_SD: Any) -> list[str]:
    """The texts of a column of SD that GT's column does not have: Arrow arrays of distinct values.

    >>> import pyarrow as pa
    >>> list_new_texts(pa.array(["a", "b"]), pa.array(["b", "c", None]))
    ['c']
    """
    texts = _as_text(in_SD)
    new: list[str] = texts.filter(pc.invert(pc.is_in(texts, value_set=_as_text(in_GT)))).to_pylist()
    return new


def _as_text(values: Any) -> Any:
    return values.drop_null().cast(pa.string())


def _all_in(values: Any, known: Any) -> bool:
    return bool(pc.all(pc.is_in(values, value_set=known), min_count=0).as_py())


def _longest(texts: Any) -> int:
    """The letters of the longest text; 0 where there is none."""
    return int(pc.max(pc.utf8_length(texts)).as_py() or 0)
