"""The policy as expectation suites: the same verdict by another path, and nothing leaves the process."""

import gc
import json
import math
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support import gates
from support.paths import ROOT
from support.processes import Finished, run_program
from support.sampling import examples, on_some_days, only_in_ci

import disclosure_pipeline as dp
from disclosure_pipeline.errors import UndeterminedError
from disclosure_pipeline.evaluation.long_table import NUMBERS, FigureRow, tabulate_figures
from disclosure_pipeline.evidence import validation
from disclosure_pipeline.evidence.dossier import build_dossier
from disclosure_pipeline.evidence.validation import (
    Validation,
    build_metric_table,
    find_disagreements,
    validate,
)
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.policy.bounds import STATISTICS
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, judge, judge_rows
from disclosure_pipeline.runtime.worker_process import WorkerProcess

pytestmark = on_some_days

# Every family of measures that the suite bounds, and flags that are raised.
POLICY = {
    "repU": {"at_most": 8, "at_most_share": 0.6},
    "DiSCO": {
        "at_most": 12,
        "beyond": 3,
        "targets": {"income": {"at_most": 10, "at_most_share": 0.9, "beyond": 0.5}},
        "over": "mean",
        "worst": 100,
    },
    "unique_hits": 4,
    "guessed": {"beyond": 5, "chance": 0},
    "DCAP": {"at_most": 50, "beyond": 3},
    "protection": {"at_least": 0.1},
}
THREE = [gates.honest(1), gates.ground_truth(), gates.honest(3)]
SYNTHESES = {"three": THREE, "honest": THREE[:1], "copy": THREE[1:2]}


@cache
def measured(candidate: str) -> tuple[Gate, dp.Disclosure]:
    attributes = gates.definition(
        policy=POLICY,
        measures={"protection": True},
        exclusions={"count_over": 1000},  # takes nothing, but is bounded
    )
    gate = Gate.model_validate(attributes)
    return gate, gates.measured(gate, gates.ground_truth(), SYNTHESES[candidate])


@cache
def validated(candidate: str) -> Validation:
    gate, result = measured(candidate)
    return validate(gate.clauses(), tabulate_figures(result), len(SYNTHESES[candidate]))


def of_repU() -> tuple[list[Clause], list[FigureRow]]:  # noqa: N802
    """Return its generous clauses and its rows: what takes a moment to validate."""
    gate, result = measured("three")
    clauses = [clause for clause in generous(gate) if clause.figure == "repU"]
    return clauses, [row for row in tabulate_figures(result) if row.figure == "repU"]


def agree(judgements: Sequence[Judgement], actual: Validation) -> bool:
    """Whether the suite keeps the same clauses, and says so."""
    assert actual.kept == {each.clause.name: each.outcome == "kept" for each in judgements}
    return find_disagreements(actual.kept, clauses_of(judgements)) == []


