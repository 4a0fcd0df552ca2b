"""Checks of arguments, and exclusions: from named levels to codes for each target."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.tables.alignment import holds_values
from disclosure_pipeline.tables.levels import CodedColumn, level_label
from disclosure_pipeline.tables.messages import describe_argument, listed


def require_whole_number(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """Return the value as an int. InputError unless it is a whole number between the limits."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise InputError(f"{argument} must be a whole number {limits}, not {describe_argument(value)}.")
    return int(value)


def require_names(argument: str, names: Any) -> tuple[Any, ...]:
    """Return the column names as a tuple. InputError unless they are a list of distinct names."""
    if isinstance(names, str):
        raise InputError(f"{argument} must be a list of column names, not {names!r}: write [{names!r}].")
    if holds_values(names) or not isinstance(names, Iterable):
        raise InputError(f"{argument} must be a list of column names, not {describe_argument(names)}.")
    columns = tuple(names)
    for i, name in enumerate(columns):
        if not isinstance(name, Hashable):
            raise InputError(f"{argument} must hold column names, not {describe_argument(name)}.")
        if name in columns[:i]:
            raise InputError(f"{argument} names {name!r} more than once.")
    return columns


def choose_target(target: Any, targets: Sequence[Any]) -> Any:
    """Return the target to draw, by default the only one. InputError if there is none of that name."""
    if target is None and len(targets) == 1:
        return targets[0]
    if target not in targets:
        raise InputError(f"target must be one of {listed(targets)}, not {describe_argument(target)}.")
    return target


@dataclass(frozen=True)
class Pair:
    """A level of a key with a level of a target. A level is its value or its label; None is missing."""

    key: Any
    key_level: Any
    target: Any
    target_level: Any


@dataclass(frozen=True)
class Exclusions:
    """Cells set to zero after it was decided which are disclosive [R section 5].

    `target_levels`: target -> levels that are not disclosive (synthpop `not.targetlev`).
    `missing_targets`, `missing_keys`: True to exclude missing values of every target (key), or a list of
    columns. `count_over`: exclude cells of more records than this.
    """

    target_levels: Mapping[Any, Sequence[Any]] = field(default_factory=dict)
    missing_targets: bool | Sequence[Any] = False
    missing_keys: bool | Sequence[Any] = False
    pairs: Sequence[Pair] = ()
    count_over: int | None = None


def check_exclusions(exclusions: Exclusions, keys: Sequence[Any], targets: Sequence[Any]) -> None:
    """Raise InputError if an exclusion names a column that is not a key or target, or is malformed."""
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
        ("exclude.missing_targets", _list_columns(exclusions.missing_targets), targets, "target"),
        ("exclude.missing_keys", _list_columns(exclusions.missing_keys), keys, "key"),
        ("exclude.pairs", [pair.key for pair in exclusions.pairs], keys, "key"),
        ("exclude.pairs", [pair.target for pair in exclusions.pairs], targets, "target"),
    ]
    for argument, columns, allowed, role in named:
        for column in columns:
            if column not in allowed:
                raise InputError(
                    f"{argument} names {column!r}, which is not a {role}: the {role}s are {list(allowed)!r}."
                )
    for target, levels in exclusions.target_levels.items():
        if isinstance(levels, str) or not isinstance(levels, Sequence):
            raise InputError(f"exclude.target_levels of {target!r} must be a list of levels.")
    limit = exclusions.count_over
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 0):
        raise InputError(f"exclude.count_over must be a whole number of at least 0, not {limit!r}.")


def check_sensitive(
    sensitive: Mapping[Any, Sequence[Any]], targets: Sequence[Any], exclusions: Exclusions
) -> None:
    """Raise InputError unless `sensitive` names levels of targets that are not excluded, each once."""
    if not isinstance(sensitive, Mapping):
        raise InputError(
            'sensitive_levels must be a mapping from target to a list of levels: {"hiv": ["positive"]}.'
        )
    for target, levels in sensitive.items():
        if target not in targets:
            raise InputError(
                f"sensitive_levels names {target!r}, which is not a target: they are {list(targets)!r}."
            )
        if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
            raise InputError(f"sensitive_levels of {target!r} must be a list of at least one level.")
        labels = [level_label(level) for level in levels]
        excluded = {level_label(level) for level in exclusions.target_levels.get(target, ())}
        for position, label in enumerate(labels):
            if label in labels[:position]:
                raise InputError(f"sensitive_levels of {target!r} names the level {label!r} more than once.")
            if label in excluded:
                raise InputError(
                    f"sensitive_levels and exclude.target_levels both name {label!r} of {target!r}: what is "
                    "not disclosive is not sensitive."
                )


def _list_columns(setting: bool | Sequence[Any]) -> Sequence[Any]:
    if isinstance(setting, bool):
        return ()
    if isinstance(setting, str) or not isinstance(setting, Iterable):
        raise InputError(
            "exclude.missing_targets and exclude.missing_keys must be True, False or a list of columns, "
            f"not {setting!r}."
        )
    return setting


def code_exclusions(
    exclusions: Exclusions, target: CodedColumn, keys: Sequence[CodedColumn]
) -> CodedExclusions:
    """Return the exclusions of one target as codes. InputError if a level occurs in no table."""
    position = {key.name: k for k, key in enumerate(keys)}
    pairs = [pair for pair in exclusions.pairs if pair.target == target.name]
    return CodedExclusions(
        target_levels=[
            find_code(target, level, "exclude.target_levels")
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
                find_code(keys[position[pair.key]], pair.key_level, "exclude.pairs"),
                find_code(target, pair.target_level, "exclude.pairs"),
            )
            for pair in pairs
        ],
        count_over=exclusions.count_over,
    )


def drop_unknown_levels(exclusions: Exclusions, columns: Mapping[Any, CodedColumn]) -> Exclusions:
    """Return the exclusions without the levels that no record of some drawn columns has."""

    def occurs(column: Any, level: Any) -> bool:
        return column in columns and columns[column].find(level) is not None

    return replace(
        exclusions,
        target_levels={
            target: [level for level in levels if occurs(target, level)]
            for target, levels in exclusions.target_levels.items()
        },
        pairs=[
            pair
            for pair in exclusions.pairs
            if occurs(pair.key, pair.key_level) and occurs(pair.target, pair.target_level)
        ],
    )


def _excludes_missing(setting: bool | Sequence[Any], column: Any) -> bool:
    return setting if isinstance(setting, bool) else column in setting


def find_code(column: CodedColumn, level: Any, argument: str) -> int:
    """Return the code of a level. InputError if it occurs in no table."""
    code = column.find(level)
    if code is None:
        raise InputError(
            f"{argument} names the level {level!r} of column {column.name!r}, which occurs in no table. "
            "Levels of a grouped column are its intervals and special values."
        )
    return code
