"""The pictures: the right counts in them, the finding in the title, and nothing too large to show."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import vl_convert
from hypothesis import given
from reference.cap import Record
from support.browser import browser_tab, visit
from support.processes import fork
from support.sampling import examples, on_some_days, some_of
from support.small_tables import KEYS, frame, from_counts, tables

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.plots.drawing import (
    BLUE,
    ORANGE,
    PALE_BLUE,
    PLUM,
    QUIET_TEXT,
    RULE,
    TEXT,
    TEXT_ON_DARK,
    TURQUOISE,
)

pytestmark = on_some_days

SMOKING = from_counts([[20, 5], [30, 45]])
SMOKING_SD = from_counts([[8, 7], [25, 60]])


def individual_cap(gt: Any, sd: Any, keys: Any, target: Any) -> Any:
    return dp.individual_attribution(gt, sd, keys, target).plot()


def distributions(gt: Any, sd: Any, keys: Any, target: Any) -> Any:
    return dp.individual_attribution(gt, sd, keys, target).plot_distributions()


def with_columns(spec: dict[str, Any], *columns: str) -> list[pd.DataFrame]:
    return [
        data
        for data in [pd.DataFrame(rows) for rows in spec["datasets"].values()]
        if set(columns) <= set(data)
    ]


@examples(5, 12)
@given(tables(), tables())
def test_every_record_stands_at_its_own_cap(gt: list[Record], sd: list[Record]) -> None:
    """Exactly 0 and exactly 1 have places of their own."""
    [places] = with_columns(individual_cap(frame(gt), frame(sd), KEYS, "t").to_dict(), "GT", "SD")
    assert places["records"].sum() == len(gt)
    assert (places["records"] > 0).all()
    rows = distributions(frame(gt), [frame(sd), frame(gt)], KEYS, "t").to_dict()
    [bins] = with_columns(rows, "CAP")
    assert bins.groupby("synthesis")["records"].sum().tolist() == [len(gt), len(gt)]
    assert bins.groupby("synthesis")["percent"].sum().tolist() == pytest.approx([100, 100])
    chances = dp.individual_attribution(frame(gt), frame(sd), KEYS, "t").records["t", 1]
    in_SD = np.array([q in {key for key, _ in sd} for q, _ in gt])
    assert shown(places, "SD", "key not in SD") == (~in_SD).sum()
    for column, name in (("CAP_GT", "GT"), ("CAP", "SD")):
        cap = chances[column].to_numpy()
        actual = in_SD if name == "SD" else np.full(len(gt), True)
        assert shown(places, name, "0") == ((cap == 0) & actual).sum()
        assert shown(places, name, "1") == (cap == 1).sum()
        between = places[~places[name].isin(["0", "1", "key not in SD"])]
        low = np.sort(np.repeat(between[f"{name}_from"].to_numpy(), between["records"].to_numpy()))
        inside = np.sort(100 * cap[(cap > 0) & (cap < 1)])
        assert ((low <= inside + 1e-9) & (inside < low + 5 + 1e-9)).all()


def shown(places: pd.DataFrame, table: str, label: str) -> int:
    return int(places.loc[places[table] == label, "records"].sum())


def test_the_smoking_example() -> None:
    chart = individual_cap(frame(SMOKING), frame(SMOKING_SD), KEYS, "t")
    [places] = with_columns(chart.to_dict(), "GT", "SD")
    actual = {(row["GT"], row["SD"]): row["records"] for row in places.to_dict("records")}
    assert actual == {
        ("10 to 15", "10 to 15"): 5,
        ("40 to 45", "20 to 25"): 20,
        ("60 to 65", "75 to 80"): 30,
        ("90 to 95", "85 to 90"): 45,
    }


def test_syntheses_are_in_order_of_their_average_and_gt_is_a_line() -> None:
    gt, sd = frame(SMOKING), frame(SMOKING_SD)
    other = frame([(("elsewhere", ""), "T1")])
    spec = distributions(gt, [other, sd, gt], KEYS, "t").to_dict()
    totals = dp.disclosure(gt, [other, sd, gt], KEYS, "t").cap
    [bins] = with_columns(spec, "CAP")
    assert totals["DCAP"].rank().tolist() == [1, 3, 2]
    order = [row.split(":")[0] for row in spec["facet"]["row"]["sort"]]
    assert order == ["Synthesis 2", "Synthesis 3", "Synthesis 1"]
    averages = bins.groupby("synthesis")[["average", "GT_average"]].first()
    assert averages["average"].tolist() == pytest.approx(totals["DCAP"].tolist())
    assert averages["GT_average"].tolist() == pytest.approx(totals["CAPd"].tolist())
    rules = [layer for layer in spec["spec"]["layer"] if layer["mark"]["type"] == "rule"]
    assert [layer["encoding"]["x"]["field"] for layer in rules] == ["average", "GT_average"]


def test_a_picture_of_many_records_is_as_small_as_one_of_few() -> None:
    random = np.random.default_rng(1)
    gt, sd = (
        pd.DataFrame({"k": random.integers(0, 3_000, 20_000), "t": random.geometric(0.4, 20_000)})
        for _ in range(2)
    )
    [places] = with_columns(individual_cap(gt, sd, ["k"], "t").to_dict(), "GT", "SD")
    assert places["records"].sum() == 20_000
    assert len(places) <= 23 * 23
    [bins] = with_columns(distributions(gt, [sd, gt], ["k"], "t").to_dict(), "CAP")
    assert len(bins) <= 2 * 23


def test_no_value_of_a_record_is_in_the_picture() -> None:
    gt = frame([(("secret key", ""), "secret level"), (("another secret", ""), None)])
    for chart in (individual_cap(gt, [gt, gt], KEYS, "t"), distributions(gt, [gt, gt], KEYS, "t")):
        assert "secret" not in chart.to_json()


@pytest.fixture(scope="module")
def charts() -> dict[str, Any]:
    """One of each kind, of one synthesis and of several."""
    gt, sd = frame(SMOKING), frame(SMOKING_SD)
    ages = np.random.default_rng(1).integers(18, 90, (60, 2))
    numbers = pd.DataFrame(ages, columns=["age", "income"])
    risk = dp.prediction_risk(numbers, [numbers, numbers + 1], ["age"], "income")
    return {
        "individual": individual_cap(gt, sd, KEYS, "t"),
        "individual, two": individual_cap(gt, [sd, gt], KEYS, "t"),
        "distribution": distributions(gt, sd, KEYS, "t"),
        "distributions, many": distributions(gt, [sd] * 12, KEYS, "t"),
        "disclosure": dp.disclosure(gt, [sd, gt], KEYS, "t").plot(),
        "resemblance": dp.resemblance(gt, sd).plot(),
        "relative errors": risk.plot(),
    }


def test_every_plot_is_saved_as_a_file_that_needs_nothing_else(
    charts: dict[str, Any], tmp_path: Path
) -> None:
    for name, chart in some_of(charts.items()):
        for ending in ("png", "svg"):
            dp.save(chart, tmp_path / f"{name}.{ending}")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{name}.svg").read_text().startswith("<svg")
    dp.save(charts["individual"], str(tmp_path / "one.HTML"))
    page = (tmp_path / "one.HTML").read_text()
    assert "vegaEmbed" in page
    assert not re.findall(r"<script[^>]+src=|<link|@import|\bimport\(", page)
    assert '"editor": false' in page  # which would send the data to another host


def test_a_forked_process_saves_the_same(tmp_path: Path) -> None:
    """A fork does not inherit the thread that asks the drawing process: the child must not wait for it."""
    chart = individual_cap(frame(SMOKING), frame(SMOKING_SD), KEYS, "t")
    endings = ("svg", "png", "html")

    def save(name: str) -> None:
        for ending in endings:
            dp.save(chart, tmp_path / f"{name}.{ending}")

    save("here")
    fork(save, "there").result()
    for ending in endings:
        here, there = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("here", "there"))
        # Elements are numbered as they come, and a page names the one that it draws in at random.
        assert here == there if ending == "png" else abs(len(here) - len(there)) < 100, ending


def test_every_page_draws_its_plot_without_a_network(charts: dict[str, Any], tmp_path: Path) -> None:
    with browser_tab() as tab:
        for number, name in enumerate(some_of(charts)):
            page = tmp_path / f"{number}.html"
            dp.save(charts[name], page)
            done = visit(tab, page.as_uri())
            assert [address for address in done.requests if not address.startswith("data:")] == [
                page.as_uri()
            ], name
            assert not done.console, name
            assert tab.evaluate("document.querySelector('canvas, svg').getBoundingClientRect().width") > 100


def test_a_plot_is_not_saved_as_anything_else(charts: dict[str, Any], tmp_path: Path) -> None:
    for name in ("chart.json", "chart"):
        with pytest.raises(dp.InputError, match=r"must end in \.png, \.svg or \.html"):
            dp.save(charts["individual"], tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("other", ["report", pd.DataFrame({"a": [1]}), None])
def test_nothing_else_is_saved(other: Any, tmp_path: Path) -> None:
    with pytest.raises(dp.InputError, match="Expected a result of disclosure"):
        dp.save(other, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_colours_are_those_of_the_palette_and_texts_can_be_read(charts: dict[str, Any]) -> None:
    named = {BLUE, TURQUOISE, PLUM, ORANGE, PALE_BLUE, TEXT, QUIET_TEXT, RULE, TEXT_ON_DARK}
    for name, chart in charts.items():
        colours = set(re.findall(r"#[0-9a-fA-F]{3,8}\b", chart.to_json()))
        assert colours <= named, name
    for colour in (TEXT, QUIET_TEXT):
        assert contrast(colour, "#ffffff") >= 4.5
    for colour in (BLUE, TURQUOISE, PLUM, RULE):
        assert contrast(colour, "#ffffff") >= 3


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2.2 defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_key_that_is_not_in_sd_is_apart_from_one_that_names_another_level() -> None:
    gt = frame([(("x", ""), "a"), (("y", ""), "a"), (("z", ""), "a")])
    sd = frame([(("x", ""), "a"), (("y", ""), "b")])
    chart = individual_cap(gt, sd, KEYS, "t").to_dict()
    [places] = with_columns(chart, "GT", "SD")
    assert dict(zip(places["SD"], places["records"], strict=True)) == {"1": 1, "0": 1, "key not in SD": 1}
    assert places["SD_from"].is_unique
    assert chart["title"]["text"] == "t is easier to guess from SD than from GT for 0.0 % of GT records"
    assert (
        chart["title"]["subtitle"][0]
        == "Above the diagonal. Harder for 66.7 %; the key is not in SD for 33.3 %."
    )


# Attribute disclosure


def test_disclosure_shows_keys_repu_and_what_the_checks_flag() -> None:
    gt = frame([((str(i), ""), "a" if i < 90 else "b") for i in range(100)])
    sd = frame([((str(i), ""), "a") for i in range(95)])
    result = dp.disclosure(gt, sd, KEYS, "t", flags={"two_way": (0, 80)})
    chart = result.plot().to_dict()
    assert chart["title"]["text"] == "90 % of the people are copied in the synthetic table"
    of_targets = replace(result, found=result.found.head(0)).plot().to_dict()
    assert of_targets["title"]["text"].startswith("t stands out")
    *subtitle, bars = chart["title"]["subtitle"]
    assert subtitle == [f"Keys: {', '.join(KEYS)}", "repU 95.0 %, UiO 100.0 %"]
    assert bars == "Bars: the range of fresh samples of other people"
    [labels] = with_columns(chart, "flags")
    assert labels["flags"].tolist() == ["one-way: a; two-way: 91 pairs"]


def test_the_axis_fits_the_figures() -> None:
    """Marks between 0 and 9 percent lie over each other on an axis to 100."""
    result = dp.disclosure(people_of(200, 1), people_of(200, 2), ["key"])
    few = result.attribute.assign(
        Dorig=9.0, DiSCO=4.0, DiSCO_others=5.0, DiSCO_beyond=-1.0, DiSCO_beyond_se=1.0
    )
    svg = vl_convert.vegalite_to_svg(replace(result, attribute=few).plot().to_dict())
    ticks = [float(tick) for tick in re.findall(r"<text[^>]*>([\d.]+)</text>", svg)]
    assert 9 <= max(ticks) <= 10 and min(ticks) == 0


def people_of(records: int, seed: int) -> pd.DataFrame:
    """Three targets that the key says something of."""
    rng = np.random.default_rng(seed)
    key = rng.integers(0, 50, records)
    targets = {
        name: np.where(rng.random(records) < 0.5, key % 3, rng.integers(0, 3, records)) for name in "uvw"
    }
    return pd.DataFrame({"key": key, **targets})


def test_shows_the_figure_at_equal_sizes_beside_the_others() -> None:
    """If SD is larger, the figure of all its records has a mark of its own."""
    gt, sd = people_of(200, 1), people_of(600, 2)
    result = dp.disclosure(gt, sd, ["key"])
    chart = result.plot().to_dict()
    [dots] = [layer for layer in chart["layer"] if layer["mark"]["type"] == "point"]
    shapes = dots["encoding"]["shape"]["scale"]["range"]
    assert len(set(shapes)) == len(shapes) == 4
    [points] = with_columns(chart, "percent")[:1]
    drawn = points[points["column"] == "DiSCO_at_n"].set_index("target")["percent"]
    beside = result.attribute["DiSCO_others"] + result.attribute["DiSCO_beyond"]
    assert drawn.to_dict() == pytest.approx(beside.droplevel("synthesis").to_dict())
    assert chart["title"]["text"].startswith("Beyond chance, SD tells no more about any target")


def test_a_title_that_names_one_of_several_targets_is_corrected_for_their_number() -> None:
    """2.3 errors are beyond chance for one target, not for the largest of three; bars are as long."""
    result = dp.disclosure(people_of(200, 1), people_of(200, 2), ["key"])
    attribute = result.attribute.assign(DiSCO_others=40.0, DiSCO_beyond=[0.0, 2.3, 1.0], DiSCO_beyond_se=1.0)
    chart = replace(result, attribute=attribute).plot().to_dict()
    assert chart["title"]["text"].startswith("Beyond chance, SD tells no more about any target")
    [bars] = with_columns(chart, "low", "high")
    assert (bars["high"] - 40).tolist() == (40 - bars["low"]).tolist() == pytest.approx([2.43] * 3, abs=0.01)
    one = replace(result, attribute=attribute.xs("v", level="target", drop_level=False), targets=("v",))
    assert one.plot().to_dict()["title"]["text"].startswith("v stands out: SD tells 2.3 points more")


def test_after_exclusions_the_picture_says_what_each_figure_is_of() -> None:
    gt = frame(SMOKING)
    excluded = dp.Exclusions(target_levels={"t": ["T1"]})
    chart = dp.disclosure(gt, gt, KEYS, "t", exclude=excluded).plot().to_dict()
    assert chart["title"]["subtitle"][1].endswith("of all records; DiSCO of those not excluded")


# Relative errors


def test_relative_errors_stand_in_their_own_squares() -> None:
    numbers = pd.DataFrame({"k": range(40), "n": [1000 + 10 * i for i in range(40)]})
    risk = dp.prediction_risk(numbers, [numbers, numbers.assign(n=1)], ["k"], "n")
    near, far = with_columns(risk.plot().to_dict(), "from_GT", "from_SD")
    for squares, records in zip((near, far), (risk.records["n", 1], risk.records["n", 2]), strict=True):
        assert squares["records"].sum() == 40
        assert squares["equal"].sum() == 9
        error = records["relative_error_SD"]
        under = squares[squares["from_SD"] == "under 1"]
        assert under["records"].sum() == (error < 1).sum()
        assert squares[squares["from_SD"] == "50 to 100"]["records"].sum() == error.between(50, 99.9999).sum()
    assert far[far["from_SD"] == "50 to 100"]["records"].sum() == 40


def test_levels_have_no_relative_errors() -> None:
    table = pd.DataFrame({"k": list("ab") * 10, "t": list("xy") * 10})
    with pytest.raises(dp.InputError, match="no relative errors"):
        dp.prediction_risk(table, table, ["k"], "t").plot()
