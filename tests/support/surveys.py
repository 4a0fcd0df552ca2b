"""Survey-like tables of thousands of records: keys of few and of many values, targets that depend on them."""

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
