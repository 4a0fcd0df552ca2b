"""Disclosure of a sensitive level of a target.

A target is often one harmless level for most people, and then figures of all people say little about those
whom it matters for: if "none" is right for most, copies of the others add nothing to guesses. So the people
with the level are a group of their own (`exposed_groups`). The other way round, a level is told of some
people with certainty: `Right` says how many of them have it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.chance import beyond_chance
from disclosure_pipeline.measures.entry import Figure, place_beyond
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, percent, sum_exactly
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.samples import clopper_pearson
from disclosure_pipeline.measures.words import (
    BEYOND_OTHERS,
    BY_CHANCE,
    BY_OTHERS,
    POINTS,
    RAAB,
    WEIGHTED,
    WITH_LEVEL,
    Words,
    by_chance_of,
    described,
    figure,
    neutral,
    points,
    words_of_fields,
)

TOLD = "people who seem to have it"


@dataclass(frozen=True)
class Right:
    """`told` in percent of all people, `right` in percent of those told, `right_beyond` in points."""

    told: float = neutral(
        "people told to have it",
        "People of whom the synthetic table tells with certainty that they have the sensitive value.",
    )
    right: float = figure(
        "right about a sensitive value",
        "People who have the sensitive value, among those of whom the synthetic table tells it with "
        "certainty.",
        denominator=TOLD,
        finding="of those who seem to have {column}, {value} have it",
    )
    right_others: float = neutral(
        "right about a sensitive value from other people's records",
        "People who have the sensitive value, among those of whom other people's records tell it with "
        "certainty, or among all people if that is more.",
        denominator=TOLD,
        beside=BY_OTHERS,
    )
    right_beyond: float = points(
        "right about a sensitive value beyond other people's records",
        "How much more often the synthetic table is right about the sensitive value than other people's "
        "records.",
        finding="{more} in 100 of those who seem to have {column} have it than of those of whom other "
        "people's records tell it",
        subject="people rightly told to have {column}",
        beside=BEYOND_OTHERS,
    )
    right_by_chance: float = described(by_chance_of("right about a sensitive value", beside=BY_CHANCE))

    @property
    def bounded(self) -> float:
        """The figure to be bounded: `right_beyond` where it is beyond chance, otherwise at most 0."""
        return beyond_chance(self.right_beyond, self.right_by_chance)


@dataclass(frozen=True)
class LevelClaims:
    """People of whom a level is told: their expected number, that of those who have it, and of guesses.

    People with the same keys are told the same, so there are as many independent claims as there would be key
    combinations of equal size: (sum of told)² / (sum of told²).
    """

    told: float
    right: float
    independent: float

    @classmethod
    def add_up(cls, told: Floats, has_level: Mask, q: IntArray) -> LevelClaims:
        """Add up the chance that each record is told to have the level; `q`: its combination of keys."""
        by_key = np.bincount(q, weights=told).astype(np.float64)
        squares = sum_exactly(by_key**2)
        number = sum_exactly(told)
        return cls(number, sum_exactly(told * has_level), number**2 / squares if squares else 0.0)


def compare_claims(
    by_SD: LevelClaims, by_others: LevelClaims, with_level: int, people: int, comparisons: int = 1
) -> Right:
    """Compare SD's claims of a level with those of the others, at n records.

    If SD tells the level of nobody, nothing is beyond.

    Args:
        by_SD: What n records of SD tell.
        by_others: What n records of other people tell.
        with_level: GT records that have the level.
        people: All GT records.
        comparisons: Number of levels, of which the worst counts.

    Source: this project's own; Newcombe 1998 for the interval, but from exact ones of both shares, since few
    are told; Kish 1965 for the number.

    >>> compare_claims(LevelClaims(4, 4, 4), LevelClaims(0, 0, 0), 5, 50).right_beyond
    90.0
    """
    share = percent(with_level, people)
    others, independent = share, float(people)
    if by_others.told and 100 * by_others.right / by_others.told > share:
        others, independent = 100 * by_others.right / by_others.told, by_others.independent
    told = 100 * by_SD.told / people
    if not by_SD.told:
        return Right(told, 0.0, others, 0.0, 0.0)
    right, claims = 100 * by_SD.right / by_SD.told, by_SD.independent
    confidence = 1 - 2 / (ONCE_IN * max(comparisons, 1))
    low, _ = clopper_pearson(right / 100 * claims, claims, confidence)
    _, high = clopper_pearson(others / 100 * independent, independent, confidence)
    by_chance = math.hypot(right - 100 * low, 100 * high - others)
    return Right(told, right, others, right - others, by_chance)


_WORDS = words_of_fields(Right)

FIGURES = (
    Figure(
        "told",
        Words(
            "sensitive value disclosed",
            "People with the sensitive value of whom the synthetic table tells it with certainty.",
            denominator=WITH_LEVEL,
            source=RAAB,
            finding="{value} of the people with {column} are shown to have it",
        ),
        place_beyond("sensitive", "DiSCO", at_n="DiSCO_at_n", own="Dorig", permuted="DiSCO_chance"),
        "learned",
        about="level",
        statistics=("at_most", "at_most_share", "beyond"),
        beyond=Words(
            "sensitive value disclosed beyond other people's records and beyond chance",
            "People with the sensitive value who are shown to have it, in excess of those whom other "
            "people's records show and of chance: the smaller of the two differences.",
            POINTS,
            finding="the table shows {more} in 100 of the people with {column} to have it than other "
            "people's records would",
            subject="people with {column} shown to have it",
        ),
        weighed=place_beyond(
            "sensitive", "DiSCO", WEIGHTED, own="Dorig_weighted", permuted="DiSCO_chance_weighted"
        ),
        follows="DiSCO",
    ),
    Figure(
        "right",
        _WORDS["right"],
        place_beyond("sensitive", "right", se="", by_chance="right_by_chance"),
        "learned",
        about="level",
        statistics=("beyond",),
        beyond=_WORDS["right_beyond"],
        follows="DiSCO",
    ),
)
