"""Several tables published together: what they disclose as one release.

A mean over syntheses says nothing about publishing all of them. The baseline replaces each table j by an
independent draw of n_j other people's records. At least one draw discloses a person with chance
1 - prod_j (1 - p_j), where p_j = P0_j(d_q - d_tq) - P0_j(d_q - 1) is what the person adds to DiSCO_others
(`contributions`). The release itself is reduced to n_j records in the same way, with Q0_j.

If n_j is the number of all others, all draws are the same, although fresh samples would differ: as many
independent samples disclose at most 1 - prod_j (1 - DiSCO_others_j), by Jensen's inequality. The release is
held against that where it is more. All DiSCO_others_j come from the same GT, so their error counts up to m
times: the derivative of that bound is sum_j prod_k≠j (1 - DiSCO_others_k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from disclosure_pipeline.measures.attribute import (
    chance_of_disclosure,
    chance_of_disclosure_by_others,
    is_disclosed,
)
from disclosure_pipeline.measures.chance import beyond_chance, difference_by_chance
from disclosure_pipeline.measures.checks import CodedExclusions, mark_remaining
from disclosure_pipeline.measures.entry import Default, Figure, Place, place_beyond, show_column
from disclosure_pipeline.measures.exact import Floats, IntArray, percent, total
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows
from disclosure_pipeline.measures.identity import mark_replicated
from disclosure_pipeline.measures.samples import (
    CHANCE_SCALE,
    standard_error,
    sum_of_squares,
    to_integer_chances,
)
from disclosure_pipeline.measures.words import (
    BY_CHANCE,
    COUNT,
    GOOD,
    POINTS,
    SYNTHETIC,
    Words,
    by_chance_of,
    described,
    figure,
    neutral,
    points,
    standard_error_of,
    words_of_fields,
)


@dataclass(frozen=True)
class TogetherTargetCounts:
    """The disclosure of one target by m syntheses together, in GT records that the exclusions leave.

    any: records whose level at least one synthesis discloses. agreed: records whose q at least two syntheses
        have with a single level, all of them with the record's own.
    any_at_n, any_others: expected records disclosed by the release at n records per table, and by draws of
        the others, in units of 1 / `CHANCE_SCALE`.
    squares: squares of what the records of each q add to their difference, in units of 1 / `CHANCE_SCALE`².
    squares_at_n, squares_others, squares_of_both: of what they add to any_at_n, to DiSCO_others (on average
        over the syntheses), and to both.
    """

    any: int = 0
    agreed: int = 0
    any_at_n: int = 0
    any_others: int = 0
    squares: int = 0
    squares_at_n: int = 0
    squares_others: int = 0
    squares_of_both: int = 0

    def square_beside(self, times: float) -> float:
        """Return the squares of what the records of each q add to any_at_n, less `times` DiSCO_others."""
        twice_product = self.squares_of_both - self.squares_at_n - self.squares_others
        squares = self.squares_at_n - times * twice_product + times**2 * self.squares_others
        return max(squares, 0.0)


@dataclass(frozen=True)
class TogetherCounts:
    """The disclosure by m syntheses together, in GT records; integers that add up over keys.

    unique_in_any: GT records with d_q = 1 whose q has s_q = 1 in at least one synthesis.
    """

    unique_in_any: int
    targets: tuple[TogetherTargetCounts, ...]


@dataclass(frozen=True)
class Together:
    """Percent of all GT records, and percentage points.

    any: records that DiSCO counts in at least one synthesis. agreed: see
    `TogetherTargetCounts`.
    DiSCO_any_others: that of draws of the others, or the most that as many fresh samples disclose, whichever
        is more. DiSCO_any_beyond: `any` at n records per table minus DiSCO_any_others.
    DiSCO_any_beyond_chance: the figure to be bounded, at most 0 unless it exceeds DiSCO_any_by_chance.
    """

    any: float = figure(
        "disclosed by any synthetic table",
        "People whose target at least one of the synthetic tables discloses correctly.",
        finding="for {value} of the people at least one of the tables correctly shows their {column}",
    )
    agreed: float = figure(
        "disclosed by several that agree",
        "People whose target at least two synthetic tables disclose, all of these correctly.",
    )
    DiSCO_any_others: float = neutral(
        "disclosed by any of as many tables of other people's records, at most",
        "People whose target at least one of as many draws or fresh samples of other people's records would "
        "disclose, at most.",
        finding="as many tables of other people's records would show it for at most {value}",
    )
    DiSCO_any_beyond: float = points(
        "disclosed by any synthetic table beyond other people's records",
        "How many more people have their target disclosed by at least one of the synthetic tables than by "
        "as many tables of other people's records.",
        finding="at least one of the tables gives away the {column} of {more} people in 100 than as many "
        "tables of other people's records would",
    )
    DiSCO_any_beyond_se: float = described(standard_error_of("DiSCO_any_beyond"))
    DiSCO_any_by_chance: float = neutral(
        "disclosed by any synthetic table beyond other people's records: by chance",
        "How far chance alone takes honest tables once in 10,000.",
        POINTS,
        beside=BY_CHANCE,
    )
    DiSCO_any_beyond_chance: float = points(
        "disclosed by any synthetic table beyond other people's records: where beyond chance",
        "How many more people have their target disclosed by at least one of the synthetic tables than by "
        "as many tables of other people's records. Only a difference beyond chance in tables of this size "
        "counts.",
        finding="at least one of the tables gives away the {column} of {more} people in 100 than as many "
        "tables of other people's records would",
    )


@dataclass(frozen=True)
class TogetherIdentity:
    """Percent of all GT records that are replicated uniques (repU) in at least one synthesis."""

    repU_any: float = figure(
        "replicated uniques of any synthetic table",
        "People whose keys are unique in the confidential table and in at least one synthetic table.",
    )


def together(
    counts: TogetherTargetCounts, N_d: int, DiSCO_others: Sequence[float], comparisons: int = 1
) -> Together:
    """Compute the figures of one target; `DiSCO_others`: that of each synthesis, in percent.

    `comparisons`: number of targets.
    """
    N = N_d * CHANCE_SCALE
    others, of_fresh = percent(counts.any_others, N), any_of_fresh_samples(DiSCO_others)
    squares: float = counts.squares
    if of_fresh - others > _ROUNDING:
        others, squares = of_fresh, counts.square_beside(_derive_any(DiSCO_others))
    beyond = percent(counts.any_at_n, N) - others
    error = standard_error(squares, N_d)
    by_chance = difference_by_chance(error, comparisons)
    return Together(
        percent(counts.any, N_d),
        percent(counts.agreed, N_d),
        others,
        beyond,
        error,
        by_chance,
        beyond_chance(beyond, by_chance),
    )


def any_of_fresh_samples(DiSCO_others: Sequence[float]) -> float:
    """Return the percent of the GT records that at least one of as many fresh samples discloses, at most.

    >>> round(any_of_fresh_samples([10.0, 20.0]), 1)
    28.0
    """
    return 100 * (1 - math.prod(1 - others / 100 for others in DiSCO_others))


_ROUNDING = 1e-6  # percent


def _derive_any(DiSCO_others: Sequence[float]) -> float:
    """Return how fast `any_of_fresh_samples` grows if each of `DiSCO_others` grows alike."""
    missed = [1 - others / 100 for others in DiSCO_others]
    return sum(math.prod(missed[:j] + missed[j + 1 :]) for j in range(len(missed)))


def chance_of_any(chances: Sequence[IntArray]) -> IntArray:
    """Return the chance that at least one of independent tables discloses each entry.

    `chances`: for each table. All are in units of 1 / `CHANCE_SCALE`.
    """
    none = reduce(np.multiply, (1 - of_table / CHANCE_SCALE for of_table in chances))
    return to_integer_chances(1 - none)


@dataclass(frozen=True)
class TogetherChances:
    """Contributions of GT records, in units of 1 / `CHANCE_SCALE`.

    To any_at_n and any_others of `TogetherTargetCounts`, and to DiSCO_others on average over the syntheses.
    """

    at_n: IntArray
    by_others: IntArray
    others: IntArray

    @classmethod
    def combine(cls, at_n: Sequence[Floats], by_others: Sequence[Floats]) -> TogetherChances:
        """Combine what they add to DiSCO at n records of each synthesis, and by the others."""
        of_tables, of_others = ([to_integer_chances(of) for of in side] for side in (at_n, by_others))
        mean = np.rint(np.sum(of_others, axis=0) / len(of_others)).astype(np.int64)
        return cls(chance_of_any(of_tables), chance_of_any(of_others), mean)

    def square(self, add_by_q: Callable[[IntArray], IntArray], keys: IntArray | int = 1) -> dict[str, int]:
        """Return the squares of `TogetherTargetCounts`; `add_by_q` adds up by q, of which each is `keys`."""
        added = {
            "squares": self.at_n - self.by_others,
            "squares_at_n": self.at_n,
            "squares_others": self.others,
            "squares_of_both": self.at_n + self.others,
        }
        return {name: sum_of_squares(add_by_q(of_records), keys) for name, of_records in added.items()}


def count_together(tables: Sequence[FrequencyTable], exclusions: CodedExclusions) -> TogetherTargetCounts:
    """Count from the cells of GT and each synthesis: the same, in the same order, in all tables.

    `tables[0].excluded` counts for all.
    """
    f = tables[0]
    if not f.d.any():
        return TogetherTargetCounts()
    left = f.d * mark_remaining(f, f.d, exclusions) if exclusions else f.d
    occupied = np.flatnonzero(left)
    rows = [Rows(of, occupied) for of in tables]
    disclosing = np.sum([of.has_one_level for of in rows], axis=0)
    correct = np.sum([is_disclosed(of) for of in rows], axis=0)
    chances = TogetherChances.combine(
        *([find(of) for of in rows] for find in (chance_of_disclosure, chance_of_disclosure_by_others))
    )
    people = (left * f.n)[occupied]

    def add_by_q(of_records: IntArray) -> IntArray:
        added = np.zeros_like(left)
        added[occupied] = left[occupied] * of_records
        return f.sum_by_q(added)

    return TogetherTargetCounts(
        total(people, correct > 0),
        total(people, (correct > 1) & (correct == disclosing)),
        total(people * chances.at_n),
        total(people * chances.by_others),
        **chances.square(add_by_q, f.alike),
    )


def count_unique_in_any(d_q: IntArray, s_q_of_tables: Sequence[IntArray], keys: IntArray | int = 1) -> int:
    """Return the number of q with d_q = 1 and s_q = 1 in at least one synthesis.

    An entry can stand for several `keys` with the same counts.
    """
    in_any = np.any([mark_replicated(d_q, s_q) for s_q in s_q_of_tables], axis=0)
    return int((in_any * keys).sum())


PEOPLE_IN_RELEASES, SHARED_WITH_RELEASES = "people_in_releases", "shared_with_releases"

RELEASED_WORDS: dict[str, Words] = {
    "releases_gone": Words.neutral(
        "revoked releases that are gone",
        "Revoked releases whose tables are gone, so that they cannot be counted.",
        COUNT,
    ),
    "people_in_releases": Words(
        "people found in any release",
        "People whose record, which no other person has, is in any release.",
        source=GOOD,
        finding="{value} of the people are in any release, unchanged, with a record that nobody else has",
    ),
    "people_in_releases_expected": Words.neutral(
        "people found in any release in a fresh sample",
        "People who would be found in equally many records of other people, or in independently drawn "
        "columns.",
        source=GOOD,
        finding="with as many records of other people it would be {value}",
    ),
    "people_in_releases_beyond": Words(
        "people found in any release beyond a fresh sample",
        "How many more people are found in any release than in equally many fresh records.",
        POINTS,
        source=GOOD,
        finding="{more} people in 100 are in any release, unchanged, than would be in as many records of "
        "other people",
        subject="people in any release, unchanged",
    ),
    "people_in_releases_beyond_se": replace(standard_error_of("people_in_releases_beyond"), beside=""),
    "people_in_releases_by_chance": by_chance_of(
        "people found in any release beyond a fresh sample", source=GOOD
    ),
    "shared_with_releases": Words(
        "records shared with earlier releases",
        "Synthetic records, unique in their table, that a published table holds, too.",
        denominator=SYNTHETIC,
        finding="{value} of the synthetic records are in a table that was published before",
    ),
    "shared_with_releases_expected": Words.neutral(
        "records that a fresh draw shares with earlier releases",
        "Records of a fresh draw that would be in the published tables, at most.",
        denominator=SYNTHETIC,
        finding="of a fresh draw {value} would be",
    ),
    "shared_with_releases_beyond": Words(
        "records shared with earlier releases beyond a fresh draw",
        "How many more synthetic records than records of a fresh draw are in a published table: what two "
        "tables share beyond chance is mostly true.",
        POINTS,
        finding="{more} synthetic records in 100 are in a table that was published before than of a fresh "
        "draw would be",
        subject="records of a table that was published before",
    ),
    "shared_with_releases_beyond_se": standard_error_of("shared_with_releases_beyond"),
    "shared_with_releases_by_chance": by_chance_of(
        "records shared with earlier releases beyond a fresh draw", source=GOOD, beside=BY_CHANCE
    ),
}
"""Words of the people found in any release, and of the records that a candidate shares with earlier ones."""

_WORDS = words_of_fields(Together)

FIGURES = (
    Figure(
        "shared_with_releases",
        RELEASED_WORDS["shared_with_releases"],
        place_beyond(
            "over_releases",
            "shared_with_releases",
            others="shared_with_releases_expected",
            by_chance="shared_with_releases_by_chance",
        ),
        "copied",
        statistics=("beyond",),
        beyond=RELEASED_WORDS["shared_with_releases_beyond"],
        default=Default(
            "beyond",
            1,
            "Percentage points of the candidate's records that a published table also holds, beyond those "
            "that a fresh draw shares with it",
        ),
        is_of_release=True,
        shown_with="found",
        public="unit",
    ),
    Figure(
        "DiSCO_any",
        _WORDS["any"],
        place_beyond("together", "DiSCO_any", value="any", by_chance="DiSCO_any_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        beyond=_WORDS["DiSCO_any_beyond"],
        also=("released_targets",),
        is_of_release=True,
        public="difference",
    ),
    Figure(
        "people_in_releases",
        RELEASED_WORDS["people_in_releases"],
        Place("over_releases", value="people_in_releases", others="people_in_releases_expected"),
        "copied",
        is_stacked=False,
    ),
    show_column("releases_gone", "over_releases", RELEASED_WORDS, "trusted", public="exact"),
    show_column("agreed", "together", _WORDS, "learned", "target"),
    show_column("repU_any", "together_identity", words_of_fields(TogetherIdentity), "found"),
)
