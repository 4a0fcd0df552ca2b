"""The policy as a custodian writes it, and the clauses that it means for the targets of a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.families import Measures
from disclosure_pipeline.policy.measured import MEASURES, ORIGINALS

# How far the DiSCO of a permuted target may be from what chance gives, in standard errors.
STANDARD_ERRORS = 6.0

Over = Literal["worst", "mean"]
# Strict, so that `repU: yes` is no bound of 1.
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]


class PolicyError(DisclosurePipelineError, ValueError):
    """The policy is incomplete or contradicts itself."""


class TargetBound(BaseModel):
    """The bounds of one target: instead of the general ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    at_most: Annotated[Finite | None, Field(description="Largest value that is allowed")] = None
    at_least: Annotated[
        Finite | None,
        Field(description="Smallest value that is allowed, of a measure whose high values are safe"),
    ] = None
    at_most_share: Annotated[
        Share | None, Field(description="Largest share of GT's own risk (UiO for repU, Dorig for DiSCO)")
    ] = None


class Bound(TargetBound):
    """The bounds of one measure. A plain number is short for `at_most`."""

    targets: Annotated[
        Mapping[str, Finite | TargetBound], Field(description="Targets with bounds of their own")
    ] = {}
    over: Annotated[
        Over, Field(description="What has to keep the bound: the worst of the m syntheses, or their mean")
    ] = "worst"

    def of(self, target: str | None) -> TargetBound:
        """The bounds that hold for one target (None: for a measure that has no targets)."""
        own = self.targets.get(target, self) if target is not None else self
        return own if isinstance(own, TargetBound) else TargetBound(at_most=own)


def _name_the_measures(schema: dict[str, Any]) -> None:
    """The measures as named properties, so that editors complete them and mark an unknown one."""
    bound = schema["additionalProperties"]
    schema["properties"] |= dict.fromkeys(MEASURES, bound)
    schema["additionalProperties"] = False


class Policy(BaseModel):
    """Measure -> its bound, in percent (counts for max_denom and mean_denom), and what flags lead to."""

    model_config = ConfigDict(extra="allow", frozen=True, json_schema_extra=_name_the_measures)
    __pydantic_extra__: dict[str, Finite | Bound]

    one_way: Annotated[
        Literal["warn", "refuse"], Field(description="What follows from a flag of the one-way check")
    ] = "warn"
    two_way: Annotated[
        Literal["warn", "refuse"], Field(description="What follows from a flag of the two-way check")
    ] = "warn"
    key_overlap: Annotated[
        float,
        Field(
            description="Percent of GT records, and of SD records, whose value of a key column must occur in "
            "the other table: below, the tables cannot be compared",
            gt=0,
            le=100,
            strict=True,
        ),
    ] = 80
    whole_key_overlap: Annotated[
        float,
        Field(
            description="The same of the combination of all keys. Lower it for keys by which nearly everyone "
            "is unique",
            ge=0,
            le=100,
            strict=True,
        ),
    ] = 5
    target_overlap: Annotated[
        float,
        Field(
            description="The same of each target, after grouping: where SD's values of a target are not "
            "GT's, nothing can be disclosed by them, whatever they say",
            ge=0,
            le=100,
            strict=True,
        ),
    ] = 50
    smallest_count: Annotated[
        int,
        Field(
            description="The smallest number of GT records about which a level, or the edge of a group, may "
            "be told in evidence and user interface",
            ge=1,
            strict=True,
        ),
    ] = 10

    @property
    def bounds(self) -> dict[str, Bound]:
        """Measure -> its bounds, plain numbers written out."""
        return {
            name: bound if isinstance(bound, Bound) else Bound(at_most=bound)
            for name, bound in self.__pydantic_extra__.items()
        }

    @model_validator(mode="after")
    def _bounds_are_possible(self) -> Policy:
        for name, bound in self.bounds.items():
            if name not in MEASURES:
                raise ValueError(f"{name!r} is no measure: the measures are {', '.join(MEASURES)}")
            if bound.targets and not MEASURES[name].per_target:
                raise ValueError(f"{name} is measured for the whole table: it has no bounds per target")
            every = [bound, *(bound.of(target) for target in bound.targets)]
            if any(own.at_most_share is not None for own in every) and name not in ORIGINALS:
                raise ValueError(f"at_most_share is for {' and '.join(ORIGINALS)}: not for {name}")
            wrong, right = ("at_most", "at_least") if MEASURES[name].high_is_safe else ("at_least", "at_most")
            for own in every:
                if getattr(own, wrong) is not None:
                    raise ValueError(f"{name} is bounded by {right}, not by {wrong}")
                given = [own.at_most, own.at_least, own.at_most_share]
                if given == [None, None, None] and not (own is bound and bound.targets):
                    raise ValueError(f"a bound of {name} sets nothing: give {right}")
        return self


