"""The sections of a gate's file: exclusions, families of measures, who is notified, and documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from disclosure_pipeline.evaluation.arguments import Exclusions, Pair
from disclosure_pipeline.evaluation.catalogue_entry import Measure
from disclosure_pipeline.tables.dictionary import DATES, NUMERIC, Column, FrozenModel
from disclosure_pipeline.tables.events import Joining, Summary, describe_summaries
from disclosure_pipeline.tables.sources import Source


class GatePair(FrozenModel):
    """One level of one key with one level of one target."""

    key: str
    key_level: str | None
    target: str
    target_level: str | None


class GateExclusions(FrozenModel):
    """Cells to leave out of the measures, once it is told which are disclosive."""

    target_levels: Annotated[
        Mapping[str, tuple[str, ...]], Field(description="Target -> levels that are not disclosive")
    ] = {}
    missing_targets: bool | tuple[str, ...] = False
    missing_keys: bool | tuple[str, ...] = False
    pairs: tuple[GatePair, ...] = ()
    count_over: Annotated[int | None, Field(ge=0, strict=True)] = None
    at_most: Annotated[
        float,
        Field(
            description="Percent of the GT records that the exclusions may take from a target: where they "
            "take more, nothing is determined",
            ge=0,
            lt=100,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = 50

    @property
    def limit(self) -> float | None:
        """The percentage of GT that they may take; None where nothing is excluded."""
        named = (self.target_levels, self.missing_targets, self.missing_keys, self.pairs)
        return self.at_most if any(named) or self.count_over is not None else None

    def as_exclusions(self) -> Exclusions:
        """Return the library's own form."""
        return Exclusions(
            target_levels=self.target_levels,
            missing_targets=self.missing_targets,
            missing_keys=self.missing_keys,
            pairs=[Pair(**pair.model_dump()) for pair in self.pairs],
            count_over=self.count_over,
        )


class GateEvents(FrozenModel):
    """Events of the people of the ground truth: a second table, joined to theirs by the gate's unit.

    Of each person's events some columns are made, named `events.…`, which are keys and targets as others are.
    """

    ground_truth: Annotated[
        str | Source, Field(description="The confidential events: a path or source, as that of the people")
    ]
    columns: Annotated[
        Mapping[str, Column],
        Field(description="Their data dictionary; each of these columns is released", min_length=1),
    ]
    order: Annotated[
        str | None, Field(description="The date or number that says which event is first and which last")
    ] = None
    summaries: Annotated[
        Mapping[str, tuple[Summary, ...]],
        Field(description="Column -> which of a person's values are measured: first, last, most_frequent"),
    ] = {}
    multiset: Annotated[
        tuple[str, ...] | None,
        Field(description="Columns of which all of a person's values are measured together; by default all"),
    ] = None
    length: Annotated[
        int | None, Field(description="How many events the multiset has at most; by default all", ge=1)
    ] = None

    @model_validator(mode="after")
    def _fits_together(self) -> GateEvents:
        problem = self.joining("").find_problem(self.columns, "the events")
        if problem:
            raise ValueError(problem)
        if self.order is not None and self.columns[self.order].type not in (*NUMERIC, *DATES):
            raise ValueError(f"order names {self.order}, which must be a number, a date or a datetime")
        identifiers = [name for name, column in self.columns.items() if column.type == "text identifier"]
        if identifiers:
            raise ValueError(f"{', '.join(identifiers)} is a text identifier, which is never released")
        left_out = [name for name in self.columns if name not in self.summaries]
        if left_out:
            raise ValueError(
                f"columns describes {', '.join(left_out)}, which is released and not measured by itself: add "
                "it to summaries, or take it out"
            )
        return self

    @property
    def in_multiset(self) -> tuple[str, ...]:
        """The columns of the multiset."""
        return tuple(self.columns) if self.multiset is None else self.multiset

    @property
    def derived(self) -> dict[str, Column]:
        """The data dictionary of what is made of a person's events."""
        return describe_summaries(self.columns, self.summaries, self.in_multiset)

    def joining(self, unit: str) -> Joining:
        """Return how they are joined to their people."""
        return Joining(unit, self.order, self.summaries, self.in_multiset, self.length)

    def deciding(self) -> dict[str, Any]:
        """Return all in the section that decides, as plain data."""
        left_out: dict[str, Any] = {"ground_truth": True, "columns": {"__all__": {"description"}}}
        return self.model_dump(mode="json", exclude=left_out)


