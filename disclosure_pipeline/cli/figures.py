"""The figures of two tables as a report: a summary for the terminal, every figure for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from disclosure_pipeline.cli.printing import Format, Report, Table
from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evaluation.result import Disclosure

_FRAMES = (
    *("identity", "together_identity", "attribute", "together"),
    *("cap", "key_overlap", "target_overlap"),
)
_COLUMNS = ("frame", "synthesis", "target", "key", "measure", "name", "value", "unit", "meaning")
_SHOWN = ("Dorig", "DiSCO", "DiSCO_others", "DiSCO_beyond")


def report_figures(result: Disclosure, shown_as: Format) -> Report:
    """The result of `disclosure()`: the summary as tables, or a row for every figure as JSON and CSV."""
    facts: dict[str, Any] = {
        "keys": list(map(str, result.keys)),
        "targets": list(map(str, result.targets)),
        "records of the ground truth": result.N_d,
        "records of the synthetic tables": list(result.N_s),
        "engine": result.engine,
        "warnings": list(result.warnings),
    }
    heading = f"Disclosure from the keys {', '.join(map(str, result.keys))}"
    if shown_as != "table":
        plain = {name.replace(" ", "_"): fact for name, fact in facts.items()}
        return Report(heading, plain, (Table("figures", "Figures", _COLUMNS, list(_list_figures(result))),))
    facts.pop("engine")
    if not result.warnings:
        facts.pop("warnings")
    identity = result.identity.reset_index()
    summary = result.summary().reset_index()
    tables = (
        _to_table("identity", "Identity disclosure: percent of the records", identity),
        _to_table("attribute", "Attribute disclosure: percent of the records", summary),
        Table(
            "meanings", "What the figures say", ("figure", "name", "meaning", "unit"), _list_meanings(result)
        ),
    )
    return Report(heading, facts, tables)


def _to_table(name: str, title: str, frame: pd.DataFrame) -> Table:
    rows = [{str(column): value for column, value in row.items()} for row in frame.to_dict("records")]
    return Table(name, title, tuple(map(str, frame.columns)), rows)


def _list_meanings(result: Disclosure) -> list[dict[str, Any]]:
    names = [("identity", str(name)) for name in result.identity.columns]
    names += [("attribute", name) for name in _SHOWN if name in result.attribute.columns]
    return [
        {
            "figure": name,
            "name": words.title,
            "meaning": words.sentence,
            "unit": words.unit_and_denominator,
        }
        for frame, name in names
        if (words := find_words(name, frame)) is not None
    ]


def _list_figures(result: Disclosure) -> Iterator[dict[str, Any]]:
    """A row for every figure: where it stands, its value, unit and meaning."""
    for frame_name in _FRAMES:
        frame = result.frame(frame_name)
        labels = [str(name) for name in frame.index.names if name in _COLUMNS]
        for row in frame.reset_index().to_dict("records"):
            place = {label: row[label] for label in labels}
            for measure in map(str, frame.columns):
                words = find_words(measure, frame_name)
                yield {
                    "frame": frame_name,
                    **place,
                    "measure": measure,
                    "name": words.title if words else "",
                    "value": row[measure],
                    "unit": words.unit_and_denominator if words else "",
                    "meaning": words.sentence if words else "",
                }
