"""The measures record by record: each record's own chance of a right guess, and what it counts towards.

Sources: [B] Baillargeon & Charest 2020; [T] Taub, Elliot et al. 2018; [R] App. 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.words import BAILLARGEON, RAAB, SHARE, YESNO, figure

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Individual:
    """One synthesis, one entry per GT record. CAP is a chance from 0 to 1, the rest are masks.

    100 times the mean of CAP is DCAP; the shares of the three masks are DiSCO, DiSDiO and repU.
    """

    CAP: Floats = figure(
        "chance of a right guess",
        "The chance that a guess drawn from the records with this person's keys is right.",
        SHARE,
        source=BAILLARGEON,
    )
    DiSCO: Mask = figure(
        "disclosed and correct",
        "Whether this person can be told the target with certainty.",
        YESNO,
        source=RAAB,
    )
    DiSDiO: Mask = figure(
        "disclosed in both tables",
        "Whether this person can be told the target with certainty from either table.",
        YESNO,
        source=RAAB,
    )
    repU: Mask = figure(
        "replicated unique",
        "Whether this person is the only one with these keys in both tables.",
        YESNO,
        source=RAAB,
    )


def combine_cells(keys: Keys, target: Sequence[IntArray], levels: int) -> Keys:
    """Return the cells (q, t), numbered over GT and all syntheses: `q[i]` holds the cell of each record.

    `target[i]` are the codes of table i (0 is GT), all below `levels`.
    """
    return combine_keys([list(keys.q), list(target)], [keys.size, levels])


def share_of_key(cells: Keys, keys: Keys, counted_in: int, records_of: int) -> Floats:
    """Return the share of its own cell in its q in table `counted_in`, for each record of table `records_of`.

    pd for the GT records (0, 0), the individual CAP of the GT records (i, 0), WEAP of the SD records (i, i).
    0 where the q of the record is not in that table. [B; T]
    """
    count = cells.counts[counted_in][cells.q[records_of]]
    key_count = keys.counts[counted_in][keys.q[records_of]]
    return np.divide(count, key_count, out=np.zeros(len(count)), where=key_count > 0)


def individual(cells: Keys, keys: Keys, synthesis: int) -> Individual:
    """Return what each GT record is exposed to in one synthesis, on the untouched tables."""
    cell, q = cells.q[0], keys.q[0]
    d, s = cells.counts[0][cell], cells.counts[synthesis][cell]
    d_q, s_q = keys.counts[0][q], keys.counts[synthesis][q]
    DiSCO = (s > 0) & (s == s_q)
    return Individual(
        CAP=share_of_key(cells, keys, synthesis, 0),
        DiSCO=DiSCO,
        DiSDiO=DiSCO & (d == d_q),
        repU=(d_q == 1) & (s_q == 1),
    )
