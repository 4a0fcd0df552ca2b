"""Every figure of a dozen pairs of tables, with every option, as when it was last meant to change.

Here are the pairs of features: units, weights, bands, exclusions, several files, a holdout, events. The
demo's tables have a file of their own, compared to the last digit (test_golden.py). After a change that is
meant, make the file anew, and say in CHANGELOG.md what differs:

    PYTHONPATH=.:tests python tests/golden/test_figures.py
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates, surveys
from support.hospital import hospital
from support.paths import SD2011

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.policy.gate import Gate

FILE = Path(__file__).parent / "figures.csv.xz"
KEYS = ["sex", "age", "region", "household"]
INCOME: dict[str, Any] = {"groups": {"income": 20}, "special_values": {"income": [-8]}}
EXCLUDED = dp.Exclusions(
    target_levels={"work": ["retired"]},
    missing_targets=True,
    missing_keys=["sex"],
    pairs=[dp.Pair("sex", "female", "health", "good")],
    count_over=10,
)


def people(seed: int = 1, records: int = 1200) -> pd.DataFrame:
    return population(records, seed)


def leaky(seed: int = 2) -> pd.DataFrame:
    return leak(synthesise(people(), seed), people())


def blanked(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Make every tenth value of the keys and targets missing."""
    rng = np.random.default_rng(seed)
    return table.mask(rng.random(table.shape) < 0.1)


def measure_demo() -> list[Any]:
    disclosure = dp.disclosure(people(), leaky(), KEYS, **INCOME)
    return [
        disclosure,
        dp.copies(people(), leaky(), ["income", "work"]),
        dp.nearest(people(), leaky()),
        dp.subgroups(people(), leaky(), KEYS, "work", by="region"),
        dp.resemblance(people(), leaky()),
        dp.disclosure_protection(people(), leaky(), KEYS, ["health", "work"], "generalized_cap"),
        dp.individual_attribution(people(), leaky(), KEYS, "work").records["work", 1].head(50),
        dp.disclosure_of_key_sets(people(), leaky(), [KEYS[:2], KEYS[:3], KEYS], ["work", "health"]),
    ]


def measure_panel() -> list[Any]:
    make, unit, keys, targets = surveys.TABLES["panel"]
    sd = surveys.leaked("panel", 0.1)
    return [
        dp.disclosure(make(1), [sd.iloc[::2], sd.iloc[1::2]], keys, targets, unit=unit),
        dp.copies(make(1), sd, targets, unit=unit),
    ]


def measure_households() -> list[Any]:
    make, unit, keys, targets = surveys.TABLES["survey of living conditions"]
    gt, sd = make(1), surveys.leaked("survey of living conditions", 0.2)
    weighted = gt.assign(weight=20.25 + 80 * (np.arange(len(gt)) % 7 == 0))
    return [
        dp.disclosure(weighted, sd, keys, targets, unit=unit, weights="weight"),
        dp.disclosure(gt, sd, keys, targets, unit=unit, sampling_fraction=0.05),
    ]


def measure_stays() -> list[Any]:
    (gt, stays), (sd, others) = hospital(1, 400), hospital(2, 400)
    events = {"ground_truth": stays, "synthetic": others, "order": "month"}
    events |= {"summaries": {"diagnosis": ["first", "last", "most_frequent"]}, "multiset": ["diagnosis"]}
    keys, targets = ["sex", "age", "events.diagnosis.first"], ["events.diagnosis.last", "events.multiset"]
    return [dp.disclosure(gt, sd, keys, targets, unit="person", events=events)]  # type: ignore[arg-type]


def measure_gate(**changes: Any) -> list[Any]:
    name = "survey of living conditions"
    gate = Gate.model_validate(surveys.gate_of(name, **changes))
    gt = surveys.TABLES[name][0](1)
    gt = gt.assign(weight=20.0 + np.arange(len(gt)) % 5) if "weight" in changes else gt
    sd = surveys.leaked(name, 0.3)
    return [gates.measured(gate, gt, [sd.iloc[::2], sd.iloc[1::2]])]


def measure_sd2011() -> list[Any]:
    read = {"na_values": [""], "keep_default_na": False}
    gt, *sds = (
        pd.read_csv(SD2011 / f"{name}.csv", **read)  # type: ignore[call-overload]
        for name in ("ground_truth", *(f"synthetic_m5_{number}" for number in range(1, 6)))
    )
    keys, targets = ["sex", "age", "region", "placesize"], ["income", "depress", "ls", "marital", "workab"]
    return [dp.disclosure(gt, sds, keys, targets, **INCOME, certainty=(0.8, 1))]


