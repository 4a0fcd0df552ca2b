"""Releases over time, record by record: slow and obvious."""

from collections.abc import Sequence
from itertools import chain

from reference.copies import Row, copies


def found_in(first: Sequence[Row], others: Sequence[Row]) -> tuple[float, float]:
    """Return percent of the first table's records that are unique and in the others, and the expected one.

    Expected is what a fresh table of equal size, or independently drawn columns, hold at most.
    """
    figures = copies(first, others)
    return figures["people_copied"], figures["people_copied_expected"]


def in_releases(gt: Sequence[Row], releases: Sequence[Sequence[Sequence[Row]]]) -> list[tuple[float, float]]:
    """Return the people found in the first release, the first two, and so on, each of several tables."""
    tables = [list(chain(*release)) for release in releases]
    return [found_in(gt, list(chain(*tables[: k + 1]))) for k in range(len(releases))]


def shared(releases: Sequence[Sequence[Sequence[Row]]]) -> list[tuple[float, float]]:
    """Return what each table of the last release shares with each earlier one, and with all of them."""
    *earlier, candidate = releases
    tables = [list(chain(*release)) for release in earlier]
    return [found_in(table, others) for table in candidate for others in [*tables, list(chain(*tables))]]
