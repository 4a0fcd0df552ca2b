"""Notices arrive, in every way that a gate's file can ask for, and tell neither a secret nor an address."""

from __future__ import annotations

import email
import email.policy
import html
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import ValidationError
from support import gates, services
from support.services import PASSWORD, Posted

from disclosure_pipeline.orchestration import failures
from disclosure_pipeline.orchestration.failures import Notice, NoticeError, make_senders, send, write_to_logs
from disclosure_pipeline.policy.gate import Notify

NOTICE = Notice(
    gate="survey",
    candidate="2024-05",
    outcome="refused",
    reasons=(
        "10.9 % of the people are singled out in both tables; at most 8 % is allowed.",
        "contract of synthetic: <größe> & 'ort' " + "is not of type integer; " * 100,
    ),
    run_id="5f3a",
    link="https://dagster.example.org/runs/5f3a",
)
EMAIL = {
    "sender": "gate@example.org",
    "to": ["custodian@example.org", "o'neil+gate@example.org"],
    "host": "localhost",
    "password": "${MAIL_PASSWORD}",
}
SLACK = {"channel": "#gates", "token": "${SLACK_TOKEN}"}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(failures, "PAUSES", (0.0, 0.0))


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Posted]:
    with services.notice_server() as posted:
        monkeypatch.setenv("HOOK", posted.url)
        yield posted


# Sends a notice as a gate's file asks; returns why it did not arrive.
Sent = Callable[..., dict[str, str]]


@pytest.fixture
def sent() -> Iterator[Sent]:
    """Sending in the context that Dagster hands to the sensor after a run that failed."""

    @dg.op
    def fails() -> None:
        raise ValueError(gates.CANARIES[0])

    @dg.job
    def failing() -> None:
        fails()

    with dg.DagsterInstance.ephemeral() as instance:
        ran = failing.execute_in_process(instance=instance, raise_on_error=False, run_config=gates.SILENT)
        context = dg.build_run_status_sensor_context(
            "failures", ran.get_run_failure_event(), instance, ran.dagster_run
        ).for_run_failure()
        yield lambda notify, notice=NOTICE: send(notice, make_senders(Notify.model_validate(notify)), context)


@pytest.mark.parametrize(
    "notify",
    [
        {"webhook": "https://hooks.example.org/T0/secret"},
        {"webhook": "https://hooks.example.org/${NAME}"},
        {"email": EMAIL | {"password": "hunter2"}},
        {"email": EMAIL | {"sender": "gate@example.org\nBcc: other@example.org"}},
        {"email": EMAIL | {"to": ["Custodian <custodian@example.org>"]}},
        {"email": EMAIL | {"to": []}},
        {"email": EMAIL | {"encryption": "none"}},
        {"slack": SLACK | {"token": "xoxb-123"}},
        {"web_server": "dagster.example.org"},
        {"pager": "me"},
    ],
)
def test_a_file_with_a_secret_or_a_mistake_in_it_is_refused(notify: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="notify"):
        gates.gate(notify=notify)


def test_whom_a_gate_tells_is_no_part_of_its_policy() -> None:
    plain = gates.gate()
    message = gates.gate(notify={"webhook": "${HOOK}", "email": EMAIL, "slack": SLACK})
    assert plain.policy_digest() == message.policy_digest()
    assert list(make_senders(plain.notify)) == []
    assert list(make_senders(message.notify)) == ["webhook", "email", "slack"]


def test_the_package_that_slack_needs_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "find_spec", lambda _: None)
    assert gates.load(gates.definition(notify={"webhook": "${HOOK}"}))
    with pytest.raises(NoticeError, match=re.escape("install disclosure-pipeline[slack]")):
        make_senders(Notify.model_validate({"slack": SLACK}))
    with pytest.raises(Exception) as caught:  # so is the gate's code location, when it is loaded
        gates.load(gates.definition(notify={"slack": SLACK}))
    assert isinstance(caught.value.__cause__, NoticeError)


@pytest.mark.parametrize(
    ("outcome", "level"),
    [("refused", logging.WARNING), ("undetermined", logging.ERROR), ("crashed", logging.ERROR)],
)
def test_the_log_always_has_it(outcome: Any, level: int, caplog: pytest.LogCaptureFixture) -> None:
    write_to_logs(replace(NOTICE, outcome=outcome), logging.getLogger("tick"))
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("tick", level),
        (failures.__name__, level),
    ]
    for part in ("survey", "2024-05", "5f3a", *NOTICE.reasons):
        assert part in caplog.text


