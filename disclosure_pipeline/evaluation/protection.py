"""`disclosure_protection()`: the share of records that an intruder guesses wrong, and what it is worth."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.opening import read_tables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import require_names, require_whole_number
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.frames import frame_of, row_of
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import Keys, combine_keys, frequency_tables
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
    """Raise InputError where there is no such method."""
    if method not in METHODS:
        close = difflib.get_close_matches(str(method).lower(), METHODS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method must be one of {listed(METHODS)}, not {method!r}.{hint}")


def _check_not_all_missing(column: CodedColumn, table_names: Sequence[str]) -> None:
    for counts, name in zip(column.counts, table_names, strict=True):
        if not counts[: column.missing].any():
            raise InputError(
                f"Column {column.name!r} of {name} holds nothing but missing values: nothing can be found or "
                "guessed by it, which would look like protection. Leave it out, or read it again."
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
    """The combination of target levels of each record, a code below `size`; `codes[0]` of GT."""

    codes: tuple[IntArray, ...]
    size: int
    baselines: ProtectionBaselines

    def of_records(self, sample: IntArray) -> JointTarget:
        """Return the same for some GT records; the baselines stay those of all."""
        return JointTarget((self.codes[0][sample], *self.codes[1:]), self.size, self.baselines)


def _code_columns(tables: Tables, continuous: Sequence[Any], bins: int) -> Mapping[Any, CodedColumn]:
    """Return every column as codes, those that are continuous in bins. InputError for what cannot be used."""
    columns = {name: tables.code_column(name) for name in (*tables.keys, *tables.targets)}
    for column in columns.values():
        _check_not_all_missing(column, tables.names)
    for name in continuous:
        columns[name] = bin_by_width(columns[name], bins, tables.names)
    return columns


def _combine_targets(columns: Sequence[CodedColumn]) -> JointTarget:
    """Return the columns as one target, and what an intruder without SD gets wrong of it."""
    if len(columns) == 1:
        codes, size, d_t = columns[0].codes, columns[0].size, columns[0].counts[0]
    else:
        t = combine_keys([column.codes for column in columns], [column.size for column in columns])
        codes, size, d_t = t.q, t.size, t.counts[0]
    levels_in_GT = [int(np.count_nonzero(column.counts[0])) for column in columns]
    return JointTarget(codes, size, baselines(levels_in_GT, d_t))


def _attacks_of_syntheses(keys: Keys, target: JointTarget, method: str) -> list[Attack]:
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
    """Measure how often an intruder guesses wrong who knows the keys and looks them up in SD.

    The intruder guesses in proportion to what the SD records found have; a guess is right only if every
    target is. Missing is a level of its own, in keys and targets. Exact at any size, unless `records` are
    sampled for tables or key sets that take too long: GT's alone, without replacement, because a sample of
    SD would lack most key combinations, and even an exact copy of GT would look safe.

    Args:
        ground_truth: The confidential records, one a row, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of m of them.
        keys: The columns that an intruder knows.
        targets: The column or columns that an intruder wants to learn, all of them together.
        method: What happens to a GT record whose key combination is not in the synthetic table. "cap": it
            is left out. "zero_cap": it counts as guessed wrong. "generalized_cap": the intruder takes the
            SD records that differ from it in the smallest number of keys, all of them pooled.
        continuous: The keys and targets that are put into bins: numbers, dates or durations.
        bins: Number of bins of equal width over GT's range. They are closed on the right, and the
            outermost ones are open, so that SD values outside GT's range fall into them.
        records: How many GT records to attack; None for all of them. Levels, bins and baselines are those of
            the whole GT.
        seed: The same seed gives the same sample.
        confidence: The least probability, between 0 and 1, with which an interval holds the exact figure.
            It is guaranteed for any table, which makes the intervals somewhat wide; the more alike the
            records are and the more of them are sampled, the narrower.

    Returns:
        A row of figures per synthesis: score, cap_protection and baseline_protection as SDMetrics'
        `DisclosureProtection.compute_breakdown` (0.29 to 0.32) names them, two more baselines, and intervals.

    Raises:
        InputError: The tables cannot be compared or the arguments contradict them; nothing was computed.

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
    N_d = len(tables.frames[0])
    if records is None or records >= N_d:
        attacks = _attacks_of_syntheses(combine_columns(key_columns), target, method)
        figures = [protection_figures(target.baselines, attack) for attack in attacks]
        exact = [(of_synthesis.cap_protection, of_synthesis.cap_protection) for of_synthesis in figures]
        return protection_result(tables, method, figures, attacks, exact, (N_d, seed, confidence))
    sample = np.sort(np.random.default_rng(seed).choice(N_d, records, replace=False))
    attacks = _attacks_of_syntheses(combine_columns(key_columns, sample), target.of_records(sample), method)
    figures = [protection_figures(target.baselines, attack) for attack in attacks]
    populations = [N_d] * len(attacks)
    if method == "cap":  # the other methods attack every record
        d_q, *s_q_of_syntheses = combine_columns(key_columns).counts
        populations = [int(d_q[s_q > 0].sum()) for s_q in s_q_of_syntheses]
    intervals = [
        _estimate_interval(attack, population, confidence, seed)
        for attack, population in zip(attacks, populations, strict=True)
    ]
    return protection_result(tables, method, figures, attacks, intervals, (records, seed, confidence))


