"""The exposure of a group of GT records.

A group is attacked with all of SD, and compared with all other GT records, not only with those of the group.
"""

from __future__ import annotations

from dataclasses import dataclass

from disclosure_pipeline.measures.entry import show_column
from disclosure_pipeline.measures.words import (
    BEYOND_OTHERS,
    BY_OTHERS,
    BY_SYNTHETIC,
    NONE,
    RAAB,
    RECORDS,
    WILSON,
    described,
    figure,
    interval_end,
    neutral,
    points,
    standard_error_of,
    words_of_fields,
)


@dataclass(frozen=True)
class Subgroup:
    """Percent of the group's `records`; each `beyond` in percentage points. Intervals are of 95 %.

    lift: the group's share of the records that DiSCO counts, divided by its share of GT; 1 is the average.
    NaN if DiSCO counts no record.
    """

    records: int = neutral(
        "people of the group", "Confidential records that belong to the group.", RECORDS, beside="people"
    )
    DiSCO: float = figure(
        "disclosed in the synthetic table and correct",
        "People of the group whose target is disclosed.",
        denominator="group's records",
        source=RAAB,
        beside=BY_SYNTHETIC,
    )
    DiSCO_low: float = interval_end("DiSCO", "lower", denominator="group's records", source=WILSON)
    DiSCO_high: float = interval_end("DiSCO", "upper", denominator="group's records", source=WILSON)
    DiSCO_others: float = neutral(
        "DiSCO by other people's records",
        "People of the group whose target other people's records would disclose.",
        denominator="group's records",
        beside=BY_OTHERS,
    )
    DiSCO_beyond: float = points(
        "DiSCO beyond other people's records",
        "How many more people of the group have their target disclosed than by other people's records.",
        beside=BEYOND_OTHERS,
    )
    DiSCO_beyond_se: float = described(standard_error_of("DiSCO_beyond"))
    guessed_beyond: float = points(
        "guessed beyond other people's records",
        "How many more people of the group have their target guessed correctly than from other people's "
        "records.",
    )
    guessed_beyond_se: float = described(standard_error_of("guessed_beyond"))
    lift: float = figure(
        "lift",
        "How many times as often as the average the group's target is disclosed; 1 is the average.",
        NONE,
        beside="times the average",
    )
    lift_low: float = interval_end("lift", "lower", NONE, source=WILSON)
    lift_high: float = interval_end("lift", "upper", NONE, source=WILSON)


_WORDS = words_of_fields(Subgroup)

FIGURES = (
    show_column("records", "subgroups", _WORDS, "learned", "target", public="unit"),
    show_column("lift", "subgroups", _WORDS, "learned", "target"),
)
