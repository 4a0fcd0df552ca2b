"""People found copied: by the guards of a gate, first in every output, and never silently left out."""

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.gates import run_command
from support.sampling import on_some_days
from support.surveys import panel, survey

import disclosure_pipeline as dp
from disclosure_pipeline.cli.printing import EXIT_CODES, ExitCode
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.errors import ComparabilityWarning, CopiesWarning
from disclosure_pipeline.evaluation import disclosure as measuring
from disclosure_pipeline.evaluation.copies_found import CopiesFound
from disclosure_pipeline.evaluation.long_table import FigureRow, tabulate_figures
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.page.rendering import render_result
from disclosure_pipeline.policy.gate import Gate

pytestmark = on_some_days

RECORDS = 900
KEYS = ["sex", "age", "region"]
PEOPLE, FRESH = population(RECORDS), population(RECORDS, 7)


def numbered(table: pd.DataFrame) -> pd.DataFrame:
    """As pandas saves it with its index."""
    return table.reset_index(drop=True).reset_index(names="Unnamed: 0")


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    return table.sample(frac=1, random_state=3).reset_index(drop=True)


def nearly_copied(share: float, seed: int = 5) -> pd.DataFrame:
    """Fresh people, but for a share of GT's with another income."""
    number = round(share * RECORDS)
    incomes = np.random.default_rng(seed).permutation(PEOPLE["income"].to_numpy())
    return pd.concat([PEOPLE.assign(income=incomes + 1).head(number), FRESH.iloc[number:]], ignore_index=True)


@cache
def copied(share: float) -> pd.DataFrame:
    number = round(share * RECORDS)
    return pd.concat([PEOPLE.head(number), FRESH.iloc[number:]], ignore_index=True)


@cache
def measured(share: float) -> Disclosure:
    """The result of a table of which such a share is copied."""
    return dp.disclosure(PEOPLE, copied(share), KEYS)


def found(gt: Any, sd: Any, keys: Sequence[str] = KEYS, **options: Any) -> CopiesFound:
    result: Disclosure = dp.disclosure(gt, sd, list(keys), **options)
    return result.copies


def test_a_column_that_numbers_the_records_hides_no_copies() -> None:
    sd = numbered(shuffled(PEOPLE))
    with pytest.warns(CopiesWarning, match=r"^\d+ % of the people are .* all but \"Unnamed: 0\"") as caught:
        result = dp.disclosure(numbered(PEOPLE), sd, KEYS)
    [finding] = result.copies.findings
    by_column = dp.copies(numbered(PEOPLE), sd).xs("all but Unnamed: 0", level="columns")
    expected = float(by_column["people_copied"].item())
    assert expected > 90 and finding.sentence.startswith(f"{expected:.0f} % of the people are in")
    assert finding.way == "all but one" and finding.value > 7
    assert result.partial_copies.loc[("all but Unnamed: 0", 1), "people_copied"] == pytest.approx(expected)
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]
    without = dp.disclosure(PEOPLE, shuffled(PEOPLE), KEYS).copies.findings[0]
    assert without.way == "whole"
    assert without.sentence.partition(" %")[0] == finding.sentence.partition(" %")[0]


def test_a_fresh_table_is_no_copy_and_everything_was_examined() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = dp.disclosure(PEOPLE, FRESH, KEYS)
    assert result.copies == CopiesFound() and not result.copies.headline
    assert result.found["found_by_chance"].notna().all()


NUMBERS = pd.DataFrame(np.random.default_rng(1).integers(0, 10_000, (300, 5)), columns=list("abcde"))
# Every person, with noise in all that is a number: no set of columns is equal.
NOISY = NUMBERS + np.random.default_rng(9).integers(1, 9, NUMBERS.shape)


def test_noisy_copies_are_found_by_nearness() -> None:
    with pytest.warns(CopiesWarning, match="with numbers within"):
        result = dp.disclosure(NUMBERS, NOISY, ["a", "b"])
    assert [finding.way for finding in result.copies.findings] == ["nearly"]
    shown = result.found["shown"]["nearly", 1]
    assert result.copies.headline.startswith(f"{shown:.0f} % of the people are copied in the synthetic table")


