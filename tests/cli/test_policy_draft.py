"""`policy draft`: bounds that follow from the ground truth, and from no candidate."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import Result
from support import gate_steps, gates
from support.gates import GATE, Home, write_gate
from support.sampling import on_some_days

from disclosure_pipeline.candidates.measuring import DRAWS, GroundTruthBaselines, measure_baselines
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.measures.chance import (
    difference_beyond_chance,
    difference_by_chance,
    hits_by_chance,
)
from disclosure_pipeline.measures.copies import HitCounts
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.orchestration.gate_file import load_gate
from disclosure_pipeline.policy.bounds_draft import (
    MATERIAL_EFFECT,
    draft_policy,
    estimate_error,
    find_detected_excess,
    write_policy,
)
from disclosure_pipeline.policy.gate import Gate

pytestmark = on_some_days

Drafted = tuple[GateFolders, GroundTruthBaselines]


def run(*arguments: str | Path) -> Result:
    return gates.run_command("policy", "draft", *arguments)


@pytest.fixture
def gate(home: Home) -> Path:
    """The file of the small gate, whose ground truth is there."""
    home.write_ground_truth(gates.ground_truth())
    return write_gate(home)


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> Drafted:
    """The small gate, and what its bounds are drafted from."""
    root = tmp_path_factory.mktemp("drafted")
    gates.ground_truth().to_csv(root / "ground_truth.csv", index=False)
    of_gate = gate_steps.folders(root, gates.definition(), "memory", "ground_truth.csv")
    return of_gate, measure_baselines(of_gate)


def loaded(gate: Path, text: str) -> Gate:
    before = load_gate(gate)
    return Gate.model_validate(before.model_dump() | {"policy": yaml.safe_load(text)["policy"]})


def test_the_draft_loads_and_says_why(home: Home, gate: Path) -> None:
    drafted = run(gate)
    assert drafted.exit_code == 0, drafted.output
    clauses = {clause.name: clause for clause in loaded(gate, drafted.stdout).clauses()}
    assert {"unique_hits beyond", "DiSCO[work] beyond", "DiSCO[income] beyond"} <= set(clauses)
    assert "repU" in clauses  # it was bounded before, which is no reason to drop it
    lines = drafted.stdout.splitlines()
    for number, line in enumerate(lines):
        if "beyond: " in line and "{" in line:
            assert lines[number - 1].strip().startswith("# ")
    assert "# Detects, in 19 of 20 tables, an excess of " in drafted.stdout
    assert not [canary for canary in gates.CANARIES if canary in drafted.output]
    assert not (home.path / "store").exists()  # nothing is recorded, and GT was not asked


def test_no_bound_follows_from_a_candidate(finished_home: Home) -> None:
    """Those that were judged stand beside the bounds; without them the bounds are the same."""
    gate = write_gate(finished_home)
    with_candidates = run(gate).stdout
    for name in (gates.HONEST, gates.COPY):
        assert f"# {name} (" in with_candidates
        finished_home.record(name, "dossier.json").unlink()
    without = run(gate).stdout
    assert yaml.safe_load(without) == yaml.safe_load(with_candidates)
    *draft, _, _, _ = without.splitlines(keepends=True)  # what it would notice
    assert with_candidates.startswith("".join(draft))


def test_a_bound_says_what_it_detects(drafted: Drafted) -> None:
    """The excess that exceeds the bound and chance in 19 of 20 tables, by the errors of the halves."""
    folders, actual = drafted
    assert len(actual.halves) == DRAWS
    assert {half.N_d for half in actual.halves} == {150}
    assert actual.own.identity["UiO"].item() == actual.own.identity["repU"].item()  # a copy of itself
    of_work = pd.concat([half.attribute.loc[["work"]] for half in actual.halves])
    squares = of_work[["DiSCO_beyond", "DiSCO_beyond_se"]].pow(2).mean()
    error = math.sqrt(squares["DiSCO_beyond_se"] / 2)
    assert estimate_error(actual.own, actual.halves, "DiSCO", "work") == pytest.approx(error)
    # The figures of the halves themselves vary as much, but a few of them tell that worse.
    assert 0.3 < math.sqrt(squares["DiSCO_beyond"] / squares["DiSCO_beyond_se"]) < 2
    draft = draft_policy(folders.gate, actual.own, actual.halves)
    assert measure_baselines(folders).own.attribute.equals(actual.own.attribute)  # the same each time
    assert {bound.bound for bound in draft.bounds if "overlap" not in bound.figure} == {MATERIAL_EFFECT}
    [of_work_drafted] = [bound for bound in draft.bounds if bound.column == "work"]
    z = NormalDist().inv_cdf(1 - 1 / (10_000 * len(folders.gate.targets)))
    smaller = of_work[["DiSCO_beyond", "DiSCO_excess"]].min(axis=1).mean()
    detected = max(MATERIAL_EFFECT, z * error) + 1.645 * error - min(0, smaller)
    assert f"an excess of {detected:.2g} in 100 people" in of_work_drafted.reason
    assert of_work_drafted.reason.endswith(f"chance explains up to {z * error:.2g}")
    limits = []
    for half in actual.halves:
        others, apart = half.identity[["unique_hits_others", "unique_hits_apart"]].iloc[0]
        counts = HitCounts(hits=0, pairs=others / 200 * 150, triples=0)
        limits.append(hits_by_chance(counts, Sizes(150, half.N_s[0]), apart) - max(others, apart))
    of_error = difference_by_chance(estimate_error(actual.own, actual.halves, "unique_hits", None))
    of_few = float(np.mean(limits) / math.sqrt(2))
    assert of_few < of_error
    # As where hardly two people share their keys: the error vanishes.
    without_error = [
        replace(half, identity=half.identity.assign(unique_hits_beyond_se=0.0)) for half in actual.halves
    ]
    for halves, by_chance in ((actual.halves, of_error), (without_error, of_few)):
        bounds = draft_policy(folders.gate, actual.own, halves).bounds
        [of_hits] = [bound for bound in bounds if bound.figure == "unique_hits"]
        assert of_hits.reason.endswith(f"chance explains up to {by_chance:.2g}")


def test_what_a_draft_says_is_detected_is_detected(drafted: Drafted) -> None:
    """Fresh tables whose DiSCO of one target is that much higher break its clause in 19 of 20 cases."""
    _, actual = drafted
    error = estimate_error(actual.own, actual.halves, "DiSCO", "work")
    chance = difference_by_chance(error)
    assert chance > MATERIAL_EFFECT  # a bound that added three errors would detect less
    detected = find_detected_excess(MATERIAL_EFFECT, chance, error)
    excesses = np.random.default_rng(1).normal(detected, error, 4000)
    broken = [difference_beyond_chance(excess, error) > MATERIAL_EFFECT for excess in excesses]
    assert np.mean(broken) == pytest.approx(0.95, abs=0.02)


def test_files_and_records_are_known_or_told(finished_home: Home, drafted: Drafted) -> None:
    """All of five files go further than one by chance; smaller files vary more."""
    gate = write_gate(finished_home)
    of_newest = run(gate).stdout
    assert "For candidates of one file with 300 records" in of_newest
    of_five = run(gate, "--files", "5", "--records", "100").stdout
    assert "For candidates of 5 files with 100 records" in of_five
    assert "DiSCO_any" not in of_newest
    bound = loaded(gate, of_five).policy.bounds["DiSCO_any"].for_target("work", "beyond").beyond
    assert bound == MATERIAL_EFFECT
    folders, actual = drafted
    smaller = measure_baselines(folders, 100)
    assert [half.N_s for half in smaller.halves] == [(50,)] * DRAWS
    error = estimate_error(smaller.own, smaller.halves, "DiSCO", "work")
    z = NormalDist().inv_cdf(1 - 1 / (10_000 * len(folders.gate.targets)))
    draft = draft_policy(folders.gate, smaller.own, smaller.halves, 5, 100)
    [reason] = [b.reason for b in draft.bounds if (b.figure, b.column) == ("DiSCO_any", "work")]
    others = float(smaller.own.attribute["DiSCO_others"].xs("work", level="target").iloc[0])
    # A third of the variance is each file's own, two thirds are the ground truth's in all five.
    of_any = error * math.sqrt(5 / 3 + 25 * 2 / 3) * (1 - others / 100) ** 4
    assert f"chance explains up to {z * of_any:.2g}" in reason
    errors = [estimate_error(of.own, of.halves, "unique_hits", None) for of in (actual, smaller)]
    assert errors[0] < errors[1]


def test_matched_pairs_have_bounds_like_others(home: Home) -> None:
    """A case and a control share their keys, so other people's records indicate the wrong level."""
    pairs = gates.ground_truth(150)
    people = pd.concat([pairs.assign(work="office"), pairs.assign(work="field")], ignore_index=True)
    home.write_ground_truth(people)
    gate = write_gate(home)
    beyond = loaded(gate, run(gate).stdout).policy.bounds["DiSCO"].for_target("work", "beyond").beyond
    assert beyond == MATERIAL_EFFECT


