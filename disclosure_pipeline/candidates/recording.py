"""Figures that one step of a run computed, recorded for those that follow: never a record of a table.

They are believed only if GT, candidate and definition are those that were measured; and a release believes
none of them, it measures again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, TypeVar

import pandas as pd

from disclosure_pipeline.candidates.files import StoreError, read_json, write_json
from disclosure_pipeline.candidates.measuring import Measured
from disclosure_pipeline.candidates.store import GateFolders, Snapshot
from disclosure_pipeline.evaluation.frames import frame_of_columns, name_values
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import withhold_rare_levels
from disclosure_pipeline.policy.registry import CONFIDENTIAL
from disclosure_pipeline.tables.raw_columns import Change

_Part = TypeVar("_Part")

_FILE = "measured.json"
_FRAMES = (
    "identity",
    "attribute",
    "cap",
    "identity_after_exclusions",
    "one_way",
    "two_way",
    "certainty",
    "excluded",
    "key_overlap",
    "target_overlap",
    "holdout",
    "units",
)


def record_measured(folders: GateFolders, snapshot: Snapshot, ground_truth: str, measured: Measured) -> None:
    """Record what was measured of GT (its sha256) and a candidate; levels of few records are withheld."""
    measured = without_rare_levels(measured, folders.gate.policy.smallest_count)
    result = measured.result
    content = {
        **_identify_inputs(folders, snapshot, ground_truth),
        "result": _record_result(result),
        "copies": _to_record(measured.copies),
        "groups": _to_record(measured.groups),
        "ledger": [asdict(change) for change in measured.ledger],
        "confidential": dict(measured.confidential),
    }
    write_json(folders.store.candidate_folder(snapshot.candidate) / _FILE, content)


def read_measured(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> Measured | None:
    """Return the figures recorded for this GT, candidate and definition; None where there are none."""

    def rebuild(content: Mapping[str, Any]) -> Measured:
        ledger = tuple(Change(**change) for change in content["ledger"])
        result = replace(_read_result(content["result"]), ledger=ledger)
        copies, groups = _from_record(content["copies"]), _from_record(content["groups"])
        return Measured(result, copies, groups, ledger, content["confidential"])

    return _read_record(folders, snapshot, ground_truth, rebuild)


def read_groups(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> pd.DataFrame | None:
    """Return the groups of numbers alone, of what `read_measured` gives."""
    return _read_record(folders, snapshot, ground_truth, lambda content: _from_record(content["groups"]))


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
        compared = CONFIDENTIAL in content["result"]["further"]
        names = [name for name in folders.confidential if compared or name == folders.gate.holdout]
        if content["confidential"] != {name: folders.confidential[name].sha256() for name in names}:
            return None
        return rebuild(content)
    except (StoreError, KeyError, TypeError, ValueError, AttributeError):
        return None


def without_rare_levels(measured: Measured, smallest_count: int) -> Measured:
    """Return the same without the names of levels, or the groups, of fewer GT records than that."""
    groups = measured.groups[measured.groups["GT"] >= smallest_count].reset_index(drop=True)
    return replace(measured, result=_withhold_flags(measured.result, smallest_count), groups=groups)


def _withhold_flags(result: Disclosure, smallest_count: int) -> Disclosure:
    one_way, two_way = (withhold_rare_levels(result, name, smallest_count) for name in ("one_way", "two_way"))
    stacked = None if result.stacked is None else _withhold_flags(result.stacked, smallest_count)
    return replace(result, one_way=one_way, two_way=two_way, stacked=stacked)


def _record_result(result: Disclosure) -> dict[str, Any]:
    return {
        "keys": list(result.keys),
        "targets": list(result.targets),
        "N_d": result.N_d,
        "N_s": list(result.N_s),
        "N_holdout": result.N_holdout,
        "frames": {name: _to_record(getattr(result, name)) for name in _FRAMES},
        "further": {name: _to_record(frame) for name, frame in result.further.items()},
        "warnings": list(result.warnings),
        "comparability_doubts": list(result.comparability_doubts),
        "stacked": None if result.stacked is None else _record_result(result.stacked),
    }


def _read_result(content: Mapping[str, Any]) -> Disclosure:
    stacked = content["stacked"]
    frames: dict[str, Any] = {name: _from_record(content["frames"][name]) for name in _FRAMES}
    return Disclosure(
        keys=tuple(content["keys"]),
        targets=tuple(content["targets"]),
        N_d=content["N_d"],
        N_s=tuple(content["N_s"]),
        N_holdout=content["N_holdout"],
        **frames,
        further={name: _from_record(frame) for name, frame in content["further"].items()},
        warnings=tuple(content["warnings"]),
        comparability_doubts=tuple(content["comparability_doubts"]),
        engine="",
        stacked=None if stacked is None else _read_result(stacked),
    )


def _identify_inputs(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> dict[str, str]:
    """Name the GT, candidate, definition, holdout and version that the figures are of."""
    return {
        "ground_truth": ground_truth,
        "snapshot": snapshot.sha256,
        "policy_digest": folders.gate.policy_digest(),
        "holdout": folders.gate.holdout or "",
        "measured_by": version("disclosure-pipeline"),
    }


def _to_record(frame: pd.DataFrame) -> dict[str, Any]:
    index = [] if frame.index.names == [None] else list(frame.index.names)
    names, rows = name_values(frame)
    columns = [[_encode(row[place]) for row in rows] for place in range(len(names))]
    return {"index": index, "columns": dict(zip(names, columns, strict=True))}


def _from_record(record: Mapping[str, Any]) -> pd.DataFrame:
    columns = {name: [_decode(value) for value in values] for name, values in record["columns"].items()}
    names = record["index"]
    labels = [columns.pop(name) for name in names]
    index = None
    if names:
        index = (
            pd.MultiIndex.from_arrays(labels, names=names)
            if len(names) > 1
            else pd.Index(labels[0], name=names[0])
        )
    return frame_of_columns(columns, index)


def _encode(value: Any) -> Any:
    """Return a figure as JSON has it; it has no word for what is not finite."""
    return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _decode(value: Any) -> Any:
    return float(value["float"]) if isinstance(value, dict) else value


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