@dataclass(frozen=True)
class Clause:
    """One condition on one figure: `measure` (of `column`) over the syntheses is at most `bound`.

    `column` is a target; for key_overlap a key, or None for all of them combined. With `share_of` the bound
    is that share of another measure: GT's own risk. With `at_least` the figure must not be below the bound.
    `warns` marks a clause that does not refuse, `control` one that tells whether the engine can be trusted:
    where it is not kept nothing is determined. `name` is unique in a policy.
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
        """The clause in words."""
        bound = f"{'at least' if self.at_least else 'at most'} {self.bound:g}"
        of = f" of {self.share_of}" if self.share_of else ""
        over = "mean of the syntheses" if self.over == "mean" else "worst synthesis"
        return f"{self.measure}{f' of {self.column}' if self.column else ''} is {bound}{of} ({over})"

    @property
    def name(self) -> str:
        """Such as "repU", "DiSCO[income]" or "DiSCO[income] / Dorig"."""
        name = self.measure if self.column is None else f"{self.measure}[{self.column}]"
        return name if self.share_of is None else f"{name} / {self.share_of}"


def _concerned(
    measure: str, targets: Sequence[str], tasks: Mapping[str, str]
) -> Sequence[str] | Sequence[None]:
    """The targets that have a measure; None stands for the whole table."""
    at = MEASURES[measure]
    if not at.per_target:
        return [None]
    return [target for target in targets if at.task is None or tasks.get(target) == at.task]


def clauses(
    policy: Policy,
    keys: Sequence[str],
    targets: Sequence[str],
    measures: Measures | None = None,
    tasks: Mapping[str, str] | None = None,
) -> tuple[Clause, ...]:
    """Every clause of the policy for these keys and targets, and the families of measures that are on.

    `tasks` says whether a target is predicted by classification or regression. PolicyError where repU, or
    DiSCO of a target, has no bound (no value is safe by itself), or where a bound is on a column that is
    no target, or on what is not measured.
    """
    measures = measures or Measures()
    found: list[Clause] = []
    for measure, bound in policy.bounds.items():
        if not measures.has(MEASURES[measure]):
            raise PolicyError(
                f"policy bounds {measure}, which is not measured: switch the family "
                f"{MEASURES[measure].family} on under measures."
            )
        strangers = [name for name in bound.targets if name not in targets]
        if strangers:
            raise PolicyError(
                f"policy.{measure}.targets names {', '.join(strangers)}: "
                f"the targets are {', '.join(targets)}."
            )
        concerned = _concerned(measure, targets, tasks or {})
        unmeasured = [name for name in bound.targets if name not in concerned]
        if unmeasured or not concerned:
            raise PolicyError(
                f"policy bounds {measure}, which there is only for {MEASURES[measure].task} of a target: "
                f"{', '.join(unmeasured) or 'no target'} is predicted so."
            )
        for target in concerned:
            own = bound.of(target)
            if own.at_least is not None:
                found.append(Clause(measure, target, own.at_least, bound.over, at_least=True))
            if own.at_most is not None:
                found.append(Clause(measure, target, own.at_most, bound.over))
            if own.at_most_share is not None:
                found.append(Clause(measure, target, own.at_most_share, bound.over, ORIGINALS[measure]))
    bounded = {(clause.measure, clause.column) for clause in found}
    required = [("repU", None), *(("DiSCO", target) for target in targets)]
    open_ends = [measure if target is None else f"{measure} of {target}" for measure, target in required
                 if (measure, target) not in bounded]  # fmt: skip
    if open_ends:
        raise PolicyError(
            f"The policy has no bound on {', '.join(open_ends)}. No value is safe by itself: set one."
        )
    for check, consequence in (("one_way", policy.one_way), ("two_way", policy.two_way)):
        found += [Clause(f"{check}_flags", target, 0, warns=consequence == "warn") for target in targets]
    found += [Clause("key_overlap", key, policy.key_overlap, at_least=True) for key in keys]
    found += [Clause("key_overlap", None, policy.whole_key_overlap, at_least=True)]
    found += [Clause("target_overlap", target, policy.target_overlap, at_least=True) for target in targets]
    found += [Clause("copy_repU", None, 1, share_of="copy_UiO", at_least=True, control=True)]
    for target in targets:
        found.append(Clause("copy_DiSCO", target, 1, share_of="copy_Dorig", at_least=True, control=True))
        found.append(Clause("permuted_deviation", target, STANDARD_ERRORS, control=True))
    return tuple(found)
