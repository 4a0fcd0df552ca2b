"""The sections of a gate's file, and the checks that they are consistent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from disclosure_pipeline.counting.opening import find_engine
from disclosure_pipeline.evaluation.arguments import Exclusions, Pair, check_exclusions
from disclosure_pipeline.evaluation.catalogue import BOUNDABLE
from disclosure_pipeline.tables.contract import PREFIX
from disclosure_pipeline.tables.dictionary import DATES, NUMERIC, Column, FrozenModel, at_entry, refuse_entry
from disclosure_pipeline.tables.events import Joining, Summary, describe_summaries
from disclosure_pipeline.tables.files import redact_location, refuse_password, refuse_unusable_path
from disclosure_pipeline.tables.grouping import check_edges
from disclosure_pipeline.tables.messages import suggest_names
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, Source, SqlSource

if TYPE_CHECKING:
    from disclosure_pipeline.policy.gate import Gate


PathText = Annotated[str, AfterValidator(refuse_unusable_path)]


class GatePair(FrozenModel):
    """One level of one key with one level of one target."""

    key: str
    key_level: str | None
    target: str
    target_level: str | None


class GateExclusions(FrozenModel):
    """Cells that the measures leave out; without any, every level counts as disclosive."""

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
            description="Percent of the GT records of a target that may be excluded; with more, the "
            "candidate is undetermined",
            ge=0,
            lt=100,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = 50

    @property
    def limit(self) -> float | None:
        """The percentage of GT records that may be excluded; None if nothing is excluded."""
        named = (self.target_levels, self.missing_targets, self.missing_keys, self.pairs)
        return self.at_most if any(named) or self.count_over is not None else None

    def to_exclusions(self) -> Exclusions:
        """Return the exclusions as an argument of the library's functions."""
        fields = self.model_dump(exclude={"at_most", "pairs"})
        return Exclusions(**fields, pairs=[Pair(**pair.model_dump()) for pair in self.pairs])


class GateEvents(FrozenModel):
    """A second table, with events of the people of the ground truth, joined by the gate's unit.

    Columns named `events.…` are derived from each person's events; they can be keys and targets.
    """

    ground_truth: Annotated[
        PathText | Source,
        Field(description="The confidential events: a path or source like that of the people"),
    ]
    columns: Annotated[
        Mapping[str, Column],
        Field(description="Their data dictionary; each of these columns is released", min_length=1),
    ]
    order: Annotated[str | None, Field(description="The date or number that orders a person's events")] = None
    summaries: Annotated[
        Mapping[str, tuple[Summary, ...]],
        Field(description="Values of a person to measure, by column: first, last, most_frequent"),
    ] = {}
    multiset: Annotated[
        tuple[str, ...] | None,
        Field(description="Columns whose values of a person are measured together; by default all"),
    ] = None
    length: Annotated[
        int | None, Field(description="The largest number of events in a multiset; by default all", ge=1)
    ] = None

    @model_validator(mode="after")
    def _fits_together(self) -> GateEvents:
        problem = self.to_joining("").find_problem(self.columns, "the events")
        if problem:
            raise ValueError(problem)
        if self.order is not None and self.columns[self.order].type not in (*NUMERIC, *DATES):
            raise ValueError(f"order names {self.order}, which is not a number, date or datetime")
        identifiers = [name for name, column in self.columns.items() if column.type == "text identifier"]
        if identifiers:
            raise ValueError(f"{', '.join(identifiers)} is a text identifier, which is never released")
        left_out = [name for name in self.columns if name not in self.summaries]
        if left_out:
            raise ValueError(
                f"columns describes {', '.join(left_out)}, which would be released without being measured: "
                "add it to summaries, or remove it"
            )
        return self

    @property
    def in_multiset(self) -> tuple[str, ...]:
        """The columns of the multiset."""
        return tuple(self.columns) if self.multiset is None else self.multiset

    @property
    def derived(self) -> dict[str, Column]:
        """The data dictionary of the columns derived from a person's events."""
        return describe_summaries(self.columns, self.summaries, self.in_multiset)

    def to_joining(self, unit: str) -> Joining:
        """Return how the events are joined to the people."""
        return Joining(unit, self.order, self.summaries, self.in_multiset, self.length)

    def dump_deciding(self) -> dict[str, Any]:
        """Return everything in the section that influences the verdict, as plain data."""
        left_out: dict[str, Any] = {
            "ground_truth": True,
            "columns": {"__all__": {"label", "description", "real_values"}},
        }
        return self.model_dump(mode="json", exclude=left_out)


