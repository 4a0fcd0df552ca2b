"""The fenced blocks of the pages in docs/, and their code run: it must print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

from support.paths import DOCS

BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each fenced block."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(block[1], block[2]) for block in BLOCK.finditer(text)]


def run_code(page: str, begins_with: str | None = None) -> None:
    """Run a page's code in one namespace; what a block prints is the `text` block after it, or nothing.

    A page may begin with the tables that another one makes.
    """
    names: dict[str, Any] = {}
    if begins_with:
        _run_blocks(begins_with, names)
    _run_blocks(page, names)


def _run_blocks(page: str, names: dict[str, Any]) -> None:
    of_page = [block for block in blocks(page) if block[0] in {"python", "text"}]
    assert of_page
    for i, (language, text) in enumerate(of_page):
        if language == "text":
            assert of_page[i - 1][0] == "python", f"no code prints block {i}"
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"{page}, block {i}", "exec"), names)
        shown = of_page[i + 1][1] if i + 1 < len(of_page) and of_page[i + 1][0] == "text" else ""
        assert _without_trailing_blanks(printed.getvalue()) == _without_trailing_blanks(shown), f"block {i}"


def _without_trailing_blanks(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]
