"""The measure `guessed`: guessing the most frequent target level (the mode).

This project's own. The intruder follows the better of two strategies: guess the mode of the person's q in SD
(if SD lacks the q, the mode of all of SD), or always guess the mode of all of SD. `guessed_others` is the
same with other people's records: those of other units, persons or households that several records may belong
to. If k levels are equally frequent, a right one counts 1/k, so that renaming a level changes nothing. A
missing target value is never guessed. Named: guessed by the records of the q alone.

Where a table has more records than the other, each record is drawn with the same chance (`drawn_guesses`).
Other people with several records are drawn record by record, too: in small tables the chance is that over all
draws, in large ones the mean of a few seeded draws.

`densest_bands` guesses amounts in the same way. A guess is what a record adds to a figure in two ways, of
which the better counts: `frequency.Guess`, added up as `RightGuesses`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import (
    Draw,
    chance_of_none,
    chances_of_cells,
    draw_of_others,
    draw_of_synthetic,
)
from disclosure_pipeline.measures.entry import Baseline, Default, Figure, place_beyond
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, divide, sum_by_position
from disclosure_pipeline.measures.frequency import (
    CommonGuess,
    FrequencyTable,
    Guess,
    OwnRecords,
    Rows,
    beside_other_units,
    first_of_run,
    run_lengths,
)
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, to_integer_chances
from disclosure_pipeline.measures.words import POINTS, WEIGHTED, WITH_LEVEL, Words

Named = tuple[Floats, Floats]
"""The chances that each cell's level is named, and that there is a record to guess from (shapes: cells)."""


@dataclass(frozen=True)
class Guesser:
    """A way to guess: of some rows, which target levels are guessed, and the chances of a guess.

    `name` takes the rows, a table, the records of its cells to guess from, the cells that are wanted, a draw
    of the records or None, and whether a record of the cell is left out. `name_beside` takes the rows, a
    table, the records of its cells, and entries: their cell, the pair of a q and a unit that they belong to,
    adjacent to its others, and the unit's records in that cell, all of which are left out. of_levels: it
    guesses levels.
    """

    mark: Callable[[Rows], Mask]
    name: Callable[[Rows, FrequencyTable, IntArray, Mask, Draw | None, bool], Named]
    name_beside: Callable[[Rows, FrequencyTable, IntArray, IntArray, IntArray, IntArray], Named]
    of_levels: bool = False


def guess_from_synthetic(rows: Rows, guesser: Guesser) -> Guess:
    """Guess from all of SD."""
    guessable = guesser.mark(rows)

    def name(table: FrequencyTable, cell: IntArray) -> Named:
        named, matched = guesser.name(rows, table, table.s * guessable[table.t], table.d > 0, None, False)
        return named[cell], matched[cell]

    return rows.remember(
        guesser, lambda: Guess(*name(rows.f, rows.cell), lambda: name(rows.by_level, rows.t)[0])
    )


def guess_from_draws(rows: Rows, guesser: Guesser) -> Guess:
    """Guess from n records of SD."""
    if not Sizes(rows.f.N_d, rows.f.N_s).synthetic_is_drawn:
        return guess_from_synthetic(rows, guesser)
    guessable = guesser.mark(rows)

    def name(table: FrequencyTable, cell: IntArray) -> Named:
        named, matched, r = np.zeros(len(rows)), np.zeros(len(rows)), table.s * guessable[table.t]
        for sizes, at in rows.sizes:
            of_cells = guesser.name(rows, table, r, table.d > 0, draw_of_synthetic(sizes), False)
            named[at], matched[at] = (chances[cell[at]] for chances in of_cells)
        return named, matched

    return Guess(*name(rows.f, rows.cell), lambda: name(rows.by_level, rows.t)[0])


def guess_from_others(rows: Rows, guesser: Guesser) -> Guess:
    """Guess from n records of other units."""
    guessable = guesser.mark(rows)
    of_keys, whole = (replace(table, d=table.d * guessable[table.t]) for table in (rows.f, rows.by_level))
    sizes, _ = rows.sizes[0]

    def name(table: FrequencyTable, cell: IntArray) -> Named:
        named, matched = guesser.name(rows, table, table.d, table.d > 0, draw_of_others(sizes), True)
        return named[cell], matched[cell]

    if rows.has_several:
        return _guess_beside_other_units(rows, guesser, of_keys, whole)
    return Guess(*name(of_keys, rows.cell), lambda: name(whole, rows.t)[0])


