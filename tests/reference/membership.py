"""Membership inference, pair by pair and record by record: slow, and in fractions."""

import math
from collections.abc import Sequence
from fractions import Fraction
from math import comb


def advantage(members: Sequence[object], others: Sequence[object], sd: Sequence[object]) -> Fraction:
    """Return the share of members in SD minus that of the others."""
    shares = [Fraction(sum(record in sd for record in table), len(table)) for table in (members, others)]
    return shares[0] - shares[1]


def found_at(members: Sequence[int], others: Sequence[int], rate: Fraction) -> Fraction:
    """Return the share of members within the distance of `rate` of the others, counting a share of ties.

    The nearest distances are taken first, whole as long as that leaves some of the rate.
    """
    left, found = rate * len(others), Fraction(0)
    for distance in sorted({*members, *others}):
        of_members, of_others = members.count(distance), others.count(distance)
        share = Fraction(1) if of_others <= left else left / of_others
        found += share * of_members
        left -= share * of_others
        if share < 1:
            break
    return found / len(members)


def nearer(members: Sequence[int], others: Sequence[int]) -> Fraction:
    """Return the share of pairs in which the member is nearer; ties half."""
    pairs = [(mine, other) for mine in members for other in others]
    return sum(
        (Fraction(mine < other) + Fraction(mine == other, 2) for mine, other in pairs), Fraction(0)
    ) / len(pairs)


def at_most(part: int, whole: int, share: float) -> float:
    """Return the binomial chance of at most that many."""
    return math.fsum(comb(whole, k) * share**k * (1 - share) ** (whole - k) for k in range(part + 1))
