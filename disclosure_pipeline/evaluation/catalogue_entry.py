"""An entry of the catalogue: a figure, what it means, what bounds it, and how it may be published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from disclosure_pipeline.evaluation import frame_words
from disclosure_pipeline.measures.words import Words

Role = Literal["bound", "strict", "beyond", "check", "guard", "doubt", "overlap", "control"]
Rounding = Literal["share", "records", "unit", "exact"]
# Ends the name of a measure that is bounded without an allowance for chance.
STRICT_SUFFIX = "_strictly"
Question = Literal["copied", "found", "learned", "comparable", "trusted"]


@dataclass(frozen=True)
class GuardBound:
    """The bound of a guard, a figure that every gate bounds.

    `description` appears in the schema of a gate's file; a bound without one cannot be changed. A gate may
    set any bound from `lowest` up to, not including, `below`, which no table could exceed.
    """

    default: float
    description: str = ""
    lowest: float = 0
    below: float = 100


@dataclass(frozen=True)
class Measure:
    """A figure: where it appears, what it means, what bounds it, and how it may be published.

    `name` is the name of its clauses; `column` its column in `frame`, empty if it combines several.

    `role` says how it is judged; None if it is only shown. A policy may bound a "bound"; "strict" is the same
    without an allowance for chance; "beyond" is the smallest of the figures `smaller_of`; a "check" counts
    flags. Every gate has the clauses of each "guard" and "overlap", which no waiver can lift. A "doubt" or
    "control" beyond its bound leaves the candidate undetermined. `question` is the section of the page: are
    records copied, people found, or targets learned; are the tables comparable and the engine trusted?

    `published` says how it is rounded for the public: as a "share" of all records or a number of "records",
    in statements, too; by its "unit", in the public edition of the dossier only; or "exact", if it reveals
    nothing about people. None, the default, withholds it.

    `original` is the same risk in GT itself, of which a bound may be a share; `bound` is that of a guard.
    `meaning` says briefly what a broken bound means; the columns whose `by_column` exceeds it are listed.
    `is_per_confidential_table`: every further confidential table has this figure, too. `is_of_release`: all
    files of a candidate have one figure together; `single_file_measure` replaces it if there is one file.
    `rank` orders the reasons for a refusal; `shown_with` is the guard whose check also shows this figure.
    """

    name: str
    words: Words
    frame: str
    column: str
    role: Role | None = None
    family: str = ""
    question: Question = "learned"
    per_target: bool = True
    task: str | None = None
    largest: float | None = 100
    published: Rounding | None = None
    original: str | None = None
    smaller_of: tuple[str, ...] = ()
    bound: GuardBound | None = None
    meaning: str = ""
    by_column: str = ""
    is_per_confidential_table: bool = False
    is_of_release: bool = False
    single_file_measure: str = ""
    rank: int = 99
    shown_with: str = ""

    @property
    def high_is_safe(self) -> bool:
        """True if it is bounded from below (`at_least`), as protection is."""
        return self.words.high_is == "safe"

    @property
    def can_be_waived(self) -> bool:
        """True if a waiver may lift its bound."""
        return self.role in {"bound", "strict", "beyond", "check"}

    @property
    def is_stacked(self) -> bool:
        """True if its bound also applies to all files of a candidate stacked as one table."""
        is_risk = self.role in {"bound", "strict", "beyond", "guard", "doubt"}
        return is_risk and not self.is_of_release and self.family not in {"protection", "prediction"}


def list_columns(
    frame: str,
    words: Mapping[str, Words],
    *,
    share: str = "",
    records: str = "",
    unit: str = "",
    exact: str = "",
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
    **facts: Any,
) -> Iterator[Measure]:
    """Yield an entry for each column.

    `share`, `records`, `unit` and `exact` list the columns that are published in this way, separated by
    blanks. `facts` are fields of every entry; `overrides` has those of single columns.
    """
    published = dict.fromkeys(share.split(), "share") | dict.fromkeys(records.split(), "records")
    published |= dict.fromkeys(unit.split(), "unit") | dict.fromkeys(exact.split(), "exact")
    for column, column_words in words.items():
        fields = {
            "name": column,
            "family": frame,
            "published": published.get(column),
            **facts,
            **(overrides or {}).get(column, {}),
        }
        yield Measure(words=column_words, frame=frame, column=column, **fields)


def list_guard(
    name: str,
    words: Words,
    frame: str,
    others: tuple[str, ...] = (),
    *,
    by_chance: Words | None = None,
    **facts: Any,
) -> Iterator[Measure]:
    """Yield the entries of a guard: its figure, the figure by chance, and what is beyond chance."""
    facts = {"role": "guard", "family": "guards", "question": "copied", "per_target": False, **facts}
    for place in (frame, *others):
        for column, column_words in frame_words.add_chance_words({name: words}).items():
            described = by_chance if by_chance and column.endswith("_by_chance") else column_words
            is_bounded = place == frame and column.endswith("_beyond_chance")
            judged = {"name": name, **facts} if is_bounded else {"name": column, "family": place}
            yield Measure(words=described, frame=place, column=column, published="unit", **judged)


def describe_beyond_chance(
    name: str, words: Words, frame: str, *, published: Rounding = "share", rank: int = 99, **facts: Any
) -> Measure:
    """Return the entry of the column `<name>_chance`: the part of a difference that is beyond chance."""
    described = frame_words.reword_beyond_chance(words)
    return Measure(
        name, described, frame, f"{name}_chance", role="bound", published=published, rank=rank, **facts
    )


def bound_strictly(column: str, rank: int = 99) -> dict[str, Any]:
    """Return the fields of an entry that bounds a difference without an allowance for chance."""
    return {"name": f"{column}{STRICT_SUFFIX}", "role": "strict", "rank": rank}


def leave_unbounded(words: Mapping[str, Words], *shown: str) -> dict[str, dict[str, object]]:
    """Return the fields of entries that are only shown: standard errors, and the columns `shown`."""
    return {name: {"role": None} for name in words if name.endswith("_se") or name in shown}


def select_words(words: Mapping[str, Words], *names: str) -> dict[str, Words]:
    """Return the words of some columns."""
    return {name: words[name] for name in names}


def drop_repeats(*entries: Measure) -> tuple[Measure, ...]:
    """Return the entries without repeats: a guard's figure may also be an ordinary column of its frame."""
    return tuple(dict.fromkeys(entries))


def find_columns(catalogue: Iterable[Measure]) -> dict[str, dict[str, Words]]:
    """Return the words of every column, by frame (or function that returns it) and column."""
    columns: dict[str, dict[str, Words]] = {}
    for entry in catalogue:
        if entry.column:
            columns.setdefault(entry.frame, {}).setdefault(entry.column, entry.words)
    return columns
