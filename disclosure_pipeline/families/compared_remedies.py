"""`compare_remedies()`: the tables after each remedy, measured again."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import read_tables, share_columns
from disclosure_pipeline.errors import ComparabilityWarning, CopiesWarning, InputError, write_count
from disclosure_pipeline.evaluation.copies import measure_whole_copies
from disclosure_pipeline.evaluation.disclosure import disclosure
from disclosure_pipeline.evaluation.frames import format_frame
from disclosure_pipeline.evaluation.resemblance import measure_resemblance, warn_of_doubts
from disclosure_pipeline.families.remedies import Remedy, apply_remedy
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import describe_argument
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

BEFORE = "as it is"
_COLUMNS = (
    *("records", "records_lost", "cells_changed", "repU", "unique_hits_beyond", "unique_hits_beyond_se"),
    *("DiSCO", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se", "guessed_beyond", "guessed_beyond_se"),
    *("unique_copies", "unique_copies_beyond", "unique_copies_beyond_se"),
    *("TVD_mean", "TVD_largest", "S_pMSE_mean"),
)


@dataclass(frozen=True, repr=False, eq=False)
class RemediedTables:
    """The tables after a remedy: the syntheses, and GT recoded in the same way."""

    remedy: str
    ground_truth: pd.DataFrame
    synthetic: tuple[pd.DataFrame, ...]

    def __repr__(self) -> str:
        return (
            f"RemediedTables of {self.remedy}: {write_count(len(self.synthetic), 'synthesis', 'syntheses')}"
        )


@dataclass(frozen=True, repr=False, eq=False)
class RemedyComparison:
    """The effects of remedies.

    `tables`: after each remedy, in their order. `figures`: index (remedy, target, synthesis), without a
    remedy first. records, records_lost: SD records; cells_changed: SD values. Risk, against GT recoded in the
    same way: repU, DiSCO, DiSCO_others, percent of GT records; unique_copies, percent of SD records;
    unique_hits_beyond, DiSCO_beyond, guessed_beyond, unique_copies_beyond, percentage points, each with its
    standard error. Resemblance to the original GT: TVD_mean and TVD_largest, shares of 1, and S_pMSE_mean,
    over all pairs of columns (over columns if there is only one).
    """

    tables: tuple[RemediedTables, ...]
    figures: pd.DataFrame

    def __str__(self) -> str:
        return format_frame(self.figures)

    __repr__ = __str__


def compare_remedies(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    remedies: Sequence[Remedy | tuple[Remedy, ...]],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> RemedyComparison:
    """Apply remedies to a synthetic table, and measure the effect of each on risk and resemblance.

    Each remedy is applied to the original tables; the remedies of a tuple are applied in turn.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        keys: The columns an intruder knows.
        targets: The column or columns an intruder wants to learn.
        remedies: Remedies such as `dp.Remedy.top_code("age", at=90)`, or tuples of them.
        groups: As in `disclosure()`.
        special_values: As in `disclosure()`; no remedy recodes them.
        edges: As in `disclosure()`.

    Returns:
        The tables after each remedy, and all figures in one frame: see `RemedyComparison`.

    Warns:
        CopiesWarning, ComparabilityWarning: As in `disclosure()`, for the original tables.

    Raises:
        InputError: As in `disclosure()`; or a remedy does not fit the tables, or leaves no record.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 40, 91, 95], "ill": ["y", "n", "n", "y"]})
        >>> sd = pd.DataFrame({"age": [30, 41, 91, 94], "ill": ["y", "n", "n", "y"]})
        >>> coded = dp.compare_remedies(gt, sd, ["age"], "ill", [dp.Remedy.top_code("age", at=90)])
        >>> coded.tables[0].synthetic[0]["age"].tolist()
        [30, 41, 90, 90]
        >>> figures = coded.figures.droplevel(["target", "synthesis"])
        >>> figures[["records_lost", "cells_changed", "repU", "DiSCO"]]
                                records_lost  cells_changed  repU  DiSCO
        remedy
        as it is                           0              0  50.0   50.0
        top_code('age', at=90)             0              2  25.0   25.0

    Sources: see `Remedy`.
    """
    grouping = grouping_of(groups, special_values, edges)
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping)
    labels = _label_remedies(remedies)
    options: dict[str, Any] = {"groups": groups, "special_values": special_values, "edges": edges}
    unchanged = [0] * (len(tables.frames) - 1)
    figures = {BEFORE: _measure(BEFORE, tables, tables, unchanged, options)}
    outcomes = []
    for label, remedy in zip(labels, remedies, strict=True):
        after, changed = apply_remedy(remedy, tables)
        outcomes.append(RemediedTables(label, after.frames[0], after.frames[1:]))
        figures[label] = _measure(label, tables, after, changed, options)
    return RemedyComparison(tuple(outcomes), pd.concat(figures, names=["remedy"]))


def _label_remedies(remedies: Any) -> list[str]:
    if isinstance(remedies, str) or not isinstance(remedies, Sequence) or not remedies:
        raise InputError("remedies must be a list of at least one remedy, such as dp.Remedy.top_code(…).")
    labels = []
    for remedy in remedies:
        steps = remedy if isinstance(remedy, tuple) else (remedy,)
        for step in steps:
            if not isinstance(step, Remedy):
                raise InputError(
                    "remedies must contain remedies, such as dp.Remedy.round_numbers('income', to=100), "
                    f"not {describe_argument(step)}."
                )
        labels.append(", then ".join(map(repr, steps)))
    repeated = [label for i, label in enumerate(labels) if label in labels[:i]]
    if repeated:
        raise InputError(f"remedies contains {repeated[0]} more than once.")
    return labels


def _measure(
    label: str, before: Tables, after: Tables, changed: Sequence[int], options: dict[str, Any]
) -> pd.DataFrame:
    GT, *SD = after.frames
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComparabilityWarning)
        warnings.simplefilter("ignore", CopiesWarning)
        risk = disclosure(GT, SD, list(after.keys), list(after.targets), **options)
    if label == BEFORE:  # the doubts are the same after a remedy
        warn_of_doubts(risk.copies.sentences, CopiesWarning)
        warn_of_doubts(risk.comparability_doubts)
    coded = _code_shared(GT, SD)
    opened = FramesInMemory(tuple(after.frames), "")
    copied = pd.DataFrame(measure_whole_copies(opened, coded), index=risk.identity.index)
    alike = measure_resemblance(coded if GT is before.frames[0] else _code_shared(before.frames[0], SD))
    distances = (alike.columns if alike.pairs.empty else alike.pairs).groupby("synthesis")
    apart = [frame for _, frame in distances]
    records = [len(frame) for frame in SD]
    lost = [len(frame) - left for frame, left in zip(before.frames[1:], records, strict=True)]
    synthesis_figures = risk.identity[["repU", "unique_hits_beyond", "unique_hits_beyond_se"]].assign(
        records=records,
        records_lost=lost,
        cells_changed=changed,
        **{name: copied[name] for name in _COLUMNS if name.startswith("unique_copies")},
        TVD_mean=[frame["TVD"].mean() for frame in apart],
        TVD_largest=[frame["TVD"].max() for frame in apart],
        S_pMSE_mean=[frame["S_pMSE"].mean() for frame in apart],
    )
    guesses = risk.cap[["guessed_beyond", "guessed_beyond_se"]]
    figures = risk.attribute[["DiSCO", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se"]].join(guesses)
    return figures.join(synthesis_figures, on="synthesis")[list(_COLUMNS)]


def _code_shared(ground_truth: pd.DataFrame, synthetic: Sequence[pd.DataFrame]) -> list[CodedColumn]:
    tables = share_columns([ground_truth, *synthetic])
    return tables.code(tables.keys)
