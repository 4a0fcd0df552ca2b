"""The policy as a custodian writes it: the measures, their bounds, and the consequence of a flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from disclosure_pipeline.evaluation.catalogue_entry import Measure
from disclosure_pipeline.evaluation.resemblance import LEAST_SHARED
from disclosure_pipeline.policy.registry import (
    BEYOND_BOTH,
    DOUBTS,
    GUARDS,
    JUDGED,
    MEASURES,
    MODELLED,
    ORIGINALS,
    WITH_CHANCE,
)
from disclosure_pipeline.tables.dictionary import FrozenModel

_BOUNDS = {entry.name: entry.bound for entry in JUDGED.values() if entry.bound is not None}


if TYPE_CHECKING:
    Guards = FrozenModel
else:
    # A guard cannot be switched off, not even by a bound that every table would keep.
    Guards = create_model(
        "Guards",
        __base__=FrozenModel,
        __doc__="Bounds that hold in every gate; none of them can be omitted or waived.",
        __module__=__name__,
        **{
            name: (
                Annotated[
                    float,
                    Field(
                        description=bound.description,
                        ge=bound.lowest,
                        lt=bound.below,
                        allow_inf_nan=False,
                        strict=True,
                    ),
                ],
                bound.default,
            )
            for name, bound in _BOUNDS.items()
            if bound.description
        },
    )

DEFAULTS: Mapping[str, float] = {name: bound.default for name, bound in _BOUNDS.items()}
"""The default bound of each guard; a high figure is a risk for all of them."""


def find_loosened_default(measure: str, bound: float) -> float | None:
    """Return the default of a guard if `bound` is looser, else None."""
    default = DEFAULTS.get(measure)
    return default if default is not None and bound > default else None


Over = Literal["worst", "mean"]
# Strict: otherwise `repU: yes` would be read as a bound of 1.
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]


class TargetBound(FrozenModel):
    """The bounds of one target, replacing the general ones."""

    at_most: Annotated[Finite | None, Field(description="Largest value allowed")] = None
    at_least: Annotated[
        Finite | None,
        Field(description="Smallest value allowed, for a measure whose high values are safe"),
    ] = None
    at_most_share: Annotated[
        Share | None,
        Field(description="Largest share of GT's own risk (UiO for repU, Dorig for DiSCO) allowed"),
    ] = None
    beyond: Annotated[
        Finite | None,
        Field(
            description="For DiSCO: percentage points allowed beyond other people's records and beyond "
            "chance; broken if both are exceeded. Holds for the worst synthesis and for all files together"
        ),
    ] = None
    chance: Annotated[
        Literal[0] | None,
        Field(
            description="0: any difference from other people's records counts. By default, a difference "
            "counts only if fewer than 1 in 10,000 honest tables of this size would show it"
        ),
    ] = None
    worst: Annotated[
        Finite | None,
        Field(description="With over: mean, the bound of each synthesis and of all files together"),
    ] = None

    @property
    def limits(self) -> list[float]:
        """The bounds that are in the measure's own unit."""
        limits = (self.at_most, self.at_least, self.beyond, self.worst)
        return [limit for limit in limits if limit is not None]


class Bound(TargetBound):
    """The bounds of one measure. A plain number is short for `at_most`."""

    targets: Annotated[
        Mapping[str, Finite | TargetBound], Field(description="Targets with bounds of their own")
    ] = {}
    over: Annotated[
        Over,
        Field(
            description="What the bound applies to: worst, each of the m syntheses and all their records "
            "together, or mean, the mean of the syntheses, which also needs a bound on the worst"
        ),
    ] = "worst"

    def for_target(self, target: str | None) -> TargetBound:
        """Return the bounds of one target, or of a measure without targets (None)."""
        bound = self.targets.get(target, self) if target is not None else self
        if not isinstance(bound, TargetBound):
            bound = TargetBound(at_most=bound)
        general = {"worst": self.worst, "chance": self.chance}
        return bound.model_copy(
            update={name: limit for name, limit in general.items() if getattr(bound, name) is None}
        )


