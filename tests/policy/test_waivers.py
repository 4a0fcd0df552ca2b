"""Waivers: exactly one clause, up to exactly its ceiling, for exactly one content, until exactly then."""

import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from support import gates
from support.gates import COPY, GATE, HONEST, Home, checks, failures, read_json

from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import Judgement, decide, hold, waive
from disclosure_pipeline.policy.waivers import Waiver, WaiverError, read_waivers

NOW = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
CONTENT, OTHER, POLICY = "a" * 64, "b" * 64, "c" * 64

REPU = Clause("repU", None, 5)
DISCO = Clause("DiSCO", "income", 10)
SAFE = Clause("cap__score", "income", 0.6, at_least=True)
OVERLAP = Clause("key_overlap", "age", 80, at_least=True)
CONTROL = Clause("copy_repU", None, 1, at_least=True, control=True)
FLAGS = Clause("one_way_flags", "income", 0, warns=True)


def waiver(**changes: Any) -> Waiver:
    given: dict[str, Any] = {
        "name": "agreed",
        "gate": GATE,
        "snapshot": CONTENT,
        "policy_digest": POLICY,
        "clause": "repU",
        "ceiling": 6.0,
        "reason": "Agreed for the pilot",
        "approver": "review board",
        "expires": NOW + SECOND,
    }
    return Waiver(**(given | changes))


def settle(judgements: list[Judgement], *waivers: Waiver, now: datetime = NOW) -> tuple[Any, list[str]]:
    judged, refused = waive(judgements, waivers, gate=GATE, snapshot=CONTENT, policy_digest=POLICY, now=now)
    assert [judgement.clause for judgement in judged] == [judgement.clause for judgement in judgements]
    # Whatever a waiver does, the figures stay what they are.
    assert [judgement.value for judgement in judged] == [judgement.value for judgement in judgements]
    return judged, [judgement.problem for judgement in refused]


def exceeded(clause: Clause = REPU, value: float = 6.0) -> Judgement:
    actual = hold(clause, [value], 1)
    assert actual.outcome == "exceeded"
    return actual


def test_a_waiver_lets_its_clause_pass() -> None:
    (judged,), problems = settle([exceeded()], waiver())
    assert judged.outcome == "waived"
    assert judged.waiver == waiver()
    assert problems == []
    assert decide([judged]) == "approved"
    assert "Agreed for the pilot" in str(judged)
    assert "repU is 6; allowed are 5; waived until" in str(judged)


def test_only_its_clause() -> None:
    judged, _ = settle([exceeded(), exceeded(DISCO, 11)], waiver())
    assert [judgement.outcome for judgement in judged] == ["waived", "exceeded"]
    assert decide(judged) == "refused"


REFUSED: dict[str, tuple[Judgement, dict[str, Any], str]] = {
    "above its ceiling": (exceeded(value=math.nextafter(6.0, 7)), {}, "beyond its ceiling"),
    "expired this moment": (exceeded(), {"expires": NOW}, "expired"),
    "expired a second ago": (exceeded(), {"expires": NOW - SECOND}, "expired"),
    "another gate": (exceeded(), {"gate": "another"}, "for gate another"),
    "another policy": (exceeded(), {"policy_digest": OTHER}, "another policy"),
    "no such clause": (exceeded(), {"clause": "repU2"}, "no clause repU2"),
    "not needed": (hold(REPU, [5.0], 1), {}, "kept without it"),
    "not determined": (hold(REPU, [math.nan], 1), {}, "could not be determined"),
    "nothing measured": (hold(REPU, [], 1), {}, "could not be determined"),
    "an overlap": (exceeded(OVERLAP, 70), {"clause": OVERLAP.name, "ceiling": 60}, "no clause key_overlap"),
    "a control": (hold(CONTROL, [0.5], 1), {"clause": CONTROL.name, "ceiling": 0}, "no clause copy_repU"),
    "a floor above the value": (
        exceeded(SAFE, 0.4),
        {"clause": SAFE.name, "ceiling": math.nextafter(0.4, 1)},
        "beyond its ceiling",
    ),
}


