"""The checks of a gate's clauses: what Dagster shows of them, a dozen names rather than one a clause.

Dagster sorts checks by name, so that the bounds of the policy (`bound_…`) come first. What is bounded for
several targets is one check, which fails if any of its clauses is not kept.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

from disclosure_pipeline.policy.clauses import Clause, words_of
from disclosure_pipeline.policy.registry import DOUBTS, GUARDS, JUDGED, OF_CONFIDENTIAL
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.tables.messages import capitalized

_CONTROLS = (
    "Can the figures be trusted? An exact copy of GT must show all that it discloses, and a table with "
    "shuffled targets no more than chance gives. Where one fails, nothing is determined."
)
_OTHER_NAMES = {
    "key_overlap": "key_overlap",
    "one_way_flags": "flags_one_way",
    "two_way_flags": "flags_two_way",
    "target_overlap": "overlap_of_targets",
    "excluded": "excluded",
    "warnings": "warnings",
}

# Dagster cuts names that are longer than the column they stand in: these are short enough at 1,440 pixels.
_SHORT = {
    "generalized_cap__": "generalized_",
    "zero_cap__": "zero_cap_",
    "cap__": "cap_",
    "cap_protection": "protection",
    "majority_score": "majority",
    "proportional_score": "proportional",
    "_from_SD_in_sample": "_in_sample",
    "_GT_in_sample": "_in_sample",
}


@dataclass(frozen=True)
class ClauseCheck:
    """One check of an asset, and the clauses that it holds the figures against."""

    name: str
    asset: str
    clauses: tuple[Clause, ...]

    @property
    def description(self) -> str:
        """What it is about, in words, and its bounds."""
        bounds = "; ".join(_list_bounds(self.clauses))
        if self.name == "control":
            return f"{_CONTROLS} {bounds}."
        words = words_of(self.clauses[0].measure)
        return f"{capitalized(words.title)}. {words.sentence} {bounds}."

    def may_fail(self, judgements: Mapping[Clause, Judgement]) -> bool:
        """Return whether it fails as a warning where each clause has that judgement, and is no error."""
        return passes_with_warnings([judgements[clause] for clause in self.clauses])


def group_clauses(clauses: Sequence[Clause]) -> tuple[ClauseCheck, ...]:
    """Return the checks of `identity_disclosure` and `attribute_disclosure`, in order of their first clauses.

    The clauses on key overlaps are left out: they are one check of `synthetic`.

    >>> checks = group_clauses([Clause("repU", None, 8), *(Clause("DiSCO", name, 9) for name in "ab")])
    >>> [(check.name, check.asset, len(check.clauses)) for check in checks]
    [('bound_repU', 'identity_disclosure', 1), ('bound_DiSCO', 'attribute_disclosure', 2)]
    """
    by_check: dict[tuple[str, str], list[Clause]] = {}
    for clause in clauses:
        if clause.measure != "key_overlap":
            of_target = clause.column is not None and clause.measure not in OF_CONFIDENTIAL
            asset = "attribute_disclosure" if of_target else "identity_disclosure"
            by_check.setdefault((asset, name_check(clause)), []).append(clause)
    return tuple(ClauseCheck(name, asset, tuple(members)) for (asset, name), members in by_check.items())


def _list_bounds(clauses: Sequence[Clause]) -> list[str]:
    """Return each bound once, with the targets that it is for."""
    columns_by_bound: dict[str, list[str]] = {}
    for clause in clauses:
        columns = columns_by_bound.setdefault(str(replace(clause, column=None)), [])
        columns += [] if clause.column is None else [clause.column]
    return [
        f"{bound}, each of {', '.join(columns)}" if columns else bound
        for bound, columns in columns_by_bound.items()
    ]


def name_check(clause: Clause) -> str:
    """Return the check that a clause belongs to; no name of a column is part of it.

    >>> name_check(Clause("repU", None, 0.3, share_of="UiO")), name_check(Clause("nearer", None, 70))
    ('bound_repU_share_of_UiO', 'guard_nearer')
    """
    if clause.control:
        return "control"
    if clause.measure in _OTHER_NAMES:
        return _OTHER_NAMES[clause.measure]
    if clause.measure in GUARDS or clause.measure in DOUBTS:
        return f"guard_{JUDGED[clause.measure].shown_with or clause.measure}"
    parts = ["bound", _shorten(clause.measure), clause.share_of and f"share_of_{clause.share_of}"]
    return "_".join(part for part in parts if part)


def _shorten(measure: str) -> str:
    """Return the name of a measure as part of a check's name.

    >>> _shorten("generalized_cap__proportional_score"), _shorten("repU")
    ('generalized_proportional', 'repU')
    """
    for long, short in _SHORT.items():
        measure = measure.removesuffix(long) + short if measure.endswith(long) else measure
        measure = short + measure.removeprefix(long) if measure.startswith(long) else measure
    return measure


def passes_with_warnings(judgements: Sequence[Judgement]) -> bool:
    """Return whether all clauses that are not kept only warn, by the policy or by a waiver; and some is."""
    broken = [judgement for judgement in judgements if judgement.outcome != "kept"]
    return bool(broken) and all(warns(judgement) for judgement in broken)


def warns(judgement: Judgement) -> bool:
    """Return whether all clauses that are not kept only warn: by the policy, or by a waiver."""
    return judgement.clause.warns or judgement.outcome == "waived"


# A check of one candidate runs once a run: more than this would have to run at the same moment.
_NEWEST = 50


def find_check_problems(
    instance: dg.DagsterInstance,
    checks: Iterable[dg.AssetCheckSpec],
    candidate: str,
    may_warn: Collection[dg.AssetCheckKey],
) -> list[str]:
    """Return which checks did not pass for a candidate, in a run that exists, on the latest materialisation.

    A check of `may_warn` may have failed with a warning. Checks without partitions are those of the ground
    truth: they hold for every candidate.
    """
    log = _EventLog(instance)
    problems = []
    for check in checks:
        partition = candidate if check.partitions_def is not None else None
        problem = _find_check_problem(log, check.key, partition, may_warn=check.key in may_warn)
        if problem:
            problems.append(f"check {check.name} of {check.asset_key.path[-1]} {problem}")
    return problems


class _EventLog:
    """What an instance recorded of checks, their assets and runs; an asset and a run are read once."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance
        self.latest_materialization = cache(self._latest_materialization)
        self.run = cache(instance.get_run_by_id)

    def _latest_materialization(self, asset: dg.AssetKey, partition: str | None) -> int | None:
        """Return the storage id of the latest materialisation; None where there never was one."""
        partitions = None if partition is None else [partition]
        latest = self._instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=asset, asset_partitions=partitions), limit=1
        ).records
        return latest[0].storage_id if latest else None

    def read_evaluations(
        self, check: dg.AssetCheckKey, partition: str | None
    ) -> list[tuple[str, dg.AssetCheckEvaluation]]:
        """Return a check's newest evaluations for a partition, newest first, each with its run's id."""
        records = self._instance.event_log_storage.get_asset_check_execution_history(
            check, limit=_NEWEST, partition_filter=PartitionKeyFilter(key=partition)
        )
        return [
            (record.run_id, evaluation)
            for record in records
            if (evaluation := _read_evaluation(record)) is not None
        ]


