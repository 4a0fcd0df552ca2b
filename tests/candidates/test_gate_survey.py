"""A gate of a survey of households: every engine decides the same, and no owner or weight leaves it."""

import json
import re
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from support import gates
from support.gate_steps import deliver, folders, steps, write
from support.gates import share_key
from support.sampling import on_some_days, some_of
from support.surveys import gate_of, leaked, silc

from disclosure_pipeline.candidates import power
from disclosure_pipeline.candidates.measuring import DRAWS, measure_baselines
from disclosure_pipeline.candidates.power import measure_gate_power
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.evaluation.long_table import tabulate_figures, view_frame
from disclosure_pipeline.evaluation.power import KINDS
from disclosure_pipeline.evidence.page.rendering import render_page
from disclosure_pipeline.evidence.validation import validate
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge

pytestmark = on_some_days

NAME, YEAR = "survey of living conditions", "last_year"
BOUNDS = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "DIS": 0.1}
WEIGHTS: dict[str, Any] = {"weight": "weight", "people": "weighted", "policy": BOUNDS}
GATES: dict[str, dict[str, Any]] = {"units": {}, "weights": WEIGHTS}
ENGINES = ("memory", "partitioned", "duckdb://")


def weighted(seed: int = 1) -> pd.DataFrame:
    """Members of households, each of whom stands for 20 people or more."""
    gt = silc(seed)
    return gt.assign(weight=20.25 + 8000 * (np.arange(len(gt)) % 7 == 0) + np.arange(len(gt)) / 4)


def fresh() -> pd.DataFrame:
    return silc(2).drop(columns="household")


def weighted_gate(**changes: Any) -> Gate:
    return Gate.model_validate(gate_of(NAME, **WEIGHTS | changes))


def gate_at(root: Path, engine: str = "memory", **changes: Any) -> GateFolders:
    return folders(root, gate_of(NAME, **changes), engine, "gt.parquet")


@dataclass(frozen=True)
class Arrived:
    """Fresh people, with weights in two files, and people of whom half are copied, before a gate."""

    root: Path
    changes: dict[str, Any]

    def find(self, engine: str, candidate: str) -> dict[str, Any]:
        """All that is found, but for who counted and what is invented where records stay in a database.

        As the arrival measures, and with weights as a release measures copied people anew.
        """
        gate = gate_at(self.root, engine, **self.changes)
        found = steps(gate, candidate, measured_anew=bool(self.changes) and candidate == "copied")
        frames = {name: text for name, text in found["frames"].items() if not name.startswith("control")}
        dossier = json.loads(found["dossier"])
        return {
            "frames": frames,
            "overlap": found["overlap"],
            "decision": dossier["decision"],
            "clauses": {
                row["name"]: (row["outcome"], None if row["figure"] == "controls" else row["value"])
                for row in dossier["clauses"]
            },
            "bases": {
                (row["figure"], row["about"], row["part"], row["basis"]): row["value"]
                for row in dossier["figures"]["table"]
                if row["figure"] in {"repU", "DiSCO"} and "group" not in row
            },
            "population": [
                view_frame(dossier["figures"], name) for name in ("population", "population_targets")
            ],
        }


@pytest.fixture(scope="module", params=GATES)
def arrived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Arrived:
    root = tmp_path_factory.mktemp(request.param)
    write(root / "gt.parquet", weighted())
    for name in ("memory", "partitioned"):
        share_key(root / name)
    files = 2 if request.param == "weights" else 1
    deliver(root, "fresh", *(fresh().iloc[number::files] for number in range(files)), suffix=".parquet")
    deliver(root, "copied", leaked(NAME, 0.5), suffix=".parquet")
    return Arrived(root, GATES[request.param])


@pytest.fixture(scope="module")
def in_memory(arrived: Arrived) -> dict[str, Any]:
    return {name: arrived.find("memory", name) for name in ("fresh", "copied")}


@pytest.mark.parametrize("engine", some_of(ENGINES[1:], 2, part_in_ci=1))
def test_every_engine_decides_the_same(engine: str, arrived: Arrived, in_memory: dict[str, Any]) -> None:
    for candidate, expected in in_memory.items():
        assert arrived.find(engine, candidate) == expected
        assert arrived.changes or (expected["decision"] == "refused") == (candidate == "copied")
        assert (expected["clauses"]["found[whole] beyond"][0] == "exceeded") == (candidate == "copied")


