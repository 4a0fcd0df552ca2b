"""A disguise is caught from the strength on that strengths.tsv, and docs/security.md by it, say."""

import measured_strengths
import pandas as pd
import pytest
from support.paths import ROOT
from support.sampling import some_of

from disguises import simulated, strengths
from disguises.strengths import CELLS, NEVER, STEPS, find_strength, is_caught


def measured() -> dict[tuple[str, int], str]:
    """What `python -m disguises.strengths` has written."""
    rows = pd.read_csv(strengths.RESULT, sep="\t")
    assert list(rows) == strengths.COLUMNS
    return {(disguise, records): strength for disguise, records, strength in rows.to_numpy().tolist()}


def test_every_strength_is_measured() -> None:
    assert list(measured()) == CELLS


@pytest.mark.parametrize(("disguise", "records"), some_of(CELLS, 8, part_in_ci=2))
def test_a_disguise_is_caught_from_the_measured_strength_on(disguise: str, records: int) -> None:
    """There, and not a step below; if not, `python -m disguises.strengths` measures anew."""
    strength = measured()[disguise, records]
    steps = [*(f"{step} %" for step in STEPS), NEVER]
    place = steps.index(strength)
    caught = [is_caught(disguise, records, step) for step in STEPS[max(place - 1, 0) : place + 1]]
    assert caught == [False, True][-len(caught) :], f"it is caught from {find_strength(disguise, records)} on"


def test_security_shows_what_was_measured() -> None:
    page = measured_strengths.strengths_page()
    for (disguise, _), strength in measured().items():
        assert any(disguise in line and strength in line for line in page.splitlines())
    security = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert "{include} generated/strengths.md" in security
    assert "{include} generated/honest.md" in security
    judged = pd.read_csv(simulated.RESULT, sep="\t")
    assert (
        f"| all | {judged['candidates'].sum():,} | {judged['refused'].sum()} |"
        in measured_strengths.honest_page()
    )
