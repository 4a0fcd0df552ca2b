"""Workbooks of Excel and OpenDocument: one sheet is a table, whatever its cells hold."""

import datetime as dt
import io
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from support.refusals import refusal

from disclosure_pipeline.tables import archives
from disclosure_pipeline.tables.sources import FileSource, read_raw

SECRET = "Quetzalcoatl"
Rows = list[list[Any]]


def write(path: Path, **sheets: Rows) -> Path:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, cells in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in cells:
            sheet.append(row)
    workbook.save(path)
    return path


def rows(raw: pd.DataFrame) -> Rows:
    return list(raw.astype(object).where(raw.notna(), None).values.tolist())


def values(path: Path, name: str, **declared: Any) -> list[Any]:
    [column] = [read_raw(FileSource(path=str(path), **declared), "T")[name]]
    return list(column.array.__arrow_array__().to_pylist())


DAYS = [dt.date(2020, 2, 29), None, dt.date(1999, 1, 1)]
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "whole numbers": ([1, 2.0, None], [1, 2, None]),
    "numbers": ([1, 2.5, None], [1.0, 2.5, None]),
    "large numbers": ([1e300, 2, 2.0**60], [1e300, 2.0, 2.0**60]),
    "text": (["01", "NA", None], ["01", "NA", None]),
    "text and numbers": (["A", 1, 2.5], ["A", "1", "2.5"]),
    "true and false": ([True, False, None], [True, False, None]),
    "true and numbers": ([True, 1, None], ["True", "1", None]),
    "days": (DAYS, DAYS),
    "times": (
        [dt.datetime(2020, 2, 29, 3, 4), dt.date(2020, 3, 1), None],
        [dt.datetime(2020, 2, 29, 3, 4), dt.datetime(2020, 3, 1), None],
    ),
    "times of day": ([dt.time(3, 4), None, dt.time(23)], ["03:04:00", None, "23:00:00"]),
    "a formula that nobody calculated": (["=1+1", 1, 2], [None, 1, 2]),
}


@pytest.mark.parametrize("case", CASES)
def test_cells_of_every_kind(case: str, tmp_path: Path) -> None:
    cells, expected = CASES[case]
    path = write(tmp_path / "t.xlsx", Data=[["n", "x"], *([i, cell] for i, cell in enumerate(cells))])
    assert values(path, "x") == expected
    assert values(path, "n") == [0, 1, 2]


def test_a_sheet_of_several_is_named(tmp_path: Path) -> None:
    sheets: dict[str, Rows] = {"Notes": [[SECRET]], "Data": [["x"], [7]], SECRET: [["x"], [8]]}
    path = write(tmp_path / "T.XLSX", **sheets)
    assert values(path, "x", sheet="Data") == [7]
    message = str(refusal(lambda: read_raw(path, "T"), SECRET))
    assert message.startswith("T: the workbook has 3 sheets: name the one to read")
    message = str(refusal(lambda: values(path, "x", sheet="Dada"), SECRET))
    assert message == "T: the workbook has 3 sheets, none of which is named 'Dada'."


def test_empty_rows_are_no_records(tmp_path: Path) -> None:
    """Around the table, where a sheet is merely formatted; within it a record may lack every value."""
    table: Rows = [[None, None], ["a", "b"], [1, "x"], [None, None], [2, None], [None, None], ["", None]]
    raw = read_raw(write(tmp_path / "t.xlsx", Data=table), "T")
    assert rows(raw) == [[1, "x"], [None, None], [2, None]]


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (
            [["a", None, "c"], [1, 2, 3]],
            "column 2 of the sheet has no name: expected the names",
        ),
        ([["A title", None], ["a", "b"], [1, 2]], "column 2 of the sheet has no name"),
        ([], "the sheet is empty."),
    ],
)
def test_every_column_has_a_name(cells: Rows, problem: str, tmp_path: Path) -> None:
    message = str(refusal(lambda: read_raw(write(tmp_path / "t.xlsx", Data=cells), "T")))
    assert message.startswith(f"T: {problem}")


