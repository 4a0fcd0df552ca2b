"""Edges of groups that are found in the tables are shown rounded wherever a gate shows them."""

from itertools import pairwise, product
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import gate_steps, gates
from support.sampling import on_some_days, some_of

from disclosure_pipeline.candidates.evaluation import file_dossier, load_group_levels
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.grouping import Grouping, label_groups, round_edges
from disclosure_pipeline.tables.levels import CodedColumn, level_label

FINITE = st.floats(-1e12, 1e12, allow_nan=False).map(lambda edge: edge + 0.0)


def column(*tables: list[float]) -> CodedColumn:
    return code_column("x", [pd.Series(table) for table in tables], ("the ground truth", "the table"))


@given(st.lists(FINITE, min_size=1, max_size=8, unique=True).map(sorted))
def test_two_digits_and_no_label_twice(edges: list[float]) -> None:
    shown = round_edges(edges)
    assert len(set(label_groups(shown))) == len(shown) + 1
    for edge, text in zip(edges, shown, strict=True):
        number = float(text.removeprefix("~").split(" ")[0])
        assert text.startswith("~") and number == float(f"{number:.1e}")
        assert abs(number - edge) <= 0.05 * abs(edge) * (1 + 1e-9)


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=5, max_size=40),
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=5, max_size=40),
    st.sampled_from(["pooled", "ground_truth", "equal_width"]),
)
def test_the_groups_are_the_same_ones(in_GT: list[float], in_SD: list[float], rule: str) -> None:
    """Only their names differ: every record stays in its group."""
    exact, hidden = (
        Grouping({"x": 4}, {}, rule, hides_edges=hides).apply(column(in_GT, in_SD))  # type: ignore[arg-type]
        for hides in (False, True)
    )
    assert [codes.tolist() for codes in exact.codes] == [codes.tolist() for codes in hidden.codes]
    assert len(set(hidden.levels)) == len(hidden.levels) == len(exact.levels)


def test_edges_that_were_given_and_special_values_stay() -> None:
    grouping = Grouping({}, {"x": (-8,)}, {"x": [0, 1234, 5000]}, hides_edges=True)
    shown = grouping.apply(column([-8.0, 1.0, 4000.0], [2.0, 3.0]))
    assert list(shown.levels) == ["(-inf, 1234)", "[1234, inf)", "-8"]


@pytest.mark.parametrize(
    ("edges", "shown"),
    [
        ([0.0], ["~0"]),
        ([-0.0001234, 0.0], ["~-0.00012", "~0"]),
        ([995.0, 996.0, 1004.9], ["~1000 (1)", "~1000 (2)", "~1000 (3)"]),
        ([37.0, 64.5], ["~37", "~64"]),
        ([12345678.0], ["~12000000"]),
    ],
)
def test_edges_as_they_are_shown(edges: list[float], shown: list[str]) -> None:
    assert round_edges(edges) == shown


@on_some_days
@pytest.mark.parametrize(
    ("engine", "rule"),
    some_of(product(["memory", "partitioned"], ["pooled", "ground_truth", "equal_width"]), 3, part_in_ci=1),
)
def test_a_gate_shows_no_edge_as_it_is(tmp_path: Path, engine: str, rule: str) -> None:
    """In no file of the store, be it for the custodian: an edge is a value of a record, or next to one."""
    ground_truth = gates.ground_truth()
    ground_truth.to_csv(tmp_path / "ground_truth.csv", index=False)
    definition = gates.definition(edges=rule, policy=gates.definition()["policy"] | {"smallest_count": 1})
    gate = gate_steps.folders(tmp_path, definition, engine, "ground_truth.csv")
    gate_steps.deliver(tmp_path, "candidate", ground_truth)  # so that there are flags that name groups
    assert "refused" not in gate_steps.steps(gate, "candidate", measured_anew=False)
    file_dossier(gate, "candidate")

    exact = Gate.model_validate(definition).grouping
    income = code_column("income", [ground_truth["income"]] * 2, ("the ground truth", "the table"))
    edges = [level_label(edge) for edge in exact.find_edges(income)]
    assert len(edges) == 4
    message = [f"{low}, {high}" for low, high in pairwise(["-inf", *edges, "inf"])]
    for path in gate.store.root.rglob("*"):
        if path.is_file() and "objects" not in path.parts:
            content = path.read_bytes().decode(errors="replace")
            assert not [label for label in message if label in content], path.name
    groups = load_group_levels(gate, "candidate")
    shown = set(groups["level"][groups["column"] == "income"]) - {"-8"}
    assert shown and shown <= set(label_groups(round_edges(map(float, edges))))
    dossier = (gate.store.candidate_folder("candidate") / "dossier.md").read_text()
    assert "| income" in dossier
