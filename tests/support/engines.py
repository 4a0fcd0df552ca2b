"""Every engine, and one of the tests, with tables as it takes them and records cut up in many ways."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume

from disclosure_pipeline.counting import cells
from disclosure_pipeline.counting.engines import ENGINES
from disclosure_pipeline.counting.memory import engine as memory
from disclosure_pipeline.counting.memory import sorting
from disclosure_pipeline.counting.memory.engine import FramesInMemory, MemoryEngine
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.opening import OpenedTables, open_tables
from disclosure_pipeline.counting.relational.coding import lay_out_words
from disclosure_pipeline.counting.relational.transfer import borrow_table
from disclosure_pipeline.tables.grouping import grouping_of
from support.sampling import DATABASES
from support.small_batches import small_batches


@dataclass
class ToyEngine(MemoryEngine):
    """Has memory count, and takes the records in another order. Found by its name once it is in `ENGINES`."""

    name: str = "toy"

    @contextmanager
    def open(self, *given: Any, **options: Any) -> Iterator[FramesInMemory]:
        with super().open(*given, **options) as opened:
            yield replace(opened, frames=tuple(frame.iloc[::-1] for frame in opened.frames))


IN_MEMORY = {
    "as it comes": Limits(),
    "one block and one part": Limits(table=0),
    "many blocks, one part": Limits(table=0, coded_part=3),
    "a part for every key": Limits(table=0, coded_part=4, part=1, threads=2),
    "parts counted": Limits(table=24, coded_part=5, part=6),
    "few targets in a number": Limits(table=0, bits=12, part=4),
    "keys numbered first": Limits(table=0, bits=4),
    "counted, row by row": Limits(part=1),
    "one thread": Limits(threads=1),
    "five threads": Limits(threads=5, coded_part=2),
    "32 bits, parts": Limits(table=0, coded_part=700, part=500),
    "some counted, some sorted": Limits(table=1000, part=300),
    "loops in tables": Limits(table=1000, compiled=0, part=300, threads=3),
    "loops": Limits(table=0, compiled=0),
    "loops, many parts": Limits(table=0, compiled=0, coded_part=7, part=5, threads=3),
    "loops, few targets in a number": Limits(table=0, compiled=0, bits=12, part=40),
}
IN_PARTS = {
    "counted as they come": Limits(table=1 << 30),
    "some counted, some spilled": Limits(table=1 << 11, spill_part=900),
    "one part": Limits(table=0),
    "few parts": Limits(table=0, spill_part=700),
    "many parts": Limits(table=0, spill_part=20, threads=2),
}
# Engine -> the ways in which it can be made to cut up the records.
ENGINES_AND_WAYS: Mapping[str, Mapping[str, Limits]] = {
    "memory": IN_MEMORY,
    "toy": {"as it comes": Limits()},
    "partitioned": IN_PARTS,
    "files": IN_PARTS,
    **{database: {"as it is": Limits()} for database in DATABASES},
}
MOST_PARTS = 20  # of the records
WAYS = [(engine, way) for engine, ways in ENGINES_AND_WAYS.items() for way in ways]

Databases = Callable[[str], Any]


def in_few_parts(limits: Limits, fewest: int) -> Limits:
    """The limits, but no part of fewer records: thousands of parts take long and show nothing else."""
    names = ("coded_part", "part", "spill_part")
    return replace(limits, **{name: max(getattr(limits, name), fewest) for name in names})


def write_files(folder: Path, frames: Sequence[pd.DataFrame]) -> list[Path]:
    """The frames as Parquet files, which hold the same values; a frame that none can hold is no example."""
    paths = []
    for number, frame in enumerate(frames):
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, OverflowError):
            assume(False)
        paths.append(folder / f"{number}.parquet")
        pq.write_table(table, paths[-1])
    return paths


@contextmanager
def given_to(
    engine: str, way: str, frames: Sequence[pd.DataFrame], databases: Databases
) -> Iterator[tuple[list[Any], str]]:
    """The tables as an engine takes them, and the engine's name; nothing else is left afterwards."""
    limits = in_few_parts(ENGINES_AND_WAYS[engine][way], sum(map(len, frames)) // MOST_PARTS)
    with ExitStack() as stack:
        if engine in DATABASES:
            backend = databases(engine)
            before = list_what_is_there(backend)
            with ExitStack() as borrowed:
                tables = [borrowed.enter_context(borrow_table(backend, frame, "it")) for frame in frames]
                there = list_what_is_there(backend)
                yield tables, "auto"
                assert list_what_is_there(backend) == there
            assert list_what_is_there(backend) == before
            return
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setitem(ENGINES, "toy", "support.engines.ToyEngine")
        patch.setattr(memory, "Limits", lambda: limits)
        stack.enter_context(small_batches(limits, rows=700 if len(frames[0]) > 700 else 3))
        if engine == "files":
            folder = stack.enter_context(TemporaryDirectory())
            yield list(write_files(Path(folder), frames)), "partitioned"
        else:
            yield list(frames), engine


@contextmanager
def opened_by(
    engine: str, frames: Sequence[pd.DataFrame], databases: Databases, way: str | None = None
) -> Iterator[OpenedTables]:
    way = way or next(iter(ENGINES_AND_WAYS[engine]))
    with (
        given_to(engine, way, frames, databases) as (tables, name),
        open_tables(tables[0], tables[1:], name) as opened,
    ):
        yield opened


def list_what_is_there(backend: Any) -> set[str]:
    """Tables and views of a database, and what Spark keeps in its cache."""
    there = set(backend.list_tables())
    if backend.name == "pyspark":
        cached = backend.raw_sql("SELECT 1").sparkSession.sparkContext._jsc.getPersistentRDDs()
        there |= {f"cached {number}" for number in cached}
    return there


@contextmanager
def counted_plainly() -> Iterator[None]:
    """Memory sorts all records as one part of numbers of 64 bits on one thread, and none as one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "Limits", lambda: Limits(table=0, threads=1))
        patch.setattr(sorting, "unsigned_type", lambda _: np.uint64)
        patch.setattr(cells, "_MOST_CELLS", 0)
        yield


def in_the_order_of(engine: str, frames: Sequence[pd.DataFrame]) -> FramesInMemory:
    """The tables in memory, with their records in the order in which an engine takes them."""
    if engine == "toy":
        return FramesInMemory(tuple(frame.iloc[::-1] for frame in frames), "memory")
    opened = FramesInMemory(tuple(frames), "memory")
    if engine not in DATABASES:
        return opened
    names = list(opened.columns[0])
    columns = opened.code(names, grouping_of())
    words = lay_out_words([column.size for column in columns])
    significance = sorted(range(len(columns)), key=lambda k: (-words[k].word, words[k].shift))
    orders = [
        np.lexsort([columns[k].codes[table] for k in significance]) for table in range(len(opened.frames))
    ]
    sorted_frames = (frame.iloc[order] for frame, order in zip(opened.frames, orders, strict=True))
    return FramesInMemory(tuple(sorted_frames), "memory")
