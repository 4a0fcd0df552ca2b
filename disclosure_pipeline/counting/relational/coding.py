"""Records of a database as codes, by Ibis expressions.

Coded records are rows (i, q0, q1, …, t0, t1, …): the number of the table (0 is GT), the key combination as
digits of 64-bit numbers (words), and the code of each target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.relational.transfer import fetch_integers, upload_temporarily
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray

BITS = 63  # of a word: no number is negative


@dataclass(frozen=True)
class Digits:
    """The place of a key's code: `bits` bits of a `word`, from the bit `shift` on."""

    word: int
    shift: int
    bits: int

    @property
    def mask(self) -> int:
        """The word with these bits set."""
        return ((1 << self.bits) - 1) << self.shift


@dataclass(frozen=True)
class ColumnCodes:
    """The codes of column k of a table: `codes` is a table (v{k}, m{k}) of values and their codes, or None.

    `missing` is the code of a missing value, `unknown` the code of a value that `codes` does not have.
    """

    column: str
    codes: Any
    missing: int
    unknown: int


def lay_out_words(sizes: Sequence[int]) -> tuple[Digits, ...]:
    """Lay out keys in as few words as possible; each has codes up to its size, which stands for no level."""
    digits: list[Digits] = []
    word = shift = 0
    for size in sizes:
        bits = size.bit_length()
        if shift + bits > BITS:
            word, shift = word + 1, 0
        digits.append(Digits(word, shift, bits))
        shift += bits
    return tuple(digits)


def levels_of(words: Sequence[IntArray], digits: Sequence[Digits]) -> IntArray:
    """Return the level of each key in key combinations given as words (shape: keys, combinations)."""
    return np.array([(words[key_digits.word] & key_digits.mask) >> key_digits.shift for key_digits in digits])


def as_comparable(column: Any) -> Any:
    """Return a column in a type that databases group and join by value; NaN becomes NULL.

    Raise InputError unless it holds numbers, text, true/false, dates or times.
    """
    import ibis.expr.operations as ops

    kind = column.type()
    if kind.is_floating():
        return column.isnan().ifelse(None, column)
    if kind.is_string() or kind.is_uuid():  # enumerations are text to Ibis, but not to the database
        return ops.Cast(column, to="string").to_expr()
    if any((kind.is_numeric(), kind.is_boolean(), kind.is_timestamp(), kind.is_date())):
        return column
    raise InputError(
        f"Column {column.get_name()!r} is of type {kind}, whose values cannot be compared: expected numbers, "
        "text, true/false, dates or times."
    )


def code_records(
    table: Any, number: int, keys: Sequence[ColumnCodes], words: Sequence[int], targets: Sequence[ColumnCodes]
) -> Any:
    """Return the coded records of a table.

    All codes of keys, `missing` and `unknown` included, are shifted to their place within the word that
    `words` names.
    """
    import ibis

    columns = (*keys, *targets)
    rows = table.select(**{f"c{k}": as_comparable(table[column.column]) for k, column in enumerate(columns)})
    for k, column in enumerate(columns):
        if column.codes is not None:
            rows = rows.left_join(column.codes, [(f"c{k}", f"v{k}")])

    def code(k: int) -> Any:
        # Before any GROUP BY or join of codes: databases leave NULL out of joins, minima and maxima.
        unknown = int64(columns[k].unknown)
        known = unknown if columns[k].codes is None else ibis.coalesce(rows[f"m{k}"], unknown)
        return rows[f"c{k}"].isnull().ifelse(int64(columns[k].missing), known)

    codes_of_words = [
        reduce(add, [code(k) for k, key_word in enumerate(words) if key_word == word])
        for word in range(words[-1] + 1)
    ]
    return rows.select(
        i=ibis.literal(number, "int16"),
        **{f"q{word}": expression for word, expression in enumerate(codes_of_words)},
        **{f"t{k}": code(len(keys) + k).cast("int32") for k in range(len(targets))},
    )


def count_by_code(records: Any, digits: Sequence[Digits], targets: int) -> Any:
    """Count each table's records with each code: rows (column, i, code, n); keys come before targets.

    The codes of keys are shifted to their place within a word.
    """
    import ibis

    codes = [records[f"q{key_digits.word}"] & int64(key_digits.mask) for key_digits in digits]
    codes += [as_int64(records[f"t{k}"]) for k in range(targets)]
    return ibis.union(
        *(
            records.group_by("i", code=code)
            .aggregate(n=count_rows)
            .select("i", "code", "n", column=ibis.literal(column, "int16"))
            for column, code in enumerate(codes)
        )
    )


def word_columns(table: Any) -> list[str]:
    """Return the names of the columns that hold the key combination."""
    return [name for name in table.columns if name.startswith("q")]


def count_rows(rows: Any, where: Any = None) -> Any:
    """Count the rows, or those that fulfil a condition, in 64 bits."""
    if where is None:
        return as_int64(rows.count())
    # Spark sums where other databases count, and its sum of no rows is NULL.
    return as_int64(rows.count(where=where)).coalesce(int64(0))


def int64(number: int) -> Any:
    """Return a number in 64 bits."""
    import ibis

    return ibis.literal(number, "int64")


def float64(number: int) -> Any:
    """Return a number as a double."""
    import ibis

    return ibis.literal(float(number), "float64")


def as_int64(number: Any) -> Any:
    """Cast to 64 bits even if Ibis infers them already: it does not know the database's type of sums."""
    import ibis.expr.operations as ops

    return ops.Cast(number, to="int64").to_expr()


_RANGE_BITS = 12  # of the first word; the ranges are its values, each sorted on its own


def number_records(rows: Any, digits: Sequence[Digits], stack: Any) -> Any:
    """Return coded records with their numbers r within their table, from 0 on, in the order of the codes.

    No table is sorted as a whole: records are numbered within ranges of codes, whose first numbers follow
    from counts. Uploaded tables exist until the stack closes.
    """
    import ibis

    bits = max(place.shift + place.bits for place in digits if place.word == 0)
    mask = ((1 << bits) - 1) & ~((1 << max(bits - _RANGE_BITS, 0)) - 1)
    parted = rows.mutate(range=rows["q0"] & int64(mask))
    counts = fetch_integers(parted.group_by("i", "range").aggregate(n=count_rows))
    starts = _find_starts(counts["i"], counts["range"], counts["n"])
    uploaded = stack.enter_context(upload_temporarily(rows.get_backend(), starts))
    in_range = [as_int64(parted["i"]) == uploaded["table"], parted["range"] == uploaded["lowest"]]
    joined = parted.inner_join(uploaded, in_range)
    within = ibis.row_number().over(group_by=["i", "range"], order_by=word_columns(rows))
    numbered = joined.mutate(within=within)
    return numbered.select("i", *word_columns(rows), r=as_int64(numbered["start"] + numbered["within"]))


def _find_starts(table: IntArray, ranges: IntArray, records: IntArray) -> Any:
    """Return the number of the first record of each range of each table: rows (table, lowest, start)."""
    order = np.lexsort([ranges, table])
    table, ranges, records = table[order], ranges[order], records[order]
    before = np.cumsum(records) - records
    first_of_table = before[np.searchsorted(table, table)]
    columns = {"table": table, "lowest": ranges, "start": before - first_of_table}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
