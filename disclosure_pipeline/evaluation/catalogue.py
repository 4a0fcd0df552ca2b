"""The catalogue: one entry for every figure, in reading order, from which all lists of figures are derived.

A figure is a column of a frame. Figures that no entry marks as public are withheld from everything that
leaves a gate. The words for a formula's figures are defined beside the formula.
"""

from __future__ import annotations

from dataclasses import replace

from disclosure_pipeline.evaluation import frame_words, power
from disclosure_pipeline.evaluation.catalogue_entry import (
    STRICT_SUFFIX,
    Measure,
    Rounding,
    bound_strictly,
    describe_beyond_chance,
    drop_repeats,
    find_columns,
    leave_unbounded,
    list_columns,
    select_words,
)
from disclosure_pipeline.evaluation.catalogue_guards import (
    BANDS,
    GUARD_OF_GUESSES,
    GUARDS_OF_COMPARABILITY,
    GUARDS_OF_COPIES,
    RELEASES,
)
from disclosure_pipeline.measures.attribute import CAP, Attribute, Identity, Individual
from disclosure_pipeline.measures.baselines import Baselines
from disclosure_pipeline.measures.certainty import Certainty
from disclosure_pipeline.measures.chance import Chance
from disclosure_pipeline.measures.checks import OneWay, TwoWay
from disclosure_pipeline.measures.copies import Copies, UniqueHits
from disclosure_pipeline.measures.found import Found
from disclosure_pipeline.measures.holdout import HoldoutComparison, Membership
from disclosure_pipeline.measures.nearest import Nearness
from disclosure_pipeline.measures.people import PeopleCopied, Repeats
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.measures.protection import PROTECTED, PROTECTION_BY_METHOD, PROTECTION_FRAME
from disclosure_pipeline.measures.resemblance import Overlap, Relabelling, Resemblance
from disclosure_pipeline.measures.subgroups import Subgroup
from disclosure_pipeline.measures.survey import PopulationDisclosure, PopulationRisk, RecordRisk
from disclosure_pipeline.measures.together import Together, TogetherIdentity
from disclosure_pipeline.measures.weighted import (
    COPY_FIGURES,
    GROUP_FIGURES,
    GUESS_FIGURES,
    KEY_FIGURES,
    OTHERS_FIGURES,
    TARGET_FIGURES,
    WEIGHTED,
    weigh_words,
)
from disclosure_pipeline.measures.words import words_of_fields

