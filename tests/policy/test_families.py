"""A gate measures the families that its file switches on, shows them, and can bound every measure."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml
from support import gates
from support.paths import PACKAGE

import disclosure_pipeline as dp
from disclosure_pipeline.candidates.measuring import measure_tables, measure_without_controls
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

ALL_ON = {"protection": {"methods": ["cap", "zero_cap", "generalized_cap"]}, "prediction": True}


def gate(measures: dict[str, Any], bounds: dict[str, Any]) -> Gate:
    written = yaml.safe_load((PACKAGE / "defs" / "survey" / "defs.yaml").read_text())["attributes"]
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


TRUTH = population(400)
TABLES = (TRUTH.assign(weight=range(10, 410)), synthesise(TRUTH))


@cache
def measured_with_all() -> dp.Disclosure:
    """Measure a candidate of two equal files."""
    return gates.measured(gate(ALL_ON, {}), TABLES[0], [TABLES[1]] * 2)


def test_every_figure_of_a_gate_with_everything_on_has_a_value_and_can_be_bounded() -> None:
    bounds = {
        name: {
            word: 0 if word == "at_least" else min(figure.largest or 100, 99)
            for word in figure.statistics[:1]
        }
        for name, figure in BOUNDABLE.items()
        if figure.default is None
    }
    everything = gate(ALL_ON, bounds)
    opened = FramesInMemory((*TABLES, population(300, 9)), "memory")
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


def test_the_figures_are_those_of_the_library() -> None:
    result, keys = measured_with_all(), ["sex", "age", "region", "household"]
    actual = dp.disclosure_protection(*TABLES, keys, ["health"], "zero_cap").figures["score"].item()
    assert result.frame("protection").loc[("health", 2), "zero_cap__score"] == actual
    for target, name, special in (("health", "accuracy_SD", None), ("income", "mse_SD", {"income": [-8]})):
        predicted = dp.prediction_risk(*TABLES, keys, target, special_values=special).figures[name].iloc[0]
        assert result.frame("prediction").loc[(target, 1), name] == predicted


def test_a_family_that_is_off_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("measured although it is off")

    for where, name in (
        ("disclosure_pipeline.evaluation.figures", "cap_measures"),
        ("disclosure_pipeline.evaluation.figures", "chance"),
        ("disclosure_pipeline.candidates.measuring", "measure_protection"),
        ("disclosure_pipeline.candidates.measuring", "measure_prediction"),
    ):
        monkeypatch.setattr(f"{where}.{name}", never)
    off = gate({"attribution": False, "chance": False}, {})
    # The controls need the chance of permuted tables, whatever is told of the candidate.
    result = measure_without_controls(off, FramesInMemory(TABLES, "memory"))
    assert np.isfinite(result.attribute["DiSCO"]).all()
    assert "DiSCO_chance" not in result.attribute
    assert result.cap.empty
    assert Measures().prediction is Measures().protection is False


@pytest.mark.parametrize(
    ("measures", "bounds", "message"),
    [
        ({"attribution": False}, {"DCAP": 5}, "this figure is not measured: enable the family attribution"),
        ({"chance": False}, {"DiSCO": {"beyond": 5}}, "needs what chance gives: enable measures.chance"),
        ({}, {"protection": 0.5}, "enable the family protection"),
        ({}, {"gain_over_GT": 60}, "enable the family prediction"),
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


def test_the_dossier_shows_what_is_on_and_nothing_else() -> None:
    figures = {"DCAP", "protection", "gain_over_GT"}
    for measures, shown in (
        (ALL_ON, figures),
        ({"attribution": False}, set()),
        ({"protection": True}, {"DCAP", "protection"}),
    ):
        some = gate(measures, {})
        is_all = measures is ALL_ON
        result = measured_with_all() if is_all else gates.measured(some, TABLES[0], [TABLES[1]])
        text = to_markdown(build_dossier(some, "c", {}, result, judge(some.clauses(), result)))
        assert {figure for figure in figures if f"| {escape_markdown(figure)} (" in text} == shown
