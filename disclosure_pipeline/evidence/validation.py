"""The policy as an expectation suite over metric tables: a second path to the verdict, kept as evidence.

Great Expectations sees only the metric tables, never a record of GT or SD.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.errors import UndeterminedError
from disclosure_pipeline.evaluation.catalogue_entry import Measure
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import (
    CONFIDENTIAL,
    CONFIDENTIAL_GUARDS,
    CONTROLS,
    DOUBTS,
    GUARDS,
    JUDGED,
    MEASURES,
    SMALLER_OF,
    STRICT,
    find_entry,
    find_measure,
)
from disclosure_pipeline.policy.verdict import covers_stacked
from disclosure_pipeline.runtime.worker_process import WorkerProcess

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import BatchExpectation

Row = Mapping[str, Any]

OVERLAPS = ("key_overlap", "target_overlap")
WARNINGS = "warnings"
_CHECKS = ("one_way", "two_way")
_LABELS = ("key", "target", "table", "synthesis")

FILE, ALL_FILES = "file", "all files together"


def build_metric_tables(figures: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return the figures of a dossier as metric tables of numbers and names of columns.

    `identity` has a row per synthesis, with its number of warnings; `attribute` a row per target and
    synthesis, with its numbers of flags; `overlap` a row per key or target and synthesis; `controls` a row
    per target and synthesis, and one without a target for the whole table. A missing figure is NaN.

    For several syntheses, `identity` and `attribute` also have rows on all of them as one table: their
    column `table` says so, and their number follows that of the last synthesis.
    """
    return {
        "identity": _join_rows(["table", "synthesis"], *_with_stack(figures, _select_identity)),
        "attribute": _join_rows(["target", "table", "synthesis"], *_with_stack(figures, _select_attribute)),
        "overlap": _join_rows(
            ["key", "target", "synthesis"], *(_select_shares(figures, frame) for frame in OVERLAPS)
        ),
        "controls": _join_rows(
            ["target", "synthesis"],
            _select_measures(figures, "control_identity", CONTROLS),
            _select_measures(figures, "control_attribute", CONTROLS),
        ),
    }


def _with_stack(
    figures: Mapping[str, Any], select: Callable[[Mapping[str, Any]], Iterable[Iterable[Row]]]
) -> Iterable[Iterable[Row]]:
    """Yield the rows of each synthesis, then those of all of them as one table, if that was measured."""
    for part in select(figures):
        yield ({**row, "table": FILE} for row in part)
    stacked = figures.get("stacked")
    if stacked is not None:
        number = len(figures["N_s"]) + 1
        for part in select(stacked):
            yield ({**row, "table": ALL_FILES, "synthesis": number} for row in part)


def _select_identity(figures: Mapping[str, Any]) -> Iterable[Iterable[Row]]:
    yield from _select_judged(figures, per_target=False)
    yield _select_measures(figures, "warning_counts", {WARNINGS: CONTROLS[WARNINGS]})


def _select_attribute(figures: Mapping[str, Any]) -> Iterable[Iterable[Row]]:
    yield from _select_judged(figures, per_target=True)
    for frame in dict.fromkeys(JUDGED[name].frame for name in SMALLER_OF):
        yield _select_smaller(figures, frame)
    yield _select_confidential(figures)
    for check in _CHECKS:
        yield _count_flags(figures, check)


def _select_judged(figures: Mapping[str, Any], *, per_target: bool) -> Iterable[Iterable[Row]]:
    for measures in (MEASURES, STRICT, GUARDS, DOUBTS):
        entries = {name: find_entry(name, len(figures["N_s"])) for name in measures}
        frames = dict.fromkeys(entry.frame for entry in entries.values() if entry.per_target == per_target)
        for frame in frames:
            yield _select_measures(figures, frame, entries)


