"""`disclosure-pipeline run`: a whole run from the command line, in the instance that the daemon uses."""

import re
from collections.abc import Iterator

import dagster as dg
import pytest
from click.testing import Result
from support import gates
from support.gates import COPY, GATE, HONEST, Home


@pytest.fixture
def project(
    small_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch, remembered_results: None
) -> Iterator[Home]:
    """A gate's file, its home with one complete candidate, and an instance that knows of no run."""
    with gates.quick_folder() as path, gates.home_on_disk(path, small_gate, monkeypatch) as home:
        gates.write_definition(path, gates.definition())
        home.write_ground_truth(gates.ground_truth())
        home.deliver(HONEST, {"synthetic.csv": gates.honest()})
        yield home


def run(home: Home, candidate: str) -> Result:
    return gates.run_command("run", home.path / "defs.yaml", candidate)


def test_a_candidate_is_run_to_its_release_and_another_to_its_refusal(project: Home) -> None:
    approved = run(project, HONEST)
    assert approved.exit_code == 0, approved.output
    published = project.path / "releases" / GATE / HONEST
    page = project.path / "store" / GATE / "candidates" / HONEST / "dossier.html"
    assert approved.stdout == f"{HONEST}: approved\nPublished in {published}\nPage: {page}\n"
    assert gates.stated(published).candidate == HONEST
    project.deliver(COPY, {"synthetic.csv": gates.ground_truth()})
    refused = run(project, COPY)
    assert refused.exit_code == 1, refused.output
    assert refused.stdout.startswith(f"{COPY}: refused\nCandidate {COPY!r} is refused:\n- ")
    assert not (project.path / "releases" / GATE / COPY).exists()

    jobs = [record.job_name for record in project.instance.get_runs()]  # the ground truth once
    assert sorted(jobs) == [f"{GATE}_gate", f"{GATE}_gate", f"{GATE}_ground_truth"]
    by_id = {record.run_id: record.tags for record in project.instance.get_runs()}
    ids = [re.findall(r"^Run (\S+)$", shown.stderr, re.MULTILINE) for shown in (approved, refused)]
    assert [by_id[run_id]["verdict"] for [run_id] in ids] == ["approved", "refused"]
    assert project.instance.get_dynamic_partitions(f"{GATE}_candidates") == [HONEST, COPY]


def test_a_broken_ground_truth_decides_nothing(project: Home) -> None:
    project.write_ground_truth(gates.ground_truth().assign(age=-1))
    shown = run(project, HONEST)
    assert shown.exit_code == 3, shown.output
    assert shown.stdout.startswith(f"{HONEST}: undetermined\nNothing can be determined: the ground truth")
    assert [record.job_name for record in project.instance.get_runs()] == [f"{GATE}_ground_truth"]


NOT_COMPLETE = f"Complete are: {HONEST}."
NOT_ALLOWED = "is not allowed: expected at most 100 letters"


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        ("missing", NOT_COMPLETE),
        ("slow", NOT_COMPLETE),
        *((name, NOT_ALLOWED) for name in ("wave 2", "A,B", "../evil")),
    ],
)
def test_a_candidate_that_cannot_be_taken_starts_nothing(project: Home, candidate: str, told: str) -> None:
    if "/" not in candidate and candidate != "missing":
        project.deliver(candidate, {"synthetic.csv": gates.honest(3)}, complete=candidate != "slow")
    shown = run(project, candidate)
    assert shown.exit_code == 3
    assert repr(candidate) in shown.stderr and told in shown.stderr
    # What to put where is said where it would help.
    assert ("No complete candidate" in shown.stderr) == (told == NOT_COMPLETE) == ("_SUCCESS" in shown.stderr)
    assert project.instance.get_runs() == []


@pytest.mark.parametrize("home", [None, "home", "/nowhere"])
@pytest.mark.parametrize("are_absolute", [False, True])  # the paths in the gate's file
def test_a_run_that_nobody_would_find_again_is_not_started(
    home: str | None, are_absolute: bool, project: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    if are_absolute:
        attributes = gates.definition()
        paths = ("ground_truth", "incoming", "store", "releases", "trusted_keys")
        attributes |= {name: str(project.path / attributes[name]) for name in paths}
        gates.write_definition(project.path, attributes)
    monkeypatch.delenv("DAGSTER_HOME")
    if home is not None:
        monkeypatch.setenv("DAGSTER_HOME", home)
    shown = run(project, HONEST)
    assert shown.exit_code == 3 and "DAGSTER_HOME" in shown.stderr
