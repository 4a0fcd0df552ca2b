"""The words for every column of every frame; those for the figures of a formula are defined beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from disclosure_pipeline.evaluation import frame_words
from disclosure_pipeline.measures import bands, certainty
from disclosure_pipeline.measures.attribute import Attribute
from disclosure_pipeline.measures.cap import CAP
from disclosure_pipeline.measures.catalogue import FIGURES, OF_KEYS, OF_TARGETS
from disclosure_pipeline.measures.chance import Chance
from disclosure_pipeline.measures.checks import CONTROL_ATTRIBUTE, CONTROL_IDENTITY, OneWay, TwoWay
from disclosure_pipeline.measures.contributions import (
    BAND_FIGURES,
    COPY_FIGURES,
    GROUP_FIGURES,
    KEY_FIGURES,
    TARGET_FIGURES,
)
from disclosure_pipeline.measures.copies import Copies, UniqueHits
from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exposed_groups import Subgroup
from disclosure_pipeline.measures.found import LIMITS, Found
from disclosure_pipeline.measures.holdout import HoldoutComparison, Membership
from disclosure_pipeline.measures.nearest import Nearness
from disclosure_pipeline.measures.people import PeopleCopied, Repeats
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.measures.protection import PROTECTION_BY_METHOD, PROTECTION_FRAME
from disclosure_pipeline.measures.resemblance import Overlap, Relabelling, Resemblance
from disclosure_pipeline.measures.sensitive_levels import Right
from disclosure_pipeline.measures.survey import PopulationDisclosure, PopulationRisk, RecordRisk
from disclosure_pipeline.measures.together import (
    PEOPLE_IN_RELEASES,
    RELEASED_WORDS,
    SHARED_WITH_RELEASES,
    Together,
    TogetherIdentity,
)
from disclosure_pipeline.measures.words import Words, weigh_words, words_of_fields


def _select(words: Mapping[str, Words], *names: str) -> dict[str, Words]:
    return {name: words[name] for name in names}


def _words_of(*names: str) -> dict[str, Words]:
    return {name: FIGURES[name].words for name in names}


def _beyond_chance(words: Mapping[str, Words], *names: str) -> dict[str, Words]:
    """Return the words of the columns `<name>_chance`: the part of a difference that is beyond chance."""
    return {f"{name}_chance": frame_words.reword_beyond_chance(words[name]) for name in names}


def _compare(figures: Sequence[Figure]) -> dict[str, Words]:
    return {column: words for figure in figures for column, words in figure.comparisons.items()}


def _guard(name: str, words: Words, by_chance: Words | None = None) -> dict[str, Words]:
    """Return the words of a figure, of the same by chance alone, and of the part beyond chance."""
    described = frame_words.add_chance_words({name: words})
    if by_chance is not None:
        described |= {column: by_chance for column in described if column.endswith("_by_chance")}
    return described


_IDENTITY = {figure.name: figure.words for figure in OF_KEYS}
_HITS = words_of_fields(UniqueHits)
_CAP = words_of_fields(CAP)
_OF_ATTRIBUTE = [figure for figure in OF_TARGETS if figure.place.frame == "attribute"]
_ATTRIBUTE = {figure.name: figure.words for figure in _OF_ATTRIBUTE}
_ATTRIBUTE |= words_of_fields(Attribute) | words_of_fields(Chance) | _compare(_OF_ATTRIBUTE)
_DIFFERENCES = [f"{figure.name}_beyond" for figure in _OF_ATTRIBUTE if figure.compared]
_GUESSED = _words_of("guessed") | _compare([FIGURES["guessed"]])
_OF_CAP = _compare([FIGURES["DCAP"]]) | _GUESSED
_COPIES, _PEOPLE, _REPEATS = (words_of_fields(of) for of in (Copies, PeopleCopied, Repeats))
_RENAMED, _TOGETHER = words_of_fields(Relabelling), words_of_fields(Together)
_BANDS = {"within": frame_words.WITHIN, **bands.WORDS}
_COPIED = _select(
    _COPIES | _PEOPLE,
    *("copies", "copies_others", "copies_beyond", "copies_beyond_se"),
    *("unique_copies", "unique_copies_others", "unique_copies_beyond", "unique_copies_beyond_se"),
    *("unique_copies_apart", "people_copied", "people_copied_expected", "people_copied_beyond_se"),
)

# Figures by weight: each record counts as the people it represents.
_PEOPLE_WEIGHED = weigh_words(_PEOPLE, COPY_FIGURES)
_KEYS_WEIGHED = words_of_fields(PopulationRisk) | weigh_words(_IDENTITY, KEY_FIGURES) | _PEOPLE_WEIGHED
_TARGETS_WEIGHED = words_of_fields(PopulationDisclosure)
_TARGETS_WEIGHED |= weigh_words(_ATTRIBUTE | _CAP | _OF_CAP, TARGET_FIGURES)
_BANDS_WEIGHED = weigh_words(_BANDS, BAND_FIGURES)
_GROUPS = weigh_words(words_of_fields(Subgroup), GROUP_FIGURES)
_GROUPS |= words_of_fields(PopulationRisk, ["people"])
_RIGHT = words_of_fields(Right)
_SENSITIVE = {
    name: frame_words.reword_for_level(name, words)
    for name, words in (_ATTRIBUTE | _OF_CAP | _TARGETS_WEIGHED).items()
    if name.removesuffix("_weighted_se").removesuffix("_weighted").startswith(("Dorig", "DiSCO", "guessed"))
    and not name.startswith("DiSCO_population")
}
_SENSITIVE |= {"records": frame_words.PEOPLE_WITH_LEVEL}


def _weighed_differences(words: Mapping[str, Words]) -> dict[str, Words]:
    return _beyond_chance(words, *(name for name in words if name.endswith("_beyond_weighted")))


_GUARDS_OF_COPIES: dict[str, Words] = {
    **_guard("people_copied_beyond", _PEOPLE["people_copied_beyond"], _PEOPLE["people_copied_by_chance"]),
    **_guard("unique_copies_beyond", _COPIES["unique_copies_beyond"]),
}
_MISSING = _guard("missing_beyond", FIGURES["missing"].words)
_OF_RELEASES: dict[str, Words] = {}
for _name in (PEOPLE_IN_RELEASES, SHARED_WITH_RELEASES):
    _beyond, _by_chance = (RELEASED_WORDS[f"{_name}_{part}"] for part in ("beyond", "by_chance"))
    _OF_RELEASES |= _guard(f"{_name}_beyond", _beyond, _by_chance)
_LIMITS = _words_of(*LIMITS)
_SMALL_KEY_SET = _select(
    _IDENTITY | _HITS | _ATTRIBUTE | _OF_CAP,
    *("repU", "unique_hits_beyond", "unique_hits_beyond_se", "DiSCO", "DiSCO_others"),
    *("DiSCO_beyond", "DiSCO_beyond_se", "guessed_beyond", "guessed_beyond_se"),
)

COLUMNS: Mapping[str, Mapping[str, Words]] = {
    "identity": _IDENTITY | _HITS | _beyond_chance(_HITS, "unique_hits_beyond"),
    "units": frame_words.UNITS,
    "population": _KEYS_WEIGHED | _weighed_differences(_PEOPLE_WEIGHED),
    "population_targets": _TARGETS_WEIGHED | _weighed_differences(_TARGETS_WEIGHED),
    "individual": words_of_fields(RecordRisk),
    "attribute": _ATTRIBUTE | _beyond_chance(_ATTRIBUTE, *_DIFFERENCES),
    "cap": _CAP | _OF_CAP | _beyond_chance(_OF_CAP, "DCAP_beyond"),
    "bands": _BANDS
    | _beyond_chance(_BANDS, "DiS_within_beyond", "DiSCO_within_beyond")
    | _guard("guessed_within_beyond", _BANDS["guessed_within_beyond"])
    | _BANDS_WEIGHED
    | _weighed_differences(_BANDS_WEIGHED),
    "band_certainty": bands.WORDS_AT_CERTAINTY,
    "sensitive": _SENSITIVE
    | _RIGHT
    | _beyond_chance(_SENSITIVE, "DiSCO_beyond")
    | _guard("guessed_beyond", _SENSITIVE["guessed_beyond"])
    | _beyond_chance(_RIGHT, "right_beyond")
    | _weighed_differences(_SENSITIVE),
    "guards": _COPIED
    | _LIMITS
    | _select(_REPEATS, "repeated", "repeats_expected")
    | _GUARDS_OF_COPIES
    | _guard("relabelled", FIGURES["relabelled"].words)
    | _guard("repeats", _REPEATS["repeats"], _REPEATS["repeats_by_chance"])
    | _MISSING
    | _words_of("alike", "equal_content")
    | frame_words.DISTANCES
    | _beyond_chance(frame_words.DISTANCES, "TVD_column_beyond", "TVD_pair_beyond"),
    "confidential": _COPIED | _LIMITS | _GUARDS_OF_COPIES,
    "partial_copies": _COPIED | _GUARDS_OF_COPIES,
    "columns_apart": _RENAMED | frame_words.add_chance_words(_select(_RENAMED, "looks_renamed")) | _MISSING,
    "guessed": _OF_CAP | _guard("guessed_beyond", _GUESSED["guessed_beyond"]),
    "doubts": _words_of("excluded"),
    "warning_counts": _words_of("warnings"),
    "protection": PROTECTION_BY_METHOD,
    "prediction": words_of_fields(Regression) | words_of_fields(Classification),
    "copies": _COPIES
    | frame_words.add_chance_words(_select(_COPIES, "unique_copies_beyond"))
    | frame_words.add_chance_words(_select(_PEOPLE, "people_copied_beyond"))
    | _PEOPLE
    | _select(frame_words.EXACT_COPIES, "columns"),
    "control_identity": CONTROL_IDENTITY,
    "control_attribute": CONTROL_ATTRIBUTE,
    **dict.fromkeys(("key_overlap", "target_overlap"), words_of_fields(Overlap)),
    "excluded": frame_words.EXCLUDED,
    "ledger": frame_words.LEDGER,
    "one_way": words_of_fields(OneWay),
    "two_way": words_of_fields(TwoWay),
    "certainty": certainty.WORDS,
    "over_releases": _OF_RELEASES | RELEASED_WORDS | words_of_fields(TogetherIdentity),
    "released_targets": _TOGETHER,
    "together": _TOGETHER,
    "together_identity": words_of_fields(TogetherIdentity),
    "holdout": words_of_fields(HoldoutComparison),
    "membership": words_of_fields(Membership),
    "identity_after_exclusions": {
        name: replace(words, title=f"{words.title}, after exclusions") for name, words in _IDENTITY.items()
    },
    "summary": _ATTRIBUTE | frame_words.SUMMARY | words_of_fields(Together, ["any"]),
    "exact_copies": frame_words.EXACT_COPIES,
    "nearest": words_of_fields(Nearness),
    **dict.fromkeys(
        ("found", "released_found", "confidential_found"), words_of_fields(Found) | frame_words.FOUND_WHERE
    ),
    "disclosure_protection": PROTECTION_FRAME,
    "resemblance": words_of_fields(Resemblance) | _select(_RENAMED, "TVD_relabelled"),
    "key_sets": _IDENTITY | _select(_ATTRIBUTE, "Dorig", "DiSCO"),
    "subgroups": words_of_fields(Subgroup) | _GROUPS,
    "individual_attribution": frame_words.INDIVIDUAL,
    "weap": frame_words.WEAP,
    "replicated_uniques": frame_words.REPLICATED,
    "compare_remedies": _SMALL_KEY_SET
    | _select(_COPIES, "unique_copies", "unique_copies_beyond", "unique_copies_beyond_se")
    | frame_words.REMEDIES,
    "bins": frame_words.BINS,
    "power": frame_words.POWER,
}
"""Frame (or function that returns it) -> column -> words."""
