"""Who is notified when a run of a gate fails, as the gate's YAML file writes it. It holds no secret."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def _require_name_of_secret(text: str) -> str:
    if re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", text):
        return text
    raise ValueError("this is secret: write ${NAME}, nothing else, and set that environment variable")


# The name of a secret: the secret itself would be in the history of the file for ever.
Secret = Annotated[str, AfterValidator(_require_name_of_secret)]
# One address, without a name: it goes into the head of an e-mail as it is.
Address = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._%+'-]+@[A-Za-z0-9.-]+$")]


class Email(BaseModel):
    """An e-mail, through a server that wants TLS and a login."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sender: Address
    to: Annotated[tuple[Address, ...], Field(min_length=1)]
    host: Annotated[str, Field(description="Name of the mail server", pattern=r"^[A-Za-z0-9.-]+$")]
    encryption: Annotated[
        Literal["SSL", "STARTTLS"], Field(description="From the first byte, or after STARTTLS")
    ] = "SSL"
    port: Annotated[int | None, Field(description="By default 465, or 587 with STARTTLS", ge=1, le=65535)] = (
        None
    )
    user: Annotated[str | None, Field(description="Who logs in; by default the sender")] = None
    password: Annotated[Secret, Field(description="${NAME} of the environment variable that holds it")]


class Slack(BaseModel):
    """A message in a channel of Slack. Needs the extra slack."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    channel: Annotated[str, Field(description="Such as #disclosure-control", min_length=1)]
    token: Annotated[Secret, Field(description="${NAME} of the environment variable that holds it")]


class Notify(BaseModel):
    """Where a notice goes beside the log, which always has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhook: Annotated[
        Secret | None,
        Field(description="${NAME} of the environment variable with the URL that JSON is posted to"),
    ] = None
    email: Email | None = None
    slack: Slack | None = None
    web_server: Annotated[
        str | None,
        Field(description="Where Dagster's web server is reached, for links", pattern=r"^https?://[!-~]+$"),
    ] = None