@pytest.mark.parametrize("arrived", ["weights"], indirect=True)
def test_clauses_and_groups_are_of_records_and_of_people(in_memory: dict[str, Any]) -> None:
    clauses = in_memory["copied"]["clauses"]
    assert clauses["DIS"][0] == "exceeded"
    assert not [name for name in clauses if "_population" in name]
    assert not [name for name in clauses if "weighted" in name]
    values = in_memory["copied"]["bases"]
    assert values["repU", None, 1, "records"] != values["repU", None, 1, "people"]
    assert clauses["repU"][1] == max(value for (figure, *_), value in values.items() if figure == "repU")
    of_income = [
        value for (figure, about, *_), value in values.items() if (figure, about) == ("DiSCO", "income")
    ]
    assert clauses["DiSCO[income]"] == ("kept", max(of_income))
    assert in_memory["fresh"]["clauses"]["DIS"] == clauses["DIS"]  # of the survey, whatever was made of it
    groups = pd.read_csv(StringIO(in_memory["copied"]["frames"]["subgroups"]))
    people = groups.groupby("column")["people"].sum()
    assert people.to_numpy() == pytest.approx(weighted()["weight"].sum())
    assert groups["DiSCO_weighted"].between(0, 100).all()
    assert (groups["DiSCO_weighted_se"] > 0).all()


@pytest.mark.parametrize("unit", [None, "household"])
def test_people_copied_are_weighted(unit: str | None) -> None:
    """Equal weights count like none; the more copied people weigh, the larger is their share."""
    gt = silc(1)
    copied = pd.concat([fresh().iloc[200:], gt.drop(columns="household").head(200)])
    gate = weighted_gate(**({} if unit is None else {"unit": unit}))
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
    judgement = gates.judged(gate, result)["found[whole] beyond"]
    assert (judgement.outcome, judgement.value) == ("exceeded", weighted_beyond[1])
    assert judgement.row is not None and judgement.row.basis == "people"


def test_the_expectations_agree_on_weighted_clauses() -> None:
    gate = weighted_gate(policy={"repU": 100, "DiSCO": {"beyond": 3}, "whole_key_overlap": 0})
    result = gates.measured(gate, weighted(), [leaked(NAME, 0.5)])
    kept = {judgement.clause.name: judgement.outcome == "kept" for judgement in judge(gate.clauses(), result)}
    assert all(clause.by_weight for clause in gate.clauses() if clause.figure == "DiSCO")
    assert "DiSCO[income] beyond" in kept and "found[whole] beyond" in kept
    assert validate(gate.clauses(), tabulate_figures(result), 1).kept == kept


@pytest.mark.parametrize("engine", ENGINES)
def test_owners_and_weights_that_cannot_be_used_are_refused(engine: str, tmp_path: Path) -> None:
    gt = weighted()
    for column, value, problem in (
        ("household", None, "lacks a value"),
        ("weight", None, "lacks a value"),
        ("weight", -4321.5, "0 or below"),
        ("weight", 0.0, "0 or below"),
    ):
        write(tmp_path / "gt.parquet", gt.assign(**{column: gt[column].where(gt.index != 5, value)}))
        found = steps(gate_at(tmp_path, engine, **WEIGHTS), "any")
        [violation] = found["ground truth"].violations
        assert violation.column == column and problem in violation.rule
        assert "4321" not in str(found) and "h-0" not in str(found)
    write(tmp_path / "gt.parquet", gt.drop(columns="weight"))
    [violation] = steps(gate_at(tmp_path, engine, **WEIGHTS), "any")["ground truth"].violations
    assert violation.column == "weight"


