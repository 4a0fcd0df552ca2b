"""The candidate among the others of its gate: on the map of risk and utility, and beside the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.numbers import MISSING, write_figure
from disclosure_pipeline.evidence.page.parts import Figure, Table
from disclosure_pipeline.evidence.page.words import require_words
from disclosure_pipeline.policy.clause_words import words_of
from disclosure_pipeline.tables.messages import capitalized

Content = Mapping[str, Any]


def _place(content: Content) -> tuple[float, float] | None:
    """Where a candidate stands: its largest distance of a column, and its largest DiSCO_beyond."""
    distances = [row.get("TVD_column_beyond") for row in content["figures"]["guards"]]
    risks = [row.get("DiSCO_beyond") for row in content["figures"]["attribute"]]
    if not distances or not risks or None in distances or None in risks:
        return None
    return max(0.0, *distances), max(0.0, *risks)


def show_map(content: Content, others: Sequence[Content]) -> Figure | None:
    """The candidate among the others of its gate, by utility and risk."""
    placed = [(candidate, _place(candidate)) for candidate in (*others, content)]
    points = [
        (
            str(candidate["candidate"]),
            *place,
            "this candidate" if candidate is content else "another candidate",
        )
        for candidate, place in placed
        if place is not None
    ]
    own_place = _place(content)
    if own_place is None or not points:
        return None
    better = sum(
        x <= own_place[0] and y <= own_place[1] for _, x, y, kind in points if kind != "this candidate"
    )
    if len(points) == 1:
        title = "This is the first candidate of the gate that was measured"
    elif better:
        title = f"{better} of {len(points) - 1} other candidates are at least as useful and no riskier"
    else:
        title = "No other candidate is both at least as useful and no riskier"
    x_words, y_words = (
        require_words("TVD_column_beyond", "guards"),
        require_words("DiSCO_beyond", "attribute"),
    )
    return Figure(
        title,
        charts.draw_map(points, x_words.title, y_words.title),
        "The candidates of the gate: to the left are useful ones, below are safe ones.",
        Table(
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


def compare_with_last(content: Content, last: Content | None) -> Table | None:
    """What the clauses say now, and said of the candidate before; None where there is none."""
    if last is None:
        return None
    before = {clause["name"]: clause for clause in last["clauses"]}
    rows = []
    for clause in content["clauses"]:
        earlier = before.get(clause["name"])
        if clause["control"] or earlier is None or earlier["value"] == clause["value"]:
            continue
        words = words_of(clause["measure"])
        both_known = clause["value"] is not None and earlier["value"] is not None
        change = f"{clause['value'] - earlier['value']:+.3g}" if both_known else MISSING
        outcomes = [earlier["outcome"], clause["outcome"]]
        rows.append(
            (
                clause["name"],
                write_figure(earlier["value"], words),
                write_figure(clause["value"], words),
                change,
                outcomes[1] if outcomes[0] == outcomes[1] else f"{outcomes[0]}, now {outcomes[1]}",
            )
        )
    caption = f"Clauses whose figure changed since candidate {last['candidate']}"
    return Table(caption, ("Clause", "Before", "Now", "Change", "Outcome"), tuple(rows))
