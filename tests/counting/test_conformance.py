"""Every engine returns the same: one body for all, and for an engine of a test that is found by its name.

The other engines are compared with memory that sorts all records at once, which test_against_reference.py
compares with the papers' formulas.
"""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, partial
from itertools import cycle, product
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.chosen_tables import CASES, SIZES, TYPES, Chosen
from support.engines import (
    ENGINES_AND_WAYS,
    WAYS,
    Databases,
    counted_plainly,
    given_to,
    opened_by,
    write_files,
)
from support.figures import assert_same, assert_same_frame
from support.same_counts import assert_same_counts
from support.sampling import DATABASES, examples, on_some_days, only_in_ci, some_of
from support.services import PASSWORD, postgres, require_engine
from support.strategies import Case, cases, measured
from support.surveys import survey

import disclosure_pipeline as dp
from disclosure_pipeline.cli.measure import measure
from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, Target
from disclosure_pipeline.counting.engines import list_engines
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import OpenedTables, find_engine, open_tables
from disclosure_pipeline.counting.relational import workers
from disclosure_pipeline.counting.relational.transfer import borrow_table, spark_session
from disclosure_pipeline.evaluation.arguments import code_exclusions
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.dictionary import Column, Contract
from disclosure_pipeline.tables.grouping import grouping_of

pytestmark = pytest.mark.usefixtures("no_guards")

ENGINES = list(ENGINES_AND_WAYS)
EXAMPLES = {"memory": 8, "toy": 1, "partitioned": 3, "files": 3, "duckdb": 3, "postgres": 2}
# Each is counted by itself, and all of them stacked: databases need seconds for what memory does at once.
MOST_SYNTHESES = {"memory": 4, "toy": 4}
EXAMPLES_IN_CI = {"memory": 50, "toy": 5, "partitioned": 15, "files": 15, "duckdb": 10, "postgres": 4}


# Random tables: every figure.


def outcome(ask: Callable[[], dp.Disclosure]) -> dp.Disclosure | str:
    """The figures, or what was refused."""
    try:
        return ask()
    except dp.InputError as error:
        return str(error)


def assert_same_outcome(actual: dp.Disclosure | str, expected: dp.Disclosure | str) -> None:
    if isinstance(actual, str) or isinstance(expected, str):
        assert actual == expected
    else:
        assert_same(actual, expected)
        assert sorted(actual.ledger, key=str) == sorted(expected.ledger, key=str)


@on_some_days
@pytest.mark.parametrize("engine", ENGINES)
def test_random_tables(engine: str, databases: Databases) -> None:
    """In files values are what their text means: those are compared with the same files in memory."""

    @examples(EXAMPLES.get(engine, 1), EXAMPLES_IN_CI.get(engine, 2))
    @given(
        cases(most_syntheses=MOST_SYNTHESES.get(engine, 2)), st.sampled_from(list(ENGINES_AND_WAYS[engine]))
    )
    def check(case: Case, way: str) -> None:
        frames = [case.ground_truth_frame, *case.synthetic_frames]
        assume(engine not in DATABASES or "" not in frames[0].columns)  # no name in a database
        with given_to(engine, way, frames, databases) as (tables, name):
            told = {
                "within": {
                    column.name: band
                    for column, band in zip(case.columns, cycle((0.1, 1, 0)))
                    if column.name in case.targets and "teger" in column.kind and not column.grouped
                },
                "certainty": (0.5, 0.9),
            }
            actual = outcome(lambda: measured(case, tables, name, **told))
            expected = outcome(lambda: measured(case, tables if engine == "files" else (), "memory", **told))
        assert_same_outcome(actual, expected)
        if not isinstance(actual, str):
            assert actual.engine.removeprefix("py") == (f"{engine}, by Ibis" if name == "auto" else name)

    check()


