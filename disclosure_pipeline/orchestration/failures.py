"""How a run failed, told from its own events: a gate that refuses is not one that is broken."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import dagster as dg

from disclosure_pipeline.orchestration.guard import RunOutcome, guarded
from disclosure_pipeline.orchestration.notices import Notice, NoticeError, send, ways, write
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.release.store import is_safe_name

# What it means that a blocking check failed; of `within_policy` the dossier's decision says it.
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
    """How a failed run ended, and why, in words that hold no GT value."""

    outcome: RunOutcome
    reasons: tuple[str, ...]


def ending(events: Sequence[dg.DagsterEvent], checks: Collection[dg.AssetCheckKey]) -> Ending:
    """How a failed run ended, by its own events; `checks` are those of the gate.

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
    decisions = _decisions(events)
    endings = []
    for event in events:
        if event.event_type is _STEP_FAILURE:
            blocking = [check for step, check in failed if step == event.step_key and check.blocking]
            endings.append(_of_step(event, _meaning(blocking, decisions, checks)))
    if not endings or not _ended_by_steps(events):
        endings.append(Ending("crashed", ("No step ended the run: its process or Dagster itself failed.",)))
    return Ending(
        _worst({each.outcome for each in endings}),
        (
            *(reason for each in endings for reason in each.reasons),
            *(_told(check, checks) for _, check in failed),
        ),
    )


def _worst(outcomes: Collection[RunOutcome]) -> RunOutcome:
    if outcomes == {"refused"}:
        return "refused"
    return "undetermined" if outcomes and "crashed" not in outcomes else "crashed"


def _ended_by_steps(events: Iterable[dg.DagsterEvent]) -> bool:
    """Whether the run says that it failed because its steps did, and nothing says otherwise."""
    data = [event.job_failure_data for event in events if event.event_type is _RUN_FAILURE]
    why = {each.failure_reason.value if each and each.failure_reason else None for each in data}
    return why == {"STEP_FAILURE"}


def _decisions(events: Iterable[dg.DagsterEvent]) -> dict[dg.AssetKey, Any]:
    """What the materialisations of a run say that was decided: that of the dossier does."""
    made = [
        event.step_materialization_data.materialization
        for event in events
        if event.event_type is _MATERIALIZATION
    ]
    return {each.asset_key: each.metadata["decision"].value for each in made if "decision" in each.metadata}


def _meaning(
    failed: Iterable[dg.AssetCheckEvaluation],
    decisions: Mapping[dg.AssetKey, Any],
    checks: Collection[dg.AssetCheckKey],
) -> RunOutcome:
    """What the blocking checks that failed in a step mean together."""
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
    known = set(meanings.values())
    return _worst(known) if known <= {"refused", "undetermined"} else "crashed"


def _of_step(failure: dg.DagsterEvent, meaning: RunOutcome) -> Ending:
    """What a failed step says: a failure that `guarded` raised, or what its failed checks mean."""
    data = failure.step_failure_data
    said = data.user_failure_data
    if said is not None and "outcome" in said.metadata:
        for outcome in get_args(RunOutcome):
            if said.metadata["outcome"].value == outcome:
                return Ending(outcome, (str(said.description),))
    error = data.error and (data.error.cause or data.error)  # Dagster wraps what is not its own
    kind = error.cls_name if error else None
    if kind == "DagsterAssetCheckFailedError":
        return Ending(meaning, ())
    return Ending("crashed", (f"Step {failure.step_key} failed with {kind}: its message is withheld.",))


def _told(check: dg.AssetCheckEvaluation, checks: Collection[dg.AssetCheckKey]) -> str:
    """A failed check in words; those of a check that somebody added to the gate may be of any kind."""
    said = check.description if check.asset_check_key in checks else "not a check of the gate, words withheld"
    return f"{check.check_name} of {check.asset_key.path[-1]}: {said}"


def failures_sensor(
    gate: Gate, checks: Iterable[dg.AssetCheckKey], jobs: Sequence[Any]
) -> dg.SensorDefinition:
    """Tells of every failed run of the gate's jobs how it ended: in the log, and as the gate's file says.

    NoticeError where a way to tell it needs a package that is not installed.
    """
    known = frozenset(checks)
    by = ways(gate.notify)

    @dg.run_failure_sensor(
        name=f"{gate.name}_failures",
        monitored_jobs=list(jobs),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Tells of a failed run of {gate.name}: refused, could not be determined, or crashed",
    )
    @guarded
    def failures(context: dg.RunFailureSensorContext) -> None:
        notice = _notice(gate, known, context)
        write(notice, context.log)
        problems = send(notice, by, context)
        if problems:
            # Dagster does not come back to an event whose sensor failed. The tick shows the last error only.
            ways_and_why = "; ".join(f"{way} ({problem})" for way, problem in problems.items())
            told = f"The notice of run {notice.run_id} was not sent by {ways_and_why}. The log above has it."
            context.log.error(told)
            raise NoticeError(told)

    return failures


def _notice(gate: Gate, checks: Collection[dg.AssetCheckKey], context: dg.RunFailureSensorContext) -> Notice:
    run_id, candidate = context.dagster_run.run_id, context.partition_key
    server = gate.notify.web_server
    found = _read(context.instance, run_id, checks)
    return Notice(
        gate=gate.name,
        # Somebody may have added any partition by hand.
        candidate=candidate if candidate is None or is_safe_name(candidate) else ascii(candidate[:100]),
        outcome=found.outcome,
        reasons=found.reasons,
        run_id=run_id,
        link=None if server is None else f"{server.rstrip('/')}/runs/{run_id}",
    )


def _read(instance: dg.DagsterInstance, run_id: str, checks: Collection[dg.AssetCheckKey]) -> Ending:
    """How a run ended. What cannot be read is a crash: somebody has to look at it, and is told."""
    try:
        entries = instance.all_logs(run_id, of_type={_CHECK, _MATERIALIZATION, _STEP_FAILURE, _RUN_FAILURE})
        return ending([entry.get_dagster_event() for entry in entries], checks)
    except Exception as error:  # of whatever storage
        return Ending("crashed", (f"The events of the run cannot be read ({type(error).__name__}).",))
