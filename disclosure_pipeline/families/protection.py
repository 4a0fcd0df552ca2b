"""`disclosure_protection()`: the share of records that an intruder guesses wrong, compared with baselines."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.opening import read_tables
from disclosure_pipeline.errors import InputError, write_count
from disclosure_pipeline.evaluation.arguments import require_names, require_whole_number
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.frames import build_frame, to_row
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import Keys, frequency_tables
from disclosure_pipeline.measures.protection import (
    FRAME_FIGURES,
    METHODS,
    Attack,
    ProtectionBaselines,
    ProtectionFigures,
    attack,
    baselines,
    cap_protection,
    score,
    wrong_shares,
)
from disclosure_pipeline.measures.samples import Interval, mean_of_population
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.coding import bin_by_width
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import listed
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

_MOST_BINS = 1_000_000


def check_method(method: Any) -> None:
    """Raise InputError unless this is the name of a method."""
    if method not in METHODS:
        close = difflib.get_close_matches(str(method).lower(), METHODS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method must be one of {listed(METHODS)}, not {method!r}.{hint}")


def _check_not_all_missing(column: CodedColumn, table_names: Sequence[str]) -> None:
    for counts, name in zip(column.counts, table_names, strict=True):
        if not counts[: column.missing].any():
            raise InputError(
                f"Column {column.name!r} of {name} holds only missing values: nothing can be found or "
                "guessed with it, which would look like protection. Leave it out, or read it again."
            )


def _check_continuous(continuous: Any, tables: Tables) -> tuple[Any, ...]:
    names, measured = require_names("continuous", continuous), (*tables.keys, *tables.targets)
    for name in names:
        if name not in measured:
            close = difflib.get_close_matches(str(name), [str(column) for column in measured], n=3)
            hint = f"Did you mean {listed(close)}?" if close else f"These are {listed(measured)}."
            raise InputError(f"continuous names {name!r}, which is neither a key nor a target. {hint}")
    return names


@dataclass(frozen=True)
class JointTarget:
    """The combination of target levels of each record as a code below `size`; `codes[0]` are GT's."""

    codes: tuple[IntArray, ...]
    size: int
    baselines: ProtectionBaselines


def _code_columns(tables: Tables, continuous: Sequence[Any], bins: int) -> Mapping[Any, CodedColumn]:
    """Return the coded columns by name, the continuous ones in bins. InputError for unusable columns."""
    columns = {name: tables.code_column(name) for name in (*tables.keys, *tables.targets)}
    for column in columns.values():
        _check_not_all_missing(column, tables.names)
    for name in continuous:
        columns[name] = bin_by_width(columns[name], bins, tables.names)
    return columns


def _combine_targets(columns: Sequence[CodedColumn]) -> JointTarget:
    """Combine the columns to one target, with the baselines of an intruder without SD."""
    t = combine_columns(columns)
    levels_in_GT = [int(np.count_nonzero(column.counts[0])) for column in columns]
    return JointTarget(t.q, t.size, baselines(levels_in_GT, t.counts[0]))


def _attack_by_syntheses(keys: Keys, target: JointTarget, method: str) -> list[Attack]:
    return [attack(f, keys, method) for f in frequency_tables(keys, target.codes, target.size)]