def patients(seed: int) -> pd.DataFrame:
    """People of fifty wards, most of whom have records of their own."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "ward": [f"ward {number}" for number in np.arange(2_000) % 50],
            "age": rng.integers(0, 95, 2_000),
            "stay": rng.integers(0, 60, 2_000),
            "ill": rng.choice(list("abcdefgh"), 2_000),
        }
    )


def test_a_copied_group_is_found() -> None:
    """A ward is 2 % of the people, so that no share of all people shows it."""
    gt, fresh = patients(1), patients(2)
    sd = pd.concat([fresh[fresh["ward"] != "ward 7"], gt[gt["ward"] == "ward 7"]], ignore_index=True)
    [finding] = found(gt, sd, ["age", "ward"]).findings
    assert finding.way == "in a group" and finding.value > 90
    assert finding.headline.endswith(' are copied in the synthetic table, among those of one group of "ward"')
    assert "ward 7" not in finding.sentence
    assert not found(gt, fresh, ["age", "ward"]).findings


def test_copies_in_a_small_table_are_found_by_its_records() -> None:
    """Too few people for a share of all, but every tenth record is one.

    An earlier version wrote "by records" into the words on where people are found.
    """
    sd = pd.concat([PEOPLE.head(8), FRESH.head(40)], ignore_index=True)
    result = dp.disclosure(PEOPLE, sd, ["age"], "work")
    [finding] = result.copies.findings
    assert finding.sentence.startswith("17 % of the records of the synthetic table copy one person each")
    rows = {row.about: row for row in tabulate_figures(result) if row.figure == "found"}
    assert {about: row.basis for about, row in rows.items() if row.basis != "records"} == dict.fromkeys(
        ("whole", "all but one"), "synthetic records"
    )
    for row in rows.values():
        record, by_records = row.to_record(), "counted by synthetic records"
        if row.basis == "synthetic records":
            assert by_records not in row.where
            record |= {"basis": "records", "where": ", ".join(filter(None, (by_records, row.where)))}
        assert FigureRow.from_record(record) == row
    assert dp.found(PEOPLE, sd)["basis"]["1", "whole"] == "synthetic records"


CANDIDATES: dict[str, Callable[[], list[pd.DataFrame]]] = {
    "honest": lambda: [gates.honest()],
    "a copy": lambda: [gates.ground_truth()],
    "nearly a copy": lambda: [gates.ground_truth().assign(income=lambda t: t["income"] + 1)],
    "a few copies": lambda: [pd.concat([gates.ground_truth().head(40), gates.honest()])],
    "two files": lambda: [gates.honest(1), gates.honest(2)],
    "two files, one copied": lambda: [gates.honest(1), gates.ground_truth()],
    "half in each file": lambda: [gates.ground_truth().iloc[:150], gates.ground_truth().iloc[150:]],
}


@pytest.mark.parametrize("name", list(CANDIDATES))
def test_it_is_what_a_gate_with_default_bounds_refuses(name: str, tmp_path: Path) -> None:
    gt, tables = gates.ground_truth(), CANDIDATES[name]()
    loose = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0}
    gate = Gate.model_validate(gates.definition(policy=loose))
    measured = gates.measured(gate, gt, tables)
    broken = {
        judgement.column
        for judgement in gates.judged(gate, measured).values()
        if judgement.outcome == "exceeded" and judgement.clause.figure == "found"
    }
    paths = [tmp_path / f"{number}.parquet" for number in range(len(tables) + 1)]
    for path, table in zip(paths, [gt, *tables], strict=True):
        table.to_parquet(path, index=False)
    result = dp.disclosure(paths[0], paths[1:], gate.keys, gate.targets)
    assert {finding.way for finding in result.copies.findings} <= broken
    assert bool(result.copies.findings) == bool(broken)
    columns = list(result.guards)
    pd.testing.assert_frame_equal(result.guards, measured.guards[columns])
    pd.testing.assert_frame_equal(result.partial_copies, measured.partial_copies)
    pd.testing.assert_frame_equal(result.found, measured.found)
    if len(tables) > 1:
        assert result.stacked is not None and measured.stacked is not None
        pd.testing.assert_frame_equal(result.stacked.guards, measured.stacked.guards[columns])


def test_the_content_of_a_coarse_table_is_found_although_chance_shows_half_of_its_people(
    tmp_path: Path,
) -> None:
    """No way of finding people is beyond chance there, but a fresh table would not hold everybody."""

    def draw(seed: int) -> pd.DataFrame:
        random = np.random.default_rng(seed)
        levels = {"sex": 2, "owner": 2, "year": 50}
        return pd.DataFrame({name: random.integers(0, number, 200) for name, number in levels.items()})

    gt = draw(1)
    assert found(gt, draw(2), ["sex", "year"]) == CopiesFound()
    [finding] = found(gt, shuffled(gt), ["sex", "year"]).findings
    assert (finding.way, finding.value, finding.bound) == ("whole", 1, 0)
    assert finding.headline.startswith("Every record of the synthetic table is in the ground truth, or")
    halves = found(gt, [gt.head(100), gt.tail(100)], ["sex", "year"])
    assert [finding.table for finding in halves.findings] == ["synthetic table 1", "synthetic table 2"]
    for name, table in {"gt": gt, "sd": shuffled(gt)}.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = (tmp_path / "gt.csv", tmp_path / "sd.csv")
    for shown_as in ("table", "html"):
        shown = run_command("measure", *paths, "--key", "sex", "--key", "year", "--format", shown_as)
        assert shown.exit_code == ExitCode.COPIED and finding.headline in " ".join(shown.stdout.split())


# Whatever else is measured


def test_people_with_several_records_are_copied_as_units() -> None:
    """Every record stands twice, so no record is alone, but all of each person's are."""
    once = panel(1, 300).iloc[::3]
    gt = pd.concat([once, once], ignore_index=True)
    sd = panel(2, 300).drop(columns="person").iloc[::3]
    near = once.drop(columns="person").assign(changing=sd["changing"].to_numpy())
    result = dp.disclosure(gt, [sd, near], ["c0", "c1"], unit="person")
    [finding] = result.copies.findings
    assert (finding.way, finding.table) == ("all but one", "synthetic table 2")
    assert not result.comparability_doubts


