"""The Data Docs of a candidate: a static site that needs nothing but its own files.

Great Expectations renders the pages, and they load scripts, styles and pictures from other hosts. Of what it
renders only plain elements are kept; the style sheet and the marks of the status are from here, and a policy
in every page forbids the browser to load anything.

The renderers, components and views of Great Expectations are no public interface of it: they are imported
here only, and tests/test_site.py notices when they move.
"""

from __future__ import annotations

import base64
import copy
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from disclosure_pipeline.evidence.figures import cell

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.components import (
        RenderedDocumentContent,
        RenderedHeaderContent,
        RenderedStringTemplateContent,
        RenderedTableContent,
    )

    from disclosure_pipeline.evidence.validation import Validation

INDEX = "index.html"

# Decision -> what the page says, and the look of it.
_VERDICTS = {
    "approved": ("approved", "alert-success"),
    "refused": ("refused", "alert-danger"),
    "undetermined": ("could not be determined, which is never a release", "alert-warning"),
}


def pages(dossier: Mapping[str, Any], validation: Validation) -> dict[str, str]:
    """File name -> page: an index with the verdict, and a page for each metric table with its expectations.

    The same for the same dossier and validation.
    """
    from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView

    title = f"{dossier['gate']}: candidate {dossier['candidate']}"
    documents = {INDEX: _index(title, dossier, validation)} | {
        f"{name}.html": _of_table(title, dossier, name, result)
        for name, result in validation.of_tables.items()
    }
    index, other = DefaultJinjaIndexPageView(), DefaultJinjaPageView()
    found = {}
    for name, document in documents.items():
        view = index if name == INDEX else other
        rendered = view.render(document)  # type: ignore[no-untyped-call]
        found[name] = _page(title, plain(rendered, list(documents)))
    return found


def _of_table(
    title: str, dossier: Mapping[str, Any], name: str, result: ExpectationSuiteValidationResult
) -> RenderedDocumentContent:
    """The page of a metric table as Great Expectations makes it, below the verdict."""
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer

    named = copy.copy(result)
    named.meta = {**(result.meta or {}), "batch_spec": {"data_asset_name": f"figures of {escape(title)}"}}
    document: RenderedDocumentContent = ValidationResultsPageRenderer(run_info_at_end=True).render(named)
    document.page_title = name
    document.sections = [part for part in document.sections if part.section_name != "Run Info"]
    document.sections[0].content_blocks.insert(0, _verdict(title, dossier))
    return document


def _index(title: str, dossier: Mapping[str, Any], validation: Validation) -> RenderedDocumentContent:
    from great_expectations.render.components import RenderedDocumentContent, RenderedSectionContent

    blocks = [
        _verdict(title, dossier),
        _table("Expectation suites", ["Status", "Metric table", "Expectations", "Not met"], [
            [_status(bool(result.success)), _link(name), *_counts(result.statistics)]
            for name, result in validation.of_tables.items()
        ]),
        _table("Clauses that are not kept", ["Clause", "Value", "Bound", "Outcome"], [
            [escape(text) for text in _not_kept(clause, dossier)]
            for clause in dossier["clauses"]
            if clause["outcome"] != "kept"
        ]),
        _table("Waivers that are refused", ["Waiver", "Clause", "Problem"], [
            [escape(str(waiver[name])) for name in ("name", "clause", "problem")]
            for waiver in dossier.get("waivers", [])
            if waiver["problem"]
        ]),
    ]  # fmt: skip
    return RenderedDocumentContent(
        renderer_type="SiteIndexPageRenderer",
        sections=[
            RenderedSectionContent(section_name=title, content_blocks=[block for block in blocks if block])
        ],
    )


def _counts(statistics: Mapping[str, Any]) -> list[str]:
    return [str(statistics[name]) for name in ("evaluated_expectations", "unsuccessful_expectations")]


def _not_kept(clause: Mapping[str, Any], dossier: Mapping[str, Any]) -> list[str]:
    """A clause that is not kept: its name, value, bound, and what comes of it."""
    bound = f"{'at least' if clause['at_least'] else 'at most'} {cell(clause['limit'])}"
    return [clause["name"], cell(clause["value"]), bound, _consequence(clause, dossier)]


def _consequence(clause: Mapping[str, Any], dossier: Mapping[str, Any]) -> str:
    outcome: str = clause["outcome"]
    for waiver in dossier.get("waivers", []):
        if outcome == "waived" and waiver["name"] == clause["waiver"]:
            return f"waived until {waiver['expires']} by {waiver['approver']}: {waiver['reason']}"
    return f"{outcome}, only warns" if clause["warns"] else outcome


def _verdict(title: str, dossier: Mapping[str, Any]) -> RenderedHeaderContent:
    from great_expectations.render.components import RenderedHeaderContent

    words, look = _VERDICTS[dossier["decision"]]
    return RenderedHeaderContent(
        header=_string(title, "h4"),
        subheader=_string(f"Verdict: {words}", "strong"),
        styling={"classes": ["col-12", "p-0"], "header": {"classes": ["alert", look]}},
    )


def _table(header: str, header_row: list[str], rows: list[list[Any]]) -> RenderedTableContent | None:
    """A table under a heading; none without rows. A text in it has to be escaped."""
    from great_expectations.render.components import RenderedTableContent

    if not rows:
        return None
    styling = {"classes": ["col-12", "table-responsive"], "body": {"classes": ["table"]}}
    return RenderedTableContent(table=rows, header=header, header_row=header_row, styling=styling)