def clauses_of(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    return [{"name": judgement.clause.name, "outcome": judgement.outcome} for judgement in judgements]


@pytest.mark.parametrize("candidate", SYNTHESES)
def test_suite_and_policy_agree(candidate: str) -> None:
    gate, result = measured(candidate)
    assert agree(judge(gate.clauses(), result), validated(candidate))
    assert all(validated(candidate).kept.values()) == (candidate == "honest")


def test_a_fault_of_one_is_told_by_the_other() -> None:
    """Each compares by itself: whichever finds everything kept, the other does not."""
    gate, result = measured("copy")
    judgements, actual = judge(gate.clauses(), result), validated("copy")
    all_kept = tuple(replace(judgement, outcome="kept") for judgement in judgements)
    nothing = [replace(row, value=0.0, beyond=0.0, beyond_chance=0.0) for row in tabulate_figures(result)]
    for suite, policy in ((actual, all_kept), (validate(gate.clauses(), nothing, 1), judgements)):
        disagreeing = find_disagreements(suite.kept, clauses_of(policy))
        assert {"repU", "found[whole] beyond"} <= set(disagreeing)


FIGURES = (math.nan, math.inf, -math.inf, 0.0, 8.0, math.nextafter(8, 9), 55.5, 100.0)

# What can be wrong with the long table: a figure is another one, or a row is gone, or there twice.
DAMAGE = st.tuples(
    st.sampled_from(["figure", "figure", "gone", "twice"]),
    st.integers(0, 9999),
    st.sampled_from(NUMBERS),
    st.sampled_from(FIGURES) | st.floats(-10, 110),
)


def other(clause: Clause, random: Random) -> Clause:
    """A clause on the same figure, most likely with another bound of another statistic."""
    return replace(
        clause,
        bound=random.choice([clause.bound, 0.0, 0.5, 1.0, 8.0, random.uniform(0, 100)]),
        statistic=random.choice([clause.statistic, *STATISTICS]),
        over=random.choice(["worst", "mean"]),
        chance=random.choice([True, False]),
        warns=random.choice([True, False]),
    )


# An example takes 0.2 s, whatever is validated, so many clauses share one; to shrink one takes long.
@settings(examples(4, 40), phases=set(Phase) - {Phase.shrink})
@given(damages=st.lists(DAMAGE, max_size=8), seed=st.integers(0, 2**32), files=st.integers(1, 4))
def test_they_agree_on_any_figures(damages: list[tuple[str, int, str, float]], seed: int, files: int) -> None:
    """On missing, infinite and forged figures too, under any bounds."""
    gate, result = measured("three")
    rows = list(tabulate_figures(result))
    for what, place, name, figure in damages:
        at = place % len(rows)
        if what == "figure":
            forged: dict[str, Any] = {name: figure}
            rows[at] = replace(rows[at], **forged)
        else:
            rows[at : at + 1] = [] if what == "gone" else [rows[at], rows[at]]
    random = Random(seed)
    changed = [other(clause, random) for clause in gate.clauses() for _ in range(4)]
    clauses = tuple({clause.name: clause for clause in changed}.values())
    assert agree(judge_rows(clauses, rows, files), validate(clauses, rows, files))


def generous(gate: Gate) -> tuple[Clause, ...]:
    return tuple(replace(clause, bound=0 if clause.at_least else 1000) for clause in gate.clauses())


def test_every_row_is_needed() -> None:
    """Without it, with it twice or without its figure, the clauses that it is about are not kept."""
    gate, result = measured("three")
    rows = tabulate_figures(result)
    clauses = [clause for clause in generous(gate) if clause.over == "worst"]
    assert all(judged.outcome == "kept" for judged in judge_rows(clauses, rows, 3))
    needed = []
    for place, row in enumerate(rows):
        nothing = replace(row, **dict.fromkeys(NUMBERS, math.nan))  # type: ignore[arg-type]
        for changed in ([], [row, row], [nothing]):
            damaged = [*rows[:place], *changed, *rows[place + 1 :]]
            lost = {judged.clause for judged in judge_rows(clauses, damaged, 3) if judged.outcome != "kept"}
            about = {
                clause
                for clause in clauses
                if clause.figure == row.figure and (row.about in clause.about or not clause.about)
                if row.basis == "records" and not row.group and row.part != "1 release"
            }
            assert lost == about, row
        needed += [(place, about)] if about else []
    # The suite says the same of some of them, which takes longer.
    for place, about in needed[::29]:
        without = validate(tuple(about), [*rows[:place], *rows[place + 1 :]], 3)
        assert without.kept == {clause.name: False for clause in about}


def test_no_row_is_never_kept() -> None:
    gate, _ = measured("three")
    assert not any(validate(gate.clauses(), [], 3).kept.values())
    assert {judged.outcome for judged in judge_rows(gate.clauses(), [], 3)} == {"undetermined"}


def test_there_is_a_result_for_every_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clause that is not in the suite is not kept."""
    clauses, rows = of_repU()
    assert all(validate(clauses, rows, 3).kept.values())
    build = validation._build_expectations
    monkeypatch.setattr(validation, "_build_expectations", lambda of, columns: build(of[1:], columns))
    assert validate(clauses, rows, 3).kept == {clause.name: clause != clauses[0] for clause in clauses}


def test_disagreements() -> None:
    kept = {"a": True, "b": False, "c": False, "d": False}
    outcomes = {"a": "kept", "b": "exceeded", "c": "undetermined", "d": "waived"}
    clauses = [{"name": name, "outcome": outcome} for name, outcome in outcomes.items()]
    assert find_disagreements(kept, clauses) == []
    for name, outcome in outcomes.items():
        assert find_disagreements(kept | {name: outcome != "kept"}, clauses) == [name]
        assert find_disagreements({other: kept[other] for other in kept if other != name}, clauses) == [name]
        assert find_disagreements(kept, [clause for clause in clauses if clause["name"] != name]) == [name]
        assert find_disagreements(kept, [*clauses, {"name": name, "outcome": outcome}]) == [name]
    assert find_disagreements({}, clauses) == ["a", "b", "c", "d"]


def test_the_results_as_plain_data() -> None:
    """A severity, a name and words for each clause; the same for the same figures."""
    gate, result = measured("three")
    actual = validated("three")
    text = json.dumps(actual.results, allow_nan=False)
    assert json.dumps(validate(gate.clauses(), tabulate_figures(result), 3).results) == text
    whole, *stated = actual.results["results"]
    assert whole["expectation_config"]["type"] == "expect_table_columns_to_match_set" and whole["success"]
    kinds = {entry["expectation_config"]["type"] for entry in stated}
    assert kinds == {
        "expect_column_values_to_be_between",
        "expect_column_pair_values_a_to_be_greater_than_b",
    }
    message = {entry["expectation_config"]["meta"]["clause"]: entry for entry in stated}
    for judgement in judge(gate.clauses(), result):
        clause, entry = judgement.clause, message[judgement.clause.name]
        assert entry["success"] is (judgement.outcome == "kept")
        assert entry["expectation_config"]["severity"] == ("warning" if clause.warns else "critical")
        assert entry["expectation_config"]["meta"]["words"] == str(clause)


def test_the_metric_table_has_the_worst_figure_of_each_clause() -> None:
    """Beside the long table: figures and names of columns, no level."""
    gate, result = measured("three")
    rows = tabulate_figures(result)
    table = build_metric_table(gate.clauses(), rows, 3)
    assert len(table) == len(rows)
    bounded = table[table["figure"].isin([clause.figure for clause in gate.clauses()])]
    assert set(bounded["about"].dropna()) == {"sex", "age", "work", "income", *WAYS}
    for judgement in judge(gate.clauses(), result):
        figures = table[judgement.clause.name].dropna()
        worst = figures.min() if judgement.clause.at_least else figures.max()
        assert worst == judgement.value, judgement.clause.name


def run_alone(code: str, folder: Path, **environment: str) -> Finished:
    wanted = {"PATH", "VIRTUAL_ENV", "PYTHONPYCACHEPREFIX"}
    inherited = {name: value for name, value in os.environ.items() if name in wanted}
    return run_program(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        cwd=folder,
        env=inherited
        | {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
        | environment,
    )


ALONE = """
import json, sys
from pathlib import Path
touched = []
def watch(event, arguments):
    mode = arguments[1] if event == "open" and isinstance(arguments[1], str) else ""
    if set(mode) & set("wax+") or event.startswith(KINDS):
        touched.append(f"{event} {arguments}")
KINDS = (
    "socket.connect", "socket.send", "socket.get", "urllib.", "http.", "subprocess.", "os.system", "os.exec",
    "os.posix_spawn", "os.fork", "os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link", "shutil.",
)
sys.addaudithook(watch)
from disclosure_pipeline.evidence.validation import validate
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.evaluation.long_table import FigureRow
clauses = [Clause("repU", "at_most", 5.0), Clause("repU", "at_most_share", 0.5)]
found = validate(clauses, [FigureRow("repU", None, 1, value=5.0, own=9.0)], 1)
print(json.dumps({"kept": found.kept, "results": found.results, "touched": touched}))
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Finished]:
    folder = tmp_path_factory.mktemp("alone")
    return folder, run_alone(ALONE, folder)


