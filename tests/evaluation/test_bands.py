"""Amounts that are told to within a band: against the reference, and what must hold of any tables."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import bands as reference
from support.figures import assert_same_frame
from support.sampling import examples, on_some_days, only_in_ci
from support.small_tables import measure_cells

import disclosure_pipeline as dp
from disclosure_pipeline.measures.catalogue import OF_BANDS
from disclosure_pipeline.measures.chance import difference_by_chance
from disclosure_pipeline.measures.frequency import combine_keys, frequency_tables
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.grouping import Within, band_of

pytestmark = pytest.mark.usefixtures("no_guards")

CERTAIN = ("DiS_within", "DiSCO_within", "precision", "DiSCO_within_others", "DiSCO_within_beyond")
GUESSED_WITHIN = [figure for figure in OF_BANDS if figure.name == "guessed_within"]
CERTAINTIES = (Fraction(1, 2), Fraction(2, 3), Fraction(1))
# Edges that floats miss: 1.1 + 0.1, 0.98 * 100, and numbers around 0.
AMOUNTS = [None, -100, -98, -8, 0, 0.1, 1.1, 1.2, 1.3, 98, 100, 102, 104]
WITHINS = [0, 0.02, 0.1, 0.5, 2, 100, {"amount": 0.1}, {"share": 0.25}]
Record = tuple[str, float | None]


def exactly(table: Sequence[Record]) -> list[tuple[str, Fraction | None]]:
    """All numbers are taken as they are written."""
    return [(key, None if value is None else Fraction(str(value))) for key, value in table]


def band_of_reference(within: Any, special: Sequence[float]) -> tuple[Any, Fraction, list[Fraction], bool]:
    """What lies in a band, its size, the special values, and whether it is a share; below 1 it is."""
    if not isinstance(within, Mapping):
        within = {"share" if within < 1 else "amount": within}
    [(kind, number)] = within.items()
    size, codes = Fraction(str(number)), [Fraction(str(value)) for value in special]
    lies = reference.band(share=size if kind == "share" else None, amount=size, special=codes)
    return lies, size, codes, kind == "share"


def frame(records: Sequence[Record], kind: str = "float") -> pd.DataFrame:
    values = [value for _, value in records]
    amounts: Any = pd.Series(values, dtype="float64")
    if kind == "decimal":
        amounts = pd.Series(
            [None if value is None else Decimal(str(value)) for value in values], dtype=object
        )
    return pd.DataFrame({"key": pd.Series([key for key, _ in records], dtype=object), "amount": amounts})


def measure(gt: pd.DataFrame, sd: Any, within: Any, **options: Any) -> dp.Disclosure:
    return dp.disclosure(gt, sd, ["key"], "amount", within={"amount": within}, **options)


records = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(AMOUNTS)), min_size=2, max_size=6)


def numbers(low: int, high: int) -> st.SearchStrategy[list[int] | None]:
    return st.none() | st.lists(st.integers(low, high), min_size=6, max_size=6)


@on_some_days
@examples(60)
@example([("a", None), ("a", None)], [("a", -100), ("a", 100)], 100, (0.0, 98.0), "float", None, None)
@given(
    records,
    records,
    st.sampled_from(WITHINS),
    st.sampled_from([(), (-8.0,), (0.0, 98.0)]),
    st.sampled_from(["float", "decimal"]),
    numbers(1, 9),
    numbers(0, 3),
)
def test_all_figures_are_those_of_the_reference(
    gt: list[Record],
    sd: list[Record],
    within: Any,
    special: tuple[float, ...],
    kind: str,
    weights: list[int] | None,
    units: list[int] | None,
) -> None:
    people, synthetic = frame(gt, kind), frame(sd, kind)
    options: dict[str, Any] = {"special_values": {"amount": list(special)}, "certainty": CERTAINTIES}
    if weights:
        people["weight"], options["weights"] = weights[: len(gt)], "weight"
    if units:
        people["person"], options["unit"] = units[: len(gt)], "person"
    result = measure(people, synthetic, within, **options)
    lies, size, codes, is_share = band_of_reference(within, special)
    tables = exactly(gt), exactly(sd)
    of_people = (of and of[: len(gt)] for of in (weights, units))
    expected = reference.figures(*tables, lies, size, codes, CERTAINTIES, *of_people, is_share=is_share)
    row, basis = result.bands.iloc[0], "_weighted" if weights else ""
    actual = {name: row[f"{name}{basis}"] for name in expected if " at " not in name}
    of_certainty = result.band_certainty.droplevel(["target", "synthesis"])
    if not weights:
        actual |= {f"{name} at {c}": of_certainty[name][float(c)] for c in CERTAINTIES for name in CERTAIN}
        assert actual.keys() == expected.keys()
    assert actual == pytest.approx({name: expected[name] for name in actual}, abs=1e-6, nan_ok=True)
    for name, share in reference.overlap(*tables, lies).items():
        shared = math.nan if share is None else float(share)
        assert result.target_overlap[name].item() == pytest.approx(shared, nan_ok=True)
    if weights:
        row = measure(people.assign(weight=3), synthetic, within, **options).bands.iloc[0]
        for name in ("DiS_within_beyond", "DiSCO_within_beyond", "guessed_within_beyond"):
            assert row[f"{name}_weighted_se"] == pytest.approx(row[f"{name}_se"], abs=1e-6)


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_there_is_a_doubt_if_few_amounts_are_in_the_band(engine: str, tmp_path: Path) -> None:
    gt, sd = incomes(2_000, 1)
    doubts = {}
    for name, factor in (("alike", 1), ("thousands", 1000)):
        paths = tmp_path / "gt.csv", tmp_path / f"{name}.csv"
        gt.to_csv(paths[0], index=False)
        sd.assign(amount=sd["amount"] / factor).to_csv(paths[1], index=False)
        result = dp.disclosure(*paths, ["key"], "amount", within={"amount": 0.02}, engine=engine)
        doubts[name] = [doubt for doubt in result.comparability_doubts if "'amount'" in doubt]
    assert not doubts["alike"]
    [doubt] = doubts["thousands"]
    assert doubt.startswith(
        "Column 'amount': the tables share few amounts, even within the band around them."
    )
    assert "Are both in one unit?" in doubt


@pytest.mark.parametrize("seed", range(3))
def test_many_records_of_a_key_are_those_of_the_reference(seed: int) -> None:
    """Nearly all records of a key fit into one band, or all but one or two do."""
    rng = np.random.default_rng(seed)
    tables = []
    for number in (17, 16 + seed % 2):
        strays = rng.random(number) < (0.0, 0.05, 0.1)[seed % 3]
        amounts = np.where(strays, rng.integers(0, 400, number), 100 + rng.integers(-3, 4, number))
        keys = rng.choice(list("aaab"), number).tolist()
        tables.append(list(zip(keys, map(float, amounts), strict=True)))
    for within in (0.03, 6):
        lies, size, codes, is_share = band_of_reference(within, ())
        gt, sd = map(exactly, tables)
        expected = reference.figures(gt, sd, lies, size, codes, is_share=is_share)
        row = measure(frame(tables[0]), frame(tables[1]), within).bands.iloc[0]
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def incomes(records: int, seed: int, copied: float = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People of twenty areas with an amount each, and a fresh table that a share of them is copied into."""
    rng = np.random.default_rng(seed)
    tables = []
    for _ in range(2):
        area = rng.integers(0, 20, records)
        amount = np.rint(rng.lognormal(7 + area / 40, 0.1, records))
        tables.append(pd.DataFrame({"key": area, "age": rng.integers(0, 20, records), "amount": amount}))
    number = int(copied * records)
    tables[1].iloc[:number] = (
        tables[0].iloc[:number].assign(amount=lambda some: (some["amount"] * 1.01).round(2))
    )
    return tables[0], tables[1]


