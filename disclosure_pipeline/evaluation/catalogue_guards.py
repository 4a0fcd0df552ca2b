"""Entries of the guards, which every gate bounds whatever its keys; of bands; and of several releases."""

from __future__ import annotations

from disclosure_pipeline.evaluation import frame_words
from disclosure_pipeline.evaluation.catalogue_entry import (
    STRICT_SUFFIX,
    GuardBound,
    Measure,
    bound_strictly,
    describe_beyond_chance,
    leave_unbounded,
    list_columns,
    list_guard,
)
from disclosure_pipeline.measures.bands import BandCertainty, Bands
from disclosure_pipeline.measures.baselines import Baselines
from disclosure_pipeline.measures.copies import Copies
from disclosure_pipeline.measures.nearest import Nearness
from disclosure_pipeline.measures.people import PeopleCopied, Repeats
from disclosure_pipeline.measures.together import (
    PEOPLE_IN_RELEASES,
    RELEASED_WORDS,
    SHARED_WITH_RELEASES,
    Together,
    TogetherIdentity,
)
from disclosure_pipeline.measures.weighted import BAND_FIGURES, WEIGHTED, weigh_words
from disclosure_pipeline.measures.words import NONE, POINTS, Words, words_of_fields

_BANDS = {
    "within": Words.neutral(
        "band", "A guess this close to the value counts: a share of it, or an amount.", NONE
    ),
    **words_of_fields(Bands),
}
_BANDS_WEIGHTED = weigh_words(words_of_fields(Bands), BAND_FIGURES)
_BEYOND = f"_beyond{WEIGHTED}"
_COPIES = words_of_fields(Copies)
_PEOPLE = words_of_fields(PeopleCopied)
_REPEATS = words_of_fields(Repeats)
_GUESSED_BEYOND = words_of_fields(Baselines)["guessed_beyond"]
_NEARNESS = words_of_fields(Nearness)
_COPIED_FRAMES = ("confidential", "partial_copies")

GUARDS_OF_COPIES = (
    *list_guard(
        "people_copied_beyond",
        _PEOPLE["people_copied_beyond"],
        "guards",
        _COPIED_FRAMES,
        by_chance=_PEOPLE["people_copied_by_chance"],
        is_per_confidential_table=True,
        rank=7,
        bound=GuardBound(
            2.5,
            "Percentage points of the GT records that are unique in GT and occur in SD, beyond those in a "
            "fresh table of SD's size",
        ),
    ),
    *list_guard(
        "unique_copies_beyond",
        _COPIES["unique_copies_beyond"],
        "guards",
        _COPIED_FRAMES,
        is_per_confidential_table=True,
        rank=8,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            2.5,
            "Percentage points of the SD records that equal a GT record unique in GT, beyond those in a "
            "fresh sample: notices copies in a table much smaller than GT",
        ),
    ),
    *list_guard(
        "partial_copies_beyond",
        frame_words.PARTIAL_COPIES,
        "guards",
        ("confidential",),
        is_per_confidential_table=True,
        rank=9,
        bound=GuardBound(
            7,
            "The larger of the two figures above, with one copy per person at most, in all columns but one, "
            "in the targets alone, in all but numbers, or in a text or date that identifies people: the "
            "largest of these",
        ),
    ),
    *list_guard(
        "group_copied_beyond",
        Words(
            "people found in one group beyond a fresh sample",
            "This many more people of one group (a level of a category) are found in the synthetic table "
            "than in as many fresh records of that group.",
            POINTS,
            finding="in one group, the share of people repeated is {value} higher than in a fresh sample",
            subject="people repeated in one group",
        ),
        "guards",
        ("columns_apart", "confidential"),
        is_per_confidential_table=True,
        rank=9,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            10,
            "people_copied_beyond within a level of a category that at least smallest_count people have: the "
            "largest of all levels",
        ),
    ),
    *list_guard(
        "nearer",
        _NEARNESS["nearer"],
        "guards",
        ("confidential",),
        is_per_confidential_table=True,
        rank=10,
        bound=GuardBound(
            70,
            "Percent of the GT records that are nearer to an SD record than to any other GT record; 50 for a "
            "fresh sample",
            lowest=50,
        ),
    ),
    *list_guard(
        "much_nearer",
        _NEARNESS["much_nearer"],
        "guards",
        ("confidential",),
        is_per_confidential_table=True,
        rank=10,
        shown_with="nearer",
        bound=GuardBound(
            20,
            "Percentage points of the GT records whose nearest SD record is at most half as far as the "
            "nearest other GT record, minus those the other way round; 0 for a fresh sample",
        ),
    ),
)

