"""What exposure is measured of: a target, and the syntheses that it is guessed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from disclosure_pipeline.counting.memory.key_set_tree import Column
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.exposure import Chances, Guessing
from disclosure_pipeline.measures.samples import Sizes


@dataclass(frozen=True)
class Synthesis:
    """One synthesis: its table, and what follows from its size."""

    table: int
    sizes: Sizes
    chances: Chances


@dataclass(frozen=True)
class ExposureTarget:
    """A target: its codes, its place among the columns that sets are made of, how each SD is guessed from."""

    column: Column
    position: int | None
    guessing: tuple[Guessing, ...]

    @classmethod
    def from_column(
        cls, column: Column, no_guess: Mask, position: int | None, syntheses: Sequence[Synthesis]
    ) -> ExposureTarget:
        """`no_guess` marks the levels that nobody guesses."""
        counts = [np.bincount(codes, minlength=column.size) for codes in column.codes]
        guessing = [
            Guessing(synthesis.sizes, counts[0], counts[synthesis.table], no_guess) for synthesis in syntheses
        ]
        return cls(column, position, tuple(guessing))

    def of_records(self, records: Sequence[IntArray]) -> ExposureTarget:
        """The same of some records of each table; guesses are of all."""
        return replace(self, column=self.column.of_records(records))
