"""The Data Docs of a candidate, in a browser without a network: they say what the verdict is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support import gates, services
from support.processes import run_program
from support.sampling import CI

from disclosure_pipeline.evidence.dossier import build_dossier
from disclosure_pipeline.evidence.html_page import keep_plain_elements
from disclosure_pipeline.evidence.site import render_site
from disclosure_pipeline.evidence.validation import Validation, validate
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge, waive
from disclosure_pipeline.policy.waivers import Waiver

TABLES = ("identity", "attribute", "overlap", "controls")
MET, NOT_MET = "\N{HEAVY CHECK MARK}", "\N{HEAVY BALLOT X}"
SNAPSHOT = "0" * 64


@dataclass(frozen=True)
class Candidate:
    """A candidate's dossier, what the suites found, and the site of both."""

    dossier: Mapping[str, Any]
    validation: Validation
    folder: Path

    def page(self, name: str) -> Path:
        """One of the pages."""
        return self.folder / f"{name}.html"


def waiver(gate: Gate, clause: str, reason: str) -> Waiver:
    """A waiver of a clause up to any ceiling."""
    return Waiver(
        name=f"lets-{clause.lower()}-pass",
        gate=gate.name,
        snapshot=SNAPSHOT,
        policy_digest=gate.policy_digest(),
        clause=clause,
        ceiling=100,
        reason=reason,
        approver="Board <board@example.org>",
        expires=datetime(2100, 1, 1, tzinfo=timezone.utc),
    )


# Bounds that the honest candidate breaks: it keeps the guards, which no waiver lets pass.
STRICT = {"repU": {"at_most": 2, "at_most_share": 0.3}, "DiSCO": {"at_most": 9, "targets": {"income": 1}}}


def candidate(name: str, folder: Path, policy: Mapping[str, Any] | None = None, **waived: str) -> Candidate:
    """A candidate of the small gate; `waived` are the clauses that a waiver lets pass, and its reason."""
    changes = {} if policy is None else {"policy": policy}
    gate = Gate.model_validate(gates.definition(one_way=[0, 0], **changes))
    synthetic = gates.ground_truth() if name == gates.COPY else gates.honest()
    result = gates.measured(gate, gates.ground_truth(), [synthetic])
    waivers = [waiver(gate, clause, reason) for clause, reason in waived.items()]
    now = datetime(2030, 1, 1, tzinfo=timezone.utc)
    of_what = {"gate": gate.name, "snapshot": SNAPSHOT, "policy_digest": gate.policy_digest()}
    judgements, refused = waive(judge(gate.clauses(), result), waivers, now=now, **of_what)
    content = build_dossier(gate, name, {}, result, judgements, refused_waivers=refused)
    found = validate(gate.clauses(), content["figures"])
    write(folder, render_site(content, found))
    return Candidate(content, found, folder)


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the pages of a site."""
    folder.mkdir(exist_ok=True)
    for name, page in files.items():
        (folder / name).write_text(page, encoding="utf-8")


@pytest.fixture(scope="module", params=[gates.HONEST, gates.COPY])
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Candidate:
    """A candidate that is approved, with flags that only warn, and one that is refused."""
    return candidate(request.param, tmp_path_factory.mktemp("site"))


# What a browser makes of it


@dataclass(frozen=True)
class Opened:
    """A page as a browser shows it: its text, its tables row by row, what it said and asked for."""

    text: str
    tables: list[list[list[str]]]
    console: Sequence[str] = ()
    requests: Sequence[str] = ()


def opened(page: Path, folder: Path) -> Opened:
    """Open a page in a headless browser that can reach nobody."""
    log = folder / "net.json"
    ran = run_program(
        [
            *(services.chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'browser'}"),
            *("--enable-logging=stderr", f"--log-net-log={log}", "--virtual-time-budget=5000", "--dump-dom"),
            page.as_uri(),
        ]
    )
    assert ran.returncode == 0, ran.stderr
    asked = [
        event["params"] for event in gates.read_json(log)["events"] if "initiator" in event.get("params", {})
    ]
    # The browser asks for things of its own accord, without an origin; nobody answers.
    requests = [each["url"] for each in asked if each["initiator"] != "not an origin"]
    console = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    return replace(shown(ran.stdout), console=console, requests=requests)


def shown(page: str) -> Opened:
    """What a page shows."""
    document = Document()
    document.feed(page)
    return Opened(" ".join(" ".join(document.text).split()), document.tables)


class Document(HTMLParser):
    """The text and the tables of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._unseen = False
        self._in_table = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen = self._unseen or tag in {"script", "style"}
        if tag == "table":
            self.tables.append([])
            self._in_table = True
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self._unseen = False
        self._in_table = self._in_table and tag != "table"

    def handle_data(self, data: str) -> None:
        if self._unseen or not data.strip():
            return
        self.text.append(data)
        if self._in_table:
            cells = self.tables[-1][-1]
            cells[-1] = f"{cells[-1]} {data.strip()}".strip()