def disclosure_protection(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    method: str = "cap",
    continuous: Sequence[Hashable] = (),
    bins: int = 10,
    *,
    records: int | None = None,
    seed: int = 0,
    confidence: float = 0.95,
) -> DisclosureProtection:
    """Measure how often an intruder who knows the keys, and looks them up in SD, guesses the targets wrong.

    The intruder draws a guess from the SD records that were looked up; it is right only if every target is.
    Missing is a level, in keys and targets. Figures are exact at any size unless `records` are sampled,
    because tables or key sets take too long. Only GT is sampled, without replacement: a sample of SD would
    lack most key combinations, and even an exact copy of GT would look safe.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of m of them.
        keys: The columns an intruder knows.
        targets: The column or columns an intruder wants to learn, all of them together.
        method: What happens to a GT record whose key combination is not in the synthetic table. "cap": it
            is left out. "zero_cap": it counts as guessed wrong. "generalized_cap": the intruder looks up all
            SD records that differ from it in the smallest number of keys.
        continuous: The keys and targets to put into bins: numbers, dates or durations.
        bins: The number of bins of equal width over GT's range. They are closed on the right; the outermost
            ones are open, so SD values outside GT's range fall into them.
        records: The number of GT records to attack; None for all of them. Levels, bins and baselines are
            always those of the whole GT.
        seed: The seed of the sample.
        confidence: The probability, between 0 and 1, with which an interval holds the exact figure. It is
            guaranteed for any table, so intervals are somewhat wide; they are narrower if records are alike
            or more of them are sampled.

    Returns:
        A row of figures per synthesis: score, cap_protection and baseline_protection, named as in SDMetrics'
        `DisclosureProtection.compute_breakdown` (0.29 to 0.32), two more baselines, and intervals.

    Raises:
        InputError: The tables cannot be compared or contradict the arguments; nothing was computed.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 30, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> dp.disclosure_protection(patients, synthetic, ["age"], "illness")
        Disclosure protection of illness from the keys age
        Method cap: a GT record whose keys are not in SD is left out
        Shares guessed wrong, from 0 to 1, and scores, at most 1; high is safe
        <BLANKLINE>
        3 of 4 GT records scored, 4 SD records
        <BLANKLINE>
                            guessed wrong   score
        with SD                    0.3333
        no SD, uniform             0.5000  0.6667
        no SD, majority            0.5000  0.6667
        no SD, proportional        0.5000  0.6667

    Sources: SDMetrics, `DisclosureProtection`; Taub, Elliot et al. 2018 for CAP itself; Waudby-Smith & Ramdas
    2020, "Confidence sequences for sampling without replacement", theorem 3.2, for the intervals.
    """
    check_method(method)
    if records is not None:
        require_whole_number("records", records, 1)
    require_whole_number("seed", seed, 0)
    require_whole_number("bins", bins, 1, _MOST_BINS)
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(f"confidence must be a number between 0 and 1, such as 0.95, not {confidence!r}.")
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping_of())
    continuous_names = _check_continuous(continuous, tables)
    columns = _code_columns(tables, continuous_names, bins)
    warn_of_doubts(find_doubts(tables, list(columns.values())))
    target = _combine_targets([columns[name] for name in tables.targets])
    key_columns = [columns[name] for name in tables.keys]
    N_d, *N_s = (len(frame) for frame in tables.frames)
    sampled = N_d if records is None else min(records, N_d)
    sample = None
    if sampled < N_d:
        sample = np.sort(np.random.default_rng(seed).choice(N_d, sampled, replace=False))
        of_GT, *of_SD = target.codes
        target = replace(target, codes=(of_GT[sample], *of_SD))
    attacks = _attack_by_syntheses(combine_columns(key_columns, sample), target, method)
    figures = [calculate_protection(target.baselines, attack) for attack in attacks]
    intervals = [(exact.cap_protection, exact.cap_protection) for exact in figures]
    if sample is not None:
        populations = [N_d] * len(attacks)
        if method == "cap":  # the other methods attack every record
            d_q, *s_q_of_syntheses = combine_columns(key_columns).counts
            populations = [int(d_q[s_q > 0].sum()) for s_q in s_q_of_syntheses]
        intervals = [
            _estimate_interval(attack, population, confidence, seed)
            for attack, population in zip(attacks, populations, strict=True)
        ]
    farthest = len(tables.keys) if method == "generalized_cap" else 0
    return DisclosureProtection(
        method=method,
        keys=tables.keys,
        targets=tables.targets,
        N_d=N_d,
        N_s=tuple(N_s),
        sampled=sampled,
        seed=seed,
        confidence=confidence,
        figures=_frame_figures(figures, attacks, intervals),
        distances=tuple(tuple(attack.at_distance(h) for h in range(farthest + 1)) for attack in attacks),
    )


