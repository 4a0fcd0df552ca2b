"""The whole page: one file that loads nothing, with a style sheet that its security policy allows by hash."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.exposed_groups import MOST_RECORDS
from disclosure_pipeline.evaluation.frames import find_words
from disclosure_pipeline.evaluation.long_table import NUMBERS, PLACES, FigureRow, view_frame
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.evidence.dossier import build_measurement, count_kept
from disclosure_pipeline.evidence.page import sections
from disclosure_pipeline.evidence.page.charts import (
    BEYOND_BOTH,
    BEYOND_OTHERS,
    FARTHEST,
    join_names,
    place_rows,
    tabulate,
)
from disclosure_pipeline.evidence.page.clauses_section import (
    QUESTIONS,
    TriedRemedy,
    advise,
    compare_with_last,
    list_definitions,
    tabulate_clauses,
)
from disclosure_pipeline.evidence.page.first_page import (
    PLACES_OF_CLAUSES,
    answer_questions,
    describe_detection,
    describe_found,
    describe_intruder,
    find_reason,
    label_columns,
    place_clauses,
    show_bounds,
    show_power,
    write_headline,
)
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.words import NONE, Words
from disclosure_pipeline.policy.rounding import (
    find_fewest_records,
    round_by_unit,
    round_figure,
    round_records,
    round_share,
)
from disclosure_pipeline.policy.verdict import Judgement, find_limits, read_judgements, round_judgements
from disclosure_pipeline.tables.messages import GROUND_TRUTH, escape_unseen

if TYPE_CHECKING:
    from jinja2 import Environment

    from disclosure_pipeline.evaluation.result import Disclosure

_WITHOUT_UNIT = Words("", "", unit=NONE, denominator="")

Edition = Literal["internal", "publication"]

# The figures by which the page chooses among the rows of a frame.
_ORDERED = {
    "identity": ("repU",),
    "attribute": ("DiSCO", "DiSCO_beyond", BEYOND_BOTH),
    "partial_copies": ("people_copied", "people_copied_beyond"),
    "columns_apart": ("TVD", FARTHEST),
    "subgroups": (BEYOND_OTHERS,),
}


def make_publishable(content: Mapping[str, Any]) -> dict[str, Any]:
    """Round every figure of a dossier to multiples of `smallest_count` people, and withhold every level.

    Figures are rounded as in the statement (`policy.rounding`), never to the safer side. Figures that the
    catalogue does not mark as public are left out, and warnings, which may hold values, are only counted.
    Bounds and outcomes are unchanged.
    """
    figures = content["figures"]
    records = [figures["N_d"], *figures["N_s"]]
    rounding = _Rounding(
        records, figures.get("N_holdout", 0), content["smallest_count"], read_judgements(content)
    )
    judgements = round_judgements(rounding.judgements, rounding.records, rounding.smallest)
    return {
        **content,
        "clauses": [
            _round_clause(row, exact, public, rounding)
            for row, exact, public in zip(content["clauses"], rounding.judgements, judgements, strict=True)
        ],
        PLACES_OF_CLAUSES: place_clauses(content),
        "figures": _round_all(figures, rounding),
        "exact_copies": [
            {
                **{name: row[name] for name in ("synthesis", "columns")},
                "percent": rounding.round_figure(row["percent"], find_words("percent", "exact_copies")),
            }
            for row in content["exact_copies"]
        ],
        "ledger": _round_ledger(content["ledger"], content["smallest_count"]),
        "warnings": [],
        "number_of_warnings": len(content["warnings"]),
        "is_rounded": True,
    }


@dataclass(frozen=True)
class _Rounding:
    """Rounds the figures of one dossier by its numbers of records and the limits of its clauses."""

    records: Sequence[int]
    holdout: int
    smallest: int
    judgements: Sequence[Judgement]

    def round_figure(self, value: Any, words: Words | None, limits: Sequence[float] = ()) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return value
        fewest = find_fewest_records(self.records, self.smallest)
        return round_by_unit(value, words or _WITHOUT_UNIT, fewest, self.smallest, limits)

    def find_limits(self, figure: str, about: str | None, *, beyond: bool) -> list[float]:
        """Return the absolute limits of a figure itself, or of what is beyond other people's records."""
        return [
            limit
            for judgement in self.judgements
            for clause in [judgement.clause]
            if clause.figure == figure and about in (clause.about or (None,))
            if clause.share_of is None and (clause.statistic == "beyond") == beyond
            for limit in find_limits(clause, self.judgements)
        ]


