"""Whether two tables can be compared at all: what they share, and what in them looks like a mismatch.

A mismatch makes a leak look safe: where GT says 1 and SD says 1.0, no key of GT is in SD, every risk is 0.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.frequency import combine_keys
from disclosure_pipeline.measures.overlap import Overlap, Shared, copies, overlap
from disclosure_pipeline.tables.alignment import Grouping, Tables, check_tables, table_names
from disclosure_pipeline.tables.distinct import Distinct, code_distinct
from disclosure_pipeline.tables.levels import CodedColumn, Kind

Rows = dict[tuple[Any, int], dict[str, Any]]

WHOLE_KEY = "(whole key)"
"""What stands for the combination of all keys in the frame `key_overlap`."""

# Percent of records: below, a user is warned. A policy has bounds of its own.
LOW_OVERLAP, LOW_WHOLE_KEY = 50, 1

# An identifier is looked for only in tables in which values that are all different mean something.
_FEWEST_IDENTIFIED = 100
_PROBE = 10_000

# So many levels of a column are looked at to say in what the tables differ.
_MOST_COMPARED = 100_000


def compare(column: CodedColumn, names: Sequence[str]) -> tuple[Rows, list[str]]:
    """One column: how many records have a value that the other table has too, and what is doubtful of it.

    Records whose value is missing take no part: tables that share nothing but gaps share nothing. A warning
    for each synthesis that shares few values with GT, or writes some otherwise; `names` are the tables'.
    """
    counts = [of_table[: column.missing] for of_table in column.counts]
    rows: Rows = {}
    doubts = []
    for synthesis, s in enumerate(counts[1:], start=1):
        shares = rows[column.name, synthesis] = asdict(overlap(counts[0], s))
        doubts += _doubts(column.name, shares, _difference(column, counts[0], s), names[synthesis])
    return rows, doubts


def whole_key_overlap(found: Sequence[Shared], N_d: int, N_s: Sequence[int]) -> Rows:
    """Of the combination of all keys, of each synthesis; a missing value is a level of it."""
    return {
        (WHOLE_KEY, synthesis): asdict(
            Overlap(percent(shared.GT_in_SD, N_d), percent(shared.SD_in_GT, N_s[synthesis - 1]))
        )
        for synthesis, shared in enumerate(found, start=1)
    }


def exact_copies(
    ground_truth: pd.DataFrame, synthetic: pd.DataFrame | Sequence[pd.DataFrame]
) -> pd.DataFrame:
    """The synthetic records that are exact copies of a GT record in every column that all tables have.

    Returns:
        Index synthesis; `columns`: the number of columns compared; `copies`: SD records; `percent` of all
        SD records. With few columns of few levels copies are no sign of anything: in GT itself most
        records are copies of another.

    Raises:
        InputError: No column is in all tables, or one has no common kind of value.
    """
    syntheses = [synthetic] if isinstance(synthetic, pd.DataFrame) else list(synthetic)
    frames = (ground_truth, *syntheses)
    if not syntheses or not all(isinstance(frame, pd.DataFrame) for frame in frames):
        raise InputError("The tables must be pandas DataFrames: GT, and one synthesis or a sequence of them.")
    common = [name for name in ground_truth.columns if all(name in frame.columns for frame in frames)]
    if not common:
        raise InputError("No column is in all tables: there is nothing to compare.")
    tables = check_tables(ground_truth, syntheses, common, (), Grouping({}, {}, "pooled"))
    columns = [tables.coded(name) for name in common]
    rows = combine_keys([column.codes for column in columns], [column.size for column in columns])
    return copies_frame(len(common), copies(rows), [len(frame) for frame in syntheses])


def copies_frame(columns: int, found: Sequence[int], records: Sequence[int]) -> pd.DataFrame:
    """The frame of `exact_copies`, from the copies `found` in each synthesis of so many `records`."""
    return pd.DataFrame(
        [
            {"columns": columns, "copies": number, "percent": percent(number, of)}
            for number, of in zip(found, records, strict=True)
        ],
        index=pd.RangeIndex(1, len(found) + 1, name="synthesis"),
    )


def low_whole_key(whole_key: Rows, names: Sequence[str]) -> list[str]:
    """A warning for each synthesis that hardly shares the whole key with GT: rows of `whole_key_overlap`."""
    return [
        f"The whole key is hardly shared. {_shares(shares, names[synthesis])}."
        for (_, synthesis), shares in whole_key.items()
        if not min(shares.values()) >= LOW_WHOLE_KEY
    ]


def _doubts(name: Any, shares: Mapping[str, float], difference: str, table: str) -> list[str]:
    consequence = "Risks read too low where the tables are not coded alike."
    if not min(shares.values()) >= LOW_OVERLAP:  # NaN is no overlap
        hint = f"Some differ only by {difference}. " if difference else ""
        return [
            f"Column {name!r}: the tables share few values. {_shares(shares, table)}. {hint}{consequence}"
        ]
    if difference:
        return [f"Column {name!r}: values of {table} differ from GT's only by {difference}. {consequence}"]
    return []


def _shares(shares: Mapping[str, float], table: str) -> str:
    return (
        f"{shares['GT_in_SD']:.2f} % of the GT records have a value that is in {table}, "
        f"{shares['SD_in_GT']:.2f} % the other way round"
    )


def _difference(column: CodedColumn, d: IntArray, s: IntArray) -> str:
    """In what values that GT does not have differ from values of GT, if they agree otherwise.

    `d` and `s` are the number of GT and of SD records with each level.
    """
    if column.kind is not Kind.TEXT:
        return ""
    new = column.levels[(s > 0) & (d == 0)]
    if not len(new):
        return ""
    known = column.levels[d > 0]
    GT, SD = ([str(level) for level in levels[:_MOST_COMPARED]] for levels in (known, new))
    for what, form in _FORMS.items():
        if {form(level) for level in GT} & {form(level) for level in SD}:
            return what
    return ""


def _number(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        return text


_FORMS: Mapping[str, Callable[[str], str]] = {
    "outer blanks": str.strip,
    "the form of Unicode": lambda text: unicodedata.normalize("NFC", text),
    "upper and lower case": str.casefold,
    "how a number is written": _number,
    "blanks, case and form of Unicode": lambda text: unicodedata.normalize("NFC", text.strip()).casefold(),
}


def strange_columns(tables: Tables) -> list[str]:
    """Warnings of columns that GT lacks, and of those that tell of every record which one it is."""
    ground_truth, *syntheses = tables.frames
    found = []
    for frame, name in zip(syntheses, tables.names[1:], strict=True):
        found += _more_columns(list(ground_truth.columns), list(frame.columns), name)
        for column in frame.columns:
            if column in ground_truth.columns and _identifies(ground_truth[column], frame[column]):
                found.append(_identifier(column, name))
    return found


def strange_distinct(tables: Sequence[Mapping[Any, Distinct]]) -> list[str]:
    """As `strange_columns`, from the values of all columns of each table (GT first)."""
    names = table_names(len(tables))
    found = []
    for synthetic, name in zip(tables[1:], names[1:], strict=True):
        found += _more_columns(list(tables[0]), list(synthetic), name)
        for column, values in synthetic.items():
            if column in tables[0]:
                coded = code_distinct(column, (tables[0][column], values), (names[0], name))
                found += [_identifier(column, name)] if _numbers_records(coded, 1) else []
    return found


def strange_coded(known: Sequence[Sequence[Any]], columns: Sequence[CodedColumn]) -> list[str]:
    """As `strange_columns`, of the measured columns alone; `known` are the names that each table has."""
    found = []
    for synthesis, name in enumerate(table_names(len(known))[1:], start=1):
        found += _more_columns(known[0], known[synthesis], name)
        found += [_identifier(column.name, name) for column in columns if _numbers_records(column, synthesis)]
    return found


def _more_columns(known: Sequence[Any], columns: Sequence[Any], table: str) -> list[str]:
    more = [column for column in columns if column not in known]
    return [f"GT lacks columns that {table} has, {_listed(more)}: they are not measured."] if more else []


def _identifier(column: Any, table: str) -> str:
    return (
        f"Column {column!r} has a value of its own for every GT record, and most of its values in {table} "
        "are of GT: is it an identifier? Then it must not be in a synthetic table."
    )


def _numbers_records(column: CodedColumn, synthesis: int) -> bool:
    """As `_identifies`, from the numbers of records with each value."""
    d, s = column.counts[0], column.counts[synthesis]
    whole = column.kind is not Kind.NUMBER or column.levels.dtype.kind in "iu"
    if d.sum() < _FEWEST_IDENTIFIED or not whole or d[-1] or d.max() > 1:
        return False
    return bool(2 * int(s[d > 0].sum()) > int(s.sum()))


def _identifies(ground_truth: pd.Series[Any], synthetic: pd.Series[Any]) -> bool:
    """Whether values are all different in GT, are no measurements, and mostly come back in SD."""
    dtype = ground_truth.dtype
    values: Any = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else ground_truth
    whole = pd.api.types.is_integer_dtype(values) or not pd.api.types.is_numeric_dtype(values)
    if len(ground_truth) < _FEWEST_IDENTIFIED or not whole:
        return False
    try:
        unique = ground_truth.iloc[:_PROBE].is_unique and ground_truth.is_unique
        return bool(unique and ground_truth.notna().all() and synthetic.isin(ground_truth).mean() > 1 / 2)
    except TypeError:  # values that cannot be compared, in a column that nobody asked for
        return False


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(name) for name in names)