def _estimate_interval(attack: Attack, population: int, confidence: float, seed: int) -> Interval:
    """Return the interval; the sampled records that are scored are a random sample of all scored ones."""
    in_random_order = np.random.default_rng((seed, 1)).permutation(wrong_shares(attack))
    return mean_of_population(in_random_order, population, confidence)


def measure_protection(tables: Tables, methods: Sequence[str]) -> pd.DataFrame:
    """Return the `FRAME_FIGURES` of each target alone by each method, as shares from 0 to 1.

    Index (target, synthesis); columns such as "cap__score". Grouped columns are compared by their groups.
    InputError as in `disclosure_protection()`.
    """
    for method in methods:
        check_method(method)
    key_columns = tables.code(tables.keys)
    keys = combine_columns(key_columns)
    rows: dict[tuple[Any, int], dict[str, float]] = {}
    for name in tables.targets:
        column = tables.code_column(name)
        for measured in (*key_columns, column):
            _check_not_all_missing(measured, tables.names)
        target = _combine_targets([column])
        attacks = {method: _attack_by_syntheses(keys, target, method) for method in methods}
        for synthesis in range(1, len(tables.frames)):
            results = {
                method: calculate_protection(target.baselines, attacks[method][synthesis - 1])
                for method in methods
            }
            rows[name, synthesis] = {
                f"{method}__{figure}": getattr(result, figure)
                for method, result in results.items()
                for figure in FRAME_FIGURES
            }
    return build_frame(rows, ["target", "synthesis"])


_GUESSES = {"uniform": "baseline", "majority": "majority", "proportional": "proportional"}
_SCORES = {"score": "baseline", "majority_score": "majority", "proportional_score": "proportional"}
_UNMATCHED = {
    "cap": "a GT record whose keys are not in SD is left out",
    "zero_cap": "a GT record whose keys are not in SD counts as guessed wrong",
    "generalized_cap": "a GT record whose keys are not in SD is looked up among the nearest ones",
}


