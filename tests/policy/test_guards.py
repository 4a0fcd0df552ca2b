"""Guards: clauses of every gate, over all columns; loosened they say so, and nothing lets one pass."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from disguises import tables as disguises
from pydantic import ValidationError
from support import gates
from support.gates import definition

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.evidence.dossier import build_dossier, to_markdown
from disclosure_pipeline.policy.bounds import DEFAULTS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, decide, judge

LOOSE: dict[str, Any] = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0}


def gate(**guards: Any) -> Gate:
    return Gate.model_validate(definition(policy=LOOSE | ({"guards": guards} if guards else {})))


def judged(of: Gate, *tables: pd.DataFrame) -> dict[str, Judgement]:
    result = gates.measured(of, gates.ground_truth(), tables)
    return {judgement.clause.name: judgement for judgement in judge(of.clauses(), result)}


def broken(judgements: dict[str, Judgement]) -> set[str]:
    return {name for name, each in judgements.items() if each.outcome != "kept" and not each.clause.warns}


def test_every_gate_has_them() -> None:
    """That of an amount with a band where there is one."""
    bounds = {clause.measure: clause.bound for clause in gate().clauses() if clause.measure in DEFAULTS}
    assert bounds | {"guessed_within_beyond": 6} == DEFAULTS
    assert all(clause.loosened_from is None for clause in gate().clauses())


@pytest.mark.parametrize(
    "guards",
    [
        {"people_copied_beyond": 100},
        {"unique_copies_beyond": 100},
        {"unique_copies_beyond": math.inf},
        {"partial_copies_beyond": None},
        {"guessed_beyond": 100},
        {"guessed_beyond": {"at_most": 100}},
        {"nearer": 100},
        {"nearer": False},
        {"nearer": 49},
        {"relabelled": 1},
        {"missing_beyond": 100},
        {"equal_content": 1},
    ],
)
def test_none_can_be_left_out(guards: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        gate(**guards)


def test_they_are_no_measures_of_a_policy() -> None:
    with pytest.raises(ValidationError, match="write another bound of it under guards"):
        Gate.model_validate(definition(policy=LOOSE | {"nearer": 80}))


def test_a_loosened_one_says_so() -> None:
    loosened = gate(nearer=80, unique_copies_beyond=1)
    honest = gates.honest()
    judgements = judged(loosened, honest)
    assert "loosened from 70" in str(judgements["nearer"].clause)
    assert "allowed are 80 (loosened: by default 70)" in str(judgements["nearer"])
    assert "loosened" not in str(judgements["unique_copies_beyond"])
    result = gates.measured(loosened, gates.ground_truth(), [honest])
    dossier = build_dossier(loosened, "c", {}, result, list(judgements.values()))
    rows = {row["name"]: row["loosened_from"] for row in dossier["clauses"]}
    assert rows["nearer"] == 70
    assert rows["unique_copies_beyond"] is None
    assert "Guard nearer is loosened: 80 instead of 70." in to_markdown(dossier)


@pytest.mark.parametrize("measures", [{}, {"attribution": False, "chance": False}])
def test_what_is_guessed_is_bounded_whatever_is_measured(measures: dict[str, Any]) -> None:
    """Of each target, in each file and in all of them together."""
    of = Gate.model_validate(definition(policy=LOOSE, measures=measures))
    truth = gates.ground_truth()
    halves = [truth.iloc[start::2].reset_index(drop=True) for start in range(2)]
    result = gates.measured(of, truth, halves)
    judgements = {each.clause.name: each for each in judge(of.clauses(), result)}
    assert result.stacked is not None
    for target in of.targets:
        judgement = judgements[f"guessed_beyond[{target}]"]
        together = result.stacked.frame("guessed").loc[(target, 1), "guessed_beyond"]
        each = result.frame("guessed")["guessed_beyond_chance"].xs(target, level="target")
        assert judgement.value == max(together, *each)
        assert judgement.limit == 6
        assert judgement.outcome == "exceeded"
    assert result.cap.empty == bool(measures)


@pytest.mark.parametrize(("seed", "figure", "bound"), [(6, "unique_copies", 2.5), (15, "partial_copies", 4)])
def test_what_chance_does_in_a_small_table_is_shown_and_not_refused(
    seed: int, figure: str, bound: float
) -> None:
    """Independent columns, 300 records: the figure is beyond its bound, and within what chance adds."""
    bounded = gate(**{f"{figure}_beyond": bound})
    result = gates.measured(bounded, gates.ground_truth(), [gates.honest(seed)])
    figures = result.frame("guards").loc[1]
    assert figures[f"{figure}_beyond"] > bound
    assert figures[f"{figure}_beyond_chance"] == 0
    judgements = judge(bounded.clauses(), result)
    assert decide(judgements) == "approved"


def test_a_near_copy_that_is_repeated_is_one() -> None:
    """A fifth of the synthetic records hits one person in all but one column: one person is nearly copied."""
    truth, honest = gates.ground_truth(), gates.honest(15)
    near = truth.iloc[[0] * (len(honest) // 5)].copy()
    changed = near.columns[-1]
    near[changed] = next(value for value in truth[changed].unique() if value != truth[changed].iloc[0])
    candidate = pd.concat([honest.iloc[len(near) :], near], ignore_index=True)
    result = gates.measured(gate(), truth, [candidate])
    by_records = result.frame("partial_copies")["unique_copies_beyond"].max()
    once = float(result.frame("guards")["partial_copies_beyond"].iloc[0])
    assert by_records > DEFAULTS["partial_copies_beyond"] > once


@pytest.mark.parametrize("copies", [4, 20])
def test_a_few_records_that_are_all_verbatim_are_refused(copies: int) -> None:
    """What chance adds in small tables lets no table of verbatim records pass."""
    truth = population(2_000)
    of = Gate.model_validate(disguises.definition("survey"))
    result = gates.measured(of, truth, [truth.tail(copies).reset_index(drop=True)])
    assert {each.clause.measure for each in judge(of.clauses(), result) if each.outcome == "exceeded"} >= {
        "unique_copies_beyond",
        "partial_copies_beyond",
    }


def test_many_small_files_are_judged_as_one_table() -> None:
    """In none of ten files more records are copied than chance allows; in all together there are."""
    truth = population(2_000)
    copied = leak(synthesise(truth), truth, 0.04)
    parts = [copied.iloc[start::10].reset_index(drop=True) for start in range(10)]
    of = Gate.model_validate(disguises.definition("survey"))
    result = gates.measured(of, truth, parts)
    by_file = result.frame("guards")
    assert by_file["unique_copies_beyond"].max() > 2.5
    assert (by_file["unique_copies_beyond_chance"] <= 2.5).sum() >= 5
    assert result.stacked is not None
    assert result.stacked.frame("guards")["unique_copies_beyond_chance"][1] > 2.5
    judgements = {each.clause.name: each for each in judge(of.clauses(), result)}
    assert judgements["unique_copies_beyond"].outcome == "exceeded"


def test_the_digest_tells_another_bound() -> None:
    assert gate(nearer=80).policy_digest() != gate().policy_digest()


def test_equal_content_is_said_in_these_words() -> None:
    """Also of a part of GT; other clauses refuse it as well."""
    for table in (gates.ground_truth(), gates.ground_truth().head(100)):
        judgements = judged(gate(), table)
        assert judgements["equal_content"].outcome == "undetermined"
        assert "equal content to the ground truth" in str(judgements["equal_content"])
        assert decide(tuple(judgements.values())) == "refused"
    assert "equal_content" not in broken(judged(gate(), gates.honest()))


@pytest.mark.parametrize("table", ["two binary columns", "equal records"])
def test_a_table_that_tells_no_one_apart_cannot_be_judged(table: str) -> None:
    """A policy may accept that; else even GT itself would be approved."""
    levels = ["a", "b"] if table == "two binary columns" else ["a"]
    gt, sd = (
        pd.DataFrame({name: rng.choice(levels, 400) for name in ("k", "t")})
        for rng in map(np.random.default_rng, (1, 2))
    )
    columns = {name: {"type": "category", "levels": ["a", "b"]} for name in ("k", "t")}
    for guards, decision in (({}, "undetermined"), ({"alike": 100}, "approved")):
        policy = LOOSE | {"guards": guards}
        of = Gate.model_validate(definition(keys=["k"], targets=["t"], columns=columns, policy=policy))
        judgements = {each.clause.name: each for each in judge(of.clauses(), gates.measured(of, gt, [sd]))}
        assert broken(judgements) == ({"alike"} if not guards else set())
        assert decide(tuple(judgements.values())) == decision
        if not guards:
            assert str(judgements["alike"]) == "alike: nothing to measure here: the table tells no one apart"


def test_renamed_values_leave_a_candidate_undetermined() -> None:
    """Nothing else is broken: keys and targets are drawn apart, and one category has other names."""
    truth = gates.ground_truth().assign(work=np.where(np.arange(300) % 10 < 7, "office", "none"))
    of = gate()
    sd = gates.honest().assign(work=np.where(np.arange(298) % 10 < 7, "none", "office"))
    result = gates.measured(of, truth, [sd])
    judgements = {each.clause.name: each for each in judge(of.clauses(), result)}
    assert broken(judgements) == {"relabelled"}
    assert str(judgements["relabelled"]) == "relabelled: the values of this column look renamed: work"
    assert decide(tuple(judgements.values())) == "undetermined"


def test_missing_values_leave_a_candidate_undetermined() -> None:
    """Nothing else is broken, by holes in every second record; a gate may let them be, which is told."""
    holes = np.arange(298) % 2 == 0
    sd = gates.honest().assign(work=lambda table: table["work"].where(~holes))
    truth = gates.ground_truth()
    judgements = judged(gate(), sd)
    assert broken(judgements) == {"missing_beyond"}
    assert str(judgements["missing_beyond"]) == (
        "missing_beyond: values of this column are missing that the ground truth has: work"
    )
    assert decide(tuple(judgements.values())) == "undetermined"
    loosened = judged(gate(missing_beyond=60), sd)
    assert not broken(loosened) and loosened["missing_beyond"].clause.loosened_from == 20
    # What GT lacks itself is nothing beyond it.
    of_both = gates.measured(gate(), truth.assign(work=truth["work"].where(truth.index % 2 == 0)), [sd])
    assert of_both.frame("guards")["missing_beyond_chance"][1] <= 0


@pytest.mark.parametrize(
    ("frame", "name"), [("guards", "nearer_beyond_chance"), ("guessed", "guessed_beyond_chance")]
)
@pytest.mark.parametrize("damage", ["missing", "column", "infinite"])
def test_a_guard_without_a_figure_is_not_kept(frame: str, name: str, damage: str) -> None:
    of = gate()
    result = gates.measured(of, gates.ground_truth(), [gates.honest()])
    figures = result.frame(frame)
    changed = {
        "missing": pd.DataFrame(),
        "column": figures.drop(columns=name),
        "infinite": figures.assign(**{name: math.nan}),
    }[damage]
    judgements = judge(of.clauses(), replace(result, **{frame: changed}))
    assert decide(judgements) == "undetermined"
