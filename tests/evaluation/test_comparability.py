"""Tables that may not be coded alike: the doubt comes first, wherever the figures are shown."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import disclosure_pipeline as dp
from disclosure_pipeline.cli.main import main
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.errors import ComparabilityWarning
from disclosure_pipeline.families.key_sets import KeySets
from disclosure_pipeline.measures.resemblance import LEAST_SHARED
from disclosure_pipeline.policy.bounds import Policy

RECORDS = 400


def people(seed: int = 1) -> pd.DataFrame:
    """A fifth of the work is missing, and a fifth of the heights."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": random.choice(["north", "south", "east"], RECORDS),
            "age": random.integers(20, 30, RECORDS),
            "work": pd.Series(random.choice(["office", "field", "none"], RECORDS)).mask(
                random.random(RECORDS) < 0.2
            ),
            "height": np.where(random.random(RECORDS) < 0.2, np.nan, random.integers(150, 160, RECORDS)),
        }
    )


def measured(gt: Any, sd: Any, keys: Sequence[str] = ("region", "age"), **options: Any) -> Any:
    return dp.disclosure(gt, sd, list(keys), **options)


def test_tables_that_are_coded_alike() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = dp.disclosure(people(1), people(2), ["region", "age"])
    assert result.comparability_doubts == result.warnings == ()
    assert result.ledger == ()
    first, second, *rest = str(result).splitlines()
    assert f"{first} {second}" == result.headline
    assert rest[:2] == ["", "Disclosure from the keys region, age"]
    assert result._repr_html_().startswith(f"<p><strong>{first}</strong></p><p><strong>For ")


def test_an_upper_cased_key() -> None:
    """It reads repU 0.00: what comes first says why."""
    sd = people(2).assign(region=lambda table: table["region"].str.upper())
    with pytest.warns(ComparabilityWarning, match="'region'.*upper and lower case") as caught:
        result = dp.disclosure(people(), sd, ["region", "age"])
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}
    assert [str(warning.message) for warning in caught] == list(result.comparability_doubts)
    assert result.comparability_doubts == result.warnings
    lines = str(result).splitlines()
    assert lines[: len(result.comparability_doubts)] == [
        f"Warning: {doubt}" for doubt in result.comparability_doubts
    ]
    assert result._repr_html_().startswith("<p><strong>Warning:</strong> Column &#x27;region&#x27;")


REMEDIES = [dp.Remedy.merge_small_levels("work", fewest=2)]
COMPARE: dict[str, Callable[[pd.DataFrame, pd.DataFrame], object]] = {
    "key sets": lambda gt, sd: dp.disclosure_of_key_sets(gt, sd, [["region"], ["region", "age"]], "work"),
    "protection": lambda gt, sd: dp.disclosure_protection(gt, sd, ["region", "age"], "work", "zero_cap"),
    "attribution": lambda gt, sd: dp.individual_attribution(gt, sd, ["region", "age"], "work"),
    "prediction": lambda gt, sd: dp.prediction_risk(gt, sd, ["region", "age"], "work"),
    "remedies": lambda gt, sd: dp.compare_remedies(gt, sd, ["region"], "work", REMEDIES),
    "uniques": lambda gt, sd: dp.replicated_uniques(gt, sd, ["region", "age"]),
    "subgroups": lambda gt, sd: dp.subgroups(gt, sd, ["region", "age"], "work", by="height"),
}


@pytest.mark.parametrize("name", COMPARE)
def test_whatever_compares_keys_warns_of_an_upper_cased_one(name: str) -> None:
    sd = people().assign(region=lambda table: table["region"].str.upper())
    with pytest.warns(ComparabilityWarning, match="'region'.*upper and lower case") as caught:
        result = COMPARE[name](people(), sd)
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}
    if isinstance(result, KeySets):  # whose doubts come before the figures
        assert [str(warning.message) for warning in caught] == list(result.warnings)
        assert str(result).splitlines()[: len(caught)] == [f"Warning: {doubt}" for doubt in result.warnings]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ComparabilityWarning)
        COMPARE[name](people(1), people(2))


