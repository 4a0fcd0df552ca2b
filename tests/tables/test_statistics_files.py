"""Files of SPSS, Stata and SAS, written here and read back against the frame."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from support.refusals import refusal
from support.sampling import on_some_days, some_of

import disclosure_pipeline as dp
from disclosure_pipeline.tables import statistics_files
from disclosure_pipeline.tables.sources import FileSource, read_raw

pytestmark = pytest.mark.usefixtures("no_guards")

SECRET = "Quetzalcoatl"
Write = Callable[..., Any]

WRITERS: dict[str, Write] = {
    "t.sav": pyreadstat.write_sav,
    "compressed.sav": lambda frame, path: pyreadstat.write_sav(frame, path, row_compress=True),
    "t.zsav": lambda frame, path: pyreadstat.write_sav(frame, path, compress=True),
    "t.por": pyreadstat.write_por,
    "t.dta": pyreadstat.write_dta,
    "T.DTA": lambda frame, path: frame.to_stata(path, write_index=False),
    "t.xpt": pyreadstat.write_xport,
    "t.xlsx": lambda frame, path: frame.to_excel(path, index=False),
}


def people(seed: int = 1, records: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "SEX": random.choice([1, 2], records),
            "AGE": random.integers(18, 40, records),
            "PAY": np.round(random.lognormal(8, 0.5, records), 2),
            "TOWN": random.choice(["Rome", "Oslo", SECRET], records),
            "KIDS": random.choice([0, 1, 2, -8], records),
        }
    )
    frame.loc[:20, "PAY"] = np.nan
    return frame


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    plain = frame.astype(object).where(frame.notna(), None)
    return list(plain.itertuples(index=False, name=None))


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("cells", [1 << 24, 100])
def test_a_file_is_its_frame(name: str, cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_files, "_CELLS", cells)  # many batches, or one
    WRITERS[name](people(), tmp_path / name)
    raw = read_raw(tmp_path / name, "T")
    assert list(raw.columns) == list(people().columns)
    if name == "t.por":  # written in base 30
        paid = raw.pop("PAY").astype("Float64").to_numpy(float, na_value=np.nan)
        assert np.allclose(paid, people()["PAY"], equal_nan=True)
        assert rows(raw) == rows(people().drop(columns="PAY"))
    else:
        assert rows(raw) == rows(people())
    assert list(read_raw(tmp_path / name, "T", ["AGE", "SEX", "absent"]).columns) == ["SEX", "AGE"]
    assert read_raw((tmp_path / name).as_uri(), "T", ["TOWN"])["TOWN"].tolist() == people()["TOWN"].tolist()


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
@pytest.mark.parametrize("name", [*some_of(["t.sav", "T.DTA", "t.xpt"]), "t.xlsx"])
def test_figures_are_those_of_the_frame(name: str, engine: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{seed}{name}" for seed in (1, 2)]
    for seed, path in enumerate(paths, start=1):
        WRITERS[name](people(seed), path)
    how: Any = {"groups": {"PAY": 5}}
    expected = dp.disclosure(people(1), people(2), ["SEX", "AGE"], ["KIDS", "PAY"], **how)
    actual = dp.disclosure(paths[0], paths[1], ["SEX", "AGE"], ["KIDS", "PAY"], engine=engine, **how)
    assert_frame_equal(actual.attribute, expected.attribute)
    assert_frame_equal(actual.identity, expected.identity)


def test_codes_stay_codes_whatever_their_labels(tmp_path: Path) -> None:
    """Those that SPSS calls missing, too: the data dictionary says what they are."""
    frame = pd.DataFrame({"sex": [1.0, 2, 9, np.nan], "kids": [0.0, -8, 3, 1], "word": ["a", "", "z", "b"]})
    pyreadstat.write_sav(
        frame,
        tmp_path / "t.sav",
        variable_value_labels={"sex": {1: "male", 2: "female", 9: "refused"}, "kids": {-8: "not asked"}},
        missing_ranges={"sex": [9], "kids": [{"lo": -9, "hi": -1}]},
    )
    raw = read_raw(tmp_path / "t.sav", "T")
    assert rows(raw) == [(1, 0, "a"), (2, -8, None), (9, 3, "z"), (None, 1, "b")]


def test_letters_for_missing_values_and_numbers_of_32_bits_of_stata(tmp_path: Path) -> None:
    letters = pd.DataFrame({"a": [1, "a", 3, "b"], "b": [1.5, "a", 2.0, 1.0]})
    pyreadstat.write_dta(letters, tmp_path / "t.dta", missing_user_values={"a": ["a", "b"], "b": ["a"]})
    assert rows(read_raw(tmp_path / "t.dta", "T")) == [(1, 1.5), (None, None), (3, 2.0), (None, 1.0)]
    narrow = {"a": np.array([172.3, 0.1], dtype=np.float32), "b": np.array([7, 8], dtype=np.int8)}
    pd.DataFrame(narrow).to_stata(tmp_path / "t.dta", write_index=False)
    assert rows(read_raw(tmp_path / "t.dta", "T")) == [(172.3, 7), (0.1, 8)]


DAYS = [dt.date(1600, 2, 29), dt.date(2024, 12, 31), None, dt.date(9999, 12, 31), dt.date(1970, 1, 1)]
TIMES = [
    dt.datetime(1600, 2, 29, 23, 59, 59),
    dt.datetime(2024, 12, 31, 0, 0, 0, 250_000),
    None,
    dt.datetime(1969, 7, 20, 20, 17, 40),
    dt.datetime(1970, 1, 1),
]


@pytest.mark.parametrize("name", ["t.sav", "t.zsav", "t.dta", "t.xpt"])
def test_dates_of_every_century(name: str, tmp_path: Path) -> None:
    """Also those that pandas cannot hold in nanoseconds."""
    frame = pd.DataFrame({"DAY": DAYS, "TIME": TIMES})
    WRITERS[name](frame, tmp_path / name)
    raw = read_raw(tmp_path / name, "T")
    assert raw["DAY"].array.__arrow_array__().cast(pa.date32()).to_pylist() == DAYS
    times = raw["TIME"].array.__arrow_array__().cast(pa.timestamp("us")).to_pylist()
    assert times == TIMES
    actual = dp.disclosure(tmp_path / name, tmp_path / name, ["TIME"], ["DAY"])
    assert_frame_equal(actual.attribute, dp.disclosure(frame, frame, ["TIME"], ["DAY"]).attribute)


@pytest.mark.parametrize(
    ("suffix", "written", "number", "expected"),
    [
        ("xpt", "DATE9", 0, dt.date(1960, 1, 1)),
        ("xpt", "DDMMYYP10", 366, dt.date(1961, 1, 1)),
        ("xpt", "MONYY7", 31, dt.date(1960, 2, 1)),
        ("xpt", "E8601DA", -1, dt.date(1959, 12, 31)),
        ("xpt", "DATETIME20", 90_000.5, dt.datetime(1960, 1, 2, 1, 0, 0, 500_000)),
        ("xpt", "TIME8", 90_000, 90_000),
        ("xpt", "BEST12", 7, 7),
        ("xpt", "DOLLAR8", 7, 7),
        ("dta", "%td", 0, dt.date(1960, 1, 1)),
        ("dta", "%tdCCYY-NN-DD", 366, dt.date(1961, 1, 1)),
        ("dta", "%tm", 722, dt.date(2020, 3, 1)),
        ("dta", "%tq", -1, dt.date(1959, 10, 1)),
        ("dta", "%th", 1, dt.date(1960, 7, 1)),
        ("dta", "%tc", 86_400_001, dt.datetime(1960, 1, 2, 0, 0, 0, 1000)),
        ("dta", "%ty", 2020, 2020),
        ("dta", "%9.0g", 7, 7),
        ("sav", "TIME8", 90_000, 90_000),  # 25 hours are not one hour: they stay seconds
    ],
)
def test_formats_of_numbers(suffix: str, written: str, number: float, expected: Any, tmp_path: Path) -> None:
    """Months, quarters and half-years are their first days, as pandas reads them."""
    path = tmp_path / f"t.{suffix}"
    WRITERS[f"t.{suffix}"](pd.DataFrame({"A": [float(number)]}), path, variable_format={"A": written})
    [value] = read_raw(path, "T")["A"].array.__arrow_array__().to_pylist()
    assert value == expected and isinstance(value, type(expected))
    if suffix == "dta" and isinstance(expected, dt.date):
        assert pd.Timestamp(expected) == pd.read_stata(path)["A"].iloc[0]


def test_dates_that_no_calendar_has(tmp_path: Path) -> None:
    pyreadstat.write_sav(
        pd.DataFrame({"day": [4.1e14]}), tmp_path / "t.sav", variable_format={"day": "DATE11"}
    )
    message = str(refusal(lambda: read_raw(tmp_path / "t.sav", "T"), "4.1e14"))
    assert message.startswith("T: column 'day' has dates before the year 1 or after 9999")


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    pyreadstat.write_sav(people().iloc[:0], tmp_path / "t.sav")
    raw = read_raw(tmp_path / "t.sav", "T")
    assert len(raw) == 0 and list(raw.columns) == list(people().columns)


@given(
    numbers=st.lists(st.none() | st.floats(-1e12, 1e12) | st.integers(-100, 100), min_size=1, max_size=30),
    cells=st.integers(1, 40),
)
def test_any_numbers_in_batches_of_any_size(
    numbers: list[float | None], cells: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "t.sav"
    frame = pd.DataFrame({"a": pd.array(numbers, dtype="Float64").to_numpy(float, na_value=np.nan)})
    pyreadstat.write_sav(frame, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics_files, "_CELLS", cells)
        raw = read_raw(path, "T")
    assert rows(raw) == [(None if number is None else number + 0.0,) for number in numbers]


# The whole numbers of a column of Stata are the smallest type that holds them; the largest stand for letters.
_BOUNDS = (100, 32_740, 2_147_483_620, 1e300)
_TEXTS = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=5)


@on_some_days
@given(
    bounds=st.lists(st.sampled_from(_BOUNDS), min_size=1, max_size=4),
    records=st.integers(0, 40),
    version=st.sampled_from([114, 117, 118, 119]),
    byteorder=st.sampled_from(["little", "big"]),
    width=st.integers(1, 1000),
    data=st.data(),
)
def test_stata_is_read_as_pyreadstat_reads_it(
    bounds: list[float],
    records: int,
    version: Any,
    byteorder: Any,
    width: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Every type of number to its very bounds, missing values, texts, both orders of bytes, any batches."""
    path = tmp_path_factory.mktemp("stata") / "t.dta"
    columns: dict[str, Any] = {}
    for number, bound in enumerate(bounds):
        whole = st.integers(-int(bound), int(bound)) if bound < 1e300 else st.floats(-bound, bound)
        values = data.draw(st.lists(whole | st.just(bound), min_size=records, max_size=records))
        kind = {100: "int8", 32_740: "int16", 2_147_483_620: "int32"}.get(int(min(bound, 1e18)), "float64")
        columns[f"n{number}"] = np.array(values, dtype=kind)
    floats = st.none() | st.floats(-(2.0**100), 2.0**100, width=32)
    few = data.draw(st.lists(floats, min_size=records, max_size=records))
    columns["f"] = pd.array(few, dtype="Float32").to_numpy(np.float32, na_value=np.nan)
    columns["text"] = data.draw(st.lists(_TEXTS, min_size=records, max_size=records))
    columns["prose"] = data.draw(st.lists(_TEXTS, min_size=records, max_size=records))
    frame = pd.DataFrame(columns).astype({"text": object, "prose": object})
    # Texts of any length in the other order of bytes are refused by pyreadstat.
    long = {"convert_strl": ["prose"]} if version > 114 and byteorder == "little" else {}
    label = "<map>" if version > 114 else None
    frame.to_stata(path, write_index=False, version=version, byteorder=byteorder, data_label=label, **long)
    names = [name for name in frame if name != "prose" or data.draw(st.booleans())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics_files, "_find_text_encoding", lambda *_: None)
        expected = read_raw(path, "T", names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics_files, "_CELLS", width)
        assert_frame_equal(read_raw(path, "T", names), expected)