class Protection(FrozenModel):
    """Disclosure protection of each target by itself; grouped columns are compared by their groups."""

    methods: Annotated[
        tuple[Literal["cap", "zero_cap", "generalized_cap"], ...],
        Field(description="What happens to GT records whose key is not in SD", min_length=1),
    ] = ("cap",)


class Prediction(FrozenModel):
    """Prediction risk of each target; numbers are predicted as numbers. Needs the extra `prediction`."""

    learner: Literal["nearest_neighbours", "boosted_trees"] = "nearest_neighbours"


class Measures(FrozenModel):
    """Families measured beside identity and attribute disclosure. A family that is off costs nothing."""

    chance: Annotated[bool, Field(description="DiSCO_chance and DiSCO_excess")] = True
    attribution: Annotated[bool, Field(description="The CAP family")] = True
    protection: Annotated[bool | Protection, Field(description="Disclosure protection (SDMetrics)")] = False
    prediction: Annotated[bool | Prediction, Field(description="Prediction risk")] = False

    def has(self, measure: Measure) -> bool:
        """Return whether a measure is on."""
        if measure.family == "protection":
            return any(measure.column.startswith(f"{method}__") for method in self.methods)
        always = {"identity", "attribute", "bands", "resemblance", "population", "membership"}
        return measure.family in always or bool(getattr(self, measure.family))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of disclosure protection that are on."""
        if isinstance(self.protection, Protection):
            return self.protection.methods
        return Protection().methods if self.protection else ()

    @property
    def learner(self) -> str | None:
        """The learner of prediction risk, if that is on."""
        if isinstance(self.prediction, Prediction):
            return self.prediction.learner
        return Prediction().learner if self.prediction else None


def _require_name_of_secret(text: str) -> str:
    if re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", text):
        return text
    raise ValueError("this is secret: write ${NAME}, nothing else, and set that environment variable")


# The name of a secret: the secret itself would be in the history of the file for ever.
Secret = Annotated[str, AfterValidator(_require_name_of_secret)]
# One address, without a name: it goes into the head of an e-mail as it is.
Address = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._%+'-]+@[A-Za-z0-9.-]+$")]


class Email(FrozenModel):
    """An e-mail, through a server that wants TLS and a login."""

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


class Slack(FrozenModel):
    """A message in a channel of Slack. Needs the extra slack."""

    channel: Annotated[str, Field(description="Such as #disclosure-control", min_length=1)]
    token: Annotated[Secret, Field(description="${NAME} of the environment variable that holds it")]


class Notify(FrozenModel):
    """The recipients of a notice, beside the log, which always has it."""

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


Text = Annotated[str, Field(max_length=2000)]


class Generator(FrozenModel):
    """The generator of the synthetic tables."""

    name: Annotated[Text, Field(description="The synthesizer, such as synthpop")]
    version: Annotated[Text, Field(description="Its version")] = ""
    parameters: Annotated[Text, Field(description="How it was run")] = ""


class SignOff(FrozenModel):
    """The review of the gate: by whom, when, and under which conditions."""

    reviewer: Annotated[Text, Field(description="Who signs off")]
    date: Annotated[date, Field(description="The day of the review")]
    conditions: Annotated[Text, Field(description="What the sign-off depends on")] = ""


class FiveSafes(FrozenModel):
    """The answers of the Five Safes framework (Desai, Ritchie & Welpton 2016)."""

    projects: Annotated[Text, Field(description="Is this use of the data appropriate?")] = ""
    people: Annotated[Text, Field(description="Can the users be trusted to use it properly?")] = ""
    settings: Annotated[Text, Field(description="Does the access facility limit unauthorised use?")] = ""
    data: Annotated[Text, Field(description="Is there a disclosure risk in the data itself?")] = ""
    outputs: Annotated[Text, Field(description="Are the statistical results non-disclosive?")] = ""


class Documentation(FrozenModel):
    """Free fields of a gate, printed in the dossier as they are; what is empty is left out."""

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
    """Return what is documented, flat and in order: its name in words -> the text; what is empty is left out.

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
