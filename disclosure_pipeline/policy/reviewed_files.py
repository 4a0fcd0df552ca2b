"""Strict readers of the files that people and models deliver: definitions, public keys, waivers, claims.

All are unambiguous YAML: values that YAML 1.1 and 1.2 (https://yaml.org/type/,
https://yaml.org/spec/1.2.2/#103-core-schema) or two readers interpret differently are refused. So are files
of too many bytes or values, and aliases, with which a few lines stand for more values than a machine holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.bounds import Finite
from disclosure_pipeline.tables.dictionary import NO_ENTRY, FrozenModel, describe_problem

# Larger files are not read.
_LARGEST = 1 << 20
_MOST_NODES = 100_000
_DEEPEST = 100

_TAG = "tag:yaml.org,2002:"
_PLAIN_BOOLEAN = ("true", "True", "TRUE", "false", "False", "FALSE")
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_PLAIN_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)?\.?[0-9]+([eE][-+][0-9]+)?|[-+]?(0|[1-9][0-9]*)\.")
# Numbers in YAML 1.2, but text to Dagster's YAML reader.
_NUMBER_IN_YAML_12 = re.compile(
    r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
)


class DefinitionError(DisclosurePipelineError, ValueError):
    """A definition is invalid; the message begins with file:line:column."""


class Document(NamedTuple):
    """One document of a YAML file.

    `places` has the line and column of each entry, both from 1, by its path of names and positions.
    """

    content: Any
    places: dict[tuple[str | int, ...], tuple[int, int]]

    def line(self, path: tuple[str | int, ...]) -> int:
        """Return the line of an entry, or of its closest parent."""
        parents = (path[:length] for length in range(len(path), 0, -1))
        return next((self.places[parent][0] for parent in parents if parent in self.places), 1)


def read_file(path: Path) -> str:
    """Return the text of a file. Raise DefinitionError if it is unreadable or too large for a definition.

    >>> read_file(Path("/nowhere/defs.yaml"))
    Traceback (most recent call last):
    disclosure_pipeline.policy.reviewed_files.DefinitionError: /nowhere/defs.yaml: it cannot be read: ...
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) <= _LARGEST:
            return content.decode()
        wrong = f"it is larger than {_LARGEST:,} bytes, too large for a definition"
    except OSError as error:
        wrong = f"it cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        wrong = "it is not UTF-8 text"
    raise DefinitionError(f"{path}: {wrong}.")


def read_definition(text: str, name: str, *, exponents: bool = False) -> Any:
    """Return the content of a YAML text with one document; `name` is the file's name in messages.

    Times stay text. With `exponents`, 1e-6 is a number, as it is in YAML 1.2 alone. Raise DefinitionError,
    with line and column, for invalid YAML, duplicate and merge keys, aliases, names that are not text, tags,
    and values that readers of YAML interpret differently.

    >>> read_definition("repU: 8", "defs.yaml")
    {'repU': 8}
    >>> read_definition("repU: 0100", "defs.yaml")
    Traceback (most recent call last):
    disclosure_pipeline.policy.reviewed_files.DefinitionError: defs.yaml:1:7: 0100 is ...
    """
    documents = read_documents(text, name, _LoaderOfExponents if exponents else _Loader)
    if len(documents) > 1:
        raise DefinitionError(f"{name}: it holds {len(documents)} documents, expected one.")
    return documents[0].content if documents else None


def read_documents(text: str, name: str, make_loader: Callable[[str], Any] | None = None) -> list[Document]:
    r"""Return the documents of a YAML text. Raise DefinitionError as `read_definition` does.

    >>> [document.content for document in read_documents("a: 1\n---\nb: 2", "defs.yaml")]
    [{'a': 1}, {'b': 2}]
    """
    try:
        loader = (make_loader or _Loader)(text)
        try:
            documents = []
            while loader.check_node():
                node = loader.get_node()
                places = dict(_check(node, (), 0))
                documents.append(Document(loader.construct_document(node), places))
        finally:
            loader.dispose()
        return documents
    except _AmbiguousError as error:
        mark, wrong = error.mark, error.wrong
    except yaml.MarkedYAMLError as error:
        mark, wrong = error.problem_mark or error.context_mark, f"it is not valid YAML: {error.problem}"
    except (yaml.YAMLError, RecursionError, ValueError):
        mark, wrong = None, "it is not valid YAML"
    place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    raise DefinitionError(f"{name}{place}: {wrong}.")


class _AmbiguousError(Exception):
    def __init__(self, node: Any, wrong: str) -> None:
        super().__init__(wrong)
        self.mark, self.wrong = node.start_mark, wrong


