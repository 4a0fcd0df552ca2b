"""Clauses, verdicts and the digest of a policy: only a finite figure within a finite bound passes."""

import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from pydantic import ValidationError
from support import gates
from support.gates import definition, gate
from support.judging import judge_values, measured_alone

import disclosure_pipeline as dp
from disclosure_pipeline.errors import ComparabilityWarning, CopiesWarning
from disclosure_pipeline.evaluation.long_table import tabulate_figures
from disclosure_pipeline.measures.catalogue import DEFAULTS, FIGURES
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.policy.clauses import KEY_OVERLAPS, Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import Judgement, decide, judge, round_judgements

NAN = math.nan


def gate_with(**policy: Any) -> Gate:
    """Return the small gate with bounds that nothing exceeds, some replaced or (None) left out."""
    bounds = {"repU": 100, "DiSCO": 100} | policy
    return gate(policy={name: bound for name, bound in bounds.items() if bound is not None})


@pytest.fixture(scope="module")
def result() -> dp.Disclosure:
    """Measure three syntheses: an honest one, a copy of GT, and another honest one."""
    tables = [gates.honest(1), gates.ground_truth(), gates.honest(3)]
    return measured_alone(gate_with(), gates.ground_truth(), tables)


def clauses_without_guards(**policy: Any) -> list[Clause]:
    """Return the clauses of a policy but the guards, which no copy of GT keeps, and the controls."""
    guards = {"equal_content", "controls", "warnings", *DEFAULTS}
    return [clause for clause in gate_with(**policy).clauses() if clause.figure not in guards]


def judged(result: dp.Disclosure, **policy: Any) -> dict[str, Judgement]:
    return {judgement.clause.name: judgement for judgement in judge(clauses_without_guards(**policy), result)}


def verdict(result: dp.Disclosure, **policy: Any) -> str:
    return decide(judge(clauses_without_guards(**policy), result))


