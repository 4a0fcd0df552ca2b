"""Compare a candidate with the gate's earlier releases, and with further confidential tables.

A release is recorded in the store when it is published, with the hashes of the stored files from which its
tables were written. These files are kept. Since readers may have copies, a revoked release counts as long as
its files exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.candidates.evaluation_records import draw_seed, identify_records
from disclosure_pipeline.candidates.measuring import Measured, measure_confidential, plan_gate
from disclosure_pipeline.candidates.reading import (
    CandidateTables,
    choose_engine_for,
    describe_change,
    name_confidential,
    read_confidential,
    read_ground_truth,
    read_syntheses,
    require_unchanged,
)
from disclosure_pipeline.candidates.snapshot import Snapshot, is_stored, list_syntheses
from disclosure_pipeline.candidates.store import GateFolders, Store, StoredFile, list_published
from disclosure_pipeline.counting.opening import Engine
from disclosure_pipeline.errors import InputError, StoreError
from disclosure_pipeline.evaluation.found import measure_found_together
from disclosure_pipeline.evaluation.long_table import CONFIDENTIAL
from disclosure_pipeline.evaluation.releases import add_first_release, measure_releases
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.runtime.files import read_json, write_json
from disclosure_pipeline.tables.dictionary import ContractError
from disclosure_pipeline.tables.messages import GROUND_TRUTH

RELEASED = "released"
"""The folder of a store with the records of releases."""


@dataclass(frozen=True)
class Released:
    """A release: the snapshot that it was written from, and its time of publication (UTC, ISO 8601)."""

    snapshot: Snapshot
    published_at: str
    is_revoked: bool = False


def record_released(store: Store, released: Released) -> None:
    """Record a release, or its revocation."""
    record = asdict(released) | {"snapshot": {"files": [asdict(file) for file in released.snapshot.files]}}
    write_json(store.root / RELEASED / f"{released.snapshot.candidate}.json", record)


def read_recorded_releases(store: Store) -> tuple[Released, ...]:
    """Return the recorded releases, oldest first. Raise StoreError if a record is damaged."""
    releases = []
    for path in sorted((store.root / RELEASED).glob("*.json")):
        record = read_json(path, "release")
        try:
            files = tuple(StoredFile(**file) for file in record["snapshot"]["files"])
            released = Released(
                Snapshot(path.stem, files), str(record["published_at"]), record["is_revoked"] is True
            )
        except (KeyError, TypeError):
            released = Released(Snapshot("", ()), "")
        if not released.snapshot.files:
            raise StoreError(
                f"The record of the release {path.stem!r} in the store is damaged, so no candidate can be "
                f"compared with it: restore {path.name}."
            )
        releases.append(released)
    return tuple(sorted(releases, key=lambda release: (release.published_at, release.snapshot.candidate)))


def is_gone(released: Released, store: Store) -> bool:
    """Return whether stored files of a release are missing or changed."""
    return not all(is_stored(file, store) for file in released.snapshot.files)


def list_unrecorded(folders: GateFolders) -> list[str]:
    """Return the names of published releases that the store has no record of."""
    recorded = {path.stem for path in (folders.store.root / RELEASED).glob("*.json")}
    return [name for name in list_published(folders.releases).releases if name not in recorded]


@dataclass(frozen=True)
class Earlier:
    """The releases before a candidate, and the number of revoked ones (`gone`) whose files are missing."""

    releases: tuple[Released, ...]
    gone: int = 0

    @property
    def digest(self) -> str:
        """The hash of all releases; empty if there are none."""
        if not self.releases and not self.gone:
            return ""
        snapshots = [f"{release.snapshot.candidate}  {release.snapshot.sha256}" for release in self.releases]
        return hashlib.sha256("\n".join([*snapshots, str(self.gone)]).encode()).hexdigest()


def name_releases(digest: str) -> dict[str, str]:
    """Return the entry of a dossier's `measured` for earlier releases; empty if there are none."""
    return {RELEASED: digest} if digest else {}


def list_earlier(folders: GateFolders, candidate: str) -> Earlier:
    """Return the releases before a candidate; if it is released itself, those published before it.

    Raise StoreError if a release is not recorded, or its files are missing although it is not revoked.
    """
    unrecorded = [name for name in list_unrecorded(folders) if name != candidate]
    if unrecorded:
        raise StoreError(
            f"The release {unrecorded[0]!r} is not recorded in the store, so no candidate can be compared "
            "with it. Run the gate again, which records releases that it can verify."
        )
    released = read_recorded_releases(folders.store)
    names = [release.snapshot.candidate for release in released]
    before = released[: names.index(candidate)] if candidate in names else released
    present = tuple(release for release in before if not is_gone(release, folders.store))
    for release in before:
        if release not in present and not release.is_revoked:
            raise StoreError(
                f"The tables of the release {release.snapshot.candidate!r} are missing from the store or "
                "changed, so no candidate can be compared with them. Deliver that candidate again, or "
                "restore the store. Only tables of a revoked release may be missing."
            )
    return Earlier(present, len(before) - len(present))


