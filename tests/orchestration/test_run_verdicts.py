"""How a run tells its verdict: by its tag, by its last event without a stack, by the list of candidates."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates
from support.gates import CANARIES, COPY, GATE, HONEST, Home, metadata_of, rows
from support.homes import remember_results

from disclosure_pipeline.candidates import evaluation
from disclosure_pipeline.candidates.measuring import measure_without_guards
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.evaluation.long_table import list_entries
from disclosure_pipeline.evidence.dossier import collect_figures
from disclosure_pipeline.orchestration.presentation import passes_with_warnings, show_plots
from disclosure_pipeline.orchestration.steps import VERDICT, StepFailedError, group_clauses
from disclosure_pipeline.policy.clauses import KEY_OVERLAPS, Clause
from disclosure_pipeline.policy.verdict import Judgement, Outcome, judge

pytestmark = pytest.mark.usefixtures("remembered_results")


def verdict(home: Home, run: dg.ExecuteInProcessResult) -> str | None:
    recorded = home.instance.get_run_by_id(run.run_id)
    assert recorded is not None
    return recorded.tags.get(VERDICT)


CANDIDATES = {
    HONEST: gates.honest(),
    "broken": gates.honest().drop(columns="age"),
    COPY: gates.ground_truth(),
    "strange": gates.honest().assign(age=98),
}
# In what their runs end, and the words after the candidate's name.
ENDS = {
    "broken": ("refused", "is refused: it breaks the data dictionary:\n- "),
    COPY: ("refused", "is refused:\n- One table holds every record of the other, "),
    "strange": ("undetermined", "could not be judged: it shares too few values"),
}
Judged = tuple[Home, dict[str, dg.ExecuteInProcessResult]]


@pytest.fixture(scope="module")
def judged(
    small_gate: dg.Definitions, results_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Judged]:
    """A home in which the candidates were judged, one after the other, and their runs."""
    path = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as patch, gates.home_in_memory(path, small_gate, patch) as home:
        with remember_results(results_folder):
            home.prepare(CANDIDATES)
            runs = {candidate: home.run_gate(candidate) for candidate in CANDIDATES}
        yield home, runs


def test_runs_carry_their_verdict_and_end_in_words(judged: Judged) -> None:
    home, runs = judged
    [known] = home.instance.get_runs(dg.RunsFilter(job_name=f"{GATE}_ground_truth"))
    assert VERDICT not in known.tags
    approved = runs[HONEST]
    assert approved.success and verdict(home, approved) == "approved"
    logged = home.instance.all_logs(approved.run_id)
    last = [entry.message for entry in logged if not entry.is_dagster_event][-1]
    assert last.startswith(f"Candidate '{HONEST}' is approved: ") and str(home.published(HONEST)) in last
    for candidate, (outcome, words) in ENDS.items():
        run = runs[candidate]
        assert not run.success and verdict(home, run) == outcome
        failure = failure_of(run)
        told = failure.user_failure_data
        assert told.description.startswith(f"Candidate '{candidate}' {words}")
        assert told.metadata["outcome"].value == outcome
        reasons = told.metadata["reasons"].value
        assert reasons and all(str(reason) in told.description for reason in reasons)
        assert failure.error.message.startswith(f"{outcome}: Candidate '{candidate}'")
        assert "disclosure_pipeline" not in failure.error.message
        assert_no_stack(failure.error, outcome)
    everything = gates.everything_logged(home.instance)
    assert not [canary for canary in CANARIES if canary in everything]


def failure_of(run: dg.ExecuteInProcessResult) -> Any:
    (failure,) = [event.step_failure_data for event in run.all_events if event.is_step_failure]
    return failure


def assert_no_stack(error: Any, outcome: str) -> None:
    assert (error.cls_name, error.stack, error.cause, error.context) == (outcome, [], None, None)


def test_a_crash_is_tagged_as_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.prepare({HONEST: gates.honest()})
    monkeypatch.setattr(evaluation, "judge", gates.crash)
    assert verdict(home, home.run_gate(HONEST)) == "crashed"


@pytest.mark.parametrize("outcome", ["refused", "undetermined", "crashed"])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_failure_is_recorded_in_words(outcome: str, retries: int) -> None:
    """It is not tried again, and neither its stack nor the error before it is recorded."""
    tries = []
    sentence = f"Candidate 'a' is {outcome}:\n- repU"

    @dg.op(retry_policy=dg.RetryPolicy(max_retries=retries) if retries else None)
    def fail() -> None:
        tries.append(1)
        try:
            raise ValueError("CANARY")
        except ValueError:
            failure = dg.Failure(sentence, {"outcome": outcome}, allow_retries=False)
        raise StepFailedError(failure)

    run = dg.GraphDefinition("g", node_defs=[fail]).to_job().execute_in_process(raise_on_error=False)
    failure = failure_of(run)
    assert failure.error.message == f"{outcome}: Candidate 'a':\n- repU\n"
    assert_no_stack(failure.error, outcome)
    assert failure.user_failure_data.description == sentence
    assert failure.user_failure_data.metadata["outcome"].value == outcome
    assert len(tries) == 1 and "CANARY" not in str(run.all_events)


def test_a_tag_is_no_evidence(finished_home: Home) -> None:
    """A refused candidate whose run says approved is not released."""
    home = finished_home
    (run,) = home.instance.get_runs(dg.RunsFilter(tags={"dagster/partition": COPY}))
    assert run.tags[VERDICT] == "refused"
    home.instance.add_run_tags(run.run_id, {VERDICT: "approved"})
    alone = home.materialize("release", COPY)
    assert not alone.success and verdict(home, alone) == "refused"
    assert not home.published(COPY).exists()


def test_the_list_of_candidates_follows_each_run(judged: Judged) -> None:
    home, runs = judged
    before, after = metadata_of(runs[HONEST], "candidates")
    assert before[HONEST].value.startswith("approved: For 9.3 % of the people ")
    assert after[HONEST].value == before[HONEST].value.replace("approved", "published", 1)
    (row,) = rows(after["records and dates"])
    assert (row["candidate"], row["records"]) == (HONEST, "298")
    assert datetime.strptime(row["date (UTC)"], "%Y-%m-%d")
    (listed,) = metadata_of(runs[COPY], "candidates")
    assert list(listed)[:3] == [COPY, "broken", HONEST]  # the newest first
    assert listed[HONEST].value == after[HONEST].value
    assert listed[COPY].value == (
        "refused: One table holds every record of the other, unchanged, as a copy of the ground truth would."
    )
    assert listed["broken"].value == "refused: broken contract"
    table = {row["candidate"]: row for row in rows(listed["records and dates"])}
    assert list(table) == [COPY, "broken", HONEST] and table["broken"]["records"] == ""
    names = ("are approved", "are refused", "are published", "dagster/row_count")
    assert [listed[name].value for name in names] == [1, 2, 1, 3]
    (last,) = metadata_of(runs["strange"], "candidates")
    assert last["strange"].value == "undetermined: too little overlap"
    assert last["are undetermined"].value == 1
    alone = home.materialize_all(dg.AssetSelection.assets(dg.AssetKey([GATE, "candidates"])))
    (again,) = metadata_of(alone, "candidates")
    assert again == last


def test_what_arrives_later_under_a_name_is_listed_by_its_own_dossier(home: Home) -> None:
    home.prepare({"again": CANDIDATES["strange"]})
    assert not home.run_gate("again").success
    home.deliver("again", {"synthetic.csv": gates.honest()})
    *_, listed = metadata_of(home.run_gate("again"), "candidates")
    assert listed["again"].value.startswith("published: For ")


def test_a_release_says_what_was_published_and_how_to_verify_it(finished_home: Home) -> None:
    home = finished_home
    digest = gates.stated(home.published(HONEST)).policy.digest
    (message,) = metadata_of(home.run_gate(HONEST), "release")
    assert message["published"].value == "before, with the same content"
    assert message["policy_digest"].value == digest
    (table,) = rows(message["tables"])
    assert (table["table"], table["records"]) == ("synthetic.parquet", 298)
    command = shlex.split(message["verify"].value.strip("`\n").replace("\\\n", " "))
    assert command[:3] == ["disclosure-pipeline", "verify", str(home.published(HONEST))]
    ran = gates.run_command(*command[1:])
    assert ran.exit_code == 0, ran.output
    assert HONEST in ran.output


def test_five_targets_have_a_dozen_checks_an_asset_at_most() -> None:
    columns = {name: {"type": "category"} for name in ("key", "a", "b", "c", "d", "e")}
    gate = gates.gate(
        columns=columns,
        keys=["key"],
        targets=list("abcde"),
        exclusions={"target_levels": {"a": ["x"]}},
        policy={
            "repU": {"at_most": 8, "at_most_share": 0.5},
            "unique_hits": {"beyond": 3},
            "DiSCO": {"at_most": 10, "over": "mean", "worst": 20, "beyond": 3},
            "DCAP": 90,
        },
    )
    checks = group_clauses(gate.clauses())
    for asset in ("identity_risk", "attribute_risk"):
        names = sorted(check.name for check in checks if check.asset == asset)
        assert len(names) <= 12
        questions = [name.partition("_")[0] for name in names]
        assert questions == sorted(questions, key=["copied", "found", "learned", "trusted"].index)
    assert {name for check in checks for name in [check.name] if len(name) > 28} == set()
    grouped = [clause for check in checks for clause in check.clauses]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {clause for clause in gate.clauses() if clause.figure not in KEY_OVERLAPS}


@pytest.mark.parametrize(
    ("outcomes", "warns", "expected"),
    [
        (["kept", "kept"], [False, True], False),
        (["kept", "exceeded"], [False, True], True),
        (["exceeded", "exceeded"], [False, True], False),
        (["waived", "kept"], [False, False], True),
        (["waived", "undetermined"], [False, False], False),
    ],
)
def test_a_check_of_several_clauses_warns_only_where_all_that_are_broken_do(
    outcomes: list[Outcome], warns: list[bool], expected: bool
) -> None:
    judgements = [
        Judgement(Clause("DiSCO", "at_most", 1, (name,), warns=warn), 2, 1, outcome)
        for name, outcome, warn in zip("ab", outcomes, warns, strict=True)
    ]
    assert passes_with_warnings(judgements) is expected


def test_a_figure_stands_beside_that_of_others_for_the_same_file() -> None:
    """The largest of either, of different files, would belong to no table."""
    gate = gates.gate()
    tables = (gates.ground_truth(), gates.honest(), gates.honest(2))
    result = measure_without_guards(gate, FramesInMemory(tables, "memory"))
    attribute = result.attribute.copy()
    of_work = attribute.index.get_level_values("target") == "work"
    attribute.loc[of_work, "DiSCO"] = [30.0, 20.0]
    attribute.loc[of_work, "DiSCO_others"] = [5.0, 15.0]
    changed = replace(result, attribute=attribute)
    shown = show_plots(collect_figures(changed, 10, list_entries()), judge(gate.clauses(), changed), ["work"])
    assert (shown["DiSCO__work"].value, shown["DiSCO__work__others"].value) == (30.0, 5.0)
