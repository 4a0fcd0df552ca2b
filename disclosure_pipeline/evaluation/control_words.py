"""The words for the figures of the controls."""

from __future__ import annotations

from disclosure_pipeline.measures.words import POINTS, Words

_LOOKED_AT = "confidential records of the sample"

CONTROL_IDENTITY: dict[str, Words] = {
    "copy_UiO": Words(
        "control: unique in the confidential table",
        "Counted apart: so many of the sampled people are the only ones with their keys.",
        denominator=_LOOKED_AT,
        high_is="neither",
    ),
    "copy_repU": Words(
        "control: replicated uniques of a copy",
        "Of an exact copy the engine must find all people who are the only ones with their keys.",
        denominator=_LOOKED_AT,
        high_is="safe",
        finding="the engine finds only {value} of the people in an exact copy: its figures cannot be trusted",
    ),
}

CONTROL_ATTRIBUTE: dict[str, Words] = {
    "copy_Dorig": Words(
        "control: disclosive in the confidential table",
        "Counted apart: the confidential table itself gives away so many of the sampled people.",
        denominator=_LOOKED_AT,
        high_is="neither",
    ),
    "copy_DiSCO": Words(
        "control: DiSCO of a copy",
        "Of an exact copy the engine must find all people whom the confidential table gives away.",
        denominator=_LOOKED_AT,
        high_is="safe",
        finding="the engine finds only {value} of the people in an exact copy: its figures cannot be trusted",
    ),
    "copy_difference": Words(
        "control: largest difference",
        "The most that a figure of the copy differs from what is counted apart; it must be 0.",
        POINTS,
        "",
        finding="a figure of an exact copy is off by {value}: the engine's figures cannot be trusted",
    ),
    "permuted_DCAP": Words(
        "control: DCAP of a shuffled target",
        "How often a guess is right once the synthetic target is shuffled, as the engine finds.",
        denominator=_LOOKED_AT,
        high_is="neither",
    ),
    "permuted_DCAP_expected": Words(
        "control: DCAP of a shuffled target, expected",
        "How often a guess is right once the synthetic target is shuffled, as counted apart.",
        denominator=_LOOKED_AT,
        high_is="neither",
    ),
    "permuted_deviation": Words(
        "control: deviation of a shuffled target",
        "How far the engine is from what chance gives where the keys tell nothing.",
        "standard errors",
        "",
        finding="the engine is {value} off what chance gives: its figures cannot be trusted",
    ),
    "half_DiSCO_beyond": Words(
        "control: DiSCO_beyond of one half",
        "What one half of the confidential table tells of the other beyond other people's records.",
        POINTS,
        "",
        "neither",
    ),
    "half_deviation": Words(
        "control: deviation of one half",
        "How far one half of the confidential table, a fresh sample, seems to tell more than others do.",
        "standard errors",
        "",
        finding="a fresh sample seems to tell {value} more than others do: the figures cannot be trusted",
    ),
}