def test_events_are_compared() -> None:
    rng = np.random.default_rng(4)

    def people(first: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        persons = pd.DataFrame({"person": range(first, first + 300), "sex": rng.choice(["f", "m"], 300)})
        who = np.repeat(persons["person"].to_numpy(), 3)
        return persons, pd.DataFrame({"person": who, "ward": rng.integers(0, 60, 900), "day": range(900)})

    gt, gt_events = people(0)
    other, other_events = people(0)
    options = {"order": "day", "summaries": {"ward": ["first", "last"]}, "multiset": ["ward"]}

    def look(events: pd.DataFrame) -> CopiesFound:
        linked = {"ground_truth": gt_events, "synthetic": events, **options}
        return found(gt, other, ["sex"], targets=["events.ward.first"], unit="person", events=linked)

    assert look(gt_events).findings and not look(other_events).findings


@cache
def measured_plainly() -> Disclosure:
    return dp.disclosure(PEOPLE, nearly_copied(0.4), KEYS, ["income", "health"])


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "weight"},
        {"sampling_fraction": 0.1},
        {"holdout": population(RECORDS, 8)},
        {"within": {"income": 0.05}},
        {"exclude": dp.Exclusions(missing_keys=True, missing_targets=True)},
    ],
    ids=["weights", "fraction", "holdout", "band", "exclusions"],
)
def test_copies_are_found_beside_every_option(options: dict[str, Any]) -> None:
    gt, plain = PEOPLE.assign(weight=2) if "weights" in options else PEOPLE, measured_plainly()
    result = dp.disclosure(gt, nearly_copied(0.4), KEYS, ["income", "health"], **options)
    assert result.copies == plain.copies and plain.copies.findings
    pd.testing.assert_frame_equal(result.guards, plain.guards)


def test_files_that_are_honest_alone_and_a_copy_together() -> None:
    """Too few copies in each of many files to be noticed."""
    gt = survey(RECORDS, 1)
    files = [pd.concat([gt.iloc[k::60], survey(RECORDS, 10 + k).head(885)]) for k in range(4)]
    result = dp.disclosure(gt, files, ["age", "sex"])
    assert result.stacked is not None
    assert (result.guards["people_copied_beyond_chance"] <= 2.5).all()
    assert result.stacked.guards["people_copied_beyond_chance"].item() > 2.5
    [finding] = result.copies.findings
    assert finding.table == "all synthetic tables together"
    assert finding.sentence.startswith("7 % of the people are in all synthetic tables together")


# What is not examined is said


def test_tables_that_are_too_large_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MOST_CELLS", 2 * RECORDS * len(PEOPLE.columns) ** 2 - 1)
    result = dp.disclosure(PEOPLE, PEOPLE, KEYS)
    assert result.guards.empty and not result.copies.findings
    [sentence] = result.copies.not_examined
    assert sentence.startswith("Copied people were not looked for")
    assert str(result).startswith(sentence) and sentence in result._repr_html_()
    assert "Copied people were not looked for" in render_result(dp.disclosure(PEOPLE, PEOPLE, KEYS))
    monkeypatch.setattr(measuring, "MOST_CELLS", 2 * RECORDS * len(PEOPLE.columns) ** 2)
    assert dp.disclosure(PEOPLE, PEOPLE, KEYS).copies.findings


