"""Files under review, read strictly: definitions, public keys with their periods, and waivers.

All are YAML that means one thing: values that YAML 1.1 and 1.2, or two readers, take differently are refused
with their place (https://yaml.org/type/, https://yaml.org/spec/1.2.2/#103-core-schema). A waiver lets one
clause pass, up to a ceiling, for one content and until a day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
from disclosure_pipeline.tables.dictionary import FrozenModel

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
    disclosure_pipeline.policy.reviewed_files.DefinitionError: /nowhere/defs.yaml: it cannot be read: ...
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
    disclosure_pipeline.policy.reviewed_files.DefinitionError: defs.yaml:1:7: 0100 is ...
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


_PEM = "-----BEGIN "


class TrustError(DisclosurePipelineError, ValueError):
    """A file of public keys cannot be taken as it is."""


def require_time_and_offset(value: Any) -> Any:
    """Return a time, or text that can be one; ValueError for a number or a day alone.

    >>> require_time_and_offset("2026-01-31T12:00:00+01:00")
    '2026-01-31T12:00:00+01:00'
    """
    # A bare number would be taken for seconds, a date alone for its midnight.
    if isinstance(value, datetime) or (isinstance(value, str) and ":" in value):
        return value
    raise PydanticCustomError(
        "moment", "expected a date and time with an offset, such as 2026-01-31T12:00:00+01:00"
    )


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(require_time_and_offset),
    PlainSerializer(datetime.isoformat, return_type=str, when_used="json"),
]
"""A date and time with an offset, written as ISO 8601."""


def parse_moment(text: str) -> datetime:
    """Return a date and time with an offset. TrustError where the text is none.

    >>> parse_moment("2026-01-31T12:00:00+01:00").isoformat()
    '2026-01-31T12:00:00+01:00'
    """
    try:
        return TypeAdapter[datetime](Moment).validate_python(text)
    except ValidationError as error:
        wrong = "; ".join(problem["msg"] for problem in error.errors())
    raise TrustError(f"{text[:100]!r} is no time: {wrong}.")


class TrustedKey(FrozenModel):
    """A public key (PEM, Ed25519) and the period in which what it signed is believed, both ends included."""

    public_key: Annotated[str, Field(description="The public key, as PEM text")]
    valid_from: Annotated[Moment, Field(description="Releases published before are not believed")]
    valid_until: Annotated[
        Moment | None, Field(description="Releases published later are not believed; none: no end")
    ] = None

    @model_validator(mode="after")
    def _has_a_period(self) -> TrustedKey:
        if self.valid_until is not None and self.valid_until < self.valid_from:
            raise PydanticCustomError("period", "valid_until lies before valid_from")
        return self

    def covers(self, published: datetime) -> bool:
        """Return whether a release of that time is believed."""
        return self.valid_from <= published and (self.valid_until is None or published <= self.valid_until)


def without_period(public_key: str) -> TrustedKey:
    """Return a key that is believed whenever a release was published."""
    return TrustedKey(public_key=public_key, valid_from=datetime.min.replace(tzinfo=timezone.utc))


def read_trusted(path: Path) -> tuple[TrustedKey, ...]:
    """Return the keys of a file: one public key as PEM, or a YAML list of them with their periods.

    TrustError where it is neither, or a period is no period.
    """
    try:
        text = read_file(path)
        if text.lstrip().startswith(_PEM):
            return (without_period(text),)
        return tuple(_LIST.validate_python(read_definition(text, str(path))))
    except DefinitionError as error:
        wrong = str(error).removesuffix(".")
    except ValidationError as error:
        problems = "; ".join(
            # What pydantic or a check of ours says; what some other error says is withheld.
            f"{'.'.join(map(str, problem['loc'])) or 'the file'}: "
            f"{'is not valid' if problem['type'] == 'value_error' else problem['msg']}"
            for problem in error.errors()
        )
        wrong = f"{path}: {problems}"
    raise TrustError(
        f"{wrong}. Expected a public key as PEM, or a YAML list of public_key, valid_from and, if it "
        "ended, valid_until."
    )


_LIST = TypeAdapter(Annotated[list[TrustedKey], Field(min_length=1)])


Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
# A waiver may hold for five years from now on, two of them leap years.
_LONGEST = timedelta(days=5 * 365 + 2)


class WaiverError(DisclosurePipelineError, ValueError):
    """A waiver's file cannot be taken as it is."""


class Waiver(FrozenModel):
    """One clause that may be broken, up to a ceiling, by one candidate's content."""

    name: Annotated[str, Field(description="The name of its file, without .yaml")]
    gate: Text
    snapshot: Annotated[Digest, Field(description="sha256 of the candidate's content: synthetic shows it")]
    policy_digest: Annotated[Digest, Field(description="Digest of the policy: the dossier shows it")]
    clause: Annotated[Text, Field(description="Name of the clause, such as DiSCO[income]")]
    ceiling: Annotated[
        Finite,
        Field(description="How far the value may go, in its own unit: how high, or how low with at_least"),
    ]
    reason: Text
    approver: Annotated[Text, Field(description="Who answers for it")]
    expires: Annotated[
        AwareDatetime,
        BeforeValidator(require_time_and_offset),
        Field(description="From this moment on it is void; with an offset, within five years"),
    ]

    def problem(self, gate: str, policy_digest: str, clauses: Iterable[str], now: datetime) -> str | None:
        """Return why it can apply to no content at all, or None. `clauses` are those that can be waived."""
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
    """Return every waiver in a folder of YAML files, in order of their names; none where there is no folder.

    WaiverError where anything but a complete waiver lies there (one that is not read would not be missed), or
    one that would hold for more than five years from `now` on (by default the time now).
    """
    if not folder.is_dir():
        return ()
    latest = (now or datetime.now(timezone.utc)) + _LONGEST
    return tuple(_read(path, latest) for path in sorted(folder.iterdir()))


def _read(path: Path, latest: datetime) -> Waiver:
    if path.suffix != ".yaml" or path.is_symlink() or not path.is_file():
        raise WaiverError(f"{path.name} among the waivers is no file NAME.yaml: remove it.")
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
        wrong = [(("expires",), "it lies more than five years ahead: give an earlier one")]
    except ValidationError as error:
        wrong = [(problem["loc"], problem["msg"].lower()) for problem in error.errors()]
    problems = [
        f"{path.name}:{document.places.get(place, (1, 1))[0]}: {'.'.join(map(str, place))}: {problem}"
        for place, problem in wrong
    ]
    raise WaiverError(f"Waiver {'; '.join(problems)}.")
