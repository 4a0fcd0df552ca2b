"""The documentation as a site: built with every warning an error, opened in a browser without a network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from support.browser import Browser, browser_tabs
from support.paths import ROOT
from support.processes import run_program
from support.sampling import only_in_ci

pytestmark = only_in_ci("builds the whole site")

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-b", "html", "-W", "--keep-going", "-n", "-q", "-d", str(folder / "doctrees")]
    built = run_program(
        [sys.executable, "-m", "sphinx", *options, DOCS, folder / "html"], cwd=ROOT, limit=600
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


def test_the_command_of_the_makefile_is_the_same() -> None:
    assert "-m sphinx -b html -W --keep-going -n -q docs" in (ROOT / "Makefile").read_text()


class Links(HTMLParser):
    """The addresses that a page leads to or loads, and the places within it that one can lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if place := values.get("id"):
            self.places.add(place)
        if tag == "a" and (address := values.get("href")):
            self.addresses.append(address)
        elif tag in {"link", "script", "img", "source", "iframe"}:
            self.loaded += [address for name in ("href", "src") if (address := values.get(name))]


def links(page: Path) -> Links:
    actual = Links()
    actual.feed(page.read_text(encoding="utf-8"))
    return actual


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_downloads" not in path.parts)


def test_there_is_a_page_for_every_document(site: Path) -> None:
    documents = {
        path.relative_to(DOCS).with_suffix(".html")
        for path in DOCS.rglob("*.md")
        if "generated" not in path.parts
    }
    assert documents <= {page.relative_to(site) for page in pages(site)}


def test_every_link_leads_to_a_page_and_a_place_that_are_there(site: Path) -> None:
    of_page = {page: links(page) for page in pages(site)}
    broken = []
    for page, actual in of_page.items():
        for address in (*actual.addresses, *actual.loaded):
            path, place = urldefrag(address)
            if urlparse(address).scheme:
                continue
            target = (page.parent / unquote(urlparse(path).path)).resolve() if path else page
            known = of_page[target].places if target in of_page else {unquote(place)}
            if not target.is_file() or (place and unquote(place) not in known):
                broken.append(f"{page.name}: {address}")
    assert not broken


@pytest.fixture(scope="module")
def tabs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Browser]]:
    """Several: each page is watched until it has been quiet for a while."""
    with browser_tabs(tmp_path_factory.mktemp("browser"), 6) as opened:
        yield opened


def test_nothing_is_loaded_from_elsewhere_and_nothing_goes_wrong(site: Path, tabs: list[Browser]) -> None:
    every = pages(site)

    def visit_pages(number: int) -> list[Path]:
        tab, visited = tabs[number], every[number :: len(tabs)]
        for page in visited:
            visit = tab.open(page.as_uri())
            assert not [address for address in visit.requests if not address.startswith(("file:", "data:"))]
            assert not visit.console, page.name
            assert tab.evaluate("document.querySelector('h1, #search-results') !== null"), page.name
            assert tab.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), page.name
        return visited

    with ThreadPoolExecutor(len(tabs)) as pool:
        visited = [page for of_tab in pool.map(visit_pages, range(len(tabs))) for page in of_tab]
    assert sorted(visited) == every


def test_the_search_finds_a_page(site: Path, tabs: list[Browser]) -> None:
    visit = tabs[0].open(f"{(site / 'search.html').as_uri()}?q=waiver")
    assert "how_to/waive.html" in tabs[0].evaluate("document.querySelector('#search-results').innerHTML")
    assert not visit.console


def test_pages_fit_a_narrow_window(site: Path, tabs: list[Browser]) -> None:
    """Wide tables scroll by themselves."""
    tabs[0].resize(400, 800)
    for name in ("index", "policy", "glossary", "reference/gate"):
        tabs[0].open((site / f"{name}.html").as_uri())
        assert tabs[0].evaluate("document.documentElement.scrollWidth") <= 400, name
