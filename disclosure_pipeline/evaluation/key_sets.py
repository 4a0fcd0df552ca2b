"""`disclosure_of_key_sets()`: which columns give most away together, of many sets of them at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.counting.memory.single_level import count_key_sets
from disclosure_pipeline.evaluation import comparability
from disclosure_pipeline.evaluation.doubts import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.identifiers import identifier_warnings
from disclosure_pipeline.evaluation.key_sets_arguments import (
    KeySet,
    check_key_sets,
    check_targets,
    check_targets_left,
    join_names,
)
from disclosure_pipeline.evaluation.key_sets_result import KeySets
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.identity import Identity, identity
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress, show_progress
from disclosure_pipeline.tables.alignment import Tables, check_tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import names_in_all


def disclosure_of_key_sets(
    ground_truth: Any,
    synthetic: Any,
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
    sets = check_key_sets(key_sets)
    names = tuple(dict.fromkeys(name for keys in sets for name in keys))
    grouping = grouping_of(groups, special_values, edges)
    if targets is None:
        frames = check_tables(ground_truth, synthetic, names[:1], (), grouping_of()).frames
        shared = names_in_all([list(frame.columns) for frame in frames])
        target_names = tuple(name for name in shared if not all(name in keys for keys in sets))
    else:
        target_names = check_targets(targets, sets)
    no_keys = [name for name in target_names if name not in names]
    tables = check_tables(ground_truth, synthetic, names, no_keys, grouping)
    check_targets_left(sets, target_names)
    with show_progress() if progress else nullcontext(ignore_progress) as on_progress:
        return _measure(tables, sets, target_names, on_progress)


def _measure(
    tables: Tables, sets: Sequence[KeySet], targets: tuple[Any, ...], on_progress: OnProgress
) -> KeySets:
    names = (*tables.keys, *tables.targets)
    columns = dict(zip(names, tables.code(names), strict=True))
    targets_of_sets = [[t for t, target in enumerate(targets) if target not in keys] for keys in sets]
    counts_of_sets = count_key_sets(
        [[columns[name] for name in keys] for keys in sets],
        [columns[target] for target in targets],
        targets_of_sets,
        on_progress,
    )
    N_d, *N_s = (len(frame) for frame in tables.frames)
    Dorig = np.full((len(sets), len(N_s), len(targets)), math.nan)
    DiSCO = Dorig.copy()
    identities: list[Identity] = []
    overlaps: list[Mapping[str, float]] = []
    for i, (counts, targets_of_set) in enumerate(zip(counts_of_sets, targets_of_sets, strict=True)):
        for t in targets_of_set:
            Dorig[i, :, t] = percent(counts.Dorig[t], N_d)
            DiSCO[i, :, t] = [percent(number, N_d) for number in counts.DiSCO[:, t]]
        identities += [identity(keys.uniques, N_d, n) for keys, n in zip(counts.keys, N_s, strict=True)]
        overlaps += comparability.whole_key_overlap([keys.shared for keys in counts.keys], N_d, N_s).values()
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
        warnings=(*doubts, *identifier_warnings(FramesInMemory(tables.frames, "memory"), coded)),
    )


def _find_doubts(
    tables: Tables, columns: Sequence[CodedColumn], overlaps: Sequence[Mapping[str, float]]
) -> list[str]:
    doubts = find_doubts(tables, columns)
    low = sum(not comparability.is_shared(shares, comparability.LOW_WHOLE_KEY) for shares in overlaps)
    if low:
        doubts.append(
            f"{low} of {len(overlaps)} whole keys are hardly shared: see key_overlap. Their risks read low."
        )
    return doubts
