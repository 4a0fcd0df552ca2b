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
from reference.disclosure import Leveled, all_leveled, key_of
from support.sampling import examples
from support.small_tables import sd2011
from support.strategies import Case, cases, measured

import disclosure_pipeline as dp
from disclosure_pipeline.errors import InputError

pytestmark = pytest.mark.usefixtures("no_guards")


def records_of(table: Sequence[Leveled], keys: Sequence[str], target: str) -> list[Record]:
    """The key combination and the target level of each record."""
    return [(key_of(record, keys), record[target]) for record in table]


@examples(8)
@given(cases(with_exclusions=False))
def test_the_frames_hold_baselines_and_certainty_of_the_reference(case: Case) -> None:
    shares = (0.5, Fraction(2, 3), 0.9, 1)
    actual = measured(case, certainty=shares)
    identity, attribute, cap, certainty = (
        actual.frame(name).to_dict("index") for name in ("identity", "attribute", "cap", "certainty")
    )
    columns = [*case.keys, *case.targets]
    gt, syntheses = all_leveled(
        case.ground_truth, case.synthetics, columns, case.groups, case.special_values, case.edges
    )
    for synthesis, sd in enumerate(syntheses, start=1):
        of_keys = [[key_of(record, case.keys) for record in table] for table in (gt, sd)]
        hits = reference.unique_hits(*of_keys)
        row = identity[synthesis]
        assert (row["unique_hits"], row["unique_hits_others"]) == pytest.approx(hits, rel=1e-12)
        expected_hits = reference.expected_hits(*of_keys)
        assert max(row["unique_hits_others"], row["unique_hits_apart"]) == pytest.approx(expected_hits)
        assert row["unique_hits_beyond"] == pytest.approx(hits[0] - expected_hits)
        for target in case.targets:
            people, copies = records_of(gt, case.keys, target), records_of(sd, case.keys, target)
            expected = reference.figures(people, copies)
            figures = {**attribute[target, synthesis], **cap[target, synthesis]}
            for name in expected:
                assert figures[name] == pytest.approx(expected[name], abs=2e-7), (name, target)
            assert all(math.isfinite(figures[name]) for name in expected)
            for share in shares:
                claimed = reference_of_certainty.counts(people, copies, Fraction(str(share)))
                of_share = certainty[target, synthesis, float(share)]
                assert [of_share["DiS"], of_share["DiSCO"]] == pytest.approx(
                    [100 * number / len(gt) for number in claimed]
                )


KEYS = ["sex", "age", "region", "placesize"]


def test_the_example_data() -> None:
    """Check values: the five targets of the paper, from the definitions."""
    result = dp.disclosure(sd2011("ground_truth"), sd2011("synthetic"), KEYS, ["depress"])
    assert result.cap[["guessed", "guessed_others"]].round(1).iloc[0].tolist() == [24.4, 21.9]
    assert result.identity[["unique_hits", "unique_hits_others"]].round(1).iloc[0].tolist() == [33.9, 27.7]
    assert result.attribute["iS_others"].round(1).tolist() == [51.6]


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


@pytest.mark.parametrize(
    "shares", [(0,), (1.1,), (-0.5,), (True,), ("0.9",), 0.9, "0.9", (0.5, 0.5), (math.nan,)]
)
def test_refuses_an_invalid_share(shares: object) -> None:
    gt = people(("north", "flu"))
    with pytest.raises(InputError, match="certainty"):
        dp.disclosure(gt, gt, ["place"], "illness", certainty=shares)  # type: ignore[arg-type]
