"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE, Words

MISSING = "\N{EN DASH}"

_SUFFIXES: Mapping[str, str] = {
    PERCENT: " %",
    POINTS: " points",
    RECORDS: "",
    COUNT: "",
    SHARE: "",
    "standard errors": " standard errors",
}


def write_figure(value: Any, words: Words | None) -> str:
    """A figure with its unit; a dash where it is missing.

    Example:
        >>> write_figure(10.123, Words("a", "b"))
        '10.1 %'
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return MISSING if value is None else str(value)
    unit = words.unit if words else ""
    if unit in {PERCENT, POINTS}:
        return f"{value:.1f}{_SUFFIXES[unit]}"
    if unit in {RECORDS, COUNT} and float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.3g}{_SUFFIXES.get(unit, '')}"


def write_bound(clause: Mapping[str, Any], words: Words) -> str:
    """The bound of a clause, such as "at most 8.0 %"."""
    if clause["limit"] is None:
        return MISSING
    side = "at least" if clause["at_least"] else "at most"
    bound = f"{side} {write_figure(clause['limit'], words)}"
    if clause["share_of"]:
        bound += f" ({clause['bound']:g} of {clause['share_of']})"
    return bound if clause["loosened_from"] is None else f"{bound}, loosened from {clause['loosened_from']:g}"
