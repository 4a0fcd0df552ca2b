"""The standing of candidates after a release: asked for or not, refused today, staged, and the clock."""

import re
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from securesystemslib.signer import CryptoSigner
from support import gates, releases
from support.gates import COPY, HONEST, Home

from disclosure_pipeline.candidates.clock import require_forward_clock
from disclosure_pipeline.candidates.released import RELEASED, list_earlier
from disclosure_pipeline.candidates.store import STATEMENT, Store, list_published
from disclosure_pipeline.errors import StoreError, UndeterminedError
from disclosure_pipeline.orchestration import steps
from disclosure_pipeline.orchestration.failures import _build_notice
from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
from disclosure_pipeline.release.releasing import remove_abandoned
from disclosure_pipeline.release.standing import Standing, list_standings, record_releases
from disclosure_pipeline.release.verifying import Expected, VerificationError, verify
from disclosure_pipeline.runtime.files import hold_lock

pytestmark = pytest.mark.usefixtures("remembered_results")

NOW = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
SIGNER = CryptoSigner.generate_ed25519()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gate": "other"}, "its gate is 'small', not the expected 'other'"),
        ({"candidate": "other"}, "its candidate is 'honest-2026', not the expected 'other'"),
        ({"policy_digest": "0" * 64}, "its policy digest is "),
        ({"not_before": releases.PUBLISHED + timedelta(seconds=1)}, "it was published at "),
    ],
)
def test_another_release_does_not_stand_in(
    arguments: Mapping[str, Any], message: str, tmp_path: Path
) -> None:
    folder = releases.publish(tmp_path / "release", SIGNER)
    with pytest.raises(VerificationError) as refused:
        verify(folder, [releases.trust(SIGNER)], Expected(**arguments))
    (problem,) = refused.value.problems
    assert problem.startswith(message)


def test_what_is_not_asked_for_is_told(tmp_path: Path) -> None:
    folder, keys = releases.publish(tmp_path / "release", SIGNER), [releases.trust(SIGNER)]
    names = ["--gate", "--candidate", "--policy-digest", "--not-before", "--revocations"]
    approval = verify(folder, keys)
    assert [sentence.partition(":")[0] for sentence in approval.unchecked] == names
    assert all(f"\n  {name}: " in str(approval) for name in names)
    predicate = releases.predicate()
    expected = Expected("small", releases.CANDIDATE, predicate.policy.digest, releases.PUBLISHED)
    (tmp_path / "none").touch()
    arguments = verify(folder, keys, expected, tmp_path / "none")
    assert arguments.unchecked == ()
    assert "Not checked" not in str(arguments)


ANOTHER = "published, approved under another ground truth or policy, not judged today"


@pytest.mark.parametrize(
    ("decision", "published", "current", "words"),
    [
        ("approved", True, True, "published"),
        ("refused", True, True, "published, refused today"),
        ("undetermined", True, True, "published, could not be determined today"),
        ("approved", True, False, ANOTHER),
        (None, True, False, "published, not judged"),
        ("refused", False, True, "refused"),
        ("approved", False, True, "approved"),
        (None, False, False, "not judged"),
    ],
)
def test_a_standing_in_words(decision: str | None, published: bool, current: bool, words: str) -> None:
    assert str(Standing("x", decision, published, current)) == words


def test_a_published_candidate_that_would_be_refused_today_is_told(finished_home: Home) -> None:
    """By its check, by a notice, and by `status`; the release itself stays as it was."""
    home = finished_home
    file = gates.write_definition(home.path, gates.definition()) / "defs.yaml"
    before = gates.contents(home.published(HONEST))
    assert status(file) == {HONEST: "published", COPY: "refused"}
    home.write_ground_truth(gates.honest())  # what was published turns out to be a copy
    assert home.run_ground_truth().success
    assert status(file)[HONEST].startswith("published, approved under another ground truth")
    run = home.run_gate(HONEST)
    assert not run.success
    assert status(file)[HONEST] == "published, refused today"
    description = gates.checks(run)["dossier:within_policy"].description
    assert description is not None and description.startswith("Published, refused today: ")

    class Context:
        dagster_run, partition_key, instance = run.dagster_run, HONEST, home.instance

    gate = gates.resolve(gates.definition()).gate
    keys = [check.asset_check_key for check in run.get_asset_check_evaluations()]
    notice = _build_notice(gate, keys, Context())  # type: ignore[arg-type]
    assert notice.subject == f"small, candidate {HONEST}: published, refused today"
    assert gates.contents(home.published(HONEST)) == before


