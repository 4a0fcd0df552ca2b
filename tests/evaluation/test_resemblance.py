"""Resemblance: against the reference, the check values, and what a recoded column looks like."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import resemblance as reference
from support.small_tables import sd2011

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory import cell_tables
from disclosure_pipeline.demo.population import population

LEVEL = st.sampled_from(["a", "b", "c", None])
ROWS = st.lists(st.tuples(LEVEL, LEVEL, st.booleans()), min_size=1, max_size=25)
COLUMNS = ["x", "y", "z"]

Row = tuple[object, ...]


def frame(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


@pytest.mark.parametrize("largest", [0, 1 << 20])
@given(gt=ROWS, sd=ROWS)
def test_figures_are_those_of_the_reference(largest: int, gt: list[Row], sd: list[Row]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_tables, "_LARGEST", largest)
        patch.setattr(cell_tables, "_AT_A_TIME", 4)
        result = dp.resemblance(frame(gt), [frame(gt), frame(sd)])
    for place, name in enumerate(COLUMNS):
        values = [[row[place] for row in table] for table in (gt, sd)]
        row = result.columns.xs(2, level="synthesis").loc[name].to_dict()
        assert row.pop("TVD_relabelled") == pytest.approx(reference.relabelled(*values))
        assert row == pytest.approx(reference.figures(*values))
    assert len(result.pairs) == 6
    for first, second in ((0, 1), (0, 2), (1, 2)):
        values = [[(row[first], row[second]) for row in table] for table in (gt, sd)]
        of_pair = result.pairs.xs(2, level="synthesis").loc[(COLUMNS[first], COLUMNS[second])]
        assert of_pair.to_dict() == pytest.approx(reference.figures(*values))
    assert (result.pairs.xs(1, level="synthesis")["TVD"] == 0).all()


def figures_of(frame: pd.DataFrame, *place: object, synthesis: int = 1) -> dict[str, float]:
    at = (*place, synthesis)
    return {str(name): float(column.to_dict()[at]) for name, column in frame.items()}


@cache
def of_example() -> dp.TablesResemblance:
    return dp.resemblance(sd2011("ground_truth"), sd2011("synthetic"))


@pytest.mark.parametrize(
    ("column", "ratio", "df"),
    [
        ("sex", 1.8690, 1),
        ("region", 1.5719, 15),
        ("placesize", 1.7006, 5),
        ("ls", 0.6268, 7),
        ("marital", 1.8277, 6),
        ("workab", 1.3069, 2),
    ],
)
def test_columns_of_the_example_data(column: str, ratio: float, df: int) -> None:
    figures = figures_of(of_example().columns, column)
    assert (round(figures["S_pMSE"], 4), figures["df"]) == (ratio, df)


@pytest.mark.parametrize(
    ("place", "alike", "expected"),
    [(("sex",), 0.99040, 0.99209), (("region",), 0.97220, 0.96964), (("sex", "workab"), 0.98700, 0.98709)],
)
def test_distances_of_the_example_data(place: tuple[str, ...], alike: float, expected: float) -> None:
    frame = of_example().pairs if len(place) == 2 else of_example().columns
    figures = figures_of(frame, *place)
    assert (round(1 - figures["TVD"], 5), round(1 - figures["TVD_expected"], 5)) == (alike, expected)


def test_a_fresh_sample_is_as_far_as_expected() -> None:
    rng = np.random.default_rng(0)

    def table(records: int) -> pd.DataFrame:
        x = rng.choice(list("abcdef"), records, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05])
        return pd.DataFrame({"x": x, "y": np.where(rng.random(records) < 0.5, x, "z")})

    actual = [dp.resemblance(table(1000), table(500)).pairs.iloc[0] for _ in range(60)]
    assert np.mean([row["TVD"] / row["TVD_expected"] for row in actual]) == pytest.approx(1, abs=0.1)
    assert np.mean([row["S_pMSE"] for row in actual]) == pytest.approx(1.5, abs=0.2)


def test_one_column_has_no_pairs() -> None:
    gt = pd.DataFrame({"x": ["a", "a"]})
    result = dp.resemblance(gt, gt)
    assert result.pairs.empty
    assert result.columns["S_pMSE"].tolist() == [2]
    assert "least similar columns" in str(result)
    assert result.plot().to_dict()["title"]["text"].startswith("Least similar: x")


def test_the_heat_map_names_what_is_least_alike() -> None:
    chart = of_example().plot().to_dict()
    assert chart["title"]["text"] == "Least similar: sex and depress, S_pMSE 3.5"
    [rows] = chart["datasets"].values()
    assert len(rows) == 9 + 36


def test_a_frame_that_the_library_returns_prints_every_column() -> None:
    gt, sd = population(200, 1), population(200, 2)
    for result in (
        dp.copies(gt, sd),
        dp.nearest(gt, sd),
        dp.subgroups(gt, sd, ["age", "sex"], "work", by="region"),
    ):
        printed, on_a_page = str(result), result.to_html()
        assert "..." not in printed
        assert max(map(len, printed.splitlines())) <= 80
        assert all(str(column) in printed and str(column) in on_a_page for column in result)
        assert type(result[list(result)]) is pd.DataFrame
