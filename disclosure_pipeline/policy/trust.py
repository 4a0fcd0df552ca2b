"""Which public keys are believed, and for releases of which time."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from disclosure_pipeline.errors import DisclosurePipelineError

_LARGEST = 1 << 20
_PEM = "-----BEGIN "


class TrustError(DisclosurePipelineError, ValueError):
    """A file of public keys cannot be taken as it is."""


def _require_time_and_offset(value: Any) -> Any:
    # A bare number would be taken for seconds, a date alone for its midnight.
    if isinstance(value, datetime) or (isinstance(value, str) and ":" in value):
        return value
    raise ValueError("expected a date and time with an offset, such as 2026-01-31T12:00:00+01:00")


def _iso(moment: datetime) -> str:
    return moment.isoformat()


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_require_time_and_offset),
    PlainSerializer(_iso, return_type=str, when_used="json"),
]
"""A date and time with an offset, written as ISO 8601."""


class TrustedKey(BaseModel):
    """A public key (PEM, Ed25519) and the period in which what it signed is believed, both ends included."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    public_key: Annotated[str, Field(description="The public key, as PEM text")]
    valid_from: Annotated[Moment, Field(description="Releases published before are not believed")]
    valid_until: Annotated[
        Moment | None, Field(description="Releases published later are not believed; none: no end")
    ] = None

    @model_validator(mode="after")
    def _has_a_period(self) -> TrustedKey:
        if self.valid_until is not None and self.valid_until < self.valid_from:
            raise ValueError("valid_until lies before valid_from")
        return self

    def covers(self, published: datetime) -> bool:
        """Whether a release of that time is believed."""
        return self.valid_from <= published and (self.valid_until is None or published <= self.valid_until)


def without_period(public_key: str) -> TrustedKey:
    """A key that is believed whenever a release was published."""
    return TrustedKey(public_key=public_key, valid_from=datetime.min.replace(tzinfo=timezone.utc))


def read_trusted(path: Path) -> tuple[TrustedKey, ...]:
    """The keys of a file: one public key as PEM, or a YAML list of them with their periods.

    TrustError where it is neither, or a period is no period.
    """
    text = _text(path)
    if text.lstrip().startswith(_PEM):
        return (without_period(text),)
    try:
        content = yaml.load(text, _Loader)
        return tuple(_LIST.validate_python(content))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}"
            for problem in error.errors()
        )
    except (yaml.YAMLError, RecursionError):
        wrong = "it is neither PEM nor YAML"
    except ValueError as error:
        wrong = str(error)
    raise TrustError(
        f"{path}: {wrong}. Expected a public key as PEM, or a YAML list of public_key, valid_from and, if it "
        "ended, valid_until."
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) <= _LARGEST:
            return content.decode()
        wrong = "it is far too large for a list of public keys"
    except OSError as error:
        wrong = error.strerror or "it cannot be read"
    except UnicodeDecodeError:
        wrong = "it is no text"
    raise TrustError(f"The public keys in {path} cannot be read: {wrong}.")


class _Loader(yaml.SafeLoader):
    """YAML in which no entry is written twice: which of two ends of a period holds must not be a guess."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(set(map(str, names))) < len(names):
            raise ValueError("an entry is written twice")
        return super().construct_mapping(node, deep)


_LIST = TypeAdapter(Annotated[list[TrustedKey], Field(min_length=1)])
