"""What the page tells of copies, nearness and utility, and its definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from disclosure_pipeline.evaluation.glossary import find_heading, find_words
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.numbers import write_figure
from disclosure_pipeline.evidence.page.parts import Figure, name_marks, tabulate
from disclosure_pipeline.evidence.page.words import require_words
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clause_words import words_of

Content = Mapping[str, Any]


def show_copies(content: Content) -> Figure | None:
    """Copies of one person in all columns, and in all but one, beside what a fresh sample would show."""
    figures = content["figures"]
    rows = [{"columns": "all columns", **row} for row in figures["guards"]]
    rows += list(figures["partial_copies"])
    rows = [row for row in rows if row.get("unique_copies") is not None]
    if not rows:
        return None
    worst: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        label = str(row["columns"])
        if label not in worst or row["unique_copies"] > worst[label]["unique_copies"]:
            worst[label] = row
    marks = {
        "unique_copies": charts.SYNTHETIC,
        "unique_copies_others": charts.OTHERS,
        "unique_copies_apart": charts.CHANCE,
    }
    points = [
        (label, find_heading(column, "partial_copies"), row[column])
        for label, row in worst.items()
        for column in marks
        if row.get(column) is not None
    ]
    largest = max(worst.values(), key=lambda row: row.get("unique_copies_beyond") or -math.inf)
    beyond = largest.get("unique_copies_beyond")
    title = (
        "No more records are copies of one person than in a fresh sample"
        if beyond is None or beyond <= 0
        else f"Copies of one person, in {largest['columns']}: {beyond:.1f} points more than in a fresh sample"
    )
    return Figure(
        title,
        charts.draw_rows(points, name_marks(marks, "partial_copies"), "% of the records"),
        "How many records equal the record of exactly one person, by the columns that are compared.",
        tabulate(
            "Records that equal the record of exactly one person, in percent",
            worst.values(),
            ["columns", "synthesis", *marks, "unique_copies_beyond"],
            "partial_copies",
        ),
    )


def tell_copies(content: Content) -> list[str]:
    """What is known of copies and of nearness, in sentences."""
    sentences = []
    for row in content["exact_copies"]:
        copies = write_figure(row.get("percent"), require_words("percent", "exact_copies"))
        sentences.append(
            f"{copies} of the records of synthetic table {row['synthesis']} equal a confidential record in "
            f"all {row['columns']} shared columns."
        )
    for row in content["figures"]["guards"]:
        if row.get("nearer") is not None:
            nearer = write_figure(row["nearer"], require_words("nearer", "guards"))
            sentences.append(
                f"{nearer} of the people are nearer to some record of synthetic table {row['synthesis']} "
                "than to any other person; a fresh sample would be nearer for about half of them."
            )
    return sentences


def show_utility(content: Content) -> Figure | None:
    """How far each column is from GT, beside what a fresh sample would show."""
    rows = [row for row in content["figures"]["columns_apart"] if row.get("TVD") is not None]
    if not rows:
        return None
    worst: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["column"] not in worst or row["TVD"] > worst[row["column"]]["TVD"]:
            worst[row["column"]] = row
    marks = {"TVD": charts.SYNTHETIC, "TVD_expected": charts.OTHERS}
    points = [
        (str(label), find_heading(column, "columns_apart"), row[column])
        for label, row in worst.items()
        for column in marks
        if row.get(column) is not None
    ]
    farthest = max(worst.values(), key=lambda row: float(row["TVD"]) - float(row.get("TVD_expected") or 0.0))
    beyond = farthest["TVD"] - (farthest.get("TVD_expected") or 0.0)
    title = (
        "Every column is as near to the confidential one as a fresh sample would be"
        if beyond <= 0
        else f"{farthest['column']} is the column that differs most from the confidential one"
    )
    return Figure(
        title,
        charts.draw_rows(
            points,
            name_marks(marks, "columns_apart"),
            "share of records that would have to move",
        ),
        "For each column, the share of records that would have to change to have the same frequencies.",
        tabulate(
            "Distance of each column from the confidential one, as a share of 1",
            worst.values(),
            ["column", "synthesis", *marks],
            "columns_apart",
        ),
    )


def define(content: Content) -> list[tuple[str, Words]]:
    """Every measure that the page names, with its words."""
    names = ["DiSCO", "DiSCO_others", "DiSCO_beyond", "DiSCO_chance", "Dorig", "UiO", "repU", "unique_copies"]
    names += ["nearer", "TVD"]
    by_name = {name: words for name in names if (words := find_words(name)) is not None}
    for clause in content["clauses"]:
        by_name.setdefault(clause["measure"], words_of(clause["measure"]))
    return sorted(by_name.items(), key=lambda entry: entry[0].lower())
