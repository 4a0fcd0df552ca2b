"""Assets that make syntheses: one hands over its tables, another puts them into the incoming folder."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from pydantic import ValidationError
from support import gates
from support.gates import COPY, GATE, HONEST, MARKER, Home
from support.sampling import on_some_days

from disclosure_pipeline.orchestration.arrivals import CandidatePartitions

pytestmark = [pytest.mark.usefixtures("remembered_results"), on_some_days]

MADE = dg.AssetKey(["models", "synthesis"])


@contextmanager
def brought_by(returned: Any, tmp_path: Path) -> Iterator[tuple[Home, dg.ExecuteInProcessResult]]:
    """A home and a run in which an asset handed over what it returned."""
    attributes = gates.definition(synthesis_asset="models/synthesis")
    candidates = CandidatePartitions.of_gate(gates.resolve(attributes).gate)

    @dg.asset(key=MADE, partitions_def=candidates)
    def synthesis() -> Any:
        return returned

    defs = dg.Definitions.merge(gates.load(attributes), dg.Definitions([synthesis]))
    with pytest.MonkeyPatch.context() as patch, gates.home_in_memory(tmp_path, defs, patch) as home:
        home.prepare()
        home.instance.add_dynamic_partitions(str(candidates.name), ["c1"])
        yield home, home.materialize_all(dg.AssetSelection.assets(MADE).downstream(), "c1")


def test_an_honest_synthesis_is_released(tmp_path: Path) -> None:
    syntheses = [gates.honest(1), gates.honest(2)]
    with brought_by(syntheses, tmp_path) as (home, ran):
        assert ran.success
        published = sorted(path.name for path in home.published("c1").glob("*.parquet"))
        assert published == ["synthetic_1.parquet", "synthetic_2.parquet"]
        tables = [pd.read_parquet(home.published("c1") / name) for name in published]
    assert sorted(map(gates.sorted_records, tables)) == sorted(map(gates.sorted_records, syntheses))
    for table in tables:  # in the dictionary's order: Dagster's sandbox writes its names sorted
        assert list(table.columns) == sorted(syntheses[0].columns)
        assert isinstance(table.index, pd.RangeIndex)
    assert not (tmp_path / "incoming").exists()


def test_a_copy_is_refused(tmp_path: Path) -> None:
    with brought_by(gates.ground_truth(), tmp_path) as (home, ran):
        assert not ran.success and home.nothing_published()
        assert home.dossier("c1")["decision"] == "refused"


@pytest.mark.parametrize("returned", [None, "a,b", [1], {"a": [1]}])
def test_anything_but_tables_is_refused(returned: Any, tmp_path: Path) -> None:
    with brought_by(returned, tmp_path) as (home, ran):
        assert not ran.success and home.nothing_published()
        assert "DataFrame" in gates.failures(ran)[f"{GATE}__synthetic"]


def test_a_ground_truth_that_an_asset_writes_is_read_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = dg.AssetKey(["registers", "people"])

    @dg.asset(key=written)
    def people() -> None:
        gates.ground_truth().to_csv(tmp_path / "ground_truth.csv", index=False)

    gate = gates.load(gates.definition(ground_truth_asset="registers/people"))
    defs = dg.Definitions.merge(gate, dg.Definitions([people]))
    with gates.home_in_memory(tmp_path, defs, monkeypatch) as home:
        selection = dg.AssetSelection.assets(written, dg.AssetKey([GATE, "ground_truth"]))
        assert home.materialize_all(selection).success
    recorded = gates.read_json(home.store / "ground_truth.json")
    assert recorded["records"] == len(gates.ground_truth())
    parents = defs.resolve_asset_graph().get(dg.AssetKey([GATE, "ground_truth"])).parent_keys
    assert parents == {written}


MODEL = "models/survey"
SURVEY = dg.AssetKey.from_user_string(MODEL)


@dataclass
class Brought:
    """A home whose candidates an asset writes, which may say where; and what Dagster's daemon does there."""

    home: Home
    writes: tuple[str, pd.DataFrame] | None = None  # the name of the next one, and its table
    says: Any = None
    cursor: str | None = None

    def synthesizer(self) -> dg.AssetsDefinition:
        @dg.asset(
            key=SURVEY,
            deps=[dg.AssetKey([GATE, "ground_truth"])],
            automation_condition=dg.AutomationCondition.eager(),
        )
        def survey() -> Any:
            assert self.writes
            name, table = self.writes
            folder = self.home.path / "incoming" / name
            folder.mkdir(parents=True)
            table.to_parquet(folder / "synthetic.parquet")
            (folder / MARKER).touch()
            said = str(folder) if self.says is None else self.says
            return dg.MaterializeResult(metadata={"folder": said} if said else {})

        return survey

    def synthesize(self, name: str, table: pd.DataFrame, says: Any = None) -> None:
        self.writes, self.says = (name, table), says
        assert self.home.materialize_all(dg.AssetSelection.assets(SURVEY)).success

    def tick(self) -> list[str | None]:
        sensor = self.home.defs.resolve_sensor_def(f"{GATE}_arrivals")
        with gates.quiet():
            ticked = sensor.evaluate_tick(
                dg.build_sensor_context(
                    instance=self.home.instance,
                    instance_ref=self.home.instance.get_ref(),
                    cursor=self.cursor,
                    definitions=self.home.defs,
                )
            )
        self.cursor = ticked.cursor
        return [request.partition_key for request in ticked.run_requests or []]


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Brought]:
    gate = gates.load(gates.definition(synthetic_asset=[MODEL]))
    with gates.home_on_disk(tmp_path, gate, monkeypatch) as home:
        made = Brought(home)
        defs = dg.Definitions.merge(gate, dg.Definitions([made.synthesizer()]))
        made.home = replace(home, defs=defs)
        made.home.prepare()
        yield made


