"""CSV and TSV files as batches of text, written with a decimal point and without separators of thousands."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.archives import unpack
from disclosure_pipeline.tables.files import FileFormat, OpenTable, StoragePath
from disclosure_pipeline.tables.text_forms import DECIMAL_POINT, NumberForm, has_decimal_commas

_BLOCK = 1 << 23


def open_text(path: StoragePath, file_format: FileFormat, table: str, stack: ExitStack) -> OpenTable:
    """Open a text file until the stack closes. Errors of the reader pass through; they may quote a record."""
    from pyarrow import csv as arrow_csv

    parse = arrow_csv.ParseOptions(
        delimiter=file_format.separator,
        quote_char=False if file_format.quote == "" else file_format.quote or '"',
        newlines_in_values=True,
    )
    read = arrow_csv.ReadOptions(block_size=_BLOCK, encoding=file_format.encoding or "utf-8")

    def stream() -> Any:
        return unpack(path, file_format.codec, table, stack)

    def batches(columns: list[str]) -> Iterator[Any]:
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.dictionary(pa.int32(), pa.string())),
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
        )
        with arrow_csv.open_csv(
            stream(), read_options=read, parse_options=parse, convert_options=convert
        ) as reader:
            marked = file_format.decimal == "," or file_format.thousands
            yield from _write_plainly(reader, file_format, table) if marked else reader

    with arrow_csv.open_csv(stream(), read_options=read, parse_options=parse) as reader:
        names = tuple(reader.schema.names)
    return OpenTable(names, batches, is_text=True)


def _write_plainly(batches: Iterable[Any], file_format: FileFormat, table: str) -> Iterator[Any]:
    """Yield batches of text in which numbers have a decimal point, and no separators of thousands.

    Raise InputError if a column has numbers in another form, too: its marks may mean something else.
    """
    form = NumberForm(file_format.decimal or ".", file_format.thousands)
    declared: set[str] = set()
    other: set[str] = set()
    for batch in batches:
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            levels = column.dictionary
            in_form = pc.match_substring_regex(levels, form.pattern)
            if pc.any(in_form).as_py():
                declared.add(name)
            in_other = pc.and_not(pc.match_substring_regex(levels, form.other), in_form)
            if pc.any(in_other).as_py():
                other.add(name)
            is_mixed = pc.any(pc.match_substring_regex(levels, form.mixed)).as_py()
            if is_mixed or name in declared & other:
                raise InputError(f"{table}: column {name!r} has {form.problem}")
            plain = pc.replace_substring(levels, form.thousands, "") if form.thousands else levels
            plain = pc.if_else(in_form, pc.replace_substring(plain, form.decimal, "."), levels)
            columns.append(pa.DictionaryArray.from_arrays(column.indices, plain))
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


_HEAD = 1 << 18
_GUESSED = (";", "\t", "|")
_FEWEST_LINES = 2


def guess_form(path: StoragePath, file_format: FileFormat) -> FileFormat:
    """Return how a text file is written, with what is not declared guessed where it can be read in one way.

    Guessed are UTF-16; another separator, if the first line of a CSV file has no comma, and each line of the
    first ones has as many fields; and then a decimal comma, if columns have numbers with one, and none has
    numbers with a point.
    """
    with ExitStack() as stack:
        head = unpack(path, file_format.codec, "the table", stack).read(_HEAD)
    if file_format.encoding is None and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        file_format = replace(file_format, encoding="utf-16")
    decoder = codecs.getincrementaldecoder(file_format.encoding or "utf-8-sig")(errors="replace")
    lines = decoder.decode(head).splitlines()
    lines = lines[:-1] if len(head) == _HEAD else lines
    if file_format.delimiter is None and file_format.format == "csv" and "," not in "".join(lines[:1]):
        fitting = [mark for mark in _GUESSED if _read_alike(lines, mark) is not None]
        file_format = replace(file_format, delimiter=fitting[0]) if len(fitting) == 1 else file_format
    records = _read_alike(lines, file_format.separator)
    if file_format.decimal is None and file_format.separator != "," and records is not None:
        columns = [[field for field in column if field.strip()] for column in zip(*records[1:], strict=True)]
        has_commas = any(map(has_decimal_commas, columns))
        if has_commas and not any(re.match(DECIMAL_POINT, field) for column in columns for field in column):
            file_format = replace(file_format, decimal=",")
    return file_format


def _read_alike(lines: Sequence[str], delimiter: str) -> list[list[str]] | None:
    """Return the records of lines that all have as many fields, at least two, or None."""
    records = [record for record in csv.reader(lines, delimiter=delimiter) if record]
    fields = {len(record) for record in records}
    return records if len(records) >= _FEWEST_LINES and len(fields) == 1 and fields != {1} else None