def refusal(**changes: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        gate(**changes)
    return str(caught.value)


OF_BOTH = "set a bound on repU or unique_hits, DiSCO of work, DiSCO of income"


@pytest.mark.parametrize(
    ("policy", "missing"),
    [
        ({}, OF_BOTH),
        ({"DiSCO": {"beyond": 3}}, "set a bound on repU or unique_hits"),
        ({"repU": 5}, "set a bound on DiSCO of work, DiSCO of income"),
        ({"unique_hits": 5, "DiSCO": {"targets": {"work": {"beyond": 3}}}}, "set a bound on DiSCO of income"),
        ({"DCAP": 5, "missing": 10}, OF_BOTH),
    ],
)
def test_refuses_a_policy_without_the_required_bounds(policy: Mapping[str, Any], missing: str) -> None:
    assert missing in refusal(policy=policy)


@pytest.mark.parametrize(
    "bound", [True, False, "5", "five", None, [5], -1, NAN, math.inf, -math.inf, {}, {"at_most": None}]
)
def test_refuses_a_bound_that_is_no_number(bound: Any) -> None:
    """YAML reads `yes` as true, which must not count as a bound of 1."""
    assert refusal(policy={"repU": bound, "DiSCO": 5})
    assert refusal(policy={"repU": 5, "DiSCO": {"at_most": 5, "targets": {"work": bound}}})
    if not isinstance(bound, dict) and bound is not None:
        for word in ("at_most", "at_most_share", "beyond"):
            assert refusal(policy={"repU": 5, "DiSCO": {word: bound}})


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        # Every table keeps it, or none
        ({"repU": 100.01}, "repU is never above 100"),
        ({"DiSCO": {"at_most": 5, "targets": {"work": 101}}}, "DiSCO is never above 100"),
        ({"DCAP": {"at_most": 5, "over": "mean", "worst": 101}}, "DCAP is never above 100"),
        ({"DCAP": {"beyond": 101}}, "never above 100"),
        ({"repU": {"at_most_share": 1}}, "at_most_share of repU is 1, which every table keeps"),
        *(({"repU": {"at_most_share": share}}, "at_most_share") for share in (1.01, -0.01, 50)),
        ({"protection": {"at_least": 1.01}}, "protection is never above 1"),
        ({"gain_over_GT": 101}, "gain_over_GT is never above 100"),
        ({"DiSCO": {"beyond": 100}}, "every table keeps"),
        *(({"key_overlap": value}, "") for value in (-1, 101, NAN, True, None)),
        *(({"smallest_count": value}, "") for value in (0, 2.5, True)),
        # It contradicts itself, or what is measured
        ({"repU": {"at_most": 5, "over": "median"}}, "over"),
        ({"repU": {"at_most": 5, "below": 3}}, "below"),
        ({"repU": {"at_most": 5, "targets": {"work": 3}}}, "repU is not measured by target"),
        ({"DiSCO": {"at_most": 5, "targets": {"age": 3}}}, "age"),  # a key
        ({"DiSCO": {"at_most": 5, "targets": {"wrok": 3}}}, "wrok"),
        ({"DiSCO": {"at_most": 5, "targets": {"work": {"at_most": 3, "over": "mean"}}}}, "over"),
        ({"DiSCO": {}}, "is empty"),
        ({"DiSCO": {"beyond": 3, "over": "mean", "worst": 50}}, "over: mean"),
        ({"DCAP": {"at_most_share": 0.5}}, "at_most_share"),  # of what?
        ({"repU": {"at_least": 5}}, "not by at_least"),
        ({"repU": {"beyond": 3}}, "repU is bounded by at_most or at_most_share, not by beyond"),
        ({"missing": {"beyond": 5}}, "not by beyond"),
        ({"repU": {"at_most": 5, "chance": 0}}, "chance of repU applies to no bound of it"),
        ({"DiSCO": {"at_most": 5, "chance": 0}}, "chance of DiSCO applies to beyond"),
        ({"DiSCO": {"beyond": 5, "chance": 1}}, "Input should be 0"),
        ({"DiSCO_beyond_strictly": 5}, "write DiSCO: {beyond: …, chance: 0"),
        ({"one_way": "warn"}, "one_way"),
        ({"guards": {}}, "guards"),
        # A guard may be loosened, but not left out
        ({"found": 5}, "found"),
        ({"found": {"half": 5}}, "Possible are 'whole', 'all_but_one'"),
        ({"found": {"whole": 100}}, "less than 100"),
        ({"found": {"whole": {"at_most": 5}}}, "bounded by beyond, not by at_most"),
        ({"found": {"whole": {}}}, "the bound of found is empty"),
        ({"found": {"nearly": math.inf}}, "found"),
        ({"found": {"whole": False}}, "found"),
        *(({name: 100}, "") for name in ("guessed", "missing")),
        *(({name: 1}, "") for name in ("relabelled", "equal_content", "controls")),
        ({"guessed": {"beyond": 100}}, "guessed"),
    ],
)
def test_refuses_a_bound_that_means_nothing(policy: Mapping[str, Any], message: str) -> None:
    bounds = {"repU": 5, "DiSCO": 5} | dict(policy)
    assert message in refusal(policy=bounds, measures={"protection": True, "prediction": True})


def test_refuses_an_unknown_measure() -> None:
    for name in ("repu", "disco", "DCAP_", "anything", "one_way_flags"):
        message = refusal(policy={"repU": 5, "DiSCO": 5, name: 5})
        assert f"policy.{name}\n" in message and "a policy has no such figure" in message
        assert "found, shared_with_releases" not in message
    assert "Did you mean 'repU'" in refusal(policy={"repU": 5, "DiSCO": 5, "repu": 5})


