"""Remedies tried on the tables of a refused candidate, against the clauses that it broke."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from disclosure_pipeline.candidates.measuring import measure_without_controls
from disclosure_pipeline.candidates.reading import choose_candidate_engine, open_candidate
from disclosure_pipeline.candidates.store import GateFolders, Snapshot
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.evaluation.remedies import Remedy, apply_remedy
from disclosure_pipeline.evidence.page.what_now import TriedRemedy
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge
from disclosure_pipeline.tables.alignment import Tables, check_tables

# Recoding needs somebody who knows the columns; these need nothing.
_REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    "Take out the copies of one person": (Remedy.remove_unique_copies(),),
    "Take out the records that single a person out": (Remedy.remove_replicated_uniques(),),
    "Take out both": (Remedy.remove_unique_copies(), Remedy.remove_replicated_uniques()),
    "Blank the targets that copies tell": (Remedy.blank_copied_targets(),),
}
_MOST_RECORDS = 100_000  # of all tables together: a refusal is not to wait for minutes
_SECONDS = 10.0


def try_remedies(
    folders: GateFolders, snapshot: Snapshot, content: Mapping[str, Any]
) -> list[TriedRemedy] | None:
    """Try each remedy on the tables of a candidate for which there is time; `content` is its dossier.

    None where the candidate is not refused, or the gate wants none. Large tables, and those that do not lie
    in memory, are not tried.
    """
    gate = folders.gate
    if not gate.remedies or content["decision"] != "refused":
        return None
    engine, figures = choose_candidate_engine(folders, snapshot), content["figures"]
    if not engine.holds_frames or sum((figures["N_d"], *figures["N_s"])) > _MOST_RECORDS:
        return []
    tried: list[TriedRemedy] = []
    # Whatever cannot be tried is left out: the verdict stands without it.
    with suppress(DisclosurePipelineError), open_candidate(folders, snapshot, engine) as candidate:
        frames = candidate.opened.frames or ()
        if not frames:
            return []
        tables = check_tables(frames[0], frames[1:], gate.keys, gate.targets, gate.grouping)
        end = time.monotonic() + _SECONDS
        for name, remedies in _REMEDIES.items():
            if time.monotonic() < end:
                with suppress(InputError):  # it leaves no record
                    tried.append(_try(gate, name, remedies, tables, content["clauses"]))
    return tried


def _try(
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
        # What cannot be tried here is as it was: controls, and further confidential tables. A waiver is for
        # the content as it is: what is changed has to keep the clause.
        if not judgement.clause.control and judgement.clause.column not in gate.confidential:
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
