"""A gate with a unit: the same decision with every engine, and nothing of the unit leaves it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import gates
from support.gate_steps import deliver, folders, steps, write
from support.gates import share_key
from support.surveys import gate_of, leaked, silc

from disclosure_pipeline.candidates.measuring import DRAWS, measure_baselines
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.evidence.page.rendering import render_page
from disclosure_pipeline.policy.gate import Gate

NAME = "survey of living conditions"


def gate_at(root: Path, engine: str) -> GateFolders:
    if "://" not in engine:
        return folders(root, gate_of(NAME), engine, "gt.parquet")
    definition = gate_of(NAME, ground_truth="gt.parquet", engine=engine)
    return replace(folders(root, gate_of(NAME), "memory", "gt.parquet"), gate=Gate.model_validate(definition))


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fresh people in two files, and people of whom half are copied."""
    root = tmp_path_factory.mktemp("units")
    write(root / "gt.parquet", silc(1))
    for name in ("memory", "partitioned"):
        share_key(root / name)
    fresh = silc(2).drop(columns="household")
    deliver(root, "fresh", fresh.iloc[::2], fresh.iloc[1::2], suffix=".parquet")
    deliver(root, "copied", leaked(NAME, 0.5), suffix=".parquet")
    return root


@pytest.fixture(scope="module")
def in_memory(arrived: Path) -> dict[str, Any]:
    return {name: measured(arrived, "memory", name) for name in ("fresh", "copied")}


def measured(arrived: Path, engine: str, candidate: str) -> dict[str, Any]:
    """As the arrival measures fresh people, and as a release measures copied ones anew."""
    # What was found, without who counted and what is invented where records stay in a database.
    found = steps(gate_at(arrived, engine), candidate, measured_anew=candidate == "copied")
    frames = {name: text for name, text in found["frames"].items() if not name.startswith("control")}
    return {
        "frames": frames,
        "overlap": found["overlap"],
        "decision": json.loads(found["dossier"])["decision"],
        "clauses": {row["name"]: row["outcome"] for row in json.loads(found["dossier"])["clauses"]},
    }


@pytest.mark.parametrize("engine", ["partitioned", "duckdb://"])
def test_every_engine_decides_the_same(engine: str, arrived: Path, in_memory: dict[str, Any]) -> None:
    for candidate, expected in in_memory.items():
        assert measured(arrived, engine, candidate) == expected
        assert (expected["decision"] == "refused") == (candidate == "copied")
        assert (expected["clauses"]["people_copied_beyond"] == "exceeded") == (candidate == "copied")


def test_a_record_without_an_owner_is_refused(tmp_path: Path) -> None:
    gt = silc(1)
    gt.loc[5, "household"] = None
    write(tmp_path / "gt.parquet", gt)
    for engine in ("memory", "partitioned"):
        found = steps(gate_at(tmp_path, engine), "any")
        [violation] = found["ground truth"].violations
        assert violation.column == "household"
        assert "h-0" not in str(found)


def test_a_candidate_with_the_unit_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "gt.parquet", silc(1))
    deliver(tmp_path, "with", silc(2), suffix=".parquet")
    found = steps(gate_at(tmp_path, "memory"), "with")
    assert "dossier" not in found
    assert "household" in str(found["arrival"])


def test_a_candidate_that_spells_an_owner_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "gt.parquet", silc(1))
    sd = silc(2).drop(columns="household").astype({"sex": object})
    sd.loc[0, "sex"] = "h-0000017"
    definition = gate_of(NAME)
    definition["columns"] |= {"sex": {"type": "category", "unknown_levels": "keep", "published": True}}
    deliver(tmp_path, "spelt", sd)
    found = steps(folders(tmp_path, definition, "memory", "gt.parquet"), "spelt")
    assert "identifiers of the ground truth" in str(found["arrival"])


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_bounds_are_drafted_from_halves_of_the_people(engine: str, tmp_path: Path) -> None:
    write(tmp_path / "gt.parquet", silc(1))
    drafted = measure_baselines(gate_at(tmp_path, engine))
    assert drafted.own.units["units"].item() == 900
    beyond = [half.attribute["DiSCO_beyond"].abs().max() for half in drafted.halves]
    assert len(beyond) == DRAWS
    assert max(beyond) < 5
    assert all(half.units["units"].item() == 450 for half in drafted.halves)


def test_a_run_publishes_fresh_people_and_tells_no_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt = silc(1)
    with gates.home_in_memory(tmp_path, gates.load(gate_of(NAME)), monkeypatch) as home:
        home.write_ground_truth(gt)
        home.deliver("fresh", {"synthetic.csv": silc(2).drop(columns="household")})
        home.deliver("copied", {"synthetic.csv": leaked(NAME, 0.5)})
        assert home.run_ground_truth().success
        assert home.run_gate("fresh").success
        assert not home.run_gate("copied").success
        published = pd.read_parquet(home.published("fresh") / "synthetic.parquet")
        assert set(published) == set(gt) - {"household"}
        owners = gt["household"].head(20).tolist()
        assert not gates.files_with(tmp_path, owners, ["ground_truth.csv"])
        logged = gates.everything_logged(home.instance)
        assert not [owner for owner in owners if owner in logged]
        dossier = gates.read_json(home.record("fresh", "dossier.json"))
        [row] = dossier["figures"]["units"]
        assert row["household_risk"] > row["individual_risk"] > 0
        page = home.record("fresh", "dossier.html").read_text(encoding="utf-8")
        assert f"at least one of {row['household_risk']:.1f} % of the units that they belong to" in page
        public = render_page(dossier, "publication")
        assert "% of the units that they belong to" in public
        assert not [owner for owner in owners if owner in public]
