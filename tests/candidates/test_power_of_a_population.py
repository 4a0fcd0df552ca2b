"""What halves of a ground truth tell of a policy, against fresh draws from a known population."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.sampling import only_in_ci

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import power
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.evaluation.power import COPIES, SHARES, GatePower
from disclosure_pipeline.measures.intervals import newcombe
from disclosure_pipeline.tables.canonical_tables import canonical_table

PEOPLE = 600  # of a ground truth
GROUND_TRUTHS, TRIES = 6, 10
POLICY = {"unique_hits_beyond": 3, "DiSCO": {"beyond": 3}}
COLUMNS: dict[str, Any] = {
    "keys": ["sex", "age", "region"],
    "targets": ["health", "work", "income"],
    "groups": {"age": 10, "income": 10},
    "special_values": {"income": [-8]},
}


def draw_anew(people: pd.DataFrame, tries: int) -> GatePower:
    """Measure the same of ground truths and fresh tables, both drawn from the population anew each time."""
    gate = power._write_gate(people, POLICY, **COLUMNS, unit=None)
    records = canonical_table(people, gate.columns, "people", gate.published, only_known=False).frame
    smallest = []
    for number in range(tries):
        drawn = records.sample(PEOPLE, random_state=20_000 + number)
        known, fresh = drawn[: PEOPLE // 2], drawn[PEOPLE // 2 :]
        rng = np.random.default_rng((7, number))
        smallest.append(power._find_smallest(gate, *power._prepare(gate, COPIES, known, fresh, rng)))
    return GatePower(PEOPLE // 2, {COPIES: tuple(smallest)})


@only_in_ci("judges 600 tables")
def test_fresh_draws_and_halves_are_refused_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of several ground truths: in one of its own, copies may be easier to notice than in another."""
    monkeypatch.setattr(power, "KINDS", (COPIES,))
    monkeypatch.setattr(power, "_MOST_TRIES", TRIES)
    people = population(60_000, 5)[[*COLUMNS["keys"], *COLUMNS["targets"]]]
    found = [
        dp.power(people.sample(PEOPLE, random_state=10 + number), POLICY, **COLUMNS, seconds=1e9)
        for number in range(GROUND_TRUTHS)
    ]
    smallest = tuple(share for of_one in found for share in of_one.noticed[COPIES])
    halves = GatePower(PEOPLE // 2, {COPIES: smallest})
    anew = draw_anew(people, GROUND_TRUTHS * TRIES)
    for share in SHARES:
        of_halves, of_fresh = halves.count_refused(COPIES, share), anew.count_refused(COPIES, share)
        low, high = newcombe(of_halves.refused, of_halves.tries, of_fresh.refused, of_fresh.tries, 0.99)
        assert low <= 0 <= high, share
    few, some, many = [anew.count_refused(COPIES, share).percent for share in (3, 7, 15)]
    assert few < 10
    assert 30 < some < 80
    assert many > 95
