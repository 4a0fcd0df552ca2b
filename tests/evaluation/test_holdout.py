"""A holdout beside GT: against the records one by one, on every engine, and what is refused or warned of."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import baselines, certainty
from reference import disclosure as reference
from reference.disclosure import Leveled, Record
from support.figures import assert_same, without_guards
from support.sampling import examples
from support.strategies import Case, cases, frames, measured, records_of

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.errors import ComparabilityWarning, HoldoutWarning
from disclosure_pipeline.measures.identity import matched_keys, uniqueness_of_draw

CERTAINTIES = (0.5, 1)


@st.composite
def with_holdout(draw: st.DrawFn, *, with_groups: bool = True) -> tuple[Case, list[Record], pd.DataFrame]:
    """A case, and a holdout as records and as a frame; some of its records may be GT's."""
    case = draw(cases(with_groups=with_groups, most_syntheses=3))
    names = [column.name for column in case.columns]
    levels = [column.in_ground_truth for column in case.columns]
    records = draw(records_of(names, levels, case.ground_truth))
    return case, records, draw(frames(records, case.columns))


def measured_beside(case: Case, holdout: Any) -> dp.Disclosure:
    """All figures of a case, beside a holdout; that some of its records may be GT's is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoldoutWarning)
        return measured(case, certainty=CERTAINTIES, holdout=holdout)


def levelled(records: Sequence[Record]) -> list[Leveled]:
    return [{name: reference.label(value) for name, value in record.items()} for record in records]


def expected_figures(
    case: Case, people: Sequence[Leveled], sd: Sequence[Leveled], target: str
) -> dict[str, object]:
    """Measure what SD discloses about some people, who need not be GT's."""
    untouched = reference.tables(
        reference.count_cells(people, case.keys, target), reference.count_cells(sd, case.keys, target)
    )
    reduced, _ = reference.reduce(untouched, case.keys, target, case.exclusions)
    attribute = reference.attribute(reduced, len(people), len(sd))
    of_sd = [(reference.key_of(record, case.keys), record[target]) for record in sd]
    kept: list[tuple[Any, Any]] = []
    guesses = []
    for person in people:
        q, t = reference.key_of(person, case.keys), person[target]
        d = untouched["original"][q, t]
        if reference.step_that_excludes((q, t), d, case.keys, target, case.exclusions):
            continue
        kept.append((q, t))
        guesses.append(baselines.guesses((q, t), of_sd, None, (None,)))
    claimed, claimed_rightly = certainty.counts(kept, of_sd, Fraction(1, 2))
    return {
        "iS": attribute["iS"],
        "DiSCO": attribute["DiSCO"],
        "DCAP": reference.cap_measures(untouched, reduced, len(people), len(sd))["DCAP"],
        "guessed": float(baselines.better(guesses, len(people))),
        "DiS at 0.5": float(100 * claimed / len(people)),
        "DiSCO at 0.5": float(100 * claimed_rightly / len(people)),
    }


@examples(10, 40)
@given(with_holdout(with_groups=False))
@without_guards()
def test_figures_are_those_of_the_records(of: tuple[Case, list[Record], pd.DataFrame]) -> None:
    case, records, holdout = of
    result = measured_beside(case, holdout)
    gt, other = levelled(case.ground_truth), levelled(records)
    for target in case.targets:
        for synthesis, sd in enumerate(map(levelled, case.synthetics), start=1):
            rows = result.holdout.xs((target, synthesis), level=["target", "synthesis"])
            for people, column in ((gt, "ground_truth"), (other, "holdout")):
                for measure, figure in expected_figures(case, people, sd, target).items():
                    assert rows[column].to_dict()[measure] == pytest.approx(figure, abs=1e-9), measure
            assert (rows["difference"] == rows["ground_truth"] - rows["holdout"]).all()
            assert (rows["difference_low"] <= rows["difference"] + 1e-9).all()
            assert (rows["difference"] <= rows["difference_high"] + 1e-9).all()
    assert result.N_holdout == len(records)


