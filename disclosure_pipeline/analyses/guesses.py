"""`nearest_guess()` and `anonymity_loss()`: how often the guesses of two kinds of intruders are right.

One guesses from the nearest synthetic records; the other only if enough records with a person's keys agree.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import mark_unguessable
from disclosure_pipeline.counting.opening import read_tables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import require_names
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.frames import (
    FiguresFrame,
    build_frame,
    format_frame,
    join_records,
    to_row,
)
from disclosure_pipeline.evaluation.learning.features import convert_levels
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.certainty import (
    CertaintyCounts,
    certainty_counts,
    certainty_counts_of_others,
    drawn_certainty_counts,
)
from disclosure_pipeline.measures.certainty import anonymity_loss as anonymity_loss_of
from disclosure_pipeline.measures.drawn_guesses import draw_of_others, draw_of_synthetic
from disclosure_pipeline.measures.exact import SCALE, Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, combine_keys, frequency_tables
from disclosure_pipeline.measures.nearest import (
    Votes,
    errors_of_nearest_guesses,
    find_votes,
    nearest_guesses,
)
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn
from disclosure_pipeline.tables.messages import listed
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource


@dataclass(frozen=True, repr=False, eq=False)
class NearestGuess:
    """The success of guessing by the nearest records.

    `figures`: index (target, synthesis); percent of GT records, each `…_beyond` in percentage points.
    `accuracy`: right guesses; `score`: the mean share of the nearest SD records that have the record's own
    level (generalized CAP); `same_keys`: GT records whose key combination is in SD. `…_others`: the same from
    other people's records; `…_beyond`: the difference at equal sizes; `…_beyond_se`: its standard error.

    `records`: a row per GT record, with GT's index; columns (target, synthesis, figure), so
    `records["ill", 1]` is a frame of plain columns: `score`, a share of 1; `right`, the chance of a right
    guess, below 1 if several levels have most votes; `distance` to the nearest SD record. The frame holds no
    value of GT, but it describes single confidential records: do not publish it.
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    figures: pd.DataFrame
    records: pd.DataFrame

    def __str__(self) -> str:
        return (
            f"Guesses by the nearest SD records, from the keys {', '.join(map(str, self.keys))}\n"
            "Percent of GT records\n\n"
            f"{format_frame(self.figures)}"
        )

    __repr__ = __str__


def nearest_guess(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    *,
    numeric: Sequence[Hashable] = (),
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    seed: int = 0,
) -> NearestGuess:
    """Measure how often guesses from the nearest synthetic records are right, for the targets of GT records.

    All SD records at the smallest distance vote; the level with most votes is guessed, each of several
    equally often. The distance is the number of keys that differ; a key in `numeric` adds the difference
    divided by the range of GT and SD, from 0 to 1. Missing is a level, in keys and target, at distance 1 from
    every number. Distances that agree in nine decimals are equal.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        keys: The columns an intruder knows.
        targets: The column or columns an intruder wants to learn.
        numeric: The keys to compare as numbers (or dates, or durations). Each key combination of GT that is
            not in SD is then compared with each one of SD.
        groups: As in `disclosure()`; a grouped key cannot be in `numeric`.
        special_values: As in `disclosure()`; in a key in `numeric` they are at distance 1 from everything.
        edges: As in `disclosure()`.
        seed: If the sizes of the tables differ by more than a record, `…_others` and `…_beyond` are measured
            on a draw of the larger one, which does not depend on the order of its records.

    Raises:
        InputError: As in `disclosure()`; or `numeric` names a column that is not a key or holds no numbers.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 41, 52], "sex": ["f", "m", "f"], "ill": ["y", "n", "y"]})
        >>> sd = pd.DataFrame({"age": [31, 40, 52], "sex": ["f", "m", "f"], "ill": ["y", "n", "n"]})
        >>> guess = dp.nearest_guess(gt, sd, ["age", "sex"], "ill", numeric=["age"])
        >>> guess.records["ill", 1].round(2)
        figure  score  right  distance
        0         1.0    1.0      0.05
        1         1.0    1.0      0.05
        2         0.0    0.0      0.00
        >>> guess.figures[["accuracy", "score", "same_keys"]].round(1)
                          accuracy  score  same_keys
        target synthesis
        ill    1              66.7   66.7       33.3

    Source: Hittmeir, Mayer & Ekelhart 2020, "A baseline for attribute disclosure risk in synthetic data".
    """
    numeric_names = require_names("numeric", numeric)
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping_of(groups, special_values, edges))
    for name in numeric_names:
        if name not in tables.keys:
            raise InputError(
                f"numeric names {name!r}, which is not a key. The keys are {listed(tables.keys)}."
            )
        if tables.grouping.groups_column(name):
            raise InputError(f"Key {name!r} is grouped, and groups have no distance: remove it from numeric.")
    columns = tables.code(tables.keys)
    numbers = [_scale(column, tables) if column.name in numeric_names else None for column in columns]
    compared = [column for column, places in zip(columns, numbers, strict=True) if places is None]
    target_columns = tables.code(tables.targets)
    warn_of_doubts(find_doubts(tables, [*compared, *target_columns]))
    rows, records = {}, {}
    for t in target_columns:
        for synthesis in range(1, len(tables.frames)):
            f, q, position = _count_cells(columns, t, synthesis)
            votes = find_votes(f, q, numbers, from_others=False)
            records[t.name, synthesis] = _build_record_frame(votes, position)
            drawn = draw_equal_sizes(f, _order_by_labels(f, q, columns, t), [seed, synthesis])
            rows[t.name, synthesis] = _measure_guesses(f if drawn is None else drawn, q, numbers, votes)
    return NearestGuess(
        keys=tables.keys,
        targets=tables.targets,
        figures=build_frame(rows, ["target", "synthesis"], list(next(iter(rows.values())))),
        records=join_records(records, tables.frames[0].index),
    )