_IDENTITY = words_of_fields(Identity)
_HITS = words_of_fields(UniqueHits)
_BASELINES = words_of_fields(Baselines)
_OF_CAP = {name: words for name, words in _BASELINES.items() if name.startswith(("DCAP", "guessed"))}
_CAP = words_of_fields(CAP)
_ATTRIBUTE = words_of_fields(Attribute) | words_of_fields(Chance)
_ATTRIBUTE |= {name: words for name, words in _BASELINES.items() if name not in _OF_CAP}
_COPIES = words_of_fields(Copies)
_PEOPLE = words_of_fields(PeopleCopied)
_RENAMED = words_of_fields(Relabelling)
_NEARNESS = words_of_fields(Nearness)
_CLASSIFICATION, _REGRESSION = words_of_fields(Classification), words_of_fields(Regression)
_AFTER_EXCLUSIONS = {
    name: replace(words, title=f"{words.title}, after exclusions") for name, words in _IDENTITY.items()
}
_INDIVIDUAL = words_of_fields(Individual)
_KEY_SET = select_words(
    _IDENTITY | _HITS | _ATTRIBUTE | _OF_CAP,
    *("repU", "unique_hits_beyond", "unique_hits_beyond_se", "DiSCO", "DiSCO_others"),
    *("DiSCO_beyond", "DiSCO_beyond_se", "guessed_beyond", "guessed_beyond_se"),
)
_REMEDIED = ("unique_copies", "unique_copies_beyond", "unique_copies_beyond_se")
_COPIED = "copies copies_others copies_beyond copies_beyond_se "
_COPIED += "unique_copies unique_copies_others unique_copies_beyond unique_copies_beyond_se "
_COPIED += "unique_copies_apart people_copied people_copied_expected people_copied_beyond_se"
_COPIED_WORDS = select_words(_COPIES | _PEOPLE, *_COPIED.split())
_COPIES_BY_CHANCE = frame_words.add_chance_words(
    select_words(_COPIES | _PEOPLE, "unique_copies_beyond", "people_copied_beyond")
)
_REPEATS, _REPEATED = words_of_fields(Repeats), "repeated repeats_expected"
_BY_UNIT = " ".join
_BEYOND_BOTH: tuple[tuple[str, str, str, Rounding], ...] = (
    ("", "attribute", "attribute", "share"),
    (WEIGHTED, "population_targets", "population", "unit"),
)
_MEMBERSHIP = words_of_fields(Membership)
_ATTACKS = ("advantage_keys", "advantage_records", "TPR_at_1", "TPR_at_0_1", "AUC")
_ADVANTAGES = {f"{name}_chance": name for name in ("advantage_keys", "advantage_records")}
_GROUPS = weigh_words(words_of_fields(Subgroup), GROUP_FIGURES)
_GROUPS |= words_of_fields(PopulationRisk, ["people"])
_WEIGHED_PEOPLE = weigh_words(_PEOPLE, COPY_FIGURES)
_OF_KEYS = words_of_fields(PopulationRisk) | weigh_words(_IDENTITY, KEY_FIGURES) | _WEIGHED_PEOPLE
_OF_TARGETS = words_of_fields(PopulationDisclosure)
_OF_TARGETS |= weigh_words(_ATTRIBUTE | _CAP | _OF_CAP, TARGET_FIGURES + OTHERS_FIGURES + GUESS_FIGURES)
_COPIED_BEYOND = f"people_copied_beyond{WEIGHTED}"
_DIFFERENCES = [name for name in _OF_TARGETS if name.endswith(f"_beyond{WEIGHTED}")]
_POPULATION = (
    *list_columns(
        "population",
        _OF_KEYS,
        role="bound",
        question="found",
        per_target=False,
        unit=" ".join(_OF_KEYS),
        overrides={name: {"question": "copied"} for name in _WEIGHED_PEOPLE}
        | {_COPIED_BEYOND: bound_strictly(_COPIED_BEYOND) | {"question": "copied"}}
        | leave_unbounded(
            _OF_KEYS,
            *("people", "right_identifications", "repU_population", f"people_copied_expected{WEIGHTED}"),
        ),
    ),
    describe_beyond_chance(
        _COPIED_BEYOND,
        _WEIGHED_PEOPLE[_COPIED_BEYOND],
        "population",
        published="unit",
        family="population",
        question="copied",
        per_target=False,
    ),
    *list_columns(
        "population_targets",
        _OF_TARGETS,
        role="bound",
        family="population",
        unit=" ".join(_OF_TARGETS),
        overrides={name: bound_strictly(name) for name in _DIFFERENCES}
        | leave_unbounded(_OF_TARGETS, "DiSCO_population", f"guessed_others{WEIGHTED}"),
    ),
    *(
        describe_beyond_chance(
            name, _OF_TARGETS[name], "population_targets", published="unit", family="population"
        )
        for name in _DIFFERENCES
    ),
)


