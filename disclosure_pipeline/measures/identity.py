"""Identity disclosure: who is unique, and who can be found in the synthetic table. [R 3.2, App. 1]."""

from __future__ import annotations

from dataclasses import dataclass

from disclosure_pipeline.measures.exact import IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import Keys
from disclosure_pipeline.measures.words import RAAB, SYNTHETIC, figure, neutral


@dataclass(frozen=True)
class Identity:
    """Percent of all GT records (UiS: of all SD records)."""

    UiO: float = neutral(
        "unique in the confidential table",
        "This many confidential records are the only ones with their combination of keys.",
        source=RAAB,
        finding="{value} of the people are the only ones with their keys",
    )
    UiS: float = figure(
        "unique in the synthetic table",
        "This many synthetic records are the only ones with their combination of keys.",
        denominator=SYNTHETIC,
        source=RAAB,
        finding="{value} of the synthetic records are the only ones with their keys",
    )
    UiOiS: float = figure(
        "unique in the confidential table and found in the synthetic one",
        "This many people are the only ones with their combination of keys, and some "
        "synthetic record has it too.",
        source=RAAB,
        finding="{value} of the people are the only ones with their keys, and are found in the "
        "synthetic table",
    )
    repU: float = figure(
        "replicated uniques",
        "This many people are the only ones with their combination of keys, and exactly one "
        "synthetic record has it: it looks like them.",
        source=RAAB,
        finding="{value} of the people are singled out by their keys in both tables",
        subject="people singled out in both tables",
    )


@dataclass(frozen=True)
class Uniques:
    """Numbers of key combinations that one record has: in GT, in SD, in GT and found in SD, in both."""

    in_GT: int
    in_SD: int
    in_GT_of_keys_in_SD: int
    in_both: int


def uniques(d_q: IntArray, s_q: IntArray, occurs_in_SD: Mask, keys: IntArray | int = 1) -> Uniques:
    """Count from the counts of each q; `occurs_in_SD` marks the q with s_q > 0 before any exclusion.

    An entry can stand for several `keys` that have the same counts.
    """
    in_GT, in_SD = d_q == 1, s_q == 1

    def number(where: Mask) -> int:
        return int((where * keys).sum())

    return Uniques(number(in_GT), number(in_SD), number(in_GT & occurs_in_SD), number(in_GT & in_SD))


def identity(counts: Uniques, N_d: int, N_s: int) -> Identity:
    """Compute UiO, UiS, UiOiS and repU.

    The printed equations 2 and 3 of [R] have slips; these are the definitions that its text states.
    """
    return Identity(
        UiO=percent(counts.in_GT, N_d),
        UiS=percent(counts.in_SD, N_s),
        UiOiS=percent(counts.in_GT_of_keys_in_SD, N_d),
        repU=percent(counts.in_both, N_d),
    )


def unique_records(keys: Keys, synthesis: int = 1) -> tuple[Mask, Mask]:
    """Return two masks over the records of a synthesis (1…m) whose q is unique in it.

    First: its q is unique in GT too (a replicated unique). Second: its q occurs in GT, unique or not.
    """
    d_q, s_q = keys.counts[0], keys.counts[synthesis]
    q = keys.q[synthesis]
    return ((s_q == 1) & (d_q == 1))[q], ((s_q == 1) & (d_q > 0))[q]
