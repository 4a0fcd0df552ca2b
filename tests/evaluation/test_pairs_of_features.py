"""Test every pair of features of a disclosure against loops over the records, which know no engine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import bands as bands_reference
from reference import baselines as reference
from reference.cap import Record, one_level
from support.sampling import examples
from support.small_tables import KEYS, frame, tables

import disclosure_pipeline as dp

pytestmark = pytest.mark.usefixtures("no_guards")

PAIRS = list(combinations(("unit", "weights", "within", "exclude", "several files", "holdout"), 2))
WITHIN = 2
IN_GROUPS = ("DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se", "guessed_beyond", "guessed_beyond_se")


@dataclass(frozen=True)
class Case:
    """GT, two syntheses and other people, with the amounts, units and weights of at most six records each."""

    gt: list[Record]
    syntheses: list[list[Record]]
    others: list[Record]
    amounts: list[list[float]]
    units: list[int]
    weights: list[int]

    def frame_of(self, records: list[Record], table: int) -> pd.DataFrame:
        return frame(records).assign(amount=self.amounts[table][: len(records)])

    def arguments(self, features: Sequence[str]) -> tuple[pd.DataFrame, list[pd.DataFrame], dict[str, Any]]:
        """Return GT, the published tables, and the options that several functions have."""
        people, options = self.frame_of(self.gt, 0), dict[str, Any]()
        if "unit" in features:
            people, options = people.assign(person=self.units[: len(people)]), {"unit": "person"}
        if "weights" in features:
            people = people.assign(weight=self.weights[: len(people)])
            options["weights"] = "weight"
        if "within" in features:
            options["within"] = {"amount": WITHIN}
        if "exclude" in features:
            options["exclude"] = dp.Exclusions(missing_targets=True)
        files = 2 if "several files" in features else 1
        return people, [self.frame_of(records, 1) for records in self.syntheses[:files]], options

    def kept_of(self, records: list[Record], features: Sequence[str]) -> list[bool]:
        return [t is not None or "exclude" not in features for _, t in records]

    def units_of(self, features: Sequence[str]) -> list[int] | None:
        return self.units[: len(self.gt)] if "unit" in features else None

    def weights_of(self, features: Sequence[str]) -> list[int] | None:
        return self.weights[: len(self.gt)] if "weights" in features else None


cases = st.builds(
    Case,
    tables(6),
    st.lists(tables(6), min_size=2, max_size=2),
    tables(6),
    st.lists(
        st.lists(st.sampled_from([0, 1, 2, 5, -3, float("nan")]), min_size=6, max_size=6),
        min_size=2,
        max_size=2,
    ),
    st.lists(st.integers(1, 3), min_size=6, max_size=6),
    st.lists(st.integers(1, 3), min_size=6, max_size=6),
)


def expect_within(
    case: Case, sd: list[Record], features: Sequence[str], members: Sequence[bool] | None = None
) -> dict[str, float]:
    """Return the figures within the band, of the members; whom exclusions take out stands for nobody."""
    exact = [
        [
            (str(q), None if math.isnan(amount) else Fraction(amount))
            for (q, _), amount in zip(records, amounts, strict=False)
        ]
        for records, amounts in zip((case.gt, sd), case.amounts, strict=True)
    ]
    weights = case.weights_of(features) or [1] * len(case.gt)
    weights = [w * member for w, member in zip(weights, members or [True] * len(case.gt), strict=True)]
    left = [
        w * (amount is not None or "exclude" not in features)
        for w, (_, amount) in zip(weights, exact[0], strict=True)
    ]
    if not any(left):
        return {}
    lies, size = bands_reference.band(amount=Fraction(WITHIN)), Fraction(WITHIN)
    figures = bands_reference.figures(
        exact[0], exact[1], lies, size, weights=left, units=case.units_of(features), is_share=False
    )
    return {name: figure * sum(left) / sum(weights) for name, figure in figures.items()}


def expect_together(case: Case, features: Sequence[str]) -> dict[str, float]:
    """Return what both tables disclose as one release; whom exclusions take out is not disclosed."""
    in_any, at_n, by_others, by_draw = Fraction(0), Fraction(0), Fraction(0), [Fraction(0)] * 2
    for i, (person, is_left) in enumerate(zip(case.gt, case.kept_of(case.gt, features), strict=True)):
        rest = reference.others(case.gt, i, case.units_of(features))
        seen, seen_by_others = (
            [reference.disclosed(person, table, min(len(sd), len(rest))) for table, sd in pairs]
            for pairs in ([(sd, sd) for sd in case.syntheses], [(rest, sd) for sd in case.syntheses])
        )
        in_any += is_left * any(one_level(sd, person[0]) and person in sd for sd in case.syntheses)
        at_n += is_left * (1 - math.prod(1 - share for share in seen))
        by_others += is_left * (1 - math.prod(1 - share for share in seen_by_others))
        by_draw = [share + is_left * own for share, own in zip(by_draw, seen_by_others, strict=True)]
    N = len(case.gt)
    others = max(by_others / N, 1 - math.prod(1 - share / N for share in by_draw))
    shares = {"any": in_any / N, "DiSCO_any_others": others, "DiSCO_any_beyond": at_n / N - others}
    return {name: float(100 * share) for name, share in shares.items()}


def expect_of_holdout(case: Case, sd: list[Record], features: Sequence[str]) -> float:
    told = [one_level(sd, q) and (q, t) in sd for q, t in case.others]
    return 100 * sum(map(min, told, case.kept_of(case.others, features))) / len(case.others)


def assert_figures(row: Mapping[Any, Any], expected: Mapping[str, float], basis: str = "") -> None:
    columns = {name: name.removesuffix("_se") + basis + "_se" * name.endswith("_se") for name in expected}
    compared = {name: row[column] for name, column in columns.items() if column in row}
    assert len(compared) > 5
    assert compared == pytest.approx({name: expected[name] for name in compared}, abs=2e-6)


@pytest.mark.parametrize("pair", PAIRS, ids=[" and ".join(pair) for pair in PAIRS])
@examples(4)
@given(cases)
def test_every_pair_of_features_is_that_of_loops(pair: tuple[str, str], case: Case) -> None:
    people, published, options = case.arguments(pair)
    if "holdout" in pair:
        options["holdout"] = case.frame_of(case.others, 1)
    targets = ["t", "amount"] if "within" in pair else ["t"]
    result = dp.disclosure(people, published, KEYS, targets, **options)
    units, weights = case.units_of(pair), case.weights_of(pair)
    basis = "_weighted" if weights else ""
    rows = result.attribute.join(result.cap).to_dict("index")
    if "several files" in pair:
        together = result.together.to_dict("index")["t"]
        expected = expect_together(case, pair)
        assert {name: together[name] for name in expected} == pytest.approx(expected, abs=2e-6)
    for synthesis, sd in enumerate(case.syntheses[: len(published)], start=1):
        place: dict[str, Any] = {"kept_gt": case.kept_of(case.gt, pair), "kept_sd": case.kept_of(sd, pair)}
        place["units"] = units
        assert_figures(rows["t", synthesis], reference.figures(case.gt, sd, **place))
        if weights:
            row = result.population_targets.to_dict("index")["t", synthesis]
            assert_figures(row, reference.figures(case.gt, sd, weights=weights, **place), basis)
        if expected := expect_within(case, sd, pair) if "within" in pair else {}:
            assert_figures(result.bands.to_dict("index")["amount", synthesis], expected, basis)
        if "holdout" in pair:
            beside = result.holdout.to_dict("index")["t", synthesis, "DiSCO"]
            assert beside["ground_truth"] == pytest.approx(rows["t", synthesis]["DiSCO"])
            assert beside["holdout"] == pytest.approx(expect_of_holdout(case, sd, pair))


@pytest.mark.parametrize("pair", PAIRS, ids=[" and ".join(pair) for pair in PAIRS])
@examples(4)
@given(cases)
def test_every_pair_of_features_in_groups_is_that_of_loops(pair: tuple[str, str], case: Case) -> None:
    people, published, options = case.arguments(pair)
    groups, groups_of_others = (
        ["even" if i % 2 else "odd" for i in range(len(table))] for table in (case.gt, case.others)
    )
    people = people.assign(g=groups)
    if "holdout" in pair:
        options["holdout"] = case.frame_of(case.others, 1).assign(g=groups_of_others)
    targets = ["t", "amount"] if "within" in pair else ["t"]
    result = dp.subgroups(people, published, KEYS, targets, by="g", smallest_count=1, **options)
    by_group: dict[Any, Any] = result.to_dict("index")
    kept, weights = case.kept_of(case.gt, pair), case.weights_of(pair)
    for (target, group, synthesis), row in by_group.items():
        members, sd = [mine == group for mine in groups], case.syntheses[synthesis - 1]
        if target == "amount":
            for basis in ["", *(["_weighted"] if weights else [])]:
                features = [feature for feature in pair if feature != "weights" or basis]
                if expected := expect_within(case, sd, features, members):
                    assert_figures(row, expected, basis)
            continue
        left = [a and b for a, b in zip(kept, members, strict=True)]
        place: dict[str, Any] = {"kept_gt": left, "kept_sd": case.kept_of(sd, pair)}
        place["units"] = case.units_of(pair)
        scale = len(groups) / sum(members)
        figures = reference.figures(case.gt, sd, **place)
        expected = {name: scale * figures[name] for name in IN_GROUPS}
        assert {name: row[name] for name in IN_GROUPS} == pytest.approx(expected, abs=2e-6)
        told = [one_level(sd, q) and (q, t) in sd for q, t in case.gt]
        of_all, of_group = (
            100 * sum(map(min, told, some)) / n for some, n in ((kept, len(groups)), (left, sum(members)))
        )
        assert row["DiSCO"] == pytest.approx(of_group)
        assert row["DiSCO_low"] - 1e-9 <= of_group <= row["DiSCO_high"] + 1e-9
        assert (row["records"], row["lift"]) == pytest.approx(
            (sum(members), of_group / of_all if of_all else math.nan), nan_ok=True
        )
        assert not of_all or row["lift_low"] - 1e-9 <= row["lift"] <= row["lift_high"] + 1e-9
        if "holdout" in pair:
            held = [
                one_level(sd, q) and (q, t) in sd and left
                for (q, t), left, mine in zip(
                    case.others, case.kept_of(case.others, pair), groups_of_others, strict=True
                )
                if mine == group
            ]
            share = 100 * sum(held) / len(held) if held else math.nan
            found = (row["DiSCO_holdout"], row["DiSCO_difference"])
            assert found == pytest.approx((share, row["DiSCO"] - share), nan_ok=True)
            assert not held or row["DiSCO_difference_low"] <= found[1] <= row["DiSCO_difference_high"]
        if weights:
            of_group = [w * member for w, member in zip(weights, members, strict=True)]
            weighted = reference.figures(case.gt, sd, weights=of_group, **place)
            for name in ("DiSCO_others", "DiSCO_beyond"):
                assert row[f"{name}_weighted"] == pytest.approx(weighted[name], abs=2e-6)
