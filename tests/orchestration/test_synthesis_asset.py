"""A synthesis that is made in the same Dagster feeds the gate without touching the incoming folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from support import gates
from support.gates import GATE, Home

from disclosure_pipeline.orchestration.graph import GateGraph

MADE = dg.AssetKey(["models", "synthesis"])


@pytest.fixture
def component() -> Any:
    return gates.resolve(gates.definition(synthesis_asset="models/synthesis"))


def run(component: Any, returned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Home, Any]:
    gates.with_keys(tmp_path, monkeypatch)
    candidates = GateGraph(component.gate).candidates

    @dg.asset(key=MADE, partitions_def=candidates)
    def synthesis() -> Any:
        return returned

    defs = dg.Definitions.merge(
        gates.load(gates.definition(synthesis_asset="models/synthesis")), dg.Definitions([synthesis])
    )
    instance = dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "instance"))
    home = Home(tmp_path, defs, instance)
    home.prepare()
    instance.add_dynamic_partitions(str(candidates.name), ["c1"])
    with gates.quiet():
        ran = dg.materialize(
            list(defs.resolve_asset_graph().assets_defs),
            selection=dg.AssetSelection.assets(MADE).downstream(),
            partition_key="c1",
            instance=instance,
            raise_on_error=False,
        )
    return home, ran


def test_an_honest_synthesis_is_released(
    component: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syntheses = [gates.honest(1), gates.honest(2)]
    home, ran = run(component, syntheses, tmp_path, monkeypatch)
    assert ran.success
    published = sorted(path.name for path in home.published("c1").glob("*.parquet"))
    assert published == ["synthetic_1.parquet", "synthetic_2.parquet"]
    tables = [pd.read_parquet(home.published("c1") / name) for name in published]
    assert sorted(map(gates.sorted_records, tables)) == sorted(map(gates.sorted_records, syntheses))
    for table in tables:  # in the dictionary's order: Dagster's sandbox writes its names sorted
        assert list(table.columns) == sorted(syntheses[0].columns)
        assert isinstance(table.index, pd.RangeIndex)
    assert not (tmp_path / "incoming").exists()


def test_a_copy_is_refused(component: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = gates.ground_truth()
    home, ran = run(component, copy[list(component.gate.columns)], tmp_path, monkeypatch)
    assert not ran.success
    document = gates.read_json(home.record("c1", "dossier.json"))
    assert document["decision"] == "refused"
    assert document["figures"]["identity"][0]["repU"] == document["figures"]["identity"][0]["UiO"]
    assert home.nothing_published()


@pytest.mark.parametrize("returned", [None, "a,b", [1], {"a": [1]}])
def test_anything_but_tables_is_refused(
    returned: Any, component: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, ran = run(component, returned, tmp_path, monkeypatch)
    assert not ran.success
    assert "DataFrame" in gates.failures(ran)[f"{GATE}__synthetic"]
    assert home.nothing_published()


def test_a_ground_truth_that_an_asset_writes_is_read_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates.with_keys(tmp_path, monkeypatch)
    written = dg.AssetKey(["registers", "people"])

    @dg.asset(key=written)
    def people() -> None:
        gates.ground_truth().to_csv(tmp_path / "ground_truth.csv", index=False)

    gate = gates.load(gates.definition(ground_truth_asset="registers/people"))
    defs = dg.Definitions.merge(gate, dg.Definitions([people]))
    with gates.quiet(), dg.DagsterInstance.ephemeral() as instance:
        ran = dg.materialize(
            list(defs.resolve_asset_graph().assets_defs),
            selection=dg.AssetSelection.assets(written, dg.AssetKey([GATE, "ground_truth"])),
            instance=instance,
        )
    assert ran.success
    recorded = gates.read_json(tmp_path / "store" / GATE / "ground_truth.json")
    assert recorded["records"] == len(gates.ground_truth())
    parents = defs.resolve_asset_graph().get(dg.AssetKey([GATE, "ground_truth"])).parent_keys
    assert parents == {written}
