"""Weighted shares: a share of the GT records as a share of the people they represent.

Each GT record i contributes x_i, from 0 to 1, to a figure, which is the mean of x. The weighted share
Σ w_i x_i / Σ w_i estimates the share in the population. Its standard error, by Taylor linearization, is
sqrt(Σ w_i² (x_i - share)²) / Σ w_i (Särndal, Swensson & Wretman 1992, 5.7, for records drawn independently).
For a difference from other people's records it is that of `baselines`, by combination of keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from disclosure_pipeline.measures.band_counts import band_counts
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.bands import bands
from disclosure_pipeline.measures.baselines import baseline_counts, compare_guesses
from disclosure_pipeline.measures.exact import (
    SCALE,
    Floats,
    IntArray,
    Mask,
    percent,
    sum_by_position,
    sum_exactly,
)
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.guesses import Guessing
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, chance_of_one_level
from disclosure_pipeline.measures.subgroups import RecordDisclosure, count_records_of_unit
from disclosure_pipeline.measures.totals import DisclosureTables
from disclosure_pipeline.measures.units import UnitCells, guesses_of_units
from disclosure_pipeline.measures.words import Words, standard_error_of

KEY_FIGURES = ("UiO", "UiOiS", "repU")
TABLE_FIGURES = ("Dorig", "iS", "DiS", "DiSCO", "DiSDiO")
TARGET_FIGURES = (*TABLE_FIGURES, "DiSCO_chance", "DiSCO_excess")
OTHERS_FIGURES = ("iS_others", "iS_beyond", "DiSCO_others", "DiSCO_beyond")
GUESS_FIGURES = ("CAPd", "DCAP", "DCAP_others", "DCAP_beyond", "guessed", "guessed_others", "guessed_beyond")
GROUP_FIGURES = ("DiSCO", "DiSCO_others", "DiSCO_beyond")
BAND_FIGURES = (
    *("DiS_within", "DiS_within_others", "DiS_within_beyond"),
    *("DiSCO_within", "DiSCO_within_others", "DiSCO_within_beyond"),
    *("guessed_within", "guessed_within_others", "guessed_within_beyond"),
)
COPY_FIGURES = ("people_copied", "people_copied_expected", "people_copied_beyond")
WEIGHTED = "_weighted"
_SUM_OF_WEIGHTS = 1 << 31  # of integer weights, except for rounding


def weigh_words(words: Mapping[str, Words], names: tuple[str, ...]) -> dict[str, Words]:
    """Return the words of the weighted shares of some figures, and of their standard errors."""
    weighed = {}
    for name in names:
        of_figure = words[name]
        weighed[f"{name}{WEIGHTED}"] = replace(
            of_figure,
            title=f"{of_figure.title}, weighted",
            sentence=f"{of_figure.sentence} Each record counts as the people it represents.",
            denominator="population",
            beside=f"{of_figure.beside}, weighted" if of_figure.beside else "",
        )
        weighed[f"{name}{WEIGHTED}_se"] = standard_error_of(f"{name}{WEIGHTED}")
    return weighed


@dataclass(frozen=True)
class PlacedWeights:
    """Sums of the weights and squared weights of GT records by place: by cell or combination of keys."""

    people: Floats
    squares: Floats

    @classmethod
    def add_up(cls, weight: Floats, place: IntArray, places: int) -> PlacedWeights:
        """Add up the weights of the records at each place."""
        people = np.bincount(place, weights=weight, minlength=places).astype(np.float64)
        squares = np.bincount(place, weights=weight**2, minlength=places).astype(np.float64)
        return cls(people, squares)

    def share(self, x: Floats | Mask) -> tuple[float, float]:
        """Return the weighted share and its standard error in percent; `x`: a record's contribution by place.

        >>> places = PlacedWeights.add_up(np.array([1.0, 3.0]), np.array([0, 1]), 2)
        >>> places.share(np.array([0.0, 1.0]))[0]
        75.0
        """
        total = sum_exactly(self.people)
        share = sum_exactly(self.people * x) / total
        return 100 * share, 100 * math.sqrt(sum_exactly(self.squares * (x - share) ** 2)) / total


def weigh_keys(d_q: IntArray, s_q: IntArray, weights: PlacedWeights) -> dict[str, float]:
    """Return the weighted shares of `KEY_FIGURES`; `weights` by combination of keys."""
    alone = d_q == 1
    return _name_shares(
        {"UiO": alone, "UiOiS": alone & (s_q > 0), "repU": alone & (s_q == 1)},
        weights,
    )


def weigh_copies(alone: Mask, found: Mask, expected: float, error: float, weight: Floats) -> dict[str, float]:
    """Return the weighted shares of `COPY_FIGURES`.

    `alone` marks the GT records that no other one equals, `found` those of them that SD holds. `expected` is
    the percentage of GT records that a fresh table finds, each of `alone` with the same chance; `error` is
    the standard error of people_copied_beyond.
    """
    weights = PlacedWeights(weight, weight**2)
    share_alone, error_alone = weights.share(alone)
    chance = expected / 100 * len(alone) / max(int(alone.sum()), 1)
    copied = _name_shares({"people_copied": found}, weights)
    by_fresh, beyond = (f"people_copied_{name}{WEIGHTED}" for name in ("expected", "beyond"))
    return copied | {
        by_fresh: chance * share_alone,
        f"{by_fresh}_se": chance * error_alone,
        beyond: copied[f"people_copied{WEIGHTED}"] - chance * share_alone,
        f"{beyond}_se": error * math.sqrt(_inflate_variance(weight)),
    }


def _inflate_variance(weight: Floats) -> float:
    """Return the factor by which unequal weights increase the variance (Kish 1965)."""
    return len(weight) * sum_exactly(weight**2) / sum_exactly(weight) ** 2


def weigh_target(
    f: FrequencyTable, tables: DisclosureTables, no_guess: Mask, weights: PlacedWeights
) -> dict[str, float]:
    """Return the weighted shares of `TARGET_FIGURES`, CAPd, DCAP, and guesses from all of SD.

    `tables`: after the exclusions. `weights`: by cell.
    """
    d, s = tables.original.values(), tables.synthetic.values()
    left = d > 0
    shares: dict[str, Floats | Mask] = {name: getattr(tables, name).values() > 0 for name in TABLE_FIGURES}
    by_chance = np.zeros(len(f.q))
    s_t = f.per_target(f.s)
    for t in np.flatnonzero(s_t).tolist():
        at = np.flatnonzero(left & (f.t == t) & (f.s_q > 0))
        if len(at):
            by_chance[at] = chance_of_one_level(int(s_t[t]), f.N_s, f.s_q[at])
    shares |= {"DiSCO_chance": by_chance, "DiSCO_excess": shares["DiSCO"] - by_chance}
    for name, counts in (("CAPd", d), ("DCAP", s)):
        key_sums = f.per_key(counts)[f.q]
        shares[name] = np.divide(counts, key_sums, out=np.zeros(len(key_sums)), where=left & (key_sums > 0))
    guesses = [_name_shares({"guessed": x * left}, weights) for x in _guess(f, no_guess)]
    better = max(guesses, key=lambda of_way: of_way[f"guessed{WEIGHTED}"])
    return _name_shares(shares, weights) | better


def weigh_others(disclosed: RecordDisclosure, weight: Floats) -> dict[str, float]:
    """Return the weighted shares of DiSCO_others and DiSCO_beyond."""
    by_others, added = (
        part / CHANCE_SCALE for part in (disclosed.by_others, disclosed.at_n - disclosed.by_others)
    )
    return _weigh_others_and_beyond("DiSCO", disclosed.q, by_others, added, weight)


def weigh_found(
    f: FrequencyTable, tables: DisclosureTables, position: IntArray, unit: IntArray | None, weight: Floats
) -> dict[str, float]:
    """Return the weighted shares of iS_others, iS_beyond, DCAP_others and DCAP_beyond.

    `tables`: after the exclusions. `position`, `unit`: as in `RecordDisclosure.from_table`.
    """
    d, s = tables.original.values(), tables.synthetic.values()
    q, left = f.q[position], (d > 0)[position]
    s_q, left_q, left_s_q = f.s_q[position], f.per_key(d)[q], f.per_key(s)[q]
    own, own_q, own_t, own_left = (np.ones_like(q) for _ in range(4))
    if unit is not None:
        own, own_q, own_t = (count_records_of_unit(unit, place) for place in (None, q, position))
        _, pair = np.unique(np.stack((unit, q)), axis=1, return_inverse=True)
        own_left = np.bincount(pair.reshape(-1), weights=left).astype(np.int64)[pair.reshape(-1)]
    others, others_t, with_key = f.d_q[position] - own_q, f.d[position] - own_t, left_q - own_left
    by_others, added = ({name: np.zeros(len(q)) for name in ("iS", "DCAP")} for _ in range(2))
    for number in np.unique(own[left]).tolist():
        sizes, at = Sizes(f.N_d, f.N_s, number), np.flatnonzero((own == number) & left)
        guess = _share(others_t[at], with_key[at], sizes.p0(with_key[at]))
        from_SD = _share(s[position[at]], left_s_q[at], sizes.q0(left_s_q[at]))
        by_others["iS"][at], by_others["DCAP"][at] = 1 - sizes.p0(others[at]), guess
        added["iS"][at] = 1 - sizes.q0(s_q[at]) - by_others["iS"][at]
        added["DCAP"][at] = from_SD - guess
    shares: dict[str, float] = {}
    for name, of_others in by_others.items():
        shares |= _weigh_others_and_beyond(name, q, of_others, added[name], weight)
    return shares


def _share(records: IntArray, key_records: IntArray, none_drawn: Floats) -> Floats:
    share: Floats = records / np.maximum(key_records, 1) * (1 - none_drawn)
    return share


def weigh_guesses(
    f: FrequencyTable,
    position: IntArray,
    unit: IntArray | None,
    left: Mask,
    no_guess: Mask,
    weight: Floats,
) -> dict[str, float]:
    """Return the weighted shares of guessed_others and guessed_beyond; `left`: records that count."""
    people, whole = _weights_to_integers(weight, left)
    if unit is None:
        weights_by_cell = sum_by_position(position, people, len(f.q))
        sizes = Sizes(f.N_d, f.N_s)
        counts = baseline_counts(f, sizes, no_guess, weights_by_cell)
        d_t, s_t, people_t = (f.per_target(records) for records in (f.d, f.s, weights_by_cell))
        guessing = Guessing(sizes, d_t, s_t, people_t, no_guess)
        by_SD, by_others, error = compare_guesses(counts, guessing, whole, sizes.n)
    else:
        of_records, of_people = (
            UnitCells.from_records(f.q[position], position, unit, numbers)
            for numbers in (np.ones_like(position), people)
        )
        by_SD, by_others, error = guesses_of_units(f, of_records, of_people.records, no_guess, whole)
    others = by_others / (whole * SCALE)
    inflated = _inflate_variance(weight)
    return {
        f"guessed_others{WEIGHTED}": 100 * others,
        f"guessed_others{WEIGHTED}_se": 100
        * math.sqrt(inflated * max(others * (1 - others), 0) / len(weight)),
        f"guessed_beyond{WEIGHTED}": percent(by_SD - by_others, whole * SCALE),
        f"guessed_beyond{WEIGHTED}_se": max(error * math.sqrt(inflated), 100 / len(weight)),
    }


def _weights_to_integers(weight: Floats, left: Mask) -> tuple[IntArray, int]:
    """Return the weights as integers, 0 if not `left`, and the sum of all integer weights."""
    weights = np.rint(weight * (_SUM_OF_WEIGHTS / sum_exactly(weight))).astype(np.int64)
    return np.where(left, weights, 0), int(weights.sum())


def weigh_bands(
    f: FrequencyTable, band: Band, position: IntArray, left: Mask, weight: Floats, found_by_others: float
) -> dict[str, float]:
    """Return the weighted shares of `BAND_FIGURES`; `left` marks the GT records that count.

    `found_by_others`: weighted iS_others in percent.
    """
    sizes = Sizes(f.N_d, f.N_s)
    weights, whole = _weights_to_integers(weight, left)
    people = sum_by_position(position, weights, len(f.q))
    counts = band_counts(f, people, band, sizes, ())
    d_t, s_t, people_t = (f.per_target(records) for records in (f.d, f.s, people))
    with_others = found_by_others / 100 * whole
    figures = bands(counts, band, sizes, d_t, s_t, people_t, with_others, whole)
    inflated = _inflate_variance(weight)
    shares: dict[str, float] = {}
    for name in BAND_FIGURES:
        share = getattr(figures, name)
        if name.endswith("_beyond"):
            error = max(getattr(figures, f"{name}_se"), 100 / len(weight))
        else:
            error = math.sqrt(max(inflated * share * (100 - share) / len(weight), 0.0))
        shares |= {f"{name}{WEIGHTED}": share, f"{name}{WEIGHTED}_se": error}
    return shares


def _weigh_others_and_beyond(
    name: str, q: IntArray, by_others: Floats, added: Floats, weight: Floats
) -> dict[str, float]:
    """Return the weighted shares of a figure's `_others` and `_beyond` from the records' contributions."""
    total = sum_exactly(weight)
    share = sum_exactly(weight * by_others) / total
    spread = math.sqrt(sum_exactly((weight * (by_others - share)) ** 2)) / total
    of_keys = np.bincount(q, weights=weight * added).astype(np.float64)
    # At least one record.
    error = max(math.sqrt(sum_exactly(of_keys**2)), total / len(weight)) / total
    return {
        f"{name}_others{WEIGHTED}": 100 * share,
        f"{name}_others{WEIGHTED}_se": 100 * spread,
        f"{name}_beyond{WEIGHTED}": 100 * sum_exactly(weight * added) / total,
        f"{name}_beyond{WEIGHTED}_se": 100 * error,
    }


def weigh_groups(
    disclosed: RecordDisclosure, weight: Floats, group: IntArray, groups: int
) -> list[dict[str, float]]:
    """Return the weighted shares of `GROUP_FIGURES` for each group (shape of `group`: GT records)."""
    rows = []
    for number in range(groups):
        members = group == number
        of_group = RecordDisclosure(
            disclosed.q[members],
            disclosed.exposed[members],
            disclosed.at_n[members],
            disclosed.by_others[members],
        )
        weights = PlacedWeights(weight[members], weight[members] ** 2)
        shares = _name_shares({"DiSCO": of_group.exposed.astype(np.float64)}, weights)
        rows.append(
            {"people": sum_exactly(weight[members]), **shares, **weigh_others(of_group, weight[members])}
        )
    return rows


def _name_shares(shares: Mapping[str, Floats | Mask], weights: PlacedWeights) -> dict[str, float]:
    named = {}
    for name, x in shares.items():
        named[f"{name}{WEIGHTED}"], named[f"{name}{WEIGHTED}_se"] = weights.share(x)
    return named


def _guess(f: FrequencyTable, no_guess: Mask) -> tuple[Floats, Floats]:
    """Return the chance that a guess of each cell's level is right by the two strategies of `guesses`."""
    s_t = f.per_target(f.s) * ~no_guess
    modes = (s_t == s_t.max(initial=0)) & (s_t > 0)
    always = modes[f.t] / max(int(modes.sum()), 1)
    s = f.s * ~no_guess[f.t]
    largest = f.largest_by_q(s)
    named = (s == f.at_cells(largest)) & (s > 0)
    ways = np.maximum(f.at_cells(f.sum_by_q(named)), 1)
    return np.where(f.at_cells(largest > 0), named / ways, always), always