class Protection(FrozenModel):
    """Disclosure protection of each target; grouped columns are compared by group."""

    methods: Annotated[
        tuple[Literal["cap", "zero_cap", "generalized_cap"], ...],
        Field(description="How GT records whose key is not in SD are treated", min_length=1),
    ] = ("cap",)


class Prediction(FrozenModel):
    """Prediction risk of each target, by regression for numbers. Needs the extra `prediction`."""

    learner: Literal["nearest_neighbours", "boosted_trees"] = "nearest_neighbours"


class Measures(FrozenModel):
    """Optional families of measures, beside identity and attribute disclosure."""

    chance: Annotated[bool, Field(description="DiSCO_chance and DiSCO_excess")] = True
    attribution: Annotated[bool, Field(description="The CAP family")] = True
    protection: Annotated[bool | Protection, Field(description="Disclosure protection (SDMetrics)")] = False
    prediction: Annotated[bool | Prediction, Field(description="Prediction risk")] = False

    def includes(self, measure: Measure) -> bool:
        """Return whether a measure is computed."""
        if measure.family == "protection":
            return any(measure.column.startswith(f"{method}__") for method in self.methods)
        always = {"identity", "attribute", "bands", "resemblance", "population", "membership"}
        return measure.family in always or bool(getattr(self, measure.family))

    @property
    def methods(self) -> tuple[str, ...]:
        """The enabled methods of disclosure protection."""
        if isinstance(self.protection, Protection):
            return self.protection.methods
        return Protection().methods if self.protection else ()

    @property
    def learner(self) -> str | None:
        """The learner of prediction risk; None if the family is disabled."""
        if isinstance(self.prediction, Prediction):
            return self.prediction.learner
        return Prediction().learner if self.prediction else None


def _add_measures(schema: dict[str, Any]) -> None:
    """Add the measures as named properties, so that editors complete them and mark unknown ones."""
    bound = schema["additionalProperties"]
    schema["properties"] |= {
        name: {"description": measure.words.description, **bound} for name, measure in MEASURES.items()
    }
    schema["additionalProperties"] = False


class Policy(BaseModel):
    """Bound of each measure, in percent (counts for max_denom and mean_denom), and consequences of flags."""

    model_config = ConfigDict(extra="allow", frozen=True, json_schema_extra=_add_measures)
    __pydantic_extra__: dict[str, Finite | Bound]

    one_way: Annotated[
        Literal["warn", "refuse"], Field(description="Consequence of a flag of the one-way check")
    ] = "warn"
    two_way: Annotated[
        Literal["warn", "refuse"], Field(description="Consequence of a flag of the two-way check")
    ] = "warn"
    key_overlap: Annotated[
        float,
        Field(
            description="Percent of GT records, and of SD records, whose value of a key column must occur in "
            "the other table; with less, the tables cannot be compared",
            gt=0,
            le=100,
            strict=True,
        ),
    ] = LEAST_SHARED.key
    whole_key_overlap: Annotated[
        float,
        Field(
            description="The same for the combination of all keys. Lower it for keys by which nearly "
            "everyone is unique",
            ge=0,
            le=100,
            strict=True,
        ),
    ] = LEAST_SHARED.whole_key
    target_overlap: Annotated[
        float,
        Field(
            description="The same for each target, after grouping. Values of SD that GT does not have "
            "disclose nothing, so their figures would look safe",
            ge=0,
            le=100,
            strict=True,
        ),
    ] = LEAST_SHARED.target
    smallest_count: Annotated[
        int,
        Field(
            description="The smallest number of records that may be reported on. Levels with fewer records "
            "are not named, published figures are rounded to this number of records, and tables that differ "
            "from a measured one in fewer records are not measured",
            ge=1,
            strict=True,
        ),
    ] = 10

    guards: Annotated[
        Guards,
        Field(description="Bounds that every gate has; write down only those that differ from the default"),
    ] = Guards()

    evaluations_per_ground_truth: Annotated[
        int,
        Field(
            description="How many different candidates may be measured against one ground truth: each "
            "measurement reveals a little of it",
            ge=1,
            strict=True,
        ),
    ] = 500

    @property
    def bounds(self) -> dict[str, Bound]:
        """The bounds of each measure; a plain number is an `at_most`."""
        return {
            name: bound if isinstance(bound, Bound) else Bound(at_most=bound)
            for name, bound in self.__pydantic_extra__.items()
        }

    @model_validator(mode="after")
    def _bounds_are_possible(self) -> Policy:
        for name, bound in self.bounds.items():
            if name in {*GUARDS, *DOUBTS}:
                raise ValueError(f"{name} is bounded in every gate: change its bound under guards")
            if name in MODELLED:
                raise ValueError(f"{name} follows from a model that often fails: bound DIS instead")
            if name not in MEASURES:
                raise ValueError(f"{name!r} is not a measure: the measures are {', '.join(MEASURES)}")
            if bound.targets and not MEASURES[name].per_target:
                raise ValueError(f"{name} is measured for the whole table: it has no bounds per target")
            limits = [bound, *(bound.for_target(target) for target in bound.targets)]
            if any(limit.at_most_share is not None for limit in limits) and name not in ORIGINALS:
                raise ValueError(f"at_most_share is for {' and '.join(ORIGINALS)}, not for {name}")
            if any(limit.beyond is not None for limit in limits) and name not in BEYOND_BOTH:
                raise ValueError(f"beyond is for {' and '.join(BEYOND_BOTH)}, not for {name}")
            _check_chance(name, bound)
            for limit in limits:
                _check_limits(name, limit, bound.over, may_be_empty=limit is bound and bool(bound.targets))
        return self


