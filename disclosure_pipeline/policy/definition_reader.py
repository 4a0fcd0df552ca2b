"""The one reader of definitions (gates, waivers, trusted keys): YAML that means one thing, or a refusal.

Values that YAML 1.1 and 1.2, or two readers, take differently are refused with their place:
https://yaml.org/type/ and https://yaml.org/spec/1.2.2/#103-core-schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from disclosure_pipeline.errors import DisclosurePipelineError

# Far more than any definition has; what is larger is not read.
_LARGEST = 1 << 20
_DEEPEST = 100

_MERGE = "tag:yaml.org,2002:merge"
_TAG = "tag:yaml.org,2002:"
_PLAIN_BOOLEAN = ("true", "True", "TRUE", "false", "False", "FALSE")
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_PLAIN_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)?\.?[0-9]+([eE][-+][0-9]+)?|[-+]?(0|[1-9][0-9]*)\.")
# Numbers in YAML 1.2 alone: to the reader of Dagster they are text.
_NUMBER_IN_YAML_12 = re.compile(
    r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
)


class DefinitionError(DisclosurePipelineError, ValueError):
    """A definition cannot be taken as it is written; the message begins with file:line:column."""


class Document(NamedTuple):
    """One document of a YAML file: its content, and where each entry stands.

    `places`: the path of an entry (names and positions) -> its line and column, both from 1.
    """

    content: Any
    places: dict[tuple[str | int, ...], tuple[int, int]]

    def line(self, path: tuple[str | int, ...]) -> int:
        """Return the line of an entry, or of the nearest one around it: pydantic adds names to a path."""
        place: tuple[str | int, ...] = ()
        for part in path:
            place = (*place, part) if (*place, part) in self.places else place
        return self.places.get(place, (1, 1))[0]


def read_file(path: Path) -> str:
    """Return the text of a file of definitions. DefinitionError where it cannot be read, or is far too large.

    >>> read_file(Path("/nowhere/defs.yaml"))
    Traceback (most recent call last):
    disclosure_pipeline.policy.definition_reader.DefinitionError: /nowhere/defs.yaml: it cannot be read: ...
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) <= _LARGEST:
            return content.decode()
        wrong = "it is far too large for a definition"
    except OSError as error:
        wrong = f"it cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        wrong = "it is no text"
    raise DefinitionError(f"{path}: {wrong}.")


def read_definition(text: str, name: str) -> Any:
    """Return the content of YAML text that holds one document; `name` is what messages call the file.

    Times stay text. DefinitionError, with line and column, for duplicate and merge keys, names that are no
    text, tags, numbers and booleans that readers of YAML take differently, and for what is no YAML.

    >>> read_definition("repU: 8", "defs.yaml")
    {'repU': 8}
    >>> read_definition("repU: 0100", "defs.yaml")
    Traceback (most recent call last):
    disclosure_pipeline.policy.definition_reader.DefinitionError: defs.yaml:1:7: 0100 is ...
    """
    documents = read_documents(text, name)
    if len(documents) > 1:
        raise DefinitionError(f"{name}: it holds {len(documents)} documents, expected is one.")
    return documents[0].content if documents else None


def read_documents(text: str, name: str) -> list[Document]:
    r"""Return the documents of YAML text, with the places of their entries. Errors as `read_definition`.

    >>> [document.content for document in read_documents("a: 1\n---\nb: 2", "defs.yaml")]
    [{'a': 1}, {'b': 2}]
    """
    try:
        loader = _Loader(text)
        try:
            documents = []
            while loader.check_node():
                node = loader.get_node()
                places = dict(_check(node, (), ()))
                documents.append(Document(loader.construct_document(node), places))
        finally:
            loader.dispose()
        return documents
    except _AmbiguousError as refused:
        mark, wrong = refused.mark, refused.wrong
    except yaml.MarkedYAMLError as error:
        mark, wrong = error.problem_mark or error.context_mark, f"it is no YAML: {error.problem}"
    except (yaml.YAMLError, RecursionError, ValueError):
        mark, wrong = None, "it is no YAML that can be read"
    place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    raise DefinitionError(f"{name}{place}: {wrong}.")


class _AmbiguousError(Exception):
    def __init__(self, node: Any, wrong: str) -> None:
        super().__init__(wrong)
        self.mark, self.wrong = node.start_mark, wrong


class _Loader(yaml.SafeLoader):
    """A loader that leaves times as text and takes no tags."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            raise _AmbiguousError(event, f"the tag {event.tag} is not allowed: write the value itself")
        return super().compose_node(parent, index)


def _keep_text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return node.value


_Loader.add_constructor(f"{_TAG}timestamp", _keep_text)


def _check(
    node: Any, path: tuple[str | int, ...], within: tuple[Any, ...]
) -> Iterator[tuple[tuple[str | int, ...], tuple[int, int]]]:
    """Return the places of a node and all in it. `_AmbiguousError` for the first with two meanings."""
    if len(within) > _DEEPEST or any(node is other for other in within):
        raise _AmbiguousError(node, "it holds itself, or goes too deep")
    yield path, (node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _check(item, (*path, position), (*within, node))
    else:
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = _check_name(key, seen)
            for place, mark in _check(value, (*path, name), (*within, node)):
                # An entry stands where its name does.
                at_name = (key.start_mark.line + 1, key.start_mark.column + 1)
                yield place, at_name if place == (*path, name) else mark


def _check_name(key: Any, seen: dict[str, int]) -> str:
    if key.tag == _MERGE:
        raise _AmbiguousError(key, "merge keys (<<) are not allowed: write the entries themselves")
    if not isinstance(key, yaml.ScalarNode):
        raise _AmbiguousError(key, "the name of an entry must be text")
    _check_scalar(key)
    if key.tag != f"{_TAG}str":
        raise _AmbiguousError(key, f"the name {key.value} is read as no text: write it in quotes")
    if key.value in seen:
        raise _AmbiguousError(key, f"{key.value!r} is written twice, first in line {seen[key.value]}")
    seen[key.value] = key.start_mark.line + 1
    return str(key.value)


def _check_scalar(node: yaml.ScalarNode) -> None:
    if node.style is not None:  # in quotes, or a block of text
        return
    kind, text = node.tag.removeprefix(_TAG), node.value
    if kind == "bool" and text not in _PLAIN_BOOLEAN:
        raise _AmbiguousError(
            node, f"{text} is a boolean to some readers and text to others: write true, false or quotes"
        )
    if kind == "int" and not _PLAIN_INTEGER.fullmatch(text):
        raise _AmbiguousError(
            node,
            f"{text} is a number in another notation (octal, sexagesimal, binary, with _): write it in "
            "decimal digits without leading zeros, or in quotes if it is text",
        )
    special = text.lstrip("+-").lower() in {".inf", ".nan"}
    if kind == "float" and not special and not _PLAIN_NUMBER.fullmatch(text):
        raise _AmbiguousError(
            node,
            f"{text} is a number in another notation (sexagesimal, with _): write it in decimal digits, or "
            "in quotes if it is text",
        )
    if kind == "str" and _NUMBER_IN_YAML_12.fullmatch(text):
        raise _AmbiguousError(
            node,
            f"{text} is a number to some readers and text to others: write it in decimal digits without "
            "leading zeros, such as 100000.0, or in quotes if it is text",
        )
    if kind in {"value", "merge"}:
        raise _AmbiguousError(node, f"{text} has a meaning of its own in YAML: write it in quotes")
