"""Several tables that are published together: what they disclose as one release.

A mean over syntheses says nothing about publishing all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask, percent, total
from disclosure_pipeline.measures.frequency import Keys
from disclosure_pipeline.measures.words import Words


@dataclass(frozen=True)
class TogetherCounts:
    """What m syntheses disclose together: GT records; integers that add up over keys.

    unique_in_any: those that are unique in GT, and whose q is unique in at least one synthesis.
    any, agreed: of each target, of the records that the exclusions leave: see `Disclosed`.
    """

    unique_in_any: int
    any: tuple[int, ...]
    agreed: tuple[int, ...]

    @classmethod
    def from_pairs(cls, unique_in_any: int, of_targets: Sequence[tuple[int, int]]) -> TogetherCounts:
        """Count from `any` and `agreed` of each target."""
        return cls(unique_in_any, tuple(n for n, _ in of_targets), tuple(n for _, n in of_targets))


@dataclass(frozen=True)
class Together:
    """Percent of all GT records that DiSCO counts in at least one synthesis; and that several agree on."""

    any: Annotated[
        float,
        Words(
            "disclosed by any synthetic table",
            "This many people can be told their target rightly from at least one of the synthetic tables.",
        ),
    ]
    agreed: Annotated[
        float,
        Words(
            "disclosed by several that agree",
            "Of so many people at least two synthetic tables tell the target, and all of these rightly.",
        ),
    ]


@dataclass(frozen=True)
class TogetherIdentity:
    """Percent of all GT records that are replicated uniques (repU) in at least one synthesis."""

    repU_any: Annotated[
        float,
        Words(
            "replicated uniques of any synthetic table",
            "This many people are unique by their keys, and so are these in at least one synthetic table.",
        ),
    ]


def together(counts: TogetherCounts, N_d: int) -> tuple[TogetherIdentity, list[Together]]:
    """Return the percentages, those of each target in their order."""
    of_targets = [
        Together(percent(any_of, N_d), percent(agreed, N_d))
        for any_of, agreed in zip(counts.any, counts.agreed, strict=True)
    ]
    return TogetherIdentity(percent(counts.unique_in_any, N_d)), of_targets


@dataclass(frozen=True)
class Disclosed:
    """For each GT record, or cell: in how many tables its q has one target level, and that is its own.

    `tables` and `rightly` are of one shape, or can be brought to one.
    """

    tables: IntArray
    rightly: IntArray

    @property
    def any(self) -> Mask:
        """The GT records that DiSCO counts in at least one table."""
        return self.rightly > 0

    @property
    def agreed(self) -> Mask:
        """Return the people of whom at least two tables disclose a level, all of them their own."""
        return (self.rightly > 1) & (self.rightly == self.tables)

    def count(self, d: IntArray) -> tuple[int, int]:
        """Return the GT records of both kinds, where each entry stands for `d` of them."""
        return total(d, self.any), total(d, self.agreed)


def disclosed_of_tables(by_cell: Sequence[IntArray]) -> Disclosed:
    """Return what is disclosed, from the records of each synthesis in every cell (shape: q, t)."""
    tables = np.zeros((len(by_cell[0]), 1), dtype=np.int64)
    rightly = np.zeros(by_cell[0].shape, dtype=np.int64)
    for s in by_cell:
        occurs = s > 0
        one_level = occurs.sum(axis=1, keepdims=True) == 1
        tables += one_level
        rightly += occurs & one_level
    return Disclosed(tables, rightly)


def count_unique_in_any(d_q: IntArray, s_q_of_tables: Sequence[IntArray]) -> int:
    """Return the q that one GT record has, and one record of at least one synthesis."""
    in_any = np.zeros(len(d_q), dtype=bool)
    for s_q in s_q_of_tables:
        in_any |= s_q == 1
    return int(np.count_nonzero(in_any & (d_q == 1)))


def disclosed(cells: Keys, keys: Keys, syntheses: Sequence[int]) -> Disclosed:
    """Return what is disclosed, from the cell and the key combination of each record (GT is 0)."""
    records = len(keys.q[0])
    tables, rightly = np.zeros(records, dtype=np.int64), np.zeros(records, dtype=np.int64)
    for synthesis in syntheses:
        s_tq, s_q = cells.counts[synthesis], keys.counts[synthesis]
        one_level = np.zeros(keys.size, dtype=bool)
        of_cell = cells.level_of(0)
        one_level[of_cell[(s_tq > 0) & (s_tq == s_q[of_cell])]] = True
        tables += one_level[keys.q[0]]
        own = s_tq[cells.q[0]]
        rightly += (own > 0) & (own == s_q[keys.q[0]])
    return Disclosed(tables, rightly)


def replicated_uniques_together(keys: Keys, syntheses: Sequence[int]) -> Mask:
    """Count the records unique in GT whose key combination is unique in at least one table."""
    alone = keys.counts[0] == 1
    in_any = np.zeros(keys.size, dtype=bool)
    for synthesis in syntheses:
        in_any |= keys.counts[synthesis] == 1
    return (alone & in_any)[keys.q[0]]
