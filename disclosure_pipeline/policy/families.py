"""The families of measures that a gate switches on, and the frames of those beyond `disclosure()`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from disclosure_pipeline.policy.measured import PROTECTION, Measure
from disclosure_pipeline.prediction import prediction_risk
from disclosure_pipeline.protection import protection_of_each
from disclosure_pipeline.tables.alignment import Tables

Rows = dict[tuple[Any, int], dict[str, Any]]


class Protection(BaseModel):
    """Disclosure protection of each target by itself; grouped columns are compared by their groups."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    methods: Annotated[
        tuple[Literal["cap", "zero_cap", "generalized_cap"], ...],
        Field(description="What happens to GT records whose key is not in SD", min_length=1),
    ] = ("cap",)


class Prediction(BaseModel):
    """Prediction risk of each target; numbers are predicted as numbers. Needs the extra `prediction`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    learner: Literal["nearest_neighbours", "boosted_trees"] = "nearest_neighbours"


class Measures(BaseModel):
    """What is measured beside identity and attribute disclosure. What is off costs nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    chance: Annotated[bool, Field(description="DiSCO_chance and DiSCO_excess")] = True
    attribution: Annotated[bool, Field(description="The CAP family")] = True
    protection: Annotated[bool | Protection, Field(description="Disclosure protection (SDMetrics)")] = False
    prediction: Annotated[bool | Prediction, Field(description="Prediction risk")] = False

    def has(self, measure: Measure) -> bool:
        """Whether a measure is on."""
        if measure.family == "protection":
            return any(measure.column.startswith(f"{method}__") for method in self.methods)
        return measure.family in {"identity", "attribute"} or bool(getattr(self, measure.family))

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


def further_frames(measures: Measures, tables: Tables, tasks: dict[str, str]) -> dict[str, pd.DataFrame]:
    """The frames of the families that are on: index (target, synthesis), a column per measure.

    `tasks` says of each target whether it is predicted by classification or regression.
    """
    frames = {}
    if measures.methods:
        frames["protection"] = _protection(measures.methods, tables)
    if measures.learner:
        frames["prediction"] = _prediction(measures.learner, tables, tasks)
    return frames


def _protection(methods: tuple[str, ...], tables: Tables) -> pd.DataFrame:
    ground_truth, *syntheses = _in_groups(tables)
    rows: Rows = {}
    for synthesis, synthetic in enumerate(syntheses, start=1):
        found = protection_of_each(ground_truth, synthetic, tables.keys, tables.targets, methods)
        for target, by_method in found.items():
            rows[target, synthesis] = {
                f"{method}__{name}": getattr(by_method[method], name)
                for method in methods
                for name in PROTECTION
            }
    rows = {(t, i): rows[t, i] for t in tables.targets for i in range(1, len(tables.frames))}
    return _indexed(rows)


def _prediction(learner: str, tables: Tables, tasks: dict[str, str]) -> pd.DataFrame:
    ground_truth, *syntheses = tables.frames
    grouping = tables.grouping
    rows: Rows = {}
    for target in tables.targets:
        found = prediction_risk(
            ground_truth,
            syntheses,
            tables.keys,
            target,
            learner,
            task=tasks[target],  # type: ignore[arg-type]
            groups={key: groups for key, groups in grouping.groups.items() if key in tables.keys},
            special_values=grouping.special_values,
            edges=grouping.edges if isinstance(grouping.edges, str) else _of_keys(grouping.edges, tables),
        )
        for synthesis, row in enumerate(found.measures.to_dict("records"), start=1):
            rows[target, synthesis] = {str(name): value for name, value in row.items()}
    return _indexed(rows)


def _of_keys(edges: Any, tables: Tables) -> Any:
    return {column: given for column, given in edges.items() if column in tables.keys}


def _indexed(rows: Rows) -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(list(rows), names=["target", "synthesis"])
    return pd.DataFrame(list(rows.values()), index=index)


def _in_groups(tables: Tables) -> list[pd.DataFrame]:
    """The keys and targets of all tables, grouped columns as the categories of their groups."""
    columns = [*tables.keys, *tables.targets]
    frames = [frame[columns].copy(deep=False) for frame in tables.frames]
    for name in columns:
        if tables.grouping.grouped(name):
            coded = tables.coded(name)
            for frame, codes in zip(frames, coded.codes, strict=True):
                present = np.where(codes == coded.missing, -1, codes)
                frame[name] = pd.Categorical.from_codes(present, categories=coded.levels)  # type: ignore[call-overload]
    return frames