def status(file: Path) -> dict[str, str]:
    shown = gates.run_command("status", file)
    assert shown.exit_code == 0, shown.output
    lines = [line for line in shown.output.splitlines()[1:] if re.match("  [a-z]", line)]
    return {line[0]: line[1] for line in (line.strip().split(": ", 1) for line in lines)}


def test_nothing_is_staged_among_the_releases_and_the_next_run_removes_what_is_left(
    finished_home: Home,
) -> None:
    home = finished_home
    staging = home.path / "releases-staging" / gates.GATE
    assert staging.is_dir() and not list(staging.iterdir())
    left = staging / f".partial-{HONEST}~x"
    left.mkdir()
    (left / "synthetic.csv").write_text("a,b")
    assert home.materialize("synthetic", COPY).success  # a run of any candidate begins with it
    assert not left.exists()


def test_what_a_running_release_has_staged_stays(tmp_path: Path) -> None:
    store, staging = Store(tmp_path / "store"), tmp_path / "staging"
    stages = {name: staging / f".partial-{name}~1" for name in ("running", "killed")}
    for name, stage in stages.items():
        stage.mkdir(parents=True)
        store.candidate_folder(name).mkdir(parents=True)
    unknown = staging / "kept"
    unknown.mkdir()
    with hold_lock(store.candidate_folder("running") / "release.lock"):
        remove_abandoned(store, staging)
        assert stages["running"].is_dir() and unknown.is_dir()
        assert not stages["killed"].exists()
    remove_abandoned(store, staging)
    assert not stages["running"].exists()


def test_a_clock_that_has_gone_back_is_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for moment in (NOW, NOW + timedelta(hours=1), NOW + timedelta(minutes=56)):
        require_forward_clock(store, moment)
    for _ in range(2):  # the refused moment is not recorded
        with pytest.raises(UndeterminedError, match="Correct the clock"):
            require_forward_clock(store, NOW + timedelta(minutes=54))
    require_forward_clock(store, NOW + timedelta(hours=2))


@pytest.mark.parametrize(
    "content", ["", "{}", '{"last_moment": "2026-01-01T00:00:00"}', '{"last_moment": 1}']
)
def test_a_damaged_record_of_the_clock_stops(content: str, tmp_path: Path) -> None:
    (tmp_path / "last_moment.json").write_text(content)
    with pytest.raises(StoreError, match="damaged"):
        require_forward_clock(Store(tmp_path), NOW)


def test_nothing_is_signed_while_the_clock_is_back(
    finished_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(finished_home.path / "releases")
    now = steps.now()
    require_forward_clock(Store(finished_home.store), now)
    monkeypatch.setattr(steps, "now", lambda: now - timedelta(hours=1))
    run = finished_home.materialize("release", HONEST)
    assert not run.success
    assert "is already recorded" in gates.failures(run)[f"{gates.GATE}__release"]
    assert finished_home.nothing_published()


def test_what_is_no_release_is_skipped_and_told(finished_home: Home) -> None:
    """A file system's own folders, an empty one, and notes of somebody."""
    file = gates.write_definition(finished_home.path, gates.definition()) / "defs.yaml"
    releases_folder = finished_home.published(HONEST).parent
    for name in (".snapshot", "lost+found", "empty", "notes"):
        (releases_folder / name).mkdir()
    (releases_folder / "notes" / "todo.md").touch()
    (releases_folder / ".snapshot" / "statement.dsse.json").touch()
    published = list_published(releases_folder)
    assert list(published.releases) == [HONEST]
    assert published.foreign == (".snapshot", "empty", "lost+found", "notes")
    folders = folders_of(load_gate(file))
    record_releases(folders)
    assert {row.candidate for row in list_standings(folders)} == {HONEST, COPY}
    assert list_earlier(folders, "another").releases
    shown = gates.run_command("status", file)
    assert shown.exit_code == 0
    assert shown.stderr.strip() == published.note
    assert published.note == (
        "Skipped in the folder of releases, as no release: '.snapshot', 'empty', 'lost+found', 'notes'."
    )


def test_a_release_without_its_statement_is_not_skipped(finished_home: Home) -> None:
    """It is no foreign folder: its tables are there, and nobody can tell whose."""
    file = gates.write_definition(finished_home.path, gates.definition()) / "defs.yaml"
    folder = finished_home.published(HONEST)
    folders = folders_of(load_gate(file))
    (folder / STATEMENT).unlink()
    for record in (folders.store.root / RELEASED).glob("*.json"):
        record.unlink()
    with pytest.raises(VerificationError):
        record_releases(folders)
    with pytest.raises(StoreError, match="is not recorded in the store"):
        list_earlier(folders, "another")
