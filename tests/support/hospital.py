"""People and their stays in a hospital: two tables, joined by the person."""

from typing import Any

import numpy as np
import pandas as pd

from support.gates import definition

PEOPLE = 600


def hospital(seed: int, people: int = PEOPLE) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Persons, and up to eight stays of each; what happens to somebody depends a little on the age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, people)
    persons = pd.DataFrame(
        {
            "person": [f"p-{seed}-{number:06}" for number in range(people)],
            "sex": rng.choice(["f", "m"], people),
            "age": age // 10 * 10,
            "region": rng.choice([f"region {number}" for number in range(6)], people),
            "height": np.clip(rng.normal(170, 12, people).round(), 140, 210).astype(int),
        }
    )
    stays = np.minimum(rng.poisson(1.5 + age / 40), 8)
    of = np.repeat(np.arange(people), stays)
    kind = (rng.integers(0, 8, len(of)) + age[of] // 30) % 10
    events = pd.DataFrame(
        {
            "person": persons["person"].to_numpy()[of],
            "month": rng.integers(1, 25, len(of)),
            "diagnosis": np.array([f"diagnosis {letter}" for letter in "abcdefghij"])[kind],
            "days": 1 + np.minimum(rng.exponential(4, len(of)).astype(int), 30),
        }
    )
    return persons, events


def with_histories(share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fresh people, a share of whom have the stays of somebody of the ground truth (seed 1)."""
    (known, stays), (fresh, others) = hospital(1), hospital(2)
    number = round(share * len(fresh))
    taken = dict(zip(known["person"].sample(number, random_state=3), fresh["person"], strict=False))
    of_known = stays[stays["person"].isin(taken)].assign(person=lambda frame: frame["person"].map(taken))
    kept = others[~others["person"].isin(set(taken.values()))]
    return fresh, pd.concat([of_known, kept], ignore_index=True)


EVENTS: dict[str, Any] = {
    "ground_truth": "events.csv",
    "columns": {
        "month": {"type": "integer", "range": [1, 24]},
        "diagnosis": {"type": "category"},
        "days": {"type": "integer", "range": [1, 31]},
    },
    "order": "month",
    "summaries": {
        "diagnosis": ["first", "last", "most_frequent"],
        "month": ["first"],
        "days": ["most_frequent"],
    },
}


def hospital_gate(**changes: Any) -> dict[str, Any]:
    """The attributes of a gate of both tables, with the guards as they are by default."""
    own = {
        "unit": "person",
        "columns": {
            "sex": {"type": "category"},
            "age": {"type": "integer"},
            "region": {"type": "category"},
            "height": {"type": "integer", "published": True},
        },
        "events": EVENTS,
        "keys": ["sex", "age", "region", "events.diagnosis.first"],
        "targets": ["events.diagnosis.most_frequent", "events.diagnosis.last"],
        "policy": {"repU": 100, "DiSCO": {"beyond": 5}},
    }
    return definition(**own | changes)