def test_warns_of_columns_that_raise_no_doubt() -> None:
    result = measured(people(1), people(2).assign(more=1))
    assert result.comparability_doubts == ()
    assert "'more'" in result.warnings[0] and str(result).startswith("Warning: GT lacks columns")


def test_no_name_becomes_html() -> None:
    names = {"region": "<b>region</b>"}
    sd = people().assign(region=lambda table: table["region"].str.upper()).rename(columns=names)
    with pytest.warns(ComparabilityWarning):
        shown = dp.disclosure(people().rename(columns=names), sd, ["<b>region</b>"])._repr_html_()
    assert "<b>" not in shown


@pytest.mark.parametrize("code", ["", "NA", "nan", "null", "."])
def test_a_level_that_looks_like_the_gap_of_text(code: str) -> None:
    [doubt] = measured(people(1), people(2).assign(work=people(2)["work"].fillna(code))).comparability_doubts
    assert "'work'" in doubt and f"a level {code!r} of about that size that GT lacks" in doubt


def test_a_level_that_looks_like_the_gap_of_numbers() -> None:
    coded = people(2).assign(height=people(2)["height"].fillna(-9))
    for groups in (None, {"height": 3}):
        [doubt] = measured(people(1), [people(3), coded], groups=groups).comparability_doubts
        assert "'height'" in doubt and "synthetic table 2 has a level '-9'" in doubt


def test_a_level_of_its_own_is_not_told() -> None:
    """It may be anything; and one of GT is never told."""
    [doubt] = measured(
        people(1), people(2).assign(work=people(2)["work"].fillna("Quetzalcoatl"))
    ).comparability_doubts
    assert "has a level of about that size that GT lacks" in doubt and "Quetzalcoatl" not in doubt
    [doubt] = measured(people(1).assign(work=people(1)["work"].fillna("NA")), people(2)).comparability_doubts
    assert "GT has a level of about that size that the synthetic table lacks" in doubt and "NA" not in doubt


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_a_level_of_another_size_is_none(share: float) -> None:
    """Values were filled in by those that there are, and a rare level is new."""
    filled = people(2)["work"].fillna("office").mask(np.arange(RECORDS) < share * RECORDS, "new")
    assert measured(people(1), people(2).assign(work=filled)).comparability_doubts == ()


def test_missing_shares_that_hardly_differ() -> None:
    """Five points are none yet, one record more is."""
    gt = pd.DataFrame({"k": ["a"] * 100, "t": [None] * 5 + ["x"] * 95})
    assert doubts_of_t(gt, gt.assign(t=["NA"] * 5 + ["x"] * 95)) == []
    gt = pd.DataFrame({"k": ["a"] * 100, "t": [None] * 6 + ["x"] * 94})
    assert len(doubts_of_t(gt, gt.assign(t=["NA"] * 6 + ["x"] * 94))) == 1


def doubts_of_t(gt: pd.DataFrame, sd: pd.DataFrame) -> list[str]:
    """The doubts beside the one that people are alike."""
    every = measured(gt, sd, ["k"], targets="t").comparability_doubts
    return [doubt for doubt in every if "no one apart" not in doubt]


@pytest.mark.parametrize("column", ["k", "t"])
def test_a_column_without_a_value_in_the_ground_truth(column: str) -> None:
    """Its overlap is no number, and no number is no overlap."""
    full = pd.DataFrame({"k": ["a", "b"] * 50, "t": ["x", "y"] * 50})
    empty = full.assign(**{column: None})
    for gt, sd, shares, words in (
        (empty, full, [np.nan, 0], "No GT record has a value"),
        (full, empty, [0, np.nan], "No record of the synthetic table has a value"),
        (empty, empty, [np.nan, np.nan], ""),
    ):
        result = measured(gt, sd, ["k"], targets="t")
        overlap = result.key_overlap if column == "k" else result.target_overlap
        np.testing.assert_equal(overlap.loc[(column, 1), ["GT_in_SD", "SD_in_GT"]].tolist(), shares)
        [doubt] = [doubt for doubt in result.comparability_doubts if "share few values" in doubt]
        assert doubt.startswith(f"Column {column!r}") and words in doubt