def _estimate_interval(attack: Attack, population: int, confidence: float, seed: int) -> Interval:
    """Return the interval: of the scored records the sampled ones are a random sample, too."""
    in_random_order = np.random.default_rng((seed, 1)).permutation(wrong_shares(attack))
    return mean_of_population(in_random_order, population, confidence)


def protection_frame(tables: Tables, methods: Sequence[str]) -> pd.DataFrame:
    """FRAME_FIGURES of each target by itself, by each method: index (target, synthesis), shares from 0 to 1.

    The columns are named like "cap__score"; grouped columns are compared by their groups. InputError as
    `disclosure_protection()`.
    """
    for method in methods:
        check_method(method)
    key_columns = tables.code(tables.keys)
    keys = combine_columns(key_columns)
    rows: dict[tuple[Any, int], dict[str, float]] = {}
    for name in tables.targets:
        column = tables.code_column(name)
        for used in (*key_columns, column):
            _check_not_all_missing(used, tables.names)
        target = _combine_targets([column])
        attacks = {method: _attacks_of_syntheses(keys, target, method) for method in methods}
        for synthesis in range(1, len(tables.frames)):
            results = {
                method: protection_figures(target.baselines, attacks[method][synthesis - 1])
                for method in methods
            }
            rows[name, synthesis] = {
                f"{method}__{figure}": getattr(result, figure)
                for method, result in results.items()
                for figure in FRAME_FIGURES
            }
    index = pd.MultiIndex.from_tuples(list(rows), names=["target", "synthesis"])
    return pd.DataFrame(list(rows.values()), index=index)


_GUESSES = {"uniform": "baseline", "majority": "majority", "proportional": "proportional"}
_SCORES = {"score": "baseline", "majority_score": "majority", "proportional_score": "proportional"}
_UNMATCHED = {
    "cap": "a GT record whose keys are not in SD is left out",
    "zero_cap": "a GT record whose keys are not in SD counts as guessed wrong",
    "generalized_cap": "a GT record whose keys are not in SD is looked up by the nearest ones",
}


@dataclass(frozen=True, repr=False, eq=False)
class DisclosureProtection:
    """The protection of the targets: shares from 0 to 1, not percent; high values are safe.

    `figures`: index synthesis. `cap_protection`: mean share of wrong guesses over the `scored` GT records.
    The same for an intruder without the synthetic table, over all GT records: `baseline_protection` guesses
    every combination of levels equally often, `majority_protection` always the most frequent combination,
    `proportional_protection` each as often as it occurs. `score`, `majority_score`, `proportional_score`:
    cap_protection divided by them, at most 1; NaN where that cannot be told. `…_low` and `…_high` of these
    four: an interval that holds the figure of all GT records with at least the `confidence` named; the figure
    itself where all of them were attacked. `matched`: GT records whose key combination is in SD.

    `distances`: for each synthesis the number of GT records by the number of keys in which the SD records
    differ that they are looked up in; only those that differ in none for cap and zero_cap. `sampled`: the GT
    records that were attacked; `scored`, `matched`, `distances` and all figures but the baselines are theirs.
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
            + f"{int(row['scored']):,} of {self.N_d:,} GT records scored, {records:,} SD records\n\n"
            + self._table(row).to_string(na_rep="", line_width=80)
            for (synthesis, row), records in zip(self.figures.iterrows(), self.N_s, strict=True)
        ]
        return "\n\n".join([self._heading(), *tables])

    __repr__ = __str__

    def _heading(self) -> str:
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

    def _table(self, row: pd.Series[float]) -> pd.DataFrame:
        """Return the figures as they are printed: first from SD, then the baselines without it."""
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


def protection_figures(baselines: ProtectionBaselines, attack: Attack) -> ProtectionFigures:
    """Return the figures of one synthesis, from the attack on its GT records."""
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


def protection_result(
    tables: Tables,
    method: str,
    figures: Sequence[ProtectionFigures],
    attacks: Sequence[Attack],
    intervals: Sequence[Interval],
    sampling: tuple[int, int, float],
) -> DisclosureProtection:
    """Return the result; `intervals` are those of cap_protection, `sampling` records, seed and confidence."""
    farthest = len(tables.keys) if method == "generalized_cap" else 0
    rows = {}
    for i, (of_synthesis, found, (low, high)) in enumerate(zip(figures, attacks, intervals, strict=True)):
        ends = {"cap_protection_low": low, "cap_protection_high": high}
        for name, baseline in _SCORES.items():
            protection = getattr(of_synthesis, f"{baseline}_protection")
            ends |= {f"{name}_low": score(low, protection), f"{name}_high": score(high, protection)}
        counts = {"scored": found.records, "matched": found.at_distance(0)}
        rows[(i + 1,)] = {**counts, **row_of(of_synthesis), **ends}
    N_d, *N_s = (len(frame) for frame in tables.frames)
    sampled, seed, confidence = sampling
    return DisclosureProtection(
        method=method,
        keys=tables.keys,
        targets=tables.targets,
        N_d=N_d,
        N_s=tuple(N_s),
        sampled=sampled,
        seed=seed,
        confidence=confidence,
        figures=frame_of(rows, ["synthesis"], list(rows[(1,)])),
        distances=tuple(tuple(attack.at_distance(h) for h in range(farthest + 1)) for attack in attacks),
    )
