"""A gate of a survey with weights: the same decision with every engine, and no weight leaves it."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from support import gates
from support.gate_steps import deliver, folders, steps, write
from support.gates import files_with, share_key
from support.surveys import gate_of, leaked, silc

from disclosure_pipeline.candidates.measuring import measure_baselines
from disclosure_pipeline.candidates.power import measure_gate_power
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.evidence.dossier import collect_figures
from disclosure_pipeline.evidence.page.rendering import render_page
from disclosure_pipeline.evidence.validation import validate
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge

NAME = "survey of living conditions"
BOUNDS = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "repU_population": 0.2, "DiSCO_population": 5}


def weighted(seed: int = 1) -> pd.DataFrame:
    """Members of households, each of whom stands for 20 people or more."""
    gt = silc(seed)
    return gt.assign(weight=20.25 + 8000 * (np.arange(len(gt)) % 7 == 0) + np.arange(len(gt)) / 4)


def fresh() -> pd.DataFrame:
    return silc(2).drop(columns="household")


def definition(**changes: Any) -> dict[str, Any]:
    return gate_of(NAME, **{"weight": "weight", "people": "weighted", "policy": BOUNDS} | changes)


def gate_at(root: Path, engine: str, **changes: Any) -> GateFolders:
    if "://" not in engine:
        return folders(root, definition(**changes), engine, "gt.parquet")
    in_place = definition(ground_truth="gt.parquet", engine=engine, **changes)
    return replace(gate_at(root, "memory", **changes), gate=Gate.model_validate(in_place))


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fresh people in two files, and people of whom half are copied."""
    root = tmp_path_factory.mktemp("weights")
    write(root / "gt.parquet", weighted())
    for name in ("memory", "partitioned"):
        share_key(root / name)
    deliver(root, "fresh", fresh().iloc[::2], fresh().iloc[1::2], suffix=".parquet")
    deliver(root, "copied", leaked(NAME, 0.5), suffix=".parquet")
    return root


def compared(arrived: Path, engine: str, candidate: str) -> dict[str, Any]:
    """What was found, without who counted and what is invented where records stay in a database."""
    found = steps(gate_at(arrived, engine), candidate, measured_anew=candidate == "copied")
    dossier = json.loads(found["dossier"])
    return {
        "frames": {name: text for name, text in found["frames"].items() if not name.startswith("control")},
        "decision": dossier["decision"],
        "clauses": {
            row["name"]: (row["outcome"], row["value"]) for row in dossier["clauses"] if not row["control"]
        },
        "population": [dossier["figures"][name] for name in ("population", "population_targets")],
    }


@pytest.fixture(scope="module")
def in_memory(arrived: Path) -> dict[str, Any]:
    return {name: compared(arrived, "memory", name) for name in ("fresh", "copied")}


@pytest.mark.parametrize("engine", ["partitioned", "duckdb://"])
def test_every_engine_decides_the_same(engine: str, arrived: Path, in_memory: dict[str, Any]) -> None:
    for candidate, expected in in_memory.items():
        assert compared(arrived, engine, candidate) == expected


def test_clauses_are_of_records_and_of_people(in_memory: dict[str, Any]) -> None:
    clauses = in_memory["copied"]["clauses"]
    assert clauses["repU_population"][0] == "exceeded"
    assert clauses["DiSCO_population[income]"][0] == "kept"
    assert clauses["repU"][1] != clauses["repU_weighted"][1]
    assert clauses["DiSCO_weighted[income]"][0] == "kept"
    assert in_memory["fresh"]["clauses"]["repU_population"][1] < clauses["repU_population"][1]


