"""Requests, and the counts that answer them: integers that add up over key combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from disclosure_pipeline.measures import bands, certainty
from disclosure_pipeline.measures.attribute import DEFINITIONS, tabulate_definitions
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.catalogue import OF_BANDS, OF_KEYS, OF_TARGETS
from disclosure_pipeline.measures.checks import (
    CodedExclusions,
    count_taken_out,
    exclude,
)
from disclosure_pipeline.measures.copies import Combinations, CopyCounts, HitCounts
from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import Floats, Grouped, IntArray, Mask, total
from disclosure_pipeline.measures.frequency import (
    FrequencyTable,
    Rows,
    is_only_level,
    tabulate_keys,
    tabulate_levels,
)
from disclosure_pipeline.measures.guesses import count_modes
from disclosure_pipeline.measures.identity import MatchedKeys, matched_keys
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.resemblance import SharedCounts, count_shared
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.together import TogetherCounts
from disclosure_pipeline.measures.totals import (
    AnySums,
    CellTotals,
    Totals,
    cell_totals,
    count_figures,
    count_records,
    count_totals,
    measure_figures,
    share_of_levels,
)
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class Target:
    """A target column, the cells to exclude, and the cells to list.

    DiSCO cells of more than `list_cells_above` GT records are listed one by one. Claims made with less than
    certainty are counted for each of the `certainties`, claims of a band only if there is a `band`.
    """

    column: CodedColumn
    exclusions: CodedExclusions
    list_cells_above: float
    certainties: tuple[Fraction, ...] = ()
    band: Band | None = None

    def sizes(self, synthesis: int) -> Sizes:
        """Return the numbers of records of GT and a synthesis, those outside a counted part included."""
        return Sizes(total(self.column.counts[0]), total(self.column.counts[synthesis]))

    @property
    def no_guess(self) -> Mask:
        """The mark of the level that nobody guesses (shape: codes)."""
        return mark_unguessable(self.column)

    def place(self, f: FrequencyTable, synthesis: int) -> Rows:
        """Return the rows that are some cells of GT and a synthesis."""
        of_levels = self.tabulate_levels(synthesis)
        return Rows(f, np.arange(len(f.q)), no_guess=self.no_guess, band=self.band, of_levels=of_levels)

    def tabulate_levels(self, synthesis: int) -> FrequencyTable:
        """Return all records of GT and a synthesis by target level."""
        return tabulate_levels(self.column.counts[0], self.column.counts[synthesis])

    def figures_at(self, c: Fraction) -> tuple[Figure, ...]:
        """Return the figures at a certainty."""
        return (*certainty.figures_at(c), *(bands.figures_at(c) if self.band else ()))

    def count_occurring_levels(self, synthesis: int) -> int:
        """Count the levels that occur in GT or in this synthesis, missing included."""
        counts = self.column.counts
        return int(((counts[0] > 0) | (counts[synthesis] > 0)).sum())

    @property
    def bits(self) -> int:
        """The number of binary digits of a level's code."""
        return (self.column.size - 1).bit_length()


