"""What a gate says about itself for people: it decides nothing, is printed, and covered by the statement."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=2000)]


class Generator(BaseModel):
    """What made the synthetic tables."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[Text, Field(description="The synthesizer, such as synthpop")]
    version: Annotated[Text, Field(description="Its version")] = ""
    parameters: Annotated[Text, Field(description="How it was run")] = ""


class SignOff(BaseModel):
    """Who reviewed the gate, when, and under which conditions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reviewer: Annotated[Text, Field(description="Who signs off")]
    date: Annotated[date, Field(description="The day of the review")]
    conditions: Annotated[Text, Field(description="What the sign-off depends on")] = ""


class FiveSafes(BaseModel):
    """The answers of the Five Safes framework (Desai, Ritchie & Welpton 2016)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    projects: Annotated[Text, Field(description="Is this use of the data appropriate?")] = ""
    people: Annotated[Text, Field(description="Can the users be trusted to use it properly?")] = ""
    settings: Annotated[Text, Field(description="Does the access facility limit unauthorised use?")] = ""
    data: Annotated[Text, Field(description="Is there a disclosure risk in the data itself?")] = ""
    outputs: Annotated[Text, Field(description="Are the statistical results non-disclosive?")] = ""


class Documentation(BaseModel):
    """Free fields of a gate, printed in the dossier as they are; what is empty is left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    purpose: Annotated[Text, Field(description="What the release is for")] = ""
    recipients: Annotated[Text, Field(description="Who gets it")] = ""
    access_conditions: Annotated[Text, Field(description="Under which conditions they get it")] = ""
    data_owner: Annotated[Text, Field(description="Whose data it is")] = ""
    legal_basis: Annotated[Text, Field(description="The law or consent that allows the release")] = ""
    generator: Annotated[Generator | None, Field(description="What made the synthetic tables")] = None
    keys_justification: Annotated[
        Text, Field(description="Why these columns are what an intruder may know")
    ] = ""
    sign_off: Annotated[SignOff | None, Field(description="The reviewer's sign-off")] = None
    review_date: Annotated[date | None, Field(description="When the gate is to be reviewed again")] = None
    five_safes: Annotated[FiveSafes | None, Field(description="The answers of the Five Safes")] = None


def list_documented(documentation: Documentation) -> dict[str, str]:
    """What is documented, flat and in order: its name in words -> the text; what is empty is left out.

    Example:
        >>> list_documented(Documentation(purpose="Teaching", generator=Generator(name="synthpop")))
        {'Purpose': 'Teaching', 'Generator: name': 'synthpop'}
    """
    listed: dict[str, str] = {}
    for name, value in documentation.model_dump(mode="json").items():
        heading = name.replace("_", " ").capitalize()
        entries = value if isinstance(value, dict) else {"": value}
        for part, text in entries.items():
            if text:
                listed[f"{heading}: {part.replace('_', ' ')}" if part else heading] = str(text)
    return listed
