"""The columns of every frame: what each means in words, and how it is rounded for the public.

Columns that are not listed as public are withheld from everything that leaves a gate. The words for the
figures of a formula are defined beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from disclosure_pipeline.evaluation import frame_words, power
from disclosure_pipeline.measures.attribute import CAP, Attribute, Identity, Individual
from disclosure_pipeline.measures.bands import BandCertainty, Bands
from disclosure_pipeline.measures.baselines import Baselines
from disclosure_pipeline.measures.certainty import Certainty
from disclosure_pipeline.measures.chance import Chance
from disclosure_pipeline.measures.checks import OneWay, TwoWay
from disclosure_pipeline.measures.contributions import (
    BAND_FIGURES,
    COPY_FIGURES,
    GROUP_FIGURES,
    KEY_FIGURES,
    TARGET_FIGURES,
)
from disclosure_pipeline.measures.copies import Copies, UniqueHits
from disclosure_pipeline.measures.found import Found
from disclosure_pipeline.measures.holdout import HoldoutComparison, Membership
from disclosure_pipeline.measures.nearest import Nearness
from disclosure_pipeline.measures.people import PeopleCopied, Repeats
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.measures.protection import PROTECTED, PROTECTION_BY_METHOD, PROTECTION_FRAME
from disclosure_pipeline.measures.resemblance import Overlap, Relabelling, Resemblance
from disclosure_pipeline.measures.subgroups import Right, Subgroup
from disclosure_pipeline.measures.survey import PopulationDisclosure, PopulationRisk, RecordRisk
from disclosure_pipeline.measures.together import (
    PEOPLE_IN_RELEASES,
    RELEASED_WORDS,
    SHARED_WITH_RELEASES,
    Together,
    TogetherIdentity,
)
from disclosure_pipeline.measures.words import Words, weigh_words, words_of_fields

Rounding = Literal["share", "records", "unit", "exact"]
"""The rounding of a figure for the public.

