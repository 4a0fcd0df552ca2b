"""The gate in Dagster: real runs of the demo, of a small gate and of the paper's example."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from support import gates, releases
from support.gates import (
    CANARIES,
    COPY,
    GATE,
    HONEST,
    Home,
    checks,
    failures,
    materialized,
    metadata_of,
    read_json,
    rows,
)
from support.paths import ROOT, SD2011
from support.sampling import on_some_days, some_of

from disclosure_pipeline.candidates import arrival, evaluation
from disclosure_pipeline.candidates.store import STATEMENT
from disclosure_pipeline.demo.run import HONEST as DEMO_HONEST
from disclosure_pipeline.demo.run import LEAKY as DEMO_LEAKY
from disclosure_pipeline.evaluation.long_table import view_frame
from disclosure_pipeline.evidence.dossier import format_cell
from disclosure_pipeline.orchestration import presentation
from disclosure_pipeline.orchestration.gate_file import load_gate
from disclosure_pipeline.orchestration.steps import group_clauses
from disclosure_pipeline.policy.clauses import KEY_OVERLAPS
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.release import releasing

pytestmark = pytest.mark.usefixtures("remembered_results")

DEMO_CANDIDATES = (DEMO_HONEST, DEMO_LEAKY)
SHIPPED = ROOT / "disclosure_pipeline" / "defs" / "survey" / "defs.yaml"

# In the order of the graph.
ASSETS = ("synthetic", "bins", "identity_risk", "attribute_risk", "dossier", "release")


@pytest.fixture(scope="module")
def demo_instance(demo: tuple[Path, str]) -> Iterator[dg.DagsterInstance]:
    with pytest.MonkeyPatch.context() as patch, gates.quiet():
        patch.setenv("DAGSTER_HOME", str(demo[0]))
        with dg.DagsterInstance.get() as instance:
            yield instance


def demo_dossier(home: Path, candidate: str) -> Any:
    return read_json(home / "demo/store/survey/candidates" / candidate / "dossier.json")


def demo_run(instance: dg.DagsterInstance, candidate: str) -> dg.DagsterRun:
    runs = dg.RunsFilter(job_name="survey_gate", tags={"dagster/partition": candidate})
    return instance.get_runs(runs)[-1]


def logged_checks(instance: dg.DagsterInstance, candidate: str) -> dict[str, dg.AssetCheckEvaluation]:
    events = [entry.dagster_event for entry in instance.all_logs(demo_run(instance, candidate).run_id)]
    actual = [
        event.asset_check_evaluation_data
        for event in events
        if event and event.event_type_value == "ASSET_CHECK_EVALUATION"
    ]
    return {f"{check.asset_key.path[-1]}:{check.check_name}": check for check in actual}


def test_the_demo_runs_ended_as_the_verdicts_say(demo_instance: dg.DagsterInstance) -> None:
    release = dg.AssetKey(["survey", "release"])
    assert demo_run(demo_instance, DEMO_HONEST).status is dg.DagsterRunStatus.SUCCESS
    assert demo_run(demo_instance, DEMO_LEAKY).status is dg.DagsterRunStatus.FAILURE
    assert demo_instance.get_materialized_partitions(release) == {DEMO_HONEST}
    for asset in ASSETS[:-1]:
        there = demo_instance.get_materialized_partitions(dg.AssetKey(["survey", asset]))
        assert there == set(DEMO_CANDIDATES)


@pytest.mark.parametrize("candidate", DEMO_CANDIDATES)
def test_every_clause_is_a_check_with_value_and_bound(
    demo: tuple[Path, str], demo_instance: dg.DagsterInstance, candidate: str
) -> None:
    logged = logged_checks(demo_instance, candidate)
    gate = load_gate(SHIPPED)
    by_name = {clause["name"]: clause for clause in demo_dossier(demo[0], candidate)["clauses"]}
    assert len(by_name) == len(gate.clauses())
    grouped = group_clauses(gate.clauses())
    # The check of the keys, of the asset `synthetic`, is the only one that is not among them.
    named = {clause.name for check in grouped for clause in check.clauses}
    assert {name for name in by_name if name not in named} == {
        clause.name for clause in gate.clauses() if clause.figure in KEY_OVERLAPS
    }
    for group in grouped:
        check = logged[f"{group.asset}:{group.name}"]
        clauses = [by_name[clause.name] for clause in group.clauses]
        broken = [clause for clause in clauses if clause["outcome"] != "kept"]
        assert check.passed == (not broken)
        sentences = [write_sentence(Judgement.from_row(clause)) for clause in broken]
        assert all(sentence in str(check.description) for sentence in sentences)
        worst = by_name[str(check.metadata["worst_clause"].value)]
        assert worst in (broken or clauses)
        # In the order in which Dagster keeps and shows them, beside the column.
        assert sorted(set(check.metadata) - {"column"})[:3] == ["bound", "outcome", "value"]
        assert check.metadata["outcome"].value == worst["outcome"]
        assert check.metadata["value"].value == pytest.approx(worst["value"], rel=1e-12)
        assert check.metadata["bound"].value == pytest.approx(worst["limit"], rel=1e-12)
        warns = broken and all(clause["warns"] for clause in broken)
        assert check.severity == (dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR)
        if len(clauses) > 1:
            shown = {row["clause"]: row for row in rows(check.metadata["values"])}
            assert {name: row["outcome"].split(",")[0] for name, row in shown.items()} == {
                clause["name"]: clause["outcome"] for clause in clauses
            }
            assert {name: row["value"] for name, row in shown.items()} == {
                clause["name"]: format_cell(clause["value"]) for clause in clauses
            }


def test_the_statement_fits_what_is_published(
    demo: tuple[Path, str], demo_instance: dg.DagsterInstance
) -> None:
    home, _ = demo
    folder = home / "demo/releases/survey" / DEMO_HONEST
    assert {path.name for path in folder.iterdir()} == {STATEMENT, "dossier.html", "synthetic.parquet"}
    delivered = pd.read_csv(home / "demo/incoming" / DEMO_HONEST / "synthetic.csv")
    assert gates.published_records(folder) == gates.sorted_records(delivered)
    predicate = gates.stated(folder, home / "demo/keys/public-key.pem")
    gate = load_gate(SHIPPED)
    assert predicate.policy.digest == gate.policy_digest()
    assert predicate.policy.definition == gate.policy.model_dump(mode="json")
    assert predicate.run_id == demo_run(demo_instance, DEMO_HONEST).run_id
    dossier = demo_dossier(home, DEMO_HONEST)
    releases.assert_states_clauses(predicate, dossier)
    assert predicate.ground_truth.records == dossier["figures"]["N_d"] // 10 * 10
    assert {"python", "disclosure-pipeline", "dagster", "pandas"} <= set(predicate.versions)
    assert predicate.waivers == ()


@pytest.mark.parametrize("candidate", DEMO_CANDIDATES)
def test_a_dossier_is_made_for_a_refusal_as_for_an_approval(demo: tuple[Path, str], candidate: str) -> None:
    home, _ = demo
    dossier = demo_dossier(home, candidate)
    for frame in ("one_way", "two_way", "control_identity", "control_attribute"):
        assert view_frame(dossier["figures"], frame)
    text = (home / "demo/store/survey/candidates" / candidate / "dossier.md").read_text()
    assert text.startswith(f"# {dossier['decision'].capitalize()}: ")
    assert (home / "demo/store/survey/candidates" / candidate / "first_page.md").read_text() in text
    for clause in dossier["clauses"]:
        assert clause["name"] in text


@pytest.mark.parametrize("asset", ["identity_risk", "attribute_risk"])
def test_one_number_per_measure_and_target_is_plotted(demo_instance: dg.DagsterInstance, asset: str) -> None:
    event = demo_instance.get_latest_materialization_event(dg.AssetKey(["survey", asset]))
    assert event is not None and event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert isinstance(metadata["dagster/row_count"], dg.IntMetadataValue)
    assert isinstance(metadata["dagster/column_schema"], dg.TableSchemaMetadataValue)
    targets = ("education", "income", "health", "work", "worked_abroad")
    measures = ("DiSCO", "Dorig", "iS", "TCAP")
    expected = (
        ["UiO", "UiS", "UiOiS", "repU"]
        if asset == "identity_risk"
        else [f"{measure}__{target}" for measure in measures for target in targets]
    )
    for name in expected:
        assert isinstance(metadata[name], dg.FloatMetadataValue)


def test_the_graph_is_that_of_the_design(small_gate: dg.Definitions) -> None:
    graph = small_gate.resolve_asset_graph()
    assert {key.path[-1] for key in graph.get_all_asset_keys()} == {"ground_truth", *ASSETS, "candidates"}
    parents = {
        asset: {key.path[-1] for key in graph.get(dg.AssetKey([GATE, asset])).parent_keys} for asset in ASSETS
    }
    assert parents["release"] == {"dossier"}
    assert parents["dossier"] == {"identity_risk", "attribute_risk"}
    assert "bins" in parents["identity_risk"] and "bins" in parents["attribute_risk"]
    assert parents["bins"] == {"ground_truth", "synthetic"}


def test_every_asset_tells_what_it_is() -> None:
    defs = gates.load(gates.definition(owners=["team:custodians"]))
    for spec in defs.resolve_all_asset_specs():
        assert spec.description
        assert list(spec.owners) == ["team:custodians"]
        assert spec.kinds
        assert spec.tags["disclosure_pipeline/gate"] == GATE
        assert spec.group_name == GATE
        assert spec.code_version


def test_editing_the_policy_makes_partitions_stale(small_gate: dg.Definitions) -> None:
    stricter = gates.load(gates.definition(policy={"repU": 1, "DiSCO": 1}))

    def versions(defs: dg.Definitions) -> dict[str, str | None]:
        return {spec.key.path[-1]: spec.code_version for spec in defs.resolve_all_asset_specs()}

    before, after = versions(small_gate), versions(stricter)
    assert all(before[name] != after[name] for name in ASSETS)


def test_the_checks_that_block(small_gate: dg.Definitions) -> None:
    graph = small_gate.resolve_asset_graph()
    blocking = {
        f"{node.key.asset_key.path[-1]}:{node.key.name}" for node in graph.asset_check_nodes if node.blocking
    }
    assert blocking == {
        "ground_truth:contract",
        "synthetic:contract",
        "synthetic:key_overlap",
        "dossier:within_policy",
    }


def test_a_refused_run_measures_everything_and_releases_nothing(home: Home) -> None:
    home.prepare({COPY: gates.ground_truth()})
    ran = home.run_gate(COPY)
    assert not ran.success
    assert materialized(ran) == {*ASSETS, "candidates"} - {"release"}
    failed = {name for name, check in checks(ran).items() if not check.passed}
    assert failed == {
        "identity_risk:found_repU",
        "attribute_risk:learned_DiSCO",
        "identity_risk:copied_found",
        "attribute_risk:learned_guessed",
        "identity_risk:copied_equal_content",
        "dossier:within_policy",
    }
    shown = rows(checks(ran)["attribute_risk:learned_DiSCO"].metadata["values"])
    assert [row["outcome"] for row in shown] == ["exceeded", "exceeded"]
    assert checks(ran)["attribute_risk:learned_guessed"].metadata["outcome"].value == "exceeded"
    assert home.nothing_published()


@on_some_days
def test_several_syntheses_are_released_together(home: Home) -> None:
    tables = {f"{i}.csv": gates.honest(seed=i) for i in (1, 2, 3)}
    home.deliver("three", tables)
    home.prepare()
    assert home.run_gate("three").success
    dossier = home.dossier("three")
    assert dossier["figures"]["N_s"] == [300 - 2] * 3
    assert [row["synthesis"] for row in view_frame(dossier["figures"], "identity")] == [1, 2, 3]
    of_target = {row["target"]: row["DiSCO"] for row in view_frame(dossier["figures"], "attribute")}
    together = view_frame(dossier["figures"], "together")
    assert [row["target"] for row in together] == list(of_target)
    assert all(row["any"] >= of_target[row["target"]] for row in together)
    told = "If all synthetic tables are published"
    assert told in home.record("three", "dossier.html").read_text()
    assert told not in (home.published("three") / "dossier.html").read_text()
    predicate = gates.stated(home.published("three"))
    names = [f"synthetic_{i}.parquet" for i in (1, 2, 3)]
    assert [table.name for table in predicate.synthetic] == names
    published = [gates.sorted_records(pd.read_parquet(home.published("three") / name)) for name in names]
    assert sorted(published) == sorted(map(gates.sorted_records, tables.values()))


def test_a_ground_truth_that_breaks_its_contract_is_not_recorded(home: Home) -> None:
    broken = gates.ground_truth().astype({"age": object})
    broken.loc[[3, 5], "age"] = CANARIES[0]
    broken.loc[7, "sex"] = CANARIES[0]
    home.write_ground_truth(broken)
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    ran = home.run_ground_truth()
    assert not ran.success
    check = checks(ran)["ground_truth:contract"]
    assert not check.passed and check.blocking
    shown_rows = rows(check.metadata["violations"])
    assert {(row["column"], row["records"]) for row in shown_rows} == {("age", 2), ("sex", 1)}
    told = failures(home.run_gate(HONEST))  # nor by a candidate
    assert "the ground truth" in "".join(told.values())
    assert not (home.store / "ground_truth.json").exists()
    assert home.nothing_published()
    assert not any(canary in gates.everything_logged(home.instance) for canary in CANARIES)


@pytest.mark.parametrize(
    ("damage", "rule"),
    some_of(
        [
            (lambda table: table.drop(columns="work"), "the column is not in the table"),
            (lambda table: table.assign(age=3), "is outside the range"),
            (lambda table: table.iloc[:0], "the table has no records"),
        ]
    ),
)
def test_a_synthesis_that_breaks_its_contract_is_not_measured(home: Home, damage: Any, rule: str) -> None:
    home.deliver("broken", {"1.csv": gates.honest(), "2.csv": damage(gates.honest())})
    home.prepare()
    ran = home.run_gate("broken")
    assert not ran.success
    assert materialized(ran) <= {"synthetic", "candidates"}
    check = checks(ran)["synthetic:contract"]
    assert not check.passed
    (row,) = rows(check.metadata["violations"])
    assert row["rule"] == rule
    assert "2.csv" in row["table"]
    assert not checks(ran)["synthetic:key_overlap"].passed
    assert home.nothing_published()


def test_tables_that_share_few_values_of_a_key_are_not_compared(home: Home) -> None:
    """Which is told with the figure and what to do."""
    table = gates.honest()
    home.prepare({"narrow": table[table["age"].between(40, 60)]})
    ran = home.run_gate("narrow")
    assert not ran.success and home.nothing_published()
    assert materialized(ran) == {"synthetic", "candidates"}
    check = checks(ran)["synthetic:key_overlap"]
    assert not check.passed and check.blocking and check.metadata["bound"].value == 80
    figure = f"{check.metadata['value'].value:.1f} % of the records share their age with the other table"
    assert str(check.description).startswith(figure)
    told = "".join(failures(ran).values())
    assert re.search(r"- [1-7][0-9.]* % of the records share their age with .*; at least 80 %", told)
    assert "absent from the synthetic table" in told and "lower policy.key_overlap knowingly" in told


# One of each asset, and of what shows it: test_leaks.py breaks every function that a run calls.
PLACES = [
    (arrival, "read_ground_truth", "ground_truth"),
    (arrival, "take_snapshot", "synthetic"),
    (presentation, "describe_worst", "synthetic"),
    (presentation, "describe_frame", "bins"),
    (evaluation, "judge", "identity_risk"),
    (presentation, "show_plots", "identity_risk"),
    (evaluation, "to_markdown", "dossier"),
    (presentation, "list_standings", "dossier"),
    (releasing, "publish", "release"),
]


@pytest.mark.parametrize(("module", "name", "asset"), some_of(PLACES, 4))
def test_an_unexpected_error_tells_no_value(
    finished_home: Home, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, asset: str
) -> None:
    home = finished_home
    shutil.rmtree(home.path / "releases")
    monkeypatch.setattr(module, name, gates.crash)
    ran = home.run_ground_truth() if asset == "ground_truth" else home.materialize(asset, HONEST)
    assert not ran.success
    assert not materialized(ran)
    (text,) = failures(ran).values()
    assert text.startswith("Unexpected ValueError at ")
    logged = gates.everything_logged(home.instance)
    assert not [canary for canary in CANARIES if canary in logged]
    steps = [event.event_type_value for event in ran.all_events]
    assert steps.count("STEP_START") == steps.count("STEP_FAILURE") == 1
    assert not {"STEP_RESTARTED", "STEP_UP_FOR_RETRY"} & set(steps)
    assert home.nothing_published()


@on_some_days
@pytest.mark.skipif(not SD2011.is_dir(), reason=f"the example data are not there: {SD2011}")
def test_the_gate_gives_the_figures_of_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = {"income": 6.14, "depress": 9.54, "ls": 13.78, "marital": 35.18, "workab": 52.10}
    columns: dict[str, dict[str, Any]] = {
        name: {"type": "category"} for name in ("sex", "region", "placesize", "ls", "marital", "workab")
    }
    columns |= {name: {"type": "integer"} for name in ("age", "depress")}
    columns["income"] = {"type": "integer", "special_values": [-8], "groups": 20}
    attributes = gates.definition(
        ground_truth=str(SD2011 / "ground_truth.csv"),
        columns=columns,
        keys=["sex", "age", "region", "placesize"],
        targets=list(printed),
        policy={"repU": 15, "DiSCO": {"at_most": 36, "targets": {"workab": 53}}},
    )
    with gates.home_in_memory(tmp_path, gates.load(attributes), monkeypatch) as home:
        home.deliver("paper", {"synthetic.csv": (SD2011 / "synthetic.csv").read_bytes()})
        assert home.run_ground_truth().success
        assert home.run_gate("paper").success
    figures = home.dossier("paper")["figures"]
    (identity,) = view_frame(figures, "identity")
    assert (round(identity["UiO"], 2), round(identity["repU"], 2)) == (48.38, 14.86)
    assert {row["target"]: round(row["DiSCO"], 2) for row in view_frame(figures, "attribute")} == printed
    assert gates.stated(home.published("paper")).decision == "approved"


def test_an_empty_group_of_candidates_is_no_release(home: Home) -> None:
    """A folder that holds its marker and nothing else."""
    home.deliver("empty", {})
    home.prepare()
    ran = home.run_gate("empty")
    assert not ran.success
    assert "has no table" in "".join(failures(ran).values())


def test_small_counts_are_not_named(home: Home) -> None:
    """A group of numbers with fewer GT records than the policy allows is left out of what is shown."""
    few = gates.ground_truth().assign(income=[1, 2, 3, *[100] * 147, *[200] * 150])
    home.write_ground_truth(few)
    work = gates.honest()["work"].sample(300, replace=True).to_numpy()
    home.deliver(HONEST, {"synthetic.csv": few.assign(work=work)})
    home.run_ground_truth()
    home.materialize("synthetic", HONEST)
    [metadata] = metadata_of(home.materialize("bins", HONEST), "bins")
    shown_rows = rows(metadata["bins"])
    assert shown_rows
    assert all(row["GT"] >= 10 for row in shown_rows)


def test_of_many_flags_those_of_the_most_people_are_shown_and_none_is_lost(home: Home) -> None:
    """Each of 60 ages tells the target, and a copy discloses all of them; the youngest have more people."""
    ages = pd.Series([*range(20, 80)] * 15 + [20, 21] * 5, name="age")
    people = pd.DataFrame({"sex": "f", "age": ages, "work": (ages % 2).map({0: "office", 1: "field"})})
    people["income"] = -8
    home.write_ground_truth(people)
    home.deliver(COPY, {"synthetic.csv": people})
    home.run_ground_truth()
    ran = home.run_gate(COPY)
    [metadata] = metadata_of(ran, "attribute_risk")
    recorded = view_frame(home.dossier(COPY)["figures"], "two_way")
    of_work = [flag for flag in recorded if flag["target"] == "work" and flag["key"] == "age"]
    shown = [row for row in rows(metadata["two_way"]) if row["target"] == "work"]
    assert len(of_work) == 60
    assert metadata["two_way_flags"].value == len(recorded)
    assert len(shown) == presentation.FLAGS_SHOWN < len(of_work)
    assert {row["key_level"] for row in shown[:2]} == {"20", "21"}
    assert {row["target"] for row in rows(metadata["two_way"])} == {flag["target"] for flag in recorded}


def test_a_page_is_linked_where_the_store_is_read_in_a_browser() -> None:
    store = Path("/secure/store") / GATE
    page = store / "candidates" / HONEST / "dossier.html"
    unlinked = presentation.link_page(gates.gate(), store, page)
    assert unlinked == dg.MetadataValue.path(str(page))
    served = gates.gate(pages="https://example.org/store/")
    link = presentation.link_page(served, store, page)
    assert link == dg.MetadataValue.url(f"https://example.org/store/{GATE}/candidates/{HONEST}/dossier.html")
    assert served.policy_digest() == gates.gate().policy_digest()
