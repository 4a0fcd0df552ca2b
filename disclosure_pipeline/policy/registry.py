"""The figures that a policy can bound, each under one name, taken from the result's frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.catalogue import CATALOGUE
from disclosure_pipeline.evaluation.catalogue_entry import STRICTLY, Measure, Role
from disclosure_pipeline.evaluation.comparability import WHOLE_KEY
from disclosure_pipeline.evaluation.result import Disclosure


def _list_judged(*roles: Role) -> dict[str, Measure]:
    return {entry.name: entry for entry in CATALOGUE if entry.role in roles}


# All that a clause can be about.
JUDGED = {entry.name: entry for entry in CATALOGUE if entry.role is not None}
MEASURES = _list_judged("bound")
# The same bounds without leave for chance.
STRICT = _list_judged("strict")
# The figures of the controls, and the number of warnings. Their bounds are fixed: a policy cannot set them.
CONTROLS = _list_judged("control")
# Figures that say whether the others mean anything. Where one is not within its bound, nothing is determined.
DOUBTS = _list_judged("doubt")
# What every gate bounds: of each the figure where it goes beyond chance (`measures.guard_chance`).
GUARDS = _list_judged("guard")

# The guards that every further confidential table has, too: in the frame `confidential`, index (confidential,
# synthesis), by the same columns.
OF_CONFIDENTIAL = tuple(entry.name for entry in CATALOGUE if entry.of_confidential)
CONFIDENTIAL = "confidential"

# What the bound `beyond` of a measure is about: the smaller of two figures, so that it is broken where both
# exceed it. Neither what other people's records show nor what chance gives is a disclosure by SD.
BEYOND_BOTH = {"DiSCO": "DiSCO_beyond_both"}
WITH_CHANCE = frozenset(name.removesuffix(STRICTLY) for name in STRICT)
SMALLER_OF = {entry.name: entry.smaller_of for entry in CATALOGUE if entry.smaller_of}

# The bounds that keep the duty to bound identity disclosure.
OF_IDENTITY = ("repU", "unique_hits_beyond")

# What a relative bound compares a measure with: the same risk without any synthesis.
ORIGINALS = {entry.name: entry.original for entry in CATALOGUE if entry.original is not None}


def find_measure(name: str) -> Measure | None:
    """Return a measure that a policy bounds, a guard or a doubt; None where it is none of these."""
    return MEASURES.get(name) or STRICT.get(name) or GUARDS.get(name) or DOUBTS.get(name)


def values(result: Disclosure, measure: str, column: str | None) -> Sequence[float]:
    """Return the figure for each synthesis, in their order; empty where the result does not have it.

    What `result.stacked` says of all syntheses as one table is asked of that.

    For key_overlap and target_overlap, the smaller of the two shares of that column; for those of SMALLER_OF
    the smaller of two figures.
    """
    entry = JUDGED[measure]
    if entry.role == "check":
        return _flags(result, entry.frame, column)
    if measure == "key_overlap":
        return smallest_overlap(result.key_overlap, column)
    if entry.role == "overlap":
        return _smallest(result.frame(entry.frame), "target", column)
    if entry.smaller_of:
        columns = [JUDGED[name].column for name in entry.smaller_of]
        return _smallest(result.frame(entry.frame), "target", column, columns)
    against_confidential = measure in OF_CONFIDENTIAL and column is not None
    frame = result.frame(CONFIDENTIAL if against_confidential else entry.frame)
    if entry.column not in frame.columns:
        return []
    figures = frame[entry.column]  # the one column first: frames are slow to filter
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
