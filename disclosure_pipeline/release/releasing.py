"""The release of a candidate: verified again from the first byte, signed, and published once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.trust import TrustedKey, read_trusted
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.release.approval import (
    GateFolders,
    RefusedError,
    UndeterminedError,
    against,
    evaluate,
    reasons,
)
from disclosure_pipeline.release.files import StoreError, read_json, to_json, write_whole
from disclosure_pipeline.release.keys import salted, signer
from disclosure_pipeline.release.predicate import predicate
from disclosure_pipeline.release.publishing import publish, staged
from disclosure_pipeline.release.statement import STATEMENT, sign, statement
from disclosure_pipeline.release.store import Snapshot, load_snapshot
from disclosure_pipeline.release.verifying import verify


def release(
    folders: GateFolders,
    candidate: str,
    run_id: str,
    clock: Callable[[], datetime],
    unpassed: Callable[[Sequence[Judgement]], Sequence[str]],
) -> tuple[Path, bool]:
    """Verify everything again, then publish with a signed statement.

    `unpassed` tells, from what was judged now, what stands against taking the run's checks for passed;
    `clock` tells the time.
    Returns the published folder and whether it was published now. RefusedError where a clause is not
    kept, UndeterminedError where one is not determined or a check did not pass, StoreError where the dossier
    is not the one that this evaluation gives or something changed meanwhile.
    """
    own_key, trusted = signer(), _trusted_keys(folders)
    snapshot = load_snapshot(candidate, folders.store)
    recorded = read_json(folders.store.candidate(candidate) / "dossier.json", "dossier")
    if recorded.get("decision") in {"refused", "undetermined"}:
        # Believed, since it is against a release: nothing of such a candidate is laid next to the published.
        _refuse(candidate, recorded["decision"], against(recorded))
    with staged(snapshot, folders.store, folders.releases) as stage:
        measured_at = clock()
        evaluation = evaluate(folders, candidate, measured_at, stage)
        content = evaluation.dossier
        if content["decision"] != "approved":
            _refuse(candidate, content["decision"], reasons(evaluation))
        if snapshot.sha256 != content["measured"]["snapshot"]:
            raise StoreError(
                f"The snapshot of {candidate!r} changed while it was measured: run synthetic again."
            )
        if (folders.store.candidate(candidate) / "dossier.json").read_bytes() != to_json(content):
            raise StoreError(
                f"The dossier of {candidate!r} is not what its tables and policy give: run dossier again."
            )
        doubts = unpassed(evaluation.judgements)
        if doubts:
            raise UndeterminedError(f"Candidate {candidate!r} is not released: {'; '.join(doubts)}.")
        target = folders.releases / candidate
        if target.exists():
            _require_same(target, folders.gate, snapshot, trusted)
            return target, False
        said = predicate(
            content,
            folders.gate.policy.model_dump(mode="json"),
            dossier=hashlib.sha256(to_json(content)).hexdigest(),
            ground_truth=salted(content["measured"]["ground_truth"]),
            tables=[file.name for file in snapshot.files],
            run_id=run_id,
            measured_at=measured_at,
            published_at=clock(),
        )
        subjects = {file.name: file.sha256 for file in snapshot.files}
        write_whole(stage / STATEMENT, sign(statement(subjects, said), own_key))
        # As anyone will who gets the folder: what could not be verified then is not published now.
        verify(stage, trusted)
        publish(stage, target)
        return target, True


def _refuse(candidate: str, decision: str, reasons: Sequence[str]) -> NoReturn:
    error = RefusedError if decision == "refused" else UndeterminedError
    raise error(f"Candidate {candidate!r} is {decision}: {'; '.join(reasons)}.")


def _trusted_keys(folders: GateFolders) -> tuple[TrustedKey, ...]:
    keys = folders.trusted_keys
    return read_trusted(keys) if isinstance(keys, Path) else keys


def _require_same(target: Path, gate: Gate, snapshot: Snapshot, trusted: Sequence[TrustedKey]) -> None:
    """StoreError or VerificationError unless the very same content is published there, by this gate."""
    said = verify(target, trusted).predicate
    if (said.gate, said.candidate, said.snapshot) != (gate.name, snapshot.candidate, snapshot.sha256):
        raise StoreError(
            f"Candidate {snapshot.candidate!r} was published before with other content. A candidate is "
            "published once: give the new synthesis a name of its own."
        )
