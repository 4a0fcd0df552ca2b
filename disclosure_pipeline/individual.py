"""Record by record: `individual_attribution()` for the GT records, `weap()` for the synthetic ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.individual import Individual, combine_cells, individual, share_of_key
from disclosure_pipeline.tables.alignment import Grouping, Tables, check_tables, table_names
from disclosure_pipeline.tables.grouping import Edges
from disclosure_pipeline.tables.levels import GROUND_TRUTH


def individual_attribution(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    target: Any,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """What each confidential record is exposed to. Arguments and errors as in `disclosure()`, one target.

    Returns:
        A frame with the rows and the index of `ground_truth`. "CAP_GT" is the record's chance of a right
        guess when an intruder draws a guess from the GT records with its key; then for each synthesis
        1…m (here 1) "CAP_1", the same chance when the guess is drawn from that synthesis, 0 where it has
        no such key; and whether the record counts towards DiSCO ("DiSCO_1"), DiSDiO ("DiSDiO_1") and repU
        ("repU_1"). Chances are from 0 to 1. Nothing is excluded.

        100 times the mean of a column is the figure of `disclosure()`: CAPd, DCAP, DiSCO, DiSDiO, repU. The
        frame tells of every record how it can be attacked: it is as confidential as the ground truth.

    Sources: Baillargeon & Charest 2020; Raab, Nowok & Dibben 2024 (arXiv:2406.16826), appendix 1.
    """
    tables = check_tables(
        ground_truth, synthetic, keys, [target], Grouping(groups or {}, special_values or {}, edges)
    )
    q, cells = _combined(tables)
    columns = {"CAP_GT": share_of_key(cells, q, 0, 0)}
    for synthesis in range(1, len(tables.frames)):
        found = individual(cells, q, synthesis)
        columns |= {f"{field.name}_{synthesis}": getattr(found, field.name) for field in fields(Individual)}
    return pd.DataFrame(columns, index=ground_truth.index)


def weap(
    synthetic: pd.DataFrame,
    keys: Sequence[Any],
    target: Any,
    *,
    ground_truth: pd.DataFrame | None = None,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.Series[float]:
    """Within equivalence class attribution probability: how sure each synthetic record is of its target.

    For each synthetic record the share of its target level among the synthetic records with its key: above
    0 and at most 1, which says that its key has one target level only. A series "WEAP" with the index of
    `synthetic`; 100 times its mean is CAPs, the share of records with a WEAP of 1 is Dsyn.

    Arguments and errors as in `disclosure()`, one target and one synthesis. `ground_truth` takes part in
    nothing but the edges of grouped columns: give it, and the groups are those that `disclosure()` forms
    from the two tables. (Of several syntheses it pools all: then give explicit `edges`.)

    Source: Taub, Elliot, Pampaka & Smith 2018, "Differential correct attribution probability".
    """
    if not isinstance(synthetic, pd.DataFrame):
        raise InputError("weap takes one synthetic table: call it for each synthesis.")
    grouping = Grouping(groups or {}, special_values or {}, edges)
    if ground_truth is not None:
        tables = check_tables(ground_truth, synthetic, keys, [target], grouping)
    elif isinstance(edges, str) and edges == "ground_truth":
        raise InputError('edges="ground_truth" needs the ground truth: pass ground_truth to weap.')
    else:
        tables = _alone(synthetic, keys, target, grouping)
    q, cells = _combined(tables)
    last = len(tables.frames) - 1
    return pd.Series(share_of_key(cells, q, last, last), index=synthetic.index, name="WEAP")


def _alone(synthetic: pd.DataFrame, keys: Sequence[Any], target: Any, grouping: Grouping) -> Tables:
    """The synthetic table checked by itself; no message speaks of a ground truth that was not given."""
    try:
        tables = check_tables(synthetic, synthetic, keys, [target], grouping)
    except InputError as error:
        message = str(error)
    else:
        return replace(tables, frames=tables.frames[1:])
    [_, name] = table_names(2)
    for old, new in ((GROUND_TRUTH, name), (GROUND_TRUTH.capitalize(), name.capitalize())):
        message = message.replace(old, new)
    raise InputError(message)


def _combined(tables: Tables) -> tuple[Keys, Keys]:
    """The key combinations, and the cells of key combination and target level, of all tables."""
    columns = [tables.coded(key) for key in tables.keys]
    q = combine_keys([column.codes for column in columns], [column.size for column in columns])
    target = tables.coded(tables.targets[0])
    return q, combine_cells(q, target.codes, target.size)
