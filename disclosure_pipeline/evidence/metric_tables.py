"""The figures of a dossier as the tables that expectations are held against: no record of GT or SD."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from disclosure_pipeline.policy.registry import (
    CONFIDENTIAL,
    CONTROLS,
    DOUBTS,
    GUARDS,
    MEASURES,
    OF_CONFIDENTIAL,
    SMALLER_OF,
    Measure,
)

Row = Mapping[str, Any]

OVERLAPS = ("key_overlap", "target_overlap")
WARNINGS = "warnings"
_CHECKS = ("one_way", "two_way")
_LABELS = ("key", "target", "table", "synthesis")

FILE, ALL_FILES = "file", "all files together"


def build_metric_tables(figures: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """The figures of a dossier as metric tables: numbers, and the names of columns.

    `identity` has a row per synthesis, with the number of warnings; `attribute` one per target and
    synthesis, with all measures of a target and the number of flags; `overlap` one per key, or target, and
    synthesis; `controls` one per target and synthesis, and those of the whole table without a target. A
    missing figure is NaN.

    Of several syntheses `identity` and `attribute` have a further row: of all of them as one table, which is
    numbered as if it came after the last. Their column `table` tells it from the files.
    """
    return {
        "identity": _join_rows(["table", "synthesis"], *_with_stack(figures, _select_identity)),
        "attribute": _join_rows(["target", "table", "synthesis"], *_with_stack(figures, _select_attribute)),
        "overlap": _join_rows(
            ["key", "target", "synthesis"], *(_select_shares(figures, frame) for frame in OVERLAPS)
        ),
        "controls": _join_rows(
            ["target", "synthesis"],
            _select_measures(figures, "control_identity", CONTROLS),
            _select_measures(figures, "control_attribute", CONTROLS),
        ),
    }


def _with_stack(
    figures: Mapping[str, Any], select: Callable[[Mapping[str, Any]], Iterable[Iterable[Row]]]
) -> Iterable[Iterable[Row]]:
    """The rows of the syntheses, then of all of them as one table where that was measured."""
    for part in select(figures):
        yield ({**row, "table": FILE} for row in part)
    stacked = figures.get("stacked")
    if stacked is not None:
        number = len(figures["N_s"]) + 1
        for part in select(stacked):
            yield ({**row, "table": ALL_FILES, "synthesis": number} for row in part)


def _select_identity(figures: Mapping[str, Any]) -> Iterable[Iterable[Row]]:
    for measures in (MEASURES, GUARDS, DOUBTS):
        for frame in dict.fromkeys(measure.frame for measure in measures.values() if not measure.per_target):
            yield _select_measures(figures, frame, measures)
    yield _select_measures(figures, WARNINGS, {WARNINGS: CONTROLS[WARNINGS]})


def _select_attribute(figures: Mapping[str, Any]) -> Iterable[Iterable[Row]]:
    for measures in (MEASURES, GUARDS, DOUBTS):
        for frame in dict.fromkeys(measure.frame for measure in measures.values() if measure.per_target):
            yield _select_measures(figures, frame, measures)
    yield _select_smaller(figures)
    yield _select_confidential(figures)
    for check in _CHECKS:
        yield _count_flags(figures, check)


def _join_rows(labels: Sequence[str], *parts: Iterable[Row]) -> pd.DataFrame:
    """The rows of several parts side by side where their labels agree; a doubled row stays doubled."""
    joined_rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        occurrences: Counter[tuple[Any, ...]] = Counter()
        for row in part:
            label = tuple(row.get(name) for name in labels)
            occurrences[label] += 1
            joined_row = joined_rows.setdefault(
                (*label, occurrences[label]), dict(zip(labels, label, strict=True))
            )
            joined_row.update(
                {name: math.nan if row[name] is None else row[name] for name in row if name not in _LABELS}
            )
    return pd.DataFrame(list(joined_rows.values()))


def _select_measures(
    figures: Mapping[str, Any], frame: str, measures: Mapping[str, Measure]
) -> Iterable[Row]:
    """The measures that stand in one of the frames, by their own names."""
    columns = {name: measure.column for name, measure in measures.items() if measure.frame == frame}
    for row in figures.get(frame, []):
        measured = {name: row[column] for name, column in columns.items() if column in row}
        yield {name: row.get(name) for name in _LABELS} | measured


def _select_confidential(figures: Mapping[str, Any]) -> Iterable[Row]:
    """Copies of further confidential tables; the name of the table stands for a target, which none is."""
    columns = {name: GUARDS[name].column for name in OF_CONFIDENTIAL}
    for row in figures.get(CONFIDENTIAL, []):
        measured = {name: row[column] for name, column in columns.items() if column in row}
        yield {"target": row.get(CONFIDENTIAL), "synthesis": row.get("synthesis")} | measured


def _select_smaller(figures: Mapping[str, Any]) -> Iterable[Row]:
    """The smaller of two figures under the name that a policy bounds; none where one of them is missing."""
    for row in figures.get("attribute", []):
        smaller = {name: _smallest([row.get(part) for part in parts]) for name, parts in SMALLER_OF.items()}
        yield {name: row.get(name) for name in _LABELS} | smaller


def _smallest(figures: Sequence[Any]) -> float | None:
    """The smallest; None unless all are numbers."""
    if any(isinstance(figure, bool) or not isinstance(figure, (int, float)) for figure in figures):
        return None
    return min(figures)


def _count_flags(figures: Mapping[str, Any], check: str) -> Iterable[Row]:
    """How many flags a check raises; the levels that it names are left out."""
    if check not in figures:
        return
    flag_counts = Counter((flag.get("target"), flag.get("synthesis")) for flag in figures[check])
    for target in figures.get("targets", []):
        for synthesis in dict.fromkeys(row.get("synthesis") for row in figures.get("identity", [])):
            yield {"target": target, "synthesis": synthesis, f"{check}_flags": flag_counts[target, synthesis]}


def _select_shares(figures: Mapping[str, Any], frame: str) -> Iterable[Row]:
    """Both shares of a key or target, and the smaller one under the name that a policy bounds."""
    for row in figures.get(frame, []):
        shares = {name: row.get(name) for name in ("GT_in_SD", "SD_in_GT")}
        labels = {name: row.get(name) for name in _LABELS}
        yield {**labels, **shares, frame: _smallest(list(shares.values()))}
