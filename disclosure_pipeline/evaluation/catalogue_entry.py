"""An entry of the catalogue: a figure, what it means, what bounds it, and how it may be published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from disclosure_pipeline.evaluation import frame_words
from disclosure_pipeline.measures.words import Words

Role = Literal["bound", "strict", "beyond", "check", "guard", "doubt", "overlap", "control"]
Rounding = Literal["share", "records", "unit", "exact"]
# The ending of a measure that is bounded without leave for chance.
STRICTLY = "_strictly"
Question = Literal["copied", "found", "learned", "comparable", "trusted"]


@dataclass(frozen=True)
class GuardBound:
    """The bound of a figure that every gate bounds.

    `description` stands in the schema of a gate's file; a bound without one cannot be changed. A gate may set
    any bound from `lowest` and below `below`, which every table keeps.
    """

    default: float
    description: str = ""
    lowest: float = 0
    below: float = 100


@dataclass(frozen=True)
class Measure:
    """A figure: where it stands, what it means, what bounds it, and how it may be published.

    `name` is that of its clauses; `column` that of the frame's column, empty where several make it up.
    `words`: title, sentence, finding, unit, denominator, direction and source.

    `role` is how it is judged, None where it is only shown. A policy may bound a "bound"; a "strict" is the
    same bound without leave for chance; "beyond" is the smaller of the figures `smaller_of`; a "check" counts
    flags; every gate has the clauses of a "guard", and of an "overlap", which a waiver cannot let pass. A
    "doubt" or "control" beyond its bound leaves the candidate undetermined. `question`: whether records are
    copied, people found, or something learned of them, and whether the tables can be compared and the engine
    be trusted; it is the section of the page.

    `published` is how it is rounded for the public: as a "share" of all records or as a number of "records",
    both of them in statements, too; by its "unit" in the public edition of the dossier alone; "exact" of what
    tells nothing of people. None, as by default, withholds it.

    `original` is the same risk of GT itself, of which a bound may be a share; `bound` that of a guard;
    `meaning` says in a word what a broken one means, with the columns whose `by_column` is beyond the bound.
    `of_confidential`: every further confidential table has it, too. `of_release`: it is one figure of all
    files of a candidate, and `of_one_file` the name of that which stands for it where there is one file.
    `rank` is its place among the reasons for a refusal; `shown_with` the guard whose check shows it, too.
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
    of_confidential: bool = False
    of_release: bool = False
    of_one_file: str = ""
    rank: int = 99
    shown_with: str = ""

    @property
    def high_is_safe(self) -> bool:
        """True if a bound on it is `at_least`, as on a measure of protection."""
        return self.words.high_is == "safe"

    @property
    def can_be_waived(self) -> bool:
        """True if a waiver may let a broken bound of it pass."""
        return self.role in {"bound", "strict", "beyond", "check"}

    @property
    def is_stacked(self) -> bool:
        """True if all files of a candidate as one table have to keep a bound of it, too."""
        is_risk = self.role in {"bound", "strict", "beyond", "guard", "doubt"}
        return is_risk and not self.of_release and self.family not in {"protection", "prediction"}


_Each = Mapping[str, Mapping[str, Any]]


def list_columns(
    frame: str,
    words: Mapping[str, Words],
    *,
    share: str = "",
    records: str = "",
    unit: str = "",
    exact: str = "",
    each: _Each | None = None,
    **facts: Any,
) -> Iterator[Measure]:
    """Yield an entry for each column; `share`, `records`, `unit` and `exact` name what is published so."""
    published = dict.fromkeys(share.split(), "share") | dict.fromkeys(records.split(), "records")
    published |= dict.fromkeys(unit.split(), "unit") | dict.fromkeys(exact.split(), "exact")
    for column, column_words in words.items():
        own = {
            "name": column,
            "family": frame,
            "published": published.get(column),
            **facts,
            **(each or {}).get(column, {}),
        }
        yield Measure(words=column_words, frame=frame, column=column, **own)


def list_guard(
    name: str,
    words: Words,
    frame: str,
    others: tuple[str, ...] = (),
    *,
    by_chance: Words | None = None,
    **facts: Any,
) -> Iterator[Measure]:
    """Yield the columns of a guard: the figure, what chance gives, and where it is beyond chance."""
    facts = {"role": "guard", "family": "guards", "question": "copied", "per_target": False, **facts}
    for place in (frame, *others):
        for column, column_words in frame_words.with_chance({name: words}).items():
            described = by_chance if by_chance and column.endswith("_by_chance") else column_words
            is_bounded = place == frame and column.endswith("_beyond_chance")
            judged = {"name": name, **facts} if is_bounded else {"name": column, "family": place}
            yield Measure(words=described, frame=place, column=column, published="unit", **judged)


def describe_beyond_chance(
    name: str, words: Words, frame: str, *, published: Rounding = "share", rank: int = 99, **facts: Any
) -> Measure:
    """Return the entry of a `…_beyond` that counts where it is beyond chance, beside that of its column."""
    described = frame_words.where_beyond_chance(words)
    return Measure(
        name, described, frame, f"{name}_chance", role="bound", published=published, rank=rank, **facts
    )


def name_strictly(column: str, rank: int = 99) -> dict[str, Any]:
    """Return what an entry says of a difference that is bounded without leave for chance."""
    return {"name": f"{column}{STRICTLY}", "role": "strict", "rank": rank}


def bound_all_but_errors(words: Mapping[str, Words], *shown: str) -> dict[str, dict[str, object]]:
    """Return what entries say of columns that nobody bounds: standard errors, and what is only shown."""
    return {name: {"role": None} for name in words if name.endswith("_se") or name in shown}


def sample_words(words: Mapping[str, Words], *names: str) -> dict[str, Words]:
    """Return the words of some columns."""
    return {name: words[name] for name in names}


def list_once(*entries: Measure) -> tuple[Measure, ...]:
    """Return the entries without repeats: a guard may be about a figure that its frame has anyway."""
    return tuple(dict.fromkeys(entries))


def find_columns(catalogue: Iterable[Measure]) -> dict[str, dict[str, Words]]:
    """Return the words of every column, by frame or by the function that returns it."""
    columns: dict[str, dict[str, Words]] = {}
    for entry in catalogue:
        if entry.column:
            columns.setdefault(entry.frame, {}).setdefault(entry.column, entry.words)
    return columns
