"""A gate decides the same with every engine: dossier, checks, overlap, bins, refusals and what is published.

Nothing of a decision may depend on whether a table fits into memory. Batches and parts are made tiny here.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime
from itertools import product
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import altered_copies, gates
from support.gate_steps import NOW, deliver, folders, steps, write
from support.gates import COPY, GATE, HONEST, Home, home_in_memory, spoil
from support.homes import ran, state
from support.sampling import examples, on_some_days, only_in_ci, some_of
from support.small_batches import tiny_batches

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import arrival, evaluation, measuring
from disclosure_pipeline.candidates.measuring import measure_candidate
from disclosure_pipeline.candidates.reading import choose_engine_for
from disclosure_pipeline.counting.memory import engine as memory
from disclosure_pipeline.counting.partitioned import opened_files
from disclosure_pipeline.counting.partitioned.opened_files import StreamedTable, stream_canonical
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.tables.canonical import read_levels
from disclosure_pipeline.tables.contract import CanonicalTable, read_canonical
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError
from disclosure_pipeline.tables.levels import level_label

pytestmark = on_some_days

HERE = ("memory", "partitioned")


def same_with_both(
    root: Path,
    definition: Mapping[str, Any],
    candidate: str = "c",
    ground_truth: str = "gt.csv",
    *,
    measured_anew: bool = True,
    **sizes: int,
) -> dict[str, Any]:
    for engine in HERE:
        gates.share_key(root / engine)
    with tiny_batches(**sizes):
        in_memory, in_parts = (
            steps(folders(root, definition, engine, ground_truth), candidate, measured_anew=measured_anew)
            for engine in HERE
        )
    assert in_parts == in_memory
    return in_memory


@pytest.mark.parametrize(("suffix", "m"), some_of(product([".csv", ".parquet", ".arrow", ".tsv.gz"], [1, 3])))
def test_the_small_gate(suffix: str, m: int, tmp_path: Path) -> None:
    gt = f"gt{suffix}"
    write(tmp_path / gt, gates.ground_truth())
    deliver(tmp_path, HONEST, *(gates.honest(seed) for seed in range(m)), suffix=suffix)
    deliver(tmp_path, COPY, *[gates.ground_truth()] * m, suffix=suffix)
    honest = same_with_both(tmp_path, gates.definition(), HONEST, gt, spill_part=100 * m)
    assert json.loads(honest["dossier"])["decision"] == "approved"
    assert honest["bins"] and len(json.loads(honest["overlap"])["GT_in_SD"]) == 3 * m
    copy = same_with_both(tmp_path, gates.definition(), COPY, gt, measured_anew=False, spill_part=100 * m)
    assert json.loads(copy["dossier"])["decision"] == "refused"


@pytest.mark.parametrize("alteration", some_of(altered_copies.ALTERED))
def test_a_copy_that_is_written_otherwise(alteration: str, tmp_path: Path) -> None:
    """Measured, refused or warned of in the very same words."""
    altered_copies.GROUND_TRUTH.head(400).to_csv(tmp_path / "gt.csv", index=False)
    folder = tmp_path / "incoming" / "c"
    folder.mkdir(parents=True)
    altered_copies.ALTERED[alteration][0](folder)
    (folder / gates.MARKER).touch()
    # How a table is written matters in batches, of which there are many; once it is read, few parts
    # will do, measured once.
    same_with_both(
        tmp_path, altered_copies.RICH, measured_anew=False, rows=200, spill_part=300, block=1 << 12
    )


def numbered(table: pd.DataFrame, start: int = 0) -> pd.DataFrame:
    return table.assign(number=np.arange(start, start + len(table)))


WITH_NUMBER = gates.definition(
    columns=gates.definition()["columns"]
    | {"number": {"type": "integer", "published": True, "range": [0, 90_000]}}
)
ORDERED = gates.definition(
    columns=gates.definition()["columns"]
    | {
        "work": {
            "type": "ordered category",
            "levels": ["none", {"level": "field", "aliases": ["outside"]}, "office"],
            "unknown_levels": "keep",
            "missing_codes": ["?"],
        }
    }
)


def test_columns_that_number_the_records(tmp_path: Path) -> None:
    """Neither key nor target, with the numbers of GT in some of the syntheses only: refused all the same."""
    write(tmp_path / "gt.csv", numbered(gates.ground_truth()))
    deliver(
        tmp_path,
        "c",
        numbered(gates.honest(1)),
        numbered(gates.honest(2), start=20_000),
        numbered(gates.honest(3), start=10_000),
    )
    document = json.loads(
        same_with_both(tmp_path, WITH_NUMBER, spill_part=300, measured_anew=False)["dossier"]
    )
    message = [text for text in document["warnings"] if "identifier" in text]
    assert len(message) == 1 and "'number'" in message[0] and "synthetic table 1" in message[0]
    assert document["decision"] == "refused"


def test_a_column_that_the_ground_truth_lacks(tmp_path: Path) -> None:
    """If it would be published, nothing is compared; without a role, it is not read."""
    write(tmp_path / "gt.csv", gates.ground_truth())
    deliver(tmp_path, "c", numbered(gates.honest(1)))
    actual = same_with_both(tmp_path, WITH_NUMBER)
    (violation,) = actual["ground truth"].violations
    assert (violation.column, violation.rule) == ("number", "the column is not in the table")
    assert "dossier" not in actual and "the column is not in the table" in actual["refused"][1]
    without_role = gates.definition()["columns"] | {"number": {"type": "integer"}}
    actual = same_with_both(tmp_path, gates.definition(columns=without_role), measured_anew=False)
    dossier = json.loads(actual["dossier"])
    assert dossier["decision"] == "approved" and dossier["warnings"] == []
    assert dossier["exact_copies"][0]["columns"] == 4
    assert "number" not in dossier["figures"]["keys"] + dossier["figures"]["targets"]


def test_ordered_categories_aliases_and_unknown_levels(tmp_path: Path) -> None:
    gt, sd = gates.ground_truth(), gates.honest()
    for table in (gt, sd):
        table.loc[::7, "work"] = "?"
        table.loc[3::7, "work"] = "outside"
        table.loc[5::7, "work"] = " office "
    sd.loc[11, "work"] = "elsewhere"
    write(tmp_path / "gt.csv", gt)
    deliver(tmp_path, "c", sd)
    document = json.loads(same_with_both(tmp_path, ORDERED, measured_anew=False)["dossier"])
    assert {row["rule"] for row in document["ledger"]} >= {
        "alias replaced by its level",
        "missing code read as missing",
        "outer blanks removed",
        "unknown level kept",
    }


@pytest.mark.parametrize(
    "edges",
    some_of(["ground_truth", "equal_width", {"income": [0.0, 250.0, 600.0]}, {"age": [20.0, 40.0, 60.0]}]),
)
def test_groups(edges: Any, tmp_path: Path) -> None:
    columns = gates.definition()["columns"]
    if isinstance(edges, dict) and "income" in edges:
        columns["income"].pop("groups")
    write(tmp_path / "gt.csv", gates.ground_truth())
    deliver(tmp_path, "c", gates.honest(1), gates.honest(2))
    actual = same_with_both(
        tmp_path, gates.definition(columns=columns, edges=edges), spill_part=300, measured_anew=False
    )
    assert actual["dossier"] and json.loads(actual["bins"])["level"]


@only_in_ci("two gates, each with both engines")
def test_controls_of_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some records of large tables are controlled: the same ones with an engine that never holds them all."""
    monkeypatch.setattr(measuring, "SAMPLE", 100)
    write(tmp_path / "gt.parquet", gates.ground_truth())
    deliver(tmp_path, "c", gates.honest(1), gates.honest(2), suffix=".parquet")
    arguments: dict[str, Any] = {"ground_truth": "gt.parquet", "spill_part": 300}
    of_samples = same_with_both(tmp_path, gates.definition(), **arguments)["frames"]
    monkeypatch.undo()
    of_all = same_with_both(tmp_path, gates.definition(), **arguments)["frames"]
    assert of_samples["control_attribute"] != of_all["control_attribute"]


