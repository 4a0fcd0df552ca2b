"""The entry of a figure, which stands beside its formula.

It has the figure's words, its place in the frames of a result, what may be bounded, the default of a figure
that every gate bounds, what a broken bound means, and how it is published. `catalogue` collects the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, get_args

from disclosure_pipeline.measures.exact import Floats, Mask
from disclosure_pipeline.measures.frequency import CommonGuess, Guess, Rows
from disclosure_pipeline.measures.words import BY_SYNTHETIC, Basis, Words, standard_error_of

Question = Literal["copied", "found", "learned", "trusted"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
"""The questions of the page, in its order."""

Statistic = Literal["at_most", "at_least", "at_most_share", "beyond"]
"""The statistic of a figure that is bounded.

The figure itself, from above or below; its share of GT's own risk; or what is beyond other people's records
and beyond chance.
"""

About = Literal["", "target", "key", "level", "way", "column", "columns"]
"""The subject of a figure.

The whole table, a target, a key, a sensitive level of a target, a way in which people are found, a column, or
a set of columns.
"""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "subgroups": ("column", "group"),
    "one_way": ("target", "level"),
    "two_way": ("target", "target_level", "key", "key_level"),
}
"""The frames of groups of people, with their columns that name a group."""

Public = Literal["share", "difference", "unit", "exact"]
"""The rounding of a figure for the public.

As a "share" of all records, in statements, too; so, but only the "difference" from other people's records; by
its "unit", in the public edition of the dossier only; or "exact", if it reveals nothing about people.
"""


@dataclass(frozen=True)
class Default:
    """The bound that every gate has of a figure.

    A policy may set any from 0 up to, not including, `below`. `text`: what the bound is in percent of.
    `by_way`: the bounds that differ in some of the ways in which people are found.
    """

    statistic: Statistic
    bound: float
    text: str
    below: float = 100
    by_way: Mapping[str, float] = field(default_factory=dict)

    def find_bound(self, about: str | None) -> float:
        """Return the bound of a figure about a way (perhaps of a further confidential table), or anything."""
        ways = [way for way in self.by_way if about == way or (about or "").startswith(f"{way} of ")]
        return self.by_way[ways[0]] if ways else self.bound


@dataclass(frozen=True)
class Place:
    """The columns of a frame that have a figure: the figure itself, and what stands beside it.

    value: a column, or several of which the smallest counts. beyond_chance: what a gate bounds, where chance
    is allowed for. others: other people's records; of several columns, the largest counts. own: GT's own
    risk. permuted: the figure if SD's targets are permuted. is_of_any: not all of several columns need
    to be there. about: what its rows are about, where the frame does not say it.
    """

    frame: str
    value: str | tuple[str, ...] = ""
    at_n: str = ""
    others: str | tuple[str, ...] = ""
    beyond: str = ""
    se: str = ""
    by_chance: str = ""
    beyond_chance: str = ""
    own: str = ""
    permuted: str = ""
    is_of_any: bool = False
    about: str = ""

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The numbers of the long table that have a column of their own, each with its name."""
        named = {of.name: getattr(self, of.name) for of in fields(self) if of.name not in {"frame", "about"}}
        return {number: column for number, column in named.items() if column and isinstance(column, str)}