def test_nothing_is_written_and_nobody_is_asked(alone: tuple[Path, Finished]) -> None:
    """No file, no connection, no other program, no progress bar."""
    folder, ran = alone
    assert ran.stderr == ""
    document = json.loads(ran.stdout)
    assert document["kept"] == {"repU": True, "repU share": False}
    assert document["touched"] == []
    assert list(folder.iterdir()) == []


@only_in_ci("imports Great Expectations once more, in another environment")
def test_switches_in_the_environment_change_nothing(alone: tuple[Path, Finished], tmp_path: Path) -> None:
    """Nor do settings of Great Expectations in the home folder or working directory."""
    for folder in (tmp_path / ".great_expectations", tmp_path / "gx", tmp_path / "great_expectations"):
        folder.mkdir()
        (folder / "great_expectations.yml").write_text("analytics_enabled: true\nnonsense: [")
        (folder / "great_expectations.conf").write_text("[anonymous_usage_statistics]\nenabled=True\n")
    with_other_settings = run_alone(
        ALONE,
        tmp_path,
        PANDERA_VALIDATION_ENABLED="False",
        PANDERA_VALIDATION_DEPTH="SCHEMA_ONLY",
        GX_ANALYTICS_ENABLED="True",
        GX_HOME=str(tmp_path / "gx"),
        GX_CLOUD_BASE_URL="http://127.0.0.1:9",
        GX_CLOUD_ACCESS_TOKEN="0123456789",
        GX_CLOUD_ORGANIZATION_ID="00000000-0000-0000-0000-000000000000",
        TQDM_DISABLE="0",
    )
    assert (with_other_settings.stdout, with_other_settings.stderr) == (alone[1].stdout, "")


