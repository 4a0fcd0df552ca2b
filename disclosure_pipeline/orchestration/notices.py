"""Notices of failed runs, and what sends them: log, webhook, e-mail, Slack."""

from __future__ import annotations

import html
import json
import logging
import re
import textwrap
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec

import dagster as dg

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.orchestration.steps import RunOutcome
from disclosure_pipeline.policy.gate_sections import Email, Notify, Slack
from disclosure_pipeline.tables.files import fill_in_variables

_LOG = logging.getLogger(__name__)

# Seconds for all the sending of one notice. A tick of the sensor sends up to five and Dagster gives it 60:
# beyond that it would begin again, with the notices that were sent already.
SECONDS = 8.0
# Seconds between one try and the next.
PAUSES = (0.5, 1.5)

_WORDS: Mapping[RunOutcome, str] = {
    "refused": "refused",
    "undetermined": "could not be determined",
    "crashed": "crashed",
}


class NoticeError(DisclosurePipelineError):
    """A notice cannot be sent as the gate's file says."""


@dataclass(frozen=True)
class Notice:
    """The outcome of a failed run, without a GT value. `candidate` is None for a run of the ground truth.

    `is_published`: the candidate was published before, and is refused (or cannot be judged) today.
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
        """One line: whose run failed, and how."""
        table = "ground truth" if self.candidate is None else f"candidate {self.candidate}"
        published = f"published, {_WORDS[self.outcome]} today"
        return f"{self.gate}, {table}: {published if self.is_published else _WORDS[self.outcome]}"

    @property
    def text(self) -> str:
        """The whole notice as lines of text."""
        reasons = [f"- {reason}" for reason in self.reasons]
        return "\n".join([self.subject, *reasons, f"Run {self.link or self.run_id}"])


Send = Callable[[Notice, dg.RunFailureSensorContext], None]


def make_senders(notify: Notify) -> dict[str, Send]:
    """Return the senders that a gate's file asks for, by name. No secret is read before something is sent.

    NoticeError where a package that one needs is not installed.
    """
    by_name: dict[str, Send] = {}
    if notify.webhook is not None:
        by_name["webhook"] = _make_webhook_sender(notify.webhook)
    if notify.email is not None:
        by_name["email"] = _make_email_sender(notify.email)
    if notify.slack is not None:
        if find_spec("dagster_slack") is None:
            raise NoticeError("notify.slack needs a package: install disclosure-pipeline[slack].")
        by_name["slack"] = _make_slack_sender(notify.slack)
    return by_name


def write_to_logs(notice: Notice, tick_log: logging.Logger) -> None:
    """Write a notice into the log of the sensor's tick and that of the process, whatever else is sent."""
    level = logging.WARNING if notice.outcome == "refused" else logging.ERROR
    for log in (tick_log, _LOG):
        log.log(level, notice.text)


def send(notice: Notice, senders: Mapping[str, Send], context: dg.RunFailureSensorContext) -> dict[str, str]:
    """Send a notice by all senders at once, a few times each; return why it did not arrive, by sender.

    It takes `SECONDS` at most: a sender that hangs keeps no other waiting.
    """
    deadline = time.monotonic() + SECONDS
    problems: dict[str, str | None] = {}

    def try_sender(name: str) -> None:
        for pause in (0.0, *PAUSES):
            if time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
            problems[name] = _send_once(senders[name], notice, context)
            if problems[name] is None:
                break

    threads = [threading.Thread(target=try_sender, args=(name,), daemon=True) for name in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    outcomes = {name: problems.get(name, f"no answer within {SECONDS:g} s") for name in senders}
    return {name: problem for name, problem in outcomes.items() if problem is not None}


def _send_once(sender: Send, notice: Notice, context: dg.RunFailureSensorContext) -> str | None:
    """Send the notice; return None, or the error. Of foreign errors only type and code are repeated."""
    try:
        sender(notice, context)
    except DisclosurePipelineError as error:
        return str(error)
    except Exception as error:  # of whatever library: its message may hold an address or a secret
        return _type_and_code(error)
    return None


def _type_and_code(error: Exception) -> str:
    """Return the type of an error, and the code that a server answered with."""
    cause = getattr(error, "reason", None)  # what urllib wraps
    if isinstance(cause, Exception):
        error = cause
    codes = [getattr(error, name, None) for name in ("code", "smtp_code")]
    answer = getattr(getattr(error, "response", None), "data", None)  # what Slack says
    if isinstance(answer, dict):
        codes.append(answer.get("error"))
    harmless = [str(code) for code in codes if re.fullmatch(r"[a-z0-9_]{1,40}", str(code))]
    return " ".join([type(error).__name__, *harmless])


def _make_webhook_sender(secret: str) -> Send:
    def post(notice: Notice, context: dg.RunFailureSensorContext) -> None:
        url = fill_in_variables(secret, "notify.webhook")
        if not url.startswith(("https://", "http://")):
            raise NoticeError("notify.webhook must be the URL of a web server: https://...")
        content = json.dumps(asdict(notice) | {"text": notice.text}).encode()
        request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
        with _build_opener().open(request, timeout=SECONDS):
            pass

    return post


def _build_opener() -> urllib.request.OpenerDirector:
    """Build an opener for http and https alone, through the environment's proxy, without redirects."""
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


def _make_email_sender(email: Email) -> Send:
    def mail(notice: Notice, context: dg.RunFailureSensorContext) -> None:
        text = html.escape(notice.text).encode("ascii", "xmlcharrefreplace").decode()  # it is sent as ASCII
        lines = (textwrap.wrap(line, 400) for line in text.splitlines())
        body = "<br>\n".join("\n".join(parts) for parts in lines)  # 998 characters fit into a line
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

    return mail


def _make_slack_sender(slack: Slack) -> Send:
    def post(notice: Notice, context: dg.RunFailureSensorContext) -> None:
        from dagster_slack import SlackResource

        client = SlackResource(token=fill_in_variables(slack.token, "notify.slack.token")).get_client()
        text = html.escape(notice.text, quote=False)  # as Slack asks: no name becomes a mention
        client.chat_postMessage(channel=slack.channel, text=text, mrkdwn=False)

    return post
