"""Messages about unreadable files name the file and say whether it is damaged, empty or otherwise coded."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from support import gates
from support.gates import Home
from support.refusals import refusal
from support.sampling import some_of

import disclosure_pipeline as dp
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.contract import read_canonical
from disclosure_pipeline.tables.dictionary import Column, Contract
from disclosure_pipeline.tables.sources import FileSource, read_column_names, read_raw

SECRET = "Quetzalcoatl"
TABLE = "the table"


def people() -> pd.DataFrame:
    return pd.DataFrame({"sex": ["f", "ö"] * 400, "town": [SECRET, "x"] * 400, "age": [*range(20, 100)] * 10})


def csv(encoding: str = "utf-8", separator: str = ",") -> bytes:
    return people().to_csv(index=False, sep=separator).encode(encoding)


def written(write: Callable[[pd.DataFrame, Any], object]) -> bytes:
    with TemporaryDirectory() as folder:
        write(people(), Path(folder) / "t.sav")
        return (Path(folder) / "t.sav").read_bytes()


def with_holes(content: bytes, start: int = 50) -> bytes:
    return content[:start] + b"\xff" * 200 + content[start + 200 :]


def change_byte(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


CSV, PARQUET = csv(), bytes(people().to_parquet() or b"")
ARROW = written(pd.DataFrame.to_feather)
SAV = written(pyreadstat.write_sav)
XLSX = written(lambda frame, path: frame.to_excel(path, index=False, engine="openpyxl"))
CUT_OFF = "damaged: it is cut off"
NOT_DECOMPRESSED = "damaged or cut off: it cannot be decompressed"
NO_UTF_8 = "of another encoding: line 3 is not UTF-8 (it may be Latin"
ROW_NAMES = (
    "every record has one field more than the first line, and the first field numbers the records: R's "
    "row names; write the table without them, as write.csv(..., row.names = FALSE) does"
)
NO_NAME = "lacks a column's name; if the first fields are R's row names, write the table without them"

# Name of the case: the file, its content, and a part of the message about it.
PROBLEMS: dict[str, tuple[str, bytes, str]] = {
    "Parquet, truncated": ("t.parquet", PARQUET[:-20], CUT_OFF),
    "Parquet, a start of it": ("t.parquet", PARQUET[:100], CUT_OFF),
    "Parquet, overwritten": ("t.parquet", with_holes(PARQUET), "damaged: its content does not have"),
    "Parquet, empty": ("t.parquet", b"", "empty: it has no bytes"),
    "text as Parquet": ("t.parquet", CSV, "its name says Parquet, its content is text, such as CSV"),
    "noise that begins as text": (
        *("t.parquet", b"Za\xe9\xf9\xb0q\xaa!" + bytes(range(256))),
        "damaged, or of another format: it does not begin as a Parquet file",
    ),
    "noise as Parquet": ("t.parquet", bytes(range(128, 256)), "does not begin as a Parquet file"),
    "Arrow, truncated": ("t.arrow", ARROW[:-200], CUT_OFF),
    "Arrow, empty": ("t.arrow", b"", "empty: it has no bytes"),
    "Parquet as Arrow": ("t.arrow", PARQUET, "its name says Arrow, its content is Parquet"),
    "Parquet as text": ("t.csv", PARQUET, "its name says text, its content is Parquet"),
    "a workbook as text": ("t.csv", b"PK\x03\x04" + b"a" * 99, "or a workbook of a spreadsheet"),
    "gzip as text": ("t.csv", gzip.compress(CSV), "its name says text, its content is gzip"),
    "CSV, empty": ("t.csv", b"", "empty: it has no bytes"),
    "CSV, blank lines": ("t.csv", b"\n\n\n", "empty: it has only blank lines"),
    "UTF-16": ("t.csv", csv("utf-16"), "of another encoding: it is UTF-16; save it as UTF-8"),
    "UTF-16 without a mark": ("t.csv", csv("utf-16-le"), "of another encoding: it is UTF-16, or no"),
    "UTF-32": ("t.csv", csv("utf-32"), "of another encoding: it is UTF-32"),
    "Latin-1": ("t.csv", csv("latin-1"), NO_UTF_8),
    "Latin-1, compressed": ("t.csv.gz", gzip.compress(csv("latin-1")), NO_UTF_8),
    "semicolons": ("t.csv", csv(separator=";"), "its first line has semicolons instead"),
    "semicolons and decimal commas": ("t.csv", b"a;b\n1,5;2\n2,5;3\n", "its first line has semicolons"),
    "tabs": ("t.csv", csv(separator="\t"), "its first line has tabs instead"),
    "bars": ("t.csv", csv(separator="|"), "its first line has vertical bars"),
    "commas by the name of tabs": ("t.tsv", CSV, "its first line has commas instead"),
    "a field too few": ("t.csv", CSV + b"f,x\n", "line 802 has 2 fields, but the first line has 3"),
    "one field": ("t.csv", CSV + b"f\n", "line 802 has 1 field, but the first line has 3"),
    "a field too many": ("t.csv", CSV + b"f,x,1,2\n", "line 802 has 4 fields, but the first line has 3"),
    "R's row names": ("t.csv", b'"sex","age"\n"1","f",30\n"2","m",41\n"7","f",52\n', ROW_NAMES),
    "R's row names, tabs": ("t.tsv", b"sex\tage\n1\tf\t30\n2\tm\t41\n", "numbers the records: R's"),
    "R's row names as text": ("t.csv", b'"sex","age"\n"Mazda RX4","f",30\n"Fiat","m",41\n', NO_NAME),
    "a separator at each end": ("t.csv", b"a,b\n1,2,\n1,4,\n", "if every record ends with a separator"),
    "names of some": (
        "t.csv",
        b"sex,age\n1,f,30\n2,m\n",
        "line 2 has 3 fields, but the first line has 2",
    ),
    "an open quotation mark": ("t.csv", b'a,b\n"x,1\n2,3\n', "or lack a quotation mark"),
    "gzip, truncated": ("t.csv.gz", gzip.compress(CSV * 99)[:-20], NOT_DECOMPRESSED),
    "gzip, only by name": ("t.csv.gz", CSV, "its name says gzip, but it is not compressed that way"),
    "gzip, one byte another": ("t.csv.gz", change_byte(gzip.compress(CSV)), NOT_DECOMPRESSED),
    "bzip2, truncated": ("t.csv.bz2", bz2.compress(CSV)[:-9], NOT_DECOMPRESSED),
    "zstd, truncated": ("t.csv.zst", pa.compress(CSV, "zstd", asbytes=True)[:-20], NOT_DECOMPRESSED),
    "text as Arrow": ("t.arrow", CSV, "its name says Arrow, its content is text, such as CSV"),
    "a record cut off": ("t.csv", CSV[: CSV.rindex(b",")], "has 2 fields, but the first line has 3"),
    "a header in Latin-1": ("t.csv", "größe,a\nx,1\n".encode("latin-1"), "line 1 is not UTF-8"),
    "zeros": ("t.csv", bytes(64), "or not text, as it holds zero bytes"),
    "SPSS, truncated": ("t.sav", SAV[:-100], "it is damaged or cut off, or its text has another encoding"),
    "SPSS, a start of it": ("t.sav", SAV[:80], "it is damaged or cut off"),
    "SPSS, empty": ("t.sav", b"", "it is empty"),
    "Parquet as SPSS": ("t.sav", b"PAR1" + bytes(50), "its name says SPSS, its content is Parquet"),
    "SPSS as Stata": ("t.dta", SAV, "it does not begin as a file of Stata does"),
    "SPSS as SAS": ("t.sas7bdat", SAV, "it does not begin as a file of SAS does"),
    "SPSS as a transport file of SAS": ("t.xpt", SAV, "it does not begin as a file of SAS does"),
    "SPSS as a portable file": ("t.por", SAV, "it is damaged or cut off"),
    "workbook, truncated": ("t.xlsx", XLSX[:-300], "it is damaged or cut off"),
    "workbook, overwritten": (
        *("t.xlsx", with_holes(XLSX, XLSX.index(b"xl/worksheets/sheet1.xml") + 50)),
        "it is damaged or cut off",
    ),
    "workbook, empty": ("t.xlsx", b"", "it is empty"),
    "text as a workbook": (
        *("t.xlsx", CSV),
        "it does not begin as a file of Excel or OpenDocument does",
    ),
    "Parquet as a workbook": ("t.xlsx", b"PAR1" + bytes(40), "its content is Parquet"),
}


@pytest.mark.parametrize("what", PROBLEMS)
def test_the_message_says_what_is_wrong_with_a_file(what: str, tmp_path: Path) -> None:
    """It names the file, holds none of its values, and is the same in every way of reading."""
    name, content, text = PROBLEMS[what]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "people.csv").write_bytes(CSV)
    # Before a file is read, its size is looked at, which chooses the engine.
    measured = refusal(lambda: dp.disclosure(tmp_path / "people.csv", tmp_path / name, ["sex"]), SECRET)
    assert text in str(measured)
    columns = {"sex": Column(type="category")}
    for read in (
        lambda: read_raw(tmp_path / name, TABLE),
        lambda: read_raw(FileSource(path=str(tmp_path / name)), TABLE),
        lambda: read_canonical(tmp_path / name, Contract(columns, TABLE, ["sex"], only_known=True)),
    ):
        message = str(refusal(read, SECRET))
        assert text in message
        assert message.startswith(f"{TABLE}: {name!r} cannot be read: ") or "separator" in message


@pytest.mark.parametrize("content", [f"{SECRET},b,{SECRET}\n1,2,3\n", "a,,\n1,2,3\n"])
def test_repeated_column_names_are_not_shown(content: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(content)
    message = str(refusal(lambda: read_raw(tmp_path / "t.csv", TABLE), SECRET))
    assert message.startswith(TABLE) and "have the same name" in message


def test_a_header_without_records_is_not_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"sex,town,age\n")
    assert read_raw(tmp_path / "t.csv", TABLE).shape == (0, 3)
    with pytest.raises(InputError, match="has no records"):
        dp.disclosure(tmp_path / "t.csv", tmp_path / "t.csv", ["sex"])


def test_reading_only_column_names_finds_a_wrong_separator(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(csv(separator=";"))
    with pytest.raises(InputError, match="its first line has semicolons"):
        read_column_names(tmp_path / "t.csv", TABLE)
    source = FileSource(path=str(tmp_path / "t.csv"), delimiter=";")
    assert read_column_names(source, TABLE) == ("sex", "town", "age")


def test_a_column_of_parquet_may_have_any_name(tmp_path: Path) -> None:
    pd.DataFrame({"a;b": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    assert read_column_names(tmp_path / "t.parquet", TABLE) == ("a;b",)


def test_finds_a_damaged_file_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for number in (1, 2):
        (tmp_path / "t" / f"{number}.parquet").write_bytes(PARQUET[: -20 if number == 2 else None])
    with pytest.raises(InputError, match="'t' cannot be read: it is damaged: it is cut off"):
        read_raw(tmp_path / "t", TABLE)


@pytest.mark.parametrize("what", some_of(PROBLEMS, 5))
def test_a_candidate_is_named_as_it_was_delivered(what: str, home: Home) -> None:
    """The hash that its bytes are stored under says nothing to a reader."""
    name, content, message = PROBLEMS[what]
    delivered = f"delivery{name[1:]}"
    home.deliver("c", {delivered: content})
    home.prepare()
    run = home.run_gate("c")
    assert not run.success
    checks = [str(check.description) for check in gates.checks(run).values() if not check.passed]
    text = "\n".join([*gates.failures(run).values(), *checks])
    assert "Unexpected" not in text and home.nothing_published()
    assert message in text
    assert f"synthetic table {delivered!r}" in text
    stored = [path.stem.split(".")[0] for path in (home.store / "objects").iterdir()]
    assert stored and not [digest for digest in stored if digest in text]
    assert SECRET not in text