@dataclass(frozen=True)
class Baseline:
    """Contributions of a record if as many records of SD, or of other people, tell of it; and their words.

    at_n: from n records of SD. others: from n records of other people. words: of the figure from these.
    beyond: of the difference. all: of a guess, that of all records, for the error of the difference.
    """

    at_n: Callable[[Rows], Floats | Guess]
    others: Callable[[Rows], Floats | Guess]
    words: Words
    beyond: Words
    all: Callable[[Rows], CommonGuess] | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of a column of a frame, which a policy may bound, or the page may show.

    adds: what each record adds to it, from 0 to 1: GT's records, or by its `basis` those of SD. compared: the
    same of as many records of other people. Both are asked for records that the exclusions leave, as if there
    were none. Without `adds`, something else puts the figure where its `place` says.
    question: the page's question that it answers; None for a column that only the library's frames have.
    words, beyond: of the figure, and of what is bounded beyond other people's records, if it is not the
        difference from those of `compared`.
    also: further frames with rows of it, in the same columns.
    weighed: its place by weight, each record counting as the people it represents.
    statistics: what a policy may bound. default: what every gate bounds.
    family: the section of `measures` that it needs.
    is_doubt: beyond its bound, nothing can be judged. may_be_waived: a waiver may lift its bound although
        every gate has it.
    is_of_release: all files of a candidate have one figure together. is_stacked: it is also bounded for all
        files as one table.
    meaning: what a broken bound means. by_column: the further figure by which columns that break it are told.
    shown_with: the figure whose check also shows this one.
    follows: the figure of whose target it has the bounds, in place of own ones.
    public: how it and what stands beside it are rounded for the public; None withholds them.
    """

    name: str
    words: Words
    place: Place
    question: Question | None = None
    about: About = ""
    statistics: tuple[Statistic, ...] = ()
    beyond: Words | None = None
    also: tuple[str, ...] = ()
    weighed: Place | None = None
    default: Default | None = None
    family: str = ""
    largest: float = 100
    is_doubt: bool = False
    may_be_waived: bool = False
    is_of_release: bool = False
    is_per_confidential_table: bool = False
    is_stacked: bool = True
    meaning: str = ""
    by_column: str = ""
    shown_with: str = ""
    follows: str = ""
    public: Public | None = None
    adds: Callable[[Rows], Floats | Mask | Guess] | None = None
    compared: Baseline | None = None
    basis: Basis = "records"

    @property
    def comparisons(self) -> dict[str, Words]:
        """The words of the columns that compare it with other people's records."""
        if self.compared is None:
            return {}
        at_n = Words(
            f"{self.words.title}, of as many records",
            "The same from as many synthetic records as there are records of other people, if there are "
            "more.",
            beside=f"{BY_SYNTHETIC}, of as many records",
        )
        return {
            f"{self.name}_at_n": at_n,
            f"{self.name}_others": self.compared.words,
            f"{self.name}_beyond": self.compared.beyond,
            f"{self.name}_beyond_se": standard_error_of(f"{self.name}_beyond"),
        }

    @property
    def high_is_safe(self) -> bool:
        """True if it is bounded from below, as protection is."""
        return self.words.high_is == "safe"

    @property
    def is_only_shown(self) -> bool:
        """True if neither a policy nor a gate bounds it."""
        return not (self.statistics or self.default or self.is_doubt)

    @property
    def can_be_waived(self) -> bool:
        """True if a waiver may lift its bound: seldom of a figure that every gate bounds."""
        return self.may_be_waived or (self.default is None and not self.is_doubt)

    def find_place(self, basis: str) -> Place:
        """Return its place, by weight if a row's basis is people."""
        return self.weighed if basis == "people" and self.weighed is not None else self.place

    def find_published(self, statistic: Statistic) -> Public | None:
        """Return how what is bounded is rounded for the public; None withholds it."""
        if self.public == "difference":
            return "share" if statistic == "beyond" else None
        return self.public

    def find_words(self, statistic: Statistic) -> Words:
        """Return the words of what is bounded."""
        beyond = self.compared.beyond if self.beyond is None and self.compared is not None else self.beyond
        return beyond if statistic == "beyond" and beyond is not None else self.words


def show_column(
    name: str,
    frame: str,
    words: Mapping[str, Words],
    question: Question,
    about: About = "",
    public: Public | None = None,
) -> Figure:
    """Return the entry of a column of that name, which the page shows and nothing bounds."""
    place = Place(frame, value=name)
    return Figure(name, words[name], place, question, about, is_stacked=False, public=public)


def place_beyond(frame: str, name: str, basis: str = "", /, **columns: str | tuple[str, ...]) -> Place:
    """Return the place of a figure whose columns are named after it; `columns` has those of other names.

    `basis`: the end of the names of figures by weight.
    """
    beyond = f"{name}_beyond{basis}"
    named: dict[str, Any] = {
        "value": f"{name}{basis}",
        "others": f"{name}_others{basis}",
        "beyond": beyond,
        "se": f"{beyond}_se",
        "beyond_chance": f"{beyond}_chance",
    }
    return Place(frame, **named | columns)
