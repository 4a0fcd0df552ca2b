"""A gate whose tables a database counts has the guards of every other gate, through real runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from support import gates
from support.gates import COPY, HONEST, Home
from support.registers import REGISTERS, Registers
from support.sampling import CI
from support.services import PASSWORD

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


# Spark takes minutes for a run: in CI only, and never for what other databases tell as well.
EVERY_DAY = ("duckdb", "postgresql")


@pytest.fixture(params=REGISTERS if CI else EVERY_DAY)
def registers(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Registers]:
    """GT (people) and last year's table in each kind of database, which has nothing else afterwards."""
    gates.with_keys(tmp_path, monkeypatch)
    with REGISTERS[request.param](tmp_path) as registers:
        registers.write({"people": gates.ground_truth(), NAME: last_year()})
        yield registers
        assert registers.list_tables() == [NAME, "people"]


@pytest.fixture
def home(tmp_path: Path, registers: Registers) -> Iterator[Home]:
    """A gate whose tables a database counts, with a further confidential one; GT is recorded."""
    definition = gates.definition(
        policy=LOOSE,
        ground_truth=registers.source("people"),
        confidential={NAME: registers.source(NAME)},
        engine=registers.engine,
    )
    with dg.DagsterInstance.ephemeral() as instance:
        home = Home(tmp_path, gates.load(definition), instance)
        ran = home.run_ground_truth()
        assert ran.success, gates.failures(ran)
        yield home


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


@pytest.mark.parametrize("registers", EVERY_DAY, indirect=True)
def test_a_second_candidate_is_decided_on_by_itself(home: Home) -> None:
    """Another synthesis is published, too; one that was hardly changed is not even measured."""
    first = gates.honest()
    for candidate, tables in {
        HONEST: [first],
        "second": [gates.honest(2), gates.honest(3)],
        "hardly_changed": [first.assign(age=first["age"].where(first.index != 0, 70))],
    }.items():
        home.deliver(candidate, {f"synthetic_{i}.csv": table for i, table in enumerate(tables)})
    for candidate in (HONEST, "second"):
        ran = home.run_gate(candidate)
        assert ran.success, gates.failures(ran)
    assert {path.name for path in home.published("second").glob("*.parquet")} == {
        "synthetic_1.parquet",
        "synthetic_2.parquet",
    }
    assert not home.run_gate("hardly_changed").success
    assert not home.published("hardly_changed").exists()
    assert not home.record("hardly_changed", "dossier.json").exists()


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


@pytest.mark.parametrize(
    ("registers", "disguise"),
    [(name, disguise) for name in REGISTERS for disguise in DISGUISES if CI or name == "duckdb"],
    indirect=["registers"],
)
def test_a_disguise_is_refused(home: Home, registers: Registers, disguise: str) -> None:
    make, clause = DISGUISES[disguise]
    home.deliver(COPY, {"synthetic.csv": make()})
    assert not home.run_gate(COPY).success
    assert home.nothing_published()
    assert outcomes(home, COPY)[clause] == "exceeded"
    assert CANARY not in gates.everything_logged(home.instance)
    kept_in = [] if registers.kept_in is None else [registers.kept_in]
    assert not gates.files_with(home.path, [CANARY, PASSWORD], kept_in)
    assert PASSWORD not in gates.everything_logged(home.instance)


@pytest.mark.parametrize("registers", EVERY_DAY if CI else ["duckdb"], indirect=True)
def test_a_changed_table_is_measured_anew(home: Home, registers: Registers) -> None:
    """A release compares what was measured with the tables as they are now."""
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert home.run_gate(HONEST).success
    registers.write({NAME: gates.honest()})
    assert not home.materialize("release", HONEST).success
    assert home.run_ground_truth().success
    assert not home.run_gate(HONEST).success
    assert outcomes(home, HONEST)[f"unique_copies_beyond[{NAME}]"] == "exceeded"
