"""The charts of the page: copies, people found, disclosed targets, groups of people, growth and utility."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from disclosure_pipeline.errors import choose_form, write_count
from disclosure_pipeline.evaluation.long_table import WITH_RELEASES, view_frame
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.charts import (
    BEYOND_BOTH,
    BEYOND_OTHERS,
    FARTHEST,
    Chart,
    PageTable,
    draw_frame,
    find_beyond_both,
    find_worst,
    join_names,
    rank,
    require_words,
    tabulate,
    write_figures,
)
from disclosure_pipeline.measures.chance import errors_of_largest
from disclosure_pipeline.measures.found import NEARLY
from disclosure_pipeline.measures.words import BY_INDEPENDENT_COLUMNS, BY_ITSELF, BY_OTHERS, BY_SYNTHETIC
from disclosure_pipeline.policy.sentences import MISSING, Content, write_figure, write_finding
from disclosure_pipeline.tables.messages import capitalized


def show_copies(content: Content) -> Chart | None:
    """Draw the people copied in all columns, and in all but one, beside those of a fresh sample."""
    rows = view_frame(content["figures"], "partial_copies")
    rows = [row for row in rows if row["people_copied"] is not None]
    if not rows:
        return None
    worst = find_worst(rows, "columns", "people_copied")
    marks = {"people_copied": charts.SYNTHETIC, "people_copied_expected": charts.OTHERS}
    largest = max(worst.values(), key=lambda row: rank(row, "people_copied_beyond"))
    beyond = largest.get("people_copied_beyond")
    is_by_chance = beyond is None or beyond <= max(0.0, largest.get("people_copied_by_chance") or 0.0)
    title = "No more people are in the synthetic table, unchanged, than would be in a fresh sample"
    if not is_by_chance:
        words = require_words("people_copied_beyond", "partial_copies")
        title = f"{write_finding(words, beyond, None, content)} ({largest['columns']})"
    return draw_frame(
        capitalized(title),
        worst.values(),
        "columns",
        marks,
        "partial_copies",
        "% of the people",
        "People with a record of their own that a synthetic record equals, by the columns compared. A bar "
        "shows what chance alone adds.",
        tabulate(
            "People with a record of their own that the synthetic table holds, in percent",
            worst.values(),
            ["columns", "synthesis", *marks, "people_copied_beyond", "people_copied_beyond_se"],
            "partial_copies",
        ),
        row_height=24,
        bars=[
            (label, row["people_copied_expected"], row["people_copied_expected"] + row[_FOUND_BY_CHANCE])
            for label, row in worst.items()
            if row.get("people_copied_expected") is not None and row.get(_FOUND_BY_CHANCE) is not None
        ],
    )


def describe_copies(content: Content) -> list[str]:
    """Describe exact and near copies in each synthetic table."""
    sentences = []
    for row in content["exact_copies"]:
        [copies] = write_figures(content, row, "exact_copies", "percent")
        sentences.append(
            f"{capitalized(copies)} of the records of synthetic table {row['synthesis']} equal a "
            f"confidential record in all {row['columns']} shared columns."
        )
    for row in view_frame(content["figures"], "found"):
        if row["way"] == NEARLY and row.get("shown") is not None:
            shown, expected = write_figures(content, row, "found", "shown", "expected")
            where = f", {row['where']}" if row.get("where") else ""
            sentences.append(
                f"{capitalized(shown)} of the people are in synthetic table {row['synthesis']}{where}; of as "
                f"many other people it would be {expected}."
            )
    return sentences


def show_growth(content: Content) -> Chart | None:
    """Draw how many people the releases show together, with each further one and with the candidate.

    None if nothing is published yet.
    """
    figures = content["figures"]
    rows = [{**row, "after": row["releases"]} for row in view_frame(figures, "over_releases")]
    rows.sort(key=lambda row: row["releases"] == WITH_RELEASES)
    if len(rows) <= 1:
        return None
    rows[-1]["after"] = "with the candidate"
    marks = {"people_in_releases": charts.SYNTHETIC, "people_in_releases_expected": charts.OTHERS}
    words = {name: require_words(name, "over_releases") for name in marks}
    any_words = require_words("any", "released_targets")
    disclosed = {
        (row["target"], row["releases"]): row["any"] for row in view_frame(figures, "released_targets")
    }
    before, now = (rows[place]["people_in_releases"] for place in (-2, -1))
    return draw_frame(
        f"Found in the releases: {before:.1f} % of the people, {now:.1f} % with the candidate",
        rows,
        "after",
        marks,
        "over_releases",
        "% of the people",
        "The people found in all releases together, by the number of releases.",
        PageTable(
            "All releases together: people found, and people whose target any table shows",
            (
                "Releases",
                *(capitalized(of_figure.title) for of_figure in words.values()),
                *figures["targets"],
            ),
            tuple(
                (
                    row["after"],
                    *(write_figure(row[name], of) for name, of in words.items()),
                    *(
                        write_figure(disclosed.get((target, row["releases"])), any_words)
                        for target in figures["targets"]
                    ),
                )
                for row in rows
            ),
        ),
        row_height=17,
    )


def show_utility(content: Content) -> Chart | None:
    """Draw how far each column is from GT, beside a fresh sample."""
    rows = [row for row in view_frame(content["figures"], "columns_apart") if row["TVD"] is not None]
    if not rows:
        return None
    worst = find_worst(rows, "column", "TVD")
    marks = {"TVD": charts.SYNTHETIC, "TVD_expected": charts.OTHERS}
    farthest = max(worst.values(), key=lambda row: rank(row, FARTHEST))
    beyond = farthest["TVD"] - (farthest.get("TVD_expected") or 0.0)
    title = "Every column is as near to the confidential one as a fresh sample would be"
    if beyond > 0:
        title = f"{farthest['column']} is the column that differs most from the confidential one"
    return draw_frame(
        title,
        worst.values(),
        "column",
        marks,
        "columns_apart",
        "share of records that would have to change",
        "For each column, the share of records that would have to change to give the same frequencies.",
        tabulate(
            "Distance of each column from the confidential one, as a share of 1",
            worst.values(),
            ["column", "synthesis", *marks],
            "columns_apart",
        ),
        row_height=16,
        width=charts.SIDE_BY_SIDE,
    )


_FOUND_BY_CHANCE = "people_copied_by_chance"
_MOST = 12
_INTERVAL = re.compile(r"[(\[](-inf|~?[-\d.]+(?: \(\d+\))?), (inf|~?[-\d.]+(?: \(\d+\))?)\)")


def show_subgroups(content: Mapping[str, Any]) -> Chart | None:
    """Draw the groups most exposed beyond other people's records, the most exposed first, or return None."""
    rows = [row for row in view_frame(content["figures"], "subgroups") if row.get("DiSCO") is not None]
    if not rows:
        return None
    worst: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: -rank(row, BEYOND_OTHERS)):
        worst.setdefault(_name_group(row), {**row, "group": _name_group(row)})
    shown = list(worst.values())[:_MOST]
    target = shown[0]["target"]
    groups = f"The {_MOST} most exposed of {len(worst)} groups" if len(worst) > _MOST else "Groups of people"
    return draw_frame(
        _state_most_exposed(shown[0], content),
        shown,
        "group",
        {"DiSCO": charts.SYNTHETIC, "DiSCO_others": charts.OTHERS},
        "subgroups",
        "% of the group",
        "The share of each group of people whose target is disclosed, by what is beyond others' records.",
        tabulate(
            f"{groups}, by the share of each whose {target} is disclosed",
            shown,
            ["group", "records", "DiSCO", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se", "lift"],
            "subgroups",
        ),
        row_height=17,
        bars=[(str(row["group"]), *_find_bar(row, errors_of_largest(len(worst)))) for row in shown],
    )


def _state_most_exposed(row: Mapping[str, Any], content: Content) -> str:
    disclosed, others = write_figures(content, row, "subgroups", "DiSCO", "DiSCO_others")
    if row.get("DiSCO_others") is not None and (row["DiSCO"] or 0.0) <= row["DiSCO_others"]:
        return f"No group is more exposed than other people's records make it: {row['target']} is shown alike"
    sentence = f"Most exposed are people with {row['group']}: {row['target']} is disclosed for {disclosed}"
    return sentence if row.get("DiSCO_others") is None else f"{sentence}, from others' records for {others}"


def _find_bar(row: Mapping[str, Any], errors: float) -> tuple[float, float]:
    """Return the range of DiSCO (%) of fresh samples, up to `errors` standard errors from its mean."""
    mean, reach = row.get("DiSCO_others") or 0.0, errors * (row.get("DiSCO_beyond_se") or 0.0)
    return max(0.0, mean - reach), min(100.0, mean + reach)


def _name_group(row: Mapping[str, Any]) -> str:
    """Name column and level; an interval in words, with ~ before rounded edges."""
    interval = _INTERVAL.fullmatch(str(row["group"]))
    if interval is None:
        return f"{row['column']}: {row['group']}"
    low, high = interval.groups()
    if low == "-inf":
        return f"{row['column']}: below {high}"
    return f"{row['column']}: {low} or more" if high == "inf" else f"{row['column']}: {low} to below {high}"


def list_flagged_levels(content: Mapping[str, Any]) -> PageTable | None:
    """Return the levels that dominate the disclosed records; None if no check flags one."""
    rows = view_frame(content["figures"], "one_way")
    if not rows:
        return None
    return tabulate(
        "Values that dominate the disclosed records",
        rows,
        ["target", "level", "n_level_disclosive", "pct_level_disclosive", "pct_level_all"],
        "one_way",
    )


def locate(content: Content) -> tuple[float, float] | None:
    """Return a candidate's place on the map: its largest TVD_column_beyond and its largest DiSCO_beyond."""
    figures = content["figures"]
    distances = [rank(row, FARTHEST) for row in view_frame(figures, "columns_apart")]
    risks = [rank(row, "DiSCO_beyond") for row in view_frame(figures, "attribute")]
    if not distances or not risks or -math.inf in (*distances, *risks):
        return None
    return max(0.0, *distances), max(0.0, *risks)


def show_map(content: Content, others: Sequence[Content]) -> Chart | None:
    """Draw the candidate among the others of its gate, by utility and risk."""
    placed = [(candidate, locate(candidate)) for candidate in (*others, content)]
    points = [
        (*place, "this candidate" if candidate is content else "another candidate")
        for candidate, place in placed
        if place is not None
    ]
    own_place = locate(content)
    if own_place is None or len(points) == 1:
        return None
    better = sum(x <= own_place[0] and y <= own_place[1] for x, y, kind in points if kind != "this candidate")
    title = "No other candidate is both at least as useful and no riskier"
    if better:
        others_are = f"{write_count(len(points) - 1, 'other candidate')} {choose_form(better, 'is', 'are')}"
        title = f"{better} of {others_are} at least as useful and no riskier"
    x_words = require_words("TVD_column_beyond", "guards")
    y_words = require_words("DiSCO_beyond", "attribute")
    return Chart(
        title,
        charts.draw_map(points, "farther from the confidential table", "riskier"),
        "The candidates of the gate: useful ones are on the left, safe ones at the bottom.",
        PageTable(
            "The candidates of the gate by utility and risk",
            ("Candidate", "Verdict", capitalized(x_words.title), capitalized(y_words.title)),
            tuple(
                (
                    str(candidate["candidate"]),
                    str(candidate["decision"]),
                    write_figure(place[0], x_words) if place else MISSING,
                    write_figure(place[1], y_words) if place else MISSING,
                )
                for candidate, place in placed
            ),
        ),
    )


def show_found(content: Content) -> Chart | None:
    """Draw the people whom their keys single out, and the records that point at one person."""
    rows = view_frame(content["figures"], "identity")
    if not rows:
        return None
    worst = max(rows, key=lambda row: rank(row, "repU"))
    others = {"unique_hits_others": BY_OTHERS, "unique_hits_apart": BY_INDEPENDENT_COLUMNS}
    expected = max(others, key=lambda name: worst.get(name) or 0.0)
    legend = {"UiO": BY_ITSELF, expected: others[expected]}
    marks = {BY_ITSELF: charts.OWN, BY_SYNTHETIC: charts.SYNTHETIC, others[expected]: charts.OTHERS}
    labels = {
        "people singled out by their keys": ("UiO", "repU"),
        "records pointing at one person": ("unique_hits", expected),
    }
    points = [
        (label, legend.get(column, BY_SYNTHETIC), worst[column])
        for label, columns in labels.items()
        for column in columns
        if worst.get(column) is not None
    ]
    beyond = worst.get("unique_hits_beyond_chance") or 0.0
    title = "No more synthetic records point at exactly one person than other people's records would"
    if beyond > 0:
        title = write_finding(require_words("unique_hits_beyond", "identity"), beyond, None, content)
    return Chart(
        capitalized(title),
        charts.draw_rows(
            points,
            marks,
            "% of the people, or of the synthetic records",
            longest_name=charts.LONG_NAMES,
        ),
        "People who are the only ones with their keys, and records with the keys of exactly one person.",
        tabulate(
            "Who is singled out, in percent",
            rows,
            ["synthesis", "UiO", "UiOiS", "repU", "unique_hits", *others, "unique_hits_beyond"],
            "identity",
        ),
    )


def show_disclosure(content: Content) -> Chart | None:
    """Draw the DiSCO of each target, beside GT itself, other people's records and chance."""
    rows = list_worst_by_target(content)
    if not rows:
        return None
    marks = {
        "Dorig": charts.OWN,
        "DiSCO": charts.SYNTHETIC,
        "DiSCO_others": charts.OTHERS,
        "DiSCO_chance": charts.CHANCE,
    }
    if max(content["figures"]["N_s"]) > content["figures"]["N_d"]:
        # The baselines have as many records as GT, and so has DiSCO_at_n.
        marks |= {"DiSCO_at_n": marks["DiSCO"], "DiSCO": charts.SQUARE}
    errors = errors_of_largest(len(rows))
    return draw_frame(
        _find_largest(rows, content),
        rows,
        "target",
        marks,
        "attribute",
        "% of the people",
        "For each target, the people whose value each source shows. A bar is the range in which chance "
        f"leaves fresh samples of other people.{_name_small_targets(rows, content)}",
        tabulate(
            "People whose target each source shows, in percent",
            rows,
            ["target", "synthesis", *marks, "DiSCO_beyond", "DiSCO_beyond_se"],
            "attribute",
        ),
        bars=[(str(row["target"]), *_find_bar(row, errors)) for row in rows],
    )


def _find_largest(rows: Sequence[Mapping[str, Any]], content: Content) -> str:
    """Name the most disclosed target by the figure that a policy bounds."""
    measured = [row for row in rows if row.get("DiSCO_beyond") is not None]
    if not measured:
        worst = max(rows, key=lambda row: rank(row, "DiSCO"))
        return f"The synthetic table discloses most about {worst['target']}"
    worst = max(measured, key=lambda row: rank(row, BEYOND_BOTH))
    figure, words = find_beyond_both(worst) or 0.0, require_words("DiSCO_beyond", "attribute")
    if figure > errors_of_largest(len(rows)) * (worst.get("DiSCO_beyond_se") or 0.0):
        return capitalized(write_finding(words, figure, str(worst["target"]), content))
    return "About no target does the table tell more than other people's records and chance would"


def _name_small_targets(rows: Sequence[Mapping[str, Any]], content: Content) -> str:
    """Return a sentence on the targets whose DiSCO counts fewer than `smallest_count` people, or ""."""
    smallest, people = content["smallest_count"], content["figures"]["N_d"]
    small = [str(row["target"]) for row in rows if (row["DiSCO"] or 0.0) * people / 100 < smallest]
    return f" DiSCO of {join_names(small)} counts fewer than {smallest} people." if small else ""


def list_worst_by_target(content: Content) -> list[Mapping[str, Any]]:
    """Return the row of the synthesis with the largest DiSCO for each target."""
    rows = [row for row in view_frame(content["figures"], "attribute") if row.get("DiSCO") is not None]
    return list(find_worst(rows, "target", "DiSCO").values())
