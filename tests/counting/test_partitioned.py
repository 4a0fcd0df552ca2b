"""The partitioned engine counts what the engine in memory counts, to the last integer, in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow.feather import write_feather
from pyarrow.parquet import write_table
from reference import disclosure as reference
from support.figures import assert_same
from support.same_counts import assert_same_counts
from support.sampling import some_of
from support.small_batches import small_batches
from support.surveys import survey

import disclosure_pipeline as dp
from disclosure_pipeline.counting.counts import CountRequest, Target, columns_of_requests
from disclosure_pipeline.counting.memory.engine import count_in_memory
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.partitioned.engine import count_in_parts, determines, shared_parts
from disclosure_pipeline.counting.partitioned.streams import batches_in_memory
from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn

LIMITS = {
    "cells": Limits(table=1 << 30),
    "cells and parts": Limits(table=1 << 11, spill_part=900),
    "one part": Limits(table=0),
    "few parts": Limits(table=0, spill_part=900, rare=0),
    "many parts": Limits(table=0, spill_part=20, threads=2),
}

TABLES = ("the ground truth", "synthetic table 1", "synthetic table 2")


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
    """What a gate asks for (the measures, with groups and an exclusion; copies), and other keys beside it."""
    targets = [
        Target(grouped["work"], CodedExclusions(), 2),
        Target(grouped["income"], CodedExclusions((1,)), 1),
    ]
    return [
        CountRequest(list(raw.values())),
        CountRequest([grouped["age"], grouped["sex"], grouped["postcode"]], targets, together=True),
        CountRequest([grouped["sex"]]),
        CountRequest([grouped["income"]], [Target(raw["age"], CodedExclusions(), 3)]),
    ]


@pytest.mark.parametrize("limits", LIMITS)
def test_several_requests_in_one_pass(limits: str, requests: list[CountRequest]) -> None:
    """Each is counted as if it were the only one, and every batch is read and coded once."""
    columns = columns_of_requests(requests)
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
    counts = count_in_parts(requests, watched, limits=LIMITS[limits])
    assert read == [0, 1, 2]
    assert len(coded) == len(set(coded)) == (5 + 4 + 1) * len(columns)
    for count, request in zip(counts, requests, strict=True):
        assert_same_counts(count, count_in_memory(request.keys, request.targets, together=request.together))


def test_requests_share_their_parts_where_their_keys_allow_it(
    requests: list[CountRequest], raw: dict[str, CodedColumn], grouped: dict[str, CodedColumn]
) -> None:
    """Records with equal keys are in one part for each request: the fewest keys that all have decide."""
    copies, measures, sex, income = requests
    assert [list(map(id, group)) for group in shared_parts(requests)] == [
        list(map(id, [sex, measures, copies])),
        [id(income)],
    ]
    assert shared_parts([copies, measures]) == [[measures, copies]]
    assert determines(raw["age"], grouped["age"])
    assert not determines(grouped["age"], raw["age"])
    assert not determines(raw["age"], raw["sex"])
    again = code_column(
        "age", [survey(3000, 1)["age"], survey(2500, 2)["age"], survey(300, 3)["age"]], TABLES
    )
    assert not determines(again, raw["age"])  # it would have to be compared record by record


def test_no_request_is_no_work() -> None:
    frame = survey(10, 1)
    column = code_column("age", [frame["age"], frame["age"]], TABLES[:2])
    assert count_in_parts([], batches_in_memory([column])) == []


def table_of_levels(levels: int, seed: int, *, missing: bool) -> list[reference.Record]:
    """Records of a column that has every one of so many levels, and of two that mostly follow from it."""
    rng = np.random.default_rng(seed)
    values: list[int | None] = [*range(levels), *rng.integers(0, levels, 400).tolist()]
    if missing:
        values += [None] * 20
    rng.shuffle(values)
    follows = rng.random(len(values)) < 0.9
    return [
        {"many": value, "few": value % 3, "as many": value}
        if value is not None and follows[i]
        else {"many": value, "few": 1, "as many": i % levels}
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize("limits", ["cells", "one part", "few parts"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("key", "target"), [("many", "few"), ("few", "many"), ("as many", "many")])
@pytest.mark.parametrize("levels", some_of([254, 255, 256, 257], part=2))
def test_columns_of_about_as_many_codes_as_a_byte_has(
    levels: int, key: str, target: str, missing: bool, limits: str
) -> None:
    """Missing has a code of its own after the levels: these are columns of 255 to 258 codes."""
    gt, sd = (table_of_levels(levels, seed, missing=missing) for seed in (1, 2))
    frames = [pd.DataFrame(table).astype("Int64") for table in (gt, sd)]
    assert frames[0]["many"].nunique() == levels and frames[0]["many"].isna().any() == missing
    with small_batches(LIMITS[limits]):
        actual = dp.disclosure(frames[0], frames[1], [key], [target], engine="partitioned")
    assert_same(actual, dp.disclosure(frames[0], frames[1], [key], [target], engine="memory"))
    expected = reference.disclosure(gt, [sd], [key], [target])
    rows = expected.identity[1], expected.attribute[target, 1]
    for frame, row in zip((actual.identity, actual.attribute), rows, strict=True):
        figures = [float(frame[name].iloc[0]) for name in row]
        np.testing.assert_array_equal(figures, list(row.values()))
    if key != "few":
        assert actual.attribute["DiSCO"].iloc[0] > 1


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
        write = write_feather if suffix == "arrow" else write_table
        write(table, str(paths[-1]))
    with small_batches(LIMITS["few parts"]):
        for key, target in (("many", "few"), ("few", "many")):
            result = dp.disclosure(paths[0], paths[1], [key], [target], engine="partitioned")
            assert_same(result, dp.disclosure(paths[0], paths[1], [key], [target], engine="memory"))
