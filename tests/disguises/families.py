"""Leaks that equality and distance do not see, and from which share of the people on they are refused.

`python -m disguises.families`, with `tests` on the path, measures it and writes `families.tsv`, as
`disguises.strengths` does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from disclosure_pipeline.candidates.measuring import plan_gate
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.evaluation.found import measure_found_together
from disclosure_pipeline.policy.verdict import Judgement
from disguises.cases import mosaic
from disguises.simulated import POPULATIONS, Population
from disguises.strengths import measure
from disguises.tables import judge_guards, list_refusing, measure_guards

RESULT = Path(__file__).with_name("families.tsv")
STEPS = (2, 5, 10, 15, 20, 30, 40, 60, 80, 100)
"""Percent of the people, or of a group's, of whom a leak is made."""

Leak = Callable[[pd.DataFrame, float], pd.DataFrame]


@dataclass(frozen=True)
class Family:
    """A leak of a share of the people of a population, which so many releases have."""

    make: Leak
    population: str = "survey"
    records: int = 1_000
    releases: int = 1


def _permute(table: pd.DataFrame, columns: Sequence[str], seed: int) -> pd.DataFrame:
    """Exchange some columns together among all people."""
    order = np.random.default_rng(seed).permutation(len(table))
    return table.assign(**{name: table[name].array.take(order) for name in columns})


