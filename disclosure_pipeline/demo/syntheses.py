"""Two generators for the demo: one that learns distributions, and one that memorises records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.extensions import ExtensionArray

from disclosure_pipeline.demo.population import (
    NO_OWN_INCOME,
    OLDEST,
    YOUNGEST,
    Codes,
    Floats,
    draw_levels,
    round_amounts,
)


class _Coded(NamedTuple):
    """A column as codes 0 to levels - 1 (shape: records). In categories and income, 0 is missing."""

    codes: Codes
    levels: int


# The columns that each column depends on, coarse ones first, in the order of drawing. Ages are conditioned on
# by decade and by pair of years within the decade, incomes by fifths, as few records share a finer group.
_CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "sex": ("decade",),
    "household": ("decade", "pair of years", "sex"),
    "region": ("household", "decade"),
    "education": ("decade", "pair of years", "sex"),
    "work": ("decade", "pair of years", "sex"),
    "health": ("decade", "work"),
    "worked_abroad": ("region", "decade"),
    "fifth of income": ("work", "education"),
    "income": ("fifth of income", "work"),
}

# A level with fewer records in a group is not learnt in that group.
_FEWEST_TO_LEARN = 10
# Weight of the coarser group's distribution, in records.
_PRIOR = 5.0
# Weights of the ages up to three years apart: nobody's exact age is learnt.
_BLUR = np.array([1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0])
_INCOME_GROUPS, _IN_A_FIFTH = 40, 8
# Amounts in the lowest and highest half percent of GT would stand out, and are not drawn.
_LOWEST, _HIGHEST = 0.005, 0.995
_MISSING, _NO_INCOME, _FIRST_GROUP = 0, 1, 2


def synthesise(ground_truth: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Make an honest synthesis of a table from `population`, with the same size, columns and types.

    The columns are drawn in turn from their distribution in GT within coarse groups of a few earlier columns.
    Ages are blurred, incomes are drawn within groups of a fortieth of the records, and levels that fewer than
    ten records of a group share are taken from a coarser group. The result is reproducible.
    """
    if ground_truth.empty:
        return ground_truth.copy()
    rng = np.random.default_rng([seed, 1])
    edges = _find_income_edges(ground_truth["income"])
    gt = _code_table(ground_truth, edges)
    sd = _code_ages(_draw_ages(rng, gt["age"].codes))
    for name, given in _CONDITIONS.items():
        weights = _learn(gt[name], [gt[other] for other in given])
        sd[name] = _Coded(draw_levels(rng, weights, _group([sd[other] for other in given])), gt[name].levels)
    columns: dict[str, object] = {}
    for name in ground_truth.columns:
        if name == "age":
            columns[name] = sd[name].codes + np.int16(YOUNGEST)
        elif name == "income":
            columns[name] = _draw_incomes(rng, sd[name].codes, edges)
        elif name == "postcode":
            columns[name] = _draw_postcodes(rng, ground_truth[name], gt["region"].codes, sd["region"].codes)
        else:
            levels = ground_truth[name].cat
            dtype = pd.CategoricalDtype(levels.categories, ordered=levels.ordered)
            columns[name] = pd.Categorical.from_codes(sd[name].codes - 1, dtype=dtype)
    return pd.DataFrame(columns)


def leak(
    synthetic: pd.DataFrame, ground_truth: pd.DataFrame, share: float = 0.3, seed: int = 1
) -> pd.DataFrame:
    """Replace a share (0 to 1) of a synthesis by copies of GT records, like a generator that memorises.

    Rows and records are drawn at random but reproducibly; no record is used twice unless GT has too few.
    """
    if not 0 <= share <= 1:
        raise ValueError("share must be between 0 and 1")
    rng = np.random.default_rng([seed, 2])
    number = math.ceil(share * len(synthetic))
    rows = rng.choice(len(synthetic), number, replace=False, shuffle=False)
    records = rng.choice(len(ground_truth), number, replace=number > len(ground_truth))
    table = synthetic.copy()
    for name in table.columns:
        column = table[name].array.copy()
        column[rows] = ground_truth[name].array.take(records)
        table[name] = column
    return table


def _code_table(table: pd.DataFrame, edges: Floats) -> dict[str, _Coded]:
    categories = [name for name in _CONDITIONS if name in table and name != "income"]
    income = _code_income(table["income"], edges)
    return {
        **_code_ages(table["age"].to_numpy() - YOUNGEST),
        **{
            name: _Coded(
                table[name].cat.codes.to_numpy().astype(np.int16) + 1, len(table[name].cat.categories) + 1
            )
            for name in categories
        },
        "income": income,
        "fifth of income": _group_into_fifths(income),
    }


