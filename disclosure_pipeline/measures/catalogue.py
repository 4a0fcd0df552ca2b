"""The figures that a policy may bound, or that the page shows, as the modules of their formulas have them."""

from __future__ import annotations

from collections.abc import Mapping

from disclosure_pipeline.measures import (
    attribute,
    bands,
    baselines,
    cap,
    chance,
    checks,
    copies,
    found,
    holdout,
    people,
    prediction,
    protection,
    resemblance,
    subgroups,
    survey,
    together,
)
from disclosure_pipeline.measures.entry import QUESTIONS, Figure

# In the order in which they are read.
_MODULES = (
    attribute,
    chance,
    copies,
    found,
    people,
    resemblance,
    survey,
    subgroups,
    together,
    baselines,
    bands,
    cap,
    protection,
    prediction,
    checks,
    holdout,
)


def _list_figures() -> list[Figure]:
    """Return all entries by question, those that the page only shows last."""
    entries: list[Figure] = [entry for module in _MODULES for entry in module.FIGURES]
    return sorted(entries, key=lambda entry: (entry.is_only_shown, QUESTIONS.index(entry.question)))


FIGURES: Mapping[str, Figure] = {entry.name: entry for entry in _list_figures()}
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
