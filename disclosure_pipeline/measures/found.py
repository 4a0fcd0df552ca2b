"""Found: the people whom nobody else stands near, and whom a synthetic record shows.

This project's own. The box of a person, for a set of columns and a tolerance, holds the records with the same
categories, and with numbers within the tolerance. A person is alone if no other person is in the box, and
shown if a synthetic record is. A fresh table shows some people, too: how many follows from how other people
stand to each other. So do a model's own columns: SD with its columns permuted shows some, and so does SD with
its most identifying number kept and the other columns drawn from people with nearly the same number. The
largest of the three is expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from disclosure_pipeline.measures.chance import beyond_chance
from disclosure_pipeline.measures.entry import Default, Figure, Place, place_beyond
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, sum_exactly
from disclosure_pipeline.measures.people import (
    ONCE_IN,
    highest_count,
    highest_mean,
    most_found_given_pairs,
)
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import (
    BY_CHANCE,
    BY_FRESH_SAMPLE,
    BY_SYNTHETIC,
    GOOD,
    RECORDS,
    WEIGHTED,
    Words,
    by_chance_of,
    described,
    figure,
    neutral,
    points,
    words_of_fields,
)

WAYS = (
    WHOLE := "whole",
    ALL_BUT_ONE := "all but one",
    NEARLY := "nearly",
    IN_PIECES := "in pieces",
    NEARLY_IN_PIECES := "nearly in pieces",
    IN_A_GROUP := "in a group",
    IN_PART_OF_A_NUMBER := "in part of a number",
)
"""The ways in which people may be found."""

BY_RECORDS_FINDING = "{value} of the synthetic records copy one person each, {column}"
"""The sentence on people found whose figures count the synthetic records that copy one."""

TOLERANCES = (0.0, 0.01, 0.03, 0.1)
"""The largest differences of two numbers that are near each other, as shares of the number."""

USUAL_BOUNDS: Mapping[str, float] = {WHOLE: 2.5, NEARLY: 10}
"""The largest `found` allowed by default in the ways that a detection limit is given of."""

_TERMS = 12
_EULER = [sum(math.comb(_TERMS, i) for i in range(k, _TERMS + 1)) / 2**_TERMS for k in range(1, _TERMS + 1)]
"""The chance that a fair coin falls heads at least k times in `_TERMS`: the weight of the k-th term."""


@dataclass(frozen=True)
class BoxCounts:
    """The records in the boxes of some people (shape: people).

    others: GT records of other units. shown: whether an SD record is in the box. by_columns, by_values: the
    chance that SD with its columns permuted, or with its most identifying number kept, would show the person
    (of those who are alone; otherwise 0).
    """

    others: IntArray
    shown: Mask
    by_columns: Floats
    by_values: Floats

    def select(self, people: Mask | IntArray) -> BoxCounts:
        """Return the counts of some of the people."""
        return BoxCounts(
            self.others[people], self.shown[people], self.by_columns[people], self.by_values[people]
        )


@dataclass(frozen=True)
class OwnCoverage:
    """SD records looked at, and those of them in whose box another SD record is."""

    repeated: int
    records: int

    def share(self) -> float:
        """Return the share of the records that have another one in their box."""
        return self.repeated / self.records

    def highest(self, level: float) -> float:
        """Return the upper limit of the share."""
        return min(highest_mean(self.repeated, level) / self.records, 1.0)


@dataclass(frozen=True)
class Found:
    """`alone`, `shown` and `expected` in percent of people; `found` and `found_by_chance` in points.

    found_by_chance: the `found` that chance alone exceeds once in `ONCE_IN` safe tables.
    """

    alone: float = neutral(
        "people whom nobody stands near",
        "People whose values in these columns no other person has, or comes near.",
        source=GOOD,
    )
    shown: float = figure(
        "people shown",
        "People whom nobody else stands near, and whom a synthetic record shows.",
        source=GOOD,
        finding="{value} of the people are in the synthetic table, {column}",
        beside=BY_SYNTHETIC,
    )
    expected: float = neutral(
        "people shown by a fresh sample",
        "People who would be shown by as many other people's records, or by the synthetic table's own "
        "columns, put together anew.",
        source=GOOD,
        finding="with as many records of other people it would be {value}",
        beside=BY_FRESH_SAMPLE,
    )
    found: float = points(
        "people found",
        "How many more people are shown than as many other people's records would show.",
        source=GOOD,
        finding="{more} people in 100 are in the synthetic table ({column}) than would be in as many records "
        "of other people",
        subject="people found ({column})",
    )
    found_by_chance: float = described(by_chance_of("people found", source=GOOD, beside=BY_CHANCE))
    people: int = neutral("people looked at", "Confidential records that were looked at.", RECORDS)

    @property
    def bounded(self) -> float:
        """The figure to be bounded: `found` where it is beyond chance, otherwise at most 0."""
        return beyond_chance(self.found, self.found_by_chance)

    def rank(self) -> tuple[float, float]:
        """Return what the figures of the most exposed people have most of."""
        return self.bounded, self.found


def found(
    counts: BoxCounts,
    sizes: Sizes,
    coverage: OwnCoverage | None = None,
    comparisons: int = 1,
    records_per_unit: float = 1,
) -> Found:
    """Compare the people whom SD shows with those whom a fresh table of N_s records would show.

    Args:
        counts: The boxes of all GT records, or of some that were drawn.
        sizes: All GT and SD records; within a group, those of the group.
        coverage: SD's own coverage, where SD is larger than GT.
        comparisons: Number of groups or sets of columns of which the worst counts.
        records_per_unit: Records per person, which reduces the number of independent people.

    With t = N_s/N_d, a table of t times as many other people is expected to show the share

        sum of  (-1)^(k+1) t^k h_k  over k >= 1

    of the people, where h_k is the share with k others in their box: a new record is one of N_d + 1 people
    who could each have been the new one. The terms have Euler's weights for t <= 1; a larger table shows each
    lone person as often, independently, t times. By Jensen's inequality it is at most
    f1 (1 - exp(-t h_1 / f1)), with f1 the share of lone people, and at most f1 times SD's own coverage.

    `found` is in percent of the people or of SD's records, whichever are fewer.

    >>> nothing = np.zeros(4)
    >>> found(BoxCounts(np.zeros(4, int), np.arange(4) < 3, nothing, nothing), Sizes(4, 4)).found
    75.0

    Source: this project's own, by Good & Toulmin 1956, "The number of new species, and the increase in
    population coverage, when a sample is increased", and Efron & Thisted 1976, "Estimating the number of
    unseen species".
    """
    people, scale = len(counts.others), _scale(counts, sizes)
    if not people or not sizes.N_s:
        return Found(math.nan, math.nan, math.nan, math.nan, math.nan, people)
    alone = int(np.count_nonzero(counts.others == 0))
    shown, expected = _compare(counts, sizes, coverage)
    by_model = _shown_by_model(counts)
    fresh = _Fresh.count(counts.others, sizes).divide(records_per_unit)
    level = 1 / (ONCE_IN * max(comparisons, 1))
    most = _most_shown(fresh, by_model / records_per_unit, coverage, level) * records_per_unit
    return Found(
        100 * alone / people,
        100 * shown / people,
        100 * expected / people,
        scale * (shown - expected),
        scale * max(min(most, alone) - expected, 0.0),
        people,
    )


def find_beyond_fresh(counts: BoxCounts, sizes: Sizes, coverage: OwnCoverage | None = None) -> float:
    """Return the figure `found` alone."""
    shown, expected = _compare(counts, sizes, coverage)
    return _scale(counts, sizes) * (shown - expected)


def _scale(counts: BoxCounts, sizes: Sizes) -> float:
    return 100 * sizes.N_d / max(len(counts.others) * min(sizes.N_d, sizes.N_s), 1)


def _compare(counts: BoxCounts, sizes: Sizes, coverage: OwnCoverage | None) -> tuple[int, float]:
    """Return the number of people shown, and of those expected to be."""
    fresh = _Fresh.count(counts.others, sizes)
    covered = 1.0 if coverage is None else coverage.share()
    by_others = fresh.people * float(fresh.expect(fresh.pairs, covered))
    shown = int(np.count_nonzero((counts.others == 0) & counts.shown))
    return shown, max(by_others, _shown_by_model(counts))


def _shown_by_model(counts: BoxCounts) -> float:
    return max(sum_exactly(counts.by_columns), sum_exactly(counts.by_values))


Numbers = TypeVar("Numbers", float, Floats)


@lru_cache
def _weigh_terms(t: float) -> list[float]:
    """Return what people with 1, 2, … others in their box add to the people shown by t times as many."""
    return [-((-t) ** k) * weight for k, weight in enumerate(_EULER, start=1)]


@dataclass(frozen=True)
class _Fresh:
    """The people in a fresh table, by the number of `pairs`: people with one other in their box.

    at_once: people shown by as many other people (at most N_d), from the observed `pairs`; per_pair: what a
    further pair adds to it. looked_at: the part of all people that were looked at.
    """

    people: float
    alone: float
    pairs: float
    at_once: float
    per_pair: float
    t: float
    looked_at: float

    @classmethod
    def count(cls, others: IntArray, sizes: Sizes) -> _Fresh:
        people = len(others)
        t = sizes.N_s / sizes.N_d
        with_k = np.bincount(np.minimum(others, _TERMS + 1), minlength=_TERMS + 2)[1 : _TERMS + 1]
        terms, numbers = _weigh_terms(min(t, 1.0)), with_k.tolist()
        at_once = math.fsum(term * number for term, number in zip(terms, numbers, strict=True))
        variance = math.fsum(term**2 * number for term, number in zip(terms, numbers, strict=True))
        pairs = numbers[0]
        # Other terms vary, too: the pairs stand for all of them.
        per_pair = math.sqrt(variance / pairs) if pairs else max(terms[0], math.sqrt(variance))
        looked_at = min(people / sizes.N_d, 1.0)
        return cls(people, int(np.count_nonzero(others == 0)), pairs, at_once, per_pair, t, looked_at)

    def divide(self, records_per_unit: float) -> _Fresh:
        """Return the numbers in people: records divided by `records_per_unit`."""
        people, alone = self.people / records_per_unit, self.alone / records_per_unit
        pairs, at_once = self.pairs / records_per_unit, self.at_once / records_per_unit
        return replace(self, people=people, alone=alone, pairs=pairs, at_once=at_once)

    def expect(self, pairs: Numbers, covered: float = 1.0) -> Numbers:
        """Return the share of the people whom a fresh table shows if there were so many pairs on average."""
        if not self.alone:
            return 0.0 * pairs
        alone = self.alone / self.people
        smoothed = np.maximum(self.at_once + self.per_pair * (pairs - self.pairs), 0.0) / self.people
        if self.t > 1:
            smoothed = alone * (1.0 - np.maximum(1 - smoothed / alone, 0.0) ** self.t)
        highest = -alone * np.expm1(-self.t * pairs / self.alone)
        expected: Numbers = np.minimum(np.minimum(smoothed, highest), alone * covered)
        return expected


def _most_shown(fresh: _Fresh, by_model: float, coverage: OwnCoverage | None, level: float) -> float:
    """Return the number of people whom a safe table shows with the chance `level`: see `people_copied`.

    If all people are looked at, two of a pair count each other: half of them are independent.
    """
    if not fresh.alone:
        return 0.0
    of_both = level / (1 - math.log(level))
    covered = 1.0 if coverage is None else coverage.highest(level)
    shared = 1 + fresh.looked_at
    most = most_found_given_pairs(
        fresh.pairs / shared,
        lambda pairs: fresh.people * fresh.expect(pairs * shared, covered),
        math.ceil(fresh.alone),
        of_both,
    )
    return max(most, highest_count(by_model, level))


def chance_of_columns(in_columns: Floats, N_s: int) -> Floats:
    """Return the chance that SD, with its columns permuted, has a record in the box of each person.

    `in_columns`: SD records in the box on each column alone (shape: columns, people).

    >>> chance_of_columns(np.array([[5.0], [1.0]]), 10).tolist()
    [0.5]
    """
    shares = in_columns / N_s
    rarest = shares.argmin(axis=0)
    people = np.arange(shares.shape[1])
    few = in_columns[rarest, people]
    others = shares.copy()
    others[rarest, people] = 1.0
    return _at_least_once(others.prod(axis=0), few)


def chance_of_values(near: IntArray, matching: IntArray, records: IntArray) -> Floats:
    """Return the chance that SD shows each person if it kept the person's most identifying number.

    near: other people within the largest tolerance of that number; matching: those of them whose other
    columns match; records: SD records with that number.
    """
    return _at_least_once(matching / np.maximum(near, 1), records)


def _at_least_once(chance: Floats, tries: Floats | IntArray) -> Floats:
    with np.errstate(divide="ignore"):  # certain if the chance is 1
        missed = np.where(tries > 0, tries, 1) * np.log1p(-np.minimum(chance, 1.0))
    result: Floats = np.where(tries > 0, -np.expm1(missed), 0.0)
    return result


ONE_OF_TWENTY = NormalDist().inv_cdf(0.95)


LIMITS = ("detection_limit", "detection_limit_nearly")
"""The figures that say how much could go unnoticed."""


def detection_limit(
    figures: Found, others: IntArray, sizes: Sizes, bound: float, records_per_unit: float = 1
) -> float:
    """Return the percent of people whom a table may show, beyond a fresh one, and pass once in 20 tables.

    Args:
        figures: The figures that are held against the bound.
        others: For some people, the number of other people in the box by the same columns and tolerance.
        sizes: All GT and SD records.
        bound: The largest `found` that is allowed.
        records_per_unit: Records per person, which reduces the number of independent people.

    Let b be how far the figures' expectation lies above G, that of a fresh table, and s(L) the error of the
    difference of shown and expected people if L percent are shown beyond G. Once in 20 times a table passes
    at

        L = b + max(bound, found_by_chance) + 1.645 s(L).

    Only lone people can be shown: L is at most the share of them that a fresh table leaves, and 0 if there
    are none.

    It holds over GTs of the same population: 19 of 20 tables that show L are refused. For the tables of one
    GT alone it is off by the error of G, which s allows for: by up to a third of L, in either direction,
    where G rests on few people.

    Source: this project's own.
    """
    if not len(others) or not sizes.N_s or not math.isfinite(figures.expected):
        return math.nan
    fresh = _Fresh.count(others, sizes)
    share = min(sizes.N_s / sizes.N_d, 1.0)
    threshold = share * max(bound, figures.found_by_chance) / 100
    limit = _find_limit(threshold, figures, fresh, sizes, records_per_unit)
    return min(100 * limit, figures.alone)  # which the rounding of a share may exceed


def detection_limit_of_copies(
    people: Found,
    records: Found,
    others: IntArray,
    sizes: Sizes,
    bound: float,
    records_per_unit: float = 1,
) -> float:
    """Return the percent of people whom a table may show unchanged and pass once in 20 tables.

    A table passes if neither the people shown (`people`, in percent of them) nor the records that show one
    person (`records`, in percent of SD's) are more than allowed: the smaller of both limits counts. Of a
    fresh table's records the share h_1 shows one person, of copies the share f1 (lone people): so copies are
    noticed from the share c of SD's records on,

        c (f1 - h_1) = b + max(bound, found_by_chance) + 1.645 s,

    and show c N_s/N_d (f1 - G) of the people. Other arguments: see `detection_limit`.
    """
    if not len(others) or not sizes.N_s or not math.isfinite(people.expected + records.expected):
        return math.nan
    fresh = _Fresh.count(others, sizes)
    threshold = max(bound, people.found_by_chance) / 100
    of_people = _find_limit(threshold, people, fresh, sizes, records_per_unit)
    hit = fresh.pairs / fresh.people
    if people.alone / 100 <= hit:
        return 100 * of_people
    # As of people copied: Good's estimate 2 f2/N of the hits has the variance (4 f2 + 6 f3)/N².
    of_three = int(np.count_nonzero(others == 2)) / len(others)  # noqa: PLR2004 (two others)
    variance = hit * (1 - hit) / sizes.N_s + 2 * (max(hit, 2 / sizes.N_d) + of_three) / sizes.N_d
    noticed = max(records.expected / 100 - hit, 0.0) + max(bound, records.found_by_chance) / 100
    noticed += ONE_OF_TWENTY * math.sqrt(variance * records_per_unit)
    copies = noticed / (people.alone / 100 - hit) * sizes.N_s / sizes.N_d
    return 100 * min(of_people, copies * (people.alone / 100 - _expect_shown(people, fresh)))


def _expect_shown(figures: Found, fresh: _Fresh) -> float:
    """Return the share of people whom a fresh table shows: of lone people as many as of those counted."""
    return figures.alone / 100 * float(fresh.expect(fresh.pairs)) * fresh.people / max(fresh.alone, 1)


def _find_limit(
    allowed: float, figures: Found, fresh: _Fresh, sizes: Sizes, records_per_unit: float
) -> float:
    """Return the share of people who are shown where a table exceeds what is allowed in 19 of 20 cases."""
    G = _expect_shown(figures, fresh)
    most = max(figures.alone / 100 - G, 0.0)
    threshold = max(figures.expected / 100 - G, 0.0) + allowed
    drawn = 1 - min(figures.people / sizes.N_d, 1.0)
    independent = figures.people / records_per_unit
    of_expected = _variance_of_expected(fresh) * records_per_unit
    if threshold >= most:
        return most
    # limit = threshold + z sqrt(error + of_copied limit (1 - limit)), solved for the limit. Whoever is copied
    # is no matter of chance where everybody is looked at.
    error, of_copied = G * (1 - G) / independent + of_expected, drawn / independent
    squared = ONE_OF_TWENTY**2
    scale, half = 1 + squared * of_copied, threshold + squared * of_copied / 2
    root = (half + math.sqrt(max(half**2 - scale * (threshold**2 - squared * error), 0.0))) / scale
    return min(root, most)


def _variance_of_expected(fresh: _Fresh) -> float:
    """Return the variance of the share that a fresh table is expected to show: the number of pairs varies."""
    shared = 1 + fresh.looked_at
    spread = math.sqrt(max(fresh.pairs, 1) * shared)
    return float(fresh.expect(fresh.pairs + spread) - fresh.expect(fresh.pairs)) ** 2


_WORDS = words_of_fields(Found)

FIGURES = (
    Figure(
        "found",
        _WORDS["shown"],
        Place(
            "found",
            value="shown",
            others="expected",
            beyond="found",
            by_chance="found_by_chance",
            beyond_chance="found_beyond_chance",
        ),
        "copied",
        about="way",
        statistics=("beyond",),
        beyond=_WORDS["found"],
        also=("released_found",),
        weighed=place_beyond(
            "population",
            "people_copied",
            WEIGHTED,
            others="people_copied_expected_weighted",
            about=WHOLE,
        ),
        default=Default(
            "beyond",
            USUAL_BOUNDS[NEARLY],
            "Percentage points of the people whom nobody else stands near and whom SD shows, beyond those in "
            "a fresh table of SD's size",
            by_way={
                WHOLE: USUAL_BOUNDS[WHOLE],
                ALL_BUT_ONE: 7,
                IN_PIECES: 30,
                NEARLY_IN_PIECES: 15,
                IN_PART_OF_A_NUMBER: 30,
            },
        ),
        is_per_confidential_table=True,
        public="unit",
    ),
    Figure(
        "detection_limit",
        Words(
            "detection limit",
            "People whose records a table of this size could hold, unchanged, and be approved once in 20 "
            "times.",
            finding="the gate would have noticed if {value} of the people were in the table",
            subject="people whose records could go unnoticed",
        ),
        Place("guards", value="detection_limit"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        may_be_waived=True,
        meaning=(
            "More published columns, fewer groups or more people would make copies stand out; lower bounds "
            "of found help where the table is large"
        ),
        default=Default(
            "at_most",
            10,
            "Percent of the people whose records a table could hold, unchanged, and be approved in more than "
            "1 of 20 cases. Beyond this, an approval says little, so a candidate cannot be judged",
        ),
        public="share",
    ),
    Figure(
        "detection_limit_nearly",
        Words(
            "detection limit of near copies",
            "People whose records a table of this size could hold, with numbers moved by at most 1 %, and be "
            "approved once in 20 times.",
            finding="the gate would have noticed if {value} of the people were in the table, with their "
            "numbers moved by at most 1 %",
            subject="people whose nearly unchanged records could go unnoticed",
        ),
        Place("guards", value="detection_limit_nearly"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        may_be_waived=True,
        meaning=(
            "More published columns, fewer groups or more people would make near copies stand out; so would "
            "a lower bound of found: {nearly: …}"
        ),
        public="share",
    ),
)
