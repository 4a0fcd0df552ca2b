"""A gate: one data set under one policy, as its YAML file writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from disclosure_pipeline.controls import controls
from disclosure_pipeline.elsewhere import Elsewhere
from disclosure_pipeline.evaluation import Counts, count, count_elsewhere, figures
from disclosure_pipeline.exclusions import Exclusions, Pair, check_exclusions
from disclosure_pipeline.policy.families import Measures, further_frames
from disclosure_pipeline.policy.notify import Notify
from disclosure_pipeline.policy.policy import Clause, Finite, Policy, clauses
from disclosure_pipeline.policy.trust import TrustedKey
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.alignment import Grouping, Tables, check_tables
from disclosure_pipeline.tables.dictionary import NUMERIC, Column
from disclosure_pipeline.tables.grouping import explicit_edges
from disclosure_pipeline.tables.locations import filled, redacted
from disclosure_pipeline.tables.sources import (
    ENVIRONMENT,
    DuckDBSource,
    FileSource,
    Source,
    SqlSource,
    refuse_password,
)

# Two numbers; not tuple[float, float], whose JSON schema Dagster cannot show.
Thresholds = Annotated[tuple[Finite, ...], Field(min_length=2, max_length=2)]

# What decides nothing: where files lie, and what people are told.
_NOT_DECIDING: dict[str, Any] = {
    **dict.fromkeys(
        (
            "description",
            "owners",
            "notify",
            "ground_truth",
            "incoming",
            "ground_truth_asset",
            "synthesis_asset",
            "store",
            "releases",
            "trusted_keys",
            "engine",
        ),
        True,
    ),
    "columns": {"__all__": {"description"}},
}


class GatePair(BaseModel):
    """One level of one key with one level of one target."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    key_level: str | None
    target: str
    target_level: str | None


class GateExclusions(BaseModel):
    """Cells to leave out of the measures, once it is told which are disclosive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target_levels: Annotated[
        Mapping[str, tuple[str, ...]], Field(description="Target -> levels that are not disclosive")
    ] = {}
    missing_targets: bool | tuple[str, ...] = False
    missing_keys: bool | tuple[str, ...] = False
    pairs: tuple[GatePair, ...] = ()
    count_over: Annotated[int | None, Field(ge=0, strict=True)] = None

    def as_exclusions(self) -> Exclusions:
        """The library's own form."""
        return Exclusions(
            target_levels=self.target_levels,
            missing_targets=self.missing_targets,
            missing_keys=self.missing_keys,
            pairs=[Pair(**pair.model_dump()) for pair in self.pairs],
            count_over=self.count_over,
        )