@pytest.mark.parametrize(("judgement", "changes", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_waiver_that_does_not_apply_is_refused_and_refuses(
    judgement: Judgement, changes: dict[str, Any], problem: str
) -> None:
    judged, refused = waive(
        [judgement], [waiver(**changes)], gate=GATE, snapshot=CONTENT, policy_digest=POLICY, now=NOW
    )
    assert judged == (judgement,)
    (actual,) = refused
    assert problem in actual.problem
    assert decide(judged, refused) in {"refused", "undetermined"}
    # Also where nothing else stands against the candidate.
    assert decide([hold(REPU, [1.0], 1)], refused) == "refused"


def test_a_waiver_for_other_content_has_no_say() -> None:
    (judged,), problems = settle([exceeded()], waiver(snapshot=OTHER))
    assert judged.outcome == "exceeded"
    assert problems == []


def test_two_waivers_for_one_clause_contradict_each_other() -> None:
    (judged,), problems = settle([exceeded()], waiver(), waiver(name="again", ceiling=50))
    assert judged.outcome == "exceeded"
    assert len(problems) == 2


def text(**changes: Any) -> str:
    content = waiver().model_dump(mode="json", exclude={"name"}) | changes
    return yaml.safe_dump({name: value for name, value in content.items() if value is not None})


def test_files_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(text(reason="second"))
    (tmp_path / "a.yaml").write_text(text(expires="2026-05-01T14:00:01+02:00"))
    first, second = read_waivers(tmp_path)
    assert (first.name, second.name, second.reason) == ("a", "b", "second")
    assert first.expires == NOW + SECOND


def test_no_folder_is_no_waiver(tmp_path: Path) -> None:
    assert read_waivers(tmp_path / "waivers") == ()


BROKEN = {
    "nobody signed off": text(approver=None),
    "a blank signs off": text(approver="  "),
    "no reason": text(reason=""),
    "no expiry": text(expires=None),
    "a day without a zone": text(expires="2026-05-01"),
    "a time without a zone": text(expires="2026-05-01T12:00:00"),
    "no gate": text(gate=None),
    "no content": text(snapshot=None),
    "a part of a hash": text(snapshot="a" * 12),
    "no policy": text(policy_digest=None),
    "no ceiling": text(ceiling=None),
    "a ceiling of text": text(ceiling="6"),
    "no number as a ceiling": text(ceiling=math.nan),
    "no end to a ceiling": text(ceiling=math.inf),
    "a negative ceiling": text(ceiling=-1.0),
    "an unknown field": text(clauses=["repU"]),
    "a name of its own": text(name="other"),
    "empty": "",
    "a list": "- repU",
    "no YAML": "a: [",
    "a clause that is overruled later": text() + "clause: repU\n",
    "an expiry as a number": text(expires=20270101),
    "an expiry of six years": text(expires="2032-05-01T12:00:00Z"),
    "an octal ceiling": text(ceiling=None) + "ceiling: 010\n",
    "two waivers": text() + "---\n" + text(),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_whole_waiver_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "wrong.yaml").write_text(content)
    with pytest.raises(WaiverError, match=r"wrong\.yaml"):
        read_waivers(tmp_path, NOW)


def test_a_waiver_holds_for_five_years_at_most(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(text(expires="2031-05-01T12:00:00Z"))
    assert len(read_waivers(tmp_path, NOW)) == 1
    with pytest.raises(WaiverError, match=r"long\.yaml:\d+: expires: .* five years"):
        read_waivers(tmp_path, NOW - 2 * timedelta(days=1))


def test_a_gate_with_a_broken_waiver_is_not_loaded() -> None:
    with pytest.raises(Exception, match="Error while building definitions") as refused:
        gates.load(gates.definition(), {"wrong.yaml": text(approver=None)})
    assert isinstance(refused.value.__cause__, WaiverError)


@pytest.mark.parametrize("name", ["agreed.yml", "agreed.yaml~", "agreed", ".agreed.yaml.swp"])
def test_a_file_that_would_not_be_read_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(text())
    with pytest.raises(WaiverError, match=r"no file NAME\.yaml"):
        read_waivers(tmp_path)


STRICT = {"repU": 1, "DiSCO": {"at_most": 12, "targets": {"income": 10}}}


@pytest.fixture(scope="module")
def strict_gate() -> dg.Definitions:
    return gates.load(gates.definition(policy=STRICT))


@pytest.fixture(scope="module")
def refused_once(strict_gate: dg.Definitions) -> Iterator[Path]:
    """A home where an honest candidate was refused, by a bound on repU and nothing else. To be copied."""
    with gates.quick_folder() as path, pytest.MonkeyPatch.context() as patch:
        gates.with_keys(path, patch)
        with gates.instance_on_disk(path) as instance:
            home = Home(path, strict_gate, instance)
            home.prepare({HONEST: gates.honest(), COPY: gates.ground_truth()})
            assert not home.run_gate(HONEST).success
            rows = dossier(home)["clauses"]
            assert [clause["name"] for clause in rows if clause["outcome"] == "exceeded"] == ["repU"]
        yield path


@pytest.fixture
def strict(
    refused_once: Path, strict_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch, remembered_results: None
) -> Iterator[Home]:
    with gates.quick_folder() as folder:
        path = shutil.copytree(refused_once, folder / "home")
        gates.with_keys(path, monkeypatch)
        with gates.instance_on_disk(path) as instance:
            yield Home(path, strict_gate, instance)


def dossier(home: Home, candidate: str = HONEST) -> Any:
    return read_json(home.record(candidate, "dossier.json"))


def given(home: Home, **changes: Any) -> str:
    content = dossier(home)
    (repU,) = [clause["value"] for clause in content["clauses"] if clause["name"] == "repU"]
    return text(
        **{
            "snapshot": content["measured"]["snapshot"],
            "policy_digest": content["policy_digest"],
            "ceiling": repU,
            "expires": (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat(),
            **changes,
        }
    )


def with_waiver(home: Home, content: str) -> Home:
    return replace(home, defs=gates.load(gates.definition(policy=STRICT), {"agreed.yaml": content}))


def test_a_waived_clause_is_warned_of_and_the_candidate_is_published(strict: Home) -> None:
    waived = with_waiver(strict, given(strict))
    ran = waived.run_gate(HONEST)
    assert ran.success, failures(ran)
    check_results = checks(ran)
    for name in ("identity_risk:bound_repU", "dossier:without_waivers"):
        assert not check_results[name].passed
        assert check_results[name].severity == dg.AssetCheckSeverity.WARN
    assert "Agreed for the pilot" in str(check_results["identity_risk:bound_repU"].description)
    assert check_results["dossier:within_policy"].passed
    (message,) = dossier(waived)["waivers"]
    assert (message["name"], message["problem"], message["approver"]) == ("agreed", None, "review board")
    assert "Agreed for the pilot" in waived.record(HONEST, "dossier.md").read_text()
    assert waived.published(HONEST).is_dir()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"snapshot": OTHER}, "no candidate has the content"), ({"ceiling": 1.5}, "beyond its ceiling")],
)
def test_a_waiver_that_does_not_apply_is_told_and_publishes_nothing(
    strict: Home, changes: dict[str, Any], problem: str
) -> None:
    refused = with_waiver(strict, given(strict, **changes))
    ran = refused.run_gate(HONEST)
    assert not ran.success
    check = checks(ran)["dossier:without_waivers"]
    assert not check.passed
    assert problem in str(check.description)
    assert not refused.materialize("release", HONEST).success
    assert refused.nothing_published()