def test_the_webhook_gets_json(web: Posted, sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", f"{web.url}services/{PASSWORD}")
    assert sent({"webhook": "${HOOK}"}) == {}
    ((path, headers, _),) = web.requests
    assert path == f"/services/{PASSWORD}"
    assert headers["Content-Type"] == "application/json"
    assert web.contents() == [
        {
            "gate": "survey",
            "candidate": "2024-05",
            "outcome": "refused",
            "reasons": list(NOTICE.reasons),
            "run_id": "5f3a",
            "link": "https://dagster.example.org/runs/5f3a",
            "is_published": False,
            "text": NOTICE.text,
        }
    ]


@pytest.mark.parametrize(
    ("answers", "problems"), [([503, 500, 200], {}), ([503], {"webhook": "HTTPError 503"})]
)
def test_it_is_tried_three_times(
    answers: list[int], problems: dict[str, str], web: Posted, sent: Sent
) -> None:
    web.answers = [*answers]
    assert sent({"webhook": "${HOOK}"}) == problems
    assert len(web.requests) == 3


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(web: Posted, sent: Sent, status: int) -> None:
    with services.notice_server() as other:
        web.answers, web.location = [status], other.url
        assert sent({"webhook": "${HOOK}"}) == {"webhook": f"HTTPError {status}"}
        assert other.requests == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (None, "HOOK, which is not set"),
        ("", "must be the URL"),
        (f"file:///etc/{PASSWORD}", "must be the URL"),
        (f"ftp://127.0.0.1/{PASSWORD}", "must be the URL"),
        (f"http://127.0.0.1:PORT/{PASSWORD}", "ConnectionRefusedError"),
        (f"http://127.0.0.1:{PASSWORD}/", "InvalidURL"),
        (f"http://127.0.0.1/\n{PASSWORD}", "InvalidURL"),
    ],
)
def test_an_error_tells_what_is_wrong_but_not_the_url(
    url: str | None, message: str, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    if url is not None:
        monkeypatch.setenv("HOOK", url.replace("PORT", str(services.free_port())))
    (problem,) = sent({"webhook": "${HOOK}"}).values()
    assert message in problem
    assert PASSWORD not in problem and "127.0.0.1" not in problem


def test_a_server_that_hangs_is_left_and_keeps_no_other_waiting(
    web: Posted, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "SECONDS", 0.5)
    web.delay = 1
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        notify = {"webhook": "${HOOK}", "email": EMAIL | {"port": silent.getsockname()[1]}}
        start = time.monotonic()
        problems = sent(notify)
        assert time.monotonic() - start < 10  # without a limit it would wait for ever
    assert set(problems) == {"webhook", "email"}
    assert problems["email"] == "no answer within 0.5 s"


def test_one_way_that_fails_keeps_no_other_from_arriving(
    web: Posted, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAIL_PASSWORD", raising=False)
    problems = sent({"webhook": "${HOOK}", "email": EMAIL})
    assert list(problems) == ["email"]
    assert "MAIL_PASSWORD, which is not set" in problems["email"]
    assert len(web.requests) == 1


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = services.certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    return path


@pytest.mark.parametrize("encryption", ["SSL", "STARTTLS"])
def test_an_email_arrives(trusted: Path, encryption: str, sent: Sent) -> None:
    with services.mail_server(trusted, encryption, PASSWORD) as mailbox:
        arguments = EMAIL | {"port": mailbox.port, "encryption": encryption}
        assert sent({"email": arguments}) == {}
    ((to, raw),) = mailbox.messages
    assert to == EMAIL["to"]
    assert mailbox.logins == ["gate@example.org"]
    assert max(map(len, raw.splitlines())) < 998
    message = email.message_from_string(raw, policy=email.policy.default)
    assert message["Subject"] == "survey, candidate 2024-05: refused"
    assert message["From"] == "gate@example.org"
    assert message.get_content_type() == "text/html"
    body = message.get_content().partition("<!--")[0].replace("<br>", "")
    assert "<" not in body
    assert html.unescape(body).split() == NOTICE.text.split()
    assert gates.CANARIES[0] not in raw  # as Dagster's own text would have it


def test_an_email_with_a_wrong_password_is_said_to_be_one(trusted: Path, sent: Sent) -> None:
    with services.mail_server(trusted, "SSL", "another") as mailbox:
        problems = sent({"email": EMAIL | {"port": mailbox.port, "user": "gate"}})
    assert problems == {"email": "SMTPAuthenticationError 535"}
    assert set(mailbox.logins) == {"gate"}
    assert mailbox.messages == []


def test_a_mail_server_that_cannot_prove_its_name_gets_no_password(
    tmp_path: Path, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with services.mail_server(services.certificate(tmp_path), "SSL", PASSWORD) as mailbox:
        problems = sent({"email": EMAIL | {"port": mailbox.port}})
    assert problems == {"email": "SSLCertVerificationError"}
    assert mailbox.logins == []


@pytest.fixture
def slack(web: Posted, monkeypatch: pytest.MonkeyPatch) -> Posted:
    from dagster_slack import SlackResource

    original: Callable[[SlackResource], Any] = SlackResource.get_client

    def local(resource: SlackResource) -> Any:
        client = original(resource)
        client.base_url = web.url
        return client

    monkeypatch.setattr(SlackResource, "get_client", local)
    monkeypatch.setenv("SLACK_TOKEN", PASSWORD)
    web.body = b'{"ok": true}'
    return web


def test_slack_gets_a_message(slack: Posted, sent: Sent) -> None:
    notice = replace(NOTICE, candidate="'<!channel>'")
    assert sent({"slack": SLACK}, notice) == {}
    ((path, headers, _),) = slack.requests
    assert path == "/chat.postMessage"
    assert headers["Authorization"] == f"Bearer {PASSWORD}"
    (content,) = slack.contents()
    assert content["channel"] == "#gates"
    escaped = notice.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert content["text"] == escaped != notice.text


def test_slack_says_why_it_refuses_a_message(slack: Posted, sent: Sent) -> None:
    slack.body = b'{"ok": false, "error": "channel_not_found"}'
    assert sent({"slack": SLACK}) == {"slack": "SlackApiError channel_not_found"}