class Gate(BaseModel):
    """One data set under one policy. Relative paths start at DAGSTER_HOME."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(description="Prefix of the gate's assets", pattern=r"^[a-z][a-z0-9_]{0,49}$")]
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
    store: Annotated[str, Field(description="Folder for snapshots, figures and dossiers")]
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
    edges: Annotated[
        Literal["pooled", "ground_truth", "equal_width"] | Mapping[str, tuple[float, ...]],
        Field(description="Where groups of numbers end: a rule, or explicit edges per column"),
    ] = "pooled"
    exclusions: GateExclusions = GateExclusions()
    one_way: Thresholds = (50, 90)
    two_way: Thresholds = (4, 80)
    measures: Measures = Measures()
    engine: Annotated[
        str,
        Field(
            description="Who counts; no figure depends on it. memory; partitioned, for tables that do not "
            "fit into memory; auto, which chooses by their size and the memory that is free; or the URL of a "
            f"database that Ibis reaches, without a password, in which the ground truth lies; {ENVIRONMENT}",
            pattern=r"^(auto|memory|partitioned|[a-z][a-z0-9+]*://.*)$",
        ),
    ] = "auto"
    policy: Policy

    @model_validator(mode="after")
    def _fits_together(self) -> Gate:
        for role, names in (("keys", self.keys), ("targets", self.targets)):
            unknown = [name for name in names if name not in self.columns]
            if unknown:
                raise ValueError(f"{role} names {', '.join(unknown)}, which columns does not describe")
            if len(set(names)) < len(names):
                raise ValueError(f"{role} names a column more than once")
        both = [name for name in self.keys if name in self.targets]
        if both:
            raise ValueError(f"{', '.join(both)} cannot be a key and a target at once")
        identifiers = [name for name in self.measured if self.columns[name].type == "text identifier"]
        if identifiers:
            raise ValueError(f"{', '.join(identifiers)} is a text identifier: it can be no key and no target")
        if isinstance(self.edges, Mapping):
            grouped = [name for name in self.edges if name in self.groups]
            if grouped:
                raise ValueError(f"{', '.join(grouped)} has both groups and explicit edges: give one of them")
            unknown = [name for name in self.edges if name not in self.keys and name not in self.targets]
            if unknown:
                raise ValueError(f"edges names {', '.join(unknown)}, which is neither a key nor a target")
            for name, edges in self.edges.items():
                if self.columns[name].type not in NUMERIC:
                    raise ValueError(f"edges are for numbers: {name} is of type {self.columns[name].type}")
                explicit_edges(name, edges)
        check_exclusions(self.exclusions.as_exclusions(), self.keys, self.targets)
        self._check_engine()
        self.clauses()
        return self

    @property
    def in_database(self) -> bool:
        """Whether a database counts."""
        return "://" in self.engine

    def _check_engine(self) -> None:
        if self.in_database:
            refuse_password(self.engine)
            self._check_database()
        if (self.in_database or self.engine == "partitioned") and self.only_in_memory:
            shown = redacted(self.engine)
            raise ValueError(f"engine {shown} cannot do {self.only_in_memory}: use memory or auto")

    def _check_database(self) -> None:
        """The ground truth is a table of that database, or Parquet that it reads in place: never copied."""
        source, (kind, _, place) = self.ground_truth, self.engine.partition("?")[0].partition("://")
        if isinstance(source, (SqlSource, DuckDBSource)):
            if source.table is None:
                raise ValueError("engine counts a table, not a query: make a view of it and name that")
            own = source.url.partition("://")[2] if isinstance(source, SqlSource) else f"/{source.duckdb}"
            if own != place:
                raise ValueError("engine must be the database that ground_truth is in: the same after ://")
            return
        path = source.path if isinstance(source, FileSource) else source
        if kind not in {"duckdb", "pyspark"} or not path.endswith(".parquet"):
            raise ValueError(
                "engine cannot read ground_truth in place: give a table of that database, or Parquet to "
                "DuckDB or Spark"
            )

    @property
    def only_in_memory(self) -> str:
        """What of this gate only tables in memory allow; empty where there is nothing."""
        families = [name for name in ("protection", "prediction") if getattr(self.measures, name)]
        identifiers = [name for name, column in self.columns.items() if column.type == "text identifier"]
        database = not self.in_database and not isinstance(self.ground_truth, (str, FileSource))
        return "; ".join(
            [
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
    def groups(self) -> dict[str, int]:
        """Column -> number of groups, of the keys and targets that are grouped."""
        return {name: groups for name in self.measured if (groups := self.columns[name].groups) is not None}

    @property
    def grouping(self) -> dict[str, Any]:
        """The arguments of `disclosure()` that say how numbers are grouped."""
        special = {name: self.columns[name].special_values for name in self.measured}
        return {"groups": self.groups, "special_values": special, "edges": self.edges}

    @property
    def tasks(self) -> dict[str, str]:
        """How each target is predicted: numbers by regression, the others by classification."""
        return {
            name: "regression" if self.columns[name].type in {"integer", "number"} else "classification"
            for name in self.targets
        }

    def clauses(self) -> tuple[Clause, ...]:
        """Every clause of the policy for the keys and targets of this gate."""
        return clauses(self.policy, self.keys, self.targets, self.measures, self.tasks)

    def measure(self, ground_truth: Any, syntheses: Any, engine: str = "memory") -> Disclosure:
        """All measures of tables in canonical form as this gate defines them. `engine`: as it is told."""
        tables = self._checked(ground_truth, syntheses)
        counts = count(tables, self.exclusions.as_exclusions(), self.two_way[0])
        return self._result(counts, tables, further_frames(self.measures, tables, self.tasks), engine)

    def measure_elsewhere(
        self, tables: Elsewhere, samples: Sequence[pd.DataFrame], strange: Sequence[str]
    ) -> Disclosure:
        """As `measure`, of tables that are counted where they are.

        `samples` are the tables of the controls, in canonical form; `strange` are the warnings of all
        columns, as `comparison.strange_columns` gives them.
        """
        grouping, exclusions = Grouping(**self.grouping), self.exclusions.as_exclusions()
        counts = count_elsewhere(tables, self.keys, self.targets, grouping, exclusions, self.two_way[0])
        counts = replace(counts, strange=strange)
        engine = filled(self.engine, "engine") if self.in_database else "partitioned"
        return self._result(counts, self._checked(samples[0], samples[1:]), {}, tables.told, engine)

    def _checked(self, ground_truth: Any, syntheses: Any) -> Tables:
        return check_tables(
            ground_truth, syntheses, list(self.keys), list(self.targets), Grouping(**self.grouping)
        )

    def _result(
        self,
        counts: Counts,
        of_controls: Tables,
        further: Mapping[str, pd.DataFrame],
        told: str,
        engine: str = "memory",
    ) -> Disclosure:
        """The measures, with those of the controls."""
        result = figures(
            counts,
            (self.one_way[0], self.one_way[1]),
            (self.two_way[0], self.two_way[1]),
            with_attribution=self.measures.attribution,
            with_chance=self.measures.chance,
        )
        of_identity, of_attribute = controls(of_controls, engine)
        frames = {**further, "control_identity": of_identity, "control_attribute": of_attribute}
        return replace(result, further=frames, engine=told)

    def policy_digest(self) -> str:
        """sha256 of everything in the definition that decides: dictionary, keys, targets, policy."""
        deciding = self.model_dump(mode="json", exclude=_NOT_DECIDING)
        text = json.dumps(deciding, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