GUARD_OF_GUESSES = (
    *list_guard(
        "guessed_beyond",
        _GUESSED_BEYOND,
        "guessed",
        question="learned",
        per_target=True,
        rank=4,
        bound=GuardBound(
            6,
            "Percentage points of the GT records whose target is guessed from their keys in SD, beyond "
            "those guessed from other people's records; of each target",
        ),
    ),
)

GUARDS_OF_COMPARABILITY = (
    *list_guard(
        "relabelled",
        frame_words.RELABELLED,
        "guards",
        role="doubt",
        question="comparable",
        largest=1,
        meaning="the values of this column look renamed",
        by_column="looks_renamed_beyond_chance",
        bound=GuardBound(
            0.15,
            "Share of 1: how much farther than a fresh sample a category may be from GT if matching its "
            "levels by frequency brings it near; or a number or date, beside other columns, if reversing, "
            "shifting or scaling does. Beyond this, a candidate cannot be judged",
            below=1,
        ),
    ),
    *list_guard(
        "repeats",
        _REPEATS["repeats"],
        "guards",
        by_chance=_REPEATS["repeats_by_chance"],
        role="doubt",
        question="comparable",
        meaning="records of the synthetic table are repeated",
        bound=GuardBound(
            20,
            "Percentage points of the SD records that equal another SD record, beyond the most that a fresh "
            "sample shows. Beyond this, a candidate cannot be judged",
        ),
    ),
    *list_guard(
        "missing_beyond",
        Words(
            "missing values beyond those of the confidential table",
            "This many more of the synthetic than of the confidential records have no value in the column "
            "that differs most: the rest of such a record may be true, and the record still equals none.",
            POINTS,
            finding="the share of records that lack a value is {value} higher than in the confidential table",
        ),
        "guards",
        ("columns_apart",),
        role="doubt",
        question="comparable",
        meaning="values of this column are missing that the ground truth has",
        by_column="missing_beyond_chance",
        bound=GuardBound(
            20,
            "Percentage points by which more SD than GT records may lack the value of a column. Beyond this, "
            "a candidate cannot be judged",
        ),
    ),
    Measure(
        "alike",
        Words(
            "people whom the table does not tell apart",
            "This many confidential records equal another person's in every column: nothing can be measured "
            "for these people, because a copy of them cannot be noticed.",
            finding="{value} of the confidential records equal another person's",
        ),
        "guards",
        "alike",
        role="doubt",
        family="guards",
        question="comparable",
        per_target=False,
        shown_with="repeats",
        published="unit",
        meaning="nothing to measure here: the table tells no one apart",
        bound=GuardBound(
            97.5,
            "Percent of the GT records that equal another person's in every column. Beyond this, even a copy "
            "of GT would be within the bound of people_copied_beyond, so a candidate cannot be judged",
            below=101,
        ),
    ),
    Measure(
        "equal_content",
        frame_words.EQUAL_CONTENT,
        "guards",
        "equal_content",
        role="doubt",
        family="guards",
        question="comparable",
        per_target=False,
        largest=1,
        published="unit",
        meaning="equal content to the ground truth: one table holds all records of the other",
        bound=GuardBound(0),
    ),
)

