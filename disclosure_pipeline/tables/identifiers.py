"""Identifiers: columns that tell of a record which one it is. No value of one may be in a synthetic table."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from disclosure_pipeline.tables.alignment import Distinct, code_distinct
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names

GT_IDENTIFIER = "holds identifiers of the ground truth"
IDENTIFIER = "is a text identifier, which no synthetic table may have: leave the column out"

# An identifier within a longer text counts from so many letters and digits on.
_LEAST_WITHIN = 6

# An identifier is looked for only in tables in which values that are all different mean something.
_FEWEST_RECORDS = 100
_PROBED_RECORDS = 10_000


def holds_identifiers(identifiers: Iterable[str | None], texts: Sequence[str]) -> bool:
    """Return whether a text is, or holds, one of the identifiers, however it is written.

    Case, blanks, signs, zero-width and Unicode forms do not matter. Within a longer text an identifier counts
    from 6 letters or digits on: shorter ones are there by chance.

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
    r"""Return the letters, without accents, and the digits of a text in one case and one Unicode form.

    >>> fold(" Pl\u200b-00\uff14\uff12 "), fold("P\u0301l-\u0664\u0662")
    ('pl0042', 'pl42')
    """
    # Taken apart, accents are neither letters nor digits.
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(str(unicodedata.decimal(letter, letter)) for letter in folded if letter.isalnum())


def column_identifies(column: CodedColumn, synthesis: int) -> bool:
    """Return whether a column's values are all different in GT, no measurements, and mostly GT's in SD."""
    d, s = column.counts[0], column.counts[synthesis]
    whole = column.kind is not Kind.NUMBER or column.levels.dtype.kind in "iu"
    if d.sum() < _FEWEST_RECORDS or not whole or d[-1] or d.max() > 1:
        return False
    return bool(2 * int(s[d > 0].sum()) > int(s.sum()))


def identifying_columns(
    columns: Sequence[CodedColumn], tables: Sequence[Mapping[Any, Distinct]]
) -> list[tuple[int, Any]]:
    """Return the (synthesis, column) of GT's columns whose values tell which record it is.

    `tables` are the values of columns of each table (GT first), `columns` those that are coded already.
    """
    coded = {column.name: column for column in columns}
    names = table_names(len(tables))
    identifying = []
    for synthesis, table in enumerate(tables[1:], start=1):
        for name in (name for name in table if name in tables[0]):
            if name in coded:
                identifies = column_identifies(coded[name], synthesis)
            else:
                both = code_distinct(name, (tables[0][name], table[name]), (names[0], names[synthesis]))
                identifies = column_identifies(both, 1)
            if identifies:
                identifying.append((synthesis, name))
    return identifying


def values_identify(ground_truth: pd.Series[Any], synthetic: pd.Series[Any]) -> bool:
    """Decide as `column_identifies` does, from the records of a column that is not coded."""
    if len(ground_truth) < _FEWEST_RECORDS:
        return False
    dtype = ground_truth.dtype
    values: Any = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else ground_truth
    whole = pd.api.types.is_integer_dtype(values) or not pd.api.types.is_numeric_dtype(values)
    if not whole:
        return False
    try:
        unique = ground_truth.iloc[:_PROBED_RECORDS].is_unique and ground_truth.is_unique
        return bool(unique and ground_truth.notna().all() and synthetic.isin(ground_truth).mean() > 1 / 2)
    except TypeError:  # values that cannot be compared, in a column that no caller named
        return False