def _require_name_of_secret(text: str) -> str:
    if re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", text):
        return text
    raise ValueError("this is secret: write only ${NAME}, and set that environment variable")


# The name of an environment variable: a secret itself would stay in the history of the file forever.
Secret = Annotated[str, AfterValidator(_require_name_of_secret)]
# One address without a display name, safe to write into an e-mail's header.
Address = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._%+'-]+@[A-Za-z0-9.-]+$")]


class Email(FrozenModel):
    """An e-mail, sent through a server with TLS and a login."""

    sender: Address
    to: Annotated[tuple[Address, ...], Field(min_length=1)]
    host: Annotated[str, Field(description="Name of the mail server", pattern=r"^[A-Za-z0-9.-]+$")]
    encryption: Annotated[
        Literal["SSL", "STARTTLS"], Field(description="TLS from the start, or after STARTTLS")
    ] = "SSL"
    port: Annotated[int | None, Field(description="By default 465, or 587 with STARTTLS", ge=1, le=65535)] = (
        None
    )
    user: Annotated[str | None, Field(description="User of the login; by default the sender")] = None
    password: Annotated[Secret, Field(description="${NAME} of the environment variable that holds it")]


class Slack(FrozenModel):
    """A message in a Slack channel. Needs the extra `slack`."""

    channel: Annotated[str, Field(description="Such as #disclosure-control", min_length=1)]
    token: Annotated[Secret, Field(description="${NAME} of the environment variable that holds it")]


