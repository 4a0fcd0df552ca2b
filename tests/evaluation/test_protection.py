"""Disclosure protection is that of the plain reference, and SDMetrics' own wherever SDMetrics is right."""

import datetime
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import fields
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from reference import protection as reference
from support.refusals import refusal
from support.sampling import CI, examples
from support.strategies import Case, cases

import disclosure_pipeline as dp
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.protection import METHODS
from disclosure_pipeline.measures.samples import mean_of_population

# Against the reference


def protection(*arguments: Any, **options: Any) -> Any:
    """The library's figures of the only synthesis as attributes, beside the counts."""
    result = dp.disclosure_protection(*arguments, **options)
    [row], [distances] = result.figures.to_dict("records"), result.distances
    values = {str(name): value for name, value in row.items()}
    return SimpleNamespace(**values, distances=distances, sampled=result.sampled)


def interval(of: Any, name: str) -> tuple[float, float]:
    return getattr(of, f"{name}_low"), getattr(of, f"{name}_high")


PROBLEMS = cases(with_exclusions=False, most_syntheses=1).filter(
    lambda case: all(
        any(record[column.name] is not None for record in table)
        for table in (case.ground_truth, *case.synthetics)
        for column in case.columns
    )
)


def ask(case: Case, method: str, bins: int, **options: Any) -> Any:
    """Ask for all columns of numbers that may be grouped as continuous ones."""
    continuous = [column.name for column in case.columns if column.grouped]
    tables = case.ground_truth_frame, case.synthetic_frames[0]
    return protection(*tables, case.keys, case.targets, method, continuous, bins, **options)


def figures(actual: Any) -> dict[str, Any]:
    """Every figure by its name; not-a-number as None, so that it equals itself."""
    values = {field.name: getattr(actual, field.name) for field in fields(reference.Protection)}
    return {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in values.items()}


@examples(20)
@given(case=PROBLEMS, method=st.sampled_from(METHODS), bins=st.integers(1, 12))
def test_every_figure_is_the_float_of_the_reference(case: Case, method: str, bins: int) -> None:
    continuous = [column.name for column in case.columns if column.grouped]
    [sd] = case.synthetics
    expected = reference.protection(case.ground_truth, sd, case.keys, case.targets, method, continuous, bins)
    assert figures(ask(case, method, bins)) == figures(expected)


def test_by_hand() -> None:
    gt = pd.DataFrame({"k1": [1, 1, 2, 9], "k2": [1, 2, 2, 9], "t": ["a", "a", "b", "c"]})
    sd = pd.DataFrame({"k1": [1, 1, 1, 3], "k2": [1, 1, 3, 2], "t": ["a", "b", "a", "b"]})
    cap, zero, general = (protection(gt, sd, ["k1", "k2"], "t", method) for method in METHODS)
    # (1, 1) is there twice, once with "a".
    assert (cap.cap_protection, cap.scored) == (1 / 2, 1)
    assert (zero.cap_protection, zero.scored) == ((1 / 2 + 3) / 4, 4)
    # (1, 2): at distance 1 all four, two of them "a". (2, 2): the one with k2 = 2, "b". (9, 9): all, no "c".
    assert general.cap_protection == (1 / 2 + 2 / 4 + 0 + 1) / 4
    assert general.distances == (1, 2, 1)
    assert cap.baseline_protection == 2 / 3
    assert cap.majority_protection == 1 / 2
    assert cap.proportional_protection == 1 - (4 + 1 + 1) / 16
    assert cap.proportional_score == 0.5 / 0.625


def test_levels_beyond_64_bits() -> None:
    """30 keys of 1000 levels each: neither their combinations nor those of most subsets fit into 64 bits."""
    keys = [f"k{k}" for k in range(30)]
    gt = pd.DataFrame({key: range(1000) for key in keys} | {"t": range(1000)})
    sd = gt.iloc[::-1].assign(k0=-1)
    result = protection(gt, sd, keys, "t", "generalized_cap")
    assert result.distances[:3] == (0, 1000, 0)
    assert result.cap_protection == 0
    assert result.baseline_protection == 0.999


