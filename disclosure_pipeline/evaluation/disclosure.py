"""`disclosure()`, and `measure()`, which library, command line and gate share."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.opening import OpenedTables, link_tables, open_tables
from disclosure_pipeline.errors import CopiesWarning, HoldoutWarning, InputError
from disclosure_pipeline.evaluation.arguments import Exclusions
from disclosure_pipeline.evaluation.copies_found import describe_alike
from disclosure_pipeline.evaluation.counts import (
    Counts,
    MeasuringPlan,
    Thresholds,
    WholeRecords,
    build_counts,
    build_request,
    combine_columns,
    plan_measures,
    require_targets,
)
from disclosure_pipeline.evaluation.exposed_groups import measure_worst_groups
from disclosure_pipeline.evaluation.figures import build_disclosure, build_key_overlap, compare_records
from disclosure_pipeline.evaluation.frames import to_row
from disclosure_pipeline.evaluation.guards import bound_guesses, measure_copies, measure_guards
from disclosure_pipeline.evaluation.holdout import PreparedHoldout, add_holdout, prepare_holdout
from disclosure_pipeline.evaluation.people import measure_people, weigh_people_copied
from disclosure_pipeline.evaluation.record_sets import (
    PeopleRecords,
    RecordSets,
    code_shared_columns,
    count_people,
    count_record_sets,
    find_real_values,
    read_records,
)
from disclosure_pipeline.evaluation.resemblance import identifier_warnings, warn_of_doubts
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.survey import record_risk
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress, show_progress
from disclosure_pipeline.tables.alignment import require_sampling_fraction
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.events import Events
from disclosure_pipeline.tables.grouping import Edges, Grouping, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import describe_argument, listed, names_in_all
from disclosure_pipeline.tables.missing import Codes, MissingCodes
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

ONE_WAY: Thresholds = (50, 90)
TWO_WAY: Thresholds = (4, 80)


def disclosure(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns = None,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    within: Mapping[Any, float | Fraction | Mapping[str, float]] | None = None,
    missing_codes: Codes | None = None,
    exclude: Exclusions | None = None,
    sensitive_levels: Mapping[Any, Sequence[Hashable]] | None = None,
    flags: Mapping[str, Thresholds] | None = None,
    certainty: Sequence[float | Fraction] = (),
    holdout: TableSource | None = None,
    unit: Hashable | None = None,
    events: Events | None = None,
    weights: Hashable | None = None,
    sampling_fraction: float | None = None,
    engine: str = "auto",
    progress: bool = False,
) -> Disclosure:
    """Measure what a synthetic table discloses about the records it was made from.

    Args:
        ground_truth: The confidential table, one record per row: a data frame, the path of a file, another
            source (`FileSource`, `SqlSource`, `DuckDBSource`), or an Ibis table.
        synthetic: The synthetic table, or a sequence of m tables made from the same records.
        keys: The columns an intruder knows (quasi-identifiers).
        targets: The column or columns an intruder wants to learn; None for every shared column that is not
            a key.
        groups: Numeric column -> number of groups, for keys and targets. By default every number is a level.
        special_values: Key or target -> codes (such as -8 for "not applicable") that are not grouped but stay
            levels of their own.
        edges: How the edges of groups are chosen. "pooled": quantiles of GT and all syntheses;
            "ground_truth": quantiles of GT alone, which do not change between releases; "equal_width"; or
            column -> explicit edges. The outermost groups are open, so every value has a group. Where
            quantiles give fewer than 3 groups, equal widths are used. Columns outside a mapping use "pooled".
        within: Numeric target -> how close a guess must be to count: a share of the value (0.02), or an
            amount from 1 up (100); {"amount": 0.5} for smaller amounts. `Disclosure.bands` then has DiSCO,
            DiS and guesses within that band, and the target needs no groups.
        missing_codes: Texts and numbers that mean missing, such as ["NA"], in every column, or column -> such
            a list. Empty fields of files, None and NaN are always missing. A column with such a code holds
            numbers if all its other values are numbers.
        exclude: Cells to leave out of the measures.
        sensitive_levels: Target -> levels, such as {"hiv": ["positive"]}, of which it matters who has them.
            `Disclosure.sensitive` has DiSCO and guesses of the people who have each level, and how many of
            those told with certainty to have it do. The codes of all records are held in memory.
        flags: From when on a check flags levels, by default {"one_way": (50, 90), "two_way": (4, 80)}. One
            way: the target level with the most DiSCO records, if it has more of them than the first number,
            and a higher percentage of all DiSCO records than the second. Two way: a pair of target and key
            level, if it has DiSCO cells of more records than the first number, and a higher percentage of
            the key level's GT records than the second have the target level.
        certainty: Shares above 0 and at most 1. `Disclosure.certainty` has DiS and DiSCO of an intruder who
            acts where at least that share of the SD records with the same keys agree on a target level.
        holdout: Records of the same population that were not used to make the synthetic table, with the
            measured columns; given like `ground_truth`. `Disclosure.holdout` compares what SD discloses
            about them with what it discloses about GT; no other figure changes.
        unit: The column of GT that says whose record each is, where people have several: a patient's stays,
            a household's members. "Other people's records" then always means those of other units, and
            `Disclosure.units` has household risk. Synthetic tables must not have it, and no value may be
            missing. The codes of all records are held in memory.
        events: A second table beside each table, with the events of each person, joined by `unit`, which all
            tables have (the first ones once per person): {"ground_truth": …, "synthetic": …, "order": "day",
            "summaries": {"ward": ["first", "last", "most_frequent"]}, "multiset": ["ward", "day"],
            "length": 10, "missing_codes": {"ward": ["?"]}}. Each person then has the columns `events.count`,
            `events.ward.first` and so on, and `events.multiset`, to be used as keys and targets. Only the two
            tables are required, and the `holdout`'s where there is one.
        weights: The column of GT that says how many people each record stands for, where GT is a survey.
            `Disclosure.population` and `population_targets` then have the risk from an intruder who does not
            know who took part, and weighted shares of people; `individual` has the risk of each record.
            No value may be missing, 0 or negative. The codes of all records are held in memory.
        sampling_fraction: Without weights, the share of the population that GT is a sample of.
        engine: What counts the records; the figures do not depend on it. "memory"; "partitioned", which reads
            files in batches and spills what does not fit into memory, encrypted, to the folder for temporary
            files; or the URL of a database for Ibis (extra `ibis`), such as "duckdb://", which counts tables
            given as names of its tables or as files that it reads. "auto" chooses between the first two by
            the size of the tables and the free memory, and leaves Ibis tables in their database;
            `Disclosure.engine` says what was chosen.
        progress: Whether to report progress on the standard error stream.

    Returns:
        Frames with a row per synthesis and target; percentages of all GT records unless stated otherwise.

    Warns:
        CopiesWarning: A synthetic table holds more of GT's people, whole or nearly, than a gate allows by
            default: see `copies` of the result, which also says if they were not looked for.
        ComparabilityWarning: The tables may not be coded alike, so risks read too low; or all GT records look
            the same: see `comparability_doubts` of the result.
        HoldoutWarning: The holdout shares records with the ground truth, or this could not be checked.

    Raises:
        InputError: The tables cannot be compared or contradict the arguments; nothing was computed.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 50], "illness": ["flu", "flu", "flu", "cold"]})
        >>> result = dp.disclosure(patients, synthetic, ["age"], "illness")
        >>> result  # doctest: +NORMALIZE_WHITESPACE
        No copied people were found.
        For 75.0 % of the people the table shows illness with certainty, and rightly; other people's
        records alone would show it for 0.0 %.
        <BLANKLINE>
        Disclosure from the keys age
        4 GT records, one synthesis
        Identity: UiO 50.00 %, repU 25.00 %
        Attribute: percent of GT records
        <BLANKLINE>
                 Dorig  DiSCO  DiSCO_others  DiSCO_beyond     ± one_way  two_way
        target
        illness  50.00  75.00          0.00         62.50 36.44                0
        <BLANKLINE>
        Fewer than 10 people are behind DiSCO of illness.
        >>> result.attribute["DiSCO"].item()
        75.0

    Source: Raab, Nowok & Dibben 2024 (arXiv:2406.16826), sections 3 to 5 and appendices 1 and 2.
    """
    grouping = grouping_of(groups, special_values, edges, within)
    thresholds = _read_flags({} if flags is None else flags)
    certainties = _parse_certainties(certainty)
    require_targets(targets)
    fraction = None if sampling_fraction is None else require_sampling_fraction(sampling_fraction)
    if weights is not None and fraction is not None:
        raise InputError("weights and sampling_fraction are both given: give only one of them.")
    missing = MissingCodes.from_argument(missing_codes)
    numeric = grouping.numeric if weights is None else [*grouping.numeric, weights]
    linked: tuple[Change, ...] = ()
    if events is not None:
        joined = link_tables(ground_truth, synthetic, unit, events, holdout, missing)
        ground_truth, synthetic, holdout = joined.ground_truth, joined.synthetic, joined.holdout
        linked, missing = joined.ledger, MissingCodes()
    with (
        show_progress() if progress else nullcontext(ignore_progress) as on_progress,
        open_tables(ground_truth, synthetic, engine, numeric, holdout, missing) as with_holdout,
    ):
        tables = len(with_holdout.columns) - (holdout is not None)
        opened = with_holdout if holdout is None else with_holdout.only(range(tables))
        plan = plan_measures(
            opened,
            keys,
            targets,
            grouping,
            exclude,
            unit,
            weights,
            sampling_fraction=fraction,
            one_way=thresholds["one_way"],
            two_way=thresholds["two_way"],
            certainties=certainties,
            together=True,
            sensitive={} if sensitive_levels is None else sensitive_levels,
            individual=True,
        )
        prepared = None if holdout is None else prepare_holdout(with_holdout, plan, on_progress)
        result = measure(opened, plan, on_progress, prepared)
        result = look_for_copies(result, opened, plan, on_progress)
        result = replace(result, ledger=(*linked, *result.ledger))
    warn_of_doubts(result.copies.sentences, CopiesWarning)
    warn_of_doubts(result.comparability_doubts)
    for warning in prepared.shared if prepared else ():
        warnings.warn(warning, HoldoutWarning, stacklevel=2)
    return result


def _read_flags(flags: Mapping[str, Thresholds]) -> dict[str, Thresholds]:
    """Return the thresholds of both checks. Raise InputError for another name, or for no pair of numbers."""
    by_default = {"one_way": ONE_WAY, "two_way": TWO_WAY}
    if not isinstance(flags, Mapping):
        raise InputError(
            f"flags must be a mapping from check to two numbers, not {describe_argument(flags)}."
        )
    for name in flags:
        if name not in by_default:
            raise InputError(f"flags has no check {name!r}: its checks are {listed(by_default)}.")
    return {name: _check_thresholds(name, thresholds) for name, thresholds in {**by_default, **flags}.items()}


def _check_thresholds(name: str, thresholds: Thresholds) -> Thresholds:
    pair = tuple(thresholds) if isinstance(thresholds, Iterable) else ()
    numbers = all(
        isinstance(number, (int, float)) and not isinstance(number, bool) and number >= 0 for number in pair
    )
    if len(pair) != 2 or not numbers:  # noqa: PLR2004 (a pair)
        raise InputError(f"{name} must be two numbers, 0 or more (records, percent), not {thresholds!r}.")
    return (pair[0], pair[1])


def _parse_certainties(shares: Sequence[float | Fraction]) -> tuple[Fraction, ...]:
    """Return exact fractions: 0.9 is nine tenths. InputError unless all are distinct shares."""
    if isinstance(shares, (str, bytes)) or not isinstance(shares, Iterable):
        raise InputError(f"certainty must be a sequence of shares, such as (0.9, 1), not {shares!r}.")
    fractions = []
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, (int, float, Fraction)) or not 0 < share <= 1:
            raise InputError(f"certainty must hold shares above 0 and at most 1, not {share!r}.")
        fractions.append(share if isinstance(share, Fraction) else Fraction(repr(share)))
    if len(set(fractions)) < len(fractions):
        raise InputError("certainty names a share twice.")
    return tuple(fractions)


MOST_CELLS = 500_000_000
"""The most records of all tables, times their columns squared, in which copies are looked for: seconds."""

MOST_COMPARED = 100_000_000
"""The most pairs of GT and SD records, times columns, whose nearness is measured: tenths of a second."""


def look_for_copies(
    result: Disclosure, opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress = ignore_progress
) -> Disclosure:
    """Return the result with the guards of copies of each synthesis, and of all of them stacked.

    The guards are those of a gate, over all shared columns. They are left out if the tables are not in memory
    or too large (`MOST_CELLS`), nearness alone if comparing records takes long (`MOST_COMPARED`): then
    `Disclosure.copies` says so.
    """
    shared = names_in_all(opened.columns)
    if opened.frames is None or sum((result.N_d, *result.N_s)) * len(shared) ** 2 > MOST_CELLS:
        return result
    columns = _code_comparable(opened, shared, plan, on_progress)
    names = [column.name for column in columns]
    is_small = result.N_d * max(result.N_s) * len(columns) <= MOST_COMPARED
    whole = WholeRecords(nearness=is_small, keys=plan.keys)
    found = measure_copies(count_people(opened, columns, plan, on_progress), whole)
    if result.stacked is not None:
        stacked = opened.stack_syntheses()
        of_stack = stacked.code(names, plan.grouping, on_progress)
        of_all = measure_copies(count_people(stacked, of_stack, plan, on_progress), whole)
        result = replace(result, stacked=replace(result.stacked, **vars(of_all)))
    left_out = [name for name in shared if name not in names]
    if left_out:
        warning = f"Copies were looked for without the columns {listed(left_out)}: they cannot be compared."
        result = replace(result, warnings=(*result.warnings, warning))
    return replace(result, **vars(found)).with_doubts(describe_alike(found.guards))


def _code_comparable(
    opened: OpenedTables, names: Sequence[Any], plan: MeasuringPlan, on_progress: OnProgress
) -> list[CodedColumn]:
    """Code the columns that are measured, and those of the others that can be compared."""
    with suppress(InputError):
        return opened.code(names, plan.grouping, on_progress)
    columns: list[CodedColumn] = []
    for name in names:  # some cannot be compared
        try:
            columns += opened.code([name], plan.grouping, on_progress)
        except InputError:
            if name in plan.columns:
                raise
    return columns


_GUESSED = ["guessed", "guessed_at_n", "guessed_others", "guessed_beyond", "guessed_beyond_se"]


def measure(
    opened: OpenedTables,
    plan: MeasuringPlan,
    on_progress: OnProgress = ignore_progress,
    holdout: PreparedHoldout | None = None,
    people: PeopleRecords | None = None,
) -> Disclosure:
    """Measure each synthesis as planned and, if several are one release (`together`), all of them stacked.

    `people`: all records, if they are read already.
    """
    plan = replace(plan, together=plan.together and len(opened.columns[1:]) > 1)
    whole, records = plan.whole_records, None
    if whole is None:
        coded = opened.code(plan.columns, plan.grouping, on_progress)
    else:
        coded = code_shared_columns(opened, plan.grouping, on_progress)
    request = build_request(plan, {column.name: column for column in coded})
    if plan.needs_records and people is None:
        people = read_records(opened, plan, on_progress, [column.name for column in coded])
    if whole is None:
        [counted] = count_tables(opened, [request], on_progress)
    else:
        records, [counted] = count_record_sets(opened, coded, plan.targets, on_progress, [request])
    counts = build_counts(opened, request, counted, coded)
    others, frames = measure_people(people, counts, plan) if people else (compare_records(counts), {})
    if people and plan.individual and plan.is_of_sample and opened.frames is not None:
        frames["individual"] = _find_individual_risk(people, plan).set_axis(opened.frames[0].index)
    result = replace(build_disclosure(counts, plan, others), **frames)
    if plan.targets:
        found = find_real_values(opened, coded, people)
        warnings = identifier_warnings(opened.columns, found, plan.real_values)
        result = replace(result, warnings=(*result.warnings, *warnings))
    if whole and records:
        result = _add_guards(result, plan, whole, counts, records, people)
    if plan.together:
        of_stack = replace(whole, group_columns=()) if whole else None
        plan = replace(plan, together=False, individual=False, whole_records=of_stack)
        people = people and people.stack()
        of_all = measure(opened.stack_syntheses(), plan, on_progress, people=people)
        result = replace(result, stacked=of_all)
    return result if holdout is None else add_holdout(result, holdout, counts, on_progress)


def _add_guards(
    result: Disclosure,
    plan: MeasuringPlan,
    whole: WholeRecords,
    counts: Counts,
    records: RecordSets,
    people: PeopleRecords | None,
) -> Disclosure:
    """Return the result with the guards of a gate; `people`: all records, where they are read."""
    records = records.count_units(people)
    guards = measure_guards(records, whole)
    groups = pd.DataFrame()
    if whole.group_columns:
        groups = measure_worst_groups(
            people or records, {column.name: column for column in records.columns}, plan, result
        )
    sizes = [size.divide(records.records_per_unit) for size in records.sizes]
    copied = [
        {"columns": len(records.columns), "copies": counts.copies, "percent": percent(counts.copies, N_s)}
        for counts, N_s in zip(records.whole, result.N_s, strict=True)
    ]
    grouped = [
        column for column in (*counts.keys, *counts.targets) if plan.grouping.groups_column(column.name)
    ]
    of_GT = result.excluded.xs("original", level="table")
    syntheses = pd.RangeIndex(1, len(result.N_s) + 1, name="synthesis")
    result = replace(
        result,
        # A guard bounds guesses, so they are measured even where the family of `cap` is not.
        guessed=bound_guesses(result.cap[_GUESSED], counts, sizes),
        cap=result.cap if plan.attribution else result.cap.head(0),
        doubts=pd.DataFrame({"excluded": 100 * (1 - of_GT["remaining"] / result.N_d)}),
        warning_counts=pd.DataFrame({"warnings": len(result.warnings)}, index=syntheses),
        exact_copies=pd.DataFrame(copied, index=syntheses),
        groups=_count_groups(grouped),
        subgroups=groups,
        **vars(guards),
    )
    return replace(result, population=weigh_people_copied(result, people)) if people else result


def measure_key_overlap(opened: OpenedTables, keys: Sequence[Any], grouping: Grouping) -> pd.DataFrame:
    """Return only the frame `key_overlap`, for tables that cannot be measured otherwise."""
    plan = plan_measures(opened, keys, (), grouping)
    coded = opened.code(plan.columns, grouping, ignore_progress)
    request = build_request(plan, {column.name: column for column in coded})
    [counted] = count_tables(opened, [request])
    return build_key_overlap(build_counts(opened, request, counted, coded))


def _find_individual_risk(people: PeopleRecords, plan: MeasuringPlan) -> pd.DataFrame:
    """Return the risk of each GT record, in GT's order."""
    q = combine_columns([plan.grouping.apply(people.columns[name]) for name in plan.keys])
    people_q = np.bincount(q.q[0], weights=people.weight, minlength=q.size).astype(np.float64)
    risk = record_risk(q.q[0], q.counts[0], people_q)
    return pd.DataFrame(to_row(risk), index=people.places).sort_index()


def _count_groups(columns: Sequence[CodedColumn]) -> pd.DataFrame:
    """Return the number of records in each group of every grouped column: column, level, GT, SD."""
    rows = [
        {
            "column": column.name,
            "level": column.label(code),
            "GT": int(column.counts[0][code]),
            "SD": int(of_code),
        }
        for column in columns
        for code, of_code in enumerate(np.sum(column.counts[1:], axis=0))
    ]
    return pd.DataFrame(rows, columns=["column", "level", "GT", "SD"])
