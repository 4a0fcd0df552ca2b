"""Tables of different sizes brought to n records each: the chance that none of some records is drawn.

SD and GT's other records (those of everybody but one person) are compared at n = min(N_s, N_d - 1) records;
where a person has several records, `own` of them, at n = min(N_s, N_d - own).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.chance import Floats, all_of_one_level
from disclosure_pipeline.measures.exact import IntArray

ONE_CHANCE = 2**30
"""A chance of 1 as an integer: sums of such integers are the same in any order."""


@dataclass(frozen=True)
class Sizes:
    """The number of GT and of SD records, and of the person's own ones, and what follows from them."""

    N_d: int
    N_s: int
    own: int = 1

    def divide(self, records_per_unit: float) -> Sizes:
        """Return about as many people as these are records, one at least where there are records."""
        if records_per_unit == 1:
            return self
        return Sizes(*(max(1, round(n / records_per_unit)) if n else 0 for n in (self.N_d, self.N_s)))

    @property
    def others(self) -> int:
        """The GT records of other people."""
        return self.N_d - self.own

    @property
    def n(self) -> int:
        """At so many records both are compared."""
        return min(self.N_s, self.others)

    @property
    def others_left(self) -> int:
        """The other GT records that are not drawn; where it is 0, P0(m) is 0 for every m but 0."""
        return self.others - self.n

    @property
    def synthetic_left(self) -> int:
        """The SD records that are not drawn; where it is 0, Q0(m) is 0 for every m but 0."""
        return self.N_s - self.n

    @property
    def others_are_drawn(self) -> bool:
        """True if the others' guess is of a draw of them: there are fewer SD records than other records."""
        return self.others_left > 0

    @property
    def synthetic_is_drawn(self) -> bool:
        """True if the guess is of a draw of SD: it has more records than GT."""
        return self.N_s > self.N_d

    @property
    def something_is_drawn(self) -> bool:
        """True if either of the two is."""
        return self.others_are_drawn or self.synthetic_is_drawn

    def p0(self, records: IntArray) -> Floats:
        """Return P0(m) for each m of `records`: of n drawn from the other GT records, none is among m."""
        return none_drawn(records, self.others, self.n)

    def q0(self, records: IntArray) -> Floats:
        """Return Q0(m) for each m of `records`: the same of SD records."""
        return none_drawn(records, self.N_s, self.n)


def none_drawn(records: IntArray, total: int, n: int) -> Floats:
    """Return C(total - m, n) / C(total, n) for each m of `records`: of n drawn none is among those m.

    The same as C(total - n, m) / C(total, m): all of the m are among those left. Exactly 1 where m is 0,
    exactly 0 where fewer than m are left.
    """
    return all_of_one_level(total - n, total, records) if len(records) else np.empty(0)


def in_integers(chances: Floats) -> IntArray:
    """Return chances in units of 1 / `ONE_CHANCE`."""
    return np.rint(chances * ONE_CHANCE).astype(np.int64)
