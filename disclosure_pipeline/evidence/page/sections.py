"""What the page tells beside the verdict: intruders, copies, utility, history, limits, definitions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.numbers import MISSING, write_figure
from disclosure_pipeline.evidence.page.parts import Figure, Table, tabulate
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.clause_words import words_of

Content = Mapping[str, Any]


def _words(name: str, frame: str) -> Words:
    words = find_words(name, frame)
    assert words is not None
    return words


def tell_intruder(content: Content) -> list[str]:
    """What somebody could do who knows the keys of a person: a paragraph for each target."""
    figures = content["figures"]
    keys = _list(figures["keys"])
    sentences = []
    for row in _worst_by_target(figures["attribute"]):
        said = {
            name: write_figure(row.get(name), _words(name, "attribute")) for name in ("iS", "DiS", "DiSCO")
        }
        sentence = (
            f"Somebody who knows {keys} of a person finds {said['iS']} of the people in the synthetic table. "
            f"Of {said['DiS']} it then claims one value of {row['target']} with certainty; for "
            f"{said['DiSCO']} of all people that value is right."
        )
        if row.get("DiSCO_others") is not None:
            others = write_figure(row["DiSCO_others"], _words("DiSCO_others", "attribute"))
            sentence += f" Other people's records, without the person's own, would do so for {others}."
        if row.get("DiSCO_chance") is not None:
            chance = write_figure(row["DiSCO_chance"], _words("DiSCO_chance", "attribute"))
            sentence += f" Chance alone would give {chance}."
        sentences.append(sentence)
    sentences += [*_tell_holdout(figures), *_tell_together(figures)]
    identity = figures["identity"]
    if identity:
        worst = max(identity, key=lambda row: row.get("repU") or 0.0)
        unique = write_figure(worst.get("UiO"), _words("UiO", "identity"))
        both = write_figure(worst.get("repU"), _words("repU", "identity"))
        sentences.append(
            f"{unique} of the people are the only ones with their combination of {keys}. For {both} the "
            "synthetic table holds exactly one such record, which looks like them, whether it was made from "
            "them or not."
        )
    return sentences


def _tell_holdout(figures: Content) -> Iterator[str]:
    """What SD tells of people who had no part in it, where a holdout was given."""
    for row in figures.get("holdout", ()):
        if row["measure"] == "DiSCO":
            said = {
                name: write_figure(row[name], _words(name, "holdout")) for name in ("ground_truth", "holdout")
            }
            yield (
                f"Of the people who took no part in the synthesis, {said['holdout']} can be told their "
                f"{row['target']}; of those who did, {said['ground_truth']} (table {row['synthesis']})."
            )


def _tell_together(figures: Content) -> Iterator[str]:
    """What several tables that are published together tell."""
    for row in figures.get("together", ()):
        said = write_figure(row["any"], _words("any", "together"))
        yield f"All synthetic tables together tell the {row['target']} of {said} of the people."


def show_disclosure(content: Content) -> Figure | None:
    """The targets, each with what GT holds, what SD tells, what others would tell, and what chance gives."""
    rows = list(_worst_by_target(content["figures"]["attribute"]))
    names = {
        "confidential table itself": ("Dorig", charts.OWN),
        "synthetic table": ("DiSCO", charts.SYNTHETIC),
        "other people's records": ("DiSCO_others", charts.OTHERS),
        "chance": ("DiSCO_chance", charts.CHANCE),
    }
    points = [
        (str(row["target"]), name, row[column])
        for row in rows
        for name, (column, _) in names.items()
        if row.get(column) is not None
    ]
    if not points:
        return None
    columns = ["target", "synthesis", "Dorig", "DiSCO", "DiSCO_others", "DiSCO_chance"]
    return Figure(
        _find_largest(rows),
        charts.draw_rows(
            points, {name: mark for name, (_, mark) in names.items()}, "% of the people", largest=100
        ),
        "For each target, how many people can be told their value, by whom.",
        tabulate(
            "Who can tell a person's target, in percent of the people",
            rows,
            columns,
            "attribute",
            headings={column: name.capitalize() for name, (column, _) in names.items()},
        ),
    )


def _find_largest(rows: Sequence[Mapping[str, Any]]) -> str:
    measured = [row for row in rows if row.get("DiSCO_beyond") is not None]
    if not measured:
        worst = max(rows, key=lambda row: row.get("DiSCO") or 0.0)
        return f"The synthetic table tells most about {worst['target']}"
    worst = max(measured, key=lambda row: float(row["DiSCO_beyond"]))
    if not worst["DiSCO_beyond"] > 2 * (worst.get("DiSCO_beyond_se") or 0.0):
        return (
            "The synthetic table tells no more about any target than other people's records, but for chance"
        )
    beyond = write_figure(worst["DiSCO_beyond"], _words("DiSCO_beyond", "attribute"))
    return f"{worst['target']} stands out: {beyond} more than other people's records would tell"


def _worst_by_target(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Of each target the synthesis with the largest DiSCO, the targets in their order."""
    for target in dict.fromkeys(row["target"] for row in rows):
        of_target = [row for row in rows if row["target"] == target and row.get("DiSCO") is not None]
        if of_target:
            yield max(of_target, key=lambda row: float(row["DiSCO"]))


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
        "synthetic table": ("unique_copies", charts.SYNTHETIC),
        "a fresh sample of other people": ("unique_copies_others", charts.OTHERS),
        "columns drawn apart": ("unique_copies_apart", charts.CHANCE),
    }
    points = [
        (label, name, row[column])
        for label, row in worst.items()
        for name, (column, _) in marks.items()
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
        charts.draw_rows(points, {name: mark for name, (_, mark) in marks.items()}, "% of the records"),
        "How many records equal the record of exactly one person, by the columns that are compared.",
        tabulate(
            "Records that equal the record of exactly one person, in percent",
            worst.values(),
            ["columns", "synthesis", *(column for column, _ in marks.values()), "unique_copies_beyond"],
            "partial_copies",
            headings={column: name.capitalize() for name, (column, _) in marks.items()}
            | {"unique_copies_beyond": "Beyond"},
        ),
    )


