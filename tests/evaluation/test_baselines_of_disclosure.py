"""The baselines in the frames of a result are those of the slow reference; certainty and bad shares too."""

import math
from collections.abc import Sequence
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from reference import baselines as reference
from reference import certainty as reference_of_certainty
from reference.cap import Record
from reference.disclosure import Exclusions, Leveled, all_leveled, key_of
from support.sampling import examples
from support.small_tables import sd2011
from support.strategies import Case, cases, measured

import disclosure_pipeline as dp
from disclosure_pipeline.errors import InputError


def records_of(table: Sequence[Leveled], keys: Sequence[str], target: str) -> list[Record]:
    """The key combination and the target level of each record."""
    return [(key_of(record, keys), record[target]) for record in table]


@examples(8)
@given(cases())
def test_the_frames_hold_the_baselines_of_the_reference(case: Case) -> None:
    if case.exclusions != Exclusions():
        case = Case(**{**vars(case), "exclusions": Exclusions()})
    actual = measured(case)
    identity, attribute, cap = (
        frame.to_dict("index") for frame in (actual.identity, actual.attribute, actual.cap)
    )
    columns = [*case.keys, *case.targets]
    gt, syntheses = all_leveled(
        case.ground_truth, case.synthetics, columns, case.groups, case.special_values, case.edges
    )
    for synthesis, sd in enumerate(syntheses, start=1):
        hits = reference.unique_hits(
            [key_of(record, case.keys) for record in gt], [key_of(record, case.keys) for record in sd]
        )
        row = identity[synthesis]
        assert (row["unique_hits"], row["unique_hits_others"]) == pytest.approx(hits, rel=1e-12)
        for target in case.targets:
            people, copies = records_of(gt, case.keys, target), records_of(sd, case.keys, target)
            expected = reference.figures(people, copies)
            figures = {**attribute[target, synthesis], **cap[target, synthesis]}
            for name in expected:
                assert figures[name] == pytest.approx(expected[name], abs=2e-7), (name, target)
            assert all(math.isfinite(figures[name]) for name in expected)


KEYS = ["sex", "age", "region", "placesize"]


def test_the_example_data() -> None:
    """Check values: the five targets of the paper, from the definitions."""
    result = dp.disclosure(sd2011("ground_truth"), sd2011("synthetic"), KEYS, ["depress"])
    assert result.cap[["guessed", "guessed_others"]].round(1).iloc[0].tolist() == [24.4, 21.9]
    assert result.identity[["unique_hits", "unique_hits_others"]].round(1).iloc[0].tolist() == [33.9, 27.7]
    assert result.attribute["iS_others"].round(1).tolist() == [51.6]


def test_levels_that_only_the_synthetic_table_has_are_wrong_guesses() -> None:
    """Incomes of the example, as they are: of each person's q the records are looked at one by one."""
    gt, sd = (sd2011(name).dropna(subset="income").head(1500) for name in ("ground_truth", "synthetic"))
    incomes = {q: list(records) for q, records in sd.groupby(KEYS, dropna=False)["income"]}
    claimed = right = 0
    for *q, income in gt[[*KEYS, "income"]].itertuples(index=False):
        levels = incomes.get(tuple(q), [])
        half = {level for level in levels if 2 * levels.count(level) >= len(levels)}
        claimed, right = claimed + bool(half), right + (income in half)
    result = dp.disclosure(gt, sd, KEYS, "income", certainty=(0.5,))
    assert result.certainty["DiS"].tolist() == [pytest.approx(100 * claimed / len(gt))]
    assert result.certainty["DiSCO"].tolist() == [pytest.approx(100 * right / len(gt))]


def people(*records: tuple[str, str | None]) -> pd.DataFrame:
    return pd.DataFrame(records, columns=["place", "illness"])


def test_a_decoy_hides_nobody_from_an_intruder_who_acts_on_less_than_certainty() -> None:
    gt = people(*[("north", "flu")] * 4, ("south", "cold"))
    sd = people(*[("north", "flu")] * 9, ("north", "cold"), ("south", None))
    result = dp.disclosure(gt, sd, ["place"], "illness", certainty=(0.9, 1, Fraction(1, 20)))
    assert result.attribute["DiSCO"].tolist() == [0]
    assert list(result.certainty.index) == [("illness", 1, c) for c in (0.9, 1.0, 0.05)]
    assert result.certainty["DiSCO"].tolist() == [80, 0, 80]
    assert result.certainty["DiS"].tolist() == [80, 0, 80]
    precision = result.certainty["precision"].tolist()
    assert precision[::2] == [100, 100]
    assert math.isnan(precision[1])
    assert dp.disclosure(gt, sd, ["place"], "illness").certainty.empty


@examples(6)
@given(cases())
def test_certainty_is_that_of_the_reference(case: Case) -> None:
    shares = (0.5, Fraction(2, 3), 0.9, 1)
    actual = dp.disclosure(
        case.ground_truth_frame, case.synthetic_frames, case.keys, case.targets, certainty=shares
    )
    figures = actual.certainty.to_dict("index")
    gt, syntheses = all_leveled(
        case.ground_truth, case.synthetics, [*case.keys, *case.targets], {}, {}, "pooled"
    )
    for synthesis, sd in enumerate(syntheses, start=1):
        for target in case.targets:
            people, copies = records_of(gt, case.keys, target), records_of(sd, case.keys, target)
            for share in shares:
                claimed = reference_of_certainty.counts(people, copies, Fraction(str(share)))
                row = figures[target, synthesis, float(share)]
                expected = [100 * number / len(gt) for number in claimed]
                assert [row["DiS"], row["DiSCO"]] == pytest.approx(expected)


@pytest.mark.parametrize(
    "shares", [(0,), (1.1,), (-0.5,), (True,), ("0.9",), 0.9, "0.9", (0.5, 0.5), (math.nan,)]
)
def test_what_is_no_share_is_refused(shares: object) -> None:
    gt = people(("north", "flu"))
    with pytest.raises(InputError, match="certainty"):
        dp.disclosure(gt, gt, ["place"], "illness", certainty=shares)  # type: ignore[arg-type]