def guess_from_both(rows: Rows, guesser: Guesser) -> CommonGuess:
    """Guess from all records, GT and SD."""
    whole = rows.by_level
    both = (whole.d + whole.s) * guesser.mark(rows)
    chances, _ = guesser.name(rows, replace(whole, d=both), both, both > 0, None, False)
    return CommonGuess(chances, guesser.of_levels)


def beside_others(guesser: Guesser, words: Words, beyond: Words) -> Baseline:
    """Return what compares a guess with that of other people's records."""
    return Baseline(
        at_n=lambda r: guess_from_draws(r, guesser),
        others=lambda r: guess_from_others(r, guesser),
        all=lambda r: guess_from_both(r, guesser),
        words=words,
        beyond=beyond,
    )


_MOST_LEVELS_OF_ALL_DRAWS = 1 << 14
_DRAWS = 8


def _guess_beside_other_units(
    rows: Rows, guesser: Guesser, of_keys: FrequencyTable, whole: FrequencyTable
) -> Guess:
    """Guess about rows of which some unit has several."""
    guessable = guesser.mark(rows)
    own = [rows.own_records(guessable[rows.t], by_key=by_key) for by_key in (True, False)]
    named, matched, always = np.zeros((3, len(rows)))
    at_once: dict[float, tuple[Draw | None, list[IntArray]]] = {}
    tries_all_draws = _count_levels(rows, own[0]) <= _MOST_LEVELS_OF_ALL_DRAWS
    for sizes, at in rows.sizes:
        draw = draw_of_others(sizes)
        if sizes.own == 1:
            of_cells, of_whole = (
                guesser.name(rows, table, table.d, table.d > 0, draw, True) for table in (of_keys, whole)
            )
            named[at], matched[at] = (chances[rows.cell[at]] for chances in of_cells)
            always[at] = of_whole[0][rows.t[at]]
        elif draw is not None and tries_all_draws:
            of_entries, of_whole = (
                _guess_entries(rows, guesser, table, of_units, np.unique(of_units.entry[at]), draw)
                for table, of_units in zip((of_keys, whole), own, strict=True)
            )
            named[at], matched[at] = (chances[own[0].entry[at]] for chances in of_entries)
            always[at] = of_whole[0][own[1].entry[at]]
        else:
            # Units whose records are drawn about equally often share their draws.
            alike = round(math.log(draw.chance), 2) if draw else math.nan
            at_once.setdefault(alike, (draw, []))[1].append(at)
    for draw, parts in at_once.values():
        at = np.concatenate(parts)
        drawn = [own[0].records] if draw is None else _draw_records(own[0], draw)
        guesses = zip(*(_guess_beside(rows, guesser, own, records, at) for records in drawn), strict=True)
        named[at], matched[at], always[at] = (np.mean(of_draws, axis=0) for of_draws in guesses)
    return Guess(named, matched, lambda: always)


def _count_levels(rows: Rows, own: OwnRecords) -> int:
    """Count the levels that are guessed among, over all units and key combinations."""
    of_q = int(np.bincount(rows.f.q)[rows.f.q[own.cell]].sum())
    return of_q + rows.units * int(np.count_nonzero(rows.by_level.d))


def _guess_entries(
    rows: Rows, guesser: Guesser, f: FrequencyTable, own: OwnRecords, entries: IntArray, draw: Draw | None
) -> Named:
    named, matched = np.zeros(len(own.cell)), np.zeros(len(own.cell))
    for some, table, at in beside_other_units(f, own, entries):
        wanted = np.zeros(len(table.q), dtype=bool)
        wanted[at] = True
        of_cells = guesser.name(rows, table, table.d, wanted, draw, True)
        named[some], matched[some] = (chances[at] for chances in of_cells)
    return named, matched


def _draw_records(own: OwnRecords, draw: Draw) -> Iterator[IntArray]:
    for seed in range(_DRAWS):
        yield np.random.default_rng(seed).binomial(own.records, draw.chance)


