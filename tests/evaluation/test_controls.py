"""The controls of a run: kept by a sound engine on any table, missed by one that can no longer see a leak."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import gates
from support.sampling import examples

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory.frames import FramesInMemory
from disclosure_pipeline.counting.samples import sample_positions
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.evaluation.controls import controls
from disclosure_pipeline.measures.identity import Identity, Uniques, identity
from disclosure_pipeline.measures.totals import KeySums, Totals, totals_of_keys
from disclosure_pipeline.policy.clauses import STANDARD_ERRORS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, decide, hold, judge
from disclosure_pipeline.tables.grouping import Grouping

SHIPPED = Path(dp.__file__).parent / "defs" / "survey" / "defs.yaml"


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.model_validate(yaml.safe_load(SHIPPED.read_text())["attributes"])


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    ground_truth = population(2000)
    return ground_truth, synthesise(ground_truth)


def verdict(gate: Gate, tables: tuple[pd.DataFrame, pd.DataFrame]) -> tuple[str, list[Judgement]]:
    judgements = judge(gate.clauses(), gates.measured(gate, tables[0], [tables[1]]))
    return decide(judgements), [j for j in judgements if j.clause.control and j.outcome != "kept"]


@examples(20)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from([1, 2, 5, 20]),
    st.sampled_from([1, 2, 6]),
    st.floats(0.5, 0.999),
)
def test_a_sound_engine_keeps_the_controls_on_any_table(
    seed: int, N_d: int, N_s: int, key_levels: int, target_levels: int, common: float
) -> None:
    rng = np.random.default_rng(seed)

    def random_table(records: int) -> pd.DataFrame:
        rare = rng.integers(0, target_levels, records)
        return pd.DataFrame(
            {
                "k": rng.integers(0, key_levels, records),
                "l": rng.integers(0, 3, records),
                "t": np.where(rng.random(records) < common, 0, rare),
            }
        )

    of_identity, of_attribute = controls(
        [random_table(N_d), random_table(N_s)], ["k", "l"], ["t"], Grouping({}, {}, "pooled"), seed=seed
    )
    assert (of_identity["copy_repU"] == of_identity["copy_UiO"]).all()
    assert (of_attribute["copy_DiSCO"] == of_attribute["copy_Dorig"]).all()
    assert (of_attribute["permuted_deviation"] <= STANDARD_ERRORS).all()


def test_the_copy_shows_the_figures_of_gt_itself(
    gate: Gate, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    result = gates.measured(gate, tables[0], [tables[1], tables[1]])
    of_itself = gates.measured(gate, tables[0], [tables[0]])
    assert result.frame("control_identity")["copy_UiO"].tolist() == [of_itself.identity["UiO"].iloc[0]] * 2
    assert result.frame("control_attribute").index.equals(result.attribute.index)
    found = result.frame("control_attribute").reset_index()
    health = found[(found["target"] == "health") & (found["synthesis"] == 2)].iloc[0]
    own = of_itself.attribute["DiSCO"].xs("health", level="target").iloc[0]
    assert health["copy_DiSCO"] == own > 0
    chance = result.attribute["DiSCO_chance"].xs("health", level="target")
    assert health["permuted_chance"] == chance.iloc[1]


def test_large_tables_are_sampled_with_a_seed(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    of_GT, of_SD = sample_positions([2000, 300], 300, seed=1)
    assert of_GT is not None and len(np.unique(of_GT)) == 300 and (np.diff(of_GT) > 0).all()
    assert of_SD is None
    opened = FramesInMemory(tables, "memory")
    first, again, other = (
        controls(opened.sample(300, seed), ["sex", "age"], ["health"], Grouping({}, {}, "pooled"))[1]
        for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(first, again)
    assert first["copy_Dorig"].iloc[0] != other["copy_Dorig"].iloc[0]
    in_parts = controls(
        opened.sample(300, 1), ["sex", "age"], ["health"], Grouping({}, {}, "pooled"), "partitioned"
    )[1]
    pd.testing.assert_frame_equal(first, in_parts)


# Where the formulas are used in memory.
TOTALS = ["counting.counts.totals_of_keys", "counting.memory.rare_keys.totals_of_keys"]


def blind_to_uniques(counts: Uniques, N_d: int, N_s: int) -> Identity:
    return replace(identity(counts, N_d, N_s), repU=0.0)


def blind_to_disclosure(k: KeySums) -> Totals:
    """Of a q with one level in SD, ds = s_q where one GT record has it."""
    return totals_of_keys(replace(k, ds=np.where(k.ds == k.s_q, 0, k.ds)))


def credulous(k: KeySums) -> Totals:
    found = totals_of_keys(k)
    return replace(found, records=replace(found.records, DiSCO=found.records.iS))


@pytest.mark.parametrize(
    ("modules", "broken", "missed"),
    [
        (["evaluation.figures.identity"], blind_to_uniques, {"copy_repU"}),
        (TOTALS, blind_to_disclosure, {"copy_DiSCO"}),
        (TOTALS, credulous, {"permuted_deviation"}),
    ],
)
def test_an_engine_that_is_broken_determines_nothing(
    gate: Gate,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    monkeypatch: pytest.MonkeyPatch,
    modules: list[str],
    broken: Callable[..., Any],
    missed: set[str],
) -> None:
    generous = gate.model_validate(gate.model_dump() | {"policy": {"repU": 100, "DiSCO": 100}})
    assert verdict(generous, tables) == ("approved", [])
    for module in modules:
        monkeypatch.setattr(f"disclosure_pipeline.{module}", broken)
    decision, controls_missed = verdict(generous, tables)
    assert decision == "undetermined"
    assert missed <= {judgement.clause.measure for judgement in controls_missed}
    assert all(judgement.outcome == "undetermined" for judgement in controls_missed)
    strict = gate.model_validate(gate.model_dump() | {"policy": {"repU": 0, "DiSCO": 0}})
    assert verdict(strict, tables)[0] == "undetermined"


def test_disclosure_where_chance_allows_none_is_infinitely_far_from_chance(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key combination, ten target levels: no permutation of SD discloses anything, so the error is 0."""
    records = pd.DataFrame({"k": ["a"] * 100, "t": [f"level {number % 10}" for number in range(100)]})

    def deviation() -> float:
        _, of_attribute = controls([records, records], ["k"], ["t"], Grouping({}, {}, "pooled"))
        assert of_attribute["permuted_chance"].tolist() == [0.0]
        return float(of_attribute["permuted_deviation"].iloc[0])

    assert deviation() == 0
    for module in TOTALS:
        monkeypatch.setattr(f"disclosure_pipeline.{module}", credulous)
    assert deviation() == math.inf
    clause = next(clause for clause in gate.clauses() if clause.measure == "permuted_deviation")
    assert hold(clause, [math.inf], 1).outcome == "undetermined"
