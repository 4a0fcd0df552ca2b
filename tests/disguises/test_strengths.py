"""docs/security.md says from which strength on a disguise is caught: what it prints is what a gate finds."""

from __future__ import annotations

import pytest
from support.paths import ROOT
from support.sampling import some_of

from disguises.strengths import DISGUISED, NEVER, RECORDS, STEPS, find_strength, is_caught

CELLS = [(disguise, records) for records in RECORDS for disguise in DISGUISED]
HEADER = "| records | " + " | ".join(DISGUISED) + " |"


def documented() -> dict[tuple[str, int], str]:
    """The table of docs/security.md: (disguise, records) -> the strength from which on it is caught."""
    lines = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    assert HEADER in lines, f"docs/security.md has no table with the header: {HEADER}"
    strengths = {}
    for line in lines[lines.index(HEADER) + 2 :]:
        if not line.startswith("|"):
            break
        records, *of_records = (cell.strip() for cell in line.strip("|").split("|"))
        for disguise, strength in zip(DISGUISED, of_records, strict=True):
            strengths[disguise, int(records.replace(",", ""))] = strength
    return strengths


def test_every_strength_is_documented() -> None:
    assert list(documented()) == CELLS


@pytest.mark.parametrize(("disguise", "records"), some_of(CELLS))
def test_a_disguise_is_caught_from_the_documented_strength_on(disguise: str, records: int) -> None:
    """There, and not a step below; if not, `python -m disguises.strengths` prints the table anew."""
    strength = documented()[disguise, records]
    steps = [*(f"{step} %" for step in STEPS), NEVER]
    place = steps.index(strength)
    caught = [is_caught(disguise, records, step) for step in STEPS[max(place - 1, 0) : place + 1]]
    assert caught == [False, True][-len(caught) :], f"it is caught from {find_strength(disguise, records)} on"