CATALOGUE = drop_repeats(
    *list_columns(
        "identity",
        _IDENTITY | _HITS,
        role="bound",
        question="found",
        per_target=False,
        share="UiO UiS UiOiS repU unique_hits unique_hits_others unique_hits_apart unique_hits_beyond",
        unit="unique_hits_beyond_se",
        overrides={
            "repU": {"original": "UiO", "rank": 5},
            "unique_hits_beyond": bound_strictly("unique_hits_beyond", 6),
        },
    ),
    describe_beyond_chance(
        "unique_hits_beyond",
        _HITS["unique_hits_beyond"],
        "identity",
        family="identity",
        question="found",
        per_target=False,
        rank=6,
    ),
    *list_columns("units", frame_words.UNITS, unit="units individual_risk household_risk"),
    *_POPULATION,
    *list_columns("individual", words_of_fields(RecordRisk)),
    *list_columns(
        "attribute",
        _ATTRIBUTE,
        role="bound",
        share="Dorig Dsyn iS DiS DiSCO DiSDiO DiSCO_chance DiSCO_excess iS_at_n iS_others iS_beyond "
        "DiSCO_at_n DiSCO_others DiSCO_beyond",
        records="max_denom",
        unit="mean_denom iS_beyond_se DiSCO_beyond_se",
        overrides={
            "iS_beyond": bound_strictly("iS_beyond"),
            "DiSCO": {"original": "Dorig", "rank": 0},
            "DiSCO_beyond": bound_strictly("DiSCO_beyond", 2),
            "DiSCO_chance": {"family": "chance"},
            "DiSCO_excess": {"family": "chance", "rank": 3},
            "max_denom": {"largest": None},
            "mean_denom": {"largest": None},
        },
    ),
    describe_beyond_chance("iS_beyond", _ATTRIBUTE["iS_beyond"], "attribute", family="attribute"),
    describe_beyond_chance(
        "DiSCO_beyond", _ATTRIBUTE["DiSCO_beyond"], "attribute", family="attribute", rank=2
    ),
    *(
        Measure(
            f"DiSCO_beyond_both{weighted}{strictly}",
            frame_words.BEYOND_BOTH,
            frame,
            "",
            role="beyond",
            family=family,
            smaller_of=(f"DiSCO_beyond{weighted}{strictly}", f"DiSCO_excess{weighted}"),
            published=published,
            rank=1,
        )
        for weighted, frame, family, published in _BEYOND_BOTH
        for strictly in ("", STRICT_SUFFIX)
    ),
    *list_columns(
        "cap",
        _CAP | _OF_CAP,
        role="bound",
        family="attribution",
        share="CAPd CAPs DCAP pct_predicted_correctly DCAP_at_n DCAP_others DCAP_beyond guessed "
        "guessed_at_n guessed_others",
        records="n_predicted_correctly",
        unit="baseCAPd CAP_matched TCAP TCAP_disclosive TCAP_taub DCAP_scaled TCAP_scaled min_DCAP "
        "min_CAP_matched guessed_beyond DCAP_beyond_se guessed_beyond_se",
        overrides={
            "n_predicted_correctly": {"largest": None},
            "DCAP_beyond": bound_strictly("DCAP_beyond"),
            "guessed_beyond": {"role": None},
        },
    ),
    describe_beyond_chance("DCAP_beyond", _OF_CAP["DCAP_beyond"], "cap", family="attribution"),
    *BANDS,
    *list_columns("guards", _COPIED_WORDS, unit=_COPIED),
    *list_columns("guards", select_words(_REPEATS, *_REPEATED.split()), unit=_REPEATED),
    *list_columns("confidential", _COPIED_WORDS, unit=_COPIED),
    *list_columns("partial_copies", _COPIED_WORDS, unit=_COPIED),
    *list_columns("columns_apart", _RENAMED, unit="TVD TVD_expected TVD_relabelled looks_renamed"),
    *list_columns(
        "columns_apart",
        frame_words.add_chance_words(select_words(_RENAMED, "looks_renamed")),
        unit="looks_renamed looks_renamed_by_chance looks_renamed_beyond_chance",
    ),
    *GUARDS_OF_COPIES,
    *list_columns("guessed", _OF_CAP, unit=_BY_UNIT(_OF_CAP)),
    *GUARD_OF_GUESSES,
    *list_columns("doubts", frame_words.DOUBTS, role="doubt", question="comparable", share="excluded"),
    *GUARDS_OF_COMPARABILITY,
    *list_columns(
        "guards",
        frame_words.DISTANCES,
        role="bound",
        family="resemblance",
        per_target=False,
        largest=1,
        unit=_BY_UNIT(frame_words.DISTANCES),
        overrides={
            name: {"role": None} if name.endswith("_se") else bound_strictly(name)
            for name in frame_words.DISTANCES
        },
    ),
    *(
        describe_beyond_chance(
            name, words, "guards", published="unit", family="resemblance", per_target=False, largest=1
        )
        for name, words in frame_words.DISTANCES.items()
        if not name.endswith("_se")
    ),
    *list_columns(
        "warning_counts",
        frame_words.WARNINGS,
        role="control",
        family="comparability",
        question="comparable",
        per_target=False,
        exact="warnings",
    ),
    *list_columns(
        "protection",
        PROTECTION_BY_METHOD,
        largest=1,
        unit=_BY_UNIT(PROTECTED),
        overrides={name: {"role": "bound"} for name in PROTECTED},
    ),
    *list_columns(
        "prediction",
        _REGRESSION | _CLASSIFICATION,
        role="bound",
        unit="accuracy_SD accuracy_GT accuracy_GT_in_sample accuracy_naive gain_over_naive gain_over_GT "
        "gain_over_GT_low gain_over_GT_high RAPID RAPID_GT RAPID_naive mse_SD mse_GT mse_GT_in_sample "
        "mse_naive worse_from_SD worse_from_SD_in_sample",
        overrides={
            **{name: {"task": "classification"} for name in _CLASSIFICATION if name not in _REGRESSION},
            **{
                name: {"task": "regression", "largest": None if name.startswith("mse_") else 100}
                for name in _REGRESSION
                if name not in _CLASSIFICATION
            },
        },
    ),
    *list_columns(
        "copies", _COPIES | _COPIES_BY_CHANCE | _PEOPLE | select_words(frame_words.EXACT_COPIES, "columns")
    ),
    *list_columns(
        "control_identity",
        frame_words.CONTROL_IDENTITY,
        role="control",
        family="controls",
        question="trusted",
        per_target=False,
        unit="copy_UiO copy_repU",
    ),
    *list_columns(
        "control_attribute",
        frame_words.CONTROL_ATTRIBUTE,
        family="controls",
        question="trusted",
        unit="copy_Dorig copy_DiSCO permuted_DCAP permuted_DCAP_expected half_DiSCO_beyond",
        exact="copy_difference permuted_deviation half_deviation",
        overrides={
            name: {"role": "control"}
            for name in frame_words.CONTROL_ATTRIBUTE
            if not name.startswith(("permuted_DCAP", "half_DiSCO"))
        },
    ),
    Measure("one_way_flags", frame_words.ONE_WAY, "one_way", "", role="check", published="unit"),
    Measure("two_way_flags", frame_words.TWO_WAY, "two_way", "", role="check", published="unit"),
    *(
        entry
        for frame, words in (
            ("key_overlap", frame_words.KEY_OVERLAP),
            ("target_overlap", frame_words.TARGET_OVERLAP),
        )
        for entry in (
            Measure(frame, words, frame, "", "overlap", question="comparable", published="unit"),
            *list_columns(frame, words_of_fields(Overlap), unit="GT_in_SD SD_in_GT"),
        )
    ),
    *list_columns(
        "excluded",
        frame_words.EXCLUDED,
        unit="target_levels missing_target missing_key pairs count_over remaining",
    ),
    *list_columns("ledger", frame_words.LEDGER, unit="records"),
    *list_columns("one_way", words_of_fields(OneWay)),
    *list_columns("two_way", words_of_fields(TwoWay)),
    *list_columns("certainty", words_of_fields(Certainty)),
    *RELEASES,
    *list_columns("together_identity", words_of_fields(TogetherIdentity)),
    *list_columns("holdout", words_of_fields(HoldoutComparison), unit="ground_truth holdout"),
    *list_columns(
        "membership",
        _MEMBERSHIP,
        question="copied",
        per_target=False,
        unit=_BY_UNIT([*_ATTACKS, *_ADVANTAGES]),
        overrides={
            **{name: {"role": "bound"} for name in _ATTACKS},
            **{column: {"name": name, "role": "bound"} for column, name in _ADVANTAGES.items()},
            **{name: bound_strictly(name) for name in _ADVANTAGES.values()},
            "epsilon_ruled_out": {"role": "bound", "largest": None},
            "epsilon_beyond_claim": {"role": "doubt", "question": "comparable"},
        },
    ),
    *list_columns(
        "identity_after_exclusions",
        _AFTER_EXCLUSIONS,
        role="bound",
        family="identity",
        question="found",
        share="UiO UiS UiOiS repU",
        overrides={name: {"name": f"{name}_after_exclusions"} for name in _AFTER_EXCLUSIONS},
    ),
    *list_columns(
        "summary", _ATTRIBUTE | frame_words.SUMMARY | select_words(words_of_fields(Together), "any")
    ),
    *list_columns("exact_copies", frame_words.EXACT_COPIES, exact="columns", unit="percent copies"),
    *list_columns("nearest", _NEARNESS),
    *list_columns("found", words_of_fields(Found) | frame_words.FOUND_WHERE),
    *list_columns("disclosure_protection", PROTECTION_FRAME),
    *list_columns("resemblance", words_of_fields(Resemblance) | select_words(_RENAMED, "TVD_relabelled")),
    *list_columns("key_sets", _IDENTITY | select_words(_ATTRIBUTE, "Dorig", "DiSCO")),
    *list_columns(
        "subgroups", words_of_fields(Subgroup) | _GROUPS, share="DiSCO DiSCO_others", records="records"
    ),
    *list_columns("individual_attribution", {"CAP_GT": _INDIVIDUAL["CAP"], **_INDIVIDUAL}),
    *list_columns("weap", frame_words.WEAP),
    *list_columns("replicated_uniques", frame_words.REPLICATED),
    *list_columns(
        "compare_remedies",
        _KEY_SET | select_words(_COPIES, *_REMEDIED) | frame_words.REMEDIES,
    ),
    *list_columns("bins", frame_words.BINS),
    *list_columns("power", power.WORDS),
)


COLUMNS = find_columns(CATALOGUE)
"""Frame (or function that returns it) -> column -> words."""