def _join_rows(labels: Sequence[str], *parts: Iterable[Row]) -> pd.DataFrame:
    """Join the rows of several parts by their labels; a repeated row stays repeated."""
    joined_rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        occurrences: Counter[tuple[Any, ...]] = Counter()
        for row in part:
            label = tuple(row.get(name) for name in labels)
            occurrences[label] += 1
            joined_row = joined_rows.setdefault(
                (*label, occurrences[label]), dict(zip(labels, label, strict=True))
            )
            joined_row.update(
                {name: math.nan if row[name] is None else row[name] for name in row if name not in _LABELS}
            )
    return pd.DataFrame(list(joined_rows.values()))


def _select_measures(
    figures: Mapping[str, Any], frame: str, measures: Mapping[str, Measure]
) -> Iterable[Row]:
    """Yield the measures of a frame by their names; repeat figures of the whole release per synthesis."""
    columns = {name: measure.column for name, measure in measures.items() if measure.frame == frame}
    of_release = any(measures[name].is_of_release for name in columns)
    rows = figures.get(frame, [])
    all_releases = max((row["releases"] for row in rows if "releases" in row), default=None)
    for row in rows:
        if row.get("releases") != all_releases:
            continue  # an earlier state
        measured = {name: row[column] for name, column in columns.items() if column in row}
        labels = {name: row.get(name) for name in _LABELS}
        for synthesis in range(1, len(figures["N_s"]) + 1) if of_release else [labels["synthesis"]]:
            yield {**labels, "synthesis": synthesis, **measured}


def _select_confidential(figures: Mapping[str, Any]) -> Iterable[Row]:
    """Yield the copies of further confidential tables, with the table's name as the target."""
    columns = {name: GUARDS[name].column for name in CONFIDENTIAL_GUARDS}
    for row in figures.get(CONFIDENTIAL, []):
        measured = {name: row[column] for name, column in columns.items() if column in row}
        yield {"target": row.get(CONFIDENTIAL), "synthesis": row.get("synthesis")} | measured


def _select_smaller(figures: Mapping[str, Any], frame: str) -> Iterable[Row]:
    """Yield the smaller of two figures under the name that a policy bounds; None if one is missing."""
    parts_of = {name: parts for name, parts in SMALLER_OF.items() if JUDGED[name].frame == frame}
    for row in figures.get(frame, []):
        smaller = {
            name: _smallest([row.get(JUDGED[part].column) for part in parts])
            for name, parts in parts_of.items()
        }
        yield {name: row.get(name) for name in _LABELS} | smaller


def _smallest(figures: Sequence[Any]) -> float | None:
    if any(isinstance(figure, bool) or not isinstance(figure, (int, float)) for figure in figures):
        return None
    return min(figures)


def _count_flags(figures: Mapping[str, Any], check: str) -> Iterable[Row]:
    """Yield the number of flags that a check raises, without the flagged levels."""
    if check not in figures:
        return
    flag_counts = Counter((flag.get("target"), flag.get("synthesis")) for flag in figures[check])
    for target in figures.get("targets", []):
        for synthesis in dict.fromkeys(row.get("synthesis") for row in figures.get("identity", [])):
            yield {"target": target, "synthesis": synthesis, f"{check}_flags": flag_counts[target, synthesis]}


def _select_shares(figures: Mapping[str, Any], frame: str) -> Iterable[Row]:
    """Yield both shares of each key or target, and the smaller one under the name that a policy bounds."""
    for row in figures.get(frame, []):
        shares = {name: row.get(name) for name in ("GT_in_SD", "SD_in_GT")}
        labels = {name: row.get(name) for name in _LABELS}
        yield {**labels, **shares, frame: _smallest(list(shares.values()))}


@dataclass(frozen=True)
class Validation:
    """The results of the suites.

    `kept`: name of a clause -> True if it has exactly one expectation, which succeeded. `results`: name of a
    metric table -> its validation result as plain data, reproducible from the figures.
    """

    kept: dict[str, bool]
    results: dict[str, Any]


