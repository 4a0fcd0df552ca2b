"""Nearest records: how often SD is nearer to a GT record than other people are, and guesses from the nearest.

Nearness is this project's own. A fresh sample as large as the others is nearer to half of the records, and
much nearer to as many records as the others are, so its expected `much_nearer` is 0.

The nearest records vote, and the level with most votes is guessed (Hittmeir, Mayer & Ekelhart 2020, "A
baseline for attribute disclosure risk in synthetic data", CODASPY). A record's score is the share of the
votes for its own level, its generalized correct attribution probability; the mean score is
1 - `cap_protection` of "generalized_cap". Guessing from other people's records is this project's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from disclosure_pipeline.measures.baselines import standard_error, sum_of_squares
from disclosure_pipeline.measures.exact import (
    SCALE,
    Floats,
    IntArray,
    Mask,
    percent,
    sum_by_position,
    sum_quotients,
    total,
)
from disclosure_pipeline.measures.frequency import (
    FrequencyTable,
    Keys,
    aranges,
    combine_keys,
    first_of_run,
)
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.samples import to_integer_chances, wilson
from disclosure_pipeline.measures.words import RECORDS, WILSON, figure, interval_end, neutral, points

_LOOKED_AT = "confidential records looked at"


@dataclass(frozen=True)
class Nearness:
    """Percent of the GT `records` looked at, `nearer` with its 95 % interval; `much_nearer` in points."""

    nearer: float = figure(
        "nearer to the synthetic table than to each other",
        "People who are more similar to some synthetic record than to any other person; half of them for a "
        "fresh sample.",
        denominator=_LOOKED_AT,
        finding="{value} of the people are nearer to a synthetic record than to any other person",
        subject="people nearer to a synthetic record",
    )
    nearer_low: float = interval_end("nearer", "lower", denominator=_LOOKED_AT, source=WILSON)
    nearer_high: float = interval_end("nearer", "upper", denominator=_LOOKED_AT, source=WILSON)
    much_nearer: float = points(
        "much nearer to the synthetic table than to each other",
        "For how many more people a synthetic record is at most at half the distance of the nearest other "
        "person than the other way round; 0 for a fresh sample.",
        finding="the share of people much nearer to a synthetic record than to any other person is "
        "{value} higher than the other way round",
        subject="people much nearer to a synthetic record",
    )
    much_nearer_either_way: float = neutral(
        "much nearer to the synthetic table, or to each other",
        "People for whom one of both is at most at half the distance of the other.",
        denominator=_LOOKED_AT,
    )
    records: int = neutral("records looked at", "Confidential records that were looked at.", RECORDS)


def nearness(to_SD: IntArray, to_others: IntArray) -> Nearness:
    """Compute from the distances of GT records to the nearest SD record and to the nearest other GT record.

    Ties count half.
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
"""How many times nearer than any other person a near copy is; each factor is tried."""


@dataclass(frozen=True)
class DistancesToParts:
    """Distances of records to the nearest record of SD and of two parts of GT, none of which holds them."""

    to_SD: IntArray
    to_part: IntArray
    to_other_part: IntArray

    def share_much_nearer(self, closer: int) -> float:
        """Return the share of the records to which SD is `closer` times nearer than a part is."""
        return _share_much_nearer_than_parts(self.to_SD, self.to_SD, self.to_part, self.to_other_part, closer)

    def share_of_parts(self, closer: int) -> float:
        """Return the share of the records to which one part is `closer` times nearer than the other."""
        return _share_much_nearer_than_parts(
            self.to_other_part, self.to_part, self.to_part, self.to_other_part, closer
        )


