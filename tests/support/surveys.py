"""Survey-like tables of thousands of records, and tables in which people have several."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

TARGETS = ["work", "income"]


def survey(records: int, seed: int, ages: int = 50, postcodes: int = 400) -> pd.DataFrame:
    """Two keys, a third that makes most of them unique, and targets of few and of many levels."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, ages, records)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(np.array(["f", "m", None], dtype=object), records),
            "postcode": rng.integers(10_000, 10_000 + postcodes, records),
            "work": np.array(list("abcde"))[(age // 7 + (rng.random(records) < 0.3)) % 5],
            "income": rng.integers(0, 40, records) * 100,
        }
    ).astype({"sex": "category", "work": "category"})


PERSONS, YEARS, COLUMNS = 700, 3, 25


def panel(seed: int, persons: int = PERSONS) -> pd.DataFrame:
    """Persons by year: 25 columns, of which one changes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 6, persons)  # of which the columns depend
    fixed = {
        f"c{k}": (rng.integers(0, 5, persons) + (rng.random(persons) < 0.5) * kind) % 5
        for k in range(COLUMNS - 1)
    }
    frame = pd.DataFrame(fixed).loc[np.repeat(np.arange(persons), YEARS)].reset_index(drop=True)
    changing = rng.integers(0, 40, len(frame))
    return frame.assign(changing=changing, person=np.repeat(np.arange(persons), YEARS))


def silc(seed: int, households: int = 900) -> pd.DataFrame:
    """Members of households, who share region, size and income, as in a survey of living conditions."""
    rng = np.random.default_rng(seed)
    size = rng.choice([1, 2, 3, 4, 5], households, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    household = np.repeat(np.arange(households), size)
    members, region, kind = len(household), rng.integers(0, 9, households), rng.integers(0, 3, households)
    income = (rng.lognormal(9.5 + 0.2 * kind, 0.5)).round(-2).astype(int)
    return pd.DataFrame(
        {
            "household": [f"h-{number:07}" for number in household],
            "region": region[household],
            "size": size[household],
            "sex": rng.choice(["f", "m"], members),
            "age": rng.integers(0, 90, members),
            "education": (kind[household] + (rng.random(members) < 0.3)) % 3,
            "income": income[household],
        }
    )


def couples(seed: int, households: int = 1_000) -> pd.DataFrame:
    """Two people in each household, who mostly vote, eat and live alike."""
    rng = np.random.default_rng(seed)
    household = np.repeat(np.arange(households), 2)
    alike: dict[str, Any] = {}
    for name, levels in (("place", 60), ("party", 5), ("diet", 3), ("car", 12), ("pets", 4)):
        own, shared = rng.integers(0, levels, 2 * households), rng.integers(0, levels, households)
        alike[name] = np.where(rng.random(2 * households) < 0.85, shared[household], own)
    return pd.DataFrame({"household": household, **alike, "age": rng.integers(18, 90, 2 * households)})


def twice(seed: int) -> pd.DataFrame:
    """The first year of a panel, every record twice."""
    frame = panel(seed).iloc[::YEARS]
    return pd.concat([frame, frame]).sort_values("person", kind="stable").reset_index(drop=True)


TABLES: dict[str, tuple[Callable[[int], pd.DataFrame], str, list[str], list[str]]] = {
    "panel": (panel, "person", ["c0", "c1", "c2", "c3"], ["c4", "c5"]),
    "twice": (twice, "person", ["c0", "c1", "c2", "c3"], ["c4", "c5"]),
    "survey of living conditions": (silc, "household", ["region", "size", "age"], ["education", "income"]),
    "couples": (couples, "household", ["place", "age"], ["party", "diet"]),
}
"""For each: the function that draws people by a seed, the unit, keys and targets."""

LOOSE: dict[str, Any] = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0}


def gate_of(name: str, *, with_unit: bool = True, **changes: Any) -> dict[str, Any]:
    """The attributes of a gate of such a table, whose policy bounds nothing but the guards."""
    from support.gates import definition  # imports Dagster

    make, unit, keys, targets = TABLES[name]
    columns = {
        column: {"type": "category" if values.dtype == object else "integer", "published": True}
        for column, values in make(1).drop(columns=unit).items()
    }
    own = {"columns": columns, "keys": keys, "targets": targets, "policy": LOOSE}
    return definition(**own | ({"unit": unit} if with_unit else {}) | changes)


def leaked(name: str, share: float) -> pd.DataFrame:
    """Fresh people, and a share of the ground truth (seed 1) among as many records."""
    make, unit, _, _ = TABLES[name]
    gt, fresh = make(1), make(2)
    number = round(share * len(gt))
    both = [gt.sample(number, random_state=3), fresh.head(max(len(gt) - number, 0))]
    return pd.concat(both).drop(columns=unit).reset_index(drop=True)