# Every name that a policy could bound before figures were bounded by their own name, and what to write.
EARLIER = {
    **{
        f"{name}_beyond": f"write {name}: {{beyond: …}}"
        for name in ("unique_hits", "DiSCO", "DiSCO_any", "DiSCO_within", "DCAP", "guessed")
    },
    "DiSCO_excess": "write DiSCO: {beyond: …}",
    "DiSCO_in_releases_beyond": "write DiSCO_any: {beyond: …}",
    **dict.fromkeys(("people_copied_beyond", "unique_copies"), "write found: {whole: …}"),
    "partial_copies": "write found: {all_but_one: …}",
    "group_copied": "write found: {in_a_group: …}",
    **dict.fromkeys(("nearer", "much_nearer"), "write found: {nearly: …}"),
    "people_in_releases": "write found: {whole: …}, which also holds for all releases",
    "missing_beyond": "write missing: {at_most: …}",
    "unique_hits_beyond_strictly": "write unique_hits: {beyond: …, chance: 0}",
    "advantage_records_strictly": "write advantage_records: {at_most: …, chance: 0}",
    "repU_weighted": "write repU: {at_most: …} and people: weighted in the gate",
    "DiSCO_beyond_weighted": "write DiSCO: {beyond: …} and people: weighted in the gate",
    **dict.fromkeys(
        (
            *("UiO", "UiOiS", "UiS", "Dorig", "Dsyn", "iS", "DiS", "DiSDiO", "max_denom", "mean_denom"),
            *("CAPd", "CAPs", "TCAP", "TCAP_taub", "baseCAPd", "pct_predicted_correctly", "mse_SD"),
            *("iS_others", "DiSCO_others", "DiSCO_at_n", "unique_hits_beyond_se", "TVD_column_beyond"),
            *("accuracy_SD", "RAPID", "cap__cap_protection", "TPR_at_1", "AUC", "repU_population"),
        ),
        "is read, not bounded",
    ),
    "guards": "write each figure itself",
    **dict.fromkeys(("one_way", "two_way"), "bound nothing: remove it"),
}


@pytest.mark.parametrize("name", EARLIER)
def test_an_earlier_name_says_what_to_write(name: str) -> None:
    assert EARLIER[name] in refusal(policy={"repU": 5, "DiSCO": 5, name: 5})


def test_a_policy_of_six_lines_has_about_as_many_clauses_as_figures() -> None:
    attributes = yaml.safe_load((Path(dp.__file__).parent / "defs/survey/defs.yaml").read_text())[
        "attributes"
    ]
    clauses = Gate.model_validate(attributes).clauses()
    assert len(clauses) == 21 + 7  # a clause for each way in which people are found
    assert {clause.figure for clause in clauses} <= set(FIGURES)


def test_a_gate_has_a_clause_for_every_bound() -> None:
    actual = gate(
        policy={
            "repU": {"at_most": 8, "at_most_share": 0.5, "over": "mean", "worst": 40},
            "DiSCO": {"at_most": 12, "targets": {"income": {"at_most_share": 0.4}}},
            "DCAP": {"targets": {"work": 60}},
            "guessed": {"beyond": 5, "chance": 0},
            "unique_hits": 4,
            "key_overlap": 70,
        }
    ).clauses()
    wanted = {
        Clause("repU", "at_most", 8, over="mean"),
        Clause("repU", "at_most_share", 0.5, over="mean"),
        Clause("repU", "at_most", 40),
        Clause("DiSCO", "at_most", 12, ("work",)),
        Clause("DiSCO", "at_most_share", 0.4, ("income",)),
        Clause("DCAP", "at_most", 60, ("work",)),
        Clause("guessed", "beyond", 5, ("work",), chance=False),
        Clause("guessed", "beyond", 5, ("income",), chance=False),
        Clause("unique_hits", "beyond", 4),
        Clause("key_overlap", "at_least", 70, ("sex", "age")),
    }
    assert wanted <= set(actual)
    of_every_gate = {name for name, figure in FIGURES.items() if figure.default} - {"guessed_within"}
    assert {clause.figure for clause in actual} == of_every_gate | {clause.figure for clause in wanted}
    assert len({clause.name for clause in actual}) == len(actual)


def test_people_found_are_bounded_by_the_way_in_which_they_are_found() -> None:
    policy = {"repU": 8, "DiSCO": 12, "found": {"whole": 1, "in_pieces": {"beyond": 20, "chance": 0}}}
    clauses = [clause for clause in gate(policy=policy).clauses() if clause.figure == "found"]
    default = FIGURES["found"].default
    assert default is not None
    by_way = {way: Clause("found", "beyond", default.find_bound(way), (way,)) for way in WAYS}
    by_way["whole"] = Clause("found", "beyond", 1, ("whole",))
    by_way["in pieces"] = Clause("found", "beyond", 20, ("in pieces",), chance=False)
    assert clauses == list(by_way.values())
    assert [clause.bound for clause in clauses] == [1, 7, 10, 20, 15, 10, 30]


