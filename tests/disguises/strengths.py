"""From which strength on a disguise is told from honesty, by the number of records: what a test prints.

`python -m disguises.strengths`, with `tests` on the path, prints the table of docs/security.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
from support import gates

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.policy.bounds import DEFAULTS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge
from disguises.tables import definition, moved

RECORDS = (100, 300, 1_000, 2_000, 5_000)
STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 70, 80, 100)
"""Percent of the records that a disguise is made of."""

NEVER = "not at all"


def copied(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """An honest synthesis with a share of GT records."""
    return leak(synthesise(ground_truth), ground_truth, share)


def nearly_copied(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """The same with age and income moved by one in what is copied."""
    near = moved(moved(ground_truth, "age", 1), "income", 1)
    return leak(synthesise(ground_truth), near, share)


DISGUISED: Mapping[str, Callable[[pd.DataFrame, float], pd.DataFrame]] = {
    "copied records": copied,
    "copied records, age and income moved by one": nearly_copied,
}


def is_caught(disguise: str, records: int, percent: int) -> bool:
    """Whether a guard is broken by a disguise of so many records and such a strength."""
    gate = Gate.model_validate(definition("survey"))
    ground_truth = population(records)
    table = DISGUISED[disguise](ground_truth, percent / 100).reset_index(drop=True)
    clauses = [clause for clause in gate.clauses() if clause.measure in DEFAULTS]
    return any(
        judgement.outcome != "kept"
        for judgement in judge(clauses, gates.measured(gate, ground_truth, [table]))
    )


def find_strength(disguise: str, records: int) -> str:
    """The smallest of `STEPS` from which on a disguise is caught, found by halving; `NEVER` if at none."""
    low, high = 0, len(STEPS)  # caught from here on, if monotone; at the latest
    while low < high:
        middle = (low + high) // 2
        if is_caught(disguise, records, STEPS[middle]):
            high = middle
        else:
            low = middle + 1
    return f"{STEPS[low]} %" if low < len(STEPS) else NEVER


def to_table() -> str:
    """The table of docs/security.md."""
    lines = ["| records | " + " | ".join(DISGUISED) + " |", "|---|" + "---|" * len(DISGUISED)]
    for records in RECORDS:
        strengths = " | ".join(find_strength(disguise, records) for disguise in DISGUISED)
        lines.append(f"| {records:,} | {strengths} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(to_table())
