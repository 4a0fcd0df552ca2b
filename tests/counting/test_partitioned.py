"""The partitioned engine alone: one pass over files and frames, and what it spills to disk."""

import errno
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.feather import write_feather
from support.engines import IN_PARTS, write_files
from support.figures import assert_same
from support.same_counts import assert_same_counts
from support.small_batches import small_batches
from support.surveys import TARGETS, survey

import disclosure_pipeline as dp
from disclosure_pipeline.counting import opening
from disclosure_pipeline.counting.cells import CellParts, count_tables
from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, Target, gather_columns
from disclosure_pipeline.counting.memory import partial_records
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.partitioned import engine, opened_files, record_parts
from disclosure_pipeline.counting.partitioned.spill_file import SpillFile, open_spill_file
from disclosure_pipeline.counting.partitioned.streams import Batches, batches_in_memory
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.files import find_suffix
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn

pytestmark = pytest.mark.usefixtures("no_guards")

TABLES = ("the ground truth", "synthetic table 1", "synthetic table 2")


def count_in_memory(request: CountRequest) -> DisclosureCounts:
    """Count the columns of a request in memory, which needs no frames for that."""
    [counts] = count_tables(FramesInMemory((), "memory"), [request])
    return counts


@dataclass
class InParts:
    """Batches whose records are counted in parts, one order after the other unless `in_orders` is False."""

    batches: Batches
    limits: Limits
    in_orders: bool = True

    def leaves_out_each(self, _: CountRequest) -> bool:
        return self.in_orders

    def find_cells(self, requests: Sequence[CountRequest], on_progress: OnProgress) -> CellParts:
        return engine.find_in_batches(requests, self.batches, on_progress, self.limits)


@pytest.fixture(scope="module")
def raw() -> dict[str, CodedColumn]:
    """The columns of GT and two syntheses, the second one small."""
    frames = [survey(3000, 1), survey(2500, 2), survey(300, 3)]
    return {str(name): code_column(name, [frame[name] for frame in frames], TABLES) for name in frames[0]}


@pytest.fixture(scope="module")
def grouped(raw: dict[str, CodedColumn]) -> dict[str, CodedColumn]:
    grouping = Grouping({"age": 4, "income": 5}, {}, "pooled")
    return {name: grouping.apply(column) for name, column in raw.items()}


@pytest.fixture(scope="module")
def requests(raw: dict[str, CodedColumn], grouped: dict[str, CodedColumn]) -> list[CountRequest]:
    """List the requests of a gate (measures with groups and an exclusion; copies), and other keys."""
    targets = [
        Target(grouped["work"], CodedExclusions(), 2),
        Target(grouped["income"], CodedExclusions((1,)), 1),
    ]
    return [
        CountRequest(list(raw.values())),
        CountRequest(
            [grouped["age"], grouped["sex"], grouped["postcode"]], targets, together=True, apart=True
        ),
        CountRequest([grouped["sex"]]),
        CountRequest([grouped["income"]], [Target(raw["age"], CodedExclusions(), 3)]),
    ]


@pytest.mark.parametrize("limits", IN_PARTS)
def test_several_requests_in_one_pass(limits: str, requests: list[CountRequest]) -> None:
    """Each is counted as if it were the only one, and every batch is read and coded once."""
    columns = gather_columns(requests)
    assert len(columns) == 7  # age and income also as they are
    batches = batches_in_memory(columns, records=700)
    read, coded = [], []

    def read_table(table: int) -> Iterable[slice]:
        read.append(table)
        return batches.read(table)

    def code(table: int, batch: slice, column: CodedColumn) -> np.ndarray[tuple[int], np.dtype[np.integer]]:
        coded.append((table, batch.start, id(column)))
        return batches.code(table, batch, column)

    watched = replace(batches, read=read_table, code=code)
    counts = count_tables(InParts(watched, IN_PARTS[limits]), requests)
    assert read == [0, 1, 2]
    assert len(coded) == len(set(coded)) == (5 + 4 + 1) * len(columns)
    for count, request in zip(counts, requests, strict=True):
        assert_same_counts(count, count_in_memory(request))


@pytest.fixture
def spill_files(monkeypatch: pytest.MonkeyPatch) -> list[SpillFile]:
    """Those that are opened in the test."""
    opened = list[SpillFile]()

    @contextmanager
    def open_and_note(*arguments: Any) -> Iterator[SpillFile]:
        with open_spill_file(*arguments) as spill_file:
            opened.append(spill_file)
            yield spill_file

    monkeypatch.setattr(record_parts, "open_spill_file", open_and_note)
    return opened


