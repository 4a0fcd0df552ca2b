"""Write docs/synthesizers.md and its pictures from the table of the study: `python -m synthesizers.page`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from synthesizers import pictures, results
from synthesizers.candidates import SYNTHESIZERS
from synthesizers.findings import (
    BY_BOUNDS,
    BY_CONTRACT,
    BY_GUARDS,
    BY_LIMIT,
    FIRST_LOOKED_AT,
    FOUND,
    SHARES,
    count_refused,
    describe_defaults,
    find_first,
    is_broken,
    name_outcomes,
    read_bound,
    summarise,
)
from synthesizers.public_tables import MOST, TABLES

DOCS = Path(__file__).parents[2] / "docs"
_BEGIN, _END = "<!-- study -->", "<!-- /study -->"
_TEMPLATE = Path(__file__).parent / "page_template.md"


def write_page(table: pd.DataFrame) -> str:
    """Return the part of the page that follows from the table."""
    summary = summarise(table)
    return _TEMPLATE.read_text(encoding="utf-8").format(
        study=_describe_study(table),
        copies=_describe_copies(table, summary),
        synthesizers=_write_rows(_list_synthesizers(summary)),
        first=_describe_first(table),
        resemblance=_describe_resemblance(summary),
        power=_describe_power(table),
        tables=_write_rows(_list_tables(table)),
        defaults=_describe_defaults(table),
        guards=_write_rows(_list_defaults(table)),
    )


def compare(others: pd.DataFrame, own: pd.DataFrame) -> str:
    """Return the rows of all synthesizers, one's own among them, as text; over the tables that it ran on."""
    both = pd.concat([others[others["table"].isin(own["table"])], own], ignore_index=True)
    return summarise(both).set_index("title").round(1).to_string()


def _describe_study(table: pd.DataFrame) -> str:
    tables = [name for name in TABLES if name in set(table["table"])]
    synthesizers = [name for name in SYNTHESIZERS if name in set(table["candidate"])]
    failed = int(table["decision"].eq(results.FAILED).sum())
    left_out = f" {failed} could not be made in time and are left out." if failed else ""
    return (
        f"`make study` halves {len(tables)} public tables (at most {MOST:,} records), lets "
        f"{len(synthesizers)} synthesizers make as many records of one half, with three seeds, and asks the "
        "gate that `init` writes for that table, all columns published. Numbers are made as coarse as the "
        "original's; of few values, the nearest. The other half is fresh: honest by "
        f"definition. Copies are put among its records. All {len(table):,} candidates and every figure are "
        f"in `benchmarks/synthesizers/results.tsv`.{left_out}"
    )


def _describe_copies(table: pd.DataFrame, summary: pd.DataFrame) -> str:
    names = summary["title"]
    often = names[summary[BY_GUARDS] >= 100 / 3]
    never = (summary[BY_GUARDS] == 0).sum()
    only_looks = names[(summary[BY_GUARDS] < 10) & (summary[BY_BOUNDS] + summary[BY_CONTRACT] >= 25)]
    sentences = [
        f"Guards refuse at least a third of the tables of: {_join(often)}.",
        f"They refuse no table of {never} others.",
    ]
    if len(only_looks):
        sentences.append(
            f"Refused, but hardly by a guard, are: {_join(only_looks)}. They repeat no people: they are too "
            "far from the original to be compared, or hit somebody by chance."
        )
    return " ".join(sentences)


def _list_synthesizers(summary: pd.DataFrame) -> list[list[Any]]:
    heading = [
        "synthesizer",
        "tables",
        "guard",
        "contract",
        "bounds",
        "limit",
        "copied",
        "nearly",
        "DiSCO",
        "distance",
    ]
    rows = [
        [
            row["title"],
            f"{row['tables']:.0f}",
            *(f"{row[outcome]:.0f}" for outcome in (BY_GUARDS, BY_CONTRACT, BY_BOUNDS, BY_LIMIT)),
            *(f"{row[name]:.1f}" for name in ("copied", "nearly", "DiSCO")),
            f"{row['distance']:.2f}",
        ]
        for _, row in summary.iterrows()
    ]
    return [heading, *rows]