@dataclass(frozen=True)
class CountRequest:
    """The columns whose combinations are counted, and the targets whose levels are counted within each.

    `together`: also count what all syntheses disclose as one release. `without_each`: also look for copies by
    all keys but one, for each key; only without targets. `apart`: also count the hits of keys drawn apart,
    unless `without_each`.
    """

    keys: Sequence[CodedColumn]
    targets: Sequence[Target] = ()
    together: bool = False
    without_each: bool = False
    apart: bool = False

    @property
    def columns(self) -> list[CodedColumn]:
        """The keys, then the columns of the targets."""
        return [*self.keys, *(target.column for target in self.targets)]

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses, from 1 on."""
        return range(1, len(self.keys[0].tables))

    @property
    def left_out(self) -> range:
        """The places of the keys to leave out, one at a time; none of a single key."""
        return range(len(self.keys) if self.without_each and len(self.keys) > 1 else 0)

    @cached_property
    def shares_apart(self) -> list[dict[int, Floats]]:
        """The share of each synthesis' records with each level of each key; empty unless `apart`.

        The places of the keys are in the order of their names, which may be of any type: see
        `count_hits_apart`.
        """
        if not self.apart:
            return []
        places = sorted(range(len(self.keys)), key=lambda place: str(self.keys[place].name))
        return [
            {place: share_of_levels(self.keys[place].counts[i]) for place in places} for i in self.syntheses
        ]


def gather_columns(requests: Sequence[CountRequest]) -> list[CodedColumn]:
    """Return the columns of several requests, each object once."""
    return list({id(column): column for request in requests for column in request.columns}.values())


def select_copies(keys: KeyCounts) -> CopyCounts:
    """Return the counts of copies by these keys."""
    return CopyCounts(keys.shared.SD_in_GT, keys.unique_hits, keys.people)


def mark_unguessable(target: CodedColumn) -> Mask:
    """Mark the level that nobody guesses: missing (shape: the target's codes).

    An SD level that no GT record has is a guess, and a wrong one: an intruder cannot know that GT lacks it.
    """
    return np.arange(target.size) == target.missing


def sample_positions(records: Sequence[int], limit: int, seed: int) -> list[IntArray | None]:
    """Draw at most `limit` record positions of each table, ascending; None stands for all its records.

    `records` are the tables' numbers of records.
    """
    return [
        None if number <= limit else _draw_positions(number, limit, seed, table)
        for table, number in enumerate(records)
    ]


@lru_cache(maxsize=8)  # every measure of a table draws the same ones, and drawing takes as long as counting
def _draw_positions(records: int, limit: int, seed: int, table: int) -> IntArray:
    drawn: IntArray = np.sort(np.random.default_rng([seed, table]).choice(records, limit, replace=False))
    drawn.flags.writeable = False
    return drawn


@dataclass(frozen=True)
class KeyCounts:
    """Counts of the keys in one synthesis, whatever the target: `added` has the sums of `catalogue.OF_KEYS`.

    If the keys are all columns that the tables share, these are copies: `shared.SD_in_GT` in all, and
    `unique_hits.hits` copies of a record that no other GT record equals.
    """

    added: tuple[AnySums, ...]
    shared: SharedCounts
    unique_hits: HitCounts
    matched: MatchedKeys

    @property
    def people(self) -> PeopleCounts:
        """The GT records that are alone with their keys, and how many of them are found in SD."""
        alone, found, alone_in_SD = (self.count(name) for name in ("UiO", "UiOiS", "UiS"))
        return PeopleCounts(alone, self.unique_hits.pairs, found, alone_in_SD)

    def count(self, figure: str) -> int:
        """Return the number of records that add to a figure."""
        return count_records(OF_KEYS, self.added, figure)


@dataclass(frozen=True)
class Excluded:
    """The records that exclusions take out of the tables, and those that they leave.

    `taken_out`: records that each of `checks.STEPS` takes out of each of `attribute.TABLES` (shape: tables,
    steps). `added`: the sums of `catalogue.OF_KEYS`. `original_t`: remaining GT records by target level.
    """

    taken_out: IntArray
    added: tuple[AnySums, ...]
    original_t: Grouped


@dataclass(frozen=True)
class TargetCounts:
    """Counts of one target in one synthesis.

    `added` has the sums of each of `catalogue.OF_TARGETS`, `within` of each of `catalogue.OF_BANDS` if there
    is a band. `certain` has for each certainty the sums of `certainty.figures_at` and, if there is a band, of
    `bands.figures_at`. `excluded` is None without exclusions.

    `large_pairs[k]` are the GT records of DiSCO cells of more than `list_cells_above` records, by level of
    key k * size of the target + target level.
    """

    totals: Totals
    cells: CellTotals
    added: tuple[AnySums, ...]
    within: tuple[AnySums, ...]
    certain: tuple[tuple[AnySums, ...], ...]
    large_pairs: tuple[Grouped, ...]
    excluded: Excluded | None

    def count_people(self, target: Target) -> IntArray:
        """Return the GT records that the exclusions leave, by level of the target."""
        column = target.column
        return self.excluded.original_t.by_position(column.size) if self.excluded else column.counts[0]

    def measure(
        self, figures: Sequence[Figure], sums: Sequence[AnySums], target: Target, synthesis: int
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return figures of the target, and what compares them with other people's: see `measure_figures`."""
        levels = target.place(target.tabulate_levels(synthesis), synthesis)
        people_t = self.count_people(target)
        return measure_figures(figures, sums, levels.f.N_d, levels.f.N_s, levels, people_t)

    @property
    def records(self) -> Mapping[str, int]:
        """The number of records that count by each definition of [R App. 1]."""
        return {name: count_records(OF_TARGETS, self.added, name) for name in DEFINITIONS}

    @property
    def has_large_cells(self) -> bool:
        """True if any DiSCO cell has more than `list_cells_above` records."""
        return any(len(pairs.groups) for pairs in self.large_pairs)


@dataclass(frozen=True)
class DisclosureCounts:
    """All counts of the keys and the targets, in the order of the syntheses.

    `targets[i][j]` belongs to target i in synthesis j + 1. `pairs_of_key[i][k]` are all GT records by
    level of key k * size of target i + target level; `pairs_of_key[i]` is empty if no DiSCO cell is listed.
    `together` is None unless requested. `hits_apart`: see `count_hits_apart`; empty unless requested.
    `without[i][j]` belongs to all keys but the i-th in synthesis j + 1.
    """

    keys: tuple[KeyCounts, ...]
    targets: tuple[tuple[TargetCounts, ...], ...]
    pairs_of_key: tuple[tuple[Grouped, ...], ...]
    together: TogetherCounts | None = None
    hits_apart: tuple[int, ...] = ()
    without: tuple[tuple[CopyCounts, ...], ...] = ()


def count_keys(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> KeyCounts:
    """Count the keys from the counts of each q; an entry can stand for several `keys` with equal counts."""
    return KeyCounts(
        count_figures(Rows(tabulate_keys(d_q, s_q, keys), np.arange(len(d_q))), OF_KEYS)[0],
        count_shared(d_q * keys, s_q * keys),
        Combinations.of_records(d_q, keys).count_hits(s_q),
        matched_keys(d_q, s_q, keys),
    )


def count_equal_keys(d_q: IntArray, s_q: IntArray) -> KeyCounts:
    """Count the keys from the counts of each q; those with equal counts are counted together."""
    base = int(s_q.max(initial=0)) + 1
    counted = Grouped.count(d_q * base + s_q)
    return count_keys(*np.divmod(counted.groups, base), counted.sums)


def count_target(
    f: FrequencyTable, large_pairs: tuple[Grouped, ...], target: Target, synthesis: int
) -> TargetCounts:
    """Count one target in a synthesis from its cells; for `large_pairs` see `TargetCounts`."""
    exclusions, cells = target.exclusions, target.place(f, synthesis)
    left, left_s, excluded = None, None, None
    if exclusions:
        left, left_s = exclude(f, exclusions)
        cells = replace(cells, d_left=left, s_left=left_s)
        excluded = Excluded(
            count_taken_out(f, exclusions, tabulate_definitions(f)),
            count_figures(cells, OF_KEYS)[0],
            Grouped.sum_by_group(f.t, left * f.n),
        )
    d, s = f.d if left is None else left, f.s if left_s is None else left_s
    told = is_only_level(f.s, f.s_q)
    added, within, *certain = count_figures(
        cells, OF_TARGETS, OF_BANDS if target.band else (), *map(target.figures_at, target.certainties)
    )
    totals = count_totals(f, d, s, told)
    ways, _ = count_modes(f, f.s)
    guessed = Grouped.sum_by_group(ways, d * f.n * (ways > 0))
    return TargetCounts(
        totals,
        cell_totals(f, d, told & (d > 0), target.count_occurring_levels(synthesis), guessed),
        added,
        within,
        tuple(certain),
        large_pairs,
        excluded,
    )
