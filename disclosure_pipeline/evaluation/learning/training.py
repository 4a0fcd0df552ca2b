"""Which records are learned from: out of fold, and equally many of GT and of SD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray


@dataclass(frozen=True)
class Fold:
    """Positions of GT records: those that are predicted, and those that are learned from."""

    held_out: IntArray
    training: IntArray


def out_of_fold(strata: IntArray, folds: int, seed: int) -> list[Fold]:
    """Folds in which every record is held out once, and learned from in all the others.

    Records are dealt out like cards, in random order within each stratum: the folds differ by no more than
    one record, in all and in each stratum, and a stratum of a single record is no obstacle.
    """
    order = np.random.default_rng(seed).permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    n = min(folds, len(strata))
    fold_of_record = np.empty(len(strata), dtype=np.int64)
    fold_of_record[order] = np.arange(len(strata)) % n
    return [Fold(np.flatnonzero(fold_of_record == k), np.flatnonzero(fold_of_record != k)) for k in range(n)]


@dataclass(frozen=True)
class SameSize:
    """Records to learn from, of SD and of each fold of GT: as many, give or take one.

    `synthetic` is None where all SD records are learned from, a fold None where all its training records are.
    """

    synthetic: IntArray | None
    folds: tuple[Fold | None, ...]


def same_size(columns: Sequence[IntArray], folds: Sequence[Fold], seed: int) -> SameSize:
    """Draw from the larger table as many records as the smaller one has to learn from.

    `columns` are the codes of the SD records, by which these are sorted before some are drawn: their order
    in the table makes no difference.
    """
    size = min(len(columns[0]), *(len(fold.training) for fold in folds))
    synthetic = None
    if len(columns[0]) > size + 1:
        order = np.lexsort(list(reversed(columns)))
        synthetic = order[_draw(len(order), size, seed)]
    thinned = [
        Fold(fold.held_out, fold.training[_draw(len(fold.training), size, seed)])
        if len(fold.training) > size + 1
        else None
        for fold in folds
    ]
    return SameSize(synthetic, tuple(thinned))


def _draw(records: int, size: int, seed: int) -> IntArray:
    return np.sort(np.random.default_rng(seed).choice(records, size, replace=False))
