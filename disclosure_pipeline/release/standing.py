"""The present standing of a gate's candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.arrival import (
    ARRIVAL,
    BROKEN_CONTRACT,
    TOO_LITTLE_OVERLAP,
    RecordedTables,
    read_recorded_tables,
)
from disclosure_pipeline.candidates.released import (
    Released,
    is_gone,
    list_unrecorded,
    read_recorded_releases,
    record_released,
)
from disclosure_pipeline.candidates.snapshot import load_snapshot
from disclosure_pipeline.candidates.store import (
    STATEMENT,
    GateFolders,
    is_safe_name,
    list_published,
    locate_revocations,
)
from disclosure_pipeline.errors import DisclosurePipelineError, StoreError
from disclosure_pipeline.evidence.page.rendering import is_dossier
from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import Judgement, find_worst_judgement
from disclosure_pipeline.release.readiness import read_trusted_keys
from disclosure_pipeline.release.revoking import (
    Revocation,
    RevocationError,
    find_revocations,
    read_gate_revocations,
    read_signed_statement,
)
from disclosure_pipeline.release.verifying import verify
from disclosure_pipeline.runtime.files import make_private, read_json_if_whole, write_json

# The decision on a candidate whose run ended on arrival.
_DECISIONS_ON_ARRIVAL: Mapping[str, str] = {BROKEN_CONTRACT: "refused", TOO_LITTLE_OVERLAP: "undetermined"}

CRASH = "crash.json"
"""The file with a candidate's last crashed run; it stays when a later run has decided."""

MOST_TRIES = 3
"""The number of runs that may crash in turn before a candidate is no longer evaluated by itself."""


@dataclass(frozen=True)
class Crash:
    """The end of a crashed run, how many crashed in turn, and the reason without a value of GT.

    Runs count since the confidential tables were recorded.
    """

    ended_at: datetime
    tries: int
    reason: str

    def __str__(self) -> str:
        tries = f"try {self.tries} of {MOST_TRIES}"
        if self.tries >= MOST_TRIES:
            tries = f"{self.tries} tries, and no more by itself"
        return f"its last run crashed ({tries}): {' '.join(self.reason.split())}"


def record_crash(folders: GateFolders, candidate: str, crash: Crash) -> None:
    """Record a crashed run of a candidate. Raise StoreError if the name is none of a candidate."""
    path = folders.store.candidate_folder(candidate) / CRASH
    make_private(folders.store.root)
    write_json(path, {"ended_at": crash.ended_at.isoformat(), "tries": crash.tries, "reason": crash.reason})


def read_crash(folders: GateFolders, candidate: str) -> Crash | None:
    """Return the last recorded crash of a candidate; None if there is none, or its record is damaged."""
    record = read_json_if_whole(folders.store.candidate_folder(candidate) / CRASH)
    with suppress(KeyError, TypeError, ValueError):
        crash = Crash(datetime.fromisoformat(record["ended_at"]), int(record["tries"]), str(record["reason"]))
        return crash if crash.ended_at.tzinfo is not None else None
    return None


@dataclass(frozen=True)
class Standing:
    """The decision on a candidate, whether that is current, and whether the candidate is published.

    `decision` is None without a readable dossier. `is_current`: it was made with the confidential tables that
    are recorded now and the policy in force. From the dossier, or None: `judged_at`, when it was filed (UTC);
    `reason`, the sentence on the clause most against a release; `records`, the number of
    synthetic records. `problem`: what ended the run of a candidate on arrival, before it was measured, or the
    last run, if it crashed. `is_revoked`: a revocation beside the releases concerns the published folder,
    which then does not count as published.
    """

    candidate: str
    decision: str | None
    is_published: bool
    is_current: bool
    judged_at: datetime | None = None
    reason: str | None = None
    records: int | None = None
    problem: str | None = None
    is_revoked: bool = False

    def __str__(self) -> str:
        if self.is_revoked:
            return "revoked"
        standing = describe_standing(
            self.decision, is_published=self.is_published, is_current=self.is_current
        )
        return standing if self.problem is None else f"{standing}: {self.problem}"


def describe_standing(decision: str | None, *, is_published: bool, is_current: bool = True) -> str:
    """Describe the standing of a candidate.

    >>> describe_standing("refused", is_published=True)
    'published, refused today'
    >>> describe_standing("refused", is_published=False)
    'refused'
    """
    judgement = decision or "not judged"
    if not is_current and decision is not None:
        judgement = f"{judgement} under another ground truth or policy, not judged today"
    if not is_published:
        return judgement
    if not is_current or decision is None:
        return f"published, {judgement}"
    standings = {"approved": "published", "refused": "published, refused today"}
    return standings.get(decision, "published, could not be determined today")


def is_published(folders: GateFolders, candidate: str) -> bool:
    """Return True if the candidate has a release, unless a revocation is known to concern it."""
    published = list_published(folders.releases).releases
    if candidate not in published:
        return False
    with suppress(DisclosurePipelineError):
        return candidate not in find_revoked(folders, {candidate: published[candidate]})
    return True


def find_revoked(folders: GateFolders, published: Mapping[str, Path] | None = None) -> frozenset[str]:
    """Return the candidates whose release was revoked, among those of `published` folders (by default all).

    Raise DisclosurePipelineError if the revocations cannot be believed.
    """
    if not locate_revocations(folders.releases).exists():
        return frozenset()
    keys = read_trusted_keys(folders)
    revocations = read_gate_revocations(folders.releases, keys)
    if published is None:
        published = list_published(folders.releases).releases
    return frozenset(name for name, folder in published.items() if _is_revoked(folder, keys, revocations))


