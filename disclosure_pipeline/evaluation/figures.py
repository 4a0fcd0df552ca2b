"""The measures as frames, from what was counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import TABLES, TargetCounts, mark_unguessable
from disclosure_pipeline.evaluation.catalogue import COLUMNS
from disclosure_pipeline.evaluation.counts import Counts, MeasuringPlan
from disclosure_pipeline.evaluation.frames import frame_of, list_of, names_of, row_of
from disclosure_pipeline.evaluation.resemblance import compare_column, whole_key_doubts, whole_key_overlap
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.attribute import Identity, attribute, cap_measures, identity
from disclosure_pipeline.measures.band_counts import Band
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
from disclosure_pipeline.measures.totals import Uniques
from disclosure_pipeline.tables.levels import CodedColumn


def figures(counts: Counts, plan: MeasuringPlan) -> Disclosure:
    """Return the frames of all measures that are switched on; the baselines are always there."""
    rows = _Rows.empty()
    _compare(rows, counts)
    N_d, *N_s = counts.records
    for synthesis, key_counts in enumerate(counts.counts.keys, start=1):
        sizes = Sizes(N_d, N_s[synthesis - 1])
        rows.identity[(synthesis,)] = row_of(identity(key_counts.uniques, sizes.N_d, sizes.N_s))
        rows.identity[(synthesis,)] |= row_of(unique_hits(key_counts.unique_hits, sizes))
    targets = zip(
        counts.targets, counts.bands, counts.counts.targets, counts.counts.pairs_of_key, strict=True
    )
    for target, band, counts_by_synthesis, pairs_of_key in targets:
        for synthesis, target_counts in enumerate(counts_by_synthesis, start=1):
            index = (target.name, synthesis)
            N = (N_d, N_s[synthesis - 1])
            totals, cells = target_counts.totals, target_counts.cells
            rows.attribute[index] = row_of(attribute(totals, *N))
            by_guess = cap_measures(totals, cells, target.counts[0], *N) if plan.attribution else None
            rows.cap[index] = row_of(by_guess) if by_guess else {}
            if plan.chance:
                by_chance = chance(totals.records.DiSCO, cells.d_by_s_q_t, target.counts[synthesis], *N)
                rows.attribute[index] |= row_of(by_chance)
            _add_baselines(rows, index, target_counts, target)
            uniques = counts.counts.keys[synthesis - 1].uniques
            _add_exclusions(rows, index, target_counts, uniques, N)
            _add_flags(rows, index, target_counts, pairs_of_key, target, counts.keys, plan)
            if band:
                _add_bands(rows, index, target_counts, target, band, counts.certainties)
                rows.bands[index] = {"within": str(plan.grouping.within[target.name])} | rows.bands[index]
            for share, claims in zip(counts.certainties, target_counts.certainty, strict=True):
                place = (target.name, synthesis, float(share))
                rows.certainty[place] = row_of(certainty(claims, N_d))
    return _result(rows, counts)


@dataclass(frozen=True)
class _Rows:
    """The rows of the result's frames, by their index; the flags in order, of the two-way check by column."""

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
        flags: dict[str, list[Any]] = {name: [] for name in _flag_columns(TwoWay)}
        return cls({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, [], flags, [])


def _flag_columns(flag: type) -> list[str]:
    return ["target", "synthesis", *names_of(flag)]


def key_overlap(counts: Counts) -> pd.DataFrame:
    """Return the frame `key_overlap` alone: nothing else need have been counted than the keys."""
    rows = _Rows.empty()
    _compare(rows, counts)
    return _overlap_frame(rows)


def _overlap_frame(rows: _Rows) -> pd.DataFrame:
    return frame_of(rows.key_overlap, ["key", "synthesis"], names_of(Overlap))


def _compare(rows: _Rows, counts: Counts) -> None:
    N_d, *N_s = counts.records
    for key in counts.keys:
        shares, column_doubts = compare_column(key, counts.names)
        rows.key_overlap.update(shares)
        rows.doubts.extend(column_doubts)
    shared = [key_counts.shared for key_counts in counts.counts.keys]
    whole_key = whole_key_overlap(shared, N_d, N_s)
    rows.key_overlap.update(whole_key)
    rows.doubts.extend(whole_key_doubts(whole_key, counts.names))
    for target in counts.targets:
        shares, column_doubts = compare_column(target, counts.names)
        rows.target_overlap.update(shares)
        rows.doubts.extend(column_doubts)


def _add_baselines(
    rows: _Rows, index: tuple[Any, int], target_counts: TargetCounts, target: CodedColumn
) -> None:
    GT_t, SD_t, excluded = target.counts[0], target.counts[index[1]], target_counts.excluded
    figures_by_name = row_of(
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
    rows.bands[index] = row_of(bands(target_counts.bands, band, sizes, GT_t, SD_t, left_t, with_others))
    for share, claims in zip(certainties, target_counts.bands.certainty, strict=True):
        rows.band_certainty[index[0], index[1], float(share)] = row_of(band_certainty(claims, sizes.N_d))


def _add_exclusions(
    rows: _Rows, index: tuple[Any, int], target_counts: TargetCounts, uniques: Uniques, N: tuple[int, int]
) -> None:
    """Add to the rows what the exclusions take out and leave; `uniques` are those of all records."""
    excluded = target_counts.excluded
    left = excluded.uniques if excluded else uniques
    rows.identity_after_exclusions[index] = row_of(identity(left, *N))
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
        rows.one_way.append(row | row_of(level_flag) | {"level": target.label(level_flag.level)})
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


def _result(rows: _Rows, counts: Counts) -> Disclosure:
    per_target = ["target", "synthesis"]
    attribute_frame = frame_of(rows.attribute, per_target, list(next(iter(rows.attribute.values()))))
    by_all, identity_by_all = _together(counts, attribute_frame["DiSCO_others"])
    cap_frame = frame_of(rows.cap, per_target, list(next(iter(rows.cap.values()))), attribute_frame)
    attribute_frame, cap_frame = bound_differences(attribute_frame, cap_frame, len(counts.targets))
    identity_frame = frame_of(rows.identity, ["synthesis"], [*names_of(Identity), *names_of(UniqueHits)])
    return Disclosure(
        keys=tuple(key.name for key in counts.keys),
        targets=tuple(target.name for target in counts.targets),
        N_d=counts.records[0],
        N_s=counts.records[1:],
        identity=add_beyond_chance(identity_frame, "unique_hits_beyond"),
        attribute=attribute_frame,
        cap=cap_frame,
        identity_after_exclusions=frame_of(
            rows.identity_after_exclusions, per_target, names_of(Identity), attribute_frame
        ),
        one_way=list_of({name: [flag[name] for flag in rows.one_way] for name in _flag_columns(OneWay)}),
        two_way=list_of(rows.two_way),
        certainty=frame_of(rows.certainty, [*per_target, "certainty"], names_of(Certainty)),
        bands=_bound_bands(frame_of(rows.bands, per_target, ["within", *names_of(Bands)])),
        band_certainty=frame_of(rows.band_certainty, [*per_target, "certainty"], names_of(BandCertainty)),
        excluded=frame_of(rows.excluded, [*per_target, "table"], [*STEPS, "remaining"]),
        key_overlap=_overlap_frame(rows),
        target_overlap=frame_of(rows.target_overlap, per_target, names_of(Overlap), attribute_frame),
        warnings=(*rows.doubts, *counts.missing_value_doubts, *counts.identifier_warnings),
        comparability_doubts=(*rows.doubts, *counts.missing_value_doubts),
        ledger=counts.ledger,
        engine=counts.engine_description,
        together=by_all,
        together_identity=identity_by_all,
    )


def add_beyond_chance(frame: pd.DataFrame, figure: str, comparisons: int = 1) -> pd.DataFrame:
    """Return the frame with `<figure>_chance`: the figure where it goes further than chance."""
    differences = zip(frame[figure], frame[f"{figure}_se"], strict=True)
    return frame.assign(
        **{
            f"{figure}_chance": [
                difference_beyond_chance(beyond, error, comparisons) for beyond, error in differences
            ]
        }
    )


def bound_differences(
    attribute: pd.DataFrame, cap: pd.DataFrame, comparisons: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both frames with what of their differences is beyond chance."""
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


def _together(counts: Counts, DiSCO_others: pd.Series[float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames `together` and `together_identity`; without a row where there is one synthesis."""
    of_targets, of_keys = {}, {}
    N_d, of_all = counts.records[0], counts.counts.together
    if of_all:
        of_keys[(len(counts.records) - 1,)] = {"repU_any": percent(of_all.unique_in_any, N_d)}
        for target, target_counts in zip(counts.targets, of_all.targets, strict=True):
            others = DiSCO_others.xs(target.name, level="target")
            of_targets[(target.name,)] = row_of(
                together(target_counts, N_d, others.tolist(), len(counts.targets))
            )
    return (
        frame_of(of_targets, ["target"], names_of(Together)),
        frame_of(of_keys, ["syntheses"], names_of(TogetherIdentity)),
    )
