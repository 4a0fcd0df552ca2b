"""The words for every column of every frame that the library returns, found by frame and column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation import frame_words
from disclosure_pipeline.evaluation.protection_result import DisclosureProtection
from disclosure_pipeline.measures.anonymity_loss import AnonymityLoss
from disclosure_pipeline.measures.attribute import Attribute
from disclosure_pipeline.measures.baselines import Baselines
from disclosure_pipeline.measures.cap import CAP
from disclosure_pipeline.measures.certainty import Certainty
from disclosure_pipeline.measures.chance import Chance
from disclosure_pipeline.measures.checks import OneWay, TwoWay
from disclosure_pipeline.measures.copies import Copies, UniqueHits
from disclosure_pipeline.measures.holdout import BesideHoldout
from disclosure_pipeline.measures.identity import Identity
from disclosure_pipeline.measures.individual import Individual
from disclosure_pipeline.measures.nearest_guess import NearestGuesses
from disclosure_pipeline.measures.nearness import Nearness
from disclosure_pipeline.measures.people import PeopleCopied
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.measures.protection import METHODS
from disclosure_pipeline.measures.resemblance import Overlap, Relabelling, Resemblance
from disclosure_pipeline.measures.subgroups import Subgroup
from disclosure_pipeline.measures.together import Together, TogetherIdentity
from disclosure_pipeline.measures.words import Words, words_of_fields
from disclosure_pipeline.tables.messages import listed


@dataclass(frozen=True)
class Label:
    """A column that names rows, and holds no figures: its heading, and what it says."""

    heading: str
    sentence: str


LABELS: Mapping[str, Label] = {
    "measure": Label("figure", "The figure that the row is about."),
    "syntheses": Label("tables", "How many synthetic tables there are."),
    "synthesis": Label("table", "The number of the synthetic table, from 1."),
    "target": Label("target", "The column that an intruder wants to learn."),
    "key": Label("key", "A column that an intruder knows; (whole key) are all of them combined."),
    "keys": Label("keys", "The columns that an intruder knows."),
    "table": Label("table", "Which table the row is about."),
    "confidential": Label("confidential table", "The further confidential table that the row is about."),
    "certainty": Label("certainty", "The share of records with the same keys that have to agree."),
    "column": Label("column", "The column that the row is about."),
    "column_1": Label("first column", "The first column of the pair."),
    "column_2": Label("second column", "The second column of the pair."),
    "columns": Label("columns", "The columns that are compared."),
    "group": Label("group", "The group of people that the row is about."),
    "level": Label("value", "The value, or the group of values, that the row is about."),
    "remedy": Label("remedy", "What was done to the synthetic table."),
    "rule": Label("what was done", "What was changed in the table to compare it."),
}
"""The columns of an index."""


def _sample(words: Mapping[str, Words], *names: str) -> dict[str, Words]:
    return {name: words[name] for name in names}


_BASELINES = words_of_fields(Baselines)
_OF_CAP = {name: words for name, words in _BASELINES.items() if name.startswith(("DCAP", "guessed"))}
_ATTRIBUTE = words_of_fields(Attribute) | words_of_fields(Chance)
_ATTRIBUTE |= {name: words for name, words in _BASELINES.items() if name not in _OF_CAP}
_IDENTITY = words_of_fields(Identity) | words_of_fields(UniqueHits)
_COPIES = words_of_fields(Copies)
_GUARD_COPIES = {name: words for name, words in _COPIES.items() if name.startswith("unique")}
_GUARD_COPIES |= frame_words.COPIES_APART | frame_words.with_chance(_sample(_COPIES, "unique_copies_beyond"))
_PEOPLE = words_of_fields(PeopleCopied)
_GUARD_COPIES |= frame_words.with_chance(_sample(_PEOPLE, "people_copied_beyond")) | _PEOPLE
_NEARER = frame_words.with_chance(_sample(words_of_fields(Nearness), "nearer"))
_PARTIAL_COPIES = frame_words.with_chance(_sample(frame_words.GUARDS, "partial_copies_beyond"))
_RENAMED = words_of_fields(Relabelling)
_KEY_SET = {
    **_sample(_IDENTITY, "repU", "unique_hits_beyond"),
    **_sample(_ATTRIBUTE, "DiSCO", "DiSCO_others", "DiSCO_beyond"),
    **_sample(_OF_CAP, "guessed_beyond"),
}
_PROTECTION = {
    f"{method}__{name}": replace(words, title=f"{words.title} ({method})")
    for method in METHODS
    for name, words in words_of_fields(DisclosureProtection).items()
}
_INDIVIDUAL = words_of_fields(Individual)

FRAMES: Mapping[str, Mapping[str, Words]] = {
    "identity": _IDENTITY,
    "attribute": _ATTRIBUTE,
    "cap": words_of_fields(CAP) | _OF_CAP,
    "guards": {
        **_GUARD_COPIES,
        **_NEARER,
        **frame_words.GUARDS,
        **_PARTIAL_COPIES,
        **frame_words.with_chance(_sample(frame_words.GUARDS, "relabelled", "missing_beyond")),
    },
    "confidential": _GUARD_COPIES | _NEARER | _PARTIAL_COPIES,
    "guessed": _OF_CAP | frame_words.with_chance(_sample(_OF_CAP, "guessed_beyond")),
    "doubts": frame_words.DOUBTS,
    "warnings": frame_words.WARNINGS,
    "protection": _PROTECTION,
    "prediction": words_of_fields(Regression) | words_of_fields(Classification),
    "copies": _COPIES | _PEOPLE | _sample(frame_words.EXACT_COPIES, "columns"),
    "partial_copies": _COPIES | _GUARD_COPIES,
    "columns_apart": {
        **_RENAMED,
        **frame_words.with_chance(_sample(_RENAMED, "looks_renamed")),
        **_sample(frame_words.GUARDS, "missing_beyond"),
        **frame_words.with_chance(_sample(frame_words.GUARDS, "missing_beyond")),
    },
    "control_identity": frame_words.CONTROL_IDENTITY,
    "control_attribute": frame_words.CONTROL_ATTRIBUTE,
    "key_overlap": words_of_fields(Overlap),
    "target_overlap": words_of_fields(Overlap),
    "excluded": frame_words.EXCLUDED,
    "ledger": frame_words.LEDGER,
    "one_way": words_of_fields(OneWay),
    "two_way": words_of_fields(TwoWay),
    "certainty": words_of_fields(Certainty),
    "together": words_of_fields(Together),
    "together_identity": words_of_fields(TogetherIdentity),
    "holdout": words_of_fields(BesideHoldout),
    "identity_after_exclusions": {
        name: replace(words, title=f"{words.title}, after exclusions")
        for name, words in words_of_fields(Identity).items()
    },
    "summary": _ATTRIBUTE | frame_words.SUMMARY | _sample(words_of_fields(Together), "any"),
    "exact_copies": frame_words.EXACT_COPIES,
    "nearest": words_of_fields(Nearness),
    "nearest_guess": words_of_fields(NearestGuesses) | frame_words.NEAREST_GUESS,
    "nearest_guess_records": frame_words.GUESS_RECORDS,
    "resemblance": words_of_fields(Resemblance) | _sample(words_of_fields(Relabelling), "TVD_relabelled"),
    "exposure": _KEY_SET | frame_words.EXPOSURE,
    "key_sets": words_of_fields(Identity) | _sample(_ATTRIBUTE, "Dorig", "DiSCO"),
    "subgroups": words_of_fields(Subgroup),
    "anonymity_loss": words_of_fields(AnonymityLoss),
    "disclosure_over_releases": frame_words.RELEASES,
    "individual_attribution": {"CAP_GT": _INDIVIDUAL["CAP"], **_INDIVIDUAL},
    "weap": frame_words.WEAP,
    "replicated_uniques": frame_words.REPLICATED,
    "remedy": _KEY_SET | _sample(_COPIES, "unique_copies", "unique_copies_beyond") | frame_words.REMEDIES,
    "bins": frame_words.BINS,
}
"""Frame, or the function that returns it, -> column -> its words."""

_OF_SYNTHESIS = re.compile(r"_\d+$")


def find_words(column: str, frame: str | None = None) -> Words | None:
    """Return the words for a column of a frame; without a frame, those of the first frame that has it.

    None where there are none. A column of one synthesis, such as "CAP_1", has the words of "CAP".

    Example:
        >>> find_words("repU").title
        'replicated uniques'
    """
    frames = FRAMES.values() if frame is None else [FRAMES.get(frame, {})]
    for name in (column, _OF_SYNTHESIS.sub("", column)):
        for words in frames:
            if name in words:
                return words[name]
    return None


def describe_column(column: str, frame: str | None = None) -> str:
    """Return what a column says, figure or label, as one line; empty where nothing is known of it."""
    words = find_words(column, frame)
    if words is not None:
        return words.description
    return LABELS[column].sentence if column in LABELS else ""


def find_heading(column: str, frame: str) -> str:
    """What a column of a frame is called at its head or in a legend; its name where nothing is known of it.

    Example:
        >>> find_heading("DiSCO_others", "attribute")
        "other people's records"
    """
    words = FRAMES[frame].get(column)
    if words is not None:
        return words.legend
    return LABELS[column].heading if column in LABELS else column


def explain(measure: str) -> str:
    """Return all words for a measure, as lines. InputError where no frame has it.

    Example:
        >>> print(explain("iS"))
        iS: found in the synthetic table
        So many people have a combination of keys that some synthetic record has.
        Unit: % of the confidential records.
        It is no risk by itself.
        Source: Raab, Nowok & Dibben 2024, arXiv:2406.16826.
    """
    words = find_words(measure) if isinstance(measure, str) else None
    if words is None:
        known = sorted({name for frame in FRAMES.values() for name in frame})
        close = get_close_matches(str(measure), known, n=3)
        hint = f"Did you mean {listed(close)}?" if close else "docs/measures.md defines all of them."
        raise InputError(f"There is no measure {measure!r}. {hint}")
    return words.explain(measure)
