"""Is one target level, or one pair of target and key level, behind most of DiSCO? [R section 4]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from disclosure_pipeline.measures.exact import Grouped, IntArray, percent
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.totals import Cells
from disclosure_pipeline.measures.words import NONE, RECORDS, SYNTHPOP, Words, described, figure

_LEVEL = Words(
    "target level",
    "The value of the target that is flagged.",
    NONE,
    high_is="neither",
    source=SYNTHPOP,
    beside="value",
)


@dataclass(frozen=True)
class OneWay:
    """A target level that holds most of the DiSCO records. Counts of GT records, and percent of them.

    level_records: the records of all levels that the exclusions leave; pct_level_all of them have this level.
    total_disclosive: the DiSCO records of all levels; n_level_disclosive have this level.
    """

    level: int = described(_LEVEL)
    level_records: int = figure(
        "records of all levels",
        "This many confidential records are looked at.",
        RECORDS,
        high_is="neither",
        source=SYNTHPOP,
    )
    pct_level_all: float = figure(
        "share of the level",
        "This many of the records looked at have the level.",
        high_is="neither",
        source=SYNTHPOP,
        beside="share of all people",
    )
    total_disclosive: int = figure(
        "disclosed records", "This many people can be told the target.", RECORDS, source=SYNTHPOP
    )
    n_level_disclosive: int = figure(
        "disclosed records with the level",
        "This many people can be told that they have this level.",
        RECORDS,
        source=SYNTHPOP,
        beside="people disclosed with it",
    )
    pct_level_disclosive: float = figure(
        "share of the level among the disclosed",
        "Of the people who can be told their target, so many have this level.",
        denominator="disclosed records",
        high_is="neither",
        source=SYNTHPOP,
        beside="share of those disclosed",
    )


@dataclass(frozen=True)
class TwoWay:
    """A target level that most GT records with one key level have. Counts of GT records, and percent."""

    target_level: int = described(_LEVEL)
    key: int = figure("key", "The key that goes with it.", NONE, high_is="neither", source=SYNTHPOP)
    key_level: int = figure(
        "key level", "The value of the key that goes with it.", NONE, high_is="neither", source=SYNTHPOP
    )
    npairs: int = figure(
        "disclosed records with the pair",
        "This many people with both values can be told their target.",
        RECORDS,
        source=SYNTHPOP,
    )
    key_target_total: int = figure(
        "records with the pair",
        "This many confidential records have both values.",
        RECORDS,
        high_is="neither",
        source=SYNTHPOP,
    )
    key_total: int = figure(
        "records with the key level",
        "This many confidential records have the value of the key.",
        RECORDS,
        high_is="neither",
        source=SYNTHPOP,
    )
    pct_target_key_level: float = figure(
        "share of the target level",
        "This many of the records with the key's value have the target's.",
        denominator="confidential records with the key level",
        high_is="neither",
        source=SYNTHPOP,
    )


def one_way(DiSCO_t: Grouped, original_t: Grouped, more_than: tuple[float, float]) -> list[OneWay]:
    """Return the level with the most DiSCO records, if they are more than so many, and so many percent.

    Of several levels with equally many the first is named. `DiSCO_t` and `original_t` are the DiSCO records
    and the GT records by target level, as the exclusions leave them.
    """
    records, share = more_than
    disclosed = int(DiSCO_t.sums.sum())
    first = int(DiSCO_t.sums.argmax()) if disclosed else 0
    most = int(DiSCO_t.sums[first]) if disclosed else 0
    if not (most > records and 100 * most > share * disclosed):
        return []
    level = int(DiSCO_t.groups[first])
    level_records = int(original_t.sums.sum())
    return [
        OneWay(
            level=level,
            level_records=level_records,
            pct_level_all=percent(int(original_t.sums[original_t.groups == level].sum()), level_records),
            total_disclosive=disclosed,
            n_level_disclosive=most,
            pct_level_disclosive=percent(most, disclosed),
        )
    ]


def two_way(
    large_pairs: Sequence[Grouped], pairs_of_key: Sequence[Grouped], targets: int, more_than: float
) -> dict[str, list[Any]]:
    """Return the pairs behind DiSCO cells of many records, where the key level nearly tells the target.

    `large_pairs[k]` are the GT records of these cells, of what the exclusions leave, by level of key k *
    `targets` + target level; `pairs_of_key[k]` are all GT records so, whatever is excluded. A pair is flagged
    where more than so many percent of the GT records with the key level have the target level. Returns the
    columns of `TwoWay`, an entry a flag, in order of npairs, largest first.

    >>> pairs = Grouped(np.array([0, 1, 2]), np.array([9, 1, 5]))
    >>> flags = two_way([Grouped(np.array([0, 2]), np.array([3, 5]))], [pairs], 2, 50)
    >>> flags["key_level"], flags["npairs"], flags["pct_target_key_level"]
    ([1, 0], [5, 3], [100.0, 90.0])
    """
    flags = []
    for k, (npairs, records) in enumerate(zip(large_pairs, pairs_of_key, strict=True)):
        key_total = Grouped.sum_by_group(records.groups // targets, records.sums)
        level, t = np.divmod(npairs.groups, targets)
        part = records.sums[np.searchsorted(records.groups, npairs.groups)]
        whole = key_total.sums[np.searchsorted(key_total.groups, level)]
        pairs = np.array([t, np.full(len(t), k), level, npairs.sums, part, whole])
        flags.append(pairs[:, 100 * part > more_than * whole])
    t, key, level, number, part, whole = np.concatenate(flags, axis=1)
    order = np.lexsort((level, t, key, -number))
    columns = (t, key, level, number, part, whole, 100 * part / whole)  # integers below 2^53: rounded once
    return {field.name: column[order].tolist() for field, column in zip(fields(TwoWay), columns, strict=True)}


def pairs_in_large_cells(
    f: FrequencyTable, DiSCO: Cells, levels_of: Callable[[IntArray], IntArray], more_than: float
) -> tuple[Grouped, ...]:
    """Return the records of DiSCO cells of more than so many, by the level of each key and of the target.

    `levels_of` gives the level of each key (shape: keys, q) in some of the q.
    """
    cells = np.flatnonzero(DiSCO.where & (DiSCO.counts > more_than))
    return sum_by_pair(levels_of(f.q[cells]), f.t[cells], DiSCO.counts[cells], f.targets)


def sum_by_pair(key_levels: IntArray, t: IntArray, d: IntArray, targets: int) -> tuple[Grouped, ...]:
    """Return, for each key, `d` by level of the key (shape: keys, cells) * targets + target level."""
    return tuple(Grouped.sum_by_group(levels * targets + t, d) for levels in key_levels)
