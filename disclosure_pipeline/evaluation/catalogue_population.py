"""The figures of a survey: risk in the population that its records stand for, and weighted shares."""

from __future__ import annotations

from disclosure_pipeline.evaluation.catalogue_entry import (
    bound_all_but_errors,
    describe_beyond_chance,
    list_columns,
    name_strictly,
)
from disclosure_pipeline.measures.attribute import Attribute
from disclosure_pipeline.measures.baselines import Baselines
from disclosure_pipeline.measures.cap import CAP
from disclosure_pipeline.measures.chance import Chance
from disclosure_pipeline.measures.identity import Identity
from disclosure_pipeline.measures.people import PeopleCopied
from disclosure_pipeline.measures.survey import PopulationDisclosure, PopulationRisk
from disclosure_pipeline.measures.weighted import (
    ENDING,
    OF_COPIES,
    OF_GUESSES,
    OF_KEYS,
    OF_OTHERS,
    OF_TARGETS,
    weigh_words,
)
from disclosure_pipeline.measures.words import words_of_fields

_COPIED = weigh_words(words_of_fields(PeopleCopied), OF_COPIES)
_OF_KEYS = words_of_fields(PopulationRisk) | weigh_words(words_of_fields(Identity), OF_KEYS) | _COPIED
_OF_FIGURES = {
    name: words
    for measures in (Attribute, Chance, CAP, Baselines)
    for name, words in words_of_fields(measures).items()
}
_OF_TARGETS = words_of_fields(PopulationDisclosure)
_OF_TARGETS |= weigh_words(_OF_FIGURES, OF_TARGETS + OF_OTHERS + OF_GUESSES)
_COPIED_BEYOND = f"people_copied_beyond{ENDING}"
_DIFFERENCES = [name for name in _OF_TARGETS if name.endswith(f"_beyond{ENDING}")]


POPULATION = (
    *list_columns(
        "population",
        _OF_KEYS,
        role="bound",
        question="found",
        per_target=False,
        unit=" ".join(_OF_KEYS),
        each={"right_identifications": {"largest": None}}
        | {name: {"question": "copied"} for name in _COPIED}
        | {_COPIED_BEYOND: name_strictly(_COPIED_BEYOND) | {"question": "copied"}}
        | bound_all_but_errors(_OF_KEYS, "people", f"people_copied_expected{ENDING}"),
    ),
    describe_beyond_chance(
        _COPIED_BEYOND,
        _COPIED[_COPIED_BEYOND],
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
        each={name: name_strictly(name) for name in _DIFFERENCES}
        | bound_all_but_errors(_OF_TARGETS, f"guessed_others{ENDING}"),
    ),
    *(
        describe_beyond_chance(
            name, _OF_TARGETS[name], "population_targets", published="unit", family="population"
        )
        for name in _DIFFERENCES
    ),
)