def test_nothing_of_a_candidate_is_left_for_the_next() -> None:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

    for _ in range(3):
        validate(*of_repU(), 3)
    gc.collect()
    contexts = [context for context in gc.get_objects() if issubclass(type(context), EphemeralDataContext)]
    assert len(contexts) <= 1


def test_a_process_of_its_own_says_the_same(
    validator: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, result = measured("three")
    monkeypatch.setattr(validation, "_validator", validator)
    validation.start_validation()
    content = build_dossier(gate, "three", {}, result, judge(gate.clauses(), result))
    figures = json.loads(json.dumps(content["figures"]))
    with validation.validating(gate.clauses(), figures) as wait_for_validation:
        bounded = {clause.figure for clause in gate.clauses()}
        rows = [row for row in tabulate_figures(result) if row.figure in bounded]
        expected = validate(gate.clauses(), rows, 3)
        assert wait_for_validation() == expected
    damaged = {"table": [{"figure": gate.clauses()[0].figure}], "N_s": [1]}
    with (
        validation.validating(gate.clauses(), damaged) as wait_for_validation,
        pytest.raises(UndeterminedError, match="gave no results"),
    ):
        wait_for_validation()
    validator.stop()


def test_several_at_once() -> None:
    """Each finds its own figures."""
    clauses, rows = of_repU()
    clauses = [replace(clause, bound=8) for clause in clauses]

    def one(repU: float) -> Validation:
        return validate(clauses, [replace(row, value=repU) for row in rows], 3)

    values = [float(value) for value in range(6, 11)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(one, values))
    assert [actual.kept["repU"] for actual in together] == [value <= 8 for value in values]
    assert together == [one(value) for value in values]