@pytest.mark.parametrize(
    ("engine", "unit"),
    some_of(
        [*((name, "person") for name in ENGINES), ("partitioned", None), ("duckdb", None)], 3, part_in_ci=2
    ),
)
def test_a_survey_beside_a_holdout(
    engine: str, unit: str | None, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, units, and records that nobody synthesized, of which some are drawn, as memory reads them."""
    monkeypatch.setattr("disclosure_pipeline.evaluation.holdout.MOST_PERSONS", 500)
    gt, sd, others = (survey(720, seed).drop(columns="sex") for seed in (1, 2, 3))
    if unit:
        gt, others = (table.assign(person=np.arange(720) // 2) for table in (gt, others))
    gt = gt.assign(weight=np.arange(720) / 4 + 3)
    given_tables = [gt, sd, sd.head(300), others]

    def ask(tables: Sequence[Any], name: str) -> dp.Disclosure:
        own = {"weights": "weight", "unit": unit, "groups": {"age": 5}, "holdout": tables[3]}
        own["exclude"] = dp.Exclusions(target_levels={"work": ["a"]})
        return dp.disclosure(tables[0], tables[1:3], ["age", "postcode"], "work", engine=name, **own)

    with given_to(engine, next(iter(ENGINES_AND_WAYS[engine])), given_tables, databases) as (tables, name):
        actual, expected = ask(tables, name), ask(given_tables, "memory")
    assert len(expected.population_targets) == len(expected.membership) == 2
    assert_same(actual, expected)
    for one, other in ((actual, expected), (actual.stacked, expected.stacked)):
        assert one is not None and other is not None
        for frame in ("membership", "holdout", "units"):
            assert_same_frame(one.frame(frame), other.frame(frame))


# Chosen tables: every integer.


@cache
def chosen_tables(case: str) -> tuple[Chosen, list[DisclosureCounts], list[DisclosureCounts]]:
    """The case, and what is counted of its tables one by one and stacked."""
    chosen = (CASES | SIZES)[case]()
    in_memory = FramesInMemory(tuple(chosen.frames), "memory")
    with counted_plainly():
        counts = chosen.count(in_memory)
        assert chosen.shows(counts[0])
        return chosen, counts, chosen.count(in_memory.stack_syntheses())


# Databases take seconds for what others do at once.
QUICK = [way for way in WAYS if way[0] not in DATABASES]
SLOW = [way for way in WAYS if way[0] in DATABASES]


@pytest.mark.parametrize(
    ("engine", "way", "case"),
    [
        *((*way, case) for way, case in some_of(product(SLOW, CASES), part=4, part_in_ci=2)),
        *((*way, case) for way, case in some_of(product(QUICK, [*CASES, *SIZES]), part=16)),
    ],
)
def test_chosen_tables(engine: str, way: str, case: str, databases: Databases) -> None:
    chosen, expected, expected_of_stack = chosen_tables(case)
    with opened_by(engine, chosen.frames, databases, way) as opened:
        assert_same_counts(tuple(chosen.count(opened)), tuple(expected))
        if case == "large_cells":
            assert_same_counts(tuple(chosen.count(opened.stack_syntheses())), tuple(expected_of_stack))
            in_memory = FramesInMemory((chosen.frames[0], chosen.frames[2]), "memory")
            assert_same_counts(tuple(chosen.count(opened.only([0, 2]))), tuple(chosen.count(in_memory)))


@only_in_ci("Spark takes seconds for each query")
@pytest.mark.parametrize("case", some_of(CASES))
def test_executors_without_this_package(
    case: str, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or with another version of it: Spark counts by queries, as every other database."""
    session = spark_session(databases("spark"))
    assert workers.have_this_package(session)
    monkeypatch.setattr(workers, "version", lambda _: "0")
    assert not workers.have_this_package(session)
    chosen, expected, _ = chosen_tables(case)
    with opened_by("spark", chosen.frames, databases) as opened:
        assert_same_counts(tuple(chosen.count(opened)), tuple(expected))


@pytest.mark.parametrize("engine", ENGINES)
def test_types(engine: str, databases: Databases) -> None:
    """Values of every type find their code again: each is counted by itself; files are as in memory."""
    table = pa.table(
        {name: of for name, of in TYPES.items() if engine not in DATABASES or name != "duration"}
    )
    frames = [some.to_pandas(types_mapper=pd.ArrowDtype) for some in (table, table.slice(1))]

    def count(opened: OpenedTables) -> tuple[DisclosureCounts, ...]:
        columns = opened.code(table.column_names, grouping_of(), ignore_progress)
        return tuple(count_tables(opened, [CountRequest([column]) for column in columns]))

    with given_to(engine, next(iter(ENGINES_AND_WAYS[engine])), frames, databases) as (tables, name):
        with open_tables(tables[0], tables[1:], name) as opened:
            actual = count(opened)
        gt, sd = tables if engine == "files" else frames
        with open_tables(gt, sd, "memory") as opened:
            assert_same_counts(actual, count(opened))


@pytest.mark.parametrize("engine", DATABASES)
def test_numbers_of_32_bits_in_a_database_are_those_of_64(engine: str, databases: Databases) -> None:
    """Six digits are the same number in both: each database stores them, and finds them again."""
    rng = np.random.default_rng(1)
    numbers = [*np.round(rng.normal(170, 9, 300), 1).tolist(), None, math.inf, 0.1, -12.5, 1e6]
    wide = pa.table({"height": pa.array(numbers), "ill": rng.choice([*"abc"], len(numbers)).tolist()})
    narrow = wide.set_column(0, "height", wide["height"].cast(pa.float32()))
    ask = partial(dp.disclosure, keys=["height"], targets=["ill"])
    with ExitStack() as stack:
        backend = databases(engine)
        gt, sd = (stack.enter_context(borrow_table(backend, table, "it")) for table in (wide, narrow))
        assert [table.schema()["height"].is_float32() for table in (gt, sd)] == [False, True]
        assert_same(ask(gt, sd), expected := ask(wide, wide))
        assert_same(ask(sd, gt), expected)
    assert expected.identity["repU"].iloc[0] > 10


MISMATCHES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "text for numbers": lambda sd: sd.assign(age=sd["age"].astype(str)),
    "outer blanks": lambda sd: sd.assign(work=sd["work"].astype(str) + " "),
    "upper case": lambda sd: sd.assign(work=sd["work"].astype(str).str.upper()),
    "a time zone": lambda sd: sd.assign(day=sd["day"].dt.tz_localize("UTC")),
    "floats": lambda sd: sd.assign(age=sd["age"].astype(float)),
    "smaller numbers": lambda sd: sd.assign(age=sd["age"].astype("int8")),
    "nothing but gaps": lambda sd: sd.assign(work=pd.Series([None] * len(sd), dtype="category")),
    "no records": lambda sd: sd.head(0),
    "a column less": lambda sd: sd.drop(columns="age"),
    "a number for every record": lambda sd: sd.assign(age=np.arange(len(sd))),
}


