"""A Sphinx extension: writes what the code says of itself into docs/generated/, before the pages are read.

The attributes of a gate from its model, the command line from its commands, the library from its docstrings,
the glossary from the words beside each measure, what guards notice from what tests have measured, the
gallery's pictures from the code that is shown there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import code_reference
import column_reference
import command_reference
import gallery
import gate_reference
import measured_strengths

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGES = {
    "gate.md": gate_reference.page,
    "guards.md": gate_reference.guards_page,
    "commands.md": command_reference.page,
    "library.md": code_reference.page,
    "glossary.md": column_reference.page,
    "strengths.md": measured_strengths.strengths_page,
    "honest.md": measured_strengths.honest_page,
    "study.md": measured_strengths.study_page,
}


def write(app: Sphinx) -> None:
    """Write the generated parts; a file that stays the same is not touched, so that it is not read again."""
    source = Path(app.srcdir)
    folder = source / "generated"
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        text = page()
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    gallery.draw((source / "gallery.md").read_text(encoding="utf-8"), folder)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
