"""The controls of a run: kept by a sound engine on any table, missed by one that can no longer see a leak."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import gates
from support.sampling import examples, on_some_days

import disclosure_pipeline as dp
from disclosure_pipeline.candidates.measuring import measure_without_guards
from disclosure_pipeline.counting.cells import CellParts, Counted, Part
from disclosure_pipeline.counting.counts import CountRequest, sample_positions
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.evaluation.controls import controls
from disclosure_pipeline.evaluation.long_table import LARGEST_DEVIATION
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.cap import CAP, cap_measures
from disclosure_pipeline.measures.chance import permuted_DCAP, standard_errors
from disclosure_pipeline.measures.exact import Grouped, IntArray
from disclosure_pipeline.measures.frequency import Rows, combine_keys, frequency_tables
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import decide, judge
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn

pytestmark = on_some_days

SHIPPED = Path(dp.__file__).parent / "defs" / "survey" / "defs.yaml"


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.model_validate(yaml.safe_load(SHIPPED.read_text())["attributes"])


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    ground_truth = population(2000)
    return ground_truth, synthesise(ground_truth)


@pytest.fixture(scope="module")
def of_sound_engine(gate: Gate, tables: tuple[pd.DataFrame, pd.DataFrame]) -> Disclosure:
    return gates.measured(gate, tables[0], [tables[1]])


def verdict(gate: Gate, result: Disclosure) -> tuple[str, set[str]]:
    """Return the decision, and the figures of controls by which the engine is not believed."""
    judgements = judge(gate.clauses(), result)
    [of_controls] = [judgement for judgement in judgements if judgement.clause.control]
    of_identity, of_attribute = result.frame("control_identity"), result.frame("control_attribute")
    missed = {
        "copy_repU": (of_identity["copy_repU"] != of_identity["copy_UiO"]).any(),
        "copy_DiSCO": (of_attribute["copy_DiSCO"] != of_attribute["copy_Dorig"]).any(),
        "copy_difference": (of_attribute["copy_difference"] != 0).any(),
        "permuted_deviation": not (of_attribute["permuted_deviation"] <= LARGEST_DEVIATION).all(),
        "half_deviation": not (of_attribute["half_deviation"] <= LARGEST_DEVIATION).all(),
    }
    assert (of_controls.outcome == "kept") == (not any(missed.values()))
    assert of_controls.outcome in {"kept", "undetermined"}
    return decide(judgements), {name for name, is_missed in missed.items() if is_missed}


@examples(20)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from([1, 2, 5, 20]),
    st.sampled_from([1, 2, 6]),
    st.floats(0.5, 0.999),
)
def test_a_sound_engine_keeps_the_controls_on_any_table(
    seed: int, N_d: int, N_s: int, key_levels: int, target_levels: int, common: float
) -> None:
    rng = np.random.default_rng(seed)

    def random_table(records: int) -> pd.DataFrame:
        rare = rng.integers(0, target_levels, records)
        return pd.DataFrame(
            {
                "k": rng.integers(0, key_levels, records),
                "l": rng.integers(0, 3, records),
                "t": np.where(rng.random(records) < common, 0, rare),
            }
        )

    of_identity, of_attribute = controls(
        [random_table(N_d), random_table(N_s)], ["k", "l"], ["t"], Grouping({}, {}, "pooled"), seed=seed
    )
    assert (of_identity["copy_repU"] == of_identity["copy_UiO"]).all()
    assert (of_attribute["copy_DiSCO"] == of_attribute["copy_Dorig"]).all()
    assert (of_attribute["copy_difference"] == 0).all()
    for deviation in ("permuted_deviation", "half_deviation"):
        assert (of_attribute[deviation] <= LARGEST_DEVIATION).all()


def test_the_copy_shows_the_figures_of_gt_itself(
    gate: Gate, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    result = gates.measured(gate, tables[0], [tables[1], tables[1]])
    of_itself = measure_without_guards(gate, FramesInMemory((tables[0], tables[0]), "memory"))
    assert result.frame("control_identity")["copy_UiO"].tolist() == [of_itself.identity["UiO"].iloc[0]] * 2
    assert result.frame("control_attribute").index.equals(result.attribute.index)
    actual = result.frame("control_attribute").reset_index()
    health = actual[(actual["target"] == "health") & (actual["synthesis"] == 2)].iloc[0]
    own = of_itself.attribute["DiSCO"].xs("health", level="target").iloc[0]
    assert health["copy_DiSCO"] == own > 0
    assert health["permuted_DCAP"] == pytest.approx(health["permuted_DCAP_expected"], abs=3)


def test_large_tables_are_sampled_with_a_seed(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    of_GT, of_SD = sample_positions([2000, 300], 300, seed=1)
    assert of_GT is not None and len(np.unique(of_GT)) == 300 and (np.diff(of_GT) > 0).all()
    assert of_SD is None
    opened = FramesInMemory(tables, "memory")
    first, again, other = (
        controls(opened.sample(300, seed), ["sex", "age"], ["health"], Grouping({}, {}, "pooled"))[1]
        for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(first, again)
    assert first["copy_Dorig"].iloc[0] != other["copy_Dorig"].iloc[0]
    in_parts = controls(
        opened.sample(300, 1), ["sex", "age"], ["health"], Grouping({}, {}, "pooled"), "partitioned"
    )[1]
    pd.testing.assert_frame_equal(first, in_parts)


# Engines that are broken


class AnswersNothing(FramesInMemory):
    """No record is unique, none is disclosed, none is found."""

    def find_cells(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> CellParts:
        def count(part: Part) -> Iterator[tuple[int, Counted]]:
            for number, cells in part():
                counts = [(place, without_figures(of)) for place, of in cells.count(requests[number])]
                yield number, Counted(counts)

        for some in super().find_cells(requests, on_progress):
            yield replace(some, parts=[partial(count, part) for part in some.parts])


def without_figures(counts: Any) -> Any:
    """The same counts with 0 in place of every number of records, however deep it lies."""
    if isinstance(counts, Grouped):
        return Grouped(counts.groups, 0 * counts.sums)
    if isinstance(counts, (tuple, list)):
        return type(counts)(without_figures(part) for part in counts)
    if is_dataclass(counts) and not isinstance(counts, type):
        values = {field.name: without_figures(getattr(counts, field.name)) for field in fields(counts)}
        return replace(counts, **values)
    return 0 if isinstance(counts, int) else counts


class DropsAKey(FramesInMemory):
    """To it, all records have the same level of the last of several keys."""

    def leaves_out_each(self, _: CountRequest) -> bool:
        return False

    def find_cells(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> CellParts:
        return super().find_cells([self._drop_key(request) for request in requests], on_progress)

    def _drop_key(self, request: CountRequest) -> CountRequest:
        *others, last = request.keys
        if not others:
            return request
        tables = [replace(table, position=np.zeros_like(table.position)) for table in last.tables]
        return replace(request, keys=[*others, replace(last, tables=tuple(tables))])


class ShiftsAColumn(FramesInMemory):
    """One column of every table stands a row lower than it should: a key."""

    position = 0

    def code(
        self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
    ) -> list[CodedColumn]:
        name = columns[self.position]
        shifted = tuple(
            frame.assign(**{name: frame[name].array.take(np.roll(np.arange(len(frame)), 1))})
            for frame in self.frames
        )
        return FramesInMemory(shifted, "memory").code(columns, grouping, on_progress)


class ShiftsATarget(ShiftsAColumn):
    """One column of every table stands a row lower than it should: a target."""

    position = -1


def bounding(gate: Gate, largest: float) -> Gate:
    return gate.model_validate(gate.model_dump() | {"policy": {"repU": largest, "DiSCO": largest}})


def test_an_engine_that_is_sound_is_believed(gate: Gate, of_sound_engine: Disclosure) -> None:
    assert verdict(bounding(gate, 100), of_sound_engine) == ("approved", set())


@pytest.mark.parametrize(
    ("broken", "missed"),
    [
        (AnswersNothing, {"copy_repU", "copy_DiSCO", "copy_difference", "permuted_deviation"}),
        (DropsAKey, {"copy_repU", "copy_DiSCO", "copy_difference"}),
        (ShiftsAColumn, {"copy_difference"}),
        (ShiftsATarget, {"copy_difference"}),
    ],
)
def test_an_engine_that_is_broken_determines_nothing(
    gate: Gate,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    monkeypatch: pytest.MonkeyPatch,
    broken: type[FramesInMemory],
    missed: set[str],
) -> None:
    monkeypatch.setattr("disclosure_pipeline.counting.memory.engine.FramesInMemory", broken)
    result = gates.measured(gate, tables[0], [tables[1]])
    decision, controls_missed = verdict(bounding(gate, 100), result)
    assert decision == "undetermined"
    assert missed <= controls_missed
    assert verdict(bounding(gate, 0), result)[0] == "undetermined"


def test_baselines_that_are_wrong_are_missed_by_the_halves(
    gate: Gate, tables: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting a person's own record as another's would attribute every disclosure to other people."""

    def of_nobody(rows: Rows, *_: Any) -> IntArray:
        return np.zeros_like(rows.cell)

    monkeypatch.setattr("disclosure_pipeline.measures.frequency.Rows.count_own", of_nobody)
    _, controls_missed = verdict(gate, gates.measured(gate, tables[0], [tables[1]]))
    assert "half_deviation" in controls_missed


