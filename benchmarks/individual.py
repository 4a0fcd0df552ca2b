"""The measures record by record, and prediction risk, at 1 million GT and SD records, 4 keys, one core.

Run with `python benchmarks/individual.py`. scikit-learn's own nearest neighbours stand beside ours at a size
they finish.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pandas as pd
from measuring import measured
from sklearn.neighbors import KNeighborsClassifier

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise

RECORDS = 1_000_000
PEER_RECORDS = 20_000
KEYS = ["sex", "age", "region", "household"]
TARGET = "work"


def neighbours(ground_truth: pd.DataFrame, synthetic: pd.DataFrame) -> Any:
    """Find what `prediction_risk` finds without GT's own folds, by scikit-learn, record by record."""
    both = pd.get_dummies(pd.concat([synthetic[KEYS], ground_truth[KEYS]]).astype("string"))
    known, unknown = both.iloc[: len(synthetic)], both.iloc[len(synthetic) :]
    model = KNeighborsClassifier(3, n_jobs=1).fit(known, synthetic[TARGET].astype(str))
    return model.predict(unknown)


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ground_truth = population(RECORDS)
    synthetic = synthesise(ground_truth)
    few, few_synthetic = ground_truth.head(PEER_RECORDS), synthetic.head(PEER_RECORDS)
    works: dict[str, tuple[int, Callable[[], Any]]] = {
        "individual_attribution()": (
            RECORDS,
            lambda: dp.individual_attribution(ground_truth, synthetic, KEYS, TARGET),
        ),
        "individual_attribution().plot()": (
            RECORDS,
            lambda: dp.individual_attribution(ground_truth, synthetic, KEYS, TARGET).plot(),
        ),
        "prediction_risk()": (RECORDS, lambda: dp.prediction_risk(ground_truth, synthetic, KEYS, TARGET)),
        "prediction_risk(), fewer records": (
            PEER_RECORDS,
            lambda: dp.prediction_risk(few, few_synthetic, KEYS, TARGET),
        ),
        "scikit-learn's neighbours": (PEER_RECORDS, lambda: neighbours(few, few_synthetic)),
    }
    rows = []
    for name, (records, work) in works.items():
        seconds, memory = measured(work)
        rows.append({"": name, "records": f"{records:,}", "CPU s": seconds, "peak MB": memory})
    print(f"keys {KEYS}, target {TARGET}; one core\n")
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.2f}".format))


if __name__ == "__main__":
    main()
