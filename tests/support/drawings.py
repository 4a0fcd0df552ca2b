"""The charts of pages, drawn once for all forked children: each would start the drawing library anew."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from disclosure_pipeline.evidence.page import charts
from support.gates import quick_folder


@contextmanager
def remembered_drawings() -> Iterator[None]:
    """What a child draws from figures, the others take from a folder: also those that run meanwhile."""
    with quick_folder() as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("_draw_rows", "_draw_map"):
            patch.setattr(charts, name, _remember(folder, name, getattr(charts, name)))
        yield


def _remember(folder: Path, name: str, draw: Callable[..., str]) -> Callable[..., str]:
    def drawn(*figures: Any) -> str:
        kept = folder / hashlib.sha256(repr((name, figures)).encode()).hexdigest()
        if not kept.exists():
            partial = kept.with_suffix(f".{os.getpid()}")
            partial.write_text(draw(*figures), encoding="utf-8")
            partial.replace(kept)  # whole or not there: a child may be killed at any moment
        return kept.read_text(encoding="utf-8")

    return drawn