OPEN_DOCUMENT = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2">
<office:body><office:spreadsheet><table:table table:name="Data">{rows}</table:table></office:spreadsheet>
</office:body></office:document-content>"""


MANIFEST = """<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>"""


def to_open_document(cell: Any) -> str:
    if cell is None:
        return "<table:table-cell/>"
    kind = "float" if isinstance(cell, float) else "string"
    value = f' office:value="{cell}"' if kind == "float" else ""
    return f'<table:table-cell office:value-type="{kind}"{value}><text:p>{cell}</text:p></table:table-cell>'


def open_document(manifest: str, content: str = SECRET) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        writer.writestr("META-INF/manifest.xml", manifest)
        writer.writestr("content.xml", content)
    return archive.getvalue()


def test_open_document(tmp_path: Path) -> None:
    cells: Rows = [["sex", "age", "pay"], ["f", 30.0, 1.5], ["m", 41.0, None]]
    written = [f"<table:table-row>{''.join(map(to_open_document, row))}</table:table-row>" for row in cells]
    content = OPEN_DOCUMENT.format(rows="".join(written))
    (tmp_path / "t.ods").write_bytes(open_document(MANIFEST, content))
    raw = read_raw(tmp_path / "t.ods", "T")
    assert list(raw.columns) == cells[0]
    assert rows(raw) == [["f", 30, 1.5], ["m", 41, None]]


def compound_file(stream: str) -> bytes:
    """Return a file of the kind that holds encrypted workbooks, with an empty stream of this name."""
    end, free, none = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF
    header = struct.pack(
        "<8s16s5H6x9L",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 62, 3, 0xFFFE, 9, 6),
        *(0, 1, 1, 0, 4096, end, 0, end, 0),
    )
    header += struct.pack("<109L", 0, *[free] * 108)
    table = struct.pack("<128L", 0xFFFFFFFD, end, *[free] * 126)

    def entry(name: str, kind: int, child: int) -> bytes:
        text = name.encode("utf-16-le")
        return struct.pack(
            "<64sH2B3L36xLQ", text, len(text) + 2 if name else 0, kind, 1, none, none, child, end, 0
        )

    entries = entry("Root Entry", 5, 1) + entry(stream, 2, none) + 2 * entry("", 0, none)
    return header + table + entries


def old_workbook(second_record: int) -> bytes:
    """Return a file with the first records of a workbook of Excel 97, which begins with a BOF record."""
    records = struct.pack("<2H16xHH4x", 2057, 16, second_record, 4)
    return compound_file("Workbook") + records + bytes(4096)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.xlsx", compound_file("EncryptedPackage")),
        ("t.xlsb", compound_file("EncryptedPackage")),
        ("t.xls", old_workbook(47)),
        ("t.ods", open_document("<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>")),
        ("t.sav", b"\x1c\0\0\0\0\0\0\0ENCRYPTEDSAV" + bytes(50)),
    ],
)
def test_a_password_is_named(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    message = str(refusal(lambda: read_raw(tmp_path / name, "T"), SECRET))
    assert message == "T: it is protected by a password: save it without one."


@pytest.mark.parametrize(
    ("name", "content"), [("t.xls", old_workbook(66)), ("t.ods", open_document("<manifest:file-entry/>"))]
)
def test_a_workbook_without_a_sheet_needs_no_password(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    message = str(refusal(lambda: read_raw(tmp_path / name, "T"), SECRET))
    assert message == "T: the workbook has no sheet, or is damaged: write it again."


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_ALWAYS_ALLOWED", 1 << 16)
    path = write(tmp_path / "t.xlsx", Data=[["a"], [1]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/image.bin", bytes(1 << 24))
    assert "unpacked, the file has more than" in str(refusal(lambda: read_raw(path, "T")))


@pytest.mark.parametrize(
    ("name", "package"), [("t.xlsx", "python_calamine"), ("t.sav", "pyreadstat"), ("t.dta", "pyreadstat")]
)
def test_the_extra_is_named(name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(b"it is not read")
    monkeypatch.setitem(sys.modules, package, None)
    message = str(refusal(lambda: read_raw(tmp_path / name, "T")))
    assert message.endswith(f"the package {package} is missing: install disclosure-pipeline[stats].")


def test_a_sheet_is_of_workbooks_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    message = str(refusal(lambda: read_raw(FileSource(path=str(tmp_path / "t.csv"), sheet="Data"), "T")))
    assert message == "T: sheet is declared, which a file of format 'csv' does not have."
    path = write(tmp_path / "t.xlsx", Data=[["a"], [1]])
    message = str(refusal(lambda: read_raw(FileSource(path=str(path), delimiter=";"), "T")))
    assert message == "T: delimiter is declared, which a file of format 'workbook' does not have."
