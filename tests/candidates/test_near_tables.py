"""Tables that are near to a measured one are not measured: nobody asks about single people."""

import json
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import gate_steps, gates
from support.sampling import on_some_days, some_of

from disclosure_pipeline.candidates import evaluation_records
from disclosure_pipeline.candidates.evaluation_records import (
    count_recorded_evaluations,
    list_figure_inputs,
    sketch_candidate,
)
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.measures.chance import bound_chance_of_nearness
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.contract import CanonicalTable
from disclosure_pipeline.tables.dictionary import Column
from disclosure_pipeline.tables.record_hashes import (
    Part,
    RecordSketch,
    bound_difference,
    from_record,
    sketch_parts,
    stack_sketches,
    to_record,
)

pytestmark = [pytest.mark.usefixtures("remembered_results"), on_some_days]

ENGINES = ("memory", "partitioned")
DICTIONARY = {
    "sex": Column(type="category"),
    "age": Column(type="integer"),
    "pay": Column(type="number"),
    "born": Column(type="date"),
}


def folders(root: Path, engine: str = "memory", **changes: object) -> GateFolders:
    gates.ground_truth().to_csv(root / "ground_truth.csv", index=False)
    return gate_steps.folders(root, gates.definition(**changes), engine, "ground_truth.csv")


def altered(table: pd.DataFrame, *records: int) -> pd.DataFrame:
    """The table with another key in some of its records."""
    other = table.copy()
    other.loc[list(records), "age"] = np.where(other.loc[list(records), "age"] == 33, 34, 33)
    return other


def steps(gate: GateFolders, candidate: str) -> dict[str, Any]:
    return gate_steps.steps(gate, candidate, measured_anew=False)


def refusal(gate: GateFolders, candidate: str) -> str:
    outcome = steps(gate, candidate)
    kind, message = outcome["refused"]
    assert kind == "RefusedError" and "differ" in message
    assert set(outcome) == {"ground truth", "refused"}  # no overlap, no figure
    assert not (gate.store.candidate_folder(candidate) / "measured.json").exists()
    return str(message)


# The attack of which the gate knew nothing: chosen persons, one row each


@pytest.mark.parametrize("engine", ENGINES)
def test_eight_files_that_differ_in_one_row(tmp_path: Path, engine: str) -> None:
    gate = folders(tmp_path, engine)
    base = gates.honest()
    gate_steps.deliver(tmp_path, "eight", base, *(altered(base, number) for number in range(7)))
    message = refusal(gate, "eight")
    assert "'synthetic0.csv' and synthetic table 'synthetic1.csv' differ in fewer than 10 records" in message
    assert count_recorded_evaluations(gate.store) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_eight_candidates_in_turn(tmp_path: Path, engine: str) -> None:
    """The first is measured; whatever is near to it is not, however it is written and in whatever order."""
    gate = folders(tmp_path, engine)
    base = gates.honest()
    gate_steps.deliver(tmp_path, "first", base)
    assert "refused" not in steps(gate, "first")
    near = {
        "changed": altered(base, 0),
        "nine": altered(base, *range(9)),
        "shuffled": altered(base, 7).sample(frac=1, random_state=1),
        "removed": base.iloc[1:],
        "added": pd.concat([base, gates.honest(2).iloc[:1]]),
        "columns": altered(base, 9)[["income", "work", "age", "sex"]],
        "exchanged": pd.concat([base.iloc[1:], gates.honest(3).iloc[:1]]),
    }
    for name, table in near.items():
        gate_steps.deliver(tmp_path, name, table, suffix=".parquet")
        assert "'synthetic0.csv' of 'first', which was measured before" in refusal(gate, name)
    assert count_recorded_evaluations(gate.store) == 1
    gate_steps.deliver(tmp_path, "anew", gates.honest(2))
    assert "refused" not in steps(gate, "anew")
    assert count_recorded_evaluations(gate.store) == 2