def table(page: Opened, *heading: str) -> list[list[str]]:
    """The rows of the table with a heading."""
    [found] = [rows for rows in page.tables if rows and rows[0] == list(heading)]
    return found[1:]


@pytest.fixture(scope="module")
def browsed(judged: Candidate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Opened]:
    """Every page of a candidate's site in a browser; outside CI the last two as they are in their files."""
    folder = tmp_path_factory.mktemp("browser")
    read = () if CI else TABLES[2:]
    return {
        name: shown(judged.page(name).read_text(encoding="utf-8"))
        if name in read
        else opened(judged.page(name), folder)
        for name in ("index", *TABLES)
    }


def test_every_page_says_the_verdict(judged: Candidate, browsed: dict[str, Opened]) -> None:
    name, decision = judged.dossier["candidate"], judged.dossier["decision"]
    assert decision == {gates.HONEST: "approved", gates.COPY: "refused"}[name]
    for page in browsed.values():
        assert f"small: candidate {name} Verdict: {decision} " in f"{page.text} "


def test_the_status_of_every_clause_is_that_of_the_verdict(
    judged: Candidate, browsed: dict[str, Opened]
) -> None:
    told = {}
    for name in TABLES:
        for status, words, observed in table(browsed[name], "Status", "Expectation", "Observed Value"):
            assert words not in told
            told[words] = (status, observed)
    clauses = judged.dossier["clauses"]
    assert len(told) == len(clauses)
    for clause in clauses:
        whole_key = clause["measure"] == "key_overlap" and clause["column"] is None
        of = "(whole key)" if whole_key else clause["column"]
        share = f" of {clause['share_of']}" if clause["share_of"] else ""
        bound = f"{'at least' if clause['at_least'] else 'at most'} {clause['bound']:g}{share}"
        warns = "; it only warns" if clause["warns"] else ""
        words = f"{clause['measure']}{f' of {of}' if of else ''} is {bound} (worst synthesis){warns}"
        observed = f"{clause['value']:.6g} (bound {clause['limit']:.6g})"
        assert told[words] == (MET if clause["outcome"] == "kept" else NOT_MET, observed)


def test_the_index_is_filled(judged: Candidate, browsed: dict[str, Opened]) -> None:
    index = browsed["index"]
    suites = table(index, "Status", "Metric table", "Expectations", "Not met")
    assert [row[1] for row in suites] == list(TABLES)
    for status, name, expectations, not_met in suites:
        results = judged.validation.results[name]["results"]
        failed = sum(not each["success"] for each in results)
        assert (status, expectations, not_met) == (NOT_MET if failed else MET, str(len(results)), str(failed))
        assert f"Status: {status} {'Failed' if failed else 'Succeeded'}" in browsed[name].text
    broken = [clause for clause in judged.dossier["clauses"] if clause["outcome"] != "kept"]
    rows = table(index, "Clause", "Value", "Bound", "Outcome")
    assert [row[0] for row in rows] == [clause["name"] for clause in broken]
    assert [row[3] for row in rows] == [
        f"{clause['outcome']}{', only warns' if clause['warns'] else ''}" for clause in broken
    ]
    assert rows


def test_nothing_is_asked_for_and_nothing_goes_wrong(browsed: dict[str, Opened]) -> None:
    for name, page in browsed.items():
        assert not page.requests, name
        assert not page.console, name


