"""The policy as an expectation suite over the long table: a second path to the verdict, kept as evidence.

Great Expectations compares the figures by expectations that it ships. It sees only the long table, never a
record of GT or SD.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import UndeterminedError
from disclosure_pipeline.evaluation.long_table import FigureRow, frame_figures
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import list_expected
from disclosure_pipeline.runtime.worker_process import WorkerProcess

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import BatchExpectation

TABLE = "figures"
"""The name of the metric table."""

ALLOWED = "{}: allowed"
"""The column of the metric table with what a clause allows, where that is a share of GT's own risk."""

_LABELS = ["figure", "about", "part", "basis"]


def build_metric_table(clauses: Sequence[Clause], rows: Sequence[FigureRow], files: int) -> pd.DataFrame:
    """Return the long table with a column for each clause: the figures that it bounds, of its own rows.

    All other entries are missing. A clause on a share of GT's own risk has a second column with what it
    allows. A clause that lacks a row or a figure, or has one twice, has no column.
    """
    table = frame_figures(rows)
    columns: dict[str, pd.Series[Any]] = {}
    for clause in clauses:
        of_figure = [row for row in rows if row.figure == clause.figure]
        expected, places = list_expected(clause, of_figure, files), [row.place for row in of_figure]
        is_own = np.array([place in expected for place in places], dtype=bool)
        own = table[table["figure"] == clause.figure][is_own]
        bounded = {clause.name: _read_bounded(clause, own)}
        if clause.statistic == "at_most_share":
            bounded[ALLOWED.format(clause.name)] = clause.bound * own["own"]
        is_whole = len(own) == len(expected) == len(set(places) & set(expected)) > 0
        if not is_whole or not all(np.isfinite(of).all() for of in bounded.values()):
            continue
        if clause.over == "mean":
            bounded = {name: pd.Series(float(of.mean()), index=of.index) for name, of in bounded.items()}
        columns |= bounded
    return pd.concat([table[_LABELS], pd.DataFrame(columns, index=table.index, dtype=float)], axis=1)


def _read_bounded(clause: Clause, table: pd.DataFrame) -> pd.Series[float]:
    """Return the figures that a clause bounds.

    Beyond other people's records and a table whose targets are permuted, the smaller of both counts.
    """
    place, statistics = (None, ()) if clause.entry is None else (clause.entry.place, clause.entry.statistics)
    allows_for_chance = place is not None and bool(place.beyond_chance) and clause.chance
    if clause.statistic == "beyond":
        beyond = table["beyond_chance" if allows_for_chance else "beyond"]
        if place is None or not place.permuted:
            return beyond
        excess = table["value"] - table["permuted"]
        return beyond.where(beyond <= excess, excess.where(beyond.notna()))
    return table["beyond_chance" if allows_for_chance and "beyond" not in statistics else "value"]


@dataclass(frozen=True)
class Validation:
    """The results of the suite.

    `kept`: name of a clause -> True if it has an expectation, which succeeded.
    `results`: the validation result as plain data, reproducible from the figures.
    """

    kept: dict[str, bool]
    results: dict[str, Any]


