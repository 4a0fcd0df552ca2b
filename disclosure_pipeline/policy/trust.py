"""The public keys that are believed, each for the releases of a period."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.definition_reader import DefinitionError, read_definition, read_file
from disclosure_pipeline.tables.dictionary import FrozenModel

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
            f"{'.'.join(map(str, problem['loc'])) or 'the file'}: {_words_of(problem)}"
            for problem in error.errors()
        )
        wrong = f"{path}: {problems}"
    raise TrustError(
        f"{wrong}. Expected a public key as PEM, or a YAML list of public_key, valid_from and, if it "
        "ended, valid_until."
    )


def _words_of(problem: Mapping[str, Any]) -> str:
    """Return what pydantic or a check of ours says; what some other error says is withheld."""
    return "is not valid" if problem["type"] == "value_error" else str(problem["msg"])


_LIST = TypeAdapter(Annotated[list[TrustedKey], Field(min_length=1)])
