"""A figure that the catalogue does not mark as public stands in nothing that leaves a gate."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from support import gates
from support.judging import judge_values

from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import build_dossier, describe_broken_clauses
from disclosure_pipeline.evidence.page.rendering import make_publishable, render_page
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.entry import Default, Figure, Place
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import Waiver
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import judge, round_judgements
from disclosure_pipeline.release.predicate import build_predicate

NAME, VALUE, TEXT = "unmarked_figure", 43.2198765, "Value-8844"
WORDS = Words("a new figure", "So many people are copied.", finding="{value} of the people are copied")
MEASURED = {"ground_truth": "a" * 64, "snapshot": "b" * 64}


@pytest.fixture(scope="module")
def measured() -> Disclosure:
    gate = gates.gate()
    return gates.measured(gate, gates.ground_truth(), [gates.honest(), gates.honest(2)])


def dossier(gate: Gate, result: Disclosure) -> dict[str, Any]:
    content = build_dossier(gate, "new", MEASURED, result, judge(gate.clauses(), result))
    return dict(json.loads(json.dumps(content)))


def rows(figures: Any) -> Iterator[dict[str, Any]]:
    """Every row of every frame, also of all files as one table."""
    for frame in figures.values():
        if isinstance(frame, dict):
            yield from rows(frame)
        elif isinstance(frame, list):
            yield from (row for row in frame if isinstance(row, dict))


@pytest.mark.parametrize("value", [VALUE, TEXT])
def test_a_column_that_is_not_marked_is_in_no_public_edition(measured: Disclosure, value: Any) -> None:
    content = dossier(gates.gate(), measured)
    found = [*rows(content["figures"]), *content["exact_copies"]]
    for row in found:
        row[NAME] = value
    assert len(found) > 50
    for public in (json.dumps(make_publishable(content)), render_page(content, "publication")):
        assert NAME not in public
        assert str(value)[:7] not in public


def test_a_figure_of_a_holdout_is_rounded_by_its_people(
    measured: Disclosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure of a holdout of 150 people is rounded by these, and withheld where the figure itself is."""
    content = dossier(gates.gate(), measured)
    content["figures"]["N_holdout"] = 150
    for row in content["figures"]["table"]:
        row["holdout"] = 43.2
    rows = {row["figure"]: row for row in make_publishable(content)["figures"]["table"]}
    assert rows["iS"]["holdout"] == pytest.approx(100 * 70 / 150)
    monkeypatch.setitem(FIGURES, "iS", replace(FIGURES["iS"], public=None))
    assert "iS" not in {row["figure"] for row in make_publishable(content)["figures"]["table"]}


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch, measured: Disclosure) -> Disclosure:
    column = f"{NAME}_beyond_chance"
    entry = Figure(
        NAME,
        WORDS,
        Place("guards", value=column),
        "copied",
        statistics=("at_most",),
        default=Default("at_most", 50, "A new guard"),
    )
    assert entry.find_published("at_most") is None
    monkeypatch.setitem(FIGURES, NAME, entry)
    monkeypatch.setitem(COLUMNS["guards"], column, WORDS)

    def add(result: Disclosure) -> Disclosure:
        guards = result.guards.assign(**{column: VALUE})
        stacked = None if result.stacked is None else add(result.stacked)
        return replace(result, guards=guards, stacked=stacked)

    return add(measured)


def assert_withheld(value: float | None, *texts: str) -> None:
    assert value is None
    for text in texts:
        assert "43.2" not in text


def test_a_guard_that_is_not_marked_tells_its_outcome_alone(guarded: Disclosure) -> None:
    gate = gates.gate()
    content = dossier(gate, guarded)
    [own] = [clause for clause in content["clauses"] if clause["name"] == NAME]
    assert (own["value"], own["outcome"]) == (VALUE, "kept")
    public = make_publishable(content)
    [clause] = [clause for clause in public["clauses"] if clause["name"] == NAME]
    assert clause["outcome"] == "kept"
    page = render_page(content, "publication")
    assert_withheld(clause["value"], json.dumps(public), page)
    assert f"{NAME}_beyond_chance" not in json.dumps(public) + page

    judgements = judge(gate.clauses(), guarded)
    records = [guarded.N_d, *guarded.N_s]
    told = [row for row in round_judgements(judgements, records, 10) if row.clause.name == NAME]
    assert_withheld(told[0].value, str(told[0]))

    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    predicate = build_predicate(
        {**content, "decision": "approved"},
        gate.model_dump(mode="json")["policy"],
        dossier="c" * 64,
        ground_truth="d" * 64,
        tables={f"{number}.csv": N for number, N in enumerate(guarded.N_s)},
        run_id="1",
        measured_at=moment,
        published_at=moment,
    )
    [stated] = [stated for stated in predicate.clauses if stated.figure == NAME]
    assert_withheld(stated.value, predicate.model_dump_json())


def test_a_refusal_does_not_tell_what_is_not_marked(
    monkeypatch: pytest.MonkeyPatch, guarded: Disclosure
) -> None:
    strict = replace(FIGURES[NAME], default=Default("at_most", 1, "A new guard"))
    monkeypatch.setitem(FIGURES, NAME, strict)
    content = dossier(gates.gate(), guarded)
    assert content["decision"] == "refused"
    reasons = describe_broken_clauses(content, 10)
    [public] = [public for exact, public in reasons.items() if "43.2" in exact]
    assert "43.2" not in public + render_page(content, "publication")


def test_a_refusal_rounds_a_figure_as_the_checks_do() -> None:
    """Two roundings of one figure would tell more than each: the ceiling of a waiver counts for both."""
    of_work = Clause("DiSCO", "at_most", 8.0, ("work",))
    clauses = replace(of_work, bound=5.0, over="mean"), of_work
    mean, worst = (judge_values(clause, [9.3]) for clause in clauses)
    waiver = Waiver(
        name="w", gate="g", snapshot="a" * 64, policy_digest="b" * 64, clause=mean.clause.name, ceiling=9.5,
        reason="r", approver="a", expires=datetime(2026, 1, 1, tzinfo=timezone.utc),
    )  # fmt: skip
    judgements = [replace(mean, outcome="waived", waiver=waiver), worst]
    content = {
        "clauses": [judgement.to_row() for judgement in judgements],
        "waivers": [{**waiver.model_dump(mode="json"), "problem": None}],
        "figures": {"N_d": 300, "N_s": [298]},
    }
    [public] = describe_broken_clauses(content, 10).values()
    assert public == write_sentence(round_judgements(judgements, [300, 298], 10)[1])
    assert public.startswith("For at most 9.5 % of the people") and "(rounded up to 10 records)" in public


def test_a_figure_has_one_entry() -> None:
    """Otherwise one could mark what the other withholds."""
    assert all(name == figure.name for name, figure in FIGURES.items())
    assert len({figure.words.title for figure in FIGURES.values()}) == len(FIGURES)
