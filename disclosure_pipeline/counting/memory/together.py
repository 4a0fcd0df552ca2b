"""What all syntheses disclose together, from the counts and the sorted records that an engine has anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.counting.memory.packing import PackedRecords
from disclosure_pipeline.counting.memory.radix import Codes
from disclosure_pipeline.counting.targets import Target
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.exclusions import are_left
from disclosure_pipeline.measures.frequency import first_of_run, run_lengths
from disclosure_pipeline.measures.together import (
    Disclosed,
    TogetherCounts,
    count_unique_in_any,
    disclosed_of_tables,
)


def count_in_cells(target: Target, cells: Sequence[IntArray], key_levels: IntArray) -> tuple[int, int]:
    """`any` and `agreed` of some q, whose `cells` are the records of each table in all of them (shape: q, t).

    `key_levels` are the level of each key (shape: keys, q).
    """
    d, *of_syntheses = cells
    left = d
    if target.exclusions:
        t = np.broadcast_to(np.arange(d.shape[1]), d.shape)
        left = d * are_left(target.exclusions, t, d, lambda k: key_levels[k][:, None])
    return disclosed_of_tables(of_syntheses).count(left)


def count_in_sorted_records(packed: PackedRecords, tables: Sequence[Codes]) -> TogetherCounts:
    """Of the records of each table (GT first) that have some q; those of a table ascend."""
    if not len(tables[0]):
        return TogetherCounts.from_pairs(0, [(0, 0)] * len(packed.targets))
    ground_truth = _RecordsOfTable.from_packed(packed, tables[0])
    words, number = packed.target_digits(tables[0]), ground_truth.counts
    shape, dtype = (len(packed.targets), len(words)), np.min_scalar_type(len(tables))
    disclosing, rightly = np.zeros(shape, dtype=dtype), np.zeros(shape, dtype=dtype)
    s_q_of_tables = []
    for records in tables[1:]:
        if not len(records):
            continue
        synthesis = _RecordsOfTable.from_packed(packed, records)
        place = np.minimum(np.searchsorted(synthesis.q, ground_truth.q), len(synthesis.q) - 1)
        present = synthesis.q[place] == ground_truth.q
        s_q_of_tables.append(np.where(present, synthesis.counts[place], 0))
        several = _targets_of_several_levels(packed, synthesis, records)
        example = np.repeat(packed.target_digits(records[synthesis.first])[place], number)
        for i, has_several in enumerate(several):
            one_level = np.repeat(present & ~has_several[place], number)
            disclosing[i] += one_level
            rightly[i] += one_level & (packed.t(words, i) == packed.t(example, i))
    counted = [
        Disclosed(disclosing[i], rightly[i]).count(_count_left(packed, i, tables[0], ground_truth))
        for i in range(len(packed.targets))
    ]
    return TogetherCounts.from_pairs(count_unique_in_any(ground_truth.counts, s_q_of_tables), counted)


@dataclass(frozen=True)
class _RecordsOfTable:
    """The q of some sorted records: their codes, their first records, and how many each has."""

    q: Codes
    first: IntArray
    counts: IntArray

    @classmethod
    def from_packed(cls, packed: PackedRecords, records: Codes) -> _RecordsOfTable:
        codes = packed.q(records)
        first = np.flatnonzero(first_of_run(codes))
        return cls(codes[first], first, run_lengths(first, len(records)))


def _targets_of_several_levels(
    packed: PackedRecords, table: _RecordsOfTable, records: Codes
) -> list[np.ndarray]:
    """For each target, which q of the table have several levels of it."""
    words = packed.target_digits(records)
    differences = words ^ np.repeat(words[table.first], table.counts)
    in_q = np.bitwise_or.reduceat(differences, table.first)
    return [packed.t(in_q, i) > 0 for i in range(len(packed.targets))]


def _count_left(packed: PackedRecords, i: int, records: Codes, table: _RecordsOfTable) -> IntArray:
    """1 for each GT record that the exclusions of a target leave, else 0."""
    exclusions = packed.targets[i].exclusions
    if not exclusions:
        return np.ones(len(records), dtype=np.int64)
    t = packed.t(records, i).astype(np.int64)
    q = np.repeat(np.arange(len(table.q)), table.counts)
    _, cell, d = np.unique(q * packed.targets[i].column.size + t, return_inverse=True, return_counts=True)
    key_levels = packed.keys.levels_of(table.q)
    return are_left(exclusions, t, d[cell], lambda k: key_levels[k][q]).astype(np.int64)