def _round_ledger(ledger: Sequence[Mapping[str, Any]], smallest: int) -> list[dict[str, Any]]:
    """Round the ledger and number its tables: the names of the files that arrived are not public."""
    numbers: dict[str, int] = {}
    rows = []
    for change in ledger:
        table = change["table"]
        if table != GROUND_TRUTH:
            table = f"table {numbers.setdefault(table, len(numbers) + 1)} of those compared with it"
        records = int(round_figure(change["records"], smallest, ()))
        rows.append({**change, "table": table, "records": records})
    return rows


def _round_clause(
    row: Mapping[str, Any], exact: Judgement, public: Judgement, rounding: _Rounding
) -> dict[str, Any]:
    """Round a clause as the statement does, and a figure that the statement withholds by its unit."""
    clause, entry = exact.clause, exact.clause.entry
    published = None if entry is None else entry.find_published(clause.statistic)
    if published == "exact":
        return dict(row)
    value = public.value
    if value is None and published is not None:
        value = rounding.round_figure(exact.value, clause.words, find_limits(clause, rounding.judgements))
    limit = rounding.round_figure(exact.limit, clause.words) if clause.share_of else exact.limit
    judged = None if exact.row is None else _round_figures(exact.row, rounding).to_record()
    return {**row, "value": value, "limit": limit, "row": judged}


def _round_figures(row: FigureRow, rounding: _Rounding) -> FigureRow:
    """Round the numbers of a row, those that are judged by their limits, or withhold them."""
    entry = FIGURES.get(row.figure)
    numbers: dict[str, Any] = dict.fromkeys(NUMBERS, math.nan)
    if entry is None or entry.public is None:
        return replace(row, **numbers)
    place = entry.find_place(row.basis)
    for name in ("beyond", "beyond_chance") if entry.public == "difference" else NUMBERS:
        value, column = getattr(row, name), getattr(place, name, "")
        is_difference, limits = name in {"beyond", "beyond_chance"}, []
        if is_difference or name == "value":
            limits = rounding.find_limits(row.figure, row.about, beyond=is_difference)
        if entry.public == "exact" or not math.isfinite(value):
            numbers[name] = value
        elif name == "holdout":
            numbers[name] = round_share(value, rounding.holdout, rounding.smallest)
        else:
            words = find_words(column, place.frame) or entry.words
            numbers[name] = rounding.round_figure(value, words, limits)
    return replace(row, **numbers)


def _round_all(figures: Mapping[str, Any], rounding: _Rounding) -> dict[str, Any]:
    declared = [(), *map(tuple, figures.get("declared_groups", ()))]
    exact = [row for row in figures["table"] if tuple(row.get("group", ())) in declared]
    rows = [FigureRow.from_record(record | {"where": ""}) for record in exact]
    sizes = {row.place: int(row.value) for row in rows if row.figure == "records"}
    rounded = [
        _round_of_group(row, sizes.get(row.place, 0), rounding)
        if row.group
        else _round_figures(row, rounding)
        for row in rows
    ]
    return {
        **{name: figures[name] for name in ("keys", "targets", "N_s", "within") if name in figures},
        "N_d": round_records(figures["N_d"], rounding.smallest),
        # Without the rows of figures that are not public.
        "table": [
            public.to_record()
            for row, public in zip(rows, rounded, strict=True)
            if math.isfinite(row.value) == math.isfinite(public.value)
        ],
        PLACES: {name: place_rows(view_frame({"table": exact}, name), by) for name, by in _ORDERED.items()},
    }


def _round_of_group(row: FigureRow, records: int, rounding: _Rounding) -> FigureRow:
    """Round shares by the number of records of the row's own group, and withhold the rest."""
    numbers: dict[str, Any] = dict.fromkeys(NUMBERS, math.nan)
    if row.figure == "records":
        numbers["value"] = float(round_records(records, rounding.smallest))
    for name in ("value", "others") if row.figure == "DiSCO" else ():
        if math.isfinite(share := getattr(row, name)):
            numbers[name] = round_share(share, records, rounding.smallest)
    return replace(row, **numbers)


