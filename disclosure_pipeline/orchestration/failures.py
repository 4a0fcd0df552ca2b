"""Report how a run failed, by its own events: a gate that refuses is not broken."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

import dagster as dg

from disclosure_pipeline.candidates.store import is_safe_name
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.orchestration.notices import Notice, NoticeError, make_senders, send, write_to_logs
from disclosure_pipeline.orchestration.presentation import WORST_CLAUSE
from disclosure_pipeline.orchestration.steps import FOR_NOTICES, RunOutcome, redact_errors, tag_run
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.release.standing import is_published

# The meaning of a failed blocking check; that of `within_policy` is the dossier's decision.
_MEANINGS: Mapping[tuple[str, str], RunOutcome] = {
    ("ground_truth", "contract"): "undetermined",
    ("synthetic", "contract"): "refused",
    ("synthetic", "key_overlap"): "undetermined",
}

_CHECK = dg.DagsterEventType.ASSET_CHECK_EVALUATION
_MATERIALIZATION = dg.DagsterEventType.ASSET_MATERIALIZATION
_STEP_FAILURE = dg.DagsterEventType.STEP_FAILURE
_RUN_FAILURE = dg.DagsterEventType.RUN_FAILURE


@dataclass(frozen=True)
class Ending:
    """The outcome of a failed run, and its reasons in words that hold no GT value."""

    outcome: RunOutcome
    reasons: tuple[str, ...]


def classify_failed_run(events: Sequence[dg.DagsterEvent], checks: Collection[dg.AssetCheckKey]) -> Ending:
    """Return how a failed run ended, by its own events; `checks` are those of the gate.

    Refused or undetermined only where failed steps ended it and each of them says so: everything else is a
    crash. Only words of the gate's own checks and failures are repeated.
    """
    failed = [
        (event.step_key, event.asset_check_evaluation_data)
        for event in events
        if event.event_type is _CHECK
        and not event.asset_check_evaluation_data.passed
        and event.asset_check_evaluation_data.severity == dg.AssetCheckSeverity.ERROR
    ]
    decisions = _read_decisions(events)
    endings = []
    explained = set()
    for event in events:
        if event.event_type is _STEP_FAILURE:
            blocking = [check for step, check in failed if step == event.step_key and check.blocking]
            ending = _classify_failed_step(event, _interpret_failed_checks(blocking, decisions, checks))
            endings.append(ending)
            if ending.outcome != "crashed" and ending.reasons:
                explained.add(event.step_key)
    if not endings or not _ended_by_steps(events):
        endings.append(Ending("crashed", ("No step ended the run: its process or Dagster itself failed.",)))
    reasons = [reason for ending in endings for reason in ending.reasons]
    # The reasons that a failed step gave are not repeated for its checks.
    reasons += [
        _describe_check(check, checks)
        for step, check in failed
        if not (step in explained and check.blocking and check.asset_check_key in checks)
        and not _repeats_reasons(check, checks, reasons)
    ]
    return Ending(_combine_outcomes({ending.outcome for ending in endings}), tuple(dict.fromkeys(reasons)))


def _repeats_reasons(
    check: dg.AssetCheckEvaluation, checks: Collection[dg.AssetCheckKey], reasons: Collection[str]
) -> bool:
    """Return whether the clause that a check of the gate names is among the reasons already."""
    clause = check.metadata.get(WORST_CLAUSE)
    if check.asset_check_key not in checks or clause is None:
        return False
    return any(reason.startswith((f"{clause.value} ", f"{clause.value}: ")) for reason in reasons)


def _combine_outcomes(outcomes: Collection[RunOutcome]) -> RunOutcome:
    if outcomes == {"refused"}:
        return "refused"
    return "undetermined" if outcomes and "crashed" not in outcomes else "crashed"


def _ended_by_steps(events: Iterable[dg.DagsterEvent]) -> bool:
    """Return True if the run says that it failed because its steps did, and nothing says otherwise."""
    failures = [event.job_failure_data for event in events if event.event_type is _RUN_FAILURE]
    reasons = {
        failure.failure_reason.value if failure and failure.failure_reason else None for failure in failures
    }
    return reasons == {"STEP_FAILURE"}


def _read_decisions(events: Iterable[dg.DagsterEvent]) -> dict[dg.AssetKey, Any]:
    materializations = (
        event.step_materialization_data.materialization
        for event in events
        if event.event_type is _MATERIALIZATION
    )
    return {
        materialization.asset_key: materialization.metadata["decision"].value
        for materialization in materializations
        if "decision" in materialization.metadata
    }


def _interpret_failed_checks(
    failed: Iterable[dg.AssetCheckEvaluation],
    decisions: Mapping[dg.AssetKey, Any],
    checks: Collection[dg.AssetCheckKey],
) -> RunOutcome:
    meanings: dict[tuple[str, str], Any] = {}
    for check in failed:
        name = (check.asset_key.path[-1], check.check_name)
        if check.asset_check_key not in checks:
            meanings[name] = None
        elif name == ("dossier", "within_policy"):
            meanings[name] = decisions.get(check.asset_key)
        else:
            meanings[name] = _MEANINGS.get(name)
    if ("synthetic", "contract") in meanings:
        meanings.pop(("synthetic", "key_overlap"), None)  # what breaks the contract is not compared
    outcomes = set(meanings.values())
    return _combine_outcomes(outcomes) if outcomes <= {"refused", "undetermined"} else "crashed"


def _classify_failed_step(failure: dg.DagsterEvent, meaning: RunOutcome) -> Ending:
    """Classify a failed step by the failure that it raised; `meaning` is that of its failed blocking checks.

    Where the failure names checks, both have to say the same.
    """
    failure_data = failure.step_failure_data
    raised = failure_data.user_failure_data
    stated = raised.metadata["outcome"].value if raised and "outcome" in raised.metadata else None
    for outcome in get_args(RunOutcome):
        if raised is not None and stated == outcome:
            contradicts = "failed_checks" in raised.metadata and meaning != outcome
            return Ending("crashed" if contradicts else outcome, _read_reasons(raised))
    # Dagster wraps what is not its own.
    error = failure_data.error and (failure_data.error.cause or failure_data.error)
    kind = error.cls_name if error else None
    if kind == "DagsterAssetCheckFailedError":
        return Ending(meaning, ())
    return Ending("crashed", (f"Step {failure.step_key} failed with {kind}: its message is withheld.",))


def _read_reasons(raised: Any) -> tuple[str, ...]:
    reasons = raised.metadata.get(FOR_NOTICES)
    if reasons is not None and isinstance(reasons.value, list):
        return tuple(map(str, reasons.value))
    return (_describe_publicly(raised.metadata),)


def _describe_check(check: dg.AssetCheckEvaluation, checks: Collection[dg.AssetCheckKey]) -> str:
    # Figures and descriptions are for custodians; those of a check that somebody added may hold anything.
    words = "it is not kept"
    if check.asset_check_key not in checks:
        words = "not a check of the gate, words withheld"
    elif WORST_CLAUSE in check.metadata:
        outcome = check.metadata["outcome"].value if "outcome" in check.metadata else None
        breaks = "breaks its bound" if outcome == "exceeded" else "could not be determined"
        words = f"{check.metadata[WORST_CLAUSE].value} {breaks}"
    return f"{check.check_name} of {check.asset_key.path[-1]}: {words}"


def _describe_publicly(metadata: Mapping[str, dg.MetadataValue[Any]]) -> str:
    # Descriptions hold exact figures of GT: they are for custodians.
    words = metadata.get(FOR_NOTICES)
    return str(words.value) if words is not None else "its words are withheld, the user interface has them"


def failures_sensor(
    gate: Gate, checks: Iterable[dg.AssetCheckKey], jobs: Sequence[Any]
) -> dg.SensorDefinition:
    """Report how a failed run of the gate's jobs ended: in the log, and as the gate's file says.

    NoticeError where a sender needs a package that is not installed.
    """
    gate_checks = frozenset(checks)
    senders = make_senders(gate.notify)

    @dg.run_failure_sensor(
        name=f"{gate.name}_failures",
        monitored_jobs=list(jobs),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Reports a failed run of {gate.name}: refused, could not be determined, or crashed",
    )
    @redact_errors
    def failures(context: dg.RunFailureSensorContext) -> None:
        notice = _build_notice(gate, gate_checks, context)
        try:  # the run could not do so itself if its process was lost
            tag_run(context.instance, notice.run_id, notice.outcome)
        except Exception as error:  # of whatever storage: the notice is sent all the same
            context.log.warning(f"Run {notice.run_id} could not be tagged ({type(error).__name__}).")
        write_to_logs(notice, context.log)
        problems = send(notice, senders, context)
        if problems:
            # Dagster does not come back to an event whose sensor failed. The tick shows the last error only.
            not_sent = "; ".join(f"{sender} ({problem})" for sender, problem in problems.items())
            message = f"The notice of run {notice.run_id} was not sent by {not_sent}. The log above has it."
            context.log.error(message)
            raise NoticeError(message)

    return failures


def _build_notice(
    gate: Gate, checks: Collection[dg.AssetCheckKey], context: dg.RunFailureSensorContext
) -> Notice:
    run_id, candidate = context.dagster_run.run_id, context.partition_key
    server = gate.notify.web_server
    run_ending = _read_ending(context.instance, run_id, checks)
    published = False
    with suppress(DisclosurePipelineError):  # the folders may not be known here
        published = candidate is not None and is_published(folders_of(gate), candidate)
    return Notice(
        gate=gate.name,
        # Somebody may have added any partition by hand.
        candidate=candidate if candidate is None or is_safe_name(candidate) else ascii(candidate[:100]),
        outcome=run_ending.outcome,
        reasons=run_ending.reasons,
        run_id=run_id,
        link=None if server is None else f"{server.rstrip('/')}/runs/{run_id}",
        is_published=published,
    )


def _read_ending(instance: dg.DagsterInstance, run_id: str, checks: Collection[dg.AssetCheckKey]) -> Ending:
    try:
        entries = instance.all_logs(run_id, of_type={_CHECK, _MATERIALIZATION, _STEP_FAILURE, _RUN_FAILURE})
        return classify_failed_run([entry.get_dagster_event() for entry in entries], checks)
    except Exception as error:  # of whatever storage: a crash, for somebody has to look at it
        return Ending("crashed", (f"The events of the run cannot be read ({type(error).__name__}).",))