def record_releases(folders: GateFolders) -> None:
    """Record in the store published folders that it lacks, and revocations of releases whose bytes are gone.

    Raise VerificationError if a release is not what its statement says, StoreError if the store lacks the
    bytes that it was written from, and RevocationError if the revocations cannot be believed.
    """
    unrecorded = list_unrecorded(folders)
    recorded = read_recorded_releases(folders.store)
    gone = [release for release in recorded if not release.is_revoked and is_gone(release, folders.store)]
    if not unrecorded and not gone:
        return
    keys = read_trusted_keys(folders)
    for name in unrecorded:
        predicate = verify(folders.releases / name, keys).predicate
        snapshot = load_snapshot(name, folders.store)
        if snapshot.sha256 != predicate.snapshot:
            raise StoreError(
                f"The tables of {name!r} in the store are not the published ones, so nobody can tell what a "
                "candidate adds to them: deliver the published tables again."
            )
        published_at = predicate.published_at.astimezone(timezone.utc).isoformat()
        record_released(folders.store, Released(snapshot, published_at))
    revocations = read_gate_revocations(folders.releases, keys)
    for release in gone:
        names = (folders.gate.name, release.snapshot.candidate, release.snapshot.sha256)
        if any(revocation.concerns(*names) for revocation in revocations):
            record_released(folders.store, replace(release, is_revoked=True))


def list_standings(folders: GateFolders) -> list[Standing]:
    """Return the standing of every candidate that has records or a release, ordered by name."""
    candidates = folders.store.root / "candidates"
    known = candidates.iterdir() if candidates.is_dir() else ()
    published = list_published(folders.releases).releases
    names = {path.name for path in known if path.is_dir()} | set(published)
    recorded, digest = read_recorded_tables(folders), folders.gate.policy_digest()
    standings = [
        _add_crash(folders, _read_judged(folders, name, recorded, digest, is_published=name in published))
        for name in sorted(filter(is_safe_name, names))
    ]
    try:
        revoked = find_revoked(folders, published)
    except DisclosurePipelineError:
        problem = "its revocations cannot be read"
        return [replace(row, problem=problem) if row.is_published else row for row in standings]
    return [
        replace(row, is_revoked=True, is_published=False) if row.candidate in revoked else row
        for row in standings
    ]


def _is_revoked(folder: Path, keys: Sequence[TrustedKey], revocations: Sequence[Revocation]) -> bool:
    """Return True if a published folder was revoked; one with a damaged statement is sought by its name."""
    try:
        statement = read_signed_statement(folder, keys)
    except RevocationError:
        names = (folder.parent.name, folder.name)
        return any((revocation.gate, revocation.candidate) == names for revocation in revocations)
    return bool(find_revocations(folder, statement.predicate, statement.files, revocations))


def _add_crash(folders: GateFolders, judged: Standing) -> Standing:
    crash = read_crash(folders, judged.candidate)
    ended_well = [judged.judged_at, _modified_at(folders.releases / judged.candidate / STATEMENT)]
    if crash is None or any(time is not None and time >= crash.ended_at for time in ended_well):
        return judged
    return replace(judged, problem="; ".join(filter(None, (judged.problem, str(crash)))))


def _read_judged(
    folders: GateFolders,
    candidate: str,
    recorded: RecordedTables,
    policy_digest: str,
    *,
    is_published: bool,
) -> Standing:
    """Return the standing without a crash or a revocation since."""
    folder = folders.store.candidate_folder(candidate)
    path = folder / "dossier.json"
    arrival = read_json_if_whole(folder / ARRIVAL)
    if arrival.get("problem") in _DECISIONS_ON_ARRIVAL:  # a dossier beside it is of an earlier arrival
        return Standing(
            candidate,
            _DECISIONS_ON_ARRIVAL[arrival["problem"]],
            is_published,
            is_current=arrival.get("policy_digest") == policy_digest,
            judged_at=_modified_at(folder / ARRIVAL),
            problem=arrival["problem"],
        )
    dossier = read_json_if_whole(path)
    measured, decision = dossier.get("measured"), dossier.get("decision")
    reason = records = None
    with suppress(KeyError, TypeError):  # the record is damaged
        worst = find_worst_judgement(map(Judgement.from_row, dossier["clauses"]))
        reason = None if worst is None else write_sentence(worst, dossier)
    with suppress(KeyError, TypeError):
        records = sum(dossier["figures"]["N_s"])
    return Standing(
        candidate,
        decision if isinstance(decision, str) else None,
        is_published,
        is_current=dossier.get("policy_digest") == policy_digest and recorded.were_measured(measured),
        judged_at=_modified_at(path) if dossier else None,
        reason=reason,
        records=records,
    )


def _modified_at(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    except OSError:
        return None


def read_newest_dossiers(folders: GateFolders, limit: int) -> list[dict[str, Any]]:
    """Return the content of the dossiers filed last, at most `limit`, newest first; skip damaged ones."""
    dossiers = map(read_json_if_whole, reversed(folders.store.list_dossiers()))
    return [*islice(filter(is_dossier, dossiers), limit)]
