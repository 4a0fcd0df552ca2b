"""Tables as an intruder compares them: key combinations, combinations of sensitive levels, the attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from disclosure_pipeline.evaluation.protection_arguments import check_not_all_missing
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import Keys, combine_keys, frequency_tables
from disclosure_pipeline.measures.protection import Attack, Baselines, attack, baselines
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.grouping import bin_by_width
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class Sensitive:
    """The combination of sensitive levels of each record, a code below `size`; `codes[0]` of GT."""

    codes: tuple[IntArray, ...]
    size: int
    baselines: Baselines

    def of_records(self, sample: IntArray) -> Sensitive:
        """The same for some GT records; the baselines stay those of all."""
        return Sensitive((self.codes[0][sample], *self.codes[1:]), self.size, self.baselines)


def code_columns(tables: Tables, continuous: Sequence[Any], bins: int) -> Mapping[Any, CodedColumn]:
    """Every column as codes, those that are continuous in bins. InputError for what cannot be used."""
    columns = {name: tables.coded(name) for name in (*tables.keys, *tables.targets)}
    for column in columns.values():
        check_not_all_missing(column, tables.names)
    for name in continuous:
        columns[name] = bin_by_width(columns[name], bins, tables.names)
    return columns


def combine_sensitive(columns: Sequence[CodedColumn]) -> Sensitive:
    """The sensitive columns as one target, and what an intruder without SD gets wrong of it."""
    if len(columns) == 1:
        codes, size, d_t = columns[0].codes, columns[0].size, columns[0].counts[0]
    else:
        t = combine_keys([column.codes for column in columns], [column.size for column in columns])
        codes, size, d_t = t.q, t.size, t.counts[0]
    levels_in_GT = [int(np.count_nonzero(column.counts[0])) for column in columns]
    return Sensitive(codes, size, baselines(levels_in_GT, d_t))


def attacks_of_syntheses(keys: Keys, target: Sensitive, method: str) -> list[Attack]:
    """The attack on the GT records from each synthesis."""
    return [attack(f, keys, method) for f in frequency_tables(keys, target.codes, target.size)]