def _measure_guesses(
    at_n: FrequencyTable, q: Keys, numbers: Sequence[Floats | None], votes: Votes
) -> dict[str, float]:
    """Return the figures of a synthesis; `at_n` has the cells of draws of equal sizes from SD and GT."""
    whole = nearest_guesses(votes)
    by_SD, by_others = (
        find_votes(at_n, q, numbers, from_others=from_others) for from_others in (False, True)
    )
    guesses, others = nearest_guesses(by_SD), nearest_guesses(by_others)
    errors = errors_of_nearest_guesses(at_n, by_SD, by_others)
    row = {}
    for name in ("accuracy", "score"):
        row[name] = getattr(whole, name)
        row[f"{name}_others"] = getattr(others, name)
        row[f"{name}_beyond"] = getattr(guesses, name) - getattr(others, name)
        row[f"{name}_beyond_se"] = errors[name]
    return row | {"same_keys": whole.same_keys}


def _scale(column: CodedColumn, tables: Tables) -> Floats:
    """Return the number of each code, scaled from 0 (smallest) to 1 (largest); NaN if it has none."""
    if column.kind not in ORDERED_KINDS:
        raise InputError(f"Key {column.name!r} holds {column.kind.value}: it cannot be in numeric.")
    numbers = convert_levels(column, tuple(tables.grouping.special_values.get(column.name, ())))
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return numbers
    width = known.max() - known.min()
    scaled: Floats = (numbers - known.min()) / (width or 1)
    return scaled


def _count_cells(
    columns: Sequence[CodedColumn], t: CodedColumn, synthesis: int
) -> tuple[FrequencyTable, Keys, IntArray]:
    """Return the cells of GT and one synthesis, and the GT cell of each GT record."""
    codes = [[column.codes[table] for table in (0, synthesis)] for column in (*columns, t)]
    q = combine_keys(codes[:-1], [column.size for column in columns])
    [f] = frequency_tables(q, codes[-1], t.size)
    cells_GT = (f.q * f.targets + f.t)[f.d > 0]
    return f, q, np.searchsorted(cells_GT, q.q[0] * f.targets + codes[-1][0])


def draw_equal_sizes(f: FrequencyTable, order: IntArray, seed: Sequence[int]) -> FrequencyTable | None:
    """Draw GT and SD records so that everybody has as many others as SD has; return their cells.

    None if the sizes are already equal. The number of records of each cell is drawn, in an `order` of the
    cells that does not depend on the order of the records.
    """
    sizes = Sizes(f.N_d, f.N_s)
    if not sizes.others_are_drawn and not sizes.synthetic_is_drawn:
        return None
    rng = np.random.default_rng(seed)
    d, s = np.empty_like(f.d), np.empty_like(f.s)
    d[order] = rng.multivariate_hypergeometric(f.d[order], min(sizes.n + 1, f.N_d), method="marginals")
    s[order] = rng.multivariate_hypergeometric(f.s[order], sizes.n, method="marginals")
    drawn = np.flatnonzero(d + s)
    d_q, s_q = (f.per_key(counts)[f.q] for counts in (d, s))
    return FrequencyTable(
        q=f.q[drawn],
        t=f.t[drawn],
        d=d[drawn],
        s=s[drawn],
        d_q=d_q[drawn],
        s_q=s_q[drawn],
        N_d=int(d.sum()),
        N_s=int(s.sum()),
        keys=f.keys,
        targets=f.targets,
    )


