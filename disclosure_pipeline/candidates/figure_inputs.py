"""What the figures of a gate are made of: the parts of a synthetic table that each of them depends on.

Whoever changes one column everywhere, and one record of the others, asks about one person all the same: in
every figure that does not read that column. So tables are compared in each of these parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.record_hashes import Part

# Of a part it is asked whether tables differ in a few records; sketches of so many buckets tell that.
_BITS = 9


@dataclass(frozen=True)
class FigureInput:
    """A part of a table, and what messages call it.

    `is_whole`: of the whole table, or of its keys with all targets; tables that are near in these are near,
    be it by chance.
    """

    label: str
    part: Part
    is_whole: bool = False


def list_figure_inputs(gate: Gate) -> tuple[FigureInput, ...]:
    """The whole table first, then each part that a figure of the gate is made of, once.

    The guards read all columns, all but one, the targets alone, and all but numbers; the measures of identity
    the keys, those of a target the keys with it, grouped as they are measured, and not grouped where it is
    predicted.
    """
    as_measured = [
        ("the keys", gate.keys),
        *((f"the keys and {target!r}", (*gate.keys, target)) for target in gate.targets),
    ]
    as_they_are = [
        *((f"all columns but {name!r}", _leave_out(gate.published, name)) for name in gate.published),
        ("the targets", gate.targets),
        ("all columns but numbers", _leave_out_numbers(gate)),
        *(as_measured[1:] if gate.measures.prediction else []),
    ]
    inputs = [
        FigureInput("all columns", Part(gate.published), is_whole=True),
        FigureInput("the keys and targets", Part(gate.measured), is_whole=True),
        *(
            FigureInput(label, Part(columns, _are_grouped(gate, columns), _BITS))
            for label, columns in as_measured
        ),
        *(FigureInput(label, Part(columns, bits=_BITS)) for label, columns in as_they_are),
    ]
    distinct: dict[tuple[frozenset[str], bool], FigureInput] = {}
    for figure_input in inputs:
        part = figure_input.part
        if part.columns:
            distinct.setdefault((frozenset(part.columns), part.in_groups), figure_input)
    return tuple(distinct.values())


def _are_grouped(gate: Gate, columns: Sequence[str]) -> bool:
    return any(map(gate.grouping.grouped, columns))


def _leave_out(columns: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(column for column in columns if column != name)


def _leave_out_numbers(gate: Gate) -> tuple[str, ...]:
    return tuple(name for name in gate.published if gate.columns[name].type not in {"integer", "number"})
