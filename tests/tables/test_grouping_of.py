"""What the arguments `groups`, `special_values` and `edges` of the public functions may be."""

from __future__ import annotations

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


@pytest.mark.parametrize("groups", [5, "n", ["n"], 0, False, [("n", 5)]])
def test_groups_that_are_no_mapping(groups: Any) -> None:
    with pytest.raises(InputError, match="groups must be a mapping from column to number of groups"):
        grouping_of(groups)


@pytest.mark.parametrize("number", [1, 0, -2, 2.0, "3", None, True])
def test_numbers_of_groups(number: Any) -> None:
    with pytest.raises(InputError, match="groups of column 'n' must be a whole number from 2 on"):
        grouping_of({"n": number})


@pytest.mark.parametrize("special", [-8, "n", [-8], 0])
def test_special_values_that_are_no_mapping(special: Any) -> None:
    with pytest.raises(InputError, match="special_values must be a mapping from column to a list of numbers"):
        grouping_of(special_values=special)


@pytest.mark.parametrize("values", [-8, "-8", None, ["-8"], [None], [math.nan], [True], {"a": 1}, b"8"])
def test_special_values_that_are_no_list_of_numbers(values: Any) -> None:
    with pytest.raises(InputError, match="special_values of column 'n' must be a list of numbers"):
        grouping_of(special_values={"n": values})


@pytest.mark.parametrize("edges", [5, None, "quantiles", ["pooled"], [0, 1, 2]])
def test_edges_that_are_no_rule(edges: Any) -> None:
    with pytest.raises(InputError, match="edges must be one of"):
        grouping_of(edges=edges)


def test_groups_and_edges_of_one_column() -> None:
    with pytest.raises(InputError, match="Column 'n' is in groups and in edges"):
        grouping_of({"n": 3}, None, {"n": [0, 1, 2]})


@pytest.mark.parametrize("edges", [[0, 1], [0, 2, 1], [0, 1, math.inf], "abc", 3])
def test_edges_that_are_none(edges: Any) -> None:
    with pytest.raises(InputError, match="edges of column 'n' must be at least three finite numbers"):
        grouping_of(edges={"n": edges})