class _Loader(yaml.SafeLoader):
    """A loader that keeps times as text and refuses tags, aliases and too many nodes."""

    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise _AmbiguousError(
                event, f"it has more than {_MOST_NODES:,} values, too many for a definition"
            )
        if event.anchor is not None:
            raise _AmbiguousError(
                event, "anchors (&) and aliases (*) are not allowed: write the value itself"
            )
        if getattr(event, "tag", None) is not None:
            raise _AmbiguousError(event, f"the tag {event.tag} is not allowed: write the value itself")
        return super().compose_node(parent, index)


_Loader.add_constructor(f"{_TAG}timestamp", lambda _, node: node.value)


class _LoaderOfExponents(_Loader):
    """A loader to which 1e-6 is a number."""


_LoaderOfExponents.add_implicit_resolver(
    f"{_TAG}float", re.compile(r"[0-9]+[eE][-+][0-9]+$"), list("0123456789")
)


def _check(
    node: Any, path: tuple[str | int, ...], depth: int
) -> Iterator[tuple[tuple[str | int, ...], tuple[int, int]]]:
    """Yield the places of a node and its descendants. Raise _AmbiguousError for the first ambiguous one."""
    if depth > _DEEPEST:
        raise _AmbiguousError(node, "it is nested too deeply")
    yield path, (node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _check(item, (*path, position), depth + 1)
    else:
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = _check_name(key, seen)
            for place, mark in _check(value, (*path, name), depth + 1):
                # The place of an entry is that of its name.
                at_name = (key.start_mark.line + 1, key.start_mark.column + 1)
                yield place, at_name if place == (*path, name) else mark


def _check_name(key: Any, seen: dict[str, int]) -> str:
    if key.tag == f"{_TAG}merge":
        raise _AmbiguousError(key, "merge keys (<<) are not allowed: write the entries themselves")
    if not isinstance(key, yaml.ScalarNode):
        raise _AmbiguousError(key, "the name of an entry must be text")
    _check_scalar(key)
    if key.tag != f"{_TAG}str":
        raise _AmbiguousError(key, f"the name {key.value} is not read as text: write it in quotes")
    if key.value in seen:
        raise _AmbiguousError(key, f"{key.value!r} is given twice, first in line {seen[key.value]}")
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
        raise _AmbiguousError(node, f"{text} has a special meaning in YAML: write it in quotes")


_PEM = "-----BEGIN "


class TrustError(DisclosurePipelineError, ValueError):
    """A file of public keys is invalid."""


def require_time_and_offset(value: Any) -> Any:
    """Return a time or text that may be one; raise ValueError for a number or a date without a time.

    >>> require_time_and_offset("2026-01-31T12:00:00+01:00")
    '2026-01-31T12:00:00+01:00'
    """
    # pydantic would read a number as seconds, and a date as its midnight.
    if isinstance(value, datetime) or (isinstance(value, str) and ":" in value):
        return value
    raise PydanticCustomError(
        "moment", "expected a date and time with an offset, such as 2026-01-31T12:00:00+01:00"
    )


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(require_time_and_offset),
    PlainSerializer(lambda moment: moment.isoformat(), return_type=str, when_used="json"),
]
"""A date and time with an offset, written as ISO 8601."""


def parse_moment(text: str) -> datetime:
    """Return the date and time of a text with an offset. Raise TrustError if it is invalid.

    >>> parse_moment("2026-01-31T12:00:00+01:00").isoformat()
    '2026-01-31T12:00:00+01:00'
    """
    try:
        return TypeAdapter[datetime](Moment).validate_python(text)
    except ValidationError as error:
        wrong = "; ".join(problem["msg"] for problem in error.errors())
    raise TrustError(f"{text[:100]!r} is not a valid time: {wrong}.")


class TrustedKey(FrozenModel):
    """A public key (PEM, Ed25519) and the period in which it is trusted, both ends included."""

    public_key: Annotated[str, Field(description="The public key, as PEM text")]
    valid_from: Annotated[Moment, Field(description="Releases published earlier are not trusted")]
    valid_until: Annotated[
        Moment | None, Field(description="Releases published later are not trusted; by default no end")
    ] = None

    @model_validator(mode="after")
    def _has_a_period(self) -> TrustedKey:
        if self.valid_until is not None and self.valid_until < self.valid_from:
            raise PydanticCustomError("period", "valid_until is before valid_from")
        return self

    def covers(self, published: datetime) -> bool:
        """Return whether a release published at that time is trusted."""
        return self.valid_from <= published and (self.valid_until is None or published <= self.valid_until)


def trust_always(public_key: str) -> TrustedKey:
    """Return a key that is trusted for any time of publication."""
    return TrustedKey(public_key=public_key, valid_from=datetime.min.replace(tzinfo=timezone.utc))


