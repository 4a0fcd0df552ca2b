"""How probable it is that two tables of the same distribution differ in so few records.

Tables of few combinations of values are near to each other although each was drawn anew: of 2,000 records
with two values, one pair of tables in four differs in fewer than ten. Nearness tells that one table was made
of the other only where chance does not bring it about.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import IntArray

_OF_ONE = float(np.exp(-1))  # at most so often does a Poisson variable equal 1
_RATES = np.geomspace(0.01, 6, 80)


def bound_chance_of_nearness(counts: IntArray, difference: int) -> float:
    """At most so probably does a table drawn anew differ in no more records than that.

    `counts` are the numbers of a table's records with each combination of values, or with several that are
    counted together. The other table has as many records of the same distribution; the difference of a count
    is that of two Poisson variables, whose most probable value is 0, and a combination of one record comes
    back as often as Good and Turing estimate, plus one deviation of that. The probability that the absolute
    differences sum up to no more than 2 x `difference` is bounded as Chernoff (1952) does. The most frequent
    combination is left out, for its count follows from the others.

    >>> round(bound_chance_of_nearness(np.array([1000, 1000]), 7), 2)
    0.96
    >>> bound_chance_of_nearness(np.full(100, 20), 7) < 1e-30
    True
    """
    sorted_counts = np.sort(counts[counts > 0])
    records = float(sorted_counts.sum())
    others: npt.NDArray[np.float64] = sorted_counts[:-1].astype(np.float64)
    if not len(others):
        return 1.0
    has_one_other = others == 1
    coverage = min(1.0, (records - float(has_one_other.sum()) + np.sqrt(records)) / records)
    variance = others * (1 - others / records)
    # Above exp(-2v) I0(2v), the probability that two Poisson variables of mean v are equal.
    equal = np.where(
        has_one_other, coverage * _OF_ONE, (1 + 1 / (8 * variance)) / np.sqrt(4 * np.pi * variance)
    )
    # The mean of exp(-rate |X|), where no value of X is more probable than 0.
    means = np.minimum(equal / np.tanh(_RATES[:, np.newaxis] / 2), 1)
    exponents = 2 * difference * _RATES + np.log(means).sum(axis=1)
    return float(np.exp(min(0.0, float(exponents.min()))))