def validate(clauses: Sequence[Clause], rows: Sequence[FigureRow], files: int) -> Validation:
    """Hold every clause against the long table of a candidate of so many files, by expectations over it."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )
    from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource

    # Nothing of it is on disk, in the home folder or from the environment.
    context = gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            analytics_enabled=False,
            progress_bars=ProgressBarsConfig(globally=False),
        ),
    )
    # Described before the context knows it, which writes its whole configuration after every change.
    source = PandasDatasource(name=TABLE)
    source.add_dataframe_asset(TABLE).add_batch_definition_whole_dataframe(TABLE)
    context.data_sources.add_pandas(source)
    table = build_metric_table(clauses, rows, files)
    expectations = list(_build_expectations(clauses, table.columns))
    batch = source.get_asset(TABLE).get_batch_definition(TABLE).get_batch({"dataframe": table})
    results = batch.validate(gx.ExpectationSuite(TABLE, expectations)).to_json_dict()
    results["meta"].pop("batch_markers", None)  # the time of the run
    kept = {clause.name: False for clause in clauses}
    for plain in results["results"]:
        name = plain["expectation_config"]["meta"].get("clause")
        if name is not None:
            kept[name] = plain["success"] is True
    return Validation(kept, results)


_validator = WorkerProcess(__name__, "_answer", "great_expectations")


def start_validation() -> None:
    """Start the process that validates: Great Expectations takes seconds to import."""
    _validator.start()


@contextmanager
def validating(clauses: Sequence[Clause], figures: Mapping[str, Any]) -> Iterator[Callable[[], Validation]]:
    """Validate in a process that sees clauses and figures only: yield a function that waits for the results.

    `figures` are those of a dossier. It raises UndeterminedError where there are no results.
    """
    bounded = {clause.figure for clause in clauses}
    question = {
        "clauses": [clause.to_row() for clause in clauses],
        "table": [row for row in figures["table"] if row["figure"] in bounded],
        "files": len(figures["N_s"]),
    }
    with _validator.asking(question) as wait:

        def wait_for_validation() -> Validation:
            answer = wait()
            if not isinstance(answer, dict):
                raise UndeterminedError("Great Expectations gave no results: run the dossier again.")
            return Validation(**answer)

        yield wait_for_validation


def _answer(question: Mapping[str, Any]) -> dict[str, Any]:
    clauses = [Clause.from_row(row) for row in question["clauses"]]
    rows = list(map(FigureRow.from_record, question["table"]))
    return asdict(validate(clauses, rows, question["files"]))


def _build_expectations(clauses: Sequence[Clause], columns: Collection[str]) -> Iterator[BatchExpectation]:
    """Yield the expectation that every clause has its figures, then those that these keep their bounds."""
    from great_expectations.expectations.core.expect_column_pair_values_a_to_be_greater_than_b import (
        ExpectColumnPairValuesAToBeGreaterThanB,
    )
    from great_expectations.expectations.core.expect_column_values_to_be_between import (
        ExpectColumnValuesToBeBetween,
    )
    from great_expectations.expectations.core.expect_table_columns_to_match_set import (
        ExpectTableColumnsToMatchSet,
    )

    names = [clause.name for clause in clauses]
    yield ExpectTableColumnsToMatchSet(column_set=[*_LABELS, *names], exact_match=False)
    for clause in clauses:
        if clause.name not in columns:
            continue  # the first expectation says so
        stated: dict[str, Any] = {
            "severity": "warning" if clause.warns else "critical",
            "meta": {"clause": clause.name, "words": str(clause)},
        }
        if clause.statistic == "at_most_share":
            yield ExpectColumnPairValuesAToBeGreaterThanB(
                column_A=ALLOWED.format(clause.name),
                column_B=clause.name,
                or_equal=True,
                ignore_row_if="both_values_are_missing",
                **stated,
            )
        else:
            ends: dict[str, Any] = {"min_value" if clause.at_least else "max_value": clause.bound}
            yield ExpectColumnValuesToBeBetween(column=clause.name, **ends, **stated)


def find_disagreements(kept: Mapping[str, bool], clauses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of `dossier["clauses"]` on which suite and policy disagree.

    They agree on a clause if it stands in both exactly once, and its expectation succeeded exactly if its
    outcome is "kept".
    """
    occurrences = Counter(clause["name"] for clause in clauses)
    disagreeing = [
        clause["name"]
        for clause in clauses
        if occurrences[clause["name"]] > 1 or kept.get(clause["name"]) is not (clause["outcome"] == "kept")
    ]
    return list(dict.fromkeys([*disagreeing, *(name for name in kept if name not in occurrences)]))