def test_the_draft_ends_with_what_it_would_notice(home: Home, gate: Path) -> None:
    """The same every time, and about what a fresh candidate of the same size is judged by."""
    text = run(gate).stdout
    noticed = re.findall(r"^# The gate would have noticed if (\d+\.\d) % of the people", text, re.MULTILINE)
    assert len(noticed) == 2
    of_gate = load_gate(gate)
    row = gates.measured(of_gate, gates.ground_truth(), [gates.honest()]).guards
    assert float(noticed[0]) == pytest.approx(row["detection_limit"].item(), abs=2)
    assert float(noticed[1]) == pytest.approx(row["detection_limit_nearly"].item(), abs=3)
    assert not (home.path / "store").exists()
    found = json.loads(run(gate, "--format", "json").stdout)["noticed"]
    assert [f"# {row['finding']}" for row in found] == text.splitlines()[-2:]
    of_more = run(gate, "--records", "900").stdout
    assert (
        "# The gate would have noticed if" in of_more and of_more.splitlines()[-2:] != text.splitlines()[-2:]
    )


def test_what_is_not_measured_detects_nothing(drafted: Drafted) -> None:
    folders, actual = drafted
    assert estimate_error(actual.own, (), "DiSCO", "work") == math.inf
    damaged = replace(actual.own, attribute=actual.own.attribute.assign(DiSCO_beyond_se=math.nan))
    assert estimate_error(actual.own, [damaged], "DiSCO", "work") == math.inf
    draft = draft_policy(folders.gate, actual.own, [damaged])
    assert {bound.reason for bound in draft.bounds if bound.column == "work"} == {
        "In tables of this size chance explains every excess: the bound detects nothing"
    }


