"""How often a gate refuses honest tables, and which share of copies it notices."""

import json
import math
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from support import gates
from support.gate_steps import folders, write
from support.sampling import on_some_days, only_in_ci

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import power
from disclosure_pipeline.candidates.power import measure_gate_power, measure_power, read_power, record_power
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.plots.pictures import specify_power
from disclosure_pipeline.evaluation.power import (
    COPIES,
    DILUTED,
    KINDS,
    NEAR_COPIES,
    SHARES,
    GatePower,
    Refusals,
)
from disclosure_pipeline.measures.samples import newcombe
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import DefinitionError
from disclosure_pipeline.runtime.progress import listen
from disclosure_pipeline.tables.contract import canonical_table
from disclosure_pipeline.tables.dictionary import Contract

POLICY = {"unique_hits": {"beyond": 3}, "DiSCO": {"beyond": 3}}
A_MOMENT = 0.001  # one try of each kind


def gate_of(root: Path, records: int, **changes: Any) -> GateFolders:
    write(root / "gt.csv", gates.ground_truth(records))
    return folders(root, gates.definition(policy=POLICY, **changes), "memory", "gt.csv")


@pytest.fixture
def copies_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try exact copies only, where the other kinds of copies take no other way."""
    monkeypatch.setattr(power, "KINDS", (COPIES,))


@on_some_days
def test_large_shares_of_copies_are_noticed_and_honest_tables_are_not_refused(tmp_path: Path) -> None:
    shown: list[tuple[str, int, int]] = []
    with listen(lambda *step: shown.append(step)):
        measured, digest = measure_power(gate_of(tmp_path, 2000), A_MOMENT)
    assert len(digest) == 64
    steps = {(step, total) for step, _, total in shown}
    assert steps == {("Reading the ground truth", 0), ("Halving the ground truth", 1)}
    assert measured.records == 1000
    assert {kind: len(tries) for kind, tries in measured.noticed.items()} == dict.fromkeys(KINDS, 1)
    assert 0 < measured.noticed[COPIES][0] <= 30
    assert measured.noticed[DILUTED][0] > 0  # a table ten times as large is no offence
    assert not measured.is_blind


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_planted_at_a_share_is_planted_at_all_larger_ones(kind: str, tmp_path: Path) -> None:
    gate = gate_of(tmp_path, 400).gate
    records = gates.ground_truth(400).sample(frac=1, random_state=1)
    first, second = records.iloc[:200], records.iloc[200:]
    known, plant = power._prepare_try(gate, kind, first, second, np.random.default_rng(1))
    of_GT = set(known.itertuples(index=False, name=None))
    before: set[tuple[Any, ...]] = set()
    for share in SHARES:
        table = plant(share)
        assert len(table) == len(known) * (10 if kind == DILUTED else 1)
        assert list(table.columns) == list(known.columns)
        now = set(table.itertuples(index=False, name=None)) & of_GT
        if kind == COPIES:
            assert before <= now
            before = now
    assert (now == of_GT) if kind in {COPIES, DILUTED} else (len(now) < len(of_GT) / 2)


def test_columns_are_drawn_within_keys_that_many_people_share(tmp_path: Path) -> None:
    """Within fewer people's the same records would come out again."""
    gate = gate_of(tmp_path, 400).gate
    random = np.random.default_rng(1)
    of_many = pd.DataFrame(
        {"sex": np.repeat(["f", "m"], 300), "age": np.tile([20, 30], 300), "work": "x", "income": range(600)}
    )
    of_many["work"] = of_many["sex"] + of_many["age"].astype(str)
    drawn = power._recombine(gate, of_many, 5000, random)
    assert (drawn["work"] == drawn["sex"] + drawn["age"].astype(str)).all()
    assert drawn.loc[drawn["work"] == "f20", "income"].nunique() == 150
    of_few = of_many.assign(age=range(600))
    drawn = power._recombine(gate, of_few, 5000, random)
    assert (drawn["work"].str[0] == drawn["sex"]).all()
    assert drawn[["age", "income"]].duplicated().mean() < 0.1


