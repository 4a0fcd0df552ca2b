"""Who bears the risk: groups of people, and the values that most disclosures are about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from disclosure_pipeline.evaluation.glossary import find_heading
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.parts import Figure, Table, name_marks, tabulate

_MARKS = {"DiSCO": charts.SYNTHETIC, "DiSCO_others": charts.OTHERS}
_MOST = 12
_INTERVAL = re.compile(r"[(\[](-inf|~?[-\d.]+(?: \(\d+\))?), (inf|~?[-\d.]+(?: \(\d+\))?)\)")


def show_subgroups(content: Mapping[str, Any]) -> Figure | None:
    """The groups, the most exposed first; None where no groups were measured."""
    rows = [row for row in content["figures"].get("subgroups", []) if row.get("DiSCO") is not None]
    if not rows:
        return None
    worst: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: -float(row["DiSCO"])):
        worst.setdefault(_name_group(row), {**row, "group": _name_group(row)})
    shown = list(worst.values())[:_MOST]
    points = [
        (row["group"], find_heading(column, "subgroups"), row[column])
        for row in shown
        for column in _MARKS
        if row.get(column) is not None
    ]
    return Figure(
        _state_worst(shown[0]),
        charts.draw_rows(points, name_marks(_MARKS, "subgroups"), "% of the group"),
        "For each group of people, how many can be told their target.",
        tabulate(
            _caption(len(shown), len(worst), shown[0]["target"]),
            shown,
            ["group", "records", "DiSCO", "DiSCO_others", "DiSCO_beyond", "lift"],
            "subgroups",
        ),
    )


def _name_group(row: Mapping[str, Any]) -> str:
    """The column and the level; an interval of numbers in words, with the sign of edges that are rounded."""
    interval = _INTERVAL.fullmatch(str(row["group"]))
    if interval is None:
        return f"{row['column']}: {row['group']}"
    low, high = interval.groups()
    if low == "-inf":
        return f"{row['column']}: below {high}"
    return f"{row['column']}: {low} or more" if high == "inf" else f"{row['column']}: {low} to below {high}"


def _state_worst(row: Mapping[str, Any]) -> str:
    return (
        f"Most exposed are people with {row['group']}: {row['DiSCO']:.1f} % can be told their {row['target']}"
    )


def _caption(shown: int, measured: int, target: str) -> str:
    which = f"The {shown} most exposed of {measured} groups" if shown < measured else "Groups of people"
    return f"{which}, by how many of each can be told their {target}"


def excludes_records(content: Mapping[str, Any]) -> bool:
    """Whether the policy leaves records out of its figures, which the groups have all the same."""
    of_GT = [row for row in content["figures"]["excluded"] if row["table"] == "original"]
    return any(row["remaining"] != content["figures"]["N_d"] for row in of_GT)


def list_flagged_levels(content: Mapping[str, Any]) -> Table | None:
    """The values that make up most of what is disclosed; None where no check flags one."""
    rows = content["figures"]["one_way"]
    if not rows:
        return None
    return tabulate(
        "Values that most of what is disclosed is about",
        rows,
        ["target", "level", "n_level_disclosive", "pct_level_disclosive", "pct_level_all"],
        "one_way",
    )
