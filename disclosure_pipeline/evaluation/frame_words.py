"""The words for columns that no formula of `measures/` returns: guards, releases, remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.found import Found
from disclosure_pipeline.measures.survey import HouseholdRisk
from disclosure_pipeline.measures.words import (
    BAILLARGEON,
    BY_CHANCE,
    CONFIDENTIAL,
    COUNT,
    NONE,
    PERCENT,
    RAAB,
    RECORDS,
    SHARE,
    SYNTHETIC,
    SYNTHPOP,
    TAUB,
    WITH_LEVEL,
    YESNO,
    Words,
    standard_error_of,
    words_of_fields,
)


def _describe_excluded(kind: str) -> Words:
    return Words.neutral(f"excluded: {kind}", f"This many records are left out: {kind}.", RECORDS)


LEDGER = {"records": Words.neutral("records", "This many records were changed.", RECORDS)}

EXCLUDED: dict[str, Words] = {
    "target_levels": _describe_excluded("a value of the target that is not secret"),
    "missing_target": _describe_excluded("the target is missing"),
    "missing_key": _describe_excluded("a key is missing"),
    "pairs": _describe_excluded("a key and a target that go together anyway"),
    "count_over": _describe_excluded("a large group with the same keys and target"),
    "remaining": Words.neutral("remaining records", "This many records are measured.", RECORDS),
}


SUMMARY: dict[str, Words] = {
    "DiSCO_min": Words("smallest DiSCO", "The smallest DiSCO of the syntheses."),
    "DiSCO_max": Words("largest DiSCO", "The largest DiSCO of the syntheses."),
    "one_way": Words.neutral("flagged levels", "Target values behind most disclosures.", NONE),
    "two_way": Words.neutral("flagged pairs", "Pairs of a key and a target that go together.", COUNT),
}


FOUND_WHERE: dict[str, Words] = {
    "tolerance": Words.neutral(
        "tolerance", "How far numbers may be apart, as a share of the number; 0: they are equal.", SHARE
    ),
}


def reword_beyond_chance(words: Words) -> Words:
    """Return the words of the part of a difference that is beyond chance."""
    title = f"{words.title}: where beyond chance"
    sentence = f"{words.sentence} Only differences beyond chance in tables of this size count."
    return replace(words, title=title, sentence=sentence, beside="")


FOUND_WHERE["found_beyond_chance"] = reword_beyond_chance(words_of_fields(Found)["found"])


PEOPLE_WITH_LEVEL = Words.neutral(
    "people with the value", "Confidential records that have the sensitive value.", RECORDS
)


_TOLD = {
    column: words
    for figure in (FIGURES["told"], FIGURES["told_by_guess"])
    for column, words in {figure.follows: figure.words, f"{figure.follows}_beyond": figure.beyond}.items()
    if words is not None
}


def reword_for_level(name: str, words: Words) -> Words:
    """Return the words of a figure of a target for the people with a sensitive level of it."""
    if name in _TOLD:
        return _TOLD[name]
    denominator = WITH_LEVEL if words.denominator == CONFIDENTIAL else words.denominator
    return replace(words, denominator=denominator, finding="", subject="")


WITHIN = Words.neutral("band", "A guess this close to the value counts: a share of it, or an amount.", NONE)

DISTANCES: dict[str, Words] = {
    "TVD_column_beyond": Words.neutral(
        "distance of a column beyond a fresh sample",
        "How much farther apart than in a fresh sample the frequencies of the column that differs most are.",
        SHARE,
    ),
    "TVD_pair_beyond": Words.neutral(
        "distance of a pair of columns beyond a fresh sample",
        "How much farther apart than in a fresh sample the frequencies of the pair of columns that differs "
        "most are.",
        SHARE,
    ),
}
DISTANCES |= {f"{name}_se": standard_error_of(name, SHARE) for name in list(DISTANCES)}

ONE_WAY = Words.neutral(
    "flags of the one-way check",
    "This many values of the target make up most of what is disclosed, which everybody may expect anyway.",
    COUNT,
    finding="values of {column} that make up most of what is disclosed: {value}",
)

TWO_WAY = Words.neutral(
    "flags of the two-way check",
    "This many pairs of a key and a target make up large groups that are disclosed together.",
    COUNT,
    finding="pairs of a key and {column} that make up large groups disclosed together: {value}",
)


def add_chance_words(words: Mapping[str, Words]) -> dict[str, Words]:
    """Return the words of figures, of the same by chance alone, and of the part beyond chance."""
    chance = {}
    for name, of_figure in words.items():
        stem = name.removesuffix("_beyond")
        chance[f"{stem}_by_chance"] = replace(
            of_figure,
            title=f"{of_figure.title}: by chance",
            sentence="Chance alone takes the figure this far in 1 of 10,000 honest tables of this size.",
            high_is="neither",
            finding="",
            beside=BY_CHANCE,
        )
        chance[f"{stem}_beyond_chance"] = reword_beyond_chance(of_figure)
    return {**words, **chance}


EXACT_COPIES: dict[str, Words] = {
    "columns": Words.neutral("columns compared", "This many columns were compared.", COUNT),
    "percent": Words(
        "copies", "This many synthetic records equal a confidential record.", denominator=SYNTHETIC
    ),
    "copies": Words("copies", "This many synthetic records equal a confidential record.", RECORDS),
}


REMEDIES: dict[str, Words] = {
    "records": Words.neutral("records", "Synthetic records after the remedy.", RECORDS),
    "records_lost": Words.neutral("records lost", "Synthetic records that the remedy removes.", RECORDS),
    "cells_changed": Words.neutral("values changed", "Synthetic values that the remedy changes.", COUNT),
    "TVD_mean": Words.neutral("mean distance", "The mean distance of pairs of columns.", SHARE),
    "TVD_largest": Words.neutral("largest distance", "The distance of the pair that differs most.", SHARE),
    "S_pMSE_mean": Words.neutral(
        "mean standardised error", "The mean standardised error of pairs of columns.", NONE
    ),
}

REPLICATED: dict[str, Words] = {
    "n_replicated": Words(
        "replicated uniques",
        "Synthetic records that are the only ones with their keys, which exactly one person has.",
        RECORDS,
        source=SYNTHPOP,
    ),
    "pct_replicated": Words(
        "replicated uniques",
        "This many synthetic records are the only ones with their keys, which exactly one person has.",
        denominator=SYNTHETIC,
        source=SYNTHPOP,
    ),
    "n_in_original": Words(
        "uniques found",
        "Synthetic records that are the only ones with their keys, which some person has.",
        RECORDS,
        source=SYNTHPOP,
    ),
    "pct_in_original": Words(
        "uniques found",
        "This many synthetic records are the only ones with their keys, which some person has.",
        denominator=SYNTHETIC,
        source=SYNTHPOP,
    ),
}

_CAP_OF_RECORD = Words(
    "chance of a right guess",
    "The chance that a guess drawn from the records with this person's keys is right.",
    SHARE,
    source=BAILLARGEON,
)
INDIVIDUAL: dict[str, Words] = {
    "CAP_GT": _CAP_OF_RECORD,
    "CAP": _CAP_OF_RECORD,
    "DiSCO": Words(
        "disclosed and correct",
        "Whether the synthetic table discloses this person's target.",
        YESNO,
        source=RAAB,
    ),
    "DiSDiO": Words(
        "disclosed in both tables", "Whether both tables disclose this person's target.", YESNO, source=RAAB
    ),
    "repU": Words(
        "replicated unique",
        "Whether this person is the only one with these keys in both tables.",
        YESNO,
        source=RAAB,
    ),
}

WEAP: dict[str, Words] = {
    "WEAP": Words(
        "within equivalence class attribution probability",
        "The share of this record's target among the synthetic records with its keys.",
        SHARE,
        source=TAUB,
    ),
}


UNITS = words_of_fields(HouseholdRisk)

BINS: dict[str, Words] = {
    "GT": Words.neutral("confidential records", "This many are in the group.", RECORDS),
    "SD": Words.neutral("synthetic records", "This many are in the group.", RECORDS),
}


POWER: dict[str, Words] = {
    "refused": Words.neutral("refused", "This many tries were refused.", COUNT),
    "tries": Words.neutral("tries", "The number of random halves of GT that were tried.", COUNT),
    "percent": Words.neutral(
        "share refused", "This share of the tries was refused.", PERCENT, denominator="tries"
    ),
    "low": Words.neutral(
        "at least", "The share refused is at least this, with 95 %.", PERCENT, denominator="tries"
    ),
    "high": Words.neutral(
        "at most", "The share refused is at most this, with 95 %.", PERCENT, denominator="tries"
    ),
}