def told(gt: pd.DataFrame, sd: Any, within: Any, **options: Any) -> pd.DataFrame:
    measured = dp.disclosure(gt, sd, ["key", "age"], "amount", within={"amount": within}, **options)
    return measured.bands.join(measured.band_certainty.unstack().pipe(flat)) if options else measured.bands


def flat(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_axis([f"{name} at {c}" for name, c in frame.columns.to_flat_index()], axis=1)


@pytest.mark.parametrize("within", [0.02, {"amount": 30}])
def test_neither_order_nor_currency_nor_sign_matters(within: Any) -> None:
    gt, sd = incomes(250, 3, copied=0.3)
    options: dict[str, Any] = {"certainty": (0.5, 0.9)}
    expected = told(gt, [sd, sd[:150], pd.concat([sd, sd])], within, **options)
    shuffled = [table.sample(frac=1, random_state=1) for table in (sd, sd[:150], pd.concat([sd, sd]))]
    assert_same_frame(told(gt.sample(frac=1, random_state=2), shuffled, within, **options), expected)
    for factor in (1000, 0.01, -1):
        wide = {"amount": abs(30 * factor)} if isinstance(within, dict) else within
        scaled = [table.assign(amount=(table["amount"] * factor).round(4)) for table in (gt, *shuffled)]
        figures = told(scaled[0], scaled[1:], wide, **options)
        assert_same_frame(figures.drop(columns="within"), expected.drop(columns="within"))


def test_a_fresh_table_tells_nothing_beyond_others_and_near_copies_do() -> None:
    names = ["DiS_within_beyond", "DiSCO_within_beyond", "guessed_within_beyond"]
    for fresh, records in ((slice(None), 400), (slice(250), 400)):
        beyond = []
        for seed in range(12):
            gt, sd = incomes(records, seed)
            beyond.append(told(gt, sd[fresh], 0.05).iloc[0])
        rows = pd.DataFrame(beyond)
        for name in names:
            error = rows[f"{name}_se"].mean()
            assert abs(rows[name].mean()) < 4 * error / len(rows) ** 0.5
            assert 0.4 < rows[name].std() / error < 1.6
    gt, sd = incomes(400, 0, copied=0.5)
    assert (told(gt, sd, 0.02)[names].iloc[0] > 10).all()
    assert (told(gt, sd, 0.001)[["DiSCO_within_beyond", "guessed_within_beyond"]].iloc[0] < 5).all()


def seniority(people: int, seed: int) -> pd.DataFrame:
    """Draw incomes that the keys nearly tell."""
    rng = np.random.default_rng([seed, 3])
    keys = rng.integers(0, 150, people)
    return pd.DataFrame({"key": keys, "amount": np.rint(1000 + 10 * (keys % 50) + rng.normal(0, 8, people))})


@only_in_ci("120 pairs of tables to measure")
@pytest.mark.parametrize("times", [1 / 3, 1, 3])
def test_honest_amounts_lie_within_two_standard_errors(times: float) -> None:
    """With a third as many SD records, equally many, and three times as many."""
    rows = [
        measure(seniority(600, 2 * seed), seniority(round(600 * times), 2 * seed + 1), 15).bands.iloc[0]
        for seed in range(40)
    ]
    figures = pd.DataFrame(rows)
    for name in ("DiS_within_beyond", "DiSCO_within_beyond", "guessed_within_beyond"):
        beyond, error = figures[name].astype(float), figures[f"{name}_se"].astype(float)
        assert (beyond.abs() <= 2 * error).mean() >= 0.9, name
        assert 0.8 <= error.pow(2).mean() ** 0.5 / beyond.std() <= 1.3, name


def zero_inflated(rng: np.random.Generator, people: int, zeros: float) -> tuple[np.ndarray, np.ndarray]:
    """Sex and region of some people as one number, and an income of 0 or lognormal."""
    income = np.where(rng.random(people) < zeros, 0.0, np.rint(rng.lognormal(7.5, 0.6, people)))
    return rng.integers(0, 2 * 10, people), income


def bands_of_fresh(rng: np.random.Generator, sizes: Sizes, zeros: float, within: float) -> dict[str, float]:
    (keys, incomes), (fresh_keys, fresh) = (zero_inflated(rng, N, zeros) for N in (sizes.N_d, sizes.N_s))
    levels, codes = np.unique(np.concatenate((incomes, fresh)), return_inverse=True)
    column = code_column("income", [pd.Series(levels)], ["GT"])
    band = band_of(column, Within.from_argument("income", within), ())
    target = [codes[: sizes.N_d], codes[sizes.N_d :]]
    [f] = frequency_tables(combine_keys([[keys, fresh_keys]], [20]), target, len(levels) + 1)
    return measure_cells(f, GUESSED_WITHIN, np.arange(len(levels) + 1) == len(levels), band)


MANY = [pytest.param(*numbers, marks=on_some_days) for numbers in ((2_000, 1_000), (20_000, 100))]


@pytest.mark.parametrize(("people", "tables"), [(2_000, 30), *MANY])
@pytest.mark.parametrize("zeros", [0, 0.3, 0.5, 0.7])
def test_at_most_one_of_a_thousand_honest_tables_is_refused(people: int, tables: int, zeros: float) -> None:
    """A median of zeros and incomes would be one or the other for everybody at once."""
    rng, sizes = np.random.default_rng(int(10 * zeros)), Sizes(people, people)
    figures = [bands_of_fresh(rng, sizes, zeros, 100) for _ in range(tables)]
    beyond = np.array([some["guessed_within_beyond"] for some in figures])
    error = np.array([some["guessed_within_beyond_se"] for some in figures])
    by_chance = np.array([difference_by_chance(some) for some in error.tolist()])
    assert (beyond > by_chance).sum() <= max(1, tables // 1000)
    # Where nearly everybody without an income is guessed by both, the difference is less than one record.
    assert (abs(beyond) <= 2 * error + 1e-9).mean() >= 0.9
    assert beyond.std() < 0.1 if zeros else beyond.std() > error.mean() / 4


@pytest.mark.parametrize(
    ("gt", "sd", "within", "guessed"),
    [
        ([10, 12, 20], [10, 12, 20], 1, 200 / 3),  # 11 is within 1 of both 10 and 12
        ([10, 12, 20], [10, 20], 1, 100 / 3),  # of two equally dense windows each counts a half
        ([-10, -12, -20], [-10, -20], 1, 100 / 3),
        ([0, 0, 500], [0, 0, 0, 400, 500], 50, 200 / 3),
        (
            [100, 101, 102.5],
            [100, 102],
            {"share": 0.01},
            200 / 3,
        ),  # 101 is within 1 % of 100 and not of 102.5
        ([-100, -101, -102.5], [-100, -102], {"share": 0.01}, 200 / 3),
    ],
)
def test_the_densest_band_is_guessed(gt: list[float], sd: list[float], within: Any, guessed: float) -> None:
    tables = [frame([("a", float(value)) for value in values]) for values in (gt, sd)]
    row = measure(tables[0], tables[1], within).bands.iloc[0]
    assert row["guessed_within"] == pytest.approx(guessed, abs=1e-6)


NO_SIZES = (-0.1, math.nan, math.inf, True, "0.02", None)
NO_SHARES = ({"share": 1}, {"share": 0.1, "amount": 2}, {"days": 2})


@pytest.mark.parametrize("within", [*NO_SIZES, *NO_SHARES], ids=str)
def test_refuses_an_invalid_band(within: Any) -> None:
    message = "below 1" if isinstance(within, dict) else "from 0"
    gt, sd = incomes(20, 5)
    with pytest.raises(dp.InputError, match=rf"within of column 'amount'.*{message}"):
        told(gt, sd, within)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": 0.02}, "must be a mapping"),
        ({"within": {"salary": 0.02}}, "'salary' is not in"),
        ({"within": {"age": 2}}, "'age', which is not a target"),
        ({"within": {"amount": 0.02}, "groups": {"amount": 5}}, "needs no groups"),
        ({"within": {"amount": 0.02}, "edges": {"amount": [0, 1, 2]}}, "needs no groups"),
        ({"within": {"text": 0.02}}, "only numbers have a band"),
        ({"within": {"day": 2}}, "holds dates: only numbers have a band"),
        ({"within": {"is": 2}}, "only numbers have a band"),
        ({"within": {"far": 2}}, "infinite values, which have no band"),
    ],
)
@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_refuses_a_band_on_an_unsuitable_column(options: dict[str, Any], message: str, engine: str) -> None:
    gt, sd = incomes(20, 6)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(gt["age"], unit="D")
    gt, sd = (
        table.assign(**{"text": "a", "day": day, "is": True, "far": [*[1.5] * 19, float("inf")]})
        for table in (gt, sd)
    )
    within = options["within"]
    targets = ["amount", *({"text", "day", "is", "far"} & set(within if isinstance(within, dict) else ()))]
    with pytest.raises(dp.InputError, match=message):
        dp.disclosure(gt.assign(person=range(20)), sd, ["key", "age"], targets, engine=engine, **options)


