"""The figures that a policy can bound, each under one name, taken from the result's frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.comparability import WHOLE_KEY
from disclosure_pipeline.evaluation.protection import FRAME_FIGURES
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.attribute import Attribute
from disclosure_pipeline.measures.cap import CAP
from disclosure_pipeline.measures.chance import Chance
from disclosure_pipeline.measures.identity import Identity
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.measures.protection import METHODS


@dataclass(frozen=True)
class Measure:
    """Where a measure stands: its family, and the frame and the column of the result.

    `per_target`: it has a value for each target. `high_is_safe`: a bound on it is `at_least`, on the others
    `at_most`. `task`: classification or regression, if only targets that are predicted so have it.
    """

    family: str
    frame: str
    column: str
    per_target: bool = True
    high_is_safe: bool = False
    task: str | None = None


def _names(measures: type) -> list[str]:
    return [field.name for field in fields(measures)]


def _prediction_measures() -> Iterable[tuple[str, Measure]]:
    """The measures of prediction risk; those that only one task has name it."""
    classification, regression = _names(Classification), _names(Regression)
    for name in dict.fromkeys([*classification, *regression]):
        in_both = name in classification and name in regression
        task = None if in_both else "classification" if name in classification else "regression"
        high_is_safe = name.startswith(("mse_", "worse_from_SD"))
        yield name, Measure("prediction", "prediction", name, high_is_safe=high_is_safe, task=task)


MEASURES: dict[str, Measure] = {
    **{name: Measure("identity", "identity", name, per_target=False) for name in _names(Identity)},
    **{name: Measure("attribute", "attribute", name) for name in _names(Attribute)},
    **{name: Measure("chance", "attribute", name) for name in _names(Chance)},
    **{name: Measure("attribution", "cap", name) for name in _names(CAP)},
    **{
        f"{name}_after_exclusions": Measure("identity", "identity_after_exclusions", name)
        for name in _names(Identity)
    },
    **{
        f"{method}__{name}": Measure("protection", "protection", f"{method}__{name}", high_is_safe=True)
        for method in METHODS
        for name in FRAME_FIGURES
    },
    **dict(_prediction_measures()),
}

# The figures of the controls, and the number of warnings. Their bounds are fixed: a policy cannot set them.
CONTROLS: dict[str, Measure] = {
    **{
        name: Measure("controls", "control_identity", name, per_target=False)
        for name in ("copy_UiO", "copy_repU")
    },
    **{
        name: Measure("controls", "control_attribute", name)
        for name in ("copy_Dorig", "copy_DiSCO", "copy_difference", "permuted_deviation", "half_deviation")
    },
    "warnings": Measure("comparability", "warnings", "warnings", per_target=False),
}

# What a relative bound compares a measure with: the same risk without any synthesis.
ORIGINALS = {"repU": "UiO", "DiSCO": "Dorig"}

_FLAGS = {"one_way_flags": "one_way", "two_way_flags": "two_way"}


def values(result: Disclosure, measure: str, column: str | None) -> Sequence[float]:
    """The figure for each synthesis, in their order; empty where the result does not have it.

    For key_overlap and target_overlap, the smaller of the two shares of that column.
    """
    if measure in _FLAGS:
        return _flags(result, _FLAGS[measure], column)
    if measure == "key_overlap":
        return smallest_overlap(result.key_overlap, column)
    if measure == "target_overlap":
        return _smallest(result.target_overlap, "target", column)
    registered = MEASURES.get(measure) or CONTROLS[measure]
    frame = result.frame(registered.frame)
    if registered.column not in frame.columns:
        return []
    figures = frame[registered.column]  # the one column first: frames are slow to filter
    if column is not None:
        figures = figures[frame.index.get_level_values("target") == column]
    return _figure_per_synthesis(figures)


def smallest_overlap(key_overlap: pd.DataFrame, key: str | None) -> Sequence[float]:
    """The smaller of GT_in_SD and SD_in_GT of a key (None: of the whole key) for each synthesis.

    NaN where either is.
    """
    return _smallest(key_overlap, "key", WHOLE_KEY if key is None else key)


def _smallest(overlap: pd.DataFrame, level: str, column: str | None) -> Sequence[float]:
    if level not in overlap.index.names:
        return []
    rows = overlap[overlap.index.get_level_values(level) == column]
    shares = rows.reindex(columns=["GT_in_SD", "SD_in_GT"])
    return _figure_per_synthesis(shares.min(axis=1, skipna=False).where(np.isfinite(shares).all(axis=1)))


def _figure_per_synthesis(figures: pd.Series[Any]) -> Sequence[float]:
    """The figures; empty where a synthesis has more than one, for then none is its figure."""
    if figures.index.get_level_values("synthesis").has_duplicates:
        return []
    return [float(value) for value in figures]


def _flags(result: Disclosure, check: str, target: str | None) -> Sequence[float]:
    if target not in result.targets:
        return []
    flags = getattr(result, check)
    of_target = flags[flags["target"] == target]
    syntheses = dict.fromkeys(result.identity.index)
    return [float((of_target["synthesis"] == synthesis).sum()) for synthesis in syntheses]