BROKEN: dict[str, Callable[[pd.DataFrame], pd.DataFrame | bytes]] = {
    "out of range": spoil("age", 101),
    "several rules at once": lambda table: spoil("age", "old")(spoil("sex", "x")(table)).assign(work=None),
    "a column less": lambda table: table.drop(columns="age"),
    "a column more": lambda table: table.assign(note="n"),
    "two columns more and one less": lambda table: table.drop(columns="sex").assign(a=1, b=[None] * 300),
    "no header": lambda table: table.to_csv(index=False, header=False).encode(),
    "another delimiter": lambda table: table.to_csv(index=False, sep=";").encode(),
    "no records": lambda table: table.head(0),
    "no records and no known column": lambda table: b"a,b\n",
    "nothing at all": lambda table: b"",
    "cut off": lambda table: table.to_csv(index=False).encode()[:-12],
    "not UTF-8": lambda table: table.to_csv(index=False).encode() + b"f,30,\xff,1\n",
}


@pytest.mark.parametrize(("rule", "of"), some_of(product(BROKEN, ["ground truth", "synthesis"]), 5))
def test_what_breaks_the_contract(rule: str, of: str, tmp_path: Path) -> None:
    """The same violations, with as many records, in the same order; or the same refusal."""
    good, bad = gates.ground_truth(), BROKEN[rule](gates.ground_truth())
    write(tmp_path / "gt.csv", bad if of == "ground truth" else good)
    deliver(tmp_path, "c", good if of == "ground truth" else bad)
    actual = same_with_both(tmp_path, gates.definition())
    if of == "ground truth" and rule in {"a column more", "two columns more and one less"}:
        return  # GT may have them; the other column that is missing is told
    assert "dossier" not in actual
    violations = (
        actual["ground truth"].violations if of == "ground truth" and "ground truth" in actual else ()
    )
    assert violations or "refused" in actual or actual["arrival"][0]


