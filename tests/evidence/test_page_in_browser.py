"""The page in a real browser that can reach nobody: silent, accessible, and whole on paper."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pypdf import PdfReader
from support import gates
from support.browser import NAMES_CUT, browser_tab, resize, show, visit
from support.sampling import on_some_days, some_of

import disclosure_pipeline as dp
from disclosure_pipeline.demo.run import HONEST, LEAKY
from disclosure_pipeline.evidence.dossier import build_dossier
from disclosure_pipeline.evidence.page.rendering import Edition, render_page, render_result
from disclosure_pipeline.policy.verdict import judge

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = on_some_days

EDITIONS: tuple[Edition, ...] = ("internal", "publication")
MILLIMETRE = 96 / 25.4  # pixels
PAPER_WIDTH = int((210 - 2 * 14) * MILLIMETRE)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    # Pages of a refused and an approved candidate in both editions, and of two tables without a gate.
    folder = tmp_path_factory.mktemp("pages")
    gate = gates.gate(
        one_way=[0, 0], documentation={"purpose": "Teaching", "generator": {"name": "synthpop"}}
    )
    texts: dict[str, str] = {}
    others: list[dict[str, Any]] = []
    for name, table in (("approved", gates.honest()), ("refused", gates.ground_truth())):
        result = gates.measured(gate, gates.ground_truth(), [table])
        content = build_dossier(gate, name, {"snapshot": "0" * 64}, result, judge(gate.clauses(), result))
        others = others or [content]
        texts |= {f"{name}-{edition}": render_page(content, edition, others) for edition in EDITIONS}
        texts.setdefault("measured", render_result(result))
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with browser_tab() as tab:
        yield tab


@contextmanager
def printed(tab: Page) -> Iterator[None]:
    tab.emulate_media(media="print")
    try:
        yield
    finally:
        tab.emulate_media(media="null")


PAGES = [*(f"{name}-{edition}" for name in ("refused", "approved") for edition in EDITIONS), "measured"]


@pytest.mark.parametrize("page", some_of(PAGES))
def test_it_asks_for_nothing_and_says_nothing(page: str, paths: Mapping[str, Path], tab: Page) -> None:
    address = paths[page].as_uri()
    done = visit(tab, address)
    assert [request for request in done.requests if request not in {address, "data:,"}] == []
    assert done.console == []
    verdict = {"refused": "Refused: ", "approved": "Approved: ", "measured": "Measured: "}
    shown = " ".join(str(tab.evaluate("document.body.innerText")).split())
    assert shown.startswith(verdict[page.split("-", maxsplit=1)[0]])


def test_the_policy_of_a_page_forbids_what_does_not_belong_there(
    paths: Mapping[str, Path], tab: Page, tmp_path: Path
) -> None:
    """Additions to a page are neither loaded nor run; and the tests above could fail."""
    added = (
        '<img src="http://example.org/a.png"><script src="http://example.org/b.js"></script>'
        '<script>document.body.innerText = "approved"</script><p onclick="x()" style="color: red">hello</p>'
        '<style>@import url("http://example.org/c.css"); body { display: none }</style>'
        '<iframe src="http://example.org/d.html"></iframe>'
    )
    page = tmp_path / "page.html"
    text = paths["refused-internal"].read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", f"{added}</body>"), encoding="utf-8")
    done = visit(tab, page.as_uri())
    blocked = " ".join(message for message in done.console if "Content Security Policy" in message)
    assert "frame-src" in blocked
    for address in ("a.png", "b.js"):
        assert f"http://example.org/{address}" in blocked
    assert "http://example.org/c.css" not in done.requests
    assert "Refused: " in str(tab.evaluate("document.body.innerText"))
    assert len([message for message in done.console if "Content Security Policy" in message]) >= 6
    page.write_text('<img src="http://example.org/a.png"><script>nothing()</script>')
    done = visit(tab, page.as_uri())
    assert "http://example.org/a.png" in done.requests
    assert done.console


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.mark.parametrize(("page", "width"), some_of(product(PAGES, (1280, 390))))
def test_axe_finds_nothing(page: str, width: int, paths: Mapping[str, Path], tab: Page) -> None:
    """WCAG 2.2 AA and what axe-core recommends beside it, on a desk and on a telephone."""
    from axe_playwright_python.sync_playwright import Axe

    resize(tab, width, 900)
    show(tab, paths[page].as_uri())
    checked = Axe().run(tab, options={"runOnly": RULES})
    assert checked.response["violations"] == []
    assert len(checked.response["passes"]) > 15


def test_axe_would_find_something(tab: Page, tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = tmp_path / "page.html"
    page.write_text('<p style="color: #ccc">pale</p><img src="data:,">')
    tab.goto(page.as_uri())
    found = {rule["id"] for rule in Axe().run(tab).response["violations"]}
    assert {"color-contrast", "image-alt"} <= found


def test_a_row_of_the_four_answers_is_a_block_on_a_telephone(paths: Mapping[str, Path], tab: Page) -> None:
    """Nothing has to be scrolled, and each figure says what it is."""
    resize(tab, 390, 900)
    show(tab, paths["refused-internal"].as_uri())
    room = "document.querySelector('.answers').parentElement"
    assert tab.evaluate(f"{room}.scrollWidth <= {room}.clientWidth")
    widths = "[...document.querySelectorAll('.answers tbody > tr > *')].map(cell => cell.clientWidth)"
    assert min(width for width in tab.evaluate(widths) if width) > 300
    label = "getComputedStyle(document.querySelector('.answers td.outcome'), '::before').content"
    assert "Answer" in tab.evaluate(label)


WORDS_CUT = """
[...document.querySelectorAll('th, td, dd')].filter(cell => {
  const words = document.createRange();
  words.selectNodeContents(cell);
  const room = cell.getBoundingClientRect();
  const lines = [...words.getClientRects()];
  const text = cell.firstChild;
  const isWhole = cell.matches('.outcome') || /^\\w{1,12}$/.test(cell.textContent.trim());
  const isSplit = isWhole && text.data && [...text.data.matchAll(/\\w+/g)].some(word => {
    words.setStart(text, word.index);
    words.setEnd(text, word.index + word[0].length);
    return new Set([...words.getClientRects()].map(line => line.top)).size > 1;
  });
  return isSplit || lines.some(line => line.right > room.right + 0.5);
}).map(cell => cell.textContent)
"""


@pytest.mark.parametrize("page", ["refused-internal", "approved-publication", "measured"])
def test_no_name_is_cut_or_written_over_another(page: str, paths: Mapping[str, Path], tab: Page) -> None:
    """In tables and charts, on a screen and on paper, whatever font the browser has."""
    show(tab, paths[page].as_uri())
    for width, on_paper in ((1280, False), (1000, False), (390, False), (PAPER_WIDTH, True)):
        resize(tab, width, 1000)
        with printed(tab) if on_paper else nullcontext():
            assert on_paper or tab.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.evaluate(WORDS_CUT) == [], (width, on_paper)
            assert tab.evaluate(NAMES_CUT) == [], (width, on_paper)


def test_no_name_of_a_plot_is_cut(tab: Page, tmp_path: Path) -> None:
    """The picture of a result, saved as SVG; beside its rows stand flags."""
    result = dp.disclosure(
        gates.ground_truth(), gates.ground_truth(), ["sex", "age"], flags={"one_way": (0, 0)}
    )
    dp.save(result.plot(), tmp_path / "plot.svg")
    page = tmp_path / "plot.html"
    page.write_text((tmp_path / "plot.svg").read_text(encoding="utf-8"), encoding="utf-8")
    resize(tab, 1280, 1000)
    tab.goto(page.as_uri())
    assert "one-way" in tab.evaluate("document.querySelector('svg').textContent")
    assert tab.evaluate(NAMES_CUT) == []


A4_HEIGHT = (297 - 2 * 16) * MILLIMETRE


MOST_PAGES = 6
VERDICTS = {HONEST: "Approved", LEAKY: "Refused"}


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("candidate", VERDICTS)
def test_the_demo_prints_on_six_pages_with_the_verdict_on_each(
    demo: tuple[Path, str], candidate: str, edition: Any, tab: Page, tmp_path: Path
) -> None:
    """As the gate filed them; the public edition of a refusal is filed nowhere, and rendered here."""
    folder = demo[0] / "demo" / "store" / "survey" / "candidates" / candidate
    path = folder / "dossier.html"
    if edition == "publication":
        path = demo[0] / "demo" / "releases" / "survey" / candidate / "dossier.html"
    if not path.exists():
        path = tmp_path / "dossier.html"
        content = gates.read_json(folder / "dossier.json")
        path.write_text(render_page(content, edition), encoding="utf-8")
    show(tab, path.as_uri())
    document = tab.pdf(prefer_css_page_size=True)
    sheets = PdfReader(io.BytesIO(document)).pages
    sizes = {(round(sheet.mediabox.width), round(sheet.mediabox.height)) for sheet in sheets}
    assert sizes == {(595, 842)}  # A4 in points
    pages = ["".join(sheet.extract_text().split()) for sheet in sheets]  # gaps are not told from spaces
    assert 4 <= len(pages) <= MOST_PAGES
    for number, text in enumerate(pages, start=1):
        assert text.startswith(f"{VERDICTS[candidate]}{number}of{len(pages)}"), text[:40]
    # A page a question, and all of the first page on the first.
    questions = ("Werepeoplecopied?", "Canpeoplebefound?", "Cansomethingbelearnedofthem?")
    assert all(question in pages[0] for question in questions)
    for question, text in zip(questions, pages[1:], strict=False):
        assert question in text[:60]
    assert ("Refused,whatnow?" in pages[0]) == (candidate == LEAKY and edition == "internal")
    assert "Whatnow" not in "".join(pages[1:])
    assert "9of9columnsaremeasuredandreleased" in pages[0]
    assert "Thegatewouldhavenoticedif" in pages[0]


def test_what_must_not_be_cut_is_told_so_and_fits_a_page(paths: Mapping[str, Path], tab: Page) -> None:
    """Charts and rows are kept whole, and heads of tables repeated, in the styles that hold on paper."""
    resize(tab, PAPER_WIDTH, 1000)
    show(tab, paths["refused-internal"].as_uri())
    with printed(tab):
        styles = tab.evaluate(
            "['figure', 'tbody tr', 'thead'].map(name => [...document.querySelectorAll(name)].map(element => "
            "[getComputedStyle(element).breakInside, getComputedStyle(element).display, "
            "element.getBoundingClientRect().height]))"
        )
    figures, rows, heads = styles
    assert figures
    assert all(inside == "avoid" and height < A4_HEIGHT for inside, _, height in figures)
    assert rows
    assert all(inside == "avoid" and height < A4_HEIGHT / 3 for inside, _, height in rows)
    assert heads
    assert {display for _, display, _ in heads} == {"table-header-group"}


COLOURS = {"#12436d", "#28a197", "#801650", "#f46a25"}


def test_charts_have_the_palette_and_tell_apart_by_shape(paths: Mapping[str, Path], tab: Page) -> None:
    """Marks of one chart that differ in colour differ in form, too."""
    show(tab, paths["refused-internal"].as_uri())
    charts: list[list[list[Any]]] = tab.evaluate(
        "[...document.querySelectorAll('figure svg')].map(chart => [...chart.querySelectorAll('path')]"
        ".map(mark => [mark.getAttribute('stroke'), mark.getAttribute('d')]))"
    )
    assert len(charts) == 7
    for marks in charts:
        forms: dict[str, set[str]] = {}
        for colour, form in marks:
            if colour is not None and colour.lower() in COLOURS:
                forms.setdefault(colour.lower(), set()).add(form)
        assert not [pair for pair in combinations(forms.values(), 2) if set.intersection(*pair)]
