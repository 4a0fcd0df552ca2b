"""The keys, checks and settings that the assets of one gate share.

A dozen checks, not one a clause: what is bounded for several targets is one check, which fails if any of its
clauses is not kept. Dagster sorts them by name, so that the bounds of the policy (`bound_…`) come first.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.orchestration.arrivals import CandidatePartitions
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.policy.clauses import Clause, words_of
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.registry import DOUBTS, GUARDS, JUDGED, OF_CONFIDENTIAL
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.tables.messages import capitalized

_CONTROLS = (
    "Can the figures be trusted? An exact copy of GT must show all that it discloses, and a table with "
    "shuffled targets no more than chance gives. Where one fails, nothing is determined."
)
_OTHER_NAMES = {
    "key_overlap": "key_overlap",
    "one_way_flags": "flags_one_way",
    "two_way_flags": "flags_two_way",
    "target_overlap": "overlap_of_targets",
    "excluded": "excluded",
    "warnings": "warnings",
}

# Dagster cuts names that are longer than the column they stand in: these are short enough at 1,440 pixels.
_SHORT = {
    "generalized_cap__": "generalized_",
    "zero_cap__": "zero_cap_",
    "cap__": "cap_",
    "cap_protection": "protection",
    "majority_score": "majority",
    "proportional_score": "proportional",
    "_from_SD_in_sample": "_in_sample",
    "_in_releases_beyond": "_in_releases",
    "_within_beyond_weighted": "_within_beyond",
    "_within_others_weighted": "_within_others",
    "_within_weighted": "_within",
    "_GT_in_sample": "_in_sample",
}


@dataclass(frozen=True)
class ClauseCheck:
    """One check of an asset, and the clauses that it holds the figures against."""

    name: str
    asset: str
    clauses: tuple[Clause, ...]

    @property
    def description(self) -> str:
        """Describe the check and its bounds."""
        bounds = "; ".join(_list_bounds(self.clauses))
        if self.name == "control":
            return f"{_CONTROLS} {bounds}."
        words = words_of(self.clauses[0].measure)
        return f"{capitalized(words.title)}. {words.sentence} {bounds}."


def group_clauses(clauses: Sequence[Clause]) -> tuple[ClauseCheck, ...]:
    """Return the checks of `identity_risk` and `attribute_risk`, in order of their first clauses.

    The clauses on key overlaps are left out: they are one check of `synthetic`.

    >>> checks = group_clauses([Clause("repU", None, 8), *(Clause("DiSCO", name, 9) for name in "ab")])
    >>> [(check.name, check.asset, len(check.clauses)) for check in checks]
    [('bound_repU', 'identity_risk', 1), ('bound_DiSCO', 'attribute_risk', 2)]
    """
    by_check: dict[tuple[str, str], list[Clause]] = {}
    for clause in clauses:
        if clause.measure != "key_overlap":
            of_target = clause.column is not None and clause.measure not in OF_CONFIDENTIAL
            asset = "attribute_risk" if of_target else "identity_risk"
            by_check.setdefault((asset, name_check(clause)), []).append(clause)
    return tuple(ClauseCheck(name, asset, tuple(members)) for (asset, name), members in by_check.items())


def _list_bounds(clauses: Sequence[Clause]) -> list[str]:
    columns_by_bound: dict[str, list[str]] = {}
    for clause in clauses:
        columns = columns_by_bound.setdefault(str(replace(clause, column=None)), [])
        columns += [] if clause.column is None else [clause.column]
    return [
        f"{bound}, each of {', '.join(columns)}" if columns else bound
        for bound, columns in columns_by_bound.items()
    ]


def name_check(clause: Clause) -> str:
    """Return the check that a clause belongs to; no name of a column is part of it.

    >>> name_check(Clause("repU", None, 0.3, share_of="UiO")), name_check(Clause("nearer", None, 70))
    ('bound_repU_share_of_UiO', 'guard_nearer')
    """
    if clause.control:
        return "control"
    if clause.measure in _OTHER_NAMES:
        return _OTHER_NAMES[clause.measure]
    counted = clause.measure.removesuffix("_weighted")
    if counted in GUARDS or counted in DOUBTS:
        return f"guard_{JUDGED[counted].shown_with or counted}"
    parts = ["bound", _shorten(clause.measure), clause.share_of and f"share_of_{clause.share_of}"]
    return "_".join(part for part in parts if part)


def _shorten(measure: str) -> str:
    """Return the name of a measure as part of a check's name.

    >>> _shorten("generalized_cap__proportional_score"), _shorten("repU")
    ('generalized_proportional', 'repU')
    """
    for long, short in _SHORT.items():
        measure = measure.removesuffix(long) + short if measure.endswith(long) else measure
        measure = short + measure.removeprefix(long) if measure.startswith(long) else measure
    return measure


@dataclass(frozen=True)
class GateGraph:
    """Keys, checks and settings that the assets of one gate share."""

    gate: Gate
    waivers: tuple[Waiver, ...] = ()

    @property
    def folders(self) -> GateFolders:
        """Return where the gate's tables, records and releases lie, as the environment says now."""
        return folders_of(self.gate, self.waivers)

    def key(self, name: str) -> dg.AssetKey:
        """Return the key of one of the gate's assets."""
        return dg.AssetKey([self.gate.name, name])

    @property
    def candidates(self) -> CandidatePartitions:
        """One partition a candidate, added as it arrives."""
        return CandidatePartitions.of_gate(self.gate)

    @cached_property
    def clause_checks(self) -> tuple[ClauseCheck, ...]:
        """The checks of the clauses; they do not block: the whole picture is always there."""
        return group_clauses(self.gate.clauses())

    def attributes(self, description: str, kinds: set[str]) -> dict[str, Any]:
        """Return what Dagster shows of every asset of the gate. Editing the policy makes its assets stale."""
        return {
            "group_name": self.gate.name,
            "description": description,
            "owners": list(self.gate.owners),
            "kinds": kinds,
            "tags": {"disclosure_pipeline/gate": self.gate.name},
            "code_version": f"{version('disclosure-pipeline')}-{self.gate.policy_digest()[:12]}",
        }

    def check(self, name: str, asset: str, description: str, *, blocking: bool = True) -> dg.AssetCheckSpec:
        """Return a check of one of the assets, with a result a candidate, but one of the ground truth."""
        partitions = None if asset == "ground_truth" else self.candidates
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.PreviewWarning)
            return dg.AssetCheckSpec(
                name,
                asset=self.key(asset),
                description=description,
                blocking=blocking,
                partitions_def=partitions,
            )