def test_other_people_keep_the_drafted_bounds(home: Home) -> None:
    """A fresh sample of the same people is approved: that is what the bounds are for."""
    everybody = gates.ground_truth(1200)
    people, others = everybody.iloc[:600], everybody.iloc[600:-2]
    home.write_ground_truth(people)
    gate = write_gate(home, policy={"unique_hits": {"beyond": 1}, "DiSCO": {"beyond": 0.1}})
    text = run(gate).stdout
    definition = yaml.safe_load((gate / "defs.yaml").read_text())
    definition["attributes"]["policy"] = yaml.safe_load(text)["policy"]
    (gate / "defs.yaml").write_text(yaml.safe_dump(definition))
    for table, decision in ((others, "approved"), (people, "refused")):
        folder = home.path / decision
        folder.mkdir()
        known = table[table["work"].isin(people["work"])]
        known.to_csv(folder / "t.csv", index=False)
        judged = gates.run_command("evaluate", gate, folder)
        assert judged.stdout.startswith(f"{decision}: {decision}"), judged.output


PLAIN = {"repU": 8, "DiSCO": 12}


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": PLAIN | {"smallest_count": 5, "missing": 10}},
        {"policy": PLAIN | {"protection": {"at_least": 0.2}}, "measures": {"protection": True}},
        {"policy": PLAIN, "measures": {"chance": False}},
        {"policy": PLAIN, "measures": {"attribution": False}},
        {"exclusions": {"target_levels": {"work": ["none"]}}},
    ],
)
def test_drafts_of_other_gates_load_and_keep_what_they_say(changes: Mapping[str, Any], home: Home) -> None:
    home.write_ground_truth(gates.ground_truth())
    gate = write_gate(home, **changes)
    shown = run(gate)
    assert shown.exit_code == 0, shown.output
    before, after = load_gate(gate).policy, loaded(gate, shown.stdout).policy
    assert after.smallest_count == before.smallest_count
    for name in set(before.bounds) - {"DiSCO", "unique_hits"}:
        assert after.bounds[name] == before.bounds[name]


