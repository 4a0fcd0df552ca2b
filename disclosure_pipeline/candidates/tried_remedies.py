"""Remedies that are tried on the tables of a refused candidate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from disclosure_pipeline.candidates.measuring import measure_without_controls
from disclosure_pipeline.candidates.reading import find_tables, open_candidate
from disclosure_pipeline.candidates.snapshot import Snapshot
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.evidence.page.clauses_section import TriedRemedy
from disclosure_pipeline.families.remedies import Remedy, apply_remedy
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge
from disclosure_pipeline.tables.alignment import Tables, check_tables

# Remedies that need no knowledge of the columns, unlike recoding.
_REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    "Remove the copies of one person": (Remedy.remove_unique_copies(),),
    "Remove the records that single a person out": (Remedy.remove_replicated_uniques(),),
    "Remove both": (Remedy.remove_unique_copies(), Remedy.remove_replicated_uniques()),
    "Blank the targets that copies disclose": (Remedy.blank_copied_targets(),),
}
_MOST_RECORDS = 100_000  # of all tables together, so that trying takes seconds
_SECONDS = 10.0


def try_remedies(
    folders: GateFolders, snapshot: Snapshot, content: Mapping[str, Any]
) -> list[TriedRemedy] | None:
    """Try remedies on the tables of a refused candidate, as many as time allows; `content` is its dossier.

    Return None if the candidate is not refused or the gate has remedies disabled. Large tables and tables
    that are not in memory are not tried.
    """
    gate = folders.gate
    if not gate.remedies or content["decision"] != "refused":
        return None
    candidate, figures = find_tables(folders, snapshot), content["figures"]
    if not candidate.engine.holds_frames or sum((figures["N_d"], *figures["N_s"])) > _MOST_RECORDS:
        return []
    tried: list[TriedRemedy] = []
    # A remedy that fails is left out: the verdict does not depend on it.
    with suppress(DisclosurePipelineError), open_candidate(folders, candidate) as opened:
        frames = opened.opened.frames or ()
        if not frames:
            return []
        tables = check_tables(frames[0], frames[1:], gate.keys, gate.targets, gate.grouping)
        end = time.monotonic() + _SECONDS
        for name, remedies in _REMEDIES.items():
            if time.monotonic() < end:
                with suppress(InputError):  # no record is left
                    tried.append(_try_remedies(gate, name, remedies, tables, content["clauses"]))
    return tried


def _try_remedies(
    gate: Gate,
    name: str,
    remedies: tuple[Remedy, ...],
    tables: Tables,
    clauses: Sequence[Mapping[str, Any]],
) -> TriedRemedy:
    after, changed = apply_remedy(remedies, tables)
    result = measure_without_controls(gate, FramesInMemory(after.frames, "memory"))
    outcomes = {clause["name"]: clause["outcome"] for clause in clauses}
    values = {}
    for judgement in judge(gate.clauses(), result):
        # Controls and further confidential tables keep their outcome, as they are not measured here. Waivers
        # do not apply to changed content, which must keep the clauses.
        if not judgement.clause.control and not judgement.clause.is_of_further_table:
            outcomes[judgement.clause.name] = judgement.outcome
            values[judgement.clause.name] = judgement.value
    return TriedRemedy(
        name=name,
        lost=sum(map(len, tables.frames[1:])) - sum(map(len, after.frames[1:])),
        blanked=sum(changed),
        broken=tuple(
            clause["name"] for clause in clauses if outcomes[clause["name"]] != "kept" and not clause["warns"]
        ),
        values=values,
        distance=float(result.columns_apart["TVD"].max()),
    )
