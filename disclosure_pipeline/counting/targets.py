"""What an engine is asked to count: key combinations, and the levels of targets within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class Target:
    """A target column, the cells to exclude, and which cells to list.

    The DiSCO cells of more GT records than `list_cells_above` are listed one by one.
    """

    column: CodedColumn
    exclusions: CodedExclusions
    list_cells_above: float

    def occurring_levels(self, synthesis: int) -> int:
        """The number of levels that occur in GT or in this synthesis, missing among them."""
        counts = self.column.counts
        return int(((counts[0] > 0) | (counts[synthesis] > 0)).sum())

    @property
    def bits(self) -> int:
        """The number of binary digits of a level's code."""
        return (self.column.size - 1).bit_length()


@dataclass(frozen=True)
class CountRequest:
    """The columns whose combinations are counted, and the targets whose levels are counted within each."""

    keys: Sequence[CodedColumn]
    targets: Sequence[Target] = ()

    @property
    def columns(self) -> list[CodedColumn]:
        """The keys, then the columns of the targets."""
        return [*self.keys, *(target.column for target in self.targets)]


def columns_of_requests(requests: Sequence[CountRequest]) -> list[CodedColumn]:
    """The columns of several requests; one that several of them share comes once if it is one object."""
    return list({id(column): column for request in requests for column in request.columns}.values())