def _string(text: str, tag: str = "span", **styling: Any) -> RenderedStringTemplateContent:
    """A text with a tag of its own: as a parameter, since only those are escaped."""
    from great_expectations.render.components import RenderedStringTemplateContent

    styled = {"params": {"text": {"tag": tag, **styling}}}
    return RenderedStringTemplateContent(
        string_template={"template": "$text", "params": {"text": text}, "styling": styled}
    )


def _link(name: str) -> RenderedStringTemplateContent:
    return _string(name, "a", attributes={"href": f"{name}.html"})


def _status(success: bool) -> RenderedStringTemplateContent:
    """The mark that Great Expectations has for a status."""
    return _string(
        "", "i", classes=["fa-check-circle", "text-success"] if success else ["fa-times", "text-danger"]
    )


def _page(title: str, body: str) -> str:
    """A page with a style sheet, whose hash is all that its policy allows."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    allowed = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{allowed}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>{body}</body>
</html>
"""


def plain(page: str, files: Sequence[str]) -> str:
    """The body of a page, of which only plain elements are kept; `files` are those that it may link to."""
    parser = _Plain(files)
    parser.feed(page)
    parser.close()
    return "".join(parser.kept)


class _Plain(HTMLParser):
    """Takes over, into `kept`, elements and attributes that are known to load nothing and run nothing."""

    _ELEMENTS = frozenset((
        "a", "br", "code", "div", "h4", "h5", "h6", "i", "input", "label", "li", "nav", "ol", "p", "span",
        "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
    ))  # fmt: skip
    _ATTRIBUTES = frozenset(("checked", "class", "colspan", "hidden", "id", "name", "title", "type"))
    _WITHOUT_CONTENT = frozenset(("br", "input"))
    _LEFT_OUT = frozenset(("footer", "head", "script", "style"))
    _MARKS: Mapping[str, tuple[str, str]] = {
        "fa-check-circle": ("\N{HEAVY CHECK MARK}", "met"),
        "fa-times": ("\N{HEAVY BALLOT X}", "not met"),
        "fa-exclamation-triangle": ("\N{WARNING SIGN}", "error"),
    }

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__()
        self.kept: list[str] = []
        self._files = files
        self._left_out = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._left_out += tag in self._LEFT_OUT
        if self._left_out:
            return
        given = {name: value or "" for name, value in attrs}
        if tag == "img":
            self.kept.append(escape(given.get("alt", "")))
        if tag not in self._ELEMENTS:
            return
        taken = {name: value for name, value in given.items() if name in self._ATTRIBUTES}
        target = self._target(given.get("href", ""))
        if tag == "a" and target:
            taken["href"] = target
        mark = next(
            (self._MARKS[name] for name in given.get("class", "").split() if name in self._MARKS), None
        )
        if mark:
            taken["title"] = mark[1]
        attributes = [f' {name}="{escape(value)}"' for name, value in taken.items()]
        self.kept.append(f"<{tag}{''.join(attributes)}>{mark[0] if mark else ''}")

    def _target(self, href: str) -> str:
        """Where a link may lead: within its page, to another page of the site, or nowhere."""
        if href.startswith("#") or href in self._files:
            return href
        return INDEX if href.rsplit("/", maxsplit=1)[-1] == INDEX else ""

    def handle_endtag(self, tag: str) -> None:
        if tag in self._LEFT_OUT:
            self._left_out = max(0, self._left_out - 1)
        elif not self._left_out and tag in self._ELEMENTS - self._WITHOUT_CONTENT:
            self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._left_out:
            self.kept.append(escape(data, quote=False))


_STYLE = """
body { margin: 0; color: #212529; font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
a[href] { color: #0b5cad; }
h4, h5, h6 { margin: 0; font-weight: 600; }
h4 { font-size: 1.4rem; } h5 { font-size: 1.15rem; } h6, .h6 { font-size: 1rem; }
p { margin: 0 0 .5rem; }
body > nav { border-bottom: 1px solid #ccc; padding: .75rem 1.5rem; }
nav nav { display: flex; align-items: baseline; gap: 1.5rem; }
.navbar-brand { font-size: 1.2rem; font-weight: 600; }
.breadcrumb { display: flex; gap: .5rem; margin: 0; padding: 0; list-style: none; }
.breadcrumb li + li::before { content: "/ "; }
body > .container-fluid > .row { display: flex; flex-wrap: wrap; gap: 1.5rem; padding: 1.5rem; }
.col-lg-2 { flex: 0 0 15rem; }
.col-lg-10 { flex: 1 1 30rem; min-width: 0; }
.card { border: 1px solid #ccc; border-radius: .25rem; margin-bottom: 1rem; }
.card-header { background: #f1f3f5; }
.card-header, .card-body { padding: .5rem .75rem; }
.card ul { list-style: none; margin: 0; padding: 0; }
.alert { border-radius: .25rem; padding: .75rem 1rem; margin-bottom: 1rem; background: #e9ecef; }
.alert-success { background: #d4edda; } .alert-danger { background: #f8d7da; }
.alert-warning { background: #fff3cd; }
table { border-collapse: collapse; margin-bottom: 1.5rem; }
td, th { border-top: 1px solid #ccc; padding: .4rem 1.5rem .4rem .5rem; text-align: left; }
td { vertical-align: top; }
.text-success { color: #1a7431; } .text-danger { color: #b02a37; } .text-warning { color: #946200; }
i { font-style: normal; font-weight: 600; }
body:has(#option2:checked) tr:has(.hide-succeeded-validation-target-child) { display: none; }
"""
