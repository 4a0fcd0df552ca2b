"""The tables that are measured: the demo's population and its honest synthesis, as Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from disclosure_pipeline.demo.population import NO_OWN_INCOME, make_category, population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.tables.dictionary import Column

KEYS = ("sex", "age", "region", "household")
TARGETS = ("education", "income", "health", "work", "worked_abroad")
KEY_SETS = {"4 keys": KEYS, "4 keys and a postcode": (*KEYS, "postcode")}
INTEGERS = ("age", "postcode")
DICTIONARY = {
    name: Column.model_validate({"type": "integer" if name in INTEGERS else "category"})
    for name in (*KEYS, "postcode", *TARGETS)
}

Draw = Callable[[int, int], tuple[pd.DataFrame, pd.DataFrame]]

_CHUNK = 1_000_000
_EXAMPLE = 200_000  # records that show the levels of every column
_EXAMPLE_SEED = 1_000_003
_UNIFORM_POSTCODES = 500
_BAND = 250
_BANDS = 23
_INCOMES = ("none", *(f"from {_BAND * i}" for i in range(_BANDS)))


def tables(records: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """GT and a synthesis of it; income in 24 levels, and missing where it was not told."""
    ground_truth = population(records, seed, postcodes=True)
    synthetic = synthesise(ground_truth, seed)
    for table in (ground_truth, synthetic):
        table["income"] = _in_bands(table["income"])
    return ground_truth, synthetic


def uniform_tables(records: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """GT and SD with the columns and levels of `tables`, all drawn alone, every level as often as any other.

    There are as many postcodes as give a key combination 1.5 records at 10 million GT and SD records: hardly
    any is left alone, none has many, and nothing is in order.
    """
    example, _ = tables(_EXAMPLE)
    example["postcode"] %= _UNIFORM_POSTCODES
    random = np.random.default_rng(seed)
    ground_truth, synthetic = (
        pd.DataFrame({name: _drawn(column, records, random) for name, column in example.items()})
        for _ in range(2)
    )
    return ground_truth, synthetic


def resampled_tables(records: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """GT and SD as `tables`, drawn faster: records of an example, with the postcode of another one.

    Both are of the same region, so that keys are as many and as rare as there.
    """
    random = np.random.default_rng(seed)
    ground_truth, synthetic = (_resampled(example, records, random) for example in _examples())
    return ground_truth, synthetic


@cache
def _examples() -> tuple[pd.DataFrame, pd.DataFrame]:
    """GT and SD by region, which says where in them the others of a region are."""
    ground_truth, synthetic = (
        table.sort_values("region", ignore_index=True) for table in tables(_CHUNK, _EXAMPLE_SEED)
    )
    return ground_truth, synthetic


def _resampled(example: pd.DataFrame, records: int, random: np.random.Generator) -> pd.DataFrame:
    drawn = example.take(random.integers(0, len(example), records)).reset_index(drop=True)
    region = drawn["region"].cat.codes.to_numpy().astype(np.int64)
    regions = example["region"].cat.codes.to_numpy()
    assert region.min() >= 0, "every record has a region"
    first, last = (np.searchsorted(regions, range(region.max() + 1), side) for side in ("left", "right"))
    other = random.integers(first[region], last[region])
    return drawn.assign(postcode=example["postcode"].to_numpy()[other])


def _drawn(column: pd.Series, records: int, random: np.random.Generator) -> pd.Series:
    if isinstance(column.dtype, pd.CategoricalDtype):
        lowest = -1 if column.isna().any() else 0  # the code of missing
        codes = random.integers(lowest, len(column.cat.categories), records)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=column.dtype))
    return pd.Series(random.integers(column.min(), column.max() + 1, records).astype(column.dtype.type))


def written(folder: Path, records: int, draw: Draw = tables) -> list[Path]:
    """The files of `write`, which are only written where they are not there."""
    paths = _paths(folder, records, draw)
    return paths if all(path.exists() for path in paths) else write(folder, records, draw)


def _paths(folder: Path, records: int, draw: Draw) -> list[Path]:
    return [folder / f"{draw.__name__}_{name}_{records}.parquet" for name in ("gt", "sd")]


def write(folder: Path, records: int, draw: Draw = tables) -> list[Path]:
    """GT and SD of so many records each, text in dictionaries; drawn in parts, for memory's sake."""
    paths = _paths(folder, records, draw)
    schema = pa.Schema.from_pandas(tables(1)[0], preserve_index=False)
    with (
        pa.parquet.ParquetWriter(paths[0], schema) as gt,
        pa.parquet.ParquetWriter(paths[1], schema) as sd,
    ):
        for seed, start in enumerate(range(0, records, _CHUNK)):
            for writer, table in zip((gt, sd), draw(min(_CHUNK, records - start), seed), strict=True):
                writer.write_table(pa.Table.from_pandas(table, schema, preserve_index=False))
    return paths


@dataclass(frozen=True)
class Case:
    """Keys, and who draws the tables."""

    keys: tuple[str, ...]
    draw: Draw = tables


CASES = {
    **{name: Case(keys) for name, keys in KEY_SETS.items()},
    "4 keys and a postcode, uniform": Case(KEY_SETS["4 keys and a postcode"], uniform_tables),
}


def _in_bands(income: pd.Series) -> pd.Series:
    """The last band has no end; no income of one's own is a level, not told is missing."""
    amounts = income.to_numpy(dtype=np.float64, na_value=np.nan)
    band = np.minimum(np.nan_to_num(amounts) // _BAND, _BANDS - 1).astype(np.int16) + 1
    band[amounts == NO_OWN_INCOME] = 0
    band[np.isnan(amounts)] = -1
    return pd.Series(make_category(band, _INCOMES), index=income.index)
