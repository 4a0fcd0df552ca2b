"""Tables in ZIP archives and compressed files: one table each, and no bombs."""

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from support import gates
from support.refusals import refusal

from disclosure_pipeline.candidates import arrival
from disclosure_pipeline.candidates.store import MARKER
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.tables import archives
from disclosure_pipeline.tables.sources import FileSource, estimate_bytes, read_raw

SECRET = "Quetzalcoatl"
WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "t.csv": lambda frame, path: frame.to_csv(path, index=False),
    "T.TSV": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "t.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "t.parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "t.arrow": lambda frame, path: frame.to_feather(path),
    "t.sav": pyreadstat.write_sav,
    "t.dta": lambda frame, path: frame.to_stata(path, write_index=False),
    "t.xlsx": lambda frame, path: frame.to_excel(path, index=False),
}


def people() -> pd.DataFrame:
    return pd.DataFrame({"town": [SECRET, "Rome"] * 400, "age": [*range(20, 100)] * 10})


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in files.items():
            archive.writestr(name, file)
    return content.getvalue()


TWO = zipped(dict.fromkeys(("a.csv", "b.csv"), "a\n1\n"))


@pytest.mark.parametrize("name", WRITERS)
def test_a_packed_table_is_the_table(name: str, tmp_path: Path) -> None:
    WRITERS[name](people(), tmp_path / name)
    path = tmp_path / "t.zip"
    path.write_bytes(zipped({name: (tmp_path / name).read_bytes()}))
    for location in (path, path.as_uri()):
        raw = read_raw(location, "T")
        assert raw["town"].tolist() == people()["town"].tolist()
        assert raw["age"].astype(int).tolist() == people()["age"].tolist()
    assert estimate_bytes(path, "T") == 10 * path.stat().st_size


def test_folders_and_hidden_files_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zip"
    files = {"deep/": "", "deep/t.csv": "a;b\n1,5;2\n", "__MACOSX/deep/._t.csv": "x", ".DS_Store": "x"}
    path.write_bytes(zipped(files))
    raw = read_raw(FileSource(path=str(path), delimiter=";", decimal=","), "T")
    assert raw.values.tolist() == [["1.5", "2"]]


@pytest.mark.parametrize(
    "command",
    [
        "measure t.zip t.zip --key a",
        "dictionary draft t.zip --synthetic",
        "init p --table t.zip --name survey --ground-truth gt.csv --key a",
    ],
)
def test_commands_say_what_is_wrong_with_an_archive(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for content, problem in (
        (TWO, "holds 2 files: expected one, a table."),
        (TWO[:-30], "is damaged, or no ZIP archive: write it again."),
    ):
        (tmp_path / "t.zip").write_bytes(content)
        assert f"the archive 't.zip' {problem}" in gates.run_command(*command.split()).stderr


def with_a_password(content: bytes) -> bytes:
    changed = bytearray(content)
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flags of the member
        changed[content.index(signature) + place] |= 1
    return bytes(changed)


PEOPLE = zipped({"t.csv": people().to_csv(index=False)})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (zipped({}), "the archive 't.zip' holds 0 files: expected one, a table."),
        (TWO, "the archive 't.zip' holds 2 files: expected one, a table."),
        (PEOPLE[:-30], "the archive 't.zip' is damaged, or no ZIP archive: write it again."),
        (SECRET.encode(), "the archive 't.zip' is damaged, or no ZIP archive"),
        (PEOPLE[:60] + bytes(60) + PEOPLE[120:], "'t.zip' cannot be read: it is damaged"),
        (
            zipped({"t.csv": f"a,b\n1,2\n{SECRET}\n"}),
            "'t.zip' cannot be read: it is damaged: the record that ends in line 3 has 1 field",
        ),
        (zipped({"t.rds": SECRET}), "'t.rds' has an unknown format"),
        (with_a_password(PEOPLE), "it is protected by a password: save it without one."),
    ],
)
def test_what_is_wrong_inside_is_named(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "t.zip").write_bytes(content)
    message = str(refusal(lambda: read_raw(tmp_path / "t.zip", "T"), SECRET))
    whole = message if problem.endswith(".") else message[: len(f"T: {problem}")]
    assert whole == f"T: {problem}"
    assert ("pyreadr.read_r" in message) == ("unknown format" in problem)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda content: bytes(pa.compress(content, "zstd", asbytes=True)),
    "zip": lambda content: zipped({"t.csv": content}),
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_bomb_is_not_unpacked(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is a thousand times as large when it is unpacked; the limit is lower here than it is."""
    path = tmp_path / f"t.csv.{suffix}"
    path.write_bytes(PACKERS[suffix](b"a\n" + b"0\n" * (1 << 19)))
    assert len(read_raw(path, "T")) == 1 << 19
    monkeypatch.setattr(archives, "_ALWAYS_ALLOWED", 1 << 16)
    message = str(refusal(lambda: read_raw(path, "T")))
    assert message.startswith("T: unpacked, the file has more than ") and "deliver it unpacked" in message


@pytest.mark.parametrize(
    "name", ["t.zip", "t.sav", "t.xlsx", "t.dta", "T.CSV", "t.Csv", "T.CSV.GZ", "T.PARQUET"]
)
def test_candidates_come_in_these_formats(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    folder = tmp_path / "incoming" / "new"
    folder.mkdir(parents=True)
    table = gates.honest()
    if name == "t.zip":
        (folder / name).write_bytes(zipped({"t.parquet": table.to_parquet(index=False)}))
    else:
        WRITERS[name.lower()](table, folder / name)
    (folder / MARKER).touch()
    gates.ground_truth().to_csv(tmp_path / "ground_truth.csv", index=False)
    received = arrival.receive(folders_of(gates.resolve(gates.definition()).gate), "new")
    assert received.violations == () and received.records == (len(table),)
