"""What several syntheses disclose together, person by person, from levelled records: slow and obvious."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from reference import baselines
from reference.disclosure import (
    Exclusions,
    Level,
    Leveled,
    count_cells,
    key_of,
    step_that_excludes,
)


def together(
    gt: Sequence[Leveled],
    syntheses: Sequence[Sequence[Leveled]],
    keys: Sequence[str],
    target: str,
    exclusions: Exclusions,
) -> tuple[int, int]:
    """The number of GT records in `any`, and in `agreed`, that the exclusions leave."""
    d = count_cells(gt, keys, target)
    in_any = agreed = 0
    for person in gt:
        cell = (key_of(person, keys), person[target])
        if step_that_excludes(cell, d[cell], keys, target, exclusions):
            continue
        certain_levels: list[Level] = []
        for sd in syntheses:
            levels: set[Level] = {record[target] for record in sd if key_of(record, keys) == cell[0]}
            certain_levels += levels if len(levels) == 1 else []
        in_any += person[target] in certain_levels
        agreed += len(certain_levels) > 1 and set(certain_levels) == {person[target]}
    return in_any, agreed


def any_of_draws(
    gt: Sequence[Leveled],
    syntheses: Sequence[Sequence[Leveled]],
    keys: Sequence[str],
    target: str,
    exclusions: Exclusions,
) -> tuple[Fraction, Fraction, Fraction]:
    """The GT records in `any` of draws of every synthesis, and of equal draws of other people's records.

    And the squares of what the people of each key combination add to the difference.
    """
    d = count_cells(gt, keys, target)
    tables = [[(key_of(record, keys), record[target]) for record in table] for table in (gt, *syntheses)]
    of_SD = of_others = Fraction(0)
    by_key: dict[Any, Fraction] = defaultdict(Fraction)
    for i, person in enumerate(tables[0]):
        if step_that_excludes(person, d[person], keys, target, exclusions):
            continue
        rest = baselines.others(tables[0], i)
        unseen = unseen_by_others = Fraction(1)
        for sd in tables[1:]:
            n = min(len(sd), len(rest))
            unseen *= 1 - baselines.disclosed(person, sd, n)
            unseen_by_others *= 1 - baselines.disclosed(person, rest, n)
        of_SD += 1 - unseen
        of_others += 1 - unseen_by_others
        by_key[person[0]] += unseen_by_others - unseen
    return of_SD, of_others, sum((added**2 for added in by_key.values()), Fraction(0))


def any_of_fresh_samples(
    gt: Sequence[Leveled],
    syntheses: Sequence[Sequence[Leveled]],
    keys: Sequence[str],
    target: str,
    exclusions: Exclusions,
) -> Fraction:
    """The share of the GT records that as many fresh samples disclose at most, if each is as one draw is."""
    d = count_cells(gt, keys, target)
    people = [(key_of(record, keys), record[target]) for record in gt]
    undisclosed = Fraction(1)
    for sd in syntheses:
        by_draw = Fraction(0)
        for i, person in enumerate(people):
            if not step_that_excludes(person, d[person], keys, target, exclusions):
                rest = baselines.others(people, i)
                by_draw += baselines.disclosed(person, rest, min(len(sd), len(rest)))
        undisclosed *= 1 - by_draw / len(gt)
    return 1 - undisclosed


def unique_in_any(gt: Sequence[Leveled], syntheses: Sequence[Sequence[Leveled]], keys: Sequence[str]) -> int:
    """The number of GT records that are unique in GT, and in at least one synthesis."""
    alone = [q for q, n in Counter(key_of(person, keys) for person in gt).items() if n == 1]
    return sum(any(sum(key_of(record, keys) == q for record in sd) == 1 for sd in syntheses) for q in alone)
