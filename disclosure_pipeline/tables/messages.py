"""Name tables, columns and arguments in messages, never by a value of a table."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Sequence
from numbers import Real
from typing import Any

GROUND_TRUTH = "the ground truth"
HOLDOUT = "the holdout"

_WITH_ONE_SYNTHESIS = 2

# Signs that format the text around them: no underscore inside a word, no brackets without a link.
_MARKDOWN = re.compile(r"[\\`*|<&]|(?<![^\W_])_|_(?![^\W_])|\](?=[(:\[])|~(?=~)|:(?=//)")


def table_names(tables: int) -> tuple[str, ...]:
    """Return what messages call the tables: GT, then "the synthetic table" or "synthetic table 1", 2, …."""
    if tables == _WITH_ONE_SYNTHESIS:
        return (GROUND_TRUTH, "the synthetic table")
    return (GROUND_TRUTH, *(f"synthetic table {i}" for i in range(1, tables)))


def name_events(table: str) -> str:
    """Return what messages call the events of the people of a table.

    >>> name_events(GROUND_TRUTH)
    'the events of the ground truth'
    """
    return f"the events of {table}"


def describe_argument(argument: Any) -> str:
    """Describe an argument for a message: anything but text and numbers may hold values of a table."""
    return repr(argument) if isinstance(argument, (str, int, float, Real)) else type(argument).__name__


def suggest_names(name: Any, known: Iterable[Any]) -> str:
    """Return a sentence with the known names that resemble one that is not known, or with all of them."""
    names = [str(other) for other in known]
    close = difflib.get_close_matches(str(name), names, n=3)
    return f"Did you mean {listed(close)}?" if close else f"Its columns are {listed(names)}."


def listed(names: Iterable[Any]) -> str:
    """Return the names in quotation marks, with commas between them."""
    return ", ".join(repr(name) for name in names)


def escape_unseen(text: str) -> str:
    r"""Write letters that cannot be seen, such as marks of direction and control characters, as escapes.

    >>> escape_unseen("age\u202e\n")
    'age\\u202e\\n'
    """
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def escape_unseen_in_lines(text: str) -> str:
    """Escape the unseen letters of each line; the lines stay."""
    return "\n".join(map(escape_unseen, text.split("\n")))


def escape_markdown(text: str) -> str:
    r"""Write a name or sentence so that Markdown shows it letter by letter.

    >>> escape_markdown("DiSCO[*net_income*]")
    'DiSCO[\\*net_income\\*]'
    """
    return _MARKDOWN.sub(r"\\\g<0>", escape_unseen(text))


def capitalized(text: str) -> str:
    """Return the text as a sentence begins; unlike str.capitalize, the rest stays as it is."""
    return text[:1].upper() + text[1:]


def names_in_all(tables: Sequence[Collection[Any]]) -> list[Any]:
    """Return the names that all tables have, in the order of the first.

    >>> names_in_all([("sex", "age", "job"), ("job", "sex")])
    ['sex', 'job']
    """
    first, *others = tables
    return [name for name in first if all(name in table for table in others)]