def test_nearness_of_many_records_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MOST_COMPARED", 300 * 300 * 5 - 1)
    result = dp.disclosure(NUMBERS, NOISY, ["a", "b"])
    assert np.isnan(result.found["shown"]["nearly", 1]) and not result.copies.findings
    [sentence] = result.copies.not_examined
    assert "by equal values only" in sentence and str(result).endswith(sentence)
    assert dp.disclosure(NUMBERS, NUMBERS, ["a", "b"]).copies.findings, "copies are"


def test_a_figure_that_is_no_number_is_no_proof() -> None:
    result = measured(0)
    without = result.found.assign(found_beyond_chance=np.nan)
    first, _ = dp.Disclosure(**{**vars(result), "found": without}).copies.not_examined
    assert first == "It could not be computed whether people were copied."


def test_one_person_has_no_others() -> None:
    assert found(PEOPLE.head(1), FRESH, ["sex"], targets="income").not_examined == ()


def test_columns_that_cannot_be_compared_are_named() -> None:
    gt = PEOPLE.assign(number=range(RECORDS))
    sd = PEOPLE.assign(number=pd.date_range("2020", periods=RECORDS))
    result = dp.disclosure(gt, sd, ["sex"], ["income", "health"])
    assert result.copies.findings[0].way == "whole"
    assert any("without the columns 'number'" in warning for warning in result.warnings)