# Continuous columns


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("other", ["s", "ns"])
def test_dates_are_binned_alike_at_any_resolution(unit: str, other: str) -> None:
    days = [*pd.date_range("2020-01-01", periods=11), pd.NaT, pd.Timestamp("2099-01-01")]
    gt = pd.DataFrame({"k": days[:11], "t": list("aabbccddeef")}).astype({"k": f"datetime64[{unit}]"})
    sd = pd.DataFrame({"k": days, "t": list("aabbccddeefaf")}).astype({"k": f"datetime64[{other}]"})
    result = protection(gt, sd, ["k"], "t", continuous=["k"], bins=5)
    # Closed on the right: aab, bc, cd, de, and ef with the f of 2099.
    assert result.scored == 11
    wrong = [1 / 3, 1 / 3, 2 / 3, *[1 / 2] * 6, 2 / 3, 1 / 3]
    assert result.cap_protection == pytest.approx(sum(wrong) / 11)


def test_durations_and_zoned_dates_can_be_continuous() -> None:
    hours = pd.to_timedelta(range(4), unit="h")
    zoned = pd.Timestamp("2020-01-01", tz="UTC") + hours
    for values in (hours, zoned):
        gt = pd.DataFrame({"k": values, "t": list("abcd")})
        result = protection(gt, gt, ["k"], "t", continuous=["k"], bins=3)
        assert result.cap_protection == 0.25


@pytest.mark.parametrize("start", [0, 2**53, 2**62, 10**30])
def test_whole_numbers_of_any_size_are_binned_exactly(start: int) -> None:
    values = [start + i for i in range(7)]
    gt = pd.DataFrame({"k": values, "t": range(7)})
    result = protection(gt, gt, ["k"], "t", continuous=["k"], bins=6)
    assert result.cap_protection == 1 / 7  # the first bin holds the two lowest
    beyond = gt.assign(k=pd.Series([*values[:-1], 1e300], dtype=object))
    assert protection(gt, beyond, ["k"], "t", continuous=["k"], bins=6).scored == 7


def test_fractions_of_any_type() -> None:
    tenths = [Decimal(n) / 10 for n in range(11)]
    gt = pd.DataFrame({"k": tenths, "t": range(11)})
    assert protection(gt, gt, ["k"], "t", continuous=["k"]).cap_protection == 1 / 11
    wide = pd.DataFrame({"k": [-1.7e308, 0.1, 1.7e308], "t": range(3)})
    assert protection(wide, wide, ["k"], "t", continuous=["k"], bins=3).cap_protection == 0


def test_a_constant_column_is_widened_as_sdmetrics_does() -> None:
    for value in (5, -3000, 0, 0.25, -2.5e10):
        gt = pd.DataFrame({"k": [value] * 3, "t": list("abc")})
        near = pd.DataFrame({"k": [value, value + 0.0007, value * 1.0005], "t": list("abc")})
        for sd, bins in ((gt, 10), (near, 3), (near, 7)):
            result = protection(gt, sd, ["k"], "t", continuous=["k"], bins=bins)
            expected = sdmetrics(gt, sd, ["k"], ["t"], "cap", ["k"], bins)
            assert result.cap_protection == pytest.approx(expected["cap_protection"], nan_ok=True)


# Against SDMetrics


def sdmetrics(
    gt: pd.DataFrame,
    sd: pd.DataFrame,
    keys: Sequence[str],
    targets: Sequence[str],
    method: str = "cap",
    continuous: Sequence[str] | None = None,
    bins: int = 10,
) -> Any:
    compared = pytest.importorskip("sdmetrics.single_table", reason="compares with SDMetrics")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compared.DisclosureProtection.compute_breakdown(
            gt, sd, keys, targets, method, continuous, bins
        )


PLAIN: dict[str, list[Any]] = {
    "text": ["a", "b", "A", "", "1", None],
    "integer": [-2, 0, 1, 2, 18, 100],
    "float": [-0.5, 0.0, 0.1, 0.3, 1.0, 2.5, math.nan],
    "boolean": [True, False],
}


@st.composite
def plain_tables(draw: DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, list[str], list[str], list[str]]:
    """Tables of the types that SDMetrics can read, with keys, sensitive and continuous columns."""
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=6, unique=True))
    guessed = draw(st.integers(1, min(2, len(names) - 1)))
    kinds = {name: draw(st.sampled_from(list(PLAIN))) for name in names}
    tables = []
    for _ in range(2):
        rows = draw(st.integers(1, 15))
        values = {
            name: draw(st.lists(st.sampled_from(PLAIN[kind]), min_size=rows, max_size=rows))
            for name, kind in kinds.items()
        }
        assume(all(not pd.isna(value).all() for value in map(pd.Series, values.values())))
        tables.append(
            pd.DataFrame(
                {
                    name: pd.Series(value, dtype=object if kinds[name] == "text" else None)
                    for name, value in values.items()
                }
            )
        )
    numeric = [name for name in names if kinds[name] in {"integer", "float"}]
    continuous = [name for name in numeric if draw(st.booleans())]
    return tables[0], tables[1], names[guessed:], names[:guessed], continuous


