"""The survey of living conditions of laeken, for R: other households are approved, copied people are not."""

import shutil
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.processes import run_program
from support.sampling import on_some_days
from support.services import absent
from support.surveys import LOOSE

from disclosure_pipeline.candidates.measuring import measure_without_controls
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.measures.catalogue import DEFAULTS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge

UNIT, KEYS, TARGETS = "db030", ["db040", "hsize", "age", "rb090"], ["pl030", "pb220a", "income"]
CATEGORIES = ("db040", "rb090", "pl030", "pb220a")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Nine columns of eusilc: 14,827 members of 6,000 households."""
    path = tmp_path_factory.mktemp("eusilc") / "eusilc.csv"
    script = f'data(eusilc, package = "laeken"); write.csv(eusilc, "{path}", row.names = FALSE)'
    if shutil.which("Rscript") is None or run_program(["Rscript", "-e", script]).returncode:
        absent("R's package laeken (r-cran-laeken)")
    table = pd.read_csv(path, dtype=dict.fromkeys(CATEGORIES, str))
    table["income"] = table["eqIncome"].round(-2).astype(int)
    return table[[UNIT, *KEYS, *TARGETS]]


def gate(**changes: Any) -> Gate:
    columns = {name: {"type": "category" if name in CATEGORIES else "integer"} for name in (*KEYS, *TARGETS)}
    own = {"columns": columns, "keys": KEYS, "targets": TARGETS, "policy": LOOSE}
    return gates.gate(**own | changes)


def broken(of_gate: Gate, gt: pd.DataFrame, sd: pd.DataFrame) -> set[str]:
    clauses = [clause for clause in of_gate.clauses() if clause.figure in DEFAULTS]
    opened = FramesInMemory((gt.reset_index(drop=True), sd.reset_index(drop=True)), "memory")
    judged = judge(clauses, measure_without_controls(of_gate, opened))
    return {str(found.clause.figure) for found in judged if found.outcome != "kept"}


@on_some_days
def test_other_households_are_approved_and_copied_people_refused(people: pd.DataFrame) -> None:
    numbers = np.random.default_rng(1).permutation(people[UNIT].unique())
    is_ground_truth = people[UNIT].isin(numbers[: len(numbers) // 2])
    gt, fresh = people[is_ground_truth], people[~is_ground_truth].drop(columns=UNIT)
    assert (len(people), people[UNIT].nunique()) == (14_827, 6_000)
    of_units = gate(unit=UNIT)
    assert broken(of_units, gt, fresh) == set()
    copied = gt.sample(frac=0.1, random_state=1).drop(columns=UNIT)
    mixed = pd.concat([copied, fresh.iloc[len(copied) :]])
    assert "found" in broken(of_units, gt, mixed)
