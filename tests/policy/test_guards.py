"""Guards: clauses of every gate, over all columns; loosened they say so, and nothing lets one pass."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from disguises import tables as disguises
from hypothesis import given
from hypothesis import strategies as st
from support import gates
from support.sampling import examples, on_some_days, some_of

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.counting.partitioned.opened_files import FramesInParts
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.evaluation.counts import FEWEST_OF_GROUP, WholeRecords
from disclosure_pipeline.evaluation.guards import GuardFrames, measure_guards
from disclosure_pipeline.evaluation.record_sets import RecordSets, count_record_sets
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import build_dossier, to_markdown
from disclosure_pipeline.measures.catalogue import DEFAULTS
from disclosure_pipeline.measures.chance import beyond_chance, guesses_by_chance
from disclosure_pipeline.measures.people import PeopleCounts, Repeats, repeats
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import Judgement, decide, judge, order_judgements
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

pytestmark = on_some_days

LOOSE: dict[str, Any] = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0}


def gate(**guards: Any) -> Gate:
    return gates.gate(policy=LOOSE | guards)


def judged(of: Gate, *tables: pd.DataFrame) -> dict[str, Judgement]:
    return gates.judged(of, gates.measured(of, gates.ground_truth(), tables))


@cache
def measured_honest() -> Disclosure:
    """Figures of a fresh candidate, which no bound changes."""
    return gates.measured(gate(), gates.ground_truth(), [gates.honest()])


def broken(judgements: dict[str, Judgement]) -> set[str]:
    return {name for name, each in judgements.items() if each.outcome != "kept" and not each.clause.warns}


def test_every_gate_has_them() -> None:
    """That of an amount with a band where there is one."""
    bounds = {clause.figure: clause.default_bound for clause in gate().clauses() if clause.figure in DEFAULTS}
    assert bounds.keys() | {"guessed_within"} == DEFAULTS.keys()
    clauses = [clause for clause in gate().clauses() if clause.figure != "detection_limit"]
    assert all(clause.bound == clause.default_bound for clause in clauses if clause.default_bound)
    assert all(clause.loosened_from is None for clause in clauses)


def test_a_bound_of_one_target_leaves_the_default_of_the_others() -> None:
    of = gate(guessed={"targets": {"work": 9}})
    bounds = {clause.name: clause.bound for clause in of.clauses() if clause.figure == "guessed"}
    assert bounds == {"guessed[work] beyond": 9, "guessed[income] beyond": 6}


def test_a_loosened_one_says_so() -> None:
    loosened, result = gate(found={"nearly": 20, "whole": 1}), measured_honest()
    judgements = gates.judged(loosened, result)
    assert "loosened from 10" in str(judgements["found[nearly] beyond"].clause)
    assert "(loosened from 10)" in write_sentence(judgements["found[nearly] beyond"])
    assert "loosened" not in write_sentence(judgements["found[whole] beyond"])
    dossier = build_dossier(loosened, "c", {}, result, list(judgements.values()))
    rows = {row["name"]: row["loosened_from"] for row in dossier["clauses"]}
    assert rows["found[nearly] beyond"] == 10
    assert rows["found[whole] beyond"] is None
    assert "Guard found[nearly] beyond is loosened: 20 instead of 10." in to_markdown(dossier)


@pytest.mark.parametrize("measures", [{}, {"attribution": False, "chance": False}])
def test_guesses_are_bounded_whatever_is_measured(measures: dict[str, Any]) -> None:
    """The bound covers each target, in each file and in all of them together."""
    of = gates.gate(policy=LOOSE, measures=measures)
    truth = gates.ground_truth()
    halves = [truth.iloc[start::2].reset_index(drop=True) for start in range(2)]
    result = gates.measured(of, truth, halves)
    judgements = gates.judged(of, result)
    assert result.stacked is not None
    judgement = judgements["guessed beyond"]
    together = result.stacked.frame("guessed")["guessed_beyond_chance"].max()
    assert judgement.value == max(together, result.frame("guessed")["guessed_beyond_chance"].max())
    assert judgement.limit == 6
    assert judgement.outcome == "exceeded"
    assert judgement.clause.about == tuple(of.targets)
    assert result.cap.empty == bool(measures)


def test_a_level_that_is_excluded_explains_no_guesses_of_others() -> None:
    """Chance adds the lead of the most frequent level among the people who are left, not of "none"."""
    random = np.random.default_rng(5)
    jobs = [f"job {number}" for number in range(30)]
    truth, fresh = (
        pd.DataFrame(
            {
                "sex": random.choice(["f", "m"], 600),
                "age": random.integers(20, 320, 600),
                "work": np.where(random.random(600) < 0.45, "none", random.choice(jobs, 600)),
            }
        )
        for _ in range(2)
    )
    leaky = pd.concat([truth.head(300), fresh.head(300)], ignore_index=True)
    of = gates.gate(
        policy=LOOSE,
        columns={"sex": {"type": "category"}, "age": {"type": "integer"}, "work": {"type": "category"}},
        targets=["work"],
        exclusions={"target_levels": {"work": ["none"]}},
    )
    outcomes = {}
    for name, table in {"fresh": fresh, "leaky": leaky}.items():
        result = gates.measured(of, truth, [table])
        outcomes[name] = gates.judged(of, result)["guessed[work] beyond"].outcome
        most = truth["work"].value_counts(normalize=True).drop("none").max()
        others, beyond = result.guessed[["guessed_others", "guessed_beyond"]].iloc[0]
        by_chance = guesses_by_chance(others + beyond, others, 100 * most, Sizes(600, 600))
        assert result.guessed["guessed_by_chance"].item() == pytest.approx(by_chance)
    assert outcomes == {"fresh": "kept", "leaky": "exceeded"}


@pytest.mark.parametrize(("seed", "way", "bound"), [(6, "whole", 2.5), (15, "all but one", 4)])
def test_a_figure_that_chance_explains_is_shown_and_not_refused(seed: int, way: str, bound: float) -> None:
    """Independent columns, 300 records: the figure is beyond its bound, and within what chance adds."""
    bounded = gate(found={way.replace(" ", "_"): bound})
    result = gates.measured(bounded, gates.ground_truth(), [gates.honest(seed)])
    assert result.found["found"][way, 1] > bound
    assert result.found["found_beyond_chance"][way, 1] == 0
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
    assert by_records > 7 > result.found["found"]["all but one", 1]


@pytest.mark.parametrize("copies", [4, 20])
def test_a_few_records_that_are_all_verbatim_are_refused(copies: int) -> None:
    """The allowance for chance in small tables lets no table of verbatim records pass."""
    truth = population(2_000)
    of = Gate.model_validate(disguises.definition("survey"))
    result = gates.measured(of, truth, [truth.tail(copies).reset_index(drop=True)])
    assert {each.clause.name for each in judge(of.clauses(), result) if each.outcome == "exceeded"} >= {
        "found[whole] beyond",
        "found[all but one] beyond",
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
    assert gates.judged(of, result)["found[whole] beyond"].outcome == "exceeded"


def test_equal_content_is_the_first_reason() -> None:
    """Also of a part of GT; other clauses refuse it as well."""
    for table in (gates.ground_truth(), gates.ground_truth().head(100)):
        judgements = judged(gate(), table)
        first, *_ = order_judgements(judgements.values())
        assert first is judgements["equal_content"] and first.outcome == "exceeded"
        assert "every record of the other, unchanged" in write_sentence(first)
        assert decide(tuple(judgements.values())) == "refused"
    assert "equal_content" not in broken(gates.judged(gate(), measured_honest()))


@pytest.mark.parametrize("table", ["two binary columns", "equal records"])
def test_a_table_that_tells_no_one_apart_cannot_be_judged(table: str) -> None:
    """A policy may accept that; else even GT itself would be approved."""
    levels = ["a", "b"] if table == "two binary columns" else ["a"]
    gt, sd = (
        pd.DataFrame({name: rng.choice(levels, 400) for name in ("k", "t")})
        for rng in map(np.random.default_rng, (1, 2))
    )
    columns = {name: {"type": "category", "levels": ["a", "b"]} for name in ("k", "t")}
    strict, lax = (
        gates.gate(keys=["k"], targets=["t"], columns=columns, policy=LOOSE | guards)
        for guards in ({}, {"alike": 100})
    )
    result = gates.measured(strict, gt, [sd])
    for of, failing, decision in ((strict, {"alike"}, "undetermined"), (lax, set[str](), "approved")):
        judgements = gates.judged(of, result)
        assert (broken(judgements), decide(tuple(judgements.values()))) == (failing, decision)
    assert write_sentence(gates.judged(strict, result)["alike"]) == (
        "The table tells no one apart, so nothing can be measured of it."
    )


ALL = population(1, 1).columns
COARSE = ["sex", "region", "household", "education", "work", "health"]


def judge_demo(records: int, columns: Sequence[str], **guards: Any) -> Judgement:
    """Judge by how many copies would be noticed, in an honest synthesis of some of the demo's people."""
    people = population(records, 1)
    dictionary = {
        name: {"type": "integer" if pd.api.types.is_numeric_dtype(people[name]) else "category"}
        for name in columns
    }
    policy = {**LOOSE, "detection_limit": {"at_most": 10}, **guards}
    of = gates.gate(columns=dictionary, keys=[columns[0]], targets=[columns[-1]], policy=policy)
    result = gates.measured(of, people[list(columns)], [synthesise(people, 2)[list(columns)]])
    return gates.judged(of, result)["detection_limit"]