PAGE = "dossier.html"
SMALLEST_COUNT = 10


def render_page(
    content: Mapping[str, Any],
    edition: Edition = "internal",
    others: Sequence[Mapping[str, Any]] = (),
    power: GatePower | None = None,
    remedies: Sequence[TriedRemedy] | None = None,
) -> str:
    """Return the page of a dossier; equal arguments give equal pages.

    `content` comes from `build_dossier()` or `build_measurement()`. `others` are the dossiers of the gate's
    other candidates, oldest first. `power` is None if it is not measured, `remedies` None if the gate tries
    none. The edition for publication shows neither others nor remedies, is rounded to the gate's
    `smallest_count` and names no level.
    """
    is_public = edition == "publication"
    shown = label_columns(make_publishable(content) if is_public else content)
    others = [] if is_public else others
    records = [shown["figures"]["N_d"], *shown["figures"]["N_s"]]
    power = power if power is not None and power.is_measured else None
    power_records = 0 if power is None else power.records
    if is_public and power is not None:
        power_records = round_records(power_records, shown["smallest_count"])
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
            headline=shown.get("copied_headline") or write_headline(shown),
            copied=shown.get("copied", ()),
            kind=shown["decision"] or "measured",
            kept=count_kept(shown["clauses"]),
            keys=join_names(shown["figures"]["keys"]),
            targets=join_names(shown["figures"]["targets"]),
            answers=answer_questions(shown, power),
            bounds=show_bounds(shown),
            detection=describe_detection(shown),
            power=power,
            power_figure=None if power is None else show_power(power),
            power_records=power_records,
            what_now=None if is_public or remedies is None else advise(shown, remedies, find_reason(shown)),
            questions=list(QUESTIONS),
            clause_tables=tabulate_clauses(shown),
            found=sections.show_found(shown),
            found_sentence=describe_found(shown),
            intruder=describe_intruder(shown),
            disclosure=sections.show_disclosure(shown),
            subgroups=sections.show_subgroups(shown),
            groups_drawn=MOST_RECORDS if max(records) > MOST_RECORDS else 0,
            flags=sections.list_flagged_levels(shown),
            copies=sections.show_copies(shown),
            growth=None if is_public else sections.show_growth(shown),
            releases_gone=max(
                (int(row.get("releases_gone") or 0) for row in view_frame(shown["figures"], "over_releases")),
                default=0,
            ),
            copies_sentences=sections.describe_copies(shown),
            utility=sections.show_utility(shown),
            risk_utility=None if is_public or shown["gate"] is None else sections.show_map(shown, others),
            change=compare_with_last(shown, others[-1] if others else None),
            has_last=bool(others),
            ledger=tabulate(
                "Changes, and the number of changed records",
                shown["ledger"],
                ["table", "column", "rule", "records"],
                "ledger",
            ),
            definitions=list_definitions(shown),
            withheld_warnings=shown.get("number_of_warnings", 0),
        )
    )
    return page


def render_result(result: Disclosure) -> str:
    """Return the page of a result without a gate; levels of fewer than SMALLEST_COUNT people are withheld.

    People found copied are its title and its first finding.
    """
    copies = result.copies
    found = {"copied_headline": copies.headline, "copied": [*copies.sentences, *copies.not_examined]}
    return render_page(build_measurement(result, SMALLEST_COUNT) | found)


def is_dossier(content: Mapping[str, Any]) -> bool:
    """Return True if a file of the store, perhaps of an earlier version, is fit for the page of another."""
    try:
        judgements = read_judgements(content)
        sections.locate(content)
        are_named = all(judgement.clause.name for judgement in judgements)
    except (AttributeError, KeyError, TypeError, ValueError):  # the record is damaged
        return False
    values = [judgement.value for judgement in judgements]
    are_figures = all(value is None or isinstance(value, int | float) for value in values)
    return are_named and are_figures and {"candidate", "decision"} <= content.keys()


@cache
def _environment() -> Environment:
    """Return templates that escape every value and raise an error for an unknown name."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape_unseen,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["write_count"] = write_count
    return environment


def _escape_unseen(value: Any) -> Any:
    """Escape invisible characters in plain text; markup is escaped already."""
    return escape_unseen(value) if type(value) is str else value


def _read(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")
