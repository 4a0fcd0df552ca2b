"""Figures that one step of a run computed, recorded for those that follow: never a record of a table.

They are believed only if GT, candidate and definition are those that were measured; and a release believes
none of them, it measures again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, TypeVar

import pandas as pd

from disclosure_pipeline.candidates.files import StoreError, read_json, write_json
from disclosure_pipeline.candidates.measuring import Measured
from disclosure_pipeline.candidates.store import GateFolders, Snapshot
from disclosure_pipeline.evaluation.frames import frame_from_record
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import withhold_rare_levels
from disclosure_pipeline.policy.registry import CONFIDENTIAL

_Part = TypeVar("_Part")

_FILE = "measured.json"


def record_measured(folders: GateFolders, snapshot: Snapshot, ground_truth: str, measured: Measured) -> None:
    """Record what was measured of GT (its sha256) and a candidate; levels of few records are withheld."""
    measured = without_rare_levels(measured, folders.gate.policy.smallest_count)
    content = {
        **_identify_inputs(folders, snapshot, ground_truth),
        "result": measured.result.to_record(),
        "confidential": dict(measured.confidential),
        "releases": measured.releases,
    }
    write_json(folders.store.candidate_folder(snapshot.candidate) / _FILE, content)


def read_measured(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> Measured | None:
    """Return the figures recorded for this GT, candidate and definition; None where there are none."""
    return _read_record(
        folders,
        snapshot,
        ground_truth,
        lambda content: Measured(
            Disclosure.from_record(content["result"]), content["confidential"], content["releases"]
        ),
    )


def read_groups(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> pd.DataFrame | None:
    """Return the groups of numbers alone, of what `read_measured` gives."""
    return _read_record(
        folders,
        snapshot,
        ground_truth,
        lambda content: frame_from_record(content["result"]["frames"]["groups"]),
    )


def _read_record(
    folders: GateFolders, snapshot: Snapshot, ground_truth: str, rebuild: Callable[[Mapping[str, Any]], _Part]
) -> _Part | None:
    """Return what `rebuild` makes of the record; None where it is of something else, or damaged."""
    try:
        content = read_json(folders.store.candidate_folder(snapshot.candidate) / _FILE, "synthetic")
        expected = _identify_inputs(folders, snapshot, ground_truth)
        if {name: content.get(name) for name in expected} != expected:
            return None
        # What has no sha256 before it is read, a table in a database, is measured anew.
        compared = bool(content["result"]["frames"][CONFIDENTIAL]["columns"])
        names = [name for name in folders.confidential if compared or name == folders.gate.holdout]
        if content["confidential"] != {name: folders.confidential[name].sha256() for name in names}:
            return None
        return rebuild(content)
    except (StoreError, KeyError, TypeError, ValueError, AttributeError):
        return None


def without_rare_levels(measured: Measured, smallest_count: int) -> Measured:
    """Return the same without the names of levels, or the groups, of fewer GT records than that."""
    return replace(measured, result=_withhold_rare_levels(measured.result, smallest_count))


def _withhold_rare_levels(result: Disclosure, smallest_count: int) -> Disclosure:
    one_way, two_way = (withhold_rare_levels(result, name, smallest_count) for name in ("one_way", "two_way"))
    groups = result.groups[result.groups["GT"] >= smallest_count].reset_index(drop=True)
    stacked = None if result.stacked is None else _withhold_rare_levels(result.stacked, smallest_count)
    return replace(result, one_way=one_way, two_way=two_way, groups=groups, stacked=stacked)


def _identify_inputs(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> dict[str, str]:
    """Name the GT, candidate, definition, holdout and version that the figures are of."""
    return {
        "ground_truth": ground_truth,
        "snapshot": snapshot.sha256,
        "policy_digest": folders.gate.policy_digest(),
        "holdout": folders.gate.holdout or "",
        "measured_by": version("disclosure-pipeline"),
    }


GROUND_TRUTH = "ground_truth"


@dataclass(frozen=True)
class RecordedTables:
    """The sha256 of GT and of each further confidential table as they were recorded last, and when that was.

    `hashes` has the names of a dossier's `measured`; None stands for what is not recorded.
    """

    hashes: Mapping[str, str | None]
    recorded_at: str | None

    @property
    def ground_truth(self) -> str | None:
        """The sha256 of GT."""
        return self.hashes[GROUND_TRUTH]

    def were_measured(self, measured: Any) -> bool:
        """Return whether a dossier's `measured` is of these tables, each of them recorded."""
        return isinstance(measured, Mapping) and all(
            digest and measured.get(name) == digest for name, digest in self.hashes.items()
        )


def read_recorded_tables(folders: GateFolders) -> RecordedTables:
    """Return what is recorded of the tables of a gate; nothing where the record is missing or damaged."""
    try:
        record = read_json(folders.store.ground_truth, GROUND_TRUTH)
    except StoreError:
        record = {}
    further = record.get("confidential")
    further = further if isinstance(further, Mapping) else {}
    hashes = {name_measured(name): further.get(name) for name in folders.confidential}
    return RecordedTables({GROUND_TRUTH: record.get("sha256"), **hashes}, record.get("recorded_at"))


def name_measured(confidential: str) -> str:
    """Return what the hash of a further confidential table is called among those of what was measured.

    >>> name_measured("last_year")
    'confidential[last_year]'
    """
    return f"{CONFIDENTIAL}[{confidential}]"
