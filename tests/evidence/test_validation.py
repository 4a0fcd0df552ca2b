"""The policy as expectation suites: the same verdict by another path, and nothing leaves the process."""

import gc
import json
import math
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support import gates
from support.paths import ROOT
from support.processes import Finished, run_program
from support.sampling import examples, only_in_ci

import disclosure_pipeline as dp
from disclosure_pipeline.errors import UndeterminedError
from disclosure_pipeline.evidence import validation
from disclosure_pipeline.evidence.dossier import FRAMES, build_dossier, collect_figures
from disclosure_pipeline.evidence.validation import (
    ALL_FILES,
    FILE,
    Validation,
    build_metric_tables,
    find_disagreements,
    validate,
)
from disclosure_pipeline.policy import verdict
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, judge
from disclosure_pipeline.runtime.worker_process import WorkerProcess

# Every family of measures that the suite bounds, and flags that are raised.
POLICY = {
    "repU": {"at_most": 8, "at_most_share": 0.6},
    "DiSCO": {
        "at_most": 12,
        "beyond": 3,
        "targets": {"income": {"at_most": 10, "at_most_share": 0.9, "beyond": 0.5}},
        "over": "mean",
        "worst": 100,
    },
    "DiSCO_excess": 5,
    "unique_hits_beyond": 4,
    "guessed_others": 60,
    "DCAP": 50,
    "repU_after_exclusions": 8,
    "cap__cap_protection": {"at_least": 0.1},
}
THREE = [gates.honest(1), gates.ground_truth(), gates.honest(3)]


def measured(syntheses: list[pd.DataFrame], **changes: Any) -> tuple[Gate, dp.Disclosure]:
    """A gate, and the figures of three syntheses."""
    attributes = gates.definition(
        policy=POLICY,
        measures={"protection": True},
        one_way=[0, 0],
        two_way=[0, 0],
        exclusions={"count_over": 1000},  # takes nothing, but is bounded
    )
    gate = Gate.model_validate(attributes | changes)
    return gate, gates.measured(gate, gates.ground_truth(), syntheses)


@pytest.fixture(scope="module")
def three() -> tuple[Gate, dp.Disclosure]:
    return measured(THREE)


def stored(result: dp.Disclosure) -> dict[str, Any]:
    actual: dict[str, Any] = json.loads(json.dumps(collect_figures(result, 10), allow_nan=False))
    return actual


def kept(judgements: tuple[Judgement, ...]) -> dict[str, bool]:
    return {judgement.clause.name: judgement.outcome == "kept" for judgement in judgements}


def clauses_of(judgements: tuple[Judgement, ...]) -> list[dict[str, Any]]:
    return [{"name": judgement.clause.name, "outcome": judgement.outcome} for judgement in judgements]


@pytest.mark.parametrize("syntheses", [THREE, THREE[:1], THREE[1:2]], ids=["three", "honest", "copy"])
def test_suite_and_policy_agree(syntheses: list[pd.DataFrame]) -> None:
    gate, result = measured(syntheses)
    judgements = judge(gate.clauses(), result)
    actual = validate(gate.clauses(), stored(result))
    assert actual.kept == kept(judgements)
    assert find_disagreements(actual.kept, clauses_of(judgements)) == []
    assert {True, False} == set(actual.kept.values())


