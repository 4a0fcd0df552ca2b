"""Every column of every frame with its words, as a page in Markdown made from the glossary of the package."""

from __future__ import annotations

from collections.abc import Mapping

from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.measures.words import Words

_HEAD = "| column | name | in words | unit | high is | source |\n|---|---|---|---|---|---|\n"


def page() -> str:
    """Return a table for each frame, or for each function that returns one."""
    return "\n".join(_section(frame, columns) for frame, columns in COLUMNS.items())


def _section(frame: str, columns: Mapping[str, Words]) -> str:
    rows = [
        f"| {name} | {words.title} | {words.sentence} | {words.unit_and_denominator} | {words.high_is} "
        f"| {words.source} |\n"
        for name, words in columns.items()
    ]
    return f"## `{frame}`\n\n{_HEAD}{''.join(rows)}"
