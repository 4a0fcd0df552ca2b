"""The edition of a dossier that may be published: rounded, without values of the confidential table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evidence.figures import FRAMES
from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE, Words
from disclosure_pipeline.policy.clause_words import words_of
from disclosure_pipeline.policy.public_figures import round_records, round_share
from disclosure_pipeline.tables.messages import GROUND_TRUTH

Edition = Literal["internal", "publication"]

# What names levels: none of them is public.
_NAMING_LEVELS = ("one_way", "two_way")
# Figures of the engine, its sample and the number of columns: they tell nothing of people.
_KEPT = frozenset(("synthesis", "copy_difference", "permuted_deviation", "half_deviation", "certainty"))


def make_publishable(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a dossier with every figure rounded to `smallest_count` people, and without any level.

    A percentage becomes that of a number of people that is a multiple of `smallest_count`; so do counts.
    Warnings are counted, since their sentences may hold values. What the policy sets is left as it is, and
    so is every outcome: it is that of the exact figures.
    """
    figures = content["figures"]
    people = min([figures["N_d"], *figures["N_s"]])
    rounding = _Rounding(content["smallest_count"], max(people, 1))
    return {
        **content,
        "clauses": [_round_clause(clause, rounding) for clause in content["clauses"]],
        "figures": _round_figures(figures, rounding),
        "exact_copies": [_round_row(row, "exact_copies", rounding) for row in content["exact_copies"]],
        "ledger": _round_ledger(content["ledger"], rounding),
        "warnings": [],
        "number_of_warnings": len(content["warnings"]),
    }


class _Rounding:
    """Rounds what is said of so many people to multiples of the smallest number that may be told."""

    def __init__(self, smallest: int, people: int) -> None:
        self.smallest = smallest
        self._people = people

    def count(self, value: float) -> int:
        return int(round(value / self.smallest) * self.smallest)

    def share(self, value: float, whole: float) -> float:
        step = whole * self.smallest / self._people
        return round(value / step) * step

    def figure(self, value: Any, words: Words | None) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        unit = words.unit if words else ""
        if unit == PERCENT:
            return min(self.share(value, 100), 100.0)
        if unit == POINTS:
            return self.share(value, 100)
        if unit == SHARE:
            return min(self.share(value, 1), 1.0)
        if unit == RECORDS:
            return self.count(value)
        if unit == COUNT:  # of values, columns, warnings: not of people
            return value
        return float(f"{value:.1g}")


def _round_ledger(ledger: Sequence[Mapping[str, Any]], rounding: _Rounding) -> list[dict[str, Any]]:
    """What was changed, tables by number: the names of the files that arrived are nobody's business."""
    numbers: dict[str, int] = {}
    rows = []
    for change in ledger:
        table = change["table"]
        if table != GROUND_TRUTH:
            table = f"table {numbers.setdefault(table, len(numbers) + 1)} of those compared with it"
        rows.append({**change, "table": table, "records": rounding.count(change["records"])})
    return rows


def _round_clause(clause: Mapping[str, Any], rounding: _Rounding) -> dict[str, Any]:
    if clause["measure"] in _KEPT or clause["measure"] == "warnings":
        return dict(clause)
    words = words_of(clause["measure"])
    limit = clause["limit"]
    return {
        **clause,
        "value": rounding.figure(clause["value"], words),
        "limit": rounding.figure(limit, words) if clause["share_of"] else limit,
    }


def _round_figures(figures: Mapping[str, Any], rounding: _Rounding) -> dict[str, Any]:
    rounded = {
        name: [] if name in _NAMING_LEVELS else [_round_row(row, name, rounding) for row in rows]
        for name, rows in figures.items()
        if name in FRAMES
    }
    rounded["subgroups"] = _round_groups(figures.get("subgroups", []), rounding.smallest)
    others = {name: figures[name] for name in ("keys", "targets", "N_s")}
    stacked = figures.get("stacked")
    return {
        **others,
        "N_d": rounding.count(figures["N_d"]),
        **rounded,
        **({} if stacked is None else {"stacked": _round_figures(stacked, rounding)}),
    }


def _round_groups(rows: Sequence[Mapping[str, Any]], smallest: int) -> list[dict[str, Any]]:
    """The groups whose names are public, each rounded to people of its own."""
    return [
        {
            **{name: row[name] for name in ("column", "group", "target", "synthesis", "public")},
            "records": round_records(row["records"], smallest),
            **{
                name: round_share(row[name], row["records"], smallest)
                for name in ("DiSCO", "DiSCO_others")
                if row[name] is not None
            },
        }
        for row in rows
        if row.get("public") is True
    ]


def _round_row(row: Mapping[str, Any], frame: str, rounding: _Rounding) -> dict[str, Any]:
    return {
        name: value
        if name in _KEPT or (frame == "exact_copies" and name == "columns")
        else rounding.figure(value, find_words(name, frame))
        for name, value in row.items()
    }
