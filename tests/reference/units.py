"""People with several records: the others are all records of other units, looked up one by one."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

from reference.baselines import Units
from reference.nearest import Row, distances


def owners(row: object, gt: Sequence[object], units: Units) -> set[Hashable]:
    """Return the units that have an equal record."""
    return {unit for record, unit in zip(gt, units, strict=True) if record == row}


def copies(gt: Sequence[object], units: Units, sd: Sequence[object]) -> dict[str, float]:
    """Return hits on one unit, repeats of another unit's record, and people found, in percent."""
    N = len(gt)
    number = [len(owners(row, gt, units)) for row in gt]
    alone = [row for row, of_row in zip(gt, number, strict=True) if of_row == 1]
    # Without the unit of record i, only the unit of record j has it.
    hit = sum(gt[i] == gt[j] and units[i] != units[j] and number[i] == 2 for i in range(N) for j in range(N))
    fresh = [
        1 - math.exp(-len(sd) * hit / (N * len(alone))) if alone else 0.0,
        1 - sum(sd.count(row) == 1 for row in sd) / len(sd),
    ]
    return {
        "unique_hits": 100 * sum(len(owners(row, gt, units)) == 1 for row in sd) / len(sd),
        "unique_hits_others": 100 * sum(of_row == 2 for of_row in number) / N,
        "copies_others": 100 * sum(of_row > 1 for of_row in number) / N,
        "people_copied": 100 * sum(row in sd for row in alone) / N,
        "people_copied_expected": 100 * len(alone) / N * min(fresh),
    }


def nearer(gt: Sequence[Row], units: Units, sd: Sequence[Row], ordered: Sequence[bool]) -> Fraction:
    """Return the share of GT records that are nearer to SD than to a record of another unit, by ranks."""
    share = Fraction(0)
    for i, person in enumerate(gt):
        rest = [record for record, unit in zip(gt, units, strict=True) if unit != units[i]]
        assert len(rest) == len(sd)
        to_sd, to_others = (
            min(distances(person, record, gt, sd, ordered)[0] for record in table) for table in (sd, rest)
        )
        share += Fraction(1, 2) if to_sd == to_others else Fraction(to_sd < to_others)
    return share / len(gt)


def household_risk(gt: Sequence[object], units: Units, sd: Sequence[object]) -> tuple[float, float]:
    """Return individual risk in percent of records, and household risk in percent of units."""
    risk = [Fraction(row in sd, gt.count(row)) for row in gt]
    unfound: dict[Hashable, Fraction] = {}
    for unit, of_record in zip(units, risk, strict=True):
        unfound[unit] = unfound.get(unit, Fraction(1)) * (1 - of_record)
    found = sum((1 - chance for chance in unfound.values()), Fraction(0))
    return float(100 * sum(risk) / len(gt)), float(100 * found / len(unfound))