def _order_by_labels(
    f: FrequencyTable, keys: Keys, columns: Sequence[CodedColumn], t: CodedColumn
) -> IntArray:
    """Sort the cells by the labels of their levels, as codes may depend on the order of the records."""
    ranks = [_rank_labels(column) for column in (*columns, t)]
    key_ranks = [rank[keys.level_of(k)[f.q]] for k, rank in enumerate(ranks[:-1])]
    return np.lexsort([ranks[-1][f.t], *key_ranks])


def _rank_labels(column: CodedColumn) -> IntArray:
    """Return the rank of each code's label, missing first."""
    labels = [column.label(code) for code in range(column.size)]
    order = sorted(range(column.size), key=lambda code: (labels[code] is not None, labels[code]))
    ranks = np.empty(column.size, dtype=np.int64)
    ranks[order] = np.arange(column.size)
    return ranks


def _build_record_frame(votes: Votes, position: IntArray) -> pd.DataFrame:
    score = votes.right / np.maximum(votes.pool, 1)
    right = votes.is_named / np.maximum(votes.levels, 1)
    columns = {"score": score, "right": right, "distance": votes.distance}
    return pd.DataFrame({name: values[position] for name, values in columns.items()})


# Above 1/2, so that an intruder claims at most one level.
CERTAINTIES = tuple(Fraction(percent, 100) for percent in range(55, 101, 5))


def anonymity_loss(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns = None,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """Measure how much more an intruder learns from SD than from other people's records, as one coefficient.

    The intruder claims the level that at least a share c of the SD records with a person's keys have, for the
    best c of 0.55, 0.60, …, 1; the same is done with the other GT records. Missing is never claimed. If the
    sizes of the tables differ by more than a record, claims from the larger one are averaged over all draws
    of equal size.

    Returns:
        Index (target, synthesis). ALC, a coefficient: 1 if SD tells all that other people's records do not,
        0 or less if it tells no more. PRC and PRC_others: coefficients of the two attacks, from 0 to 1.
        precision and precision_others: right claims in percent of the GT records with a claim (NaN if there
        are none). recall and recall_others: GT records with a claim in percent of all. certainty and
        certainty_others: c.

    Arguments and errors as in `disclosure()`; the tables are read into memory.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": range(40), "ill": ["y", "n"] * 20})
        >>> dp.anonymity_loss(gt, gt, ["age"])[["ALC", "precision", "recall", "recall_others"]]
                          ALC  precision  recall  recall_others
        target synthesis
        ill    1          1.0      100.0   100.0            0.0

    Source: Francis & Wagner 2025 (arXiv:2507.01710); the others' records in place of a holdout are this
    project's own.
    """
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping_of(groups, special_values, edges))
    key_columns, target_columns = tables.code(tables.keys), tables.code(tables.targets)
    warn_of_doubts(find_doubts(tables, [*key_columns, *target_columns]))
    q = combine_columns(key_columns)
    rows = {}
    for target in target_columns:
        no_guess = mark_unguessable(target)
        for synthesis, f in enumerate(frequency_tables(q, target.codes, target.size), start=1):
            attack, others = (
                {c: _count_claims(f, c, no_guess, from_others=from_others) for c in CERTAINTIES}
                for from_others in (False, True)
            )
            rows[target.name, synthesis] = to_row(anonymity_loss_of(attack, others, f.N_d * SCALE))
    index = pd.MultiIndex.from_tuples(list(rows), names=["target", "synthesis"])
    return FiguresFrame(list(rows.values()), index=index)


def _count_claims(f: FrequencyTable, c: Fraction, no_guess: Mask, *, from_others: bool) -> CertaintyCounts:
    """Count claims in units of 1 / `SCALE`."""
    sizes = Sizes(f.N_d, f.N_s)
    draw = draw_of_others(sizes) if from_others else draw_of_synthetic(sizes)
    if draw:
        return drawn_certainty_counts(f, f.d if from_others else f.s, c, no_guess, draw)
    count = certainty_counts_of_others if from_others else certainty_counts
    return count(f, f.d, c, no_guess).times(SCALE)
