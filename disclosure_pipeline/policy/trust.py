"""Reviewed files that are believed: public keys, each for the releases of a period, and waivers.

A waiver lets one clause pass, up to a ceiling, for one content and until a day.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

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
from disclosure_pipeline.policy.definition_reader import (
    DefinitionError,
    Document,
    read_definition,
    read_documents,
    read_file,
)
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
