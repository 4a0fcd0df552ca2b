"""What a gate notices, and how often it refuses honest tables, as measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

MEASURED = Path(__file__).parents[2] / "tests" / "disguises"


def strengths_page() -> str:
    """A row for each disguise: from which share on it is refused, before and now."""
    tables = (pd.read_csv(MEASURED / f"{name}.tsv", sep="\t") for name in ("strengths", "families"))
    measured = pd.concat(tables, ignore_index=True).sort_values("records", kind="stable")
    rows = [
        [disguise, f"{records:,}", before, now]
        for disguise in measured["disguise"].unique()
        for _, records, before, now in measured[measured["disguise"] == disguise].to_numpy().tolist()
    ]
    return _write_table(["", "records", "before", "now"], rows)


def honest_page() -> str:
    """A row for each size of the ground truth: how many honest candidates were judged, and refused."""
    measured = pd.read_csv(MEASURED / "simulated.tsv", sep="\t")
    by_size = measured.groupby("records")[["candidates", "refused"]].sum()
    by_size.loc["all"] = by_size.sum()
    rows = [
        [
            size if isinstance(size, str) else f"{size:,}",
            f"{candidates:,}",
            str(refused),
            f"{100 * refused / candidates:.1f} %",
        ]
        for size, (candidates, refused) in zip(by_size.index, by_size.to_numpy(), strict=True)
    ]
    return _write_table(["records of GT", "honest candidates", "refused", ""], rows)


def _write_table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
