"""Saying why a file cannot be read: it is empty, damaged, or has another encoding or separator.

The first and last bytes are examined, and text up to the first wrong byte. No message holds a value, nor
column names, which may be a record.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.tables.files import FileFormat, StoragePath
from disclosure_pipeline.tables.statistics_files import FORMATS as STATISTICS

_CHUNK = 1 << 20
_START = 512
_HASH = re.compile(r"[0-9a-f]{64}(\.|$)")
_MAGIC = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "a ZIP archive, or a workbook of a spreadsheet",
}
# The bytes with which files of other formats begin, and the program whose files these are.
_STARTS: Mapping[str, tuple[tuple[bytes, ...], str]] = {
    "sav": ((b"$FL2", b"$FL3"), "SPSS"),
    "por": ((b"",), "SPSS"),
    "dta": ((b"<stata_dta>", *(bytes([version]) for version in range(104, 116))), "Stata"),
    "sas7bdat": ((bytes(12) + b"\xc2\xea\x81\x60",), "SAS"),
    "xpt": ((b"HEADER RECORD*******LIB",), "SAS"),
    "workbook": ((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"), "Excel or OpenDocument"),
}
_CODECS = {"gzip": "gzip", "bz2": "bzip2", "zstd": "zstd"}
# UTF-32 first: its little-endian mark begins like that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SAVE_AS_UTF8 = "save it as UTF-8, or give the source's encoding (--encoding on the command line)"
_WITHOUT_ROW_NAMES = "write the table without them, as write.csv(..., row.names = FALSE) does"
_DIGITS = 18  # of a record's number


def name_separator(names: Sequence[str]) -> str | None:
    """Return the likely separator of a table read as one column, such as "semicolons", or None.

    >>> name_separator(["sex;age;income"])
    'semicolons'
    >>> name_separator(["sex", "age"]) is None
    True
    """
    counts = {mark: names[0].count(mark) for mark in _SEPARATORS} if len(names) == 1 else {}
    mark = max(counts, key=lambda other: counts[other], default="")
    return _SEPARATORS[mark] if counts.get(mark) else None


def describe_separator(separator: str) -> str:
    """Return a sentence on an unexpected separator, and what to do.

    >>> describe_separator("semicolons").partition(":")[0]
    'its first line has semicolons instead of the expected separator'
    """
    return (
        f"its first line has {separator} instead of the expected separator: use commas in .csv and tabs "
        "in .tsv, or give the source's delimiter (--delimiter on the command line)"
    )


def describe_unreadable_file(
    table: str,
    location: str,
    find_file: Callable[[ExitStack], tuple[StoragePath, FileFormat | None]],
    reason: str,
) -> str:
    """Say why a file cannot be read, and what to do; `location` has no secrets.

    `find_file` returns its path and its format, which are there until a stack closes. If the file cannot be
    examined, the sentence lists likely problems and the `reason`. If a store named the file by its hash,
    `table` is the delivered name.
    """
    name = location.rstrip("/").rpartition("/")[2]
    file = table if _HASH.match(name) else f"{table}: {name!r}"
    problem = None
    try:
        with ExitStack() as stack:
            path, file_format = find_file(stack)
            if file_format is not None:  # of a folder, the first damaged file
                problems = (_find_problem(path, file.path, file.size, file_format) for file in path.files())
                problem = next(
                    (problem for problem in problems if problem is not None),
                    "damaged: its content does not have the format that its name says; write it again",
                )
    except Exception:  # of any file system
        pass
    if problem is None:
        problem = (
            "damaged, cut off, not UTF-8, not in the format that its name says, or its records differ in "
            f"their number of fields ({reason})"
        )
    return f"{file} cannot be read: it is {problem}."


def _find_problem(path: StoragePath, file: str, size: int, file_format: FileFormat) -> str | None:
    if not size:
        return "empty: it has no bytes"
    with path.open_file(file) as opened:
        head = opened.read(_START)
        opened.seek(max(0, size - 8))
        tail = opened.read()
        opened.seek(0)
        kind = next((kind for start, kind in _MAGIC.items() if head.startswith(start)), None)
        if file_format.format == "parquet":
            return _examine_ends(head, tail, kind, b"PAR1", "Parquet")
        if file_format.format == "arrow":
            return _examine_ends(head, tail, kind, b"ARROW1", "Arrow")
        if file_format.format in _STARTS:
            return _examine_start(head, kind, file_format)
        return _examine_text(opened, kind, file_format)


def _examine_ends(head: bytes, tail: bytes, kind: str | None, magic: bytes, name: str) -> str | None:
    """Compare both ends: files of these formats begin and end with the same bytes."""
    if head.startswith(magic):
        return None if tail.endswith(magic) else "damaged: it is cut off, its last bytes are missing"
    begins_as_text = head.startswith(codecs.BOM_UTF8) or head[:1].isascii()
    if kind is None and begins_as_text and all(byte >= ord(" ") or byte in b"\t\r\n" for byte in head):
        kind = "text, such as CSV"
    if kind is None:
        return f"damaged, or of another format: it does not begin as a {name} file does"
    return f"of another format: its name says {name}, its content is {kind}; give it the right name"


def _examine_start(head: bytes, kind: str | None, file_format: FileFormat) -> str:
    """Compare the start, and say what may be wrong behind it: errors of the readers may quote a value."""
    starts, name = _STARTS[file_format.format]
    if head.startswith(starts):
        other = ", or its text has another encoding: declare it" if file_format.format in STATISTICS else ""
        return f"damaged or cut off{other}"
    if kind is None:
        return f"damaged, or of another format: it does not begin as a file of {name} does"
    return f"of another format: its name says {name}, its content is {kind}; give it the right name"


def _examine_text(opened: Any, kind: str | None, file_format: FileFormat) -> str | None:
    codec = file_format.codec
    if codec is None and kind is not None:
        return f"of another format: its name says text, its content is {kind}; give it the right name"
    if codec is not None and kind != _CODECS[codec]:
        return f"of another format: its name says {_CODECS[codec]}, but it is not compressed that way"
    stream = opened if codec is None else pa.CompressedInputStream(pa.PythonFile(opened), codec)
    try:
        return _examine_lines(_decode(stream, file_format.encoding), file_format)
    except UnicodeError as error:
        return str(error.args[-1])
    except (OSError, pa.ArrowException):
        return f"damaged or cut off: it cannot be decompressed ({_CODECS.get(codec or '', 'compressed')})"


def _decode(stream: Any, encoding: str | None) -> Iterator[str]:
    """Yield the lines of a stream. Raise UnicodeError, with a sentence, if it has another encoding."""
    decoder = codecs.getincrementaldecoder(encoding or "utf-8-sig")()
    rest, line, is_first = "", 1, True
    while True:
        chunk = stream.read(_CHUNK)
        mark = next((name for start, name in _MARKS.items() if is_first and chunk.startswith(start)), None)
        if encoding is None and (mark or b"\x00" in chunk):
            found = mark or "UTF-16, or not text, as it holds zero bytes"
            raise UnicodeError(f"of another encoding: it is {found}; {_SAVE_AS_UTF8}")
        is_first = False
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].count(b"\n")
            expected = encoding or "UTF-8 (it may be Latin-1, Windows-1252 or damaged)"
            raise UnicodeError(
                f"of another encoding: line {line} is not {expected}; {_SAVE_AS_UTF8}"
            ) from None
        line += text.count("\n")
        *lines, rest = (rest + text).splitlines(keepends=True) or [""]
        yield from lines
        if not chunk:
            if rest:
                yield rest
            return


@dataclass
class _RowNames:
    """The signs, up to now, that every record begins with the name of its row, as R writes it."""

    records: int = 0
    with_one_more: int = 0
    last_number: int = 0
    are_numbers: bool = True

    def add(self, record: Sequence[str], fields: int) -> None:
        self.records += 1
        self.with_one_more += len(record) == fields + 1
        first = record[0]
        number = int(first) if first.isascii() and first.isdigit() and len(first) <= _DIGITS else 0
        self.are_numbers = self.are_numbers and number > self.last_number
        self.last_number = number

    def describe(self) -> str | None:
        """Return a sentence if every record has one field more than the first line, else None."""
        if not self.records or self.with_one_more < self.records:
            return None
        more = "of another form: every record has one field more than the first line"
        if self.are_numbers:
            return f"{more}, and the first field numbers the records: R's row names; {_WITHOUT_ROW_NAMES}"
        return (
            f"{more}, which lacks a column's name; if the first fields are R's row names, "
            f"{_WITHOUT_ROW_NAMES}; if every record ends with a separator, remove it"
        )


def _examine_lines(lines: Iterator[str], file_format: FileFormat) -> str | None:
    quote = '"' if file_format.quote is None else file_format.quote
    records = csv.reader(
        lines,
        delimiter=file_format.separator,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
    )
    row_names = _RowNames()
    problem: str | None = None
    fields: int | None = None
    try:
        for record in records:
            if not record:
                continue
            if fields is None:
                fields = len(record)
                separator = name_separator(record)
                if separator:
                    return f"of another form: {describe_separator(separator)}"
                continue
            row_names.add(record, fields)
            if len(record) != fields and problem is None:
                problem = (
                    f"damaged: the record that ends in line {records.line_num} has "
                    f"{write_count(len(record), 'field')}, but the first line has {fields}; it may be cut "
                    "off, or lack a quotation mark"
                )
    except csv.Error:
        return problem or "damaged: a field is too long; it may lack a quotation mark"
    if fields is None:
        return "empty: it has only blank lines"
    return row_names.describe() or problem
