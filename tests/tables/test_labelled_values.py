"""Columns of statistics packages, in which some numbers have labels, and files that these write."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from pandas.testing import assert_frame_equal
from support import gates
from support.refusals import refusal

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import arrival
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.tables.alignment import label_values
from disclosure_pipeline.tables.sources import read_raw

pytestmark = pytest.mark.usefixtures("no_guards")

Frames = tuple[pd.DataFrame, pd.DataFrame]
LABELS: Any = {"sex": {1: "male", 2: "female"}, "kids": {-8: "not asked"}}


def people(seed: int, records: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice([1, 2], records),
            "age": random.integers(18, 60, records),
            "kids": random.choice([0, 1, 2, 3, -8], records, p=[0.6, 0.1, 0.1, 0.1, 0.1]),
        }
    )


def from_stata(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    frame.to_stata(path, write_index=False, value_labels=LABELS)
    return pd.read_stata(path)


def from_spss(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    pyreadstat.write_sav(frame, path, variable_value_labels=LABELS)
    return pyreadstat.read_sav(path, apply_value_formats=True)[0]


@pytest.fixture
def frames(tmp_path: Path) -> Frames:
    gt, sd = (from_stata(people(seed), tmp_path / f"{seed}.dta") for seed in (1, 2))
    assert set(map(type, gt["kids"].cat.categories)) == {int, str}
    return gt, sd


@pytest.mark.parametrize(
    ("engine", "read"),
    [("memory", from_spss), *((engine, from_stata) for engine in ("memory", "partitioned", "duckdb://"))],
)
def test_figures_are_those_of_the_codes(engine: str, read: Any, tmp_path: Path) -> None:
    gt, sd = (read(people(seed), tmp_path / str(seed)) for seed in (1, 2))
    expected = dp.disclosure(people(1), people(2), ["sex", "age"], ["kids"])
    assert expected.attribute["DiSCO"].item() > 0
    actual = dp.disclosure(gt, sd, ["sex", "age"], ["kids"], engine=engine)
    assert_frame_equal(actual.attribute, expected.attribute)
    expected = dp.disclosure(people(1), people(2), ["sex", "kids"], ["age"])
    actual = dp.disclosure(gt, sd, ["sex", "kids"], ["age"], engine=engine)
    assert_frame_equal(actual.identity, expected.identity)


def test_nan_beside_labelled_values_is_missing() -> None:
    levels = pd.Index(["none", 2], dtype=object)
    labelled = pd.DataFrame({"kids": pd.Categorical(["none", 2], categories=levels)})
    numbers = pd.DataFrame({"kids": pd.arrays.ArrowExtensionArray(pa.array([2.0, math.nan]))})
    kids = label_values([labelled, numbers])[1]["kids"]
    assert kids.isna().tolist() == [False, True] and kids[0] == "2"


def test_a_table_without_the_labelled_value(frames: Frames, tmp_path: Path) -> None:
    """Its column holds numbers alone, which are those of the other table."""
    without = people(2)[people(2)["kids"] >= 0]
    expected = dp.disclosure(people(1), without, ["sex", "age"], ["kids"]).attribute
    in_numbers = frames[1][["sex", "age"]].loc[without.index].assign(kids=without["kids"])
    tables: list[Any] = [in_numbers.astype({"kids": kind}) for kind in (int, float, str)]
    tables[-1].to_csv(tmp_path / "sd.csv", index=False)
    for table in (*tables, tmp_path / "sd.csv"):
        assert_frame_equal(dp.disclosure(frames[0], table, ["sex", "age"], ["kids"]).attribute, expected)


def test_other_analyses_take_them(frames: Frames) -> None:
    gt, sd = (people(seed).astype({"kids": str}) for seed in (1, 2))
    both: list[Frames] = [frames, (gt, sd)]
    actual, expected = (dp.disclosure_of_key_sets(*of, [["sex"], ["sex", "age"]], "kids") for of in both)
    assert_frame_equal(actual.DiSCO, expected.DiSCO)
    distances = [dp.resemblance(*of).columns["TVD"]["kids"].item() for of in both]
    assert distances[0] == pytest.approx(distances[1])


def test_an_asset_may_return_them(frames: Frames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    folders = folders_of(gates.resolve(gates.definition()).gate)
    folder = arrival.deliver(folders, "new", [frames[0]])
    written = pd.read_parquet(folder / "synthesis_0001.parquet")
    assert written["kids"].tolist() == frames[0]["kids"].astype(str).tolist()


@pytest.mark.parametrize(
    "categories", [[1, pd.Timestamp("2020-01-01")], [True, "x"], [1, "x", ("a",)]], ids=str
)
def test_other_mixtures_are_refused(categories: list[Any]) -> None:
    table = pd.DataFrame({"a": ["x", "y"] * 10, "b": pd.Categorical(categories[:2] * 10, categories)})
    with pytest.raises(InputError, match="values of more than one kind"):
        dp.disclosure(table, table, ["a"], ["b"])


def test_a_missing_label_is_missing() -> None:
    column = pd.Categorical([1, "x", None, 1], [1, "x"])
    table = pd.DataFrame({"a": list("ffmm"), "b": column})
    plain = table.assign(b=["1", "x", None, "1"])
    assert_frame_equal(
        dp.disclosure(table, table, ["a"], ["b"]).attribute,
        dp.disclosure(plain, plain, ["a"], ["b"]).attribute,
    )


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("gt.rds", "pyreadr.read_r"),
        ("GT.RData", "pyreadr.read_r"),
        ("gt.orc", "pandas.read_orc"),
        ("gt.unknown", None),
        ("gt", None),
    ],
)
def test_an_unknown_format_has_a_hint(tmp_path: Path, name: str, reader: str | None) -> None:
    (tmp_path / name).write_text("Quetzalcoatl")
    message = str(refusal(lambda: read_raw(tmp_path / name, "T"), "Quetzalcoatl"))
    assert message.startswith(f"T: {name!r} has an unknown format: expected .csv, ")
    assert (f"read it with {reader}" in message) == (reader is not None)