DAYS = pd.Series(pd.date_range("2020-01-01", periods=120)).sample(400, replace=True, random_state=1)


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ("%d %b %Y", "DD Mon YYYY"),
        ("%Y%m%d", "YYYYMMDD"),
        ("%d.%m.%Y", "DD.MM.YYYY"),
        ("%B %d, %Y", "Month DD, YYYY"),
        ("%m/%d/%y %H:%M", "MM/DD/YY"),
    ],
)
@pytest.mark.parametrize("role", ["key", "target"])
def test_dates_in_two_forms(tmp_path: Path, form: str, named: str, role: str) -> None:
    gt = pd.DataFrame({"day": DAYS.dt.strftime("%Y-%m-%d"), "sex": ["f", "m"] * 200})
    sd = gt.assign(day=DAYS.dt.strftime(form).mask(np.arange(400) < 5, "unknown"))
    paths = [tmp_path / "gt.csv", tmp_path / "sd.csv"]
    for table, path in zip((gt, sd), paths, strict=True):
        table.to_csv(path, index=False)
    roles = (["day"], "sex") if role == "key" else (["sex"], "day")
    for one, other, engine in ((*paths, "memory"), (*paths, "partitioned"), (gt, sd, "memory")):
        result = measured(one, other, roles[0], targets=roles[1], engine=engine)
        [doubt] = [doubt for doubt in result.comparability_doubts if doubt.startswith("Column 'day'")]
        assert f"Both hold dates, in two forms: YYYY-MM-DD in GT, {named} in the synthetic table." in doubt
        assert "2020" not in doubt
    days = gt["day"].mask(np.arange(400) < 40, sd["day"])  # most of them in GT's form: they are shared
    of_some = measured(gt, gt.assign(day=days.mask(days == "unknown", "")), ["day"], targets="sex")
    forms = {doubt for doubt in of_some.comparability_doubts if "in two forms" in doubt}
    assert forms == {
        f"Column 'day': both tables hold dates, in two forms: YYYY-MM-DD in GT, {named} in the synthetic "
        "table. Risks read too low where the tables are not coded alike."
    }


def test_dates_that_could_be_of_one_form_raise_no_doubt_about_it() -> None:
    gt = pd.DataFrame({"day": ["01/02/2020", "03/04/2020", "05/06/2020"] * 20, "sex": ["f", "m"] * 30})
    sd = gt.assign(day=[f"{day:02}/{day:02}/2021" for day in range(1, 13)] * 5)
    assert not any("two forms" in doubt for doubt in measured(gt, sd, ["day"]).comparability_doubts)


