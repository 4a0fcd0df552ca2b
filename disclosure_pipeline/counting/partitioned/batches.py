"""The records of several tables, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.tables.levels import CodedColumn

Codes = npt.NDArray[Any]

_RECORDS = 1 << 20  # of a batch


@dataclass(frozen=True)
class Batches:
    """The records of some tables (GT first), which can be read any number of times.

    `records` are their numbers of records. `read(table)` gives the batches of a table. `code(table, batch,
    column)` gives the codes of a column for the records of a batch; only that is called on threads.
    """

    records: tuple[int, ...]
    read: Callable[[int], Iterable[Any]]
    code: Callable[[int, Any, CodedColumn], Codes]

    @property
    def tables(self) -> range:
        """The numbers of the tables."""
        return range(len(self.records))


@dataclass(frozen=True)
class CodedBatch:
    """The codes of a batch's records: of each column as many as it has `records`."""

    records: int
    codes: Mapping[int, Codes]

    def codes_of(self, column: CodedColumn) -> Codes:
        """Return the codes of a column."""
        return self.codes[id(column)]


def code_batch(batches: Batches, columns: Sequence[CodedColumn], table: int, batch: Any) -> CodedBatch:
    """Return a batch of a table, coded by each of the columns once."""
    codes = {id(column): batches.code(table, batch, column) for column in columns}
    return CodedBatch(len(next(iter(codes.values()))), codes)


def batches_in_memory(columns: Sequence[CodedColumn], records: int = _RECORDS) -> Batches:
    """Return the batches, of so many records, of columns that are in memory."""
    sizes = tuple(len(table.stored) for table in columns[0].tables)
    readers = {
        (table, id(column)): column.reader(table, np.arange(column.size))
        for column in columns
        for table in range(len(sizes))
    }
    return Batches(
        sizes,
        lambda table: (slice(start, start + records) for start in range(0, sizes[table], records)),
        lambda table, batch, column: readers[table, id(column)](batch),
    )