def _describe_first(table: pd.DataFrame) -> str:
    words = {
        "copies_3": "3 % copied",
        "copies_10": "10 % copied",
        "near_30": "30 % nearly copied",
        "trees_5": "trees with leaves of five",
        "trees_20": "of twenty",
    }
    shares = find_first(table, words)
    noticed = [
        f"{words[str(name)]}, `{row.idxmax()}` ({row.max():.0f} % of the tables)"
        for name, row in shares.iterrows()
        if row.max() > 0
    ]
    return f"The guard that most tables break, of those with {'; '.join(noticed)}."


def _describe_resemblance(summary: pd.DataFrame) -> str:
    honest = summary[summary[BY_GUARDS] < 10]
    nearest = honest.sort_values("distance").iloc[0] if len(honest) else summary.iloc[0]
    copying = summary[summary["copied"] > read_bound(FOUND[0])]
    closer = (
        ""
        if copying.empty
        else (
            f" Those that copy people lie at {copying['distance'].min():.2f} to "
            f"{copying['distance'].max():.2f}."
        )
    )
    far = summary.sort_values("distance").iloc[-1]
    return (
        f"Of the synthesizers that guards refuse in fewer than a tenth of the tables, {nearest['title']} is "
        f"the nearest to the original: the worst pair of columns is {nearest['distance']:.2f} further away "
        f"than in a fresh sample.{closer} The furthest, at {far['distance']:.2f}, is {far['title']}: what it "
        "does not disclose it does not know."
    )


def _describe_power(table: pd.DataFrame) -> str:
    fresh = count_refused(table, "fresh")
    share = {percent: count_refused(table, f"copies_{percent}").sum() for percent in SHARES}
    noticed = ", ".join(
        f"{counts['sum']:.0f} of {counts['count']:.0f} with {percent} %" for percent, counts in share.items()
    )
    undetermined = int(name_outcomes(table[table["candidate"].eq("fresh")]).eq(BY_LIMIT).sum())
    return (
        f"Of {fresh['count'].sum()} fresh halves {fresh['sum'].sum()} are refused, and {undetermined} left "
        f"undetermined: in tables as small and coarse, copies would not be noticed. Of those with copies, "
        f"more speaks against {noticed}."
    )


def _list_tables(table: pd.DataFrame) -> list[list[Any]]:
    names = ["fresh", *(f"copies_{percent}" for percent in SHARES), "near_30"]
    counts = {name: count_refused(table, name) for name in names}
    rows = []
    for known in (of for of in TABLES.values() if of.name in set(table["table"])):
        cells = [
            f"{counts[name]['sum'].get(known.name, 0)}/{counts[name]['count'].get(known.name, 0)}"
            for name in names
        ]
        rows.append([f"{known.name} ({known.what})", *cells])
    return [["table", "fresh", *(f"{percent}%" for percent in SHARES), "near"], *rows]


def _describe_defaults(table: pd.DataFrame) -> str:
    fresh = table[table["candidate"].eq("fresh")]
    broken = [f"`{name}`" for name in FIRST_LOOKED_AT if is_broken(fresh, [name]).any()]
    kept = "every fresh half keeps them" if not broken else f"fresh halves break {_join(broken)}"
    copied = table[table["candidate"].eq("copies_30")]
    noticed = [f"`{name}`" for name in FIRST_LOOKED_AT if is_broken(copied, [name]).mean() > 1 / 2]
    return (
        f"A default lies above what fresh tables show, and below what copies show: {kept}, and where 30 % "
        f"are copied most tables break {_join(noticed)}."
    )


def _list_defaults(table: pd.DataFrame) -> list[list[Any]]:
    heading = ["guard", "default", "fresh", "10%", "30%", "near", "bootstrap"]
    rows = [
        [f"`{name}`", f"{row['default']:g}", *(f"{value:.3g}" for value in row.iloc[1:])]
        for name, row in describe_defaults(table).iterrows()
    ]
    return [heading, *rows]


def _join(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed) or "none"


def _write_rows(rows: list[list[Any]]) -> str:
    heading, *others = rows
    rule = "|".join(["---", *(["---:"] * (len(heading) - 1))])
    return "\n".join(f"|{line}|" for line in ("|".join(heading), rule, *("|".join(row) for row in others)))


def main() -> None:
    table = results.read()
    pictures.draw(table, DOCS / "images")
    file = DOCS / "synthesizers.md"
    before, rest = file.read_text(encoding="utf-8").split(_BEGIN)
    after = rest.split(_END)[1]
    file.write_text(f"{before}{_BEGIN}\n\n{write_page(table)}\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