@dataclass(frozen=True, repr=False, eq=False)
class DisclosureProtection:
    """The protection of the targets: shares from 0 to 1, not percent; high values are safe.

    `figures`: index synthesis. `cap_protection`: mean share of wrong guesses over the `scored` GT records.
    The same for an intruder without the synthetic table, over all GT records: `baseline_protection` guesses
    every combination of levels equally often, `majority_protection` always the most frequent combination,
    `proportional_protection` each combination as often as it occurs. `score`, `majority_score`,
    `proportional_score`: cap_protection divided by these, at most 1; NaN if undefined. `…_low` and `…_high`
    of these four: an interval that holds the figure of all GT records with at least this `confidence`; the
    figure itself if all were attacked. `matched`: GT records whose key combination is in SD.

    `distances`: for each synthesis, the number of GT records looked up in SD records that differ from them in
    0, 1, 2, … keys; for cap and zero_cap only in 0. `sampled`: the number of GT records attacked, to which
    `scored`, `matched`, `distances` and all figures but the baselines refer.
    """

    method: str
    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    N_d: int
    N_s: tuple[int, ...]
    sampled: int
    seed: int
    confidence: float
    figures: pd.DataFrame
    distances: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        several = len(self.figures) > 1
        tables = [
            (f"Synthesis {synthesis}: " if several else "")
            + f"{int(row['scored']):,} of {write_count(self.N_d, 'GT record')} scored, "
            f"{write_count(records, 'SD record')}\n\n"
            + self._build_table(row).to_string(na_rep="", line_width=80)
            for (synthesis, row), records in zip(self.figures.iterrows(), self.N_s, strict=True)
        ]
        return "\n\n".join([self._write_heading(), *tables])

    __repr__ = __str__

    def to_sdmetrics(self, synthesis: int = 1) -> dict[str, str | float | dict[str, float]]:
        """Return the figures of a synthesis under SDMetrics' names: `metric`, `score` and `details`.

        `details` are those of `compute_breakdown`. If records were sampled, the metric is
        `DisclosureProtectionEstimate`, with the interval of `cap_protection`; SDMetrics' own also samples the
        synthetic table, so its estimates are higher. InputError if there is no such synthesis.
        """
        if synthesis not in self.figures.index:
            raise InputError(f"synthesis must be a number from 1 to {len(self.figures)}, not {synthesis!r}.")
        row = self.figures.loc[synthesis]
        is_estimate = self.sampled < self.N_d
        names = ["cap_protection", "baseline_protection"]
        names += ["cap_protection_low", "cap_protection_high"] if is_estimate else []
        return {
            "metric": "DisclosureProtectionEstimate" if is_estimate else "DisclosureProtection",
            "score": float(row["score"]),
            "details": {name: float(row[name]) for name in names},
        }

    def _write_heading(self) -> str:
        targets, keys = (", ".join(map(str, names)) for names in (self.targets, self.keys))
        estimated = (
            f"\nEstimated from {self.sampled:,} sampled GT records; "
            f"intervals of {100 * self.confidence:g} % confidence"
            if self.sampled < self.N_d
            else ""
        )
        return (
            f"Disclosure protection of {targets} from the keys {keys}\n"
            f"Method {self.method}: {_UNMATCHED[self.method]}\n"
            f"Shares guessed wrong, from 0 to 1, and scores, at most 1; high is safe{estimated}"
        )

    def _build_table(self, row: pd.Series[float]) -> pd.DataFrame:
        """Return the printed table: the figures from SD, then the baselines without it."""
        protections = [row["cap_protection"], *(row[f"{name}_protection"] for name in _GUESSES.values())]
        table = pd.DataFrame(
            {
                "guessed wrong": [f"{protection:.4f}" for protection in protections],
                "score": ["", *(f"{row[name]:.4f}" for name in _SCORES)],
            },
            index=pd.Index(["with SD", *(f"no SD, {name}" for name in _GUESSES)]),
        )
        if self.sampled < self.N_d:
            low, high = (
                [f"{row[f'{name}_{end}']:.4f}" for name in ("cap_protection", *_SCORES)]
                for end in ("low", "high")
            )
            intervals = [f"{start} to {end}" for start, end in zip(low, high, strict=True)]
            table.insert(1, "interval", [intervals[0], "exact", "exact", "exact"])
            table["score interval"] = ["", *intervals[1:]]
        return table


def calculate_protection(baselines: ProtectionBaselines, attack: Attack) -> ProtectionFigures:
    """Return the figures of one synthesis from its attack on the GT records."""
    protection = cap_protection(attack)
    return ProtectionFigures(
        cap_protection=protection,
        baseline_protection=baselines.uniform,
        score=score(protection, baselines.uniform),
        majority_protection=baselines.majority,
        majority_score=score(protection, baselines.majority),
        proportional_protection=baselines.proportional,
        proportional_score=score(protection, baselines.proportional),
    )


def _frame_figures(
    figures: Sequence[ProtectionFigures], attacks: Sequence[Attack], intervals: Sequence[Interval]
) -> pd.DataFrame:
    """Return the frame `figures`; `intervals`: those of cap_protection."""
    rows = {}
    by_synthesis = enumerate(zip(figures, attacks, intervals, strict=True), start=1)
    for synthesis, (protection, made_attack, (low, high)) in by_synthesis:
        ends = {"cap_protection_low": low, "cap_protection_high": high}
        for name, baseline in _SCORES.items():
            without_SD = getattr(protection, f"{baseline}_protection")
            ends |= {f"{name}_low": score(low, without_SD), f"{name}_high": score(high, without_SD)}
        counts = {"scored": made_attack.records, "matched": made_attack.at_distance(0)}
        rows[(synthesis,)] = {**counts, **to_row(protection), **ends}
    return build_frame(rows, ["synthesis"])
