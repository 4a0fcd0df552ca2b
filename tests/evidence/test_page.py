"""The dossier as a page: the verdict first, nothing that loads or runs, and an edition to be published."""

import copy
import hashlib
import json
import math
import re
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.processes import fork

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.frames import find_words
from disclosure_pipeline.evaluation.long_table import view_frame
from disclosure_pipeline.evaluation.plots import drawing
from disclosure_pipeline.evaluation.power import KINDS, NEAR_COPIES, GatePower
from disclosure_pipeline.evidence.dossier import build_dossier, count_kept
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.clauses_section import (
    TriedRemedy,
    list_definitions,
    tabulate_clauses,
)
from disclosure_pipeline.evidence.page.first_page import (
    answer_questions,
    find_reason,
    label_columns,
    show_bounds,
    write_first_page,
    write_headline,
)
from disclosure_pipeline.evidence.page.rendering import (
    Edition,
    is_dossier,
    make_publishable,
    render_page,
    render_result,
)
from disclosure_pipeline.measures.catalogue import BOUNDABLE
from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.sentences import MISSING, write_subject
from disclosure_pipeline.policy.verdict import Judgement, judge, round_judgements
from disclosure_pipeline.tables.messages import capitalized

DOCUMENTED = {
    "purpose": "Teaching <b>statistics</b>",
    "data_owner": "The bureau",
    "generator": {"name": "synthpop", "version": "1.9-2"},
    "sign_off": {"reviewer": "R. Okafor", "date": "2026-02-03", "conditions": "Only for courses"},
    "five_safes": {"people": "Students under contract"},
}
EDITIONS: tuple[Edition, ...] = ("internal", "publication")
MEASURED = {"ground_truth": "a" * 64, "snapshot": "b" * 64}


def dossier(name: str, **changes: Any) -> dict[str, Any]:
    gate = gates.gate(one_way=[0, 0], documentation=DOCUMENTED, **changes)
    synthetic = gates.ground_truth() if name == gates.COPY else gates.honest()
    result = gates.measured(gate, gates.ground_truth(), [synthetic])
    content = build_dossier(gate, name, MEASURED, result, judge(gate.clauses(), result))
    return dict(json.loads(json.dumps(content)))


@pytest.fixture(scope="module")
def refused() -> dict[str, Any]:
    return dossier(gates.COPY)


@pytest.fixture(scope="module")
def approved() -> dict[str, Any]:
    return dossier(gates.HONEST)


def changing(content: dict[str, Any], names: Collection[str], **changes: Any) -> dict[str, Any]:
    """Return the dossier with changes of the clauses of these names, and perhaps of its decision."""
    decision = "undetermined" if changes["outcome"] == "undetermined" else content["decision"]
    clauses = [of | changes if of["name"] in names else of for of in content["clauses"]]
    return {**content, "decision": decision, "clauses": clauses}


