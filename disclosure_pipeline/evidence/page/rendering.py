"""The whole page: one file, one style sheet that its own policy allows by its hash; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from disclosure_pipeline.evaluation.subgroups import MOST_RECORDS
from disclosure_pipeline.evidence.dossier import build_measurement
from disclosure_pipeline.evidence.page import intruder, sections
from disclosure_pipeline.evidence.page.clauses_section import (
    count_outcomes,
    group_clauses,
    list_broken,
    write_headline,
)
from disclosure_pipeline.evidence.page.editions import Edition, make_publishable
from disclosure_pipeline.evidence.page.parts import tabulate

if TYPE_CHECKING:
    from jinja2 import Environment

    from disclosure_pipeline.evaluation.result import Disclosure

PAGE = "dossier.html"
SMALLEST_COUNT = 10


def render_page(
    content: Mapping[str, Any], edition: Edition = "internal", others: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the page of a dossier; the same for the same arguments.

    `content` is what `build_dossier()` or `build_measurement()` gives; `others` are the dossiers of the
    gate's other candidates, oldest first, which only the internal edition shows. The edition for publication
    is rounded to the gate's `smallest_count` and names no value of a column.
    """
    is_public = edition == "publication"
    shown = make_publishable(content) if is_public else content
    others = [] if is_public else list(others)
    records = [shown["figures"]["N_d"], *shown["figures"]["N_s"]]
    style = _read("style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page: str = (
        _environment()
        .get_template("page.html")
        .render(
            style=style,
            digest=digest,
            content=shown,
            is_public=is_public,
            headline=write_headline(shown),
            kind=shown["decision"] or "measured",
            broken=list_broken(shown),
            outcomes=count_outcomes(shown["clauses"]),
            clause_groups=group_clauses(shown),
            intruder=intruder.tell_intruder(shown),
            disclosure=intruder.show_disclosure(shown),
            subgroups=sections.show_subgroups(shown),
            groups_drawn=MOST_RECORDS if max(records) > MOST_RECORDS else 0,
            excludes_records=sections.excludes_records(shown),
            flags=sections.list_flagged_levels(shown),
            copies=sections.show_copies(shown),
            copies_sentences=sections.tell_copies(shown),
            utility=sections.show_utility(shown),
            risk_utility=None if is_public or shown["gate"] is None else sections.show_map(shown, others),
            change=sections.compare_with_last(shown, others[-1] if others else None),
            has_last=bool(others),
            ledger=tabulate(
                "What was changed, and in how many records",
                shown["ledger"],
                ["table", "column", "rule", "records"],
                "ledger",
            ),
            definitions=sections.define(shown),
            withheld_warnings=shown.get("number_of_warnings", 0),
        )
    )
    return page


def render_result(result: Disclosure, smallest_count: int = SMALLEST_COUNT) -> str:
    """The page of two tables that were measured without any gate; levels of fewer people are not named."""
    return render_page(build_measurement(result, smallest_count))


def is_dossier(content: Mapping[str, Any]) -> bool:
    """Return whether a file of the store, which an earlier version may have written, can stand on a page."""
    figures = content.get("figures")
    if not isinstance(figures, dict) or not isinstance(content.get("clauses"), list):
        return False
    return {"candidate", "decision"} <= content.keys() and {"guards", "attribute"} <= figures.keys()


@cache
def _environment() -> Environment:
    """Templates with all that is filled in escaped; a name that is not there is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def _read(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")