def test_a_candidate_with_owners_or_weights_is_refused_unless_they_are_published(tmp_path: Path) -> None:
    gt = weighted()
    write(tmp_path / "gt.parquet", gt)
    deliver(tmp_path, "household", silc(2), suffix=".parquet")
    deliver(tmp_path, "weight", fresh().assign(weight=20.25), suffix=".parquet")
    for column in ("household", "weight"):
        found = steps(gate_at(tmp_path, **WEIGHTS), column)
        assert "dossier" not in found
        assert "1 column is not in the data dictionary" in str(found["arrival"])
    columns = gate_of(NAME)["columns"] | {"weight": {"type": "number", "published": True}}
    found = steps(gate_at(tmp_path, "partitioned", **WEIGHTS, columns=columns), "weight")
    assert "refused" not in found
    population = pd.read_csv(StringIO(found["frames"]["population"]))
    assert population["people"].item() == pytest.approx(gt["weight"].sum())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"weight": "age"}, "which is also a key"),
        ({"weight": "household"}, "which is also a key, a target or the unit"),
        ({"sampling_fraction": 0.1}, "both given"),
        ({"weight": "sex"}, "must be a number"),
        ({"policy": BOUNDS | {"repU_population": 1}}, "is read, not bounded"),
        ({"policy": BOUNDS | {"right_identifications": 1}}, "is read, not bounded"),
        ({"policy": BOUNDS | {"DiSCO_population": 1}}, "is read, not bounded"),
        ({"weight": None}, "people: weighted needs weight"),
        ({"weight": None, "people": "counted"}, "only measured with weight or sampling_fraction"),
        ({"weight": None, "sampling_fraction": 1.5}, "less than or equal to 1"),
        (
            {
                "weight": None,
                "people": "counted",
                "sampling_fraction": 0.1,
                "policy": BOUNDS | {"iS_weighted": 5},
            },
            "is read, not bounded",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        weighted_gate(**changes)


def test_weights_decide() -> None:
    without = {"weight": None, "people": "counted"}
    changes: list[dict[str, Any]] = [{}, {"people": "counted"}, {"weight": "other"}, without]
    changes += [without | {"sampling_fraction": fraction} for fraction in (0.1, 0.2)]
    policy = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0}
    digests = {weighted_gate(**change, policy=policy).policy_digest() for change in changes}
    assert len(digests) == len(changes)


def test_a_missing_figure_is_no_approval() -> None:
    """A result without its population, as of other weights, keeps no clause of it."""
    gate = weighted_gate()
    result = gates.measured(gate, weighted(), [fresh()])
    empty = replace(result, population=pd.DataFrame(), population_targets=pd.DataFrame())
    found = gates.judged(gate, empty)
    for name in ("DIS", "DiSCO[income]"):
        assert found[name].outcome == "undetermined"


def test_a_sampling_fraction_is_enough() -> None:
    gate = weighted_gate(weight=None, people="counted", sampling_fraction=0.01)
    result = gates.measured(gate, silc(1), [fresh()])
    assert result.population["people"].item() == pytest.approx(100 * len(silc(1)))
    assert not [name for name in result.population if "weighted" in str(name)]


@pytest.mark.parametrize("engine", some_of(ENGINES[:2], 2, part_in_ci=1))
def test_halves_are_of_the_people_and_measured_without_weights(engine: str, tmp_path: Path) -> None:
    write(tmp_path / "gt.parquet", weighted())
    drafted = measure_baselines(gate_at(tmp_path, engine, **WEIGHTS))
    assert drafted.own.population.empty
    assert drafted.own.units["units"].item() == 900
    beyond = [half.attribute["DiSCO_beyond"].abs().max() for half in drafted.halves]
    assert len(beyond) == DRAWS
    assert max(beyond) < 5
    assert all(half.units["units"].item() == 450 for half in drafted.halves)


def test_power_is_measured_without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "SHARES", (0, 100))
    policy = BOUNDS | {"DiSCO": {"beyond": 60}, "key_overlap": 1, "target_overlap": 1}
    measured = measure_gate_power(weighted_gate(policy=policy), silc(1, households=300), 0.001)
    assert measured.noticed == dict.fromkeys(KINDS, (100.0,))


