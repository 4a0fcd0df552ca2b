"""Disguises of the ground truth, of which none may be published, and honest tables, of which all may."""

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
import pandas as pd
from support.paths import SD2011

from disclosure_pipeline.demo.syntheses import leak, synthesise
from disguises.tables import (
    Case,
    Tables,
    apart,
    blank_one_key,
    decoyed,
    fresh,
    jittered,
    moved,
    read_sd2011,
    renamed,
    several_times,
    shifted,
    shuffled,
    survey,
)

KEYS = ("sex", "age", "region", "household")
TARGETS = ("education", "income", "health", "work", "worked_abroad")

# Keys by which nearly nobody is alone: what the policy bounds sees nothing then.
COARSE = {"keys": ["sex"]}


def cut(files: int) -> Callable[[], Tables]:
    return lambda: [shuffled(survey())[part::files].reset_index(drop=True) for part in range(files)]


def leaky(share: float, times: int = 1, files: int = 1) -> Callable[[], Tables]:
    """The demo's model that memorises, asked for so many times the records."""
    return lambda: [leak(several_times(times, seed), survey(), share, seed) for seed in range(1, files + 1)]


def verbatim(records: int) -> pd.DataFrame:
    """Return this number of GT records and nothing else."""
    return survey().sample(records, random_state=2).reset_index(drop=True)


def mixed(share: float) -> pd.DataFrame:
    """An honest synthesis with a share of GT records in which age and income are moved by one."""
    near = moved(moved(survey(), "age", 1), "income", 1)
    return leak(synthesise(survey(), 4), near, share, 4)


def swapped(column: str, share: float, seed: int = 6) -> pd.DataFrame:
    """GT with one column of a share of the records taken from others."""
    table, random = survey(), np.random.default_rng(seed)
    rows = random.choice(len(table), round(share * len(table)), replace=False)
    position = np.arange(len(table))
    position[rows] = random.permutation(rows)
    return table.assign(**{column: table[column].array.take(position)})


def swapped_apart(columns: Sequence[str]) -> pd.DataFrame:
    """GT with each of some columns taken from others, by itself."""
    table = survey()
    for seed, name in enumerate(columns, start=6):
        table = table.assign(**{name: swapped(name, 1, seed)[name]})
    return table


def coded(table: pd.DataFrame, column: str) -> pd.DataFrame:
    values = np.array(sorted(table[column].dropna().unique()))
    codes = dict(zip(values, np.random.default_rng(3).permutation(values), strict=True))
    return table.assign(**{column: table[column].map(codes).astype(table[column].dtype)})