@examples(20)
@given(tables=plain_tables(), method=st.sampled_from(METHODS), bins=st.integers(1, 12))
def test_sdmetrics_says_the_same(
    tables: tuple[pd.DataFrame, pd.DataFrame, list[str], list[str], list[str]], method: str, bins: int
) -> None:
    gt, sd, keys, sensitive, continuous = tables
    result = protection(gt, sd, keys, sensitive, method, continuous, bins)
    expected = sdmetrics(gt, sd, keys, sensitive, method, continuous, bins)
    for name, figure in expected.items():
        assert getattr(result, name) == pytest.approx(figure, rel=1e-9, abs=1e-12, nan_ok=True), name


def test_figures_under_the_names_of_sdmetrics() -> None:
    """As `compute_breakdown` returns them, of each synthesis; of a sample, as an estimate."""
    random = np.random.default_rng(1)
    gt, *syntheses = (
        pd.DataFrame({"k": random.integers(0, 9, 300), "t": random.choice(list("xyz"), 300)})
        for _ in range(3)
    )
    result = dp.disclosure_protection(gt, syntheses, ["k"], "t")
    for number, sd in enumerate(syntheses, start=1):
        actual: Any = result.to_sdmetrics(number)
        assert {"score": actual["score"], **actual["details"]} == pytest.approx(
            sdmetrics(gt, sd, ["k"], ["t"])
        )
        assert actual["metric"] == "DisclosureProtection"
    with pytest.raises(InputError, match="from 1 to 2, not 3"):
        result.to_sdmetrics(3)
    estimate: Any = dp.disclosure_protection(gt, syntheses[0], ["k"], "t", records=100).to_sdmetrics()
    assert estimate["metric"] == "DisclosureProtectionEstimate"
    details = estimate["details"]
    assert details["cap_protection_low"] <= details["cap_protection"] <= details["cap_protection_high"]
    assert json.loads(json.dumps(estimate)) == estimate


# Where SDMetrics is wrong


PAIRS = pd.DataFrame({"k": ["a", "b", "a", "b"], "t": ["x", "y", "y", "y"]})
DATED = PAIRS.assign(k=pd.to_datetime(["2020-01-01", "2020-02-01"] * 2))
DAYS = pd.DataFrame({"k": pd.date_range("2020-01-01", periods=4, unit="ns"), "t": list("abcd")})
DAYS_AND_NONE = pd.DataFrame({"k": [*DAYS["k"], pd.NaT], "t": list("abcde")})
LARGE = pd.DataFrame({"k": [2**53, 2**53 + 1], "x": [0.5, 0.5], "t": ["a", "b"]})
FLOATS = pd.DataFrame({"k": [1.0, 2.0, 3.0, 4.0], "t": list("abcd")})
NUMBERS = pd.DataFrame({"k": [1, 2, 3, 4], "t": [1, 2, 1, 2]})
FLAGS = pd.DataFrame({"k": [True, False], "t": ["a", "b"]})
EMPTY = FLOATS.assign(k=math.nan)
INFINITE = {
    f"{infinity} as {dtype}": FLOATS.assign(k=pd.Series([infinity, 2.0, 3.0, 4.0], dtype=dtype))
    for infinity in (math.inf, -math.inf)
    for dtype in ("float64", "Float32", "object")
}
ENDS = pd.DataFrame({"k": [0, 30, 14, 15], "t": ["a", "a", "b", "a"]})
PROBE = pd.DataFrame({"k": [15, 14], "t": ["a", "b"]})
MANY = pd.DataFrame({f"t{i}": [0, 1] for i in range(64)} | {"k": ["a", "b"]})
NO_INFINITE, NO_VALUES = ("'k' of the {} holds infinite values", "'k' of the {} holds only missing values")
CONTINUOUS = {"continuous": ["k"]}