def test_a_browser_would_show_a_request(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    page = tmp_path / "page.html"
    page.write_text('<img src="http://example.org/a.png"><script>nothing()</script>')
    found = opened(page, tmp_path)
    assert found.requests == ["http://example.org/a.png"]
    assert len(found.console) == 1


def test_the_policy_of_a_page_forbids_what_does_not_belong_there(judged: Candidate, tmp_path: Path) -> None:
    """What somebody adds to a page is neither loaded nor run."""
    page = tmp_path / "page.html"
    added = (
        '<img src="http://example.org/a.png"><script src="http://example.org/b.js"></script>'
        '<script>document.body.innerText = "approved"</script><p onclick="x()" style="color: red">hello</p>'
        '<style>@import url("http://example.org/c.css"); body { display: none }</style>'
        '<iframe src="http://example.org/d.html"></iframe><link rel="stylesheet" href="http://example.org/e.css">'
    )
    text = judged.page("index").read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", f"{added}</body>"), encoding="utf-8")
    found = opened(page, tmp_path)
    assert found.requests == []
    assert "Verdict:" in found.text
    assert len([said for said in found.console if "Content Security Policy" in said]) >= 6


# What is in the files


LOADS = re.compile(r"""(?:src|srcset|poster|data|action|background|href)\s*=\s*["']?\s*([^"'\s>]+)""", re.I)


def test_no_file_names_another_host(judged: Candidate) -> None:
    files = sorted(path.name for path in judged.folder.iterdir())
    assert files == sorted(["index.html", *(f"{name}.html" for name in TABLES)])
    for path in judged.folder.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?:|//|@import|url\(|<script|<img|<iframe|\bon\w+=", text, re.I), path.name
        for target in LOADS.findall(text):
            assert target == "data:," or target in files or re.fullmatch(r"#[\w-]*", target), (
                path.name,
                target,
            )
        assert "default-src 'none'" in text


def test_links_lead_somewhere(judged: Candidate) -> None:
    """From the index to every page, back, and within a page."""
    index = judged.page("index").read_text(encoding="utf-8")
    assert set(re.findall(r'href="(\w+)\.html"', index)) == set(TABLES)
    for name in TABLES:
        text = judged.page(name).read_text(encoding="utf-8")
        assert 'href="index.html"' in text
        inside = re.findall(r'href="#([\w-]+)"', text)
        assert inside
        assert all(f'id="{each}"' in text for each in inside)


def test_the_same_dossier_gives_the_same_site(judged: Candidate) -> None:
    clauses = Gate.model_validate(gates.definition(one_way=[0, 0])).clauses()
    again = validate(clauses, json.loads(json.dumps(judged.dossier["figures"])))
    assert again == judged.validation
    for name, page in render_site(judged.dossier, again).items():
        assert page == (judged.folder / name).read_text(encoding="utf-8")


def test_no_value_of_the_ground_truth_is_in_it(judged: Candidate) -> None:
    assert gates.files_with(judged.folder, gates.CANARIES, ()) == {}


# What else can become of a candidate


def test_a_waiver_is_told_with_its_reason(tmp_path: Path) -> None:
    """The suites say what is so, that it was waived says the verdict."""
    reasons = {
        "repU": "Reviewed <b>twice</b>",
        "repU / UiO": "The register is public",
        "DiSCO[work]": "Work is known anyway",
        "DiSCO[income]": "Rounded & top coded",
    }
    found = candidate(gates.HONEST, tmp_path / "site", STRICT, **reasons)
    assert found.dossier["decision"] == "approved"
    index = opened(found.page("index"), tmp_path)
    assert "Verdict: approved" in index.text
    told = {row[0]: row[3] for row in table(index, "Clause", "Value", "Bound", "Outcome")}
    for name, reason in reasons.items():
        assert told[name] == f"waived until 2100-01-01T00:00:00Z by Board <board@example.org>: {reason}"
    suites = table(index, "Status", "Metric table", "Expectations", "Not met")
    assert [row[0] for row in suites] == [NOT_MET, NOT_MET, MET, MET]


def test_a_copy_is_refused_whatever_is_waived(tmp_path: Path) -> None:
    """No waiver lets a guard pass: neither one for each clause of the policy, nor one for itself."""
    clauses = ("repU", "repU / UiO", "DiSCO[work]", "DiSCO[income]")
    found = candidate(gates.COPY, tmp_path, None, **dict.fromkeys(clauses, "Known anyway"))
    outcomes = {clause["name"]: clause["outcome"] for clause in found.dossier["clauses"]}
    assert {outcomes[name] for name in clauses} == {"waived"}
    assert found.dossier["decision"] == "refused"
    found = candidate(gates.COPY, tmp_path, nearer="Known anyway")
    assert found.dossier["decision"] == "refused"
    text = found.page("index").read_text(encoding="utf-8")
    assert "the policy has no clause nearer that can be waived" in text


def test_a_refused_waiver_is_told(tmp_path: Path) -> None:
    found = candidate(gates.HONEST, tmp_path, repU="For safety's sake")
    assert found.dossier["decision"] == "refused"
    text = found.page("index").read_text(encoding="utf-8")
    assert "Verdict: refused" in text
    assert "Waivers that are refused" in text
    assert "repU is kept without it" in text


def test_what_could_not_be_determined(judged: Candidate) -> None:
    figures = {**judged.dossier["figures"], "control_identity": []}
    gate = Gate.model_validate(gates.definition())
    content = {**judged.dossier, "figures": figures, "decision": "undetermined"}
    page = render_site(content, validate(gate.clauses(), figures))
    assert "Verdict: could not be determined, which is never a release" in page["index.html"]
    assert "there are 0 rows with target missing: expected one each for 1 to 1" in page["controls.html"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a &lt;b&gt; &amp; c", "a &lt;b&gt; &amp; c"),
        ("<p style='x' onclick='x()' class='y'>a</p>", '<p class="y">a</p>'),
        ("<p class='\"><script>'>a</p>", '<p class="&quot;&gt;&lt;script&gt;">a</p>'),
        ("</script></footer>a", "a"),
        ("<script>x()</script><SCRIPT SRC=//x.org/>x()</SCRIPT>a", "a"),
        ("<style>@import 'x'</style><footer>b <p>c</p></footer>a", "a"),
        ("<script>unclosed", ""),
        ("<img src='https://x.org/x.png' alt='&lt;logo&gt;'>a", "&lt;logo&gt;a"),
        ("<svg onload=x()><iframe src=x>a</iframe></svg>", "a"),
        ("<!-- b --><?php b ?><![CDATA[b]]>a", "a"),
        ("<form action='https://x.org'><input type='radio' checked formaction='x'></form>",
         '<input type="radio" checked="">'),
        ("<a href='https://x.org/other.html'>a</a>", "<a>a</a>"),
        ("<a href='javascript:x()'>a</a><a href='//x.org'>b</a>", "<a>a</a><a>b</a>"),
        ("<a href='#part'>a</a>", '<a href="#part">a</a>'),
        ("<a href='other.html'>a</a>", '<a href="other.html">a</a>'),
        ("<a href='../../index.html'>a</a><a href='https://x.org/index.html'>b</a>",
         '<a href="index.html">a</a><a href="index.html">b</a>'),
        ("<i class='fas fa-times'></i>", '<i class="fas fa-times" title="not met">\N{HEAVY BALLOT X}</i>'),
    ],
)  # fmt: skip
def test_only_plain_elements_are_kept(given: str, kept: str) -> None:
    page = f"<html><head><title>b</title><link href='x'></head><body>{given}</body></html>"
    assert keep_plain_elements(page, ["index.html", "other.html"]) == kept


