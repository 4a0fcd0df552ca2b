"""`disclosure_over_releases()`: what a candidate discloses beyond the tables already published."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import read_tables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.counts import combine_columns, plan_measures
from disclosure_pipeline.evaluation.frames import FiguresFrame
from disclosure_pipeline.evaluation.people import measure_together
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY, find_doubts, warn_of_doubts
from disclosure_pipeline.measures.attribute import combine_cells
from disclosure_pipeline.measures.exact import Mask, percent
from disclosure_pipeline.measures.together import (
    BESIDE_ANY,
    count_disclosing_tables,
    replicated_uniques_together,
)
from disclosure_pipeline.tables.alignment import is_frame
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource


def disclosure_over_releases(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns = None,
    *,
    earlier: Sequence[TableSource],
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """Measure what a candidate would disclose together with the tables already published.

    All releases of one ground truth together disclose more than any of them alone. Figures of earlier runs
    are not used: everything is counted again from the published tables.

    Args:
        ground_truth: The confidential table. All tables are given as in `disclosure()` and read into memory.
        synthetic: The candidate: the table to publish, or a sequence of them.
        keys: The columns an intruder knows.
        targets: As in `disclosure()`.
        earlier: The published tables: a sequence, which may be empty.
        groups: As in `disclosure()`.
        special_values: As in `disclosure()`.
        edges: As in `disclosure()`; the tables of all releases are pooled.

    Returns:
        Index target, with a last row "(whole key)" for identity. Percent of GT records: `any_earlier`,
        `any_with_candidate` and `any_new` are those that DiSCO counts in at least one of the earlier tables,
        in one of all tables, and only with the candidate; for the whole key, those that are replicated
        uniques (repU). `agreed_earlier`, `agreed_with_candidate` and `agreed_new` are those to whom at least
        two tables assign a level, all of them the right one; NaN for the whole key. Where the candidate
        contradicts earlier tables, agreed_with_candidate is less than agreed_earlier plus agreed_new.
        `DiSCO_any_others`, `DiSCO_any_beyond` and its `_se`, `DiSCO_any_by_chance`: beside
        any_with_candidate, as in `Disclosure.together`; NaN for the whole key.

    Raises:
        InputError: As in `disclosure()`; or `earlier` is not a sequence.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 40, 50, 60], "ill": ["y", "n", "y", "n"]})
        >>> dp.disclosure_over_releases(gt, gt.head(3), ["age"], earlier=[gt.head(2)])[
        ...     ["any_earlier", "any_new", "agreed_earlier", "agreed_new"]
        ... ]
                     any_earlier  any_new  agreed_earlier  agreed_new
        target
        ill                 50.0     25.0             0.0        50.0
        (whole key)         50.0     25.0             NaN         NaN

    Source: this project's own.
    """
    if is_frame(earlier) or isinstance(earlier, str) or not isinstance(earlier, Sequence):
        raise InputError("earlier must be a sequence of published tables; it may be empty.")
    several = isinstance(synthetic, Sequence) and not isinstance(synthetic, str)
    candidates: Any = synthetic if several else [synthetic]
    tables = read_tables(
        ground_truth, [*earlier, *candidates], keys, targets, grouping_of(groups, special_values, edges)
    )
    earlier_tables = range(1, len(earlier) + 1)
    all_tables = range(1, len(tables.frames))
    key_columns, target_columns = tables.code(tables.keys), tables.code(tables.targets)
    warn_of_doubts(find_doubts(tables, [*key_columns, *target_columns]))
    combinations = combine_columns(key_columns)
    rows = []
    opened = FramesInMemory(tables.frames, "memory")
    plan = plan_measures(opened, tables.keys, tables.targets, tables.grouping)
    together, _ = measure_together(opened, plan, [len(all_tables)])
    for place, target in enumerate(target_columns):
        cells = combine_cells(combinations, target.codes, target.size)
        by_earlier = count_disclosing_tables(cells, combinations, earlier_tables)
        by_all = count_disclosing_tables(cells, combinations, all_tables)
        rows.append(
            _measure_shares("any", by_earlier.any, by_all.any)
            | _measure_shares("agreed", by_earlier.agreed, by_all.agreed)
            | {name: float(together[name].iloc[place]) for name in BESIDE_ANY}
        )
    uniques_earlier = replicated_uniques_together(combinations, earlier_tables)
    uniques_in_all = replicated_uniques_together(combinations, all_tables)
    rows.append(_measure_shares("any", uniques_earlier, uniques_in_all))
    index = pd.Index([*tables.targets, WHOLE_KEY], name="target", tupleize_cols=False)
    return FiguresFrame(rows, index=index)


def _measure_shares(name: str, earlier: Mask, with_candidate: Mask) -> dict[str, float]:
    """Return three columns in percent of GT records, from masks over them."""
    records = len(earlier)
    return {
        f"{name}_earlier": percent(earlier.sum(), records),
        f"{name}_with_candidate": percent(with_candidate.sum(), records),
        f"{name}_new": percent((with_candidate & ~earlier).sum(), records),
    }
