"""The loops of the fast kernel, as Numba compiles them: they run without the interpreter's lock.

The only module that imports Numba. A function here takes arrays and numbers, and fills arrays that its caller
made. Numbers that records are packed into are unsigned, of 64 bits: see `packing.PackedRecords`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

from disclosure_pipeline.measures.exact import Floats, IntArray

FEW = 8
"""Combinations of fewer records of each table are counted together, by the number of these."""
SMALLEST = 3
"""Key combinations of so many records at most are listed by their number."""
_TURNS = 4  # counts that records add to in turns
_ONE = np.uint64(1)
_HALF = np.uint64(32)  # a cell is one number: its SD records from this bit on, below it those of GT

Function = TypeVar("Function", bound=Callable[..., Any])
Records = np.ndarray[tuple[int], np.dtype[np.uint64]]
Rows = np.ndarray[tuple[int, int], np.dtype[np.uint64]]


@cache
def hash_source(path: str) -> int:
    """Return a number that is another one if the file changes; 0 if there is none."""
    return zlib.crc32(Path(path).read_bytes()) if Path(path).is_file() else 0


def compiled(function: Function) -> Function:
    """Compile a function at its first call; the machine code is kept where a cache can be written.

    Numba reads a cache before it compares the file's date, and fails if a class that it knows is gone. So the
    caches of other versions of the file have other names.
    """
    function.__qualname__ += f"-{hash_source(function.__code__.co_filename):08x}"
    try:
        return cast(Function, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return cast(Function, numba.njit(nogil=True)(function))


def inlined(function: Function) -> Function:
    """Put a function into those that call it."""
    return cast(Function, numba.njit(inline="always")(function))


@inlined
def find_place(stored: np.integer[Any], lowest: np.integer[Any], missing: np.uint64) -> np.uint64:
    """Return the place of what a record stores among those of its column: see `StoredColumn`."""
    # What is below the lowest wraps around to a large number.
    return min(np.uint64(np.int64(stored)) - np.uint64(np.int64(lowest)), missing)


@compiled
def count_stored(stored: IntArray, lowest: np.integer[Any], counts: IntArray) -> None:
    """Count the records with each place, in `_TURNS` rows: equal neighbours would wait for one another."""
    missing = np.uint64(counts.shape[1] - 1)
    for i in range(len(stored)):
        counts[i % _TURNS, find_place(stored[i], lowest, missing)] += 1


def count_codes(stored: IntArray, lowest: int, entries: int) -> IntArray:
    """Count as `levels.count_codes` does."""
    counts = np.zeros((_TURNS, entries), dtype=np.int64)
    count_stored(stored, stored.dtype.type(lowest), counts)
    return counts.sum(axis=0)


@compiled
def add_levels(packed: Records, stored: IntArray, lowest: np.integer[Any], values: Records) -> None:
    """Add to each record what its level stands for: see `StoredColumn`, of which `values` has the entries."""
    missing = np.uint64(len(values) - 1)
    for i in range(len(packed)):
        packed[i] += values[find_place(stored[i], lowest, missing)]


@compiled
def count_cells(
    codes: Records,
    stored: IntArray,
    lowest: np.integer[Any],
    level_of: IntArray,
    levels: int,
    counts: IntArray,
) -> None:
    """Count the records with each code and level: see `StoredColumn`, of which `level_of` has the entries."""
    missing = np.uint64(len(level_of) - 1)
    for i in range(len(codes)):
        counts[codes[i] * levels + level_of[find_place(stored[i], lowest, missing)]] += 1


@compiled
def count(codes: Records, counts: IntArray) -> None:
    """Count the records with each code."""
    for code in codes:
        counts[code] += 1


@compiled
def deal(packed: Records, shift: np.uint64, range_of: IntArray, ends: IntArray, dealt: Records) -> None:
    """Write the records range by range, and where each range ends, which is 0 at first.

    `range_of` has an entry for each `record >> shift`; keys larger than these belong to the last.
    """
    last = np.uint64(len(range_of) - 1)
    for record in packed:
        ends[range_of[min(record >> shift, last)]] += 1
    end = 0
    for i in range(len(ends)):
        begin, end = end, end + ends[i]
        ends[i] = begin
    for record in packed:
        own = range_of[min(record >> shift, last)]
        dealt[ends[own]] = record
        ends[own] += 1


@compiled
def gather(dealt: Records, bounds: IntArray, number: int, records: Records) -> int:
    """Write the records of a range, part by part, and return how many: see `DealtRecords`."""
    end = 0
    for part in range(len(bounds)):
        for i in range(bounds[part, number], bounds[part, number + 1]):
            records[end] = dealt[i]
            end += 1
    return end


_DIGIT = 11  # bits, so that the counts of a digit's values fit the fastest cache


@compiled
def sort_by_key(records: Records, spare: Records, key_bit: np.uint64) -> Records:
    """Return the records sorted by key, digit by digit from the lowest; either array may hold them."""
    lowest = highest = records[0] >> key_bit
    for record in records:
        lowest, highest = min(lowest, record >> key_bit), max(highest, record >> key_bit)
    shift = np.uint64(0)
    while (highest - lowest) >> shift:
        first = np.zeros((1 << _DIGIT) + 1, dtype=np.int64)
        last_value = np.uint64((1 << _DIGIT) - 1)
        for record in records:
            first[(((record >> key_bit) - lowest) >> shift & last_value) + np.uint64(1)] += 1
        for value in range(1 << _DIGIT):
            first[value + 1] += first[value]
        for record in records:
            value = ((record >> key_bit) - lowest) >> shift & last_value
            spare[first[value]] = record
            first[value] += 1
        records, spare = spare, records
        shift += np.uint64(_DIGIT)
    return records


class FoundKeys(NamedTuple):
    """The key combinations of sorted records.

    begins: where the records of each begin: a row for those of 1, 2, … up to `SMALLEST` records, and one for
        the others, of which `ends` says where they end. used: how many each row has.
    looks: how many have d and s records (shape: `FEW`, `FEW`). large: the cells of those with more.
    lone: the code of those that one GT record has. listed: how many are in `large`, and in `lone`.
    """

    begins: IntArray
    ends: IntArray
    used: IntArray
    looks: IntArray
    large: Records
    lone: Records
    listed: IntArray


@compiled
def find_keys(records: Records, key_bit: np.uint64, keys: FoundKeys) -> None:
    """Find the key combinations of sorted records. What `keys` counts is 0 at first."""
    begins, ends, used, looks, large, lone, listed = keys
    table_bit = key_bit - _ONE
    begin = in_SD = 0
    for end in range(1, len(records) + 1):
        in_SD += np.int64(records[end - 1] >> table_bit & _ONE)
        if end < len(records) and records[end] >> key_bit == records[begin] >> key_bit:
            continue
        row, in_GT = min(end - begin - 1, SMALLEST), end - begin - in_SD
        begins[row, used[row]] = begin
        ends[used[SMALLEST]] = end  # of the last row: otherwise it is written again
        used[row] += 1
        if in_GT < FEW and in_SD < FEW:
            looks[in_GT, in_SD] += 1
        else:
            large[listed[0]] = np.uint64(in_GT) | np.uint64(in_SD) << _HALF
            listed[0] += 1
        if in_GT == 1:
            lone[listed[1]] = records[begin] >> key_bit
            listed[1] += 1
        begin, in_SD = end, 0


class Classes(NamedTuple):
    """Key combinations that look the same for a target, as a class; `used`: how many classes, and rows.

    slots: where a class is found by its code, by hashing; -1 where none is.
    table: what is known of each class (shape: classes, 4): its code, which holds the d and s of all cells
        (see `add_alike`); the place of each look among its rows, four bits each; where these rows begin, one
        for each different look and target level; and how many key combinations look like it.
    rows: how many cells have each look and level.
    """

    slots: IntArray
    table: Records
    rows: IntArray
    used: IntArray


_CODE, _PLACES, _BEGIN, _ALIKE = range(4)


class Field(NamedTuple):
    """The bits of a record that say its table, and from `shift` on its level of a target, of `levels`."""

    table_bit: np.uint64
    shift: np.uint64
    mask: np.uint64
    levels: int
    missing: np.uint64


class Single(NamedTuple):
    """Key combinations that stand for themselves; `used`: how many of them, and how many cells.

    key: the code of each. q, t, d, s: the cells of each, numbered from 0.
    """

    key: Records
    q: IntArray
    t: IntArray
    d: IntArray
    s: IntArray
    used: IntArray


class Large(NamedTuple):
    """DiSCO cells to list, of key combinations that are in a class; `used`: their number."""

    key: Records
    t: IntArray
    d: IntArray
    used: IntArray


_LOW = np.uint64((1 << 32) - 1)
_ABOVE_3 = np.uint64(0xFFFFFFFC_FFFFFFFC)  # the bits of a cell with more than 3 records of GT or of SD
_FIELD = np.uint64(4)  # bits
_LOOKS = 16


def split_cells(cells: IntArray) -> tuple[IntArray, IntArray]:
    """Return the GT and the SD records of each cell."""
    return np.divmod(cells, 1 << int(_HALF))[::-1]


_MOST_CELLS = 15
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads codes over the slots
_NONE = -1


@compiled
def find_class(classes: Classes, code: np.uint64, levels: int, looks: int) -> int:
    """Return the number of the class with this code, a new one if need be; -1 if there is no room for it.

    `looks`: how many different cells the class has; 0 if the fields of the code say so.
    """
    slots = np.uint64(len(classes.slots) - 1)
    slot = (code * _MIX) >> _HALF & slots
    while classes.slots[slot] >= 0:
        if classes.table[classes.slots[slot], _CODE] == code:
            return int(classes.slots[slot])
        slot = (slot + _ONE) & slots
    number, end = classes.used
    if number == len(classes.table):
        return _NONE
    places = np.uint64(0)
    if not looks:
        for look in range(_LOOKS - 1):
            if code >> (_FIELD + _FIELD * np.uint64(look)) & np.uint64(_MOST_CELLS):
                places |= np.uint64(looks) << _FIELD * np.uint64(look)
                looks += 1
    if end + looks * levels > len(classes.rows):
        return _NONE
    classes.slots[slot] = number
    classes.table[number, _CODE], classes.table[number, _PLACES] = code, places
    classes.table[number, _BEGIN], classes.table[number, _ALIKE] = np.uint64(end), np.uint64(0)
    classes.used[0] = number + 1
    classes.used[1] = end + looks * levels
    return int(number)


@compiled
def add_sorted(
    classes: Classes, levels: int, missing: np.uint64, seen: Records, cells: Records, times: int
) -> bool:
    """Add key combinations with larger cells to their class; False if they do not fit a code, or it is full.

    Its levels are sorted by how their cells look, the missing one first. From the lowest bit up, the code has
    the number of bits of d and of s in four, whether a cell is of the missing level, and the cells.
    """
    every = np.uint64(0)
    for t in seen:
        every |= cells[t] | cells[t] >> _HALF
    width = _ONE
    while (every & _LOW) >> width:
        width += _ONE
    if width >> _FIELD or np.uint64(5) + np.uint64(2 * len(seen)) * width > np.uint64(64):
        return False
    for i in range(1, len(seen)):
        t, place = seen[i], i
        while (
            place > 0 and seen[place - 1] != missing and (t == missing or cells[seen[place - 1]] > cells[t])
        ):
            seen[place] = seen[place - 1]
            place -= 1
        seen[place] = t
    code, looks = np.uint64(0), 0
    for i in range(len(seen)):
        cell = cells[seen[i]]
        code = (code << width | cell >> _HALF) << width | cell & _LOW
        looks += i == 0 or seen[i - 1] == missing or cell != cells[seen[i - 1]]
    code = (code << _ONE | np.uint64(seen[0] == missing)) << _FIELD | width
    own = find_class(classes, code, levels, looks)
    if own < 0:
        return False
    classes.table[own, _ALIKE] += np.uint64(times)
    row = np.int64(classes.table[own, _BEGIN])
    for i in range(len(seen)):
        if i and (seen[i - 1] == missing or cells[seen[i]] != cells[seen[i - 1]]):
            row += levels
        classes.rows[row + np.int64(seen[i])] += times
    return True


@inlined
def add_alike(
    classes: Classes,
    slots: IntArray,
    table: Records,
    rows: IntArray,
    levels: int,
    missing: np.uint64,
    seen: Records,
    number: int,
    cells: Records,
    times: int,
) -> bool:
    """Add so many key combinations with these cells to their class; False if they find no room.

    `seen`: the levels of the cells, of which there are `number`. The arrays are those of the classes: reading
    a field for each key combination takes longer than all else.

    Key combinations look the same if they have as many cells of each d and s, and the same ones for the
    missing level. If none is above 3, the code of a class has a field of four bits for each look (4 d + s,
    below 15): how many cells have it. Before these is the look of the missing level, first of all 0.
    """
    code, every = np.uint64(0), np.uint64(0)
    for i in range(number):
        t = seen[i]
        look = (cells[t] & _LOW) << np.uint64(2) | cells[t] >> _HALF
        every |= cells[t] | np.uint64(look == np.uint64(15)) << np.uint64(2)
        code += look << _FIELD if t == missing else _ONE << (_FIELD * (look + _ONE) & np.uint64(63))
    if every & _ABOVE_3 or number > _MOST_CELLS:
        return add_sorted(classes, levels, missing, seen[:number], cells, times)
    own = np.int64(slots[(code * _MIX) >> _HALF & np.uint64(len(slots) - 1)])
    if own < 0 or table[own, _CODE] != code:
        own = find_class(classes, code, levels, 0)
    if own < 0:
        return False
    table[own, _ALIKE] += np.uint64(times)
    places, begin = table[own, _PLACES], table[own, _BEGIN]
    for i in range(number):
        t = seen[i]
        look = (cells[t] << np.uint64(2) | cells[t] >> _HALF) & np.uint64(15)
        if t == missing:
            look = np.uint64(0)
        place = places >> _FIELD * look & np.uint64(15)
        rows[begin + place * np.uint64(levels) + t] += times
    return True


@compiled
def add_keys(
    records: Records,
    begins: IntArray,
    ends: IntArray,
    field: Field,
    most: int,
    list_above: float,
    classes: Classes,
    single: Single,
    large: Large,
) -> None:
    """Add the key combinations of sorted records to the classes of a target, or else to the single ones.

    Only those of at most `most` records are added to a class. DiSCO cells of more than `list_above` GT
    records are listed, unless their key combination is single.
    """
    table_bit, shift, mask, levels, missing = field
    cells, seen = np.zeros(levels, dtype=np.uint64), np.empty(levels + 1, dtype=np.uint64)
    slots, table, rows, _ = classes
    for k in range(len(begins)):
        begin, end, number = begins[k], ends[k], 0
        for i in range(begin, end):
            record = records[i]
            t = record >> shift & mask
            seen[number] = t
            number += cells[t] == 0
            cells[t] += _ONE << ((record >> table_bit & _ONE) << np.uint64(5))
        if end - begin > most or not add_alike(
            classes, slots, table, rows, levels, missing, seen, number, cells, 1
        ):
            q, cell = single.used
            single.key[q] = records[begin] >> (table_bit + _ONE)
            for t in np.sort(seen[:number]):
                single.q[cell], single.t[cell] = q, t
                single.d[cell], single.s[cell] = cells[t] & _LOW, cells[t] >> _HALF
                cell += 1
            single.used[0], single.used[1] = q + 1, cell
        elif end - begin > list_above:
            with_SD, disclosed = 0, np.uint64(0)
            for j in range(number):
                if cells[seen[j]] >> _HALF:
                    with_SD += 1
                    disclosed = seen[j]
            if with_SD == 1 and (cells[disclosed] & _LOW) > list_above:
                listed = large.used[0]
                large.key[listed] = records[begin] >> (table_bit + _ONE)
                large.t[listed], large.d[listed] = disclosed, cells[disclosed] & _LOW
                large.used[0] = listed + 1
        for j in range(number):
            cells[seen[j]] = 0


@compiled
def count_small(
    records: Records,
    begins: IntArray,
    size: int,
    field: Field,
    counts: IntArray,
) -> None:
    """Count key combinations of `size` records each: by how many are of SD, and by their levels, in order.

    `counts` is the table of all that are possible (shape: size + 1, levels, levels, …), as one row.
    """
    table_bit, shift, mask, levels, _ = field
    for begin in begins:
        in_SD = place = 0
        for i in range(begin, begin + size):
            in_SD += np.int64(records[i] >> table_bit & _ONE)
            place = levels * place + np.int64(records[i] >> shift & mask)
        counts[levels**size * in_SD + place] += 1


@compiled
def add_small(classes: Classes, levels: int, missing: np.uint64, size: int, counts: IntArray) -> None:
    """Add the key combinations of `count_small`, in which records of GT come first, to their classes."""
    cells, seen = np.zeros(levels, dtype=np.uint64), np.empty(size, dtype=np.uint64)
    slots, table, rows, _ = classes
    for place in range(len(counts)):
        if not counts[place]:
            continue
        in_SD, rest, number = place // levels**size, place, 0
        for i in range(size):  # the last record first
            t = np.uint64(rest % levels)
            rest //= levels
            seen[number] = t
            number += cells[t] == 0
            cells[t] += _ONE << (np.uint64(i < in_SD) << np.uint64(5))
        if not add_alike(classes, slots, table, rows, levels, missing, seen, number, cells, counts[place]):
            raise AssertionError("There is room for all classes of few records.")
        for j in range(number):
            cells[seen[j]] = 0


@compiled
def merge(classes: Classes, others: Classes, levels: int) -> None:
    """Add the other classes to the same ones of `classes`, which has room for them."""
    for other in range(others.used[0]):
        begin, end = find_rows(others, other)
        own = find_class(classes, others.table[other, _CODE], levels, (end - begin) // levels)
        classes.table[own, _ALIKE] += others.table[other, _ALIKE]
        first = np.int64(classes.table[own, _BEGIN])
        for row in range(end - begin):
            classes.rows[first + row] += others.rows[begin + row]


@compiled
def find_rows(classes: Classes, number: int) -> tuple[int, int]:
    """Return where the rows of a class begin and end."""
    end = classes.used[1]
    if number + 1 < classes.used[0]:
        end = np.int64(classes.table[number + 1, _BEGIN])
    return np.int64(classes.table[number, _BEGIN]), end


@compiled
def list_looks(code: np.uint64, looks: Records) -> None:
    """Write the different cells of a class in the order of its rows, from its code."""
    width, number = code & np.uint64(15), 0
    if not width:
        for look in range(_LOOKS - 1):
            field = code >> (_FIELD + _FIELD * np.uint64(look)) & np.uint64(15)
            if field:
                cell = np.uint64(look) if look else field
                looks[number] = (cell & np.uint64(3)) << _HALF | cell >> np.uint64(2)
                number += 1
        return
    with_missing = code >> _FIELD & _ONE
    code >>= np.uint64(5)
    one, number = (_ONE << width) - _ONE, len(looks)
    while code:
        cell = (code >> width & one) << _HALF | code & one
        code >>= np.uint64(2) * width
        is_missing = with_missing and not code
        if number == len(looks) or is_missing or looks[number] != cell:
            number -= 1
            looks[number] = cell


@compiled
def read_classes(
    classes: Classes,
    levels: int,
    q: IntArray,
    t: IntArray,
    d: IntArray,
    s: IntArray,
    n: IntArray,
    alike: IntArray,
) -> None:
    """Write the cells of the classes, in order, and how many key combinations each class stands for.

    The arrays of cells have an entry for each row that is not 0.
    """
    cell = 0
    for number in range(classes.used[0]):
        alike[number] = classes.table[number, _ALIKE]
        begin, end = find_rows(classes, number)
        looks = np.empty((end - begin) // levels, dtype=np.uint64)
        list_looks(classes.table[number, _CODE], looks)
        for row in range(end - begin):
            if classes.rows[begin + row]:
                look = looks[row // levels]
                q[cell], t[cell], n[cell] = number, row % levels, classes.rows[begin + row]
                d[cell], s[cell] = look & _LOW, look >> _HALF
                cell += 1


@compiled
def count_combinations(
    records: Records,
    key_bit: np.uint64,
    masks: Records,
    most: int,
    slots: Records,
    table: Rows,
    looks: IntArray,
    large: Rows,
    found: IntArray,
) -> None:
    """Count the records of each combination of the bits of each mask, which all hold the key's.

    `records` are sorted by key. To `looks` (shape: masks, `FEW`, `FEW`) is added how many combinations have d
    and s records. Those of more are written to `large` (shape: masks, enough of them), d in the lower half of
    a number and s in the upper; `found` has their numbers, 0 at first.

    The combinations of a key, at most `most`, are found by hashing: each has a row of `table` with its code
    and its cell, which is 0 at first and at the end. There are eight rows for each of so many, or for each
    record; `slots` lists those of more than one record.
    """
    table_bit = key_bit - _ONE
    begin = 0
    for end in range(1, len(records) + 1):
        if end < len(records) and records[end] >> key_bit == records[begin] >> key_bit:
            continue
        if end - begin == 1:
            is_synthetic = records[begin] >> table_bit & _ONE
            for i in range(len(masks)):
                looks[i, _ONE - is_synthetic, is_synthetic] += 1
            begin = end
            continue
        bits = _ONE
        while min(end - begin, most) >> bits:
            bits += _ONE
        shift, last = np.uint64(62) - bits, (np.uint64(4) << bits) - _ONE
        for i in range(len(masks)):
            mask, number, alone = masks[i], 0, np.uint64(0)  # cells of one record are added up, too
            for j in range(begin, end):
                code, one = records[j] & mask, _ONE << ((records[j] >> table_bit & _ONE) << np.uint64(5))
                slot = (code * _MIX) >> shift
                cell = table[slot, 1]
                while cell and table[slot, 0] != code:
                    slot = (slot + _ONE) & last
                    cell = table[slot, 1]
                table[slot, 1] = cell + one
                if not cell:
                    table[slot, 0] = code
                    alone += one
                elif cell == _ONE or cell == _ONE << _HALF:
                    alone -= cell
                    slots[number] = slot
                    number += 1
            looks[i, 1, 0] += alone & _LOW
            looks[i, 0, 1] += alone >> _HALF
            for k in range(number):
                cell = table[slots[k], 1]
                d, s = cell & _LOW, cell >> _HALF
                if d < FEW and s < FEW:
                    looks[i, d, s] += 1
                else:
                    large[i, found[i]] = cell
                    found[i] += 1
            table[: last + _ONE, 1] = 0
        begin = end


@compiled
def count_hits_apart(
    codes: Records, sizes: Records, first: IntArray, shares: Floats, order: IntArray, scale: float
) -> int:
    """Count as `totals.count_hits_apart` does, from the codes of key combinations.

    `codes` ascend, and have a digit for each key: `sizes` are those of their columns, the highest digit's
    first. `shares` has those of the levels of each digit, from `first` on; they are multiplied in `order`.
    """
    above = np.full(len(sizes), np.uint64(0) - _ONE)
    chances, hits = np.empty(len(sizes)), 0
    for code in codes:
        rest = code
        for digit in range(len(sizes) - 1, -1, -1):
            higher = rest // sizes[digit]
            chances[digit] = shares[first[digit] + np.int64(rest - higher * sizes[digit])]
            if above[digit] == higher:  # so are all higher digits those of the code before
                break
            above[digit] = rest = higher
        chance = 1.0
        for digit in order:
            chance *= chances[digit]
        hits += np.int64(np.floor(chance * scale))
    return hits


_EVERY_SECOND, _TWO_OF_FOUR = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_FOUR_OF_EIGHT, _EVERY_EIGHTH = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@compiled
def count_in_sets(
    bits: Rows,
    rows: IntArray,
    sets: IntArray,
    lengths: IntArray,
    joined_before: IntArray,
    counts: IntArray,
) -> None:
    """Count the records near people on sets of columns: see `box_sets.BoxCounter`.

    `bits` (shape: rows, records / 64) says which records are near, `rows` (shape: columns, people) where
    those of a person in a column are. `sets` has the columns of each set, as many as `lengths` says; the set
    before begins with `joined_before` of them, too, and ends with another one. `counts` has the shape sets,
    people.
    """
    joined = np.empty((sets.shape[1], bits.shape[1]), dtype=np.uint64)
    for person in range(counts.shape[1]):
        for i in range(len(sets)):
            last = lengths[i] - 1
            for k in range(joined_before[i], last):
                own = bits[rows[sets[i, k], person]]
                before = joined[k - 1] if k else own
                for j in range(len(own)):
                    joined[k, j] = before[j] & own[j]
            own = bits[rows[sets[i, last], person]]
            before = joined[last - 1] if last else own
            ones = np.uint64(0)
            for j in range(len(own)):
                word = before[j] & own[j]
                # Sums of two, of four, and of eight bits, which a product adds up.
                word -= (word >> _ONE) & _EVERY_SECOND
                word = (word & _TWO_OF_FOUR) + ((word >> np.uint64(2)) & _TWO_OF_FOUR)
                word = (word + (word >> np.uint64(4))) & _FOUR_OF_EIGHT
                ones += (word * _EVERY_EIGHTH) >> np.uint64(56)
            counts[i, person] = ones
