"""The counts of coded records as Ibis expressions: integers, and quotients only where they are rounded down.

Keys are rows (q0, …, k0, k1, …): a key combination and the number of each table's records with it. Cells are
rows (q0, …, t, n0, n1, …): the same for a key combination and a target level. The counts of a key combination
depend only on its cells and on the key levels that exclusions name: combinations that share these form a
class, of which only one is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, mul, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.counting.cells import Cells
from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.relational.coding import (
    Digits,
    as_int64,
    count_rows,
    float64,
    int64,
    lay_out_words,
    levels_of,
    word_columns,
)
from disclosure_pipeline.counting.relational.transfer import fetch_rows
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import is_only_level
from disclosure_pipeline.measures.totals import APART_SCALE


def cells_left(cells: Any, exclusions: CodedExclusions, digits: Sequence[Digits]) -> Any:
    """Return the cells of GT whose records are not excluded."""
    t, d = as_int64(cells["t"]), as_int64(cells["n0"])
    excluded = [t == int64(level) for level in exclusions.target_levels]
    if exclusions.missing_target is not None:
        excluded.append(t == int64(exclusions.missing_target))
    excluded += [_has_level(cells, digits[k], level) for k, level in exclusions.missing_keys]
    excluded += [
        _has_level(cells, digits[k], level) & (t == int64(target_level))
        for k, level, target_level in exclusions.pairs
    ]
    if exclusions.count_over is not None:
        excluded.append(d > int64(exclusions.count_over))
    return cells.filter(d > 0, ~reduce(or_, excluded))


def _has_level(cells: Any, digits: Digits, level: int) -> Any:
    return (cells[f"q{digits.word}"] & int64(digits.mask)) == int64(level << digits.shift)


def count_key_combinations(records: Any, tables: int) -> Any:
    """Count each table's records by key combination: rows (q0, …, k0, k1, …)."""
    counts = {f"k{i}": count_rows(records, records["i"] == i) for i in range(tables)}
    return records.group_by(word_columns(records)).aggregate(**counts)


def merge_keys(keys: Any, digits: Sequence[Digits], tables: int) -> Any:
    """Merge the rows of `count_key_combinations` that agree in these digits: rows (q0, …, k0, k1, …)."""
    words = sorted({place.word for place in digits})
    masks = {word: sum(place.mask for place in digits if place.word == word) for word in words}
    counts = [f"k{i}" for i in range(tables)]
    rows = keys.select(*counts, **{f"q{word}": keys[f"q{word}"] & int64(masks[word]) for word in words})
    sums = {name: as_int64(rows[name].sum()) for name in counts}
    return rows.group_by(word_columns(rows)).aggregate(**sums)


def count_keys_by_size(keys: Any, tables: int) -> Any:
    """Count the key combinations by their numbers of records in each table: rows (k0, k1, …, keys)."""
    return keys.group_by([f"k{i}" for i in range(tables)]).aggregate(keys=count_rows)


def add_up_hits_apart(keys: Any, levels: Sequence[Any], digits: Sequence[Digits], N: Sequence[int]) -> Any:
    """Add up what `totals.count_hits_apart` does: one row (x1, …).

    `levels` holds for each key the rows (code, s1, …), the records of each synthesis with each level that any
    has. Quotients are multiplied in the order of `levels`, and rounded down before they are added up.
    """
    rows = keys.filter(keys["k0"] == 1).select(
        **{f"c{k}": keys[f"q{place.word}"] & int64(place.mask) for k, place in enumerate(digits)}
    )
    tables = range(1, len(N))
    for k, of_key in enumerate(levels):
        columns = {f"v{k}": of_key["code"]} | {f"s{k}_{i}": of_key[f"s{i}"] for i in tables}
        rows = rows.inner_join(of_key.select(**columns), [(f"c{k}", f"v{k}")])

    def chances(i: int) -> Any:
        shares = [rows[f"s{k}_{i}"].cast("float64") / float64(N[i]) for k in range(len(digits))]
        return reduce(mul, shares) * float64(APART_SCALE)

    sums = {f"x{i}": as_int64(as_int64(chances(i).floor()).sum()) for i in tables}
    return rows.aggregate(**{name: number.coalesce(int64(0)) for name, number in sums.items()})


def records_with_shared_keys(records: Any, keys: Any, tables: int) -> Any:
    """Return the records whose key combination another record has too, in any table."""
    of_all = reduce(add, [as_int64(keys[f"k{i}"]) for i in range(tables)])
    return records.semi_join(keys.filter(of_all > 1), word_columns(keys))


