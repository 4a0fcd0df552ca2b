"""The counts of coded records, as expressions of Ibis: integers, never a quotient.

Keys are rows (q0, …, k0, k1, …): the records of each table that have a key combination. Cells are rows
(q0, …, t, n0, n1, …): those that have a key combination and a target level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, or_
from typing import Any

from disclosure_pipeline.counting.relational.coding import Digits, as_int64, count_rows, int64, word_columns
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


def count_key_combinations(records: Any, tables: int) -> Any:
    """The keys: rows (q0, …, k0, k1, …), each key combination with the records of each table."""
    counts = {f"k{i}": count_rows(records, records["i"] == i) for i in range(tables)}
    return records.group_by(word_columns(records)).aggregate(**counts)


def merge_keys(keys: Any, digits: Sequence[Digits], tables: int) -> Any:
    """The keys by some of their digits only: rows (q0, …, k0, k1, …) as `count_key_combinations`."""
    words = sorted({of_key.word for of_key in digits})
    masks = {word: sum(of_key.mask for of_key in digits if of_key.word == word) for word in words}
    counts = [f"k{i}" for i in range(tables)]
    rows = keys.select(*counts, **{f"q{word}": keys[f"q{word}"] & int64(masks[word]) for word in words})
    sums = {name: as_int64(rows[name].sum()) for name in counts}
    return rows.group_by(word_columns(rows)).aggregate(**sums)


def count_keys_by_size(keys: Any, synthesis: int) -> Any:
    """How many key combinations have so many records: rows (d_q, s_q, keys)."""
    occurring = keys.filter((keys["k0"] > 0) | (keys[f"k{synthesis}"] > 0))
    sizes = occurring.group_by(d_q=occurring["k0"], s_q=occurring[f"k{synthesis}"])
    return sizes.aggregate(keys=count_rows)


def count_lone_keys(keys: Any, tables: int) -> Any:
    """How many key combinations have one record in all, by the table that has it: one row (n0, n1, …)."""
    lone = keys.filter(_all_records(keys, tables) == 1)
    return lone.aggregate(**{f"n{i}": count_rows(lone, lone[f"k{i}"] == 1) for i in range(tables)})


def records_with_shared_keys(records: Any, keys: Any, tables: int) -> Any:
    """The records whose key combination somebody else has too, in whatever table."""
    return records.semi_join(keys.filter(_all_records(keys, tables) > 1), word_columns(keys))


def count_cells(records: Any, target: int, tables: int) -> Any:
    """The cells of a target: rows (q0, …, t, n0, n1, …)."""
    counts = {f"n{i}": count_rows(records, records["i"] == i) for i in range(tables)}
    return records.group_by(*word_columns(records), t=records[f"t{target}"]).aggregate(**counts)


def records_as_cells(records: Any, target: int) -> Any:
    """The GT records as if each were a cell of its own: rows (q0, …, t, n0)."""
    return records.filter(records["i"] == 0).select(
        *word_columns(records), t=records[f"t{target}"], n0=int64(1)
    )


def pack(packing: Packing, d: Any, s: Any, t: Any) -> Any:
    """Cells as numbers of a packing."""
    return s * int64(1 << packing.bits) + (packing.targets - t) * int64(1 << packing.d_bits) + d


def list_large_cells(cells: Any, keys: Any, tables: int, above: int) -> Any:
    """The cells of more GT records that a synthesis discloses: rows (q0, …, t, d, x1, …).

    x1, … are whether the first one does, and so on.
    """
    large = cells.filter(cells["n0"] > int64(above)).inner_join(keys, word_columns(cells))
    disclosed = {f"x{i}": (large[f"n{i}"] > 0) & (large[f"n{i}"] == large[f"k{i}"]) for i in range(1, tables)}
    rows = large.select(*word_columns(cells), "t", d=large["n0"], **disclosed)
    return rows.filter(reduce(or_, [rows[name] for name in disclosed]))


def count_pairs(cells: Any, digits: Sequence[Digits]) -> Any:
    """GT records by the level of each key and of the target: rows (key, code, t, n); codes as in a word."""
    import ibis

    in_GT = cells.filter(cells["n0"] > 0)
    return ibis.union(
        *(
            in_GT.group_by("t", code=in_GT[f"q{key_digits.word}"] & int64(key_digits.mask))
            .aggregate(n=as_int64(in_GT["n0"].sum()))
            .select("code", "t", "n", key=ibis.literal(k, "int16"))
            for k, key_digits in enumerate(digits)
        )
    )


def _all_records(keys: Any, tables: int) -> Any:
    return reduce(add, [as_int64(keys[f"k{i}"]) for i in range(tables)])