def test_similar_target_names_neither_duplicate_nor_lose_a_clause() -> None:
    """Column names may hold anything, so check names are not made from them."""
    from disclosure_pipeline.orchestration.steps import group_clauses

    columns = {name: {"type": "category"} for name in ("sex", "a b", "a_b", "a/b", "ä b")}
    actual = gate(
        columns=columns, keys=["sex"], targets=["a b", "a_b", "a/b", "ä b"], policy={"repU": 5, "DiSCO": 5}
    ).clauses()
    checks = group_clauses(actual)
    assert len({clause.name for clause in actual}) == len(actual)
    grouped = [clause.name for check in checks for clause in check.clauses]
    assert sorted(grouped) == sorted(clause.name for clause in actual if clause.figure not in KEY_OVERLAPS)
    assert len({(check.asset, check.name) for check in checks}) == len(checks)
    assert all(check.name.replace("_", "").isalnum() and check.name.isascii() for check in checks)


WORST, MEAN = Clause("repU", "at_most", 5), Clause("repU", "at_most", 5, over="mean")
LEAST = Clause("key_overlap", "at_least", 50, ("age",))
HALF = Clause("repU", "at_most_share", 0.5)  # of the risk in GT


@pytest.mark.parametrize(
    ("clause", "figures", "originals", "value", "limit", "outcome"),
    [
        (WORST, [5.0], [], 5.0, 5, "kept"),
        (WORST, [5.0 + 1e-12], [], 5.0 + 1e-12, 5, "exceeded"),
        (WORST, [0.0], [], 0.0, 5, "kept"),
        (WORST, [1.0, 6.0, 2.0], [], 6.0, 5, "exceeded"),
        (MEAN, [1.0, 6.0, 2.0], [], 3.0, 5, "kept"),
        (MEAN, [4.0, 9.0, 5.0], [], 6.0, 5, "exceeded"),
        *(
            (WORST, figures, [], None, None, "undetermined")
            for figures in ([], [NAN], [NAN, 1.0], [1.0, NAN], [math.inf], [-math.inf])
        ),
        (MEAN, [1.0, NAN], [], None, None, "undetermined"),
        (LEAST, [50.0], [], 50.0, 50, "kept"),
        (LEAST, [49.9], [], 49.9, 50, "exceeded"),
        (LEAST, [80.0, 20.0], [], 20.0, 50, "exceeded"),  # the worst is the smallest
        *((LEAST, figures, [], None, None, "undetermined") for figures in ([NAN], [NAN, 80.0])),
        (HALF, [4.0], [10.0], 4.0, 5.0, "kept"),
        (HALF, [6.0], [10.0], 6.0, 5.0, "exceeded"),
        (HALF, [0.0], [0.0], 0.0, 0.0, "kept"),  # nobody is at risk, and nobody is disclosed
        (HALF, [1.0], [0.0], 1.0, 0.0, "exceeded"),
        *((HALF, [1.0], originals, None, None, "undetermined") for originals in ([NAN], [math.inf], [])),
    ],
)
def test_only_a_finite_figure_within_its_limit_is_kept(
    clause: Clause,
    figures: list[float],
    originals: list[float],
    value: float | None,
    limit: float | None,
    outcome: str,
) -> None:
    judgement = judge_values(clause, figures, owns=originals)
    assert (judgement.value, judgement.limit, judgement.outcome) == (value, limit, outcome)


WRITTEN_ALIKE = "are written alike, but those of many ground truth records"