def test_a_table_that_lacks_values_of_the_ground_truth() -> None:
    """Of a generator that forgets the tails each value is one of GT: it is not coded otherwise."""
    gt = pd.DataFrame({"age": [*range(20, 60)] * 10, "work": ["a", "b"] * 200})
    for least, role in ((80, "age"), (50, "work")):
        roles = (["age"], "work") if role == "age" else (["work"], "age")
        for share in (least - 5, least + 5):
            sd = gt[gt["age"] < 20 + 40 * share // 100]
            doubts = measured(gt, sd, roles[0], targets=roles[1]).comparability_doubts
            found = [doubt for doubt in doubts if doubt.startswith("Column 'age': the tables share few")]
            assert len(found) == (share < least)
            for doubt in found:
                assert f"{share:.2f} % of the GT records" in doubt and "100.00 % the other way" in doubt
                assert "are written as in GT, but it lacks those of many GT records" in doubt
                assert "not coded alike" not in doubt


def test_a_gate_raises_doubts_by_the_same_shares() -> None:
    policy = Policy.model_validate({})
    overlaps = [policy.find_bound(name) for name in ("key_overlap", "whole_key_overlap", "target_overlap")]
    assert overlaps == [80, 5, 50]
    assert (LEAST_SHARED.key, LEAST_SHARED.whole_key, LEAST_SHARED.target) == (80, 5, 50)


def test_rounding_noise_is_in_the_ledger() -> None:
    gt = pd.DataFrame({"k": [0.3, 0.7, 0.5], "t": ["a", "b", "c"]})
    sd = pd.DataFrame({"k": [0.1 + 0.2, 0.7, 0.5], "t": ["a", "b", "c"]})
    result = measured(gt, sd, ["k"], targets="t")
    assert result.identity["repU"].tolist() == [100]
    assert [(change.table, change.column, change.records) for change in result.ledger] == [
        ("the synthetic table", "k", 1)
    ]
    assert "rounding noise" in result.ledger[0].rule


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_files_that_went_through_pandas(engine: str, tmp_path: Path) -> None:
    """Gaps turned whole numbers into floats: figures and overlaps are those of the file itself."""
    gt = people().assign(height=people()["height"].astype("Int64"))
    paths = [tmp_path / name for name in ("gt.csv", "roundtrip.csv")]
    gt.to_csv(paths[0], index=False)
    pd.read_csv(paths[0]).to_csv(paths[1], index=False)
    keys = ["region", "age", "height"]
    same, roundtrip = (dp.disclosure(paths[0], sd, keys, engine=engine) for sd in paths)
    pd.testing.assert_frame_equal(roundtrip.attribute, same.attribute)
    assert roundtrip.warnings == same.warnings and roundtrip.copies == same.copies
    assert bool(same.copies.findings) == (engine == "memory"), "whole records are counted in memory alone"
    assert same.attribute.xs("work", level="target")["DiSCO"].item() > 0
    assert [change.column for change in roundtrip.ledger] == ["height"] and same.ledger == ()


# A doubt where the table tells no one apart, and copies, whatever the keys


KEYS, TARGETS = ["sex"], ["education", "income"]
PEOPLE = population(2_000)
SAYS_ALIKE = "tells no one apart"


@pytest.mark.parametrize("share", [0.1, 1])
def test_fresh_people_raise_no_doubt(share: float) -> None:
    result = measured(PEOPLE, population(round(2_000 * share), 7), KEYS, targets=TARGETS)
    assert not result.comparability_doubts and not result.copies.findings


def test_a_table_that_tells_no_one_apart() -> None:
    two = PEOPLE[["sex", "worked_abroad"]]
    with pytest.warns(ComparabilityWarning, match=SAYS_ALIKE):
        dp.disclosure(two, population(2_000, 7)[list(two)], ["sex"])


def test_a_table_whose_people_are_alike_shows_no_copies() -> None:
    empty = PEOPLE.assign(sex=None, region=None)
    assert measured(empty, empty, ["age"]).copies.findings
    two = PEOPLE[["sex", "worked_abroad"]]
    assert not measured(two, two, ["sex"]).copies.findings


@pytest.mark.parametrize("shown", ["table", "html"])
def test_measure_ends_with_a_doubt(shown: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("gt.csv", "sd.csv")]
    for path in paths:
        PEOPLE[["sex", "worked_abroad"]].head(200).to_csv(path, index=False)
    arguments = ["measure", *paths, "--key", "sex", "--format", shown]
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 3
    assert SAYS_ALIKE in " ".join(ended.output.split())
    assert CliRunner().invoke(main, [*arguments, "--accept-doubts"]).exit_code == 0