@pytest.mark.parametrize("most_lower", [1 << 32, 40])
def test_copies_without_a_column_take_as_few_parts_as_orders(
    monkeypatch: pytest.MonkeyPatch, most_lower: int, spill_files: list[SpillFile]
) -> None:
    """Each column is left out in one order; parts lack GT or SD records, and a table is tiny."""
    monkeypatch.setattr(partial_records, "_MOST_LOWER", most_lower)
    rng = np.random.default_rng(most_lower)
    frames = [
        pd.DataFrame({f"c{k}": rng.integers(0, levels, records) for k, levels in enumerate((9, 2, 30, 7, 5))})
        for records in (2000, 1500, 3)
    ]
    frames[1].iloc[:300] = frames[0].iloc[:300]
    columns = [code_column(name, [frame[name] for frame in frames], TABLES) for name in frames[0]]
    request = CountRequest(columns, without_each=True)
    in_parts = InParts(batches_in_memory(columns, records=700), Limits(table=5, spill_part=500))
    [counts] = count_tables(in_parts, [request])
    assert len(spill_files) == len(partial_records.deal_columns(columns)) == (2 if most_lower > 40 else 4)
    assert_same_counts(counts, count_in_memory(request))
    [by_requests] = count_tables(replace(in_parts, in_orders=False), [request])
    assert_same_counts(counts, by_requests)


def test_requests_share_their_parts_where_their_keys_allow_it(
    requests: list[CountRequest], raw: dict[str, CodedColumn], grouped: dict[str, CodedColumn]
) -> None:
    """Records with equal keys are in one part for each request: the fewest keys that all have decide."""
    copies, measures, sex, income = requests
    groups = record_parts.group_requests({0: copies, 1: measures, 2: sex, 3: income})
    assert [list(group) for group in groups] == [[2, 1, 0], [3]]
    assert [list(group) for group in record_parts.group_requests({0: copies, 1: measures})] == [[1, 0]]
    assert record_parts.determines(raw["age"], grouped["age"])
    assert not record_parts.determines(grouped["age"], raw["age"])
    assert not record_parts.determines(raw["age"], raw["sex"])
    again = code_column(
        "age", [survey(3000, 1)["age"], survey(2500, 2)["age"], survey(300, 3)["age"]], TABLES
    )
    assert not record_parts.determines(again, raw["age"])  # it would have to be compared record by record


def test_no_request_is_no_work() -> None:
    frame = survey(10, 1)
    column = code_column("age", [frame["age"], frame["age"]], TABLES[:2])
    assert count_tables(InParts(batches_in_memory([column]), Limits()), []) == []


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("index", "levels"),
    [("int8", 127), ("int8", 128), ("uint8", 128), ("uint8", 255), ("uint8", 256), ("int16", 257)],
)
def test_dictionaries_of_files_that_use_every_index(
    index: str, levels: int, missing: bool, suffix: str, tmp_path: Path
) -> None:
    """Their type has no room for one more index, or for none."""
    rng = np.random.default_rng(levels)
    paths = []
    for number in range(2):
        codes = np.append(np.arange(levels), rng.integers(0, levels, 300))
        mask = (np.arange(len(codes)) % 9 == 8) & (np.arange(len(codes)) >= levels) if missing else None
        column = pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(index), mask=mask), pa.array([f"level {i}" for i in range(levels)])
        )
        table = pa.table({"many": column, "few": codes % 3})
        paths.append(tmp_path / f"{number}.{suffix}")
        write = write_feather if suffix == "arrow" else pq.write_table
        write(table, str(paths[-1]))
    with small_batches(IN_PARTS["few parts"]):
        for key, target in (("many", "few"), ("few", "many")):
            result = dp.disclosure(paths[0], paths[1], [key], [target], engine="partitioned")
            assert_same(result, dp.disclosure(paths[0], paths[1], [key], [target], engine="memory"))


@pytest.fixture(scope="module")
def surveys() -> list[pd.DataFrame]:
    return [survey(4000, 1), survey(5000, 2)]


@pytest.fixture
def paths(surveys: list[pd.DataFrame], tmp_path: Path) -> list[Path]:
    return write_files(tmp_path, surveys)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".tsv.gz", "/"])
def test_files_of_every_format(suffix: str, surveys: list[pd.DataFrame], tmp_path: Path) -> None:
    """Against the same files read into memory; "/" is a folder of Parquet files."""
    assert suffix == "/" or suffix == find_suffix(suffix)
    paths = []
    for number, frame in enumerate(surveys):
        path = tmp_path / f"{number}{suffix.rstrip('/')}"
        if suffix == "/":
            path.mkdir()
            for part in range(3):
                pq.write_table(
                    pa.Table.from_pandas(frame.iloc[part::3], preserve_index=False), path / f"{part}.parquet"
                )
        elif suffix == ".arrow":
            frame.to_feather(path)
        elif suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")
        paths.append(path)
    ask = partial(dp.disclosure, paths[0], paths[1], ["age", "sex", "postcode"], TARGETS)
    with small_batches(Limits(table=0, spill_part=1000)):
        actual = ask(engine="partitioned")
    assert_same(actual, ask(engine="memory"))


