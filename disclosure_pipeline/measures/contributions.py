"""Contributions of each GT record to a figure, and the one way to add them up.

A figure is a share of people. GT record i adds x_i, from 0 to 1, and stands for w_i people:

    figure = 100 · Σ w_i x_i / Σ w_i

w_i is 1, or the record's weight in a survey, or 0 outside the group that is asked about. x_i is 0 if the
exclusions take the record out; all else is decided before them. So weights, groups and exclusions have no
formulas of their own.

Other people's records are those of other units: persons or households that several records may belong to. A
person whose unit has N_u records is compared at n = min(N_s, N_d - N_u) records. P0(m) is the chance that a
draw of n other people's records contains none of m given ones; Q0(m) is the same for SD (`samples.Sizes`).
With o and o_t other people's records with the person's q, and with q and t:

| figure | SD | SD at n records | the others at n |
|---|---|---|---|
| iS | s_q > 0 | 1 - Q0(s_q) | 1 - P0(o) |
| DiSCO | s = s_q > 0 | Q0(s_q - s) - Q0(s_q) | P0(o - o_t) - P0(o) |
| DCAP | s / s_q | s / s_q · (1 - Q0(s_q)) | o_t / o · (1 - P0(o)) |
| told a level l | | Q0(s_q - s_l) - Q0(s_q) | P0(o - o_l) - P0(o) |

CAP counts only records that the exclusions leave, also of the others. `bands` has the figures within a band.

Guessed is the most frequent level (`guesses`), or the densest band of amounts (`densest_bands`), of the
record's q; of the whole table if there is nothing to guess from, or always. Named: of the q alone. Where a
table has more records than the other, each record is drawn with the same chance (`drawn_guesses`). Other
people with several records are drawn record by record, too: in small tables the chance is that over all
draws, in large ones the mean of a few seeded draws.

The standard error of a share is, by Taylor linearization, sqrt(Σ w_i² (x_i - share)²) / Σ w_i (Särndal,
Swensson & Wretman 1992, 5.7, for records drawn independently). Of a difference from other people's records it
is sqrt(Σ_q (Σ_i w_i x_i)²) / Σ w_i, because records of one q are told of together; at least one record. For
guesses see `guesses.error_of_guesses`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from disclosure_pipeline.measures.band_counts import chances_within
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.catalogue import OF_KEYS, OF_TARGETS
from disclosure_pipeline.measures.densest_bands import SALT, AmountCells
from disclosure_pipeline.measures.drawn_guesses import (
    Draw,
    chance_of_none,
    chances_to_be_named,
    draw_of_others,
    draw_of_synthetic,
)
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, divide, sum_by_position, sum_exactly
from disclosure_pipeline.measures.frequency import (
    FrequencyTable,
    OwnRecords,
    Rows,
    aranges,
    first_of_run,
    is_only_level,
    run_lengths,
)
from disclosure_pipeline.measures.guesses import CellGuesses
from disclosure_pipeline.measures.samples import (
    CHANCE_SCALE,
    Sizes,
    chance_of_one_level,
    to_integer_chances,
)

_CELLS_AT_A_TIME = 1 << 21
_MOST_LEVELS_OF_ALL_DRAWS = 1 << 14
_DRAWS = 8


def beside_other_units(
    f: FrequencyTable, own: OwnRecords, entries: IntArray
) -> Iterator[tuple[IntArray, FrequencyTable, IntArray]]:
    """Yield, for some entries at a time, tables in which each entry has a q of its own.

    Of the unit's records, only one in the entry's cell is left there: so a figure that leaves a single record
    out of its table leaves out the whole unit. Returns the entries, their table, and the cell of each in it.
    """
    q = f.q[own.cell[entries]]
    start, end = np.searchsorted(f.q, q), np.searchsorted(f.q, q, side="right")
    first_of_pair = np.searchsorted(own.pair, own.pair[entries])
    of_pair = np.searchsorted(own.pair, own.pair[entries], side="right") - first_of_pair
    part = np.cumsum(end - start) // _CELLS_AT_A_TIME
    for chosen in np.split(np.arange(len(entries)), np.flatnonzero(np.diff(part)) + 1):
        lengths = (end - start)[chosen]
        view = np.repeat(np.arange(len(chosen)), lengths)
        cells = np.repeat(start[chosen], lengths) + aranges(lengths)
        first = np.cumsum(lengths) - lengths
        d = f.d[cells]
        own_entries = np.repeat(first_of_pair[chosen], of_pair[chosen]) + aranges(of_pair[chosen])
        own_view = np.repeat(np.arange(len(chosen)), of_pair[chosen])
        d[first[own_view] + own.cell[own_entries] - start[chosen][own_view]] -= own.records[own_entries]
        at = first + own.cell[entries[chosen]] - start[chosen]
        d[at] += own.records[entries[chosen]] > 0
        d_q = np.repeat(np.add.reduceat(d, first), lengths)
        nothing = np.zeros_like(d)
        table = replace(f, q=view, t=f.t[cells], d=d, s=nothing, d_q=d_q, s_q=nothing, keys=len(chosen))
        yield entries[chosen], table, at


def whole_table(f: FrequencyTable, d: IntArray, s: IntArray) -> FrequencyTable:
    """Return the table of the records `d` and `s` of each cell by target level, without d_q and s_q."""
    nothing, t = np.zeros(f.targets, dtype=np.int64), np.arange(f.targets)
    d_t, s_t = f.per_target(d), f.per_target(s)
    return replace(f, q=nothing, t=t, d=d_t, s=s_t, d_q=nothing, s_q=nothing, keys=1)


class Guess(NamedTuple):
    """The chances that a guess about each row is right.

    named: by the records with its q. matched: that there are any. by_key: by these, and by the guess of the
    whole table if there are none. always: by the guess of the whole table.
    """

    named: Floats
    matched: Floats
    by_key: Floats
    always: Floats

    @property
    def ways(self) -> Floats:
        """The two ways to guess (shape: ways, rows)."""
        return np.stack((self.by_key, self.always))


Guesser = Callable[..., tuple[Floats, Floats]]
"""Takes a table, its records to guess from, the cells that are wanted, and a draw of the records or None.

