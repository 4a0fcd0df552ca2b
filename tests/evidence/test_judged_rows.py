"""The row that was judged is the row that is shown, in both editions, and its sentence adds up."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from support import gates
from support.paths import PACKAGE
from support.sampling import on_some_days

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.evaluation.long_table import (
    ALL_FILES,
    ANY_FILE,
    WITH_RELEASES,
    FigureRow,
    list_entries,
    view_frame,
)
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import build_dossier, collect_figures, to_rows, withhold_rare_levels
from disclosure_pipeline.evidence.page.clauses_section import write_baselines
from disclosure_pipeline.evidence.page.first_page import (
    answer_questions,
    describe_found,
    describe_intruder,
    find_reason,
)
from disclosure_pipeline.evidence.page.rendering import make_publishable, render_page
from disclosure_pipeline.evidence.page.sections import list_worst_by_target, show_subgroups
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.copies import ALL_COLUMNS
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, judge, judge_rows

MEASURED = {"ground_truth": "a" * 64, "snapshot": "b" * 64}
PEOPLE = 400


def copy_some(people: pd.DataFrame, number: int, records: int) -> pd.DataFrame:
    """Return fresh people, a quarter of whom are copied from the ground truth."""
    copied = people.sample(len(people) // 4, random_state=number)
    return pd.concat([copied, population(records - len(copied), 100 + number)], ignore_index=True)


@cache
def measure(records: tuple[int, ...]) -> tuple[Gate, Disclosure]:
    people = population(PEOPLE)
    definition = yaml.safe_load((PACKAGE / "defs" / "survey" / "defs.yaml").read_text(encoding="utf-8"))
    attributes = definition["attributes"]
    attributes["policy"] |= {
        "DiSCO": {"beyond": 3, "targets": {"income": {"at_most": 40, "beyond": 3}}},
        "repU": {"at_most": 8, "over": "mean", "worst": 9},
        "DiSCO_any": {"beyond": 3},
    }
    gate = Gate.model_validate(attributes)
    tables = [copy_some(people, number, size) for number, size in enumerate(records)]
    return gate, gates.measured(gate, people, tables)


@cache
def _dossier(records: tuple[int, ...]) -> str:
    gate, result = measure(records)
    return json.dumps(build_dossier(gate, "c", MEASURED, result, judge(gate.clauses(), result)))


def dossier(*records: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_dossier(records))
    return content


EACH_SIZE = pytest.mark.parametrize(
    "records", [(PEOPLE,), (PEOPLE, PEOPLE), (PEOPLE, 300, 1000)], ids=["one", "two", "three"]
)


def find_by_hand(clause: Mapping[str, Any], result: Disclosure) -> list[tuple[Any, Any, float]]:
    """Return the part, column and figure of every row of the frames that a clause is about, one at a time."""
    place, about, found = FIGURES[clause["figure"]].place, clause["about"], []
    if place.frame == "together" and len(result.N_s) == 1:
        place = replace(FIGURES["DiSCO"].place, permuted="")  # any file is the only one
    is_beyond = clause["statistic"] == "beyond" or "beyond" not in FIGURES[clause["figure"]].statistics
    column = place.beyond_chance if place.beyond_chance and is_beyond else place.value
    sources = [("", result.frame(place.frame))]
    if result.stacked is not None:
        sources.append((ALL_FILES, result.stacked.frame(place.frame)))
    if place.frame == "found":
        sources.append((WITH_RELEASES, result.released_found))
    for part, frame in sources:
        for row in to_rows(frame):
            labelled = next((row[name] for name in ("target", "key", "way") if name in row), None)
            if about and labelled not in about:
                continue
            values = [row[name] for name in ([column] if isinstance(column, str) else column)]
            if place.permuted and clause["statistic"] == "beyond":
                apart = row[str(place.value)] - row[place.permuted]
                values = [min(row[place.beyond_chance], apart)]
            named = ANY_FILE if place.frame == "together" else row.get("synthesis", WITH_RELEASES)
            found.append((part or named, labelled, min(values)))
    return found


@on_some_days
@EACH_SIZE
def test_a_judgement_names_the_part_that_it_judged(records: tuple[int, ...]) -> None:
    content = dossier(*records)
    checked = set()
    for clause in content["clauses"]:
        entry, row = FIGURES[clause["figure"]], clause["row"]
        if clause["figure"] == "controls" or "overlap" in clause["figure"] or clause["over"] == "mean":
            continue
        if entry.about == "key":
            continue  # distances of the keys have frames of their own
        found = find_by_hand(clause, measure(records)[1])
        judged = [value for part, column, value in found if (part, column) == (row["part"], row["about"])]
        assert clause["value"] in judged, clause["name"]
        values = [value for _, _, value in found]
        is_least = clause["statistic"] == "at_least"
        assert clause["value"] == (min(values) if is_least else max(values)), clause["name"]
        checked.add(row["part"])
    expected = {1} if len(records) == 1 else {ALL_FILES, ANY_FILE}
    assert expected <= checked


@EACH_SIZE
def test_both_editions_show_the_row_that_was_judged(records: tuple[int, ...]) -> None:
    content = dossier(*records)
    shown = 0
    for exact, rounded in zip(content["clauses"], make_publishable(content)["clauses"], strict=True):
        assert all(exact["row"][name] == rounded["row"][name] for name in ("part", "about"))
        for name in ("value", "others"):
            if exact["figure"] in {"DiSCO", "repU", "guessed"} and rounded["row"].get(name) is not None:
                assert 0 <= rounded["row"][name] - max(0.0, exact["row"][name]) <= 2 * 100 * 10 / 300
                shown += 1
    assert shown


def row_of(figure: str, part: Any = 1, **values: Any) -> dict[str, Any]:
    return FigureRow(figure, values.pop("about", None), part, **values).to_record()


def test_rounded_rows_that_tie_are_not_confused() -> None:
    """The second file is judged; the first has the same rounded figure but other baselines."""
    content = dossier(PEOPLE, PEOPLE)
    [clause] = [clause for clause in content["clauses"] if clause["name"] == "DiSCO[income]"]
    rows = [
        row_of("DiSCO", 1, about="income", value=12.6, others=0.1, own=30.0),
        row_of("DiSCO", 2, about="income", value=12.7, others=9.9, own=50.0),
    ]
    clause.update(value=12.7, row=rows[1])
    assert write_baselines(Judgement.from_row(clause)).others == "9.9 %"
    public = make_publishable(content)
    [shown] = [clause for clause in public["clauses"] if clause["name"] == "DiSCO[income]"]
    assert shown["row"]["part"] == 2
    assert shown["row"]["value"] == 15.0
    assert shown["row"]["others"] > 9.9
    assert write_baselines(Judgement.from_row(shown)).others == f"{shown['row']['others']:.1f} %"


def test_a_mean_is_shown_beside_means() -> None:
    content = dossier(PEOPLE, 300, 1000)
    [clause] = [clause for clause in content["clauses"] if clause["name"] == "repU (mean)"]
    figures = view_frame(content["figures"], "identity")
    row = clause["row"]
    assert row["value"] == pytest.approx(np.mean([row["repU"] for row in figures]), abs=1e-12)
    own = np.mean([row["UiO"] for row in figures])
    assert write_baselines(Judgement.from_row(clause)).own == f"{own:.1f} %"


def test_a_clause_on_a_further_table_shows_that_tables_row() -> None:
    rows = [
        FigureRow("found", about, part, beyond=bound, beyond_chance=bound, others=others)
        for about, bound, others in (("whole", 1.0, 2.0), ("whole of holdout", 7.0, 4.0))
        for part in (1, WITH_RELEASES)
    ]
    clauses = [Clause("found", "beyond", 2.5, (about,)) for about in ("whole", "whole of holdout")]
    of_table, of_holdout = judge_rows(clauses, rows, 1)
    assert write_baselines(of_table).others == "2.0 %"
    assert write_baselines(of_holdout).others == "4.0 %"


@EACH_SIZE
@pytest.mark.parametrize("is_public", [False, True])
def test_the_sentence_adds_up(records: tuple[int, ...], is_public: bool) -> None:
    content = dossier(*records)
    content = make_publishable(content) if is_public else content
    # Each figure is rounded: to a digit, in public to ten people, upwards.
    most = 0.21 + (2 * 100 * 10 / min(PEOPLE, *records) if is_public else 0)
    stated = 0
    for clause in content["clauses"]:
        if (clause["figure"], clause["statistic"]) != ("DiSCO", "beyond") or clause["value"] <= 0:
            continue
        [answer] = answer_questions({**content, "clauses": [clause]})
        more = float(answer.value.removesuffix(" points"))
        figures = [float(number) for number in re.findall(r"(\d+\.\d) %", answer.sentence)]
        assert any(abs(one - another - more) <= most for one in figures for another in figures)
        stated += 1
        larger = clause["row"]["part"] in {ALL_FILES, 3}
        assert ("as many records as there are people" in answer.sentence) <= larger
        assert (answer.bound, answer.kind) == ("at most 3.0 points", clause["outcome"])
    assert stated > 1


def test_a_larger_table_says_both_figures() -> None:
    """16.9 % and 2.0 % do not make 11.2 points: those are of as many records as people."""
    content = dossier(PEOPLE, PEOPLE)
    [clause] = [of for of in content["clauses"] if of["name"] == "DiSCO[income] beyond"]
    figures = {"value": 16.9, "others": 2.0, "at_n": 13.2, "permuted": 1.2, "is_larger": True}
    row = row_of("DiSCO", ALL_FILES, about="income", **figures, beyond=11.2, beyond_chance=11.2)
    [answer] = answer_questions({**content, "clauses": [{**clause, "value": 11.2, "row": row}]})
    assert answer.sentence == (
        "For 16.9 % of the people the table correctly shows their income (13.2 % by as many records as there "
        "are people); other people's records alone would show it for 2.0 %."
    )


@EACH_SIZE
def test_the_same_clause_decides_in_both_editions(records: tuple[int, ...]) -> None:
    content = dossier(*records)
    public = make_publishable(content)
    reasons = find_reason(content), find_reason(public)
    assert reasons[0] and reasons[1] and reasons[0].clause == reasons[1].clause
    for exact, rounded in zip(answer_questions(content), answer_questions(public), strict=True):
        assert (exact.question, exact.kind, exact.kept) == (rounded.question, rounded.kind, rounded.kept)
        if "no more than chance explains" not in exact.sentence:
            assert without_figures(exact.sentence) == without_figures(rounded.sentence)
    for rows in zip(list_worst_by_target(content), list_worst_by_target(public), strict=True):
        assert all(rows[0][name] == rows[1][name] for name in ("target", "synthesis"))


def without_figures(sentence: str) -> str:
    before = sentence.lower().partition(", and chance")[0]
    return re.sub(r"(at most )?\d+(\.\d)?( %| points)?", "#", before).rstrip(".")


def test_what_is_nothing_does_not_decide_although_it_is_rounded_up() -> None:
    """0 of at most 2.5 points is rounded up to the bound itself; 20 of at most 50 is nearer to its own."""
    content = dossier(PEOPLE)
    figures = {"found[whole] beyond": (20.0, 50.0), "found[nearly] beyond": (0.0, 2.5)}
    clauses = [
        {**clause, "outcome": "kept", "note": "", "value": value, "bound": limit, "limit": limit}
        for clause in content["clauses"]
        for value, limit in [figures.get(clause["name"], (None, None))]
        if value is not None
    ]
    assert len(clauses) == 2
    content |= {"decision": "approved", "clauses": clauses}
    public = make_publishable(content)
    shares = {clause["name"]: clause["value"] / clause["limit"] for clause in public["clauses"]}
    assert shares["found[nearly] beyond"] == 1 > shares["found[whole] beyond"]
    for shown in (content, public):
        [answer] = answer_questions(shown)
        assert answer.bound == "at most 50.0 points"
        assert "of the people are in the synthetic table" in answer.sentence


def test_a_share_that_is_rounded_up_from_nothing_is_at_most_ten_people() -> None:
    content = dossier(PEOPLE)
    [clause] = [of for of in content["clauses"] if of["name"] == "DiSCO[income]"]
    few = "For at most 10 of the people the table correctly shows their income; "
    for value, said in ((0.0, few), (2.4, few), (2.6, "For at most 5.0 % of the people")):
        kept = {**content, "decision": "approved", "clauses": [{**clause, "value": value, "outcome": "kept"}]}
        [rounded] = answer_questions(make_publishable(kept))
        assert rounded.sentence.startswith(said), rounded.sentence
        [exact] = answer_questions(kept)
        assert exact.sentence.startswith(f"For {value:.1f} % of the people")


def test_no_sentence_of_the_public_page_states_a_rounded_share_as_a_figure() -> None:
    content = make_publishable(dossier(PEOPLE, PEOPLE))
    sentences = [*describe_intruder(content), describe_found(content)]
    sentences += [answer.sentence for answer in answer_questions(content)[:-1]]
    for sentence in sentences:
        for found in re.finditer(r"\d+\.\d (%|points)", sentence):
            assert re.search(r"at (most|least) $", sentence[: found.start()].lower()), sentence


def of_groups(*groups: tuple[str, float, float], se: float = 2.0) -> dict[str, Any]:
    """The dossier with the groups of `work`: level, DiSCO, DiSCO_others."""
    content = dossier(PEOPLE)
    table = content["figures"]["table"] = [row for row in content["figures"]["table"] if "group" not in row]
    for level, disclosed, others in groups:
        row = FigureRow("DiSCO", "income", 1, value=disclosed, others=others, group=("work", level))
        row = replace(row, beyond=disclosed - others, se=se if level == "student" else 2.0)
        size = FigureRow("records", "income", 1, value=100.0, group=row.group)
        table += [row.to_record(), size.to_record()]
        content["figures"]["declared_groups"].append(list(row.group))
    return content


RETIRED = ("retired", 64.5, 47.3)


@pytest.mark.parametrize(
    ("groups", "se", "title", "order"),
    [
        (
            [("student", 80.0, 78.0), RETIRED, ("other", 9.0, 12.0)],
            *(2.0, "Most exposed are people with work: retired", ["retired", "student", "other"]),
        ),
        # A small group by chance
        ([("student", 60.0, 30.0), RETIRED], 12.0, "Most exposed are people with work: retired", None),
        # Others' records expose it as much
        ([("student", 80.0, 81.0), ("retired", 10.0, 12.0)], 2.0, "No group is more exposed", None),
    ],
)
@pytest.mark.parametrize("is_public", [False, True])
def test_the_most_exposed_group_is_the_one_farthest_beyond_others(
    groups: list[tuple[str, float, float]], se: float, title: str, order: list[str] | None, is_public: bool
) -> None:
    content = of_groups(*groups, se=se)
    shown = show_subgroups(make_publishable(content) if is_public else content)
    assert shown is not None and shown.title.startswith(title)
    assert order in (None, [row[0].split()[-1] for row in shown.table.rows])


def test_claims_that_are_mostly_wrong_are_said_to_be() -> None:
    content = dossier(PEOPLE)
    rows = content["figures"]["table"]
    for row in rows:
        row["value"] = {"DiS": 20.0, "DiSCO": 6.2}.get(row["figure"], row["value"])
    assert "Of those whom it seems to tell, 31 % are right." in describe_intruder(content)
    for row in rows:
        row["value"] = 12.0 if row["figure"] == "DiSCO" else row["value"]
    assert "seems to tell" not in " ".join(describe_intruder(content))


@pytest.mark.parametrize("edition", ["internal", "publication"])
def test_a_dossier_with_a_figure_that_nobody_knows_any_more_is_shown(edition: Any) -> None:
    content = dossier(PEOPLE, PEOPLE)
    unknown = {**content["clauses"][0], "figure": "renamed_since", "name": "renamed_since", "value": 1.5}
    content["clauses"].append(unknown)
    assert "renamed_since" in render_page(content, edition)


def test_a_row_equals_its_copy_where_figures_are_missing() -> None:
    row = FigureRow("DiSCO", "work", 1, value=5.0)
    copy = FigureRow.from_record(row.to_record())
    assert copy == row and hash(copy) == hash(row) and copy != replace(row, value=5.5)


@EACH_SIZE
def test_the_views_of_the_long_table_are_the_frames(records: tuple[int, ...]) -> None:
    """Of every frame that has a figure, every column."""
    result = withhold_rare_levels(measure(records)[1], 10)
    figures, compared = collect_figures(result, 10, list_entries()), 0
    for name in sorted({entry.place.frame for entry in list_entries()}):
        rows = [row for row in view_frame(figures, name) if row.get("columns") != ALL_COLUMNS]
        expected = json.loads(json.dumps(to_rows(result.frame(name))))
        for row, of_frame in zip(rows, expected, strict=True):
            for column in of_frame.keys() - {"syntheses", "releases"}:
                assert row[column] == of_frame[column], (name, column)
                compared += 1
    assert compared > 1000
