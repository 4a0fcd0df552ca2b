"""What `disclosure_of_key_sets()` returns: figures of every key set, and the largest of them first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


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
        return "\n".join([*lines, self.summary().to_string(float_format="{:.2f}".format)])

    __repr__ = __str__
