"""The figures that a policy can bound, each under one name, taken from the result's frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import pandas as pd

from disclosure_pipeline.measures.attribute import Attribute
from disclosure_pipeline.measures.attribution import Attribution
from disclosure_pipeline.measures.identity import Identity
from disclosure_pipeline.result import Disclosure


@dataclass(frozen=True)
class Measure:
    """Where a measure stands: the frame and column of the result; whether it has a value per target."""

    frame: str
    column: str
    per_target: bool


MEASURES: dict[str, Measure] = {
    **{field.name: Measure("identity", field.name, False) for field in fields(Identity)},
    **{field.name: Measure("attribute", field.name, True) for field in fields(Attribute)},
    **{field.name: Measure("attribution", field.name, True) for field in fields(Attribution)},
    **{
        f"{field.name}_after_exclusions": Measure("identity_after_exclusions", field.name, True)
        for field in fields(Identity)
    },
}

# What a relative bound compares a measure with: the same risk without any synthesis.
ORIGINALS = {"repU": "UiO", "DiSCO": "Dorig"}

_FLAGS = {"one_way_flags": "one_way", "two_way_flags": "two_way"}


def values(result: Disclosure, measure: str, column: str | None) -> Sequence[float]:
    """The figure for each synthesis, in their order; empty where the result does not have it.

    For key_overlap, the smaller of the two shares of that key.
    """
    if measure in _FLAGS:
        return _flags(result, _FLAGS[measure], column)
    if measure == "key_overlap":
        return smallest_overlap(result.key_overlap, column)
    at = MEASURES[measure]
    frame = getattr(result, at.frame)
    rows = frame if column is None else frame[frame.index.get_level_values("target") == column]
    return [float(value) for value in rows[at.column]]


def smallest_overlap(key_overlap: pd.DataFrame, key: str | None) -> Sequence[float]:
    """The smaller of GT_in_SD and SD_in_GT of one key, for each synthesis; NaN where either is."""
    rows = key_overlap[key_overlap.index.get_level_values("key") == key]
    return [float(value) for value in rows.min(axis=1, skipna=False)]


def _flags(result: Disclosure, check: str, target: str | None) -> Sequence[float]:
    if target not in result.targets:
        return []
    flags = getattr(result, check)
    concerned = flags[flags["target"] == target]
    return [float((concerned["synthesis"] == synthesis).sum()) for synthesis in result.identity.index]