@pytest.mark.parametrize(
    ("measure", "column", "sd", "figure", "advice"),
    [
        ("key_overlap", "k", ["a", "b", "c"], 60, WRITTEN_ALIKE),
        ("key_overlap", "k", ["a", "x"], 20, "has values of k that the ground truth lacks: compare"),
        ("whole_key_overlap", None, ["x"], 0, "The combinations of all keys are hardly shared"),
        ("target_overlap", "t", ["a", "b"], 40, WRITTEN_ALIKE),
        ("target_overlap", "t", ["x"], 0, "has values of t that the ground truth lacks: compare"),
    ],
)
def test_a_broken_overlap_says_its_figure_and_what_to_do(
    measure: str, column: str | None, sd: list[str], figure: float, advice: str
) -> None:
    gt = pd.DataFrame({"k": ["a", "b", "c", "d", "e"] * 20, "t": ["a", "b", "c", "d", "e"] * 20})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComparabilityWarning)
        result = dp.disclosure(gt, gt.assign(**{column or "k": (sd * 100)[:100]}), ["k"], "t")
    about = () if column is None else (column,)
    [judgement] = judge([Clause(measure, "at_least", 80, about)], result)
    for shown in (judgement, Judgement.from_row(judgement.to_row())):
        sentence = write_sentence(shown)
        assert re.match(rf"{figure:.1f} % of the records share .*; at least 80 % is needed\. ", sentence)
        assert advice in sentence and f"lower policy.{measure} knowingly" in sentence
    [public] = round_judgements([judgement], [100, 100], 10)
    rounded = rf"At least {figure:.1f} % of .* \(rounded down to 10 records\); at least 80 % is needed"
    assert re.match(rounded, write_sentence(public))
    [kept] = judge([Clause(measure, "at_least", figure, about)], result)
    assert kept.note == "" and kept.outcome == "kept"


def test_a_sentence_on_copies_says_of_whom_its_percentage_is() -> None:
    """A group's is of those in it, and of a table that is smaller than the people it is of its records."""
    rng = np.random.default_rng(5)
    people, others = (
        pd.DataFrame({"ward": rng.integers(0, 20, 2_000).astype(str), "pay": rng.integers(0, 10**6, 2_000)})
        for _ in range(2)
    )
    ward = pd.concat([others[others["ward"] != "7"], people[people["ward"] == "7"]])
    few = pd.concat([people[:30], others[:70]])
    in_a_group = (
        r"100\.0 % of the people are in the synthetic table, among those of one group of ward; with as "
    )
    in_a_group += r"many records of other people it would be \d+\.\d %; 10 points more are allowed\."
    whole = r"30\.0 % of the synthetic records copy one person each, whole; with as many records of other "
    whole += r"people it would be \d\.\d %; 2\.5 points more are allowed\."
    for table, way, bound, said in ((ward, "in a group", 10.0, in_a_group), (few, "whole", 2.5, whole)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CopiesWarning)
            rows = tabulate_figures(dp.disclosure(people, table, ["ward"], "pay"))
        [row] = [row for row in rows if (row.figure, row.about) == ("found", way)]
        clause = Clause("found", "beyond", bound, (way,))
        judgement = Judgement(clause, row.beyond_chance, bound, "exceeded", row=row)
        assert re.fullmatch(said, write_sentence(judgement))


def test_a_judgement_needs_a_finite_bound_and_a_figure_of_every_synthesis() -> None:
    for files in (0, 1, 3):
        assert judge_values(WORST, [1.0, 1.0], files).outcome == "undetermined"
    for bound in (NAN, math.inf):
        assert judge_values(replace(WORST, bound=bound), [1.0]).outcome == "undetermined"


def judgement(outcome: Any, *, warns: bool = False) -> Judgement:
    return Judgement(Clause("repU", "at_most", 5, warns=warns), 1.0, 5.0, outcome)


@pytest.mark.parametrize(
    ("judgements", "decision"),
    [
        ([judgement("kept")], "approved"),
        ([judgement("kept"), judgement("exceeded", warns=True)], "approved"),
        ([judgement("kept"), judgement("exceeded")], "refused"),
        ([judgement("undetermined"), judgement("exceeded")], "refused"),
        ([judgement("kept"), judgement("undetermined")], "undetermined"),
        ([judgement("kept"), judgement("undetermined", warns=True)], "undetermined"),
        ([judgement("kept"), judgement("something else")], "undetermined"),
        ([judgement("kept", warns=True)], "undetermined"),  # nothing that could refuse
        ([], "undetermined"),
    ],
)
def test_decides_from_all_judgements(judgements: list[Judgement], decision: str) -> None:
    assert decide(judgements) == decision


