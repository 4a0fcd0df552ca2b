"""Who bears the risk: groups of people, and the values that most disclosures are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.parts import Figure, Table, tabulate

_MARKS = {
    "synthetic table": ("DiSCO", charts.SYNTHETIC),
    "other people's records": ("DiSCO_others", charts.OTHERS),
}
_MOST = 12


def show_subgroups(content: Mapping[str, Any]) -> Figure | None:
    """The groups, the most exposed first; None where no groups were measured."""
    rows = [row for row in content["figures"].get("subgroups", []) if row.get("DiSCO") is not None]
    if not rows:
        return None
    rows.sort(key=lambda row: -float(row["DiSCO"]))
    shown = rows[:_MOST]
    points = [
        (f"{row['group']}", name, row[column])
        for row in shown
        for name, (column, _) in _MARKS.items()
        if row.get(column) is not None
    ]
    return Figure(
        f"{shown[0]['group']} bear the most: {shown[0]['DiSCO']:.1f} % of them can be told the target",
        charts.draw_rows(points, {name: mark for name, (_, mark) in _MARKS.items()}, "% of the group"),
        "For each group of people, how many can be told their target.",
        tabulate(
            "Groups of people, the most exposed first",
            shown,
            ["group", "target", "records", "DiSCO", "DiSCO_others", "DiSCO_beyond", "lift"],
            "subgroups",
            headings={"group": "Group", "records": "People"},
        ),
    )


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
        headings={
            "level": "Value",
            "n_level_disclosive": "People disclosed with it",
            "pct_level_disclosive": "Share of those disclosed",
            "pct_level_all": "Share of all people",
        },
    )
