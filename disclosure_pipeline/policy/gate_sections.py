"""The sections of a gate's file, and checks that all of it fits together before anything is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from disclosure_pipeline.counting.opening import find_engine
from disclosure_pipeline.evaluation.arguments import Exclusions, Pair, check_exclusions
from disclosure_pipeline.policy.registry import JUDGED
from disclosure_pipeline.tables.contract import PREFIX
from disclosure_pipeline.tables.dictionary import DATES, NUMERIC, Column, FrozenModel
from disclosure_pipeline.tables.events import Joining, Summary, describe_summaries
from disclosure_pipeline.tables.files import redact_location, refuse_password
from disclosure_pipeline.tables.grouping import check_edges
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, Source, SqlSource

if TYPE_CHECKING:
    from disclosure_pipeline.policy.gate import Gate


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
        written = self.model_dump(exclude={"at_most", "pairs"})
        return Exclusions(**written, pairs=[Pair(**pair.model_dump()) for pair in self.pairs])


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


NAME = r"[a-z][a-z0-9_]{0,49}"


def check_definition(gate: Gate) -> None:
    """Raise ValueError where columns, exclusions, engine or tables contradict each other."""
    _check_columns(gate)
    _check_population(gate)
    _check_edges(gate)
    _check_bands(gate)
    check_exclusions(gate.exclusions.as_exclusions(), gate.keys, gate.targets)
    if gate.synthetic_asset and gate.synthesis_asset is not None:
        raise ValueError(
            "synthesis_asset hands over tables, synthetic_asset names a folder with them: give one of the two"
        )
    _check_engine(gate)
    _check_confidential(gate)


def _check_columns(gate: Gate) -> None:
    for role, names in (("keys", gate.keys), ("targets", gate.targets)):
        unknown = [name for name in names if name not in gate.columns]
        if unknown:
            raise ValueError(f"{role} names {', '.join(unknown)}, which columns does not describe")
        if len(set(names)) < len(names):
            raise ValueError(f"{role} names a column more than once")
    in_both = [name for name in gate.keys if name in gate.targets]
    if in_both:
        raise ValueError(f"{', '.join(in_both)} cannot be a key and a target at once")
    if gate.unit in gate.columns:
        raise ValueError(
            f"unit names {gate.unit}, which columns describes, too: take it out there, for it is compared as "
            "text, and never published"
        )
    identifiers = [name for name in gate.measured if gate.columns[name].type == "text identifier"]
    if identifiers:
        raise ValueError(f"{', '.join(identifiers)} is a text identifier: it can be no key and no target")


def check_events(gate: Gate) -> None:
    """Raise ValueError where a second table does not fit to the first one."""
    if gate.events is None:
        return
    if gate.unit is None:
        raise ValueError("events needs unit: the column of both tables that says whose a record is")
    if gate.unit in gate.events.columns:
        raise ValueError(f"unit names {gate.unit}, which events.columns describes, too: take it out there")
    if gate.confidential:
        raise ValueError("confidential names further tables, and these have no events: give one of the two")
    derived = gate.events.derived
    taken = [
        name
        for name, column in gate.columns.items()
        if name.startswith(PREFIX) and derived.get(name) != column
    ]
    if taken:
        raise ValueError(f"columns describes {', '.join(taken)}: such names are those of what events make")


def _check_edges(gate: Gate) -> None:
    if not isinstance(gate.edges, Mapping):
        return
    grouped = [name for name in gate.edges if name in gate.groups]
    if grouped:
        raise ValueError(f"{', '.join(grouped)} has both groups and explicit edges: give one of them")
    unknown = [name for name in gate.edges if name not in gate.keys and name not in gate.targets]
    if unknown:
        raise ValueError(f"edges names {', '.join(unknown)}, which is neither a key nor a target")
    for name, edges in gate.edges.items():
        if gate.columns[name].type not in NUMERIC:
            raise ValueError(f"edges are for numbers: {name} is of type {gate.columns[name].type}")
        check_edges(name, edges)


def _check_bands(gate: Gate) -> None:
    for name, column in gate.columns.items():
        if column.within is None:
            continue
        if name not in gate.targets:
            raise ValueError(f"column {name} has within, which is for targets")
        if gate.grouping.groups_column(name):
            raise ValueError(f"column {name} has within, and groups or edges: a band needs none, give one")
        if gate.unit is not None:
            raise ValueError(
                f"column {name} has within, which cannot be combined with unit: group it instead"
            )


def _check_engine(gate: Gate) -> None:
    if gate.in_database:
        refuse_password(gate.engine)
        _check_database(gate.engine, gate.ground_truth, "ground_truth")
        for name, source in gate.confidential.items():
            _check_database(gate.engine, source, f"confidential.{name}")
    if gate.engine != "auto" and gate.only_in_memory and not find_engine(gate.engine).holds_frames:
        shown = redact_location(gate.engine)
        raise ValueError(f"engine {shown} cannot do {gate.only_in_memory}: use memory or auto")


def _check_confidential(gate: Gate) -> None:
    for name in gate.confidential:
        if not re.fullmatch(NAME, name):
            raise ValueError(
                f"confidential names a table {name!r}: expected are lower-case letters, digits and _, from a "
                "letter on"
            )
        if name in gate.columns:
            raise ValueError(f"confidential names a table {name!r}, as a column is: give it another name")
    if gate.holdout is not None and gate.holdout not in gate.confidential:
        raise ValueError(
            f"holdout names {gate.holdout!r}, which is none of the confidential tables: list it there, "
            "so that no candidate holds copies of its records"
        )


def _check_database(engine: str, source: str | Source, name: str) -> None:
    # A confidential table is never copied.
    kind, _, location = engine.partition("?")[0].partition("://")
    if isinstance(source, (SqlSource, DuckDBSource)):
        if source.table is None:
            raise ValueError(f"engine counts a table, not a query: make a view of {name} and name that")
        of_source = source.url.partition("://")[2] if isinstance(source, SqlSource) else f"/{source.duckdb}"
        if of_source != location:
            raise ValueError(f"engine must be the database that {name} is in: the same after ://")
        return
    path = source.path if isinstance(source, FileSource) else source
    if kind not in {"duckdb", "pyspark"} or not path.endswith(".parquet"):
        raise ValueError(
            f"engine cannot read {name} in place: give a table of that database, or Parquet to "
            "DuckDB or Spark"
        )


def _check_population(gate: Gate) -> None:
    name = gate.weight
    if name is not None and gate.sampling_fraction is not None:
        raise ValueError("weight and sampling_fraction are both given: weight says all that is needed")
    if name is not None and name in (*gate.keys, *gate.targets, gate.unit):
        raise ValueError(f"weight names {name}, which is a key, a target or the unit, too")
    if name is not None and name in gate.columns and gate.columns[name].type not in NUMERIC:
        raise ValueError(
            f"weight names {name}, which is of type {gate.columns[name].type}: it must be a number"
        )
    if name is None and gate.people == "weighted":
        raise ValueError(
            "people: weighted needs weight: which column says how many people a record stands for"
        )
    for measure in gate.policy.bounds:
        family, is_weighted = JUDGED[measure].family, measure.endswith("_weighted")
        if family == "membership" and gate.holdout is None:
            raise ValueError(f"policy bounds {measure}, which is measured with a holdout alone: give it")
        if family == "population" and name is None and (gate.sampling_fraction is None or is_weighted):
            needed = "weight" if is_weighted else "weight or sampling_fraction"
            raise ValueError(f"policy bounds {measure}, which is measured with {needed} alone: give it")