@pytest.mark.parametrize(
    ("records", "columns", "guards", "kept"),
    [
        (94, ALL, {}, False),  # as few people as could all be copied by chance
        (94, ALL, {"detection_limit": 60}, True),
        (600, COARSE, {}, False),
        (2000, ALL, {}, True),
        (600, ALL, {"found": {"whole": 25}}, False),  # so much is allowed
        (600, COARSE[:2], {"alike": 100}, True),  # nobody can be told apart
    ],
)
def test_an_approval_that_would_miss_many_copies_is_none(
    records: int, columns: Sequence[str], guards: dict[str, Any], kept: bool
) -> None:
    judgement = judge_demo(records, columns, **guards)
    assert judgement.outcome == ("kept" if kept else "undetermined")
    assert judgement.value is not None and (judgement.value <= 10 or guards or not kept)
    sentence = write_sentence(judgement)
    assert sentence.startswith(
        f"The gate would have noticed if {judgement.value:.1f} % of the people were in the"
    )
    assert ("More published columns, fewer groups or more people" in sentence) is not kept


def test_renamed_values_leave_a_candidate_undetermined() -> None:
    """Nothing else is broken: keys and targets are drawn apart, and one category has other names."""
    truth = gates.ground_truth().assign(work=np.where(np.arange(300) % 10 < 7, "office", "none"))
    of = gate()
    sd = gates.honest().assign(work=np.where(np.arange(298) % 10 < 7, "none", "office"))
    judgements = gates.judged(of, gates.measured(of, truth, [sd]))
    assert broken(judgements) == {"relabelled"}
    assert write_sentence(judgements["relabelled"]) == (
        "The values of a column look renamed, so that comparing them means nothing: work."
    )
    assert decide(tuple(judgements.values())) == "undetermined"