@examples(3, 12)
@given(with_holdout())
@without_guards()
def test_nothing_else_changes(of: tuple[Case, list[Record], pd.DataFrame]) -> None:
    """Groups end where they end without the holdout."""
    case, _, holdout = of
    beside, without = measured_beside(case, holdout), measured_beside(case, None)
    assert without.holdout.empty
    assert_same(replace(beside, warnings=without.warnings), without)


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=7), st.lists(st.integers(0, 4), min_size=1), st.data()
)
def test_uniqueness_is_the_average_over_all_draws(
    people: list[int], sd: list[int], data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(people)))
    d, s = (np.bincount(table, minlength=5) for table in (people, sd))
    drawn = list(combinations(range(len(people)), n))
    repU = hits = 0.0
    for draw in drawn:
        of_draw = [people[i] for i in draw]
        repU += sum(of_draw.count(q) == 1 and sd.count(q) == 1 for q in of_draw) / n
        hits += sum(of_draw.count(q) == 1 for q in sd) / len(sd)
    shares = uniqueness_of_draw(matched_keys(d, s), len(people), n, len(sd))
    assert shares == pytest.approx((100 * repU / len(drawn), 100 * hits / len(drawn)))


def test_by_hand() -> None:
    """Two GT records are in SD as they are, no holdout record is; 95 % interval of Newcombe 1998."""
    gt = pd.DataFrame({"age": [30, 40, 50, 60], "ill": list("yyny")})
    sd = pd.DataFrame({"age": [30, 40, 70, 70], "ill": list("yynn")})
    holdout = pd.DataFrame({"age": [31, 41, 51, 70], "ill": list("yyny")})
    result = dp.disclosure(gt, sd, ["age"], "ill", holdout=holdout)
    assert "Compared with a holdout of 4 records" in str(result)
    assert "Compared with a holdout of 4 records" in result._repr_html_()
    row = result.holdout.xs("DiSCO", level="measure").iloc[0]
    assert row[["ground_truth", "holdout", "difference"]].tolist() == [50, 0, 50]
    assert row["difference_low"] == pytest.approx(-10.2, abs=0.01)
    assert row["difference_high"] == pytest.approx(85.0, abs=0.01)


KEYS, TARGETS = ["sex", "age", "region", "household"], ["work", "health"]


@without_guards()
def test_records_of_gt_in_the_holdout_are_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    gt, sd, fresh = (population(3000, seed) for seed in (1, 2, 3))
    honest = dp.disclosure(gt, [sd, sd], KEYS, TARGETS, holdout=fresh)
    assert not honest.warnings
    assert not [warning for warning in recwarn if issubclass(warning.category, HoldoutWarning)]
    with pytest.warns(HoldoutWarning, match="shares records with the ground truth"):
        result = dp.disclosure(gt, sd, KEYS, TARGETS, holdout=pd.concat([fresh, gt.head(60)]))
    assert any("shares records" in warning for warning in result.warnings)


TABLE = pd.DataFrame({"age": [30, 40, 50], "ill": list("yny")})


@pytest.mark.parametrize(
    ("holdout", "message"),
    [
        (TABLE[["age"]], "Column 'ill' is not in the holdout"),
        (TABLE.head(0), "The holdout has no records"),
        (TABLE.assign(age=["a", "b", "c"]), "the holdout"),
        (3, "The holdout must be a DataFrame"),
    ],
)
@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_bad_holdouts(holdout: Any, message: str, engine: str) -> None:
    with pytest.raises(dp.InputError, match=message):
        dp.disclosure(TABLE, TABLE, ["age"], "ill", holdout=holdout, engine=engine)


def test_a_holdout_that_is_coded_otherwise_is_warned_of() -> None:
    gt = population(400, 1)
    sd, other = population(400, 2), population(400, 3)
    shouted = other.assign(work=other["work"].astype(object).str.upper())
    with pytest.warns(ComparabilityWarning, match="holdout"):
        dp.disclosure(gt, sd, KEYS, "work", holdout=shouted)


@without_guards()
def test_columns_that_only_the_holdout_lacks_do_not_matter() -> None:
    """Whole records are compared in the columns that it shares with GT."""
    gt, sd, fresh = population(400, 1), population(400, 2), population(400, 3)
    measured_alone = dp.disclosure(gt, sd, KEYS, "work", holdout=fresh[[*KEYS, "work"]])
    with_all = dp.disclosure(gt, sd, KEYS, "work", holdout=fresh)
    pd.testing.assert_frame_equal(measured_alone.holdout, with_all.holdout)
