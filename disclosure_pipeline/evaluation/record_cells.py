"""The cell of each record, and tables brought to one size by a draw of their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, combine_keys, frequency_tables
from disclosure_pipeline.measures.samples import Sizes


@dataclass(frozen=True)
class RecordCells:
    """The cells of GT and one synthesis; `position` of each GT record in them."""

    f: FrequencyTable
    position: IntArray

    @classmethod
    def of(cls, q: Keys, t: Sequence[IntArray], levels: int, synthesis: int) -> RecordCells:
        """Of all records of GT and of the synthesis."""
        tables = (0, synthesis)
        t_of = [t[table] for table in tables]
        keys = combine_keys([[q.q[table] for table in tables]], [q.size])
        [f] = frequency_tables(keys, t_of, levels)
        return cls(f, np.searchsorted(f.q * levels + f.t, keys.q[0] * levels + t_of[0]))

    def count(self, members: Mask) -> IntArray:
        """The members of a group (shape: all GT records) in each cell."""
        return np.bincount(self.position[members], minlength=len(self.f.q))


def draw_equal_sizes(sizes: Sizes, seed: Sequence[int]) -> list[IntArray] | None:
    """The records of GT and of SD that guesses are of, so that everybody has as many others as SD has."""
    if not sizes.others_are_drawn and not sizes.synthetic_is_drawn:
        return None
    rng = np.random.default_rng(seed)
    return [
        np.sort(rng.permutation(sizes.N_d)[: sizes.n + 1]),
        np.sort(rng.permutation(sizes.N_s)[: sizes.n]),
    ]
