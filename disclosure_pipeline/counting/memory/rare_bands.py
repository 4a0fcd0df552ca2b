"""Bands at key combinations of few records: each record is compared with every other one of its q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.counting.memory.radix import Bytes, Codes
from disclosure_pipeline.measures.band_counts import BandCounts, ClaimCounts, guess_counts_within
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.baselines import sum_of_squares
from disclosure_pipeline.measures.densest_bands import AmountCells
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, to_integer_chances

_RANGE = 8  # a q has 0 to 7 records of a table


def count_rare_bands(is_synthetic: Bytes, t: Codes, band: Band, sizes: Sizes) -> BandCounts:
    """Count as `band_counts` does, for q of n records each, with nothing excluded or drawn.

    `is_synthetic` is 1 for the records of SD, `t` the code of each record (shape of both: n, q).
    """
    near = _NearRecords.among(is_synthetic, t, band)
    n, d_q, s_q = len(t), near.d_q, near.s_q
    q0 = to_integer_chances(sizes.q0(np.arange(n + 2)))
    people = near.of_GT > 0
    # A fresh sample is all the others: a single record outside the band, and nothing is disclosed.
    by_others = ((near.d == d_q) & people).sum(axis=0, dtype=np.uint8) * (d_q > 1)
    rest = s_q - near.s
    c0, c1, others, of_d, of_s, keys = _combine(
        [_count(people & (rest == 0)), _count(people & (rest == 1)), by_others, d_q, s_q]
    )
    at_n = c0 * q0[0] + c1 * q0[1] - of_d * q0[of_s]
    right = int((c0 * keys)[of_s > 0].sum())
    outside = np.where(is_synthetic > 0, s_q - near.after, _RANGE - 1)
    e0, e1, without, of_d, _, in_keys = _combine(
        [_count(outside == 0), _count(outside == 1), near.fit_without_self(), d_q, s_q]
    )
    claimed_at_n = e0 * (q0[0] - q0[1]) + e1 * (q0[1] - q0[2])
    cells, of_GT, of_SD = near.amount_cells()
    return BandCounts(
        ClaimCounts(
            int((e0 * of_d * in_keys).sum()),
            right,
            int((at_n * keys).sum()),
            int((others * keys).sum()) * CHANCE_SCALE,
            sum_of_squares(at_n - others * CHANCE_SCALE, keys),
        ),
        int((claimed_at_n * of_d * in_keys).sum()),
        int((without * in_keys).sum()) * CHANCE_SCALE,
        sum_of_squares(claimed_at_n * of_d - without * CHANCE_SCALE, in_keys),
        (),
        guess_counts_within(cells, of_GT, of_GT, of_SD, (None, None)),
    )


def _count(marks: np.ndarray) -> Bytes:
    return marks.sum(axis=0, dtype=np.uint8)


def _combine(numbers: list[Bytes]) -> tuple[IntArray, ...]:
    """Return the occurring combinations of small numbers by q, and the number of q with each."""
    code = numbers[0].astype(np.uint16)
    for number in numbers[1:]:
        code = code * np.uint16(_RANGE) + number
    counts = np.bincount(code)
    occurring = np.flatnonzero(counts)
    return (*np.unravel_index(occurring, (_RANGE,) * len(numbers)), counts[occurring])


@dataclass(frozen=True)
class _NearRecords:
    """For each record (shape: n, q) the GT and SD records, `d` and `s`, of its q within its band.

    `after`: records of its own table, from itself on in order of value, that fit into one band with it.
    `t`: places.
    """

    t: Codes
    is_synthetic: Bytes
    of_GT: Bytes
    band: Band
    reach: Codes
    d: Bytes
    s: Bytes
    after: Bytes

    @classmethod
    def among(cls, is_synthetic: Bytes, t: Codes, band: Band) -> _NearRecords:
        if not band.is_ordered:
            t = band.place.astype(t.dtype)[t]
        dtype = np.min_scalar_type(band.size)
        low, high, reach = (ends.astype(dtype)[t] for ends in (band.low, band.high, band.reach))
        of_GT = is_synthetic ^ np.uint8(1)
        d, s, after = (np.zeros_like(is_synthetic) for _ in range(3))
        for i in range(len(t)):
            for j in range(len(t)):
                inside = ((t[j] >= low[i]) & (t[j] < high[i])).view(np.uint8)
                d[i] += inside & of_GT[j]
                s[i] += inside & is_synthetic[j]
                after[i] += _fits_after(t, reach, is_synthetic, i, j)
        return cls(t, is_synthetic, of_GT, band, reach, d, s, after)

    @property
    def s_q(self) -> Bytes:
        return _count(self.is_synthetic)

    @property
    def d_q(self) -> Bytes:
        return np.uint8(len(self.t)) - self.s_q

    def amount_cells(self) -> tuple[AmountCells, IntArray, IntArray]:
        """Return the amounts, one cell for each record, and which of them are GT's and SD's.

        Of the q with somebody to guess, and with another record to guess from.
        """
        guessed = np.flatnonzero((self.d_q > 0) & (len(self.t) > 1))
        codes = self.t[:, guessed].astype(np.int32) * 2 + self.is_synthetic[:, guessed]
        codes.sort(axis=0)
        number, record = np.nonzero(self.band.is_amount(codes.T >> 1))
        t, is_synthetic = np.divmod(codes[record, number].astype(np.int64), 2)
        return AmountCells(number, t, np.zeros_like(t), self.band), 1 - is_synthetic, is_synthetic

    def fit_without_self(self) -> Bytes:
        """Count, for each q, the people for whom all other GT records fit into one band."""
        d_q = self.d_q
        fit = np.zeros_like(self.t, dtype=bool)
        for j in range(len(self.t)):
            whole, but_one = self.after[j] == d_q, self.after[j] + np.uint8(1) == d_q
            for k in range(len(self.t)):
                if k != j:
                    has_self = _fits_after(self.t, self.reach, self.is_synthetic, j, k) > 0
                    fit[k] |= (self.of_GT[j] > 0) & np.where(has_self, whole, but_one)
        return _count(fit & (self.of_GT > 0))


def _fits_after(t: Codes, reach: Codes, is_synthetic: Bytes, i: int, j: int) -> Bytes:
    """Mark where record j, of the same table as record i and not before it, fits into one band with it."""
    not_before = t[j] >= t[i] if j >= i else t[j] > t[i]
    return (not_before & (t[j] < reach[i]) & (is_synthetic[j] == is_synthetic[i])).view(np.uint8)
