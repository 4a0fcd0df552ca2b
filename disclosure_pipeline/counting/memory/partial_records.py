"""Finding records of GT and SD that agree in all columns but one, for each column in turn.

The columns are dealt into two or more parts, and those outside a part become one code, to which the others of
the part are added. Many records are counted by the compiled loops, which sort by this code once for all
columns of a part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from math import prod

from disclosure_pipeline.counting.cells import CellParts
from disclosure_pipeline.counting.counts import CountRequest, Target
from disclosure_pipeline.counting.memory.packing import table_bits
from disclosure_pipeline.counting.memory.radix import Job, Limits, Radix, build_radix, is_compiled
from disclosure_pipeline.counting.memory.sorting import find_keys_without
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.levels import CodedColumn

LARGEST = 1 << 63
"""One more than the largest code: with a bit for the table, it fits 64 bits."""

_STEP = "Comparing records without a column"
_MOST_LOWER = 1 << 32  # combinations of a part: leaves room in the code for the others


def find_records(
    columns: Sequence[CodedColumn],
    syntheses: Sequence[int],
    limits: Limits,
    order: int | None = None,
    number: int = 0,
) -> CellParts:
    """Yield the cells by all of two or more columns, and by all but one, for each column; missing is a level.

    The tables of the columns are GT and these syntheses. `order`: leave out only columns of this part of
    `deal_columns`; the cells by all columns are found with the first. `number` is that of the request.
    """
    places = {id(column): place for place, column in enumerate(columns)}
    records = tuple(len(table.stored) for table in columns[0].tables)
    largest = LARGEST >> (table_bits(len(records)) - 1)
    parts = deal_columns(columns)
    for i, part in enumerate(parts) if order is None else [(order, parts[order])]:
        others = [column for other in parts if other is not part for column in other]
        whole: list[int | None] = [] if i else [None]
        left_out = [*whole, *(places[id(column)] for column in part)]
        if packed := _pack_as_targets(part, others, records, limits, number):
            from disclosure_pipeline.counting.memory.scanning import find_combinations

            yield packed.collect([partial(find_combinations, packed, syntheses, left_out)], threads=0)
            continue
        code = build_radix(others, records, largest // prod(column.size for column in part))
        radix = Radix((*code.columns, *part))
        job = Job(CountRequest(others), radix, records, limits, report_progress, number, _STEP)
        find = find_keys_without(job, syntheses)
        digits = [*whole, *range(len(code.columns), len(radix.columns))]
        finds = [partial(find, *places) for places in zip(digits, left_out, strict=True)]
        yield job.collect(finds, threads=job.formula_threads)


def _pack_as_targets(
    part: Sequence[CodedColumn],
    others: Sequence[CodedColumn],
    records: tuple[int, ...],
    limits: Limits,
    number: int,
) -> Job | None:
    """Return a job for the loops, a part of the columns as targets and the others as keys, or None.

    They count neither few records nor columns that do not fit a code.
    """
    if not is_compiled(sum(records), limits):
        return None
    request = CountRequest(others, [Target(column, CodedExclusions(), math.inf) for column in part])
    bits = sum(target.bits for target in request.targets)
    keys = build_radix(others, records, LARGEST >> bits)
    if keys.size > LARGEST >> bits:
        return None
    return Job(request, keys, records, limits, report_progress, number, _STEP)


def deal_columns(columns: Sequence[CodedColumn]) -> list[list[CodedColumn]]:
    """Deal the columns into parts of about equal numbers of combinations, two unless codes get too long.

    The largest columns come first in each part.
    """
    number = 2
    while True:
        parts: list[list[CodedColumn]] = [[] for _ in range(number)]
        for column in sorted(columns, key=lambda column: -column.size):
            fewest = min(parts, key=lambda part: (prod(other.size for other in part), len(part)))
            fewest.append(column)
        if number == len(columns) or max(prod(c.size for c in part) for part in parts) <= _MOST_LOWER:
            return parts
        number += 1
