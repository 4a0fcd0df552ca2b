"""Bounds of what goes beyond other people's records and beyond chance: one policy for every target."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.gates import gate, judged
from support.judging import measured_alone

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.evaluation.figures import (
    add_beyond_chance,
    add_differences_beyond_chance,
    measure_hits,
)
from disclosure_pipeline.evaluation.long_table import tabulate_figures
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.validation import validate
from disclosure_pipeline.measures.copies import Combinations
from disclosure_pipeline.measures.samples import Sizes

pytestmark = pytest.mark.usefixtures("no_guards")

NAN = math.nan


BEYOND = gate(policy={"unique_hits": 3, "DiSCO": {"beyond": 3}, "DCAP": {"beyond": 3}})


@pytest.fixture(scope="module")
def result() -> Disclosure:
    """The figures of two files, of which one is honest."""
    return measured_alone(BEYOND, gates.ground_truth(), [gates.honest(1), gates.ground_truth()])


STRICT = gate(policy={name: {"beyond": 3, "chance": 0} for name in ("unique_hits", "DiSCO", "DCAP")})


@pytest.mark.parametrize(
    ("errors", "outcome", "value"),
    [
        (1.2, "exceeded", 5.0),
        (1.6, "kept", 0.0),
        (NAN, "undetermined", None),
        (math.inf, "undetermined", None),
    ],
)
def test_it_is_broken_only_beyond_chance(
    result: Disclosure, errors: float, outcome: str, value: float | None
) -> None:
    """Once in 10,000 for two targets is 3.9 errors away; what is strict knows no errors."""
    alone = replace(result, N_s=result.N_s[:1], stacked=None, subgroups=result.subgroups.head(0))
    identity = alone.identity.head(1).assign(unique_hits_beyond=5.0, unique_hits_beyond_se=errors)
    attribute, cap = (of.xs(1, level="synthesis", drop_level=False) for of in (alone.attribute, alone.cap))
    attribute = attribute.assign(DiSCO_beyond=5.0, DiSCO=16.0, DiSCO_chance=10.0, DiSCO_beyond_se=errors)
    cap = cap.assign(DCAP_beyond=5.0, DCAP_beyond_se=errors)
    found = replace(
        alone,
        identity=add_beyond_chance(identity, "unique_hits_beyond"),
        attribute=add_beyond_chance(attribute, "DiSCO_beyond", 2),
        cap=add_differences_beyond_chance(alone.attribute, cap, 2)[1],
    )
    for name in ("unique_hits beyond", "DiSCO[work] beyond", "DCAP[work] beyond"):
        with_chance = judged(BEYOND, found)[name]
        assert (with_chance.outcome, with_chance.value) == (outcome, value)
        strict = judged(STRICT, found)[name]
        assert (strict.outcome, strict.value) == ("exceeded", 5.0)
        assert "tightened to leave nothing to chance" in str(strict.clause)


def with_figures(result: Disclosure, figures: list[tuple[Any, Any]]) -> Disclosure:
    """DiSCO beyond others and chance, and beyond permuted targets, of both files and of all of them."""

    def changed(of: Disclosure, rows: list[tuple[Any, Any]]) -> Disclosure:
        repeated = rows * len(of.targets)
        beyond, excess = ([row[place] for row in repeated] for place in (0, 1))
        changes: dict[str, Any] = {"DiSCO_beyond_chance": beyond, "DiSCO": excess, "DiSCO_chance": 0.0}
        return replace(of, attribute=of.attribute.assign(**changes))

    assert result.stacked is not None
    return replace(changed(result, figures[:2]), stacked=changed(result.stacked, figures[2:]))


@pytest.mark.parametrize(
    ("figures", "value", "outcome"),
    [
        ([(3, 50), (50, 3), (-1, 0)], 3, "kept"),
        ([(3, 50), (50, math.nextafter(3, 4)), (0, 0)], math.nextafter(3, 4), "exceeded"),
        ([(0, 0), (0, 0), (4, 5)], 4, "exceeded"),
        ([(-2, 7), (-3, 7), (7, -1)], -1, "kept"),
        ([(0, NAN), (0, 0), (0, 0)], None, "undetermined"),
        ([(NAN, 0), (0, 0), (0, 0)], None, "undetermined"),
        ([(0, 0), (0, 0), (0, math.inf)], None, "undetermined"),
        ([(0, 0), (-math.inf, 0), (0, 0)], None, "undetermined"),
    ],
)
def test_it_is_broken_where_both_are_exceeded(
    result: Disclosure, figures: list[tuple[Any, Any]], value: float | None, outcome: str
) -> None:
    judgements = judged(BEYOND, with_figures(result, figures))
    for target in BEYOND.targets:
        judgement = judgements[f"DiSCO[{target}] beyond"]
        assert (judgement.value, judgement.outcome) == (value, outcome)


@pytest.mark.parametrize("name", ["DiSCO_beyond_chance", "DiSCO_chance", "DiSCO"])
def test_without_one_of_both_it_is_undetermined(result: Disclosure, name: str) -> None:
    assert result.stacked is not None
    for damaged in (
        replace(result, attribute=result.attribute.drop(columns=name)),
        replace(result, attribute=pd.DataFrame()),
        replace(
            result, stacked=replace(result.stacked, attribute=result.stacked.attribute.drop(columns=name))
        ),
        replace(result, stacked=None),
    ):
        assert judged(BEYOND, damaged)["DiSCO[work] beyond"].outcome == "undetermined"


def test_a_copy_is_beyond_both(result: Disclosure) -> None:
    alone = measured_alone(BEYOND, gates.ground_truth(), [gates.honest(1)])
    for measured, outcome in ((result, "exceeded"), (alone, "kept")):
        assert judged(BEYOND, measured)["DiSCO[income] beyond"].outcome == outcome


def test_beside_at_most_both_have_to_be_kept(result: Disclosure) -> None:
    policy = {"repU": 100, "DiSCO": {"at_most": 5, "beyond": 3, "targets": {"work": {"beyond": 1}}}}
    both = gate(policy=policy)
    bounds = {clause.name: clause.bound for clause in both.clauses() if clause.figure.startswith("DiSCO")}
    assert bounds == {"DiSCO[income]": 5, "DiSCO[income] beyond": 3, "DiSCO[work] beyond": 1}
    judgements = judged(both, with_figures(result, [(2, 9)] * 3))
    assert judgements["DiSCO[income]"].outcome == "exceeded"
    assert judgements["DiSCO[income] beyond"].outcome == "kept"


OF_ANY = gate(
    policy={
        "repU": 100,
        "DiSCO": 100,
        "DiSCO_any": {"beyond": 3, "targets": {"work": {"beyond": 3, "chance": 0}}},
    }
)


@pytest.mark.parametrize(
    ("seeds", "outcome"), [((1, 2), "kept"), ((1, None), "exceeded"), ((None,), "exceeded")]
)
def test_several_files_are_bounded_as_one_release(seeds: tuple[int | None, ...], outcome: str) -> None:
    """Honest files differ as fresh samples do, which is no leak; of one file DiSCO_beyond is meant.

    The expectation suite agrees, which reads the dossier alone.
    """
    truth = gates.ground_truth(150)
    files = [truth if seed is None else gates.honest(seed) for seed in seeds]
    result = measured_alone(OF_ANY, truth, files)
    judgements = judged(OF_ANY, result)
    assert judgements["DiSCO_any[income] beyond"].outcome == outcome
    frame, column = (
        (result.together, "DiSCO_any_beyond")
        if len(files) > 1
        else (result.attribute.droplevel("synthesis"), "DiSCO_beyond")
    )
    assert judgements["DiSCO_any[work] beyond"].value == frame.loc["work", column]
    kept = validate(OF_ANY.clauses(), tabulate_figures(result), len(files)).kept
    assert {name: kept[name] for name in judgements} == {
        name: judgement.outcome == "kept" for name, judgement in judgements.items()
    }
    damaged = replace(result, together=pd.DataFrame(), attribute=result.attribute.head(0))
    assert judged(OF_ANY, damaged)["DiSCO_any[income] beyond"].outcome == "undetermined"


@pytest.mark.parametrize(("records", "times", "pairs"), [(130, 1, 2), (200, 1, 4), (200, 5, 4), (500, 1, 8)])
def test_hits_of_fresh_people_are_hardly_ever_beyond_chance(records: int, times: int, pairs: int) -> None:
    """Few pairs of people tell little of how often others hit one: up to 7 of 100 were beyond 3.7 errors."""
    rng, levels = np.random.default_rng([records, times]), records**2 // (2 * pairs)
    sizes, beyond = Sizes(records, times * records), 0
    for _ in range(2_000):
        d, s = (np.bincount(rng.integers(0, levels, n), minlength=levels) for n in (sizes.N_d, sizes.N_s))
        hits = measure_hits(Combinations.of_records(d).count_hits(s), sizes, 0.0)
        beyond += hits["unique_hits_beyond_chance"] > 0
    assert beyond <= 1


# Tables that tell of nobody


PEOPLE = population(3000, seed=1)
KEYS_OF_PEOPLE = ["sex", "age", "household"]


def uniform(seed: int) -> pd.DataFrame:
    """Values that nobody's record was looked at for: each one drawn from the list of levels."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(sorted(PEOPLE[name].dropna().unique()), 3000) for name in PEOPLE})


