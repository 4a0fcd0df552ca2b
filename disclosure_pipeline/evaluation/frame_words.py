"""The words for columns that no formula of `measures/` returns: controls, guards, releases, remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from disclosure_pipeline.measures.found import Found
from disclosure_pipeline.measures.survey import HouseholdRisk
from disclosure_pipeline.measures.words import (
    BY_CHANCE,
    CONFIDENTIAL,
    COUNT,
    NONE,
    POINTS,
    RAAB,
    RECORDS,
    SHARE,
    SYNTHETIC,
    SYNTHPOP,
    TAUB,
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

DOUBTS: dict[str, Words] = {
    "excluded": Words(
        "left out of the measures",
        "The gate's exclusions leave this many people out of the measures of this target.",
        finding="{value} of the people are left out of the measures of {column}",
    ),
}

WARNINGS: dict[str, Words] = {
    "warnings": Words(
        "warnings about the tables",
        "This many warnings say that the two tables may not be coded alike, or that a synthetic table has "
        "real values of a column like an identifier.",
        COUNT,
        finding="warnings that the tables may not be comparable: {value}",
    ),
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

BEYOND_BOTH = Words(
    "DiSCO beyond other people's records and beyond chance",
    "People whose target is disclosed, in excess of what other people's records disclose and of chance: "
    "the smaller of the two differences.",
    POINTS,
    finding="the table gives away the {column} of {more} people in 100 than other people's records would",
    subject="people whose {column} is disclosed",
)

_WITH_LEVEL = "records with the sensitive value"

TOLD: dict[str, Words] = {
    "DiSCO": Words(
        "sensitive value disclosed",
        "People with the sensitive value of whom the synthetic table tells it with certainty.",
        denominator=_WITH_LEVEL,
        source=RAAB,
        finding="{value} of the people with {column} are shown to have it",
    ),
    "DiSCO_beyond": Words(
        "sensitive value disclosed beyond other people's records and beyond chance",
        "People with the sensitive value who are shown to have it, in excess of those whom other people's "
        "records show and of chance: the smaller of the two differences.",
        POINTS,
        finding="the table shows {more} in 100 of the people with {column} to have it than other people's "
        "records would",
        subject="people with {column} shown to have it",
    ),
    "guessed": Words(
        "sensitive value guessed",
        "People with the sensitive value of whom it is guessed, as the most frequent one among the synthetic "
        "records with their keys.",
        denominator=_WITH_LEVEL,
        finding="{value} of the people with {column} are guessed to have it",
    ),
    "guessed_beyond": Words(
        "sensitive value guessed beyond other people's records",
        "How many more of the people with the sensitive value are guessed to have it than from other "
        "people's records.",
        POINTS,
        finding="{more} in 100 of the people with {column} are guessed to have it than from other people's "
        "records",
        subject="people with {column} guessed to have it",
    ),
}
"""The figures of the people who have a sensitive level."""


WITH_LEVEL = Words.neutral(
    "people with the value", "Confidential records that have the sensitive value.", RECORDS
)


def reword_for_level(name: str, words: Words) -> Words:
    """Return the words of a figure of a target for the people with a sensitive level of it."""
    if name in TOLD:
        return TOLD[name]
    denominator = _WITH_LEVEL if words.denominator == CONFIDENTIAL else words.denominator
    return replace(words, denominator=denominator, finding="", subject="")


MISSING_BEYOND = Words(
    "missing values beyond those of the confidential table",
    "This many more of the synthetic than of the confidential records have no value in the column that "
    "differs most: the rest of such a record may be true, and the record still equals none.",
    POINTS,
    finding="{more} synthetic records in 100 lack a value of the column than in the confidential table",
)

ALIKE = Words(
    "people whom the table does not tell apart",
    "This many confidential records equal another person's in every column: nothing can be measured for "
    "these people, because a copy of them cannot be noticed.",
    finding="for {value} of the people the record equals another person's in every column",
)

WITHIN = Words.neutral("band", "A guess this close to the value counts: a share of it, or an amount.", NONE)

RELABELLED = Words(
    "values that look renamed",
    "How far the values of a column are from the confidential table's although their frequencies match: "
    "then comparing values means nothing.",
    SHARE,
    finding="renaming its values would bring a column nearer to the confidential one by {value}",
)

EQUAL_CONTENT = Words(
    "equal content",
    "It is 1 if one table holds all records of the other, 0 otherwise.",
    COUNT,
    finding="tables that hold every record of the other, unchanged: {value}",
)

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

LIMITS: dict[str, Words] = {
    "detection_limit": Words(
        "detection limit",
        "People whose records a table of this size could hold, unchanged, and be approved once in 20 times.",
        finding="the gate would have noticed if {value} of the people were in the table",
        subject="people whose records could go unnoticed",
    ),
    "detection_limit_nearly": Words(
        "detection limit of near copies",
        "People whose records a table of this size could hold, with numbers moved by at most 1 %, and be "
        "approved once in 20 times.",
        finding="the gate would have noticed if {value} of the people were in the table, with their numbers "
        "moved by at most 1 %",
        subject="people whose nearly unchanged records could go unnoticed",
    ),
}

KEY_OVERLAP = Words(
    "shared values of a key",
    "The share of records whose value occurs in the other table, for the table where it is smaller. If it is "
    "low, the tables may be coded differently, and every risk reads too low.",
    denominator="records with a value",
    high_is="safe",
    finding="{value} of the records share their {column} with the other table",
)

WHOLE_KEY_OVERLAP = replace(
    KEY_OVERLAP,
    title="shared combinations of keys",
    finding="{value} of the records share their combination of keys with the other table",
)

TARGET_OVERLAP = replace(KEY_OVERLAP, title="shared values of a target")

CONTROLS = Words(
    "controls of the measurement that fail",
    "An exact copy of the confidential table must show all that it discloses, a table with shuffled targets "
    "no more than chance gives, and one half of the confidential table no more about the other than other "
    "people's records do. This many of these controls fail: then no figure can be trusted.",
    COUNT,
    finding="checks of the measurement itself that fail: {value}",
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


_LOOKED_AT = "confidential records of the sample"

CONTROL_IDENTITY: dict[str, Words] = {
    "copy_UiO": Words.neutral(
        "control: unique in the confidential table",
        "This many of the sampled people are the only ones with their keys, counted without the engine.",
        denominator=_LOOKED_AT,
    ),
    "copy_repU": Words(
        "control: replicated uniques of a copy",
        "In an exact copy the engine must find everybody who is the only one with their keys.",
        denominator=_LOOKED_AT,
        high_is="safe",
        finding="the engine finds only {value} of the people in an exact copy: its figures cannot be trusted",
    ),
}

CONTROL_ATTRIBUTE: dict[str, Words] = {
    "copy_Dorig": Words.neutral(
        "control: disclosive in the confidential table",
        "The confidential table itself discloses this many sampled people, counted without the engine.",
        denominator=_LOOKED_AT,
    ),
    "copy_DiSCO": Words(
        "control: DiSCO of a copy",
        "In an exact copy the engine must find everybody whom the confidential table discloses.",
        denominator=_LOOKED_AT,
        high_is="safe",
        finding="the engine finds only {value} of the people in an exact copy: its figures cannot be trusted",
    ),
    "copy_difference": Words(
        "control: largest difference",
        "The largest difference between the engine's figures of a copy and independent counts; it must be 0.",
        POINTS,
        finding="a figure of an exact copy is off by {value}: the engine's figures cannot be trusted",
    ),
    "permuted_DCAP": Words.neutral(
        "control: DCAP of a shuffled target",
        "How often a guess is right once the synthetic target is shuffled, as the engine measures it.",
        denominator=_LOOKED_AT,
    ),
    "permuted_DCAP_expected": Words.neutral(
        "control: DCAP of a shuffled target, expected",
        "How often a guess is right once the synthetic target is shuffled, counted without the engine.",
        denominator=_LOOKED_AT,
    ),
    "permuted_deviation": Words(
        "control: deviation of a shuffled target",
        "How far the engine is from chance where the keys tell nothing.",
        "standard errors",
        finding="the engine is {value} off what chance gives: its figures cannot be trusted",
    ),
    "half_DiSCO_beyond": Words.neutral(
        "control: DiSCO_beyond of one half",
        "What one half of the confidential table tells about the other, beyond other people's records.",
        POINTS,
    ),
    "half_deviation": Words(
        "control: deviation of one half",
        "How much more one half of the confidential table, a fresh sample, seems to tell than others do.",
        "standard errors",
        finding="a fresh sample seems to tell {value} more than others do: the figures cannot be trusted",
    ),
}