def read_key_file(path: Path) -> tuple[TrustedKey, ...]:
    """Return the keys of a file: one public key as PEM, or a YAML list of keys and their periods.

    Raise TrustError if it is neither, or a period is invalid.
    """
    try:
        text = read_file(path)
        if text.lstrip().startswith(_PEM):
            return (trust_always(text),)
        return tuple(_LIST.validate_python(read_definition(text, str(path))))
    except DefinitionError as error:
        wrong = str(error).removesuffix(".")
    except ValidationError as error:
        problems = "; ".join(
            # The message of any other ValueError might quote the file.
            f"{'.'.join(map(str, problem['loc'])) or 'the file'}: "
            f"{'is not valid' if is_own else describe_problem(problem)}"
            for problem in error.errors()
            for is_own in [problem["type"] == "value_error" and NO_ENTRY not in problem["msg"]]
        )
        wrong = f"{path}: {problems}"
    raise TrustError(
        f"{wrong}. Expected a public key as PEM, or a YAML list of entries with public_key, valid_from and "
        "optionally valid_until."
    )


_LIST = TypeAdapter(Annotated[list[TrustedKey], Field(min_length=1)])


Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
# A waiver holds for at most five years, up to two of them leap years.
_LONGEST = timedelta(days=5 * 365 + 2)


class WaiverError(DisclosurePipelineError, ValueError):
    """A waiver's file is invalid."""


class Waiver(FrozenModel):
    """A permission for one candidate's content to break one clause, up to a ceiling."""

    name: Annotated[str, Field(description="The name of its file, without .yaml")]
    gate: Text
    snapshot: Annotated[
        Digest, Field(description="sha256 of the candidate's content, as shown by the asset synthetic")
    ]
    policy_digest: Annotated[Digest, Field(description="Digest of the policy, as shown in the dossier")]
    clause: Annotated[Text, Field(description="Name of the clause, such as DiSCO[income]")]
    ceiling: Annotated[
        Finite,
        Field(description="Largest value allowed, or smallest with at_least, in the measure's own unit"),
    ]
    reason: Text
    approver: Annotated[Text, Field(description="Who is responsible for it")]
    expires: Annotated[
        AwareDatetime,
        BeforeValidator(require_time_and_offset),
        Field(description="End of its validity, with an offset, at most five years from now"),
    ]

    def find_problem(
        self, gate: str, policy_digest: str, clauses: Iterable[str], now: datetime
    ) -> str | None:
        """Return why it cannot apply to any content, or None. `clauses` are those that can be waived."""
        if self.gate != gate:
            return f"it is for gate {self.gate}, not {gate}"
        if self.policy_digest != policy_digest:
            return "it was given under another policy"
        if self.clause not in clauses:
            return f"the policy has no clause {self.clause} that can be waived"
        if now >= self.expires:
            return f"it expired at {self.expires.isoformat()}"
        return None


def read_waivers(folder: Path, now: datetime | None = None) -> tuple[Waiver, ...]:
    """Return the waivers of a folder of YAML files, by name; none if there is no folder.

    Raise WaiverError if the folder holds anything but valid waivers, since nobody would notice a waiver that
    is skipped, or if one holds for more than five years from `now` (by default the current time).
    """
    if not folder.is_dir():
        return ()
    latest = (now or datetime.now(timezone.utc)) + _LONGEST
    return tuple(_read_waiver(path, latest) for path in sorted(folder.iterdir()))


def _read_waiver(path: Path, latest: datetime) -> Waiver:
    if path.suffix != ".yaml" or path.is_symlink() or not path.is_file():
        raise WaiverError(f"{path.name} in the folder of waivers is not a regular .yaml file: remove it.")
    try:
        documents = read_documents(read_file(path), path.name)
    except DefinitionError as error:
        raise WaiverError(f"Waiver {error}") from None
    document = documents[0] if len(documents) == 1 else Document(None, {})
    if not isinstance(document.content, dict) or "name" in document.content:
        expected = ", ".join(name for name in Waiver.model_fields if name != "name")
        raise WaiverError(f"Waiver {path.name}: expected a mapping with {expected}.")
    wrong: list[tuple[tuple[str | int, ...], str]]
    try:
        waiver = Waiver(name=path.stem, **document.content)
        if waiver.expires <= latest:
            return waiver
        wrong = [(("expires",), "it is more than five years from now: give an earlier time")]
    except ValidationError as error:
        wrong = [(problem["loc"], problem["msg"].lower()) for problem in error.errors()]
    problems = [
        f"{path.name}:{document.places.get(place, (1, 1))[0]}: {'.'.join(map(str, place))}: {problem}"
        for place, problem in wrong
    ]
    raise WaiverError(f"Waiver {'; '.join(problems)}.")
