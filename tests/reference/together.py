"""Disclosure by several syntheses together, person by person, from levelled records: slow and obvious."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from reference import baselines
from reference.disclosure import Exclusions, Key, Leveled, count_cells, key_of, step_that_excludes


@dataclass(frozen=True)
class Together:
    """Numbers of GT records that the exclusions leave.

    In `any` and `agreed`; in `any` of draws of every synthesis, and of equal draws of other people's records;
    the share of all that as many fresh samples disclose at most, if each is as one draw is; and the squares
    of what the people of each key combination add to the difference from the larger of both.
    """

    in_any: int
    agreed: int
    at_n: Fraction
    others: Fraction
    squares: Fraction
    fresh: Fraction


def together(
    gt: Sequence[Leveled],
    syntheses: Sequence[Sequence[Leveled]],
    keys: Sequence[str],
    target: str,
    exclusions: Exclusions,
) -> Together:
    d = count_cells(gt, keys, target)
    people, *tables = (
        [(key_of(record, keys), record[target]) for record in table] for table in (gt, *syntheses)
    )
    in_any = agreed = 0
    at_n = by_others = Fraction(0)
    by_key: dict[Key, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 3)
    by_draw = [Fraction(0)] * len(tables)
    for i, person in enumerate(people):
        if step_that_excludes(person, d[person], keys, target, exclusions):
            continue
        of_key = [{t for q, t in sd if q == person[0]} for sd in tables]
        certain = [level for levels in of_key if len(levels) == 1 for level in levels]
        in_any += person[1] in certain
        agreed += len(certain) > 1 and set(certain) == {person[1]}
        rest = baselines.others(people, i)
        unseen = unseen_by_others = Fraction(1)
        for k, sd in enumerate(tables):
            n = min(len(sd), len(rest))
            of_others = baselines.disclosed(person, rest, n)
            unseen *= 1 - baselines.disclosed(person, sd, n)
            unseen_by_others *= 1 - of_others
            by_draw[k] += of_others
            by_key[person[0]][2] += of_others / len(tables)
        at_n += 1 - unseen
        by_others += 1 - unseen_by_others
        by_key[person[0]][0] += 1 - unseen
        by_key[person[0]][1] += 1 - unseen_by_others
    missed = [1 - share / len(gt) for share in by_draw]
    fresh = 1 - math.prod(missed, start=Fraction(1))
    # A share that is larger by a little in every table adds this many times as much to that of all.
    times = sum(math.prod(missed[:k] + missed[k + 1 :], start=Fraction(1)) for k in range(len(missed)))
    is_fresh = fresh - by_others / len(gt) > Fraction(1, 10**8)
    added = [a - (times * mean if is_fresh else b) for a, b, mean in by_key.values()]
    squares = sum((of_key**2 for of_key in added), Fraction(0))
    return Together(in_any, agreed, at_n, by_others, squares, fresh)


def unique_in_any(gt: Sequence[Leveled], syntheses: Sequence[Sequence[Leveled]], keys: Sequence[str]) -> int:
    """Return the number of GT records that are unique in GT and in at least one synthesis."""
    alone = [q for q, n in Counter(key_of(person, keys) for person in gt).items() if n == 1]
    return sum(any(sum(key_of(record, keys) == q for record in sd) == 1 for sd in syntheses) for q in alone)
