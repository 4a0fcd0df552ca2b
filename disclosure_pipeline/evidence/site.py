"""The Data Docs of a candidate: a static site that needs nothing but its own files.

Great Expectations renders the pages, and they load scripts, styles and pictures from other hosts. Of what it
renders only plain elements are kept; the style sheet and the marks of the status are from here, and a policy
in every page forbids the browser to load anything.

The renderers, components and views of Great Expectations are no public interface of it: they are imported
here only, and tests/evidence/test_site.py notices when they move.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from disclosure_pipeline.evidence.figures import format_cell
from disclosure_pipeline.evidence.html_page import INDEX, keep_plain_elements, render_page

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.components import (
        RenderedDocumentContent,
        RenderedHeaderContent,
        RenderedStringTemplateContent,
        RenderedTableContent,
    )
    from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView

    from disclosure_pipeline.evidence.validation import Validation

# Decision -> its description, and the class that colours it.
_VERDICTS = {
    "approved": ("approved", "alert-success"),
    "refused": ("refused", "alert-danger"),
    "undetermined": ("could not be determined, which is never a release", "alert-warning"),
}


def render_site(dossier: Mapping[str, Any], validation: Validation) -> dict[str, str]:
    """File name -> page: an index with the verdict, and a page for each metric table with its expectations.

    The same for the same dossier and validation.
    """
    title = f"{dossier['gate']}: candidate {dossier['candidate']}"
    documents = {INDEX: _render_index(title, dossier, validation)} | {
        f"{name}.html": _render_table_page(title, dossier, name, result)
        for name, result in validation.table_results.items()
    }
    index_view, table_view = _load_views()
    site = {}
    for name, document in documents.items():
        view = index_view if name == INDEX else table_view
        rendered = view.render(document)  # type: ignore[no-untyped-call]
        site[name] = render_page(title, keep_plain_elements(rendered, list(documents)))
    return site


@cache
def _load_views() -> tuple[DefaultJinjaIndexPageView, DefaultJinjaPageView]:
    """The views of the index and of the other pages; their templates are compiled once a process."""
    from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView

    views = DefaultJinjaIndexPageView(), DefaultJinjaPageView()
    for view in views:
        view.env.auto_reload = False
    return views


def _render_table_page(
    title: str, dossier: Mapping[str, Any], name: str, result: ExpectationSuiteValidationResult
) -> RenderedDocumentContent:
    """The page of a metric table as Great Expectations makes it, below the verdict."""
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer

    named = copy.copy(result)
    named.meta = {**(result.meta or {}), "batch_spec": {"data_asset_name": f"figures of {escape(title)}"}}
    document: RenderedDocumentContent = ValidationResultsPageRenderer(run_info_at_end=True).render(named)
    document.page_title = name
    document.sections = [part for part in document.sections if part.section_name != "Run Info"]
    document.sections[0].content_blocks.insert(0, _render_verdict(title, dossier))
    return document


def _render_index(title: str, dossier: Mapping[str, Any], validation: Validation) -> RenderedDocumentContent:
    from great_expectations.render.components import RenderedDocumentContent, RenderedSectionContent

    blocks = [
        _render_verdict(title, dossier),
        _render_table("Expectation suites", ["Status", "Metric table", "Expectations", "Not met"], [
            [_render_status(bool(result.success)), _render_link(name), *_list_counts(result.statistics)]
            for name, result in validation.table_results.items()
        ]),
        _render_table("Clauses that are not kept", ["Clause", "Value", "Bound", "Outcome"], [
            [escape(text) for text in _list_cells(clause, dossier)]
            for clause in dossier["clauses"]
            if clause["outcome"] != "kept"
        ]),
        _render_table("Waivers that are refused", ["Waiver", "Clause", "Problem"], [
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


def _list_counts(statistics: Mapping[str, Any]) -> list[str]:
    return [str(statistics[name]) for name in ("evaluated_expectations", "unsuccessful_expectations")]


def _list_cells(clause: Mapping[str, Any], dossier: Mapping[str, Any]) -> list[str]:
    """A clause that is not kept: its name, value, bound, and what comes of it."""
    bound = f"{'at least' if clause['at_least'] else 'at most'} {format_cell(clause['limit'])}"
    return [clause["name"], format_cell(clause["value"]), bound, _describe_outcome(clause, dossier)]


def _describe_outcome(clause: Mapping[str, Any], dossier: Mapping[str, Any]) -> str:
    outcome: str = clause["outcome"]
    for waiver in dossier.get("waivers", []):
        if outcome == "waived" and waiver["name"] == clause["waiver"]:
            return f"waived until {waiver['expires']} by {waiver['approver']}: {waiver['reason']}"
    return f"{outcome}, only warns" if clause["warns"] else outcome


def _render_verdict(title: str, dossier: Mapping[str, Any]) -> RenderedHeaderContent:
    from great_expectations.render.components import RenderedHeaderContent

    description, alert_class = _VERDICTS[dossier["decision"]]
    return RenderedHeaderContent(
        header=_render_string(title, "h4"),
        subheader=_render_string(f"Verdict: {description}", "strong"),
        styling={"classes": ["col-12", "p-0"], "header": {"classes": ["alert", alert_class]}},
    )


def _render_table(header: str, header_row: list[str], rows: list[list[Any]]) -> RenderedTableContent | None:
    """A table under a heading; none without rows. A text in it has to be escaped."""
    from great_expectations.render.components import RenderedTableContent

    if not rows:
        return None
    styling = {"classes": ["col-12", "table-responsive"], "body": {"classes": ["table"]}}
    return RenderedTableContent(table=rows, header=header, header_row=header_row, styling=styling)


def _render_string(text: str, tag: str = "span", **styling: Any) -> RenderedStringTemplateContent:
    """A text with a tag of its own: as a parameter, since only those are escaped."""
    from great_expectations.render.components import RenderedStringTemplateContent

    styled = {"params": {"text": {"tag": tag, **styling}}}
    return RenderedStringTemplateContent(
        string_template={"template": "$text", "params": {"text": text}, "styling": styled}
    )


def _render_link(name: str) -> RenderedStringTemplateContent:
    return _render_string(name, "a", attributes={"href": f"{name}.html"})


def _render_status(success: bool) -> RenderedStringTemplateContent:
    """The mark that Great Expectations has for a status."""
    return _render_string(
        "", "i", classes=["fa-check-circle", "text-success"] if success else ["fa-times", "text-danger"]
    )
