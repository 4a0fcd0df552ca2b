"""Several tables that were read in batches, one after the other as if they were one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.counting.partitioned.streams import Stream
from disclosure_pipeline.measures.exact import IntArray


@dataclass(frozen=True)
class StackedStream:
    """As `Stream`, of all records of `streams` in their order.

    `values`: column -> the number of values of each stream. The values of the second are numbered from where
    those of the first end, and so on.
    """

    streams: Sequence[Stream | StackedStream]
    values: Mapping[str, Sequence[int]]

    @property
    def records(self) -> int:
        """The number of records of all."""
        return sum(stream.records for stream in self.streams)

    @property
    def batches(self) -> range:
        """The numbers of the batches of all."""
        return range(sum(len(stream.batches) for stream in self.streams))

    def codes(self, column: str, batch: int, of_number: IntArray) -> IntArray:
        """The code of each record of a batch; `of_number` has one for each number, and last for missing."""
        position, own_batch = self._find(batch)
        first = sum(self.values[column][:position])
        own = of_number[first : first + self.values[column][position]]
        return self.streams[position].codes(column, own_batch, np.append(own, of_number[-1]))

    def value_numbers(self, positions: IntArray) -> dict[str, IntArray]:
        """The number of the value of each column (-1: missing) of some records, whose positions ascend."""
        parts: dict[str, list[IntArray]] = {column: [] for column in self.values}
        start = 0
        for position, stream in enumerate(self.streams):
            first, last = np.searchsorted(positions, [start, start + stream.records])
            numbers = stream.value_numbers(positions[first:last] - start)
            for column, of_column in parts.items():
                before = sum(self.values[column][:position])
                of_column.append(np.where(numbers[column] < 0, -1, numbers[column] + before))
            start += stream.records
        return {column: np.concatenate(of_column) for column, of_column in parts.items()}

    def _find(self, batch: int) -> tuple[int, int]:
        """The stream that a batch is of, and its number there."""
        for position, stream in enumerate(self.streams):
            if batch < len(stream.batches):
                return position, batch
            batch -= len(stream.batches)
        raise IndexError(batch)
