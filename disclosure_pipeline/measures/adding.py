"""Results that add up: what is counted is a sum over keys, so the records may be parted by key in any way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

Part = TypeVar("Part")


def add_up(parts: Sequence[Part]) -> Part:
    """Results of one class, added up field by field; a field can name another way (`metadata["add"]`)."""
    return parts[0] if len(parts) == 1 else cast(Part, _add_up(parts))


def _add_up(parts: Sequence[Any]) -> Any:
    first: Any = parts[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        return tuple(_add_up(entries) for entries in zip(*parts, strict=True))
    if hasattr(first, "joined"):
        return first.joined(parts)
    if not is_dataclass(first):
        return sum(parts[1:], start=first)
    added = {
        field.name: field.metadata.get("add", _add_up)([getattr(part, field.name) for part in parts])
        for field in fields(first)
    }
    return first.__class__(**added)