def test_a_permuted_target_that_tells_too_much_or_too_little_is_missed(
    tables: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth more than there is, or less, is far from what permutations give."""
    for factor in (0.9, 1.1):

        def measure(*counts: Any, factor: float = factor) -> CAP:
            actual = cap_measures(*counts)
            return replace(actual, DCAP=factor * actual.DCAP)

        monkeypatch.setattr("disclosure_pipeline.evaluation.figures.cap_measures", measure)
        actual = controls(tables, ["sex", "region"], ["health"], Grouping({}, {}, "pooled"))[1]
        assert (actual["permuted_deviation"] > LARGEST_DEVIATION).all()


# How far is far


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=6), st.data())
def test_mean_and_variance_are_those_of_all_permutations(
    synthetic: list[tuple[int, int]], data: st.DataObject
) -> None:
    original = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=8))

    def DCAP(levels: Sequence[int]) -> Fraction:  # noqa: N802 (a name of the field), in GT records
        cells = Counter(zip((q for q, _ in synthetic), levels, strict=True))
        keys = Counter(q for q, _ in synthetic)
        return sum((Fraction(cells[q, t], keys[q]) for q, t in original if keys[q]), Fraction(0))

    every = [DCAP(levels) for levels in permutations([t for _, t in synthetic])]
    mean = sum(every) / len(every)
    variance = sum((figure - mean) ** 2 for figure in every) / len(every)
    q, t = ([np.array([record[i] for record in table]) for table in (original, synthetic)] for i in (0, 1))
    keys = combine_keys([q], [3])
    [f] = frequency_tables(keys, t, 3)
    actual = permuted_DCAP(f)
    assert actual.mean == pytest.approx(float(mean), abs=1e-9)
    assert actual.variance == pytest.approx(float(variance), abs=1e-9)


def test_standard_errors() -> None:
    assert standard_errors(0.0, 0.0, 1.0) == 0
    assert standard_errors(2.0, 0.0, 1.0) == math.inf
    assert standard_errors(-3.0, 4.0, 0.0) == 1.5
    z = standard_errors(10.0, 4.0, 3.0)
    assert 2 * z + z * z == pytest.approx(10)  # difference = z error + z² largest / 3


def test_disclosure_where_no_permutation_changes_anything_is_infinitely_far(
    gate: Gate, of_sound_engine: Disclosure
) -> None:
    """Nor is a deviation that is not there a control that is kept."""
    clauses = [clause for clause in gate.clauses() if clause.control]
    [kept] = judge(clauses, of_sound_engine)
    assert (kept.outcome, kept.value) == ("kept", 0)
    for deviation in (math.inf, math.nan):
        frame = of_sound_engine.control_attribute.assign(permuted_deviation=deviation)
        [missed] = judge(clauses, replace(of_sound_engine, control_attribute=frame))
        assert missed.outcome == "undetermined"
