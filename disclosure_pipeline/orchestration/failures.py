"""The outcome of a failed run, from its events, and notices of it: a refusal is not a crash."""

import html
import json
import logging
import re
import textwrap
import threading
import time
import urllib.request
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from importlib.util import find_spec
from typing import Any, get_args

import dagster as dg

from disclosure_pipeline.candidates.arrival import read_recorded_tables
from disclosure_pipeline.candidates.store import is_safe_name
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.orchestration.arrivals import list_tries
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.orchestration.presentation import SUBJECT, WORST_CLAUSE
from disclosure_pipeline.orchestration.steps import (
    CLAUSES,
    FOR_NOTICES,
    VERDICT,
    RunOutcome,
    now,
    redact_errors,
)
from disclosure_pipeline.policy.gate import Email, Gate, Notify, Slack
from disclosure_pipeline.release.standing import Crash, is_published, record_crash
from disclosure_pipeline.tables.files import fill_in_variables

_LOG = logging.getLogger(__name__)

# Seconds to send one notice. A tick of the sensor sends up to five within Dagster's 60 seconds: after those
# it would start again and repeat sent notices.
SECONDS = 8.0
# Seconds between tries.
PAUSES = (0.5, 1.5)


class NoticeError(DisclosurePipelineError):
    """A notice cannot be sent as the gate's file demands."""


@dataclass(frozen=True)
class Notice:
    """The outcome of a failed run, without a value of GT. `candidate` is None for a run of the ground truth.

    `is_published`: the candidate was published before this run.
    """

    gate: str
    candidate: str | None
    outcome: RunOutcome
    reasons: tuple[str, ...]
    run_id: str
    link: str | None
    is_published: bool = False

    @property
    def subject(self) -> str:
        """One line on gate, table and outcome."""
        table = "ground truth" if self.candidate is None else f"candidate {self.candidate}"
        outcome = "could not be determined" if self.outcome == "undetermined" else self.outcome
        return f"{self.gate}, {table}: {f'published, {outcome} today' if self.is_published else outcome}"

    @property
    def text(self) -> str:
        """The whole notice as lines of text."""
        reasons = [f"- {reason}" for reason in self.reasons]
        return "\n".join([self.subject, *reasons, f"Run {self.link or self.run_id}"])


Send = Callable[[Notice, dg.RunFailureSensorContext], None]


def make_senders(notify: Notify) -> dict[str, Send]:
    """Return the senders that a gate's file asks for, by name. Raise NoticeError if a package is missing."""
    senders: dict[str, Send] = {}
    if notify.webhook is not None:
        senders["webhook"] = partial(_post_to_webhook, notify.webhook)
    if notify.email is not None:
        senders["email"] = partial(_mail, notify.email)
    if notify.slack is not None:
        if find_spec("dagster_slack") is None:
            raise NoticeError("notify.slack needs a package: install disclosure-pipeline[slack].")
        senders["slack"] = partial(_post_to_slack, notify.slack)
    return senders


def write_to_logs(notice: Notice, tick_log: logging.Logger) -> None:
    """Write a notice to the logs of the sensor's tick and of the process."""
    level = logging.WARNING if notice.outcome == "refused" else logging.ERROR
    for log in (tick_log, _LOG):
        log.log(level, notice.text)


