"""`disclosure_of_key_sets()`: which columns give most away together, of many sets of them at once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline import comparison
from disclosure_pipeline.engines import one_level
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.identity import identity
from disclosure_pipeline.progress import Progress, shown, silent
from disclosure_pipeline.tables.alignment import COLUMNS, Grouping, Tables, check_tables, told
from disclosure_pipeline.tables.grouping import Edges
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True, repr=False, eq=False)
class KeySets:
    """What each of many key sets discloses, in the order in which they were given; percent of GT records.

    Every frame has a row per key set and synthesis: index (keys, synthesis), where `keys` are the names of
    the columns, as in "age, sex"; the names themselves are in `key_sets`.

    `identity`: UiO, UiS (percent of SD records), UiOiS, repU. `Dorig`, `DiSCO`: a column per target, NaN
    where it is one of the keys. `key_overlap`: GT_in_SD, SD_in_GT: percent of GT (SD) records whose
    combination of all keys occurs in the other table. `warnings`: what makes the figures doubtful, such as
    tables that are not coded alike.
    """

    key_sets: tuple[tuple[Any, ...], ...]
    targets: tuple[Any, ...]
    N_d: int
    N_s: tuple[int, ...]
    identity: pd.DataFrame
    Dorig: pd.DataFrame
    DiSCO: pd.DataFrame
    key_overlap: pd.DataFrame
    warnings: tuple[str, ...]

    def summary(self) -> pd.DataFrame:
        """One row per key set, the largest DiSCO first.

        UiO; the largest repU over the syntheses; the largest DiSCO over targets and syntheses, the target
        that it is of, and the Dorig of that target.
        """
        m = len(self.N_s)
        DiSCO = self.DiSCO.to_numpy().reshape(len(self.key_sets), m, -1).max(axis=1)
        Dorig = self.Dorig.to_numpy()[::m]
        worst = np.nanargmax(DiSCO, axis=1)
        at = (np.arange(len(worst)), worst)
        summary = pd.DataFrame(
            {
                "UiO": self.identity["UiO"].to_numpy()[::m],
                "repU": self.identity["repU"].to_numpy().reshape(-1, m).max(axis=1),
                "target": [self.targets[i] for i in worst],
                "Dorig": Dorig[at],
                "DiSCO": DiSCO[at],
            },
            index=self.identity.index.get_level_values("keys")[::m],
        )
        largest_first: pd.DataFrame = summary.sort_values(["DiSCO", "repU"], ascending=False, kind="stable")
        return largest_first

    def __str__(self) -> str:
        return self.summary().to_string(float_format="{:.2f}".format)

    __repr__ = __str__


def disclosure_of_key_sets(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    key_sets: Iterable[Iterable[Any]],
    targets: Any = None,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    progress: bool = False,
) -> KeySets:
    """The identity measures, Dorig and DiSCO of `disclosure()` for many sets of keys.

    The figures are those of `disclosure()` set by set, without exclusions. What the sets share is done once.

    Args:
        ground_truth: The confidential records, one a row.
        synthetic: The synthetic table, or a sequence of them.
        key_sets: Sets of columns that an intruder may know together, such as
            `itertools.combinations(columns, 3)`.
        targets: The column or columns that an intruder wants to learn; each is measured for the sets that
            it is not in. None for every shared column that is not in all sets.
        groups: As in `disclosure()`.
        special_values: As there.
        edges: As there.
        progress: As there.

    Raises:
        InputError: The tables cannot be compared or the arguments contradict them; nothing was computed.

    Source: Raab, Nowok & Dibben 2024 (arXiv:2406.16826), section 3 and appendix 1.
    """
    sets = _check_sets(key_sets)
    names = tuple(dict.fromkeys(name for keys in sets for name in keys))
    grouping = Grouping(groups or {}, special_values or {}, edges)
    if targets is None:
        shared = _shared(check_tables(ground_truth, synthetic, names[:1], (), Grouping({}, {}, "pooled")))
        wanted = tuple(name for name in shared if not all(name in keys for keys in sets))
    else:
        wanted = _check_targets(targets, sets)
    others = [name for name in wanted if name not in names]
    tables = check_tables(ground_truth, synthetic, names, others, grouping)
    for i, keys in enumerate(sets, start=1):
        if all(target in keys for target in wanted):
            raise InputError(f"Key set {i}, {_text(keys)}, holds every target: there is none to measure.")
    with shown() if progress else nullcontext(silent) as show:
        return _measured(tables, sets, wanted, show)


def _measured(
    tables: Tables, sets: Sequence[tuple[Any, ...]], targets: tuple[Any, ...], progress: Progress
) -> KeySets:
    names = (*tables.keys, *tables.targets)
    columns = dict(zip(names, tables.code(names), strict=True))
    asked = [[i for i, target in enumerate(targets) if target not in keys] for keys in sets]
    found = one_level.count(
        [[columns[name] for name in keys] for keys in sets],
        [columns[target] for target in targets],
        asked,
        progress,
    )
    N_d, *N_s = (len(frame) for frame in tables.frames)
    Dorig = np.full((len(sets), len(N_s), len(targets)), math.nan)
    DiSCO = Dorig.copy()
    for i, of_set in enumerate(found):
        for t in asked[i]:
            Dorig[i, :, t] = percent(of_set.Dorig[t], N_d)
            DiSCO[i, :, t] = [percent(number, N_d) for number in of_set.DiSCO[:, t]]
    identities = [identity(k.uniques, N_d, n) for each in found for k, n in zip(each.keys, N_s, strict=True)]
    overlaps = [
        shares
        for each in found
        for shares in comparison.whole_key_overlap([k.shared for k in each.keys], N_d, N_s).values()
    ]
    at = [(_text(keys), synthesis) for keys in sets for synthesis in range(1, len(N_s) + 1)]
    index = pd.MultiIndex.from_tuples(at, names=["keys", "synthesis"])
    per_target = pd.Index(targets, name="target", tupleize_cols=False)
    return KeySets(
        key_sets=tuple(sets),
        targets=targets,
        N_d=N_d,
        N_s=tuple(N_s),
        identity=pd.DataFrame(identities, index=index),
        Dorig=pd.DataFrame(Dorig.reshape(len(at), -1), index=index, columns=per_target),
        DiSCO=pd.DataFrame(DiSCO.reshape(len(at), -1), index=index, columns=per_target),
        key_overlap=pd.DataFrame(overlaps, index=index),
        warnings=tuple(_warnings(tables, columns.values(), overlaps)),
    )


def _warnings(
    tables: Tables, columns: Iterable[CodedColumn], overlaps: Sequence[Mapping[str, float]]
) -> list[str]:
    found = [doubt for column in columns for doubt in comparison.compare(column, tables.names)[1]]
    found += comparison.strange_columns(tables)
    low = sum(not min(shares.values()) >= comparison.LOW_WHOLE_KEY for shares in overlaps)
    if low:
        found.append(
            f"{low} of {len(overlaps)} whole keys are hardly shared: see key_overlap. Their risks read low."
        )
    return found


def _check_sets(key_sets: Any) -> list[tuple[Any, ...]]:
    """The key sets as tuples of names; whether there are such columns is another question."""
    if isinstance(key_sets, (str, *COLUMNS)) or not isinstance(key_sets, Iterable):
        raise InputError(f"key_sets must be a list of lists of column names, not {told(key_sets)}.")
    sets: list[tuple[Any, ...]] = []
    for i, keys in enumerate(key_sets, start=1):
        if isinstance(keys, str):
            raise InputError(f"Key set {i} must be a list of column names, not {keys!r}: write [{keys!r}].")
        if isinstance(keys, COLUMNS) or not isinstance(keys, Iterable):
            raise InputError(f"Key set {i} must be a list of column names, not {told(keys)}.")
        sets.append(tuple(keys))
    if not sets:
        raise InputError("key_sets is empty: give at least one set of columns that an intruder may know.")
    seen: dict[frozenset[Any], int] = {}
    for i, keys in enumerate(sets, start=1):
        if not keys:
            raise InputError(f"Key set {i} is empty: name at least one column that an intruder may know.")
        for name in keys:
            if not isinstance(name, Hashable):
                raise InputError(f"Key set {i} must hold column names, not {told(name)}.")
        twice = [name for j, name in enumerate(keys) if name in keys[:j]]
        if twice:
            raise InputError(f"Key set {i} names {_text(map(repr, twice))} more than once.")
        first = seen.setdefault(frozenset(keys), i)
        if first != i:
            raise InputError(f"Key sets {first} and {i} are the same, {_text(keys)}: give each set once.")
    return sets


def _check_targets(targets: Any, sets: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The names of the targets; whether there are such columns is another question."""
    if isinstance(targets, COLUMNS):
        raise InputError(f"targets must be column names, not {told(targets)}.")
    names = (targets,) if isinstance(targets, str) or not isinstance(targets, Iterable) else tuple(targets)
    if not names:
        raise InputError("targets is empty: name at least one column, or pass None for all that are shared.")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"targets names {name!r} more than once.")
        if all(name in keys for keys in sets):
            raise InputError(f"Target {name!r} is in every key set: whoever knows it learns nothing.")
    return names


def _shared(tables: Tables) -> list[Any]:
    """The columns that all tables have."""
    first, *others = tables.frames
    return [name for name in first.columns if all(name in frame.columns for frame in others)]


def _text(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
