"""The clauses of a policy for the keys and targets of a gate: one condition on one figure each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evaluation.catalogue_entry import STRICT_SUFFIX
from disclosure_pipeline.measures.words import NONE, Words
from disclosure_pipeline.policy.bounds import Bound, Guards, Measures, Over, Policy, find_loosened_default
from disclosure_pipeline.policy.registry import (
    BAND_BOUNDS,
    BANDS,
    BEYOND_BOTH,
    CONFIDENTIAL_GUARDS,
    DOUBTS,
    GUARDS,
    IDENTITY_BOUNDS,
    JUDGED,
    MEASURES,
    ORIGINALS,
    SMALLER_OF,
    WITH_CHANCE,
)

if TYPE_CHECKING:
    from disclosure_pipeline.policy.gate import Gate

# The largest deviation of a control from its expectation, in standard errors.
STANDARD_ERRORS = 6.0


RequiredBound = Literal["identity", "attribute"]


class PolicyError(DisclosurePipelineError, ValueError):
    """The policy is incomplete or contradicts itself."""


@dataclass(frozen=True)
class Clause:
    """One condition on one figure: `measure` (of `column`), over the syntheses, is at most `bound`.

    Attributes:
        column: a target; for key_overlap a key, or None for the whole key; for copies and nearness a further
            confidential table, or None for GT
        share_of: the measure of GT's own risk that `bound` is a share of; None if the bound is absolute
        at_least: the figure is at least `bound`
        warns: a broken clause warns and does not refuse
        control: the clause says whether the engine can be trusted; nothing is determined if it is broken
    """

    measure: str
    column: str | None
    bound: float
    over: Over = "worst"
    share_of: str | None = None
    at_least: bool = False
    warns: bool = False
    control: bool = False

    def __str__(self) -> str:
        bound = f"{'at least' if self.at_least else 'at most'} {self.bound:g}"
        denominator = f" of {self.share_of}" if self.share_of else ""
        over = "mean of the syntheses" if self.over == "mean" else "worst synthesis"
        loosened = "" if self.loosened_from is None else f", loosened from {self.loosened_from:g}"
        loosened += ", tightened to leave nothing to chance" if self.measure.endswith(STRICT_SUFFIX) else ""
        name = f"{self.measure} of {self.column}" if self.column else self.measure
        return f"{name} is {bound}{loosened}{denominator} ({over})"

    @property
    def loosened_from(self) -> float | None:
        """The default of a guard that this gate bounds more loosely, else None."""
        return find_loosened_default(self.measure, self.bound)

    @property
    def consequence(self) -> Literal["warns", "leaves undetermined", "refuses"]:
        """The consequence of breaking the clause."""
        if self.warns:
            return "warns"
        # key_overlap is checked on arrival: a broken one ends the run before anything is measured.
        is_doubt = self.control or self.measure in DOUBTS or self.measure == "key_overlap"
        return "leaves undetermined" if is_doubt else "refuses"

    @property
    def name(self) -> str:
        """The name, unique in a policy: "repU", "DiSCO[income]", "DiSCO[income] / Dorig" or "repU (mean)"."""
        name = self.measure if self.column is None else f"{self.measure}[{self.column}]"
        name = name if self.share_of is None else f"{name} / {self.share_of}"
        return f"{name} (mean)" if self.over == "mean" else name

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Clause:
        """Return the clause of a row, which may have further fields. Raise KeyError if a field is missing."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})


