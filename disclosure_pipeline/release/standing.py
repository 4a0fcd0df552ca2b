"""Where the candidates of a gate stand: what was decided, published, and would be refused today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.candidates.files import StoreError, read_json
from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.candidates.store import is_safe_name

PUBLISHED_REFUSED = "published, refused today"


@dataclass(frozen=True)
class Standing:
    """A candidate: what its dossier decides, whether it is published, and whether it was judged as of today.

    `decision` is None where there is no dossier that can be read; `is_current`: the dossier is of the ground
    truth that is recorded and of the policy that holds.
    """

    candidate: str
    decision: str | None
    is_published: bool
    is_current: bool

    def __str__(self) -> str:
        """Such as "published, refused today"."""
        return describe_standing(self.decision, is_published=self.is_published, is_current=self.is_current)


def describe_standing(decision: str | None, *, is_published: bool, is_current: bool = True) -> str:
    """The standing of a candidate in words.

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
    words = {"approved": "published", "refused": PUBLISHED_REFUSED}
    return words.get(decision, "published, could not be determined today")


def is_published(folders: GateFolders, candidate: str) -> bool:
    """Whether there is a release of that name."""
    return is_safe_name(candidate) and (folders.releases / candidate).is_dir()


def list_standings(folders: GateFolders) -> list[Standing]:
    """The standing of every candidate that has records or a release, in order of their names."""
    recorded = [folders.store.root / "candidates", folders.releases]
    names = {
        path.name for folder in recorded if folder.is_dir() for path in folder.iterdir() if path.is_dir()
    }
    ground_truth = _read(folders.store.ground_truth).get("sha256")
    digest = folders.gate.policy_digest()
    standings = []
    for name in sorted(filter(is_safe_name, names)):
        dossier = _read(folders.store.candidate_folder(name) / "dossier.json")
        measured = dossier.get("measured")
        of_ground_truth = measured.get("ground_truth") if isinstance(measured, dict) else None
        is_current = dossier.get("policy_digest") == digest and of_ground_truth == ground_truth
        decision = dossier.get("decision")
        standings.append(
            Standing(
                name,
                decision if isinstance(decision, str) else None,
                is_published(folders, name),
                is_current,
            )
        )
    return standings


def _read(path: Any) -> dict[str, Any]:
    """A record of the store; empty where there is none that can be read."""
    try:
        return read_json(path, "")
    except StoreError:
        return {}