@pytest.mark.parametrize("unit", [None, "household"])
def test_people_copied_are_weighted(unit: str | None) -> None:
    """Of equal weights as they are counted; the more those copied weigh, the more of the country they are."""
    gt = silc(1)
    copied = pd.concat([fresh().iloc[200:], gt.drop(columns="household").head(200)])
    gate = Gate.model_validate(definition(**({} if unit is None else {"unit": unit})))
    rows = []
    for weight in (20.0, np.where(gt.index < 200, 200.0, 20.0)):
        result = gates.measured(gate, gt.assign(weight=weight), [copied])
        rows.append(result.population.loc[1])
        counted = result.guards.loc[1]
    for name in ("", "_expected", "_beyond"):
        assert rows[0][f"people_copied{name}_weighted"] == pytest.approx(counted[f"people_copied{name}"])
    error = rows[0]["people_copied_beyond_weighted_se"]
    assert error == pytest.approx(counted["people_copied_beyond_se"])
    weighted_beyond = [row["people_copied_beyond_weighted_chance"] for row in rows]
    assert weighted_beyond[1] > 1.5 * weighted_beyond[0] > 0
    clauses = {judgement.clause.name: judgement for judgement in judge(gate.clauses(), result)}
    assert clauses["people_copied_beyond_weighted"].outcome == "exceeded"


def test_the_expectations_agree_on_weighted_clauses() -> None:
    gate = Gate.model_validate(
        definition(policy={"repU": 100, "DiSCO": {"beyond": 3}, "whole_key_overlap": 0})
    )
    result = gates.measured(gate, weighted(), [leaked(NAME, 0.5)])
    kept = {judgement.clause.name: judgement.outcome == "kept" for judgement in judge(gate.clauses(), result)}
    assert "DiSCO_beyond_both_weighted[income]" in kept and "people_copied_beyond_weighted" in kept
    figures = json.loads(json.dumps(collect_figures(result, 10)))
    assert validate(gate.clauses(), figures).kept == kept


def test_groups_have_their_people(in_memory: dict[str, Any]) -> None:
    groups = pd.read_csv(StringIO(in_memory["copied"]["frames"]["subgroups"]))
    people = groups.groupby("column")["people"].sum()
    assert people.to_numpy() == pytest.approx(weighted()["weight"].sum())
    assert groups["DiSCO_weighted"].between(0, 100).all()
    assert (groups["DiSCO_weighted_se"] > 0).all()


@pytest.mark.parametrize("engine", ["memory", "partitioned", "duckdb://"])
def test_weights_that_cannot_be_used_are_refused(engine: str, tmp_path: Path) -> None:
    gt = weighted()
    for change, problem in ((None, "lacks a value"), (-4321.5, "0 or below"), (0.0, "0 or below")):
        write(tmp_path / "gt.parquet", gt.assign(weight=gt["weight"].where(gt.index != 5, change)))
        found = steps(gate_at(tmp_path, engine), "any")
        [violation] = found["ground truth"].violations
        assert violation.column == "weight"
        assert problem in violation.rule
        assert "4321" not in str(found)
    write(tmp_path / "gt.parquet", gt.drop(columns="weight"))
    [violation] = steps(gate_at(tmp_path, engine), "any")["ground truth"].violations
    assert violation.column == "weight"


