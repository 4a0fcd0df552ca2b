"""The documentation as a site: built with every warning an error, opened in a browser without a network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from support.browser import browser_tab, resize, visit
from support.paths import ROOT
from support.processes import run_program
from support.sampling import only_in_ci

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = only_in_ci("builds the whole site", days=3)

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    documents = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
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
def tab() -> Iterator[Page]:
    with browser_tab() as tab:
        yield tab


def test_nothing_is_loaded_from_elsewhere_and_nothing_goes_wrong(site: Path, tab: Page) -> None:
    for page in pages(site):
        done = visit(tab, page.as_uri())
        assert not [address for address in done.requests if not address.startswith(("file:", "data:"))]
        assert not done.console, page.name
        assert tab.evaluate("document.querySelector('h1, #search-results') !== null"), page.name
        assert tab.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), page.name


def test_the_search_finds_a_page(site: Path, tab: Page) -> None:
    done = visit(tab, f"{(site / 'search.html').as_uri()}?q=waiver")
    assert "how_to/waive.html" in tab.evaluate("document.querySelector('#search-results').innerHTML")
    assert not done.console


def test_pages_fit_a_narrow_window(site: Path, tab: Page) -> None:
    """Wide tables scroll by themselves."""
    resize(tab, 400, 800)
    for name in ("index", "policy", "reference/glossary", "reference/gate"):
        tab.goto((site / f"{name}.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 400, name