RELEASES = (
    *list_guard(
        f"{PEOPLE_IN_RELEASES}_beyond",
        RELEASED_WORDS[f"{PEOPLE_IN_RELEASES}_beyond"],
        "over_releases",
        by_chance=RELEASED_WORDS[f"{PEOPLE_IN_RELEASES}_by_chance"],
        is_of_release=True,
        rank=8,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            2.5,
            "people_copied_beyond of the candidate and all that the gate has published, as one table",
        ),
    ),
    *list_guard(
        f"{SHARED_WITH_RELEASES}_beyond",
        RELEASED_WORDS[f"{SHARED_WITH_RELEASES}_beyond"],
        "over_releases",
        by_chance=RELEASED_WORDS[f"{SHARED_WITH_RELEASES}_by_chance"],
        is_of_release=True,
        rank=8,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            1,
            "Percentage points of the candidate's records that a published table also holds, beyond those "
            "that a fresh draw shares with it",
        ),
    ),
    *list_columns(
        "over_releases",
        RELEASED_WORDS | words_of_fields(TogetherIdentity),
        unit=" ".join(name for name in RELEASED_WORDS if name != "releases_gone"),
        exact="releases_gone",
    ),
    *list_columns(
        "released_targets",
        words_of_fields(Together),
        family="attribute",
        overrides={
            "DiSCO_any_beyond": bound_strictly("DiSCO_in_releases_beyond", 3) | {"is_of_release": True},
            "DiSCO_any_beyond_chance": {
                "name": "DiSCO_in_releases_beyond",
                "role": "bound",
                "published": "share",
                "rank": 3,
                "is_of_release": True,
            },
        },
    ),
    *list_columns(
        "together",
        words_of_fields(Together),
        family="attribute",
        share="DiSCO_any_beyond",
        overrides={
            "DiSCO_any_beyond": bound_strictly("DiSCO_any_beyond", 3)
            | {"is_of_release": True, "single_file_measure": f"DiSCO_beyond{STRICT_SUFFIX}"},
            "DiSCO_any_beyond_chance": {
                "name": "DiSCO_any_beyond",
                "role": "bound",
                "published": "share",
                "rank": 3,
                "is_of_release": True,
                "single_file_measure": "DiSCO_beyond",
            },
        },
    ),
)

BANDS = (
    *list_columns(
        "bands",
        _BANDS,
        role="bound",
        share="DiS_within DiS_within_others DiS_within_beyond DiSCO_within DiSCO_within_others "
        "DiSCO_within_beyond guessed_within guessed_within_others",
        exact="within",
        unit="DiS_within_beyond_se DiSCO_within_beyond_se guessed_within_beyond guessed_within_beyond_se",
        overrides={
            **leave_unbounded(_BANDS, "guessed_within_beyond", "within"),
            "DiS_within_beyond": bound_strictly("DiS_within_beyond"),
            "DiSCO_within": {"rank": 0},
            "DiSCO_within_beyond": bound_strictly("DiSCO_within_beyond", 2),
        },
    ),
    describe_beyond_chance("DiS_within_beyond", _BANDS["DiS_within_beyond"], "bands", family="bands"),
    describe_beyond_chance(
        "DiSCO_within_beyond", _BANDS["DiSCO_within_beyond"], "bands", family="bands", rank=2
    ),
    *list_guard(
        "guessed_within_beyond",
        _BANDS["guessed_within_beyond"],
        "bands",
        question="learned",
        per_target=True,
        rank=4,
        bound=GuardBound(
            6,
            "Percentage points of the GT records whose amount is guessed to within its band from their keys "
            "in SD, beyond those guessed from other people's records; of each target with a band",
        ),
    ),
    *list_columns(
        "bands",
        _BANDS_WEIGHTED,
        role="bound",
        family="population",
        unit=" ".join(_BANDS_WEIGHTED),
        overrides={name: bound_strictly(name) for name in _BANDS_WEIGHTED if name.endswith(_BEYOND)}
        | leave_unbounded(_BANDS_WEIGHTED),
    ),
    *(
        describe_beyond_chance(name, words, "bands", published="unit", family="population")
        for name, words in _BANDS_WEIGHTED.items()
        if name.endswith(_BEYOND)
    ),
    *list_columns("band_certainty", words_of_fields(BandCertainty)),
)
