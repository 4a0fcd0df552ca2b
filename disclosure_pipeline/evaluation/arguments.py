"""Checks of arguments, and the exclusions: levels to leave out by name, as codes for each target."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.tables.alignment import holds_values
from disclosure_pipeline.tables.levels import CodedColumn
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


@dataclass(frozen=True)
class Pair:
    """A level of a key with a level of a target; a level is its value or its label, None is missing."""

    key: Any
    key_level: Any
    target: Any
    target_level: Any


@dataclass(frozen=True)
class Exclusions:
    """Cells to set to zero once it is known which are disclosive. [R section 5].

    `target_levels`: target -> levels that are not disclosive (synthpop `not.targetlev`).
    `missing_targets`, `missing_keys`: True to exclude missing values of every target (key), or a list of
    columns. `pairs`: see `Pair`. `count_over`: cells of more than so many records.
    """

    target_levels: Mapping[Any, Sequence[Any]] = field(default_factory=dict)
    missing_targets: bool | Sequence[Any] = False
    missing_keys: bool | Sequence[Any] = False
    pairs: Sequence[Pair] = ()
    count_over: int | None = None


def check_exclusions(exclusions: Exclusions, keys: Sequence[Any], targets: Sequence[Any]) -> None:
    """Raise InputError where an exclusion names no key or target, or a limit is no whole number from 0 on."""
    if not isinstance(exclusions, Exclusions):
        raise InputError(
            "exclude must be Exclusions, such as dp.Exclusions(count_over=10), "
            f"not {type(exclusions).__name__}."
        )
    if not isinstance(exclusions.target_levels, Mapping):
        raise InputError("exclude.target_levels must be a mapping from target to a list of levels.")
    if isinstance(exclusions.pairs, Pair) or not all(isinstance(pair, Pair) for pair in exclusions.pairs):
        raise InputError("exclude.pairs must be a list of Pair.")
    named = [
        ("exclude.target_levels", exclusions.target_levels, targets, "target"),
        ("exclude.missing_targets", _named_columns(exclusions.missing_targets), targets, "target"),
        ("exclude.missing_keys", _named_columns(exclusions.missing_keys), keys, "key"),
        ("exclude.pairs", [pair.key for pair in exclusions.pairs], keys, "key"),
        ("exclude.pairs", [pair.target for pair in exclusions.pairs], targets, "target"),
    ]
    for argument, columns, allowed, role in named:
        for column in columns:
            if column not in allowed:
                raise InputError(
                    f"{argument} names {column!r}, which is no {role}: the {role}s are {list(allowed)!r}."
                )
    for target, levels in exclusions.target_levels.items():
        if isinstance(levels, str) or not isinstance(levels, Sequence):
            raise InputError(f"exclude.target_levels of {target!r} must be a list of levels.")
    limit = exclusions.count_over
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 0):
        raise InputError(f"exclude.count_over must be a whole number from 0 on, not {limit!r}.")


def _named_columns(missing_of: bool | Sequence[Any]) -> Sequence[Any]:
    if isinstance(missing_of, bool):
        return ()
    if isinstance(missing_of, str) or not isinstance(missing_of, Iterable):
        raise InputError(
            f"Missing values are excluded for True, False or a list of columns, not for {missing_of!r}."
        )
    return missing_of


def code_exclusions(
    exclusions: Exclusions, target: CodedColumn, keys: Sequence[CodedColumn]
) -> CodedExclusions:
    """Return the exclusions that concern one target. InputError where a level occurs in no table."""
    position = {key.name: k for k, key in enumerate(keys)}
    pairs = [pair for pair in exclusions.pairs if pair.target == target.name]
    return CodedExclusions(
        target_levels=[
            _find_code(target, level, "exclude.target_levels")
            for level in exclusions.target_levels.get(target.name, ())
        ],
        missing_target=target.missing if _excludes_missing(exclusions.missing_targets, target.name) else None,
        missing_keys=[
            (k, key.missing)
            for k, key in enumerate(keys)
            if _excludes_missing(exclusions.missing_keys, key.name)
        ],
        pairs=[
            (
                position[pair.key],
                _find_code(keys[position[pair.key]], pair.key_level, "exclude.pairs"),
                _find_code(target, pair.target_level, "exclude.pairs"),
            )
            for pair in pairs
        ],
        count_over=exclusions.count_over,
    )


def _excludes_missing(missing_of: bool | Sequence[Any], column: Any) -> bool:
    return missing_of if isinstance(missing_of, bool) else column in missing_of


def _find_code(column: CodedColumn, level: Any, argument: str) -> int:
    code = column.find(level)
    if code is None:
        raise InputError(
            f"{argument} names the level {level!r} of column {column.name!r}, which occurs in no table. "
            "Levels of a grouped column are its intervals and special values."
        )
    return code
