"""The figures that a policy may bound, or that the page shows, as the modules of their formulas have them."""

from __future__ import annotations

from collections.abc import Mapping

from disclosure_pipeline.measures import (
    attribute,
    bands,
    cap,
    chance,
    checks,
    copies,
    exposed_groups,
    found,
    guesses,
    holdout,
    identity,
    people,
    prediction,
    protection,
    resemblance,
    sensitive_levels,
    survey,
    together,
)
from disclosure_pipeline.measures.entry import QUESTIONS, Figure

# In the order in which they are read.
_MODULES = (
    identity,
    attribute,
    chance,
    copies,
    found,
    people,
    resemblance,
    survey,
    sensitive_levels,
    exposed_groups,
    together,
    guesses,
    bands,
    cap,
    protection,
    prediction,
    checks,
    holdout,
)


_ENTRIES: tuple[Figure, ...] = tuple(entry for module in _MODULES for entry in module.FIGURES)

OF_KEYS = tuple(entry for entry in _ENTRIES if entry.adds is not None and entry.about == "")
"""The figures of the keys to which each record adds something."""

_OF_TARGETS = [entry for entry in _ENTRIES if entry.adds is not None and entry.about == "target"]

OF_TARGETS = tuple(
    entry for frame in ("attribute", "cap", "guessed") for entry in _OF_TARGETS if entry.place.frame == frame
)
"""The figures of a target to which each record adds something."""

OF_BANDS = tuple(entry for entry in _OF_TARGETS if entry.place.frame == "bands")
"""The figures of a target within a band to which each record adds something."""

FIGURES: Mapping[str, Figure] = {
    entry.name: entry
    for is_only_shown in (False, True)
    for question in QUESTIONS
    for entry in _ENTRIES
    if (entry.is_only_shown, entry.question) == (is_only_shown, question)
}
"""The figures of the long table by name, in the order of the page's questions."""

BOUNDABLE: Mapping[str, Figure] = {
    name: entry for name, entry in FIGURES.items() if entry.statistics and not entry.follows
}
"""The figures that a policy may bound; others follow them."""

DEFAULTS: Mapping[str, float] = {
    name: entry.default.bound
    for name, entry in FIGURES.items()
    if entry.default is not None and entry.statistics and not entry.high_is_safe
}
"""The default bound of each risk that every gate bounds."""
