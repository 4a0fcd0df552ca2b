"""The counts of coded records, as expressions of Ibis: integers, never a quotient.

Keys are rows (q0, …, k0, k1, …): the records of each table that have a key combination. Cells are rows
(q0, …, t, n0, n1, …): those that have a key combination and a target level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
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
    sizes = keys.select(d_q=keys["k0"], s_q=keys[f"k{synthesis}"])
    occurring = sizes.filter((sizes["d_q"] > 0) | (sizes["s_q"] > 0))
    return occurring.group_by("d_q", "s_q").aggregate(keys=count_rows)


def count_lone_keys(keys: Any, tables: int) -> Any:
    """How many key combinations have one record in all: rows (i, n), i the table that has it."""
    import ibis

    return ibis.union(
        *(
            keys.filter(_all_records(keys, tables) == 1, keys[f"k{i}"] == 1)
            .aggregate(n=count_rows)
            .select("n", i=ibis.literal(i, "int16"))
            for i in range(tables)
        )
    )


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


def cells_in_both(cells: Any, keys: Any, synthesis: int) -> Any:
    """The cells that GT has whose key combination is in SD too: rows (q0, …, t, d, s, s_q)."""
    keys_in_SD = keys.select(*word_columns(keys), s_q=as_int64(keys[f"k{synthesis}"]))
    d, s = as_int64(cells["n0"]), as_int64(cells[f"n{synthesis}"])
    rows = cells.select(*word_columns(cells), t=as_int64(cells["t"]), d=d, s=s)
    rows = rows.filter(rows["d"] > 0).inner_join(
        keys_in_SD.filter(keys_in_SD["s_q"] > 0), word_columns(cells)
    )
    return rows.select(*word_columns(cells), "t", "d", "s", "s_q")


def list_large_cells(cells: Any, above: int) -> Any:
    """Of the `cells_in_both` the disclosed ones of more GT records: rows (q0, …, t, d)."""
    return cells.filter(_is_disclosed(cells) & (cells["d"] > int64(above))).select(
        *word_columns(cells), "t", "d"
    )


def count_pairs(cells: Any, digits: Sequence[Digits]) -> Any:
    """GT records by the level of each key and of the target: rows (key, code, t, n); codes as in a word."""
    import ibis

    in_GT = cells.filter(cells["n0"] > 0)
    return ibis.union(
        *(
            in_GT.select(
                "t", code=in_GT[f"q{key_digits.word}"] & int64(key_digits.mask), d=as_int64(in_GT["n0"])
            )
            .group_by("code", "t")
            .aggregate(n=lambda rows: _sum(rows["d"]))
            .select("code", "t", "n", key=ibis.literal(k, "int16"))
            for k, key_digits in enumerate(digits)
        )
    )


def _all_records(keys: Any, tables: int) -> Any:
    return reduce(add, [as_int64(keys[f"k{i}"]) for i in range(tables)])


def _is_disclosed(cells: Any) -> Any:
    return (cells["s"] > 0) & (cells["s"] == cells["s_q"])


def _sum(values: Any) -> Any:
    """A sum in 64 bits: databases make other types of it."""
    return as_int64(values.sum())
