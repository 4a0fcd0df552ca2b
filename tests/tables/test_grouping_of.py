"""What the arguments `groups`, `special_values` and `edges` of the public functions may be."""

import math
from typing import Any

import numpy as np
import pytest

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.grouping import Grouping, grouping_of


def test_nothing_is_grouped_unless_it_is_asked() -> None:
    assert grouping_of() == grouping_of(None, None) == grouping_of({}, {}) == Grouping({}, {}, "pooled")


def test_what_is_asked() -> None:
    grouping = grouping_of({"n": np.int64(3)}, {"n": [-8, np.inf]}, {"m": [0, 1, 2]})
    assert grouping == Grouping({"n": 3}, {"n": (-8, math.inf)}, {"m": [0, 1, 2]})
    assert grouping.grouped("n") and grouping.grouped("m") and not grouping.grouped("o")
    assert grouping_of(special_values={"n": np.array([-8.0])}).special_values == {"n": (-8.0,)}


NO_MAPPING = "groups must be a mapping from column to number of groups"
NO_NUMBER = "groups of column 'n' must be a whole number from 2 on"
NO_SPECIAL = "special_values must be a mapping from column to a list of numbers"
NO_VALUES = "special_values of column 'n' must be a list of numbers"
NO_EDGES = "edges of column 'n' must be at least three finite numbers"
REFUSED: list[tuple[str, list[dict[str, Any]]]] = [
    (NO_MAPPING, [{"groups": groups} for groups in (5, "n", ["n"], 0, False, [("n", 5)])]),
    (NO_NUMBER, [{"groups": {"n": number}} for number in (1, 0, -2, 2.0, "3", None, True)]),
    (NO_SPECIAL, [{"special_values": special} for special in (-8, "n", [-8], 0)]),
    (
        NO_VALUES,
        [
            {"special_values": {"n": values}}
            for values in (-8, "-8", None, ["-8"], [None], [math.nan], [True], {"a": 1}, b"8")
        ],
    ),
    ("edges must be one of", [{"edges": edges} for edges in (5, None, "quantiles", ["pooled"], [0, 1, 2])]),
    ("Column 'n' is in groups and in edges", [{"groups": {"n": 3}, "edges": {"n": [0, 1, 2]}}]),
    (NO_EDGES, [{"edges": {"n": edges}} for edges in ([0, 1], [0, 2, 1], [0, 1, math.inf], "abc", 3)]),
]


@pytest.mark.parametrize(("message", "arguments"), [(text, one) for text, every in REFUSED for one in every])
def test_what_cannot_be_asked_is_refused(message: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=message):
        grouping_of(**arguments)