def test_tables_outside_memory_say_so(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    PEOPLE.to_parquet(path)
    result = dp.disclosure(path, path, KEYS, engine="partitioned")
    assert result.guards.empty and str(result).startswith(result.copies.not_examined[0])
    ended = measure(tmp_path, PEOPLE, "--engine", "partitioned")
    assert ended.exit_code == 0 and "Copied people were not looked for" in ended.stdout
    page = measure(tmp_path, PEOPLE, "--engine", "partitioned", "--format", "html")
    assert page.exit_code == 5, "the page always has the guards"


# The headline of every output


def test_print_begins_with_copies() -> None:
    upper = copied(0.3).assign(region=lambda t: t["region"].astype(str).str.upper())
    result = measured(0.3)
    assert str(result).startswith("30 % of the people are in the synthetic table; in a fresh table")
    assert result._repr_html_().startswith("<p><strong>30 % of the people are in")
    assert not result.warnings and not result.comparability_doubts
    both = dp.disclosure(PEOPLE, nearly_copied(0.4).assign(region=upper["region"].to_numpy()), KEYS)
    lines = str(both).splitlines()
    assert not both.copies.findings or lines[0] == both.copies.sentences[0]
    assert any(line.startswith("Warning: Column 'region'") for line in lines)


def test_the_picture_has_copies_as_its_title() -> None:
    title = measured(0.3).plot().to_dict()["title"]["text"]
    assert title == "30 % of the people are copied in the synthetic table"
    assert "copied" not in measured(0).plot().to_dict()["title"]["text"]


def test_comparing_remedies_warns_of_copies_once() -> None:
    remedy = dp.Remedy.top_code("age", at=60)
    with pytest.warns(CopiesWarning) as caught:
        dp.compare_remedies(PEOPLE, copied(0.3), KEYS, "income", [remedy])
    kinds = [
        warning.category for warning in caught if warning.category in (CopiesWarning, ComparabilityWarning)
    ]
    assert kinds == [CopiesWarning]


def measure(folder: Path, sd: pd.DataFrame, *options: str, gt: pd.DataFrame = PEOPLE) -> Any:
    paths = [folder / name for name in ("gt.csv", "sd.csv")]
    for path, table in zip(paths, (gt, sd), strict=True):
        table.to_csv(path, index=False)
    keys = [part for key in KEYS for part in ("--key", key)]
    return run_command("measure", *paths, *keys, *options)


@pytest.mark.parametrize("shown", [(), ("--format", "table"), ("--format", "json"), ("--format", "html")])
def test_the_command_line_says_it_first_with_an_exit_code_of_its_own(
    shown: tuple[str, ...], tmp_path: Path
) -> None:
    ended = measure(tmp_path, copied(0.3), *shown)
    assert ended.exit_code == int(ExitCode.COPIED) == 5
    assert "--accept-doubts" not in ended.output
    assert "People were copied: 30 % of the people are copied in the synthetic table." in ended.stderr
    first = {
        (): "30 % of the people are in the synthetic table; in a fresh table",
        ("--format", "table"): "30 % of the people are copied in the synthetic table",
        ("--format", "json"): '{\n  "heading": "30 % of the people are copied in the synthetic table"',
        ("--format", "html"): "<!DOCTYPE html>",
    }
    assert ended.stdout.startswith(first[shown])
    accepted = measure(tmp_path, copied(0.3), *shown, "--accept-doubts")
    assert accepted.exit_code == 5, "nobody accepts copies as doubts"
    # The engine says how much memory is free at the moment.
    shown_twice = [re.sub(r"[\d.]+ GB are free", "", run.stdout) for run in (accepted, ended)]
    assert shown_twice[0] == shown_twice[1]
    honest = measure(tmp_path, FRESH, *shown)
    assert honest.exit_code == 0 and "copied" not in honest.stderr
    if "html" in shown:
        page, headline = ended.stdout, first["--format", "table"]
        assert f"<title>{headline}</title>" in page and f"<h1>{headline}.</h1>" in page
        [paragraph, *_] = re.findall(r"<p>(?!Two)(.*?)</p>", page.partition('<div class="first">')[2])
        assert paragraph.startswith(f"<strong>{first[()]}")
        assert "<title>Measured: " in honest.stdout and "copies them" not in honest.stdout


def test_copies_come_before_doubts(tmp_path: Path) -> None:
    """Where both apply the exit code is that of copies; where only doubts do, it is theirs."""
    gt = PEOPLE.assign(flag=["yes", "no", "n/a"] * (RECORDS // 3))
    sd = copied(0.3).assign(flag=["YES", "NO", "N/A"] * (RECORDS // 3))
    both = measure(tmp_path, sd, gt=gt)
    assert both.exit_code == 5 and "Warning: Column 'flag'" in both.stdout
    assert "--accept-doubts" not in both.output
    doubted = measure(tmp_path, FRESH.assign(flag=sd["flag"]), gt=gt)
    assert doubted.exit_code == 3 and "--accept-doubts" in doubted.stderr


def test_programs_get_the_finding_and_its_figures(tmp_path: Path) -> None:
    ended = measure(tmp_path, nearly_copied(0.33), "--format", "json")
    assert ended.exit_code == 5
    content = json.loads(ended.stdout)
    [sentence] = content["copies"]
    assert 'alike in all but "income"' in sentence and content["not_examined"] == [] == content["warnings"]
    rows = {
        (row["frame"], row["columns"] or row["way"], row["measure"]): row["value"]
        for row in content["figures"]
    }
    assert rows["partial_copies", "all but income", "people_copied"] > 30
    assert rows["found", "all but one", "found_beyond_chance"] > 7


def test_the_command_line_says_what_it_did_not_examine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "MOST_CELLS", 0)
    for shown in ((), ("--format", "table"), ("--format", "csv")):
        ended = measure(tmp_path, PEOPLE, *shown)
        assert ended.exit_code == 0
        assert "Copied people were not looked for" in ended.stderr
        assert ("Copied people were not looked for" in " ".join(ended.stdout.split())) == (
            shown[-1:] != ("csv",)
        )
    assert measure(tmp_path, PEOPLE, "--format", "html").exit_code == 5, "the page always has the guards"


def test_help_and_documentation_list_every_exit_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    for code in ExitCode:
        assert f"\n  {int(code)}  " in EXIT_CODES and f"\n| {int(code)} | " in page
    assert "people were copied" in run_command("measure", "--help").output


def test_a_column_without_a_name_is_called_so() -> None:
    tables = (table.rename(columns={"Unnamed: 0": ""}) for table in map(numbered, (PEOPLE, shuffled(PEOPLE))))
    [sentence] = found(*tables).sentences
    assert 'alike in all but "";' in sentence


def test_the_headline_is_about_copies_and_about_what_is_told() -> None:
    """None were found is only said if they were looked for."""
    table = pd.DataFrame({"age": range(40), "job": [f"job {number % 7}" for number in range(40)]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copied = dp.disclosure(table, table, ["age"], "job")
    assert copied.headline.startswith(copied.copies.sentences[0])
    assert copied.headline.endswith(" rightly; other people's records alone would show it for 0.0 %.")
    unexamined = replace(copied, found=pd.DataFrame())
    assert "were found" not in unexamined.headline
    assert unexamined.headline.startswith(unexamined.copies.not_examined[0])
