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
    def from_keys(cls, q: Keys, t: Sequence[IntArray], levels: int, synthesis: int) -> RecordCells:
        """Of all records of GT and of the synthesis."""
        tables = (0, synthesis)
        t_of = [t[table] for table in tables]
        keys = combine_keys([[q.q[table] for table in tables]], [q.size])
        [f] = frequency_tables(keys, t_of, levels)
        return cls(f, np.searchsorted(f.q * levels + f.t, keys.q[0] * levels + t_of[0]))

    def count(self, members: Mask) -> IntArray:
        """The members of a group (shape: all GT records) in each cell."""
        return np.bincount(self.position[members], minlength=len(self.f.q))


def draw_equal_sizes(f: FrequencyTable, order: IntArray, seed: Sequence[int]) -> FrequencyTable | None:
    """The cells of a draw of GT and of SD records, so that everybody has as many others as SD has.

    None where both have these sizes already. Records of one cell are alike, so it is drawn how many of each
    cell there are, in an `order` of the cells that does not depend on that of the records.
    """
    sizes = Sizes(f.N_d, f.N_s)
    if not sizes.others_are_drawn and not sizes.synthetic_is_drawn:
        return None
    rng = np.random.default_rng(seed)
    d, s = np.empty_like(f.d), np.empty_like(f.s)
    d[order] = rng.multivariate_hypergeometric(f.d[order], min(sizes.n + 1, f.N_d), method="marginals")
    s[order] = rng.multivariate_hypergeometric(f.s[order], sizes.n, method="marginals")
    drawn = np.flatnonzero(d + s)
    d_q, s_q = (f.per_key(counts)[f.q] for counts in (d, s))
    return FrequencyTable(
        q=f.q[drawn],
        t=f.t[drawn],
        d=d[drawn],
        s=s[drawn],
        d_q=d_q[drawn],
        s_q=s_q[drawn],
        N_d=int(d.sum()),
        N_s=int(s.sum()),
        keys=f.keys,
        targets=f.targets,
    )