def _code_ages(age: Codes) -> dict[str, _Coded]:
    """Code the ages (years above the youngest), their decades, and the pairs of years within a decade."""
    return {
        "age": _Coded(age, OLDEST - YOUNGEST + 1),
        "decade": _Coded(age // 10, (OLDEST - YOUNGEST) // 10 + 1),
        "pair of years": _Coded(age % 10 // 2, 5),
    }


def _code_income(column: pd.Series, edges: Floats) -> _Coded:
    amounts = column.to_numpy(dtype=np.float64, na_value=np.nan)
    group = np.searchsorted(edges[1:-1], amounts, side="right") + _FIRST_GROUP
    group[amounts == NO_OWN_INCOME] = _NO_INCOME
    group[np.isnan(amounts)] = _MISSING
    return _Coded(group, len(edges) - 1 + _FIRST_GROUP)


def _group_into_fifths(income: _Coded) -> _Coded:
    """Merge the income groups into fifths, except missing and no income."""
    fifth = (income.codes - _FIRST_GROUP) // _IN_A_FIFTH + _FIRST_GROUP
    return _Coded(np.where(income.codes < _FIRST_GROUP, income.codes, fifth), 5 + _FIRST_GROUP)


def _find_income_edges(column: pd.Series) -> Floats:
    """Return the edges of the income groups (shape: groups + 1, money), without GT's extremes."""
    amounts = column.dropna().to_numpy(dtype=np.float64)
    amounts = amounts[amounts != NO_OWN_INCOME]
    if not len(amounts):
        return np.zeros(2)
    return np.quantile(amounts, np.linspace(_LOWEST, _HIGHEST, _INCOME_GROUPS + 1))


def _draw_ages(rng: np.random.Generator, age: Codes) -> Codes:
    counts = np.bincount(age, minlength=OLDEST - YOUNGEST + 1)
    # Normalise for the weight that the blur loses at both ends.
    blurred = np.convolve(counts, _BLUR, "same") / np.convolve(np.ones(len(counts)), _BLUR, "same")
    return draw_levels(rng, blurred[np.newaxis], np.zeros(len(age), dtype=np.int8))


def _learn(target: _Coded, given: Sequence[_Coded]) -> Floats:
    """Return the weights of the levels of `target` in each group of the columns (shape: groups, levels).

    From coarse to fine groups, counts of at least _FEWEST_TO_LEARN are kept. Records with rarer levels are
    distributed among these levels as in the coarser group, so that nothing is learnt from a few.
    """
    weights = _count_levels(target, [])
    for detail, column in enumerate(given, start=1):
        prior = np.repeat(weights / weights.sum(axis=1, keepdims=True), column.levels, axis=0)
        counts = _count_levels(target, given[:detail])
        rare = counts < _FEWEST_TO_LEARN
        prior_of_rare = np.where(rare, prior, 0)
        total = prior_of_rare.sum(axis=1, keepdims=True)
        number = np.where(rare, counts, 0).sum(axis=1, keepdims=True)
        spread = number * prior_of_rare / np.where(total > 0, total, 1)
        weights = np.where(rare, spread, counts) + _PRIOR * prior
    return weights


def _count_levels(target: _Coded, given: Sequence[_Coded]) -> Floats:
    """Count the records with each level of `target` in each group (shape: groups, levels)."""
    groups = math.prod(column.levels for column in given)
    cells = np.bincount(_group([*given, target]), minlength=groups * target.levels)
    return cells.reshape(groups, target.levels).astype(np.float64)


def _group(columns: Sequence[_Coded]) -> npt.NDArray[np.int64]:
    """Return the group of each record by all columns, the last one varying fastest (shape: records)."""
    group = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        group *= column.levels
        group += column.codes
    return group


def _draw_incomes(rng: np.random.Generator, group: Codes, edges: Floats) -> ExtensionArray:
    """Draw an amount within each record's income group, and round it as people do (shape: records)."""
    low = np.maximum(group - _FIRST_GROUP, 0)
    amounts = edges[low] + rng.random(len(group)) * (edges[low + 1] - edges[low])
    income = round_amounts(rng, amounts)
    income[group == _NO_INCOME] = NO_OWN_INCOME
    return pd.arrays.IntegerArray(income, group == _MISSING)


def _draw_postcodes(
    rng: np.random.Generator, postcode: pd.Series, gt_region: Codes, sd_region: Codes
) -> npt.NDArray[np.int32]:
    """Draw for each record of SD the postcode of a random GT record in its region."""
    by_region = np.argsort(gt_region, kind="stable")
    counts = np.bincount(gt_region)
    first = np.cumsum(counts) - counts
    position = first[sd_region] + (rng.random(len(sd_region)) * counts[sd_region]).astype(np.int64)
    return postcode.to_numpy()[by_region[position]]
