"""The words for what a clause is about, the names that only a policy has included."""

from __future__ import annotations

from collections.abc import Mapping

from disclosure_pipeline.measures.words import COUNT, POINTS, Words
from disclosure_pipeline.policy.registry import CONTROLS, find_measure

_OTHER_WORDS: Mapping[str, Words] = {
    "DiSCO_beyond_both": Words(
        "DiSCO beyond other people's records and beyond chance",
        "So many more people can be told their target than from other people's records, and than by chance: "
        "the smaller of both.",
        POINTS,
        "",
        finding="{value} more of the people can be told their {column} than from other people's records or "
        "by chance",
    ),
    "one_way_flags": Words(
        "flags of the one-way check",
        "So many values of the target make up most of what is disclosed: it may be what everybody expects.",
        COUNT,
        "",
        "neither",
        finding="{value} values of {column} make up most of what is disclosed",
    ),
    "two_way_flags": Words(
        "flags of the two-way check",
        "So many pairs of a key and a target make up large groups that are disclosed together.",
        COUNT,
        "",
        "neither",
        finding="{value} pairs of a key and {column} make up large groups that are disclosed together",
    ),
    "key_overlap": Words(
        "shared values of a key",
        "The smaller share of records, of either table, whose value occurs in the other one: where it is "
        "low, the tables may be coded differently, and every risk would read too low.",
        denominator="records with a value",
        high_is="safe",
        finding="only {value} of the records share their {column} with the other table",
    ),
    "target_overlap": Words(
        "shared values of a target",
        "The smaller share of records, of either table, whose value occurs in the other one: where it is "
        "low, the tables may be coded differently, and every risk would read too low.",
        denominator="records with a value",
        high_is="safe",
        finding="only {value} of the records share their {column} with the other table",
    ),
}


def words_of(name: str) -> Words:
    """The words for what a clause is about: a measure, guard, control, doubt, check or overlap.

    Example:
        >>> words_of("key_overlap").title
        'shared values of a key'
    """
    if name in _OTHER_WORDS:
        return _OTHER_WORDS[name]
    return (find_measure(name) or CONTROLS[name]).words
