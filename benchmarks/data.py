"""The tables that are measured: the demo's population and its honest synthesis, as Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from disclosure_pipeline.demo.population import NO_OWN_INCOME, category, population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.tables.dictionary import Column

KEYS = ("sex", "age", "region", "household")
TARGETS = ("education", "income", "health", "work", "worked_abroad")
CASES = {"4 keys": KEYS, "4 keys and a postcode": (*KEYS, "postcode")}
INTEGERS = ("age", "postcode")
DICTIONARY = {
    name: Column.model_validate({"type": "integer" if name in INTEGERS else "category"})
    for name in (*KEYS, "postcode", *TARGETS)
}

_CHUNK = 1_000_000
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


def write(folder: Path, records: int) -> list[Path]:
    """GT and SD of so many records each, text in dictionaries; drawn in parts, for memory's sake."""
    paths = [folder / f"{name}_{records}.parquet" for name in ("gt", "sd")]
    schema = pa.Schema.from_pandas(tables(1)[0], preserve_index=False)
    with (
        pa.parquet.ParquetWriter(paths[0], schema) as gt,
        pa.parquet.ParquetWriter(paths[1], schema) as sd,
    ):
        for seed, start in enumerate(range(0, records, _CHUNK)):
            for writer, table in zip((gt, sd), tables(min(_CHUNK, records - start), seed), strict=True):
                writer.write_table(pa.Table.from_pandas(table, schema, preserve_index=False))
    return paths


def _in_bands(income: pd.Series) -> pd.Series:
    """The last band has no end; no income of one's own is a level, not told is missing."""
    amounts = income.to_numpy(dtype=np.float64, na_value=np.nan)
    band = np.minimum(np.nan_to_num(amounts) // _BAND, _BANDS - 1).astype(np.int16) + 1
    band[amounts == NO_OWN_INCOME] = 0
    band[np.isnan(amounts)] = -1
    return pd.Series(category(band, _INCOMES), index=income.index)
