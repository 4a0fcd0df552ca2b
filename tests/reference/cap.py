"""The CAP family and chance, record by record in plain Python: slow, obvious, and exact.

A record is a pair (q, t): the levels of its keys, and its target level. A table is a list of records. Every
share is a fraction, and becomes a float only at the very end. The library has to give the same floats.

`kept` says of each record of a table whether the exclusions leave it. What an intruder sees (which q are in a
table, which of them have one target level, which level is the most frequent) does not depend on it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

Level = str | None
Key = tuple[Level, ...]
Record = tuple[Key, Level]
Figure = float | int


def percent(part: int | Fraction, whole: int | Fraction) -> float:
    """Return a share in percent, rounded once; NaN for 0 of 0."""
    return float(100 * Fraction(part) / Fraction(whole)) if whole else math.nan


def with_key(table: Sequence[Record], q: Key) -> list[Record]:
    return [record for record in table if record[0] == q]


def cap(record: Record, table: Sequence[Record]) -> Fraction:
    """Return the share of a record's target level among a table's records with its key; 0 if none."""
    same_key = with_key(table, record[0])
    return Fraction(same_key.count(record), len(same_key)) if same_key else Fraction(0)


def one_level(table: Sequence[Record], q: Key) -> bool:
    """Return whether a table has the key, with a single target level."""
    return len({t for _, t in with_key(table, q)}) == 1


def chance_of_mode(t: Level, levels: "Counter[Level]") -> Fraction:
    """Return the chance that a guess of the most frequent of the levels, drawn among ties, is t."""
    modes = [level for level, number in levels.items() if number == max(levels.values())]
    return Fraction(t in modes, max(len(modes), 1))


def scaled(x: Fraction | None, base: Fraction) -> float:
    """Return the place of x on a scale from the base (0) to certainty (100)."""
    return math.nan if x is None else percent(x - base, 1 - base)


def smallest_averages(gt: Sequence[Record], sd: Sequence[Record]) -> tuple[Fraction, Fraction]:
    """Return the minima over all pairs, with or without GT records: Baillargeon & Charest, theorems 2, 3."""
    keys = {q for q, _ in [*gt, *sd]}
    levels = {t for _, t in [*gt, *sd]}
    return (
        min(Fraction(gt.count((q, t)), len(gt)) for q in keys for t in levels),
        min(cap((q, t), gt) for q, _ in gt for t in levels),
    )


def cap_measures(
    gt: Sequence[Record], sd: Sequence[Record], kept_gt: Sequence[bool], kept_sd: Sequence[bool]
) -> dict[str, Figure]:
    gt_left = [record for record, kept in zip(gt, kept_gt, strict=True) if kept]
    sd_left = [record for record, kept in zip(sd, kept_sd, strict=True) if kept]
    in_sd = [(q, t) for q, t in gt_left if with_key(sd, q)]
    in_disclosive = [(q, t) for q, t in gt_left if one_level(sd, q)]
    disco = [(q, t) for q, t in in_disclosive if (q, t) in sd]
    certain = [(q, t) for q, t in sd_left if one_level(sd, q) and with_key(gt, q)]
    predicted = sum(
        (chance_of_mode(t, Counter(s for _, s in with_key(sd, q))) for q, t in gt_left), Fraction()
    )

    base = Fraction(sum(t == other for _, t in gt for _, other in gt), len(gt) ** 2)
    right = sum((cap(record, sd_left) for record in gt_left), Fraction(0))
    smallest, smallest_matched = smallest_averages(gt, sd)
    return {
        "baseCAPd": percent(base, 1),
        "CAPd": percent(sum((cap(record, gt_left) for record in gt_left), Fraction(0)), len(gt)),
        "CAPs": percent(sum((cap(record, sd_left) for record in sd_left), Fraction(0)), len(sd)),
        "DCAP": percent(right, len(gt)),
        "CAP_matched": percent(right, len(in_sd)),
        "TCAP": percent(len(disco), len(in_sd)),
        "TCAP_disclosive": percent(len(disco), len(in_disclosive)),
        "TCAP_taub": percent(sum((cap(record, gt_left) for record in certain), Fraction(0)), len(certain)),
        "DCAP_scaled": scaled(right / len(gt), base),
        "TCAP_scaled": scaled(Fraction(len(disco), len(in_sd)) if in_sd else None, base),
        "n_predicted_correctly": float(predicted),
        "pct_predicted_correctly": percent(predicted, len(gt)),
        "min_DCAP": percent(smallest, 1),
        "min_CAP_matched": percent(smallest_matched, 1),
    }


def disco_chance(gt: Sequence[Record], sd: Sequence[Record], kept_gt: Sequence[bool]) -> Fraction:
    """Return the expected share of GT records in DiSCO if SD's target values are permuted."""
    expected = Fraction(0)
    for (q, t), kept in zip(gt, kept_gt, strict=True):
        s_q = len(with_key(sd, q))
        s_t = sum(level == t for _, level in sd)
        if kept and s_q:
            expected += Fraction(math.comb(s_t, s_q), math.comb(len(sd), s_q))
    return expected / len(gt)


def disco_of_all_permutations(
    gt: Sequence[Record], sd: Sequence[Record], kept_gt: Sequence[bool]
) -> Fraction:
    """Return the same without the formula, by counting over every permutation."""
    orders = list(permutations([t for _, t in sd]))
    disclosed = 0
    for targets in orders:
        permuted = [(q, t) for (q, _), t in zip(sd, targets, strict=True)]
        disclosed += sum(
            kept and one_level(permuted, record[0]) and record in permuted
            for record, kept in zip(gt, kept_gt, strict=True)
        )
    return Fraction(disclosed, len(orders) * len(gt))


def individual(record: Record, gt: Sequence[Record], sd: Sequence[Record]) -> dict[str, float | bool]:
    q = record[0]
    disco = one_level(sd, q) and record in sd
    return {
        "CAP_GT": float(cap(record, gt)),
        "CAP": float(cap(record, sd)),
        "DiSCO": disco,
        "DiSDiO": disco and one_level(gt, q),
        "repU": len(with_key(gt, q)) == 1 and len(with_key(sd, q)) == 1,
    }
