"""Every column of every frame that the library returns has words, and all places take them from there."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from support import gates
from support.paths import ROOT

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.frames import LABELS, describe_column, find_heading, find_words
from disclosure_pipeline.evaluation.long_table import tabulate_figures
from disclosure_pipeline.evidence.validation import ALLOWED, build_metric_table
from disclosure_pipeline.measures.catalogue import BOUNDABLE, DEFAULTS, FIGURES
from disclosure_pipeline.measures.words import SHARE
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_template import build_file_schema

pytestmark = pytest.mark.filterwarnings("ignore::disclosure_pipeline.errors.HoldoutWarning")

KEYS, TARGETS = ["sex", "age"], ["work", "income"]
# What the rows of a metric table are of, and not the words of a policy.
PLACES = {"figure", "about", "part", "basis"}
# Frame -> the columns that stand together in a chart or table of the dossier's page.
BESIDE = {
    "attribute": ["target", "synthesis", "Dorig", "DiSCO", "DiSCO_others", "DiSCO_chance", "DiSCO_beyond"],
    "subgroups": ["group", "records", "DiSCO", "DiSCO_others", "DiSCO_beyond", "lift"],
    "partial_copies": [
        *("columns", "synthesis", "unique_copies", "unique_copies_others", "unique_copies_apart"),
        "unique_copies_beyond",
    ],
    "columns_apart": ["column", "synthesis", "TVD", "TVD_expected"],
    "one_way": ["target", "level", "n_level_disclosive", "pct_level_disclosive", "pct_level_all"],
    "ledger": ["table", "column", "rule", "records"],
}


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    return gates.ground_truth(80), gates.honest().head(70)


def of_disclosure(gt: pd.DataFrame, sd: pd.DataFrame) -> dict[str, Any]:
    result = dp.disclosure(gt, [sd, sd], KEYS, TARGETS, certainty=(0.9,), holdout=sd.tail(40))
    return result.frames | {"summary": result.summary()}


def of_key_sets(gt: pd.DataFrame, sd: pd.DataFrame) -> dict[str, Any]:
    result = dp.disclosure_of_key_sets(gt, sd, [KEYS], TARGETS)
    assert list(result.DiSCO) == list(result.Dorig) == TARGETS  # columns of GT have no words here
    summary = result.summary().drop(columns="target")
    return {"key_sets": pd.concat([result.identity, summary]), "key_overlap": result.key_overlap}


def of_resemblance(gt: pd.DataFrame, sd: pd.DataFrame) -> pd.DataFrame:
    result = dp.resemblance(gt, sd)
    return pd.concat([result.columns, result.pairs])


# Each public function that returns frames -> the frames, by the name that the glossary has: the function's,
# if it is one.
FRAMES: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Any]] = {
    "disclosure": of_disclosure,
    "disclosure_of_key_sets": of_key_sets,
    "copies": lambda gt, sd: dp.copies(gt, sd, TARGETS),
    "found": lambda gt, sd: dp.found(gt, sd, KEYS),
    "nearest": dp.nearest,
    "power": lambda gt, _: dp.power(gt, {"repU": 5, "DiSCO": 5}, KEYS, seconds=0.001).to_frame(),
    "subgroups": lambda gt, sd: dp.subgroups(gt, sd, KEYS, "work", by="sex"),
    "individual_attribution": lambda gt, sd: dp.individual_attribution(gt, sd, KEYS, "work").records[
        "work", 1
    ],
    "prediction_risk": lambda gt, sd: {"prediction": dp.prediction_risk(gt, sd, KEYS, "work").figures},
    "disclosure_protection": lambda gt, sd: dp.disclosure_protection(gt, sd, KEYS, "work").figures,
    "replicated_uniques": lambda gt, sd: dp.replicated_uniques(gt, sd, KEYS).figures,
    "compare_remedies": lambda gt, sd: (
        dp.compare_remedies(gt, sd, KEYS, TARGETS, [dp.Remedy.remove_replicated_uniques()]).figures
    ),
    "resemblance": of_resemblance,
}
NO_FRAMES = {"save"}
FUNCTIONS = {name for name in dp.__all__ if inspect.isfunction(getattr(dp, name))} - NO_FRAMES


def test_every_function_is_looked_at() -> None:
    """A new public function gets words for its frame, or stands among those without one."""
    assert set(FRAMES) == FUNCTIONS


@pytest.mark.parametrize("function", FRAMES)
def test_every_column_has_words(function: str, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    actual = FRAMES[function](*tables)
    for name, frame in (actual if isinstance(actual, dict) else {function: actual}).items():
        missing = [column for column in map(str, frame) if not describe_column(column, name)]
        assert not missing, (name, missing)
        unknown = [level for level in frame.index.names if level is not None and level not in LABELS]
        assert not unknown, (name, unknown)


@pytest.fixture(scope="module")
def gate() -> Gate:
    """A gate in which every family is on."""
    return Gate.model_validate(gates.definition(measures={"protection": True, "prediction": True}))


@pytest.fixture(scope="module")
def measured(gate: Gate) -> Any:
    return gates.measured(gate, gates.ground_truth(), [gates.honest(), gates.honest(2)])


def test_every_frame_of_a_gate_has_words(measured: Any) -> None:
    for name, frame in measured.frames.items():
        if name != "groups":  # levels and numbers of records
            named = [column for column in map(str, frame) if column not in LABELS]
            missing = [column for column in named if find_words(column, name) is None]
            assert not missing, (name, missing)


def test_every_column_of_the_metric_table_has_words(gate: Gate, measured: Any) -> None:
    clauses = {clause.name: clause for clause in gate.clauses()}
    columns = set(map(str, build_metric_table(gate.clauses(), tabulate_figures(measured), 2)))
    assert columns > PLACES
    columns -= {ALLOWED.format(name) for name, clause in clauses.items() if clause.share_of} | PLACES
    assert columns <= clauses.keys()
    for name in columns:
        assert clauses[name].words.sentence, name


def test_words_are_whole() -> None:
    """Sentences end, a percentage says of what, a finding leaves a place for its figure."""
    for frame, entries in COLUMNS.items():
        for name, words in entries.items():
            assert words.sentence.endswith("."), (frame, name)
            assert words.sentence[0].isupper(), (frame, name)
            assert bool(words.denominator) or words.unit != "%", (frame, name)
            assert words.source, (frame, name)
            assert set(re.findall(r"{(\w+)}", words.finding)) <= {"value", "more", "column"}, (frame, name)
    for name, figure in FIGURES.items():
        for statistic in figure.statistics or ("at_most",):
            words = figure.find_words(statistic)
            assert words.sentence.endswith(".") and words.title and words.unit, (name, statistic)
    for label, words_of_label in LABELS.items():
        assert words_of_label.heading and words_of_label.sentence.endswith("."), label
        assert describe_column(label, "guards") == words_of_label.sentence


def test_columns_of_one_frame_are_not_called_the_same() -> None:
    """In a legend or at the head of a table: a figure stands there beside others of its measure."""
    for frame, of_measure in BESIDE.items():
        headings = [find_heading(name, frame) for name in of_measure]
        assert len(set(headings)) == len(of_measure), (frame, headings)
        assert all(name in COLUMNS[frame] or name in LABELS for name in of_measure), frame


def test_no_two_guards_are_called_the_same() -> None:
    """A chart names them by their words alone."""
    bounded = [(figure, figure.default) for figure in map(FIGURES.__getitem__, DEFAULTS)]
    of_each = [figure.find_words(default.statistic) for figure, default in bounded if default is not None]
    names = [words.subject or words.title for words in of_each]
    assert len(names) == len(set(names)) >= 8


def test_the_schema_of_a_gate_says_what_each_measure_is() -> None:
    properties = build_file_schema()["$defs"]["Policy"]["properties"]
    for name, figure in BOUNDABLE.items():
        description = properties[name]["description"]
        assert description.startswith(f"{figure.words.description} Bounded by ")
        assert all(statistic in description for statistic in figure.statistics)
        assert set(properties[name]) > {"description"}


def test_a_result_explains_its_columns(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    result = dp.disclosure(*tables, KEYS, TARGETS)
    for frame in (result.identity, result.attribute, result.cap):
        for name in frame.columns:
            lines = result.explain(name).splitlines()
            assert len(lines) == 5
            assert lines[0].startswith(f"{name}: ")
    wrong: Any
    for wrong, said in (("DISCO", r"'DISCO'\. Did you mean"), ("zzzz", "'zzzz'"), (3, "3")):
        with pytest.raises(dp.InputError, match=f"no measure {said}"):
            result.explain(wrong)


def test_names_on_the_page_of_measures_have_words() -> None:
    """Each row of docs/measures/ that defines a measure is one that the glossary knows."""
    pages = sorted((ROOT / "docs" / "measures").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    defined = set()
    in_table = False
    for line in text.splitlines():
        in_table = line.startswith("| measure |") or (in_table and line.startswith("|"))
        if in_table and not line.startswith(("| measure |", "|--")):
            names = line.split("|")[1]
            defined |= {name.strip() for name in names.split(",") if "`" not in name}
    assert len(defined) > 60
    no_columns = {"any", "agreed", "matched", "scored", "distances", "cap_protection"}
    known = {name for entries in COLUMNS.values() for name in entries}
    known |= {name.split("__")[-1] for name in known}
    assert defined - known <= no_columns


def test_shares_of_one_are_named_once_at_the_top_of_the_page_of_measures() -> None:
    """A column that is no percentage but a share says so in its name, or the page does."""
    page = (ROOT / "docs" / "measures.md").read_text(encoding="utf-8")
    paragraph = next(line for line in page.splitlines() if line.startswith("**Units.**"))
    named = [re.escape(name).replace("…", r"\w*") for name in re.findall(r"`([^`]+)`", paragraph)]
    shares = {
        column.rpartition("__")[2]
        for words in COLUMNS.values()
        for column in words
        if words[column].unit == SHARE
    }
    assert "TVD" in shares
    for column in shares:
        assert "share" in column or any(re.fullmatch(name, column) for name in named), column
