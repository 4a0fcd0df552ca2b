"""A gate whose tables a database counts has the guards of every other gate, through real runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from support import gates
from support.gates import COPY, HONEST, Home
from support.services import require_engine

NAME = "last_year"
LOOSE = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "key_overlap": 1}
CANARY = "81234"


def last_year() -> pd.DataFrame:
    """Other people, one of whom has an amount of their own."""
    random = np.random.default_rng(5)
    others = pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], 280),
            "age": random.choice(gates.ground_truth()["age"], 280),
            "work": random.choice(["office", "field", "none"], 280),
            "income": random.integers(0, 1000, 280),
        }
    )
    others.loc[0, "income"] = int(CANARY)
    return others


def write_tables(path: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    import duckdb

    with duckdb.connect(str(path)) as database:
        for name, table in tables.items():
            database.register("frame", table)
            database.execute(f"CREATE OR REPLACE TABLE {name} AS FROM frame")


def list_tables(path: Path) -> list[str]:
    import duckdb

    with duckdb.connect(str(path)) as database:
        return sorted(row[2] for row in database.execute("SHOW ALL TABLES").fetchall())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A gate that DuckDB counts for, with a further confidential table there; GT is recorded."""
    require_engine("duckdb://")
    gates.with_keys(tmp_path, monkeypatch)
    path = tmp_path / "registers.duckdb"
    write_tables(path, {"people": gates.ground_truth(), NAME: last_year()})
    definition = gates.definition(
        policy=LOOSE,
        ground_truth={"duckdb": str(path), "table": "people"},
        confidential={NAME: {"duckdb": str(path), "table": NAME}},
        engine=f"duckdb:///{path}",
    )
    with dg.DagsterInstance.ephemeral() as instance:
        home = Home(tmp_path, gates.load(definition), instance)
        assert home.run_ground_truth().success
        yield home
        assert list_tables(path) == [NAME, "people"]


def outcomes(home: Home, candidate: str) -> dict[str, str]:
    """The outcome of every clause of a candidate, from its dossier."""
    clauses = gates.read_json(home.record(candidate, "dossier.json"))["clauses"]
    return {row["name"]: row["outcome"] for row in clauses}


def test_an_honest_candidate_is_released(home: Home) -> None:
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    ran = home.run_gate(HONEST)
    assert ran.success, gates.failures(ran)
    clauses = outcomes(home, HONEST)
    guards = ("unique_copies_beyond", "partial_copies_beyond", "nearer")
    for name in [*guards, *(f"{guard}[{NAME}]" for guard in guards)]:
        assert clauses[name] == "kept"
    measured = gates.read_json(home.record(HONEST, "dossier.json"))["measured"]
    assert {"ground_truth", f"confidential[{NAME}]"} <= set(measured)


def one_column_changed() -> pd.DataFrame:
    truth = gates.ground_truth()
    return truth.assign(income=truth["income"] + 1)


def noise_in_the_numbers() -> pd.DataFrame:
    truth, random = gates.ground_truth(), np.random.default_rng(2)
    noisy = truth["age"] + random.choice([-1, 1], len(truth))
    return truth.assign(
        age=noisy.clip(truth["age"].min(), truth["age"].max()),
        income=truth["income"] + random.integers(1, 5, len(truth)),
    )


DISGUISES = {
    "one column changed everywhere": (one_column_changed, "nearer"),
    "noise in the numbers": (noise_in_the_numbers, "nearer"),
    "last year's table": (lambda: last_year().drop(index=0), f"unique_copies_beyond[{NAME}]"),
    "last year's table, one column changed": (
        lambda: last_year().drop(index=0).eval("income = income + 1"),
        f"nearer[{NAME}]",
    ),
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_disguise_is_refused(home: Home, disguise: str) -> None:
    make, clause = DISGUISES[disguise]
    home.deliver(COPY, {"synthetic.csv": make()})
    assert not home.run_gate(COPY).success
    assert home.nothing_published()
    assert outcomes(home, COPY)[clause] == "exceeded"
    assert CANARY not in gates.everything_logged(home.instance)
    assert not gates.files_with(home.path, [CANARY], ["registers.duckdb"])


def test_a_changed_table_is_measured_anew(home: Home) -> None:
    """A release compares what was measured with the tables as they are now."""
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert home.run_gate(HONEST).success
    write_tables(home.path / "registers.duckdb", {NAME: gates.honest()})
    assert not home.materialize("release", HONEST).success
    assert home.run_ground_truth().success
    assert not home.run_gate(HONEST).success
    assert outcomes(home, HONEST)[f"unique_copies_beyond[{NAME}]"] == "exceeded"