def test_missing_values_leave_a_candidate_undetermined() -> None:
    """Nothing else is broken, by holes in every second record; a gate may let them be, which is told."""
    holes = np.arange(298) % 2 == 0
    sd = gates.honest().assign(work=lambda table: table["work"].where(~holes))
    truth = gates.ground_truth()
    result = gates.measured(gate(), truth, [sd])
    judgements = gates.judged(gate(), result)
    assert broken(judgements) == {"missing"}
    assert write_sentence(judgements["missing"]) == (
        "Values of a column are missing that the ground truth has: work."
    )
    assert decide(tuple(judgements.values())) == "undetermined"
    loosened = gates.judged(gate(missing=60), result)
    assert not broken(loosened) and loosened["missing"].clause.loosened_from == 20
    # What GT lacks itself is nothing beyond it.
    of_both = gates.measured(gate(), truth.assign(work=truth["work"].where(truth.index % 2 == 0)), [sd])
    assert of_both.frame("guards")["missing_beyond_chance"][1] <= 0


@pytest.mark.parametrize("frame", ["found", "guessed"])
def test_a_guard_without_a_figure_is_not_kept(frame: str) -> None:
    name, result = f"{frame}_beyond_chance", measured_honest()
    figures = result.frame(frame)
    for changed in (pd.DataFrame(), figures.drop(columns=name), figures.assign(**{name: math.nan})):
        judgements = judge(gate().clauses(), replace(result, **{frame: changed}))
        assert decide(judgements) == "undetermined"


# People found in one group, levels that one person has, and records that stand twice


ROW = st.tuples(st.sampled_from(["north", "south", None]), st.sampled_from(["x", "y"]), st.integers(0, 4))
ROWS = st.lists(ROW, min_size=1, max_size=30)
COLUMNS = ["ward", "job", "age"]


def count(tables: Sequence[pd.DataFrame], *, in_parts: bool = False) -> RecordSets:
    opened: OpenedTables = (FramesInParts if in_parts else FramesInMemory)(tuple(tables), "memory")
    columns = opened.code(list(tables[0].columns), grouping_of(), ignore_progress)
    return count_record_sets(opened, columns)[0]


def measure(tables: Sequence[pd.DataFrame], *, in_parts: bool = False, fewest: int = 10) -> GuardFrames:
    return measure_guards(count(tables, in_parts=in_parts), WholeRecords(fewest))


def repeats_of(*tables: pd.DataFrame) -> Repeats:
    """What the guards say of repeats alone."""
    records = count(tables)
    return repeats(records.keys[0].people, records.sizes[0], records.records_per_unit)


def towns(random: np.random.Generator, records: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "ward": [f"ward {n}" for n in random.integers(0, 100, records)],
            "job": random.choice(list("abcdef"), records),
            "age": random.integers(18, 95, records),
            "income": random.integers(500, 5_000, records),
            "rooms": random.integers(1, 8, records),
        }
    )