Returns the chance that each cell's level is guessed in its q, and that there is a record to guess from. With
`without_self`, a record of the cell is left out.
"""


def guess_from_synthetic(rows: Rows, band: Band | None, *, at_n: bool) -> Guess:
    """Guess levels, or amounts to within a band, from all of SD or from n of its records."""
    guessable, guesser = _choose_guesser(rows, band)
    f, r = rows.f, rows.f.s * guessable[rows.f.t]
    whole = whole_table(f, r, r)
    is_drawn = at_n and Sizes(f.N_d, f.N_s).synthetic_is_drawn
    groups = rows.sizes if is_drawn else [(Sizes(f.N_d, f.N_s), np.arange(len(rows)))]
    guess = Guess(*np.zeros((4, len(rows))))
    for sizes, at in groups:
        draw = draw_of_synthetic(sizes) if is_drawn else None
        named, matched = guesser(f, r, f.d > 0, draw, without_self=False)
        always, _ = guesser(whole, whole.s, whole.s > 0, draw, without_self=False)
        cell, t = rows.cell[at], rows.t[at]
        _set(guess, at, named[cell], matched[cell], always[t])
    return guess


def guess_from_others(rows: Rows, band: Band | None) -> Guess:
    """Guess the same from n records of other units."""
    guessable, guesser = _choose_guesser(rows, band)
    f, r = rows.f, rows.f.d * guessable[rows.f.t]
    tables = replace(f, d=r), whole_table(f, r, r)
    guess = Guess(*np.zeros((4, len(rows))))
    several = []
    for sizes, at in rows.sizes:
        if sizes.own > 1:
            several.append((sizes, at))
            continue
        draw, places = draw_of_others(sizes), (rows.cell[at], rows.t[at])
        (named, matched), (always, _) = (
            guesser(table, table.d, table.d > 0, draw, without_self=True) for table in tables
        )
        _set(guess, at, named[places[0]], matched[places[0]], always[places[1]])
    if several:
        _guess_beside_other_units(rows, band, several, guess)
    return guess


def _set(guess: Guess, at: IntArray, named: Floats, matched: Floats, always: Floats) -> None:
    guess.named[at], guess.matched[at], guess.always[at] = named, matched, always
    guess.by_key[at] = named + (1 - matched) * always


def _guess_beside_other_units(
    rows: Rows, band: Band | None, groups: Sequence[tuple[Sizes, IntArray]], guess: Guess
) -> None:
    """Guess about rows whose units have several records."""
    guessable, guesser = _choose_guesser(rows, band)
    f, r = rows.f, rows.f.d * guessable[rows.f.t]
    tables = replace(f, d=r), whole_table(f, r, r)
    own = [rows.own_records(guessable[rows.t], by_key=by_key) for by_key in (True, False)]
    at_once: dict[float, tuple[Draw | None, list[IntArray]]] = {}
    tries_all_draws = band is not None or _count_levels(rows, own[0]) <= _MOST_LEVELS_OF_ALL_DRAWS
    for sizes, at in groups:
        draw = draw_of_others(sizes)
        if band is not None or (draw is not None and tries_all_draws):
            (named, matched), (always, _) = (
                _guess_entries(table, of_units, np.unique(of_units.entry[at]), guesser, draw)
                for table, of_units in zip(tables, own, strict=True)
            )
            entry = own[0].entry[at]
            _set(guess, at, named[entry], matched[entry], always[own[1].entry[at]])
        else:
            # Units whose records are drawn about equally often share their draws.
            alike = round(math.log(draw.chance), 2) if draw else math.nan
            at_once.setdefault(alike, (draw, []))[1].append(at)
    for draw, parts in at_once.values():
        at = np.concatenate(parts)
        drawn = [own[0].records] if draw is None else _draw_records(own[0], draw)
        guesses = [_guess_modes_beside(f, own, records, at) for records in drawn]
        for of_all, of_draws in zip(guess, zip(*guesses, strict=True), strict=True):
            of_all[at] = np.mean(of_draws, axis=0)


def _count_levels(rows: Rows, own: OwnRecords) -> int:
    """Count the levels that are guessed among, over all units and key combinations."""
    return int(np.bincount(rows.f.q)[rows.f.q[own.cell]].sum()) + rows.units * np.count_nonzero(
        rows.f.per_target(rows.f.d)
    )


def _guess_entries(
    f: FrequencyTable, own: OwnRecords, entries: IntArray, guesser: Guesser, draw: Draw | None
) -> tuple[Floats, Floats]:
    named, matched = np.zeros(len(own.cell)), np.zeros(len(own.cell))
    for some, table, at in beside_other_units(f, own, entries):
        wanted = np.zeros(len(table.q), dtype=bool)
        wanted[at] = True
        of_cells = guesser(table, table.d, wanted, draw, without_self=True)
        named[some], matched[some] = (chances[at] for chances in of_cells)
    return named, matched


def _draw_records(own: OwnRecords, draw: Draw) -> Iterator[IntArray]:
    for seed in range(_DRAWS):
        yield np.random.default_rng(seed).binomial(own.records, draw.chance)


def _guess_modes_beside(
    f: FrequencyTable, own: Sequence[OwnRecords], records: IntArray, at: IntArray
) -> Guess:
    """Guess about some rows from the `records` of other units, of those in each entry of `own[0]`."""
    r = sum_by_position(own[0].cell, records, len(f.q))
    place = np.empty(len(records), dtype=np.int64)
    place[own[0].entry] = own[1].entry
    of_levels = sum_by_position(place, records, len(own[1].cell))
    named, matched = _name_modes_beside(f.q, r, own[0].cell, own[0].pair, records)
    always, _ = _name_modes_beside(
        np.zeros(f.targets, dtype=np.int64), f.per_target(r), own[1].cell, own[1].pair, of_levels
    )
    guess, entry = Guess(*np.zeros((4, len(at)))), own[0].entry[at]
    _set(guess, np.arange(len(at)), named[entry], matched[entry], always[own[1].entry[at]])
    return guess


def _name_modes_beside(
    q: IntArray, r: IntArray, cell: IntArray, pair: IntArray, own: IntArray
) -> tuple[Floats, Floats]:
    """Return the chance that the level of each entry is guessed without the records of its pair.

    `r`: the records of each cell, in order of `q`; `own`: those of the pair in the entry's `cell`. Entries of
    one pair are adjacent. Of k modes each is guessed with chance 1/k.
    """
    first = np.flatnonzero(first_of_run(pair))
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


def _choose_guesser(rows: Rows, band: Band | None) -> tuple[Mask, Guesser]:
    """Return the target levels that are guessed, and the guesser of levels or of amounts."""
    if band is not None:
        return band.is_amount(band.place), partial(_guess_amounts, band)
    assert rows.no_guess is not None
    return ~rows.no_guess, _guess_modes


def _guess_modes(
    f: FrequencyTable, r: IntArray, wanted: Mask, draw: Draw | None, *, without_self: bool
) -> tuple[Floats, Floats]:
    if draw is not None:
        records = f.at_cells(f.sum_by_q(r)) - without_self
        chances = chances_to_be_named(f.q, r, wanted, draw), 1 - chance_of_none(records, draw)
        named, matched = (to_integer_chances(of_cells) / CHANCE_SCALE for of_cells in chances)
        return named, matched
    guess = CellGuesses.without_self if without_self else CellGuesses.from_synthetic
    guesses = guess(f, r, np.zeros(f.targets, dtype=bool))
    return divide(np.minimum(guesses.ways, 1), guesses.ways), guesses.matched.astype(np.float64)


def _guess_amounts(
    band: Band, f: FrequencyTable, r: IntArray, wanted: Mask, draw: Draw | None, *, without_self: bool
) -> tuple[Floats, Floats]:
    named, matched = np.zeros(len(f.q)), np.zeros(len(f.q))
    place = band.place[f.t]
    amounts = np.flatnonzero(band.is_amount(place))
    if not len(amounts):
        return named, matched
    amounts = amounts[np.lexsort((place[amounts], f.q[amounts]))]
    salt = f.d_q[amounts] * SALT + f.s_q[amounts]
    cells = AmountCells(f.q[amounts], place[amounts], salt, band)
    named[amounts] = cells.chances(r[amounts], draw, without_self=without_self) / CHANCE_SCALE
    records = cells.sum_by_q(r[amounts]) - without_self
    matched[amounts] = records > 0 if draw is None else 1 - chance_of_none(records, draw)
    return named, matched


def _disclosed_by_chance(r: Rows) -> Floats:
    """Return the chance that s_q records drawn from SD all have level t: see `disclosed_by_chance`."""
    s_t, chances = r.f.per_target(r.f.s), np.zeros(len(r))
    in_SD = (r.s_q > 0) & r.is_left
    for t in np.flatnonzero(s_t).tolist():
        at = np.flatnonzero(in_SD & (r.t == t))
        if len(at):
            chances[at] = chance_of_one_level(int(s_t[t]), r.f.N_s, r.s_q[at])
    return chances


def _list_expressions() -> dict[str, Callable[[Rows], Floats | Mask]]:
    """Return what a record adds to each figure of the catalogue, also at n records of SD and the others."""
    expressions = dict[str, Callable[[Rows], Floats | Mask]]()
    for figure in (*OF_KEYS, *OF_TARGETS):
        assert figure.adds is not None
        expressions[figure.name] = figure.adds
        if figure.compared is not None:
            expressions[f"{figure.name}_at_n"] = figure.compared.at_n
            expressions[f"{figure.name}_others"] = figure.compared.others
    return expressions


FIGURES: Mapping[str, Callable[[Rows], Floats | Mask]] = {
    "alone": lambda r: r.d_q == r.own_q,
    "people_copied": lambda r: (r.d_q == r.own_q) & (r.s_q > 0),
    "DiSCO_chance": _disclosed_by_chance,
    "DiSCO_excess": lambda r: is_only_level(r.s, r.s_q) - _disclosed_by_chance(r),
    "CAPd": lambda r: divide(r.d, r.left_d_q),
    **_list_expressions(),
}
"""Expressions of what a record adds to each figure, before it is asked whether exclusions leave it."""


def tell_level(r: Rows, level: int) -> tuple[Floats, Floats]:
    """Return the chance that n records of SD, and of the others, tell with certainty that each row has it.

    Exclusions make no difference: an intruder does not know them.
    """
    d, s = (r.sum_by_q(np.where(r.f.t == level, counts, 0)) for counts in (r.f.d, r.f.s))
    own = r._count_own(r.q, (r.t == level).astype(np.int64))
    return (
        r.none_of_synthetic(r.s_q - s) - r.none_of_own_key_in_synthetic,
        r.none_of_others(r.d_q - r.own_q - (d - own)) - r.none_of_own_key_in_others,
    )


_SUM_OF_WEIGHTS = 1 << 31
_LEVELS, _AMOUNTS, _NAMED = "guessed", "guessed_within", "named"

KEY_FIGURES = tuple(figure.name for figure in OF_KEYS if figure.basis == "records")
COPY_FIGURES = ("people_copied", "people_copied_expected", "people_copied_beyond")
_COMPARED = (*(figure.name for figure in OF_TARGETS if figure.compared is not None), _LEVELS)
BESIDE_OTHERS = tuple(f"{name}_{part}" for name in _COMPARED for part in ("at_n", "others", "beyond"))
_OF_GT = [figure.name for figure in OF_TARGETS if figure.basis == "records"]
TARGET_FIGURES = (
    *(name for name in _OF_GT if name != "DCAP"),
    *("DiSCO_chance", "DiSCO_excess", "CAPd", "DCAP", "guessed"),
    *(f"{name}_{part}" for name in _COMPARED for part in ("others", "beyond")),
)
GROUP_FIGURES = ("DiSCO", "DiSCO_others", "DiSCO_beyond")
BAND_FIGURES = tuple(
    f"{name}_within{part}" for name in ("DiS", "DiSCO", "guessed") for part in ("", "_others", "_beyond")
)


class Estimate(NamedTuple):
    """A figure and its standard error, in percent or percentage points."""

    value: float
    error: float


def name_estimates(estimates: Mapping[str, Estimate], ending: str = "") -> dict[str, float]:
    """Return figures and their standard errors by the names of their columns."""
    named = {}
    for name, estimate in estimates.items():
        named[f"{name}{ending}"], named[f"{name}{ending}_se"] = estimate
    return named


class Contributions:
    """Contributions of some rows to the figures, each computed when it is first asked for."""

    def __init__(self, rows: Rows) -> None:
        """Take the rows; nothing is computed yet."""
        self.rows = rows
        self._added: dict[str, Floats] = {}
        self._guesses: dict[str, Guess] = {}

    def add(self, figure: str) -> Floats:
        """Return what each row adds to a figure, its `_at_n` or `_others`; 0 if it is excluded."""
        if figure.startswith(_NAMED):
            return self.guess(figure.replace(_NAMED, _LEVELS, 1)).named
        if figure not in self._added:
            rows = self.rows
            added = _add_within(rows) if "_within" in figure else {figure: FIGURES[figure](rows)}
            self._added |= {name: np.where(rows.is_left, x, 0.0) for name, x in added.items()}
        return self._added[figure]

    def guess(self, figure: str) -> Guess:
        """Return the chances of `guessed` or `guessed_within`, their `_at_n` or `_others`; 0 if excluded."""
        if figure not in self._guesses:
            rows, (name, source) = self.rows, _split(figure)
            band = rows.band if name == _AMOUNTS else None
            guess = (
                guess_from_others(rows, band)
                if source == "_others"
                else guess_from_synthetic(rows, band, at_n=source == "_at_n")
            )
            self._guesses[figure] = Guess(*(np.where(rows.is_left, chances, 0.0) for chances in guess))
        return self._guesses[figure]

    def estimate(
        self, figures: Iterable[str], weight: Floats | None = None, members: IntArray | None = None
    ) -> dict[str, Estimate]:
        """Estimate figures of the people that the rows, or some `members` of them, stand for.

        `weight`: the people of each row, 0 for those that are not asked about; by default 1. A figure that
        ends in `_beyond` is the difference between n records of SD and of the others. Guesses are made in the
        better of the two ways, on either side.
        """
        asked = np.arange(len(self.rows)) if members is None else members
        w = np.ones(len(asked)) if weight is None else weight[asked]
        asked, w = asked[w != 0], w[w != 0]
        return {name: self._estimate(name, asked, w) for name in figures}

    def _estimate(self, name: str, asked: IntArray, w: Floats) -> Estimate:
        figure, part = _split(name)
        if figure in (_LEVELS, _AMOUNTS):
            if part == "_beyond":
                return self._compare_guesses(figure, asked, w)
            ways = [chances[asked] for chances in self.guess(name).ways]
            if part == "_others":
                others = max(_mean(chances, _round_weights(w)) for chances in ways)
                spread = inflate_variance(w) * max(others * (1 - others), 0) / len(asked)
                return Estimate(100 * others, 100 * math.sqrt(spread))
            return max(_estimate_share(chances, w) for chances in ways)
        if part != "_beyond":
            return _estimate_share(self.add(name)[asked], w)
        added = self.add(f"{figure}_at_n")[asked] - self.add(f"{figure}_others")[asked]
        return _estimate_difference(added, self.rows.q[asked], w)

    def _compare_guesses(self, figure: str, asked: IntArray, w: Floats) -> Estimate:
        """Estimate how much more guesses are right from n records of SD than from the others.

        For the error see `guesses.error_of_guesses`.
        """
        from_SD, by_others = (
            Guess(*(chances[asked] for chances in self.guess(f"{figure}{part}")))
            for part in ("_at_n", "_others")
        )
        w, q, t = _round_weights(w), self.rows.q[asked], self.rows.t[asked]
        means = [[_mean(chances, w) for chances in guess.ways] for guess in (from_SD, by_others)]
        right = max(means[0]) - max(means[1])
        named, unmatched = from_SD.named - by_others.named, by_others.matched - from_SD.matched
        squares = [
            _square_by_key(q, w * (named + unmatched * of_all[t])) for of_all in self._guess_all(figure)
        ]
        guess_by_key = [
            guess
            for guess, (by_key, always) in zip((from_SD, by_others), means, strict=True)
            if by_key >= always
        ]
        of_keys = len(guess_by_key) / 2 * sum_exactly(np.array(squares)) / len(squares)
        guessed_alike = 1 - sum(guess.matched for guess in guess_by_key) / 2
        at_once = sum_exactly(w * guessed_alike * (from_SD.always - by_others.always))
        error = math.hypot(math.sqrt(of_keys), at_once) / sum_exactly(w)
        return Estimate(100 * right, 100 * max(error, 1 / len(asked)))

    def _guess_all(self, figure: str) -> list[Floats]:
        """Return the guess of all records, GT and SD: the chance that each level is guessed (shape: targets).

        An amount is guessed for its neighbours, too. Of several modes, each is a guess of its own.
        """
        rows, f = self.rows, self.rows.f
        band = rows.band if figure == _AMOUNTS else None
        guessable, guesser = _choose_guesser(rows, band)
        both = (f.d + f.s) * guessable[f.t]
        whole = whole_table(f, both, both)
        of_all, _ = guesser(whole, whole.d, whole.d > 0, None, without_self=False)
        modes = np.flatnonzero(of_all)
        if band is not None or not len(modes):
            return [of_all]
        return [(np.arange(f.targets) == mode).astype(np.float64) for mode in modes.tolist()]


def _split(name: str) -> tuple[str, str]:
    """Return the figure, and which part of it is meant: `_beyond`, `_others`, `_at_n`, or nothing.

    >>> _split("DiSCO_within_others"), _split("iS")
    (('DiSCO_within', '_others'), ('iS', ''))
    """
    part = next((part for part in ("_beyond", "_others", "_at_n") if name.endswith(part)), "")
    return name.removesuffix(part), part


def _add_within(rows: Rows) -> dict[str, Floats]:
    """Return what each row adds to the figures within a band: see `chances_within`."""
    assert rows.band is not None
    f, added = rows.f, dict[str, Floats]()
    own = rows.own_records()
    for sizes, at in rows.sizes:
        of_cells = chances_within(f, f.d > 0, rows.band, sizes, rows.certainties)
        for name, x in of_cells.items():
            added.setdefault(name, np.zeros(len(rows)))[at] = x[rows.cell[at]]
        if sizes.own == 1:
            continue
        beside = Sizes(f.N_d - sizes.own + 1, f.N_s)
        for entries, table, places in beside_other_units(f, own, np.unique(own.entry[at])):
            wanted = np.zeros(len(table.q), dtype=bool)
            wanted[places] = True
            of_entries = np.full(len(own.cell), np.nan)
            for name, x in chances_within(table, wanted, rows.band, beside, rows.certainties).items():
                if name.endswith("_others"):
                    of_entries[entries] = x[places]
                    some = at[np.isin(own.entry[at], entries)]
                    added[name][some] = of_entries[own.entry[some]]
    return added


def _estimate_share(x: Floats, w: Floats) -> Estimate:
    whole = sum_exactly(w)
    part = sum_exactly(w * x)
    spread = math.sqrt(sum_exactly((w * (x - part / whole)) ** 2))
    return Estimate(100 * part / whole, 100 * spread / whole)


def _estimate_difference(added: Floats, q: IntArray, w: Floats) -> Estimate:
    """Return a difference to which each record adds something, and its error, of at least one record."""
    whole = sum_exactly(w)
    spread = math.sqrt(_square_by_key(q, w * added))
    return Estimate(100 * sum_exactly(w * added) / whole, max(100 * spread / whole, 100 / len(w)))


def _square_by_key(q: IntArray, added: Floats) -> float:
    some = np.flatnonzero(added)  # of a group's records, mostly few
    of_q = np.bincount(q[some], weights=_round_for_sums(added[some])).astype(np.float64)
    return sum_exactly(of_q[of_q != 0] ** 2)


def _round_for_sums(values: Floats) -> Floats:
    """Round so that sums of any of the values are exact: the order of the records makes no difference."""
    largest = float(np.abs(values).max(initial=0))
    unit = 2.0 ** (math.frexp(largest)[1] + len(values).bit_length() + 1)
    return (values + unit) - unit


def _round_weights(w: Floats) -> Floats:
    """Return the weights as whole numbers that add up to 2^31, except for rounding."""
    return np.rint(w * (_SUM_OF_WEIGHTS / sum_exactly(w)))


def _mean(x: Floats | Mask, w: Floats) -> float:
    return sum_exactly(w * x) / sum_exactly(w)


def inflate_variance(weight: Floats) -> float:
    """Return the factor by which unequal weights increase the variance (Kish 1965)."""
    return len(weight) * sum_exactly(weight**2) / sum_exactly(weight) ** 2
