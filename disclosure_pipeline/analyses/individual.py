"""Record by record: `individual_attribution()` for the GT records, `weap()` for the synthetic ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.comparability import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.counts import combine_keys_and_cells
from disclosure_pipeline.measures.individual import Individual, individual, share_of_key
from disclosure_pipeline.tables.alignment import Tables, check_tables
from disclosure_pipeline.tables.grouping import Edges, Grouping, grouping_of
from disclosure_pipeline.tables.messages import GROUND_TRUTH, table_names


def individual_attribution(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    target: Any,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """Return what each GT record is exposed to. Arguments and errors as in `disclosure()`, one target.

    Returns:
        A frame with the rows and the index of `ground_truth`. "CAP_GT" is the record's chance of a right
        guess when an intruder draws a guess from the GT records with its key; then for each synthesis
        1…m (here 1) "CAP_1", the same chance when the guess is drawn from that synthesis, 0 where it has
        no such key; and whether the record counts towards DiSCO ("DiSCO_1"), DiSDiO ("DiSDiO_1") and repU
        ("repU_1"). Chances are from 0 to 1. Nothing is excluded.

        100 times the mean of a column is the figure of `disclosure()`: CAPd, DCAP, DiSCO, DiSDiO, repU. The
        frame tells of every record how it can be attacked: it is as confidential as the ground truth.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40], "illness": ["flu", "cold", "flu"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40], "illness": ["flu", "flu", "cold"]})
        >>> dp.individual_attribution(patients, synthetic, ["age"], "illness")
           CAP_GT  CAP_1  DiSCO_1  DiSDiO_1  repU_1
        0     0.5    1.0     True     False   False
        1     0.5    0.0    False     False   False
        2     1.0    0.5    False     False   False

    Sources: Baillargeon & Charest 2020; Raab, Nowok & Dibben 2024 (arXiv:2406.16826), appendix 1.
    """
    tables = check_tables(ground_truth, synthetic, keys, [target], grouping_of(groups, special_values, edges))
    coded = tables.code((*tables.keys, target))
    warn_of_doubts(find_doubts(tables, coded))
    combinations, cells = combine_keys_and_cells(coded)
    columns = {"CAP_GT": share_of_key(cells, combinations, 0, 0)}
    for synthesis in range(1, len(tables.frames)):
        exposure = individual(cells, combinations, synthesis)
        columns |= {
            f"{field.name}_{synthesis}": getattr(exposure, field.name) for field in fields(Individual)
        }
    return pd.DataFrame(columns, index=tables.frames[0].index)


def weap(
    synthetic: Any,
    keys: Sequence[Any],
    target: Any,
    *,
    ground_truth: Any = None,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.Series[float]:
    """Within equivalence class attribution probability: how sure each synthetic record is of its target.

    For each synthetic record the share of its target level among the synthetic records with its key: above
    0 and at most 1, which says that its key has one target level only. A series "WEAP" with the index of
    `synthetic`; 100 times its mean is CAPs, the share of records with a WEAP of 1 is Dsyn. For a sequence
    of syntheses a series of all their records, with index (synthesis, index of the synthesis).

    Arguments and errors as in `disclosure()`, one target. `ground_truth` takes part in nothing but the edges
    of grouped columns: give it, and the groups are those that `disclosure()` forms from the same tables.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40], "illness": ["flu", "flu", "cold"]})
        >>> dp.weap(synthetic, ["age"], "illness").tolist()
        [1.0, 0.5, 0.5]

    Source: Taub, Elliot, Pampaka & Smith 2018, "Differential correct attribution probability".
    """
    grouping = grouping_of(groups, special_values, edges)
    if ground_truth is not None:
        tables = check_tables(ground_truth, synthetic, keys, [target], grouping)
    elif isinstance(edges, str) and edges == "ground_truth":
        raise InputError('edges="ground_truth" needs the ground truth: pass ground_truth to weap.')
    else:
        tables = _check_without_ground_truth(synthetic, keys, target, grouping)
    combinations, cells = combine_keys_and_cells(tables.code((*tables.keys, target)))
    several = isinstance(synthetic, Sequence)
    first = len(tables.frames) - (len(synthetic) if several else 1)
    shares = [
        pd.Series(share_of_key(cells, combinations, i, i), index=tables.frames[i].index, name="WEAP")
        for i in range(first, len(tables.frames))
    ]
    if not several:
        return shares[0]
    return pd.concat(shares, keys=range(1, len(shares) + 1), names=["synthesis"])


def _check_without_ground_truth(
    synthetic: Any, keys: Sequence[Any], target: Any, grouping: Grouping
) -> Tables:
    """Return the syntheses checked by themselves; no message speaks of a ground truth that was not given."""
    several = isinstance(synthetic, Sequence) and not isinstance(synthetic, str) and len(synthetic)
    first = synthetic[0] if several else synthetic
    try:
        tables = check_tables(first, synthetic, keys, [target], grouping)
    except InputError as error:
        message = str(error)
    else:
        return replace(tables, frames=tables.frames[1:])
    name = table_names(1 + len(synthetic) if several else 2)[1]
    for old, new in ((GROUND_TRUTH, name), (GROUND_TRUTH.capitalize(), name.capitalize())):
        message = message.replace(old, new)
    raise InputError(message)