def test_auto_says_what_it_chose(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    ask = partial(dp.disclosure, paths[0], paths[1], ["age", "sex"], TARGETS)
    roomy = ask()
    assert roomy.engine.startswith("memory (about 0.0 GB are needed in memory, ")
    monkeypatch.setattr(opening, "available_memory", lambda: 100_000)
    scarce = ask()
    assert scarce.engine.startswith("partitioned (about 0.0 GB are needed in memory, 0.0 GB are free)")
    assert_same(scarce, roomy)
    assert ask(engine="memory").engine == "memory"


def test_frames_beside_files(paths: list[Path], surveys: list[pd.DataFrame]) -> None:
    """Read into memory beside each other; in parts they are all the one or all the other."""
    result = dp.disclosure(paths[0], surveys[1], ["age"], TARGETS)
    assert_same(result, dp.disclosure(surveys[0], surveys[1], ["age"], TARGETS))
    with pytest.raises(dp.InputError, match="files or data frames"):
        dp.disclosure(paths[0], surveys[1], ["age"], TARGETS, engine="partitioned")


# What is spilled to disk.

CANARY = np.frombuffer(b"CANARY-4711-0815", dtype=np.uint8)
RECORD = np.dtype([("0", np.uint8)])


def test_spilled_records_come_back_and_are_sealed() -> None:
    records = np.tile(CANARY, 1000).view(RECORD)
    with open_spill_file(RECORD, len(records)) as spill_file:
        spill_file.add("a", records[:5])
        spill_file.add("b", records)
        spill_file.add("a", records[5:])
        np.testing.assert_array_equal(spill_file.read("a"), records)
        np.testing.assert_array_equal(spill_file.read("b"), records)
        assert len(spill_file.read("c")) == 0
        file = spill_file.file.fileno()
        content = os.pread(file, os.fstat(file).st_size, 0)
        assert len(content) > 2 * len(records)
        assert CANARY.tobytes() not in content
        assert os.fstat(file).st_nlink == 0  # the file has no name


def test_chunks_grow_with_the_records(
    raw: dict[str, CodedColumn], monkeypatch: pytest.MonkeyPatch, spill_files: list[SpillFile]
) -> None:
    """Not with the parts times the batches, both of which do; what waits for more comes back as well."""
    monkeypatch.setattr(record_parts, "_SMALLEST_CHUNK", 128)
    request = CountRequest([raw["age"], raw["postcode"]], [Target(raw["work"], CodedExclusions(), 2)])
    batches = batches_in_memory(gather_columns([request]), records=50)
    for spill_part in (3000, 300):
        [counted] = count_tables(InParts(batches, Limits(table=0, spill_part=spill_part)), [request])
        assert_same_counts(counted, count_in_memory(request))
        chunks = sum(len(of_part) // 2 for of_part in spill_files[-1].chunks.values())
        assert 10 < chunks <= sum(batches.records) * spill_files[-1].dtype.itemsize / 128


@pytest.mark.parametrize("place", [0, 7, -1])
def test_damage_of_spilled_records_is_found(place: int) -> None:
    with open_spill_file(RECORD, 100) as spill_file:
        spill_file.add(0, np.zeros(100, dtype=RECORD))
        file = spill_file.file.fileno()
        at = place % os.fstat(file).st_size
        os.pwrite(file, bytes([os.pread(file, 1, at)[0] ^ 1]), at)
        with pytest.raises(DisclosurePipelineError, match="damaged") as caught:
            spill_file.read(0)
        assert caught.value.__context__ is None


def test_a_disk_without_room_is_refused_before_work(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with small_batches(Limits(table=0)), pytest.raises(dp.InputError, match="set TMPDIR"):
        dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")


@pytest.mark.parametrize("written", [-1, 3])
def test_a_disk_that_fills_up(written: int, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk reports that it is full, or takes only some of the bytes."""

    def full(*_: Any) -> int:
        if written < 0:
            raise OSError(errno.ENOSPC, "full")
        return written

    monkeypatch.setattr(os, "pwrite", full)
    with small_batches(Limits(table=0)), pytest.raises(DisclosurePipelineError, match="is full") as caught:
        dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")
    assert caught.value.__context__ is None


def test_nothing_is_left_behind(paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a file nor a thread, also where the work is interrupted in its middle."""
    folder = tmp_path / "spilled"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    threads = set(threading.enumerate())
    parts = 0

    def interrupted(*_: Any, **__: Any) -> Any:
        nonlocal parts
        parts += 1
        assert not any(folder.iterdir())
        if parts > 2:
            raise KeyboardInterrupt
        return original(*_, **__)

    original = record_parts._find_in_part
    monkeypatch.setattr(record_parts, "_find_in_part", interrupted)
    with small_batches(Limits(table=0, spill_part=500, threads=2)), pytest.raises(KeyboardInterrupt):
        dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")
    assert parts > 2
    assert not any(folder.iterdir())
    assert set(threading.enumerate()) <= threads


def test_a_file_is_read_once(
    paths: list[Path], surveys: list[pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later changes make no difference: every figure is of what was read."""
    expected = dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="memory")

    def change_first(*arguments: Any) -> Any:
        surveys[0].assign(postcode=99_999).to_parquet(paths[0], index=False)
        paths[1].unlink()
        return engine.find_in_batches(*arguments)

    monkeypatch.setattr(opened_files, "find_in_batches", change_first)
    with small_batches(Limits(table=0, spill_part=500)):
        result = dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")
    assert_same(result, expected)