def _share_much_nearer_than_parts(
    near: IntArray, other_near: IntArray, far: IntArray, other_far: IntArray, closer: int
) -> float:
    hits = [(a < b) & (a <= b // closer) for a, b in ((near, far), (other_near, other_far))]
    return sum(int(np.count_nonzero(is_hit)) for is_hit in hits) / (2 * len(near))


def near_copies(
    people: DistancesToParts, synthetic: DistancesToParts, times: float, units: float, comparisons: int
) -> tuple[float, float]:
    """Return the percentage points of people with a near copy beyond a fresh table, and the limit by chance.

    `people` are the distances of GT records, of `units` independent people; `synthetic` those of SD records,
    to the other SD records. SD has `times` as many records as a part. `comparisons`: number of distances.

    A person has a near copy if an SD record is at most at half (a quarter, an eighth, a sixteenth) of the
    distance of the nearest person of a part. Let g be the share of people to whom one part is that much
    nearer than the other. A fresh SD then has at most 1 - (1 - g)^times, by Jensen's inequality; it is also
    as near to a new person as SD records are to one another. The smaller of both is expected. Of the four
    fractions, the one with the largest difference is returned, preferably one beyond chance.

    >>> far, near = np.full(100, 100), np.full(100, 1)
    >>> near_copies(DistancesToParts(near, far, far), DistancesToParts(far, far, far), 60, 100, 1)[0]
    100.0

    Source: this project's own; the interval is Wilson's.
    """
    confidence = 1 - 1 / (ONCE_IN * comparisons * len(CLOSER))
    by_factor = []
    for closer in CLOSER:
        share = people.share_much_nearer(closer)
        part_share, SD_share = people.share_of_parts(closer), synthetic.share_much_nearer(closer)
        expected = min(_at_least_once(part_share, times), SD_share)
        highest = min(
            _at_least_once(wilson(part_share * units, units, confidence)[1], times),
            wilson(SD_share * units, units, confidence)[1],
        )
        lowest = wilson(share * units, units, confidence)[0]
        beyond, by_chance = share - expected, (highest - expected) + (share - lowest)
        by_factor.append((beyond > by_chance, beyond, by_chance))
    _, beyond, by_chance = max(by_factor)
    return 100 * beyond, 100 * by_chance


def _at_least_once(share: float, times: float) -> float:
    return 1.0 if share >= 1 else 0.0 - math.expm1(times * math.log1p(-share))


def twice_mid_ranks(counts: IntArray) -> IntArray:
    """Return twice the mid-rank of each value (integers), from the number of records with each, in order."""
    up_to = np.cumsum(counts)
    return 2 * (up_to - counts) + counts + 1


_AT_A_TIME = 1 << 22  # entries of a table of votes, or of distances
_EQUALLY_NEAR = 1e-9  # sums of a few quotients differ by less where they are equal


@dataclass(frozen=True)
class Votes:
    """The votes of the nearest records on the target of GT records, one entry per cell (q, t) of GT.

    d: GT records of the cell. pool: records nearest to its q. right: those of them with its t.
    levels: number of levels with the most votes. is_named: whether t is one of them.
    distance: to the nearest record.

    If there is no record to vote, pool, right and levels are 0 and distance is NaN.
    """

    d: IntArray
    right: IntArray
    pool: IntArray
    levels: IntArray
    is_named: Mask
    distance: Floats


@dataclass(frozen=True)
class NearestGuesses:
    """Percent of the GT records: correct guesses, mean score, and records whose q is found."""

    accuracy: float = figure(
        "guessed from the nearest records",
        "People whose target is guessed correctly from the synthetic records that are most similar to them.",
        source="nearest-neighbour attribution",
    )
    score: float = figure(
        "votes of the nearest records",
        "The mean share of the most similar synthetic records that have a person's own target.",
    )
    same_keys: float = neutral("same keys found", "People whose keys some synthetic record has.")


def nearest_guesses(votes: Votes) -> NearestGuesses:
    """Guess the level with most votes, each of several equally often. NaN without GT records."""
    records = total(votes.d)
    named = np.where(votes.is_named, votes.d, 0)
    return NearestGuesses(
        accuracy=percent(sum_quotients(named, np.maximum(votes.levels, 1)), records * SCALE),
        score=percent(sum_quotients(votes.d * votes.right, np.maximum(votes.pool, 1)), records * SCALE),
        same_keys=percent(total(votes.d, votes.distance == 0), records),
    )


def errors_of_nearest_guesses(f: FrequencyTable, by_SD: Votes, by_others: Votes) -> dict[str, float]:
    """Return the standard errors of accuracy and score minus the others', in percent of the GT records.

    Both votes are on the GT cells of `f`. See `baselines.standard_error`.
    """
    cells = np.flatnonzero(f.d)
    first = np.flatnonzero(first_of_run(f.q[cells]))

    def error(shares: Floats, others_shares: Floats) -> float:
        added = (to_integer_chances(shares) - to_integer_chances(others_shares)) * f.d[cells]
        return standard_error(sum_of_squares(np.add.reduceat(added, first)), f.N_d)

    right, right_of_others = (votes.is_named / np.maximum(votes.levels, 1) for votes in (by_SD, by_others))
    score, score_of_others = (votes.right / np.maximum(votes.pool, 1) for votes in (by_SD, by_others))
    return {"accuracy": error(right, right_of_others), "score": error(score, score_of_others)}


def find_votes(
    f: FrequencyTable, keys: Keys, numbers: Sequence[Floats | None], *, from_others: bool
) -> Votes:
    """Return how the nearest SD records, or the nearest other GT records, vote on every GT record.

    `numbers[k]` holds the levels of key k scaled to 0..1, NaN for a level that is no number; it is None for a
    categorical key. The distance is the sum over the keys of |difference|, or of 0 (equal levels) and 1.
    `f` and `keys` are of one GT and one SD.
    """
    r, leave_out_self = f.d if from_others else f.s, from_others
    cells = np.flatnonzero(f.d)
    votes = _votes_of_same_key(f, cells, r, leave_out_self=leave_out_self)
    lonely = np.flatnonzero(votes.pool == 0)
    person = f.q[cells[lonely]]
    persons = np.unique(person)
    voters = _Voters.from_table(f, r)
    if not len(persons) or not len(voters.q) or (leave_out_self and f.N_d == 1):
        return votes
    search = _nearest_by_numbers if any(of_key is not None for of_key in numbers) else _nearest_by_keys
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
    own = int(leave_out_self)
    most = f.at_cells(f.largest_by_q(r))
    pool = f.at_cells(f.sum_by_q(r), cells) - own
    with_most = f.at_cells(f.sum_by_q(r == most), cells)
    right, levels = r[cells] - own, with_most
    is_named = right == most[cells]
    if leave_out_self:  # without the own vote, a level of one vote less ties with the own one
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
    """The cells (q, t) that vote, in order of q, and their `votes`; `targets`: number of target levels."""

    q: IntArray
    t: IntArray
    votes: IntArray
    targets: int

    @classmethod
    def from_table(cls, f: FrequencyTable, r: IntArray) -> _Voters:
        cells = np.flatnonzero(r)
        return cls(f.q[cells], f.t[cells], r[cells], f.targets)

    def grouped(self, group: IntArray) -> _Voters:
        """Return the votes of each group of cells (shape: cells) instead of each q."""
        cell = group * self.targets + self.t
        order = np.argsort(cell, kind="stable")
        first = np.flatnonzero(np.concatenate(([True], np.diff(cell[order]) != 0)))
        q, t = np.divmod(cell[order][first], self.targets)
        return _Voters(q, t, np.add.reduceat(self.votes[order], first), self.targets)

    def add_to(self, table: IntArray, row: IntArray, q: IntArray) -> None:
        """Add the votes of q[i] to table[row[i]] (table: rows, targets)."""
        first, last = np.searchsorted(self.q, q), np.searchsorted(self.q, q, side="right")
        number = last - first
        cell = np.repeat(first, number) + aranges(number)
        np.add.at(table, (np.repeat(row, number), self.t[cell]), self.votes[cell])


def _nearest_by_keys(
    voters: _Voters,
    persons: IntArray,
    keys: Keys,
    _numbers: Sequence[Floats | None],
    *,
    leave_out_self: bool,
) -> Iterator[tuple[IntArray, Floats, IntArray]]:
    """Yield parts of `persons` (q), the distance to their nearest voters, and the votes (persons, targets).

    A voter at distance h agrees with the person in exactly one set of the other keys. So if nobody is nearer,
    the votes are the sum, over all such sets, of the votes of those who agree in the set.
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
            size = int(max(of_person.max(), of_voter.max())) + 1
            pool += sum_by_position(grouped.q, grouped.votes, size)[of_person]
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


def _nearest_by_numbers(
    voters: _Voters,
    persons: IntArray,
    keys: Keys,
    numbers: Sequence[Floats | None],
    *,
    leave_out_self: bool,
) -> Iterator[tuple[IntArray, Floats, IntArray]]:
    """Yield as `_nearest_by_keys` if some keys are numbers, by comparing every person with every voter."""
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
                difference = np.abs(place[own] - place[other])
                apart = np.where(np.isnan(difference), apart, difference)
            distance += apart
        if leave_out_self:
            distance[chunk[:, None] == q[None, :]] = np.inf
        nearest = distance.min(axis=1)
        row, at = np.nonzero(distance <= nearest[:, None] + _EQUALLY_NEAR)
        table = np.zeros((len(chunk), voters.targets), dtype=np.int64)
        voters.add_to(table, row, q[at])
        yield chunk, nearest, table
