"""The words for a measure: title, one plain sentence, unit, denominator, direction and source.

Each measure has them once, beside its definition; pages, checks, schemas and the command line read them there
(`evaluation/frames.py` finds them by frame and column).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

PROJECT = "this project"
RAAB = "Raab, Nowok & Dibben 2024, arXiv:2406.16826"
BAILLARGEON = "Baillargeon & Charest 2020"
HU = "Hu, Statistical Data Privacy"
TAUB = "Taub, Elliot, Pampaka & Smith 2018"
LITTLE = "Little, Allmendinger & Elliot 2025"
GOOD = "Good 1953"
FRANCONI = "Franconi & Polettini 2004"
SKINNER = "Skinner & Elliot 2002"
PMSE = "Raab, Nowok & Dibben 2021"
WILSON = "Wilson 1927"
RAPID = "RAPID"
SDMETRICS = "SDMetrics"
SYNTHPOP = "synthpop"

# Names of a figure beside others of the same measure.
BY_ITSELF = "confidential table itself"
BY_SYNTHETIC = "synthetic table"
BY_OTHERS = "other people's records"
BY_CHANCE = "chance"
BY_FRESH_SAMPLE = "a fresh sample"
BY_INDEPENDENT_COLUMNS = "columns drawn independently"
BEYOND_OTHERS = "beyond other people's records"
BEYOND_FRESH_SAMPLE = "beyond a fresh sample"

# Denominators.
CONFIDENTIAL = "confidential records"
WITH_LEVEL = "records with the sensitive value"
SYNTHETIC: Final = "synthetic records"

Basis = Literal["records", "people", "synthetic records"]
"""The records that a figure counts: each once, each as the people it represents, or those of SD."""

Direction = Literal["risk", "safe", "neither"]
PERCENT, POINTS, RECORDS, SHARE = "%", "percentage points", "records", "share of 1"
COUNT, NONE, SQUARED, YESNO = "count", "none", "the target's unit, squared", "true or false"

_DIRECTIONS: dict[Direction, str] = {
    "risk": "A high value is a high risk.",
    "safe": "A high value is safe.",
    "neither": "It is not a risk in itself.",
}


@dataclass(frozen=True)
class Words:
    """A measure in words.

    sentence: what the figure says or counts. For a percentage, it names the records that are counted.
    denominator: the records that a percentage refers to.
    high_is: what a high value means.
    finding: a sentence that states the figure, with placeholders {value} (with its unit) and {column} (the
        target). subject: the people or records that it is about, for a chart; if empty, the title.
    beside: the figure's name in a legend or column header, beside others of its measure; if empty, the title.
    """

    title: str
    sentence: str
    unit: str = PERCENT
    denominator: str = CONFIDENTIAL
    high_is: Direction = "risk"
    source: str = PROJECT
    finding: str = ""
    beside: str = ""
    subject: str = ""

    @classmethod
    def neutral(cls, title: str, sentence: str, unit: str = PERCENT, **more: Any) -> Words:
        """Return the words of a figure that is not a risk in itself."""
        return cls(title, sentence, unit, high_is="neither", **more)

    @property
    def legend(self) -> str:
        """The figure's name in a legend or column header.

        Example:
            >>> Words("DiSCO by chance", "…", beside=BY_CHANCE).legend
            'chance'
        """
        return self.beside or self.title

    @property
    def unit_and_denominator(self) -> str:
        """The unit in words, such as "% of the confidential records", or "percentage points".

        Example:
            >>> Words("unique", "…").unit_and_denominator
            '% of the confidential records'
        """
        return f"{self.unit} of the {self.denominator}" if self.unit == PERCENT else self.unit

    @property
    def direction(self) -> str:
        """The meaning of a high value, as a sentence."""
        return _DIRECTIONS[self.high_is]

    @property
    def description(self) -> str:
        """The title, sentence, unit and direction on one line, for a panel or a schema."""
        title = self.title[:1].upper() + self.title[1:]
        return f"{title}. {self.sentence} {self._unit_sentence} {self.direction}"

    def explain(self, name: str) -> str:
        """Return title, sentence, unit, direction and source, on lines below the name of the column."""
        lines = [f"{name}: {self.title}", self.sentence, self._unit_sentence, self.direction]
        return "\n".join([*lines, f"Source: {self.source}."])

    @property
    def _unit_sentence(self) -> str:
        return f"Unit: {self.unit_and_denominator}."


_WORDS = "words"


def described(words: Words) -> Any:
    """Return a dataclass field, without a default, that carries these words."""
    return field(metadata={_WORDS: words})


def figure(title: str, sentence: str, unit: str = PERCENT, **more: Any) -> Any:
    """Return a dataclass field with the words `Words(title, sentence, unit, **more)`."""
    return described(Words(title, sentence, unit, **more))


def points(title: str, sentence: str, **more: Any) -> Any:
    """Return a dataclass field with the words of a difference in percentage points."""
    return figure(title, sentence, POINTS, **more)


def neutral(title: str, sentence: str, unit: str = PERCENT, **more: Any) -> Any:
    """Return a dataclass field with the words of a figure that is not a risk in itself."""
    return described(Words.neutral(title, sentence, unit, **more))


def interval_end(title: str, which: str, unit: str = PERCENT, **more: Any) -> Any:
    """Return a dataclass field with the words of the lower or upper end of a figure's interval."""
    return neutral(f"{title}, {which} end", f"The {which} end of its interval.", unit, **more)


def standard_error_of(figure: str, unit: str = POINTS) -> Words:
    """Return the words of the column `<figure>_se`."""
    title, sentence = f"standard error of {figure}", f"How far {figure} may be off by chance."
    return Words.neutral(title, sentence, unit, beside="±")


def by_chance_of(title: str, **more: Any) -> Words:
    """Return the words of how far chance alone takes a figure of that title, in percentage points."""
    sentence = "How far chance alone takes the figure once in 10,000 honest tables of this size."
    return Words.neutral(f"{title}: by chance", sentence, POINTS, **more)


def words_of_fields(measures: type, names: Iterable[str] | None = None) -> dict[str, Words]:
    """Return the words of the fields of a dataclass, by default of all of them.

    Example:
        >>> from disclosure_pipeline.measures.attribute import Attribute
        >>> list(words_of_fields(Attribute, ["max_denom"]))
        ['max_denom']
    """
    described_fields = {entry.name: entry.metadata[_WORDS] for entry in fields(measures) if entry.metadata}
    return described_fields if names is None else {name: described_fields[name] for name in names}


WEIGHTED = "_weighted"
"""The ending of the columns in which each record counts as the people it stands for."""


def weigh_words(words: Mapping[str, Words], names: tuple[str, ...]) -> dict[str, Words]:
    """Return the words of the weighted shares of some figures and of their errors."""
    weighed = {}
    for name in names:
        of_figure = words[name]
        weighed[f"{name}{WEIGHTED}"] = replace(
            of_figure,
            title=f"{of_figure.title}, weighted",
            sentence=f"{of_figure.sentence} Each record counts as the people it represents.",
            denominator="population",
            beside=f"{of_figure.beside}, weighted" if of_figure.beside else "",
        )
        weighed[f"{name}{WEIGHTED}_se"] = standard_error_of(f"{name}{WEIGHTED}")
    return weighed
