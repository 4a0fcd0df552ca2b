"""Writes what the code says of itself into the documents, between markers: `make reference`.

The attributes of a gate from its model, the command line from its commands, the library from its docstrings,
the glossary from the words beside each measure, what was detected from what tests have measured, the
gallery's pictures from the code that is shown there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import code_reference
import column_reference
import command_reference
import gallery
import gate_reference
import measured_strengths

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "images" / "gallery"

PARTS: dict[str, Callable[[], str]] = {
    "gate": gate_reference.page,
    "bounds": gate_reference.bounds_page,
    "commands": command_reference.page,
    "library": code_reference.page,
    "glossary": column_reference.page,
    "strengths": measured_strengths.strengths_page,
    "honest": measured_strengths.honest_page,
}
PART = re.compile(r"^<!-- generated: (\w+) -->\n(.*?)^<!-- /generated -->$", re.DOTALL | re.MULTILINE)


def fill_in(text: str) -> str:
    """Return a document with its generated parts written anew."""
    return PART.sub(
        lambda part: f"<!-- generated: {part[1]} -->\n\n{PARTS[part[1]]()}\n<!-- /generated -->", text
    )


def list_documents() -> list[Path]:
    """Return the documents that have generated parts."""
    return [path for path in sorted(DOCS.rglob("*.md")) if PART.search(path.read_text(encoding="utf-8"))]


def main() -> None:
    """Write every generated part and picture."""
    for path in list_documents():
        path.write_text(fill_in(path.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    gallery.draw((DOCS / "gallery.md").read_text(encoding="utf-8"), PICTURES)


if __name__ == "__main__":
    main()
