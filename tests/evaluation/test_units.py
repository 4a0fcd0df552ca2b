"""A column that says whose record each is: the others are other units, on every engine."""

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import baselines as baselines_reference
from reference import copies as copies_reference
from reference import units as reference
from reference.cap import Record
from support.figures import without_guards
from support.sampling import examples, on_some_days
from support.small_tables import KEYS, frame, sd2011, tables
from support.surveys import TABLES, couples

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory import nearest_records
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.memory.nearest_records import nearest_distances
from disclosure_pipeline.counting.opening import read_shared_columns
from disclosure_pipeline.errors import HoldoutWarning, InputError, UnitWarning
from disclosure_pipeline.evaluation import copies as evaluation_copies
from disclosure_pipeline.evaluation import record_sets
from disclosure_pipeline.evaluation.copies import find_repeats
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.nearest import draw_comparisons
from disclosure_pipeline.measures import guesses
from disclosure_pipeline.measures.chance import difference_by_chance
from disclosure_pipeline.measures.nearest import nearness
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

pytestmark = on_some_days

UNITS = st.lists(st.integers(0, 4), min_size=12, max_size=12)


def figures_of(result: dp.Disclosure, target: str = "t", synthesis: int = 1) -> dict[str, Any]:
    """The figures of one row of the frames."""
    frames = ((result.attribute, (target, synthesis)), (result.cap, (target, synthesis)))
    by_target = {name: value for frame, row in frames for name, value in frame.to_dict("index")[row].items()}
    row = by_target | result.identity.to_dict("index")[synthesis]
    return {str(name): value for name, value in row.items()}


@examples(20)
@given(tables(), st.lists(tables(), min_size=1, max_size=2), UNITS)
@without_guards()
def test_the_frames_hold_the_figures_of_the_reference(
    gt: list[Record], syntheses: list[list[Record]], units: list[int]
) -> None:
    units = units[: len(gt)]
    result = dp.disclosure(
        frame(gt).assign(person=units), [frame(sd) for sd in syntheses], KEYS, "t", unit="person"
    )
    for synthesis, sd in enumerate(syntheses, start=1):
        expected = baselines_reference.figures(gt, sd, units=units)
        keys_of = [[q for q, _ in table] for table in (gt, sd)]
        hits = reference.copies(keys_of[0], units, keys_of[1])
        expected |= {name: hits[name] for name in ("unique_hits", "unique_hits_others")}
        alone = [q for q in keys_of[0] if len(reference.owners(q, keys_of[0], units)) == 1]
        expected["unique_hits_apart"] = baselines_reference.hits_apart(alone, keys_of[1])
        expects = max(expected["unique_hits_others"], expected["unique_hits_apart"])
        expected["unique_hits_beyond"] = hits["unique_hits"] - expects
        actual = figures_of(result, synthesis=synthesis)
        for name, figure in expected.items():
            assert actual[name] == pytest.approx(figure, abs=2e-7), name
        risk = reference.household_risk(keys_of[0], units, keys_of[1])
        row = result.units.loc[synthesis]
        assert (row["individual_risk"], row["household_risk"]) == pytest.approx(risk)
        assert row["units"] == len(set(units))


