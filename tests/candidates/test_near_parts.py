"""Who changes one column everywhere asks about one person in the figures that do not read it: refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import gate_steps, gates
from support.sampling import some_of

from disclosure_pipeline.candidates.near_tables import list_figure_inputs, sketch_candidate
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.measures.guard_chance import bound_chance_of_nearness
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.canonical_tables import CanonicalTable

ENGINES = ("memory", "partitioned")


def folders(root: Path, engine: str = "memory", **changes: object) -> GateFolders:
    gates.ground_truth().to_csv(root / "ground_truth.csv", index=False)
    return gate_steps.folders(root, gates.definition(**changes), engine, "ground_truth.csv")


def other_work(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(work=table["work"].map({"office": "field", "field": "none", "none": "office"}))


def other_age(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(age=np.where(table["age"] < 50, table["age"] + 1, table["age"] - 1))


def income_moved(table: pd.DataFrame) -> pd.DataFrame:
    """Every income by one, which leaves nearly all of them in their group."""
    return table.assign(income=table["income"].where(table["income"] == -8, table["income"] + 1))


def one_income(table: pd.DataFrame) -> pd.DataFrame:
    """The income of one record is that of another group."""
    changed = table.copy()
    changed.loc[0, "income"] = 990 if changed.loc[0, "income"] < 500 else 10
    return changed


def one_work(table: pd.DataFrame) -> pd.DataFrame:
    changed = table.copy()
    changed.loc[0, "work"] = "none" if changed.loc[0, "work"] == "office" else "office"
    return changed


def one_sex(table: pd.DataFrame) -> pd.DataFrame:
    changed = table.copy()
    changed.loc[0, "sex"] = "f" if changed.loc[0, "sex"] == "m" else "m"
    return changed


# Changed everywhere, changed in one record, and the part in which both tables are near then.
ATTACKS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "another target": (lambda table: one_income(other_work(table)), "the keys and 'income'"),
    "within the groups": (lambda table: one_work(income_moved(table)), "the keys and 'work'"),
    "a key, of the targets": (lambda table: one_work(other_age(table)), "all columns but 'age'"),
    "all targets, of the keys": (lambda table: one_sex(income_moved(other_work(table))), "the keys"),
    "one target, of the keys": (lambda table: one_sex(other_work(table)), "the keys"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("attack", some_of(list(ATTACKS)))
def test_one_column_changed_everywhere_and_one_record_of_the_others(
    tmp_path: Path, engine: str, attack: str
) -> None:
    """In a second candidate, in whatever order its records are, and in a second file of one candidate."""
    change, part = ATTACKS[attack]
    gate, base = folders(tmp_path, engine), gates.honest()
    second = change(base).sample(frac=1, random_state=1)
    gate_steps.deliver(tmp_path, "first", base)
    gate_steps.deliver(tmp_path, "second", second, suffix=".parquet")
    gate_steps.deliver(tmp_path, "both", second, base)
    assert "refused" not in gate_steps.steps(gate, "first")
    for candidate in ("second", "both"):
        kind, message = gate_steps.steps(gate, candidate)["refused"]
        assert kind == "RefusedError"
        assert "differ" in message and "in fewer than 10 records" in message
        assert not (gate.store.candidate_folder(candidate) / "measured.json").exists()
    assert f"in {part} in fewer" in gate_steps.steps(gate, "second")["refused"][1]


def test_what_the_second_of_two_tables_would_tell(tmp_path: Path) -> None:
    """The figures of a target tell of one person what they are: were both tables measured."""
    gate = folders(tmp_path)
    ground_truth = gates.ground_truth()
    alone = ground_truth[~ground_truth.duplicated(["sex", "age"], keep=False) & (ground_truth["income"] > 0)]
    person = alone.iloc[0]
    base = gates.honest()
    base = base[(base["sex"] != person["sex"]) | (base["age"] != person["age"])].reset_index(drop=True)
    base.loc[0, ["sex", "age"]] = person[["sex", "age"]].to_numpy()
    guesses = {}
    for number, income in enumerate(range(50, 1000, 200)):
        table = base if number % 2 else other_work(base)
        table = table.copy()
        table.loc[0, "income"] = income
        measured = gates.measured(gate.gate, ground_truth, [table])
        guesses[income] = float(measured.attribute["DiSCO"].loc[("income", 1)])
    assert max(guesses, key=lambda income: guesses[income]) == person["income"] // 200 * 200 + 50
    assert len({round(figure, 9) for figure in guesses.values()}) == 2  # the person's own group, and others


def test_a_run_measures_no_such_table(home: gates.Home) -> None:
    """Through Dagster: the run is refused, says why, and materialises no figure."""
    base = gates.honest()
    home.prepare({"first": base, "second": one_income(other_work(base))})
    assert home.run_gate("first").success
    second = home.run_gate("second")
    assert not second.success
    assert "differs from" in str(gates.failures(second)) and "smallest_count" in str(gates.failures(second))
    assert not gates.materialized(second) & {"bins", "identity_risk", "attribute_risk", "dossier"}


def test_a_table_mended_in_many_records(tmp_path: Path) -> None:
    """A level that was wrong in a third of the records; the other targets are as they were."""
    gate, base = folders(tmp_path), gates.honest()
    wrong = base.assign(work=base["work"].replace("field", "none"))
    gate_steps.deliver(tmp_path, "first", wrong)
    gate_steps.deliver(tmp_path, "mended", base)
    outcomes = [gate_steps.steps(gate, name) for name in ("first", "mended")]
    assert not [outcome["refused"] for outcome in outcomes if "refused" in outcome]


def test_a_table_beside_new_ones(tmp_path: Path) -> None:
    """A file that was measured alone, delivered again with others: its groups end elsewhere now."""
    gate = folders(tmp_path)
    gate_steps.deliver(tmp_path, "first", gates.honest(1))
    gate_steps.deliver(tmp_path, "three", *(gates.honest(seed) for seed in (1, 2, 3)))
    gate_steps.deliver(tmp_path, "two", *(gates.honest(seed) for seed in (3, 1)))
    outcomes = [gate_steps.steps(gate, name) for name in ("first", "three", "two")]
    assert not [outcome["refused"] for outcome in outcomes if "refused" in outcome]


def test_the_same_keys_with_other_targets(tmp_path: Path) -> None:
    """Who synthesises the targets alone keeps the keys in every table: in these they differ in no record."""
    gate = folders(tmp_path)
    for name, seed in (("first", 2), ("second", 3)):
        targets = gates.honest(seed)[["work", "income"]]
        gate_steps.deliver(tmp_path, name, gates.honest(1)[["sex", "age"]].join(targets))
    outcomes = [gate_steps.steps(gate, name) for name in ("first", "second")]
    assert not [outcome["refused"] for outcome in outcomes if "refused" in outcome]


def near_pairs(gate: Gate, root: Path, tables: list[pd.DataFrame]) -> list[str]:
    inputs, store = list_figure_inputs(gate), Store(root / "store")
    named = {str(number): CanonicalTable(table, ()) for number, table in enumerate(tables)}
    sketched = sketch_candidate(store, gate, named)[: len(tables)]
    pairs = [(one, other) for number, one in enumerate(sketched) for other in sketched[:number]]
    parts = [one.find_near_part(other, inputs, 10) for one, other in pairs]
    return [part for part in parts if part is not None]


@pytest.mark.parametrize("keys", [["sex"], ["work"], ["sex", "age"]])
def test_new_syntheses_of_the_same_model_are_far(tmp_path: Path, keys: list[str]) -> None:
    """Also where the keys have so few values that counts agree by chance."""
    targets = [name for name in ("work", "income") if name not in keys]
    gate = Gate.model_validate(gates.definition(keys=keys, targets=targets))
    columns = gates.definition()["columns"]
    gate = gate.model_copy(
        update={
            "columns": {name: gate.columns[name].model_copy(update={"published": True}) for name in columns}
        }
    )
    assert not near_pairs(gate, tmp_path, [gates.honest(seed) for seed in range(60)])


def test_counts_that_agree_by_chance_are_not_told_from_an_attack(tmp_path: Path) -> None:
    """With two values of the keys, one record of them; with the keys and income together it is seen."""
    gate, base = Gate.model_validate(gates.definition(keys=["sex"])), gates.honest()
    assert near_pairs(gate, tmp_path, [base, one_sex(income_moved(other_work(base)))]) == []
    assert near_pairs(gate, tmp_path, [base, one_sex(other_work(base))]) == ["the keys and 'income'"]


def test_the_parts_of_a_gate() -> None:
    """Each once; and what is predicted as it is, too."""
    gate = Gate.model_validate(gates.definition())
    labels = [figure_input.label for figure_input in list_figure_inputs(gate)]
    assert labels == [
        "all columns",
        "the keys",
        "the keys and 'work'",
        "the keys and 'income'",
        *(f"all columns but {name!r}" for name in ("sex", "age", "work")),  # the keys and 'work' stand above
        "the targets",
        "all columns but numbers",
    ]
    assert [figure_input.part.in_groups for figure_input in list_figure_inputs(gate)].count(True) == 1
    predicted = Gate.model_validate(gates.definition(measures={"prediction": True}))
    assert len(list_figure_inputs(predicted)) == len(labels)  # without income these are the same


@pytest.mark.parametrize(
    ("values", "records"), [(2, 2_000), (3, 300), (6, 300), (12, 300), (40, 60), (200, 10)]
)
def test_the_bound_on_chance(values: int, records: int) -> None:
    """Of tables drawn anew hardly one is held to be made of another, however many are near to it."""
    random = np.random.default_rng(values)
    shares = random.dirichlet(np.ones(values))
    pairs = [random.multinomial(records, shares, 2) for _ in range(500)]
    differences = [int(np.abs(one - other).sum()) // 2 for one, other in pairs]
    probabilities = [
        bound_chance_of_nearness(one, difference)
        for (one, _), difference in zip(pairs, differences, strict=True)
    ]
    assert min(probabilities) > 1e-4
    assert bound_chance_of_nearness(np.full(30, 10), 1) < 1e-10
    assert bound_chance_of_nearness(np.array([500]), 0) == 1
