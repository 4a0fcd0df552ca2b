"""Persons and their events, person by person: each summary as its sentence says it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
"""A record by column; None is missing."""


def events_of(person: Row, events: Sequence[Row], unit: str) -> list[Row]:
    return [event for event in events if event[unit] == person[unit]]


def first(events: Sequence[Row], order: str, name: str, *, last: bool = False) -> Any:
    """Return the value of the earliest event, the smallest of several; None only if there is no other."""
    extreme = max if last else min
    dated = [event for event in events if event[order] is not None]
    if dated:
        moment = extreme(event[order] for event in dated)
        dated = [event for event in dated if event[order] == moment]
    values = [event[name] for event in dated or events if event[name] is not None]
    return extreme(values) if values else None


def most_frequent(events: Sequence[Row], name: str) -> Any:
    """Return the smallest of the values that are there most often."""
    values = sorted(event[name] for event in events if event[name] is not None)
    return max(values, key=values.count) if values else None


def multiset(events: Sequence[Row], names: Sequence[str], length: int | None) -> str:
    """Return all events, each as JSON writes it, in order of these texts."""
    texts = sorted(
        json.dumps([event[name] for name in names] if len(names) > 1 else event[names[0]], ensure_ascii=False)
        for event in events
    )
    return f"[{', '.join(texts[:length])}]"


def joined(
    persons: Sequence[Row],
    events: Sequence[Row],
    unit: str,
    order: str,
    summarised: Sequence[str],
    listed: Sequence[str],
    length: int | None,
) -> list[dict[str, Any]]:
    rows = []
    for person in persons:
        own = events_of(person, events, unit)
        row = {**person, "events.count": len(own), "events.multiset": multiset(own, listed, length)}
        for name in summarised:
            row[f"events.{name}.first"] = first(own, order, name)
            row[f"events.{name}.last"] = first(own, order, name, last=True)
            row[f"events.{name}.most_frequent"] = most_frequent(own, name)
        rows.append(row)
    return rows