def test_overlaps_that_nobody_reaches_are_lowered(home: Home) -> None:
    """With keys by which everybody is unique, other people's records share none of them."""
    people = gates.ground_truth().assign(age=range(1000, 1300))
    home.write_ground_truth(people)
    columns = gates.definition()["columns"] | {"age": {"type": "integer"}}
    gate = write_gate(home, columns=columns)
    text = run(gate).stdout
    policy = loaded(gate, text).policy
    overlaps = [policy.find_bound(name) for name in ("key_overlap", "whole_key_overlap")]
    assert overlaps[0] < 80 and overlaps[1] < 5
    assert "other people's records share only" in " ".join(text.casefold().split())


def test_names_of_columns_stay_names(home: Home) -> None:
    names = {"work": "no: #1", "income": "[x]"}
    home.write_ground_truth(gates.ground_truth().rename(columns=names))
    columns = {names.get(name, name): column for name, column in gates.definition()["columns"].items()}
    gate = write_gate(home, columns=columns, targets=[*names.values()], policy=PLAIN)
    bounds = loaded(gate, run(gate).stdout).policy.bounds["DiSCO"]
    assert set(bounds.targets) == {"no: #1", "[x]"}


def test_figures_instead_of_yaml(gate: Path) -> None:
    draft = json.loads(run(gate, "--format", "json").stdout)
    rows = {(row["figure"], row["target"]): row for row in draft["baselines"]}
    assert set(rows) == {("unique_hits", ""), ("DiSCO", "work"), ("DiSCO", "income")}
    for row in rows.values():
        assert 0 <= row["others"] <= 100 and 0 <= row["own"] <= 100
    assert all(bound["reason"] for bound in draft["bounds"])
    assert max(map(len, run(gate, "--format", "table").stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read: it is empty"),
        (gates.ground_truth().head(12).to_csv(index=False).encode(), "12 records: at least 20 are needed"),
        (gates.ground_truth().assign(age=500).to_csv(index=False).encode(), "is outside the range"),
    ],
)
def test_without_a_ground_truth_there_is_no_draft(content: bytes, message: str, home: Home) -> None:
    home.write_ground_truth(content)
    refused = run(write_gate(home))
    assert refused.exit_code == 3
    assert message in refused.stderr and refused.stdout == ""


def test_a_draft_is_written_as_it_is_drafted(drafted: Drafted) -> None:
    """The text holds each bound once, and a comment cannot be ended by a name."""
    folders, actual = drafted
    draft = draft_policy(folders.gate, actual.own, actual.halves)
    dossier = {"candidate": "a\nrepU: 99", "decision": "refused", "clauses": []}
    text = write_policy(folders.gate, draft, [dossier])
    assert yaml.safe_load(text) == yaml.safe_load(write_policy(folders.gate, draft))
    assert {bound.figure for bound in draft.bounds} <= {"unique_hits", "DiSCO"}
    assert folders.gate.name == GATE