Figures = dict[str, Any]
# Tables, further arguments, what SDMetrics says (figures, or its error), and what is right (or our refusal).
CASES: dict[
    str, tuple[pd.DataFrame, pd.DataFrame, dict[str, Any], Figures | type[Exception] | None, Figures | str]
] = {
    "dates": (DATED, DATED, {}, TypeError, {"cap_protection": 0.25}),
    # It stretches the range to the year 1677, and all other dates fall into the last bin.
    "a missing date": (
        *(DAYS_AND_NONE, DAYS_AND_NONE, CONTINUOUS),
        *({"cap_protection": pytest.approx(3 / 4)}, {"cap_protection": 0}),
    ),
    "seconds and nanoseconds": (
        *(DAYS, DAYS.astype({"k": "datetime64[s]"}), CONTINUOUS | {"method": "generalized_cap"}),
        *({"cap_protection": 0.75}, {"cap_protection": 0}),
    ),
    "large integers beside floats": (
        *(LARGE, LARGE, {"keys": ["k", "x"]}, {"cap_protection": 0.5}, {"cap_protection": 0}),
    ),
    "large integers as floats": (
        *(LARGE, LARGE.assign(k=LARGE["k"].astype(float)), {"keys": ["k", "x"]}, None, {"scored": 1}),
    ),
    "text against numbers": (
        *(NUMBERS, NUMBERS.astype(str), {}, {"score": pytest.approx(math.nan, nan_ok=True)}),
        "'k' holds numbers in the ground truth and text in the synth",
    ),
    "text against numbers, of all records": (
        *(NUMBERS, NUMBERS.astype(str), {"method": "zero_cap"}, {"score": 1}),
        "'k' holds numbers in the ground truth and text in the synth",
    ),
    # In SD, one falls into an end bin, the other is taken for missing.
    "inf in SD": (
        *(FLOATS, INFINITE["inf as float64"], CONTINUOUS, {"cap_protection": pytest.approx(1 / 6)}),
        NO_INFINITE.format("synthetic table"),
    ),
    "-inf in SD": (
        *(FLOATS, INFINITE["-inf as float64"], CONTINUOUS, {"cap_protection": 0}),
        NO_INFINITE.format("synthetic table"),
    ),
    **{
        f"{name} in GT": (table, FLOATS, CONTINUOUS, Exception, NO_INFINITE.format("ground truth"))
        for name, table in INFINITE.items()
    },
    # A level like any other.
    **{f"{name} as it is": (table, FLOATS, {}, None, {"scored": 3}) for name, table in INFINITE.items()},
    "no value in GT": (EMPTY, FLOATS, CONTINUOUS, ValueError, NO_VALUES.format("ground truth")),
    "no value in SD": (
        *(FLOATS, EMPTY, {"method": "zero_cap"}, {"score": 1}, NO_VALUES.format("synthetic table")),
    ),
    "no value in the binned SD": (FLOATS, EMPTY, CONTINUOUS, None, NO_VALUES.format("synthetic table")),
    "no value in a target": (
        *(FLOATS, EMPTY, {"keys": ["t"], "targets": ["k"]}, None, NO_VALUES.format("synthetic table")),
    ),
    "what is known already": (
        *(PAIRS, PAIRS, {"keys": ["k", "t"]}, {"score": 0}, "'t' cannot be a key and a target at once"),
    ),
    "columns that nobody needs": (
        *(PAIRS.assign(free_text=object()), PAIRS, {}, ValueError, {"cap_protection": 0.25}),
    ),
    # 30 years in 22 bins: the edge that is 15 comes out a little below it, so that 15 is put above it.
    "rounded edges": (
        *(ENDS, PROBE, CONTINUOUS | {"bins": 22}, {"cap_protection": 0}, {"cap_protection": 0.5}),
    ),
    "an empty GT": (PAIRS[:0], PAIRS, {}, {"baseline_protection": -math.inf}, "has no records"),
    "an empty SD": (PAIRS, PAIRS[:0], {"method": "generalized_cap"}, ZeroDivisionError, "has no records"),
    "true for 1": (
        *(FLAGS, FLAGS.assign(k=[1, 0]), {}, {"cap_protection": 0}),
        "'k' holds true/false in the ground truth and numbers in",
    ),
    "many combinations": (
        *(MANY, MANY, {"targets": [name for name in MANY if name != "k"]}),
        *({"baseline_protection": -math.inf}, {"baseline_protection": 1 - 2**-64}),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_sdmetrics_is_wrong(case: str) -> None:
    gt, sd, further, theirs, right = CASES[case]
    arguments = {"keys": ["k"], "targets": ["t"], "method": "cap"} | further
    if isinstance(theirs, type):
        with pytest.raises(theirs):
            sdmetrics(gt, sd, **arguments)
    elif isinstance(theirs, dict):
        assert {name: sdmetrics(gt, sd, **arguments)[name] for name in theirs} == theirs
    if isinstance(right, dict):
        assert {name: getattr(protection(gt, sd, **arguments), name) for name in right} == right
    else:
        with pytest.raises(dp.InputError, match=right):
            protection(gt, sd, **arguments)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        *(("category", ["a", "b", None, "b"]), ("Int64", [1, 2, None, 2])),
        *(("boolean", [True, False, None, False]), ("Float64", [0.5, 1.5, None, 1.5])),
    ],
)
def test_sdmetrics_cannot_read_categories_and_nullable_columns(dtype: str, values: list[Any]) -> None:
    frame = PAIRS.assign(k=pd.Series(values, dtype=dtype))
    with pytest.raises(TypeError):
        sdmetrics(frame, frame, ["k"], ["t"])
    plain = frame.astype(object).where(frame.notna(), None)
    result = protection(frame, frame, ["k"], "t")
    assert result.cap_protection == sdmetrics(plain, plain, ["k"], ["t"])["cap_protection"]


