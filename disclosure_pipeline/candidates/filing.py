"""The dossier of a candidate, filed with its evidence in the store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.files import StoreError, read_json, write_json, write_whole
from disclosure_pipeline.candidates.power import read_power
from disclosure_pipeline.candidates.released import RELEASED, name_releases
from disclosure_pipeline.candidates.store import GateFolders, RefusedError, read_snapshot
from disclosure_pipeline.candidates.tried_remedies import try_remedies
from disclosure_pipeline.evidence.dossier import to_markdown
from disclosure_pipeline.evidence.page.rendering import PAGE, is_dossier, render_page
from disclosure_pipeline.evidence.validation import find_disagreements, validate
from disclosure_pipeline.policy.registry import CONFIDENTIAL
from disclosure_pipeline.policy.verdict import can_be_waived, publish, read_judgements


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
        with suppress(StoreError):
            dossier = read_json(file, "dossier")
            if is_dossier(dossier):
                others.append(dossier)
    return others


def list_broken_clauses(content: Mapping[str, Any]) -> list[str]:
    """Return the names of the clauses, and the refused waivers, of a dossier that stand against a release."""
    return [
        *(
            clause["name"]
            for clause in content["clauses"]
            if clause["outcome"] not in {"kept", "waived"} and not clause["warns"]
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
