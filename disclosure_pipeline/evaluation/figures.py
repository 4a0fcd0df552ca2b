"""From counts to the frames of all measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import TABLES, TargetCounts, mark_unguessable
from disclosure_pipeline.evaluation.counts import Counts, MeasuringPlan
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.frames import (
    build_frame,
    build_unindexed_frame,
    list_figures,
    to_row,
)
from disclosure_pipeline.evaluation.resemblance import (
    LEAST_SHARED,
    LeastShared,
    compare_column,
    find_whole_key_doubts,
    whole_key_overlap,
)
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.attribute import Identity, attribute, cap_measures, identity
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.bands import BandCertainty, Bands, band_certainty, bands
from disclosure_pipeline.measures.baselines import baselines, count_found_by_others
from disclosure_pipeline.measures.certainty import Certainty, certainty
from disclosure_pipeline.measures.chance import chance, difference_beyond_chance, difference_by_chance
from disclosure_pipeline.measures.checks import STEPS, OneWay, TwoWay, one_way, two_way
from disclosure_pipeline.measures.copies import UniqueHits, unique_hits
from disclosure_pipeline.measures.exact import Grouped, percent
from disclosure_pipeline.measures.resemblance import Overlap
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.together import Together, TogetherIdentity, together
from disclosure_pipeline.measures.totals import APART_SCALE, Uniques
from disclosure_pipeline.tables.levels import CodedColumn


def build_disclosure(counts: Counts, plan: MeasuringPlan) -> Disclosure:
    """Return the frames of all measures in the plan; baselines are always included."""
    rows = _Rows.empty()
    _add_overlaps(rows, counts, plan.least_shared)
    N_d, *N_s = counts.records
    for synthesis, key_counts in enumerate(counts.counts.keys, start=1):
        sizes = Sizes(N_d, N_s[synthesis - 1])
        rows.identity[(synthesis,)] = to_row(identity(key_counts.uniques, sizes.N_d, sizes.N_s))
        apart = 100 * key_counts.hits_apart / APART_SCALE
        rows.identity[(synthesis,)] |= to_row(unique_hits(key_counts.unique_hits, sizes, apart))
    targets = zip(
        counts.targets, counts.bands, counts.counts.targets, counts.counts.pairs_of_key, strict=True
    )
    for target, band, counts_by_synthesis, pairs_of_key in targets:
        for synthesis, target_counts in enumerate(counts_by_synthesis, start=1):
            index = (target.name, synthesis)
            N = (N_d, N_s[synthesis - 1])
            totals, cells = target_counts.totals, target_counts.cells
            rows.attribute[index] = to_row(attribute(totals, *N))
            by_guess = cap_measures(totals, cells, target.counts[0], *N) if plan.attribution else None
            rows.cap[index] = to_row(by_guess) if by_guess else {}
            if plan.chance:
                by_chance = chance(totals.records.DiSCO, cells.d_by_s_q_t, target.counts[synthesis], *N)
                rows.attribute[index] |= to_row(by_chance)
            _add_baselines(rows, index, target_counts, target)
            uniques = counts.counts.keys[synthesis - 1].uniques
            _add_exclusions(rows, index, target_counts, uniques, N)
            _add_flags(rows, index, target_counts, pairs_of_key, target, counts.keys, plan)
            if band:
                _add_bands(rows, index, target_counts, target, band, counts.certainties)
                rows.bands[index] = {"within": str(plan.grouping.within[target.name])} | rows.bands[index]
            for share, claims in zip(counts.certainties, target_counts.certainty, strict=True):
                place = (target.name, synthesis, float(share))
                rows.certainty[place] = to_row(certainty(claims, N_d))
    return _build_result(rows, counts)


@dataclass(frozen=True)
class _Rows:
    """The rows of the frames by index; flags of the one-way check by row, of the two-way check by column."""

    identity: dict[tuple[Any, ...], dict[str, Any]]
    attribute: dict[tuple[Any, ...], dict[str, Any]]
    cap: dict[tuple[Any, ...], dict[str, Any]]
    identity_after_exclusions: dict[tuple[Any, ...], dict[str, Any]]
    excluded: dict[tuple[Any, ...], dict[str, Any]]
    certainty: dict[tuple[Any, ...], dict[str, Any]]
    bands: dict[tuple[Any, ...], dict[str, Any]]
    band_certainty: dict[tuple[Any, ...], dict[str, Any]]
    key_overlap: dict[tuple[Any, ...], dict[str, Any]]
    target_overlap: dict[tuple[Any, ...], dict[str, Any]]
    one_way: list[dict[str, Any]]
    two_way: dict[str, list[Any]]
    doubts: list[str]

    @classmethod
    def empty(cls) -> _Rows:
        flags: dict[str, list[Any]] = {name: [] for name in _list_flag_columns(TwoWay)}
        return cls({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, [], flags, [])


def _list_flag_columns(flag: type) -> list[str]:
    return ["target", "synthesis", *list_figures(flag)]


def build_key_overlap(counts: Counts) -> pd.DataFrame:
    """Return the frame `key_overlap`, for which only the keys need to be counted."""
    rows = _Rows.empty()
    _add_overlaps(rows, counts, LEAST_SHARED)
    return _build_overlap_frame(rows)


def _build_overlap_frame(rows: _Rows) -> pd.DataFrame:
    return build_frame(rows.key_overlap, ["key", "synthesis"], list_figures(Overlap))


def _add_overlaps(rows: _Rows, counts: Counts, least: LeastShared) -> None:
    N_d, *N_s = counts.records
    for key in counts.keys:
        shares, column_doubts = compare_column(key, counts.names, least.key)
        rows.key_overlap.update(shares)
        rows.doubts.extend(column_doubts)
    shared = [key_counts.shared for key_counts in counts.counts.keys]
    whole_key = whole_key_overlap(shared, N_d, N_s)
    rows.key_overlap.update(whole_key)
    rows.doubts.extend(find_whole_key_doubts(whole_key, counts.names, least.whole_key))
    for target, band in zip(counts.targets, counts.bands, strict=True):
        shares, column_doubts = compare_column(target, counts.names, least.target, band)
        rows.target_overlap.update(shares)
        rows.doubts.extend(column_doubts)


def _add_baselines(
    rows: _Rows, index: tuple[Any, int], target_counts: TargetCounts, target: CodedColumn
) -> None:
    GT_t, SD_t, excluded = target.counts[0], target.counts[index[1]], target_counts.excluded
    figures_by_name = to_row(
        baselines(
            target_counts.baselines,
            target_counts.totals,
            Sizes(int(GT_t.sum()), int(SD_t.sum())),
            GT_t,
            SD_t,
            excluded.original_t.by_position(target.size) if excluded else GT_t,
            mark_unguessable(target),
        )
    )
    for name, figure in figures_by_name.items():
        frame = rows.cap if name in COLUMNS["cap"] else rows.attribute
        frame[index][name] = figure


def _add_bands(
    rows: _Rows,
    index: tuple[Any, int],
    target_counts: TargetCounts,
    target: CodedColumn,
    band: Band,
    certainties: Sequence[Fraction],
) -> None:
    GT_t, SD_t, excluded = target.counts[0], target.counts[index[1]], target_counts.excluded
    assert target_counts.bands
    sizes = Sizes(int(GT_t.sum()), int(SD_t.sum()))
    left_t = excluded.original_t.by_position(target.size) if excluded else GT_t
    with_others = count_found_by_others(target_counts.baselines.by_d_q, sizes)
    rows.bands[index] = to_row(bands(target_counts.bands, band, sizes, GT_t, SD_t, left_t, with_others))
    for share, claims in zip(certainties, target_counts.bands.certainty, strict=True):
        rows.band_certainty[index[0], index[1], float(share)] = to_row(band_certainty(claims, sizes.N_d))


def _add_exclusions(
    rows: _Rows, index: tuple[Any, int], target_counts: TargetCounts, uniques: Uniques, N: tuple[int, int]
) -> None:
    """Add the records that exclusions take out and leave; `uniques` are those of all records."""
    excluded = target_counts.excluded
    left = excluded.uniques if excluded else uniques
    rows.identity_after_exclusions[index] = to_row(identity(left, *N))
    taken_out = excluded.taken_out.tolist() if excluded else [[0] * len(STEPS)] * len(TABLES)
    for table, records in zip(TABLES, taken_out, strict=True):
        remaining = getattr(target_counts.totals.records, table)
        row = dict(zip(STEPS, records, strict=True)) | {"remaining": remaining}
        rows.excluded.update({(*index, table): row})


def _add_flags(
    rows: _Rows,
    index: tuple[Any, int],
    target_counts: TargetCounts,
    pairs_of_key: Sequence[Grouped],
    target: CodedColumn,
    keys: Sequence[CodedColumn],
    plan: MeasuringPlan,
) -> None:
    excluded = target_counts.excluded
    original_t = (
        excluded.original_t if excluded else Grouped.sum_by_group(np.arange(target.size), target.counts[0])
    )
    row = {"target": index[0], "synthesis": index[1]}
    for level_flag in one_way(target_counts.cells.DiSCO_t, original_t, plan.one_way):
        rows.one_way.append(row | to_row(level_flag) | {"level": target.label(level_flag.level)})
    if not target_counts.has_large_cells:
        return
    flags = two_way(target_counts.large_pairs, pairs_of_key, target.size, plan.two_way[1])
    labels = {t: target.label(t) for t in set(flags["target_level"])}
    key_levels = list(zip(flags["key"], flags["key_level"], strict=True))
    key_labels = {(key, level): keys[key].label(level) for key, level in set(key_levels)}
    flags |= {
        "target": [index[0]] * len(key_levels),
        "synthesis": [index[1]] * len(key_levels),
        "target_level": [labels[t] for t in flags["target_level"]],
        "key": [keys[key].name for key in flags["key"]],
        "key_level": [key_labels[place] for place in key_levels],
    }
    for name, column in rows.two_way.items():
        column.extend(flags[name])


def _build_result(rows: _Rows, counts: Counts) -> Disclosure:
    per_target = ["target", "synthesis"]
    attribute_frame = build_frame(rows.attribute, per_target, list(next(iter(rows.attribute.values()))))
    by_all, identity_by_all = _build_together(counts, attribute_frame["DiSCO_others"])
    cap_frame = build_frame(rows.cap, per_target, list(next(iter(rows.cap.values()))), attribute_frame)
    attribute_frame, cap_frame = add_differences_beyond_chance(
        attribute_frame, cap_frame, len(counts.targets)
    )
    identity_frame = build_frame(
        rows.identity, ["synthesis"], [*list_figures(Identity), *list_figures(UniqueHits)]
    )
    return Disclosure(
        keys=tuple(key.name for key in counts.keys),
        targets=tuple(target.name for target in counts.targets),
        N_d=counts.records[0],
        N_s=counts.records[1:],
        identity=add_beyond_chance(identity_frame, "unique_hits_beyond"),
        attribute=attribute_frame,
        cap=cap_frame,
        identity_after_exclusions=build_frame(
            rows.identity_after_exclusions, per_target, list_figures(Identity), attribute_frame
        ),
        one_way=build_unindexed_frame(
            {name: [flag[name] for flag in rows.one_way] for name in _list_flag_columns(OneWay)}
        ),
        two_way=build_unindexed_frame(rows.two_way),
        certainty=build_frame(rows.certainty, [*per_target, "certainty"], list_figures(Certainty)),
        bands=_bound_bands(build_frame(rows.bands, per_target, ["within", *list_figures(Bands)])),
        band_certainty=build_frame(
            rows.band_certainty, [*per_target, "certainty"], list_figures(BandCertainty)
        ),
        excluded=build_frame(rows.excluded, [*per_target, "table"], [*STEPS, "remaining"]),
        key_overlap=_build_overlap_frame(rows),
        target_overlap=build_frame(rows.target_overlap, per_target, list_figures(Overlap), attribute_frame),
        warnings=(*rows.doubts, *counts.missing_value_doubts),
        comparability_doubts=(*rows.doubts, *counts.missing_value_doubts),
        ledger=counts.ledger,
        engine=counts.engine_description,
        together=by_all,
        together_identity=identity_by_all,
    )


def add_beyond_chance(frame: pd.DataFrame, figure: str, comparisons: int = 1) -> pd.DataFrame:
    """Add the column `<figure>_chance`: the part of a difference that chance does not explain."""
    differences = zip(frame[figure], frame[f"{figure}_se"], strict=True)
    beyond_chance = [difference_beyond_chance(beyond, error, comparisons) for beyond, error in differences]
    return frame.assign(**{f"{figure}_chance": beyond_chance})


def add_differences_beyond_chance(
    attribute: pd.DataFrame, cap: pd.DataFrame, comparisons: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Add to both frames the columns `…_beyond_chance` of their differences."""
    for figure in ("iS_beyond", "DiSCO_beyond"):
        attribute = add_beyond_chance(attribute, figure, comparisons)
    return attribute, add_beyond_chance(cap, "DCAP_beyond", comparisons)