def test_a_bound_applies_to_the_worst_synthesis_or_to_the_mean(result: dp.Disclosure) -> None:
    repU = result.identity["repU"]
    assert judged(result)["repU"].value == repU.max() == repU[2]  # the copy
    both = {"at_most": 8, "over": "mean", "worst": 100}
    assert judged(result, repU=both)["repU (mean)"].value == pytest.approx(repU.mean())
    assert verdict(result, repU=8) == "refused"
    assert verdict(result, repU=both) == "approved"
    assert verdict(result, repU=both | {"worst": 9}) == "refused"


@pytest.mark.parametrize("bound", [{"at_most": 5}, {"targets": {"work": 5, "income": 5}}])
def test_a_bound_on_the_mean_requires_one_on_the_worst(bound: dict[str, Any]) -> None:
    """One bad synthesis could hide behind the others."""
    message = refusal(policy={"repU": 5, "DiSCO": bound | {"over": "mean"}})
    assert "only the mean of DiSCO is bounded" in message
    clauses = gate(policy={"repU": 5, "DiSCO": bound | {"over": "mean", "worst": 9}}).clauses()
    work = ("work",)
    assert {Clause("DiSCO", "at_most", 5, work, "mean"), Clause("DiSCO", "at_most", 9, work)} <= set(clauses)
    assert "DiSCO has worst without over: mean" in refusal(policy={"repU": 5, "DiSCO": bound | {"worst": 9}})


def test_all_files_together_must_keep_a_bound() -> None:
    """GT cut into ten files discloses little in each file and everything in all of them."""
    ground_truth = gates.ground_truth()
    parts = [ground_truth.iloc[start::10].reset_index(drop=True) for start in range(10)]
    result = measured_alone(gate_with(), ground_truth, parts)
    whole = measured_alone(gate_with(), ground_truth, [ground_truth])
    assert result.stacked is not None
    assert result.stacked.identity["repU"][1] == whole.identity["repU"][1] > 3 * result.identity["repU"].max()
    between = 2 * float(result.identity["repU"].max())
    assert judged(result, repU=between)["repU"].value == whole.identity["repU"][1]
    assert verdict(result, repU=between) == "refused"
    assert judged(replace(result, stacked=None))["repU"].outcome == "undetermined"


def test_excluding_too_many_records_is_undetermined() -> None:
    exclusions = {"target_levels": {"work": ["office", "field"]}}
    result = gates.measured(gate(exclusions=exclusions), gates.ground_truth(), [gates.honest()])
    taken = float(gates.ground_truth()["work"].isin(["office", "field"]).mean() * 100)
    assert taken > 50
    for most, outcome in ((50, "undetermined"), (taken - 0.01, "undetermined"), (taken + 0.01, "kept")):
        actual = gates.judged(gate(exclusions=exclusions | {"at_most": most}), result)["excluded"]
        assert (actual.outcome, actual.column) == (outcome, "work")
        assert actual.value == pytest.approx(taken)
    assert not [clause for clause in gate().clauses() if clause.figure == "excluded"]
    assert "at_most" in refusal(exclusions=exclusions | {"at_most": 100})


def test_a_bound_on_a_target_replaces_the_general_one(result: dp.Disclosure) -> None:
    disco = result.attribute["DiSCO"].groupby("target").max()
    between = float(disco.mean())
    assert disco["work"] > between > disco["income"]
    assert verdict(result, DiSCO=between) == "refused"
    assert verdict(result, DiSCO={"at_most": between, "targets": {"work": 100}}) == "approved"
    assert verdict(result, DiSCO={"at_most": 100, "targets": {"work": between}}) == "refused"
    assert verdict(result, DiSCO={"targets": {"work": 100, "income": 0}}) == "refused"