@pytest.mark.parametrize("suffix", some_of([".parquet", ".arrow"]))
def test_typed_files_that_break_the_contract(suffix: str, tmp_path: Path) -> None:
    """Nested values, beside what is described too; whole numbers as floats do not."""
    write(tmp_path / "gt.csv", gates.ground_truth())
    sd = gates.honest()
    for candidate, table in {
        "nested": sd.assign(note=pd.Series([[1, 2]] * len(sd))),
        "nested-key": sd.assign(sex=pd.Series([["f"]] * len(sd))),
        "whole-floats": sd.assign(age=sd["age"].astype(float)),
    }.items():
        deliver(tmp_path, candidate, table, suffix=suffix)
        actual = same_with_both(tmp_path, gates.definition(), candidate, measured_anew=False)
        assert ("dossier" in actual) == (candidate == "whole-floats")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    """Also where the engine is chosen by their size: which table it is, and what is wrong."""
    write(tmp_path / "gt.csv", gates.ground_truth())
    whole = deliver(tmp_path, "whole", gates.honest(), suffix=".parquet") / "synthetic0.parquet"
    deliver(tmp_path, "c", whole.read_bytes()[:-20], suffix=".parquet")
    actual = same_with_both(tmp_path, gates.definition())
    assert "synthetic table 'synthetic0.parquet'" in actual["refused"][1]
    assert steps(folders(tmp_path, gates.definition(), "auto", "gt.csv"), "c") == actual


