"""The arguments of `exposure()`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.alignment import Tables, check_names, check_tables
from disclosure_pipeline.tables.frames import as_frames
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.messages import describe_argument


def check_number(argument: str, number: Any, most: int | None = None) -> None:
    """InputError unless it is a whole number from 1 on, or to `most`."""
    is_whole = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_whole or number < 1 or (most is not None and number > most):
        up_to = "on" if most is None else f"to {most}"
        raise InputError(
            f"{argument} must be a whole number from 1 {up_to}, not {describe_argument(number)}."
        )


def check_arguments(
    ground_truth: Any, synthetic: Any, columns: Any, targets: Any, grouping: Any
) -> tuple[Tables, tuple[Any, ...], tuple[Any, ...]]:
    """The tables, and the names of the columns and of the targets, some of which may be both."""
    if targets is None:
        raise InputError("targets is None: name the column or columns that an intruder wants to learn.")
    frames = as_frames(ground_truth, synthetic)
    known = [list(frame.columns) for frame in frames]
    several = isinstance(columns, Sequence) and not isinstance(columns, str)
    others = [name for name in columns if not _is_among(name, targets)] if several else columns
    if several and not others:
        raise InputError("columns holds nothing but targets: name columns that an intruder may know.")
    _, target_names = check_names(known, others, targets, grouping_of())
    names, _ = check_names(known, columns, (), grouping_of())
    no_keys = [name for name in target_names if name not in names]
    if not target_names:
        raise InputError("targets is empty: name at least one column.")
    return check_tables(frames[0], frames[1:], names, no_keys, grouping), names, target_names


def _is_among(name: Any, targets: Any) -> bool:
    return bool(name in targets) if isinstance(targets, (list, tuple)) else bool(name == targets)
