"""The guards, which every gate bounds whatever its keys are; bands, and several tables together."""

from __future__ import annotations

from disclosure_pipeline.evaluation import frame_words
from disclosure_pipeline.evaluation.catalogue_entry import (
    STRICTLY,
    GuardBound,
    Measure,
    bound_all_but_errors,
    describe_beyond_chance,
    list_columns,
    list_guard,
    name_strictly,
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
        "band", "So near to the value, a share of it or an amount, it counts as told.", NONE
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
        of_confidential=True,
        rank=7,
        bound=GuardBound(
            2.5,
            "Percentage points of the GT records that no other one equals and SD holds, over what a "
            "fresh table of SD's size holds",
        ),
    ),
    *list_guard(
        "unique_copies_beyond",
        _COPIES["unique_copies_beyond"],
        "guards",
        _COPIED_FRAMES,
        of_confidential=True,
        rank=8,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            2.5,
            "Percentage points of the SD records that equal a GT record which no other one equals, "
            "over what a fresh sample shows: sees what is copied in a table much smaller than GT",
        ),
    ),
    *list_guard(
        "partial_copies_beyond",
        frame_words.PARTIAL_COPIES,
        "guards",
        ("confidential",),
        of_confidential=True,
        rank=9,
        bound=GuardBound(
            7,
            "The larger of both, of each person one copy, in all columns but one, in the targets alone, in "
            "all but numbers, or in a text or date whose levels name people: the largest of these",
        ),
    ),
    *list_guard(
        "group_copied_beyond",
        Words(
            "people found in one group beyond a fresh sample",
            "This many more people of one group, a level of a category, are found in the synthetic table "
            "than in equally many fresh records of that group.",
            POINTS,
            finding="in one group, the share of people repeated is {value} higher than in a fresh sample",
            subject="people repeated in one group",
        ),
        "guards",
        ("columns_apart", "confidential"),
        of_confidential=True,
        rank=9,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            10,
            "people_copied_beyond within a level of a category that has smallest_count people at least: the "
            "largest of all levels",
        ),
    ),
    *list_guard(
        "nearer",
        _NEARNESS["nearer"],
        "guards",
        ("confidential",),
        of_confidential=True,
        rank=10,
        bound=GuardBound(
            70,
            "Percent of the GT records that are nearer to an SD record than to any other GT record; a fresh "
            "sample is nearer to 50",
            lowest=50,
        ),
    ),
    *list_guard(
        "much_nearer",
        _NEARNESS["much_nearer"],
        "guards",
        ("confidential",),
        of_confidential=True,
        rank=10,
        shown_with="nearer",
        bound=GuardBound(
            20,
            "Percentage points of the GT records that have an SD record at half the distance of the nearest "
            "other GT record or less, over those the other way round; a fresh sample shows 0",
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
            "Percentage points of the GT records whose target is guessed from their keys in SD, over "
            "what is guessed from other people's records; of each target",
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
            "Share of 1: how far a category may be from GT over what a fresh sample shows, if it is "
            "near once its levels are matched by their frequencies; and a number or date beside other "
            "columns, if turning, shifting or scaling brings it near. Beyond, a candidate cannot be judged",
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
        meaning="records of the synthetic table stand twice",
        bound=GuardBound(
            20,
            "Percentage points of the SD records that equal another SD record, over what a fresh sample "
            "shows at most. Beyond, a candidate cannot be judged",
        ),
    ),
    *list_guard(
        "missing_beyond",
        Words(
            "missing values beyond those of the confidential table",
            "This many more of the synthetic records than of the confidential ones have no value in the "
            "column that lacks most: what is left of a record may be all true, and equals none.",
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
            "Percentage points by which more SD records than GT records may lack the value of a "
            "column. Beyond, a candidate cannot be judged",
        ),
    ),
    Measure(
        "alike",
        Words(
            "people whom the table does not tell apart",
            "This many confidential records equal another person's in every column: of these people there is "
            "nothing to measure, as no copy of theirs can be noticed.",
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
            "Percent of the GT records that equal another person's in every column. Beyond, a copy of GT "
            "would keep the bound of people_copied_beyond, and a candidate cannot be judged",
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
        of_release=True,
        rank=8,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            2.5,
            "people_copied_beyond of all that the gate has published and the candidate, as one table",
        ),
    ),
    *list_guard(
        f"{SHARED_WITH_RELEASES}_beyond",
        RELEASED_WORDS[f"{SHARED_WITH_RELEASES}_beyond"],
        "over_releases",
        by_chance=RELEASED_WORDS[f"{SHARED_WITH_RELEASES}_by_chance"],
        of_release=True,
        rank=8,
        shown_with="people_copied_beyond",
        bound=GuardBound(
            1,
            "Percentage points of the candidate's records that a published table holds, too, over what a "
            "fresh draw shares with it",
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
        each={
            "DiSCO_any_beyond": name_strictly("DiSCO_in_releases_beyond", 3) | {"of_release": True},
            "DiSCO_any_beyond_chance": {
                "name": "DiSCO_in_releases_beyond",
                "role": "bound",
                "published": "share",
                "rank": 3,
                "of_release": True,
            },
        },
    ),
    *list_columns(
        "together",
        words_of_fields(Together),
        family="attribute",
        share="DiSCO_any_beyond",
        each={
            "DiSCO_any_beyond": name_strictly("DiSCO_any_beyond", 3)
            | {"of_release": True, "of_one_file": f"DiSCO_beyond{STRICTLY}"},
            "DiSCO_any_beyond_chance": {
                "name": "DiSCO_any_beyond",
                "role": "bound",
                "published": "share",
                "rank": 3,
                "of_release": True,
                "of_one_file": "DiSCO_beyond",
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
        each={
            **bound_all_but_errors(_BANDS, "guessed_within_beyond", "within"),
            "DiS_within_beyond": name_strictly("DiS_within_beyond"),
            "DiSCO_within": {"rank": 0},
            "DiSCO_within_beyond": name_strictly("DiSCO_within_beyond", 2),
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
            "in SD, over what is guessed from other people's records; of each target with a band",
        ),
    ),
    *list_columns(
        "bands",
        _BANDS_WEIGHTED,
        role="bound",
        family="population",
        unit=" ".join(_BANDS_WEIGHTED),
        each={name: name_strictly(name) for name in _BANDS_WEIGHTED if name.endswith(_BEYOND)}
        | bound_all_but_errors(_BANDS_WEIGHTED),
    ),
    *(
        describe_beyond_chance(name, words, "bands", published="unit", family="population")
        for name, words in _BANDS_WEIGHTED.items()
        if name.endswith(_BEYOND)
    ),
    *list_columns("band_certainty", words_of_fields(BandCertainty)),
)
