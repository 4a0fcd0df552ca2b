"""The public names of the library, as a page in Markdown made from their signatures and docstrings.

Docstrings are plain text with `code` in backticks, which is Markdown already: only sections and examples
have to be told apart.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, get_args

import disclosure_pipeline as dp

_SECTION = re.compile(r"^(Raises|Example|Examples|Args|Returns|Source|Sources|Note):$")
# An annotation with the function that validates it, whose address is another each time.
_VALIDATED = re.compile(r"typing\.Annotated\[(.+?), AfterValidator\(func=<[^>]+>\)\]")
_ENTRY = re.compile(r"^(\s*)(\w[\w.]*): (.*)$")


def page() -> str:
    """Functions first, then the kinds of results and arguments, then errors."""
    parts: list[tuple[str, Callable[[Any], bool]]] = [
        ("Functions", inspect.isfunction),
        ("Classes", _is_class),
        ("Types", lambda value: isinstance(value, UnionType)),
        ("Errors", _is_error),
    ]
    sections = []
    for title, belongs in parts:
        names = [name for name in dp.__all__ if belongs(getattr(dp, name))]
        sections += [f"## {title}", *(_entry(name, getattr(dp, name)) for name in names)]
    return "\n\n".join(sections) + "\n"


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def _is_class(value: Any) -> bool:
    return inspect.isclass(value) and not _is_error(value)


def _entry(name: str, value: Any) -> str:
    return "\n\n".join([f"### {name}", *_body(name, value)])


def _body(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, UnionType):
        kinds = " | ".join(kind.__name__ for kind in get_args(value))
        yield f"```python\n{name} = {kinds}\n```"
        yield "A table, as every function takes it; `ArrowTable` is one of Polars, Arrow, DuckDB or Ibis."
        return
    if callable(value) and not _is_error(value):
        yield f"```python\n{_signature(name, value)}\n```"
    yield _markdown(value)
    if inspect.isclass(value):
        for inner, member in _members(value):
            yield f"#### {name}.{inner}"
            if callable(member):
                yield f"```python\n{_signature(inner, member)}\n```"
            yield _markdown(member)


def _members(of: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties that the class itself or a parent of this package defines, with a docstring."""
    for name, member in inspect.getmembers(of):
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "func", function)
        own = getattr(function, "__module__", "") or ""
        if name.startswith("_") or not own.startswith("disclosure_pipeline") or inspect.isclass(member):
            continue
        if inspect.isfunction(function) or inspect.ismethod(function):
            yield name, member


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    parameters = [
        _VALIDATED.sub(r"\1", str(value))
        for name, value in signature.parameters.items()
        if not name.startswith("_")
    ]
    returns = signature.return_annotation
    arrow = "" if returns is inspect.Signature.empty or inspect.isclass(value) else f" -> {returns}"
    shown = f"{name}({', '.join(parameters)}){arrow}"
    if len(shown) <= 88:  # noqa: PLR2004 (what fits the page)
        return shown
    return f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){arrow}"


def _markdown(value: Any) -> str:
    return "\n".join(_blocks((inspect.getdoc(value) or "").splitlines()))


def _blocks(lines: list[str]) -> Iterator[str]:
    in_section = in_example = False
    for raw in lines:
        line = raw
        if section := _SECTION.match(line):
            if in_example:
                yield "```"
                in_example = False
            in_section = True
            yield f"**{section[1]}**\n"
            continue
        if in_section and line and not line.startswith(" "):
            in_section = False
            yield ""
        if in_section:
            line = line.removeprefix("    ")
        if line.startswith(">>> ") and not in_example:
            in_example = True
            yield "```python"
        if in_example:
            if line.strip():
                yield line
                continue
            yield "```"
            in_example = False
        if in_section and (entry := _ENTRY.match(line)) and not entry[1]:
            yield f"- `{entry[2]}`: {entry[3]}"
        else:
            yield line
    if in_example:
        yield "```"
