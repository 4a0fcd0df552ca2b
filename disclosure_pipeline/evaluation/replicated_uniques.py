"""`replicated_uniques()`: the synthetic records that point at one person."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.counting.tables_in_memory import read_frames
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.comparability import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.frames import show_frame
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.identity import unique_records
from disclosure_pipeline.tables.alignment import check_tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.sources import Syntheses, TableSource

Which = Literal["replicated", "in_original"]


@dataclass(frozen=True, repr=False, eq=False)
class ReplicatedUniques:
    """The synthetic records whose key combination is unique in their table.

    `replicated`: those that are unique in GT too; `in_original`: those that occur in GT, unique or not. Each
    has a mask for every synthesis over its records, in their order. `figures`: index synthesis; n_replicated
    and n_in_original, numbers of records, and pct_replicated and pct_in_original, percent of the SD records.
    """

    keys: tuple[Any, ...]
    replicated: tuple[npt.NDArray[np.bool_], ...]
    in_original: tuple[npt.NDArray[np.bool_], ...]
    figures: pd.DataFrame
    _syntheses: tuple[pd.DataFrame, ...]

    def remove(self, which: Which = "replicated") -> tuple[pd.DataFrame, ...]:
        """Return each synthesis without its records of `which` kind, as pandas' frame with its index.

        For a table of Polars, `table.filter(~uniques.replicated[0])` does the same.
        """
        if which not in {"replicated", "in_original"}:
            raise InputError(f"which must be 'replicated' or 'in_original', not {which!r}.")
        masks = self.replicated if which == "replicated" else self.in_original
        return tuple(frame.loc[~mask].copy() for frame, mask in zip(self._syntheses, masks, strict=True))

    def __str__(self) -> str:
        return (
            f"Records that are unique in the keys {', '.join(map(str, self.keys))}\n\n"
            f"{show_frame(self.figures)}"
        )

    __repr__ = __str__


def replicated_uniques(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> ReplicatedUniques:
    """Find the synthetic records that point at one person.

    Arguments and errors as in `disclosure()`; the tables are read into memory.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 50, 50]})
        >>> synthetic = pd.DataFrame({"sex": ["f", "m", "m"], "age": [30, 50, 60]})
        >>> uniques = dp.replicated_uniques(patients, synthetic, ["sex", "age"])
        >>> uniques.replicated[0].tolist(), uniques.in_original[0].tolist()
        ([True, False, False], [True, True, False])
        >>> [without] = uniques.remove()
        >>> without
          sex  age
        1   m   50
        2   m   60

    Source: synthpop `replicated.uniques`.
    """
    grouping = grouping_of(groups, special_values, edges)
    frames = read_frames(ground_truth, synthetic, grouping.numeric)
    tables = check_tables(frames[0], frames[1:], keys, (), grouping)
    key_columns = tables.code(tables.keys)
    warn_of_doubts(find_doubts(tables, key_columns))
    q = combine_columns(key_columns)
    syntheses = tables.frames[1:]
    replicated, in_original = zip(*(unique_records(q, i + 1) for i in range(len(syntheses))), strict=True)
    figures: dict[str, list[float]] = {}
    for name, masks in (("replicated", replicated), ("in_original", in_original)):
        numbers = [int(mask.sum()) for mask in masks]
        figures[f"n_{name}"] = list(numbers)
        figures[f"pct_{name}"] = [percent(n, len(mask)) for n, mask in zip(numbers, masks, strict=True)]
    index = pd.RangeIndex(1, len(syntheses) + 1, name="synthesis")
    return ReplicatedUniques(
        tables.keys, replicated, in_original, pd.DataFrame(figures, index=index), syntheses
    )
