"""The tables that a gate has published, and a candidate measured beside these and other confidential ones.

A release is recorded in the store as it is published, with the hashes of what arrived, from which its tables
were written; these bytes stay. What was out is out: a revoked release counts as long as its bytes are there.
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
from disclosure_pipeline.candidates.measuring import Measured, measure_against, plan_gate
from disclosure_pipeline.candidates.reading import (
    CandidateTables,
    changed,
    choose_engine_for,
    name_confidential,
    read_confidential,
    read_ground_truth,
    read_syntheses,
    require_unchanged,
)
from disclosure_pipeline.candidates.store import (
    GateFolders,
    Snapshot,
    Store,
    StoredFile,
    is_stored,
    list_syntheses,
)
from disclosure_pipeline.counting.opening import Engine
from disclosure_pipeline.errors import InputError, StoreError
from disclosure_pipeline.evaluation.people import add_first_release, measure_releases
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.policy.registry import CONFIDENTIAL
from disclosure_pipeline.runtime.files import read_json, write_json
from disclosure_pipeline.tables.dictionary import ContractError
from disclosure_pipeline.tables.messages import GROUND_TRUTH

RELEASED = "released"
"""The folder of a store that records what is published."""


@dataclass(frozen=True)
class Released:
    """A release: the snapshot that it was written from, and when it was published (UTC, as ISO writes it)."""

    snapshot: Snapshot
    published_at: str
    is_revoked: bool = False


def record_released(store: Store, released: Released) -> None:
    """Record a release, or that it was revoked."""
    record = asdict(released) | {"snapshot": {"files": [asdict(file) for file in released.snapshot.files]}}
    write_json(_folder(store) / f"{released.snapshot.candidate}.json", record)


def _folder(store: Store) -> Path:
    return store.root / RELEASED


def read_recorded_releases(store: Store) -> tuple[Released, ...]:
    """Return what is recorded of the releases, the oldest first. StoreError where a record is damaged."""
    found = []
    for path in sorted(_folder(store).glob("*.json")):
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
                f"The record of the release {path.stem!r} in the store is damaged: restore {path.name}, or "
                "nobody can tell what a candidate adds to it."
            )
        found.append(released)
    return tuple(sorted(found, key=lambda of: (of.published_at, of.snapshot.candidate)))


def is_gone(released: Released, store: Store) -> bool:
    """Return whether bytes of a release are missing, or changed."""
    return not all(is_stored(file, store) for file in released.snapshot.files)


def list_unrecorded(folders: GateFolders) -> list[str]:
    """Return the releases that lie there and are not recorded."""
    recorded = {path.stem for path in _folder(folders.store).glob("*.json")}
    there = folders.releases.iterdir() if folders.releases.is_dir() else ()
    return sorted(path.name for path in there if path.is_dir() and path.name not in recorded)


@dataclass(frozen=True)
class Earlier:
    """The releases before a candidate whose bytes are there, and how many revoked ones have none any more."""

    releases: tuple[Released, ...]
    gone: int = 0

    @property
    def digest(self) -> str:
        """Return one hash of all of them; empty where nothing is published."""
        if not self.releases and not self.gone:
            return ""
        snapshots = [f"{of.snapshot.candidate}  {of.snapshot.sha256}" for of in self.releases]
        return hashlib.sha256("\n".join([*snapshots, str(self.gone)]).encode()).hexdigest()


def name_releases(digest: str) -> dict[str, str]:
    """Return their hash among those of what was measured; nothing where nothing is published."""
    return {RELEASED: digest} if digest else {}


def list_earlier(folders: GateFolders, candidate: str) -> Earlier:
    """Return what is out before a candidate; of one that is published itself, what was out before it.

    StoreError where a release is not recorded, or lacks its bytes although it was not revoked.
    """
    unrecorded = [name for name in list_unrecorded(folders) if name != candidate]
    if unrecorded:
        raise StoreError(
            f"The release {unrecorded[0]!r} is not recorded in the store: nobody can tell what a candidate "
            "adds to it. Run the gate again, which records what it can verify."
        )
    released = read_recorded_releases(folders.store)
    names = [of.snapshot.candidate for of in released]
    before = released[: names.index(candidate)] if candidate in names else released
    there = tuple(of for of in before if not is_gone(of, folders.store))
    for of in before:
        if of not in there and not of.is_revoked:
            raise StoreError(
                f"The tables of the release {of.snapshot.candidate!r} are missing from the store, or "
                "changed: nobody can tell what a candidate adds to them. Deliver that candidate again, or "
                "restore the store; of a revoked release they may be missing."
            )
    return Earlier(there, len(before) - len(there))


def add_releases(
    folders: GateFolders,
    candidate: CandidateTables,
    measured: Measured,
    ground_truth: str,
    earlier: Earlier,
) -> Measured:
    """Return what was measured of a candidate, beside all that is published.

    `ground_truth`: its sha256. StoreError where GT is another one, or a release cannot be read any more: then
    nothing is determined.
    """
    first = add_first_release(measured.result)
    measured = replace(measured, result=_count_gone(first, earlier), releases=earlier.digest)
    if not earlier.releases:
        return measured
    gate = folders.gate
    stored = [
        folders.store.stored_path(file)
        for of in (*(released.snapshot for released in earlier.releases), candidate.snapshot)
        for file in of.files
    ]
    engine = choose_engine_for(gate, [folders.ground_truth, *stored])
    with ExitStack() as stack:
        table, digest = read_ground_truth(folders, engine, stack)
        if digest != ground_truth:
            raise changed(GROUND_TRUTH)
        # Read again: by an engine that holds all releases, too.
        candidates = read_syntheses(folders, replace(candidate, engine=engine, read=None), stack)
        known = set(_identify(folders, engine, candidate.snapshot, candidates))
        releases = []
        for released in earlier.releases:
            tables = _read_released_tables(folders, engine, released, stack)
            # The same table again tells nothing new, however often it is published.
            names = _identify(folders, engine, released.snapshot, tables)
            new = {name: of for name, of in zip(names, tables, strict=True) if name not in known}
            known |= set(new)
            if new:
                releases.append(list(new.values()))
        if not releases:
            return measured
        syntheses = [of for tables in (*releases, candidates) for of in tables]
        opened = stack.enter_context(engine.open_read([table, *syntheses]))
        plan = plan_gate(gate, opened, draw_seed(folders.store), by_group=False)
        over_releases, of_targets = measure_releases(opened, plan, [*map(len, releases), len(candidates)])
        require_unchanged(engine, folders.ground_truth, digest, GROUND_TRUTH)
    result = replace(measured.result, over_releases=over_releases, released_targets=of_targets)
    return replace(measured, result=_count_gone(result, earlier))


def _identify(folders: GateFolders, engine: Engine, snapshot: Snapshot, tables: Sequence[Any]) -> list[str]:
    """Return what tells each table from all others: its records, or where these cannot be had its files."""
    if engine.gives_records:
        return [identify_records(folders.store, folders.gate, table) for table in tables]
    # A table's own hash tells less: without records it is of values, which another table may have, too.
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
        pass  # told outside: what broke the dictionary of today is no matter of the candidate
    raise StoreError(
        f"The release {released.snapshot.candidate!r} does not keep the gate's data dictionary of today: "
        "nobody can tell what a candidate adds to it. Restore the columns, or give the gate another name."
    )


def list_released_paths(store: Store) -> list[Path]:
    """Return where the bytes lie that releases were written from, each once."""
    paths = [store.stored_path(file) for of in read_recorded_releases(store) for file in of.snapshot.files]
    return list(dict.fromkeys(paths))


def add_confidential(folders: GateFolders, candidate: CandidateTables, measured: Measured) -> Measured:
    """Return what was measured of a candidate, and its copies of every further confidential table's records.

    In the frame `confidential`, index (confidential, synthesis), of each file and of all of them stacked;
    the sha256 of each table beside it. StoreError where a table is not there or changes while it is read,
    ContractError where it breaks the dictionary: then nothing is determined.
    """
    digests: dict[str, str] = {}
    by_file: dict[str, pd.DataFrame] = {}
    stacked: dict[str, pd.DataFrame] = {}
    if not folders.confidential:
        return measured
    seed, engine = draw_seed(folders.store), candidate.engine
    with ExitStack() as kept:
        syntheses = read_syntheses(folders, candidate, kept)
        for name in folders.confidential:
            with ExitStack() as stack:
                table, digests[name] = read_confidential(folders, name, engine, stack)
                if measured.confidential.get(name, digests[name]) != digests[name]:
                    raise changed(name_confidential(name))
                gate = folders.gate
                known = gate.published if gate.unit is None else (*gate.published, gate.unit)
                tables = [table.keep_columns(known), *syntheses]
                opened = stack.enter_context(engine.open_read(tables))
                by_file[name] = measure_against(gate, opened, seed)
                if len(syntheses) > 1:
                    stacked[name] = measure_against(gate, opened, seed, stacked=True)
                source = folders.confidential[name]
                require_unchanged(engine, source, digests[name], name_confidential(name))
    result = replace(measured.result, confidential=_join(by_file))
    if result.stacked is not None:
        result = replace(result, stacked=replace(result.stacked, confidential=_join(stacked)))
    return replace(measured, result=result, confidential=digests)


def _join(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, names=[CONFIDENTIAL]) if frames else pd.DataFrame()