def mirrored(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """The lowest numbers of a column are the highest, but for special values."""
    values = table[column]
    ordinary = values[values != -8]
    turned = values.where(values == -8, ordinary.max() + ordinary.min() - values)
    return table.assign(**{column: turned})


def rounded_incomes(to: int) -> pd.DataFrame:
    incomes = survey()["income"]
    return survey().assign(income=incomes.where(incomes == -8, (incomes / to).round().astype("Int32") * to))


def blurred() -> pd.DataFrame:
    table, random = survey(), np.random.default_rng(1)
    ages = (table["age"] + random.integers(-10, 11, len(table))).clip(16, 97)
    incomes = (table["income"] * (1 + random.normal(0, 0.3, len(table)))).round().astype("Int32")
    return table.assign(age=ages, income=table["income"].where(table["income"] == -8, incomes))


def permuted(columns: Sequence[str], within: Sequence[str]) -> pd.DataFrame:
    """GT with columns exchanged, each by itself, among those who are the same in others."""
    table, random = survey().copy(), np.random.default_rng(1)
    alike = table.groupby(list(within), dropna=False, observed=True).indices.values()
    for name in columns:
        position = np.arange(len(table))
        for rows in alike:
            position[rows] = random.permutation(rows)
        table[name] = table[name].array.take(position)
    return table


def mosaic(columns: int, seed: int = 5, table: pd.DataFrame | None = None) -> pd.DataFrame:
    """GT in which so many columns of each record, drawn anew for each, are somebody else's."""
    table, random = survey() if table is None else table, np.random.default_rng(seed)
    drawn = np.argsort(random.random(table.shape), axis=1)[:, :columns]
    changed = {}
    for number, name in enumerate(table.columns):
        own = np.arange(len(table))
        foreign = (drawn == number).any(axis=1)
        changed[name] = table[name].array.take(np.where(foreign, random.permutation(len(table)), own))
    return table.assign(**changed)


def holed(cells: int, seed: int = 1) -> pd.DataFrame:
    """GT in which so many values of each record, drawn anew for each, are missing."""
    table = survey()
    drawn = np.argsort(np.random.default_rng(seed).random(table.shape), axis=1)[:, :cells]
    missing = {name: (drawn == number).any(axis=1) for number, name in enumerate(table.columns)}
    return table.assign(**{name: table[name].where(~missing[name]) for name in table.columns})


def diluted(share: float, times: int) -> pd.DataFrame:
    """A share of GT among so many times as many honest records."""
    return pd.concat([verbatim(round(share * len(survey()))), several_times(times, 50)], ignore_index=True)


def nearly_diluted(share: float, times: int) -> pd.DataFrame:
    """A share of GT with ages and incomes moved, among so many times as many fresh people."""
    near = jittered(verbatim(round(share * len(survey()))))
    return pd.concat([near, fresh(times)], ignore_index=True)


def among_doubled_decoys(times: int) -> pd.DataFrame:
    """GT once, among so many times as many honest records that stand twice each."""
    decoys = several_times(times, 50)
    return pd.concat([survey(), decoys, decoys], ignore_index=True)


def among_bad_records(share: float) -> pd.DataFrame:
    """A share of GT among records whose columns are drawn apart."""
    copied = round(share * len(survey()))
    return pd.concat([verbatim(copied), apart(survey()).iloc[copied:]], ignore_index=True)


ENOUGH = 31
"""Fewer people go unnoticed: all of ten may be found by chance if nothing is known of them."""


def one_region_copied(seed: int = 3) -> pd.DataFrame:
    """An honest synthesis but for one region, whose people are all there."""
    table, people = synthesise(survey(), seed), survey()
    sizes = people["region"].value_counts()
    smallest = sizes[sizes >= ENOUGH].index[-1]
    parts = [table[table["region"] != smallest], people[people["region"] == smallest]]
    return pd.concat(parts, ignore_index=True)


def moved_in_ranks(column: str, share: float) -> pd.DataFrame:
    """GT with the numbers of a column moved up by a share of all ranks, the highest to the lowest places."""
    values = survey()[column].copy()
    ordinary = values[(values != -8) & values.notna()]
    ranks = ordinary.rank(method="first").astype(int).to_numpy() - 1
    values.loc[ordinary.index] = np.sort(ordinary.to_numpy())[(ranks + int(share * len(ranks))) % len(ranks)]
    return survey().assign(**{column: values})


def renaming(*columns: str) -> Callable[[], pd.DataFrame]:
    """GT with the levels of some categories renamed."""
    return lambda: reduce(renamed, columns, survey())


DISGUISES = [
    Case("GT", survey),
    Case("GT in another order", lambda: shuffled(survey())),
    *(Case(f"GT cut into {files} files", cut(files)) for files in (2, 5, 30)),
    Case("GT under coarse keys", survey, changes=COARSE),
    Case("GT cut into 30 files under coarse keys", cut(30), changes=COARSE),
    *(Case(f"GT {n} times with one decoy", partial(lambda n: decoyed(survey(), n), n)) for n in (1, 2, 5, 9)),
    Case("GT twice", lambda: pd.concat([survey()] * 2, ignore_index=True)),
    Case("GT with one key blank in each record", lambda: blank_one_key(survey(), KEYS)),
    Case(
        "GT twice with blanks",
        lambda: pd.concat([blank_one_key(survey(), KEYS, seed) for seed in (1, 2)], ignore_index=True),
    ),
    *(Case(f"{n} verbatim records", partial(verbatim, n)) for n in (20, 200, 1_000)),
    Case("half of GT and fresh records", lambda: pd.concat([verbatim(1_000), fresh(0.5)])),
    *(Case(f"every age moved by {n}", partial(lambda n: moved(survey(), "age", n), n)) for n in (1, -1, 3)),
    Case("every income moved by one", lambda: moved(survey(), "income", 1)),
    Case("age and income moved", lambda: moved(moved(survey(), "age", 1), "income", 7)),
    *(Case(f"the memorising model, {s:.0%}", leaky(s)) for s in (0.05, 0.1, 0.3, 0.6)),
    *(Case(f"the memorising model asked for {n} times", leaky(0.3, n)) for n in (2, 10, 40)),
    Case(
        "the memorising model, 5%, in ten files",
        lambda: [
            leak(synthesise(survey()), survey(), 0.05)[part::10].reset_index(drop=True) for part in range(10)
        ],
    ),
    Case("five syntheses of the memorising model", leaky(0.1, files=5)),
    *(Case(f"near copies, {s:.0%}", partial(mixed, s)) for s in (0.5, 1.0)),
    *(Case(f"{name} renamed", renaming(name)) for name in ("region", "household", "work")),
    Case("three categories renamed", renaming("region", "household", "education")),
    Case("five categories renamed", renaming("region", "household", "education", "health", "work")),
    Case("keys shifted by a row", lambda: shifted(survey(), KEYS, 1)),
    Case("keys shifted by 500 rows", lambda: shifted(survey(), KEYS, 500)),
    Case("age shifted by a row", lambda: shifted(survey(), ["age"], 1)),
    *(
        Case(f"{name} swapped among all", partial(swapped, name, 1))
        for name in ("age", "region", "income", "health")
    ),
    *(Case(f"income swapped among {s:.0%}", partial(swapped, "income", s)) for s in (0.1, 0.5)),
    *(
        Case(f"{' and '.join(names)} swapped, each among all", partial(swapped_apart, names))
        for names in (("age", "income"), ("age", "region"), ("income", "health"), ("household", "work"))
    ),
    Case("age and income by a code book", lambda: coded(coded(survey(), "age"), "income")),
    Case("age and income mirrored", lambda: mirrored(mirrored(survey(), "age"), "income")),
    *(Case(f"incomes rounded to {n}", partial(rounded_incomes, n)) for n in (10, 100)),
    Case("age and income blurred", blurred),
    Case("income permuted within three keys", lambda: permuted(["income"], ["sex", "region", "household"])),
    Case("targets permuted within the keys", lambda: permuted(TARGETS, list(KEYS))),
    *(Case(f"{n} columns of each record from others", partial(mosaic, n)) for n in (1, 2, 3)),
    *(Case(f"{n} values of each record missing", partial(holed, n)) for n in (1, 2, 3, 5)),
    Case("three files, in each others missing", lambda: [holed(3, seed) for seed in (1, 2, 3)]),
    Case(
        "the keys true in one file, the targets in the other",
        lambda: [swapped_apart(TARGETS), swapped_apart(KEYS)],
    ),
    Case(
        "each file with one target that is true",
        lambda: [swapped_apart([name for name in TARGETS if name != true]) for true in TARGETS],
    ),
    *(Case(f"95 % of GT among {n} times as many", partial(diluted, 0.95, n)) for n in (5, 30)),
    *(
        Case(f"near copies of 95 % among {n} times as many", partial(nearly_diluted, 0.95, n))
        for n in (10, 60)
    ),
    *(
        Case(f"GT among {n} times as many decoys that stand twice", partial(among_doubled_decoys, n))
        for n in (2, 20)
    ),
    *(
        Case(f"{share:.0%} of GT among columns drawn apart", partial(among_bad_records, share))
        for share in (0.05, 0.18)
    ),
    *(
        Case(
            f"age and income jittered, {name} from others",
            partial(lambda name: jittered(swapped(name, 1)), name),
        )
        for name in ("work", "education")
    ),
    Case(
        "each record of the memorising model twice",
        lambda: pd.concat([leak(synthesise(survey()), survey(), 0.9)] * 2),
    ),
    Case("the people of one region", one_region_copied),
    *(
        Case(f"{name} moved by {share:.0%} of its ranks", partial(moved_in_ranks, name, share))
        for name in ("age", "income")
        for share in (0.1, 0.25)
    ),
    Case(
        "40 files with 12 persons each",
        lambda: [
            pd.concat([several_times(0.5, 100 + part), verbatim(480).iloc[part::40]], ignore_index=True)
            for part in range(40)
        ],
    ),
    Case("an honest file beside GT", lambda: [synthesise(survey()), shuffled(survey())]),
    Case(
        "four honest files beside 200 records",
        lambda: [*(synthesise(survey(), s) for s in (1, 2, 3, 4)), verbatim(200)],
    ),
]

HONEST = [
    *(Case(f"the honest model, {t:g} times", partial(several_times, t)) for t in (0.1, 1, 40)),
    *(Case(f"the honest model, seed {s}", partial(lambda s: synthesise(survey(), s), s)) for s in (2, 3, 4)),
    Case("five of the honest model", lambda: [synthesise(survey(), seed) for seed in range(1, 6)]),
    Case("five small ones of the honest model", lambda: [several_times(0.1, seed) for seed in range(1, 6)]),
    *(Case(f"fresh records, {t:g} times", partial(fresh, t)) for t in (0.1, 1, 40)),
    *(Case(f"fresh records, seed {s}", partial(fresh, 1, s)) for s in (8, 9)),
    Case("five fresh samples", lambda: [fresh(1, seed) for seed in range(11, 16)]),
    Case("five small fresh samples", lambda: [fresh(0.1, seed) for seed in range(11, 16)]),
    *(Case(f"columns drawn apart, seed {s}", partial(lambda s: apart(survey(), s), s)) for s in (1, 2)),
    Case("five with columns drawn apart", lambda: [apart(survey(), seed) for seed in range(1, 6)]),
    Case("the honest model under coarse keys", lambda: synthesise(survey()), changes=COARSE),
    Case("the honest model and fresh records", lambda: [synthesise(survey()), fresh(1)]),
]

OF_SD2011 = [
    Case("synthpop CART", lambda: read_sd2011("synthetic"), "example"),
    Case("arfpy", lambda: read_sd2011("synthesizers/arf_2"), "example"),
    Case("CTGAN", lambda: read_sd2011("synthesizers/ctgan"), "example"),
    Case("example: columns drawn apart", lambda: apart(read_sd2011("ground_truth")), "example"),
]
OF_SD2011_DISGUISED = [
    # Trees with few records a leaf: five of their tables hold 5.8 % more people than 25,000 fresh records.
    Case("synthpop CART, m = 5", lambda: [read_sd2011(f"synthetic_m5_{i}") for i in range(1, 6)], "example"),
    Case("example: GT", lambda: read_sd2011("ground_truth"), "example"),
    Case(
        "example: a bootstrap of GT",
        lambda: (
            read_sd2011("ground_truth").sample(5_000, replace=True, random_state=1).reset_index(drop=True)
        ),
        "example",
    ),
    Case("example: every age moved by one", lambda: moved(read_sd2011("ground_truth"), "age", 1), "example"),
    Case("example: regions renamed", lambda: renamed(read_sd2011("ground_truth"), "region"), "example"),
]
if SD2011.is_dir():
    HONEST += OF_SD2011
    DISGUISES += OF_SD2011_DISGUISED