class Notify(FrozenModel):
    """The recipients of a notice, which is always logged, too."""

    webhook: Annotated[
        Secret | None,
        Field(description="${NAME} of the environment variable with the URL to post JSON to"),
    ] = None
    email: Email | None = None
    slack: Slack | None = None
    web_server: Annotated[
        str | None,
        Field(description="URL of Dagster's web server, for links", pattern=r"^https?://[!-~]+$"),
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
    conditions: Annotated[Text, Field(description="Conditions of the sign-off")] = ""


class FiveSafes(FrozenModel):
    """The answers of the Five Safes framework (Desai, Ritchie & Welpton 2016)."""

    projects: Annotated[Text, Field(description="Is this use of the data appropriate?")] = ""
    people: Annotated[Text, Field(description="Can the users be trusted to use it properly?")] = ""
    settings: Annotated[Text, Field(description="Does the access facility limit unauthorised use?")] = ""
    data: Annotated[Text, Field(description="Is there a disclosure risk in the data itself?")] = ""
    outputs: Annotated[Text, Field(description="Are the statistical results non-disclosive?")] = ""


class Documentation(FrozenModel):
    """Free text about a gate, printed in the dossier unless empty."""

    purpose: Annotated[Text, Field(description="Purpose of the release")] = ""
    recipients: Annotated[Text, Field(description="Who receives it")] = ""
    access_conditions: Annotated[Text, Field(description="Conditions of access")] = ""
    data_owner: Annotated[Text, Field(description="Owner of the data")] = ""
    legal_basis: Annotated[Text, Field(description="The law or consent that allows the release")] = ""
    generator: Annotated[Generator | None, Field(description="The generator of the synthetic tables")] = None
    keys_justification: Annotated[
        Text, Field(description="Why these columns are what an intruder may know")
    ] = ""
    sign_off: Annotated[SignOff | None, Field(description="The reviewer's sign-off")] = None
    review_date: Annotated[date | None, Field(description="When the gate is to be reviewed again")] = None
    five_safes: Annotated[FiveSafes | None, Field(description="The answers of the Five Safes")] = None


def list_documentation(documentation: Documentation) -> dict[str, str]:
    """Return the texts that are not empty by their headings, in order.

    >>> list_documentation(Documentation(purpose="Teaching", generator=Generator(name="synthpop")))
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
    """Raise ValueError if columns, exclusions, engine or tables contradict each other."""
    _check_columns(gate)
    _check_population(gate)
    with at_entry("edges"):
        _check_edges(gate)
    _check_bands(gate)
    _check_sensitive(gate)
    with at_entry("exclusions"):
        check_exclusions(gate.exclusions.to_exclusions(), gate.keys, gate.targets)
    if gate.synthetic_asset and gate.synthesis_asset is not None:
        raise ValueError(
            "synthesis_asset returns tables, synthetic_asset names a folder with them: give only one of them"
        )
    with at_entry("engine"):
        _check_engine(gate)
    _check_confidential(gate)


def _check_columns(gate: Gate) -> None:
    for role, names in (("keys", gate.keys), ("targets", gate.targets)):
        for position, name in enumerate(names):
            with at_entry(role, position):
                if name not in gate.columns:
                    suggestion = suggest_names(name, gate.columns)
                    raise ValueError(f"{name!r} is not described under columns. {suggestion}")
                if name in names[:position]:
                    raise ValueError(f"{name!r} is named more than once")
                if gate.columns[name].type == "text identifier":
                    raise ValueError(f"{name} is a text identifier, which cannot be a key or target")
                if role == "targets" and name in gate.keys:
                    raise ValueError(f"{name} cannot be both a key and a target")
    taken = {name: f"the name of column {name}" for name in gate.columns}
    for name, label in gate.labels.items():
        with at_entry("columns", name, "label"):
            if label in taken and label != name:
                raise ValueError(f"{label!r} is {taken[label]}: readers could not tell the two apart")
            taken[label] = f"the label of column {name}, too"
    if gate.unit in gate.columns:
        raise refuse_entry(
            ("columns", str(gate.unit)),
            f"unit names {gate.unit}, which columns also describes: remove it from columns, since it is "
            "compared as text and never published",
        )


def check_events(gate: Gate) -> None:
    """Raise ValueError if the events do not fit the table of people."""
    if gate.events is None:
        return
    if gate.unit is None:
        raise ValueError("events needs unit: the column of both tables that identifies a record's person")
    if gate.unit in gate.events.columns:
        raise ValueError(f"unit names {gate.unit}, which events.columns also describes: remove it there")
    if gate.confidential:
        raise ValueError("confidential tables have no events: give only one of confidential and events")
    derived = gate.events.derived
    taken = [
        name
        for name, column in gate.columns.items()
        if name.startswith(PREFIX) and derived.get(name) != column
    ]
    if taken:
        raise ValueError(
            f"columns describes {', '.join(taken)}: names beginning with {PREFIX} are reserved for events"
        )


def _check_edges(gate: Gate) -> None:
    if not isinstance(gate.edges, Mapping):
        return
    grouped = [name for name in gate.edges if name in gate.groups]
    if grouped:
        raise ValueError(f"{', '.join(grouped)} has both groups and explicit edges: give only one of them")
    for name, edges in gate.edges.items():
        with at_entry("edges", name):
            if name not in gate.measured_columns:
                suggestion = suggest_names(name, gate.measured_columns, "They are")
                raise ValueError(f"{name!r} is neither a key nor a target. {suggestion}")
            if gate.columns[name].type not in NUMERIC:
                raise ValueError(f"edges are for numbers, but {name} is of type {gate.columns[name].type}")
            check_edges(name, edges)


def _check_bands(gate: Gate) -> None:
    for name, column in gate.columns.items():
        if column.within is None:
            continue
        with at_entry("columns", name):
            if name not in gate.targets:
                raise ValueError(f"column {name} has within but is not a target")
            if gate.grouping.groups_column(name):
                raise ValueError(f"column {name} has both within and groups or edges: give only one of them")


def _check_sensitive(gate: Gate) -> None:
    for name, column in gate.columns.items():
        if not column.sensitive:
            continue
        with at_entry("columns", name, "sensitive"):
            if name not in gate.targets:
                raise ValueError(f"column {name} has sensitive levels but is not a target")
            excluded = [
                level
                for level in column.sensitive_levels
                if level in gate.exclusions.target_levels.get(name, ())
            ]
            if excluded:
                raise ValueError(
                    f"sensitive and exclusions.target_levels both name {', '.join(excluded)}: what is not "
                    "disclosive is not sensitive"
                )


def _check_engine(gate: Gate) -> None:
    if gate.counts_in_database:
        refuse_password(gate.engine)
        _check_database(gate.engine, gate.ground_truth, "ground_truth")
        for name, source in gate.confidential.items():
            _check_database(gate.engine, source, f"confidential.{name}")
    if gate.engine != "auto" and gate.memory_only_features and not find_engine(gate.engine).holds_frames:
        shown = redact_location(gate.engine)
        raise ValueError(f"engine {shown} does not support {gate.memory_only_features}: use memory or auto")


def _check_confidential(gate: Gate) -> None:
    for name in gate.confidential:
        with at_entry("confidential", name):
            _check_confidential_name(gate, name)
    if gate.holdout is not None and gate.holdout not in gate.confidential:
        raise refuse_entry(
            ("holdout",),
            f"{gate.holdout!r} is not a confidential table: list it under confidential, so that no candidate "
            "copies its records",
        )


def _check_confidential_name(gate: Gate, name: str) -> None:
    if not re.fullmatch(NAME, name):
        raise ValueError(
            f"confidential names a table {name!r}: expected lower-case letters, digits and _, beginning "
            "with a letter"
        )
    if name in gate.columns:
        raise ValueError(f"confidential names a table {name!r} like a column: give it another name")


def _check_database(engine: str, source: str | Source, name: str) -> None:
    # The engine must read a confidential table in place: it is never copied.
    kind, _, location = engine.partition("?")[0].partition("://")
    if isinstance(source, (SqlSource, DuckDBSource)):
        if source.table is None:
            raise ValueError(f"engine cannot count a query: create a view for {name} and give its name")
        database = source.url.partition("://")[2] if isinstance(source, SqlSource) else f"/{source.duckdb}"
        if database != location:
            raise ValueError(f"engine must be the database of {name}: both must be equal after ://")
        return
    path = source.path if isinstance(source, FileSource) else source
    if kind not in {"duckdb", "pyspark"} or not path.lower().endswith(".parquet"):
        raise ValueError(
            f"engine cannot read {name} in place: use a table of that database, or a Parquet file with "
            "DuckDB or Spark"
        )


def _check_population(gate: Gate) -> None:
    name = gate.weight
    if name is not None and gate.sampling_fraction is not None:
        raise ValueError("weight and sampling_fraction are both given: remove sampling_fraction")
    if name is not None and name in (*gate.keys, *gate.targets, gate.unit):
        raise ValueError(f"weight names {name}, which is also a key, a target or the unit")
    if name is not None and name in gate.columns and gate.columns[name].type not in NUMERIC:
        raise ValueError(
            f"weight names {name}, which is of type {gate.columns[name].type}: it must be a number"
        )
    if name is None and gate.people == "weighted":
        raise ValueError(
            "people: weighted needs weight, the column with the number of people that a record represents"
        )
    for figure in gate.policy.bounds:
        family = BOUNDABLE[figure].family
        if family == "membership" and gate.holdout is None:
            raise ValueError(f"policy bounds {figure}, which is only measured with a holdout: give holdout")
        if family == "population" and name is None and gate.sampling_fraction is None:
            raise ValueError(
                f"policy bounds {figure}, which is only measured with weight or sampling_fraction: give it"
            )