def test_more_combinations_than_floats_have() -> None:
    many = pd.concat([MANY.drop(columns="k").add_suffix(f"_{i}") for i in range(20)], axis=1)
    result = protection(many.assign(k=["a", "b"]), many.assign(k=["a", "b"]), ["k"], [*many])
    assert (result.baseline_protection, result.score, result.majority_protection) == (1, 0, 0.5)


def independent(seed: int, rows: int) -> pd.DataFrame:
    """Keys that tell nothing about a target of which 95 % is one level."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"k": rng.integers(0, 10, rows), "t": np.where(rng.random(rows) < 0.05, "rare", "common")}
    )


def test_sdmetrics_calls_an_independent_table_disclosive() -> None:
    gt, sd = independent(1, 2000), independent(2, 2000)
    assert sdmetrics(gt, sd, ["k"], ["t"])["score"] == pytest.approx(0.19, abs=0.03)
    result = protection(independent(1, 100_000), independent(2, 100_000), ["k"], "t")
    assert result.score == pytest.approx(0.19, abs=0.005)
    assert result.proportional_score == pytest.approx(1, abs=0.02)
    assert result.majority_score == 1


def unique_copy(rows: int) -> pd.DataFrame:
    """A table in which every record has a key of its own."""
    return pd.DataFrame({"k": range(rows), "t": [f"{i % 10}" for i in range(rows)]})


def test_sdmetrics_estimates_a_copy_to_be_safe() -> None:
    estimate = pytest.importorskip("sdmetrics.single_table").DisclosureProtectionEstimate
    gt = unique_copy(20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = estimate.compute_breakdown(
            gt, gt, ["k"], ["t"], "zero_cap", num_rows_subsample=200, num_iterations=2, verbose=False
        )
    assert actual["score"] == 1
    for method in METHODS:
        ours = protection(gt, gt, ["k"], "t", method, records=200)
        assert ours.score == 0
        assert interval(ours, "score")[0] == 0
        assert 0 < interval(ours, "score")[1] < 0.03


# The estimate


@examples(20)
@given(case=PROBLEMS, method=st.sampled_from(METHODS), more=st.integers(0, 5))
def test_an_estimate_from_all_records_is_exact(case: Case, method: str, more: int) -> None:
    result = ask(case, method, 10, records=len(case.ground_truth) + more)
    assert figures(result) == figures(ask(case, method, 10))
    assert result.sampled == len(case.ground_truth)
    if not math.isnan(result.cap_protection):
        assert interval(result, "cap_protection") == (result.cap_protection, result.cap_protection)


@pytest.mark.parametrize("method", METHODS)
def test_the_interval_holds_the_exact_figure_as_often_as_it_says(method: str) -> None:
    rng = np.random.default_rng(3)
    tables = []
    for rows in (3000, 2000):
        keys = {f"k{i}": rng.integers(0, 12, rows) for i in (1, 2, 3)}
        tables.append(pd.DataFrame(keys | {"t": (keys["k1"] + rng.integers(0, 3, rows)) % 4}))
    gt, sd = tables
    asked = (gt, sd, ["k1", "k2", "k3"], "t", method)
    exact = protection(*asked)
    runs = [protection(*asked, records=300, seed=seed, confidence=0.8) for seed in range(100)]
    ends = [interval(run, "cap_protection") for run in runs]
    assert sum(low <= exact.cap_protection <= high for low, high in ends) >= 80
    assert np.mean([run.cap_protection for run in runs]) == pytest.approx(exact.cap_protection, abs=0.01)
    assert len({run.cap_protection for run in runs}) > 50
    for name in ("baseline_protection", "majority_protection", "proportional_protection"):
        assert getattr(runs[0], name) == getattr(exact, name)
    low, high = interval(runs[0], "score")
    assert low <= runs[0].score <= high <= 1


def test_nothing_matched_is_not_a_number() -> None:
    gt, sd = unique_copy(50), unique_copy(50).assign(k=range(100, 150))
    result = protection(gt, sd, ["k"], "t", records=10)
    assert math.isnan(result.cap_protection)
    assert math.isnan(result.score)
    assert all(math.isnan(end) for end in (*interval(result, "cap_protection"), *interval(result, "score")))
    assert all(math.isnan(end) for end in mean_of_population(np.empty(0), 10, 0.95))
    exact = protection(gt, sd, ["k"], "t")
    assert math.isnan(exact.score)
    assert exact.matched == 0


POPULATIONS = {
    "shares": lambda rng, size: rng.choice([0, 0.5, 2 / 3, 1], size, p=[0.3, 0.3, 0.2, 0.2]),
    "nearly alike": lambda rng, size: 0.4 + 0.2 * rng.random(size),
    "rarely right": lambda rng, size: (rng.random(size) < 0.02).astype(float),
    "right or wrong": lambda rng, size: rng.integers(0, 2, size).astype(float),
}


@pytest.mark.parametrize("kind", list(POPULATIONS))
@pytest.mark.parametrize("drawn", [50, 400, 1800])
def test_the_interval_of_a_mean_covers_it_and_is_not_much_too_wide(kind: str, drawn: int) -> None:
    rng = np.random.default_rng(drawn)
    values = POPULATIONS[kind](rng, 2000)
    runs = 2000 if CI else 200
    ends = [mean_of_population(rng.choice(values, drawn, replace=False), 2000, 0.9) for _ in range(runs)]
    covered = np.mean([low <= values.mean() <= high for low, high in ends])
    assert covered >= 0.9
    normal = 2 * 1.645 * values.std() * math.sqrt((1 - drawn / 2000) / drawn)
    width = np.mean([high - low for low, high in ends])
    if drawn >= 400:  # few draws do not tell the variance
        assert width < 2.2 * normal or kind == "nearly alike"
        # Hoeffding's knows no variance, and so fits where this is the largest that there is.
        assert width < 2 * math.sqrt(math.log(20) / (2 * drawn)) or kind == "right or wrong"


@examples(20)
@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    more=st.integers(0, 50),
    confidence=st.sampled_from([0.01, 0.5, 0.95, 0.9999]),
)
def test_an_interval_holds_the_mean_of_the_sample(values: list[float], more: int, confidence: float) -> None:
    low, high = mean_of_population(np.array(values), len(values) + more, confidence)
    mean = math.fsum(values) / len(values)
    assert -1e-12 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1 + 1e-12
    if not more:
        assert low == pytest.approx(mean)
        assert high == pytest.approx(mean)


# Several syntheses, and how a result is printed


@pytest.mark.parametrize("method", METHODS)
def test_a_sequence_of_syntheses_has_the_result_of_each(method: str) -> None:
    rng = np.random.default_rng(8)
    gt, *syntheses = (
        pd.DataFrame({f"k{i}": rng.integers(0, 6, rows) for i in (1, 2, 3)} | {"t": rng.integers(0, 3, rows)})
        for rows in (200, 150, 120)
    )
    keys = ["k1", "k2", "k3"]
    all_options: list[dict[str, Any]] = [{"continuous": ["k3"], "bins": 3}, {"records": 40}]
    for options in all_options:
        results = [dp.disclosure_protection(gt, sd, keys, "t", method, **options) for sd in syntheses]
        both = dp.disclosure_protection(gt, syntheses, keys, "t", method, **options)
        assert both.figures.to_numpy().tolist() == [r.figures.to_numpy()[0].tolist() for r in results]
        assert both.distances == tuple(result.distances[0] for result in results)
        assert both.N_s == (150, 120)
        alone = dp.disclosure_protection(gt, tuple(syntheses[:1]), keys, "t", method, **options)
        pd.testing.assert_frame_equal(alone.figures, results[0].figures)


def test_it_prints_as_a_table_with_direction_and_unit() -> None:
    result = dp.disclosure_protection(PAIRS, PAIRS, ["k"], "t")
    heading, scored, table = str(result).split("\n\n")
    assert "high is safe" in heading
    assert "from 0 to 1" in heading
    assert scored == "4 of 4 GT records scored, 4 SD records"
    assert [line.split("  ")[0] for line in table.splitlines()[1:]] == [
        "with SD",
        "no SD, uniform",
        "no SD, majority",
        "no SD, proportional",
    ]
    assert repr(result) == str(result)
    gt = pd.concat([PAIRS] * 20)
    estimate = str(dp.disclosure_protection(gt, [gt, gt], ["k"], "t", records=30))
    assert "Estimated from 30 sampled GT records; intervals of 95 % confidence" in estimate
    assert " to " in estimate.splitlines()[-4]
    assert "Synthesis 2: " in estimate


# Refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "CAP"}, "method must be one of 'cap', 'zero_cap', 'generalized_cap', not 'CAP'. Did you"),
        ({"method": "generalised_cap"}, "Did you mean 'generalized_cap'"),
        ({"method": None}, "method must be one of"),
        ({"continuous": "salary"}, "continuous must be a list of column names"),
        ({"continuous": ["salary", "salary"]}, "continuous names 'salary' more than once"),
        ({"continuous": ["age"]}, "continuous names 'age', which is neither a key nor a target. These are"),
        ({"continuous": ["salery"]}, "which is neither a key nor a target. Did you mean 'salary'"),
        ({"continuous": ["k"]}, "'k' holds text: only numbers, dates and durations can be continuous"),
        ({"continuous": ["yes"], "keys": ["yes"]}, "'yes' holds true/false: only numbers"),
        ({"bins": 0}, "bins must be a whole number from 1 to 1,000,000, not 0"),
        *(({"bins": bins}, "bins must be a whole number") for bins in (True, 2.5, 10**9)),
        ({"records": 0}, "records must be a whole number of at least 1, not 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, not -1"),
        ({"seed": None}, "seed must be a whole number"),
        ({"confidence": 1}, "confidence must be a number between 0 and 1"),
        ({"confidence": math.nan}, "confidence must be a number between 0 and 1"),
    ],
)
def test_refuses_invalid_arguments(changes: dict[str, Any], message: str) -> None:
    table = PAIRS.assign(salary=[1.5, 2.5, 3.5, 4.5], age=[1, 2, 3, 4], yes=[True, False, True, False])
    with pytest.raises(dp.InputError) as refused:
        protection(table, table, **{"keys": ["k"], "targets": ["t", "salary"]} | changes)
    assert message in str(refused.value)


def test_no_refusal_tells_a_value_of_gt() -> None:
    secret = pd.DataFrame({"k": ["Q7secret", "x"], "t": [math.inf, 4.0], "e": [None, None]})
    sd = pd.DataFrame({"k": ["x", "y"], "t": [1.0, 2.0], "e": [1.0, 2.0]})
    for keys, sensitive, continuous in (
        (["k"], "t", ["t"]),
        (["k"], "e", []),
        (["k"], "t", ["k"]),
        (["missing"], "t", []),
    ):
        refusal(partial(protection, secret, sd, keys, sensitive, continuous=continuous), "secret", "4.0")
    dated = sd.assign(k=[datetime.date(2020, 1, 1)] * 2)
    refusal(partial(protection, secret, dated, ["k"], "t"), "secret")


@examples(5, 20)
@given(seed=st.integers(0, 2**32 - 1))
def test_larger_tables_with_many_distances(seed: int) -> None:
    """A few hundred records with more keys than the random small tables have."""
    rng = np.random.default_rng(seed)
    names = [f"k{i}" for i in range(6)]
    tables = [
        pd.DataFrame({name: rng.integers(0, 5, rows) for name in names} | {"t": rng.integers(0, 3, rows)})
        for rows in (80, 30)
    ]
    gt, sd = (
        [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
        for table in tables
    )
    result = protection(tables[0], tables[1], names, "t", "generalized_cap")
    expected = reference.protection(gt, sd, names, ["t"], "generalized_cap")
    assert figures(result) == figures(expected)
