"""Every candidate of a gate in a row: verdict, when it was judged, its worst clause, its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.files import StoreError, read_json
from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.release.standing import list_standings

_NOT_KEPT = {"undetermined": 2, "exceeded": 1, "waived": 1}


@dataclass(frozen=True)
class CandidateRow:
    """One candidate: what its dossier says, and whether it is published.

    `decision` is None where there is no dossier; `judged_at` is when that was written (UTC); `worst_clause`
    is the clause that stands most against a release, with its value and bound; `records` are those of all its
    tables together; `standing` says all of it in words.
    """

    candidate: str
    standing: str
    decision: str | None
    judged_at: datetime | None
    worst_clause: str
    records: int | None
    is_published: bool


def list_candidates(folders: GateFolders) -> list[CandidateRow]:
    """A row for every candidate that has records or a release, in order of their names."""
    rows = []
    for standing in list_standings(folders):
        path = folders.store.candidate_folder(standing.candidate) / "dossier.json"
        dossier = _read(path)
        figures = dossier.get("figures")
        rows.append(
            CandidateRow(
                candidate=standing.candidate,
                standing=str(standing),
                decision=standing.decision,
                judged_at=_read_time(path) if dossier else None,
                worst_clause=describe_worst_clause(dossier.get("clauses") or []),
                records=sum(figures["N_s"]) if isinstance(figures, dict) and "N_s" in figures else None,
                is_published=standing.is_published,
            )
        )
    return rows


def read_newest_dossiers(folders: GateFolders, most: int) -> list[dict[str, Any]]:
    """The dossiers that were written last, the newest first; of damaged ones none."""
    paths = sorted(
        (folders.store.root / "candidates").glob("*/dossier.json"),
        key=lambda path: (path.stat().st_mtime_ns, path.parent.name),
        reverse=True,
    )
    dossiers = [dossier for path in paths if "clauses" in (dossier := _read(path))]
    return dossiers[:most]


def describe_worst_clause(clauses: Sequence[Mapping[str, Any]]) -> str:
    """Of a dossier's clauses the one that stands most against a release; empty where there is none.

    A clause that could not be determined comes before one that is not kept, that before one that is; among
    those the one that is furthest beyond its bound, or nearest to it, in proportion. What only warns and what
    controls the engine comes last.

    >>> clause = {"name": "repU", "value": 9.0, "limit": 8.0, "outcome": "exceeded", "at_least": False}
    >>> describe_worst_clause([clause | {"warns": False, "control": False}])
    'repU 9 > 8'
    """
    worst = max(clauses, key=_rank_clause, default=None)
    if worst is None:
        return ""
    if worst["value"] is None or worst["limit"] is None:
        return f"{worst['name']} could not be determined"
    kept = worst["outcome"] == "kept"
    sign = (">=" if kept else "<") if worst["at_least"] else ("<=" if kept else ">")
    return f"{worst['name']} {worst['value']:.4g} {sign} {worst['limit']:.4g}"


def _rank_clause(clause: Mapping[str, Any]) -> tuple[bool, int, float]:
    decides = not clause["warns"] and (not clause["control"] or clause["outcome"] != "kept")
    return decides, _NOT_KEPT.get(clause["outcome"], 0), _find_share_of_bound(clause)


def _find_share_of_bound(clause: Mapping[str, Any]) -> float:
    """How much of its bound a figure takes up: more than 1 where the clause is not kept."""
    value, limit = clause["value"], clause["limit"]
    if value is None or limit is None:
        return float("inf")
    if clause["at_least"]:
        value, limit = limit, value
    if limit <= 0:
        return float("inf") if value > limit else 0.0
    return max(0.0, value / limit)


def _read_time(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).replace(microsecond=0)


def _read(path: Path) -> dict[str, Any]:
    """A record of the store; empty where there is none that can be read."""
    try:
        return read_json(path, "")
    except StoreError:
        return {}
