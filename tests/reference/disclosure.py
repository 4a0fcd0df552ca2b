"""The measures of disclosure risk, written out in plain Python: slow, obvious, and exact.

Nothing here is clever. Records are dictionaries, tables are counters, every share is a fraction, and a
fraction becomes a float only at the very end. The fast library has to give the same floats.

Words used throughout, as in Raab, Nowok & Dibben (2024), arXiv:2406.16826:

- GT is the ground truth (the original records), SD one synthetic data set.
- q is one combination of levels of the keys, t one level of the target, a cell is a pair (q, t).
- d_tq and s_tq are the numbers of GT and SD records in a cell, d_q and s_q their sums over t.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from reference.cap import percent

Value = str | int | float | bool | None
Record = Mapping[str, Value]
Level = str | None
Leveled = dict[str, Level]
Key = tuple[Level, ...]
Cell = tuple[Key, Level]
Table = Counter[Cell]
Edges = Literal["pooled", "ground_truth", "equal_width"] | Mapping[str, Sequence[float]]
SpecialValues = Mapping[str, Sequence[float]]
Row = dict[str, object]

DEFINITIONS = ("Dorig", "Dsyn", "iS", "DiS", "DiSCO", "DiSDiO")
TABLES = ("original", "synthetic", *DEFINITIONS)
STEPS = ("target_levels", "missing_target", "missing_key", "pairs", "count_over")
FEWEST_QUANTILE_GROUPS = 3


@dataclass(frozen=True)
class Pair:
    """One level of one key together with one level of one target."""

    key: str
    key_level: Value
    target: str
    target_level: Value


@dataclass(frozen=True)
class Exclusions:
    """Exclusions. Levels are given as a value or as its label."""

    target_levels: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    missing_targets: bool | Sequence[str] = False
    missing_keys: bool | Sequence[str] = False
    pairs: Sequence[Pair] = ()
    count_over: int | None = None


@dataclass(frozen=True)
class Result:
    """All figures, as rows by their index. `one_way` holds every level that ties for the most records."""

    identity: dict[int, Row]
    attribute: dict[tuple[str, int], Row]
    cap: dict[tuple[str, int], Row]
    identity_after_exclusions: dict[tuple[str, int], Row]
    one_way: list[Row]
    two_way: list[Row]
    excluded: dict[tuple[str, int, str], Row]


# Levels


def label(value: Value) -> Level:
    """Return a value as the text of its level: 18 and 18.0 are both "18". Missing is None."""
    if value is None:
        return None
    if isinstance(value, str | bool | int):
        return str(value)
    if math.isnan(value):
        return None
    if value.is_integer():
        return str(int(value))
    return repr(value)


def number(value: Value) -> float:
    assert value is not None
    assert not isinstance(value, str)
    return float(value)


def numbers_to_group(records: Iterable[Record], column: str, special: Sequence[float]) -> list[float]:
    """Return the values of a column that take part in its break points: neither missing nor special."""
    special_labels = [label(value) for value in special]
    numbers = []
    for record in records:
        value = record[column]
        if label(value) is not None and label(value) not in special_labels:
            numbers.append(number(value))
    return numbers


def quantile(ordered: Sequence[float], k: int, n: int) -> float:
    """Return the k/n quantile of ordered values by linear interpolation between them (R's type 7)."""
    position = (len(ordered) - 1) * k
    low = position // n
    h = (position % n) / n
    if h == 0 or ordered[low + 1] == ordered[low]:
        return ordered[low]
    return (1 - h) * ordered[low] + h * ordered[low + 1]


def quantile_breaks(values: Sequence[float], n: int) -> list[float]:
    """Return the quantiles 0, 1/n, ..., 1, without duplicates."""
    ordered = sorted(values)
    return sorted({quantile(ordered, k, n) for k in range(n + 1)})


def equal_width_breaks(values: Sequence[float], n: int) -> list[float]:
    """Return the ends of n intervals of one width over the range of the values, without duplicates."""
    low = min(values)
    high = max(values)
    return sorted({low + (high - low) * k / n for k in range(n + 1)})


def breaks_of_column(
    column: str,
    n: int,
    ground_truth: Sequence[Record],
    synthetics: Sequence[Sequence[Record]],
    special: Sequence[float],
    edges: Edges,
) -> list[float]:
    """Return the break points of a column in n groups, outermost ones included."""
    values = numbers_to_group(ground_truth, column, special)
    if edges != "ground_truth":
        for synthetic in synthetics:
            values = values + numbers_to_group(synthetic, column, special)
    if not values:
        return []
    if edges == "equal_width":
        return equal_width_breaks(values, n)
    breaks = quantile_breaks(values, n)
    if len(breaks) - 1 < FEWEST_QUANTILE_GROUPS:
        return equal_width_breaks(values, n)
    return breaks


def group_label(value: float, breaks: Sequence[float]) -> str:
    """Return the group of a number. Groups are closed on the left, the outermost open to infinity."""
    inner = breaks[1:-1]
    below = [edge for edge in inner if edge <= value]
    above = [edge for edge in inner if edge > value]
    left = f"[{label(below[-1])}" if below else "(-inf"
    right = f"{label(above[0])})" if above else "inf)"
    return f"{left}, {right}"


def leveled(
    records: Sequence[Record],
    columns: Sequence[str],
    breaks: Mapping[str, Sequence[float]],
    special_values: SpecialValues,
) -> list[Leveled]:
    """Return the records with every value replaced by its level."""
    special = {column: [label(code) for code in special_values.get(column, [])] for column in columns}
    leveled_records = []
    for record in records:
        levels: Leveled = {}
        for column in columns:
            value = record[column]
            level = label(value)
            if column in breaks and level is not None and level not in special[column]:
                level = group_label(number(value), breaks[column])
            levels[column] = level
        leveled_records.append(levels)
    return leveled_records


def all_leveled(
    ground_truth: Sequence[Record],
    synthetics: Sequence[Sequence[Record]],
    columns: Sequence[str],
    groups: Mapping[str, int],
    special_values: SpecialValues,
    edges: Edges,
) -> tuple[list[Leveled], list[list[Leveled]]]:
    """Return GT and every SD as levels, in groups where groups or edges are given."""
    breaks: dict[str, Sequence[float]] = {}
    for column, n in groups.items():
        special = special_values.get(column, [])
        breaks[column] = breaks_of_column(column, n, ground_truth, synthetics, special, edges)
    if not isinstance(edges, str):
        breaks.update(edges)
    return (
        leveled(ground_truth, columns, breaks, special_values),
        [leveled(synthetic, columns, breaks, special_values) for synthetic in synthetics],
    )


# Counting


def key_of(record: Leveled, keys: Sequence[str]) -> Key:
    return tuple(record[key] for key in keys)


def count_cells(records: Sequence[Leveled], keys: Sequence[str], target: str) -> Table:
    """Return how many records each cell (q, t) holds."""
    counts: Table = Counter()
    for record in records:
        counts[key_of(record, keys), record[target]] += 1
    return counts


def sum_by_key(table: Table) -> Counter[Key]:
    """Return the counts of a table, summed over t."""
    sums: Counter[Key] = Counter()
    for (q, _), count in table.items():
        sums[q] += count
    return sums


def tables(d: Table, s: Table) -> dict[str, Table]:
    """Return every table of [R App. 1]. "pd = 1" is "one t has all records of q", tested on integers."""
    result: dict[str, Table] = {name: Counter() for name in TABLES}
    d_by_key = sum_by_key(d)
    s_by_key = sum_by_key(s)
    keys_disclosive_in_sd = {q for (q, t), s_tq in s.items() if s_tq == s_by_key[q]}
    for cell in set(d) | set(s):
        q, _ = cell
        d_tq = d[cell]
        s_tq = s[cell]
        pd_is_1 = d_tq > 0 and d_tq == d_by_key[q]
        ps_is_1 = s_tq > 0 and s_tq == s_by_key[q]
        result["original"][cell] = d_tq
        result["synthetic"][cell] = s_tq
        if pd_is_1:
            result["Dorig"][cell] = d_tq
        if ps_is_1:
            result["Dsyn"][cell] = s_tq
        if s_by_key[q] > 0:
            result["iS"][cell] = d_tq
        if q in keys_disclosive_in_sd:
            result["DiS"][cell] = d_tq
        if ps_is_1:
            result["DiSCO"][cell] = d_tq
        if ps_is_1 and pd_is_1:
            result["DiSDiO"][cell] = d_tq
    return result


# Exclusions


def applies_to(columns: bool | Sequence[str], column: str) -> bool:
    """Return whether a choice of all, no or some columns includes this one."""
    if isinstance(columns, bool):
        return columns
    return column in columns


def step_that_excludes(
    cell: Cell, count: int, keys: Sequence[str], target: str, exclusions: Exclusions
) -> str | None:
    """Return the first of the five steps that excludes a cell from a table where it holds `count` records."""
    q, t = cell
    if t in [label(value) for value in exclusions.target_levels.get(target, [])]:
        return "target_levels"
    if t is None and applies_to(exclusions.missing_targets, target):
        return "missing_target"
    for key, level in zip(keys, q, strict=True):
        if level is None and applies_to(exclusions.missing_keys, key):
            return "missing_key"
    for pair in exclusions.pairs:
        if pair.target == target and label(pair.target_level) == t:
            for key, level in zip(keys, q, strict=True):
                if key == pair.key and level == label(pair.key_level):
                    return "pairs"
    if exclusions.count_over is not None and count > exclusions.count_over:
        return "count_over"
    return None


def reduce(
    untouched: Mapping[str, Table], keys: Sequence[str], target: str, exclusions: Exclusions
) -> tuple[dict[str, Table], dict[str, Row]]:
    """Return the tables without the excluded cells, and how many records each step took out of each table."""
    reduced: dict[str, Table] = {}
    excluded: dict[str, Row] = {}
    for name in TABLES:
        reduced[name] = Counter()
        taken: Counter[str] = Counter()
        for cell, count in untouched[name].items():
            step = step_that_excludes(cell, count, keys, target, exclusions)
            if step is None:
                reduced[name][cell] = count
            else:
                taken[step] += count
        excluded[name] = {**{step: taken[step] for step in STEPS}, "remaining": reduced[name].total()}
    return reduced, excluded


# The measures


def identity(d_by_key: Counter[Key], s_by_key: Counter[Key], in_sd: set[Key], n_d: int, n_s: int) -> Row:
    """Return identity disclosure. `in_sd` are the combinations present in the untouched SD."""
    either = set(d_by_key) | set(s_by_key)
    unique_in_gt = sum(d_by_key[q] == 1 for q in either)
    unique_in_sd = sum(s_by_key[q] == 1 for q in either)
    unique_in_gt_and_in_sd = sum(d_by_key[q] == 1 and q in in_sd for q in either)
    unique_in_both = sum(d_by_key[q] == 1 and s_by_key[q] == 1 for q in either)
    return {
        "UiO": percent(unique_in_gt, n_d),
        "UiS": percent(unique_in_sd, n_s),
        "UiOiS": percent(unique_in_gt_and_in_sd, n_d),
        "repU": percent(unique_in_both, n_d),
    }


def attribute(reduced: Mapping[str, Table], n_d: int, n_s: int) -> Row:
    """Return attribute disclosure, from the tables after the exclusions, as shares of all records."""
    denominators = [d_tq for d_tq in reduced["DiSCO"].values() if d_tq > 0]
    return {
        **{name: percent(reduced[name].total(), n_s if name == "Dsyn" else n_d) for name in DEFINITIONS},
        "max_denom": max(denominators, default=0),
        "mean_denom": float(Fraction(sum(denominators), len(denominators))) if denominators else math.nan,
    }


def base_cap(d: Table, n_d: int) -> Fraction:
    """Return the chance that two GT records drawn at random have the same target level."""
    by_level: Counter[Level] = Counter()
    for (_, t), d_tq in d.items():
        by_level[t] += d_tq
    share = Fraction(0)
    for d_t in by_level.values():
        share += Fraction(d_t, n_d) ** 2
    return share


def sum_of_shares(shares_of: Table, weights: Table) -> Fraction:
    """Return the sum over cells of p_tq times a weight; p_tq is the share of the cell in its q (or 0)."""
    by_key = sum_by_key(shares_of)
    total = Fraction(0)
    for cell, weight in weights.items():
        q, _ = cell
        if by_key[q] > 0:
            total += Fraction(shares_of[cell], by_key[q]) * weight
    return total


def cap_measures(untouched: Mapping[str, Table], reduced: Mapping[str, Table], n_d: int, n_s: int) -> Row:
    """Return correct attribution probabilities after the exclusions; baseCAPd is of all records."""
    d = reduced["original"]
    s = reduced["synthetic"]
    return {
        "baseCAPd": percent(base_cap(untouched["original"], n_d), 1),
        "CAPd": percent(sum_of_shares(d, d), n_d),
        "CAPs": percent(sum_of_shares(s, s), n_s),
        "DCAP": percent(sum_of_shares(s, d), n_d),
        "TCAP": percent(reduced["DiSCO"].total(), reduced["iS"].total()),
    }


def one_way(reduced: Mapping[str, Table], thresholds: tuple[float, float]) -> list[Row]:
    """Return the target level with most disclosed records, if it has too many. All levels that tie for it."""
    fewest, share = thresholds
    by_level: Counter[Level] = Counter()
    for (_, t), d_tq in reduced["DiSCO"].items():
        by_level[t] += d_tq
    everything = reduced["original"].total()
    disclosed = sum(by_level.values())
    most = max(by_level.values(), default=0)
    flags: list[Row] = []
    for level, n in by_level.items():
        if n == most and n > fewest and 100 * Fraction(n) > Fraction(share) * disclosed:
            with_level = sum(d_tq for (_, t), d_tq in reduced["original"].items() if t == level)
            flags.append(
                {
                    "level": level,
                    "level_records": everything,
                    "pct_level_all": percent(with_level, everything),
                    "total_disclosive": disclosed,
                    "n_level_disclosive": n,
                    "pct_level_disclosive": percent(n, disclosed),
                }
            )
    return flags


def two_way(
    disclosed: Table, ground_truth: Table, keys: Sequence[str], thresholds: tuple[float, float]
) -> list[Row]:
    """Return the pairs of a key level and a target level that nearly everybody with the key level has.

    `disclosed` is the DiSCO table after the exclusions, `ground_truth` that of all GT records.
    """
    fewest, share = thresholds
    flags: list[Row] = []
    for place, key in enumerate(keys):
        pairs: Counter[tuple[Level, Level]] = Counter()
        for (q, t), d_tq in disclosed.items():
            if d_tq > fewest:
                pairs[t, q[place]] += d_tq
        for (target_level, key_level), npairs in pairs.items():
            key_total = 0
            key_target_total = 0
            for (q, t), d_tq in ground_truth.items():
                if q[place] == key_level:
                    key_total += d_tq
                    if t == target_level:
                        key_target_total += d_tq
            if 100 * Fraction(key_target_total) > Fraction(share) * key_total:
                flags.append(
                    {
                        "target_level": target_level,
                        "key": key,
                        "key_level": key_level,
                        "npairs": npairs,
                        "key_target_total": key_target_total,
                        "key_total": key_total,
                        "pct_target_key_level": percent(key_target_total, key_total),
                    }
                )
    return flags


# Everything together


def disclosure(
    ground_truth: Sequence[Record],
    synthetics: Sequence[Sequence[Record]],
    keys: Sequence[str],
    targets: Sequence[str],
    *,
    groups: Mapping[str, int] | None = None,
    special_values: SpecialValues | None = None,
    edges: Edges = "pooled",
    exclusions: Exclusions | None = None,
    one_way_thresholds: tuple[float, float] = (50, 90),
    two_way_thresholds: tuple[float, float] = (4, 80),
) -> Result:
    exclusions = exclusions or Exclusions()
    gt, sds = all_leveled(
        ground_truth, synthetics, [*keys, *targets], groups or {}, special_values or {}, edges
    )
    result = Result({}, {}, {}, {}, [], [], {})
    for synthesis, sd in enumerate(sds, start=1):
        d_by_key = Counter(key_of(record, keys) for record in gt)
        s_by_key = Counter(key_of(record, keys) for record in sd)
        in_sd = set(s_by_key)
        result.identity[synthesis] = identity(d_by_key, s_by_key, in_sd, len(gt), len(sd))
    for target in targets:
        for synthesis, sd in enumerate(sds, start=1):
            at = (target, synthesis)
            untouched = tables(count_cells(gt, keys, target), count_cells(sd, keys, target))
            in_sd = {key_of(record, keys) for record in sd}
            reduced, excluded = reduce(untouched, keys, target, exclusions)
            result.identity_after_exclusions[at] = identity(
                sum_by_key(reduced["original"]), sum_by_key(reduced["synthetic"]), in_sd, len(gt), len(sd)
            )
            result.attribute[at] = attribute(reduced, len(gt), len(sd))
            result.cap[at] = cap_measures(untouched, reduced, len(gt), len(sd))
            for flag in one_way(reduced, one_way_thresholds):
                result.one_way.append({"target": target, "synthesis": synthesis, **flag})
            for flag in two_way(reduced["DiSCO"], untouched["original"], keys, two_way_thresholds):
                result.two_way.append({"target": target, "synthesis": synthesis, **flag})
            for name in TABLES:
                result.excluded[target, synthesis, name] = excluded[name]
    return result


def replicated_uniques(
    ground_truth: Sequence[Record],
    synthetic: Sequence[Record],
    keys: Sequence[str],
    *,
    groups: Mapping[str, int],
    special_values: SpecialValues,
    edges: Edges,
) -> dict[str, list[bool]]:
    """Return which SD records have a q that is unique in SD, and unique in GT or present in it."""
    gt, [sd] = all_leveled(ground_truth, [synthetic], keys, groups, special_values, edges)
    d_by_key = Counter(key_of(record, keys) for record in gt)
    s_by_key = Counter(key_of(record, keys) for record in sd)
    keys_of_sd = [key_of(record, keys) for record in sd]
    return {
        "replicated": [s_by_key[q] == 1 and d_by_key[q] == 1 for q in keys_of_sd],
        "in_original": [s_by_key[q] == 1 and d_by_key[q] > 0 for q in keys_of_sd],
    }