@examples(10)
@given(tables(), tables(), st.permutations(range(12)))
def test_a_unit_of_every_record_changes_nothing(
    gt: list[Record], sd: list[Record], units: Sequence[int]
) -> None:
    """Neither the counts of an engine, nor the formulas by unit, which are not needed where the mean is 1."""
    syntheses, options = [frame(sd), frame(sd[:2])], dict[str, Any](within={"amount": 2})
    for table in syntheses:
        table["amount"] = range(len(table))
    people = frame(gt).assign(amount=range(len(gt)))
    without = dp.disclosure(people, syntheses, KEYS, ["t", "amount"], **options)
    names = ["identity", "attribute", "cap", "certainty", "excluded", "identity_after_exclusions", "together"]
    names += ["bands", "guards", "partial_copies", "found"]
    assert len(without.guards) == len(syntheses)
    assert without.units.empty
    owned = people.assign(person=units[: len(gt)])
    for mean in (1.0, math.nextafter(1, 2)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(record_sets, "average_records_per_unit", lambda _, mean=mean: mean)
            with_unit = dp.disclosure(owned, syntheses, KEYS, ["t", "amount"], unit="person", **options)
        assert list(with_unit.units) == list(COLUMNS["units"])
        for name in names:
            pd.testing.assert_frame_equal(
                getattr(with_unit, name), getattr(without, name), check_exact=mean == 1, rtol=0, atol=2e-6
            )


@pytest.mark.parametrize("seed", range(6))
def test_a_target_with_the_same_levels_for_everybody_has_an_error(seed: int) -> None:
    """What the keys add to its guesses cancels out what its level adds: no square may fall below 0."""
    random = np.random.default_rng(seed)

    def draw(people: int) -> pd.DataFrame:
        keys = np.repeat(random.integers(0, people, people), 3)
        return pd.DataFrame({"person": np.arange(people).repeat(3), "key": keys, "year": [1, 2, 3] * people})

    gt, sd = draw(10), draw(10).drop(columns="person")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dp.disclosure(gt, sd, ["key"], "year", unit="person")
    beyond, error = result.cap[["guessed_beyond", "guessed_beyond_se"]].to_numpy()[0]
    assert beyond == pytest.approx(0, abs=4) and 0 < error < 100


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_nearest_leaves_out_all_records_of_the_person(
    monkeypatch: pytest.MonkeyPatch, size: int, in_blocks: bool
) -> None:
    """Of categories, whoever agrees in no column is no nearer than all who are not looked at in blocks.

    The last record of SD, a copy of the first person's, is left out for nobody.
    """
    if in_blocks:
        monkeypatch.setattr(nearest_records, "_MOST_PAIRS", 0)
    rng = np.random.default_rng(8)
    gt = rng.integers(0, 5, (24, 3))
    sd = np.vstack([rng.integers(0, 5, (23 - size, 3)), gt[:1]])
    units = rng.permutation(np.repeat(np.arange(24 // size), size))
    frames = [pd.DataFrame(table).astype(str if in_blocks else int) for table in (gt, sd)]
    columns = read_shared_columns(*frames).code([0, 1, 2])
    [comparison] = draw_comparisons(columns, 0, unit=units)
    to_sd, to_others = nearest_distances(columns, comparison)
    rows = [[tuple(row) for row in table.tolist()] for table in (gt, sd)]
    expected = reference.nearer(rows[0], units.tolist(), rows[1], [not in_blocks] * 3)
    assert nearness(to_sd[0], to_others[0]).nearer == pytest.approx(float(100 * expected))


def test_everybody_is_compared_with_as_many_others() -> None:
    rng = np.random.default_rng(4)
    unit = np.repeat(np.arange(40), rng.integers(1, 5, 40))
    table = pd.DataFrame(rng.integers(0, 9, (len(unit), 2)))
    columns = read_shared_columns(table, table.head(60)).code([0, 1])
    [comparison] = draw_comparisons(columns, 0, unit=unit)
    shown, others = (np.flatnonzero(table.counted) for table in comparison.tables)
    left_out = comparison.tables[1].left_out
    for place, person in enumerate(comparison.persons.tolist()):
        rest = np.setdiff1d(others, left_out[:, place])
        assert unit[person] not in unit[rest]
        assert len(rest) == len(shown) == 60


def copied_couples() -> tuple[pd.DataFrame, pd.DataFrame]:
    """People by household, and a copy of most of them."""
    gt = couples(1, 200).assign(household=lambda table: "h" + table["household"].astype(str))
    sd = gt.drop(columns="household").sample(len(gt), replace=True, random_state=1)
    return gt, sd.reset_index(drop=True)


@pytest.mark.parametrize("records", [300, 150])
@without_guards()
def test_a_few_draws_are_about_the_average_over_all(records: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From fewer records than the others have, guesses are averages; of large tables over a few draws."""
    gt, sd = copied_couples()
    levels, amounts = [], []
    for most in (1 << 30, 0):
        monkeypatch.setattr(guesses, "_MOST_LEVELS_OF_ALL_DRAWS", most)
        monkeypatch.setattr(guesses, "_DRAWS", 100)
        targets, within = ["diet", "age"], {"age": 3}
        result = dp.disclosure(gt, sd.head(records), ["place"], targets, within=within, unit="household")
        levels.append(figures_of(result, "diet")["guessed_others"])
        amounts.append(result.bands["guessed_within_others"].item())
    for exact, of_draws in (levels, amounts):
        assert exact != of_draws
        assert of_draws == pytest.approx(exact, abs=1)


def test_a_unit_that_cannot_be_one_is_refused() -> None:
    gt, sd = copied_couples()
    with_gap = gt.assign(household=gt["household"].mask(gt.index == 3))
    unit: Any
    for people, synthetic, unit, words in (
        (gt, sd, "person", "not a column of the ground truth"),
        (gt, sd, gt["household"], "Series is not a column of the ground truth"),
        (gt, gt, "household", "never synthesized"),
        (gt, sd, "age", "never synthesized"),
        (with_gap, sd, "household", "missing values"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            dp.disclosure(people, synthetic, ["place"], "diet", unit=unit)
        assert "h1" not in str(refused.value)


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_blanks_around_an_owner_in_a_file_are_no_part_of_the_name(engine: str, tmp_path: Path) -> None:
    gt, sd = copied_couples()
    expected = dp.disclosure(gt, sd, ["place"], "diet", unit="household")
    blank = np.where(gt.index % 2, " ", "")
    files = tmp_path / "gt.csv", tmp_path / "sd.csv"
    gt.assign(household=blank + gt["household"] + blank).to_csv(files[0], index=False)
    sd.to_csv(files[1], index=False)
    result = dp.disclosure(files[0], files[1], ["place"], "diet", unit="household", engine=engine)
    pd.testing.assert_frame_equal(result.units, expected.units)


@pytest.mark.parametrize(
    "owners",
    [
        pa.array(["a", None, "b", "b"]).dictionary_encode(null_encoding="encode"),
        pa.array([1.0, math.nan, 2.0, 2.0]),
    ],
    ids=["a level of a dictionary", "NaN"],
)
def test_a_missing_owner_is_refused_however_it_is_missing(owners: Any) -> None:
    gt = pd.DataFrame({"age": [1, 2, 3, 4], "ill": ["y", "n", "y", "n"]})
    sd, gt = gt, gt.assign(person=pd.arrays.ArrowExtensionArray(owners))
    asked: list[Callable[[], object]] = [
        lambda: dp.disclosure(gt, sd, ["age"], "ill", unit="person"),
        lambda: dp.nearest(gt, sd, unit="person"),
        lambda: dp.found(gt, sd, unit="person"),
        lambda: dp.copies(gt, sd, unit="person"),
        lambda: dp.subgroups(gt, sd, ["age"], "ill", by="ill", unit="person"),
        lambda: dp.prediction_risk(gt, sd, ["age"], "ill", unit="person"),
    ]
    for ask in asked:
        with pytest.raises(InputError, match="missing values"):
            ask()


@examples(10)
@given(tables(), tables(), UNITS)
def test_copies_count_units(gt: list[Record], sd: list[Record], units: list[int]) -> None:
    units = units[: len(gt)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnitWarning)
        actual = dp.copies(frame(gt).assign(person=units), frame(sd), "t", unit="person")
    for label, rows in (
        ("all columns", [[(*q, t) for q, t in table] for table in (gt, sd)]),
        ("targets alone", [[(t,) for _, t in table] for table in (gt, sd)]),
    ):
        expected = reference.copies(rows[0], units, rows[1])
        found = copies_reference.found_apart(
            rows[0], [row for row in rows[0] if len(reference.owners(row, rows[0], units)) == 1], len(sd)
        )
        expected["people_copied_expected"] = max(expected["people_copied_expected"], found)
        row = actual.to_dict("index")[1, label]
        assert row["unique_copies"] == pytest.approx(expected["unique_hits"])
        for name in ("copies_others", "people_copied", "people_copied_expected"):
            assert row[name] == pytest.approx(expected[name]), name


@pytest.mark.parametrize("name", TABLES)
def test_records_that_repeat_are_asked_whose_they_are(name: str) -> None:
    make, unit, _, _ = TABLES[name]
    gt, sd = make(1), make(2).drop(columns=unit)
    with pytest.warns(UnitWarning, match="pass the column that says whose each is"):
        dp.copies(gt.drop(columns=unit), sd)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnitWarning)
        dp.copies(gt, sd, unit=unit)
        dp.copies(sd2011("ground_truth"), sd2011("synthetic"))
    with pytest.raises(InputError, match="missing values"):
        dp.copies(gt.assign(**{unit: None}), sd, unit=unit)


def test_a_holdout_has_nobody_of_the_ground_truth() -> None:
    """As test_conformance.py has it of every engine."""
    _, unit, keys, targets = TABLES["couples"]
    people, sd = couples(1, 200), couples(2, 200).drop(columns=unit)
    gt = people[people[unit] < 100]
    with warnings.catch_warnings():
        warnings.simplefilter("error", HoldoutWarning)
        dp.disclosure(gt, sd, keys, targets, holdout=people[people[unit] >= 100], unit=unit)
    with pytest.warns(HoldoutWarning, match=r"shares people .* 15\.97 % of its records"):
        dp.disclosure(gt, sd, keys, targets, holdout=people[people[unit] > 80], unit=unit)


def test_nearest_leaves_out_all_records_of_a_person() -> None:
    """A person's other records are the nearest ones, so fresh people would seem far by records."""
    make, unit, _, _ = TABLES["panel"]
    gt, sd = make(1), make(2).drop(columns=unit)
    by_units = dp.nearest(gt, sd, unit=unit)
    assert by_units["nearer"].between(40, 60).all()
    assert (dp.nearest(gt.drop(columns=unit), sd)["nearer"] < 5).all()
    with pytest.raises(InputError, match="missing values"):
        dp.nearest(gt.assign(**{unit: None}), sd, unit=unit)
    with pytest.raises(InputError, match="a single record"):
        dp.nearest(gt.assign(**{unit: 1}), sd, unit=unit)


def test_repeats_of_large_tables_are_found_by_columns_of_many_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that changes from year to year has the most levels, and is left out first."""
    table = TABLES["panel"][0](1).drop(columns="person")
    opened = FramesInMemory((table, table), "memory")
    columns = opened.code(list(table), grouping_of(), ignore_progress)
    expected = find_repeats(opened, columns)
    monkeypatch.setattr(evaluation_copies, "MOST_CELLS", 100)
    monkeypatch.setattr(evaluation_copies, "count_record_sets", None)  # each set would be counted
    assert find_repeats(opened, columns) == pytest.approx(expected)
    assert expected[1] > 20


@without_guards()
def test_chance_in_several_tables_allows_for_every_target() -> None:
    """As by records: the largest of several differences is farther from 0 by chance than each."""
    make, unit, keys, targets = TABLES["panel"]
    fresh = make(2)
    sds = [fresh.iloc[half::2].drop(columns=unit) for half in (0, 1)]
    assert len(targets) > 1
    together = dp.disclosure(make(1), sds, keys, targets, unit=unit).together
    assert together["DiSCO_any_by_chance"].tolist() == pytest.approx(
        [difference_by_chance(error, len(targets)) for error in together["DiSCO_any_beyond_se"]]
    )
