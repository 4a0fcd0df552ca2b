"""Waivers: exactly one clause, up to exactly its ceiling, for exactly one content, until exactly then."""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from support import gates
from support.gates import COPY, GATE, HONEST, Home, checks, definition, failures
from support.judging import judge_values

from disclosure_pipeline.measures.catalogue import BOUNDABLE, FIGURES
from disclosure_pipeline.measures.entry import Statistic
from disclosure_pipeline.orchestration import steps
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.reviewed_files import Waiver, WaiverError, read_waivers
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import (
    Judgement,
    Outcome,
    can_be_waived,
    decide,
    find_worst_judgement,
    round_judgements,
    waive,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
CONTENT, OTHER, POLICY = "a" * 64, "b" * 64, "c" * 64

REPU = Clause("repU", "at_most", 5)
DISCO = Clause("DiSCO", "at_most", 10, ("income",))
SAFE = Clause("protection", "at_least", 0.6, ("income",))


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


def settle(judgements: list[Judgement], *waivers: Waiver) -> tuple[Any, Any]:
    judged, refused = waive(judgements, waivers, gate=GATE, snapshot=CONTENT, policy_digest=POLICY, now=NOW)
    assert [judgement.clause for judgement in judged] == [judgement.clause for judgement in judgements]
    # Whatever a waiver does, the figures stay what they are.
    assert [judgement.value for judgement in judged] == [judgement.value for judgement in judgements]
    return judged, refused


def exceeded(clause: Clause = REPU, value: float = 6.0) -> Judgement:
    actual = judge_values(clause, [value], 1)
    assert actual.outcome == "exceeded"
    return actual


def test_a_waiver_lets_its_clause_pass_and_no_other() -> None:
    (judged, other), refused = settle([exceeded(), exceeded(DISCO, 11)], waiver())
    assert (judged.outcome, other.outcome, refused) == ("waived", "exceeded", ())
    assert judged.waiver == waiver()
    assert decide([judged]) == "approved"
    assert decide([judged, other]) == "refused"
    assert "Agreed for the pilot" in write_sentence(judged)
    assert "; at most 5 % is allowed; waived until" in write_sentence(judged)


REFUSED: dict[str, tuple[Judgement, dict[str, Any], str]] = {
    "above its ceiling": (exceeded(value=math.nextafter(6.0, 7)), {}, "beyond its ceiling"),
    "expired this moment": (exceeded(), {"expires": NOW}, "expired"),
    "expired a second ago": (exceeded(), {"expires": NOW - SECOND}, "expired"),
    "another gate": (exceeded(), {"gate": "another"}, "for gate another"),
    "another policy": (exceeded(), {"policy_digest": OTHER}, "another policy"),
    "no such clause": (exceeded(), {"clause": "repU2"}, "no clause repU2"),
    "not needed": (judge_values(REPU, [5.0], 1), {}, "kept without it"),
    "not determined": (judge_values(REPU, [math.nan], 1), {}, "could not be determined"),
    "nothing measured": (judge_values(REPU, [], 1), {}, "could not be determined"),
    "a floor above the value": (
        *(exceeded(SAFE, 0.4), {"clause": SAFE.name, "ceiling": math.nextafter(0.4, 1)}),
        "beyond its ceiling",
    ),
}


@pytest.mark.parametrize(("judgement", "changes", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_waiver_that_does_not_apply_is_refused_and_refuses(
    judgement: Judgement, changes: dict[str, Any], problem: str
) -> None:
    judged, refused = settle([judgement], waiver(**changes))
    assert judged == (judgement,)
    (actual,) = refused
    assert problem in actual.problem
    assert decide(judged, refused) in {"refused", "undetermined"}
    # Also where nothing else stands against the candidate.
    assert decide([judge_values(REPU, [1.0], 1)], refused) == "refused"


def test_a_waiver_for_other_content_has_no_say_and_two_for_one_clause_contradict_each_other() -> None:
    for waivers, refused in (
        ([waiver(snapshot=OTHER)], 0),
        ([waiver(), waiver(name="again", ceiling=50)], 2),
    ):
        (judged,), problems = settle([exceeded()], *waivers)
        assert (judged.outcome, len(problems)) == ("exceeded", refused)


def text(**changes: Any) -> str:
    content = waiver().model_dump(mode="json", exclude={"name"}) | changes
    return yaml.safe_dump({name: value for name, value in content.items() if value is not None})


def test_files_are_read_in_order(tmp_path: Path) -> None:
    assert read_waivers(tmp_path / "waivers") == read_waivers(tmp_path) == ()
    (tmp_path / "b.yaml").write_text(text(reason="second"))
    (tmp_path / "a.yaml").write_text(text(expires="2026-05-01T14:00:01+02:00"))
    first, second = read_waivers(tmp_path)
    assert (first.name, second.name, second.reason) == ("a", "b", "second")
    assert first.expires == NOW + SECOND


BROKEN = {
    **{f"no {name}": text(**{name: None}) for name in Waiver.model_fields if name != "name"},
    "a day without a zone": text(expires="2026-05-01"),
    "a time without a zone": text(expires="2026-05-01T12:00:00"),
    "a part of a hash": text(snapshot="a" * 12),
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
    with pytest.raises(WaiverError, match=r"not a regular \.yaml file"):
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
            outcomes = home.outcomes(HONEST)
            assert [name for name, outcome in outcomes.items() if outcome == "exceeded"] == ["repU"]
        yield path


@pytest.fixture
def strict(
    refused_once: Path, strict_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch, remembered_results: None
) -> Iterator[Home]:
    with gates.copied_home(refused_once, strict_gate, monkeypatch) as home:
        yield home


def given(home: Home, **changes: Any) -> str:
    content = home.dossier(HONEST)
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
    for name in ("identity_risk:found_repU", "dossier:without_waivers"):
        assert not check_results[name].passed
        assert check_results[name].severity == dg.AssetCheckSeverity.WARN
    assert "Agreed for the pilot" in str(check_results["identity_risk:found_repU"].description)
    assert check_results["dossier:within_policy"].passed
    (message,) = waived.dossier(HONEST)["waivers"]
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


@pytest.mark.parametrize(
    ("is_decided", "is_there", "hours", "said"),
    [
        (False, True, 0, "are singled out in both tables"),  # it was not there for the dossier
        (True, True, 2, "it expired at"),
        (True, False, 0, ""),  # it was removed
    ],
)
def test_a_waiver_has_to_hold_for_the_dossier_and_the_release(
    strict: Home, is_decided: bool, is_there: bool, hours: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waived = with_waiver(strict, given(strict))
    assert not is_decided or waived.decide(HONEST).success
    later = steps.now() + timedelta(hours=hours)
    monkeypatch.setattr(steps, "now", lambda: later)
    ran = (waived if is_there else strict).materialize("release", HONEST)
    assert not ran.success and said in "".join(failures(ran).values())
    assert waived.nothing_published()


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
    assert write_sentence(judgement) == ("People singled out in both tables: could not be determined.")
    undetermined = judge_values(REPU, [math.nan], 1)
    [published] = round_judgements([undetermined], [300, 300], 10)
    assert write_sentence(published) == write_sentence(judgement) and published.value is None


# Which clauses a waiver may let pass: every kind of clause, and every measure that a policy can bound


# One clause of each kind, two figures that do not keep it (of the measure, and of what its bound is a share
# of), and whether a waiver may let it pass.
KINDS: dict[str, tuple[Clause, float, float | None, bool]] = {
    "figure of the table": (Clause("repU", "at_most", 5), 6, None, True),
    "figure of a target": (Clause("DiSCO", "at_most", 5, ("work",)), 6, None, True),
    "beyond others": (Clause("DiSCO", "beyond", 5, ("work",)), 6, None, True),
    "mean of the syntheses": (Clause("DiSCO", "at_most", 5, ("work",), over="mean"), 6, None, True),
    "share of GT's own risk": (Clause("repU", "at_most_share", 0.5), 6, 10, True),
    "share of GT's own risk of a target": (Clause("DiSCO", "at_most_share", 0.5, ("work",)), 6, 10, True),
    "figure that is safe when high": (Clause("protection", "at_least", 0.5, ("work",)), 0.4, None, True),
    "records that are excluded": (Clause("excluded", "at_most", 50, ("work",)), 60, None, False),
    "warnings that warn": (Clause("warnings", "at_most", 0, warns=True), 1, None, False),
    **{
        name: (
            Clause(name, figure.default.statistic, figure.default.bound),
            figure.default.bound + (-1 if figure.high_is_safe else 1),
            None,
            name == "detection_limit",
        )
        for name, figure in FIGURES.items()
        if figure.default is not None and not figure.is_of_release
    },
}


@pytest.mark.parametrize(("clause", "figure", "original", "waivable"), KINDS.values(), ids=KINDS)
def test_every_kind_of_clause(clause: Clause, figure: float, original: float | None, waivable: bool) -> None:
    """As a waiver for exactly this clause finds it, whose ceiling allows the figure."""
    assert can_be_waived(clause) is waivable
    broken = judge_values(clause, [figure], 1, () if original is None else [original])
    assert broken.outcome in {"exceeded", "undetermined"}
    (judgement,), refused = settle([broken], waiver(clause=clause.name, ceiling=figure))
    assert (judgement.outcome == "waived") is waivable
    assert [problem.problem for problem in refused] == (
        [] if waivable else [f"the policy has no clause {clause.name} that can be waived"]
    )
    kept = judge_values(Clause("repU", "at_most", 99), [1.0])
    assert (decide([judgement, kept], refused) == "approved") is waivable


def test_no_clause_of_a_gate_is_of_another_kind() -> None:
    bounds: dict[str, dict[str, Any]] = {
        name: {figure.statistics[0]: max(0.5, figure.default.bound if figure.default else 0.5)}
        for name, figure in BOUNDABLE.items()
    }
    bounds["found"] = {"nearly": 12}
    bounds["repU"] |= {"at_most_share": 0.5}
    bounds["DiSCO"] |= {"at_most_share": 0.5, "over": "mean", "worst": 8, "beyond": 3}
    everything = gates.gate(
        columns=definition()["columns"]
        | {
            "income": {"type": "integer", "within": 0.02},
            "work": {"type": "category", "sensitive": ["field"]},
        },
        measures={"protection": {"methods": ["cap", "zero_cap", "generalized_cap"]}, "prediction": True},
        policy=bounds,
        exclusions={"missing_targets": True},
        weight="people",
        people="weighted",
        confidential={"others": "others.csv"},
        holdout="others",
    )
    clauses = everything.clauses()
    waivable = {name for name, figure in BOUNDABLE.items() if figure.default is None}
    waivable |= {name for name, figure in FIGURES.items() if figure.follows}
    waivable.add("detection_limit")
    assert {clause.figure for clause in clauses if can_be_waived(clause)} == waivable
    guards = {name for name, figure in FIGURES.items() if figure.default or figure.is_doubt}
    assert {clause.figure for clause in clauses if not can_be_waived(clause)} == guards - waivable


# Which judgement is named first: the one that stands most against a release


def judgement(
    figure: str,
    value: float | None,
    limit: float = 10.0,
    outcome: Outcome = "kept",
    statistic: Statistic = "at_most",
    **clause: Any,
) -> Judgement:
    return Judgement(Clause(figure, statistic, limit, **clause), value, limit, outcome)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (judgement("a", 9.0), judgement("b", 8.0)),
        (judgement("a", 1e9, outcome="exceeded"), judgement("b", None, outcome="undetermined")),
        (judgement("a", None, outcome="undetermined"), judgement("b", 11.0, outcome="waived")),
        (judgement("a", 11.0, outcome="exceeded"), judgement("b", 10.0)),
        (judgement("a", 30.0, outcome="exceeded"), judgement("b", 20.0, outcome="exceeded")),
        (judgement("a", 11.0, outcome="waived"), judgement("b", 10.0)),
        (judgement("a", 11.0, statistic="at_least"), judgement("b", 20.0, statistic="at_least")),
        (judgement("a", 0.0), judgement("b", 1e9, outcome="exceeded", warns=True)),
        (judgement("a", 0.0), judgement("controls", 10.0)),
        (judgement("controls", 10.1, outcome="exceeded"), judgement("b", 1e9, outcome="exceeded")),
        (judgement("a", 0.1, 0.0, outcome="exceeded"), judgement("b", 1e9, outcome="exceeded")),
        (judgement("a", 0.1), judgement("b", 0.0, 0.0)),
        (judgement("a", 0.1), judgement("key_overlap", 11.0, statistic="at_least")),
        (judgement("key_overlap", 9.0, outcome="exceeded", statistic="at_least"), judgement("b", 9.9)),
    ],
)
def test_the_worst_stands_most_against_a_release(worse: Judgement, better: Judgement) -> None:
    assert find_worst_judgement([worse, better]) is worse
    assert find_worst_judgement([better, worse]) is worse


def test_the_first_of_equally_harmless_judgements_is_the_worst() -> None:
    judgements = [judgement("a", 0.0, 0.0), judgement("b", 0.0), judgement("c", -1.0)]
    assert find_worst_judgement(judgements) is judgements[0]
    assert find_worst_judgement(judgements[::-1]) is judgements[-1]
    assert find_worst_judgement([]) is None