def test_columns_of_nothing_but_missing_values_have_figures() -> None:
    gt, sd = incomes(20, 7)
    bands = told(gt.assign(amount=np.nan), sd.assign(amount=np.nan), 0.02).iloc[0]
    assert bands["DiSCO_within"] > 0 and bands["guessed_within"] == 0


@pytest.mark.parametrize(
    ("dtype", "amounts"),
    [
        *(
            (dtype, [start, start + 100, start + 101])
            for dtype, start in (("int64", 2**60), ("uint64", 2**63))
        ),
        ("Int64", [-(2**60), -(2**60) + 100, -(2**60) + 101]),
        ("object", [Decimal(10**30), Decimal(10**30 + 100), Decimal(10**30 + 101)]),
        ("float32", [1.1, 1.2, 1.21]),
        ("object", [Decimal("1.1"), Decimal("1.2"), Decimal("1.21")]),
    ],
)
def test_numbers_of_any_type_are_compared_as_they_are_written(dtype: str, amounts: list[Any]) -> None:
    """1.2 lies within 0.1 of 1.1 in whatever unit; 2**60 + 100 within 100 of 2**60, and + 101 not."""
    tables = [pd.DataFrame({"key": 1, "amount": pd.Series([amount] * 2, dtype=dtype)}) for amount in amounts]
    within = {"amount": 0.1} if abs(amounts[0]) < 2 else 100
    shares = measure(tables[0], tables[1:], within).bands["DiSCO_within"]
    assert shares.tolist() == [100, 0]