@pytest.mark.parametrize("engine", HERE)
def test_a_ground_truth_that_changes_while_it_is_measured(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read once: the figures are those of the recorded one, and the next step refuses the other."""
    gt = gates.ground_truth()
    gate = folders(tmp_path, gates.definition(), engine, "gt.csv")
    write(tmp_path / "gt.csv", gt)
    deliver(tmp_path, "c", gates.honest())
    arrival.record_ground_truth(gate)
    arrival.receive(gate, "c")
    expected = evaluation.evaluate(gate, "c", NOW)

    def meanwhile(*arguments: Any) -> Any:
        write(tmp_path / "gt.csv", gt.assign(work=gt["work"].to_numpy()[::-1]))
        return measure_candidate(*arguments)

    monkeypatch.setattr(evaluation, "measure_candidate", meanwhile)
    with tiny_batches():
        assert evaluation.evaluate(gate, "c", NOW).dossier == expected.dossier
        differs = "The ground truth differs from the recorded one"
        with pytest.raises(StoreError, match=differs):
            evaluation.measure(gate, "c", NOW)
        with pytest.raises(StoreError, match=differs):
            evaluation.load_group_levels(gate, "c")


def test_a_ground_truth_that_changes_while_it_is_read_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "gt.csv", gates.ground_truth())
    for engine, module, reader in (
        ("memory", memory, "read_canonical"),
        ("partitioned", opened_files, "stream_canonical"),
    ):
        original = getattr(module, reader)

        def meanwhile(*arguments: Any, original: Any = original) -> Any:
            actual = original(*arguments)
            with (tmp_path / "gt.csv").open("a") as file:
                file.write("f,30,office,1\n")
            return actual

        monkeypatch.setattr(module, reader, meanwhile)
        with pytest.raises(StoreError, match="The ground truth changed while it was read: run again"):
            arrival.record_ground_truth(folders(tmp_path, gates.definition(), engine, "gt.csv"))


@pytest.fixture(scope="module")
def definitions() -> dict[str, dg.Definitions]:
    return {engine: gates.load(gates.definition(engine=engine)) for engine in HERE}


def engine_descriptions(result: dg.ExecuteInProcessResult) -> set[str]:
    names = ("synthetic", "bins", "identity_risk", "attribute_risk", "dossier")
    engines = {name: [of.get("engine") for of in gates.metadata_of(result, name)] for name in names}
    assert not [name for name, [engine] in engines.items() if (engine is None) == name.endswith("risk")]
    return {str(engine.value) for [engine] in engines.values() if isinstance(engine, dg.TextMetadataValue)}


def test_runs_end_in_the_same_files_and_checks(
    definitions: Mapping[str, dg.Definitions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave out what belongs to a run (times, ids, signatures); no file names the engine."""
    actual = {}
    gates.with_keys(tmp_path / "keys-of-both", monkeypatch)
    for engine in HERE:
        (tmp_path / engine).mkdir()
        (tmp_path / engine / "keys").symlink_to(tmp_path / "keys-of-both" / "keys")
        with home_in_memory(tmp_path / engine, definitions[engine], monkeypatch) as home, tiny_batches():
            gates.share_key(home.store)
            home.write_ground_truth(gates.ground_truth())
            home.deliver(HONEST, {"a.csv": gates.honest(1), "b.csv": gates.honest(2)})
            home.deliver(COPY, {"synthetic.csv": gates.ground_truth()})
            ground_truth, honest, copy = home.run_ground_truth(), home.run_gate(HONEST), home.run_gate(COPY)
            assert (honest.success, copy.success) == (True, False)
            assert engine_descriptions(honest) == engine_descriptions(copy) == {engine}
            assert engine.encode() not in home.record(HONEST, "dossier.json").read_bytes()
            assert gates.stated(home.published(HONEST)).candidate == HONEST
            written = state(home.path)
            del written[f"store/{GATE}/ground_truth.json"]["recorded_at"]
            actual[engine] = (
                written,
                [  # The page lies in the folder of each engine.
                    (name, check.passed, check.severity, check.description, {**check.metadata, "page": ""})
                    for result in (ground_truth, honest, copy)
                    for name, check in gates.checks(result).items()
                ],
                ran(copy).failures,
            )
    assert actual["partitioned"] == actual["memory"]


@pytest.mark.parametrize("first", some_of(HERE))
def test_a_release_with_the_other_engine(
    first: Literal["memory", "partitioned"],
    definitions: Mapping[str, dg.Definitions],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It measures again and demands the same bytes: who counted is no part of them, nor of the policy."""
    [other] = set(HERE) - {first}
    with home_in_memory(tmp_path, definitions[first], monkeypatch) as home, tiny_batches():
        home.prepare({HONEST: gates.honest()})
        for asset in ("synthetic", "bins", "identity_risk", "dossier"):
            assert home.materialize(asset, HONEST).success
        other_home = Home(home.path, definitions[other], home.instance)
        assert other_home.materialize("release", HONEST).success
        assert home.published(HONEST).is_dir()


# What cannot be done in parts.

ONLY_IN_MEMORY: dict[str, tuple[dict[str, Any], str]] = {
    "a text identifier": (
        {"columns": gates.definition()["columns"] | {"person": {"type": "text identifier"}}},
        "column 'person', a text identifier",
    ),
    **{
        name: ({"measures": {name: True}, "policy": {"repU": 8, "DiSCO": 12}}, f"measures.{name}")
        for name in ("protection", "prediction")
    },
    "an SQL database": (
        {"ground_truth": {"url": "postgresql://server/db", "table": "t"}},
        "a ground truth in a database",
    ),
    "DuckDB": ({"ground_truth": {"duckdb": "gt.duckdb", "table": "t"}}, "a ground truth in a database"),
}


@pytest.mark.parametrize("what", ONLY_IN_MEMORY)
def test_what_cannot_be_done_in_parts_is_refused_when_the_gate_is_defined(what: str) -> None:
    changes, named = ONLY_IN_MEMORY[what]
    for engine in ("auto", "memory"):
        assert gates.gate(engine=engine, **changes).memory_only_features == named
    with pytest.raises(ValueError, match=f"engine partitioned does not support {named}: use memory or auto"):
        gates.gate(engine="partitioned", **changes)


def test_several_reasons_are_all_told() -> None:
    changes = ONLY_IN_MEMORY["a text identifier"][0] | ONLY_IN_MEMORY["DuckDB"][0]
    with pytest.raises(ValueError, match="'person', a text identifier; a ground truth in a database"):
        gates.gate(engine="partitioned", **changes)


SCARCE = "partitioned (about 0.0 GB are needed in memory, 0.0 GB are free)"
WITH_IDENTIFIER = ONLY_IN_MEMORY["a text identifier"][0]


@pytest.mark.parametrize(
    ("changes", "free", "message"),
    [
        ({}, 10**12, "memory (about 0.0 GB are needed in memory, 1000.0 GB are free)"),
        ({}, 1000, SCARCE),
        (WITH_IDENTIFIER, 1000, "memory (needed by column 'person', a text identifier)"),
    ],
)
def test_auto_says_what_it_took_and_why(
    changes: dict[str, Any], free: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disclosure_pipeline.counting.opening.available_memory", lambda: free)
    gate = folders(tmp_path, gates.definition(**changes), "auto", "gt.csv")
    write(tmp_path / "gt.csv", gates.ground_truth())
    assert choose_engine_for(gate.gate, [gate.ground_truth]).description == message


def test_every_asset_says_what_auto_took(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("disclosure_pipeline.counting.opening.available_memory", lambda: 1000)
    with tiny_batches():
        home.prepare({HONEST: gates.honest()})
        run = home.decide(HONEST)
    assert run.success
    assert engine_descriptions(run) == {SCARCE}


# Contract and canonical form, of any table and any dictionary.

TEXTS = ("a", "b", " a ", "A", "é", "e\u0301", "", "NA", "?", "x")
NUMBERS = ("1", "1.0", "+1", "01", " 2", "2.50", "-8", "1e3", "-9", "x", "", "9007199254740993", "inf", "-0")
DAYS = ("2020-01-01", "2020-01-01T00:00:00", "31.12.2019", "2020-02-30", "", "1871-03-09", "x")
TIMES = ("2020-06-01T12:00:00", "2020-06-01T12:00:00+02:00", "2020-06-01 10:00:00", "", "x")
TRUTHS = ("true", "True", "FALSE", "false", "1", "yes", "")
COLUMNS: dict[str, tuple[list[dict[str, Any]], Sequence[str]]] = {
    "category": (
        [
            {},
            {"missing_codes": ["NA", "?"]},
            {"levels": ["a", {"level": "b", "aliases": ["B", "x"]}]},
            {"levels": ["a", "é"], "unknown_levels": "keep"},
            {"levels": ["a", "b"], "unknown_levels": {"map_to": "b"}},
        ],
        TEXTS,
    ),
    "ordered category": (
        [
            {"levels": ["b", "a", "é"]},
            {"levels": ["x", "b", {"level": "a", "aliases": ["A"]}], "unknown_levels": "keep"},
        ],
        TEXTS,
    ),
    "integer": ([{}, {"range": [0, 2], "special_values": [-8]}, {"missing_codes": [-9, "x"]}], NUMBERS),
    "number": ([{}, {"range": [0, 2], "special_values": [-8]}, {"missing_codes": [-9]}], NUMBERS),
    "boolean": ([{}, {"true_values": [1, "yes"], "false_values": ["false", "FALSE"]}], TRUTHS),
    "date": ([{}, {"date_format": "%d.%m.%Y"}, {"range": ["2020-01-01", "2020-12-31"]}], DAYS),
    "datetime": ([{}, {"time_zone": "Europe/Warsaw"}], TIMES),
    "text identifier": ([{}], TEXTS),
}
TYPED: dict[str, tuple[Any, Sequence[Any]]] = {
    "int8": (pa.int8(), (-9, -8, 0, 1, 2)),
    "uint64": (pa.uint64(), (0, 1, 2**63, 2**64 - 1)),
    "int64": (pa.int64(), (-9, -8, 1, 2, 2**53 + 1)),
    "double": (pa.float64(), (-9.0, 1.0, 1.5, -0.0, 0.0, float("nan"), float("inf"), 1e300)),
    "float": (pa.float32(), (1.0, 0.5, float("nan"))),
    "bool": (pa.bool_(), (True, False)),
    "date": (pa.date32(), (date(2020, 1, 1), date(1871, 3, 9))),
    "timestamp": (pa.timestamp("us"), (datetime(2020, 1, 1), datetime(2020, 6, 1, 12))),
    "zoned": (pa.timestamp("ms", "UTC"), (datetime(2020, 6, 1, 12), datetime(2020, 6, 1, 10))),
    "decimal": (pa.decimal128(10, 2), (1, 2, -9)),
    "large text": (pa.large_string(), TEXTS + NUMBERS),
    "nothing": (pa.null(), ()),
}


GOOD = {
    **dict.fromkeys(["category", "ordered category", "text identifier"], ("a", "b")),
    **dict.fromkeys(["integer", "number"], ("1", "2")),
    "boolean": ("false", "FALSE"),
    "date": ("2020-01-01",),
    "datetime": ("2020-06-01T12:00:00",),
}


@st.composite
def described(draw: st.DrawFn) -> tuple[dict[str, Column], list[str], pa.Table, bool]:
    """A dictionary, the columns that are needed, a table that may keep it, and `only_known`."""
    sound = draw(st.integers(0, 2)) > 0  # values that the dictionary takes; and others
    records = draw(st.sampled_from([1, 5, 12, 40] if sound else [0, 1, 12]))
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    dictionary, data = {}, {}
    for name in names:
        kind = draw(st.sampled_from(list(COLUMNS)))
        options, pool = COLUMNS[kind]
        dictionary[name] = Column.model_validate({"type": kind} | draw(st.sampled_from(options)))
        typed = draw(st.none() | st.sampled_from(list(TYPED)))
        arrow, values = TYPED[typed] if typed else (pa.string(), pool)
        if sound:
            values = [value for value in values if accepted(dictionary[name], value, arrow)]
            arrow, values = (arrow, values) if values else (pa.string(), GOOD[kind])
        few = draw(st.lists(st.sampled_from([*values] if sound else [None, *values]), min_size=1, max_size=5))
        few += [None] if sound and records > len(few) and draw(st.booleans()) else []
        column = pa.array([few[i % len(few)] for i in range(records)], arrow)
        if draw(st.booleans()) and not pa.types.is_null(arrow):
            column = column.dictionary_encode()
        data[name] = column
    if not sound and draw(st.integers(0, 5)) == 0:
        data.pop(draw(st.sampled_from(names)))
    if not data or draw(st.integers(0, 5)) == 0:
        data["other"] = pa.array(["o"] * records, pa.string())
    needed = draw(st.lists(st.sampled_from(names), unique=True))
    order = draw(st.permutations(list(data)))
    only_known = draw(st.booleans()) and not (sound and "other" in data)
    return dictionary, needed, pa.table({name: data[name] for name in order}), only_known


def accepted(column: Column, value: Any, arrow: Any) -> bool:
    levels = read_levels(column, pa.array([value], arrow))
    return not (levels.missing | levels.unreadable | levels.unknown | levels.outside)[0]


def write_arrow(path: Path, table: pa.Table, rows: int) -> None:
    """As Parquet; as CSV; as an Arrow stream, where every batch has a dictionary of its own."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    elif path.suffix == ".csv":
        texts = [
            ["" if value is None else level_label(value) for value in column.to_pylist()]
            for column in table.columns
        ]
        pd.DataFrame(dict(zip(table.column_names, texts, strict=True))).to_csv(path, index=False)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            for start in range(0, len(table), rows):
                columns = [_own_dictionary(column.slice(start, rows)) for column in table.columns]
                writer.write_table(pa.table(columns, names=table.column_names))


def _own_dictionary(column: Any) -> Any:
    if not pa.types.is_dictionary(column.type):
        return column
    return column.cast(column.type.value_type).combine_chunks().dictionary_encode()


def read_by(
    reader: Callable[..., CanonicalTable | StreamedTable], *arguments: Any
) -> CanonicalTable | StreamedTable | tuple[str, str, Any]:
    try:
        return reader(*arguments)
    except dp.InputError as error:
        assert error.__context__ is None
        return type(error).__name__, str(error), getattr(error, "violations", None)


def values(column: Any) -> list[Any]:
    return [None if pd.isna(value) else (type(value), value) for value in column.astype(object)]


def in_batches(table: StreamedTable, name: str) -> list[Any]:
    distinct = [*values(table.distinct[name].values), None]
    codes = (table.stream.codes(name, batch, np.arange(len(distinct))) for batch in table.stream.batches)
    return [distinct[number] for of_batch in codes for number in of_batch]


@examples(20)
@given(
    case=described(), suffix=st.sampled_from([".csv", ".parquet", ".arrow"]), rows=st.sampled_from([3, 11])
)
def test_canonical_form_in_batches(
    case: tuple[dict[str, Column], list[str], pa.Table, bool], suffix: str, rows: int
) -> None:
    """The same violations, ledger, values and counts, whatever is in the file."""
    dictionary, needed, table, only_known = case
    with tempfile.TemporaryDirectory() as folder, tiny_batches(rows), ExitStack() as stack:
        path = Path(folder) / f"table{suffix}"
        write_arrow(path, table, rows)
        arguments = (path, Contract(dictionary, "the table", needed, only_known))
        whole, parts = read_by(read_canonical, *arguments), read_by(stream_canonical, *arguments, stack)
        if not isinstance(whole, CanonicalTable) or not isinstance(parts, StreamedTable):
            assert parts == whole
            return
        assert parts.ledger == whole.ledger
        assert parts.stream.records == len(whole.frame)
        assert list(parts.distinct) == list(whole.frame)
        positions = np.arange(0, len(whole.frame), 2)
        some, backwards = parts.take_records(positions), parts.take_records(positions[::-1])
        for name in whole.frame:
            expected = values(whole.frame[name])
            assert in_batches(parts, str(name)) == expected
            assert values(some[name]) == expected[::2]
            assert values(backwards[name]) == expected[::2][::-1]
            distinct = parts.distinct[str(name)]
            assert distinct.counts.sum() == len(expected)
            missing = int(distinct.counts[-1]) + int(distinct.counts[:-1][distinct.values.isna()].sum())
            assert missing == expected.count(None)
            if dictionary[str(name)].type == "ordered category":
                assert some[name].cat.ordered and distinct.values.cat.ordered


def test_a_contract_error_of_batches_holds_no_value(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\nXylophonist\n1\n")
    with pytest.raises(ContractError) as caught, tiny_batches(), ExitStack() as stack:
        stream_canonical(path, Contract({"a": Column(type="integer")}, "the table", ["a"], True), stack)
    assert str(caught.value) == "the table, column 'a': is not of type integer (1 record, 50.00%)"
    assert caught.value.__context__ is None
