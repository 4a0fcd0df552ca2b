"""The policy as an expectation suite over the long table: a second path to the verdict, kept as evidence.

Great Expectations compares the figures by expectations that it ships. It sees only the long table, never a
record of GT or SD.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import UndeterminedError
from disclosure_pipeline.evaluation.long_table import ALL_FILES, FigureRow, frame_figures
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import list_expected
from disclosure_pipeline.runtime.worker_process import WorkerProcess

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import BatchExpectation

TABLE = "figures"
"""The name of the metric table."""

CLAUSE = "clause"
"""The column of the metric table with the number of the clause that a row is held against."""


def build_metric_table(clauses: Sequence[Clause], rows: Sequence[FigureRow]) -> pd.DataFrame:
    """Return the rows of the long table that each clause is held against, with its number.

    Beside the columns of the long table: `allowed`, the bound in the figure's own unit, and `least_beyond`,
    the smaller of what is beyond other people's records and beyond a table whose targets are permuted. What
    is not finite is missing.
    """
    table = frame_figures(rows)
    parts = [_select_rows(clause, table).assign(**{CLAUSE: number}) for number, clause in enumerate(clauses)]
    return pd.concat([part for part in parts if len(part)] or [table.assign(**{CLAUSE: 0}).head(0)])


def _select_rows(clause: Clause, table: pd.DataFrame) -> pd.DataFrame:
    is_about = table["about"].isin(clause.about) if clause.about else table["about"].isna()
    selected = table[(table["figure"] == clause.figure) & is_about]
    if not clause.by_weight:
        selected = selected[selected["basis"] == "records"]
    if clause.over == "mean":
        selected = selected[selected["part"] != ALL_FILES]
    beyond = selected["beyond_chance"] if clause.chance else selected["beyond"]
    least = np.minimum(beyond, selected["value"] - selected["permuted"])
    allowed = clause.bound * selected["own"] if clause.statistic == "at_most_share" else clause.bound
    derived = selected.assign(least_beyond=least, allowed=allowed)
    if clause.over == "mean" and clause.statistic == "at_most_share":
        means = derived[["value", "allowed"]].mean(skipna=False)
        derived = derived.assign(**means)
    return derived.replace([np.inf, -np.inf], np.nan)


@dataclass(frozen=True)
class Validation:
    """The results of the suite.

    `kept`: name of a clause -> True if all of its expectations succeeded, and there are as many as it needs.
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
    of_figure = {clause.figure: [row for row in rows if row.figure == clause.figure] for clause in clauses}
    expectations = [
        expectation
        for number, clause in enumerate(clauses)
        for expectation in _build_expectations(
            clause, number, len(list_expected(clause, of_figure[clause.figure], files))
        )
    ]
    table = build_metric_table(clauses, rows)
    batch = source.get_asset(TABLE).get_batch_definition(TABLE).get_batch({"dataframe": table})
    results = batch.validate(gx.ExpectationSuite(TABLE, expectations)).to_json_dict()
    results["meta"].pop("batch_markers", None)  # the time of the run
    succeeded: dict[str, list[bool]] = {clause.name: [] for clause in clauses}
    for plain in results["results"]:
        succeeded[plain["expectation_config"]["meta"]["clause"]].append(plain["success"] is True)
    needed = Counter(expectation.meta["clause"] for expectation in expectations)  # type: ignore[index]
    kept = {name: all(of) and len(of) == needed[name] > 0 for name, of in succeeded.items()}
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
    question = {
        "clauses": [clause.to_row() for clause in clauses],
        "table": figures["table"],
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
    rows = [FigureRow.from_record(record) for record in question["table"]]
    return asdict(validate(clauses, rows, question["files"]))


def _build_expectations(clause: Clause, number: int, rows: int) -> list[BatchExpectation]:
    """Return the expectations that state a clause: its rows are there, finite, and within the bound.

    The last one alone would pass without a row, or where the figure is missing.
    """
    from great_expectations.expectations.core.expect_column_values_to_not_be_null import (
        ExpectColumnValuesToNotBeNull,
    )
    from great_expectations.expectations.core.expect_table_row_count_to_equal import (
        ExpectTableRowCountToEqual,
    )

    common: dict[str, Any] = {
        "row_condition": f"{CLAUSE}=={number}",
        "condition_parser": "pandas",
        "severity": "warning" if clause.warns else "critical",
        "meta": {"clause": clause.name, "words": str(clause)},
    }
    column = _name_column(clause)
    return [
        ExpectTableRowCountToEqual(value=rows, **common),
        ExpectColumnValuesToNotBeNull(column=column, **common),
        _compare(clause, column, common),
    ]


def _compare(clause: Clause, column: str, common: Mapping[str, Any]) -> BatchExpectation:
    from great_expectations.expectations.core.expect_column_mean_to_be_between import (
        ExpectColumnMeanToBeBetween,
    )
    from great_expectations.expectations.core.expect_column_pair_values_a_to_be_greater_than_b import (
        ExpectColumnPairValuesAToBeGreaterThanB,
    )
    from great_expectations.expectations.core.expect_column_values_to_be_between import (
        ExpectColumnValuesToBeBetween,
    )

    ends: dict[str, Any] = {"min_value" if clause.at_least else "max_value": clause.bound}
    if clause.statistic == "at_most_share":
        return ExpectColumnPairValuesAToBeGreaterThanB(
            column_A="allowed", column_B=column, or_equal=True, **common
        )
    if clause.over == "mean":
        return ExpectColumnMeanToBeBetween(column=column, **ends, **common)
    return ExpectColumnValuesToBeBetween(column=column, **ends, **common)


def _name_column(clause: Clause) -> str:
    """Return the column of the metric table that a clause bounds."""
    place, statistics = (None, ()) if clause.entry is None else (clause.entry.place, clause.entry.statistics)
    if clause.statistic == "beyond":
        if place is not None and place.permuted:
            return "least_beyond"
        return "beyond_chance" if clause.chance else "beyond"
    counts_by_chance = place is not None and bool(place.beyond_chance) and "beyond" not in statistics
    return "beyond_chance" if counts_by_chance and clause.chance else "value"


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