As a "share" of all records or a number of "records", in statements, too; by its "unit", in the public edition
of the dossier only; or "exact", if it reveals nothing about people.
"""


@dataclass(frozen=True)
class _Columns:
    """Columns of a frame. Each rounding lists the columns that are published so."""

    frame: str
    words: Mapping[str, Words]
    share: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()

    @property
    def roundings(self) -> Iterator[tuple[str, Rounding]]:
        """The public columns with their rounding."""
        by_rounding: dict[Rounding, tuple[str, ...]] = {
            "share": self.share,
            "records": self.records,
            "unit": self.unit,
            "exact": self.exact,
        }
        for rounding, columns in by_rounding.items():
            for column in columns:
                yield column, rounding


def _select(words: Mapping[str, Words], *names: str) -> dict[str, Words]:
    return {name: words[name] for name in names}


def _beyond_chance(words: Mapping[str, Words], *names: str) -> dict[str, Words]:
    """Return the words of the columns `<name>_chance`: the part of a difference that is beyond chance."""
    return {f"{name}_chance": frame_words.reword_beyond_chance(words[name]) for name in names}


def _guard(name: str, words: Words, by_chance: Words | None = None) -> dict[str, Words]:
    """Return the words of a figure, of the same by chance alone, and of the part beyond chance."""
    described = frame_words.add_chance_words({name: words})
    if by_chance is not None:
        described |= {column: by_chance for column in described if column.endswith("_by_chance")}
    return described


_IDENTITY = words_of_fields(Identity)
_HITS = words_of_fields(UniqueHits)
_BASELINES = words_of_fields(Baselines)
_OF_CAP = {name: words for name, words in _BASELINES.items() if name.startswith(("DCAP", "guessed"))}
_CAP = words_of_fields(CAP)
_ATTRIBUTE = words_of_fields(Attribute) | words_of_fields(Chance)
_ATTRIBUTE |= {name: words for name, words in _BASELINES.items() if name not in _OF_CAP}
_COPIES, _PEOPLE, _REPEATS = (words_of_fields(of) for of in (Copies, PeopleCopied, Repeats))
_RENAMED, _NEARNESS = words_of_fields(Relabelling), words_of_fields(Nearness)
_TOGETHER, _MEMBERSHIP = words_of_fields(Together), words_of_fields(Membership)
_BANDS = {"within": frame_words.WITHIN, **words_of_fields(Bands)}
_BAND_DIFFERENCES = ("DiS_within_beyond", "DiSCO_within_beyond")
_AFTER_EXCLUSIONS = {
    name: replace(words, title=f"{words.title}, after exclusions") for name, words in _IDENTITY.items()
}
_COPIED = (
    *("copies", "copies_others", "copies_beyond", "copies_beyond_se"),
    *("unique_copies", "unique_copies_others", "unique_copies_beyond", "unique_copies_beyond_se"),
    *("unique_copies_apart", "people_copied", "people_copied_expected", "people_copied_beyond_se"),
)
_COPIED_WORDS = _select(_COPIES | _PEOPLE, *_COPIED)
_FOUND = ("alone", "shown", "expected", "found", "found_by_chance", "found_beyond_chance")
_REPEATED = ("repeated", "repeats_expected")
_INDIVIDUAL = words_of_fields(Individual)

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
_SENSITIVE |= {"records": frame_words.WITH_LEVEL}


def _weighed_differences(words: Mapping[str, Words]) -> dict[str, Words]:
    return _beyond_chance(words, *(name for name in words if name.endswith("_beyond_weighted")))


_GUARDS_OF_COPIES: dict[str, Words] = {
    **_guard("people_copied_beyond", _PEOPLE["people_copied_beyond"], _PEOPLE["people_copied_by_chance"]),
    **_guard("unique_copies_beyond", _COPIES["unique_copies_beyond"]),
}
_OF_PARTS = {
    name: words
    for name, words in _GUARDS_OF_COPIES.items()
    if name.startswith(("people_copied", "unique_copies"))
}
_MISSING = _guard("missing_beyond", frame_words.MISSING_BEYOND)
_GUESSED = _guard("guessed_beyond", _BASELINES["guessed_beyond"])
_OF_RELEASES = {
    **_guard(
        f"{PEOPLE_IN_RELEASES}_beyond",
        RELEASED_WORDS[f"{PEOPLE_IN_RELEASES}_beyond"],
        RELEASED_WORDS[f"{PEOPLE_IN_RELEASES}_by_chance"],
    ),
    **_guard(
        f"{SHARED_WITH_RELEASES}_beyond",
        RELEASED_WORDS[f"{SHARED_WITH_RELEASES}_beyond"],
        RELEASED_WORDS[f"{SHARED_WITH_RELEASES}_by_chance"],
    ),
}
_SUMMARISED = words_of_fields(Together, ["any"])
_OVERLAP = words_of_fields(Overlap)
_SMALL_KEY_SET = _select(
    _IDENTITY | _HITS | _ATTRIBUTE | _OF_CAP,
    *("repU", "unique_hits_beyond", "unique_hits_beyond_se", "DiSCO", "DiSCO_others"),
    *("DiSCO_beyond", "DiSCO_beyond_se", "guessed_beyond", "guessed_beyond_se"),
)

_FRAMES: tuple[_Columns, ...] = (
    _Columns(
        "identity",
        _IDENTITY | _HITS | _beyond_chance(_HITS, "unique_hits_beyond"),
        share=(
            *("UiO", "UiS", "UiOiS", "repU", "unique_hits", "unique_hits_others"),
            *("unique_hits_apart", "unique_hits_beyond", "unique_hits_beyond_chance"),
        ),
        unit=("unique_hits_beyond_se",),
    ),
    _Columns("units", frame_words.UNITS, unit=("units", "individual_risk", "household_risk")),
    _Columns("population", _KEYS_WEIGHED, unit=tuple(_KEYS_WEIGHED)),
    _Columns(
        "population",
        _weighed_differences(_PEOPLE_WEIGHED),
        unit=tuple(_weighed_differences(_PEOPLE_WEIGHED)),
    ),
    _Columns("population_targets", _TARGETS_WEIGHED, unit=tuple(_TARGETS_WEIGHED)),
    _Columns(
        "population_targets",
        _weighed_differences(_TARGETS_WEIGHED),
        unit=tuple(_weighed_differences(_TARGETS_WEIGHED)),
    ),
    _Columns("individual", words_of_fields(RecordRisk)),
    _Columns(
        "attribute",
        _ATTRIBUTE | _beyond_chance(_ATTRIBUTE, "iS_beyond", "DiSCO_beyond"),
        share=(
            *("Dorig", "Dsyn", "iS", "DiS", "DiSCO", "DiSDiO", "DiSCO_chance", "DiSCO_excess"),
            *("iS_at_n", "iS_others", "iS_beyond", "DiSCO_at_n", "DiSCO_others", "DiSCO_beyond"),
            *("iS_beyond_chance", "DiSCO_beyond_chance"),
        ),
        records=("max_denom",),
        unit=("mean_denom", "iS_beyond_se", "DiSCO_beyond_se"),
    ),
    _Columns(
        "cap",
        _CAP | _OF_CAP | _beyond_chance(_OF_CAP, "DCAP_beyond"),
        share=(
            *("CAPd", "CAPs", "DCAP", "pct_predicted_correctly", "DCAP_at_n", "DCAP_others"),
            *("DCAP_beyond", "DCAP_beyond_chance", "guessed", "guessed_at_n", "guessed_others"),
        ),
        records=("n_predicted_correctly",),
        unit=(
            *("baseCAPd", "CAP_matched", "TCAP", "TCAP_disclosive", "TCAP_taub", "DCAP_scaled"),
            *("TCAP_scaled", "min_DCAP", "min_CAP_matched", "guessed_beyond", "DCAP_beyond_se"),
            *("guessed_beyond_se",),
        ),
    ),
    _Columns(
        "bands",
        _BANDS
        | _beyond_chance(_BANDS, *_BAND_DIFFERENCES)
        | _guard("guessed_within_beyond", _BANDS["guessed_within_beyond"]),
        share=(
            *("DiS_within", "DiS_within_others", "DiS_within_beyond", "DiSCO_within"),
            *("DiSCO_within_others", "DiSCO_within_beyond", "guessed_within"),
            *("guessed_within_others", "DiS_within_beyond_chance", "DiSCO_within_beyond_chance"),
        ),
        exact=("within",),
        unit=(
            *("DiS_within_beyond_se", "DiSCO_within_beyond_se", "guessed_within_beyond"),
            *("guessed_within_beyond_se", "guessed_within_by_chance"),
            *("guessed_within_beyond_chance",),
        ),
    ),
    _Columns(
        "bands",
        _BANDS_WEIGHED | _weighed_differences(_BANDS_WEIGHED),
        unit=(*_BANDS_WEIGHED, *_weighed_differences(_BANDS_WEIGHED)),
    ),
    _Columns("band_certainty", words_of_fields(BandCertainty)),
    _Columns(
        "sensitive",
        _SENSITIVE
        | _RIGHT
        | _beyond_chance(_SENSITIVE, "DiSCO_beyond")
        | _guard("guessed_beyond", _SENSITIVE["guessed_beyond"])
        | _beyond_chance(_RIGHT, "right_beyond")
        | _weighed_differences(_SENSITIVE),
    ),
    *(_Columns(frame, _COPIED_WORDS, unit=_COPIED) for frame in ("guards", "confidential", "partial_copies")),
    *(
        _Columns(frame, frame_words.LIMITS, share=tuple(frame_words.LIMITS))
        for frame in ("guards", "confidential")
    ),
    _Columns("guards", _select(_REPEATS, *_REPEATED), unit=_REPEATED),
    *(
        _Columns(frame, _GUARDS_OF_COPIES, unit=tuple(_GUARDS_OF_COPIES))
        for frame in ("guards", "confidential")
    ),
    _Columns("partial_copies", _OF_PARTS, unit=tuple(_OF_PARTS)),
    _Columns(
        "columns_apart",
        _RENAMED | frame_words.add_chance_words(_select(_RENAMED, "looks_renamed")),
        unit=(
            *("TVD", "TVD_expected", "TVD_relabelled", "looks_renamed"),
            *("looks_renamed_by_chance", "looks_renamed_beyond_chance"),
        ),
    ),
    _Columns(
        "columns_apart",
        _MISSING,
        unit=tuple(_MISSING),
    ),
    _Columns("guessed", _OF_CAP, unit=tuple(_OF_CAP)),
    _Columns("guessed", _GUESSED, unit=tuple(_GUESSED)),
    _Columns("doubts", frame_words.DOUBTS, share=("excluded",)),
    *(
        _Columns("guards", described, unit=tuple(described))
        for described in (
            _guard("relabelled", frame_words.RELABELLED),
            _guard("repeats", _REPEATS["repeats"], _REPEATS["repeats_by_chance"]),
            _MISSING,
            {"alike": frame_words.ALIKE, "equal_content": frame_words.EQUAL_CONTENT},
            frame_words.DISTANCES,
            _beyond_chance(frame_words.DISTANCES, "TVD_column_beyond", "TVD_pair_beyond"),
        )
    ),
    _Columns("warning_counts", frame_words.WARNINGS, exact=("warnings",)),
    _Columns("protection", PROTECTION_BY_METHOD, unit=tuple(PROTECTED)),
    _Columns(
        "prediction",
        words_of_fields(Regression) | words_of_fields(Classification),
        unit=(
            *("accuracy_SD", "accuracy_GT", "accuracy_GT_in_sample", "accuracy_naive"),
            *("gain_over_naive", "gain_over_GT", "gain_over_GT_low", "gain_over_GT_high"),
            *("RAPID", "RAPID_GT", "RAPID_naive", "mse_SD", "mse_GT", "mse_GT_in_sample"),
            *("mse_naive", "worse_from_SD", "worse_from_SD_in_sample"),
        ),
    ),
    _Columns(
        "copies",
        _COPIES
        | frame_words.add_chance_words(_select(_COPIES, "unique_copies_beyond"))
        | frame_words.add_chance_words(_select(_PEOPLE, "people_copied_beyond"))
        | _PEOPLE
        | _select(frame_words.EXACT_COPIES, "columns"),
    ),
    _Columns("control_identity", frame_words.CONTROL_IDENTITY, unit=("copy_UiO", "copy_repU")),
    _Columns(
        "control_attribute",
        frame_words.CONTROL_ATTRIBUTE,
        unit=(
            *("copy_Dorig", "copy_DiSCO", "permuted_DCAP", "permuted_DCAP_expected"),
            *("half_DiSCO_beyond",),
        ),
        exact=("copy_difference", "permuted_deviation", "half_deviation"),
    ),
    *(_Columns(frame, _OVERLAP, unit=tuple(_OVERLAP)) for frame in ("key_overlap", "target_overlap")),
    _Columns("excluded", frame_words.EXCLUDED, unit=tuple(frame_words.EXCLUDED)),
    _Columns("ledger", frame_words.LEDGER, unit=("records",)),
    _Columns("one_way", words_of_fields(OneWay)),
    _Columns("two_way", words_of_fields(TwoWay)),
    _Columns("certainty", words_of_fields(Certainty)),
    _Columns("over_releases", _OF_RELEASES, unit=tuple(_OF_RELEASES)),
    _Columns(
        "over_releases",
        RELEASED_WORDS | words_of_fields(TogetherIdentity),
        unit=tuple(name for name in RELEASED_WORDS if name != "releases_gone"),
        exact=("releases_gone",),
    ),
    _Columns("released_targets", _TOGETHER, share=("DiSCO_any_beyond_chance",)),
    _Columns("together", _TOGETHER, share=("DiSCO_any_beyond", "DiSCO_any_beyond_chance")),
    _Columns("together_identity", words_of_fields(TogetherIdentity)),
    _Columns("holdout", words_of_fields(HoldoutComparison), unit=("ground_truth", "holdout")),
    _Columns(
        "membership",
        _MEMBERSHIP,
        unit=(
            *("advantage_keys", "advantage_records", "advantage_keys_chance"),
            *("advantage_records_chance", "TPR_at_1", "TPR_at_0_1", "AUC"),
        ),
    ),
    _Columns("identity_after_exclusions", _AFTER_EXCLUSIONS, share=("UiO", "UiS", "UiOiS", "repU")),
    _Columns("summary", _ATTRIBUTE | frame_words.SUMMARY | _SUMMARISED),
    _Columns("exact_copies", frame_words.EXACT_COPIES, exact=("columns",), unit=("percent", "copies")),
    _Columns("nearest", _NEARNESS),
    *(
        _Columns(frame, words_of_fields(Found) | frame_words.FOUND_WHERE, unit=_FOUND)
        for frame in ("found", "released_found", "confidential_found")
    ),
    _Columns("disclosure_protection", PROTECTION_FRAME),
    _Columns("resemblance", words_of_fields(Resemblance) | _select(_RENAMED, "TVD_relabelled")),
    _Columns("key_sets", _IDENTITY | _select(_ATTRIBUTE, "Dorig", "DiSCO")),
    _Columns(
        "subgroups",
        words_of_fields(Subgroup) | _GROUPS,
        share=("DiSCO", "DiSCO_others"),
        records=("records",),
    ),
    _Columns("individual_attribution", {"CAP_GT": _INDIVIDUAL["CAP"], **_INDIVIDUAL}),
    _Columns("weap", frame_words.WEAP),
    _Columns("replicated_uniques", frame_words.REPLICATED),
    _Columns(
        "compare_remedies",
        _SMALL_KEY_SET
        | _select(_COPIES, "unique_copies", "unique_copies_beyond", "unique_copies_beyond_se")
        | frame_words.REMEDIES,
    ),
    _Columns("bins", frame_words.BINS),
    _Columns("power", power.WORDS),
)


def _join() -> dict[str, dict[str, Words]]:
    columns: dict[str, dict[str, Words]] = {}
    for part in _FRAMES:
        for name, words in part.words.items():
            columns.setdefault(part.frame, {}).setdefault(name, words)
    return columns


COLUMNS: Mapping[str, Mapping[str, Words]] = _join()
"""Frame (or function that returns it) -> column -> words."""

PUBLISHED: Mapping[tuple[str, str], Rounding] = {
    (part.frame, column): rounding for part in reversed(_FRAMES) for column, rounding in part.roundings
}
"""Frame and column -> rounding of the columns that may be published."""