@pytest.mark.usefixtures("remembered_results")
def test_a_run_publishes_fresh_people_and_tells_no_owner_and_no_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt = weighted()
    definition = gate_of(NAME, **WEIGHTS | {"policy": BOUNDS | {"DIS": 50}})
    with gates.home_in_memory(tmp_path, gates.load(definition), monkeypatch) as home:
        home.write_ground_truth(gt)
        home.deliver("fresh", {"synthetic.csv": fresh()})
        home.deliver("copied", {"synthetic.csv": leaked(NAME, 0.5)})
        assert home.run_ground_truth().success
        assert home.run_gate("fresh").success
        assert not home.run_gate("copied").success
        published = pd.read_parquet(home.published("fresh") / "synthetic.parquet")
        assert set(published) == set(gt) - {"household", "weight"}
        dossier = home.dossier("fresh")
        public = render_page(dossier, "publication")
        secrets = [*gt["household"].head(20), *map(str, gt["weight"].iloc[::7].head(20))]
        assert not gates.files_with(tmp_path, secrets, ["ground_truth.csv"])
        written = gates.everything_logged(home.instance) + public
        # As a whole: the time of an event ends in any digits.
        assert not [secret for secret in secrets if re.search(rf"(?<!\d){re.escape(secret)}(?!\d)", written)]
        assert "individual" not in dossier["figures"]
        [units], [population] = (view_frame(dossier["figures"], name) for name in ("units", "population"))
        assert units["household_risk"] > units["individual_risk"] > 0
        page = home.record("fresh", "dossier.html").read_text(encoding="utf-8")
        assert f"and at least one member of {units['household_risk']:.1f} % of their units." in page
        assert f"names {population['repU_population']:.1f} % of the people rightly, if the model" in page
        assert "% of their units." in public
        assert "to somebody who does not know who took part" in public
        assert "of the population" in public


# Further confidential tables of such a gate, and groups within them; its holdout by units


def with_last_year(root: Path, last: pd.DataFrame, engine: str = "memory", **changes: Any) -> GateFolders:
    write(root / "gt.parquet", silc(1))
    write(root / "last.parquet", last)
    share_key(root / engine)
    return gate_at(root, engine, confidential={YEAR: "last.parquet"}, **changes)


def find_outcomes(gate: GateFolders, candidate: str) -> dict[str, str]:
    """The outcomes of the clauses on last year's table."""
    rows = json.loads(steps(gate, candidate, measured_anew=False)["dossier"])["clauses"]
    table = f" of {YEAR}"
    of_year = [row for row in rows if row["about"] and row["about"][0].endswith(table)]
    return {row["about"][0].removesuffix(table): row["outcome"] for row in of_year}


@pytest.mark.parametrize("engine", some_of(ENGINES))
def test_people_of_last_year_count_by_units(engine: str, tmp_path: Path) -> None:
    """Every record stands twice there, so that by records nobody is alone and no copy is found."""
    last = silc(3)
    gate = with_last_year(tmp_path, pd.concat([last, last], ignore_index=True), engine)
    copied = last.drop(columns="household").sample(frac=0.5, random_state=1)
    deliver(tmp_path, "fresh", fresh().iloc[::2], fresh().iloc[1::2], suffix=".parquet")
    deliver(tmp_path, "copied", pd.concat([copied, fresh().head(len(last) // 2)]), suffix=".parquet")
    assert set(find_outcomes(gate, "fresh").values()) == {"kept"}
    assert find_outcomes(gate, "copied")["whole"] == "exceeded"


def test_one_region_of_last_year(tmp_path: Path) -> None:
    last = silc(3)
    columns = gate_of(NAME)["columns"] | {"region": {"type": "category", "published": True}}
    gate = with_last_year(tmp_path, last, columns=columns)
    others, copied = fresh(), last[last["region"] == 4].drop(columns="household")
    sd = pd.concat([others[others["region"] != 4], copied])
    deliver(tmp_path, "region", sd, suffix=".parquet")
    assert find_outcomes(gate, "region")["in a group"] == "exceeded"


def test_a_table_without_the_unit_leaves_everything_undetermined(tmp_path: Path) -> None:
    gate = with_last_year(tmp_path, silc(3).drop(columns="household"))
    deliver(tmp_path, "fresh", fresh(), suffix=".parquet")
    found = steps(gate, "fresh")
    assert "household" in str(found["refused"]) and "dossier" not in found


def test_a_holdout_is_of_units(tmp_path: Path) -> None:
    """Its intervals are those of as many people, and who has records in both is told."""
    gate = with_last_year(tmp_path, silc(3), holdout=YEAR)
    deliver(tmp_path, "fresh", fresh(), suffix=".parquet")
    frames = steps(gate, "fresh", measured_anew=False)["frames"]
    rows = pd.read_csv(StringIO(frames["holdout"]))
    row = next(row for row in rows.to_dict("records") if row["measure"] == "iS")
    units = [table["household"].nunique() for table in (silc(1), silc(3))]
    shares = np.array([row["ground_truth"], row["holdout"]]) / 100
    error = np.sqrt((shares * (1 - shares) / units).sum()) * 196
    width = (row["difference_high"] - row["difference_low"]) / 2
    assert width == pytest.approx(error, rel=0.05)
