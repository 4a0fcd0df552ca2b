"""Several tables together, and what a candidate adds: against records, and the example data."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.cap import Record, one_level, with_key
from support.small_tables import KEYS, frame, tables

import disclosure_pipeline as dp

KEYS_2011 = ["sex", "age", "region", "placesize"]


def disclosed_levels(person: Record, syntheses: list[list[Record]]) -> list[object]:
    """The level that each table discloses of a person's key, if it does."""
    return [with_key(sd, person[0])[0][1] for sd in syntheses if one_level(sd, person[0])]


def in_any(person: Record, syntheses: list[list[Record]]) -> bool:
    return person[1] in disclosed_levels(person, syntheses)


def agreed(person: Record, syntheses: list[list[Record]]) -> bool:
    levels = disclosed_levels(person, syntheses)
    return len(levels) > 1 and all(level == person[1] for level in levels)


def replicated(person: Record, gt: list[Record], syntheses: list[list[Record]]) -> bool:
    alone = len(with_key(gt, person[0])) == 1
    return alone and any(len(with_key(sd, person[0])) == 1 for sd in syntheses)


@given(tables(), st.lists(tables(), max_size=3), st.lists(tables(), min_size=1, max_size=2))
def test_figures_are_those_of_the_records(
    gt: list[Record], earlier: list[list[Record]], candidates: list[list[Record]]
) -> None:
    result = dp.disclosure_over_releases(
        frame(gt), [frame(sd) for sd in candidates], KEYS, "t", earlier=[frame(sd) for sd in earlier]
    )
    with_candidate = [*earlier, *candidates]
    marks = {
        ("t", "any"): ([in_any(p, earlier) for p in gt], [in_any(p, with_candidate) for p in gt]),
        ("t", "agreed"): ([agreed(p, earlier) for p in gt], [agreed(p, with_candidate) for p in gt]),
        ("(whole key)", "any"): (
            [replicated(p, gt, earlier) for p in gt],
            [replicated(p, gt, with_candidate) for p in gt],
        ),
    }
    for (row, name), (before, after) in marks.items():
        new = [b and not a for a, b in zip(before, after, strict=True)]
        for suffix, mask in (("earlier", before), ("with_candidate", after), ("new", new)):
            assert result[f"{name}_{suffix}"].to_dict()[row] == pytest.approx(100 * sum(mask) / len(gt))
    assert math.isnan(result["agreed_new"].to_dict()["(whole key)"])


def test_earlier_releases_come_as_a_sequence() -> None:
    gt = pd.DataFrame({"age": [30], "ill": ["y"]})
    with pytest.raises(dp.InputError, match="sequence"):
        dp.disclosure_over_releases(gt, gt, ["age"], earlier=gt)
    assert dp.disclosure_over_releases(gt, gt, ["age"], earlier=[])["any_earlier"].tolist() == [0, 0]