def send(notice: Notice, senders: Mapping[str, Send], context: dg.RunFailureSensorContext) -> dict[str, str]:
    """Send a notice by all senders at once, within `SECONDS`; return the problem of each that failed."""
    deadline = time.monotonic() + SECONDS
    problems: dict[str, str | None] = dict.fromkeys(senders, f"no answer within {SECONDS:g} s")

    def try_sender(name: str) -> None:
        for pause in (0.0, *PAUSES):
            if time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
            try:
                senders[name](notice, context)
                problems[name] = None
                break
            except DisclosurePipelineError as error:
                problems[name] = str(error)
            except Exception as error:  # from any library: its message may hold an address or a secret
                problems[name] = _describe_foreign_error(error)

    threads = [threading.Thread(target=try_sender, args=(name,), daemon=True) for name in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return {name: problem for name, problem in problems.items() if problem is not None}


def _describe_foreign_error(error: Exception) -> str:
    """Return the type of an error and its harmless codes."""
    cause = getattr(error, "reason", None)  # urllib
    if isinstance(cause, Exception):
        error = cause
    codes = [getattr(error, name, None) for name in ("code", "smtp_code")]
    answer = getattr(getattr(error, "response", None), "data", None)  # Slack
    if isinstance(answer, dict):
        codes.append(answer.get("error"))
    harmless = [str(code) for code in codes if re.fullmatch(r"[a-z0-9_]{1,40}", str(code))]
    return " ".join([type(error).__name__, *harmless])


def _post_to_webhook(secret: str, notice: Notice, _: dg.RunFailureSensorContext) -> None:
    url = fill_in_variables(secret, "notify.webhook")
    if not url.startswith(("https://", "http://")):
        raise NoticeError("notify.webhook must be the URL of a web server: https://...")
    content = json.dumps(asdict(notice) | {"text": notice.text}).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    with _build_opener().open(request, timeout=SECONDS):
        pass


def _build_opener() -> urllib.request.OpenerDirector:
    """Build an opener for http and https only, through the environment's proxy, without redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _mail(email: Email, notice: Notice, context: dg.RunFailureSensorContext) -> None:
    text = html.escape(notice.text).encode("ascii", "xmlcharrefreplace").decode()  # sent as ASCII
    lines = (textwrap.wrap(line, 400) for line in text.splitlines())
    body = "<br>\n".join("\n".join(parts) for parts in lines)  # a line may have 998 characters
    send_by_dagster = dg.make_email_on_run_failure_sensor(
        email_from=email.sender,
        email_password=fill_in_variables(email.password, "notify.email.password"),
        email_to=list(email.to),
        email_body_fn=lambda _: body,
        email_subject_fn=lambda _: notice.subject,
        smtp_host=email.host,
        smtp_type=email.encryption,
        smtp_port=email.port,
        smtp_user=email.user,
    )
    send_by_dagster(context)


def _post_to_slack(slack: Slack, notice: Notice, _: dg.RunFailureSensorContext) -> None:
    from dagster_slack import SlackResource

    client = SlackResource(token=fill_in_variables(slack.token, "notify.slack.token")).get_client()
    text = html.escape(notice.text, quote=False)  # as Slack requires: no name becomes a mention
    client.chat_postMessage(channel=slack.channel, text=text, mrkdwn=False)


# The outcome that a failed blocking check means; for `within_policy` it is the dossier's decision.
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
    """The outcome of a failed run, its reasons without a value of GT, and the clauses that they are on."""

    outcome: RunOutcome
    reasons: tuple[str, ...]
    clauses: tuple[str, ...] = ()


def classify_failed_run(events: Sequence[dg.DagsterEvent], checks: Collection[dg.AssetCheckKey]) -> Ending:
    """Return the outcome of a failed run and its reasons, from its events; `checks` are those of the gate.

    A run is refused or undetermined only if it ended by failed steps that all say so; otherwise it crashed.
    Only the words of the gate's own checks and failures are repeated.
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
    told = {clause for ending in endings for clause in ending.clauses}
    # The checks of a step that gave its reasons are not repeated, nor a clause that a reason is on.
    reasons += [
        _describe_check(check, checks)
        for step, check in failed
        if check.asset_check_key not in checks
        or not ((step in explained and check.blocking) or _read_clause(check) in told)
    ]
    return Ending(_combine_outcomes({ending.outcome for ending in endings}), tuple(dict.fromkeys(reasons)))


def _read_clause(check: dg.AssetCheckEvaluation) -> str | None:
    """Return the name of a check's worst clause, if it has one."""
    clause = check.metadata.get(WORST_CLAUSE)
    return None if clause is None else str(clause.value)


def _combine_outcomes(outcomes: Set[Any]) -> RunOutcome:
    if outcomes == {"refused"}:
        return "refused"
    return "undetermined" if outcomes and outcomes <= {"refused", "undetermined"} else "crashed"


def _ended_by_steps(events: Iterable[dg.DagsterEvent]) -> bool:
    """Return True if failed steps are the only stated reason for the failure."""
    failures = [event.job_failure_data for event in events if event.event_type is _RUN_FAILURE]
    reasons = {
        failure.failure_reason.value if failure and failure.failure_reason else None for failure in failures
    }
    return reasons == {"STEP_FAILURE"}


def _read_decisions(events: Iterable[dg.DagsterEvent]) -> dict[dg.AssetKey, Any]:
    decisions = {}
    for event in events:
        if event.event_type is _MATERIALIZATION:
            materialization = event.step_materialization_data.materialization
            if "decision" in materialization.metadata:
                decisions[materialization.asset_key] = materialization.metadata["decision"].value
    return decisions


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
        meanings.pop(("synthetic", "key_overlap"), None)  # tables that break the contract are not compared
    return _combine_outcomes(set(meanings.values()))


def _classify_failed_step(failure: dg.DagsterEvent, meaning: RunOutcome) -> Ending:
    """Classify a failed step by the failure that it raised; checks that it names must mean the same."""
    failure_data = failure.step_failure_data
    raised = failure_data.user_failure_data
    stated = raised.metadata["outcome"].value if raised and "outcome" in raised.metadata else None
    for outcome in get_args(RunOutcome):
        if raised is not None and stated == outcome:
            contradicts = "failed_checks" in raised.metadata and meaning != outcome
            named = raised.metadata.get(CLAUSES)
            clauses = tuple(map(str, named.value)) if named and isinstance(named.value, list) else ()
            return Ending("crashed" if contradicts else outcome, _read_reasons(raised), clauses)
    # Dagster wraps the errors of others.
    error = failure_data.error and (failure_data.error.cause or failure_data.error)
    kind = error.cls_name if error else None
    if kind == "DagsterAssetCheckFailedError":
        return Ending(meaning, ())
    return Ending("crashed", (f"Step {failure.step_key} failed with {kind}: its message is withheld.",))


def _read_reasons(raised: Any) -> tuple[str, ...]:
    """Return the reasons for notices; the description may hold exact figures of GT."""
    words = raised.metadata.get(FOR_NOTICES)
    if words is None:
        return ("its reasons are withheld: see the user interface",)
    return tuple(map(str, words.value)) if isinstance(words.value, list) else (str(words.value),)


def _describe_check(check: dg.AssetCheckEvaluation, checks: Collection[dg.AssetCheckKey]) -> str:
    # Figures and descriptions are for custodians; those of a foreign check may hold anything.
    problem = "it is not kept"
    if check.asset_check_key not in checks:
        problem = "not a check of the gate, description withheld"
    elif SUBJECT in check.metadata:
        outcome = check.metadata["outcome"].value if "outcome" in check.metadata else None
        breaks = "not as the policy allows" if outcome == "exceeded" else "could not be determined"
        return f"{check.metadata[SUBJECT].value}: {breaks}."
    return f"{check.check_name} of {check.asset_key.path[-1]}: {problem}"


def build_failures_sensor(
    gate: Gate, checks: Iterable[dg.AssetCheckKey], jobs: Sequence[Any]
) -> dg.SensorDefinition:
    """Build the sensor that reports failed runs of the gate's jobs in the logs and as its file demands."""
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
        try:  # a run whose process was lost could not tag itself
            context.instance.add_run_tags(notice.run_id, {VERDICT: notice.outcome})
        except Exception as error:  # from any storage: the notice is sent nevertheless
            context.log.warning(f"Run {notice.run_id} could not be tagged ({type(error).__name__}).")
        try:
            _record_crash(gate, notice, context)
        except Exception as error:  # from any storage: the notice is sent nevertheless
            context.log.warning(f"The crash of {notice.run_id} is not recorded ({type(error).__name__}).")
        write_to_logs(notice, context.log)
        problems = send(notice, senders, context)
        if problems:
            # Dagster does not repeat an event whose sensor failed, and shows only the tick's last error.
            not_sent = "; ".join(f"{sender} ({problem})" for sender, problem in problems.items())
            message = f"The notice of run {notice.run_id} was not sent by {not_sent}. The log above has it."
            context.log.error(message)
            raise NoticeError(message)

    return failures


def _record_crash(gate: Gate, notice: Notice, context: dg.RunFailureSensorContext) -> None:
    if notice.outcome != "crashed" or context.partition_key is None:
        return
    folders, candidate = folders_of(gate), context.partition_key
    run = context.instance.get_run_record_by_id(notice.run_id)
    ended_at = (
        now() if run is None or run.end_time is None else datetime.fromtimestamp(run.end_time, timezone.utc)
    )
    job = context.dagster_run.job_name
    tries = list_tries(context.instance, job, candidate, read_recorded_tables(folders))
    # A candidate that was decided on meanwhile has no crash in turn.
    record_crash(folders, candidate, Crash(ended_at, max(1, tries.crashed), "; ".join(notice.reasons)))


def _build_notice(
    gate: Gate, checks: Collection[dg.AssetCheckKey], context: dg.RunFailureSensorContext
) -> Notice:
    run_id, candidate = context.dagster_run.run_id, context.partition_key
    server = gate.notify.web_server
    try:
        types = {_CHECK, _MATERIALIZATION, _STEP_FAILURE, _RUN_FAILURE}
        entries = context.instance.all_logs(run_id, of_type=types)
        ending = classify_failed_run([entry.get_dagster_event() for entry in entries], checks)
    except Exception as error:  # from any storage: a crash, which somebody must look into
        ending = Ending("crashed", (f"The events of the run cannot be read ({type(error).__name__}).",))
    published = False
    with suppress(DisclosurePipelineError):  # the folders may be unknown here
        published = candidate is not None and is_published(folders_of(gate), candidate)
    return Notice(
        gate=gate.name,
        # Anybody may have added a partition of any name by hand.
        candidate=candidate if candidate is None or is_safe_name(candidate) else ascii(candidate[:100]),
        outcome=ending.outcome,
        reasons=ending.reasons,
        run_id=run_id,
        link=None if server is None else f"{server.rstrip('/')}/runs/{run_id}",
        is_published=published,
    )
