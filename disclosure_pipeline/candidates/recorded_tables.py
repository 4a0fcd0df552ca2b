"""The confidential tables that are recorded, and whether a candidate was measured against these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.candidates.files import StoreError, read_json
from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.policy.registry import CONFIDENTIAL

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
        """Whether a dossier's `measured` is of these tables, each of them recorded."""
        return isinstance(measured, Mapping) and all(
            digest and measured.get(name) == digest for name, digest in self.hashes.items()
        )


def read_recorded_tables(folders: GateFolders) -> RecordedTables:
    """What is recorded of the tables of a gate; nothing where the record is missing or damaged."""
    try:
        record = read_json(folders.store.ground_truth, GROUND_TRUTH)
    except StoreError:
        record = {}
    further = record.get("confidential")
    further = further if isinstance(further, Mapping) else {}
    hashes = {name_measured(name): further.get(name) for name in folders.confidential}
    return RecordedTables({GROUND_TRUTH: record.get("sha256"), **hashes}, record.get("recorded_at"))


def name_measured(confidential: str) -> str:
    """What the hash of a further confidential table is called among those of what was measured.

    >>> name_measured("last_year")
    'confidential[last_year]'
    """
    return f"{CONFIDENTIAL}[{confidential}]"
