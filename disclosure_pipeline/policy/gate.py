"""A gate: one data set under one policy, as defined by its YAML file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from disclosure_pipeline.counting.engines import list_engines
from disclosure_pipeline.counting.opening import find_engine
from disclosure_pipeline.errors import choose_form, write_count
from disclosure_pipeline.evaluation.arguments import Exclusions, Pair, check_exclusions
from disclosure_pipeline.families.learning.learners import Task
from disclosure_pipeline.measures.catalogue import BOUNDABLE
from disclosure_pipeline.policy.bounds import Finite, Measures, Policy
from disclosure_pipeline.policy.clauses import Clause, list_clauses
from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.tables.contract import PREFIX
from disclosure_pipeline.tables.dictionary import DATES, NUMERIC, Column, FrozenModel, at_entry, refuse_entry
from disclosure_pipeline.tables.events import Joining, Summary, describe_summaries
from disclosure_pipeline.tables.files import redact_location, refuse_password, refuse_unusable_path
from disclosure_pipeline.tables.grouping import Grouping, Within, check_edges, label_groups
from disclosure_pipeline.tables.levels import level_label
from disclosure_pipeline.tables.messages import suggest_names
from disclosure_pipeline.tables.sources import ENVIRONMENT, DuckDBSource, FileSource, Source, SqlSource

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


# Dagster cannot show the JSON schema of tuple[float, float].
Thresholds = Annotated[tuple[Finite, ...], Field(min_length=2, max_length=2)]

NOT_DECIDING = "not deciding"
"""Marks attributes without influence on the verdict: places, people, descriptions."""


class Gate(FrozenModel):
    """One data set under one policy. Relative paths start at DAGSTER_HOME."""

    name: Annotated[str, Field(description="Prefix of the gate's assets", pattern=f"^{NAME}$")]
    description: Annotated[str, NOT_DECIDING] = ""
    owners: Annotated[
        tuple[str, ...],
        Field(description="E-mail addresses, or team:name, of those responsible"),
        NOT_DECIDING,
    ] = ()
    notify: Annotated[
        Notify,
        Field(description="Who is notified of failed runs and verdicts, in addition to the log"),
        NOT_DECIDING,
    ] = Notify()
    ground_truth: Annotated[
        PathText | Source,
        Field(
            description="The confidential table: the path or location of a CSV, TSV, Parquet or Arrow file, "
            "or a table in a database"
        ),
        NOT_DECIDING,
    ]
    ground_truth_asset: Annotated[
        str | None,
        Field(
            description="Key of the Dagster asset that writes the ground truth, such as registers/survey, "
            "for the lineage. The table is still read from ground_truth, and never copied",
            pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$",
        ),
        NOT_DECIDING,
    ] = None
    confidential: Annotated[
        Mapping[str, PathText | Source],
        Field(
            description="Further confidential tables by name, such as last year's ground truth, with sources "
            "like that of ground_truth and the same dictionary. A candidate must not copy their records or "
            "be too close to them"
        ),
        NOT_DECIDING,
    ] = {}
    holdout: Annotated[
        str | None,
        Field(
            description="The confidential table that is a holdout: records of the same population from which "
            "no candidate was made. What a candidate discloses of them is reported beside its figures of the "
            "ground truth. A policy may bound membership inference; a claimed epsilon that is ruled out "
            "leaves a candidate undetermined"
        ),
    ] = None
    incoming: Annotated[
        PathText,
        Field(description="Folder with one folder per candidate, which is complete once it has a _SUCCESS"),
        NOT_DECIDING,
    ]
    synthesis_asset: Annotated[
        str | None,
        Field(
            description="Key of a Dagster asset that returns the candidates, such as models/survey, instead "
            "of incoming: a DataFrame or a list of them, with the partitions of the gate",
            pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$",
        ),
        NOT_DECIDING,
    ] = None
    synthetic_asset: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$")], ...],
        Field(
            description="Keys of Dagster assets that write the candidates, such as models/survey: each "
            "writes one into incoming and names it in the metadata `folder` of its materialisation. The "
            "sensor then ignores other folders"
        ),
        NOT_DECIDING,
    ] = ()
    store: Annotated[PathText, Field(description="Folder for snapshots, figures and dossiers"), NOT_DECIDING]
    pages: Annotated[
        str | None,
        Field(
            description="Address at which a web server shows the folder `store`, such as "
            "https://example.org/store: Dagster and the command line then link to the page of each dossier",
            pattern=r"^https?://[!-~]+$",
        ),
        NOT_DECIDING,
    ] = None
    releases: Annotated[
        PathText, Field(description="Folder in which approved candidates are published"), NOT_DECIDING
    ]
    trusted_keys: Annotated[
        PathText | tuple[TrustedKey, ...],
        Field(
            description="Public keys whose signatures are trusted: a file with one PEM key or a YAML list of "
            "keys and their periods, or that list itself. Every release is signed with one of them"
        ),
        NOT_DECIDING,
    ]
    columns: Annotated[Mapping[str, Column], Field(description="The data dictionary")]
    keys: Annotated[tuple[str, ...], Field(description="Columns that an intruder may know", min_length=1)]
    targets: Annotated[tuple[str, ...], Field(description="Columns to protect", min_length=1)]
    unit: Annotated[
        str | None,
        Field(
            description="The column of the ground truth that identifies whose record it is, if people have "
            "several: a patient's stays, a household's members. Compared as text, never published, and "
            "absent from columns and, unless there are events, from synthetic tables"
        ),
    ] = None
    events: Annotated[
        GateEvents | None,
        Field(
            description="A second table, with events of the people of the ground truth, such as stays or "
            "visits. Both tables, and those of a candidate, have the unit, which is released as a new number"
        ),
        NOT_DECIDING,
    ] = None
    weight: Annotated[
        str | None,
        Field(
            description="The column of the ground truth with the number of people of the population that "
            "each record represents. Neither key nor target; published only if columns says so"
        ),
    ] = None
    sampling_fraction: Annotated[
        float | None,
        Field(
            description="Instead of weight: the size of the ground truth as a share of the population",
            gt=0,
            le=1,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = None
    people: Annotated[
        Literal["counted", "weighted"],
        Field(
            description="weighted: bounds in percent of the records also hold in percent of the population, "
            "by weight: a bound on DiSCO, say, also applies to DiSCO_weighted"
        ),
    ] = "counted"
    edges: Annotated[
        Literal["pooled", "ground_truth", "equal_width"] | Mapping[str, tuple[float, ...]],
        Field(description="Edges of groups of numbers: a rule, or explicit edges per column"),
    ] = "pooled"
    exclusions: GateExclusions = GateExclusions()
    warnings: Annotated[
        Literal["refuse", "warn"],
        Field(
            description="Consequence if the tables may be coded differently, or a synthetic table has real "
            "values of a column like an identifier, or columns that the ground truth lacks"
        ),
    ] = "refuse"
    formulas: Annotated[
        Literal["refuse", "quote"],
        Field(
            description="Consequence of text that spreadsheets would run as a formula: the candidate is "
            "refused, or the text is published with a leading apostrophe"
        ),
    ] = "refuse"
    csv: Annotated[
        bool, Field(description="Whether a release has each table as CSV in addition to Parquet", strict=True)
    ] = False
    one_way: Thresholds = (50, 90)
    two_way: Thresholds = (4, 80)
    measures: Measures = Measures()
    engine: Annotated[
        str,
        Field(
            description="The engine that counts; no figure depends on it. memory; partitioned, for tables "
            "that do not fit into memory; auto, which chooses by table size and free memory; or the URL, "
            "without a password, of the database that holds the ground truth and that Ibis supports; "
            f"{ENVIRONMENT}",
            pattern=rf"^({'|'.join(['auto', *list_engines()])}|[a-z][a-z0-9+]*://.*)$",
        ),
        NOT_DECIDING,
    ] = "auto"
    schedule: Annotated[
        str,
        Field(
            description="When the newest candidates are evaluated again, if a changed ground truth was "
            "recorded since or their last run crashed: minute, hour, day, month and weekday as in cron, in "
            "UTC. 0 6 * * 1 is Mondays at six. New candidates are found by a sensor, at any time",
            pattern=r"^[0-9A-Za-z*/,-]+( [0-9A-Za-z*/,-]+){4}$",
        ),
        NOT_DECIDING,
    ] = "*/15 * * * *"
    power_seconds: Annotated[
        float,
        Field(
            description="Seconds that the asset ground_truth spends, once per ground truth and policy, on "
            "measuring how often the policy refuses honest tables and what share of copies it detects; 0 "
            "turns this off",
            ge=0,
            allow_inf_nan=False,
            strict=True,
        ),
        NOT_DECIDING,
    ] = 60
    remedies: Annotated[
        bool,
        Field(
            description="Whether the dossier of a refusal shows the effect of remedies, tried for some "
            "seconds on the candidate's own tables",
            strict=True,
        ),
        NOT_DECIDING,
    ] = True
    documentation: Annotated[
        Documentation,
        Field(description="Information for readers; it does not affect the verdict"),
        NOT_DECIDING,
    ] = Documentation()
    policy: Policy

    @model_validator(mode="after")
    def _fits_together(self) -> Gate:
        if self.events is not None:
            _check_events(self, self.events)
            # A dumped gate already has them.
            object.__setattr__(self, "columns", {**self.columns, **self.events.derived})
        _check_definition(self)
        with at_entry("policy"):
            self.clauses()
        return self

    @property
    def counts_in_database(self) -> bool:
        """True if the engine is a database."""
        return "://" in self.engine

    @property
    def memory_only_features(self) -> str:
        """The features of this gate that need tables in memory, as text; empty if there are none."""
        families = [name for name in ("protection", "prediction") if getattr(self.measures, name)]
        identifiers = [name for name, column in self.columns.items() if column.type == "text identifier"]
        database = not self.counts_in_database and not isinstance(self.ground_truth, (str, FileSource))
        return "; ".join(
            [
                *(["events"] if self.events else []),
                *(f"measures.{name}" for name in families),
                *(f"column {name!r}, a text identifier" for name in identifiers),
                *(["a ground truth in a database"] if database else []),
            ]
        )

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """The keys, then the targets."""
        return (*self.keys, *self.targets)

    @property
    def labels(self) -> dict[str, str]:
        """The words for readers of each column that has some."""
        return {name: column.label for name, column in self.columns.items() if column.label}

    @property
    def published_columns(self) -> tuple[str, ...]:
        """The keys, targets and columns marked `published`, in the order of the dictionary."""
        return tuple(
            name for name, column in self.columns.items() if name in self.measured_columns or column.published
        )

    @property
    def person_columns(self) -> dict[str, Column]:
        """The data dictionary without the columns that are derived from events."""
        derived = {} if self.events is None else self.events.derived
        return {name: column for name, column in self.columns.items() if name not in derived}

    @property
    def arriving_columns(self) -> dict[str, Column]:
        """The data dictionary of all tables of a candidate: columns of events are named `events.…`."""
        event_columns = {} if self.events is None else self.events.columns
        return self.person_columns | {f"{PREFIX}{name}": column for name, column in event_columns.items()}

    @property
    def released_columns(self) -> tuple[str, ...]:
        """The names of `arriving_columns` that are released, which all columns of events are."""
        published = self.published_columns
        return tuple(name for name in self.arriving_columns if name in published or name not in self.columns)

    @property
    def unit_columns(self) -> dict[str, Column]:
        """The unit, as a category; empty if nobody has several records."""
        return {} if self.unit is None else {self.unit: Column(type="category")}

    @property
    def unpublished_columns(self) -> dict[str, Column]:
        """The unit and weight, which are read from the ground truth but not released."""
        weight = self.columns.get(self.weight or "", Column(type="number"))
        return self.unit_columns | ({} if self.weight is None else {self.weight: weight})

    def describe_columns(self) -> str:
        """Return the number of columns that are measured and released, and the names of the others."""
        released, arriving = self.released_columns, self.arriving_columns
        left_out = ", ".join(name for name in arriving if name not in released)
        are = choose_form(len(released), "is", "are")
        sentence = f"{len(released)} of {write_count(len(arriving), 'column')} {are} measured and released"
        return f"{sentence}; left out: {left_out}" if left_out else sentence

    @property
    def keeping_real_values(self) -> frozenset[str]:
        """The columns whose real values may be published though they are like identifiers."""
        return frozenset(name for name, column in self.columns.items() if column.real_values == "keep")

    def declares_level(self, name: str, level: str) -> bool:
        """Return whether the definition declares a level, which then reveals nothing of GT."""
        column = self.columns[name]
        if column.type == "boolean":
            return level in {"True", "False"}
        declared = [
            *(column.level_names or ()),
            *column.sensitive_levels,
            *map(level_label, column.special_values),
        ]
        if isinstance(self.edges, Mapping) and name in self.edges:
            declared += label_groups([*map(level_label, check_edges(name, self.edges[name]))])
        return level in declared

    @property
    def sensitive(self) -> dict[str, tuple[str, ...]]:
        """The sensitive levels of each target that has some."""
        return {
            name: self.columns[name].sensitive_levels for name in self.targets if self.columns[name].sensitive
        }

    @property
    def groups(self) -> dict[str, int]:
        """The number of groups of each grouped key and target."""
        numbers = {name: self.columns[name].groups for name in self.measured_columns}
        return {name: number for name, number in numbers.items() if number is not None}

    @property
    def grouping(self) -> Grouping:
        """The grouping of numbers. Edges that are found in the tables are shown rounded."""
        special = {name: self.columns[name].special_values for name in self.measured_columns}
        return Grouping(self.groups, special, self.edges, hides_edges=True, within=self.within)

    @property
    def within(self) -> dict[str, Within]:
        """The band of each target that has one."""
        bands = {name: self.columns[name].within for name in self.targets}
        return {name: Within.from_argument(name, band) for name, band in bands.items() if band is not None}

    @property
    def key_grouping(self) -> Grouping:
        """The grouping of numbers among the keys."""
        edges = self.edges
        if isinstance(edges, Mapping):
            edges = {name: column_edges for name, column_edges in edges.items() if name in self.keys}
        groups = {name: number for name, number in self.groups.items() if name in self.keys}
        special = {name: self.columns[name].special_values for name in self.keys}
        return Grouping(groups, special, edges, hides_edges=True)

    @property
    def tasks(self) -> dict[str, Task]:
        """The way each target is predicted: numbers by regression, the others by classification."""
        return {
            name: "regression" if self.columns[name].type in NUMERIC else "classification"
            for name in self.targets
        }

    def clauses(self) -> tuple[Clause, ...]:
        """Return every clause of the gate; see `list_clauses`."""
        return list_clauses(self)

    def policy_digest(self) -> str:
        """Return the sha256 of everything that influences the verdict, such as dictionary and policy."""
        undecisive = [name for name, of in Gate.model_fields.items() if NOT_DECIDING in of.metadata]
        left_out: dict[str, Any] = {
            **dict.fromkeys(undecisive, True),
            "columns": {"__all__": {"label", "description"}},
        }
        deciding = self.model_dump(mode="json", exclude=left_out)
        # Of further tables and of events, places have no influence.
        deciding["confidential"] = sorted(self.confidential)
        deciding["events"] = None if self.events is None else self.events.dump_deciding()
        text = json.dumps(deciding, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _check_definition(gate: Gate) -> None:
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


def _check_events(gate: Gate, events: GateEvents) -> None:
    if gate.unit is None:
        raise ValueError("events needs unit: the column of both tables that identifies a record's person")
    if gate.unit in events.columns:
        raise ValueError(f"unit names {gate.unit}, which events.columns also describes: remove it there")
    if gate.confidential:
        raise ValueError("confidential tables have no events: give only one of confidential and events")
    derived = events.derived
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
            if not re.fullmatch(NAME, name):
                raise ValueError(
                    f"confidential names a table {name!r}: expected lower-case letters, digits and _, "
                    "beginning with a letter"
                )
            if name in gate.columns:
                raise ValueError(f"confidential names a table {name!r} like a column: give it another name")
    if gate.holdout is not None and gate.holdout not in gate.confidential:
        raise refuse_entry(
            ("holdout",),
            f"{gate.holdout!r} is not a confidential table: list it under confidential, so that no candidate "
            "copies its records",
        )


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
