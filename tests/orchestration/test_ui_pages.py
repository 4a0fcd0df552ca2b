"""Dagster's pages of a refused and an approved candidate, as people see them at 1,440 pixels."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from support import gates, homes
from support.browser import HEIGHT, WIDTH, Pages, browser_tab, resize, ui_pages, web_server
from support.paths import ROOT
from support.sampling import only_in_ci

from disclosure_pipeline.demo.run import HONEST, LEAKY
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.orchestration.steps import name_check
from disclosure_pipeline.policy.clauses import Clause

_STALE = """query ($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  staleStatus staleCauses { category reason } } } }"""


pytestmark = only_in_ci("runs the demo, starts the user interface and a browser", days=2)


@pytest.fixture(scope="module")
def pages(demo: tuple[Path, str]) -> Iterator[Pages]:
    with homes.copied(demo[0]) as home, pytest.MonkeyPatch.context() as patch, gates.quiet():
        gates.with_keys(home / "demo", patch)
        patch.setenv("DAGSTER_HOME", str(home))
        with ui_pages(home) as opened:
            yield opened


@pytest.mark.parametrize("asset", ["synthetic", "attribute_risk", "dossier", "identity_risk"])
def test_no_name_of_a_check_is_cut(pages: Pages, asset: str) -> None:
    names = list(pages.checks(asset))
    assert 0 < len(names) <= 12
    pages.show(f"/assets/survey/{asset}?view=checks", ["Latest execution", *names])
    assert pages.find_cut_names(names) == []


def test_no_policy_gives_a_name_that_would_be_cut(pages: Pages) -> None:
    """Every figure that a gate bounds has a check whose name fits where the demo's names stand."""
    bounded = [name for name, entry in FIGURES.items() if not entry.is_only_shown]
    names = sorted({name_check(Clause(name, "at_most", 1)) for name in bounded}, key=len)
    assert len(names) > 20
    pages.show("/assets/survey/identity_risk?view=checks", ["Latest execution", "found_repU"])
    assert pages.find_too_long("found_repU", names) == []
    former = "bound_generalized_cap__proportional_score"
    assert [text.partition(":")[0] for text in pages.find_too_long("found_repU", [former])] == [former]


def test_a_check_speaks_in_plain_words(pages: Pages) -> None:
    description = pages.checks("identity_risk")["found_repU"]
    assert "People" in description
    path = "/assets/survey/identity_risk?view=checks&checkDetail=found_repU"
    pages.show(path, [description, "10.9 % of the people are singled out in both tables"])


def test_the_list_of_candidates_is_never_out_of_date(pages: Pages) -> None:
    """A refused candidate has no release: Dagster would wait for it, and call the list unsynced."""
    answer = pages.server.ask(_STALE, path=["survey", "candidates"])["assetNodeOrError"]
    assert (answer["staleStatus"], answer["staleCauses"]) == ("FRESH", [])


@pytest.mark.parametrize(
    ("candidate", "verdict", "words"),
    [
        (
            LEAKY,
            "refused",
            [f"\nrefused: Candidate '{LEAKY}':\n", "10.9 % of the people are singled out in both tables"],
        ),
        (HONEST, "approved", [f"Candidate '{HONEST}' is approved: every deciding clause is kept"]),
    ],
)
def test_the_run_of_a_candidate_ends_in_words(
    pages: Pages, candidate: str, verdict: str, words: list[str]
) -> None:
    run, tags = pages.runs()[candidate]
    assert tags["verdict"] == verdict
    shown = pages.show(f"/runs/{run}", words)
    assert "Stack Trace" not in shown and "disclosure_pipeline.orchestration" not in shown
    pages.show("/runs", [f"verdict: {verdict}"])


@pytest.mark.parametrize("candidate", [HONEST, LEAKY])
def test_the_page_of_a_candidate_shows_its_clauses(pages: Pages, candidate: str) -> None:
    names = list(pages.checks("attribute_risk"))
    shown = pages.show(
        f"/assets/survey/dossier?view=events&partition={candidate}",
        [candidate, "DiSCO[worked_abroad] beyond", "≤3"],
    )
    assert pages.find_lines("found[whole] beyond") == 1
    assert "Stack Trace" not in shown
    pages.show(f"/assets/survey/attribute_risk?view=events&partition={candidate}", [candidate])
    assert pages.find_cut_names(names) == []


