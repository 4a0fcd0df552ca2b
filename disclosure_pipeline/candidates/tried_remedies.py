"""Remedies that are tried on the tables of a refused candidate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from disclosure_pipeline.candidates.measuring import measure_without_controls
from disclosure_pipeline.candidates.reading import find_tables, open_candidate
from disclosure_pipeline.candidates.snapshot import Snapshot
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.evidence.page.charts import join_names
from disclosure_pipeline.evidence.page.clauses_section import TriedRemedy
from disclosure_pipeline.families.remedies import Remedy, apply_remedy
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge
from disclosure_pipeline.tables.alignment import Tables, check_tables
from disclosure_pipeline.tables.dictionary import NUMERIC

# Remedies for any table.
_REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    "Remove the copies of one person": (Remedy.remove_unique_copies(),),
    "Remove the records that single a person out": (Remedy.remove_replicated_uniques(),),
    "Remove both": (Remedy.remove_unique_copies(), Remedy.remove_replicated_uniques()),
    "Blank the targets that copies disclose": (Remedy.blank_copied_targets(),),
}
_MOST_RECORDS = 100_000  # of all tables together, so that trying takes seconds
_SECONDS = 15.0
_FEW_PEOPLE, _GROUPS = 10, 10  # a number that fewer share identifies; groups that most numbers fall in
_COPIED = 0.5


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
        for name, remedies in {**_REMEDIES, **_list_remedies_of_numbers(gate, tables)}.items():
            if time.monotonic() < end:
                with suppress(InputError):  # no record is left
                    tried.append(_try_remedies(gate, name, remedies, tables, content["clauses"]))
    return tried


def _list_remedies_of_numbers(gate: Gate, tables: Tables) -> dict[str, tuple[Remedy, ...]]:
    """Return remedies for the numbers that identify people: most of SD's are in GT, where few share each."""
    steps: dict[str, float] = {}
    for name in gate.published_columns:
        if gate.columns[name].type not in NUMERIC:
            continue
        special = gate.columns[name].special_values
        known = [
            pd.to_numeric(frame[name], errors="coerce").dropna().astype(float) for frame in tables.frames
        ]
        GT, *SD = (numbers[~numbers.isin(special)] for numbers in known)
        shared = pd.concat(SD)
        if not len(GT) or GT.nunique() * _FEW_PEOPLE <= len(GT) or not len(shared):
            continue
        spread = float(GT.quantile(0.9) - GT.quantile(0.1))
        if spread > 0 and shared.isin(GT).mean() > _COPIED:
            steps[name] = 10.0 ** round(math.log10(spread / _GROUPS))
    if not steps:
        return {}
    columns = join_names([gate.labels.get(name, name) for name in steps])
    rounded = tuple(Remedy.round_numbers(name, to=step) for name, step in steps.items())
    smoothed = tuple(Remedy.smooth_numbers(name, over=_FEW_PEOPLE) for name in steps)
    listed = join_names([f"{step:g}" for step in steps.values()])
    return {
        f"Round {columns} to {listed}": rounded,
        f"Smooth {columns} over {_FEW_PEOPLE} records": smoothed,
        f"Remove the copies of one person, and round {columns}": (Remedy.remove_unique_copies(), *rounded),
    }


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
