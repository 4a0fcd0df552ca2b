"""What `disclosure_of_key_sets()` refuses in its lists of names before any work starts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.frames import holds_values
from disclosure_pipeline.tables.messages import describe_argument

KeySet = tuple[Any, ...]


def check_key_sets(key_sets: Any) -> list[KeySet]:
    """The key sets as tuples of names; whether there are such columns is another question."""
    if isinstance(key_sets, str) or holds_values(key_sets) or not isinstance(key_sets, Iterable):
        raise InputError(
            f"key_sets must be a list of lists of column names, not {describe_argument(key_sets)}."
        )
    sets: list[KeySet] = []
    for i, keys in enumerate(key_sets, start=1):
        if isinstance(keys, str):
            raise InputError(f"Key set {i} must be a list of column names, not {keys!r}: write [{keys!r}].")
        if holds_values(keys) or not isinstance(keys, Iterable):
            raise InputError(f"Key set {i} must be a list of column names, not {describe_argument(keys)}.")
        sets.append(tuple(keys))
    if not sets:
        raise InputError("key_sets is empty: give at least one set of columns that an intruder may know.")
    seen: dict[frozenset[Any], int] = {}
    for i, keys in enumerate(sets, start=1):
        if not keys:
            raise InputError(f"Key set {i} is empty: name at least one column that an intruder may know.")
        for name in keys:
            if not isinstance(name, Hashable):
                raise InputError(f"Key set {i} must hold column names, not {describe_argument(name)}.")
        duplicates = [name for j, name in enumerate(keys) if name in keys[:j]]
        if duplicates:
            raise InputError(f"Key set {i} names {join_names(map(repr, duplicates))} more than once.")
        first = seen.setdefault(frozenset(keys), i)
        if first != i:
            raise InputError(
                f"Key sets {first} and {i} are the same, {join_names(keys)}: give each set once."
            )
    return sets


def check_targets(targets: Any, sets: Sequence[KeySet]) -> tuple[Any, ...]:
    """The names of the targets; whether there are such columns is another question."""
    if holds_values(targets):
        raise InputError(f"targets must be column names, not {describe_argument(targets)}.")
    names = (targets,) if isinstance(targets, str) or not isinstance(targets, Iterable) else tuple(targets)
    if not names:
        raise InputError("targets is empty: name at least one column, or pass None for all that are shared.")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"targets names {name!r} more than once.")
        if all(name in keys for keys in sets):
            raise InputError(f"Target {name!r} is in every key set: whoever knows it learns nothing.")
    return names


def check_targets_left(sets: Sequence[KeySet], targets: Sequence[Any]) -> None:
    """InputError where a key set holds every target."""
    for i, keys in enumerate(sets, start=1):
        if all(target in keys for target in targets):
            raise InputError(
                f"Key set {i}, {join_names(keys)}, holds every target: there is none to measure."
            )


def join_names(names: Iterable[Any]) -> str:
    """The names of a key set as text, such as "age, sex"."""
    return ", ".join(map(str, names))
