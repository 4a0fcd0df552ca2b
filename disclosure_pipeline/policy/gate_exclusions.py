"""The cells that a gate leaves out of its measures, as its YAML file writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from disclosure_pipeline.evaluation.exclusions import Exclusions, Pair


class GatePair(BaseModel):
    """One level of one key with one level of one target."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    key_level: str | None
    target: str
    target_level: str | None


class GateExclusions(BaseModel):
    """Cells to leave out of the measures, once it is told which are disclosive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target_levels: Annotated[
        Mapping[str, tuple[str, ...]], Field(description="Target -> levels that are not disclosive")
    ] = {}
    missing_targets: bool | tuple[str, ...] = False
    missing_keys: bool | tuple[str, ...] = False
    pairs: tuple[GatePair, ...] = ()
    count_over: Annotated[int | None, Field(ge=0, strict=True)] = None
    at_most: Annotated[
        float,
        Field(
            description="Percent of the GT records that the exclusions may take from a target: where they "
            "take more, nothing is determined",
            ge=0,
            lt=100,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = 50

    @property
    def limit(self) -> float | None:
        """The percentage of GT that they may take; None where nothing is excluded."""
        named = (self.target_levels, self.missing_targets, self.missing_keys, self.pairs)
        return self.at_most if any(named) or self.count_over is not None else None

    def as_exclusions(self) -> Exclusions:
        """The library's own form."""
        return Exclusions(
            target_levels=self.target_levels,
            missing_targets=self.missing_targets,
            missing_keys=self.missing_keys,
            pairs=[Pair(**pair.model_dump()) for pair in self.pairs],
            count_over=self.count_over,
        )