def _guess_beside(
    rows: Rows, guesser: Guesser, own: Sequence[OwnRecords], records: IntArray, at: IntArray
) -> tuple[Floats, Floats, Floats]:
    """Guess about some rows from the `records` of other units, of those in each entry of `own[0]`.

    Return the chances that a guess is right by key, that there is a record to guess from, and that the guess
    of the whole table is right.
    """
    r = sum_by_position(own[0].cell, records, len(rows.f.q))
    place = np.empty(len(records), dtype=np.int64)
    place[own[0].entry] = own[1].entry
    of_levels = sum_by_position(place, records, len(own[1].cell))
    named, matched = guesser.name_beside(rows, rows.f, r, own[0].cell, own[0].pair, records)
    r_t = rows.f.per_target(r)
    always, _ = guesser.name_beside(rows, rows.by_level, r_t, own[1].cell, own[1].pair, of_levels)
    entry = own[0].entry[at]
    return named[entry], matched[entry], always[own[1].entry[at]]


def _name_modes_beside(
    _: Rows, f: FrequencyTable, r: IntArray, cell: IntArray, pair: IntArray, own: IntArray
) -> Named:
    q, first = f.q, np.flatnonzero(first_of_run(pair))
    entries = run_lengths(first, len(pair))
    rest, before = r[cell] - own, r[cell]
    largest = np.maximum.reduceat(rest, first)
    of_entries = np.repeat(largest, entries)
    # Levels that the pair has no record of keep theirs: no more than the pair's own may exceed the largest.
    most = int(r.max(initial=0)) + 1
    ascending, q_of_pair = np.sort(q * most + r), q[cell[first]]
    number = q_of_pair * most + largest
    start, after = np.searchsorted(ascending, number), np.searchsorted(ascending, number, side="right")
    above = np.searchsorted(ascending, (q_of_pair + 1) * most) - after
    is_largest = np.add.reduceat(before > of_entries, first, dtype=np.int64) == above
    modes = (
        after - start + np.add.reduceat((rest == of_entries).astype(np.int64) - (before == of_entries), first)
    )
    named = (rest == of_entries) & (rest > 0) & np.repeat(is_largest, entries)
    begins_q = first_of_run(q)
    records_of_q = np.add.reduceat(r, np.flatnonzero(begins_q))[np.cumsum(begins_q) - 1]
    others = records_of_q[cell[first]] - np.add.reduceat(own, first)
    return named / np.repeat(np.maximum(modes, 1), entries), np.repeat(others > 0, entries).astype(np.float64)


def count_modes(f: FrequencyTable, r: IntArray) -> tuple[IntArray, Mask]:
    """Guess about other people than those of the records `r` (shapes: cells).

    Return the number of modes, each of which is guessed equally often, if the cell's level is one, else 0;
    and whether there is a record to guess from.
    """
    if not len(f.q):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    largest = f.largest_by_q(r)
    named = (r == f.at_cells(largest)) & (r > 0)
    right, ways = np.flatnonzero(named), np.zeros(len(r), dtype=np.int64)
    ways[right] = f.at_cells(f.sum_by_q(named), right)
    return ways, f.at_cells(largest > 0)


def count_modes_without_self(f: FrequencyTable, r: IntArray) -> tuple[IntArray, Mask]:
    """Guess about a record of `r` from all others, as `count_modes` does.

    A record's level is named only if it is the only mode of its q, since leaving the record out reduces its
    level by one. Every level with one record less than the mode then ties with it.
    """
    if not len(f.q):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    largest = f.at_cells(f.largest_by_q(r))
    alone = f.at_cells(f.sum_by_q(r == largest) == 1)
    matched = (r > 0) & f.at_cells(f.sum_by_q(r) > 1)
    right, ways = np.flatnonzero(matched & (r == largest) & alone), np.zeros(len(r), dtype=np.int64)
    ways[right] = 1 + f.at_cells(f.sum_by_q(r == largest - 1), right)
    return ways, matched


def _name_modes(
    rows: Rows, f: FrequencyTable, r: IntArray, wanted: Mask, draw: Draw | None, without_self: bool
) -> Named:
    if draw is None:
        ways, matched = (count_modes_without_self if without_self else count_modes)(f, r)
        return divide(np.minimum(ways, 1), ways), matched.astype(np.float64)
    cells, of_q, named = np.flatnonzero(wanted), np.zeros(len(r)), chances_of_cells(f, r, wanted, draw)
    of_q[cells] = 1 - chance_of_none(f.at_cells(f.sum_by_q(r), cells) - without_self, draw)
    return _round(named), _round(of_q)