def _bound_bands(frame: pd.DataFrame) -> pd.DataFrame:
    comparisons = frame.index.get_level_values("target").nunique()
    by_chance = [difference_by_chance(error, comparisons) for error in frame["guessed_within_beyond_se"]]
    frame = frame.assign(guessed_within_by_chance=by_chance)
    for figure in ("DiS_within_beyond", "DiSCO_within_beyond", "guessed_within_beyond"):
        frame = add_beyond_chance(frame, figure, comparisons)
    return frame


def _build_together(counts: Counts, DiSCO_others: pd.Series[float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames `together` and `together_identity`, which are empty for a single synthesis."""
    target_rows, identity_rows = {}, {}
    N_d, release_counts = counts.records[0], counts.counts.together
    if release_counts:
        unique_in_any = percent(release_counts.unique_in_any, N_d)
        identity_rows[(len(counts.records) - 1,)] = {"repU_any": unique_in_any}
        for target, target_counts in zip(counts.targets, release_counts.targets, strict=True):
            others = DiSCO_others.xs(target.name, level="target")
            target_rows[(target.name,)] = to_row(
                together(target_counts, N_d, others.tolist(), len(counts.targets))
            )
    return (
        build_frame(target_rows, ["target"], list_figures(Together)),
        build_frame(identity_rows, ["syntheses"], list_figures(TogetherIdentity)),
    )