def list_clauses(gate: Gate) -> tuple[Clause, ...]:
    """Return every clause of a gate.

    Raise PolicyError if identity disclosure or DiSCO of a target (within its band, if it has one) has no
    bound, or if a bound is on a column that is not a target or on a measure that is not computed.
    """
    policy, targets, banded = gate.policy, gate.targets, tuple(gate.within)
    bounded: list[Clause] = []
    for measure, bound in policy.bounds.items():
        if not gate.measures.includes(MEASURES[measure]):
            raise PolicyError(
                f"policy bounds {measure}, which is not measured: enable the family "
                f"{MEASURES[measure].family} under measures."
            )
        bounded += _list_bound_clauses(measure, bound, gate)
    _require_measured(bounded, gate.measures)
    unbounded = find_unbounded({(clause.measure, clause.column) for clause in bounded}, targets, banded)
    if unbounded:
        raise PolicyError(
            f"The policy has no bound on {', '.join(unbounded)}. No value is safe by default: set a bound."
        )
    most_excluded = gate.exclusions.limit
    counted = (
        *bounded,
        *_list_guard_clauses(policy.guards, targets, banded),
        *(
            Clause(measure, name, getattr(policy.guards, measure))
            for name in gate.confidential
            for measure in CONFIDENTIAL_GUARDS
        ),
        *_list_check_clauses(policy, gate.keys, targets),
        *(Clause("excluded", target, most_excluded) for target in targets if most_excluded is not None),
        *_list_controls(targets),
    )
    weighted = weigh_clauses(counted) if gate.people == "weighted" else ()
    claimed = () if gate.holdout is None else (Clause("epsilon_beyond_claim", None, 0),)
    return (*counted, *weighted, *claimed, Clause("warnings", None, 0, warns=gate.warnings == "warn"))


def _list_bound_clauses(measure: str, bound: Bound, gate: Gate) -> Iterator[Clause]:
    unknown = [name for name in bound.targets if name not in gate.targets]
    if unknown:
        raise PolicyError(
            f"policy.{measure}.targets names {', '.join(unknown)}: the targets are {', '.join(gate.targets)}."
        )
    columns = _find_measured_columns(measure, gate)
    unmeasured = [name for name in bound.targets if name not in columns]
    if MEASURES[measure].frame == BANDS and (unmeasured or not columns):
        raise PolicyError(
            f"policy bounds {measure}, which only targets with within have: "
            + (f"{', '.join(unmeasured)} has no within." if unmeasured else "no target has it.")
        )
    if unmeasured or not columns:
        raise PolicyError(
            f"policy bounds {measure}, which is only measured for targets predicted by "
            f"{MEASURES[measure].task}: "
            + (f"{', '.join(unmeasured)} is not." if unmeasured else "no target is.")
        )
    for column in columns:
        limits = bound.for_target(column)
        strictly = "" if limits.chance is None else STRICT_SUFFIX
        named = measure + strictly if measure in WITH_CHANCE else measure
        if limits.at_least is not None:
            yield Clause(measure, column, limits.at_least, bound.over, at_least=True)
        if limits.at_most is not None:
            yield Clause(named, column, limits.at_most, bound.over)
        if limits.at_most_share is not None:
            yield Clause(measure, column, limits.at_most_share, bound.over, ORIGINALS[measure])
        if limits.beyond is not None:
            yield Clause(BEYOND_BOTH[measure] + strictly, column, limits.beyond)
        if limits.worst is not None:
            yield Clause(named, column, limits.worst, at_least=MEASURES[measure].high_is_safe)


def _find_measured_columns(measure: str, gate: Gate) -> Sequence[str] | Sequence[None]:
    registered = MEASURES[measure]
    if not registered.per_target:
        return [None]
    if registered.frame == BANDS:
        return list(gate.within)
    return [name for name, task in gate.tasks.items() if registered.task in {None, task}]


def _require_measured(bounded: Sequence[Clause], measures: Measures) -> None:
    """Raise PolicyError if `beyond` is bounded but one of its two figures is not measured."""
    for clause in bounded:
        for part in SMALLER_OF.get(clause.measure, ()):
            if not measures.includes(JUDGED[part]):
                raise PolicyError(
                    f"policy has a bound beyond, which needs {part}: enable the family {JUDGED[part].family} "
                    "under measures."
                )


def weigh_clauses(counted: Sequence[Clause]) -> tuple[Clause, ...]:
    """Return the same clauses on weighted shares of people, for figures that have a weighted variant.

    >>> [str(clause) for clause in weigh_clauses([Clause("repU", None, 8), Clause("max_denom", "work", 9)])]
    ['repU_weighted is at most 8 (worst synthesis)']
    """
    weighted = []
    for clause in counted:
        name = clause.measure.removesuffix(STRICT_SUFFIX)
        measure = f"{name}_weighted{clause.measure[len(name) :]}"
        if clause.share_of is None and measure in JUDGED:
            weighted.append(replace(clause, measure=measure))
    return tuple(weighted)


