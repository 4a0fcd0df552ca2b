"""An invented survey of an invented country: the confidential table of the demo.

Its columns depend on each other as in real surveys: `work` can often be inferred from sex, age and household,
`income` and `health` hardly ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.extensions import ExtensionArray

Codes: TypeAlias = npt.NDArray[np.integer]
Floats: TypeAlias = npt.NDArray[np.float64]

YOUNGEST, OLDEST = 16, 97
NO_OWN_INCOME = -8
FIRST_POSTCODE, POSTCODES = 10_000, 20_000

SEX = ("female", "male")
REGION = (
    "Capital",
    "Harbour Coast",
    "Great Plain",
    "River Valley",
    "Northern Lakes",
    "Iron Hills",
    "Southern Vineyards",
    "Old Forest",
    "Western March",
    "Salt Coast",
    "Eastern Heath",
    "High Moor",
    "Twin Rivers",
    "Upper Mountains",
    "Border Hills",
    "Outer Islands",
)
HOUSEHOLD = (
    "couple",
    "couple with children",
    "single",
    "single parent",
    "three generations",
    "couple with relatives",
    "shared flat",
    "relatives only",
    "institution",
    "other",
)
EDUCATION = (
    "primary or less",
    "lower secondary",
    "vocational",
    "upper secondary",
    "bachelor",
    "master or more",
)
WORK = ("employed", "self-employed", "unemployed", "retired", "student", "homemaker", "unable to work")
HEALTH = ("very good", "good", "fair", "bad", "very bad")
YES_NO = ("no", "yes")

# Weights of the ages, many between 45 and 65, few above 85; and the share of men at each age.
_AGES = np.interp(
    np.arange(YOUNGEST, OLDEST + 1),
    (16, 25, 35, 45, 52, 62, 75, 85, 97),
    (0.8, 0.95, 1.05, 1.0, 1.2, 1.15, 0.75, 0.4, 0.02),
)
_MEN = np.interp(np.arange(YOUNGEST, OLDEST + 1), (16, 50, 70, 97), (0.51, 0.5, 0.46, 0.25))

# Percent of the population in each region: four large ones, and twelve in which people stand out.
_REGION_SHARE = (30, 22, 17, 12, 2.4, 2.2, 2.0, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.2, 1.0, 0.9)

# First age of each band of the tables below, at which lives tend to change.
_BANDS = (16, 19, 25, 35, 50, 62, 68, 80)
_GROWN_UP = 25

# Per band: factor of the weights of the two largest regions, which are cities.
_CITIES_BY_AGE = (1.0, 1.3, 1.25, 1.0, 0.95, 0.9, 0.9, 0.85)

# Per band: weights of the household types, in the order of HOUSEHOLD. Children live in their parents'
# household, so "couple with children" is common among the youngest.
_HOUSEHOLD_BY_AGE = (
    (0.0, 76.0, 0.3, 14.0, 5.0, 1.2, 0.8, 1.4, 0.8, 0.5),
    (6.0, 54.0, 13.0, 9.0, 4.0, 1.6, 9.0, 1.8, 0.8, 0.8),
    (27.0, 46.0, 14.0, 4.5, 3.0, 1.5, 2.6, 0.8, 0.3, 0.3),
    (12.0, 70.0, 7.0, 5.0, 2.8, 1.4, 0.8, 0.5, 0.2, 0.3),
    (48.0, 32.0, 11.0, 3.0, 3.2, 1.8, 0.5, 0.8, 0.4, 0.3),
    (70.0, 5.0, 17.0, 1.0, 2.8, 2.4, 0.4, 0.9, 0.3, 0.2),
    (63.0, 1.5, 28.0, 0.4, 2.8, 2.4, 0.2, 1.0, 1.0, 0.2),
    (28.0, 0.4, 54.0, 0.3, 3.6, 3.2, 0.1, 1.6, 8.3, 0.6),
)
# Factors for women and for men: single parents are women, old men live as couples.
_HOUSEHOLD_BY_SEX = (
    (0.95, 1.0, 1.1, 1.5, 1.0, 1.0, 0.9, 1.0, 1.2, 1.0),
    (1.05, 1.0, 0.9, 0.5, 1.0, 1.0, 1.1, 1.0, 0.8, 1.0),
)

# Per band: weights of EDUCATION. Nobody finishes a bachelor's degree before 19; the old had less schooling.
_EDUCATION_BY_AGE = (
    (6.0, 78.0, 6.0, 10.0, 0.0, 0.0),
    (2.0, 14.0, 17.0, 50.0, 16.0, 1.0),
    (2.5, 9.0, 24.0, 25.0, 23.0, 16.5),
    (3.0, 10.0, 30.0, 23.0, 17.0, 17.0),
    (4.5, 13.0, 37.0, 22.0, 11.0, 12.5),
    (7.5, 17.0, 38.0, 19.0, 9.0, 9.5),
    (14.0, 22.0, 34.0, 17.0, 6.0, 7.0),
    (29.0, 26.0, 24.0, 13.0, 3.5, 4.5),
)
_EDUCATION_BY_SEX = ((1.1, 1.1, 0.8, 1.1, 1.1, 1.0), (0.9, 0.9, 1.2, 0.9, 0.9, 1.0))

# Per band: weights of WORK.
_WORK_BY_AGE = (
    (3.0, 0.0, 1.0, 0.0, 95.5, 0.2, 0.3),
    (44.0, 1.5, 7.0, 0.0, 44.0, 2.5, 1.0),
    (77.0, 7.0, 6.0, 0.0, 3.5, 5.0, 1.5),
    (75.0, 11.0, 4.5, 0.2, 0.3, 6.0, 3.0),
    (67.0, 12.0, 5.0, 3.0, 0.0, 6.0, 7.0),
    (25.0, 6.0, 2.0, 58.0, 0.0, 4.0, 5.0),
    (1.5, 1.5, 0.0, 96.0, 0.0, 1.0, 0.0),
    (0.1, 0.4, 0.0, 98.5, 0.0, 1.0, 0.0),
)
_WORK_BY_SEX = ((0.95, 0.7, 1.0, 1.0, 1.0, 1.9, 1.0), (1.05, 1.3, 1.0, 1.0, 1.0, 0.1, 1.0))
# Mothers who live with a partner are more often homemakers.
_WORK_OF_OTHERS = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
_WORK_OF_MOTHERS = (0.9, 0.9, 0.9, 1.0, 1.0, 2.2, 1.0)

# Per band: weights of HEALTH, with factors per kind of work. One in a hundred does not answer.
_HEALTH_BY_AGE = (
    (46.0, 42.0, 10.0, 1.7, 0.3),
    (40.0, 45.0, 12.0, 2.5, 0.5),
    (33.0, 48.0, 15.0, 3.2, 0.8),
    (25.0, 48.0, 21.0, 5.0, 1.0),
    (15.0, 43.0, 30.0, 10.0, 2.0),
    (10.0, 38.0, 36.0, 13.0, 3.0),
    (7.0, 33.0, 40.0, 16.0, 4.0),
    (4.0, 22.0, 42.0, 24.0, 8.0),
)
_HEALTH_BY_WORK = (
    (1.0, 1.0, 0.95, 0.7, 0.5),
    (1.1, 1.0, 0.9, 0.6, 0.5),
    (0.7, 0.9, 1.2, 1.5, 1.3),
    (1.0, 1.0, 1.0, 1.0, 1.0),
    (1.1, 1.0, 0.9, 0.8, 0.8),
    (0.9, 1.0, 1.1, 1.1, 1.0),
    (0.1, 0.2, 1.0, 4.0, 6.0),
)

_HEALTH_NOT_REPORTED = 0.01

# Percent who have ever worked abroad: per region (more near borders and ports), with a factor per band.
_ABROAD_BY_REGION = (9, 10, 5, 6, 7, 6, 8, 5, 13, 8, 6, 5, 7, 6, 16, 6)
_ABROAD_BY_AGE = (0.02, 0.4, 1.1, 1.3, 1.3, 1.1, 0.9, 0.6)

# Monthly own income after tax: its median per kind of work, a factor per education, the standard deviation of
# its logarithm, and the percent of people who have none.
_INCOME_BY_WORK = (2300, 2600, 950, 1450, 450, 420, 1000)
_INCOME_BY_EDUCATION = (0.72, 0.8, 0.95, 1.0, 1.25, 1.55)
_INCOME_SPREAD = (0.38, 0.65, 0.4, 0.38, 0.5, 0.5, 0.35)
_NO_INCOME = (0.0, 1.0, 28.0, 0.8, 58.0, 62.0, 8.0)
_INCOME_NOT_REPORTED = (8.0, 16.0, 6.0, 5.0, 4.0, 6.0, 6.0)

# Amounts are rounded to a multiple of a step, with these weights below 500, below 2000 and from 2000.
_SIZES = (500, 2000)
_STEPS = (10, 50, 100, 500)
_STEPS_BY_SIZE = ((35.0, 45.0, 20.0, 0.0), (10.0, 25.0, 60.0, 5.0), (3.0, 12.0, 60.0, 25.0))


def population(records: int = 5000, seed: int = 2024, *, postcodes: bool = False) -> pd.DataFrame:
    """Draw an invented survey of `records` persons, one per row, reproducibly.

    Columns:
        sex, region, household, education, health, work, worked_abroad: categories; education and health are
            ordered; a few answers on health are missing.
        age: whole years, 16 to 97.
        income: own monthly income after tax, in whole units of money, rounded as people round it; -8 for
            persons without own income, missing for those who do not report it.
        postcode (only with `postcodes`): one of 20,000 whole numbers from 10000, each within one region.
    """
    if records < 0:
        raise ValueError("records must not be negative")
    rng = np.random.default_rng([seed, 0])
    age = draw_levels(rng, _AGES[np.newaxis], np.zeros(records, dtype=np.int16))
    band = np.repeat(np.arange(len(_BANDS), dtype=np.int16), np.diff([*_BANDS, OLDEST + 1]))[age]
    sex = draw_levels(rng, np.stack([1 - _MEN, _MEN], axis=1), age)
    region_weights = np.tile(_REGION_SHARE, (len(_BANDS), 1))
    region_weights[:, :2] *= np.array(_CITIES_BY_AGE)[:, np.newaxis]
    region = draw_levels(rng, region_weights, band)
    household = draw_levels(rng, _multiply_weights(_HOUSEHOLD_BY_AGE, _HOUSEHOLD_BY_SEX), band * 2 + sex)
    education = draw_levels(rng, _multiply_weights(_EDUCATION_BY_AGE, _EDUCATION_BY_SEX), band * 2 + sex)
    mother = (sex == SEX.index("female")) & (household == HOUSEHOLD.index("couple with children"))
    mother &= age + YOUNGEST >= _GROWN_UP
    work_weights = _multiply_weights(_WORK_BY_AGE, _WORK_BY_SEX)
    work_weights = _multiply_weights(work_weights, (_WORK_OF_OTHERS, _WORK_OF_MOTHERS))
    work = draw_levels(rng, work_weights, (band * 2 + sex) * 2 + mother)
    health = draw_levels(rng, _multiply_weights(_HEALTH_BY_AGE, _HEALTH_BY_WORK), band * len(WORK) + work)
    health[rng.random(records) < _HEALTH_NOT_REPORTED] = -1
    share = np.outer(_ABROAD_BY_AGE, _ABROAD_BY_REGION).ravel()
    abroad = draw_levels(rng, np.stack([100 - share, share], axis=1), band * len(REGION) + region)
    columns = {
        "sex": make_category(sex, SEX),
        "age": age.astype(np.int16) + np.int16(YOUNGEST),
        "region": make_category(region, REGION),
        "household": make_category(household, HOUSEHOLD),
        "education": make_category(education, EDUCATION, ordered=True),
        "income": _draw_incomes(rng, work, education),
        "health": make_category(health, HEALTH, ordered=True),
        "work": make_category(work, WORK),
        "worked_abroad": make_category(abroad, YES_NO),
    }
    if postcodes:
        columns["postcode"] = _draw_postcodes(rng, region)
    return pd.DataFrame(columns)


def draw_levels(rng: np.random.Generator, weights: Floats, group: Codes) -> Codes:
    """Draw a level (0 to levels - 1) for every record, with the row of `weights` of its group."""
    groups, levels = weights.shape
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.cumsum(weights, axis=1) / np.where(totals > 0, totals, 1)
    shares[:, -1] = 1
    # Shift the shares of group g to between g and g + 1, so that one search serves all groups.
    position = rng.random(len(group))
    position += group
    level = np.searchsorted((shares + np.arange(groups)[:, np.newaxis]).ravel(), position, side="right")
    level -= group.astype(np.int64) * levels
    np.minimum(level, levels - 1, out=level)  # a sum may have been rounded up to the next group
    return level.astype(np.int16)


def make_category(codes: Codes, levels: Sequence[str], *, ordered: bool = False) -> ExtensionArray:
    """Turn codes (shape: records; -1 for missing) into the categories `levels`."""
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(list(levels), ordered=ordered))


def round_amounts(rng: np.random.Generator, amounts: Floats) -> npt.NDArray[np.int32]:
    """Round amounts of money (shape: records) as people do in a survey: larger ones more coarsely."""
    size = np.searchsorted(_SIZES, amounts, side="right")
    step = np.array(_STEPS)[draw_levels(rng, np.array(_STEPS_BY_SIZE), size)]
    return np.maximum(np.rint(amounts / step) * step, _STEPS[0]).astype(np.int32)


def _multiply_weights(first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
    """Return the weights of levels by two independent factors (shape: first * second, levels)."""
    product = np.asarray(first)[:, np.newaxis] * np.asarray(second)
    return product.reshape(-1, product.shape[2])


def _draw_incomes(rng: np.random.Generator, work: Codes, education: Codes) -> ExtensionArray:
    amounts = np.exp(rng.standard_normal(len(work)) * np.array(_INCOME_SPREAD)[work])
    amounts *= np.array(_INCOME_BY_WORK)[work]
    amounts *= np.array(_INCOME_BY_EDUCATION)[education]
    income = round_amounts(rng, amounts)
    income[rng.random(len(work)) * 100 < np.array(_NO_INCOME)[work]] = NO_OWN_INCOME
    return pd.arrays.IntegerArray(income, rng.random(len(work)) * 100 < np.array(_INCOME_NOT_REPORTED)[work])


def _draw_postcodes(rng: np.random.Generator, region: Codes) -> npt.NDArray[np.int32]:
    """Draw a postcode within each record's region; regions have postcodes by their share of people."""
    last = np.rint(np.cumsum(_REGION_SHARE) / np.sum(_REGION_SHARE) * POSTCODES)
    first = np.concatenate(([0], last[:-1]))
    position = rng.random(len(region))
    position *= (last - first)[region]
    position += first[region]
    return position.astype(np.int32) + np.int32(FIRST_POSTCODE)
