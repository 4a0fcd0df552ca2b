"""Further confidential tables of a gate with a unit, and groups within them; its holdout by units."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.gate_steps import deliver, folders, steps, write
from support.gates import share_key
from support.sampling import some_of
from support.surveys import TABLES, gate_of, silc

from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.tables.sources import FileSource

NAME, YEAR = "survey of living conditions", "last_year"


def gate_at(root: Path, engine: str, **changes: Any) -> GateFolders:
    """The gate of the survey, with last year's table beside its ground truth."""
    write(root / "gt.parquet", silc(1))
    share_key(root / engine)
    own = gate_of(NAME, confidential={YEAR: str(root / "last.parquet")}, **changes)
    source = FileSource(path=str(root / "last.parquet"))
    if "://" not in engine:
        return replace(folders(root, own, engine, "gt.parquet"), confidential={YEAR: source})
    of_files = folders(root, own, "memory", "gt.parquet")
    return replace(
        of_files, gate=of_files.gate.model_copy(update={"engine": engine}), confidential={YEAR: source}
    )


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    """The outcomes of the clauses on last year's table."""
    rows = json.loads(found["dossier"])["clauses"]
    return {row["name"].split("[")[0]: row["outcome"] for row in rows if f"[{YEAR}]" in row["name"]}


@pytest.mark.parametrize("engine", some_of(["memory", "partitioned", "duckdb://"]))
def test_people_of_last_year_count_by_units(engine: str, tmp_path: Path) -> None:
    """Every record stands twice there, so that by records nobody is alone and no copy is found."""
    last = silc(3)
    doubled = pd.concat([last, last], ignore_index=True)
    write(tmp_path / "last.parquet", doubled)
    gate = gate_at(tmp_path, engine)
    fresh = silc(2).drop(columns="household")
    copied = last.drop(columns="household").sample(frac=0.5, random_state=1)
    deliver(tmp_path, "fresh", fresh.iloc[::2], fresh.iloc[1::2], suffix=".parquet")
    deliver(tmp_path, "copied", pd.concat([copied, fresh.head(len(last) // 2)]), suffix=".parquet")
    assert set(outcomes(steps(gate, "fresh", measured_anew=False)).values()) == {"kept"}
    of_copied = outcomes(steps(gate, "copied", measured_anew=False))
    assert of_copied["people_copied_beyond"] == "exceeded"


def test_one_region_of_last_year(tmp_path: Path) -> None:
    last = silc(3)
    write(tmp_path / "last.parquet", last)
    chosen = last["region"] == 4
    columns = gate_of(NAME)["columns"] | {"region": {"type": "category", "published": True}}
    gate = gate_at(tmp_path, "memory", columns=columns)
    fresh = silc(2).drop(columns="household")
    sd = pd.concat([fresh[fresh["region"] != 4], last[chosen].drop(columns="household")])
    deliver(tmp_path, "region", sd, suffix=".parquet")
    found = outcomes(steps(gate, "region", measured_anew=False))
    assert found["group_copied_beyond"] == "exceeded"


def test_a_table_without_the_unit_leaves_everything_undetermined(tmp_path: Path) -> None:
    write(tmp_path / "last.parquet", silc(3).drop(columns="household"))
    gate = gate_at(tmp_path, "memory")
    deliver(tmp_path, "fresh", silc(2).drop(columns="household"), suffix=".parquet")
    found = steps(gate, "fresh")
    assert "household" in str(found["refused"]) and "dossier" not in found


def test_a_holdout_is_of_units(tmp_path: Path) -> None:
    """Its intervals are those of as many people, and who has records in both is told."""
    make, unit, _, _ = TABLES[NAME]
    write(tmp_path / "last.parquet", make(3))
    gate = gate_at(tmp_path, "memory", holdout=YEAR)
    deliver(tmp_path, "fresh", make(2).drop(columns=unit), suffix=".parquet")
    figures = json.loads(steps(gate, "fresh", measured_anew=False)["dossier"])["figures"]
    row = next(row for row in figures["holdout"] if row["measure"] == "iS")
    gt, last = make(1), make(3)
    units = [table[unit].nunique() for table in (gt, last)]
    shares = np.array([row["ground_truth"], row["holdout"]]) / 100
    error = np.sqrt((shares * (1 - shares) / units).sum()) * 196
    width = (row["difference_high"] - row["difference_low"]) / 2
    assert width == pytest.approx(error, rel=0.05)
