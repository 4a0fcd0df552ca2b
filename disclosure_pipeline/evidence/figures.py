"""The figures of an evaluation as plain data, with small counts kept silent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from disclosure_pipeline.evaluation.frames import name_values
from disclosure_pipeline.evaluation.result import Disclosure

FRAMES = (
    "identity",
    "attribute",
    "cap",
    "protection",
    "prediction",
    "identity_after_exclusions",
    "one_way",
    "two_way",
    "excluded",
    "key_overlap",
    "target_overlap",
    "control_identity",
    "control_attribute",
    "doubts",
    "guards",
    "guessed",
    "partial_copies",
    "columns_apart",
    "confidential",
    "holdout",
    "subgroups",
    "warnings",
)
_WITHHELD = "(too few records to name)"

# The levels that a flag names, each with the count of GT records that it speaks of.
_LEVELS = {
    "one_way": {"level": "n_level_disclosive"},
    "two_way": {"target_level": "key_target_total", "key_level": "key_total"},
}


def collect_figures(result: Disclosure, smallest_count: int) -> dict[str, Any]:
    """Every frame of the result as a list of rows; NaN becomes None.

    Levels that fewer than `smallest_count` GT records are behind are not named.
    """
    return {
        "keys": [str(key) for key in result.keys],
        "targets": [str(target) for target in result.targets],
        "N_d": result.N_d,
        "N_s": list(result.N_s),
        **({"N_holdout": result.N_holdout} if result.N_holdout else {}),
        **{name: to_rows(withhold_rare_levels(result, name, smallest_count)) for name in FRAMES},
        **({} if result.stacked is None else {"stacked": collect_figures(result.stacked, smallest_count)}),
    }


def withhold_rare_levels(result: Disclosure, name: str, smallest_count: int) -> pd.DataFrame:
    """One frame of the result, levels of too few records withheld."""
    frame = result.frame(name)
    if name not in _LEVELS:
        return frame
    publishable = frame.copy()
    for column, count in _LEVELS[name].items():
        publishable[column] = publishable[column].where(frame[count] >= smallest_count, _WITHHELD)
    return publishable


def to_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, first the names in its index, as plain Python values.

    What is not finite becomes None; an index without a name is left out.
    """
    names, rows = name_values(frame)
    return [dict(zip(names, map(_to_plain, row), strict=True)) for row in rows]


def _to_plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_markdown_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """A markdown table; `columns` maps the rows' keys to headings. Numbers are shown with 4 digits."""
    lines = [f"| {' | '.join(columns.values())} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(format_cell(row.get(name)) for name in columns)} |" for row in rows]
    return "\n".join(lines)


def format_cell(value: Any) -> str:
    """One value of a markdown table."""
    if value is None:
        return "-"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")
