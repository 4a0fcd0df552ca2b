"""`disclosure_of_key_sets()`: disclosure by each of many sets of keys."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import CountRequest, Target
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import read_frames
from disclosure_pipeline.errors import InputError, choose_form, write_count
from disclosure_pipeline.evaluation.arguments import require_names
from disclosure_pipeline.evaluation.frames import format_frame
from disclosure_pipeline.evaluation.resemblance import (
    find_doubts,
    identifier_warnings,
    is_shared,
    warn_of_doubts,
    whole_key_overlap,
)
from disclosure_pipeline.measures.catalogue import OF_KEYS
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.resemblance import LEAST_SHARED
from disclosure_pipeline.measures.totals import measure_figures
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress, show_progress
from disclosure_pipeline.tables.alignment import Tables, check_names, check_tables, holds_values
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import describe_argument, names_in_all
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

KeySet = tuple[Any, ...]


def _check_key_sets(key_sets: Any) -> list[KeySet]:
    if isinstance(key_sets, str) or holds_values(key_sets) or not isinstance(key_sets, Iterable):
        raise InputError(
            f"key_sets must be a list of lists of column names, not {describe_argument(key_sets)}."
        )
    sets = [require_names(f"Key set {i}", keys) for i, keys in enumerate(key_sets, start=1)]
    if not sets:
        raise InputError("key_sets is empty: give at least one set of columns an intruder may know.")
    seen: dict[frozenset[Any], int] = {}
    for i, keys in enumerate(sets, start=1):
        if not keys:
            raise InputError(f"Key set {i} is empty: name at least one column an intruder may know.")
        first = seen.setdefault(frozenset(keys), i)
        if first != i:
            raise InputError(
                f"Key sets {first} and {i} are the same, {join_names(keys)}: give each set once."
            )
    return sets


def _check_targets(targets: Any, sets: Sequence[KeySet]) -> tuple[Any, ...]:
    is_one_name = isinstance(targets, str) or not isinstance(targets, Iterable)
    names = require_names("targets", [targets] if is_one_name else targets)
    if not names:
        raise InputError("targets is empty: name at least one column, or pass None for all that are shared.")
    for name in names:
        if all(name in keys for keys in sets):
            raise InputError(f"Target {name!r} is in every key set: leave it out of at least one.")
    return names


def join_names(names: Iterable[Any]) -> str:
    """Return the names of a key set as text such as "age, sex"."""
    return ", ".join(map(str, names))


@dataclass(frozen=True, repr=False, eq=False)
class KeySets:
    """Disclosure by each of many key sets, in the given order; percent of GT records.

    Every frame has a row per key set and synthesis: index (keys, synthesis), where `keys` is text such as
    "age, sex"; the names themselves are in `key_sets`.

    `identity`: UiO, UiS (percent of SD records), UiOiS, repU. `Dorig`, `DiSCO`: a column per target, NaN if
    it is one of the keys. `key_overlap`: GT_in_SD, SD_in_GT: percent of GT (SD) records whose combination of
    all keys occurs in the other table. `warnings`: reasons to doubt the figures, such as tables that are not
    coded alike.
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
        """Return one row per key set, the largest DiSCO first.

        UiO; the largest repU over the syntheses; the largest DiSCO over targets and syntheses, with its
        target and that target's Dorig.
        """
        m = len(self.N_s)
        DiSCO = self.DiSCO.to_numpy().reshape(len(self.key_sets), m, -1).max(axis=1)
        Dorig = self.Dorig.to_numpy()[::m]
        largest = np.nanargmax(DiSCO, axis=1)
        position = (np.arange(len(largest)), largest)
        summary = pd.DataFrame(
            {
                "UiO": self.identity["UiO"].to_numpy()[::m],
                "repU": self.identity["repU"].to_numpy().reshape(-1, m).max(axis=1),
                "target": [self.targets[i] for i in largest],
                "Dorig": Dorig[position],
                "DiSCO": DiSCO[position],
            },
            index=self.identity.index.get_level_values("keys")[::m],
        )
        largest_first: pd.DataFrame = summary.sort_values(["DiSCO", "repU"], ascending=False, kind="stable")
        return largest_first

    def __str__(self) -> str:
        lines = [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join([*lines, format_frame(self.summary())])

    __repr__ = __str__


def disclosure_of_key_sets(
    ground_truth: TableSource,
    synthetic: Syntheses,
    key_sets: Iterable[Iterable[Hashable]],
    targets: Columns = None,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    progress: bool = False,
) -> KeySets:
    """Measure identity disclosure, Dorig and DiSCO for many sets of keys.

    The figures are those of `disclosure()` set by set, without exclusions.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        key_sets: Sets of columns an intruder may know together, such as `itertools.combinations(columns, 3)`.
        targets: The column or columns an intruder wants to learn; each is measured for the sets without it.
            None for every shared column that is not in all sets.
        groups: As in `disclosure()`.
        special_values: As in `disclosure()`.
        edges: As in `disclosure()`.
        progress: As in `disclosure()`.

    Raises:
        InputError: The tables cannot be compared or contradict the arguments; nothing was computed.

    Example:
        >>> import itertools
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame(
        ...     {"sex": ["f", "f", "m", "m"], "age": [30, 40, 50, 50], "illness": list("abaa")}
        ... )
        >>> key_sets = itertools.combinations(["sex", "age"], 1)
        >>> dp.disclosure_of_key_sets(patients, patients, key_sets, "illness")
               UiO  repU   target  Dorig  DiSCO
        keys
        age  50.00 50.00  illness 100.00 100.00
        sex   0.00  0.00  illness  50.00  50.00

    Source: Raab, Nowok & Dibben 2024 (arXiv:2406.16826), section 3 and appendix 1.
    """
    sets = _check_key_sets(key_sets)
    names = tuple(dict.fromkeys(name for keys in sets for name in keys))
    grouping = grouping_of(groups, special_values, edges)
    frames = read_frames(ground_truth, synthetic, grouping.numeric)
    if targets is None:
        check_names([list(frame.columns) for frame in frames], names[:1], (), grouping_of())
        shared = names_in_all([list(frame.columns) for frame in frames])
        target_names = tuple(name for name in shared if not all(name in keys for keys in sets))
    else:
        target_names = _check_targets(targets, sets)
    no_keys = [name for name in target_names if name not in names]
    tables = check_tables(frames[0], frames[1:], names, no_keys, grouping)
    for i, keys in enumerate(sets, start=1):
        if all(target in keys for target in target_names):
            raise InputError(
                f"Key set {i}, {join_names(keys)}, contains every target: there is none to measure."
            )
    with show_progress() if progress else nullcontext(ignore_progress) as on_progress:
        return _measure(tables, sets, target_names, on_progress)


def _measure(
    tables: Tables, sets: Sequence[KeySet], targets: tuple[Any, ...], on_progress: OnProgress
) -> KeySets:
    names = (*tables.keys, *tables.targets)
    columns = dict(zip(names, tables.code(names), strict=True))
    opened = FramesInMemory(tables.frames, "memory")
    N_d, *N_s = opened.records
    Dorig = np.full((len(sets), len(N_s), len(targets)), math.nan)
    DiSCO = Dorig.copy()
    identities: list[Mapping[str, float]] = []
    overlaps: list[Mapping[str, float]] = []
    for i, keys in enumerate(sets):
        measured = [t for t, target in enumerate(targets) if target not in keys]
        request = CountRequest(
            [columns[name] for name in keys],
            [Target(columns[targets[t]], CodedExclusions(), math.inf) for t in measured],
        )
        [counts] = count_tables(opened, [request])
        for t, of_target in zip(measured, counts.targets, strict=True):
            for j, of_synthesis in enumerate(of_target):
                records = of_synthesis.records
                Dorig[i, j, t], DiSCO[i, j, t] = (percent(records[name], N_d) for name in ("Dorig", "DiSCO"))
        identities += [
            measure_figures(OF_KEYS, of_keys.added, N_d, n)[0]
            for of_keys, n in zip(counts.keys, N_s, strict=True)
        ]
        overlaps += whole_key_overlap([of_keys.shared for of_keys in counts.keys], N_d, N_s).values()
        on_progress("Measuring the key sets", i + 1, len(sets))
    coded = list(columns.values())
    doubts = _find_doubts(tables, coded, overlaps)
    warn_of_doubts(doubts)
    labels = [(join_names(keys), synthesis) for keys in sets for synthesis in range(1, len(N_s) + 1)]
    index = pd.MultiIndex.from_tuples(labels, names=["keys", "synthesis"])
    per_target = pd.Index(targets, name="target", tupleize_cols=False)
    return KeySets(
        key_sets=tuple(sets),
        targets=targets,
        N_d=N_d,
        N_s=tuple(N_s),
        identity=pd.DataFrame(identities, index=index),
        Dorig=pd.DataFrame(Dorig.reshape(len(labels), -1), index=index, columns=per_target),
        DiSCO=pd.DataFrame(DiSCO.reshape(len(labels), -1), index=index, columns=per_target),
        key_overlap=pd.DataFrame(overlaps, index=index),
        warnings=(*doubts, *identifier_warnings(opened.columns, opened.find_real_values(coded))),
    )


def _find_doubts(
    tables: Tables, columns: Sequence[CodedColumn], overlaps: Sequence[Mapping[str, float]]
) -> list[str]:
    doubts = find_doubts(tables, columns)
    low = sum(not is_shared(shares, LEAST_SHARED.whole_key) for shares in overlaps)
    if low:
        doubts.append(
            f"{low} of {write_count(len(overlaps), 'whole key')} "
            f"{choose_form(low, 'is hardly shared, so its', 'are hardly shared, so their')} risks read "
            "too low: "
            "see key_overlap."
        )
    return doubts
