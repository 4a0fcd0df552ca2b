"""A gate whose tables a database counts has the guards of every other gate, through real runs."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from support import gates
from support.gate_steps import REGISTERS, Registers
from support.gates import COPY, HONEST, Home
from support.sampling import CI, on_some_days, only_in_ci, some_of
from support.services import PASSWORD

from disclosure_pipeline.measures.found import WAYS

pytestmark = on_some_days

NAME = "last_year"
LOOSE = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "key_overlap": 1}


# Spark takes long for a run: never for what other databases tell as well.
QUICK = ("duckdb", "postgresql")


@dataclass(frozen=True)
class Recorded:
    registers: Registers
    home: Home

    def copy_to(self, path: Path, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> Home:
        shutil.copytree(self.home.path, path, dirs_exist_ok=True)
        gates.with_keys(path, patch)
        return replace(self.home, path=path, instance=instance)

    def assert_nothing_is_left(self) -> None:
        assert self.registers.list_tables() == [NAME, "people"]

    def assert_nothing_leaked(self, home: Home) -> None:
        logged = gates.everything_logged(home.instance)
        assert gates.CANARY_AMOUNT not in logged and PASSWORD not in logged
        kept_in = [] if self.registers.kept_in is None else [self.registers.kept_in]
        assert not gates.files_with(self.registers.folder, [gates.CANARY_AMOUNT, PASSWORD], kept_in)
        assert not gates.files_with(home.path, [gates.CANARY_AMOUNT, PASSWORD], [])


@pytest.fixture(scope="module", params=REGISTERS if CI else ["duckdb"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """GT (people) and last year's table in a kind of database, and a gate that has GT recorded."""
    path = tmp_path_factory.mktemp("home")
    with (
        REGISTERS[request.param](tmp_path_factory.mktemp("registers")) as registers,
        dg.DagsterInstance.ephemeral() as instance,
    ):
        registers.write({"people": gates.ground_truth(), NAME: gates.last_year(280)})
        definition = gates.definition(
            policy=LOOSE,
            ground_truth=registers.source("people"),
            confidential={NAME: registers.source(NAME)},
            engine=registers.engine,
        )
        recorded = Recorded(registers, Home(path, gates.load(definition), instance))
        with pytest.MonkeyPatch.context() as patch:
            gates.with_keys(path, patch)
            ran = recorded.home.run_ground_truth()
        assert ran.success, gates.failures(ran)
        recorded.assert_nothing_leaked(recorded.home)
        yield recorded
        recorded.assert_nothing_is_left()


@pytest.fixture
def home(recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield recorded.copy_to(tmp_path, instance, monkeypatch)
    recorded.assert_nothing_is_left()


@pytest.fixture(scope="module")
def with_honest(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Home:
    path = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as patch:
        home = recorded.copy_to(path, recorded.home.instance, patch)
        home.deliver(HONEST, {"synthetic.csv": gates.honest()})
        ran = home.run_gate(HONEST)
    assert ran.success, gates.failures(ran)
    recorded.assert_nothing_is_left()
    return home


def test_an_honest_candidate_is_released(with_honest: Home) -> None:
    clauses = with_honest.outcomes(HONEST)
    for way in WAYS:
        for about in (way, f"{way} of {NAME}"):
            assert clauses[f"found[{about}] beyond"] == "kept"
    measured = with_honest.dossier(HONEST)["measured"]
    assert {"ground_truth", f"confidential[{NAME}]"} <= set(measured)


@only_in_ci("measuring a candidate of two tables")
@pytest.mark.parametrize("recorded", QUICK, indirect=True)
def test_a_second_candidate_is_decided_on_by_itself(
    with_honest: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another synthesis is published, too; one that was hardly changed is not even measured."""
    home, first = with_honest, gates.honest()
    gates.with_keys(home.path, monkeypatch)
    for candidate, tables in {
        "second": [gates.honest(2), gates.honest(3)],
        "hardly_changed": [first.assign(age=first["age"].where(first.index != 0, 70))],
    }.items():
        home.deliver(candidate, {f"synthetic_{i}.csv": table for i, table in enumerate(tables)})
    ran = home.run_gate("second")
    assert ran.success, gates.failures(ran)
    assert {path.name for path in home.published("second").glob("*.parquet")} == {
        "synthetic_1.parquet",
        "synthetic_2.parquet",
    }
    assert not home.run_gate("hardly_changed").success
    assert not home.published("hardly_changed").exists()
    assert not home.record("hardly_changed", "dossier.json").exists()


def one_column_changed() -> pd.DataFrame:
    """Ages and incomes still tell nearly everybody apart."""
    truth = gates.ground_truth()
    return truth.assign(work=np.random.default_rng(1).permutation(truth["work"]))


def noise_in_the_numbers() -> pd.DataFrame:
    truth, random = gates.ground_truth(), np.random.default_rng(2)
    noisy = truth["age"] + random.choice([-1, 1], len(truth))
    return truth.assign(
        age=noisy.clip(truth["age"].min(), truth["age"].max()),
        income=truth["income"] + random.integers(1, 5, len(truth)),
    )


LAST_YEAR = "last year's table, one column changed"
DISGUISES = {
    "one column changed everywhere": (one_column_changed, "found[all but one] beyond"),
    "noise in the numbers": (noise_in_the_numbers, "found[nearly] beyond"),
    "last year's table": (lambda: gates.last_year(280).drop(index=0), f"found[whole of {NAME}] beyond"),
    LAST_YEAR: (
        lambda: gates.last_year(280).drop(index=0).eval("income = income + 1"),
        f"found[nearly of {NAME}] beyond",
    ),
}


@pytest.mark.parametrize(
    ("recorded", "disguise"),
    # Every engine finds the same guards (test_guards_of_engines.py): of Spark one refusal is enough.
    [*some_of(product(QUICK if CI else QUICK[:1], DISGUISES)), *([("spark", LAST_YEAR)] if CI else [])],
    indirect=["recorded"],
)
def test_a_disguise_is_refused(recorded: Recorded, home: Home, disguise: str) -> None:
    make, clause = DISGUISES[disguise]
    home.deliver(COPY, {"synthetic.csv": make()})
    assert not home.run_gate(COPY).success
    assert home.nothing_published()
    assert home.outcomes(COPY)[clause] == "exceeded"
    recorded.assert_nothing_leaked(home)


@only_in_ci("several runs of a gate")
@pytest.mark.parametrize("recorded", QUICK, indirect=True)
def test_a_changed_table_is_measured_anew(recorded: Recorded, home: Home) -> None:
    """A release compares what was measured with the tables as they are now."""
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert home.run_ground_truth().success
    assert home.run_gate(HONEST).success
    try:
        recorded.registers.write({NAME: gates.honest()})
        assert not home.materialize("release", HONEST).success
        assert home.run_ground_truth().success
        assert not home.run_gate(HONEST).success
    finally:
        recorded.registers.write({NAME: gates.last_year(280)})
    assert home.outcomes(HONEST)[f"found[whole of {NAME}] beyond"] == "exceeded"
