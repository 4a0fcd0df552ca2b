"""The bounds of what every gate looks at, whatever its keys are, and whether a gate has loosened one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# No bound may be so high that every table keeps it: a guard cannot be left out.
Points = Annotated[float, Field(ge=0, lt=100, allow_inf_nan=False, strict=True)]


class Guards(BaseModel):
    """Clauses of every gate, whatever else its policy bounds; none can be left out or waived."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unique_copies_beyond: Annotated[
        Points,
        Field(
            description="Percentage points of the SD records that equal a GT record which no other one "
            "equals, over what a fresh sample shows"
        ),
    ] = 2.5
    partial_copies_beyond: Annotated[
        Points,
        Field(
            description="The same in all columns but one, in the targets alone, or in all but numbers: the "
            "largest of these"
        ),
    ] = 7
    guessed_beyond: Annotated[
        Points,
        Field(
            description="Percentage points of the GT records whose target is guessed from their keys in SD, "
            "over what is guessed from other people's records; of each target"
        ),
    ] = 6
    nearer: Annotated[
        float,
        Field(
            description="Percent of the GT records that are nearer to an SD record than to any other GT "
            "record; a fresh sample is nearer to 50",
            ge=50,
            lt=100,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = 70
    relabelled: Annotated[
        float,
        Field(
            description="Share of 1: how far a category may be from GT over what a fresh sample shows, if it "
            "is near once its levels are matched by their frequencies. Beyond, a candidate cannot be judged",
            ge=0,
            lt=1,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = 0.15
    missing_beyond: Annotated[
        Points,
        Field(
            description="Percentage points by which more SD records than GT records may lack the value of a "
            "column. Beyond, a candidate cannot be judged"
        ),
    ] = 20


DEFAULTS: Mapping[str, float] = {
    "unique_copies_beyond": 2.5,
    "partial_copies_beyond": 7,
    "guessed_beyond": 6,
    "nearer": 70,
    "relabelled": 0.15,
    "missing_beyond": 20,
    "equal_content": 0,
}
"""The bounds of the guards where a gate sets none; high figures are a risk in all of them."""


def loosened_from(measure: str, bound: float) -> float | None:
    """The default of a guard that is bounded more loosely than that; None where it is not, or is no guard."""
    default = DEFAULTS.get(measure)
    return default if default is not None and bound > default else None
