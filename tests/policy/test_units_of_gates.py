"""A gate whose ground truth has several records of one person: what decides counts people."""

import pandas as pd
import pytest
from pydantic import ValidationError
from support import gates
from support.surveys import TABLES, gate_of, leaked

from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge


def broken(name: str, sd: pd.DataFrame, *, with_unit: bool = True) -> set[str]:
    gate = Gate.model_validate(gate_of(name, with_unit=with_unit))
    make, unit, _, _ = TABLES[name]
    gt = make(1) if with_unit else make(1).drop(columns=unit)
    judgements = judge(gate.clauses(), gates.measured(gate, gt, [sd]))
    return {
        str(judgement.clause.measure)
        for judgement in judgements
        if judgement.outcome != "kept" and not judgement.clause.warns
    }


@pytest.mark.parametrize("name", TABLES)
def test_fresh_people_pass_and_copied_ones_do_not(name: str) -> None:
    make, unit, _, _ = TABLES[name]
    assert broken(name, make(2).drop(columns=unit)) == set()
    assert "people_copied_beyond" in broken(name, leaked(name, 0.1))
    found = broken(name, leaked(name, 0.9))
    assert {"people_copied_beyond", "partial_copies_beyond", "nearer", "guessed_beyond"} <= found


@pytest.mark.parametrize("name", TABLES)
def test_a_near_copy_is_counted_no_more_often_than_it_stands(name: str) -> None:
    """One synthetic record that equals several records of one person is one copy."""
    candidate = leaked(name, 0.9).drop_duplicates()
    result = gates.measured(Gate.model_validate(gate_of(name)), TABLES[name][0](1), [candidate])
    by_records = result.frame("partial_copies")[["unique_copies_beyond", "people_copied_beyond"]]
    assert result.frame("guards")["partial_copies_beyond"].item() <= by_records.to_numpy().max()


def test_without_a_unit_records_that_stand_twice_hide_their_people() -> None:
    assert broken("twice", leaked("twice", 0.3), with_unit=False) == {"alike"}
    assert "people_copied_beyond" in broken("twice", leaked("twice", 0.3))


def test_several_files_are_counted_together() -> None:
    sd = leaked("couples", 0.3)
    gate = Gate.model_validate(gate_of("couples"))
    result = gates.measured(gate, TABLES["couples"][0](1), [sd.iloc[::2], sd.iloc[1::2]])
    assert result.stacked is not None
    assert result.stacked.frame("guards")["people_copied_beyond"].item() > 15
    assert list(result.units.index) == [1, 2]
    assert len(result.stacked.units) == 1


def test_a_unit_is_no_column_of_the_dictionary() -> None:
    columns = gate_of("couples")["columns"] | {"household": {"type": "integer"}}
    with pytest.raises(ValidationError, match="take it out there"):
        Gate.model_validate(gate_of("couples", columns=columns))


def test_a_unit_decides() -> None:
    definitions = (gate_of("couples"), gate_of("couples", unit="person"), gate_of("couples", with_unit=False))
    assert len({Gate.model_validate(definition).policy_digest() for definition in definitions}) == 3
