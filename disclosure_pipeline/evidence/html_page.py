"""An HTML page of plain elements, with the one style sheet that its own policy allows."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from html.parser import HTMLParser

INDEX = "index.html"


def render_page(title: str, body: str) -> str:
    """A whole page; its policy lets a browser load nothing but the style sheet, by its hash."""
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


def keep_plain_elements(page: str, files: Sequence[str]) -> str:
    """The body of a page without all but plain elements; `files`: the names that it may link to."""
    parser = _PlainElements(files)
    parser.feed(page)
    parser.close()
    return "".join(parser.kept)


class _PlainElements(HTMLParser):
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
        attributes = {name: value for name, value in given.items() if name in self._ATTRIBUTES}
        target = self._target(given.get("href", ""))
        if tag == "a" and target:
            attributes["href"] = target
        mark = next(
            (self._MARKS[name] for name in given.get("class", "").split() if name in self._MARKS), None
        )
        if mark:
            attributes["title"] = mark[1]
        written = [f' {name}="{escape(value)}"' for name, value in attributes.items()]
        self.kept.append(f"<{tag}{''.join(written)}>{mark[0] if mark else ''}")

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
