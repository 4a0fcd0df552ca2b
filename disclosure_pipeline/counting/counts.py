"""Requests to an engine, and the counts that it returns: integers that add up over keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice

import numpy as np

from disclosure_pipeline.measures.band_counts import Band, BandCounts, band_counts
from disclosure_pipeline.measures.baselines import (
    BaselineCounts,
    baseline_counts,
    lone_baseline_counts,
)
from disclosure_pipeline.measures.certainty import CertaintyCounts, certainty_counts
from disclosure_pipeline.measures.checks import STEPS, CodedExclusions, exclude, pairs_in_large_cells
from disclosure_pipeline.measures.copies import FoundCopies, HitCounts, WholeRecordCounts, hit_counts
from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask, total
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.guesses import guess_counts
from disclosure_pipeline.measures.holdout import MatchedKeys, matched_keys
from disclosure_pipeline.measures.people import LevelCounts, PeopleCounts
from disclosure_pipeline.measures.resemblance import SharedCounts, count_shared
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.together import TogetherCounts
from disclosure_pipeline.measures.totals import (
    Cells,
    CellTotals,
    DisclosureTables,
    KeySums,
    Totals,
    Uniques,
    cell_totals,
    disclosure_tables,
    is_only_level,
    totals_of_keys,
    totals_of_tables,
    uniques,
)
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class Target:
    """A target column, the cells to exclude, and which cells to list.

    The DiSCO cells of more GT records than `list_cells_above` are listed one by one. What is claimed with
    less than certainty is counted for each of the `certainties`. `band`: which levels lie in whose band,
    where those are counted.
    """

    column: CodedColumn
    exclusions: CodedExclusions
    list_cells_above: float
    certainties: tuple[Fraction, ...] = ()
    band: Band | None = None

    def sizes(self, synthesis: int) -> Sizes:
        """Return the numbers of records of GT and of a synthesis; of all, where some of them are counted."""
        return Sizes(total(self.column.counts[0]), total(self.column.counts[synthesis]))

    @property
    def all_sizes(self) -> list[Sizes]:
        """The same of each synthesis."""
        return [self.sizes(synthesis) for synthesis in range(1, len(self.column.tables))]

    @property
    def no_guess(self) -> Mask:
        """Marks the levels that nobody guesses (shape: codes)."""
        return guess_is_impossible(self.column)

    def occurring_no_guess(self, synthesis: int) -> Mask | None:
        """Return `no_guess`, or None where no record of GT or of this synthesis has such a level."""
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
    keys by whose levels people are counted, too; without targets. `without_each`: whether to look for copies
    by all keys but each one, too.
    """

    keys: Sequence[CodedColumn]
    targets: Sequence[Target] = ()
    together: bool = False
    by_level: tuple[int, ...] = ()
    without_each: bool = False

    @property
    def columns(self) -> list[CodedColumn]:
        """The keys, then the columns of the targets."""
        return [*self.keys, *(target.column for target in self.targets)]


def columns_of_requests(requests: Sequence[CountRequest]) -> list[CodedColumn]:
    """Return the columns of several requests; one that they share comes once if it is one object."""
    return list({id(column): column for request in requests for column in request.columns}.values())


def count_without_each(
    requests: Sequence[CountRequest],
    count: Callable[[Sequence[CountRequest]], Sequence[DisclosureCounts]],
    at_once: Callable[[CountRequest], bool] = lambda request: False,
) -> list[DisclosureCounts]:
    """Count by `count`; unless it counts them `at_once`, all keys but each one are a request of their own."""
    whole, sets = list[CountRequest](), list[list[CountRequest]]()
    for request in requests:
        keys = request.keys if request.without_each and not at_once(request) else ()
        sets.append([CountRequest([*keys[:k], *keys[k + 1 :]]) for k in range(len(keys)) if len(keys) > 1])
        whole.append(replace(request, without_each=False) if keys else request)
    counted = iter(count([*whole, *chain.from_iterable(sets)]))
    of_whole = list(islice(counted, len(whole)))
    return [
        replace(counts, without=tuple(tuple(map(found_copies, next(counted).keys)) for _ in of_request))
        if of_request
        else counts
        for counts, of_request in zip(of_whole, sets, strict=True)
    ]


