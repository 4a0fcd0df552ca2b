"""Naming tables, columns and arguments in messages, without showing values of a table."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from numbers import Real
from typing import Any

GROUND_TRUTH = "the ground truth"
HOLDOUT = "the holdout"

_WITH_ONE_SYNTHESIS = 2
_LONGEST = 200  # of an argument that is shown
_MOST_LISTED = 12  # of known names

# Characters that format text: not an underscore inside a word, nor brackets without a link.
_QUOTED = re.compile(r'"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_MARKDOWN = re.compile(r"[\\`*|<&]|(?<![^\W_])_|_(?![^\W_])|\](?=[(:\[])|~(?=~)|:(?=//)")


def table_names(tables: int) -> tuple[str, ...]:
    """Return the tables' names in messages: GT's, then "the synthetic table" or "synthetic table 1", 2, …."""
    if tables == _WITH_ONE_SYNTHESIS:
        return (GROUND_TRUTH, "the synthetic table")
    return (GROUND_TRUTH, *(f"synthetic table {i}" for i in range(1, tables)))


def name_events(table: str) -> str:
    """Return the name, in messages, of the events that belong to a table of persons.

    >>> name_events(GROUND_TRUTH)
    'the events of the ground truth'
    """
    return f"the events of {table}"


def describe_argument(argument: Any) -> str:
    """Describe an argument for a message: by its type, unless it is a short text or a number."""
    if not isinstance(argument, (str, int, float, Real)):
        return type(argument).__name__
    try:
        text = repr(argument)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of too many digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def suggest_names(name: Any, known: Iterable[Any], otherwise: str = "Its columns are") -> str:
    """Return a sentence with the known names that resemble an unknown one, or else with known names.

    `otherwise` begins the list of known names; of many, it names the first and how many there are.

    >>> suggest_names("gendr", ["age", "gender"])
    "Did you mean 'gender'?"
    """
    names = [str(other) for other in known]
    if similar := find_similar(name, names):
        return f"Did you mean {listed(similar)}?"
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"{otherwise} {listed(names[:_MOST_LISTED])}{more}."


def find_similar(name: Any, names: Sequence[str]) -> list[str]:
    """Return the name that differs in case only, or else up to three that resemble it.

    >>> find_similar("disco", ["DiSCO", "DIS"])
    ['DiSCO']
    """
    same = [other for other in names if other.casefold() == str(name).casefold()]
    return same or difflib.get_close_matches(str(name), names, n=3)


def listed(names: Iterable[Any]) -> str:
    """Quote the names and join them with commas."""
    return ", ".join(repr(name) for name in names)


def quote_name(name: Any) -> str:
    r"""Quote the name of a column, so that `replace_quoted` finds it in a sentence.

    >>> quote_name('"net" income')
    '"\\"net\\" income"'
    """
    return json.dumps(str(name), ensure_ascii=False)


def replace_quoted(text: str, replace: Callable[[str], str]) -> str:
    """Replace each name that `quote_name` quoted.

    >>> replace_quoted(f"with {quote_name('sex')} and {quote_name('age')}", str.upper)
    'with SEX and AGE'
    """
    return _QUOTED.sub(lambda quoted: replace(json.loads(quoted[0])), text)


def escape_unseen(text: str) -> str:
    r"""Escape invisible characters, such as direction marks and control characters.

    >>> escape_unseen("age\u202e\n")
    'age\\u202e\\n'
    """
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def escape_unseen_in_lines(text: str) -> str:
    """Escape the invisible characters of each line, but keep line breaks."""
    return "\n".join(map(escape_unseen, text.split("\n")))


def escape_markdown(text: str) -> str:
    r"""Escape a name or sentence so that Markdown shows it literally.

    >>> escape_markdown("DiSCO[*net_income*]")
    'DiSCO[\\*net_income\\*]'
    """
    return _MARKDOWN.sub(r"\\\g<0>", escape_unseen(text))


def capitalized(text: str) -> str:
    """Return the text with a capital first letter; unlike str.capitalize, leave the rest unchanged."""
    return text[:1].upper() + text[1:]


def names_in_all(tables: Sequence[Collection[Any]]) -> list[Any]:
    """Return the names that all tables have, in the order of the first.

    >>> names_in_all([("sex", "age", "job"), ("job", "sex")])
    ['sex', 'job']
    """
    first, *others = tables
    return [name for name in first if all(name in table for table in others)]
