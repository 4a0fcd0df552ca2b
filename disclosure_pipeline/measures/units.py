"""Baselines for people with several records: other people's records are those of other units.

A unit is a person (or household) that several records belong to, such as a patient with many stays. For a
person whose unit has N_u records, P0(m) draws from the N_d - N_u records of other units, and both sides are
compared at n = min(N_s, N_d - N_u) records. People with equal N_u are computed together. Guesses from a draw
are averaged over all draws in small tables, and over a few seeded draws in large ones.

If every unit has one record, these are the formulas of `baselines`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.baselines import (
    attributed_beyond,
    found_beyond,
    standard_error,
    sum_of_squares,
)
from disclosure_pipeline.measures.drawn_guesses import (
    Draw,
    chance_of_none,
    chances_to_be_named,
    count_right_by_key_of_draw,
    count_right_by_mode_of_draw,
    draw_of_others,
    draw_of_synthetic,
    drawn_guess_counts,
    overall_chances,
)
from disclosure_pipeline.measures.exact import (
    SCALE,
    Floats,
    Grouped,
    IntArray,
    Mask,
    percent,
    sum_by_position,
    sum_quotients,
)
from disclosure_pipeline.measures.frequency import FrequencyTable, aranges, first_of_run, run_lengths
from disclosure_pipeline.measures.guesses import (
    count_right_by_mode,
    count_right_guesses,
    guess_counts,
    guessed_beyond_error,
)
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, to_integer_chances

_LEVELS_AT_A_TIME = 1 << 21
_MAX_LEVELS_OF_SMALL_TABLE = 1 << 14
_DRAWS = 8


@dataclass(frozen=True)
class UnitCells:
    """GT's records of each unit in each cell, in order of q, unit and t.

    records: of the `unit` in the `cell`. size: records of the unit in all cells.
    pair: number of the pair (q, unit). in_q: records of that pair.
    """

    cell: IntArray
    unit: IntArray
    records: IntArray
    size: IntArray
    pair: IntArray
    in_q: IntArray

    @classmethod
    def from_records(cls, q: IntArray, cell: IntArray, unit: IntArray, records: IntArray) -> UnitCells:
        """Add up `records` by cell and unit; `q` belongs to `cell` (all arrays: one entry per record)."""
        order = np.lexsort((cell, unit, q))
        q, cell, unit = q[order], cell[order], unit[order]
        begins_pair = first_of_run(q) | first_of_run(unit)
        first = np.flatnonzero(begins_pair | first_of_run(cell))
        added = np.add.reduceat(records[order], first)
        pair = (np.cumsum(begins_pair) - 1)[first]
        size, in_q = sum_by_position(unit[first], added), sum_by_position(pair, added)
        return cls(cell[first], unit[first], added, size[unit[first]], pair, in_q[pair])


def baselines_of_units(
    f: FrequencyTable,
    cells: UnitCells,
    no_guess: Mask,
    left: IntArray | None = None,
    left_s: IntArray | None = None,
) -> dict[str, float]:
    """Return the figures of `Baselines` by name, except `guessed`, which does not depend on units.

    `left`, `left_s`: GT and SD records that the exclusions leave in each cell; None if nothing is excluded.
    `no_guess` marks the target levels that nobody guesses (shape: targets).
    """
    is_left = np.ones(len(cells.cell), dtype=np.int64) if left is None else (left > 0)[cells.cell].astype(int)
    people = cells.records * is_left
    s = f.s if left_s is None else left_s
    s_q = f.s_q if left_s is None else f.per_key(s)[f.q]
    d_q = f.d_q if left is None else f.per_key(left)[f.q]
    own_left = sum_by_position(cells.pair, people)[cells.pair]
    products: dict[str, list[float]] = defaultdict(list)
    added: dict[str, IntArray] = {name: np.zeros(f.keys, dtype=np.int64) for name in ("iS", "DiSCO", "DCAP")}

    def add(figure: str, grouped: Grouped, chances: Floats) -> None:
        products[figure] += (grouped.sums * chances).tolist()

    for own in np.unique(cells.size).tolist():
        entries = np.flatnonzero(cells.size == own)
        sizes, at = Sizes(f.N_d, f.N_s, own), cells.cell[entries]
        c, in_SD = people[entries], f.s_q[at] > 0
        others, others_t = f.d_q[at] - cells.in_q[entries], f.d[at] - cells.records[entries]
        by_others = Grouped.sum_by_group(others, c)
        by_s_q = Grouped.sum_by_group(f.s_q[at][in_SD], c[in_SD])
        other_levels, other_levels_in_SD = others - others_t, (f.s_q[at] - f.s[at])[in_SD]
        kept, kept_in_SD = other_levels <= sizes.others_left, other_levels_in_SD <= sizes.synthetic_left
        by_other_levels = Grouped.sum_by_group(other_levels[kept], c[kept])
        by_other_levels_in_SD = Grouped.sum_by_group(other_levels_in_SD[kept_in_SD], c[in_SD][kept_in_SD])
        add("iS_others", by_others, 1 - sizes.p0(by_others.groups))
        add("iS", by_s_q, 1 - sizes.q0(by_s_q.groups))
        add("certain_others", by_other_levels, sizes.p0(by_other_levels.groups))
        add("absent_others", by_others, sizes.p0(by_others.groups))
        add("certain", by_other_levels_in_SD, sizes.q0(by_other_levels_in_SD.groups))
        add("absent", by_s_q, sizes.q0(by_s_q.groups))
        with_key = d_q[at] - own_left[entries]
        attributed = Grouped.sum_by_group(with_key, c * others_t)
        add("DCAP_others", attributed, _share_if_drawn(attributed.groups, sizes.p0(attributed.groups)))
        attributed = Grouped.sum_by_group(s_q[at], c * s[at])
        add("DCAP", attributed, _share_if_drawn(attributed.groups, sizes.q0(attributed.groups)))
        others_chance = to_integer_chances(sizes.p0(other_levels)) - to_integer_chances(sizes.p0(others))
        np.add.at(added["iS"], f.q[at], c * found_beyond(others, f.s_q[at], sizes))
        at_n = to_integer_chances(sizes.q0(f.s_q[at] - f.s[at])) - to_integer_chances(sizes.q0(f.s_q[at]))
        np.add.at(added["DiSCO"], f.q[at], c * (at_n - others_chance))
        alike = f.q[at] * (int(with_key.max()) + 1) + with_key
        _, first, number = np.unique(alike, return_index=True, return_inverse=True)
        alike_GT, alike_SD = (sum_by_position(number.reshape(-1), c * shared) for shared in (others_t, s[at]))
        by_guess = attributed_beyond(alike_GT, with_key[first], alike_SD, s_q[at][first], sizes)
        np.add.at(added["DCAP"], f.q[at][first], by_guess)
    sums = {figure: 100 * math.fsum(terms) / f.N_d for figure, terms in products.items()}
    for suffix in ("", "_others"):  # rounded once
        certain, absent = (math.fsum(products[f"{name}{suffix}"]) for name in ("certain", "absent"))
        sums[f"DiSCO{suffix}"] = 100 * (certain - absent) / f.N_d
    figures = {f"{name}_others": sums[f"{name}_others"] for name in added}
    figures |= {f"{name}_at_n": sums[name] for name in added}
    figures |= {f"{name}_beyond": sums[name] - sums[f"{name}_others"] for name in added}
    with_others = math.fsum(products["iS_others"])
    guessed_at_n, guessed_others, error = _guess_both(f, cells, people, no_guess, with_others, f.N_d)
    return figures | {
        **{f"{name}_beyond_se": standard_error(sum_of_squares(by_q), f.N_d) for name, by_q in added.items()},
        "guessed_at_n": percent(guessed_at_n, f.N_d * SCALE),
        "guessed_others": percent(guessed_others, f.N_d * SCALE),
        "guessed_beyond": percent(guessed_at_n - guessed_others, f.N_d * SCALE),
        "guessed_beyond_se": error,
    }


def guesses_of_units(
    f: FrequencyTable, cells: UnitCells, people: IntArray, no_guess: Mask, whole: int
) -> tuple[int, int, float]:
    """Return right guesses of `people` from SD and from the others, and the error of their difference."""
    with_others = float(people[f.d_q[cells.cell] > cells.in_q].sum())
    return _guess_both(f, cells, people, no_guess, with_others, whole)


def _guess_both(
    f: FrequencyTable, cells: UnitCells, people: IntArray, no_guess: Mask, with_others: float, whole: int
) -> tuple[int, int, float]:
    by_SD, by_others = (guess(f, cells, people, no_guess) for guess in (_guess_at_n, _guess_from_others))
    right = max(by_SD), max(by_others)
    n = min(Sizes(f.N_d, f.N_s).divide(f.N_d / len(np.unique(cells.unit))).n, whole)
    error = guessed_beyond_error(right, (by_SD[1], by_others[1]), int(people.sum()), with_others, whole, n)
    return *right, error


def _share_if_drawn(records: IntArray, none_drawn: Floats) -> Floats:
    share: Floats = (1 - none_drawn) / np.maximum(records, 1)
    return share


def _people_by_cell(f: FrequencyTable, cells: UnitCells, people: IntArray) -> IntArray:
    return sum_by_position(cells.cell, people, len(f.q))


def _guess_at_n(f: FrequencyTable, cells: UnitCells, people: IntArray, no_guess: Mask) -> tuple[int, int]:
    """Return right guesses from SD at n records by key, and by SD's mode, in units of 1 / `SCALE`.

    If SD has at most as many records as GT, nothing is drawn and the first is of the better strategy.
    """
    s_t = f.per_target(f.s)
    if f.N_s <= f.N_d:
        d = _people_by_cell(f, cells, people)
        people_t = f.per_target(d)
        by_mode = count_right_by_mode(people_t, s_t, no_guess)
        return count_right_guesses(guess_counts(f, d, f.s, no_guess), people_t, s_t, no_guess), by_mode
    by_key, always = 0, 0
    for own in np.unique(cells.size).tolist():
        draw = draw_of_synthetic(Sizes(f.N_d, f.N_s, own))
        assert draw is not None
        d = _people_by_cell(f, cells, people * (cells.size == own))
        counts = drawn_guess_counts(f, d, f.s, no_guess, draw)
        d_t, overall = f.per_target(d), overall_chances(s_t, no_guess, draw)
        by_key += count_right_by_key_of_draw(counts, d_t, overall)
        always += count_right_by_mode_of_draw(d_t, overall)
    return by_key, always


def _guess_from_others(
    f: FrequencyTable, cells: UnitCells, people: IntArray, no_guess: Mask
) -> tuple[int, int]:
    """Return right guesses by the mode of the others with one's q, and by the mode of all others."""
    t = f.t[cells.cell]
    r, r_t = f.d * ~no_guess[f.t], f.per_target(f.d) * ~no_guess
    own = cells.records * ~no_guess[t]
    overall = UnitCells.from_records(np.zeros_like(t), t, cells.unit, own)
    place = np.searchsorted(overall.unit * f.targets + overall.cell, cells.unit * f.targets + t)
    by_key, always = 0, 0
    undrawn = np.zeros(len(people), dtype=bool)
    drawn: dict[float, tuple[Draw, Mask]] = {}
    levels = np.bincount(f.q)[f.q[cells.cell]]
    units = len(np.unique(cells.unit))
    is_small = int(levels.sum()) + units * np.count_nonzero(f.per_target(f.d)) <= _MAX_LEVELS_OF_SMALL_TABLE
    for size in np.unique(cells.size).tolist():
        sizes, is_chosen = Sizes(f.N_d, f.N_s, size), cells.size == size
        draw = draw_of_others(sizes)
        if draw is None:
            undrawn |= is_chosen
        elif size == 1:
            d = _people_by_cell(f, cells, people * is_chosen)
            overall_of_level = overall_chances(f.per_target(f.d), no_guess, draw)
            counts = drawn_guess_counts(f, d, f.d, no_guess, draw)
            by_key += count_right_by_key_of_draw(counts, f.per_target(d), overall_of_level)
            always += count_right_by_mode_of_draw(f.per_target(d), overall_of_level)
        else:
            # In large tables, units whose records are drawn about equally often share their draws.
            alike = size if is_small else round(math.log(draw.chance), 2)
            known = drawn.get(alike, (draw, np.zeros(len(people), dtype=bool)))
            drawn[alike] = (known[0], known[1] | is_chosen)
    guess = _guess_from_draw if is_small else _guess_from_seeded_draws
    for draw, of_sizes in drawn.values():
        without_own = Draw(draw.n, draw.records, without_self=False)
        of_some, of_all = guess(f, cells, _Others(own, overall, place), people, of_sizes, without_own)
        by_key, always = by_key + of_some, always + of_all
    if undrawn.any():
        modes, matched = _modes_without_own(f.q, r, cells, own)
        overall_modes, _ = _modes_without_own(
            np.zeros(f.targets, dtype=np.int64), r_t, overall, overall.records
        )
        of_everybody, rest = overall_modes[place], people * undrawn
        by_key += _count_right(modes, rest * matched, of_everybody, rest * ~matched)
        always += _count_right(of_everybody, rest)
    return by_key, always


