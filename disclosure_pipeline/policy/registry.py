"""The figures that a policy can bound, each under one name, taken from the result's frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.comparability import WHOLE_KEY
from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evaluation.protection import FRAME_FIGURES
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.attribute import Attribute
from disclosure_pipeline.measures.baselines import Baselines
from disclosure_pipeline.measures.cap import CAP
from disclosure_pipeline.measures.chance import Chance
from disclosure_pipeline.measures.copies import UniqueHits
from disclosure_pipeline.measures.identity import Identity
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.measures.protection import METHODS
from disclosure_pipeline.measures.words import Words


@dataclass(frozen=True)
class Measure:
    """Where a measure stands: its family, and the frame and the column of the result, whose words it has.

    `per_target`: it has a value for each target. `task`: classification or regression, if only targets that
    are predicted so have it. `largest`: the largest value that it can have; None where there is none.
    """

    family: str
    frame: str
    column: str
    per_target: bool = True
    task: str | None = None
    largest: float | None = 100

    @property
    def words(self) -> Words:
        """Full name, plain sentence, unit, direction and source, which stand beside the formula."""
        # What is bounded beyond chance has the words of its figure, where it has none of its own.
        figures = (self.column.removesuffix(suffix) for suffix in ("", "_chance", "_beyond_chance"))
        words = next(filter(None, (find_words(name, self.frame) for name in figures)), None)
        assert words is not None, f"no words for {self.frame}.{self.column}"
        return words

    @property
    def high_is_safe(self) -> bool:
        """True if a bound on it is `at_least`, as on a measure of protection."""
        return self.words.high_is == "safe"


def _names(measures: type) -> list[str]:
    return [field.name for field in fields(measures)]


def _prediction_measures() -> Iterable[tuple[str, Measure]]:
    """Return the measures of prediction risk; those that only one task has name it."""
    classification, regression = _names(Classification), _names(Regression)
    for name in dict.fromkeys([*classification, *regression]):
        in_both = name in classification and name in regression
        task = None if in_both else "classification" if name in classification else "regression"
        largest = None if name.startswith("mse_") else 100
        yield name, Measure("prediction", "prediction", name, True, task, largest)


_COUNTS = {"max_denom", "mean_denom", "n_predicted_correctly"}  # of records


def _measures_of_target(family: str, frame: str, measures: type) -> dict[str, Measure]:
    return {
        name: Measure(family, frame, name, largest=None if name in _COUNTS else 100)
        for name in _names(measures)
    }


def _baselines() -> Iterable[tuple[str, Measure]]:
    """Return what the figures would be anyway, and what they are beyond that; one of these is a guard."""
    for name in _names(Baselines):
        of_cap = name.startswith(("DCAP", "guessed"))
        family, frame = ("attribution", "cap") if of_cap else ("attribute", "attribute")
        if name != "guessed_beyond":
            yield name, Measure(family, frame, name)


MEASURES: dict[str, Measure] = {
    **{
        name: Measure("identity", "identity", name, per_target=False)
        for name in (*_names(Identity), *_names(UniqueHits))
    },
    **_measures_of_target("attribute", "attribute", Attribute),
    **dict(_baselines()),
    **_measures_of_target("chance", "attribute", Chance),
    **_measures_of_target("attribution", "cap", CAP),
    **{
        f"{name}_after_exclusions": Measure("identity", "identity_after_exclusions", name)
        for name in _names(Identity)
    },
    **{
        f"{method}__{name}": Measure("protection", "protection", f"{method}__{name}", largest=1)
        for method in METHODS
        for name in FRAME_FIGURES
    },
    **dict(_prediction_measures()),
    **{
        name: Measure("resemblance", "guards", name, per_target=False, largest=1)
        for name in ("TVD_column_beyond", "TVD_pair_beyond")
    },
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

# Figures that say whether the others mean anything. Where one is not within its bound, nothing is determined.
DOUBTS: dict[str, Measure] = {
    "excluded": Measure("doubts", "doubts", "excluded"),
    "relabelled": Measure("guards", "guards", "relabelled_beyond_chance", per_target=False, largest=1),
    "missing_beyond": Measure("guards", "guards", "missing_beyond_chance", per_target=False),
    "equal_content": Measure("guards", "guards", "equal_content", per_target=False, largest=1),
}

# What every gate bounds: copies over all columns that the tables share, and what the keys let guess. Of each
# the figure where it goes beyond chance (`measures.guard_chance`).
GUARDS: dict[str, Measure] = {
    **{
        name: Measure("guards", "guards", f"{name}_chance", per_target=False)
        for name in ("people_copied_beyond", "unique_copies_beyond", "partial_copies_beyond")
    },
    "nearer": Measure("guards", "guards", "nearer_beyond_chance", per_target=False),
    "guessed_beyond": Measure("guards", "guessed", "guessed_beyond_chance"),
}

# The guards that every further confidential table has, too: in the frame `confidential`, index (confidential,
# synthesis), by the same columns.
OF_CONFIDENTIAL = ("people_copied_beyond", "unique_copies_beyond", "partial_copies_beyond", "nearer")
CONFIDENTIAL = "confidential"

# What the bound `beyond` of a measure is about: the smaller of two figures, so that it is broken where both
# exceed it. Neither what other people's records show nor what chance gives is a disclosure by SD.
BEYOND_BOTH = {"DiSCO": "DiSCO_beyond_both"}
SMALLER_OF: dict[str, tuple[str, ...]] = {"DiSCO_beyond_both": ("DiSCO_beyond", "DiSCO_excess")}

# The bounds that keep the duty to bound identity disclosure.
OF_IDENTITY = ("repU", "unique_hits_beyond")

# What a relative bound compares a measure with: the same risk without any synthesis.
ORIGINALS = {"repU": "UiO", "DiSCO": "Dorig"}

_STACKED_FAMILIES = {"identity", "attribute", "chance", "attribution", "resemblance", "doubts", "guards"}


def find_measure(name: str) -> Measure | None:
    """Return a measure that a policy bounds, a guard or a doubt; None where it is none of these."""
    return MEASURES.get(name) or GUARDS.get(name) or DOUBTS.get(name)


def is_of_stack(measure: str) -> bool:
    """Return whether a measure has to keep its bound for all files of a candidate as one table, too."""
    if measure in SMALLER_OF:
        return all(is_of_stack(part) for part in SMALLER_OF[measure])
    registered = find_measure(measure)
    return registered is not None and registered.family in _STACKED_FAMILIES


_FLAGS = {"one_way_flags": "one_way", "two_way_flags": "two_way"}


def values(result: Disclosure, measure: str, column: str | None) -> Sequence[float]:
    """Return the figure for each synthesis, in their order; empty where the result does not have it.

    What `result.stacked` says of all syntheses as one table is asked of that.

    For key_overlap and target_overlap, the smaller of the two shares of that column; for those of SMALLER_OF
    the smaller of two figures.
    """
    if measure in _FLAGS:
        return _flags(result, _FLAGS[measure], column)
    if measure == "key_overlap":
        return smallest_overlap(result.key_overlap, column)
    if measure == "target_overlap":
        return _smallest(result.target_overlap, "target", column)
    if measure in SMALLER_OF:
        return _smallest(result.attribute, "target", column, SMALLER_OF[measure])
    registered = find_measure(measure) or CONTROLS[measure]
    against_confidential = measure in OF_CONFIDENTIAL and column is not None
    frame = result.frame(CONFIDENTIAL if against_confidential else registered.frame)
    if registered.column not in frame.columns:
        return []
    figures = frame[registered.column]  # the one column first: frames are slow to filter
    if column is not None:
        level = CONFIDENTIAL if against_confidential else "target"
        figures = figures[frame.index.get_level_values(level) == column]
    return _figure_per_synthesis(figures)


def smallest_overlap(key_overlap: pd.DataFrame, key: str | None) -> Sequence[float]:
    """Return the smaller of GT_in_SD and SD_in_GT of a key (None: of the whole key) for each synthesis.

    NaN where either is.
    """
    return _smallest(key_overlap, "key", WHOLE_KEY if key is None else key)


def _smallest(
    frame: pd.DataFrame, level: str, column: str | None, names: Sequence[str] = ("GT_in_SD", "SD_in_GT")
) -> Sequence[float]:
    """Return the smallest of these figures of a column for each synthesis; NaN where one is missing."""
    if level not in frame.index.names:
        return []
    rows = frame[frame.index.get_level_values(level) == column]
    shares = rows.reindex(columns=list(names)).to_numpy(dtype=float)
    smallest = np.where(np.isfinite(shares).all(axis=1), shares.min(axis=1), np.nan)
    return _figure_per_synthesis(pd.Series(smallest, index=rows.index))


def _figure_per_synthesis(figures: pd.Series[Any]) -> Sequence[float]:
    """Return the figures; empty where a synthesis has more than one, for then none is its figure."""
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
