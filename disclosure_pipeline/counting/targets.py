"""What an engine is asked to count: key combinations, the levels of targets within them, and samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask, total
from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class Target:
    """A target column, the cells to exclude, and which cells to list.

    The DiSCO cells of more GT records than `list_cells_above` are listed one by one. What is claimed with
    less than certainty is counted for each of the `certainties`.
    """

    column: CodedColumn
    exclusions: CodedExclusions
    list_cells_above: float
    certainties: tuple[Fraction, ...] = ()

    def sizes(self, synthesis: int) -> Sizes:
        """Return the numbers of records of GT and of a synthesis; of all, where some of them are counted."""
        return Sizes(total(self.column.counts[0]), total(self.column.counts[synthesis]))

    @property
    def no_guess(self) -> Mask:
        """Marks the levels that nobody guesses (shape: codes)."""
        return guess_is_impossible(self.column)

    def occurring_no_guess(self, synthesis: int) -> Mask | None:
        """`no_guess`, or None where no record of GT or of this synthesis has such a level."""
        counts = self.column.counts
        return self.no_guess if (self.no_guess & (counts[0] + counts[synthesis] > 0)).any() else None

    def occurring_levels(self, synthesis: int) -> int:
        """Return the number of levels that occur in GT or in this synthesis, missing among them."""
        counts = self.column.counts
        return int(((counts[0] > 0) | (counts[synthesis] > 0)).sum())

    @property
    def bits(self) -> int:
        """The number of binary digits of a level's code."""
        return (self.column.size - 1).bit_length()


@dataclass(frozen=True)
class CountRequest:
    """The columns whose combinations are counted, and the targets whose levels are counted within each.

    `together`: whether to count what all syntheses disclose as one release, too. `by_level`: the places of
    keys by whose levels people are counted, too; without targets.
    """

    keys: Sequence[CodedColumn]
    targets: Sequence[Target] = ()
    together: bool = False
    by_level: tuple[int, ...] = ()

    @property
    def columns(self) -> list[CodedColumn]:
        """The keys, then the columns of the targets."""
        return [*self.keys, *(target.column for target in self.targets)]


def columns_of_requests(requests: Sequence[CountRequest]) -> list[CodedColumn]:
    """Return the columns of several requests; one that they share comes once if it is one object."""
    return list({id(column): column for request in requests for column in request.columns}.values())


def guess_is_impossible(target: CodedColumn) -> Mask:
    """Mark the level of a target that nobody guesses, missing (shape: its codes).

    A level of SD that no GT record has is a guess, and a wrong one: an intruder cannot know that GT lacks it.
    """
    return np.arange(target.size) == target.missing


def sample_positions(records: Sequence[int], most: int, seed: int) -> list[IntArray | None]:
    """Draw at most so many positions of tables of so many `records`, ascending; None for all of them."""
    return [
        None if number <= most else _draw_positions(number, most, seed, table)
        for table, number in enumerate(records)
    ]


@lru_cache(maxsize=8)  # each measure of a table draws the same ones, which takes as long as to count them
def _draw_positions(records: int, most: int, seed: int, table: int) -> IntArray:
    drawn: IntArray = np.sort(np.random.default_rng([seed, table]).choice(records, most, replace=False))
    drawn.flags.writeable = False
    return drawn