PEOPLE, FRESH, OTHERS = (towns(np.random.default_rng(seed), 5_000) for seed in (1, 8, 9))
WARD = PEOPLE[PEOPLE["ward"] == "ward 7"]
WITH_WARD = pd.concat([FRESH[FRESH["ward"] != "ward 7"], WARD], ignore_index=True)


def test_a_ward_whose_people_are_all_there() -> None:
    """It is one percent of the table. Levels of few people are no groups; engines agree."""
    figures = measure([PEOPLE, WITH_WARD])
    beyond = figures.found["found_beyond_chance"].xs(1, level="synthesis")
    assert beyond["whole"] < 2.5 and beyond["in a group"] > 90
    fresh = measure([PEOPLE, OTHERS]).found["found_beyond_chance"]
    assert fresh[("in a group", 1)] <= 0
    for fewest, is_found in ((len(WARD), True), (len(WARD) + 100, False)):
        in_groups = measure([PEOPLE, WITH_WARD], fewest=fewest).found["found"]["in a group", 1]
        assert (in_groups > 90) == is_found
    assert FEWEST_OF_GROUP == 10
    in_parts = measure([PEOPLE, WITH_WARD], in_parts=True)
    for name in ("columns_apart", "guards", "found"):
        pd.testing.assert_frame_equal(getattr(figures, name), getattr(in_parts, name), check_exact=True)


def test_columns_drawn_apart_within_a_group_pass() -> None:
    """Few columns find people who are alone, as they do in the whole table."""
    random = np.random.default_rng(3)
    people = pd.DataFrame(
        {"ward": random.choice(["a", "b"], 400, p=[0.9, 0.1]), "age": random.permutation(400)}
    )
    in_b = people["ward"] == "b"
    apart = people.copy()
    for rows in (np.flatnonzero(in_b), np.flatnonzero(~in_b)):
        apart.loc[rows, "age"] = random.choice(people["age"].to_numpy()[rows], len(rows))
    assert measure([people, apart]).found["found_beyond_chance"]["in a group", 1] <= 0


def test_a_column_that_tells_who_somebody_is() -> None:
    """A free text that six in ten have to themselves, in another order: no record is a copy."""
    random = np.random.default_rng(4)
    people = towns(random, 1_000)
    people["remark"] = [f"remark {n}" if n < 600 else f"common {n % 20}" for n in range(1_000)]
    table = towns(random, 1_000).assign(remark=random.permutation(people["remark"]))
    figures = measure([people, table])
    assert figures.partial_copies["people_copied_beyond_chance"].loc[("remark alone", 1)] > 20
    assert figures.found["found_beyond_chance"]["all but one", 1] > 7
    drawn = table.assign(remark=random.choice(people["remark"], 1_000))
    figures = measure([people, drawn])
    assert figures.partial_copies["people_copied_beyond_chance"].loc[("remark alone", 1)] <= 0


@examples(40)
@given(ROWS, ROWS)
def test_repeats_are_those_of_a_count_in_loops(gt: list[Any], sd: list[Any]) -> None:
    numbers = Counter(sd)
    figures = repeats_of(*(pd.DataFrame(rows, columns=COLUMNS).astype({"ward": object}) for rows in (gt, sd)))
    twice = sum(numbers[row] > 1 for row in sd)
    assert figures.repeated == pytest.approx(100 * twice / len(sd))
    assert figures.repeats == pytest.approx(figures.repeated - figures.repeats_expected)


@pytest.mark.parametrize(("times", "ages"), some_of(product([1, 3, 20], [80, 3]), 3, part_in_ci=1))
def test_fresh_tables_repeat_no_more_than_is_expected(times: int, ages: int) -> None:
    """People are nearly all different, or often the same."""
    for seed in range(10):
        random = np.random.default_rng([seed, times, ages])
        people, table = (
            towns(random, n).assign(age=random.integers(0, ages, n), income=0) for n in (500, 500 * times)
        )
        figures = repeats_of(people, table)
        assert beyond_chance(figures.repeats, figures.repeats_by_chance) <= 0
        assert figures.repeats < 20


def test_decoys_that_stand_twice() -> None:
    """Whoever takes out what stands twice is left with the confidential records."""
    random = np.random.default_rng(5)
    people, decoys = towns(random, 500), towns(random, 2_000)
    table = pd.concat([people, decoys, decoys], ignore_index=True)
    figures = measure([people, table]).guards.to_dict("index")[1]
    assert figures["repeats_beyond_chance"] > 60
    assert measure([people, decoys]).guards["repeats_beyond_chance"].iloc[0] <= 0


def test_repeats_of_tables_where_nobody_is_alone() -> None:
    figures = repeats(PeopleCounts(alone=0, pairs=5, found=0, alone_in_SD=0), Sizes(10, 10))
    assert (figures.repeated, figures.repeats_expected, figures.repeats) == (100, 100, 0)
