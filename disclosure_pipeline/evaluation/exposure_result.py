"""What `exposure()` returns: figures of every key set, and how small a set exposes how many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

_SHOWN = 10


@dataclass(frozen=True, repr=False, eq=False)
class Exposure:
    """What each set of columns discloses beyond other people's records, the largest DiSCO_beyond first.

    `figures`: index (keys, target, synthesis), where `keys` are names as in "age, sex". `columns`: how many
    they are. Percent of GT records: repU, DiSCO, DiSCO_others. Percentage points: DiSCO_beyond,
    guessed_beyond, and unique_hits_beyond (of the SD records). smallest_support: the smallest number of SD
    records that agree on a disclosed GT record, missing where none is disclosed.

    `smallest_sets`: index (target, synthesis, columns), percent of GT records by the number of columns of the
    smallest set that exposes them: `exposed` by SD, `exposed_others` by the other GT records, and
    `exposed_beyond`, the difference in percentage points; the row "none" are those whom no set exposes.

    `key_sets`: the names of every set, in the order of `figures`. `warnings`: what makes the figures
    doubtful, such as tables that are not coded alike.
    """

    targets: tuple[Any, ...]
    up_to: int
    support: int
    key_sets: tuple[tuple[Any, ...], ...]
    figures: pd.DataFrame
    smallest_sets: pd.DataFrame
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [*(f"Warning: {warning}" for warning in self.warnings)]
        sets = self.figures.index.get_level_values("keys").nunique()
        lines += [f"{sets:,} key sets; those with the largest DiSCO_beyond:", ""]
        lines += [self.figures.head(_SHOWN).to_string(float_format="{:.2f}".format), ""]
        lines += [f"GT records by the smallest set that exposes them (support {self.support}), percent:", ""]
        lines += [self.smallest_sets.to_string(float_format="{:.2f}".format)]
        return "\n".join(lines)

    __repr__ = __str__
