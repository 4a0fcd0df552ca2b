"""What a gate notices, and how often it refuses honest tables, as measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

MEASURED = Path(__file__).parents[2] / "tests" / "disguises"


def strengths_page() -> str:
    """A row for each disguise: from which share on it is refused, by the number of records."""
    measured = pd.read_csv(MEASURED / "strengths.tsv", sep="\t")
    sizes = sorted(measured["records"].unique())
    table = measured.pivot(index="disguise", columns="records", values="from").fillna("")
    rows = [[name, *table.loc[name, sizes]] for name in measured["disguise"].unique()]
    return _write_table(["", *(f"{size:,} records" for size in sizes)], rows)


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
