"""A gate: one data set under one policy, as defined by its YAML file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from disclosure_pipeline.counting.engines import list_engines
from disclosure_pipeline.errors import choose_form, write_count
from disclosure_pipeline.families.learning.learners import Task
from disclosure_pipeline.policy.bounds import Finite, Measures, Policy
from disclosure_pipeline.policy.clauses import Clause, list_clauses
from disclosure_pipeline.policy.gate_sections import (
    NAME,
    Documentation,
    GateEvents,
    GateExclusions,
    Notify,
    PathText,
    check_definition,
    check_events,
)
from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.tables.contract import PREFIX
from disclosure_pipeline.tables.dictionary import Column, FrozenModel, at_entry
from disclosure_pipeline.tables.grouping import Grouping, Within, check_edges, label_groups
from disclosure_pipeline.tables.levels import level_label
from disclosure_pipeline.tables.sources import (
    ENVIRONMENT,
    FileSource,
    Source,
)

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
            check_events(self)
            # A dumped gate already has them.
            object.__setattr__(self, "columns", {**self.columns, **self.events.derived})
        check_definition(self)
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
    def unpublished_columns(self) -> dict[str, Column]:
        """The unit and weight, which are read from the ground truth but not released."""
        weight = self.columns.get(self.weight or "", Column(type="number"))
        unit_column = {} if self.unit is None else {self.unit: Column(type="category")}
        return unit_column | ({} if self.weight is None else {self.weight: weight})

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
        grouping = self.grouping
        edges = grouping.edges
        if isinstance(edges, Mapping):
            edges = {name: column_edges for name, column_edges in edges.items() if name in self.keys}
        groups = {name: number for name, number in grouping.groups.items() if name in self.keys}
        special = {name: grouping.special_values[name] for name in self.keys}
        return Grouping(groups, special, edges, hides_edges=True)

    @property
    def tasks(self) -> dict[str, Task]:
        """The way each target is predicted: numbers by regression, the others by classification."""
        return {
            name: "regression" if self.columns[name].type in {"integer", "number"} else "classification"
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
