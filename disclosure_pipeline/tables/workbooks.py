"""Workbooks of Excel and OpenDocument: one sheet, with the names of its columns in the first row."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from disclosure_pipeline.errors import InputError, write_count
from disclosure_pipeline.tables.archives import PASSWORD, require_unpackable
from disclosure_pipeline.tables.encoding import arrow_array
from disclosure_pipeline.tables.files import FileFormat, OpenTable, StoragePath
from disclosure_pipeline.tables.levels import EXACT_IN_FLOAT, level_label

# An encrypted workbook of Excel is a file of the old kind, which holds it under this name. In an old workbook
# the first record, BOF (2057), is followed by FilePass (47): [MS-XLS], 2.4.21 and 2.4.117.
_COMPOUND, _ENCRYPTED = b"\xd0\xcf\x11\xe0", "EncryptedPackage".encode("utf-16-le")
_FILE_PASS = re.compile(rb"\x09\x08\x10\x00.{16}(\x86\x00\x00\x00)?\x2f\x00", re.DOTALL)
# An OpenDocument names the encryption of its parts (Open Document Format 1.2, part 3, 4.4).
_MANIFEST, _ENCRYPTION = "META-INF/manifest.xml", b"encryption-data"


def open_workbook(path: StoragePath, file_format: FileFormat, table: str, stack: ExitStack) -> OpenTable:
    """Open the declared sheet of a workbook, or its only one.

    Empty cells, errors, and formulas without a stored result are missing. Raise InputError if there is no
    such sheet, its first row does not name every column, or the file needs a password.
    """
    import python_calamine as calamine

    file = stack.enter_context(path.open_file(path.path))
    if _is_protected(file, path.files()[0].size, table):
        raise InputError(f"{table}: {PASSWORD}.")
    file.seek(0)
    workbook = stack.enter_context(calamine.CalamineWorkbook.from_filelike(file))
    rows = workbook.get_sheet_by_name(_find_sheet(workbook.sheet_names, file_format, table)).to_python()
    names = [level_label(cell).strip() for cell in rows[0]] if rows else []
    if not names:
        raise InputError(f"{table}: the sheet is empty.")
    if not all(names):
        number = names.index("") + 1
        raise InputError(
            f"{table}: column {number} of the sheet has no name: expected the names of the columns in the "
            "first row that is not empty."
        )

    def batches(columns: list[str]) -> Iterator[Any]:
        places = [names.index(name) for name in columns]
        yield pa.table([_to_arrow([row[place] for row in records]) for place in places], columns)

    records = rows[1:]
    while records and all(cell == "" for cell in records[-1]):
        records.pop()
    return OpenTable(tuple(names), batches)


def _is_protected(file: Any, packed: int, table: str) -> bool:
    """Return whether a password is needed to read the workbook. Errors as of `require_unpackable`."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            require_unpackable(archive.infolist(), packed, table)
            return _MANIFEST in archive.namelist() and _ENCRYPTION in archive.read(_MANIFEST)
    file.seek(0)
    if file.read(len(_COMPOUND)) != _COMPOUND:
        return False
    content = file.read()
    return _ENCRYPTED in content or _FILE_PASS.search(content) is not None


def _find_sheet(names: Sequence[str], file_format: FileFormat, table: str) -> str:
    """Return the name of the sheet to read. The names of others are not shown: they may be values."""
    if not names:
        raise InputError(f"{table}: the workbook has no sheet, or is damaged: write it again.")
    wanted = file_format.sheet
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is not None and wanted in names:
        return wanted
    held = f"{table}: the workbook has {write_count(len(names), 'sheet')}"
    if wanted is None:
        raise InputError(f"{held}: name the one to read as the source's sheet (--sheet on the command line).")
    raise InputError(f"{held}, none of which is named {wanted!r}.")


def _to_arrow(cells: Sequence[Any]) -> Any:
    """Return a column of one type: numbers, dates, true and false, or the text of cells of several types."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        numbers = [value for value in values if value is not None]
        whole = all(float(number).is_integer() and abs(number) < EXACT_IN_FLOAT for number in numbers)
        return pa.array(
            [None if value is None else int(value) if whole else float(value) for value in values],
            pa.int64() if whole else pa.float64(),
        )
    if len(kinds) == 1 and not kinds & {datetime.time, datetime.timedelta}:
        return arrow_array(values)
    if kinds == {datetime.date, datetime.datetime}:
        midnight = datetime.time()
        return arrow_array(
            [
                datetime.datetime.combine(value, midnight) if type(value) is datetime.date else value
                for value in values
            ]
        )
    return pa.array([None if value is None else level_label(value) for value in values], pa.string())
