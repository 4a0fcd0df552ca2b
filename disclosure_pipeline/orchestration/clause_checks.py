"""The checks of a gate's clauses: what Dagster shows of them, a dozen names rather than one a clause.

Dagster sorts checks by name, so that the bounds of the policy (`bound_…`) come first. What is bounded for
several targets is one check, which fails if any of its clauses is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import DOUBTS, GUARDS
from disclosure_pipeline.policy.verdict import Judgement

_WORDS: Mapping[str, str] = {
    "control": "Controls: can the figures be trusted? An exact copy of GT must show all that it discloses, "
    "and a table with shuffled targets no more than chance gives. Where one fails, nothing is determined.",
    "excluded": "How many GT records the exclusions take from a target. Beyond it nothing is determined.",
    "flags_one_way": "One-way check: is one level of a target behind most of what is disclosed?",
    "flags_two_way": "Two-way check: is one level of a target, with one of a key, behind most of it?",
    "overlap_of_targets": "Do GT and SD share the values of each target? Where they share few, the tables "
    "may not be coded alike, and every risk reads too low.",
    "warnings": "Warnings: the tables may not be coded alike, or a column looks like an identifier.",
    "guard_unique_copies_beyond": "Guard: SD records that equal a GT record which no other one equals, "
    "beyond what is to be expected.",
    "guard_partial_copies_beyond": "Guard: SD records that equal a unique GT record in all columns but one, "
    "or in the targets alone, beyond what is to be expected.",
    "guard_nearer": "Guard: GT records that are nearer to an SD record than to any other GT record.",
    "guard_guessed_beyond": "Guard: GT records whose target is guessed rightly from their keys in SD, beyond "
    "those that the other GT records let guess.",
    "guard_relabelled": "Guard: do the values of a category look renamed? Then nothing is determined.",
    "guard_equal_content": "Guard: does one table hold all records of the other? Then nothing is determined.",
}
_OTHER_NAMES = {
    "key_overlap": "key_overlap",
    "one_way_flags": "flags_one_way",
    "two_way_flags": "flags_two_way",
    "target_overlap": "overlap_of_targets",
    "excluded": "excluded",
    "warnings": "warnings",
}


@dataclass(frozen=True)
class ClauseCheck:
    """One check of an asset, and the clauses that it holds the figures against."""

    name: str
    asset: str
    clauses: tuple[Clause, ...]

    @property
    def description(self) -> str:
        """What it is about, in words, and its bounds."""
        words = _WORDS.get(self.name, "A bound of the policy.")
        return f"{words} {'; '.join(map(str, self.clauses))}."

    def may_fail(self, judgements: Mapping[Clause, Judgement]) -> bool:
        """Whether it fails as a warning where each clause has that judgement, and is no error."""
        return passes_with_warnings([judgements[clause] for clause in self.clauses])


def group_clauses(clauses: Sequence[Clause]) -> tuple[ClauseCheck, ...]:
    """The checks of `identity_disclosure` and `attribute_disclosure`, in order of their first clauses.

    The clauses on key overlaps are left out: they are one check of `synthetic`.

    >>> checks = group_clauses([Clause("repU", None, 8), *(Clause("DiSCO", name, 9) for name in "ab")])
    >>> [(check.name, check.asset, len(check.clauses)) for check in checks]
    [('bound_repU', 'identity_disclosure', 1), ('bound_DiSCO', 'attribute_disclosure', 2)]
    """
    by_check: dict[tuple[str, str], list[Clause]] = {}
    for clause in clauses:
        if clause.measure != "key_overlap":
            asset = "identity_disclosure" if clause.column is None else "attribute_disclosure"
            by_check.setdefault((asset, name_check(clause)), []).append(clause)
    return tuple(ClauseCheck(name, asset, tuple(members)) for (asset, name), members in by_check.items())


def name_check(clause: Clause) -> str:
    """The check that a clause belongs to; no name of a column is part of it.

    >>> name_check(Clause("repU", None, 0.3, share_of="UiO")), name_check(Clause("nearer", None, 70))
    ('bound_repU_share_of_UiO', 'guard_nearer')
    """
    if clause.control:
        return "control"
    if clause.measure in _OTHER_NAMES:
        return _OTHER_NAMES[clause.measure]
    if clause.measure in GUARDS or clause.measure in DOUBTS:
        return f"guard_{clause.measure}"
    parts = ["bound", clause.measure, clause.share_of and f"share_of_{clause.share_of}"]
    parts.append("mean" if clause.over == "mean" else None)
    return "_".join(part for part in parts if part)


def passes_with_warnings(judgements: Sequence[Judgement]) -> bool:
    """Whether some clause is not kept, and each such one is only warned of: by the policy, or by a waiver."""
    broken = [judgement for judgement in judgements if judgement.outcome != "kept"]
    return bool(broken) and all(warns(judgement) for judgement in broken)


def warns(judgement: Judgement) -> bool:
    """Whether a clause that is not kept is only warned of: as the policy says, or by a waiver."""
    return judgement.clause.warns or judgement.outcome == "waived"
