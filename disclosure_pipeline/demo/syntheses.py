"""Two generators for the demo: one that learns distributions, and one that remembers records."""

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
    as_reported,
    draw,
)


class _Coded(NamedTuple):
    """A column as codes 0 to levels - 1 (shape: records). In categories and income, 0 is missing."""

    codes: Codes
    levels: int


# The columns on which each column depends, the coarse before the fine; they are drawn in this order. Ages
# count by decades, and within a decade by pairs of years; incomes by fifths, because few records share one of
# their finer groups.
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

# A level that fewer records of a group share than this is not learnt there.
_FEWEST_TO_LEARN = 10
# The weight of the coarser group's distribution in that of a finer one, in records.
_PRIOR = 5.0
# Weights of the ages up to three years apart: nobody's exact age is learnt.
_BLUR = np.array([1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0])
_INCOME_GROUPS, _IN_A_FIFTH = 40, 8
# No amount comes from the lowest or the highest half percent of GT: they would stand out.
_LOWEST, _HIGHEST = 0.005, 0.995
_MISSING, _NO_INCOME, _FIRST_GROUP = 0, 1, 2


def synthesise(ground_truth: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Make an honest synthesis of a table from `population`: as many rows, the same columns and types.

    One column after the other is drawn from its distribution in GT within coarse groups of a few earlier
    columns. Ages are blurred, incomes drawn anew within groups of a fortieth of the records, and what fewer
    than ten records of a group share is taken from a coarser group. The same for the same arguments.
    """
    if ground_truth.empty:
        return ground_truth.copy()
    rng = np.random.default_rng([seed, 1])
    edges = _income_edges(ground_truth["income"])
    gt = _code_table(ground_truth, edges)
    sd = _by_age(_draw_ages(rng, gt["age"].codes))
    for name, given in _CONDITIONS.items():
        weights = _learn(gt[name], [gt[other] for other in given])
        sd[name] = _Coded(draw(rng, weights, _group([sd[other] for other in given])), gt[name].levels)
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
    """Replace a share of the rows of a synthesis by copies of GT records, as a generator does that memorises.

    `share` lies between 0 and 1. Which rows are replaced, and by which records, is random; no record is
    taken twice unless GT has too few. The same for the same arguments.
    """
    if not 0 <= share <= 1:
        raise ValueError("share must lie between 0 and 1")
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
    income = _coded_income(table["income"], edges)
    return {
        **_by_age(table["age"].to_numpy() - YOUNGEST),
        **{
            name: _Coded(
                table[name].cat.codes.to_numpy().astype(np.int16) + 1, len(table[name].cat.categories) + 1
            )
            for name in categories
        },
        "income": income,
        "fifth of income": _fifths(income),
    }


def _by_age(age: Codes) -> dict[str, _Coded]:
    """Code the ages (years above the youngest), their decades, and the pairs of years within a decade."""
    return {
        "age": _Coded(age, OLDEST - YOUNGEST + 1),
        "decade": _Coded(age // 10, (OLDEST - YOUNGEST) // 10 + 1),
        "pair of years": _Coded(age % 10 // 2, 5),
    }


def _coded_income(column: pd.Series, edges: Floats) -> _Coded:
    amounts = column.to_numpy(dtype=np.float64, na_value=np.nan)
    group = np.searchsorted(edges[1:-1], amounts, side="right") + _FIRST_GROUP
    group[amounts == NO_OWN_INCOME] = _NO_INCOME
    group[np.isnan(amounts)] = _MISSING
    return _Coded(group, len(edges) - 1 + _FIRST_GROUP)


def _fifths(income: _Coded) -> _Coded:
    """Join the income groups to fifths; missing and none stay what they are."""
    fifth = (income.codes - _FIRST_GROUP) // _IN_A_FIFTH + _FIRST_GROUP
    return _Coded(np.where(income.codes < _FIRST_GROUP, income.codes, fifth), 5 + _FIRST_GROUP)


def _income_edges(column: pd.Series) -> Floats:
    """Return edges of the income groups (shape: groups + 1, money); GT's extremes stay outside."""
    amounts = column.dropna().to_numpy(dtype=np.float64)
    amounts = amounts[amounts != NO_OWN_INCOME]
    if not len(amounts):
        return np.zeros(2)
    return np.quantile(amounts, np.linspace(_LOWEST, _HIGHEST, _INCOME_GROUPS + 1))


def _draw_ages(rng: np.random.Generator, age: Codes) -> Codes:
    counts = np.bincount(age, minlength=OLDEST - YOUNGEST + 1)
    # Divided by what the blur itself loses at both ends.
    blurred = np.convolve(counts, _BLUR, "same") / np.convolve(np.ones(len(counts)), _BLUR, "same")
    return draw(rng, blurred[np.newaxis], np.zeros(len(age), dtype=np.int8))


def _learn(target: _Coded, given: Sequence[_Coded]) -> Floats:
    """Learn weights of the levels of `target` in each group of the columns (shape: groups, levels).

    From the coarse groups to the fine: a group keeps its counts from _FEWEST_TO_LEARN on. The records with
    rarer levels are shared out among these levels as the coarser group has them: what holds for a few is not
    learnt.
    """
    weights = _counts(target, [])
    for detail, column in enumerate(given, start=1):
        prior = np.repeat(weights / weights.sum(axis=1, keepdims=True), column.levels, axis=0)
        counts = _counts(target, given[:detail])
        rare = counts < _FEWEST_TO_LEARN
        prior_of_rare = np.where(rare, prior, 0)
        in_all = prior_of_rare.sum(axis=1, keepdims=True)
        number = np.where(rare, counts, 0).sum(axis=1, keepdims=True)
        spread = number * prior_of_rare / np.where(in_all > 0, in_all, 1)
        weights = np.where(rare, spread, counts) + _PRIOR * prior
    return weights


def _counts(target: _Coded, given: Sequence[_Coded]) -> Floats:
    """Number of records with each level of `target` in each group (shape: groups, levels)."""
    groups = math.prod(column.levels for column in given)
    cells = np.bincount(_group([*given, target]), minlength=groups * target.levels)
    return cells.reshape(groups, target.levels).astype(np.float64)


def _group(columns: Sequence[_Coded]) -> npt.NDArray[np.int64]:
    """Combine the columns of each record, the last column counting fastest (shape: records)."""
    group = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        group *= column.levels
        group += column.codes
    return group


def _draw_incomes(rng: np.random.Generator, group: Codes, edges: Floats) -> ExtensionArray:
    """Draw an amount within each income group, and round it as people do (shape: records)."""
    low = np.maximum(group - _FIRST_GROUP, 0)
    amounts = edges[low] + rng.random(len(group)) * (edges[low + 1] - edges[low])
    income = as_reported(rng, amounts)
    income[group == _NO_INCOME] = NO_OWN_INCOME
    return pd.arrays.IntegerArray(income, group == _MISSING)


def _draw_postcodes(
    rng: np.random.Generator, postcode: pd.Series, gt_region: Codes, sd_region: Codes
) -> npt.NDArray[np.int32]:
    """Draw for each record of SD the postcode of any GT record in its region."""
    by_region = np.argsort(gt_region, kind="stable")
    counts = np.bincount(gt_region)
    first = np.cumsum(counts) - counts
    position = first[sd_region] + (rng.random(len(sd_region)) * counts[sd_region]).astype(np.int64)
    return postcode.to_numpy()[by_region[position]]