def test_a_waiver_that_was_not_there_for_the_dossier_does_not_release(strict: Home) -> None:
    late = with_waiver(strict, given(strict))
    ran = late.materialize("release", HONEST)
    assert not ran.success
    assert "is refused: repU" in "".join(failures(ran).values())
    assert late.nothing_published()


def test_a_waiver_that_expires_before_the_release_does_not_release(
    strict: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from disclosure_pipeline.orchestration import steps

    waived = with_waiver(strict, given(strict))
    now = steps.now()
    times = iter([now, now, now + timedelta(hours=2)])
    monkeypatch.setattr(steps, "now", lambda: next(times))
    ran = waived.run_gate(HONEST)
    assert ran.get_failed_step_keys() == {f"{GATE}__release"}
    assert "it expired at" in "".join(failures(ran).values())
    assert waived.nothing_published()


def test_a_waiver_that_is_removed_before_the_release_does_not_release(
    strict: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    waived = with_waiver(strict, given(strict))
    assert waived.run_gate(HONEST).success
    published = waived.published(HONEST)
    published.rename(published.with_name("moved"))
    assert not strict.materialize("release", HONEST).success
    assert not published.exists()


@pytest.mark.parametrize("field", ["reason", "approver"])
def test_the_lengths_of_what_a_waiver_says(field: str) -> None:
    """One letter is a text, blanks are none; two thousand are the most."""
    for text in ("x", "x" * 2000):
        assert getattr(waiver(**{field: text}), field) == text
    for text in ("", "  ", "x" * 2001):
        with pytest.raises(ValueError, match=field):
            waiver(**{field: text})


@pytest.mark.parametrize(("value", "limit"), [(None, 5.0), (6.0, None), (None, None)])
def test_a_judgement_without_a_figure_or_a_limit_says_so(value: float | None, limit: float | None) -> None:
    judgement = replace(exceeded(), value=value, limit=limit)
    assert str(judgement) == "repU could not be determined"