def move(table: pd.DataFrame, share: float, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Move every number up or down by a share of it, at least by one."""
    random = np.random.default_rng(1)
    moved = {}
    for name in columns or table.select_dtypes("integer").columns:
        values = table[name]
        by = np.maximum(np.round(values.astype("Float64").abs() * share), 1)
        by = pd.array(by * random.choice([-1, 1], len(table)), dtype="Float64").round()
        new = (values.astype("Float64") + by).astype("Int64")
        moved[name] = values.where(values == -8, new.clip(values.min(), values.max()).astype(values.dtype))
    return table.assign(**moved)


def _leak(make: Callable[[pd.DataFrame], pd.DataFrame]) -> Leak:
    """Put a share of an altered GT in the place of as many fresh people."""

    def leak(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
        return mix(make(ground_truth), ground_truth, share)

    return leak


def mix(altered: pd.DataFrame, ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """Return fresh people, a share of whom are records of an altered GT instead."""
    copied = altered.sample(round(share * len(altered)), random_state=5)
    fresh = find_population(ground_truth).draw(len(ground_truth), 82).iloc[len(copied) :]
    return pd.concat([copied, fresh], ignore_index=True)


def find_population(ground_truth: pd.DataFrame) -> Population:
    return next(of for of in POPULATIONS.values() if list(of.draw(2, 0)) == list(ground_truth))


def _permute_keys(table: pd.DataFrame) -> pd.DataFrame:
    for seed, name in enumerate(KEYS):
        table = _permute(table, [name], seed)
    return move(table, 0.01, columns=["income"])


KEYS, TARGETS = POPULATIONS["survey"].keys, POPULATIONS["survey"].targets


def _deal(blocks: int, table: pd.DataFrame) -> pd.DataFrame:
    """Take each block of columns from one person, and each from another."""
    columns = sorted(table.columns, key=lambda name: -table[name].nunique())
    for number in range(1, blocks):
        table = _permute(table, columns[number::blocks], number)
    return table


def _extract(
    mark: Callable[[pd.DataFrame], pd.Series],
    make: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
) -> Leak:
    """Take a share of the people of a group, altered, and fresh people for all others."""

    def leak(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
        group = make(ground_truth)[mark(ground_truth).to_numpy()]
        copied = group.sample(round(share * len(group)), random_state=5)
        fresh = find_population(ground_truth).draw(len(ground_truth), 82)
        fresh = fresh[~mark(fresh)].head(len(ground_truth) - len(group))
        others = find_population(ground_truth).draw(len(ground_truth), 83)
        others = others[mark(others)].head(len(group) - len(copied))
        return pd.concat([copied, others, fresh], ignore_index=True)

    return leak


def _richest(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """The richest, verbatim, and fresh people for all others: a share of a tenth of the people."""
    number = round(share * len(ground_truth) / 10)
    fresh = find_population(ground_truth).draw(len(ground_truth) - number, 82)
    return pd.concat([ground_truth.nlargest(number, "income"), fresh], ignore_index=True)


def _round(table: pd.DataFrame) -> pd.DataFrame:
    incomes = (table["income"] / 50).round().astype(table["income"].dtype) * 50
    return table.assign(income=table["income"].where(table["income"] == -8, incomes))


def _diluted(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    near = move(ground_truth, 0.01).sample(round(share * len(ground_truth)), random_state=5)
    return pd.concat(
        [near, find_population(ground_truth).draw(10 * len(ground_truth), 82)], ignore_index=True
    )


def _small(ground_truth: pd.DataFrame, share: float) -> pd.DataFrame:
    """A table of a fifth of the people, of whom a share are near copies."""
    return mix(move(ground_truth, 0.01), ground_truth, share).sample(
        len(ground_truth) // 5, random_state=1, ignore_index=True
    )


FAMILIES: Mapping[str, Family] = {
    "keys permuted each by itself, income moved by 1 %": Family(_leak(_permute_keys)),
    **{
        f"columns dealt into {blocks} blocks, each a person's": Family(_leak(partial(_deal, blocks)))
        for blocks in (2, 3, 4)
    },
    "the richest, of a tenth of the people": Family(_richest),
    "all of two ages, of these people": Family(
        _extract(lambda table: table["age"].isin([40, 41])), records=2_000
    ),
    "young women of two levels of education, of these people": Family(
        _extract(
            lambda table: (
                (table["sex"] == "female")
                & (table["age"] < 40)
                & table["education"].isin(sorted(table["education"].dropna().unique())[:2])
            )
        ),
        records=2_000,
    ),
    "near copies in each of four releases": Family(_leak(partial(move, share=0.01)), releases=4),
    "a narrow table, numbers moved by one or 0.5 %": Family(
        _leak(lambda table: move(move(table, 0.0, ["age", "hours"]), 0.005, ["weight"])), "census", 2_000
    ),
    "verbatim in a coarse table": Family(_leak(lambda table: table), "register"),
    "verbatim among 94 people": Family(_leak(lambda table: table), records=94),
    # Further ones
    "numbers moved by 3 %": Family(_leak(partial(move, share=0.03))),
    "measurements moved by 3 %": Family(_leak(partial(move, share=0.03)), "measurements"),
    "one category from others, numbers moved by 1 %": Family(
        _leak(lambda table: move(_permute(table, ["work"], 3), 0.01))
    ),
    "three columns of each record from others, numbers moved by 1 %": Family(
        _leak(lambda table: move(mosaic(3, seed=4, table=table), 0.01))
    ),
    "true keys, targets from others": Family(_leak(lambda table: _permute(table, TARGETS, 3))),
    "true targets, keys from others": Family(_leak(lambda table: _permute(table, KEYS, 3))),
    "incomes rounded to 50": Family(_leak(_round)),
    "the oldest, of these people, numbers moved by 1 %": Family(
        _extract(lambda table: table["age"] >= 75, partial(move, share=0.01)), records=2_000
    ),
    "near copies beside ten times as many": Family(_diluted),
    "near copies in a table of a fifth of the size": Family(_small, records=2_000),
    "answers, a quarter from others": Family(
        _leak(lambda table: _permute(table, list(table.columns)[::4], 3)), "questionnaire"
    ),
}


def list_broken(name: str, percent: int) -> list[Judgement]:
    """Return the broken guards of a leak of this strength."""
    family = FAMILIES[name]
    people = POPULATIONS[family.population]
    ground_truth, gate = people.draw(family.records, 1), people.gate()
    tables = []
    for number in range(family.releases):
        table = family.make(
            ground_truth.sample(frac=1, random_state=number, ignore_index=True), percent / 100
        )
        tables.append(table.reset_index(drop=True))
    result = measure_guards(gate, ground_truth, tables[:1])
    if len(tables) > 1:
        opened = FramesInMemory((ground_truth, *tables), "memory")
        plan = plan_gate(gate, opened, 0, by_group=False)
        together = measure_found_together(opened.stack_syntheses(), plan)
        result = replace(result, released_found=together)
    return list_refusing(judge_guards(gate, result))


def is_refused(name: str, percent: int) -> bool:
    return bool(list_broken(name, percent))


if __name__ == "__main__":
    families = {(name, family.records): partial(is_refused, name) for name, family in FAMILIES.items()}
    measure(RESULT, families, STEPS)