def test_a_copy_is_refused_as_before() -> None:
    copy, keys = PEOPLE.sample(3000, replace=True, random_state=1), [*KEYS_OF_PEOPLE, "region"]
    copied = dp.disclosure(PEOPLE, copy, keys, "health").identity.loc[1]
    assert copied["unique_hits_beyond"] == copied["unique_hits"] - copied["unique_hits_others"] > 15
    assert copied["unique_hits_beyond_chance"] == copied["unique_hits_beyond"]


@pytest.mark.parametrize("keys", [KEYS_OF_PEOPLE, ["age", "region", "education"]])
def test_columns_drawn_apart_are_at_most_what_is_expected(keys: list[str]) -> None:
    """Whatever the columns were made from: the people themselves, or uniform levels."""
    beyond = []
    for table in (PEOPLE, uniform(1)):
        for seed in range(4):
            rng = np.random.default_rng(seed)
            drawn = pd.DataFrame({name: rng.permutation(table[name].to_numpy()) for name in table})
            hits = dp.disclosure(PEOPLE, drawn, keys, "health").identity.loc[1]
            beyond.append(hits["unique_hits_beyond"] / hits["unique_hits_beyond_se"])
    assert max(beyond) < 3
    assert np.mean(beyond) < 0.5


def test_a_table_of_uniform_levels_is_not_refused_for_whom_it_hits() -> None:
    """Beyond other people's records alone it would be by 10 points: rare combinations are too frequent."""
    columns = ["sex", "age", "household", "region", "health"]
    kinds = {name: {"type": "category"} for name in columns} | {"age": {"type": "integer"}}
    policy = {"unique_hits": 3, "DiSCO": {"beyond": 3}}
    of_gate = gate(policy=policy, columns=kinds, keys=KEYS_OF_PEOPLE, targets=["health"])
    found = gates.measured(of_gate, PEOPLE[columns], [uniform(42)[columns]])
    hits = found.identity.to_dict("index")[1]
    assert hits["unique_hits"] - hits["unique_hits_others"] > 9
    assert hits["unique_hits_apart"] > 15
    assert hits["unique_hits_beyond"] < 2 * hits["unique_hits_beyond_se"]
    assert hits["unique_hits_beyond_chance"] <= 0
    judgements = judged(of_gate, found)
    assert not [clause for clause, judgement in judgements.items() if judgement.outcome == "exceeded"]
    row = judgements["unique_hits beyond"].row
    assert row is not None and row.others == hits["unique_hits_apart"] > hits["unique_hits_others"]
