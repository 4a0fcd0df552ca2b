"""A survey of a population, record by record: slow, obvious, and summed over every possible F."""

import math
from collections.abc import Sequence
from fractions import Fraction
from math import comb

from reference import baselines
from reference.cap import Key, Record, cap, one_level, with_key

_NEGLIGIBLE, _MIDDLE = 1e-17, 0.5


def chances_of(records: int, people: float) -> list[tuple[int, float]]:
    """Return each number F of people with these keys, and its chance, given the records and their weights."""
    p = min(1.0, records / people)
    F, chance, reached, chances = records, p**records, 0.0, []
    while reached < _MIDDLE or (reached < 1 - 1e-15 and chance > _NEGLIGIBLE):
        chances.append((F, chance))
        reached += chance
        chance *= (1 - p) * F / (F - records + 1)
        F += 1
    return chances


def right(records: int, people: float) -> float:
    """Return the mean of 1/F."""
    return math.fsum(chance / F for F, chance in chances_of(records, people))


def people_with(gt: Sequence[Record], weights: Sequence[float], q: Key) -> float:
    """Return the people that the records with these keys represent."""
    return math.fsum(weight for record, weight in zip(gt, weights, strict=True) if record[0] == q)


def risk(gt: Sequence[Record], weights: Sequence[float]) -> list[float]:
    return [right(len(with_key(gt, q)), people_with(gt, weights, q)) for q, _ in gt]


def right_matches(gt: Sequence[Record], weights: Sequence[float]) -> float:
    """Return the share of right matches among the matches of people with exactly one record."""
    alone = [q for q, _ in gt if len(with_key(gt, q)) == 1]
    others = [weight - 1 for (q, _), weight in zip(gt, weights, strict=True) if len(with_key(gt, q)) == 2]
    wrong = max(0.0, math.fsum(others))
    return len(alone) / (len(alone) + wrong) if alone else 0.0


def figures(
    gt: Sequence[Record], weights: Sequence[float], sd: Sequence[Record], kept: Sequence[bool] | None = None
) -> dict[str, float]:
    """Return the figures of the frames, except weighted shares, in percent of the records."""
    kept = [True] * len(gt) if kept is None else kept
    alone = [i for i, (q, _) in enumerate(gt) if len(with_key(gt, q)) == len(with_key(sd, q)) == 1]
    of_record = risk(gt, weights)
    disclosed_by_key: dict[Key, int] = {}
    for (q, t), left in zip(gt, kept, strict=True):
        if left and one_level(sd, q) and with_key(sd, q)[0][1] == t:
            disclosed_by_key[q] = disclosed_by_key.get(q, 0) + 1
    named = math.fsum(of_record[i] for i in alone)
    disclosed_correctly = math.fsum(
        number * right(len(with_key(gt, q)), people_with(gt, weights, q))
        for q, number in disclosed_by_key.items()
    )
    return {
        "people": math.fsum(weights),
        "DIS": 100 * right_matches(gt, weights),
        "right_identifications": named,
        "repU_population": 100 * named / len(gt),
        "DiSCO_population": 100 * disclosed_correctly / len(gt),
    }


def weighted(gt: Sequence[Record], weights: Sequence[Fraction], sd: Sequence[Record]) -> dict[str, float]:
    """Return weighted shares of people: what each record adds to a figure, times its weight."""
    added: dict[str, list[Fraction]] = {}
    for q, t in gt:
        of_q = with_key(sd, q)
        is_disclosed = one_level(sd, q) and of_q[0][1] == t
        alone = len(with_key(gt, q)) == 1
        s_q, s_t = len(of_q), sum(level == t for _, level in sd)
        by_chance = Fraction(comb(s_t, s_q), comb(len(sd), s_q)) if s_q else Fraction(0)
        figures: dict[str, Fraction | bool] = {
            "UiO": alone,
            "UiOiS": alone and bool(of_q),
            "repU": alone and len(of_q) == 1,
            "Dorig": one_level(gt, q),
            "iS": bool(of_q),
            "DiS": one_level(sd, q),
            "DiSCO": is_disclosed,
            "DiSDiO": is_disclosed and one_level(gt, q),
            "CAPd": cap((q, t), gt),
            "DCAP": cap((q, t), sd),
            "DiSCO_chance": by_chance,
            "DiSCO_excess": is_disclosed - by_chance,
        }
        for name, value in figures.items():
            added.setdefault(name, []).append(Fraction(value))
    shares = {
        name: float(100 * sum(w * x for w, x in zip(weights, values, strict=True)) / sum(weights))
        for name, values in added.items()
    }
    compared = baselines.figures(gt, sd, weights=weights)
    shares |= {name: share for name, share in compared.items() if not name.endswith(("_at_n", "_se"))}
    return {f"{name}_weighted": share for name, share in shares.items()}
