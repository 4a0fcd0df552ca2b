"""The page of the documentation that lists every column with its words."""

from __future__ import annotations

from disclosure_pipeline.evaluation.glossary import FRAMES

_HEADING = """# Every column in words

Written from the words that stand beside each measure in the code: a test holds this page to them. \
[The measures](measures.md) has the formulas, and when to use which.
"""


def write_glossary() -> str:
    """The page, with a table for each frame, or for each function that returns one."""
    parts = [_HEADING]
    for frame, columns in FRAMES.items():
        parts.append(f"## `{frame}`\n")
        rows = [
            f"| {name} | {words.title} | {words.sentence} | {words.unit_and_denominator} | {words.high_is} "
            f"| {words.source} |"
            for name, words in columns.items()
        ]
        head = ["| column | name | in words | unit | high is | source |", "|---|---|---|---|---|---|"]
        parts.append("\n".join([*head, *rows]) + "\n")
    return "\n".join(parts)