def test_a_candidate_goes_from_its_synthesizer_to_the_release(brought: Brought) -> None:
    """The recorded ground truth asks for the synthesizer, that for the gate, which publishes."""
    home = brought.home
    with gates.quiet():
        before = dg.evaluate_automation_conditions(home.defs, home.instance)
        assert home.run_ground_truth().success
        asked = dg.evaluate_automation_conditions(home.defs, home.instance, cursor=before.cursor)
    assert before.total_requested == 0
    assert asked.get_requested_partitions(SURVEY) == {None}
    brought.synthesize(HONEST, gates.honest())
    assert brought.tick() == [HONEST]
    assert brought.tick() == []
    assert home.run_gate(HONEST).success
    assert gates.stated(home.published(HONEST)).candidate == HONEST
    brought.synthesize(COPY, gates.ground_truth())
    assert brought.tick() == [COPY]
    assert not home.run_gate(COPY).success
    assert not home.published(COPY).exists()

    graph = home.defs.resolve_asset_graph()
    node, above = graph.get(dg.AssetKey([GATE, "release"])), set[dg.AssetKey]()
    while new := set(node.parent_keys) - above:
        above |= new
        node = graph.get(next((key for key in new if key.path[-1] != "ground_truth"), node.key))
    assert SURVEY in above


def test_a_folder_that_no_asset_names_is_not_taken(brought: Brought) -> None:
    brought.home.deliver("stranger", {"synthetic.csv": gates.honest()})
    assert brought.tick() == []
    brought.synthesize("silent", gates.honest(), says=False)
    assert brought.tick() == []
    outside = brought.home.path / "elsewhere"
    shutil.copytree(brought.home.path / "incoming" / "stranger", outside)
    for said in (str(outside), "../elsewhere", "stranger/..", "stranger/deeper", "/", "a\0b", "a" * 5000):
        shutil.rmtree(brought.home.path / "incoming" / "silent")
        brought.synthesize("silent", gates.honest(), says=said)
        assert brought.tick() == [], said
    shutil.rmtree(brought.home.path / "incoming" / "silent")
    brought.synthesize("silent", gates.honest(), says="silent")  # relative to incoming
    assert brought.tick() == ["silent"]


def test_a_candidate_is_taken_once_it_is_complete_and_again_once_it_is_brought_again(
    brought: Brought,
) -> None:
    brought.synthesize(HONEST, gates.honest())
    folder = brought.home.path / "incoming" / HONEST
    (folder / MARKER).unlink()
    assert brought.tick() == []
    (folder / MARKER).touch()
    assert brought.tick() == [HONEST]
    (folder / "more.csv").write_text("written meanwhile")
    assert brought.tick() == []  # nobody says that it is complete
    shutil.rmtree(folder)
    brought.synthesize(HONEST, gates.honest(2))
    assert brought.tick() == [HONEST]


def test_a_gate_has_its_candidates_from_one_kind_of_asset() -> None:
    with pytest.raises(ValidationError, match="give only one of them"):
        gates.gate(synthesis_asset="models/a", synthetic_asset=["models/b"])
    with pytest.raises(ValidationError, match="synthetic_asset"):
        gates.gate(synthetic_asset=["models b"])
    plain = gates.gate()
    named = gates.gate(synthetic_asset=[MODEL])
    assert named.policy_digest() == plain.policy_digest()