def of_disclosure(
    ground_truth: Callable[[], Any], synthetic: Callable[[], Any], *columns: Any, **options: Any
) -> Callable[[], list[Any]]:
    return lambda: [dp.disclosure(ground_truth(), synthetic(), *columns, **options)]


CASES: dict[str, Callable[[], list[Any]]] = {
    "demo": measure_demo,
    "sd2011, m = 5": measure_sd2011,
    "panel, by unit": measure_panel,
    "households, by unit and weight": measure_households,
    "stays, events": measure_stays,
    "gate, units": measure_gate,
    "gate, units and weights": lambda: measure_gate(weight="weight", people="weighted"),
    "weights": lambda: [
        dp.disclosure(people().assign(w=np.arange(1200) % 7 + 1), leaky(), KEYS, weights="w", **INCOME)
    ],
    "bands": of_disclosure(
        people,
        leaky,
        KEYS,
        ["income"],
        within={"income": 0.05},
        special_values={"income": [-8]},
        certainty=(0.5, 1),
        exclude=dp.Exclusions(missing_targets=True, count_over=10),
    ),
    "bands of an amount, twice the records": of_disclosure(
        people, lambda: people(3, 2400), KEYS[:2], ["income"], within={"income": 100}
    ),
    "missing values": of_disclosure(
        lambda: blanked(people(), 1), lambda: blanked(leaky(), 2), KEYS, ["work", "health"], certainty=(0.9,)
    ),
    "exclusions, m = 3": of_disclosure(
        people, lambda: [leaky(), synthesise(people(), 4), people(5, 900)], KEYS, exclude=EXCLUDED, **INCOME
    ),
    "holdout": of_disclosure(
        people, leaky, KEYS, ["work", "income"], holdout=people(7), certainty=(0.9,), **INCOME
    ),
    "small": of_disclosure(
        lambda: people(1, 12), lambda: people(2, 9), ["sex", "region"], ["work", "health"]
    ),
    "wide": of_disclosure(
        lambda: surveys.panel(1, 100).drop(columns="person"),
        lambda: surveys.panel(2, 100).drop(columns="person"),
        ["c0", "c1", "c2", "c3", "c4", "c5"],
    ),
}


def list_frames(result: Any, path: str = "") -> Iterator[tuple[str, pd.DataFrame]]:
    """Every frame of a result, and of that of its tables stacked, by its name."""
    if isinstance(result, pd.DataFrame):
        yield path, result
        return
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, pd.DataFrame) and field.name != "individual":
            yield f"{path}{field.name}", value
        elif field.name == "stacked" and value is not None:
            yield from list_frames(value, f"{path}stacked.")


def list_figures(case: str) -> pd.DataFrame:
    """Return one row a figure: frame, row and column; its value, or its text."""
    parts = [
        pd.DataFrame(
            {
                "case": case,
                "frame": name,
                "row": [str(label) for label in frame.index],
                "column": str(column),
                "value": [to_number(value) for value in frame[column]],
                "text": [to_text(value) for value in frame[column]],
            }
        )
        for number, result in enumerate(CASES[case]())
        for name, frame in list_frames(result, f"{number}.")
        for column in frame
    ]
    return pd.concat(parts, ignore_index=True).astype({"value": float, "text": object})


def is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def to_number(value: Any) -> float:
    return float(value) if is_number(value) else math.nan


def to_text(value: Any) -> str | None:
    """Return the text of a cell; an empty one is stored like none."""
    return None if is_number(value) or pd.isna(value) else str(value) or None


@pytest.mark.parametrize("case", CASES)
def test_figures_are_as_they_were(case: str) -> None:
    if case.startswith("sd2011") and not SD2011.exists():
        pytest.skip(f"the example data are not there: {SD2011}")
    stored = pd.read_csv(FILE, keep_default_na=False, dtype={"value": str})
    stored["value"] = stored["value"].replace("", "nan").astype(float)
    stored["text"] = stored["text"].mask(stored["text"] == "", None).astype(object)
    expected = stored[stored["case"] == case].reset_index(drop=True)
    assert len(expected) > 100
    pd.testing.assert_frame_equal(list_figures(case), expected, rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    pd.concat([list_figures(case) for case in CASES], ignore_index=True).to_csv(FILE, index=False)