def without(content: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the dossier in which these clauses are kept."""
    return changing(content, names, outcome="kept", note="", value=0.0)


def clause_of(content: dict[str, Any], name: str) -> dict[str, Any]:
    [clause] = [clause for clause in content["clauses"] if clause["name"] == name]
    return dict(clause)


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self.rows: list[list[str]] = []
        self._hidden = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._hidden = self._hidden or tag in {"style", "title"}
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"style", "title"}:
            self._hidden = False

    def handle_data(self, data: str) -> None:
        if self._hidden or not data.strip():
            return
        self.shown.append(data)
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {data.strip()}".strip()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.shown).split())


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_first_words_are_the_verdict_and_its_reason(
    refused: dict[str, Any], approved: dict[str, Any], edition: Any
) -> None:
    first = Page(render_page(refused, edition)).text[:200]
    assert first.startswith(
        "Refused: one table holds every record of the other, unchanged, as a copy of the ground truth would."
    )
    first = Page(render_page(without(refused, "equal_content"), edition)).text[:250]
    most = "at most " if edition == "publication" else ""
    assert re.match(
        rf"Refused: {most}\d+\.\d % of the people are in the synthetic table, whole; with as many records "
        rf"of other people it would be {most}\d+\.\d %; 2\.5 points more are allowed\. ",
        first,
    ), first
    first = Page(render_page(approved, edition)).text[:200]
    assert first.startswith(
        "Approved: no sign of copied people, and the table tells no more about them than the policy allows. "
    )


def test_headline_answer_and_clause_say_the_same_number(refused: dict[str, Any]) -> None:
    refused = without(refused, "equal_content")
    answer = answer_questions(refused)[0]
    clause = find_reason(refused)
    assert clause is not None and clause.row is not None
    figure = f"{clause.value:.1f} points"
    assert answer.value == figure
    for part in (f"{clause.row.value:.1f} %", f"{clause.row.others:.1f} %"):
        assert part in answer.sentence and part in write_headline(refused)
    bounds = show_bounds(refused)
    assert bounds is not None
    subject = write_subject(clause)
    assert f"{subject}: {clause.value:.1f} of 2.5 points" in bounds.svg
    assert bounds.table.rows[0][:2] == (f"{capitalized(subject)} ({clause.clause.name})", figure)


def test_an_approval_says_what_is_told_and_that_it_is_no_more(approved: dict[str, Any]) -> None:
    """The figure, others' and chance add up to what the clause says: nothing counts that chance explains."""
    learned = answer_questions(approved)[2]
    shown = r"For \d+\.\d % of the people the table correctly shows their \w+; "
    shown += r"other people's records alone would show it for \d+\.\d %(, and chance for \d+\.\d %)?"
    assert re.fullmatch(rf"{shown}\.", learned.sentence), learned.sentence
    policy = {"repU": 50, "DiSCO": {"beyond": 20}}
    [copied, _, learned, _] = answer_questions(dossier(gates.HONEST, policy=policy))
    assert re.fullmatch(rf"{shown}(: no more than chance explains)?\.", learned.sentence), learned.sentence
    assert "of other people" in copied.sentence and "copied" not in copied.sentence


def test_a_gate_that_notices_nothing_is_trusted_in_part(approved: dict[str, Any]) -> None:
    sees = GatePower(150, dict.fromkeys(KINDS, (2.0,) * 20))
    assert answer_questions(approved, sees)[-1].answer == "✓ Yes"
    blind = replace(sees, noticed=dict.fromkeys(KINDS, (100.0,) * 20))
    misses_near_copies = replace(sees, noticed={**sees.noticed, NEAR_COPIES: (math.inf, 100.0) * 10})
    for power, kind in ((blind, "copies"), (misses_near_copies, "near copies")):
        assert answer_questions(approved, power)[-1].answer == "≈ Only in part"
        assert f"does not notice {kind} reliably" in Page(render_page(approved, power=power)).text


def test_a_power_from_few_tries_is_not_told(approved: dict[str, Any]) -> None:
    """The page says by the formula what the approval would have missed."""
    power = GatePower(150, dict.fromkeys(KINDS, (2.0,) * 4))
    for page in (render_page(approved, power=power), render_page(approved, "publication", power=power)):
        text = Page(page).text
        assert re.search(
            r"The gate would have noticed if (at most )?\d+\.\d % of the people were in the", text
        )
        assert "This gate would" not in text and "Halves are the harder case" not in text
        assert not re.search(r"of 4 (times|tries)|of [48] honest", text)
        assert "who are copied" not in text
    assert answer_questions(approved, power)[-1].answer == "✓ Yes"


QUESTIONS = [
    "Were people copied?",
    "Can people be found?",
    "Can something be learned of them?",
    "Can these figures be trusted?",
]


def test_four_questions_are_answered_in_order(refused: dict[str, Any], approved: dict[str, Any]) -> None:
    for content, first in ((refused, "✗ More than allowed"), (approved, "✓ No more than allowed")):
        answers = answer_questions(content)
        assert [answer.question for answer in answers] == QUESTIONS
        assert (answers[0].answer, answers[-1].answer) == (first, "✓ Yes")


def test_the_headline_is_the_first_question_with_a_bad_answer(refused: dict[str, Any]) -> None:
    """Neither the largest figure nor what only warns: a copied person comes before what is learned."""
    names = [clause["name"] for clause in refused["clauses"]]
    for figures, is_found in ((("repU", "unique_hits"), True), (("DiSCO",), False)):
        others = [name for name in names if not name.startswith(figures)]
        headline = write_headline(without(refused, *others))
        assert headline.startswith("Refused: ")
        assert ("intruder knows" in headline) == is_found, headline


def test_a_control_that_fails_comes_before_every_risk(refused: dict[str, Any]) -> None:
    """No figure counts where the engine cannot be trusted: nobody is said to be copied."""
    content = changing(refused, ["controls"], value=1.0, outcome="undetermined")
    assert write_headline(content).startswith("Could not be determined: checks of the measurement itself")
    assert answer_questions(content)[-1].answer == "? Not determined"


def test_what_could_not_be_determined_says_why(approved: dict[str, Any]) -> None:
    content = changing(approved, ["DiSCO[work]"], value=None, limit=None, outcome="undetermined")
    text = Page(render_page(content)).text
    assert text.startswith("Could not be determined: people whose work is disclosed: could not be determined")
    assert write_headline({**content, "clauses": []}).startswith("Could not be determined: no clause")


def test_sections_stand_in_the_order_of_a_reader(refused: dict[str, Any], approved: dict[str, Any]) -> None:
    text = Page(render_page(refused, others=[approved])).text
    places = [
        text.index(heading)
        for heading in (
            "columns are measured and released",
            "Four questions",
            " risks are beyond their bounds",
            "of as many other people it would be",
            "the only ones with their combination",
            "Somebody who knows",
            "Who bears the risk",
            "Is it useful?",
            "and no riskier",
            "Limits of the method",
            "Changes made to compare the tables",
            "All clauses",
            "What changed since the last candidate",
            "About this release",
            "How to verify",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("outcomes", "title", "kept"),
    [
        (["kept"], "None of 1 risk is beyond its bound", "1 of 1 clause that decides is kept"),
        (["exceeded"], "1 of 1 risk is beyond its bound", "0 of 1 clause that decides are kept"),
        (["kept"] * 2, "None of 2 risks is beyond its bound", "2 of 2 clauses that decide are kept"),
        (["exceeded", "kept"], "1 of 2 risks is beyond its bound", "1 of 2 clauses that decide is kept"),
        (["exceeded"] * 2, "2 of 2 risks are beyond their bounds", "0 of 2 clauses that decide are kept"),
    ],
)
def test_counts_agree_with_what_they_count(
    outcomes: list[str], title: str, kept: str, approved: dict[str, Any]
) -> None:
    named = zip(("repU", "DiSCO[work]"), outcomes, strict=False)
    clauses = [clause_of(approved, name) | {"outcome": outcome} for name, outcome in named]
    content = {**approved, "clauses": clauses}
    bounds = show_bounds(content)
    assert bounds is not None and (bounds.title, count_kept(clauses)) == (title, kept)
    told = Page(render_page(content)).text
    assert title in told and kept in told


def test_a_subject_reads_well_without_its_column(refused: dict[str, Any]) -> None:
    """And with it: the words of each measure are put into sentences with any column's name."""
    for words in [figure.find_words(word) for figure in BOUNDABLE.values() for word in figure.statistics]:
        assert words.subject.count("{column}") <= 1
        # A number before a noun would have to agree with it.
        if words.unit == COUNT:
            assert not re.search(r"\{value\} [a-z]", words.finding), words.finding
    subjects = [subject for of in list_definitions(refused).values() for _, subject, _ in of]
    assert "people whose target is disclosed" in subjects
    assert not [subject for subject in subjects if "whose a " in subject or "{" in subject]


def test_sentences_name_columns_by_their_labels() -> None:
    """Those of the people found, too, which say by which columns; the figures keep the columns' names."""
    drawn = np.random.default_rng(1)
    truth = pd.DataFrame(
        {
            "sex": drawn.choice(["f", "m"], 400),
            "age": drawn.integers(20, 60, 400),
            "work": drawn.choice(["office", "none"], 400),
            "nettfa": drawn.integers(10_000, 1_000_000, 400),
        }
    )
    near = truth.assign(nettfa=(truth["nettfa"] * 1.002).astype(int), work=drawn.permutation(truth["work"]))
    columns = gates.definition()["columns"]
    columns["nettfa"] = {"type": "integer", "label": 'net "wealth"', "published": True}
    columns["work"] |= {"label": "employment", "sensitive": ["office"]}
    gate = gates.gate(columns=columns, targets=["work"], policy={"repU": 90, "DiSCO": 90})
    result = gates.measured(gate, truth, [near])
    content = build_dossier(gate, "near", MEASURED, result, judge(gate.clauses(), result))
    assert 'with "sex", "age" and "nettfa" within 1 %' in set(result.found["where"])
    first = write_first_page(content)
    assert 'with sex, age and net "wealth" within 1 %' in first
    assert "alike in all but employment" in first
    assert not re.search(r"\b(nettfa|work)\b", first) and "nettfa" not in render_page(content)
    for row in label_columns(content)["figures"]["table"]:
        assert not re.search("nettfa|work", row.get("where", ""))


def test_columns_that_are_left_out_are_on_the_first_page() -> None:
    content = dossier(gates.COPY, columns=gates.definition()["columns"] | {"note": {"type": "category"}})
    for edition in EDITIONS:
        first, *_ = Page(render_page(content, edition)).text.partition("Four questions")
        assert "4 of 5 columns are measured and released; left out: note." in first


COPIED = ("equal_content", "found[whole] beyond", "found[all but one] beyond")
TRIED = [
    TriedRemedy("Remove the copies of one person", 290, 0, (), dict.fromkeys(COPIED, 0.0), 0.3),
    TriedRemedy("Blank the targets that copies disclose", 1, 1, ("repU",), dict.fromkeys(COPIED, 2.0), 0.5),
]


def test_a_refusal_says_what_remedies_would_do(refused: dict[str, Any], approved: dict[str, Any]) -> None:
    """On the first page, for custodians alone; switched off it is not there."""
    page = Page(render_page(refused, remedies=TRIED))
    block = page.text[page.text.index("Refused, what now?") : page.text.index("Were people copied?", 800)]
    assert "“Remove the copies of one person” would let this table keep every clause." in block
    assert "docs/how_to/refused_what_now.md" in block
    rows = {row[0]: row[1:] for row in page.rows}
    broken = [clause for clause in refused["clauses"] if clause["outcome"] != "kept" and not clause["warns"]]
    assert rows["none"][:2] == [MISSING, str(len(broken))]
    assert rows["Remove the copies of one person"] == ["290 records", "0", "0", "30.0 %"]
    assert rows["Blank the targets that copies disclose"][:3] == ["1 record, 1 value", "1", "2"]
    assert [f"✓ {MISSING}", f"✗ {MISSING}"] in [row[3:] for row in page.rows if row[0] == "repU"]
    helpless = Page(render_page(refused, remedies=TRIED[1:])).text
    assert "None of the tried remedies keeps every clause, so train the model differently" in helpless
    assert "No remedy was tried" in Page(render_page(refused, remedies=[])).text
    for text in (render_page(refused), render_page(refused, "publication", remedies=TRIED)):
        assert "what now" not in text


def find_cell(content: dict[str, Any], clause: dict[str, Any]) -> tuple[str, ...]:
    """Return the outcome of a clause, with its figure, and its bound, from the only row that has it."""
    column = clause["about"][0] if len(clause["about"]) == 1 else None
    name = clause["name"].replace(f"[{column}]", "")
    found = []
    for table in tabulate_clauses(content):
        for row in table.rows:
            cells = dict(zip(table.headings, row.cells, strict=True))
            if column in cells and cells["Clause"].removesuffix(", only warns") == name:
                found.append((*cells[column].split(" ", maxsplit=1), cells["Bound"]))
            elif column is None and cells["Clause"] == Judgement.from_row(clause).subject:
                found.append((cells["Outcome"], cells["Figure"], cells["Bound"]))
    [cell] = found
    return cell


def test_every_clause_is_in_one_row_with_what_stands_beside_it(refused: dict[str, Any]) -> None:
    marks = {"kept": "✓", "exceeded": "✗", "undetermined": "?"}
    for clause in refused["clauses"]:
        assert find_cell(refused, clause)[0].startswith(marks[clause["outcome"]])
    [of_work] = [row for row in view_frame(refused["figures"], "attribute") if row["target"] == "work"]
    cell = find_cell(refused, clause_of(refused, "DiSCO[work]"))
    assert cell == ("✗", f"{of_work['DiSCO']:.1f} (at most 12.0 %)", "beside each")
    rows = {row[0]: row for row in Page(render_page(refused)).rows}
    for heading, name in (("own", "Dorig"), ("others'", "DiSCO_others"), ("chance", "DiSCO_chance")):
        assert rows[f"DiSCO: {heading}"][2] == f"{of_work[name]:.1f} %"
    # One row each: no clause of a target has a row of its own.
    names = [row.cells[0] for table in tabulate_clauses(refused) for row in table.rows]
    assert not [name for name in names if "[work]" in name]


def test_clauses_on_one_figure_have_a_row_each(refused: dict[str, Any]) -> None:
    """Weighted figures and means say so."""
    repU = clause_of(refused, "repU")
    clauses = [repU, {**repU, "row": {**repU["row"], "basis": "people"}}, {**repU, "over": "mean"}]
    bounds = show_bounds({**refused, "clauses": clauses})
    assert bounds is not None
    named = re.findall(r"<text[^>]*>(people singled out[^<]*): [\d.]+ of [\d.]+ %([^<]*)</text>", bounds.svg)
    subject = "people singled out in both tables"
    assert {of for of, _ in named} == {subject, f"{subject} (mean)", f"{subject} (weighted)"}


def test_targets_with_long_names_stand_on_paper_too(refused: dict[str, Any]) -> None:
    """Side by side as many as fit; a single one where its name is longer than a line."""
    disco = clause_of(refused, "DiSCO[work]")
    for length, most in ((8, 5), (26, 3), (200, 1)):
        names = [f"{number}".rjust(length, "x") for number in range(7)]
        clauses = [{**disco, "about": [name], "name": f"DiSCO[{name}]"} for name in names]
        tables = tabulate_clauses({**refused, "clauses": clauses})
        assert [name for table in tables for name in table.headings[2:]] == names
        assert max(len(table.headings) - 2 for table in tables) == most


def test_what_changed_since_the_last_candidate(refused: dict[str, Any], approved: dict[str, Any]) -> None:
    text = Page(render_page(refused, others=[approved])).text
    assert "Clauses whose figure changed since candidate honest" in text
    assert "kept, now exceeded" in text
    assert "This is the first candidate of the gate with a dossier." in Page(render_page(refused)).text
    assert "No figure of a clause changed." in Page(render_page(refused, others=[refused])).text


def test_what_the_gate_documents_is_printed(approved: dict[str, Any]) -> None:
    for edition in EDITIONS:
        text = Page(render_page(approved, edition)).text
        for message in ("Teaching <b>statistics</b>", "synthpop", "R. Okafor", "Students under contract"):
            assert message in text


def test_two_tables_without_a_gate() -> None:
    result = dp.disclosure(gates.ground_truth(), gates.honest(), ["sex", "age"], ["work"])
    text = Page(render_result(result)).text
    assert re.match(r"Measured: for \d+\.\d % of the people the table correctly shows their work; ", text)
    assert "nothing here is an approval" in text
    assert "All clauses" not in text and "Four questions" not in text


def test_a_chart_has_a_table_and_its_finding_for_a_title(refused: dict[str, Any]) -> None:
    page = render_page(refused)
    chart = r"<figure>\s*<figcaption>(.*?)</figcaption>.*?</figure>\s*"
    table = r"<details[^>]*><summary>.*?</summary>\s*<div[^>]*>\s*<table>"
    titles = re.findall(chart + table, page, re.S)
    assert len(titles) == page.count("<svg") == page.count("<figure>") == 6
    assert any("more people in 100 than" in title for title in titles)


def test_nothing_runs_nothing_is_loaded_and_no_value_is_told(
    refused: dict[str, Any], approved: dict[str, Any]
) -> None:
    for content, edition in product((refused, approved), EDITIONS):
        text = render_page(content, edition, [approved])
        page = Page(text)
        names = {tag for tag, _ in page.elements}
        assert not names & {"script", "iframe", "object", "embed", "img", "image", "use", "base", "form"}
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
            addresses = [attributes.get(name) for name in ("href", "src", "xlink:href", "srcset")]
            assert set(addresses) <= {None, "data:,"}
        assert not re.search(r"https?:|@import|url\(|@font-face", text.replace("http-equiv", ""))
        assert [tag for tag, _ in page.elements].count("style") == 1
        assert not [canary for canary in gates.CANARIES if canary in text]


def test_the_style_sheet_is_the_one_that_the_policy_allows(approved: dict[str, Any]) -> None:
    text = render_page(approved)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.S)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_the_same_dossier_gives_the_same_page(refused: dict[str, Any], approved: dict[str, Any]) -> None:
    again = json.loads(json.dumps(refused))
    for edition in EDITIONS:
        assert render_page(refused, edition, [approved]) == render_page(again, edition, [approved])


HOSTILE = "</td><script>alert('$x')</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&amp;{value}\""


def test_names_are_no_markup() -> None:
    """The names of a candidate, a column and a waiver are shown as they are."""
    columns = gates.definition()["columns"]
    columns[HOSTILE] = columns.pop("work")
    gate = gates.gate(columns=columns, targets=[HOSTILE, "income"])
    truth = gates.ground_truth().rename(columns={"work": HOSTILE})
    result = gates.measured(gate, truth, [truth])
    content = build_dossier(gate, HOSTILE, MEASURED, result, judge(gate.clauses(), result))
    for edition in EDITIONS:
        text = render_page(content, edition, [content])
        page = Page(text)
        assert not {tag for tag, _ in page.elements} & {"script", "img"}
        assert HOSTILE in page.text
        assert not re.search(r"(?<![\d.])49(?![\d.])", page.text.split("Definitions")[0])


def test_no_level_is_named_in_the_edition_for_publication(refused: dict[str, Any]) -> None:
    assert view_frame(refused["figures"], "one_way")
    assert "office" in render_page(refused)
    assert "office" not in render_page(refused, "publication")
    assert ">792<" not in render_page(refused, "publication")


def test_only_groups_that_the_definition_declares_are_published(refused: dict[str, Any]) -> None:
    """The gate's file declares the levels of sex; the groups of age and of income follow from the tables."""
    columns = {row["column"] for row in view_frame(refused["figures"], "subgroups")}
    assert {"sex", "age"} < columns
    internal = render_page(refused)
    assert "age: ~25 to below ~33" in internal and "age: ~57 or more" in internal
    public = view_frame(make_publishable(refused)["figures"], "subgroups")
    names = {(row["column"], row["group"]) for row in public}
    assert {("sex", "f"), ("sex", "m")} <= names <= {("sex", "f"), ("sex", "m"), ("income", "-8")}
    page = render_page(refused, "publication")
    assert "age: " not in page and "~" not in page and "sex: f" in page
    for row in public:
        assert row["records"] % 10 == 0
        for name in ("DiSCO", "DiSCO_others"):
            people = row[name] / 100 * row["records"] / 10
            assert people == pytest.approx(round(people)) or row[name] == 100


def without_groups(content: dict[str, Any]) -> dict[str, Any]:
    table = [row for row in content["figures"]["table"] if "group" not in row]
    return {**content, "figures": {**content["figures"], "table": table}}


def test_groups_that_were_not_measured_are_said_to_be(refused: dict[str, Any]) -> None:
    content = {**refused, "figures": {**refused["figures"], "N_d": 2_000_000}}
    assert "The groups are of 200,000 records drawn from each larger table" in Page(render_page(content)).text
    content = without_groups(refused)
    assert "Groups of people were not measured." in Page(render_page(content)).text
    assert "No groups of people are shown" in Page(render_page(content, "publication")).text


def leaves(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from leaves(value, (*path, name))
    elif isinstance(content, list):
        for position, value in enumerate(content):
            yield from leaves(value, (*path, position))
    elif isinstance(content, (int, float)) and not isinstance(content, bool):
        yield path, float(content)


NOT_OF_PEOPLE = {
    "synthesis", "bound", "limit", "loosened_from", "smallest_count", "N_s", "columns", "number_of_warnings",
    "copy_difference", "permuted_deviation", "half_deviation", "warnings", "equal_content", "places",
}  # fmt: skip


@pytest.mark.parametrize("name", [gates.HONEST, gates.COPY])
def test_figures_of_people_are_multiples_of_the_smallest_count(
    name: str, refused: dict[str, Any], approved: dict[str, Any]
) -> None:
    """As numbers of people, counted from nothing, from all or from a bound; never on the safer side."""
    content = without_groups(refused if name == gates.COPY else approved)
    fewest = min([content["figures"]["N_d"] // 10 * 10, *content["figures"]["N_s"]])
    bounds = [clause["limit"] for clause in content["clauses"] if clause["limit"] is not None]
    exact = dict(leaves(content["figures"]))
    looked_at = 0
    for path, value in leaves(make_publishable(content)["figures"]):
        if set(path) & {*NOT_OF_PEOPLE, "control_attribute"}:
            continue
        looked_at += 1
        people = [value * fewest / 100 / 10, value * fewest / 10, value / 10]
        people += [(whole - value) * fewest / whole / 10 for whole in (1, 100)]
        people += [(value - bound) * fewest / whole / 10 for bound in bounds for whole in (1, 100)]
        assert any(abs(number - round(number)) < 1e-6 for number in people), (path, value)
        words = find_words(str(path[-1]), str(path[-3])) if len(path) > 2 else None
        if words is not None and words.unit in {PERCENT, POINTS, SHARE, RECORDS}:
            gap = value - exact[path]
            assert (-gap if words.high_is == "safe" else gap) > -1e-6, path
    assert looked_at > 100


def test_a_figure_is_rounded_as_the_statement_rounds_it(
    refused: dict[str, Any], approved: dict[str, Any]
) -> None:
    """Two roundings of one figure would tell more than either: of the clause, and of its row in the frame."""
    for content in (refused, approved):
        records = [content["figures"]["N_d"], *content["figures"]["N_s"]]
        stated = round_judgements([Judgement.from_row(row) for row in content["clauses"]], records, 10)
        page = make_publishable(content)
        of_target = {row["target"]: row["DiSCO"] for row in view_frame(page["figures"], "attribute")}
        shared = [pair for pair in zip(page["clauses"], stated, strict=True) if pair[1].value is not None]
        assert [row["value"] for row, _ in shared] == [public.value for _, public in shared]
        of_DiSCO = [row for row, _ in shared if (row["figure"], row["statistic"]) == ("DiSCO", "at_most")]
        assert len(of_DiSCO) == 2
        for row in of_DiSCO:
            assert of_target[row["about"][0]] == row["value"] == row["row"]["value"]


def test_a_difference_is_rounded_as_the_statement_rounds_it(refused: dict[str, Any]) -> None:
    records = [refused["figures"]["N_d"], *refused["figures"]["N_s"]]
    judged = [
        replace(judgement, clause=Clause("DiSCO", "beyond", 3.7, judgement.clause.about), limit=3.7)
        for judgement in map(Judgement.from_row, refused["clauses"])
        if (judgement.clause.figure, judgement.clause.statistic) == ("DiSCO", "at_most")
    ]
    judged = [replace(judgement, value=judgement.row.beyond) for judgement in judged if judgement.row]
    page = make_publishable({**refused, "clauses": [judgement.to_row() for judgement in judged]})
    shown = {row["target"]: row for row in view_frame(page["figures"], "attribute")}
    stated = round_judgements(judged, records, 10)
    assert len(stated) == 2
    for judgement in stated:
        assert shown[str(judgement.column)]["DiSCO_beyond"] == judgement.value


def test_bounds_and_outcomes_are_kept(refused: dict[str, Any]) -> None:
    public = make_publishable(refused)
    for before, after in zip(refused["clauses"], public["clauses"], strict=True):
        for name in ("name", "bound", "outcome", "warns", "statistic", "about"):
            assert before[name] == after[name]
        if before["statistic"] != "at_most_share":
            assert before["limit"] == after["limit"]
    assert refused["clauses"][0]["value"] != public["clauses"][0]["value"]


@pytest.mark.parametrize(
    ("number", "told"), [(1, "1 warning about the tables is in"), (2, "2 warnings about the tables are in")]
)
def test_warnings_are_counted_and_not_repeated(number: int, told: str, approved: dict[str, Any]) -> None:
    content = {**approved, "warnings": ["The level 'office' stands for 'Office'."] * number}
    assert "stands for" in render_page(content)
    public = Page(render_page(content, "publication")).text
    assert "stands for" not in public and f"{told} the internal edition" in public


def test_files_that_arrived_are_not_named(approved: dict[str, Any]) -> None:
    """A file's name can hold anything: the edition for publication numbers the tables."""
    names = ("synthetic table 'Carried-8844.csv'", "the ground truth")
    ledger = [{"table": name, "column": "age", "rule": "read so", "records": 14} for name in names]
    content = {**approved, "ledger": ledger}
    assert "Carried-8844" in render_page(content)
    assert "Carried-8844" not in render_page(content, "publication")
    numbered = ("table 1 of those compared with it", "the ground truth")
    assert make_publishable(content)["ledger"] == [
        {**row, "table": name, "records": 20} for row, name in zip(ledger, numbered, strict=True)
    ]


@pytest.mark.parametrize(
    "content", [{}, {"figures": []}, {"figures": {}, "clauses": []}, {"clauses": None, "figures": {}}]
)
def test_what_is_no_dossier_stands_on_no_page(content: dict[str, Any], approved: dict[str, Any]) -> None:
    assert is_dossier(approved) and not is_dossier(content)


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no candidate": lambda content: content.pop("candidate"),
    "a clause without its value": lambda content: content["clauses"][0].pop("value"),
    "a clause that is none": lambda content: content["clauses"].append(5),
    "a value that is none": lambda content: content["clauses"][0].update(value="x"),
    "a row of a clause that is none": lambda content: content["clauses"][0].update(row=[]),
    "a waiver that is none": lambda content: content.update(waivers="x"),
    "a waiver that nobody gave": lambda content: content["clauses"][0].update(waiver="w"),
    "no table": lambda content: content["figures"].update(table=-1),
    "a figure that is none": lambda content: content["figures"]["table"].insert(0, None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_dossier_keeps_no_other_candidate_from_its_page(
    damage: str, refused: dict[str, Any], approved: dict[str, Any]
) -> None:
    damaged = copy.deepcopy(approved)
    DAMAGES[damage](damaged)
    assert not is_dossier(damaged)
    assert is_dossier(approved) and render_page(refused, others=[approved])


def test_a_dossier_of_an_earlier_version_is_compared_with(
    refused: dict[str, Any], approved: dict[str, Any]
) -> None:
    """Its long table had only what is judged, so it has no place on the map."""
    judged = {clause["figure"] for clause in approved["clauses"]}
    table = [row for row in approved["figures"]["table"] if row["figure"] in judged]
    earlier = {**approved, "figures": {**approved["figures"], "table": table, "guards": [], "attribute": []}}
    assert is_dossier(earlier) and len(table) < len(approved["figures"]["table"])
    pages = [Page(render_page(refused, others=[of])).text for of in (earlier, approved)]
    assert all("Clauses whose figure changed since candidate honest" in text for text in pages)
    assert ["The candidates of the gate by utility and risk" in text for text in pages] == [False, True]


# A chart that kills the process that draws it does not take the dossier along


MARKS = {"figure": charts.SYNTHETIC}


def test_only_the_chart_that_crashes_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control character aborts vl-convert."""
    fine = charts.draw_rows([("fine", "figure", 50.0)], MARKS, "%")
    with monkeypatch.context() as unescaped:
        unescaped.setattr(drawing, "escape_unseen_in_lines", str)
        broken = charts.draw_rows([("\x1b broken", "figure", 50.0)], MARKS, "%")
    assert "could not be drawn" in broken
    again = charts.draw_rows([("fine too", "figure", 50.0)], MARKS, "%")
    assert ET.fromstring(again).tag == "svg"
    assert ET.fromstring(fine).tag == "svg"


def test_a_fork_draws_with_a_process_of_its_own() -> None:
    """A forked process has not the thread that draws: asked there, it would wait for ever."""
    specification = {"data": {"values": [{"a": 1}]}, "mark": "point"}
    drawn = drawing.convert(specification)
    assert fork(drawing.convert, specification).result() == drawn
    assert drawing.convert(specification) == drawn


def test_what_is_no_chart_is_an_error() -> None:
    with pytest.raises(drawing.DrawingError):
        drawing.convert({"mark": 7})


def test_a_result_saves_the_page_of_the_command_line(tmp_path: Path) -> None:
    result = dp.disclosure(gates.ground_truth(), gates.ground_truth(), ["sex", "age"])
    dp.save(result, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_result(result)
    with pytest.raises(dp.InputError, match=r"must end in \.html, not '\.pdf'"):
        dp.save(result, tmp_path / "report.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