def test_one_row_that_differs_in_the_sum_of_all_files(tmp_path: Path) -> None:
    """Files that are far from each other, and together the same table but for one row."""
    gate = folders(tmp_path)
    base = pd.concat([gates.honest(1), gates.honest(2)], ignore_index=True)
    other = altered(base, 0).sample(frac=1, random_state=3)
    gate_steps.deliver(tmp_path, "whole", base.iloc[:298], base.iloc[298:])
    gate_steps.deliver(tmp_path, "cut-otherwise", other.iloc[:298], other.iloc[298:])
    gate_steps.deliver(tmp_path, "as-one", altered(base, 5))
    assert "refused" not in steps(gate, "whole")
    for name in ("cut-otherwise", "as-one"):
        assert "all files together of 'whole'" in refusal(gate, name)


def test_a_column_that_no_measure_of_the_keys_reads(tmp_path: Path) -> None:
    """A published column that is neither may change everywhere: a key of one record may not."""
    columns = gates.definition()["columns"] | {"note": {"type": "category", "published": True}}
    gate = folders(tmp_path, columns=columns)
    ground_truth = gates.ground_truth()
    random = np.random.default_rng(5)
    letters = np.array(list("abcdef"))
    ground_truth.assign(note=random.choice(letters, 300)).to_csv(tmp_path / "ground_truth.csv", index=False)
    base = gates.honest()
    gate_steps.deliver(tmp_path, "first", base.assign(note=random.choice(letters, 298)))
    gate_steps.deliver(tmp_path, "second", altered(base, 0).assign(note=random.choice(letters, 298)))
    assert "refused" not in steps(gate, "first")
    assert "of 'first'" in refusal(gate, "second")


def test_the_same_content_is_no_new_question(tmp_path: Path) -> None:
    """Again, under another name, in another order and format, and twice in one candidate."""
    gate = folders(tmp_path)
    base = gates.honest()
    gate_steps.deliver(tmp_path, "first", base)
    gate_steps.deliver(tmp_path, "again", base)
    gate_steps.deliver(tmp_path, "shuffled", base.sample(frac=1, random_state=1), suffix=".parquet")
    gate_steps.deliver(tmp_path, "twice", base, base)
    outcomes = [steps(gate, name) for name in ("first", "first", "again", "shuffled", "twice")]
    assert not [outcome["refused"] for outcome in outcomes if "refused" in outcome]
    assert outcomes[1]["frames"] == outcomes[0]["frames"] == outcomes[2]["frames"]
    assert outcomes[3]["frames"]["attribute"] == outcomes[0]["frames"]["attribute"]


def test_ten_records_are_enough(tmp_path: Path) -> None:
    """As many as the policy says: its own number decides. By this key no two of them share a bucket."""
    base = gates.honest()
    for number, (few, is_refused) in enumerate([(10, False), (11, True)]):
        root = tmp_path / str(number)
        root.mkdir()
        gate = folders(root, policy=gates.definition()["policy"] | {"smallest_count": few})
        gate_steps.deliver(root, "first", base)
        gate_steps.deliver(root, "second", altered(base, *range(10)))
        (gate.store.root / "sketches").mkdir(parents=True)
        (gate.store.root / "sketches" / "sketch_key").write_bytes(bytes(range(32)))
        assert "refused" not in steps(gate, "first")
        assert ("refused" in steps(gate, "second")) == is_refused


def test_another_reading_of_the_same_bytes(tmp_path: Path) -> None:
    """After a change of the data dictionary all candidates may be measured again."""
    base = gates.honest().astype({"sex": object})
    base.loc[0, "sex"] = "female"
    columns = gates.definition()["columns"]
    levels = [{"level": "f", "aliases": ["female"]}, "m"]
    gate = folders(tmp_path, columns=columns | {"sex": {"type": "category", "levels": levels}})
    gate_steps.deliver(tmp_path, "first", base)
    assert "refused" not in steps(gate, "first")
    levels = ["f", {"level": "m", "aliases": ["female"]}]
    gate = folders(tmp_path, columns=columns | {"sex": {"type": "category", "levels": levels}})
    assert "refused" not in steps(gate, "first")


