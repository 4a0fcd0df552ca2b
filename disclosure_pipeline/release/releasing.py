"""The release of a candidate: everything verified again from the first byte, signed, and published once."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

from disclosure_pipeline.candidates.arrival import name_confidential_hash
from disclosure_pipeline.candidates.clock import require_forward_clock
from disclosure_pipeline.candidates.evaluation import evaluate, file_dossier, measure
from disclosure_pipeline.candidates.reading import read_staged
from disclosure_pipeline.candidates.released import (
    RELEASED,
    Released,
    list_earlier,
    name_releases,
    record_released,
)
from disclosure_pipeline.candidates.snapshot import Snapshot, load_snapshot, read_snapshot
from disclosure_pipeline.candidates.store import PARTIAL_PREFIX, STATEMENT, GateFolders, Store, is_safe_name
from disclosure_pipeline.errors import RefusedError, StoreError, UndeterminedError
from disclosure_pipeline.evidence.dossier import describe_broken_clauses
from disclosure_pipeline.evidence.page.rendering import PAGE, render_page
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.release.keys import hash_with_salt, load_signer
from disclosure_pipeline.release.predicate import build_predicate
from disclosure_pipeline.release.published_tables import write_tables
from disclosure_pipeline.release.readiness import find_power, read_trusted_keys
from disclosure_pipeline.release.revoking import find_revocations, read_gate_revocations
from disclosure_pipeline.release.standing import record_releases
from disclosure_pipeline.release.statement import build_statement, sign
from disclosure_pipeline.release.verifying import Approval, verify
from disclosure_pipeline.runtime.files import (
    copy_hashed,
    hold_lock,
    read_json,
    sync_folder,
    to_json,
    write_whole,
)

# Between a candidate's id, in which it is not allowed, and the unique ending of a staged folder's name.
_SEPARATOR = "~"


@dataclass(frozen=True)
class Stage:
    """Two private folders: the copy of the snapshot, and the future release."""

    arrived: Path
    release: Path


@contextmanager
def stage_snapshot(snapshot: Snapshot, store: Store, staging: Path) -> Iterator[Stage]:
    """Yield a copy of a snapshot's bytes and an empty folder for the release, in one folder of `staging`.

    The same copy is measured and published, whatever happens to the store meanwhile. Wait for another release
    of the candidate, and remove what a killed one left. Raise StoreError if the stored bytes changed.
    """
    staging.mkdir(parents=True, exist_ok=True)
    with hold_lock(_lock_path(store, snapshot.candidate)):
        prefix = f"{PARTIAL_PREFIX}{snapshot.candidate}{_SEPARATOR}"
        for abandoned in staging.glob(f"{prefix}*"):
            shutil.rmtree(abandoned)
        folder = Path(tempfile.mkdtemp(dir=staging, prefix=prefix))
        stage = Stage(folder / "arrived", folder / "release")
        try:
            stage.arrived.mkdir()
            stage.release.mkdir()
            for file in snapshot.files:
                target = stage.arrived / file.name
                with store.stored_path(file).open("rb") as original, target.open("xb") as copy:
                    copied = copy_hashed(original, copy)
                if copied.sha256 != file.sha256:
                    raise StoreError(f"The stored bytes of {file.name!r} changed: run synthetic again.")
            yield stage
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(store: Store, staging: Path) -> None:
    """Remove what killed releases left in `staging`, but no stage of a running release."""
    for stage in sorted(staging.glob(f"{PARTIAL_PREFIX}*{_SEPARATOR}*")) if staging.is_dir() else []:
        candidate = stage.name.removeprefix(PARTIAL_PREFIX).partition(_SEPARATOR)[0]
        if stage.is_symlink() or not is_safe_name(candidate):
            continue
        with suppress(BlockingIOError), hold_lock(_lock_path(store, candidate), wait=False):
            shutil.rmtree(stage, ignore_errors=True)


def require_one_file_system(staging: Path, releases: Path) -> None:
    """Raise StoreError unless a staged folder can be renamed into the releases."""
    staging.mkdir(parents=True, exist_ok=True)
    releases.mkdir(parents=True, exist_ok=True)
    if staging.stat().st_dev != releases.stat().st_dev:
        raise StoreError(
            f"{staging} and {releases} are on different file systems, so nothing can be published in one "
            "step: make releases a folder inside the mounted one."
        )


def _lock_path(store: Store, candidate: str) -> Path:
    folder = store.candidate_folder(candidate)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "release.lock"


def publish(stage: Path, target: Path) -> None:
    """Rename a staged folder to its final name in one step. Raise OSError if the name is taken."""
    for path in stage.iterdir():
        path.chmod(0o644)
    stage.chmod(0o755)
    sync_folder(stage)
    stage.rename(target)
    sync_folder(target.parent)


@dataclass(frozen=True)
class Release:
    """A published folder and its verified approval; `is_new`: it was published just now."""

    folder: Path
    is_new: bool
    approval: Approval


# Serialises the releases of a gate: each candidate is judged beside the earlier ones.
_LOCK = "released.lock"


def release(folders: GateFolders, candidate: str, run_id: str, clock: Callable[[], datetime]) -> Release:
    """Verify everything again, then publish with a signed statement.

    Dagster's records decide nothing, since anyone who reaches its web server can write them. If another
    candidate was published since the dossier was filed, measure and file it again beside that one. Raise
    RefusedError if a clause is not kept or a table was revoked, UndeterminedError if a clause is not
    determined, and StoreError if the dossier differs from this evaluation or something changed meanwhile.
    """
    read_snapshot(candidate, folders.store)
    with hold_lock(folders.store.root / _LOCK):
        record_releases(folders)
        _file_anew(folders, candidate, clock)
        return _release(folders, candidate, run_id, clock)


def _file_anew(folders: GateFolders, candidate: str, clock: Callable[[], datetime]) -> None:
    """Measure an approved candidate and file its dossier again if another was published since."""
    recorded = read_json(folders.store.candidate_folder(candidate) / "dossier.json", "dossier")
    earlier = name_releases(list_earlier(folders, candidate).digest)
    if recorded.get("decision") == "approved" and recorded["measured"].get(RELEASED) != earlier.get(RELEASED):
        measure(folders, candidate, clock())
        file_dossier(folders, candidate)


def _release(folders: GateFolders, candidate: str, run_id: str, clock: Callable[[], datetime]) -> Release:
    signer, trusted_keys = load_signer(), read_trusted_keys(folders)
    snapshot = load_snapshot(candidate, folders.store)
    recorded = read_json(folders.store.candidate_folder(candidate) / "dossier.json", "dossier")
    if recorded.get("decision") in {"refused", "undetermined"}:
        # Safe to believe, as it is against a release: no file of such a candidate is staged.
        _refuse(folders.gate, candidate, recorded)
    require_one_file_system(folders.staging, folders.releases)
    with stage_snapshot(snapshot, folders.store, folders.staging) as stage, ExitStack() as stack:
        measured_at = clock()
        require_forward_clock(folders.store, measured_at)
        # Read once: the same tables are measured and published.
        staged = read_staged(folders, snapshot, stage.arrived, stack)
        evaluation = evaluate(folders, candidate, measured_at, staged)
        content = evaluation.dossier
        if content["decision"] != "approved":
            _refuse(folders.gate, candidate, content)
        if snapshot.sha256 != content["measured"]["snapshot"]:
            raise StoreError(
                f"The snapshot of {candidate!r} changed while it was measured: run synthetic again."
            )
        dossier = to_json(content)
        if (folders.store.candidate_folder(candidate) / "dossier.json").read_bytes() != dossier:
            raise StoreError(
                f"The dossier of {candidate!r} does not follow from its tables and policy: run dossier again."
            )
        target = folders.releases / candidate
        if target.exists():
            published = _require_same(target, folders.gate, snapshot, trusted_keys)
            _require_unrevoked(target, published, folders, trusted_keys)
            return Release(target, False, published)
        files = write_tables(folders.gate, staged, stage.release)
        power = find_power(folders, content["measured"]["ground_truth"])
        page = render_page(content, "publication", power=power).encode()
        write_whole(stage.release / PAGE, page)
        published_at = clock()
        require_forward_clock(folders.store, published_at)
        predicate = build_predicate(
            content,
            folders.gate.policy.model_dump(mode="json"),
            dossier=hashlib.sha256(dossier).hexdigest(),
            ground_truth=hash_with_salt(content["measured"]["ground_truth"]),
            confidential={
                name: hash_with_salt(content["measured"][name_confidential_hash(name)])
                for name in folders.confidential
            },
            tables={file.name: file.records for file in files},
            run_id=run_id,
            measured_at=measured_at,
            published_at=published_at,
            page=PAGE,
            power=power,
        )
        subjects = {file.name: file.sha256 for file in files} | {PAGE: hashlib.sha256(page).hexdigest()}
        write_whole(stage.release / STATEMENT, sign(build_statement(subjects, predicate), signer))
        # Publish nothing that its recipients could not verify.
        approval = verify(stage.release, trusted_keys)
        _require_unrevoked(stage.release, approval, folders, trusted_keys)
        publish(stage.release, target)
        record_released(folders.store, Released(snapshot, published_at.astimezone(timezone.utc).isoformat()))
        return Release(target, True, approval)


def _refuse(gate: Gate, candidate: str, dossier: Mapping[str, Any]) -> NoReturn:
    decision = dossier["decision"]
    reasons = describe_broken_clauses(dossier, gate.policy.smallest_count).values()
    error = RefusedError if decision == "refused" else UndeterminedError
    raise error(f"Candidate {candidate!r} is {decision}: {' '.join(reasons)}")


def _require_unrevoked(
    folder: Path, approval: Approval, folders: GateFolders, keys: Sequence[TrustedKey]
) -> None:
    recorded = read_gate_revocations(folders.releases, keys)
    revocations = find_revocations(folder, approval.predicate, approval.files, recorded)
    if revocations:
        reasons = "; ".join(map(str, revocations))
        raise RefusedError(f"Candidate {approval.predicate.candidate!r} is not released: {reasons}.")


def _require_same(
    target: Path, gate: Gate, snapshot: Snapshot, trusted_keys: Sequence[TrustedKey]
) -> Approval:
    approval = verify(target, trusted_keys)
    published = approval.predicate
    expected = (gate.name, snapshot.candidate, snapshot.sha256)
    if (published.gate, published.candidate, published.snapshot) != expected:
        raise StoreError(
            f"Candidate {snapshot.candidate!r} is already published with different content. A candidate is "
            "published once: give the new synthesis its own name."
        )
    return approval