def test_a_file_of_stata_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With characteristics, and made of one of Stata 10, which has longer formats."""
    path = tmp_path / "t.dta"
    people().to_stata(path, write_index=False, version=114)
    content, columns = path.read_bytes(), people().shape[1]
    formats = 109 + columns * (1 + 33) + 2 * (columns + 1)
    labels = formats + 49 * columns
    end = labels + columns * (33 + 81)
    short = b"".join(content[start : start + 12] for start in range(formats, labels, 49))
    note = b"\1" + (70).to_bytes(4, "little") + b"n" * 70
    parts = b"\x71", content[1:formats], short, content[labels:end], note, content[end:]
    path.write_bytes(b"".join(parts))
    assert rows(read_raw(path, "T")) == rows(people())
    monkeypatch.setattr(statistics_files, "_find_text_encoding", lambda *_: None)
    assert rows(read_raw(path, "T")) == rows(people())


@pytest.mark.parametrize("version", [114, 118])
def test_text_of_another_encoding_than_stata_says(version: Any, tmp_path: Path) -> None:
    """It is refused, as long as its bytes are no text."""
    path = tmp_path / "t.dta"
    pd.DataFrame({"town": ["XX", "Rome"]}).to_stata(path, write_index=False, version=version)
    path.write_bytes(path.read_bytes().replace(b"XX", b"\x81\x8d"))
    message = str(refusal(lambda: read_raw(path, "T"), "Rome"))
    assert "it is damaged or cut off, or its text has another encoding" in message


def test_an_encoding_may_be_declared(tmp_path: Path) -> None:
    """Of a file of Stata from before Unicode."""
    path = tmp_path / "t.dta"
    pd.DataFrame({"town": ["XXXX", "Rome"]}).to_stata(path, write_index=False, version=114)
    path.write_bytes(path.read_bytes().replace(b"XXXX", "Łódź".encode("cp1250")))
    source = FileSource(path=str(path), encoding="cp1250")
    assert read_raw(source, "T")["town"].tolist() == ["Łódź", "Rome"]
