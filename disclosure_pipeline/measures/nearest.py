"""The nearest records: the share of GT records to which SD is nearer than others are, and guesses by them.

Nearness is this project's own. A fresh sample as large as the others is nearer to half of the records, and
much nearer to as many as the others are: exchange both, and the figure changes its sign.

Who is nearest votes, and the level with most votes is guessed. Source: Hittmeir, Mayer & Ekelhart 2020, "A
baseline for attribute disclosure risk in synthetic data" (CODASPY). The share of the votes that a record's
own level has is its score, the generalized correct attribution probability: its mean is 1 - `cap_protection`
of the method "generalized_cap". The guess by other people's records in place of SD is this project's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from disclosure_pipeline.measures.baselines import standard_error, sum_of_squares
from disclosure_pipeline.measures.exact import ONE, Floats, IntArray, Mask, percent, sum_of_quotients, total
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, combine_keys, count_up, first_of_run
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.samples import in_integers, wilson
from disclosure_pipeline.measures.words import RECORDS, WILSON, figure, interval_end, neutral, points


@dataclass(frozen=True)
class Nearness:
    """nearer: percent of so many GT `records`, and its interval of 95 % for all of them.

    much_nearer: percentage points.
    """

    nearer: float = figure(
        "nearer to the synthetic table than to each other",
        "This many people are more like some synthetic record than like any other person; a "
        "fresh sample would be nearer for half of them.",
        denominator="confidential records looked at",
        finding="{value} of the people are nearer to a synthetic record than to any other person",
        subject="people nearer to a synthetic record",
    )
    nearer_low: float = interval_end(
        "nearer",
        "lower",
        denominator="confidential records looked at",
        source=WILSON,
    )
    nearer_high: float = interval_end(
        "nearer",
        "upper",
        denominator="confidential records looked at",
        source=WILSON,
    )
    much_nearer: float = points(
        "much nearer to the synthetic table than to each other",
        "A synthetic record is at half the distance of the nearest other person, or less, for this many "
        "more people than the other way round; a fresh sample shows 0.",
        finding="the share of people much nearer to a synthetic record than to any other person is "
        "{value} higher than the other way round",
        subject="people much nearer to a synthetic record",
    )
    much_nearer_either_way: float = neutral(
        "much nearer to the synthetic table, or to each other",
        "For this many people one of both is at half the distance of the other, or less.",
        denominator="confidential records looked at",
    )
    records: int = neutral("records looked at", "This many confidential records were looked at.", RECORDS)


def nearness(to_SD: IntArray, to_others: IntArray) -> Nearness:
    """Compute from GT records' distances to the nearest SD record and to the nearest other GT record.

    Records that are as near to the one as to the other count half.
    """
    records = len(to_SD)
    twice = 2 * int(np.count_nonzero(to_SD < to_others)) + int(np.count_nonzero(to_SD == to_others))
    low, high = wilson(twice / 2, records)
    to_synthetic = (to_SD < to_others) & (to_SD <= to_others // 2)
    to_people = (to_others < to_SD) & (to_others <= to_SD // 2)
    much_nearer, much_farther = np.count_nonzero(to_synthetic), np.count_nonzero(to_people)
    return Nearness(
        percent(twice, 2 * records),
        100 * low,
        100 * high,
        percent(much_nearer - much_farther, records),
        percent(much_nearer + much_farther, records),
        records,
    )


CLOSER = (2, 4, 8, 16)
"""A record that is so many times nearer than any other person is looked for, whoever is the nearest."""


@dataclass(frozen=True)
class DistancesToParts:
    """The distances of records to the nearest ones of SD, and of two parts of the GT records (one a record).

    Records are in none of the three.
    """

    to_SD: IntArray
    to_part: IntArray
    to_other_part: IntArray

    def share_much_nearer(self, closer: int) -> float:
        """Return the share of the records to which SD is so many times nearer than a part is."""
        return _mean_of_both(self.to_SD, self.to_SD, self.to_part, self.to_other_part, closer)

    def share_of_parts(self, closer: int) -> float:
        """Return the share of the records to which one part is so many times nearer than the other."""
        return _mean_of_both(self.to_other_part, self.to_part, self.to_part, self.to_other_part, closer)


def _mean_of_both(
    near: IntArray, other_near: IntArray, far: IntArray, other_far: IntArray, closer: int
) -> float:
    hits = [(a < b) & (a <= b // closer) for a, b in ((near, far), (other_near, other_far))]
    return sum(int(np.count_nonzero(of_part)) for of_part in hits) / (2 * len(near))


def near_copies(
    people: DistancesToParts, synthetic: DistancesToParts, times: float, units: float, comparisons: int
) -> tuple[float, float]:
    """Return the points of people with a near copy in SD beyond a fresh table, and how far chance takes them.

    However many records SD has: of all of them the nearest counts. `people` are the distances of GT records,
    `synthetic` of SD records, whose distance to SD is that to the others. SD has `times` as many records as a
    part has. `units`: so many independent people are looked at, and as many decide what is near.

    A person has a near copy if an SD record is at a half (quarter, eighth, sixteenth) of the distance of the
    nearest person of a part, or less. If g is the share of those to whom one part is so much nearer than the
    other, SD is as many chances as it has times the records: of a fresh one it is 1 - (1 - g)^times at most,
    by Jensen's inequality. And were SD fresh, it would be as near to a new person as SD records are to one
    another. The smaller is expected. Of the four fractions the one that is furthest beyond chance is told.

    >>> far, near = np.full(100, 100), np.full(100, 1)
    >>> near_copies(DistancesToParts(near, far, far), DistancesToParts(far, far, far), 60, 100, 1)[0]
    100.0

    Source: this project's own; the interval is Wilson's.
    """
    confidence = 1 - 1 / (ONCE_IN * comparisons * len(CLOSER))
    found = []
    for closer in CLOSER:
        share = people.share_much_nearer(closer)
        of_part, of_SD = people.share_of_parts(closer), synthetic.share_much_nearer(closer)
        expected = min(_at_least_once(of_part, times), of_SD)
        highest = min(
            _at_least_once(wilson(of_part * units, units, confidence)[1], times),
            wilson(of_SD * units, units, confidence)[1],
        )
        lowest = wilson(share * units, units, confidence)[0]
        beyond, by_chance = share - expected, (highest - expected) + (share - lowest)
        found.append((beyond > by_chance, beyond, by_chance))
    _, beyond, by_chance = max(found)
    return 100 * beyond, 100 * by_chance


def _at_least_once(share: float, times: float) -> float:
    return 1.0 if share >= 1 else 0.0 - math.expm1(times * math.log1p(-share))


def twice_mid_ranks(counts: IntArray) -> IntArray:
    """Return twice the mid-rank of each value, from the ordered numbers of records: whole numbers."""
    up_to = np.cumsum(counts)
    return 2 * (up_to - counts) + counts + 1


_AT_A_TIME = 1 << 22  # entries of a table of votes, or of distances
_EQUALLY_NEAR = 1e-9  # sums of a few quotients differ by less where they are equal


@dataclass(frozen=True)
class Votes:
    """The votes of the nearest records on the GT records, one entry per cell (q, t) of GT.

    `d` GT records. `pool` records are nearest to their q, of which `right` have their t; `levels` levels have
    the most votes, and `is_named` says whether t is among these. `distance` to the nearest. Where there is no
    record at all, pool, right and levels are 0, and distance is NaN.
    """

    d: IntArray
    right: IntArray
    pool: IntArray
    levels: IntArray
    is_named: Mask
    distance: Floats


@dataclass(frozen=True)
class NearestGuesses:
    """Percent of the GT records: right guesses, the mean score, and those whose very keys are found."""

    accuracy: float = figure(
        "guessed from the nearest records",
        "Of so many people the target is guessed rightly from the synthetic records that are most like them.",
        source="nearest-neighbour attribution",
    )
    score: float = figure(
        "votes of the nearest records",
        "The mean share of the most similar synthetic records that have a person's own target.",
    )
    same_keys: float = neutral(
        "same keys found", "This many people have keys that some synthetic record has."
    )


def nearest_guesses(votes: Votes) -> NearestGuesses:
    """Guess the level with most votes; several such are guessed equally often. NaN without GT records."""
    records = total(votes.d)
    named = np.where(votes.is_named, votes.d, 0)
    return NearestGuesses(
        accuracy=percent(sum_of_quotients(named, np.maximum(votes.levels, 1)), records * ONE),
        score=percent(sum_of_quotients(votes.d * votes.right, np.maximum(votes.pool, 1)), records * ONE),
        same_keys=percent(total(votes.d, votes.distance == 0), records),
    )


def errors_of_nearest_guesses(f: FrequencyTable, by_SD: Votes, by_others: Votes) -> dict[str, float]:
    """Return the standard errors of accuracy and score beyond the others', in percent of the GT records.

    Both votes are on the GT cells of `f`. See `baselines.standard_error`: in a fresh sample what the people
    of a q add is 0 on average.
    """
    cells = np.flatnonzero(f.d)
    first = np.flatnonzero(first_of_run(f.q[cells]))

    def error(shares: Floats, of_others: Floats) -> float:
        added = (in_integers(shares) - in_integers(of_others)) * f.d[cells]
        return standard_error(sum_of_squares(np.add.reduceat(added, first)), f.N_d)

    right, right_of_others = (votes.is_named / np.maximum(votes.levels, 1) for votes in (by_SD, by_others))
    score, score_of_others = (votes.right / np.maximum(votes.pool, 1) for votes in (by_SD, by_others))
    return {"accuracy": error(right, right_of_others), "score": error(score, score_of_others)}


def find_votes(f: FrequencyTable, keys: Keys, numbers: Sequence[Floats | None], *, of_others: bool) -> Votes:
    """Return how the nearest SD records, or the nearest other GT records, vote on every GT record.

    `numbers[k]` holds the place of each level of key k on a line from 0 to 1, NaN for what has none; None for
    a key whose levels are equal or not. The distance is the sum over the keys of the difference of places, or
    of 0 and 1. `f` and `keys` are of one GT and one SD.
    """
    r, leave_out_self = f.d if of_others else f.s, of_others
    cells = np.flatnonzero(f.d)
    votes = _votes_of_same_key(f, cells, r, leave_out_self=leave_out_self)
    lonely = np.flatnonzero(votes.pool == 0)
    person = f.q[cells[lonely]]
    persons = np.unique(person)
    voters = _Voters.from_table(f, r)
    if not len(persons) or not len(voters.q) or (leave_out_self and f.N_d == 1):
        return votes
    search = _nearest_on_lines if any(of_key is not None for of_key in numbers) else _nearest_by_keys
    t = f.t[cells[lonely]]
    for chunk, distance, table in search(voters, persons, keys, numbers, leave_out_self=leave_out_self):
        first, last = np.searchsorted(chunk, person), np.searchsorted(chunk, person, side="right")
        with_voters = np.flatnonzero(last > first)
        row, at = first[with_voters], lonely[with_voters]
        most = table.max(axis=1)
        votes.right[at] = table[row, t[with_voters]]
        votes.pool[at] = table.sum(axis=1)[row]
        votes.levels[at] = (table == most[:, None]).sum(axis=1)[row]
        votes.is_named[at] = votes.right[at] == most[row]
        votes.distance[at] = distance[row]
    return votes


def _votes_of_same_key(f: FrequencyTable, cells: IntArray, r: IntArray, *, leave_out_self: bool) -> Votes:
    own = 1 if leave_out_self else 0
    most = f.at_cells(f.largest_by_q(r))
    pool = f.at_cells(f.sum_by_q(r), cells) - own
    with_most = f.at_cells(f.sum_by_q(r == most), cells)
    right, levels = r[cells] - own, with_most
    is_named = right == most[cells]
    if leave_out_self:  # the own level is named if no other one has more, those of one vote less among them
        behind = f.at_cells(f.sum_by_q(r == most - 1), cells)
        is_named = (r[cells] == most[cells]) & (with_most == 1)
        levels = np.where(is_named, 1 + behind, levels)
    has_votes = pool > 0
    return Votes(
        d=f.d[cells],
        right=np.where(has_votes, right, 0),
        pool=pool,
        levels=np.where(has_votes, levels, 0),
        is_named=is_named & has_votes,
        distance=np.where(has_votes, 0.0, np.nan),
    )


@dataclass(frozen=True)
class _Voters:
    """The cells (q, t) that vote, in order of q, with so many `votes`; `targets` levels in all."""

    q: IntArray
    t: IntArray
    votes: IntArray
    targets: int

    @classmethod
    def from_table(cls, f: FrequencyTable, r: IntArray) -> _Voters:
        cells = np.flatnonzero(r)
        return cls(f.q[cells], f.t[cells], r[cells], f.targets)

    def grouped(self, group: IntArray) -> _Voters:
        """Return the votes of each group of cells (shape: cells) in place of those of each q."""
        cell = group * self.targets + self.t
        order = np.argsort(cell, kind="stable")
        first = np.flatnonzero(np.concatenate(([True], np.diff(cell[order]) != 0)))
        q, t = np.divmod(cell[order][first], self.targets)
        return _Voters(q, t, np.add.reduceat(self.votes[order], first), self.targets)

    def add_to(self, table: IntArray, row: IntArray, q: IntArray) -> None:
        """Add the votes of q[i] to row[i] of a table (shape: rows, targets)."""
        first, last = np.searchsorted(self.q, q), np.searchsorted(self.q, q, side="right")
        number = last - first
        cell = np.repeat(first, number) + count_up(number)
        np.add.at(table, (np.repeat(row, number), self.t[cell]), self.votes[cell])


def _nearest_by_keys(
    voters: _Voters,
    persons: IntArray,
    keys: Keys,
    _numbers: Sequence[Floats | None],
    *,
    leave_out_self: bool,
) -> Iterator[tuple[IntArray, Floats, IntArray]]:
    """Return some of the persons' q, the distance to the nearest, and their votes (shape: persons, targets).

    Who differs in h keys agrees in exactly one set of the others: where nobody is nearer, the votes are the
    sums over these sets of the votes of those who agree in them.
    """
    levels = [keys.level_of(k) for k in range(len(keys.levels))]
    for h in range(1, len(levels) + 1):
        groups = []
        pool = np.full(len(persons), -comb(len(levels), h) if leave_out_self else 0)
        for kept in combinations(range(len(levels)), len(levels) - h):
            columns = [(level[persons], level[voters.q]) for level in (levels[k] for k in kept)]
            everybody = (np.zeros_like(persons), np.zeros_like(voters.q))  # of no keys
            sizes = [keys.levels[k] for k in kept]
            of_person, of_voter = combine_keys(columns or [everybody], sizes or [1]).q
            grouped = voters.grouped(of_voter)
            sums = np.zeros(int(max(of_person.max(), of_voter.max())) + 1, dtype=np.int64)
            np.add.at(sums, grouped.q, grouped.votes)
            pool += sums[of_person]
            groups.append((of_person, grouped))
        with_votes = np.flatnonzero(pool > 0)
        step = max(1, _AT_A_TIME // voters.targets)
        for start in range(0, len(with_votes), step):
            chunk = with_votes[start : start + step]
            table = np.zeros((len(chunk), voters.targets), dtype=np.int64)
            for of_person, grouped in groups:
                grouped.add_to(table, np.arange(len(chunk)), of_person[chunk])
            if leave_out_self:
                # Each person is the only one of its q.
                own = voters.t[np.searchsorted(voters.q, persons[chunk])]
                table[np.arange(len(chunk)), own] -= comb(len(levels), h)
            yield persons[chunk], np.full(len(chunk), float(h)), table
        persons = persons[pool == 0]
        if not len(persons):
            return


def _nearest_on_lines(
    voters: _Voters,
    persons: IntArray,
    keys: Keys,
    numbers: Sequence[Floats | None],
    *,
    leave_out_self: bool,
) -> Iterator[tuple[IntArray, Floats, IntArray]]:
    """Return the same where some keys are numbers: each q of a person is compared with each q of a voter."""
    q = np.unique(voters.q)
    step = max(1, _AT_A_TIME // max(len(q), voters.targets))
    for start in range(0, len(persons), step):
        chunk = persons[start : start + step]
        distance = np.zeros((len(chunk), len(q)))
        for k, place in enumerate(numbers):
            level = keys.level_of(k)
            own, other = level[chunk][:, None], level[q][None, :]
            apart = (own != other).astype(np.float64)
            if place is not None:
                on_line = np.abs(place[own] - place[other])
                apart = np.where(np.isnan(on_line), apart, on_line)
            distance += apart
        if leave_out_self:
            distance[chunk[:, None] == q[None, :]] = np.inf
        nearest = distance.min(axis=1)
        row, at = np.nonzero(distance <= nearest[:, None] + _EQUALLY_NEAR)
        table = np.zeros((len(chunk), voters.targets), dtype=np.int64)
        voters.add_to(table, row, q[at])
        yield chunk, nearest, table
