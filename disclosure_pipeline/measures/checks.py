"""Is one target level, or one pair of target and key level, behind most of DiSCO? [R section 4]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.attribute import DisclosureTables
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys


@dataclass(frozen=True)
class OneWay:
    """A target level that holds most of the DiSCO records. Counts of GT records, and percent of them."""

    level: int
    all: int
    pct_level_all: float
    total_disclosive: int
    n_level_disclosive: int
    pct_level_disclosive: float


@dataclass(frozen=True)
class TwoWay:
    """A target level that most GT records with one key level have. Counts of GT records, and percent."""

    target_level: int
    key: int
    key_level: int
    npairs: int
    key_target_total: int
    key_total: int
    pct_target_key_level: float


def one_way(f: FrequencyTable, tables: DisclosureTables, more_than: tuple[float, float]) -> list[OneWay]:
    """The level with the most DiSCO records, if it has more than so many and more than so many percent.

    Of several levels with equally many the first is named.
    """
    records, share = more_than
    per_level = f.per_target(tables.DiSCO.values())
    level, everything = int(per_level.argmax()), int(per_level.sum())
    most = int(per_level[level])
    if not (most > records and 100 * most > share * everything):
        return []
    in_GT = f.per_target(tables.original.values())
    everyone = int(in_GT.sum())
    return [
        OneWay(
            level=level,
            all=everyone,
            pct_level_all=percent(int(in_GT[level]), everyone),
            total_disclosive=everything,
            n_level_disclosive=most,
            pct_level_disclosive=percent(most, everything),
        )
    ]


def two_way(
    f: FrequencyTable, tables: DisclosureTables, keys: Keys, more_than: tuple[float, float]
) -> list[TwoWay]:
    """The pairs behind DiSCO cells of more than so many records, where the key level nearly tells the target.

    In order of npairs, largest first.
    """
    records, share = more_than
    chosen = np.flatnonzero(tables.DiSCO.where & (tables.DiSCO.counts > records))
    if not len(chosen):
        return []
    d = tables.original.values()
    flags = []
    for k, levels in enumerate(keys.levels):
        key_level = keys.level_of(k).astype(np.int64)
        pair = f.t[chosen] * levels + key_level[f.q[chosen]]
        pairs, position = np.unique(pair, return_inverse=True)
        npairs = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(npairs, position, f.d[chosen])

        level_of_cell = key_level[f.q]
        key_total = np.zeros(levels, dtype=np.int64)
        np.add.at(key_total, level_of_cell, d)
        key_target_total = np.zeros(len(pairs), dtype=np.int64)
        cell_pair = f.t * levels + level_of_cell
        at = np.searchsorted(pairs, cell_pair).clip(max=len(pairs) - 1)
        named = pairs[at] == cell_pair
        np.add.at(key_target_total, at[named], d[named])

        for i, code in enumerate(pairs):
            t, level = divmod(int(code), levels)
            part, whole = int(key_target_total[i]), int(key_total[level])
            if 100 * part > share * whole:
                flags.append(TwoWay(t, k, level, int(npairs[i]), part, whole, percent(part, whole)))
    return sorted(flags, key=lambda flag: (-flag.npairs, flag.key, flag.target_level, flag.key_level))
