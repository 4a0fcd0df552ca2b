"""From counts to the frames of all measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import Target, TargetCounts
from disclosure_pipeline.evaluation.counts import Counts, MeasuringPlan
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.frames import (
    Column,
    build_frame,
    build_unindexed_frame,
    list_figures,
    to_row,
)
from disclosure_pipeline.evaluation.resemblance import (
    compare_column,
    find_whole_key_doubts,
    whole_key_overlap,
)
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures import bands, certainty
from disclosure_pipeline.measures.attribute import TABLES, attribute
from disclosure_pipeline.measures.cap import cap_measures
from disclosure_pipeline.measures.catalogue import OF_BANDS, OF_KEYS, OF_TARGETS
from disclosure_pipeline.measures.chance import (
    beyond_chance,
    chance,
    difference_beyond_chance,
    difference_by_chance,
    hits_by_chance,
)
from disclosure_pipeline.measures.checks import STEPS, OneWay, TwoWay, one_way, two_way
from disclosure_pipeline.measures.copies import HitCounts, unique_hits
from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import Grouped, percent
from disclosure_pipeline.measures.resemblance import LEAST_SHARED, LeastShared, Overlap
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.together import Together, TogetherIdentity, TogetherTargetCounts, together
from disclosure_pipeline.measures.totals import APART_SCALE, AnySums, count_records, measure_figures
from disclosure_pipeline.tables.levels import CodedColumn

_OF_KEYS = [figure.name for figure in OF_KEYS]

Rows = dict[tuple[Any, ...], dict[str, Any]]
"""The rows of a frame by their index."""


@dataclass(frozen=True)
class _TargetInSynthesis:
    target: Target
    synthesis: int
    counted: TargetCounts
    pairs_of_key: Sequence[Grouped]

    @property
    def index(self) -> tuple[Any, ...]:
        return (self.target.column.name, self.synthesis)

    @property
    def sizes(self) -> Sizes:
        return self.target.sizes(self.synthesis)

    def measure(self, figures: Sequence[Figure], sums: Sequence[AnySums]) -> dict[str, float]:
        """Return figures, and what compares them with other people's records."""
        values, compared = self.counted.measure(figures, sums, self.target, self.synthesis)
        return values | compared

    def measure_claims(self, figures: Sequence[Figure], sums: Sequence[AnySums]) -> dict[str, float]:
        """Return the figures at a certainty: of people about whom something is claimed, and rightly so."""
        claimed, right = (count_records(figures, sums, figure.name) for figure in figures)
        return self.measure(figures, sums) | {"precision": percent(right, claimed)}


@dataclass(frozen=True)
class BesideOthers:
    """The figures that stand beside those of other people's records.

    By synthesis `hits`. By target and synthesis `baselines`, of targets with a band `bands`, and by
    certainty, too, `band_certainty`. By target what several syntheses disclose `together`. `weighted_bands`:
    further columns of the frame `bands`.
    """

    hits: Mapping[int, dict[str, float]]
    baselines: Rows
    bands: Rows
    band_certainty: Rows
    together: Mapping[Any, TogetherTargetCounts]
    weighted_bands: pd.DataFrame = field(default_factory=pd.DataFrame)


def compare_records(counts: Counts) -> BesideOthers:
    """Compare with other records, as if each were another person's."""
    places = _list_places(counts)
    N_d, *N_s = counts.records
    together = counts.counts.together.targets if counts.counts.together else [None] * len(counts.targets)
    with_band = [place for place in places if place.target.band]
    return BesideOthers(
        {
            synthesis: measure_hits(of_keys.unique_hits, Sizes(N_d, n), 100 * hits / APART_SCALE)
            for synthesis, (of_keys, n, hits) in enumerate(
                zip(counts.counts.keys, N_s, counts.counts.hits_apart, strict=True), start=1
            )
        },
        {place.index: _compare_target(place) for place in places},
        {place.index: place.measure(OF_BANDS, place.counted.within) for place in with_band},
        {
            (*place.index, float(c)): place.measure_claims(bands.figures_at(c), sums[_OF_LEVELS:])
            for place in with_band
            for c, sums in zip(place.target.certainties, place.counted.certain, strict=True)
        },
        {target.name: of for target, of in zip(counts.targets, together, strict=True) if of},
    )


