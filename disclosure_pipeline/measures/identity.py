"""Identity disclosure: who is unique, and who can be found in the synthetic table. [R 3.2, App. 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask, percent


@dataclass(frozen=True)
class Identity:
    """Percent of all GT records (UiS: of all SD records)."""

    UiO: float
    UiS: float
    UiOiS: float
    repU: float


def identity(d_q: IntArray, s_q: IntArray, in_SD: Mask, N_d: int, N_s: int) -> Identity:
    """UiO, UiS, UiOiS and repU from the counts per key combination.

    `in_SD` marks the q that occur in SD: s_q > 0 before any exclusion. The printed equations 2 and 3 of
    [R] have slips; these are the definitions that its text states.
    """
    unique_in_GT = d_q == 1
    unique_in_SD = s_q == 1
    return Identity(
        UiO=percent(np.count_nonzero(unique_in_GT), N_d),
        UiS=percent(np.count_nonzero(unique_in_SD), N_s),
        UiOiS=percent(np.count_nonzero(unique_in_GT & in_SD), N_d),
        repU=percent(np.count_nonzero(unique_in_GT & unique_in_SD), N_d),
    )
