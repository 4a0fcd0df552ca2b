"""The dossier of a candidate: figures, a verdict per clause, and what they were made from."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import pandas as pd

from disclosure_pipeline.evidence.figures import cell, figures, rows, table
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Decision, Judgement, RefusedWaiver, decide
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.contract import Change

_PACKAGES = (
    "disclosure-pipeline",
    "dagster",
    "great-expectations",
    "numpy",
    "pandas",
    "pandera",
    "pyarrow",
    "pydantic",
    "securesystemslib",
)

_WORDS: Mapping[Decision, str] = {
    "approved": "approved: every clause of the policy is kept or waived",
    "refused": "refused: at least one clause of the policy is not kept",
    "undetermined": "could not be determined, which is never a release",
}


def dossier(
    gate: Gate,
    candidate: str,
    measured: Mapping[str, str],
    result: Disclosure,
    judgements: Sequence[Judgement],
    ledger: Sequence[Change] = (),
    copies: pd.DataFrame | None = None,
    refused_waivers: Sequence[RefusedWaiver] = (),
) -> dict[str, Any]:
    """The dossier as plain data; the same for the same evaluation.

    `measured` holds the hashes of what was measured, by what they are of; `ledger` what was changed to bring
    the tables into canonical form; `copies` is what `comparison.exact_copies` gives.
    """
    return {
        "gate": gate.name,
        "candidate": candidate,
        "decision": decide(judgements, refused_waivers),
        "policy_digest": gate.policy_digest(),
        "measured": dict(measured),
        "clauses": [clause(judgement) for judgement in judgements],
        "waivers": [
            *(_waiver(judgement.waiver) for judgement in judgements if judgement.waiver),
            *(_waiver(refused.waiver, refused.problem) for refused in refused_waivers),
        ],
        "figures": figures(result, gate.policy.smallest_count),
        "exact_copies": [] if copies is None else rows(copies.reset_index()),
        "ledger": [asdict(change) for change in ledger],
        "warnings": list(result.warnings),
    }


def clause(judgement: Judgement) -> dict[str, Any]:
    """One judgement as plain data."""
    return {
        "name": judgement.clause.name,
        **asdict(judgement.clause),
        "value": judgement.value,
        "limit": judgement.limit,
        "outcome": judgement.outcome,
        "waiver": None if judgement.waiver is None else judgement.waiver.name,
    }


def _waiver(waiver: Waiver, problem: str | None = None) -> dict[str, Any]:
    """A waiver as plain data; `problem` is why it is refused, None if it is used."""
    return {**waiver.model_dump(mode="json"), "problem": problem}


def versions() -> dict[str, str]:
    """The versions of this package and of what it computes with."""
    return {"python": platform.python_version()} | {package: version(package) for package in _PACKAGES}


_CLAUSE_COLUMNS = {
    "name": "clause",
    "over": "over",
    "value": "value",
    "bound": "bound",
    "outcome": "outcome",
    "consequence": "if not kept",
}


def to_markdown(content: Mapping[str, Any]) -> str:
    """The dossier for a reader."""
    shown = content["figures"]
    parts = [
        f"# {content['gate']}: candidate {content['candidate']}",
        f"Verdict: {_WORDS[content['decision']]}.",
        "## Clauses",
        clauses_table(content["clauses"]),
        *(f"- Waiver {_told(waiver)}" for waiver in content["waivers"]),
        "## Identity disclosure (% of records)",
        table(shown["identity"], _headings(shown["identity"])),
        "## Attribute disclosure (% of records; max_denom and mean_denom: records)",
        table(shown["attribute"], _headings(shown["attribute"])),
        *_optional(shown),
        "## Key overlap (% of records)",
        table(shown["key_overlap"], _headings(shown["key_overlap"])),
        table(shown["target_overlap"], _headings(shown["target_overlap"])),
        "Synthetic records that are exact copies of a GT record in all shared columns:",
        table(content["exact_copies"], _headings(content["exact_copies"])),
        *(f"- {warning}" for warning in content["warnings"]),
        "## Controls (% of records; permuted_deviation: standard errors)",
        "An exact copy of GT must show repU = UiO and DiSCO = Dorig. With its target permuted, the candidate "
        "must show the DiSCO that chance gives.",
        table(shown["control_identity"], _headings(shown["control_identity"])),
        table(shown["control_attribute"], _headings(shown["control_attribute"])),
        "## What was measured",
        f"{shown['N_d']} GT records; synthetic records: {', '.join(map(str, shown['N_s']))}.",
        "\n".join(f"- {what}: `{digest}`" for what, digest in content["measured"].items()),
        f"Policy digest: `{content['policy_digest']}`",
        "## What was changed to compare the tables",
        table(content["ledger"], _headings(content["ledger"])) if content["ledger"] else "Nothing.",
    ]
    return "\n\n".join(parts) + "\n"


def _told(waiver: Mapping[str, Any]) -> str:
    if waiver["problem"]:
        return f"{waiver['name']} is refused: {waiver['problem']}."
    return (
        f"{waiver['name']}: {waiver['clause']} may go to {cell(waiver['ceiling'])} until "
        f"{waiver['expires']}. Reason: {waiver['reason']} Approved by {waiver['approver']}."
    )


_FURTHER = {
    "attribution": "Correct attribution probability (%)",
    "protection": "Disclosure protection (shares from 0 to 1; high is safe)",
    "prediction": "Prediction risk (%; mse in the target's unit squared)",
}


def _optional(shown: Mapping[str, Any]) -> list[str]:
    """The families of measures that are on, each with a heading."""
    found = []
    for name, heading in _FURTHER.items():
        if shown[name]:
            found += [f"## {heading}", table(shown[name], _headings(shown[name]))]
    return found


def clauses_table(clauses: Sequence[Mapping[str, Any]]) -> str:
    """The clauses of a dossier as a markdown table."""
    told = [
        {
            **row,
            "bound": f"{'at least' if row['at_least'] else 'at most'} {cell(row['limit'])}",
            "consequence": "warns" if row["warns"] else "cannot tell" if row["control"] else "refuses",
        }
        for row in clauses
    ]
    return table(told, _CLAUSE_COLUMNS)


def _headings(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {name: name for name in rows[0]} if rows else {}