def measure_hits(
    counts: HitCounts, sizes: Sizes, apart: float, records_per_unit: float = 1
) -> dict[str, float]:
    """Return the figures of `UniqueHits`, and the part of their difference that is beyond chance.

    Records of one unit are not independent: only units are.
    """
    figures: dict[str, float] = to_row(unique_hits(counts, sizes, apart))
    figures["unique_hits_beyond_se"] *= math.sqrt(records_per_unit)
    # Of few pairs of people the error is not normal: chance goes further.
    limit = hits_by_chance(counts, sizes, apart, records_per_unit=records_per_unit)
    of_few = limit - max(figures["unique_hits_others"], apart)
    by_chance = max(difference_by_chance(figures["unique_hits_beyond_se"]), of_few)
    bounded = beyond_chance(figures["unique_hits_beyond"], by_chance)
    return figures | {"unique_hits_beyond_chance": bounded}


BESIDE_OTHERS = [
    column
    for figure in OF_TARGETS
    for column in (*([figure.name] if figure.place.frame == "guessed" else []), *figure.comparisons)
]
"""The columns of a target that compare it with other people's records, and guesses."""


def _compare_target(place: _TargetInSynthesis) -> dict[str, float]:
    figures = place.measure(OF_TARGETS, place.counted.added)
    return {name: figures[name] for name in BESIDE_OTHERS}


_OF_LEVELS = len(certainty.figures_at(Fraction(1)))
"""The number of figures at a certainty before those within a band."""


def _list_places(counts: Counts) -> list[_TargetInSynthesis]:
    return [
        _TargetInSynthesis(target, synthesis, counted, pairs_of_key)
        for target, of_target, pairs_of_key in zip(
            counts.measured, counts.counts.targets, counts.counts.pairs_of_key, strict=True
        )
        for synthesis, counted in enumerate(of_target, start=1)
    ]


def build_disclosure(counts: Counts, plan: MeasuringPlan, others: BesideOthers) -> Disclosure:
    """Return the frames of all measures in the plan; baselines are always included."""
    per_target = ["target", "synthesis"]
    places = _list_places(counts)
    key_overlap, target_overlap, doubts = _compare_columns(counts, plan.least_shared)
    doubts = (*doubts, *counts.missing_value_doubts)
    attribute_rows, cap_rows = {}, {}
    for place in places:
        compared = others.baselines[place.index]
        attribute_rows[place.index], cap_rows[place.index] = _measure_target(place, plan, compared)
    attribute_frame = build_frame(attribute_rows, per_target)
    by_all, identity_by_all = _build_together(counts, attribute_frame["DiSCO_others"], others)
    cap_frame = build_frame(cap_rows, per_target, like=attribute_frame)
    attribute_frame, cap_frame = add_differences_beyond_chance(
        attribute_frame, cap_frame, len(counts.targets)
    )
    identity_frame = build_frame(
        {
            (synthesis,): measure_figures(OF_KEYS, of_keys.added, counts.records[0], N_s)[0]
            | others.hits[synthesis]
            for synthesis, (of_keys, N_s) in enumerate(
                zip(counts.counts.keys, counts.records[1:], strict=True), start=1
            )
        },
        ["synthesis"],
    )
    in_bands = {
        (target, synthesis): {"within": str(plan.grouping.within[target]), **figures}
        for (target, synthesis), figures in others.bands.items()
    }
    banded = bound_bands(build_frame(in_bands, per_target, ["within", *bands.WORDS]))
    one_way_flags = [flag for place in places for flag in _flag_levels(place, plan)]
    return Disclosure(
        keys=tuple(key.name for key in counts.keys),
        targets=tuple(target.name for target in counts.targets),
        N_d=counts.records[0],
        N_s=counts.records[1:],
        identity=identity_frame,
        attribute=attribute_frame,
        cap=cap_frame,
        identity_after_exclusions=build_frame(
            {place.index: _measure_identity_left(place, counts) for place in places},
            per_target,
            _OF_KEYS,
            attribute_frame,
        ),
        one_way=build_unindexed_frame(
            {name: [flag[name] for flag in one_way_flags] for name in _list_flag_columns(OneWay)}
        ),
        two_way=build_unindexed_frame(_flag_pairs(places, counts.keys, plan)),
        certainty=build_frame(
            {
                (*place.index, float(c)): place.measure_claims(certainty.figures_at(c), sums[:_OF_LEVELS])
                for place in places
                for c, sums in zip(place.target.certainties, place.counted.certain, strict=True)
            },
            [*per_target, "certainty"],
            list(certainty.WORDS),
        ),
        bands=banded.join(others.weighted_bands.reindex(banded.index)),
        band_certainty=build_frame(
            others.band_certainty, [*per_target, "certainty"], list(bands.WORDS_AT_CERTAINTY)
        ),
        excluded=build_frame(
            {index: row for place in places for index, row in _list_excluded(place)},
            [*per_target, "table"],
            [*STEPS, "remaining"],
        ),
        key_overlap=build_frame(key_overlap, ["key", "synthesis"]),
        target_overlap=build_frame(target_overlap, per_target, list_figures(Overlap), attribute_frame),
        warnings=doubts,
        comparability_doubts=doubts,
        ledger=counts.ledger,
        engine=counts.engine_description,
        together=by_all,
        together_identity=identity_by_all,
    )