def validate(clauses: Sequence[Clause], figures: Mapping[str, Any]) -> Validation:
    """Hold every clause against the figures of a dossier, as one expectation over its metric table."""
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
    tables = build_metric_tables(figures)
    # Described before the context knows it, which writes its whole configuration after every change.
    source = PandasDatasource(name="figures")
    for name in tables:
        source.add_dataframe_asset(name).add_batch_definition_whole_dataframe(name)
    context.data_sources.add_pandas(source)
    syntheses = len(figures["N_s"])
    results: dict[str, Any] = {}
    for name, table in tables.items():
        expectations = [
            _build_expectation(clause, syntheses) for clause in clauses if _name_metric_table(clause) == name
        ]
        batch = source.get_asset(name).get_batch_definition(name).get_batch({"dataframe": table})
        result = batch.validate(gx.ExpectationSuite(name, expectations))
        results[name] = result.to_json_dict()
        results[name]["meta"].pop("batch_markers", None)  # the time of the run
    # Exactly one expectation of each clause, and it succeeded.
    successes: dict[str, list[bool]] = {clause.name: [] for clause in clauses}
    for plain in results.values():
        for expectation in plain["results"]:
            clause_name = expectation["expectation_config"]["meta"]["clause"]
            successes[clause_name].append(expectation["success"] is True)
    return Validation({name: outcomes == [True] for name, outcomes in successes.items()}, results)


_validator = WorkerProcess(__name__, "_answer", "great_expectations")


def start_validation() -> None:
    """Start the process that validates: Great Expectations takes seconds to import."""
    _validator.start()


@contextmanager
def validating(clauses: Sequence[Clause], figures: Mapping[str, Any]) -> Iterator[Callable[[], Validation]]:
    """Validate in a process that sees clauses and figures only: yield a function that waits for the results.

    It raises UndeterminedError where there are none.
    """
    question = {"clauses": [asdict(clause) for clause in clauses], "figures": figures}
    with _validator.asking(question) as wait:

        def wait_for_validation() -> Validation:
            answer = wait()
            if not isinstance(answer, dict):
                raise UndeterminedError("Great Expectations gave no results: run the dossier again.")
            return Validation(**answer)

        yield wait_for_validation


def _answer(question: Mapping[str, Any]) -> dict[str, Any]:
    clauses = [Clause.from_row(row) for row in question["clauses"]]
    return asdict(validate(clauses, question["figures"]))


def _build_expectation(clause: Clause, syntheses: int) -> BatchExpectation:
    """Return the expectation that states a clause, with the clause's name in its `meta`."""
    from disclosure_pipeline.evidence import expectations

    common: dict[str, Any] = {
        "measure": clause.measure,
        "bound": clause.bound,
        "where": _select_where(clause),
        "over": clause.over,
        "syntheses": syntheses + (syntheses > 1 and covers_stacked(clause)),
        "severity": "warning" if clause.warns else "critical",
        "meta": {"clause": clause.name, "words": str(clause)},
    }
    if clause.share_of is not None:
        common["share_of"] = clause.share_of
    kind = {
        (False, False): expectations.ExpectMeasureToBeAtMost,
        (False, True): expectations.ExpectMeasureToBeAtLeast,
        (True, False): expectations.ExpectMeasureRatioToBeAtMost,
        (True, True): expectations.ExpectMeasureRatioToBeAtLeast,
    }[clause.share_of is not None, clause.at_least]
    return kind(**common)


def _name_metric_table(clause: Clause) -> str:
    if clause.measure in OVERLAPS:
        return "overlap"
    if clause.measure == WARNINGS:
        return "identity"
    if clause.measure in CONTROLS:
        return "controls"
    if clause.measure in SMALLER_OF:
        return "attribute"
    if clause.measure in CONFIDENTIAL_GUARDS and clause.column is not None:
        return "attribute"
    measure = find_measure(clause.measure)
    return "attribute" if measure is None or measure.per_target else "identity"


def _select_where(clause: Clause) -> dict[str, str | None]:
    if clause.measure == "key_overlap":
        return {"key": WHOLE_KEY if clause.column is None else clause.column}
    table = _name_metric_table(clause)
    where: dict[str, str | None] = {} if table == "identity" else {"target": clause.column}
    has_stack = table in {"identity", "attribute"}
    return where | {"table": FILE} if has_stack and not covers_stacked(clause) else where


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
