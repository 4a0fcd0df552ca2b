"""Folders of Parquet files that are partitioned by columns: these are read from the folders' names."""

import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.refusals import refusal

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import arrival
from disclosure_pipeline.candidates.store import MARKER
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.tables.sources import FileSource, read_column_names, read_raw

pytestmark = pytest.mark.usefixtures("no_guards")

DATABASE = "duckdb://"


def people(seed: int, records: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], records),
            "ill": random.choice(["y", "n", "u"], records),
            "year": random.integers(2019, 2022, records),
            "town": random.choice(["a b", "c/d", "ä=1"], records),
        }
    )


def partition(frame: pd.DataFrame, folder: Path, by: Sequence[str]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    frame.to_parquet(folder, partition_cols=list(by))
    return folder


def in_order(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in frame[sorted(map(str, frame))].itertuples(index=False))


@pytest.mark.parametrize("by", [["year"], ["town"], ["year", "town"]])
def test_the_columns_of_the_folders_names_are_read(tmp_path: Path, by: list[str]) -> None:
    frame = people(1)
    folder = partition(frame, tmp_path / "gt", by)
    assert set(read_column_names(folder, "T")) == set(frame)
    raw = read_raw(folder, "T")
    assert in_order(raw) == in_order(frame) == in_order(pd.read_parquet(folder))
    for columns in (by, [by[0]], ["sex", *by], ["ill"]):
        assert in_order(read_raw(folder, "T", columns)) == in_order(frame[columns])


def test_a_relative_path_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition(people(1), tmp_path / ".hidden" / "gt", ["year"])
    monkeypatch.chdir(tmp_path / ".hidden")
    by_path = [FileSource(path=path) for path in ("gt", str(Path("gt").resolve()), "../.hidden/gt")]
    assert len({in_order(read_raw(source, "T"))[0] for source in by_path}) == 1
    assert len({source.sha256() for source in by_path}) == 1
    assert all(len(read_raw(source, "T")) == 300 for source in by_path)


@cache
def measured_in_frames() -> dp.Disclosure:
    return dp.disclosure(people(1), people(2), ["sex", "year"])


@pytest.mark.parametrize("by", [["year"], ["year", "town"]])
@pytest.mark.parametrize("engine", ["memory", "partitioned", DATABASE])
def test_figures_are_those_of_plain_files(tmp_path: Path, engine: str, by: list[str]) -> None:
    plain, apart = ([str(tmp_path / f"{name}{seed}.parquet") for seed in (1, 2)] for name in ("", "by"))
    for seed, (file, folder) in enumerate(zip(plain, apart, strict=True), start=1):
        people(seed).to_parquet(file, index=False)
        partition(people(seed), Path(folder), by)
    expected = measured_in_frames()
    for tables in (apart, [apart[0], plain[1]], [plain[0], apart[1]]):
        actual = dp.disclosure(tables[0], tables[1], ["sex", "year"], engine=engine)
        assert set(actual.targets) == set(expected.targets) == {"ill", "town"}
        for name in ("identity", "key_overlap"):
            pd.testing.assert_frame_equal(actual.frame(name), expected.frame(name))
        pd.testing.assert_frame_equal(actual.attribute.sort_index(), expected.attribute.sort_index())


def test_a_folder_without_a_value_is_missing(tmp_path: Path) -> None:
    frame = people(1).assign(year=lambda table: table["year"].mask(table["year"] == 2020).astype("Int64"))
    partition(frame, tmp_path / "gt", ["year"])
    raw = read_raw(tmp_path / "gt", "T")
    assert int(raw["year"].isna().sum()) == int(frame["year"].isna().sum()) > 50
    assert len(raw) == len(frame)
    years = [year for year in raw["year"] if not pd.isna(year)]
    assert Counter(years) == Counter(frame["year"].dropna())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["01", "1"], ["01", "1"]),
        (["-3", "0"], [-3, 0]),
        (["1", "x"], ["1", "x"]),
        (["1.5", "2"], ["1.5", "2"]),
        (["9" * 30, "1"], ["9" * 30, "1"]),
    ],
)
def test_only_plain_whole_numbers_are_numbers(tmp_path: Path, values: list[str], expected: list[Any]) -> None:
    for number, value in enumerate(values):
        (tmp_path / "gt" / f"code={value}").mkdir(parents=True)
        pd.DataFrame({"a": [number]}).to_parquet(tmp_path / "gt" / f"code={value}" / "1.parquet")
    raw = read_raw(tmp_path / "gt", "T")
    assert dict(zip(raw["a"], raw["code"], strict=True)) == dict(enumerate(expected))


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["year=1/a.parquet", "b.parquet"], "not all partitions by the same columns"),
        (["year=1/a.parquet", "month=2/b.parquet"], "not all partitions by the same columns"),
        (["year=1/m=2/a.parquet", "year=1/b.parquet"], "not all partitions by the same columns"),
        (["Quetzalcoatl/a.parquet"], "expected files alone, or folders such as year=2019"),
        (["a=1/a.parquet"], "is partitioned by a, also a column of its files"),
        (["year=1/a.csv", "year=2/b.csv"], "partitioned by year holds files that are not Parquet"),
        (["year=1/a.arrow", "year=2/b.arrow"], "partitioned by year holds files that are not Parquet"),
    ],
)
@pytest.mark.parametrize("engine", ["memory", "partitioned", DATABASE])
def test_no_column_is_left_out_unnoticed(tmp_path: Path, paths: list[str], words: str, engine: str) -> None:
    folder = tmp_path / "gt.parquet"
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"a": [1], "b": [2]}).to_parquet(folder / path)
    table = str(folder)
    assert words in str(refusal(lambda: dp.disclosure(table, table, ["a"], engine=engine), "Quetzalcoatl"))


def test_a_database_adds_no_column_for_a_folder_above(tmp_path: Path) -> None:
    folder = tmp_path / "wave=3"
    folder.mkdir()
    for name in ("gt.parquet", "sd.parquet"):
        people(1).to_parquet(folder / name, index=False)
    gt, sd = str(folder / "gt.parquet"), str(folder / "sd.parquet")
    assert "wave" not in dp.disclosure(gt, sd, ["sex"], engine=DATABASE).targets


def test_a_partitioned_candidate_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    gates.ground_truth().to_csv(tmp_path / "ground_truth.csv", index=False)
    folders = folders_of(gates.resolve(gates.definition()).gate)
    (tmp_path / "incoming").mkdir()
    folder = partition(gates.honest(), tmp_path / "incoming" / "new", ["sex"])
    (folder / MARKER).touch()
    with pytest.raises(StoreError, match="a table partitioned by a column") as refused:
        arrival.receive(folders, "new")
    assert "write each table into one file" in str(refused.value) and "sex=" not in str(refused.value)
