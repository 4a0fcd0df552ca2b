"""Checks of plain arguments that several functions of the library share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from numbers import Integral
from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.frames import holds_values
from disclosure_pipeline.tables.messages import describe_argument, listed


def require_whole_number(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """Return the value as a Python integer. InputError unless it is a whole number in its range."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        end = "on" if most is None else f"to {most:,}"
        raise InputError(
            f"{argument} must be a whole number from {least} {end}, not {describe_argument(value)}."
        )
    return int(value)


def require_names(argument: str, names: Any) -> tuple[Any, ...]:
    """Return the names of columns. InputError unless they are a list of them that names none twice."""
    if isinstance(names, str):
        raise InputError(f"{argument} must be a list of column names, not {names!r}: write [{names!r}].")
    if holds_values(names) or not isinstance(names, Iterable):
        raise InputError(f"{argument} must be a list of column names, not {describe_argument(names)}.")
    found = tuple(names)
    for i, name in enumerate(found):
        if not isinstance(name, Hashable):
            raise InputError(f"{argument} must hold column names, not {describe_argument(name)}.")
        if name in found[:i]:
            raise InputError(f"{argument} names {name!r} more than once.")
    return found


def choose_target(target: Any, targets: Sequence[Any]) -> Any:
    """Return the target to draw: the only one where none is named. InputError where there is no such one."""
    if target is None and len(targets) == 1:
        return targets[0]
    if target not in targets:
        raise InputError(f"target must be one of {listed(targets)}, not {describe_argument(target)}.")
    return target
