"""The dossier of a candidate, filed with its evidence, and the remedies that a refusal was tried with."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.measuring import measure_without_controls
from disclosure_pipeline.candidates.power import read_power
from disclosure_pipeline.candidates.reading import choose_candidate_engine, open_candidate
from disclosure_pipeline.candidates.released import RELEASED, name_releases
from disclosure_pipeline.candidates.store import GateFolders, Snapshot, read_snapshot
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import DisclosurePipelineError, InputError, RefusedError, StoreError
from disclosure_pipeline.evaluation.remedies import Remedy, apply_remedy
from disclosure_pipeline.evidence.dossier import to_markdown
from disclosure_pipeline.evidence.page.first_page import TriedRemedy
from disclosure_pipeline.evidence.page.rendering import PAGE, is_dossier, render_page
from disclosure_pipeline.evidence.validation import find_disagreements, validate
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.registry import CONFIDENTIAL
from disclosure_pipeline.policy.verdict import can_be_waived, judge, publish, read_judgements
from disclosure_pipeline.runtime.files import read_json, read_json_if_whole, write_json, write_whole
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


def file_dossier(folders: GateFolders, candidate: str) -> dict[str, Any]:
    """Write the dossier from the recorded figures, with what Great Expectations says of them.

    StoreError where they are of other tables or another policy; RefusedError where the suite and the policy
    do not agree on a clause.
    """
    folder = folders.store.candidate_folder(candidate)
    content = read_json(folder / "figures.json", "identity_risk and attribute_risk")
    snapshot = read_snapshot(candidate, folders.store)
    recorded = read_json(folders.store.ground_truth, "ground_truth")
    of_figures = content.get("measured", {})
    measured = {
        "ground_truth": recorded.get("sha256"),
        # What has no sha256 before it is read is compared by the release, which measures again.
        **{
            label: source.sha256() or of_figures.get(label)
            for name, source in folders.confidential.items()
            for label in [f"{CONFIDENTIAL}[{name}]"]
        },
        "snapshot": snapshot.sha256,
        # Another candidate may be published meanwhile: the release measures beside that, too.
        **name_releases(of_figures.get(RELEASED, "")),
    }
    if of_figures != measured or content.get("policy_digest") != folders.gate.policy_digest():
        raise StoreError(
            "The figures were measured with another ground truth, snapshot or policy: run identity_risk and "
            "attribute_risk again."
        )
    validation = validate(folders.gate.clauses(), content["figures"])
    disagreeing = find_disagreements(validation.kept, content["clauses"])
    if disagreeing:
        raise RefusedError(f"The expectation suite and the policy do not agree on {', '.join(disagreeing)}.")
    write_json(folder / "validation.json", validation.results)
    power = read_power(folders, measured["ground_truth"] or "")
    remedies = try_remedies(folders, snapshot, content)
    others = _read_others(folders, candidate)
    page = render_page(content, others=others, power=power, remedies=remedies)
    write_whole(folder / PAGE, page.encode())
    write_whole(folder / "dossier.md", to_markdown(content).encode())
    # Last, so that where a dossier is its evidence is.
    write_json(folder / "dossier.json", content)
    return content


def path_of_page(folders: GateFolders, candidate: str) -> Path:
    """Return the page of a candidate's dossier."""
    return folders.store.candidate_folder(candidate) / PAGE


def _read_others(folders: GateFolders, candidate: str) -> list[dict[str, Any]]:
    """Read the dossiers of the gate's other candidates, oldest file first; skip unreadable ones."""
    files = [
        file
        for file in folders.store.candidate_folder(candidate).parent.glob("*/dossier.json")
        if file.parent.name != candidate
    ]
    others = []
    for file in sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.parent.name)):
        dossier = read_json_if_whole(file)
        if is_dossier(dossier):
            others.append(dossier)
    return others


def list_broken_clauses(content: Mapping[str, Any]) -> list[str]:
    """Return the names of the clauses, and the refused waivers, of a dossier that stand against a release."""
    passing = {True: {"kept", "waived", "exceeded"}, False: {"kept", "waived"}}  # by whether the clause warns
    return [
        *(
            clause["name"]
            for clause in content["clauses"]
            if clause["outcome"] not in passing[clause["warns"]]
        ),
        *(f"waiver {waiver['name']}" for waiver in content["waivers"] if waiver["problem"]),
    ]


def describe_broken_clauses(content: Mapping[str, Any], smallest_count: int) -> dict[str, str]:
    """Return the same, each as a sentence with its value and bound, and as one that anybody may read."""
    broken = set(list_broken_clauses(content))
    judgements = read_judgements(content)
    records = [content["figures"]["N_d"], *content["figures"]["N_s"]]
    sentences = {
        str(judgement): str(public)
        for judgement, public in zip(judgements, publish(judgements, records, smallest_count), strict=True)
        if judgement.clause.name in broken
    }
    for waiver in content["waivers"]:
        if waiver["problem"]:
            sentence = f"waiver {waiver['name']} is refused: {waiver['problem']}"
            sentences[sentence] = sentence
    return sentences


def find_void_waivers(folders: GateFolders, content: Mapping[str, Any], now: datetime) -> list[str]:
    """Find the gate's waivers that can let nothing pass, and why, but for those for this snapshot."""
    clauses = [clause.name for clause in folders.gate.clauses() if can_be_waived(clause)]
    arrived = {snapshot.sha256 for snapshot in folders.store.read_snapshots()}
    problems = []
    for waiver in folders.waivers:
        if waiver.snapshot == content["measured"]["snapshot"]:
            continue
        problem = waiver.problem(folders.gate.name, content["policy_digest"], clauses, now)
        if problem is None and waiver.snapshot not in arrived:
            problem = "no candidate has the content that it is for"
        if problem:
            problems.append(f"{waiver.name} lets nothing pass: {problem}")
    return problems