def add_releases(
    folders: GateFolders,
    candidate: CandidateTables,
    measured: Measured,
    ground_truth: str,
    earlier: Earlier,
) -> Measured:
    """Return the figures of a candidate, with those of it together with earlier releases.

    Raise StoreError if GT no longer has the sha256 `ground_truth`, or a release cannot be read.
    """
    first = add_first_release(measured.result)
    measured = replace(measured, result=_count_gone(first, earlier), releases=earlier.digest)
    if not earlier.releases:
        return measured
    gate = folders.gate
    stored = [
        folders.store.stored_path(file)
        for snapshot in (*(released.snapshot for released in earlier.releases), candidate.snapshot)
        for file in snapshot.files
    ]
    engine = choose_engine_for(gate, [folders.ground_truth, *stored])
    with ExitStack() as stack:
        ground_truth_table, digest = read_ground_truth(folders, engine, stack)
        if digest != ground_truth:
            raise describe_change(GROUND_TRUTH)
        # Read again, by an engine that also holds all releases.
        candidates = read_syntheses(folders, replace(candidate, engine=engine, read=None), stack)
        known = set(_identify_tables(folders, engine, candidate.snapshot, candidates))
        releases = []
        for released in earlier.releases:
            tables = _read_released_tables(folders, engine, released, stack)
            # A table that is published again reveals nothing new.
            names = _identify_tables(folders, engine, released.snapshot, tables)
            new = {name: table for name, table in zip(names, tables, strict=True) if name not in known}
            known |= set(new)
            if new:
                releases.append(list(new.values()))
        if not releases:
            return measured
        syntheses = [synthesis for tables in (*releases, candidates) for synthesis in tables]
        opened = stack.enter_context(engine.open_read([ground_truth_table, *syntheses]))
        plan = plan_gate(gate, opened, draw_seed(folders.store), by_group=False)
        over_releases, by_target = measure_releases(opened, plan, [*map(len, releases), len(candidates)])
        found = measure_found_together(opened.stack_syntheses(), plan)
        require_unchanged(engine, folders.ground_truth, digest, GROUND_TRUTH)
    result = replace(
        measured.result, over_releases=over_releases, released_targets=by_target, released_found=found
    )
    return replace(measured, result=_count_gone(result, earlier))


def _identify_tables(
    folders: GateFolders, engine: Engine, snapshot: Snapshot, tables: Sequence[Any]
) -> list[str]:
    """Return an identifier of each table: of its records, or of its files if the engine gives no records."""
    if engine.gives_records:
        return [identify_records(folders.store, folders.gate, table) for table in tables]
    # `table.sha256` would not do: without records it is a hash of values, which another table may share.
    listed = list_syntheses(folders.gate, snapshot)
    return [" ".join(file.sha256 for file in files) for files in listed]


def _count_gone(result: Disclosure, earlier: Earlier) -> Disclosure:
    return replace(result, over_releases=result.over_releases.assign(releases_gone=earlier.gone))


def _read_released_tables(
    folders: GateFolders, engine: Engine, released: Released, stack: ExitStack
) -> Sequence[Any]:
    try:
        return read_syntheses(folders, CandidateTables(released.snapshot, engine), stack)
    except (ContractError, InputError):
        pass  # raised below: a ContractError would be taken for one of the candidate
    raise StoreError(
        f"The release {released.snapshot.candidate!r} does not fit the gate's current data dictionary, so no "
        "candidate can be compared with it. Restore the columns, or give the gate another name."
    )


def list_released_paths(store: Store) -> list[Path]:
    """Return the paths of the stored files that releases were written from, without repeats."""
    paths = [
        store.stored_path(file)
        for release in read_recorded_releases(store)
        for file in release.snapshot.files
    ]
    return list(dict.fromkeys(paths))


def add_confidential(folders: GateFolders, candidate: CandidateTables, measured: Measured) -> Measured:
    """Return the figures of a candidate, with its copies of each further confidential table.

    They are in the frame `confidential`, index (confidential, synthesis), of each file and of all files
    stacked. Raise StoreError if a table is missing or changes while it is read, ContractError if it breaks
    the dictionary.
    """
    digests: dict[str, str] = {}
    by_file: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {}
    stacked: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {}
    if not folders.confidential:
        return measured
    gate, seed, engine = folders.gate, draw_seed(folders.store), candidate.engine
    with ExitStack() as outer:
        syntheses = read_syntheses(folders, candidate, outer)
        for name, source in folders.confidential.items():
            with ExitStack() as stack:
                table, digests[name] = read_confidential(folders, name, engine, stack)
                if measured.confidential.get(name, digests[name]) != digests[name]:
                    raise describe_change(name_confidential(name))
                known = table.keep_columns((*gate.published_columns, *gate.unit_columns))
                opened = stack.enter_context(engine.open_read([known, *syntheses]))
                by_file[name] = measure_confidential(gate, opened, seed)
                if len(syntheses) > 1:
                    stacked[name] = measure_confidential(gate, opened.stack_syntheses(), seed)
                require_unchanged(engine, source, digests[name], name_confidential(name))
    result = _add_frames(measured.result, by_file)
    if result.stacked is not None:
        result = replace(result, stacked=_add_frames(result.stacked, stacked))
    return replace(measured, result=result, confidential=digests)


def _add_frames(result: Disclosure, frames: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]) -> Disclosure:
    if not frames:
        return result
    copies = {name: of_copies for name, (of_copies, _) in frames.items()}
    found = {name: of_found for name, (_, of_found) in frames.items()}
    return replace(
        result,
        confidential=pd.concat(copies, names=[CONFIDENTIAL]),
        confidential_found=pd.concat(found, names=[CONFIDENTIAL]),
    )