def _count_right(*modes_and_people: IntArray) -> int:
    """Return the expected right guesses for alternating arguments: number of modes (0: not named), people."""
    right = 0
    for modes, people in zip(modes_and_people[::2], modes_and_people[1::2], strict=True):
        named = np.flatnonzero(modes)
        right += sum_quotients(people[named], modes[named])
    return right


def _modes_without_own(q: IntArray, r: IntArray, cells: UnitCells, own: IntArray) -> tuple[IntArray, Mask]:
    """Return for each entry the number of modes of the others, 0 if its level is none, and who has others.

    `q` of the cells ascends, `r` are their records to guess from, `own` those of each entry.
    """
    # Levels that the unit has no record of keep their count: find the largest of them.
    descending = np.lexsort((-r, q))
    first_of_q = np.searchsorted(q, q)
    last_of_q = np.searchsorted(q, q, side="right")
    first = np.flatnonzero(first_of_run(cells.pair))
    entries = run_lengths(first, len(cells.pair))
    key = np.repeat(np.arange(len(first)), entries) * len(q) + cells.cell
    pointer, end = first_of_q[cells.cell[first]], last_of_q[cells.cell[first]]
    untouched = np.zeros(len(first), dtype=np.int64)
    active = np.arange(len(first))
    while len(active):
        cell = descending[pointer[active]]
        wanted = active * len(q) + cell
        position = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        is_own = key[position] == wanted
        untouched[active[~is_own]] = r[cell[~is_own]]
        active = active[is_own]
        pointer[active] += 1
        active = active[pointer[active] < end[active]]
    rest = r[cells.cell] - own
    largest = np.maximum(np.maximum.reduceat(rest, first), untouched)
    most = int(r.max(initial=0)) + 1
    frequency = np.sort(q * most + r)
    number = q[cells.cell[first]] * most + largest
    modes = np.searchsorted(frequency, number, side="right") - np.searchsorted(frequency, number)
    at_entries = np.repeat(largest, entries)
    changed = (rest == at_entries).astype(np.int64) - (r[cells.cell] == at_entries)
    modes = modes + np.add.reduceat(changed, first)
    records_of_q = np.add.reduceat(r, np.flatnonzero(first_of_run(q)))[np.cumsum(first_of_run(q)) - 1]
    others = records_of_q[cells.cell[first]] - np.add.reduceat(own, first)
    named = (rest == at_entries) & (rest > 0)
    return np.where(named, np.repeat(modes, entries), 0), np.repeat(others > 0, entries)