def find_unbounded(
    bounded: Collection[tuple[str, str | None]], targets: Sequence[str], banded: Sequence[str] = ()
) -> list[str]:
    """Return the mandatory measures without a bound, given the pairs of bounded measure and column.

    >>> find_unbounded({("repU", None), ("DiSCO_beyond_both", "work")}, ["work", "income"])
    ['DiSCO of income']
    """
    bounded = {(measure.removesuffix(STRICT_SUFFIX), column) for measure, column in bounded}
    has_identity = any((measure, None) in bounded for measure in IDENTITY_BOUNDS)
    exact = ("DiSCO", BEYOND_BOTH["DiSCO"])
    # The exact value of an amount with a band is hardly ever disclosed, so bounding it is not enough.
    needed = {target: BAND_BOUNDS if target in banded else (*exact, *BAND_BOUNDS) for target in targets}
    return [
        *([] if has_identity else [" or ".join(IDENTITY_BOUNDS)]),
        *(
            f"{measures[0]} of {target}"
            for target, measures in needed.items()
            if not any((measure, target) in bounded for measure in measures)
        ),
    ]


def find_required_bound(measure: str) -> RequiredBound | None:
    """Return the kind of disclosure that every policy bounds, if a bound on the measure does so.

    >>> [find_required_bound(name) for name in ("repU", "DiSCO_beyond_strictly", "DiSCO_within", "nearer")]
    ['identity', None, 'attribute', None]
    """
    measure = measure.removesuffix(STRICT_SUFFIX)
    if measure in IDENTITY_BOUNDS:
        return "identity"
    return "attribute" if measure in {"DiSCO", BEYOND_BOTH["DiSCO"], *BAND_BOUNDS} else None


def _list_guard_clauses(guards: Guards, targets: Sequence[str], banded: Sequence[str]) -> Iterator[Clause]:
    whole_table_first = sorted(GUARDS.values(), key=lambda guard: guard.per_target)
    for guard in (*whole_table_first, *DOUBTS.values()):
        if guard.bound is not None:
            bound = getattr(guards, guard.name, guard.bound.default)
            guarded_targets = banded if guard.frame == BANDS else targets
            for target in guarded_targets if guard.per_target else [None]:
                yield Clause(guard.name, target, bound)


def _list_check_clauses(policy: Policy, keys: Sequence[str], targets: Sequence[str]) -> Iterator[Clause]:
    for check, consequence in (("one_way", policy.one_way), ("two_way", policy.two_way)):
        for target in targets:
            yield Clause(f"{check}_flags", target, 0, warns=consequence == "warn")
    for key in keys:
        yield Clause("key_overlap", key, policy.key_overlap, at_least=True)
    yield Clause("key_overlap", None, policy.whole_key_overlap, at_least=True)
    for target in targets:
        yield Clause("target_overlap", target, policy.target_overlap, at_least=True)


def _list_controls(targets: Sequence[str]) -> Iterator[Clause]:
    # A trustworthy engine finds all of a copy, and what is known of shuffled tables and halves.
    yield Clause("copy_repU", None, 1, share_of="copy_UiO", at_least=True, control=True)
    for target in targets:
        yield Clause("copy_DiSCO", target, 1, share_of="copy_Dorig", at_least=True, control=True)
        yield Clause("copy_difference", target, 0, control=True)
        for deviation in ("permuted_deviation", "half_deviation"):
            yield Clause(deviation, target, STANDARD_ERRORS, control=True)


def find_measure_words(name: str) -> Words:
    """Return the words of the measure, guard, control, doubt, check or overlap that clauses bound.

    Dossiers of earlier versions may have clauses on figures that are no longer known.

    >>> find_measure_words("key_overlap").title
    'shared values of a key'
    """
    entry = JUDGED.get(name)
    if entry is None:
        return Words.neutral(name, "This version does not know the figure.", NONE)
    return entry.words


def list_effective_clauses(clauses: Sequence[Clause]) -> list[str]:
    """Return each clause in words, with the consequence of breaking it.

    >>> list_effective_clauses([Clause("repU", None, 8)])
    ['repU is at most 8 (worst synthesis): refuses']
    >>> [line.split(": ")[1] for line in list_effective_clauses([Clause("relabelled", None, 0.15)])]
    ['leaves undetermined']
    """
    return [
        f"{clause}: {'nothing is determined without it' if clause.control else clause.consequence}"
        for clause in clauses
    ]
