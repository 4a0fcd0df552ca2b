"""The families of measures that a gate switches on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from disclosure_pipeline.policy.registry import Measure


class Protection(BaseModel):
    """Disclosure protection of each target by itself; grouped columns are compared by their groups."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    methods: Annotated[
        tuple[Literal["cap", "zero_cap", "generalized_cap"], ...],
        Field(description="What happens to GT records whose key is not in SD", min_length=1),
    ] = ("cap",)


class Prediction(BaseModel):
    """Prediction risk of each target; numbers are predicted as numbers. Needs the extra `prediction`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    learner: Literal["nearest_neighbours", "boosted_trees"] = "nearest_neighbours"


class Measures(BaseModel):
    """What is measured beside identity and attribute disclosure. What is off costs nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    chance: Annotated[bool, Field(description="DiSCO_chance and DiSCO_excess")] = True
    attribution: Annotated[bool, Field(description="The CAP family")] = True
    protection: Annotated[bool | Protection, Field(description="Disclosure protection (SDMetrics)")] = False
    prediction: Annotated[bool | Prediction, Field(description="Prediction risk")] = False

    def has(self, measure: Measure) -> bool:
        """Whether a measure is on."""
        if measure.family == "protection":
            return any(measure.column.startswith(f"{method}__") for method in self.methods)
        always = {"identity", "attribute", "resemblance"}
        return measure.family in always or bool(getattr(self, measure.family))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of disclosure protection that are on."""
        if isinstance(self.protection, Protection):
            return self.protection.methods
        return Protection().methods if self.protection else ()

    @property
    def learner(self) -> str | None:
        """The learner of prediction risk, if that is on."""
        if isinstance(self.prediction, Prediction):
            return self.prediction.learner
        return Prediction().learner if self.prediction else None