def test_two_near_candidates_at_the_same_moment(tmp_path: Path) -> None:
    """One of them is measured, whichever comes first."""
    gate = folders(tmp_path)
    base = gates.honest()
    names = [f"candidate-{number}" for number in range(4)]
    for number, name in enumerate(names):
        gate_steps.deliver(tmp_path, name, altered(base, number))
    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(lambda name: gate_steps.steps(gate, name), names))
    assert sorted("refused" in outcome for outcome in outcomes) == [False, True, True, True]
    assert count_recorded_evaluations(gate.store) == 1


def test_records_that_cannot_be_read_stop_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_records, "secrets", secrets)  # drawn at random, as outside tests
    gate = folders(tmp_path)
    for number, seed in enumerate((1, 2, 3)):
        gate_steps.deliver(tmp_path, f"candidate-{number}", gates.honest(seed))
    assert "refused" not in steps(gate, "candidate-0")
    [record] = (gate.store.root / "sketches").rglob("*.json")
    whole = record.read_text()
    assert not any(text in whole for text in ("office", "field"))
    content = json.loads(whole)
    for damaged in (
        "{",
        "{}",
        json.dumps(content | {"tables": []}),
        json.dumps(content | {"sketch_key": "another"}),
        json.dumps(content | {"tables": [{"name": "x", "sketches": []}]}),
        whole.replace('"counts": "', '"counts": "A'),
    ):
        record.write_text(damaged)
        kind, message = steps(gate, "candidate-1")["refused"]
        assert kind == "StoreError" and record.name in message
    record.write_text(whole)
    assert "refused" not in steps(gate, "candidate-1")  # by the key that was drawn once
    key = gate.store.root / "sketches" / "sketch_key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32
    key.write_bytes(b"short")
    assert steps(gate, "candidate-2")["refused"][0] == "StoreError"
    key.unlink()  # another one is drawn
    assert steps(gate, "candidate-2")["refused"][0] == "StoreError"


RECORDS = st.lists(
    st.tuples(
        st.sampled_from([*"fm", None]),
        st.sampled_from([20, 30, None]),
        st.sampled_from([0.5, -0.0, 1e9, None]),
        st.sampled_from([pd.Timestamp("2020-02-01"), None]),
    ),
    max_size=30,
)


def sketched(records: Sequence[tuple[object, ...]], secret: bytes = bytes(32)) -> RecordSketch:
    frame = pd.DataFrame(records, columns=list(DICTIONARY), dtype=object)
    typed = frame.assign(
        sex=frame["sex"].astype("category"),
        age=frame["age"].astype("Int64"),
        pay=frame["pay"].astype("Float64").astype(float),
        born=pd.to_datetime(frame["born"]),
    )
    [sketch] = sketch_parts(CanonicalTable(typed, ()), [Part(tuple(DICTIONARY))], DICTIONARY, secret)
    return sketch


def difference(one: Sequence[tuple[object, ...]], other: Sequence[tuple[object, ...]]) -> int:
    """The larger number of records that only one of the tables has, record by record."""
    left, right = list(one), list(other)
    for record in one:
        if record in right:
            left.remove(record)
            right.remove(record)
    return max(len(left), len(right))


@given(RECORDS, RECORDS, st.binary(min_size=32, max_size=32))
def test_the_bound_is_never_above_the_difference(
    one: Sequence[tuple[object, ...]], other: Sequence[tuple[object, ...]], secret: bytes
) -> None:
    bound = bound_difference(sketched(one, secret), sketched(other, secret))
    assert bound <= difference(one, other)
    assert (bound == 0) == (difference(one, other) == 0)
    assert bound == bound_difference(sketched(other, secret), sketched(one, secret))


@given(RECORDS, RECORDS)
def test_stacked_sketches_are_those_of_the_stack(
    one: Sequence[tuple[object, ...]], other: Sequence[tuple[object, ...]]
) -> None:
    stacked = stack_sketches([sketched(one), sketched(other)])
    assert bound_difference(stacked, sketched([*other, *one])) == 0
    assert stacked.records == len(one) + len(other)
    assert bound_difference(from_record(to_record(stacked)), stacked) == 0


