"""What people see of a refused and an approved candidate in Dagster's user interface, at 1,440 pixels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import gates, homes
from support.browser import Pages, ui_pages
from support.sampling import only_in_ci

from disclosure_pipeline.demo.run import HONEST, LEAKY
from disclosure_pipeline.orchestration.graph import name_check
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import BEYOND_BOTH, DOUBTS, GUARDS, MEASURES, ORIGINALS

_STALE = """query ($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  staleStatus staleCauses { category reason } } } }"""


pytestmark = only_in_ci("runs the demo, starts the user interface and a browser")


@pytest.fixture(scope="module")
def pages(demo: tuple[Path, str]) -> Iterator[Pages]:
    with homes.copied(demo[0]) as home, pytest.MonkeyPatch.context() as patch, gates.quiet():
        patch.setenv("DAGSTER_HOME", str(home))
        patch.setenv("DISCLOSURE_PIPELINE_SIGNING_KEY", str(home / "demo/keys/signing-key.pem"))
        patch.setenv("DISCLOSURE_PIPELINE_SALT", str(home / "demo/keys/salt"))
        with ui_pages(home) as opened:
            yield opened


@pytest.mark.parametrize("asset", ["synthetic", "attribute_disclosure", "dossier", "identity_disclosure"])
def test_no_name_of_a_check_is_cut(pages: Pages, asset: str) -> None:
    names = list(pages.checks(asset))
    assert 0 < len(names) <= 12
    pages.show(f"/assets/survey/{asset}?view=checks", ["Latest execution", *names])
    assert pages.find_cut_names(names) == []


def test_no_policy_gives_a_name_that_would_be_cut(pages: Pages) -> None:
    """Every measure that a policy may bound has a check whose name fits where the demo's names stand."""
    measures = [*MEASURES, *GUARDS, *DOUBTS, *BEYOND_BOTH.values()]
    clauses = [Clause(name, None, 1) for name in measures]
    clauses += [Clause(name, None, 1, share_of=original) for name, original in ORIGINALS.items()]
    names = sorted({name_check(clause) for clause in clauses}, key=len)
    assert len(names) > 80
    pages.show("/assets/survey/identity_disclosure?view=checks", ["Latest execution", "bound_repU"])
    assert pages.find_too_long("bound_repU", names) == []
    former = "bound_generalized_cap__proportional_score"
    assert [text.partition(":")[0] for text in pages.find_too_long("bound_repU", [former])] == [former]


def test_the_bounds_of_the_policy_come_first(pages: Pages) -> None:
    shown = pages.show("/assets/survey/identity_disclosure?view=checks", ["bound_repU", "warnings"])
    names = sorted(pages.checks("identity_disclosure"), key=shown.index)
    assert names[:3] == ["bound_repU", "bound_repU_share_of_UiO", "bound_unique_hits_beyond"]


def test_a_check_speaks_in_plain_words(pages: Pages) -> None:
    description = pages.checks("identity_disclosure")["bound_repU"]
    assert "people" in description
    pages.show(
        "/assets/survey/identity_disclosure?view=checks", [description, "repU is 10.86; allowed are 8"]
    )


def test_the_list_of_candidates_is_never_out_of_date(pages: Pages) -> None:
    """A refused candidate has no release: Dagster would wait for it, and call the list unsynced."""
    answer = pages.server.ask(_STALE, path=["survey", "candidates"])["assetNodeOrError"]
    assert (answer["staleStatus"], answer["staleCauses"]) == ("FRESH", [])


@pytest.mark.parametrize(
    ("candidate", "verdict", "words"),
    [
        (LEAKY, "refused", [f"Candidate '{LEAKY}' is refused", "repU is 10.86; allowed are 8"]),
        (HONEST, "approved", [f"Candidate '{HONEST}' is approved: every clause of the policy is kept"]),
    ],
)
def test_the_run_of_a_candidate_ends_in_words(
    pages: Pages, candidate: str, verdict: str, words: list[str]
) -> None:
    run, tags = pages.runs()[candidate]
    assert tags["verdict"] == verdict
    shown = pages.show(f"/runs/{run}", words)
    assert "Stack Trace" not in shown
    pages.show("/runs", [f"verdict: {verdict}"])


@pytest.mark.parametrize("candidate", [HONEST, LEAKY])
def test_the_page_of_a_candidate_shows_its_clauses(pages: Pages, candidate: str) -> None:
    names = list(pages.checks("attribute_disclosure"))
    shown = pages.show(
        f"/assets/survey/dossier?view=events&partition={candidate}",
        [candidate, "DiSCO_beyond_both[worked_abroad]", "at most 3"],
    )
    assert "Stack Trace" not in shown
    pages.show(f"/assets/survey/attribute_disclosure?view=events&partition={candidate}", [candidate])
    assert pages.find_cut_names(names) == []


def test_the_list_of_candidates_is_shown(pages: Pages) -> None:
    pages.show("/assets/survey/candidates", [HONEST, LEAKY, "published", "refused", "worst clause"])


def test_a_release_shows_how_to_verify_it(pages: Pages) -> None:
    pages.show("/assets/survey/release", ["disclosure-pipeline verify", "policy_digest"])


def test_the_page_would_tell_a_cut_name(pages: Pages) -> None:
    names = list(pages.checks("identity_disclosure"))
    # An address of its own, for what is shown there is not what others look at.
    pages.open("/assets/survey/identity_disclosure?view=checks&altered=1", names)
    assert "bound_unique_hits_beyond" in names
    # The page allows no styles in its HTML, but those that a program sets.
    pages.tab.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<p>bound_uniq…beyond</p><p>guard_nearer</p>');"
        "Object.assign(document.body.lastElementChild.style,"
        " {position: 'fixed', width: '30px', overflow: 'hidden', whiteSpace: 'nowrap'})"
    )
    assert sorted(pages.find_cut_names(names)) == ["bound_uniq…beyond", "guard_nearer"]