def _find_check_problem(
    log: _EventLog, check: dg.AssetCheckKey, partition: str | None, *, may_warn: bool
) -> str | None:
    """Say why a check does not count as passed; None if it does."""
    latest = log.latest_materialization(check.asset_key, partition)
    if latest is None:
        return "speaks of an asset that was never materialised"
    evaluations = log.read_evaluations(check, partition)
    on_latest = [
        (run_id, evaluation)
        for run_id, evaluation in evaluations
        if (target := evaluation.target_materialization_data) is not None and target.storage_id == latest
    ]
    if not on_latest:
        return "was not evaluated on the latest materialisation"
    # The newest of all must have passed too: one that speaks of no materialisation is not passed over.
    for run_id, evaluation in (evaluations[0], on_latest[0]):
        if not evaluation.passed and not (may_warn and evaluation.severity == dg.AssetCheckSeverity.WARN):
            return "did not pass"
        run = log.run(run_id) if run_id else None
        if run is None:
            return "passed in no run that exists"
        if partition is not None and run.tags.get("dagster/partition") != partition:
            return "passed in a run of another candidate"
    return None


def _read_evaluation(record: AssetCheckExecutionRecord) -> dg.AssetCheckEvaluation | None:
    """Return the evaluation of an execution; None of one that has only been planned."""
    event = record.event and record.event.dagster_event
    if not event or event.event_type != dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        return None
    return event.asset_check_evaluation_data
