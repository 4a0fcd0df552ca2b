"""The entries of the columns that only the frames of a result have, made of their words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.entry import GROUPS, About, Figure, Place


def _list_further() -> Iterator[Figure]:
    """Yield the columns of the frames that no figure has, under names such as attribute.Dsyn."""
    abouts: dict[str, About] = {}
    taken: dict[str, set[str]] = {}
    for entry in FIGURES.values():
        for place in (entry.place, entry.weighed or entry.place):
            for frame in (place.frame, *(entry.also if place is entry.place else ())):
                if not place.about or frame in entry.also:
                    abouts.setdefault(frame, entry.about)
                taken.setdefault(frame, set()).update(place.columns.values())
    for frame, about in abouts.items():
        named = {*taken[frame], *GROUPS.get(frame, ()), "within"}
        for column, words in COLUMNS[frame].items():
            if column not in named:
                yield Figure(f"{frame}.{column}", words, Place(frame, column), about=about)


FURTHER: Mapping[str, Figure] = {entry.name: entry for entry in _list_further()}
"""The figures that stand in the library's frames alone: neither bounded, shown nor published."""


def list_entries() -> list[Figure]:
    """Return the entries of all columns of all frames."""
    return [*FIGURES.values(), *FURTHER.values()]


def find_entry(name: str) -> Figure | None:
    """Return the entry of a figure of the long table; None if this version has none."""
    return FIGURES.get(name) or FURTHER.get(name)
