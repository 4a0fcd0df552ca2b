"""The figures of the long table: one entry each, in the order of the page's questions.

An entry says where the figure stands in the frames of a result, what may be bounded, the default of a figure
that every gate bounds, and what a broken bound means. Figures that the page only shows come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from disclosure_pipeline.evaluation import frame_words
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.resemblance import LEAST_SHARED
from disclosure_pipeline.measures.copies import ALL_COLUMNS
from disclosure_pipeline.measures.found import (
    ALL_BUT_ONE,
    IN_PART_OF_A_NUMBER,
    IN_PIECES,
    NEARLY,
    NEARLY_IN_PIECES,
    USUAL_BOUNDS,
    WHOLE,
)
from disclosure_pipeline.measures.words import WEIGHTED, Words
from disclosure_pipeline.tables.levels import level_label

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


def name_level(target: Any, level: Any) -> str:
    """Return the name of a level of a target in frames and clauses.

    >>> name_level("hiv", "positive")
    'hiv: positive'
    """
    return f"{target}: {level_label(level)}"


Public = Literal["share", "difference", "unit", "exact"]
"""The rounding of a figure for the public.

As a "share" of all records, in statements, too; so, but only the "difference" from other people's records; by
its "unit", in the public edition of the dossier only; or "exact", if it reveals nothing about people.
"""


@dataclass(frozen=True)
class Default:
    """The bound that every gate has of a figure.

    A policy may set any from `lowest` up to, not including, `below`. `text`: what the bound is in percent of.
    `by_way`: the bounds that differ in some of the ways in which people are found.
    """

    statistic: Statistic
    bound: float
    text: str
    lowest: float = 0
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

    @property
    def columns(self) -> list[str]:
        """The names of all these columns."""
        own = (self.value, self.at_n, self.others, self.own, self.permuted)
        differences = (self.beyond, self.se, self.by_chance, self.beyond_chance)
        return [
            name for of in (*own, *differences) for name in ((of,) if isinstance(of, str) else of) if name
        ]


@dataclass(frozen=True)
class Figure:
    """A figure that a policy may bound, or that the page shows.

    words, beyond: of the figure, and of what is beyond other people's records.
    also: further frames with rows of it, in the same columns.
    weighed: its place by weight, each record counting as the people it represents.
    statistics: what a policy may bound. default: what every gate bounds.
    family: the section of `measures` that it needs. own: the name of GT's own risk.
    is_doubt: beyond its bound, nothing can be judged. may_be_waived: a waiver may lift its bound although
        every gate has it.
    is_of_release: all files of a candidate have one figure together. is_stacked: it is also bounded for all
        files as one table.
    meaning: what a broken bound means; the columns whose `by_column` exceeds it are listed.
    shown_with: the figure whose check also shows this one.
    follows: the figure of whose target it has the bounds, in place of own ones.
    public: how it and what stands beside it are rounded for the public; None withholds them.
    """

    name: str
    words: Words
    place: Place
    question: Question
    about: About = ""
    statistics: tuple[Statistic, ...] = ()
    beyond: Words | None = None
    also: tuple[str, ...] = ()
    weighed: Place | None = None
    default: Default | None = None
    family: str = ""
    largest: float | None = 100
    own: str = ""
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

    @property
    def high_is_safe(self) -> bool:
        """True if it is bounded from below, as protection is."""
        return self.words.high_is == "safe"

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
        return self.beyond if statistic == "beyond" and self.beyond is not None else self.words


def _place_beyond(frame: str, name: str, basis: str = "", /, **columns: str | tuple[str, ...]) -> Place:
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


def _words(frame: str, column: str) -> Words:
    return COLUMNS[frame][column]


# Figures that are shown: column, frame, column of other people's records, question, subject, rounding.
_SHOWN_COLUMNS: tuple[tuple[str, str, str, Question, About, Public | None], ...] = (
    ("individual_risk", "units", "", "found", "", "unit"),
    ("household_risk", "units", "", "found", "", "unit"),
    ("repU_population", "population", "", "found", "", "unit"),
    ("UiOiS", "identity", "", "found", "", "unit"),
    ("unique_hits_apart", "identity", "unique_hits_others", "found", "", "unit"),
    ("iS", "attribute", "", "learned", "target", "unit"),
    ("DiS", "attribute", "", "learned", "target", "unit"),
    ("DiSCO_excess", "attribute", "", "learned", "target", "unit"),
    ("DiSCO_population", "population_targets", "", "learned", "target", "unit"),
    ("people_in_releases", "over_releases", "people_in_releases_expected", "copied", "", None),
    ("releases_gone", "over_releases", "", "trusted", "", "exact"),
    ("records", "subgroups", "", "learned", "target", "unit"),
    ("lift", "subgroups", "", "learned", "target", None),
    ("agreed", "together", "", "learned", "target", None),
    ("TPR_at_1", "membership", "", "copied", "", "unit"),
    ("epsilon_ruled_out", "membership", "", "trusted", "", None),
    ("TVD", "columns_apart", "TVD_expected", "trusted", "column", "unit"),
)

_ENTRIES = (
    Figure(
        "equal_content",
        frame_words.EQUAL_CONTENT,
        Place("guards", value="equal_content"),
        "copied",
        largest=1,
        meaning="one table holds every record of the other, unchanged, as a copy of the ground truth would",
        default=Default("at_most", 0, ""),
        public="unit",
    ),
    Figure(
        "found",
        _words("found", "shown"),
        Place(
            "found",
            value="shown",
            others="expected",
            beyond="found",
            by_chance="found_by_chance",
            beyond_chance="found_beyond_chance",
        ),
        "copied",
        about="way",
        statistics=("beyond",),
        beyond=_words("found", "found"),
        also=("released_found",),
        weighed=_place_beyond(
            "population",
            "people_copied",
            WEIGHTED,
            others="people_copied_expected_weighted",
            about=WHOLE,
        ),
        default=Default(
            "beyond",
            USUAL_BOUNDS[NEARLY],
            "Percentage points of the people whom nobody else stands near and whom SD shows, beyond those in "
            "a fresh table of SD's size",
            by_way={
                WHOLE: USUAL_BOUNDS[WHOLE],
                ALL_BUT_ONE: 7,
                IN_PIECES: 30,
                NEARLY_IN_PIECES: 15,
                IN_PART_OF_A_NUMBER: 30,
            },
        ),
        is_per_confidential_table=True,
        public="unit",
    ),
    Figure(
        "shared_with_releases",
        _words("over_releases", "shared_with_releases"),
        _place_beyond(
            "over_releases",
            "shared_with_releases",
            others="shared_with_releases_expected",
            by_chance="shared_with_releases_by_chance",
        ),
        "copied",
        statistics=("beyond",),
        beyond=_words("over_releases", "shared_with_releases_beyond"),
        default=Default(
            "beyond",
            1,
            "Percentage points of the candidate's records that a published table also holds, beyond those "
            "that a fresh draw shares with it",
        ),
        is_of_release=True,
        shown_with="found",
        public="unit",
    ),
    Figure(
        "advantage_records",
        _words("membership", "advantage_records"),
        Place("membership", value="advantage_records", beyond_chance="advantage_records_chance"),
        "copied",
        statistics=("at_most",),
        family="membership",
        public="unit",
    ),
    Figure(
        "repU",
        _words("identity", "repU"),
        Place("identity", value="repU", own="UiO"),
        "found",
        statistics=("at_most", "at_most_share"),
        weighed=Place("population", value="repU_weighted", se="repU_weighted_se", own="UiO_weighted"),
        own="UiO",
        public="share",
    ),
    Figure(
        "unique_hits",
        _words("identity", "unique_hits"),
        _place_beyond("identity", "unique_hits", others=("unique_hits_others", "unique_hits_apart")),
        "found",
        statistics=("beyond",),
        beyond=_words("identity", "unique_hits_beyond"),
        public="share",
    ),
    Figure(
        "DIS",
        _words("population", "DIS"),
        Place("population", value="DIS", se="DIS_se"),
        "found",
        statistics=("at_most",),
        family="population",
        public="unit",
    ),
    Figure(
        "DiSCO",
        _words("attribute", "DiSCO"),
        _place_beyond("attribute", "DiSCO", at_n="DiSCO_at_n", own="Dorig", permuted="DiSCO_chance"),
        "learned",
        about="target",
        statistics=("at_most", "at_most_share", "beyond"),
        beyond=frame_words.BEYOND_BOTH,
        also=("subgroups",),
        weighed=_place_beyond(
            "population_targets", "DiSCO", WEIGHTED, own="Dorig_weighted", permuted="DiSCO_chance_weighted"
        ),
        own="Dorig",
        public="share",
    ),
    Figure(
        "told",
        frame_words.TOLD["DiSCO"],
        _place_beyond("sensitive", "DiSCO", at_n="DiSCO_at_n", own="Dorig", permuted="DiSCO_chance"),
        "learned",
        about="level",
        statistics=("at_most", "at_most_share", "beyond"),
        beyond=frame_words.TOLD["DiSCO_beyond"],
        weighed=_place_beyond(
            "sensitive", "DiSCO", WEIGHTED, own="Dorig_weighted", permuted="DiSCO_chance_weighted"
        ),
        own="Dorig",
        follows="DiSCO",
    ),
    Figure(
        "right",
        _words("sensitive", "right"),
        _place_beyond("sensitive", "right", se="", by_chance="right_by_chance"),
        "learned",
        about="level",
        statistics=("beyond",),
        beyond=_words("sensitive", "right_beyond"),
        follows="DiSCO",
    ),
    Figure(
        "DiSCO_within",
        _words("bands", "DiSCO_within"),
        _place_beyond("bands", "DiSCO_within"),
        "learned",
        about="target",
        statistics=("at_most", "beyond"),
        beyond=_words("bands", "DiSCO_within_beyond"),
        weighed=_place_beyond("bands", "DiSCO_within", WEIGHTED),
        public="share",
    ),
    Figure(
        "DiSCO_any",
        _words("together", "any"),
        _place_beyond("together", "DiSCO_any", value="any", by_chance="DiSCO_any_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        beyond=_words("together", "DiSCO_any_beyond"),
        also=("released_targets",),
        is_of_release=True,
        public="difference",
    ),
    Figure(
        "guessed",
        _words("guessed", "guessed"),
        _place_beyond("guessed", "guessed", at_n="guessed_at_n", by_chance="guessed_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        beyond=_words("guessed", "guessed_beyond"),
        weighed=_place_beyond("population_targets", "guessed", WEIGHTED),
        default=Default(
            "beyond",
            6,
            "Percentage points of the GT records whose target is guessed from their keys in SD, beyond "
            "those guessed from other people's records; of each target",
        ),
        public="unit",
    ),
    Figure(
        "told_by_guess",
        frame_words.TOLD["guessed"],
        _place_beyond("sensitive", "guessed", at_n="guessed_at_n", by_chance="guessed_by_chance"),
        "learned",
        about="level",
        statistics=("beyond",),
        beyond=frame_words.TOLD["guessed_beyond"],
        weighed=_place_beyond("sensitive", "guessed", WEIGHTED),
        follows="guessed",
    ),
    Figure(
        "guessed_within",
        _words("bands", "guessed_within"),
        _place_beyond("bands", "guessed_within", by_chance="guessed_within_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        beyond=_words("bands", "guessed_within_beyond"),
        weighed=_place_beyond("bands", "guessed_within", WEIGHTED),
        default=Default(
            "beyond",
            6,
            "Percentage points of the GT records whose amount is guessed to within its band from their keys "
            "in SD, beyond those guessed from other people's records; of each target with a band",
        ),
        public="unit",
    ),
    Figure(
        "DCAP",
        _words("cap", "DCAP"),
        _place_beyond("cap", "DCAP", at_n="DCAP_at_n", own="CAPd"),
        "learned",
        about="target",
        statistics=("at_most", "beyond"),
        beyond=_words("cap", "DCAP_beyond"),
        weighed=_place_beyond("population_targets", "DCAP", WEIGHTED, own="CAPd_weighted"),
        family="attribution",
        public="share",
    ),
    Figure(
        "protection",
        _words("protection", "cap__score"),
        Place(
            "protection",
            value=tuple(f"{method}__score" for method in ("cap", "zero_cap", "generalized_cap")),
            is_of_any=True,
        ),
        "learned",
        about="target",
        statistics=("at_least",),
        family="protection",
        largest=1,
        is_stacked=False,
        public="unit",
    ),
    Figure(
        "gain_over_GT",
        _words("prediction", "gain_over_GT"),
        Place("prediction", value="gain_over_GT"),
        "learned",
        about="target",
        statistics=("at_most",),
        family="prediction",
        is_stacked=False,
        public="unit",
    ),
    Figure(
        "relabelled",
        frame_words.RELABELLED,
        Place("guards", value="relabelled", beyond_chance="relabelled_beyond_chance"),
        "trusted",
        statistics=("at_most",),
        largest=1,
        is_doubt=True,
        meaning="the values of a column look renamed, so that comparing them means nothing",
        by_column="looks_renamed_beyond_chance",
        default=Default(
            "at_most",
            0.15,
            "Share of 1: how much farther than a fresh sample a category may be from GT if matching its "
            "levels by frequency brings it near; or a number or date, beside other columns, if reversing, "
            "shifting or scaling does. Beyond this, a candidate cannot be judged",
            below=1,
        ),
        public="unit",
    ),
    Figure(
        "detection_limit",
        frame_words.LIMITS["detection_limit"],
        Place("guards", value="detection_limit"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        may_be_waived=True,
        meaning=(
            "More published columns, fewer groups or more people would make copies stand out; lower bounds "
            "of found help where the table is large"
        ),
        default=Default(
            "at_most",
            10,
            "Percent of the people whose records a table could hold, unchanged, and be approved in more than "
            "1 of 20 cases. Beyond this, an approval says little, so a candidate cannot be judged",
        ),
        public="share",
    ),
    Figure(
        "detection_limit_nearly",
        frame_words.LIMITS["detection_limit_nearly"],
        Place("guards", value="detection_limit_nearly"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        may_be_waived=True,
        meaning=(
            "More published columns, fewer groups or more people would make near copies stand out; so would "
            "a lower bound of found: {nearly: …}"
        ),
        public="share",
    ),
    Figure(
        "repeats",
        _words("guards", "repeats"),
        Place(
            "guards", value="repeats", by_chance="repeats_by_chance", beyond_chance="repeats_beyond_chance"
        ),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        default=Default(
            "at_most",
            20,
            "Percentage points of the SD records that equal another SD record, beyond the most that a fresh "
            "sample shows. Beyond this, a candidate cannot be judged",
        ),
        public="unit",
    ),
    Figure(
        "missing",
        frame_words.MISSING_BEYOND,
        Place("guards", value="missing_beyond", beyond_chance="missing_beyond_chance"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        meaning="values of a column are missing that the ground truth has",
        by_column="missing_beyond_chance",
        default=Default(
            "at_most",
            20,
            "Percentage points by which more SD than GT records may lack the value of a column. Beyond this, "
            "a candidate cannot be judged",
        ),
        public="unit",
    ),
    Figure(
        "alike",
        frame_words.ALIKE,
        Place("guards", value="alike"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        shown_with="repeats",
        meaning="the table tells no one apart, so nothing can be measured of it",
        default=Default(
            "at_most",
            97.5,
            "Percent of the GT records that equal another person's in every column. Beyond this, even a copy "
            "of GT would be within the bound of found, whole, so a candidate cannot be judged",
            below=101,
        ),
        public="unit",
    ),
    Figure(
        "key_overlap",
        frame_words.KEY_OVERLAP,
        Place("key_overlap", value=("GT_in_SD", "SD_in_GT")),
        "trusted",
        about="key",
        statistics=("at_least",),
        is_stacked=False,
        default=Default(
            "at_least",
            LEAST_SHARED.key,
            "Percent of GT records, and of SD records, whose value of a key column must occur in the other "
            "table; with less, the tables cannot be compared",
            below=101,
        ),
        public="unit",
    ),
    Figure(
        "whole_key_overlap",
        frame_words.WHOLE_KEY_OVERLAP,
        Place("key_overlap", value=("GT_in_SD", "SD_in_GT")),
        "trusted",
        statistics=("at_least",),
        is_stacked=False,
        default=Default(
            "at_least",
            LEAST_SHARED.whole_key,
            "The same for the combination of all keys. Lower it for keys by which nearly everyone is unique",
            below=101,
        ),
        public="unit",
    ),
    Figure(
        "target_overlap",
        frame_words.TARGET_OVERLAP,
        Place("target_overlap", value=("GT_in_SD", "SD_in_GT")),
        "trusted",
        about="target",
        statistics=("at_least",),
        is_stacked=False,
        default=Default(
            "at_least",
            LEAST_SHARED.target,
            "The same for each target, after grouping. Values of SD that GT does not have disclose nothing, "
            "so their figures would look safe",
            below=101,
        ),
        public="unit",
    ),
    Figure(
        "excluded",
        frame_words.DOUBTS["excluded"],
        Place("doubts", value="excluded"),
        "trusted",
        about="target",
        is_doubt=True,
        public="share",
    ),
    Figure(
        "warnings",
        frame_words.WARNINGS["warnings"],
        Place("warning_counts", value="warnings"),
        "trusted",
        is_stacked=False,
        default=Default("at_most", 0, ""),
        public="exact",
    ),
    Figure(
        "controls",
        frame_words.CONTROLS,
        Place("control_identity"),
        "trusted",
        is_stacked=False,
        is_doubt=True,
        default=Default("at_most", 0, ""),
    ),
    Figure(
        "epsilon_beyond_claim",
        _words("membership", "epsilon_beyond_claim"),
        Place("membership", value="epsilon_beyond_claim"),
        "trusted",
        family="membership",
        is_doubt=True,
    ),
)

_SHOWN = (
    Figure(
        "people_copied",
        _words("guards", "people_copied"),
        _place_beyond(
            "guards",
            "people_copied",
            others="people_copied_expected",
            by_chance="people_copied_by_chance",
            about=ALL_COLUMNS,
        ),
        "copied",
        about="columns",
        also=("partial_copies",),
        is_stacked=False,
        public="unit",
    ),
    *(
        Figure(
            name,
            _words(frame, name),
            Place(frame, name, others=of),
            question,
            about,
            public=public,
            is_stacked=False,
        )
        for name, frame, of, question, about, public in _SHOWN_COLUMNS
    ),
)

FIGURES: Mapping[str, Figure] = {entry.name: entry for entry in (*_ENTRIES, *_SHOWN)}
"""The figures of the long table by name."""

BOUNDABLE: Mapping[str, Figure] = {
    name: entry for name, entry in FIGURES.items() if entry.statistics and not entry.follows
}
"""The figures that a policy may bound; others follow them."""

DEFAULTS: Mapping[str, float] = {
    name: entry.default.bound
    for name, entry in FIGURES.items()
    if entry.default is not None and entry.statistics and not entry.high_is_safe
}
"""The default bound of each risk that every gate bounds."""
