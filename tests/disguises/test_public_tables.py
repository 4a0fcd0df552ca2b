"""Synthesizers over public tables: guards refuse those that copy people, and no others.

Small synthesizers are run and judged now. Of those that need environments of their own, the figures that the
study recorded are held against the guards' defaults of today.
"""

import pandas as pd
import pytest
from support.sampling import on_some_days, some_of
from synthesizers import candidates, findings, public_tables, results
from synthesizers.judging import Judge, finish, take_known_values, write_gate

from disguises.tables import GUARDS

pytestmark = on_some_days

HONEST = ("columns_apart", "copula", "network", "trees_100")
COPYING = ("trees_1", "neighbours")
# Those that others publish: their tables are recorded, not made here.
RECORDED = [name for name, kind in candidates.SYNTHESIZERS.items() if kind.environment != candidates.HERE]

CASES = [(name, synthesizer) for name in public_tables.TABLES for synthesizer in (*HONEST, *COPYING)]


@pytest.mark.parametrize(("name", "synthesizer"), some_of(CASES, 10))
def test_guards_refuse_who_copies(name: str, synthesizer: str) -> None:
    of = public_tables.TABLES[name]
    whole = of.read()
    ground_truth, _ = of.halve(whole, 1)
    known = of.without_unit(ground_truth)
    made = candidates.SYNTHESIZERS[synthesizer].make(known, 1)
    finished = finish(take_known_values(made, known), known)
    verdict = Judge(write_gate(of, whole), ground_truth).decide(finished)
    guards = set(map(findings.find_figure_name, verdict.broken)) & GUARDS
    assert bool(guards) == (synthesizer in COPYING), verdict.broken


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return results.read()


def test_no_table_with_many_copies_passes_the_guards_of_today_and_a_fresh_half_does(
    table: pd.DataFrame,
) -> None:
    copied = table[table["candidate"].isin(["copies_30", "bootstrap", *COPYING])]
    assert set(findings.name_outcomes(copied)) == {findings.BY_GUARDS}
    assert findings.BY_GUARDS not in set(findings.name_outcomes(table[table["candidate"] == "fresh"]))


@pytest.mark.parametrize("synthesizer", RECORDED)
def test_no_recorded_table_of_theirs_holds_more_people_than_a_fresh_one(
    synthesizer: str, table: pd.DataFrame
) -> None:
    made = table[(table["candidate"] == synthesizer) & (table["decision"] != results.FAILED)]
    assert len(made) >= len(candidates.SEEDS)
    assert not findings.is_broken(made, ["people_copied"]).any()