def _check_chance(name: str, bound: Bound) -> None:
    """Raise ValueError if `chance` is given for a bound that makes no allowance for chance."""
    stated = [bound, *(limit for limit in bound.targets.values() if isinstance(limit, TargetBound))]
    with_chance = [limit for limit in stated if limit.chance is not None]
    if with_chance and name not in {*BEYOND_BOTH, *WITH_CHANCE}:
        raise ValueError(f"chance is for {', '.join([*BEYOND_BOTH, *sorted(WITH_CHANCE)])}, not for {name}")
    if name in BEYOND_BOTH and any(limit.beyond is None for limit in with_chance):
        raise ValueError(f"chance of {name} applies to beyond: give beyond, or remove chance")


def _check_limits(name: str, limit: TargetBound, over: Over, *, may_be_empty: bool) -> None:
    """Raise ValueError if a bound is empty, on the wrong side, or kept by every table."""
    measure = MEASURES[name]
    wrong, right = ("at_most", "at_least") if measure.high_is_safe else ("at_least", "at_most")
    if getattr(limit, wrong) is not None:
        raise ValueError(f"{name} is bounded by {right}, not by {wrong}")
    is_empty = [limit.at_most, limit.at_least, limit.at_most_share] == [None, None, None]
    if is_empty and limit.beyond is None and not may_be_empty:
        raise ValueError(f"the bound of {name} is empty: give {right}")
    if measure.largest is not None and any(number > measure.largest for number in limit.limits):
        raise ValueError(f"{name} is never above {measure.largest:g}: lower its bound")
    if limit.beyond is not None and limit.beyond == measure.largest:
        raise ValueError(f"beyond of {name} is {limit.beyond:g} points, which every table keeps: lower it")
    if limit.at_most_share == 1 and limit.at_most is None:
        raise ValueError(f"at_most_share of {name} is 1, which every table keeps: lower it, or add at_most")
    if over == "mean" and is_empty and limit.beyond is not None:
        raise ValueError(f"{name} with over: mean needs {right}: beyond always applies to the worst")
    if over == "mean" and limit.worst is None and not is_empty:
        raise ValueError(
            f"only the mean of {name} is bounded, which can hide a bad synthesis: also give worst, the bound "
            "of each synthesis"
        )
    if over == "worst" and limit.worst is not None:
        raise ValueError(
            f"{name} has worst without over: mean; give {right}, which bounds the worst, instead"
        )