def found_copies(keys: WholeRecordCounts) -> FoundCopies:
    """Return the copies by these keys."""
    return FoundCopies(keys.unique_hits, keys.people)


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


TABLES = tuple(field.name for field in fields(DisclosureTables))


@dataclass(frozen=True)
class KeyCounts:
    """Counts of the keys of one synthesis, whatever the target.

    Where the keys are all columns that the tables share, these are the copies: `shared.SD_in_GT` of them, of
    which `unique_hits.hits` are of a record that no other GT record equals.
    """

    uniques: Uniques
    shared: SharedCounts
    unique_hits: HitCounts
    matched: MatchedKeys

    @property
    def people(self) -> PeopleCounts:
        """GT records that are alone with their keys, and how many of them are found in SD."""
        uniques = self.uniques
        return PeopleCounts(uniques.in_GT, self.unique_hits.pairs, uniques.in_GT_of_keys_in_SD, uniques.in_SD)


@dataclass(frozen=True)
class Excluded:
    """The records that exclusions take out of the tables, and those that they leave of GT and SD.

    `taken_out`: records of each of TABLES (rows) that each of STEPS takes out. `original_t`: GT records that
    are left, by target level.
    """

    taken_out: IntArray
    uniques: Uniques
    original_t: Grouped


@dataclass(frozen=True)
class TargetCounts:
    """Counts of one target in one synthesis. `excluded` is None where there are no exclusions.

    `large_pairs[k]` are the GT records of DiSCO cells of more than `list_cells_above`, by level of key k *
    size of the target + its level. `certainty` has an entry for each certainty that the target asks for.
    `bands` is None where it has none.
    """

    totals: Totals
    cells: CellTotals
    large_pairs: tuple[Grouped, ...]
    excluded: Excluded | None
    baselines: BaselineCounts
    certainty: tuple[CertaintyCounts, ...]
    bands: BandCounts | None = None

    @property
    def has_large_cells(self) -> bool:
        """True if a DiSCO cell has more records than `list_cells_above`."""
        return any(len(pairs.groups) for pairs in self.large_pairs)


@dataclass(frozen=True)
class DisclosureCounts:
    """All counts of the keys and the targets, the syntheses in their order.

    `targets[i][j]` belongs to target i in synthesis j + 1. `pairs_of_key[i][k]` are all GT records by
    level of key k * size of target i + its level; `pairs_of_key[i]` is empty where no DiSCO cell is listed.
    `together` is None unless the request asks for it. `levels[j][i]` belongs to the request's i-th column
    `by_level` in synthesis j + 1, `without[i][j]` to all keys but the i-th.
    """

    keys: tuple[KeyCounts, ...]
    targets: tuple[tuple[TargetCounts, ...], ...]
    pairs_of_key: tuple[tuple[Grouped, ...], ...]
    together: TogetherCounts | None = None
    levels: tuple[tuple[LevelCounts, ...], ...] = ()
    without: tuple[tuple[FoundCopies, ...], ...] = ()


@dataclass(frozen=True)
class CountedCells:
    """The cells of some key combinations, which `table.q` numbers from 0.

    `key_levels_of` takes some of these numbers and returns the level of each key (shape: keys, numbers).
    """

    table: FrequencyTable
    key_levels_of: Callable[[IntArray], IntArray]


