"""The words for a column that the page always has."""

from __future__ import annotations

from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.measures.words import Words


def require_words(name: str, frame: str) -> Words:
    """The words for a column of a frame; every frame of a dossier has them."""
    words = find_words(name, frame)
    assert words is not None, f"no words for {frame}.{name}"
    return words
