"""People with several records: the others are all records of other units, looked up one by one."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

from reference.baselines import (
    always,
    attributed,
    better,
    disclosed,
    error_of_guesses,
    guesses,
    in_draw,
    standard_error,
)
from reference.cap import Level, Record
from reference.nearest import Row, distances

Units = Sequence[Hashable]


def others(gt: Sequence[Record], units: Units, i: int) -> list[Record]:
    """The records of everybody but the unit of person i."""
    return [record for record, unit in zip(gt, units, strict=True) if unit != units[i]]


def figures(
    gt: Sequence[Record],
    units: Units,
    sd: Sequence[Record],
    no_guess: Sequence[Level] = (None,),
    kept_gt: Sequence[bool] | None = None,
    kept_sd: Sequence[bool] | None = None,
) -> dict[str, float]:
    """As `baselines.figures`: everybody has others, and a number of records n, of their own."""
    N = len(gt)
    people = [i for i in range(N) if kept_gt is None or kept_gt[i]]
    left_sd = [record for i, record in enumerate(sd) if kept_sd is None or kept_sd[i]]
    left, left_units = [gt[i] for i in people], [units[i] for i in people]
    names = [f"{name}_{part}" for name in ("iS", "DiSCO", "DCAP") for part in ("at_n", "others", "beyond")]
    sums = dict.fromkeys(names, Fraction(0))
    by_others, of_SD = [], []
    added: dict[str, list[Fraction]] = {"iS": [], "DiSCO": [], "DCAP": []}
    for place, i in enumerate(people):
        person, of_others = gt[i], others(gt, units, i)
        n = min(len(sd), len(of_others))
        left_others = others(left, left_units, place)
        found = {
            "iS": (in_draw(person, sd, n), in_draw(person, of_others, n)),
            "DiSCO": (disclosed(person, sd, n), disclosed(person, of_others, n)),
            "DCAP": (
                attributed(person, left_sd, len(sd), n),
                attributed(person, left_others, len(of_others), n),
            ),
        }
        for name, (more, less) in found.items():
            sums[f"{name}_at_n"] += more
            sums[f"{name}_others"] += less
            sums[f"{name}_beyond"] += more - less
            added[name].append(more - less)
        by_others.append(guesses(person, of_others, n if n < len(of_others) else None, no_guess))
        of_SD.append(guesses(person, sd, n if len(sd) > N else None, no_guess))
    shares = {name: 100 * value / N for name, value in sums.items()}
    shares["guessed_others"] = better(by_others, N)
    shares["guessed_at_n"] = better(of_SD, N)
    shares["guessed_beyond"] = shares["guessed_at_n"] - shares["guessed_others"]
    of_key = [gt[i][0] for i in people]
    errors = {f"{name}_beyond_se": standard_error(of_name, of_key, N) for name, of_name in added.items()}
    # Where people have several records there are that many fewer to guess independently.
    of_units = [max(1, round(records * len(set(units)) / N)) for records in (N, len(sd))]
    n = min(of_units[1], of_units[0] - 1)
    right = shares["guessed_at_n"], shares["guessed_others"]
    by_mode = always(of_SD) - always(by_others)
    errors["guessed_beyond_se"] = error_of_guesses(*right, n, N, by_mode, shares["iS_others"], len(people))
    return {name: float(value) for name, value in shares.items()} | errors


def owners(row: object, gt: Sequence[object], units: Units) -> set[Hashable]:
    """The units that have a record like this."""
    return {unit for record, unit in zip(gt, units, strict=True) if record == row}


def copies(gt: Sequence[object], units: Units, sd: Sequence[object]) -> dict[str, float]:
    """Hits on one unit, repeats of another unit's record, and people found, in percent."""
    N = len(gt)
    number = [len(owners(row, gt, units)) for row in gt]
    alone = [row for row, of_row in zip(gt, number, strict=True) if of_row == 1]
    hit = sum(
        len(alone_like(gt[j], i, j, gt, units))
        for i in range(N)
        for j in range(N)
        if gt[i] == gt[j] and units[i] != units[j] and number[i] == 2
    )
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


def alone_like(row: object, i: int, j: int, gt: Sequence[object], units: Units) -> list[int]:
    """Record j alone, if only its unit has it once the unit of record i is left out."""
    rest = {unit for record, unit in zip(gt, units, strict=True) if record == row and unit != units[i]}
    return [j] if rest == {units[j]} else []


def nearer(gt: Sequence[Row], units: Units, sd: Sequence[Row], ordered: Sequence[bool]) -> Fraction:
    """The share of GT records that are nearer to SD than to a record of another unit, by ranks."""
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
    """Percent of records, and of units of which one record at least is found."""
    risk = [Fraction(row in sd, gt.count(row)) for row in gt]
    unfound: dict[Hashable, Fraction] = {}
    for unit, of_record in zip(units, risk, strict=True):
        unfound[unit] = unfound.get(unit, Fraction(1)) * (1 - of_record)
    found = sum((1 - chance for chance in unfound.values()), Fraction(0))
    return float(100 * sum(risk) / len(gt)), float(100 * found / len(unfound))