@pytest.mark.parametrize("at_fault", ["policy", "suite"])
def test_a_fault_of_one_is_told_by_the_other(at_fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each compares by itself: whichever finds everything kept, the other does not."""
    gate, result = measured(THREE[1:2])
    if at_fault == "policy":
        held = verdict.judge_figures

        def keep(*arguments: Any) -> Judgement:
            return replace(held(*arguments), outcome="kept")

        monkeypatch.setattr(verdict, "judge_figures", keep)
    else:
        from disclosure_pipeline.evidence import expectations

        def succeed(*_: Any) -> dict[str, Any]:
            return {"success": True, "result": {"observed_value": 0.0, "bound": 0.0}}

        monkeypatch.setattr(expectations.ClauseExpectation, "_compare", succeed)
    actual = validate(gate.clauses(), stored(result))
    disagreeing = find_disagreements(actual.kept, clauses_of(judge(gate.clauses(), result)))
    assert {"repU", "people_copied_beyond"} <= set(disagreeing)


FIGURES = (math.nan, math.inf, -math.inf, 0.0, 8.0, math.nextafter(8, 9), 55.5, 100.0)
SHARES = {"repU": "UiO", "DiSCO": "Dorig", "copy_repU": "copy_UiO", "copy_DiSCO": "copy_Dorig"}
FLAGS = ("one_way", "two_way")

# What can be wrong with a frame: a figure is another one, or a row or a column is gone.
DAMAGE = st.tuples(
    st.sampled_from(FRAMES),
    st.sampled_from(["figure", "figure", "row", "column"]),
    st.integers(0, 99),
    st.integers(0, 99),
    st.sampled_from(FIGURES) | st.floats(-10, 110),
)


def damaged(frame: pd.DataFrame, what: str, row: int, column: int, figure: float) -> pd.DataFrame:
    """A frame of figures with a damage; none where there is nothing to damage."""
    numbers = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])]
    if not len(frame) or not numbers:
        return frame
    if what == "row":
        return frame.drop(index=frame.index[row % len(frame)])
    name = numbers[column % len(numbers)]
    if what == "column":
        return frame.drop(columns=name)
    figures = frame[name].astype(float)
    figures.iloc[row % len(frame)] = figure
    return frame.assign(**{name: figures})


def other(clause: Clause, random: Random) -> Clause:
    """A clause on the same measure, most likely with other bounds."""
    return replace(
        clause,
        bound=random.choice([clause.bound, 0.0, 0.5, 1.0, 8.0, math.inf, random.uniform(0, 100)]),
        over=random.choice(["worst", "mean"]),
        at_least=random.choice([clause.at_least, True, False]),
        share_of=random.choice([clause.share_of, None, SHARES.get(clause.figure)]),
        warns=random.choice([True, False]),
        control=random.choice([True, False]),
    )


# An example takes 0.2 s, whatever is validated, so many clauses share one; to shrink one takes long.
@settings(examples(4, 40), phases=set(Phase) - {Phase.shrink})
@given(damages=st.lists(DAMAGE, max_size=8), seed=st.integers(0, 2**32), missing=st.integers(-1, 3))
def test_they_agree_on_any_figures(
    three: tuple[Gate, dp.Disclosure],
    damages: list[tuple[str, str, int, int, float]],
    seed: int,
    missing: int,
) -> None:
    """On missing, infinite and forged figures too, under any bounds, to the last bit."""
    gate, result = three
    frames: dict[str, Any] = {name: result.frame(name) for name in FRAMES}
    for name, what, row, column, figure in damages:
        frames[name] = damaged(frames[name], "row" if name in FLAGS else what, row, column, figure)
    if not any(what == "row" for _, what, *_ in damages):
        syntheses = result.N_s[: 3 - missing] if missing >= 0 else (*result.N_s, 5)
        result = replace(result, N_s=syntheses)
    result = replace(result, **frames)
    random = Random(seed)
    changed = [other(clause, random) for clause in gate.clauses() for _ in range(4)]
    clauses = {clause.name: clause for clause in changed}
    judgements = judge(tuple(clauses.values()), result)
    actual = validate(tuple(clauses.values()), stored(result))
    assert actual.kept == kept(judgements)
    assert find_disagreements(actual.kept, clauses_of(judgements)) == []


def test_a_doubled_row_is_never_kept(three: tuple[Gate, dp.Disclosure]) -> None:
    """Nor one that stands for another."""
    gate, result = three
    tables = stored(result)
    for change in (
        lambda rows: [*rows, rows[0]],
        lambda rows: [rows[0], *rows[:-1]],
        lambda rows: rows[:-1],
        lambda rows: [],
    ):
        forged = tables | {name: change(tables[name]) for name in FRAMES if tables[name]}
        kept_by_expectations = validate(gate.clauses(), forged).kept
        assert not kept_by_expectations["repU"]
        assert not (kept_by_expectations["DiSCO[work]"] and kept_by_expectations["DiSCO[income]"])


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_that_is_missing_is_not_kept(three: tuple[Gate, dp.Disclosure], frame: str) -> None:
    """A missing figure was not measured: no flags are not 0 flags."""
    gate, result = three
    without = stored(result)
    del without[frame]
    is_kept = validate(generous(gate), without).kept
    lost = {name for name in is_kept if not is_kept[name]}
    assert is_kept.keys() == {clause.name for clause in gate.clauses()}
    # The gate names no further confidential table, and no clause is about a holdout.
    unbounded = {
        "prediction",
        "excluded",
        "partial_copies",
        "columns_apart",
        "confidential",
        "subgroups",
        "holdout",
    }
    assert lost or frame in unbounded
    assert ("one_way_flags[work]" in lost) == (frame in {"one_way", "identity"})


@pytest.mark.parametrize("share", ["GT_in_SD", "SD_in_GT"])
def test_a_share_that_is_missing_is_not_kept(three: tuple[Gate, dp.Disclosure], share: str) -> None:
    """Nor is the other one taken for it."""
    gate, result = three
    forged = stored(result)
    for row in (forged["key_overlap"][-1], forged["target_overlap"][-1]):
        row[share] = None
    is_kept = validate(generous(gate), forged).kept
    assert {name for name in is_kept if not is_kept[name]} == {"key_overlap", "target_overlap[income]"}


@pytest.mark.parametrize("value", ["3", True, "", [3.0], {"a": 1}])
def test_what_is_no_number_is_not_kept(three: tuple[Gate, dp.Disclosure], value: Any) -> None:
    gate, result = three
    forged = stored(result)
    for row in forged["identity"]:
        row["repU"] = value
    assert not validate(gate.clauses(), forged).kept["repU"]


def generous(gate: Gate) -> tuple[Clause, ...]:
    return tuple(replace(clause, bound=0 if clause.at_least else 1000) for clause in gate.clauses())


def test_there_is_a_result_for_every_clause(
    three: tuple[Gate, dp.Disclosure], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly one: a clause that is not in the suites, or twice, or that raised, is not kept."""
    from disclosure_pipeline.evidence import expectations

    gate, result = three
    clauses = generous(gate)
    first = clauses[0]
    assert all(validate(clauses, stored(result)).kept.values())
    twice = validate((*clauses, first), stored(result)).kept
    assert twice == {clause.name: clause != first for clause in clauses}

    at = validation._name_metric_table
    monkeypatch.setattr(
        validation, "_name_metric_table", lambda clause: at(clause) if clause != first else ""
    )
    assert validate(clauses, stored(result)).kept == twice
    monkeypatch.undo()

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(expectations.ExpectMeasureRatioToBeAtMost, "_validate", broken)
    assert validate(clauses, stored(result)).kept == {clause.name: not clause.share_of for clause in clauses}


def test_disagreements() -> None:
    kept = {"a": True, "b": False, "c": False, "d": False}
    outcomes = {"a": "kept", "b": "exceeded", "c": "undetermined", "d": "waived"}
    clauses = [{"name": name, "outcome": outcome} for name, outcome in outcomes.items()]
    assert find_disagreements(kept, clauses) == []
    for name, outcome in outcomes.items():
        assert find_disagreements(kept | {name: outcome != "kept"}, clauses) == [name]
        assert find_disagreements({other: kept[other] for other in kept if other != name}, clauses) == [name]
        assert find_disagreements(kept, [clause for clause in clauses if clause["name"] != name]) == [name]
        assert find_disagreements(kept, [*clauses, {"name": name, "outcome": outcome}]) == [name]
    assert find_disagreements({}, clauses) == ["a", "b", "c", "d"]


def test_the_results_as_plain_data(three: tuple[Gate, dp.Disclosure]) -> None:
    """A severity, a name and words for each clause; the same for the same figures."""
    gate, result = three
    actual = validate(gate.clauses(), stored(result))
    text = json.dumps(actual.results, allow_nan=False)
    assert json.dumps(validate(gate.clauses(), stored(result)).results) == text
    message = {
        entry["expectation_config"]["meta"]["clause"]: entry
        for table in actual.results.values()
        for entry in table["results"]
    }
    assert list(actual.results) == ["identity", "attribute", "overlap", "controls"]
    for judgement in judge(gate.clauses(), result):
        clause, entry = judgement.clause, message[judgement.clause.name]
        assert entry["success"] is (judgement.outcome == "kept")
        assert entry["result"] == {"observed_value": judgement.value, "bound": judgement.limit}
        assert entry["expectation_config"]["severity"] == ("warning" if clause.warns else "critical")
        assert entry["expectation_config"]["meta"]["words"] == str(clause)


def test_metric_tables_hold_figures_and_names_of_columns(three: tuple[Gate, dp.Disclosure]) -> None:
    """No level, although flags name some."""
    _, result = three
    actual = stored(result)
    levels = {row["level"] for row in actual["one_way"]} | {row["key_level"] for row in actual["two_way"]}
    assert levels
    tables = build_metric_tables(actual)
    for name, table in tables.items():
        labels = [label for label in ("key", "target", "table") if label in table]
        numbers = table.drop(columns=labels)
        assert all(numbers.dtypes.map(pd.api.types.is_numeric_dtype)), name
        named = {"sex", "age", "(whole key)", "work", "income", FILE, ALL_FILES, None}
        assert set(table[labels].to_numpy().ravel()) <= named
    assert [len(table) for table in tables.values()] == [4, 2 * 4, (3 + 2) * 3, (1 + 2) * 3]


def test_metric_tables_hold_the_figures_of_the_frames(three: tuple[Gate, dp.Disclosure]) -> None:
    _, result = three
    tables = {
        name: table.set_index([label for label in ("key", "target", "table", "synthesis") if label in table])
        for name, table in build_metric_tables(stored(result)).items()
    }
    stacked = result.stacked
    assert stacked is not None
    identity = tables["identity"]
    # By the names of the clauses: what counts is what is beyond chance.
    names = {
        name: f"{name}_strictly" if f"{name}_chance" in frame else name.removesuffix("_chance")
        for frame in (result.identity, result.attribute, result.cap)
        for name in map(str, frame)
        if name != "DiSCO_chance"
    }
    of_frame = result.identity.rename(columns=names)
    pd.testing.assert_frame_equal(identity.loc[FILE][list(of_frame)], of_frame, check_index_type=False)
    together = identity.loc[[(ALL_FILES, 4)]][list(of_frame)].to_numpy()
    assert together.tolist() == stacked.identity.to_numpy().tolist()
    attribute = tables["attribute"].xs(FILE, level="table")
    assert (
        tables["attribute"].loc[("work", ALL_FILES, 4), "DiSCO"]
        == stacked.attribute.loc[("work", 1), "DiSCO"]
    )
    for frame in ("attribute", "cap", "protection"):
        actual = result.frame(frame).rename(columns=names)
        known = [name for name in actual.columns if name in attribute.columns]
        assert known
        pd.testing.assert_frame_equal(attribute[known].loc[actual.index], actual[known], check_dtype=False)
    for check in ("one_way", "two_way"):
        flags = getattr(result, check).groupby(["target", "synthesis"]).size()
        counted = attribute[f"{check}_flags"]
        assert counted.sum() == len(getattr(result, check)) > 0
        assert counted[counted > 0].sort_index().to_dict() == flags.to_dict()


def run_alone(code: str, folder: Path, **environment: str) -> Finished:
    wanted = {"PATH", "VIRTUAL_ENV", "PYTHONPYCACHEPREFIX"}
    inherited = {name: value for name, value in os.environ.items() if name in wanted}
    return run_program(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        cwd=folder,
        env=inherited
        | {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
        | environment,
    )


ALONE = """
import json, sys
from pathlib import Path
touched = []
def watch(event, arguments):
    mode = arguments[1] if event == "open" and isinstance(arguments[1], str) else ""
    if set(mode) & set("wax+") or event.startswith(KINDS):
        touched.append(f"{event} {arguments}")
KINDS = (
    "socket.connect", "socket.send", "socket.get", "urllib.", "http.", "subprocess.", "os.system", "os.exec",
    "os.posix_spawn", "os.fork", "os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link", "shutil.",
)
sys.addaudithook(watch)
from disclosure_pipeline.evidence.validation import validate
from disclosure_pipeline.policy.clauses import Clause
clauses = [Clause("repU", None, 5.0), Clause("repU", None, 0.5, share_of="UiO")]
rows = [{"synthesis": 1, "repU": 5.0, "UiO": 9.0}]
found = validate(clauses, {"N_s": [9], "targets": [], "identity": rows})
print(json.dumps({"kept": found.kept, "results": found.results, "touched": touched}))
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Finished]:
    folder = tmp_path_factory.mktemp("alone")
    return folder, run_alone(ALONE, folder)


def test_nothing_is_written_and_nobody_is_asked(alone: tuple[Path, Finished]) -> None:
    """No file, no connection, no other program, no progress bar."""
    folder, ran = alone
    assert ran.stderr == ""
    document = json.loads(ran.stdout)
    assert document["kept"] == {"repU": True, "repU / UiO": False}
    assert document["touched"] == []
    assert list(folder.iterdir()) == []


@only_in_ci("imports Great Expectations once more, in another environment")
def test_switches_in_the_environment_change_nothing(alone: tuple[Path, Finished], tmp_path: Path) -> None:
    """Nor do settings of Great Expectations in the home folder or working directory."""
    for folder in (tmp_path / ".great_expectations", tmp_path / "gx", tmp_path / "great_expectations"):
        folder.mkdir()
        (folder / "great_expectations.yml").write_text("analytics_enabled: true\nnonsense: [")
        (folder / "great_expectations.conf").write_text("[anonymous_usage_statistics]\nenabled=True\n")
    with_other_settings = run_alone(
        ALONE,
        tmp_path,
        PANDERA_VALIDATION_ENABLED="False",
        PANDERA_VALIDATION_DEPTH="SCHEMA_ONLY",
        GX_ANALYTICS_ENABLED="True",
        GX_HOME=str(tmp_path / "gx"),
        GX_CLOUD_BASE_URL="http://127.0.0.1:9",
        GX_CLOUD_ACCESS_TOKEN="0123456789",
        GX_CLOUD_ORGANIZATION_ID="00000000-0000-0000-0000-000000000000",
        TQDM_DISABLE="0",
    )
    assert (with_other_settings.stdout, with_other_settings.stderr) == (alone[1].stdout, "")


def test_nothing_of_a_candidate_is_left_for_the_next(three: tuple[Gate, dp.Disclosure]) -> None:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

    gate, result = three
    for _ in range(3):
        validate(gate.clauses(), stored(result))
    gc.collect()
    contexts = [context for context in gc.get_objects() if isinstance(context, EphemeralDataContext)]
    assert len(contexts) <= 1


def test_a_process_of_its_own_says_the_same(
    three: tuple[Gate, dp.Disclosure], validator: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, result = three
    monkeypatch.setattr(validation, "_validator", validator)
    validation.start_validation()
    with validation.validating(gate.clauses(), stored(result)) as wait_for_validation:
        expected = validate(gate.clauses(), stored(result))
        assert wait_for_validation() == expected
    with (
        validation.validating(gate.clauses(), {"nothing": 1}) as wait_for_validation,
        pytest.raises(UndeterminedError, match="gave no results"),
    ):
        wait_for_validation()
    validator.stop()


def test_several_at_once(three: tuple[Gate, dp.Disclosure]) -> None:
    """Each finds its own figures."""
    gate, result = three

    def one(repU: float) -> Validation:
        actual: dict[str, Any] = stored(result)
        rows: list[Mapping[str, Any]] = [row | {"repU": repU} for row in actual["identity"]]
        return validate(gate.clauses(), actual | {"identity": rows})

    values = [float(value) for value in range(6, 11)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(one, values))
    assert [actual.kept["repU"] for actual in together] == [value <= 8 for value in values]
    assert together == [one(value) for value in values]


def test_a_whole_dossier(three: tuple[Gate, dp.Disclosure]) -> None:
    """As the gate calls it: what is filed says the same as the suites."""
    gate, result = three
    content = build_dossier(gate, "three", {}, result, judge(gate.clauses(), result))
    actual = validate(gate.clauses(), content["figures"])
    assert find_disagreements(actual.kept, content["clauses"]) == []
    forged = [clause | {"outcome": "kept"} for clause in content["clauses"]]
    assert find_disagreements(actual.kept, forged) == [name for name in actual.kept if not actual.kept[name]]
