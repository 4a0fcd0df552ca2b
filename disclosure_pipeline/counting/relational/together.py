"""What all syntheses disclose together, as a database counts it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, or_
from typing import Any

import numpy as np

from disclosure_pipeline.counting.relational.coding import Digits, as_int64, int64, word_columns
from disclosure_pipeline.counting.relational.exclusions import cells_left
from disclosure_pipeline.counting.relational.transfer import fetch_integers
from disclosure_pipeline.counting.targets import Target

_SEVERAL = 2  # syntheses, at least


def fetch_unique_in_any(keys: Any, in_both: Sequence[int]) -> int:
    """The key combinations that one GT record has, and one record of at least one synthesis.

    `in_both` are those of each synthesis: if one alone has any, the database is not asked.
    """
    if np.count_nonzero(in_both) < _SEVERAL:
        return sum(in_both)
    in_any = reduce(or_, [keys[f"k{i}"] == 1 for i in range(1, len(in_both) + 1)])
    replicated = keys.filter(keys["k0"] == 1, in_any)
    return int(fetch_integers(replicated.aggregate(n=replicated.count()))["n"][0])


def fetch_together(
    cells: Any, target: Target, digits: Sequence[Digits], DiSCO: Sequence[int]
) -> tuple[int, int]:
    """The GT records of a target that count as `any` and as `agreed`; `cells` as `cells.count_cells`.

    `DiSCO` are those that each synthesis discloses: if one alone does, none agrees with it, and the database
    need not be asked.
    """
    if np.count_nonzero(DiSCO) < _SEVERAL:
        return sum(DiSCO), 0
    import ibis

    tables = len(DiSCO) + 1

    def number(condition: Any) -> Any:
        return condition.ifelse(int64(1), int64(0))

    of_key = ibis.window(group_by=word_columns(cells))
    levels = {f"l{i}": as_int64(number(cells[f"n{i}"] > 0).sum().over(of_key)) for i in range(1, tables)}
    rows = cells.mutate(**levels)
    rows = cells_left(rows, target.exclusions, digits) if target.exclusions else rows.filter(rows["n0"] > 0)
    one_level = {i: rows[f"l{i}"] == 1 for i in range(1, tables)}
    disclosing = reduce(add, [number(condition) for condition in one_level.values()])
    rightly = reduce(add, [number(condition & (rows[f"n{i}"] > 0)) for i, condition in one_level.items()])
    rows = rows.select(d=as_int64(rows["n0"]), disclosing=disclosing, rightly=rightly)
    agree = (rows["rightly"] > 1) & (rows["rightly"] == rows["disclosing"])
    nothing = int64(0)
    counted = fetch_integers(
        rows.aggregate(
            any=as_int64((rows["rightly"] > 0).ifelse(rows["d"], nothing).sum().coalesce(nothing)),
            agreed=as_int64(agree.ifelse(rows["d"], nothing).sum().coalesce(nothing)),
        )
    )
    return int(counted["any"][0]), int(counted["agreed"][0])