def test_tables_ten_times_as_large_are_refused_as_true_ones_are() -> None:
    """A bound on repU is for a table as large as the ground truth: of more records an honest one has more."""
    definition = yaml.safe_load((Path(dp.__file__).parent / "defs/survey/defs.yaml").read_text())
    gate = Gate.model_validate(definition["attributes"])
    people = population(20_000, 3)[list(gate.columns)].astype(object).infer_objects()
    repU = []
    for number in range(3):
        rng = np.random.default_rng(number)
        drawn = people.sample(18_000, random_state=number)
        known, fresh, others = drawn[:1500], drawn[1500:3000], drawn[3000:]
        invented = power._recombine(gate, fresh, 15_000, rng)
        keys, targets = list(gate.keys), ["health"]
        both = dp.disclosure(known, [invented, others], keys, targets)
        repU.append(both.identity["repU"])
    means = np.mean(repU, axis=0)
    assert means[0] == pytest.approx(means[1], abs=1)


def test_it_is_read_of_the_same_ground_truth_and_policy_only(tmp_path: Path) -> None:
    of_gate = gate_of(tmp_path, 400)
    measured = GatePower(200, dict.fromkeys(KINDS, (3.0, math.inf)))
    record_power(of_gate, "1" * 64, measured, lambda _: "seal")
    assert read_power(of_gate, "1" * 64) == measured
    assert read_power(of_gate, "0" * 64) is None
    stricter = of_gate.gate.model_copy(update={"keys": of_gate.gate.keys[:1]})
    assert read_power(replace(of_gate, gate=stricter), "1" * 64) is None
    sealed: list[tuple[bytes, str]] = []

    def note(content: bytes, seal: str) -> bool:
        sealed.append((content, seal))
        return False

    assert read_power(of_gate, "1" * 64, note) is None
    assert sealed[0][1] == "seal" and b'"noticed"' in sealed[0][0]
    kept = json.loads(of_gate.store.power.read_text())
    older = kept["content"] | {"measured_by": "0.0.1"}
    unusable: list[Any] = [{}, [], {"content": kept["content"]}]
    unusable += [kept | {"content": content} for content in (None, older)]
    for damaged in unusable:
        of_gate.store.power.write_text(json.dumps(damaged))
        assert read_power(of_gate, "1" * 64) is None
    of_gate.store.power.write_text("{")
    assert read_power(of_gate, "1" * 64) is None