@pytest.mark.parametrize("changed", [1, 5, 9, 10, 20, 500, 5_000])
def test_how_exact_the_bound_is(changed: int) -> None:
    """With 100,000 records, of which some are changed: nearly exact where it matters, and never near 0."""
    random = np.random.default_rng(changed)
    one = pd.DataFrame({"age": random.integers(0, 10**9, 100_000)})
    other = one.copy()
    other.loc[: changed - 1, "age"] = -1 - np.arange(changed)
    first, second = (
        sketch_parts(CanonicalTable(frame, ()), [Part(("age",))], DICTIONARY, bytes(32))[0]
        for frame in (one, other)
    )
    bound = bound_difference(first, second)
    assert bound <= changed
    assert bound >= (changed - 1 if changed <= 20 else 200)


NOISE = [(0.1 + 0.2, 0.3), (-0.0, 0.0), (1e9 + 1e-6, 1e9), (7.0, 7 - 1e-12)]
OTHERS = [(0.5, None), (1e9, 1e9 + 1), (2.0**52, 2.0**52 + 1), (0.1, 0.1000001), (1e300, 1e301)]


@pytest.mark.parametrize("pair", [*NOISE, *OTHERS])
def test_other_numbers_make_other_records_and_noise_makes_none(pair: tuple[float, float | None]) -> None:
    sketches = [sketched([("f", 20, pay, None)]) for pay in pair]
    assert bound_difference(*sketches) == (pair in OTHERS)


def test_another_key_gives_another_sketch() -> None:
    records = [("f", 20, 0.5, None)]
    assert bound_difference(sketched(records, b"a" * 32), sketched(records, b"b" * 32)) == 1


# Who changes one column everywhere asks about one person in the figures that do not read it: refused