@dataclass(frozen=True)
class _Others:
    """own: guessable records of each entry. overall: the same by level. place: the entry's place there."""

    own: IntArray
    overall: UnitCells
    place: IntArray


def _guess_from_seeded_draws(
    f: FrequencyTable, cells: UnitCells, others: _Others, people: IntArray, is_chosen: Mask, draw: Draw
) -> tuple[int, int]:
    """Estimate `_guess_from_draw` from a few seeded draws."""
    by_key, always, people = 0, 0, people * is_chosen
    for seed in range(_DRAWS):
        drawn = np.random.default_rng(seed).binomial(others.own, draw.chance)
        r = sum_by_position(cells.cell, drawn, len(f.q))
        drawn_overall = sum_by_position(others.place, drawn, len(others.overall.cell))
        modes, matched = _modes_without_own(f.q, r, cells, drawn)
        one_q = np.zeros(f.targets, dtype=np.int64)
        overall_modes, _ = _modes_without_own(one_q, f.per_target(r), others.overall, drawn_overall)
        by_key += _count_right(modes, people * matched, overall_modes[others.place], people * ~matched)
        always += _count_right(overall_modes[others.place], people)
    return by_key // _DRAWS, always // _DRAWS


def _guess_from_draw(
    f: FrequencyTable, cells: UnitCells, others: _Others, people: IntArray, is_chosen: Mask, draw: Draw
) -> tuple[int, int]:
    """Return right guesses of some entries, averaged over all draws of the others: by key, and overall."""
    chosen = np.flatnonzero(is_chosen)
    r = sum_by_position(cells.cell, others.own, len(f.q))
    named = to_integer_chances(_chances_without_own(f.q, r, cells, others.own, chosen, draw))
    records_of_q = f.at_cells(f.sum_by_q(r), cells.cell[chosen])
    own_in_q = sum_by_position(cells.pair, others.own)[cells.pair[chosen]]
    drawn = CHANCE_SCALE - to_integer_chances(chance_of_none(records_of_q - own_in_q, draw))
    of_units = np.unique(others.place[chosen])
    one_q = np.zeros(f.targets, dtype=np.int64)
    of_entries = np.zeros(len(others.overall.cell), dtype=np.int64)
    of_entries[of_units] = to_integer_chances(
        _chances_without_own(one_q, f.per_target(r), others.overall, others.overall.records, of_units, draw)
    )
    by_all = of_entries[others.place[chosen]].tolist()
    weights = people[chosen].tolist()
    by_key = int((people[chosen] * named).sum()) * CHANCE_SCALE
    by_key += sum(
        weight * (CHANCE_SCALE - matched) * chance
        for weight, matched, chance in zip(weights, drawn.tolist(), by_all, strict=True)
    )
    always = sum(weight * chance for weight, chance in zip(weights, by_all, strict=True))
    return by_key * (SCALE // CHANCE_SCALE**2), always * (SCALE // CHANCE_SCALE)


def _chances_without_own(
    q: IntArray, r: IntArray, cells: UnitCells, own: IntArray, chosen: IntArray, draw: Draw
) -> Floats:
    """Return the chance that a draw of the others' records names the level of each chosen entry.

    Either all entries of a pair are chosen or none; see `_modes_without_own`.
    """
    pair, cell = cells.pair[chosen], cells.cell[chosen]
    first = np.flatnonzero(first_of_run(pair))
    start = np.searchsorted(q, q[cell[first]])
    levels = np.searchsorted(q, q[cell[first]], side="right") - start
    entries = run_lengths(first, len(pair))
    chances = np.zeros(len(chosen))
    for pairs in _split(levels):
        number = levels[pairs]
        offset = np.cumsum(number) - number
        rest = r[np.repeat(start[pairs], number) + aranges(number)]
        these = slice(int(first[pairs.start]), int(first[pairs.stop - 1] + entries[pairs.stop - 1]))
        at = np.repeat(offset - start[pairs], entries[pairs]) + cell[these]
        rest[at] -= own[chosen[these]]
        wanted = np.zeros(len(rest), dtype=bool)
        wanted[at] = True
        of_pairs = np.repeat(np.arange(len(number)), number)
        chances[these] = chances_to_be_named(of_pairs, rest, wanted, draw)[at]
    return chances


def _split(levels: IntArray) -> Iterator[slice]:
    """Yield slices of the pairs with about `_LEVELS_AT_A_TIME` levels together, at least one pair in each."""
    part = (np.cumsum(levels) - levels) // _LEVELS_AT_A_TIME
    ends = np.append(np.flatnonzero(np.diff(part)) + 1, len(levels))
    for start, end in zip(np.append(0, ends[:-1]).tolist(), ends.tolist(), strict=True):
        if end > start:
            yield slice(start, end)