def test_a_copy_keeps_a_relative_bound_only_at_a_share_of_1(result: dp.Disclosure) -> None:
    whole = {"at_most_share": 1, "at_most": 100}
    assert verdict(result, repU=whole, DiSCO=whole) == "approved"
    assert verdict(result, repU={"at_most_share": 0.99}) == "refused"
    assert verdict(result, DiSCO={"at_most_share": 0.99}) == "refused"
    actual = judged(result, repU={"at_most_share": 0.5})["repU share"]
    assert actual.limit == pytest.approx(0.5 * result.identity["UiO"][1])


def test_flags_are_shown_and_bound_nothing() -> None:
    flagging = gate(one_way=[0, 0], two_way=[0, 0], policy={"repU": 100, "DiSCO": 100})
    measured = measured_alone(flagging, gates.ground_truth(), [gates.honest(1), gates.ground_truth()])
    assert len(measured.one_way) and len(measured.two_way)
    assert verdict(measured) == "approved"


def set_at(row: Any, column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("frame", "change"),
    [
        *(
            (frame, set_at(row, column, value))
            for frame, row, column in (
                ("identity", 2, "repU"),
                ("attribute", ("income", 3), "DiSCO"),
                ("attribute", ("work", 1), "DiSCO"),
            )
            for value in (NAN, None, math.inf, -math.inf)
        ),
        ("identity", lambda frame: frame.drop(columns="repU")),
        ("identity", lambda frame: frame.drop(index=2)),
        ("identity", lambda frame: frame.iloc[:0]),
        ("identity", lambda frame: pd.concat([frame, frame])),
        ("identity", lambda frame: frame.loc[[1, 1]]),  # one stands for another
        ("attribute", lambda frame: frame.drop(index="income", level="target")),
        ("attribute", lambda frame: frame.drop(index=("income", 2))),
        ("attribute", lambda frame: frame.iloc[:0]),
        ("key_overlap", lambda frame: frame.drop(index="age", level="key")),
        ("key_overlap", lambda frame: frame.iloc[:0]),
        ("key_overlap", lambda frame: frame * NAN),
        ("key_overlap", lambda frame: frame * math.inf),
        ("key_overlap", lambda frame: frame.drop(columns="GT_in_SD")),
        ("target_overlap", lambda frame: frame.drop(columns="SD_in_GT")),
    ],
)
def test_a_figure_that_is_missing_or_not_finite_is_undetermined(
    result: dp.Disclosure, frame: str, change: Any
) -> None:
    broken = replace(result, **{frame: change(getattr(result, frame))})
    assert verdict(result) == "approved"
    assert verdict(broken) == "undetermined"
    mean = {"over": "mean", "at_most": 100, "worst": 100}
    assert verdict(broken, repU=mean, DiSCO=mean) == "undetermined"


def with_column(name: str, **changes: Any) -> dict[str, Any]:
    columns: dict[str, Any] = definition()["columns"]
    return columns | {name: columns[name] | changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Another one"},
        {"owners": ["team:others"]},
        {"ground_truth": "elsewhere.parquet"},
        {"trusted_keys": "elsewhere.yaml"},
        *({name: "elsewhere"} for name in ("incoming", "store", "releases")),
        {"columns": with_column("age", description="In years")},
        *({"engine": engine} for engine in ("auto", "memory", "partitioned")),
        {"notify": {"webhook": "${HOOK}"}},
        {"synthetic_asset": ["models/survey"]},
        {"pages": "https://example.org/store/"},
        {"schedule": "0 6 * * 1"},
    ],
)
def test_the_digest_ignores_fields_that_affect_no_decision(changes: Mapping[str, Any]) -> None:
    assert gate(**changes).policy_digest() == gate().policy_digest()
    reordered = dict(reversed(definition(**changes).items()))
    assert Gate.model_validate(reordered).policy_digest() == gate().policy_digest()