def tell_copies(content: Content) -> list[str]:
    """What is known of copies and of nearness, in sentences."""
    sentences = []
    for row in content["exact_copies"]:
        copies = write_figure(row.get("percent"), _words("percent", "exact_copies"))
        sentences.append(
            f"{copies} of the records of synthetic table {row['synthesis']} equal a confidential record in "
            f"all {row['columns']} shared columns."
        )
    for row in content["figures"]["guards"]:
        if row.get("nearer") is not None:
            nearer = write_figure(row["nearer"], _words("nearer", "guards"))
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
    marks = {
        "synthetic table": ("TVD", charts.SYNTHETIC),
        "a fresh sample": ("TVD_expected", charts.OTHERS),
    }
    points = [
        (str(label), name, row[column])
        for label, row in worst.items()
        for name, (column, _) in marks.items()
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
            {name: mark for name, (_, mark) in marks.items()},
            "share of records that would have to move",
        ),
        "For each column, the share of records that would have to change to have the same frequencies.",
        tabulate(
            "Distance of each column from the confidential one, as a share of 1",
            worst.values(),
            ["column", "synthesis", "TVD", "TVD_expected"],
            "columns_apart",
            headings={"TVD": "Synthetic table", "TVD_expected": "A fresh sample"},
        ),
    )


def _place(content: Content) -> tuple[float, float] | None:
    """Where a candidate stands: its largest distance of a column, and its largest DiSCO_beyond."""
    distances = [row.get("TVD_column_beyond") for row in content["figures"]["guards"]]
    risks = [row.get("DiSCO_beyond") for row in content["figures"]["attribute"]]
    if not distances or not risks or None in distances or None in risks:
        return None
    return max(0.0, *distances), max(0.0, *risks)


def show_map(content: Content, others: Sequence[Content]) -> Figure | None:
    """The candidate among the others of its gate, by utility and risk."""
    placed = [(each, _place(each)) for each in (*others, content)]
    points = [
        (
            str(each["candidate"]),
            *place,
            "this candidate" if each is content else "another candidate",
        )
        for each, place in placed
        if place is not None
    ]
    here = _place(content)
    if here is None or not points:
        return None
    better = sum(x <= here[0] and y <= here[1] for _, x, y, kind in points if kind != "this candidate")
    if len(points) == 1:
        title = "This is the first candidate of the gate that was measured"
    elif better:
        title = f"{better} of {len(points) - 1} other candidates are at least as useful and no riskier"
    else:
        title = "No other candidate is both at least as useful and no riskier"
    x_words, y_words = _words("TVD_column_beyond", "guards"), _words("DiSCO_beyond", "attribute")
    return Figure(
        title,
        charts.draw_map(
            points, "distance of the worst column beyond a fresh sample", "risk beyond other people's records"
        ),
        "The candidates of the gate: to the left are useful ones, below are safe ones.",
        Table(
            "The candidates of the gate by utility and risk",
            ("Candidate", "Verdict", "Distance beyond a fresh sample", "Risk beyond other people's records"),
            tuple(
                (
                    str(each["candidate"]),
                    str(each["decision"]),
                    write_figure(place[0], x_words) if place else MISSING,
                    write_figure(place[1], y_words) if place else MISSING,
                )
                for each, place in placed
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
        then = before.get(clause["name"])
        if clause["control"] or then is None or then["value"] == clause["value"]:
            continue
        words = words_of(clause["measure"])
        both_known = clause["value"] is not None and then["value"] is not None
        change = f"{clause['value'] - then['value']:+.3g}" if both_known else MISSING
        outcomes = [then["outcome"], clause["outcome"]]
        rows.append(
            (
                clause["name"],
                write_figure(then["value"], words),
                write_figure(clause["value"], words),
                change,
                outcomes[1] if outcomes[0] == outcomes[1] else f"{outcomes[0]}, now {outcomes[1]}",
            )
        )
    caption = f"Clauses whose figure changed since candidate {last['candidate']}"
    return Table(caption, ("Clause", "Before", "Now", "Change", "Outcome"), tuple(rows))


def define(content: Content) -> list[tuple[str, Words]]:
    """Every measure that the page names, with its words."""
    names = ["DiSCO", "DiSCO_others", "DiSCO_beyond", "DiSCO_chance", "Dorig", "UiO", "repU", "unique_copies"]
    names += ["nearer", "TVD"]
    by_name = {name: words for name in names if (words := find_words(name)) is not None}
    for clause in content["clauses"]:
        by_name.setdefault(clause["measure"], words_of(clause["measure"]))
    return sorted(by_name.items(), key=lambda entry: entry[0].lower())


def _list(names: Sequence[Any]) -> str:
    texts = [str(name) for name in names]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
