"""The clauses that are in force, as a list for whoever reads or reviews a gate."""

from __future__ import annotations

from collections.abc import Sequence

from disclosure_pipeline.policy.clauses import Clause


def list_effective_clauses(clauses: Sequence[Clause]) -> list[str]:
    """Each clause in words, with what follows where it is not kept.

    >>> list_effective_clauses([Clause("repU", None, 8)])
    ['repU is at most 8 (worst synthesis): refuses']
    """
    return [f"{clause}: {_name_consequence(clause)}" for clause in clauses]


def _name_consequence(clause: Clause) -> str:
    if clause.control:
        return "nothing is determined without it"
    return "warns" if clause.warns else "refuses"