@pytest.mark.parametrize(
    ("engine", "mismatch"), some_of(product(["files", "duckdb", "postgres"], MISMATCHES), 4, part_in_ci=1)
)
def test_mismatches(engine: str, mismatch: str, databases: Databases) -> None:
    """Refused, measured or warned of in the very same words; but files are read by what their text means."""
    gt, sd = (
        survey(500, seed).assign(day=pd.Timestamp("2020-02-01") + pd.to_timedelta(np.arange(500) % 7, "D"))
        for seed in (1, 2)
    )
    frames = [gt, MISMATCHES[mismatch](sd)]
    ask = partial(dp.disclosure, keys=["age", "day"], targets=["work", "sex"])
    with given_to(engine, next(iter(ENGINES_AND_WAYS[engine])), frames, databases) as (tables, name):
        actual = outcome(lambda: ask(*tables, engine=name))
        same = tables if engine == "files" else frames
        assert_same_outcome(actual, outcome(lambda: ask(*same, engine="memory")))


# Tables in canonical form.

DICTIONARY = {
    "k": Column.model_validate(
        {
            "type": "category",
            "levels": [{"level": "m", "aliases": ["male", "1"]}, "f"],
            "missing_codes": ["n/a"],
        }
    ),
    "t": Column.model_validate({"type": "integer"}),
}