def _round(chances: Floats) -> Floats:
    rounded: Floats = to_integer_chances(chances) / CHANCE_SCALE
    return rounded


def _mark_levels(rows: Rows) -> Mask:
    assert rows.no_guess is not None
    return ~rows.no_guess


MODES = Guesser(_mark_levels, _name_modes, _name_modes_beside, of_levels=True)
"""Guesses of the most frequent level."""


@dataclass(frozen=True)
class RightGuesses:
    """Right guesses about people from one table.

    named: by the records of their q. matched: by the guess of the whole table, of people with a record of
    their q to guess from. always: by the guess of the whole table, of all people.
    """

    named: Any
    matched: Any
    always: Any

    @property
    def by_key(self) -> Any:
        """By the records of their q, and by the guess of the whole table if there are none."""
        return self.named + self.always - self.matched

    @property
    def is_by_key(self) -> bool:
        """True if that is the better way, or as good: whatever both sums are rounded to."""
        return bool(self.by_key >= self.always * (1 - _ROUNDING))

    @property
    def best(self) -> Any:
        """By the better way."""
        return max(self.by_key, self.always)


_ROUNDING = 1e-12


def error_of_guesses(
    sides: tuple[RightGuesses, RightGuesses], unlike: Sequence[Any], squares: float, one: int = 1
) -> float:
    """Return the standard error of the difference of right guesses from SD and from the others.

    Jackknife over key combinations: leaving one out takes away what its people add (`squares`: the sum of its
    squares), but no other guess. A side that always guesses the mode has no part in that. The guess of a
    whole table is one for all whom it is made about: what it adds to the difference is added once. `unlike`:
    the difference of these guesses, of people with a record to guess from in SD, and in the others. `one`:
    the unit of right guesses.
    """
    from_SD, others = sides
    of_matched = sum(part for side, part in zip(sides, unlike, strict=True) if side.is_by_key)
    of_keys = sum(side.is_by_key for side in sides) / 2 * squares
    at_once = from_SD.always - others.always - of_matched / 2
    return math.hypot(math.sqrt(of_keys), at_once / one)


FIGURES = (
    Figure(
        "guessed",
        Words(
            "guessed from the keys",
            "People whose target is guessed correctly, as the most frequent one among the synthetic records "
            "with their keys.",
            finding="for {value} of the people the best guess of their {column} from the table is right",
        ),
        place_beyond("guessed", "guessed", at_n="guessed_at_n", by_chance="guessed_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        weighed=place_beyond("population_targets", "guessed", WEIGHTED),
        default=Default(
            "beyond",
            6,
            "Percentage points of the GT records whose target is guessed from their keys in SD, beyond "
            "those guessed from other people's records; of each target",
        ),
        public="unit",
        adds=lambda r: guess_from_synthetic(r, MODES),
        compared=beside_others(
            MODES,
            words=Words.neutral(
                "guessed from other people's records",
                "People whose target is guessed correctly from other people's records, or by always guessing "
                "the most frequent value.",
                finding="from other people's records alone it would be for {value}",
            ),
            beyond=Words(
                "guessed beyond other people's records",
                "How many more people's target is guessed correctly from the synthetic table than from other "
                "people's records.",
                POINTS,
                finding="the best guess of {column} from the table is right for {more} people in 100 than "
                "from other people's records",
                subject="people whose {column} is guessed",
            ),
        ),
    ),
    Figure(
        "told_by_guess",
        Words(
            "sensitive value guessed",
            "People with the sensitive value of whom it is guessed, as the most frequent one among the "
            "synthetic records with their keys.",
            denominator=WITH_LEVEL,
            finding="{value} of the people with {column} are guessed to have it",
        ),
        place_beyond("sensitive", "guessed", at_n="guessed_at_n", by_chance="guessed_by_chance"),
        "learned",
        about="level",
        statistics=("beyond",),
        beyond=Words(
            "sensitive value guessed beyond other people's records",
            "How many more of the people with the sensitive value are guessed to have it than from other "
            "people's records.",
            POINTS,
            finding="{more} in 100 of the people with {column} are guessed to have it than from other "
            "people's records",
            subject="people with {column} guessed to have it",
        ),
        weighed=place_beyond("sensitive", "guessed", WEIGHTED),
        follows="guessed",
    ),
)
