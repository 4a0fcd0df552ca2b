"""The standing of a gate's candidates: approved, published, revoked, or refused as of today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.arrival import (
    ARRIVAL,
    BROKEN_CONTRACT,
    TOO_LITTLE_OVERLAP,
    RecordedTables,
    read_recorded_tables,
)
from disclosure_pipeline.candidates.released import Released, is_gone, list_unrecorded, record_released
from disclosure_pipeline.candidates.released import read_released as read_recorded_releases
from disclosure_pipeline.candidates.store import GateFolders, is_safe_name, load_snapshot, locate_revocations
from disclosure_pipeline.errors import DisclosurePipelineError, StoreError
from disclosure_pipeline.policy.trust import TrustedKey
from disclosure_pipeline.policy.verdict import Judgement, find_worst_judgement
from disclosure_pipeline.release.readiness import read_trusted_keys
from disclosure_pipeline.release.revoking import (
    Revocation,
    RevocationError,
    find_revocations,
    read_gate_revocations,
    read_released,
)
from disclosure_pipeline.release.verifying import verify
from disclosure_pipeline.runtime.files import read_json

_ENDED_AS: Mapping[str, str] = {BROKEN_CONTRACT: "refused", TOO_LITTLE_OVERLAP: "undetermined"}


@dataclass(frozen=True)
class Standing:
    """A candidate: what its dossier decides, whether it is published, and whether it was judged as of today.

    `decision` is None where there is no dossier that can be read; `is_current`: the dossier is of the ground
    truth and the further confidential tables that are recorded, and of the policy that holds. Of the dossier,
    None where there is none: `judged_at`, when it was filed (UTC); `worst_clause`, the one that stands most
    against a release, with its value and bound; `records`, the number of all synthetic records. A candidate
    that was not measured has no dossier, but a `problem`: the kind that ended its run as it arrived.
    `is_revoked`: a revocation beside the releases concerns what is published.
    """

    candidate: str
    decision: str | None
    is_published: bool
    is_current: bool
    judged_at: datetime | None = None
    worst_clause: str | None = None
    records: int | None = None
    problem: str | None = None
    is_revoked: bool = False

    def __str__(self) -> str:
        """Return words such as "published, refused today"."""
        if self.is_revoked:
            return "revoked"
        standing = describe_standing(
            self.decision, is_published=self.is_published, is_current=self.is_current
        )
        return standing if self.problem is None else f"{standing}: {self.problem}"


def describe_standing(decision: str | None, *, is_published: bool, is_current: bool = True) -> str:
    """Return the standing of a candidate in words.

    >>> describe_standing("refused", is_published=True)
    'published, refused today'
    >>> describe_standing("refused", is_published=False)
    'refused'
    """
    decided = decision or "not judged"
    if not is_current and decision is not None:
        decided = f"{decided} under another ground truth or policy, not judged today"
    if not is_published:
        return decided
    if not is_current or decision is None:
        return f"published, {decided}"
    words = {"approved": "published", "refused": "published, refused today"}
    return words.get(decision, "published, could not be determined today")


def is_published(folders: GateFolders, candidate: str) -> bool:
    """Return whether there is a release of that name."""
    return is_safe_name(candidate) and (folders.releases / candidate).is_dir()


def record_releases(folders: GateFolders) -> None:
    """Record the releases that lie there and are not recorded, and which ones without bytes were revoked.

    VerificationError where one is not what its statement says, StoreError where the store has not the bytes
    that it was written from, RevocationError where the revocations cannot be believed.
    """
    unrecorded = list_unrecorded(folders)
    gone = [
        of for of in read_recorded_releases(folders.store) if not of.is_revoked and is_gone(of, folders.store)
    ]
    if not unrecorded and not gone:
        return
    keys = read_trusted_keys(folders)
    for name in unrecorded:
        released = verify(folders.releases / name, keys).predicate
        snapshot = load_snapshot(name, folders.store)
        if snapshot.sha256 != released.snapshot:
            raise StoreError(
                f"The store has other tables of {name!r} than were published: nobody can tell what a "
                "candidate adds to them. Deliver what was published again."
            )
        published_at = released.published_at.astimezone(timezone.utc).isoformat()
        record_released(folders.store, Released(snapshot, published_at))
    revoked = [of for of in read_gate_revocations(folders.releases, keys) if of.gate == folders.gate.name]
    for recorded in gone:
        names = {recorded.snapshot.candidate, recorded.snapshot.sha256}
        if any(names & {of.candidate, of.snapshot} for of in revoked):
            record_released(folders.store, replace(recorded, is_revoked=True))


def list_standings(folders: GateFolders) -> list[Standing]:
    """Return the standing of every candidate that has records or a release, in order of their names."""
    homes = [folders.store.root / "candidates", folders.releases]
    names = {path.name for home in homes if home.is_dir() for path in home.iterdir() if path.is_dir()}
    recorded, digest = read_recorded_tables(folders), folders.gate.policy_digest()
    standings = [
        _read_standing(folders, name, recorded, digest) for name in sorted(filter(is_safe_name, names))
    ]
    if not locate_revocations(folders.releases).exists():
        return standings
    try:
        keys = read_trusted_keys(folders)
        revocations = read_gate_revocations(folders.releases, keys)
    except DisclosurePipelineError:
        unread = "its revocations cannot be read"
        return [replace(of, problem=unread) if of.is_published else of for of in standings]
    return [
        replace(of, is_revoked=_is_revoked(folders.releases / of.candidate, keys, revocations))
        if of.is_published
        else of
        for of in standings
    ]


def _is_revoked(folder: Path, keys: Sequence[TrustedKey], revocations: Sequence[Revocation]) -> bool:
    """Return whether a published folder was revoked, by its name at least where its statement is damaged."""
    try:
        statement = read_released(folder, keys)
    except RevocationError:
        return any((of.gate, of.candidate) == (folder.parent.name, folder.name) for of in revocations)
    return bool(find_revocations(folder, statement.predicate, statement.files, revocations))


def _read_standing(
    folders: GateFolders, candidate: str, recorded: RecordedTables, policy_digest: str
) -> Standing:
    folder = folders.store.candidate_folder(candidate)
    path = folder / "dossier.json"
    arrival = _read(folder / ARRIVAL)
    if arrival.get("problem") in _ENDED_AS:  # a dossier beside it is of what arrived before
        return Standing(
            candidate,
            _ENDED_AS[arrival["problem"]],
            is_published(folders, candidate),
            is_current=arrival.get("policy_digest") == policy_digest,
            judged_at=_modified_at(folder / ARRIVAL),
            problem=arrival["problem"],
        )
    dossier = _read(path)
    measured, decision = dossier.get("measured"), dossier.get("decision")
    worst_clause = records = None
    with suppress(KeyError, TypeError):  # a record that is damaged says nothing
        worst = find_worst_judgement(map(Judgement.from_row, dossier["clauses"]))
        worst_clause = None if worst is None else worst.in_short
    with suppress(KeyError, TypeError):
        records = sum(dossier["figures"]["N_s"])
    return Standing(
        candidate,
        decision if isinstance(decision, str) else None,
        is_published(folders, candidate),
        is_current=dossier.get("policy_digest") == policy_digest and recorded.were_measured(measured),
        judged_at=_modified_at(path) if dossier else None,
        worst_clause=worst_clause,
        records=records,
    )


def _modified_at(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    except OSError:
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, "")
    except StoreError:
        return {}


def read_newest_dossiers(folders: GateFolders, most: int) -> list[dict[str, Any]]:
    """Return the dossiers that were written last, the newest first; of damaged ones none."""
    paths = sorted(
        (folders.store.root / "candidates").glob("*/dossier.json"),
        key=lambda path: (path.stat().st_mtime_ns, path.parent.name),
        reverse=True,
    )
    dossiers = [dossier for path in paths if "clauses" in (dossier := _read(path))]
    return dossiers[:most]
