"""Identity disclosure: who is unique, and who can be found in the synthetic table. [R 3.2, App. 1]."""

from __future__ import annotations

from dataclasses import dataclass

from disclosure_pipeline.measures.exact import IntArray, Mask, percent


@dataclass(frozen=True)
class Identity:
    """Percent of all GT records (UiS: of all SD records)."""

    UiO: float
    UiS: float
    UiOiS: float
    repU: float


@dataclass(frozen=True)
class Uniques:
    """Numbers of key combinations that one record has: in GT, in SD, in GT and found in SD, in both."""

    in_GT: int
    in_SD: int
    in_GT_found: int
    in_both: int


def uniques(d_q: IntArray, s_q: IntArray, occurs_in_SD: Mask, keys: IntArray | int = 1) -> Uniques:
    """From the counts of each q; `occurs_in_SD` marks the q with s_q > 0 before any exclusion.

    An entry can stand for several `keys` that have the same counts.
    """
    in_GT, in_SD = d_q == 1, s_q == 1

    def number(where: Mask) -> int:
        return int((where * keys).sum())

    return Uniques(number(in_GT), number(in_SD), number(in_GT & occurs_in_SD), number(in_GT & in_SD))


def identity(counts: Uniques, N_d: int, N_s: int) -> Identity:
    """UiO, UiS, UiOiS and repU.

    The printed equations 2 and 3 of [R] have slips; these are the definitions that its text states.
    """
    return Identity(
        UiO=percent(counts.in_GT, N_d),
        UiS=percent(counts.in_SD, N_s),
        UiOiS=percent(counts.in_GT_found, N_d),
        repU=percent(counts.in_both, N_d),
    )
