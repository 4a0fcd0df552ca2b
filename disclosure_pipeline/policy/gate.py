"""A gate: one data set under one policy, as its YAML file writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from disclosure_pipeline.counting.engines import list_engines
from disclosure_pipeline.evaluation.learning.learners import Task
from disclosure_pipeline.policy.bounds import Finite, Measures, Policy
from disclosure_pipeline.policy.clauses import Clause, list_clauses
from disclosure_pipeline.policy.gate_sections import (
    NAME,
    Documentation,
    GateEvents,
    GateExclusions,
    Notify,
    check_definition,
    check_events,
)
from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.tables.contract import PREFIX
from disclosure_pipeline.tables.dictionary import Column, FrozenModel
from disclosure_pipeline.tables.grouping import Grouping, Within, check_edges, label_groups
from disclosure_pipeline.tables.levels import level_label
from disclosure_pipeline.tables.sources import (
    ENVIRONMENT,
    FileSource,
    Source,
)

# Two numbers; not tuple[float, float], whose JSON schema Dagster cannot show.
Thresholds = Annotated[tuple[Finite, ...], Field(min_length=2, max_length=2)]

# Attributes that decide nothing: where files lie, and what people are told.
_NOT_DECIDING: dict[str, Any] = {
    **dict.fromkeys(
        (
            "description",
            "documentation",
            "owners",
            "notify",
            "ground_truth",
            "confidential",
            "holdout",
            "incoming",
            "ground_truth_asset",
            "synthesis_asset",
            "synthetic_asset",
            "store",
            "store_url",
            "releases",
            "trusted_keys",
            "engine",
            "power_seconds",
            "remedies",
            *("unit", "weight", "sampling_fraction", "people", "events"),  # see `policy_digest`
        ),
        True,
    ),
    "columns": {"__all__": {"description", "within"}},  # see `policy_digest`
}


class Gate(FrozenModel):
    """One data set under one policy. Relative paths start at DAGSTER_HOME."""

    name: Annotated[str, Field(description="Prefix of the gate's assets", pattern=f"^{NAME}$")]
    description: str = ""
    owners: Annotated[
        tuple[str, ...], Field(description="E-mail addresses, or team:name, of who answers for the gate")
    ] = ()
    notify: Annotated[
        Notify, Field(description="Who is told of a run that failed, beside the log, and what became of it")
    ] = Notify()
    ground_truth: Annotated[
        str | Source,
        Field(
            description="The confidential table: a path or location of a CSV, TSV, Parquet or Arrow file, or "
            "where it lies in a database"
        ),
    ]
    ground_truth_asset: Annotated[
        str | None,
        Field(
            description="Key of a Dagster asset that writes the ground truth, such as registers/survey: for "
            "the lineage. It is still read where ground_truth says, never copied",
            pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$",
        ),
    ] = None
    confidential: Annotated[
        Mapping[str, str | Source],
        Field(
            description="Further confidential tables, by a name for each, such as last year's ground truth: "
            "sources as that of ground_truth, with its dictionary. No candidate may hold copies of their "
            "records, or be too near to them"
        ),
    ] = {}
    holdout: Annotated[
        str | None,
        Field(
            description="Which of the confidential tables is a holdout: records of the same population that "
            "had no part in making the candidates. What a candidate tells of them stands beside its figures "
            "of the ground truth. A policy may bound how well it tells who took part; a claimed epsilon that "
            "is ruled out leaves a candidate undetermined"
        ),
    ] = None
    incoming: Annotated[
        str,
        Field(description="Folder with a folder for each candidate, complete once it holds a file _SUCCESS"),
    ]
    synthesis_asset: Annotated[
        str | None,
        Field(
            description="Key of a Dagster asset that makes the candidates, such as models/survey: its value "
            "is a DataFrame or a list of them, its partitions are those of the gate. Instead of incoming",
            pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$",
        ),
    ] = None
    synthetic_asset: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$")], ...],
        Field(
            description="Keys of Dagster assets that bring the candidates, such as models/survey: each puts "
            "one into incoming, and the metadata `folder` of its materialisation names it. The sensor takes "
            "no folder that none of them names"
        ),
    ] = ()
    store: Annotated[str, Field(description="Folder for snapshots, figures and dossiers")]
    store_url: Annotated[
        str | None,
        Field(
            description="Where the folder `store` is read in a browser, such as https://example.org/store: "
            "Dagster then links to the page of each dossier",
            pattern=r"^(https?|file)://[!-~]+$",
        ),
    ] = None
    releases: Annotated[str, Field(description="Folder that approved candidates are published in")]
    trusted_keys: Annotated[
        str | tuple[TrustedKey, ...],
        Field(
            description="Public keys whose signatures are believed: a file with one as PEM or a YAML list of "
            "them with their periods, or that list itself. A release is signed with one of them or not made"
        ),
    ]
    columns: Annotated[Mapping[str, Column], Field(description="The data dictionary")]
    keys: Annotated[tuple[str, ...], Field(description="Columns that an intruder may know", min_length=1)]
    targets: Annotated[tuple[str, ...], Field(description="Columns to protect", min_length=1)]
    unit: Annotated[
        str | None,
        Field(
            description="The column of the ground truth that says whose each record is, where people have "
            "several: a patient's stays, a household's members. Compared as text, never published, in no "
            "synthetic table but beside events, and not among the columns"
        ),
    ] = None
    events: Annotated[
        GateEvents | None,
        Field(
            description="A second table, of what happened to the people of the ground truth: their stays, "
            "their visits. Both tables, of a candidate too, have the unit, which is released as a new number"
        ),
    ] = None
    weight: Annotated[
        str | None,
        Field(
            description="The column of the ground truth that says how many people of the population each "
            "record stands for. Neither key nor target, and not published unless columns describes it so"
        ),
    ] = None
    sampling_fraction: Annotated[
        float | None,
        Field(
            description="Instead of weight: the share of the population that the ground truth is a sample of",
            gt=0,
            le=1,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = None
    people: Annotated[
        Literal["counted", "weighted"],
        Field(
            description="weighted: bounds in percent of the records hold for percent of the population, by "
            "weight, too: repU and DiSCO, say, are held against them as repU_weighted and DiSCO_weighted"
        ),
    ] = "counted"
    edges: Annotated[
        Literal["pooled", "ground_truth", "equal_width"] | Mapping[str, tuple[float, ...]],
        Field(description="Where groups of numbers end: a rule, or explicit edges per column"),
    ] = "pooled"
    exclusions: GateExclusions = GateExclusions()
    warnings: Annotated[
        Literal["refuse", "warn"],
        Field(
            description="What follows where the tables may not be coded alike, a column looks like an "
            "identifier, or a synthetic table has columns that the ground truth lacks"
        ),
    ] = "refuse"
    formulas: Annotated[
        Literal["refuse", "quote"],
        Field(
            description="What becomes of text in a synthetic table that spreadsheets would run as formulas: "
            "the candidate is refused, or the text is published with an apostrophe before it"
        ),
    ] = "refuse"
    csv: Annotated[
        bool, Field(description="Whether a release holds each table as CSV too, beside Parquet", strict=True)
    ] = False
    one_way: Thresholds = (50, 90)
    two_way: Thresholds = (4, 80)
    measures: Measures = Measures()
    engine: Annotated[
        str,
        Field(
            description="Who counts; no figure depends on it. memory; partitioned, for tables that do not "
            "fit into memory; auto, which chooses by their size and the memory that is free; or the URL of a "
            f"database that Ibis reaches, without a password, in which the ground truth lies; {ENVIRONMENT}",
            pattern=rf"^({'|'.join(['auto', *list_engines()])}|[a-z][a-z0-9+]*://.*)$",
        ),
    ] = "auto"
    power_seconds: Annotated[
        float,
        Field(
            description="How long the asset ground_truth measures, once for each ground truth and policy, "
            "how often the policy refuses honest tables and which share of copies it notices; 0: not at all",
            ge=0,
            allow_inf_nan=False,
            strict=True,
        ),
    ] = 60
    remedies: Annotated[
        bool,
        Field(
            description="Whether the dossier of a refusal says what remedies would change: tried on the "
            "candidate's own tables, for seconds",
            strict=True,
        ),
    ] = True
    documentation: Annotated[
        Documentation, Field(description="What people are told of the release; it decides nothing")
    ] = Documentation()
    policy: Policy

    @model_validator(mode="after")
    def _fits_together(self) -> Gate:
        if self.events is not None:
            check_events(self)
            # A gate that is written again has them already.
            object.__setattr__(self, "columns", {**self.columns, **self.events.derived})
        check_definition(self)
        self.clauses()
        return self

    @property
    def in_database(self) -> bool:
        """True if a database counts."""
        return "://" in self.engine

    @property
    def only_in_memory(self) -> str:
        """Return what only tables in memory allow in this gate; empty where there is nothing."""
        families = [name for name in ("protection", "prediction") if getattr(self.measures, name)]
        identifiers = [name for name, column in self.columns.items() if column.type == "text identifier"]
        database = not self.in_database and not isinstance(self.ground_truth, (str, FileSource))
        return "; ".join(
            [
                *(["events"] if self.events else []),
                *(f"measures.{name}" for name in families),
                *(f"column {name!r}, a text identifier" for name in identifiers),
                *(["a ground truth in a database"] if database else []),
            ]
        )

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns that the gate reads: keys, then targets."""
        return (*self.keys, *self.targets)

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of a release, in the dictionary's order: keys, targets, and those that say so."""
        return tuple(
            name for name, column in self.columns.items() if name in self.measured or column.published
        )

    @property
    def of_persons(self) -> dict[str, Column]:
        """The data dictionary of the table that arrives, without what is derived of a second one."""
        derived = {} if self.events is None else self.events.derived
        return {name: column for name, column in self.columns.items() if name not in derived}

    @property
    def as_arrived(self) -> dict[str, Column]:
        """The data dictionary of all that arrives: columns of events are named `events.…`."""
        of_events = {} if self.events is None else self.events.columns
        return self.of_persons | {f"{PREFIX}{name}": column for name, column in of_events.items()}

    @property
    def released(self) -> tuple[str, ...]:
        """The columns of `as_arrived` that a release has: of events all."""
        published = self.published
        return tuple(name for name in self.as_arrived if name in published or name not in self.columns)

    @property
    def unpublished(self) -> dict[str, Column]:
        """The columns that are read of the ground truth beside those of a release: its unit and weight."""
        weight = self.columns.get(self.weight or "", Column(type="number"))
        of_unit = {} if self.unit is None else {self.unit: Column(type="category")}
        return of_unit | ({} if self.weight is None else {self.weight: weight})

    def describe_columns(self) -> str:
        """Return how many columns are measured and released, and the names of those that are left out."""
        left_out = ", ".join(name for name in self.as_arrived if name not in self.released)
        sentence = f"{len(self.released)} of {len(self.as_arrived)} columns are measured and released"
        return f"{sentence}; left out: {left_out}" if left_out else sentence

    def declares_level(self, name: str, level: str) -> bool:
        """Return whether a level, as figures name it, is declared here, so that it tells nothing of GT."""
        column = self.columns[name]
        if column.type == "boolean":
            return level in {"True", "False"}
        declared = [*(column.level_names or ()), *map(level_label, column.special_values)]
        if isinstance(self.edges, Mapping) and name in self.edges:
            declared += label_groups([*map(level_label, check_edges(name, self.edges[name]))])
        return level in declared

    @property
    def groups(self) -> dict[str, int]:
        """Column -> number of groups, of the keys and targets that are grouped."""
        return {name: groups for name in self.measured if (groups := self.columns[name].groups) is not None}

    @property
    def grouping(self) -> Grouping:
        """Return how numbers are grouped. Edges that are found in the tables are shown rounded."""
        special = {name: self.columns[name].special_values for name in self.measured}
        return Grouping(self.groups, special, self.edges, hides_edges=True, within=self.within)

    @property
    def within(self) -> dict[str, Within]:
        """Column -> its band, of the targets that have one."""
        bands = {name: self.columns[name].within for name in self.targets}
        return {name: Within.from_argument(name, of) for name, of in bands.items() if of is not None}

    @property
    def key_grouping(self) -> Grouping:
        """Return how numbers among the keys are grouped."""
        grouping = self.grouping
        edges = grouping.edges
        if isinstance(edges, Mapping):
            edges = {name: column_edges for name, column_edges in edges.items() if name in self.keys}
        groups = {name: number for name, number in grouping.groups.items() if name in self.keys}
        return Grouping(groups, grouping.special_values, edges, hides_edges=True)

    @property
    def tasks(self) -> dict[str, Task]:
        """Return how each target is predicted: numbers by regression, the others by classification."""
        return {
            name: "regression" if self.columns[name].type in {"integer", "number"} else "classification"
            for name in self.targets
        }

    def clauses(self) -> tuple[Clause, ...]:
        """Return every clause of the policy for the keys and targets of this gate."""
        return list_clauses(self)

    def policy_digest(self) -> str:
        """Return the sha256 of all in the definition that decides: dictionary, keys, targets, policy."""
        deciding = self.model_dump(mode="json", exclude=_NOT_DECIDING)
        if self.confidential:  # which there are decides, where they lie does not
            deciding["confidential"] = sorted(self.confidential)
        of_people = {name: getattr(self, name) for name in ("unit", "weight", "sampling_fraction")}
        deciding |= {name: value for name, value in of_people.items() if value is not None}
        if self.events is not None:
            deciding["events"] = self.events.deciding()
        if self.within:
            deciding["within"] = {name: self.columns[name].within for name in self.within}
        if self.people == "weighted":
            deciding["people"] = self.people
        if self.holdout is not None:
            deciding["holdout"] = self.holdout
        text = json.dumps(deciding, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
