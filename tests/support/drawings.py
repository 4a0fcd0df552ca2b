"""The charts of pages, drawn once for all forked children: each would start the drawing library anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from disclosure_pipeline.evidence.page import charts

Drawings = dict[tuple[str, tuple[Any, ...]], str]


@contextmanager
def remembered_drawings() -> Iterator[Drawings]:
    """What was drawn from which figures. A forked child takes what is in it, and draws what is not."""
    drawings: Drawings = {}

    def remember(name: str, draw: Callable[..., str]) -> Callable[..., str]:
        def drawn(*figures: Any) -> str:
            if (name, figures) not in drawings:
                drawings[name, figures] = draw(*figures)
            return drawings[name, figures]

        return drawn

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_draw_rows", "_draw_map"):
            patch.setattr(charts, name, remember(name, getattr(charts, name)))
        yield drawings