def test_a_candidate_with_the_weight_is_refused_unless_it_is_published(tmp_path: Path) -> None:
    gt = weighted()
    write(tmp_path / "gt.parquet", gt)
    deliver(tmp_path, "with", fresh().assign(weight=20.25), suffix=".parquet")
    found = steps(gate_at(tmp_path, "memory"), "with")
    assert "dossier" not in found
    assert "weight" in str(found["arrival"])
    columns = definition()["columns"] | {"weight": {"type": "number", "published": True}}
    published = folders(tmp_path, definition(columns=columns), "partitioned", "gt.parquet")
    found = steps(published, "with")
    assert "refused" not in found
    [row] = json.loads(found["dossier"])["figures"]["population"]
    assert row["people"] == pytest.approx(gt["weight"].sum())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a key": ({"weight": "age"}, "which is a key"),
    "the unit": ({"weight": "household"}, "which is a key, a target or the unit"),
    "both": ({"sampling_fraction": 0.1}, "both given"),
    "no number": ({"weight": "sex"}, "must be a number"),
    "nothing to weigh by": ({"weight": None}, "people: weighted needs weight"),
    "a bound without": ({"weight": None, "people": "counted"}, "weight or sampling_fraction alone"),
    "a fraction above 1": ({"weight": None, "sampling_fraction": 1.5}, "less than or equal to 1"),
    "a weighted bound": (
        {
            "weight": None,
            "people": "counted",
            "sampling_fraction": 0.1,
            "policy": {**BOUNDS, "iS_weighted": 5},
        },
        "measured with weight alone",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_together_is_refused(name: str) -> None:
    changes, problem = WRONG[name]
    with pytest.raises(ValidationError, match=problem):
        Gate.model_validate(definition(**changes))


def test_weights_decide() -> None:
    without = {"weight": None, "people": "counted"}
    policy = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0}
    definitions = (
        definition(policy=policy),
        definition(policy=policy, people="counted"),
        definition(policy=policy, weight="other"),
        definition(policy=policy, **without),
        definition(policy=policy, **without, sampling_fraction=0.1),
        definition(policy=policy, **without, sampling_fraction=0.2),
    )
    assert len({Gate.model_validate(one).policy_digest() for one in definitions}) == len(definitions)


def test_a_missing_figure_is_no_approval() -> None:
    """A result without its population, as of other weights, keeps no clause of it."""
    gate = Gate.model_validate(definition())
    result = gates.measured(gate, weighted(), [fresh()])
    empty = replace(result, population=pd.DataFrame(), population_targets=pd.DataFrame())
    outcomes = {judgement.clause.name: judgement.outcome for judgement in judge(gate.clauses(), empty)}
    assert outcomes["repU_population"] == outcomes["DiSCO_population[income]"] == "undetermined"


def test_a_sampling_fraction_is_enough() -> None:
    gate = Gate.model_validate(definition(weight=None, people="counted", sampling_fraction=0.01))
    result = gates.measured(gate, silc(1), [fresh()])
    assert result.population["people"].item() == pytest.approx(100 * len(silc(1)))
    assert not [name for name in result.population if "weighted" in str(name)]


def test_halves_are_measured_without_weights(tmp_path: Path) -> None:
    write(tmp_path / "gt.parquet", weighted())
    drafted = measure_baselines(gate_at(tmp_path, "memory"))
    assert drafted.own.population.empty
    gate = Gate.model_validate(definition(policy={**BOUNDS, "DiSCO": {"beyond": 20}, "repU": 50}))
    power = measure_gate_power(gate, silc(1), 0.001)
    assert power.records > 0


def test_a_run_publishes_and_tells_no_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gt = weighted()
    with gates.home_in_memory(
        tmp_path, gates.load(definition(policy=BOUNDS | {"repU_population": 5})), monkeypatch
    ) as home:
        home.write_ground_truth(gt)
        home.deliver("fresh", {"synthetic.csv": fresh()})
        assert home.run_ground_truth().success
        assert home.run_gate("fresh").success
        published = pd.read_parquet(home.published("fresh") / "synthetic.parquet")
        assert set(published) == set(gt) - {"household", "weight"}
        weights = [str(weight) for weight in gt["weight"].iloc[::7].head(20)]
        assert not files_with(tmp_path, weights, ["ground_truth.csv"])
        logged = gates.everything_logged(home.instance)
        assert not [weight for weight in weights if weight in logged]
        dossier = gates.read_json(home.record("fresh", "dossier.json"))
        assert "individual" not in dossier["figures"]
        [row] = dossier["figures"]["population"]
        page = home.record("fresh", "dossier.html").read_text(encoding="utf-8")
        assert f"names {row['repU_population']:.1f} % of the people rightly" in page
        public = render_page(dossier, "publication")
        assert "Without knowing who took part" in public
        assert "of the population" in public