def test_the_list_of_candidates_fits_with_their_worst_clauses(pages: Pages) -> None:
    shown = pages.show("/assets/survey/candidates", [HONEST, LEAKY, "records and dates"])
    rows = re.findall(r"(?:published|refused): [^\n]+ allowed\.", shown)
    assert [row.partition(":")[0] for row in rows] == ["refused", "published"]
    for text in (HONEST, LEAKY):
        assert pages.find_lines(text) == 1
    dates = re.findall(r"\d{4}-\d\d-\d\d", shown)
    assert len(dates) == 2 and {pages.find_lines(date) for date in dates} == {1}
    assert pages.find_outside([*rows, *dates, HONEST, LEAKY]) == []


@pytest.mark.parametrize("asset", ["synthetic", "identity_risk", "attribute_risk", "dossier"])
def test_what_a_check_shows_begins_with_value_bound_and_outcome(pages: Pages, asset: str) -> None:
    for name in pages.checks(asset):
        shown = pages.show(f"/assets/survey/{asset}?view=checks&checkDetail={name}", [name, "Plots"])
        assert "for_anybody" not in shown
        if name != "without_waivers":  # there is nothing to count
            after = shown.partition("Latest execution")[2].partition("\nMetadata\n")[2].split("\n")
            assert [label for label in after if label in _LABELS][:3] == _LABELS, name


_LABELS = ["bound", "outcome", "value"]  # Dagster sorts them


def test_the_first_check_of_a_dossier_is_the_verdict(pages: Pages) -> None:
    names = ["within_policy", "without_waivers"]
    shown = pages.show("/assets/survey/dossier?view=checks", [*names, "Latest execution"])
    assert sorted(names, key=shown.index) == names
    assert (
        "Refused: 30.2 % of the synthetic records copy one person each, whole" in shown
        and "waiver is needed" not in shown
    )


def test_a_click_shows_the_first_page_of_a_refused_candidate(pages: Pages) -> None:
    """Its verdict, what an intruder is assumed to know, the four answers, and each reason."""
    path = f"/assets/survey/dossier?view=events&partition={LEAKY}"
    pages.show(path, [LEAKY, "[Show Markdown]"])
    pages.tab.get_by_text("[Show Markdown]").first.click()
    shown = pages.show(
        path,
        [
            "Refused: 30.2 % of the synthetic records copy one person each, whole",
            "An intruder is assumed to know a person's sex, age, region and household, and to want to learn",
            "Compare with what equally many records of other real people would show.",
            "Reasons",
        ],
    ).rpartition("first_page")[2]
    questions = (
        "Were people copied?",
        "Can people be found?",
        "Can something be learned of them?",
        "Can these figures be trusted?",
    )
    places = [shown.index(question) for question in questions]
    assert places == sorted(places) and shown.index("Refused: ") < places[0]
    reasons = shown.partition("Reasons\n")[2]
    assert reasons.index("copy one person each, whole") < reasons.index("are singled out in both tables")
    assert not {"|", "**", "\\", "nan", "people_copied"} & set(
        re.findall(r"\||\*\*|\\|\bnan\b|\w+_\w+", shown)
    )


def test_no_asset_has_a_name_that_the_lineage_cuts(pages: Pages) -> None:
    names = [
        *("ground_truth", "synthetic", "bins", "identity_risk", "attribute_risk", "dossier", "release"),
        "candidates",
    ]
    shown = pages.show("/locations/location.py/asset-groups/survey", names)
    assert "…" not in shown.replace("Materialize all…", "")


def test_a_release_shows_how_to_verify_it(pages: Pages) -> None:
    pages.show("/assets/survey/release", ["disclosure-pipeline verify", "policy_digest"])


def test_a_click_leads_from_a_run_to_the_page_of_its_dossier(tmp_path: Path) -> None:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "store"))
        served = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        Thread(target=served.serve_forever, daemon=True).start()
        stack.callback(served.shutdown)
        definition = gates.definition(pages=f"http://127.0.0.1:{served.server_port}")
        location = f"from support import gates\n\ndefs = gates.load({definition!r})\n"
        with gates.quiet(), gates.home_on_disk(tmp_path, gates.load(definition), patch) as home:
            home.prepare({gates.COPY: gates.ground_truth()})
            run = home.run_gate(gates.COPY).run_id
        shutil.copy(ROOT / "dagster_home" / "dagster.yaml", tmp_path)  # without a greeting over the page
        server = stack.enter_context(web_server(tmp_path, location))
        tab = stack.enter_context(browser_tab("127.0.0.1"))
        resize(tab, WIDTH, HEIGHT)
        Pages(server, tab).open(f"/runs/{run}?logs=dossier", ["dossier.html"])
        with tab.context.expect_page() as opened:
            tab.get_by_role("link", name="dossier.html").first.click()
        opened.value.wait_for_load_state()
        assert opened.value.url.endswith(f"/{gates.GATE}/candidates/{gates.COPY}/dossier.html")
        assert "refused" in opened.value.inner_text("body").casefold()