@pytest.mark.parametrize(("records", "seconds"), [(39, 1.0), (300, 0.0), (300, math.nan), (300, -1.0)])
def test_what_cannot_be_tried_is_refused(records: int, seconds: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at least 40 are needed|above 0"):
        measure_power(gate_of(tmp_path, records), seconds)


def test_it_ends_in_the_time_given_and_time_goes_to_all_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock on which a judgement takes a second, among ten times as many records ten."""
    seconds = 0.0

    def judge(_gate: Any, known: pd.DataFrame, synthetic: pd.DataFrame) -> bool:
        nonlocal seconds
        seconds += 10 if len(synthetic) > len(known) else 1
        return False

    monkeypatch.setattr(power, "_is_approved", judge)
    monkeypatch.setattr(time, "monotonic", lambda: seconds)
    measured = measure_gate_power(gate_of(tmp_path, 60).gate, gates.ground_truth(60), 100)
    assert 80 <= seconds <= 100
    tries = [len(measured.noticed[kind]) for kind in KINDS]
    assert tries[0] == pytest.approx(30, abs=10) and tries[2] == pytest.approx(3, abs=1)
    measured = measure_gate_power(gate_of(tmp_path, 60).gate, gates.ground_truth(60), 1e9)
    assert [len(measured.noticed[kind]) for kind in KINDS] == [200] * 3
    assert measured.false_refusals.percent == 100


@pytest.mark.usefixtures("copies_alone")
def test_further_confidential_tables_take_no_part(tmp_path: Path) -> None:
    """They are not among the halves: their clauses could be kept by no table."""
    write(tmp_path / "last.csv", gates.last_year(300))
    confidential = {"last_year": str(tmp_path / "last.csv")}
    with_it = gate_of(tmp_path, 400, confidential=confidential, holdout="last_year")
    without = gate_of(tmp_path, 400)
    assert measure_power(with_it, A_MOMENT) == measure_power(without, A_MOMENT)


@pytest.mark.usefixtures("copies_alone")
def test_from_a_table_and_a_file_it_is_what_the_gate_measures(tmp_path: Path) -> None:
    of_gate = gate_of(tmp_path, 400)
    gates.write_definition(tmp_path, gates.definition(policy=POLICY))
    expected, _ = measure_power(of_gate, A_MOMENT)
    assert dp.power(gates.ground_truth(400), tmp_path, seconds=A_MOMENT) == expected
    assert dp.power(tmp_path / "gt.csv", str(tmp_path / "defs.yaml"), seconds=A_MOMENT) == expected
    with pytest.raises(InputError, match="file has its own"):
        dp.power(gates.ground_truth(400), tmp_path, ["sex"])
    with pytest.raises(DefinitionError):
        dp.power(gates.ground_truth(400), tmp_path / "nowhere.yaml")


@pytest.mark.usefixtures("copies_alone")
def test_from_a_table_and_a_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    table = gates.ground_truth(600)
    found = dp.power(table, POLICY, ["sex", "age"], ["work"], seconds=A_MOMENT, progress=True)
    assert found.records == 300
    assert found.count_refused(COPIES, 100).refused == 1
    assert "Halving the ground truth" in capsys.readouterr().err
    households = table.assign(household=np.arange(600) // 2)
    by_household = dp.power(households, POLICY, ["sex", "age"], ["work"], unit="household", seconds=A_MOMENT)
    assert by_household.count_refused(COPIES, 100).refused == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keys": ()}, "needs keys"),
        ({"keys": ["nobody"]}, "no column 'nobody'"),
        ({"unit": "nobody"}, "no column 'nobody'"),
        ({"policy": {}}, "cannot be measured"),
        ({"policy": {"unheard_of": 3}}, "unheard_of"),
        ({"policy": {"DiSCO": -3}}, "cannot be measured"),
        ({"seconds": 0}, "above 0"),
        ({"ground_truth": gates.ground_truth(39)}, "at least 40 are needed"),
    ],
)
def test_arguments_that_contradict_each_other(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "ground_truth": gates.ground_truth(300),
        "policy": POLICY,
        "keys": ["sex", "age"],
    }
    with pytest.raises(InputError, match=message):
        dp.power(**given | arguments)


@on_some_days
def test_the_command_tells_no_value(home: gates.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "SHARES", (0, 100))  # one try tells of none
    home.write_ground_truth(gates.ground_truth())
    folder = gates.write_definition(home.path / "definition", gates.definition(policy=POLICY))
    arguments = ("policy", "power", folder, "--seconds", A_MOMENT)
    printed = gates.run_command(*arguments)
    assert printed.exit_code == 0, printed.output
    assert NOTHING_TOLD in printed.stdout
    assert not re.search(r"\d+ of \d+", printed.stdout)
    found = json.loads(gates.run_command(*arguments, "--format", "json").stdout)
    assert {row["planted"] for row in found["power"]} == set(KINDS)
    [kept] = home.path.rglob("power.json")
    assert not [canary for canary in gates.CANARIES if canary in printed.output + kept.read_text()]

    def check(**changes: Any) -> Any:
        gates.edit_json(kept, lambda record: record["content"].update(changes))
        return gates.run_command("check", folder)

    unknown = check().output
    assert re.search("^warning: policy: .*not measured well enough to say", unknown, re.MULTILINE)
    assert "policy power with more --seconds" in unknown and not re.search(r"refuses \d+ of \d+", unknown)
    told = check(noticed={kind: [None if kind == NEAR_COPIES else 3] * 20 for kind in KINDS}).output
    assert re.search("^warning: policy: .*It does not notice near copies reliably", told, re.MULTILINE)
    blind = check(noticed={kind: [None] * 20 for kind in KINDS})
    assert "cannot notice that 30 % of the people are copied" in blind.output
    assert "Publish more columns, form fewer groups, or lower the bounds" in blind.output
    assert blind.exit_code != 0
    assert "is not measured" in check(policy_digest="another").output


# What halves of a ground truth tell of a policy, against fresh draws from a known population


PEOPLE = 600  # of a ground truth
GROUND_TRUTHS, TRIES = 6, 10
COLUMNS: dict[str, Any] = {
    "keys": ["sex", "age", "region"],
    "targets": ["health", "work", "income"],
    "groups": {"age": 10, "income": 10},
    "special_values": {"income": [-8]},
}


def draw_anew(people: pd.DataFrame, tries: int) -> GatePower:
    """Measure the same of ground truths and fresh tables, both drawn from the population anew each time."""
    gate = power._write_gate(people, POLICY, **COLUMNS, unit=None)
    records = canonical_table(
        people, Contract(gate.columns, "people", gate.published_columns, only_known=False)
    ).frame
    smallest = []
    for number in range(tries):
        drawn = records.sample(PEOPLE, random_state=20_000 + number)
        known, fresh = drawn[: PEOPLE // 2], drawn[PEOPLE // 2 :]
        rng = np.random.default_rng((7, number))
        smallest.append(
            power._find_smallest_refused(gate, *power._prepare_try(gate, COPIES, known, fresh, rng))
        )
    return GatePower(PEOPLE // 2, {COPIES: tuple(smallest)})


@only_in_ci("judges 600 tables", days=6)
def test_fresh_draws_and_halves_are_refused_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of several ground truths: in one of its own, copies may be easier to notice than in another."""
    monkeypatch.setattr(power, "KINDS", (COPIES,))
    monkeypatch.setattr(power, "_MOST_TRIES", TRIES)
    people = population(60_000, 5)[[*COLUMNS["keys"], *COLUMNS["targets"]]]
    found = [
        dp.power(people.sample(PEOPLE, random_state=10 + number), POLICY, **COLUMNS, seconds=1e9)
        for number in range(GROUND_TRUTHS)
    ]
    smallest = tuple(share for of_one in found for share in of_one.noticed[COPIES])
    halves = GatePower(PEOPLE // 2, {COPIES: smallest})
    anew = draw_anew(people, GROUND_TRUTHS * TRIES)
    for share in SHARES:
        of_halves, of_fresh = halves.count_refused(COPIES, share), anew.count_refused(COPIES, share)
        low, high = newcombe(of_halves.refused, of_halves.tries, of_fresh.refused, of_fresh.tries, 0.99)
        assert low <= 0 <= high, share
    few, some, many = [anew.count_refused(COPIES, share).percent for share in (3, 7, 15)]
    assert few < 10
    assert 30 < some < 80
    assert many > 95


# What is said of a policy's power: rates, intervals, limits, sentences, and its picture


def power_of(
    *copies: float, near: tuple[float, ...] = (50.0,) * 20, diluted: tuple[float, ...] = (5.0,) * 20
) -> GatePower:
    return GatePower(100, {COPIES: copies, NEAR_COPIES: near, DILUTED: diluted})


def test_rates_and_limits() -> None:
    found = power_of(*(3.0,) * 19, 30.0)
    assert found.detection_limit() == 3
    refusals = found.count_refused(COPIES, 3)
    assert (refusals, refusals.percent) == (Refusals(19, 20), 95)
    assert refusals.interval == pytest.approx((76.39, 99.11), abs=0.01)  # Wilson
    assert found.count_refused(COPIES, 2).refused == 0
    assert power_of(*(3.0,) * 18, *(30.0,) * 2).detection_limit() == 30
    frame = found.to_frame()
    of_copies = frame[frame["planted"] == COPIES]
    assert of_copies["percent"].is_monotonic_increasing
    assert of_copies["share"].tolist() == list(SHARES)
    assert set(of_copies["tries"]) == {20}
    assert set(frame["planted"]) == set(KINDS)
    # Honest tables are those of both kinds without a copy.
    assert power_of(0.0, 3.0, near=(3.0, 0.0, 5.0), diluted=(0.0,)).false_refusals == Refusals(2, 5)


def test_the_sentence_of_the_first_page() -> None:
    assert power_of(*(3.0,) * 19, 30.0, near=(50.0,) * 80).summarize() == (
        "This gate would have refused a table that repeats 3 % of the people (19 of 20 times); it refuses "
        "0 of 100 honest tables."
    )
    assert power_of(*(50.0,) * 20).summarize() == (
        "This gate cannot notice that 30 % of the people are copied: it refuses a table that repeats 50 % "
        "(20 of 20 times); it refuses 0 of 40 honest tables."
    )
    assert "repeats everybody only 10 of 20 times" in power_of(*(math.inf, 3.0) * 10).summarize()
    refusing = power_of(*(0.0,) * 20)
    assert (
        refusing.summarize()
        == "This gate refuses honest tables (20 of 40), so its detection of copies cannot be measured."
    )


NOTHING_TOLD = (
    "The copies that this gate would notice, and the honest tables that it refuses, are not measured well "
    "enough to say."
)


@pytest.mark.parametrize("copies", [(3.0,), (0.0, 0.0), (math.inf,), (3.0,) * 9])
def test_few_tries_tell_nothing(copies: tuple[float, ...]) -> None:
    """One of one refused, or none of two, is no evidence: no rate stands in a sentence, row or picture."""
    found = power_of(*copies, near=(3.0,), diluted=(math.inf, 5.0))
    assert found.summarize() == NOTHING_TOLD
    assert all("not measured well enough to say" in sentence for sentence in found.describe())
    assert not re.search(r"\d+ of \d+", str(found))
    assert all(math.isnan(found.detection_limit(kind)) for kind in KINDS)
    assert (found.is_blind, found.unnoticed, found.unknown) == (False, None, KINDS)
    frame = found.to_frame()
    assert frame[["percent", "low", "high"]].isna().all().all()
    assert set(frame["tries"]) == {len(copies), 1, 2}
    assert found.state_finding() == "The copies that would be noticed are not measured well enough to say"
    assert specify_power(found)["data"]["values"] == []


@pytest.mark.parametrize("tries", [19, 20])
def test_twenty_tries_tell_something(tries: int) -> None:
    told = power_of(*(3.0,) * tries, near=(3.0,) * tries)
    sentence = f"would have refused a table that repeats 3 % of the people ({tries} of {tries} times)"
    assert (sentence in told.summarize()) == (tries == 20)
    assert f"it refuses 0 of {2 * tries} honest tables" in told.summarize()
    assert told.unknown == (() if tries == 20 else (COPIES, NEAR_COPIES))


@pytest.mark.parametrize(
    ("smallest", "is_blind"),
    [
        ((30.0,) * 20, False),
        ((50.0,) * 20, True),
        ((math.inf, 3.0) * 10, True),
        ((0.0,) * 20, False),
        ((math.inf,) * 19, False),
    ],
)
def test_a_gate_that_does_not_notice_a_third_is_blind(smallest: tuple[float, ...], is_blind: bool) -> None:
    assert power_of(*smallest).is_blind == is_blind


def test_every_kind_of_copy_has_a_sentence() -> None:
    found = power_of(*(2.0, 3.0) * 10, near=(math.inf, 30.0) * 10, diluted=(0.0, 7.0, 7.0) * 7)
    assert found.describe() == [
        "It refuses 0 of 40 honest tables (95 % interval: 0 to 9 %).",
        "It refuses copies of 3 % of the people: 20 of 20 tries.",
        "It does not notice near copies reliably, not even of everybody: it refuses 10 of 20 tries.",
        "It refuses copies among ten times as many records of 7 % of the people: 21 of 21 tries, and 7 of 21 "
        "without any.",
    ]
    assert "Nothing can be said" in power_of(*(0.0,) * 20).describe()[1]
    assert str(found).splitlines()[0] == found.summarize()
    assert "100 records" in str(found)


def test_a_record_is_read_as_it_was_written() -> None:
    found = power_of(2.0, math.inf, near=(0.0,))
    assert GatePower.from_record(json.loads(json.dumps(found.to_record(), allow_nan=False))) == found
    record = found.to_record()
    damaged: list[Any] = [{}, [], {"records": 1}, record | {"records": None}]
    of_no_try: dict[str, list[float]] = {kind: [] for kind in KINDS}
    damaged += [record | {"noticed": noticed} for noticed in ({}, {COPIES: [1]}, of_no_try)]
    damaged += [record | {"noticed": {kind: [share] for kind in KINDS}} for share in (4, -1, math.nan, "x")]
    for broken in damaged:
        with pytest.raises((KeyError, TypeError, ValueError)):
            GatePower.from_record(broken)


def test_the_picture_has_a_line_and_intervals_for_each_kind() -> None:
    found = power_of(*(2.0, 3.0) * 10)
    chart = found.plot().to_dict()
    assert chart["title"]["text"] == found.state_finding()
    assert (
        found.state_finding() == "Copies of 3 % of the people are noticed; 0 of 40 honest tables are refused"
    )
    assert power_of(*(50.0,) * 20).state_finding().startswith("Copies are not noticed reliably")
    assert power_of(*(0.0,) * 20).state_finding().startswith("Copies are not noticed reliably")
    bars, lines, points = specify_power(found)["layer"]
    assert (bars["encoding"]["y"]["field"], bars["encoding"]["y2"]["field"]) == ("low", "high")
    assert lines["encoding"]["strokeDash"]["scale"]["domain"] == list(KINDS)
    assert points["encoding"]["shape"]["scale"]["domain"] == list(KINDS)
    rows = specify_power(found)["data"]["values"]
    assert len(rows) == len(KINDS) * len(SHARES)
