"""From which strength on a disguise is told from honesty, by the number of records.

`python -m disguises.strengths`, with `tests` on the path, measures it and writes `strengths.tsv`, of which
the table of docs/security.md is made. `before` is as it was when near copies were bounded by distances.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.policy.gate import Gate
from disguises.cases import mirrored
from disguises.tables import apart, definition, jittered, judge_guards, measure_guards, moved, write_rows

RESULT = Path(__file__).with_name("strengths.tsv")
RECORDS = (100, 300, 1_000, 2_000, 5_000)
STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 70, 80, 100)
"""Percent of the people, or of their records, that a disguise is made of."""

NEVER = "not at all"
COLUMNS = ["disguise", "records", "before", "from"]

Disguise = Callable[[pd.DataFrame, float], pd.DataFrame]


def among_honest(make: Callable[[pd.DataFrame], pd.DataFrame]) -> Disguise:
    """Put a share of an altered GT in the place of as many records of an honest synthesis."""
    return lambda ground_truth, share: leak(synthesise(ground_truth), make(ground_truth), share)


copied = among_honest(lambda table: table)


def with_others(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Take a column from others."""
    return table.assign(**{column: table[column].sample(frac=1, random_state=2).array})


def beside(times: int, make: Callable[[pd.DataFrame], pd.DataFrame]) -> Disguise:
    """Put a share of an altered GT beside `times` as many fresh people."""

    def disguise(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
        fresh = population(times * len(ground_truth), 7)
        return pd.concat([_some(make(ground_truth), share), fresh], ignore_index=True)

    return disguise


def beside_doubled(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """GT records once, beside ten times as many fresh people who stand twice."""
    decoys = population(10 * len(ground_truth), 7)
    return pd.concat([_some(ground_truth, share), decoys, decoys], ignore_index=True)


def beside_apart(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """GT records in a table whose other records have columns drawn apart."""
    return leak(apart(ground_truth), ground_truth, share)


def in_one_region(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """A share of the people of the largest region, whose records are no others' there."""
    region = ground_truth["region"].value_counts().index[0]
    there = ground_truth[ground_truth["region"] == region].reset_index(drop=True)
    table = synthesise(ground_truth)
    inside = leak(table[table["region"] == region].reset_index(drop=True), there, share)
    return pd.concat([table[table["region"] != region], inside], ignore_index=True)


def twice(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """Every record twice, a share of them GT's."""
    table = copied(ground_truth, share)
    return pd.concat([table, table], ignore_index=True)


def in_ten_files(ground_truth: pd.DataFrame, share: float) -> list[pd.DataFrame]:
    table = copied(ground_truth, share)
    return [table[part::10].reset_index(drop=True) for part in range(10)]


def _some(table: pd.DataFrame, share: float) -> pd.DataFrame:
    return table.sample(round(share * len(table)), random_state=1)


OF_EVERY_SIZE: Mapping[str, Callable[[pd.DataFrame, float], pd.DataFrame | list[pd.DataFrame]]] = {
    "copies": copied,
    "copies, age and income moved by one": among_honest(
        lambda table: moved(moved(table, "age", 1), "income", 1)
    ),
}
OF_ONE_SIZE: Mapping[str, Callable[[pd.DataFrame, float], pd.DataFrame | list[pd.DataFrame]]] = {
    "copies beside 10 times as many": beside(10, lambda table: table),
    "copies beside 60 times as many": beside(60, lambda table: table),
    "copies beside decoys that stand twice": beside_doubled,
    "copies beside columns drawn apart": beside_apart,
    "copies in ten files": in_ten_files,
    "copies, every record twice": twice,
    "copies in one region, of its people": in_one_region,
    "jittered copies: age and income moved": among_honest(jittered),
    "jittered copies beside 10 times as many": beside(10, jittered),
    "jittered copies beside 60 times as many": beside(60, jittered),
    "jittered copies, work from others": among_honest(lambda table: with_others(jittered(table), "work")),
    "copies, income from others": among_honest(lambda table: with_others(table, "income")),
    "copies, age turned over": among_honest(lambda table: mirrored(table, "age")),
}
DISGUISED = {**OF_EVERY_SIZE, **OF_ONE_SIZE}
CELLS = [
    *((disguise, records) for disguise in OF_EVERY_SIZE for records in RECORDS),
    *((disguise, 2_000) for disguise in OF_ONE_SIZE),
]


def is_caught(disguise: str, records: int, percent: int) -> bool:
    """Return whether a disguise of this strength, with this number of records, breaks a guard."""
    gate = Gate.model_validate(definition("survey"))
    ground_truth = population(records)
    made = DISGUISED[disguise](ground_truth, percent / 100)
    result = measure_guards(gate, ground_truth, made if isinstance(made, list) else [made])
    return any(judgement.outcome != "kept" for judgement in judge_guards(gate, result))


def find_strength(is_caught: Callable[[int], bool], steps: Sequence[int] = STEPS) -> str:
    """The smallest of the steps from which on a disguise is caught, found by halving; `NEVER` if at none."""
    place = bisect_left(steps, 1, key=is_caught)
    return f"{steps[place]} %" if place < len(steps) else NEVER


def is_from(strength: str, is_caught: Callable[[int], bool], steps: Sequence[int] = STEPS) -> bool:
    """Return whether a disguise is caught at a strength, and not a step below."""
    place = [*(f"{step} %" for step in steps), NEVER].index(strength)
    return all(is_caught(step) == (step in steps[place:]) for step in steps[max(place - 1, 0) : place + 1])


def measure(
    table: Path, cells: Mapping[tuple[str, int], Callable[[int], bool]], steps: Sequence[int] = STEPS
) -> None:
    """Write the strength from which on each disguise is caught, after the one recorded before.

    That is of the bounds on distances, which no gate has any more.
    """
    before = pd.read_csv(table, sep="\t", keep_default_na=False).set_index(COLUMNS[:2])["before"]
    strengths = ((*cell, before.get(cell, ""), find_strength(cells[cell], steps)) for cell in cells)
    write_rows(strengths, COLUMNS, table)


if __name__ == "__main__":
    measure(RESULT, {cell: partial(is_caught, *cell) for cell in CELLS})