def count_keys(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> KeyCounts:
    """Count the keys from the counts of each q; an entry can stand for several `keys` of the same counts."""
    return KeyCounts(
        uniques(d_q, s_q, s_q > 0, keys),
        count_shared(d_q * keys, s_q * keys),
        hit_counts(d_q, s_q, keys),
        matched_keys(d_q, s_q, keys),
    )


def count_lone_records(GT: int, SD: int, keys: int, target: Target, synthesis: int) -> TargetCounts:
    """Count `GT` key combinations of a single GT record each, and `SD` of a single SD record each.

    Nothing is excluded. `keys` is the number of key columns.
    """
    GT_records, SD_records, number = np.array([1, 0]), np.array([0, 1]), np.array([GT, SD])
    sums = KeySums(
        d_q=GT_records,
        s_q=SD_records,
        dd=GT_records,
        ss=SD_records,
        ds=np.zeros(2, np.int64),
        keys=number,
    )
    nothing, levels = Grouped.empty(), target.occurring_levels(synthesis)
    cells = CellTotals(
        guessed=nothing,
        DiSCO_t=nothing,
        d_by_s_q_t=nothing,
        dd_by_s_q_t=nothing,
        largest_d=1 if GT else 0,
        smallest_d=0 if SD or levels > 1 else 1,
        smallest_share=Fraction(0 if GT and levels > 1 else 1),
    )
    return TargetCounts(
        totals_of_keys(sums),
        cells,
        (nothing,) * keys,
        None,
        lone_baseline_counts(GT, target.sizes(synthesis)),
        tuple(CertaintyCounts(0, 0) for _ in target.certainties),
        BandCounts.empty(len(target.certainties)) if target.band else None,
    )


def can_be_summed(target: Target, synthesis: int) -> bool:
    """Return whether sums over key combinations are enough, so that no single cell has to be looked at."""
    drawn = target.sizes(synthesis).something_is_drawn
    return not (target.exclusions or target.certainties or drawn)


def count_target(counted: CountedCells, target: Target, synthesis: int) -> TargetCounts:
    """Return counts of one target in a synthesis, from its cells."""
    f, exclusions = counted.table, target.exclusions
    sizes, no_guess = target.sizes(synthesis), target.no_guess
    if not exclusions:
        d, left, DiSCO, excluded = f.d, None, Cells(f.d, (f.d > 0) & is_only_level(f.s, f.s_q)), None
        left_s = None
        totals = totals_of_keys(_sums(f))
    else:
        key_levels = counted.key_levels_of(np.arange(f.keys))
        tables, taken_out = exclude(f, disclosure_tables(f), key_levels, exclusions)
        d, DiSCO = tables.original.values(), tables.DiSCO
        left, left_s = d, tables.synthetic.values()
        totals = totals_of_tables(f, tables)
        excluded = Excluded(
            taken_out=np.array([[taken_out[table][step] for step in STEPS] for table in TABLES]),
            uniques=_uniques_left(f, tables),
            original_t=Grouped.sum_by_group(f.t, d),
        )
    baselines = baseline_counts(f, sizes, no_guess, left, left_s)
    guesses = baselines.guessed
    if target.occurring_no_guess(synthesis) is not None:
        guesses = guess_counts(f, d, f.s, np.zeros(f.targets, dtype=bool))
    return TargetCounts(
        totals,
        cell_totals(f, d, DiSCO.where, target.occurring_levels(synthesis), guesses.named),
        pairs_in_large_cells(f, DiSCO, counted.key_levels_of, target.list_cells_above),
        excluded,
        baselines,
        tuple(certainty_counts(f, d, certainty, no_guess) for certainty in target.certainties),
        band_counts(f, d, target.band, sizes, target.certainties) if target.band else None,
    )


def _sums(f: FrequencyTable) -> KeySums:
    return KeySums(
        d_q=f.d_q[f.first],
        s_q=f.s_q[f.first],
        dd=f.dd,
        ss=f.sum_by_q(f.s * f.s),
        ds=f.ds,
    )


def _uniques_left(f: FrequencyTable, left: DisclosureTables) -> Uniques:
    d_q, s_q = f.per_key(left.original.values()), f.per_key(left.synthetic.values())
    return uniques(d_q, s_q, f.per_key(f.s) > 0)