@pytest.mark.parametrize("name", ["memory", "partitioned", "duckdb://", "postgres"])
def test_tables_in_canonical_form(name: str, tmp_path: Path) -> None:
    """Several values stand for one level, or for missing; each is read alone, and both are counted."""
    require_engine(name)
    url = f"postgres://tester:{PASSWORD}@{postgres().place}" if name == "postgres" else name
    raw = [
        pd.DataFrame({"k": ["m", "male ", "1", "f", "n/a", None], "t": [1, 2, 2, 3, 3, 4], "u": 0}),
        pd.DataFrame({"k": ["male", "m", "f ", None], "t": [1, 2, 3, 4], "u": 0}),
    ]
    paths = write_files(tmp_path, raw)

    def read_and_count(name: str) -> tuple[Any, ...]:
        engine = find_engine(name)
        with ExitStack() as stack:
            tables = [engine.read(path, Contract(DICTIONARY, "it", ["k"], False), stack) for path in paths]
            gt, sd = (table.keep_columns(["k", "t"]) for table in tables)
            with engine.open_read([gt, sd]) as opened:
                columns = opened.code(["k", "t"], grouping_of(), ignore_progress)
                target = Target(columns[1], code_exclusions(dp.Exclusions(), columns[1], columns[:1]), 0)
                counts = count_tables(opened, [CountRequest(columns[:1], [target])])
                shown = sorted(opened.ledger, key=str), opened.columns
            assert gt.sha256 not in {sd.sha256, tables[0].keep_columns(["k"]).sha256}
        described = [
            (
                table.records,
                table.columns,
                sorted(table.count_levels("k")),
                sorted(table.values["k"].to_pylist()),
            )
            for table in (gt, sd)
        ]
        return tuple(counts), described, shown

    (actual, *others), (expected, *expected_others) = read_and_count(url), read_and_count("memory")
    assert_same_counts(actual, expected)
    assert others == expected_others


@pytest.mark.parametrize("is_stacked", [False, True], ids=["beside each", "beside a stack"])
@pytest.mark.parametrize("name", ["memory", "partitioned", "duckdb://"])
def test_a_column_of_one_table_alone(name: str, is_stacked: bool, tmp_path: Path) -> None:
    """It can be coded and counted among the tables that have it, and records beside it with SD's empty."""
    raw = [
        pd.DataFrame({"k": ["m", "1", "f", None], "t": [1, 2, 2, 3], "w": [2.5, 2.5, 7.0, 9.0]}),
        pd.DataFrame({"k": ["male", "f"], "t": [1, 2]}),
        pd.DataFrame({"k": ["f"], "t": [3]}),
    ]
    paths = write_files(tmp_path, raw)
    engine, dictionary = find_engine(name), {**DICTIONARY, "w": Column(type="number")}
    with ExitStack() as stack:
        tables = [engine.read(path, Contract(dictionary, "it", ["k"], False), stack) for path in paths]
        with engine.open_read(tables) as opened:
            [alone] = opened.only([0]).code(["w"], grouping_of(), ignore_progress)
            assert (alone.levels.tolist(), alone.counts[0].tolist()) == ([2.5, 7.0, 9.0], [2, 1, 1, 0])
            beside = opened.stack_syntheses() if is_stacked else opened
            beside.code(["k", "t"], grouping_of(), ignore_progress)
            wide = beside.with_columns(["w"])
            coded = wide.code(["k", "t", "w"], grouping_of(), ignore_progress)
            k, _, w = wide.code_records(coded, 4, 0)
            by_record = sorted(zip(w.codes[0].tolist(), k.codes[0].tolist(), strict=True))
            assert by_record == [(0, 1), (0, 1), (1, 0), (2, 2)]
            assert [len(codes) for codes in w.codes[1:]] == ([3] if is_stacked else [2, 1])
            assert all((codes == w.missing).all() for codes in w.codes[1:])


# How an engine is found.


def test_gates_and_the_command_line_know_every_engine() -> None:
    """Two more lines would be needed otherwise: an engine stands in one list."""
    names = ["auto", *list_engines()]
    pattern = Gate.model_json_schema()["properties"]["engine"]["pattern"]
    assert all(re.fullmatch(pattern, name) for name in [*names, "duckdb://"])
    assert not re.fullmatch(pattern, "toy")
    [option] = [option for option in measure.params if option.name == "engine"]
    assert isinstance(option.type, click.Choice) and list(option.type.choices) == names


def test_an_engine_is_described_as_it_was_asked_for() -> None:
    for name in [*list_engines(), "duckdb:///no/such/file"]:
        engine = find_engine(name)
        assert (engine.name, engine.description) == (name, name)
        assert find_engine(name, "why").description == "why"
        assert engine.holds_frames == (name == "memory") and engine.gives_records == ("://" not in name)
    with pytest.raises(KeyError):
        find_engine("toy")