def other_work(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(work=table["work"].map({"office": "field", "field": "none", "none": "office"}))


def other_age(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(age=np.where(table["age"] < 50, table["age"] + 1, table["age"] - 1))


def income_moved(table: pd.DataFrame) -> pd.DataFrame:
    """Every income by one, which leaves nearly all of them in their group."""
    return table.assign(income=table["income"].where(table["income"] == -8, table["income"] + 1))


def exchange(column: str, one: Any, other: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Give one record the other of two levels."""
    changed = table.copy()
    changed.loc[0, column] = one if changed.loc[0, column] == other else other
    return changed


one_work, one_sex = partial(exchange, "work", "none", "office"), partial(exchange, "sex", "f", "m")
one_income = partial(exchange, "income", 990, 10)  # of other groups


# Changed everywhere, changed in one record, and the part in which both tables are near then.
ATTACKS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "another target": (lambda table: one_income(other_work(table)), "the keys and 'income'"),
    "within the groups": (lambda table: one_work(income_moved(table)), "the keys and 'work'"),
    "a key, of the targets": (lambda table: one_work(other_age(table)), "all columns but 'age'"),
    "all targets, of the keys": (lambda table: one_sex(income_moved(other_work(table))), "the keys"),
    "one target, of the keys": (lambda table: one_sex(other_work(table)), "the keys"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("attack", some_of(list(ATTACKS), part_in_ci=1))
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
    assert "refused" not in steps(gate, "first")
    for candidate in ("second", "both"):
        kind, message = steps(gate, candidate)["refused"]
        assert kind == "RefusedError"
        assert "differ" in message and "in fewer than 10 records" in message
        assert not (gate.store.candidate_folder(candidate) / "measured.json").exists()
    assert f"in {part} in fewer" in steps(gate, "second")["refused"][1]


def test_a_run_measures_no_such_table(home: gates.Home) -> None:
    """Through Dagster: the run is refused, says why, and materialises no figure."""
    base = gates.honest()
    home.prepare({"first": base, "second": one_income(other_work(base))})
    assert home.run_gate("first").success
    second = home.run_gate("second")
    assert not second.success
    assert "differs from" in str(gates.failures(second)) and "smallest_count" in str(gates.failures(second))
    assert not gates.materialized(second) & {"bins", "identity_risk", "attribute_risk", "dossier"}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_broke_the_dictionary_was_not_measured(tmp_path: Path, engine: str) -> None:
    """Corrected in a few records it is a first question; whatever is near to the corrected one is none."""
    columns = gates.definition()["columns"] | {
        "income": {"type": "number", "special_values": [-8], "groups": 5, "decimals": 0}
    }
    gate = folders(tmp_path, engine, columns=columns)
    mended = gates.honest()
    finer, unknown = mended.astype({"income": float}), mended.copy()
    finer.loc[finer.index[finer["income"] > 0][:3], "income"] += 0.25
    unknown.loc[[0], "work"] = "pilot"
    near = altered(unknown, 4)
    broken = {"decimals": finer, "level": unknown, "near": near}
    for number, (name, table) in enumerate(broken.items(), start=1):
        gate_steps.deliver(tmp_path, name, table)
        outcome = steps(gate, name)
        (violation,) = outcome["arrival"][0]
        assert violation.column == ("income" if name == "decimals" else "work")
        assert count_recorded_evaluations(gate.store) == number  # each answer depends on the ground truth
        assert not (gate.store.candidate_folder(name) / "measured.json").exists()
    gate_steps.deliver(tmp_path, "mended", mended)
    corrected = steps(gate, "mended")
    assert corrected["arrival"][0] == () and "dossier" in corrected
    # From now on it is measured: also what breaks the dictionary is only told that it is near.
    for name, table in broken.items():
        gate_steps.deliver(tmp_path, f"{name}-again", table.iloc[::-1])
        assert "of 'mended', which was measured before" in refusal(gate, f"{name}-again")
    gate_steps.deliver(tmp_path, "other", altered(mended, 0))
    assert "of 'mended', which was measured before" in refusal(gate, "other")
    assert count_recorded_evaluations(gate.store) == len(broken) + 1


def with_targets(seed: int) -> pd.DataFrame:
    return gates.honest(1)[["sex", "age"]].join(gates.honest(seed)[["work", "income"]])


FAR: dict[str, list[list[pd.DataFrame]]] = {
    # A level that was wrong in a third of the records; the other targets are as they were.
    "mended in many records": [[gates.honest().replace({"work": {"field": "none"}})], [gates.honest()]],
    # A file that was measured alone, delivered again with others: its groups end elsewhere now.
    "beside new ones": [[*map(gates.honest, seeds)] for seeds in ([1], [1, 2, 3], [3, 1])],
    # If only the targets are synthesised, all tables have the same keys: no record differs in these.
    "the same keys with other targets": [[with_targets(2)], [with_targets(3)]],
}


@pytest.mark.parametrize("what", FAR)
def test_what_is_far_is_measured(tmp_path: Path, what: str) -> None:
    gate = folders(tmp_path)
    for number, tables in enumerate(FAR[what]):
        gate_steps.deliver(tmp_path, f"candidate-{number}", *tables)
        assert "refused" not in steps(gate, f"candidate-{number}")


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
    columns = {name: of | {"published": True} for name, of in gates.definition()["columns"].items()}
    gate = gates.gate(keys=keys, targets=targets, columns=columns)
    assert not near_pairs(gate, tmp_path, [gates.honest(seed) for seed in range(60)])


def test_counts_that_agree_by_chance_are_not_told_from_an_attack(tmp_path: Path) -> None:
    """With two values of the keys, one record of them; with the keys and income together it is seen."""
    gate, base = gates.gate(keys=["sex"]), gates.honest()
    assert near_pairs(gate, tmp_path, [base, one_sex(income_moved(other_work(base)))]) == []
    assert near_pairs(gate, tmp_path, [base, one_sex(other_work(base))]) == ["the keys and 'income'"]


def test_the_parts_of_a_gate() -> None:
    """Each once; and what is predicted as it is, too."""
    gate = gates.gate()
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
    predicted = gates.gate(measures={"prediction": True})
    assert len(list_figure_inputs(predicted)) == len(labels)  # without income these are the same


@pytest.mark.parametrize(
    ("values", "records"), [(2, 2_000), (3, 300), (6, 300), (12, 300), (40, 60), (200, 10)]
)
def test_the_bound_on_chance(values: int, records: int) -> None:
    """Hardly any fresh table is taken for a copy of another, however many are near to it."""
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