def test_names_are_no_markup(tmp_path: Path) -> None:
    """Of a candidate, a column or a waiver: they are shown as they are."""
    name = "</h4><script>alert('$x')</script><img src=x onerror=alert(1)>&amp;"
    columns = gates.definition()["columns"]
    columns[name] = columns.pop("work")
    gate = Gate.model_validate(gates.definition(columns=columns, targets=[name, "income"]))
    tables = [table.rename(columns={"work": name}) for table in (gates.ground_truth(), gates.ground_truth())]
    result = gates.measured(gate, tables[0], tables[1:])
    content = build_dossier(gate, name, {}, result, judge(gate.clauses(), result))
    write(tmp_path / "site", render_site(content, validate(gate.clauses(), content["figures"])))
    for page in ("index", "attribute"):
        text = (tmp_path / "site" / f"{page}.html").read_text(encoding="utf-8")
        assert "<script" not in text
        assert "<img" not in text
        assert escape(name, quote=False) in text
        found = opened(tmp_path / "site" / f"{page}.html", tmp_path)
        assert f"small: candidate {name} Verdict: refused" in found.text
        assert not found.requests
        assert not found.console
    words = f"DiSCO of {name} is at most 12 (worst synthesis)"
    assert words in [row[1] for row in table(found, "Status", "Expectation", "Observed Value")]
