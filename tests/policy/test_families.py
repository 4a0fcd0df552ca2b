"""A gate measures the families that its file switches on, shows them, and can bound every measure."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from support import gates
from support.figures import without_guards

import disclosure_pipeline as dp
from disclosure_pipeline.candidates.measuring import measure_tables
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.evaluation.long_table import tabulate_figures
from disclosure_pipeline.evidence.dossier import build_dossier, to_markdown
from disclosure_pipeline.measures.catalogue import BOUNDABLE
from disclosure_pipeline.policy.bounds import Measures
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge
from disclosure_pipeline.tables.messages import escape_markdown

SHIPPED = Path(dp.__file__).parent / "defs" / "survey" / "defs.yaml"
ALL_ON = {"protection": {"methods": ["cap", "zero_cap", "generalized_cap"]}, "prediction": True}


def gate(measures: dict[str, Any], bounds: dict[str, Any]) -> Gate:
    written = yaml.safe_load(SHIPPED.read_text())["attributes"]
    del written["columns"]["income"]["groups"]
    written["columns"]["income"]["within"] = 0.02
    return Gate.model_validate(
        written
        | {
            "measures": measures,
            "targets": ["income", "health"],
            "weight": "weight",
            "confidential": {"others": "others.csv"},
            "holdout": "others",
            "policy": {"repU": 100, "DiSCO": 100, "DiSCO_within": 100} | bounds,
        }
    )


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    ground_truth = population(400)
    return ground_truth.assign(weight=range(10, 410)), synthesise(ground_truth)


def test_every_figure_of_a_gate_with_everything_on_has_a_value_and_can_be_bounded(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    bounds = {
        name: {
            word: 0 if word == "at_least" else min(figure.largest or 100, 99)
            for word in figure.statistics[:1]
        }
        for name, figure in BOUNDABLE.items()
        if figure.default is None
    }
    everything = gate(ALL_ON, bounds)
    opened = FramesInMemory((*tables, population(300, 9)), "memory")
    result = measure_tables(everything, opened.only([0, 1]), "memory", opened)
    rows = tabulate_figures(result)
    for name, figure in BOUNDABLE.items():
        about = {row.about for row in rows if row.figure == name}
        if figure.place.frame == "bands":
            assert about == {"income"}
        elif name == "gain_over_GT":
            assert about >= {"health"}
        elif figure.about == "target":
            assert about == set(everything.targets)
        elif not figure.is_of_release:
            assert about
    # Copies of the holdout's records, and of releases, are another step's.
    clauses = [
        clause
        for clause in everything.clauses()
        if not (clause.column or "").endswith("others")
        and clause.entry is not None
        and not clause.entry.is_of_release
    ]
    outcomes = {judgement.clause.name: judgement.outcome for judgement in judge(clauses, result)}
    assert set(outcomes.values()) == {"kept"}
    assert "gain_over_GT[health]" in outcomes
    assert "gain_over_GT[income]" not in outcomes


def test_the_figures_are_those_of_the_library(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    with without_guards():
        result = gates.measured(gate(ALL_ON, {}), tables[0], [tables[1], tables[1]])
    keys = ["sex", "age", "region", "household"]
    actual = dp.disclosure_protection(*tables, keys, ["health"], "zero_cap")
    assert result.frame("protection").loc[("health", 2), "zero_cap__score"] == actual.figures["score"].item()
    predicted = dp.prediction_risk(*tables, keys, "health")
    assert (
        result.frame("prediction").loc[("health", 1), "accuracy_SD"]
        == predicted.figures["accuracy_SD"].iloc[0]
    )
    number = dp.prediction_risk(*tables, keys, "income", special_values={"income": [-8]})
    assert result.frame("prediction").loc[("income", 1), "mse_SD"] == number.figures["mse_SD"].iloc[0]


def test_a_family_that_is_off_is_not_computed(
    tables: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("measured although it is off")

    for where, name in (
        ("disclosure_pipeline.evaluation.figures", "cap_measures"),
        ("disclosure_pipeline.evaluation.figures", "chance"),
        ("disclosure_pipeline.candidates.measuring", "measure_protection"),
        ("disclosure_pipeline.candidates.measuring", "measure_prediction"),
    ):
        monkeypatch.setattr(f"{where}.{name}", never)
    # The controls need the chance of permuted tables, whatever is told of the candidate.
    nothing = (pd.DataFrame(), pd.DataFrame())
    monkeypatch.setattr("disclosure_pipeline.candidates.measuring.controls", lambda *_: nothing)
    off = gate({"attribution": False, "chance": False}, {})
    with without_guards():
        result = gates.measured(off, tables[0], [tables[1]])
    assert np.isfinite(result.attribute["DiSCO"]).all()
    assert "DiSCO_chance" not in result.attribute
    assert result.cap.empty
    assert Measures().prediction is Measures().protection is False


@pytest.mark.parametrize(
    ("measures", "bounds", "message"),
    [
        ({"attribution": False}, {"DCAP": 5}, "this figure is not measured: enable the family attribution"),
        ({"attribution": False}, {"DCAP": {"beyond": 5}}, "enable the family attribution"),
        ({"chance": False}, {"DiSCO": {"beyond": 5}}, "needs what chance gives: enable measures.chance"),
        ({}, {"protection": 0.5}, "enable the family protection"),
        ({}, {"gain_over_GT": 60}, "enable the family prediction"),
        ({"protection": True}, {"protection": {"at_most": 0.5}}, "is bounded by at_least, not by at_most"),
        ({}, {"DCAP": {"at_least": 5}}, "DCAP is bounded by at_most or beyond, not by at_least"),
        ({"prediction": True}, {"gain_over_GT": {"targets": {"income": 5}}}, "predicted by classification"),
        ({"prediction": {"learner": "guess"}}, {}, "nearest_neighbours"),
        ({"protection": {"methods": []}}, {}, "at least 1"),
        ({"protections": True}, {}, "protections"),
    ],
)
def test_a_bound_on_what_is_not_measured_is_refused_when_the_file_is_read(
    measures: dict[str, Any], bounds: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        gate(measures, bounds)


def test_the_dossier_shows_what_is_on_and_nothing_else(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    figures = {"DCAP", "protection", "gain_over_GT"}
    for measures, shown in (
        (ALL_ON, figures),
        ({"attribution": False}, set()),
        ({"protection": True}, {"DCAP", "protection"}),
    ):
        some = gate(measures, {})
        with without_guards():
            result = gates.measured(some, tables[0], [tables[1]])
        text = to_markdown(build_dossier(some, "c", {}, result, judge(some.clauses(), result)))
        assert {figure for figure in figures if f"| {escape_markdown(figure)} (" in text} == shown