def test_the_digest_covers_every_field_that_affects_a_decision() -> None:
    own = definition()["policy"]
    within = {"repU": 100, "DiSCO": 100, "DiSCO_within": 5}
    changes: list[dict[str, Any]] = [
        {},
        {"policy": {"repU": 8, "DiSCO": 12}},
        {"policy": own | {"repU": {"at_most": 8, "at_most_share": 0.61}}},
        *({"policy": own | {name: n}} for name, n in (("key_overlap", 40), ("smallest_count", 11))),
        *({"policy": own | {name: n}} for name, n in (("DCAP", 100), ("missing", 10))),
        {"measures": {"protection": True}},
        *({"confidential": {name: "a.csv"}} for name in ("last_year", "another_year")),
        {"keys": ["sex"]},
        {"keys": ["age", "sex"]},
        {"targets": ["work"], "policy": {"repU": 8, "DiSCO": 12}},
        {"columns": with_column("income", groups=6)},
        {"columns": with_column("income", special_values=[-8, -9])},
        *(
            {"columns": with_column("income", groups=None, within=band), "policy": within}
            for band in (0.02, 0.03, {"amount": 0.02})
        ),
        {"columns": with_column("age", range=[20, 98])},
        {"columns": with_column("work", missing_codes=["none"])},
        {"columns": with_column("sex", levels=["f", "m", "x"])},
        {"edges": "equal_width"},
        {"edges": {"age": [0, 30, 60]}},
        {"exclusions": {"missing_targets": True}},
        {"exclusions": {"target_levels": {"work": ["none"]}}},
        {"exclusions": {"count_over": 10}},
        {"one_way": [50, 91]},
        {"two_way": [5, 80]},
        *({"unit": name} for name in ("household", "person")),
        {"name": "another"},
    ]
    digests = [gate(**change).policy_digest() for change in changes]
    assert [change for change, own in zip(changes, digests, strict=True) if digests.count(own) > 1] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, "name"),
        ({"name": "../evil"}, "name"),
        ({"name": "Upper"}, "name"),
        ({"keys": []}, "keys"),
        ({"keys": ["sex", "sex"]}, "'sex' is named more than once"),
        ({"keys": ["sex", "agee"]}, "agee"),
        ({"targets": []}, "targets"),
        ({"targets": ["work", "work"]}, "'work' is named more than once"),
        ({"targets": ["work", "sex"]}, "sex cannot be both a key and a target"),
        ({"edges": "deciles"}, "edges"),
        ({"edges": {"income": [0, 1, 2]}}, "income has both groups and explicit edges"),
        ({"edges": {"weight": [0, 1, 2]}}, "weight"),
        ({"edges": {"age": [60, 30, 0]}}, "edges"),
        ({"edges": {"age": [0, 100]}}, "edges"),
        ({"edges": {"sex": [0, 1, 2]}}, "sex"),
        ({"exclusions": {"target_levels": {"age": ["3"]}}}, "age"),
        ({"exclusions": {"missing_keys": ["work"]}}, "work"),
        ({"exclusions": {"missing_targets": ["age"]}}, "age"),
        ({"exclusions": {"count_over": -1}}, "count_over"),
        ({"exclusions": {"count_over": 2.5}}, "count_over"),
        ({"exclusions": {"count_over": True}}, "count_over"),
        ({"exclusions": {"colour": 1}}, "colour"),
        ({"one_way": [50]}, "one_way"),
        ({"one_way": [-1, 90]}, "one_way"),
        ({"one_way": [True, 90]}, "one_way"),
        ({"two_way": [4, 80, 1]}, "two_way"),
        ({"two_way": [4, NAN]}, "two_way"),
        ({"columns": with_column("sex", groups=3)}, "groups"),
        ({"columns": with_column("sex", special_values=[1])}, "special_values"),
        ({"columns": with_column("income", groups=1)}, "groups"),
        ({"columns": with_column("income", groups=2.5)}, "groups"),
        ({"columns": with_column("income", missing_codes=[-8])}, "-8"),
        *(
            ({"columns": definition()["columns"] | {name: {"type": "text identifier"}}}, f"{name} is a text")
            for name in ("age", "work")
        ),
    ],
)
def test_refuses_a_contradictory_definition(changes: Mapping[str, Any], message: str) -> None:
    assert message in refusal(**changes)
