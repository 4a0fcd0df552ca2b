"""The table of the study: a row a candidate, figures and no records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

TABLE = Path(__file__).parent / "results.tsv"
KEY = ["table", "candidate", "seed"]
FACTS = [*KEY, "decision", "broken", "contract"]
FAILED = "failed"
"""Instead of a decision: nothing was made within the time, or an error was raised."""


def write(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Add rows to a table, in place of those of the same candidates."""
    new = pd.DataFrame(list(rows))
    old = [read(path)] if path.exists() else []
    table = pd.concat([*old, new]).drop_duplicates(KEY, keep="last") if len(new) or old else new
    columns = [*FACTS, *sorted(set(table.columns) - set(FACTS))]
    ordered = table.reindex(columns=columns).sort_values(KEY, kind="stable")
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered.to_csv(path, sep="\t", index=False, float_format="%.4g", lineterminator="\n")


def read(path: Path = TABLE) -> pd.DataFrame:
    """Return the table: what is missing in a fact is an empty text, a figure that is missing NaN."""
    text = dict.fromkeys(["table", "candidate", "decision", "broken", "contract"], str)
    return pd.read_csv(path, sep="\t", dtype=text).fillna(dict.fromkeys(text, ""))