def count_cells(records: Any, target: int, tables: int) -> Any:
    """Count each table's records by cell of a target: rows (q0, …, t, n0, n1, …)."""
    counts = {f"n{i}": count_rows(records, records["i"] == i) for i in range(tables)}
    return records.group_by(*word_columns(records), t=records[f"t{target}"]).aggregate(**counts)


def records_as_cells(records: Any, target: int) -> Any:
    """Return each GT record as a cell of its own: rows (q0, …, t, n0)."""
    return records.filter(records["i"] == 0).select(
        *word_columns(records), t=records[f"t{target}"], n0=int64(1)
    )


def list_large_cells(cells: Any, keys: Any, synthesis: int, above: int) -> Any:
    """Return the cells of more than `above` GT records that a synthesis discloses: rows (q0, …, t, d)."""
    large = cells.filter(cells["n0"] > int64(above)).inner_join(keys, word_columns(cells))
    disclosed = large.filter(is_only_level(large[f"n{synthesis}"], large[f"k{synthesis}"]))
    return disclosed.select(*word_columns(cells), "t", d=disclosed["n0"])


def count_pairs(cells: Any, digits: Sequence[Digits]) -> Any:
    """Count GT records by level of each key and target level: rows (key, code, t, n); codes as in words."""
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


def classify_keys(
    cells: Any,
    layout: Mapping[str, Digits],
    exclusions: CodedExclusions,
    digits: Sequence[Digits],
) -> Any:
    """Count the key combinations that look the same in some tables: rows (cells, n, x0, x3, …).

    Cells are text: their words, cell by cell, in which `layout` gives the places of the level (t) and of the
    records of each table (n0, …). x0, x3, … are the levels of keys that exclusions name.
    """
    occurring = cells.filter(reduce(or_, [cells[name] > 0 for name in layout if name != "t"]))
    words: dict[int, list[Any]] = {}
    for name, place in layout.items():
        number = as_int64(occurring[name]) * int64(1 << place.shift)
        words.setdefault(place.word, []).append(number)
    texts_of_words = [reduce(add, numbers).cast("string") for numbers in words.values()]
    cell = reduce(lambda text, word: text.concat(" ", word), texts_of_words)
    lists = occurring.group_by(word_columns(cells)).aggregate(cells=cell.collect())
    named = {
        f"x{k}": _level_if_named(lists, digits[k], levels) for k, levels in _named_levels(exclusions).items()
    }
    texts = lists.select(cells=lists["cells"].sort().join(" "), **named)
    return texts.group_by("cells", *named).aggregate(n=count_rows)


def fetch_cells(
    cells: Any,
    tables: Sequence[int],
    target: Target,
    digits: Sequence[Digits],
    largest: Sequence[int],
    place: int,
) -> Cells:
    """Fetch the cells of a target, given its place in the request, in these tables (GT first).

    No cell has more than `largest` records of each of the tables.
    """
    places = lay_out_words([target.column.size, *largest])
    layout = dict(zip(("t", *(f"n{i}" for i in tables)), places, strict=True))
    rows = fetch_rows(classify_keys(cells, layout, target.exclusions, digits))
    texts = pc.split_pattern(rows.column("cells").combine_chunks().cast(pa.string()), " ")
    width = places[-1].word + 1
    number = np.asarray(pc.list_value_length(texts)).astype(np.int64) // width
    words = np.asarray(pc.list_flatten(texts).cast(pa.int64())).reshape(-1, width)
    numbers = levels_of(words.T, places).T
    q = np.repeat(np.arange(len(number)), number)
    t, *counts = numbers[np.lexsort((numbers[:, 0], q))].T.copy()
    named = np.full((len(digits), len(number)), -1)
    for k in _named_levels(target.exclusions):
        named[k] = np.asarray(rows.column(f"x{k}").cast(pa.int64())) >> digits[k].shift
    alike = np.asarray(rows.column("n").cast(pa.int64()))

    def levels_of_named(some: IntArray) -> IntArray:
        return named[:, some]

    return Cells(place, tables[1:], q, t, counts, levels_of_named, alike=alike, n=alike[q], is_joined=True)


def _level_if_named(keys: Any, digits: Digits, levels: Sequence[int]) -> Any:
    """Return a key's level in its place within a word, or all bits set (no level) if it is not named."""
    level = keys[f"q{digits.word}"] & int64(digits.mask)
    return level.isin([int64(named << digits.shift) for named in levels]).ifelse(level, int64(digits.mask))


def _named_levels(exclusions: CodedExclusions) -> Mapping[int, list[int]]:
    """Return the levels that exclusions name, by position of the key."""
    named: dict[int, set[int]] = {}
    for k, level, *_ in (*exclusions.missing_keys, *exclusions.pairs):
        named.setdefault(k, set()).add(level)
    return {k: sorted(named[k]) for k in sorted(named)}
