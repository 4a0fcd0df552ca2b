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
    """A row for each size of the ground truth: how many honest candidates were judged, and not approved."""
    measured = pd.read_csv(MEASURED / "simulated.tsv", sep="\t")
    of_halves = measured["made"].str.contains("half")
    size = measured["records"].map("{:,}".format).mask(of_halves, "halves of public tables")
    by_size = measured.groupby(size, sort=False)[["candidates", "refused", "undetermined"]].sum()
    by_size.loc["all"] = by_size.sum()
    rows = [
        [str(name), *map("{:,}".format, numbers)]
        for name, numbers in zip(by_size.index, by_size.to_numpy().tolist(), strict=True)
    ]
    return _write_table(["records of GT", "honest candidates", "refused", "undetermined"], rows)


def _write_table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