def build_key_overlap(counts: Counts) -> pd.DataFrame:
    """Return the frame `key_overlap`, for which only the keys need to be counted."""
    return build_frame(_compare_columns(counts, LEAST_SHARED)[0], ["key", "synthesis"])


def _compare_columns(counts: Counts, least: LeastShared) -> tuple[Rows, Rows, tuple[str, ...]]:
    """Return the shared values of keys and of targets, and what is doubtful of them."""
    of_keys, of_targets, doubts = {}, {}, []
    N_d, *N_s = counts.records
    for key in counts.keys:
        shares, column_doubts = compare_column(key, counts.names, least.key)
        of_keys.update(shares)
        doubts += column_doubts
    shared = [key_counts.shared for key_counts in counts.counts.keys]
    whole_key = whole_key_overlap(shared, N_d, N_s)
    of_keys.update(whole_key)
    doubts += find_whole_key_doubts(whole_key, counts.names, least.whole_key)
    for target in counts.measured:
        shares, column_doubts = compare_column(target.column, counts.names, least.target, target.band)
        of_targets.update(shares)
        doubts += column_doubts
    return of_keys, of_targets, tuple(doubts)


def _measure_target(
    place: _TargetInSynthesis, plan: MeasuringPlan, compared: Mapping[str, float]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures of the frames `attribute` and `cap`."""
    totals, cells, N = place.counted.totals, place.counted.cells, (place.sizes.N_d, place.sizes.N_s)
    records = place.counted.records
    of_target = zip(OF_TARGETS, place.counted.added, strict=True)
    figures, sums = zip(*(of for of in of_target if of[0].place.frame == "attribute"), strict=True)
    of_attribute, _ = place.counted.measure(figures, sums, place.target, place.synthesis)
    of_attribute |= to_row(attribute(totals, records["DiSCO"]))
    by_guess = (
        cap_measures(records, totals, cells, place.target.column.counts[0], *N) if plan.attribution else None
    )
    of_cap = to_row(by_guess) if by_guess else {}
    if plan.chance:
        s_t = place.target.column.counts[place.synthesis]
        of_attribute |= to_row(chance(records["DiSCO"], cells.d_by_s_q_t, s_t, *N))
    of_cap |= {name: figure for name, figure in compared.items() if name in COLUMNS["cap"]}
    of_attribute |= {name: figure for name, figure in compared.items() if name not in COLUMNS["cap"]}
    return of_attribute, of_cap


def _measure_identity_left(place: _TargetInSynthesis, counts: Counts) -> dict[str, Any]:
    """Return the figures of identity after exclusions: those of all records where there are none."""
    excluded = place.counted.excluded
    left = excluded.added if excluded else counts.counts.keys[place.synthesis - 1].added
    return measure_figures(OF_KEYS, left, place.sizes.N_d, place.sizes.N_s)[0]


def _list_excluded(place: _TargetInSynthesis) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield for each table the records that exclusions take out and leave."""
    excluded, sizes = place.counted.excluded, place.sizes
    steps = excluded.taken_out.tolist() if excluded else [[0] * len(STEPS)] * len(TABLES)
    taken_out = dict(zip(TABLES, steps, strict=True))
    remaining = {
        "original": sizes.N_d - sum(taken_out["original"]),
        "synthetic": sizes.N_s - sum(taken_out["synthetic"]),
        **place.counted.records,
    }
    for table, records in taken_out.items():
        yield (*place.index, table), dict(zip(STEPS, records, strict=True)) | {"remaining": remaining[table]}


def _list_flag_columns(flag: type) -> list[str]:
    return ["target", "synthesis", *list_figures(flag)]


def _flag_levels(place: _TargetInSynthesis, plan: MeasuringPlan) -> Iterator[dict[str, Any]]:
    target, original_t = place.target.column, Grouped.from_positions(place.counted.count_people(place.target))
    for flag in one_way(place.counted.cells.DiSCO_t, original_t, plan.one_way):
        of_place = {"target": target.name, "synthesis": place.synthesis}
        yield of_place | to_row(flag) | {"level": target.label(flag.level)}


def _flag_pairs(
    places: Sequence[_TargetInSynthesis], keys: Sequence[CodedColumn], plan: MeasuringPlan
) -> dict[str, Column]:
    """Return the flags of the two-way check by column."""
    flags_of_places: list[dict[str, Column]] = []
    for place in places:
        if not place.counted.has_large_cells:
            continue
        target = place.target.column
        flags = two_way(place.counted.large_pairs, place.pairs_of_key, target.size, plan.two_way[1])
        key_levels = np.empty(len(flags["key"]), dtype=object)
        for k, key in enumerate(keys):
            of_key = flags["key"] == k
            key_levels[of_key] = key.label_each(flags["key_level"][of_key])
        flags_of_places.append(
            flags
            | {
                "target": [target.name] * len(key_levels),
                "synthesis": np.full(len(key_levels), place.synthesis),
                "target_level": target.label_each(flags["target_level"]),
                "key": [keys[k].name for k in flags["key"].tolist()],
                "key_level": key_levels.tolist(),
            }
        )
    return {name: _join([flags[name] for flags in flags_of_places]) for name in _list_flag_columns(TwoWay)}


def _join(parts: Sequence[Column]) -> Column:
    """Return parts of a column of numbers or of names, one after the other."""
    numbers = [part for part in parts if isinstance(part, np.ndarray)]
    return np.concatenate(numbers) if numbers else [value for part in parts for value in part]


def add_beyond_chance(frame: pd.DataFrame, figure: str, comparisons: int = 1) -> pd.DataFrame:
    """Add the column `<figure>_chance`: the part of a difference that chance does not explain."""
    differences = zip(frame[figure], frame[f"{figure}_se"], strict=True)
    beyond_chance = [difference_beyond_chance(beyond, error, comparisons) for beyond, error in differences]
    return frame.assign(**{f"{figure}_chance": beyond_chance})


def add_differences_beyond_chance(
    attribute: pd.DataFrame, cap: pd.DataFrame, comparisons: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Add to both frames the columns `…_beyond_chance` of their differences."""
    for figure in OF_TARGETS:
        if figure.compared is not None and figure.name in attribute:
            attribute = add_beyond_chance(attribute, f"{figure.name}_beyond", comparisons)
    return attribute, add_beyond_chance(cap, "DCAP_beyond", comparisons)


def bound_bands(frame: pd.DataFrame) -> pd.DataFrame:
    """Add to the frame `bands` how far chance takes its differences, and the parts beyond that."""
    comparisons = frame.index.get_level_values("target").nunique()
    by_chance = [difference_by_chance(error, comparisons) for error in frame["guessed_within_beyond_se"]]
    frame = frame.assign(guessed_within_by_chance=by_chance)
    for figure in ("DiS_within_beyond", "DiSCO_within_beyond", "guessed_within_beyond"):
        frame = add_beyond_chance(frame, figure, comparisons)
    return frame


def _build_together(
    counts: Counts, DiSCO_others: pd.Series[float], others: BesideOthers
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames `together` and `together_identity`, which are empty for a single synthesis."""
    target_rows, identity_rows = {}, {}
    N_d, release_counts = counts.records[0], counts.counts.together
    if release_counts:
        unique_in_any = percent(release_counts.unique_in_any, N_d)
        identity_rows[(len(counts.records) - 1,)] = {"repU_any": unique_in_any}
        for target, of_target in others.together.items():
            of_each = DiSCO_others.xs(target, level="target").tolist()
            target_rows[(target,)] = to_row(together(of_target, N_d, of_each, len(counts.targets)))
    return (
        build_frame(target_rows, ["target"], list_figures(Together)),
        build_frame(identity_rows, ["syntheses"], list_figures(TogetherIdentity)),
    )
