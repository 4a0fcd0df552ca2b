"""What a database counts of coded records, as expressions of Ibis: integers, never a quotient.

Keys are rows (q0, …, k0, k1, …): the records of each table that have a key combination. Cells are rows
(q0, …, t, n0, n1, …): those that have a key combination and a target level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from disclosure_pipeline.engines.relational_coding import Digits, long, number_of, wide, words_of
from disclosure_pipeline.measures.exact import IntArray


@dataclass(frozen=True)
class Packing:
    """A cell as one number: from the highest digit its SD records, its level, and its GT records.

    Levels count downwards, so that of cells with as many SD records the first level makes the largest number.
    `targets` is the number of codes of the target; no cell has more than `most` GT records.
    """

    targets: int
    most: int

    @property
    def d_bits(self) -> int:
        """The bits of the GT records."""
        return self.most.bit_length()

    @property
    def bits(self) -> int:
        """The bits of the GT records and of the level."""
        return self.d_bits + self.targets.bit_length()

    def unpack(self, cells: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """GT records, SD records and level of some cells."""
        t = self.targets - ((cells >> self.d_bits) & ((1 << (self.bits - self.d_bits)) - 1))
        return cells & ((1 << self.d_bits) - 1), cells >> self.bits, t


def keys_of(records: Any, tables: int) -> Any:
    """The keys: rows (q0, …, k0, k1, …), each key combination with the records of each table."""
    counts = {f"k{i}": number_of(records, records["i"] == i) for i in range(tables)}
    return records.group_by(words_of(records)).aggregate(**counts)


def by_size(keys: Any, synthesis: int) -> Any:
    """How many key combinations have so many records: rows (d_q, s_q, keys)."""
    sizes = keys.select(d_q=keys["k0"], s_q=keys[f"k{synthesis}"])
    some = sizes.filter((sizes["d_q"] > 0) | (sizes["s_q"] > 0))
    return some.group_by("d_q", "s_q").aggregate(keys=number_of)


def lone(keys: Any, tables: int) -> Any:
    """How many key combinations have one record in all: rows (i, n), i the table that has it."""
    import ibis

    return ibis.union(
        *(
            keys.filter(_together(keys, tables) == 1, keys[f"k{i}"] == 1)
            .aggregate(n=number_of)
            .select("n", i=ibis.literal(i, "int16"))
            for i in range(tables)
        )
    )


def not_lone(records: Any, keys: Any, tables: int) -> Any:
    """The records whose key combination somebody else has too, in whatever table."""
    return records.semi_join(keys.filter(_together(keys, tables) > 1), words_of(keys))


def cells_of(records: Any, target: int, tables: int) -> Any:
    """The cells of a target: rows (q0, …, t, n0, n1, …)."""
    counts = {f"n{i}": number_of(records, records["i"] == i) for i in range(tables)}
    return records.group_by(*words_of(records), t=records[f"t{target}"]).aggregate(**counts)


def single(records: Any, target: int) -> Any:
    """The GT records as if each were a cell of its own: rows (q0, …, t, n0)."""
    return records.filter(records["i"] == 0).select(*words_of(records), t=records[f"t{target}"], n0=long(1))


def pack(packing: Packing, d: Any, s: Any, t: Any) -> Any:
    """Cells as numbers of a packing."""
    return s * long(1 << packing.bits) + (packing.targets - t) * long(1 << packing.d_bits) + d


def key_sums(cells: Any, synthesis: int, packing: Packing) -> Any:
    """The sums of each key combination, those with equal ones together.

    Rows (d_q, s_q, dd, ss, ds, keys, guessed, occupied, least, most): the five sums, how many combinations
    have them, the GT records that a guess of the most frequent level in SD names, the fewest target levels
    that GT has in one of them, and the fewest and most GT records in a cell that GT has (0 without any).
    """
    d, s, t = (wide(cells[name]) for name in ("n0", f"n{synthesis}", "t"))
    # The largest number of a key combination is that of the cell that is guessed, GT records included.
    guess = (s > 0).ifelse(pack(packing, d, s, t), long(0))
    rows = cells.select(*words_of(cells), d=d, s=s, guess=guess)
    rows = rows.filter((rows["d"] > 0) | (rows["s"] > 0))
    # Cast before they are multiplied: whatever type a database counts in, products need 64 bits.
    d, s = wide(rows["d"]), wide(rows["s"])
    sums = rows.group_by(words_of(rows)).aggregate(
        d_q=_sum(d),
        s_q=_sum(s),
        dd=_sum(d * d),
        ss=_sum(s * s),
        ds=_sum(d * s),
        guess=rows["guess"].max(),
        occupied=number_of(rows, rows["d"] > 0),
        least=_fewest(rows["d"]),
        most=rows["d"].max(),
    )
    by = ("d_q", "s_q", "dd", "ss", "ds")
    return sums.group_by(by).aggregate(
        keys=number_of(sums),
        guessed=_sum(sums["guess"] & long((1 << packing.d_bits) - 1)),
        occupied=sums["occupied"].min(),
        least=_fewest(sums["least"]),
        most=sums["most"].max(),
    )


def in_both(cells: Any, keys: Any, synthesis: int) -> Any:
    """The cells that GT has whose key combination is in SD too: rows (q0, …, t, d, s, s_q)."""
    of_keys = keys.select(*words_of(keys), s_q=wide(keys[f"k{synthesis}"]))
    d, s = wide(cells["n0"]), wide(cells[f"n{synthesis}"])
    found = cells.select(*words_of(cells), t=wide(cells["t"]), d=d, s=s)
    found = found.filter(found["d"] > 0).inner_join(of_keys.filter(of_keys["s_q"] > 0), words_of(cells))
    return found.select(*words_of(cells), "t", "d", "s", "s_q")


def drawn(cells: Any) -> Any:
    """Of the cells `in_both`: rows (s_q, t, d, squares, DiSCO), sums of d, of d², of d that is disclosed."""
    d = wide(cells["d"])
    return cells.group_by("s_q", "t").aggregate(
        d=_sum(d), squares=_sum(d * d), DiSCO=_sum(_disclosed(cells).ifelse(d, long(0)))
    )


def larger(cells: Any, than: int) -> Any:
    """Of the cells `in_both` the disclosed ones of more GT records: rows (q0, …, t, d)."""
    return cells.filter(_disclosed(cells) & (cells["d"] > long(than))).select(*words_of(cells), "t", "d")


def pairs(cells: Any, digits: Sequence[Digits]) -> Any:
    """GT records by the level of each key and of the target: rows (key, code, t, n); codes as in a word."""
    import ibis

    in_GT = cells.filter(cells["n0"] > 0)
    return ibis.union(
        *(
            in_GT.select("t", code=in_GT[f"q{each.word}"] & long(each.mask), d=wide(in_GT["n0"]))
            .group_by("code", "t")
            .aggregate(n=lambda rows: _sum(rows["d"]))
            .select("code", "t", "n", key=ibis.literal(k, "int16"))
            for k, each in enumerate(digits)
        )
    )


def _together(keys: Any, tables: int) -> Any:
    return reduce(add, [wide(keys[f"k{i}"]) for i in range(tables)])


def _disclosed(cells: Any) -> Any:
    return (cells["s"] > 0) & (cells["s"] == cells["s_q"])


def _sum(values: Any) -> Any:
    """A sum in 64 bits: databases make other types of it."""
    return wide(values.sum())


def _fewest(counts: Any) -> Any:
    import ibis

    return ibis.coalesce(counts.min(where=counts > 0), long(0))
