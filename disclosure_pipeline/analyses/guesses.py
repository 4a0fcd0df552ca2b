"""Guesses of other intruders, `nearest_guess()` and `anonymity_loss()`, and how often they are right.

One has the nearest synthetic records; one claims what enough of the records with a person's keys agree on.
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
from disclosure_pipeline.evaluation.frames import FiguresFrame, frame_of, join_records, row_of, show_frame
from disclosure_pipeline.evaluation.learning.features import numbers_of_levels
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
    """The yield of guessing by the nearest records.

    `figures`: index (target, synthesis); percent of GT records, each `…_beyond` in percentage points.
    `accuracy`: right guesses; `score`: the mean share of the nearest SD records that have the record's own
    level (generalized CAP); `same_keys`: GT records whose very keys are in SD. `…_others`: the same from
    other people's records; `…_beyond`: the difference at equal sizes; `…_beyond_se`: its standard error.

    `records`: a row per GT record, with GT's index; columns (target, synthesis, figure), so that
    `records["ill", 1]` is a frame of plain columns: `score`, a share of 1; `right`, the chance of a right
    guess, below 1 where several levels have most votes; `distance` to the nearest SD record. It holds no
    value of GT, but tells about single confidential records: not for publication.
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    figures: pd.DataFrame
    records: pd.DataFrame

    def __str__(self) -> str:
        return (
            f"Guesses by the nearest SD records, from the keys {', '.join(map(str, self.keys))}\n"
            "Percent of GT records\n\n"
            f"{show_frame(self.figures)}"
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
    """Guess the targets of each GT record by the nearest synthetic records; measure how often that is right.

    All SD records at the smallest distance vote; the level with most votes is guessed, of several each
    equally often. The distance is the number of keys that differ; of a key of `numeric` it is the difference
    divided by the range of GT and SD, from 0 to 1. A missing value is a level, in keys and target; it is at
    distance 1 from every number. Distances that are equal to nine decimals are equal.

    Args:
        ground_truth: The confidential records, one a row, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        keys: The columns that an intruder knows.
        targets: The column or columns that an intruder wants to learn.
        numeric: The keys that are compared as numbers (or dates, or durations). Each key combination of GT
            that is not in SD is then compared with each one of SD.
        groups: As in `disclosure()`; a grouped key cannot be in `numeric`.
        special_values: As there; in a key of `numeric` they are at distance 1 from everything else.
        edges: As there.
        seed: Where the tables differ in size by more than a record, `…_others` and `…_beyond` are of a draw
            of the larger one, the same in whatever order its records are.

    Raises:
        InputError: As `disclosure()`; `numeric` names a column that is no key, or holds no numbers.

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
            raise InputError(f"numeric names {name!r}, which is no key. The keys are {listed(tables.keys)}.")
        if tables.grouping.groups_column(name):
            raise InputError(f"Key {name!r} is grouped: its groups are equal or not. Take it out of numeric.")
    columns = tables.code(tables.keys)
    numbers = [_places(column, tables) if column.name in numeric_names else None for column in columns]
    compared = [column for column, places in zip(columns, numbers, strict=True) if places is None]
    target_columns = tables.code(tables.targets)
    warn_of_doubts(find_doubts(tables, [*compared, *target_columns]))
    rows, records = {}, {}
    for t in target_columns:
        for synthesis in range(1, len(tables.frames)):
            f, q, position = _count_cells(columns, t, synthesis)
            votes = find_votes(f, q, numbers, from_others=False)
            records[t.name, synthesis] = _record_frame(votes, position)
            drawn = draw_equal_sizes(f, _order_by_labels(f, q, columns, t), [seed, synthesis])
            rows[t.name, synthesis] = _figures(f if drawn is None else drawn, q, numbers, votes)
    return NearestGuess(
        keys=tables.keys,
        targets=tables.targets,
        figures=frame_of(rows, ["target", "synthesis"], list(next(iter(rows.values())))),
        records=join_records(records, tables.frames[0].index),
    )


def _figures(
    at_n: FrequencyTable, q: Keys, numbers: Sequence[Floats | None], votes: Votes
) -> dict[str, float]:
    """Return the figures of a synthesis; `at_n` are its cells and GT's, brought to equal sizes."""
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


def _places(column: CodedColumn, tables: Tables) -> Floats:
    """Place each code on a line from the smallest number, 0, to the largest, 1; NaN if it has none."""
    if column.kind not in ORDERED_KINDS:
        raise InputError(f"Key {column.name!r} holds {column.kind.value}: it cannot be in numeric.")
    numbers = numbers_of_levels(column, tuple(tables.grouping.special_values.get(column.name, ())))
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return numbers
    width = known.max() - known.min()
    places: Floats = (numbers - known.min()) / (width or 1)
    return places


def _count_cells(
    columns: Sequence[CodedColumn], t: CodedColumn, synthesis: int
) -> tuple[FrequencyTable, Keys, IntArray]:
    """Return the cells of GT and one synthesis, and the GT cell of each GT record."""
    codes = [[column.codes[table] for table in (0, synthesis)] for column in (*columns, t)]
    q = combine_keys(codes[:-1], [column.size for column in columns])
    [f] = frequency_tables(q, codes[-1], t.size)
    of_GT = np.flatnonzero(f.d)
    cell = (f.q * f.targets + f.t)[of_GT]
    return f, q, np.searchsorted(cell, q.q[0] * f.targets + codes[-1][0])


def draw_equal_sizes(f: FrequencyTable, order: IntArray, seed: Sequence[int]) -> FrequencyTable | None:
    """Return the cells of a draw of GT and of SD records, so that everybody has as many others as SD has.

    None where both have these sizes already. Records of one cell are alike, so it is drawn how many of each
    cell there are, in an `order` of the cells that does not depend on that of the records.
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
    """Order the cells by the names of their levels: codes may follow the order of the records."""
    ranks = [_rank_labels(column) for column in (*columns, t)]
    of_keys = [rank[keys.level_of(k)[f.q]] for k, rank in enumerate(ranks[:-1])]
    return np.lexsort([ranks[-1][f.t], *of_keys])


def _rank_labels(column: CodedColumn) -> IntArray:
    """Return the rank of each code's label; missing comes first."""
    labels = [column.label(code) for code in range(column.size)]
    order = sorted(range(column.size), key=lambda code: (labels[code] is not None, labels[code]))
    ranks = np.empty(column.size, dtype=np.int64)
    ranks[order] = np.arange(column.size)
    return ranks


def _record_frame(votes: Votes, position: IntArray) -> pd.DataFrame:
    score = votes.right / np.maximum(votes.pool, 1)
    right = votes.is_named / np.maximum(votes.levels, 1)
    columns = {"score": score, "right": right, "distance": votes.distance}
    return pd.DataFrame({name: values[position] for name, values in columns.items()})


# Above 1/2, so that an intruder claims one level of a person.
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

    The intruder claims the level that at least a share c of the SD records with a person's key have, for the
    best of c = 0.55, 0.60 to 1; the same is done with the other GT records. Missing is no level to claim.
    Where the tables differ in size by more than a record, claims from the larger one are those of a draw of
    it, on average over all draws.

    Returns:
        Index (target, synthesis). ALC, a coefficient: 1 where SD tells all that other people's records do
        not, 0 or less where it tells no more. PRC and PRC_others, coefficients of both attacks from 0 to 1;
        precision and precision_others: right claims in percent of the GT records of whom something is claimed
        (NaN: of nobody); recall and recall_others: these in percent of all; certainty, certainty_others: c.

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
            rows[target.name, synthesis] = row_of(anonymity_loss_of(attack, others, f.N_d * SCALE))
    index = pd.MultiIndex.from_tuples(list(rows), names=["target", "synthesis"])
    return FiguresFrame(list(rows.values()), index=index)


def _count_claims(f: FrequencyTable, c: Fraction, no_guess: Mask, *, from_others: bool) -> CertaintyCounts:
    """In units of 1 / `SCALE`."""
    sizes = Sizes(f.N_d, f.N_s)
    draw = draw_of_others(sizes) if from_others else draw_of_synthetic(sizes)
    if draw:
        return drawn_certainty_counts(f, f.d if from_others else f.s, c, no_guess, draw)
    count = certainty_counts_of_others if from_others else certainty_counts
    return count(f, f.d, c, no_guess).times(SCALE)
