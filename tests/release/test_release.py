"""`release` materialised alone: it believes neither the store nor the event log, and publishes once."""

import hashlib
import json
import math
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pytest
from support import gate_steps, gates
from support.gates import COPY, GATE, HONEST, Home, checks, edit_json, failures, read_json
from support.sampling import on_some_days, some_of
from support.surveys import TABLES, gate_of

import disclosure_pipeline as dp
from disclosure_pipeline.candidates.store import STATEMENT, GateFolders, Store
from disclosure_pipeline.counting.memory.engine import MemoryEngine
from disclosure_pipeline.evaluation import disclosure
from disclosure_pipeline.evaluation.figures import build_disclosure
from disclosure_pipeline.policy.reviewed_files import read_key_file
from disclosure_pipeline.release import readiness
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY, keygen
from disclosure_pipeline.release.readiness import Finding, check_readiness
from disclosure_pipeline.release.releasing import publish
from disclosure_pipeline.release.standing import read_newest_dossiers
from disclosure_pipeline.release.verifying import verify
from disclosure_pipeline.tables.dictionary import Contract
from disclosure_pipeline.tables.messages import GROUND_TRUTH

Change = Callable[[Home], object]


@pytest.fixture
def approved(finished_home: Home, remembered_results: None) -> Home:
    shutil.rmtree(finished_home.path / "releases")
    return finished_home


def refused_to_release(home: Home, candidate: str) -> str:
    ran = home.materialize("release", candidate)
    assert not ran.success
    assert home.nothing_published()
    (message,) = failures(ran).values()
    return message


def test_a_step_reads_a_table_once_and_a_run_the_ground_truth_three_times(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    read_table = MemoryEngine.read

    def read_and_count(engine: MemoryEngine, location: Any, contract: Contract, stack: ExitStack) -> Any:
        read.append(contract.table)
        return read_table(engine, location, contract, stack)

    monkeypatch.setattr(MemoryEngine, "read", read_and_count)
    home.prepare({HONEST: gates.honest()})
    assert home.run_gate(HONEST).success
    # GT: to record it, to measure, and for the release, which measures again; SD in the last two.
    assert Counter(read) == {GROUND_TRUTH: 3, "synthetic table 'synthetic.csv'": 2}


def forge(content: Any) -> None:
    content["decision"] = "approved"
    for clause in content["clauses"]:
        clause |= {"outcome": "kept", "value": 0.0}
    for row in content["figures"]["table"]:
        if "overlap" not in row["figure"]:
            row.update({name: 0.0 for name, value in row.items() if isinstance(value, float)})


def test_what_was_approved_is_released(approved: Home) -> None:
    """The base of all that follows: without the change, it is published."""
    ran = approved.materialize("release", HONEST)
    assert ran.success
    folder = approved.published(HONEST)
    assert {path.name for path in folder.iterdir()} == {"synthetic.parquet", "dossier.html", STATEMENT}
    assert gates.published_records(folder) == gates.sorted_records(gates.honest())
    predicate = gates.stated(folder)
    assert (predicate.gate, predicate.candidate, predicate.run_id) == (GATE, HONEST, ran.run_id)
    dossier = approved.record(HONEST, "dossier.json").read_bytes()
    assert predicate.dossier == hashlib.sha256(dossier).hexdigest()


@pytest.mark.usefixtures("remembered_results")
def test_nothing_is_released_without_a_dossier(home: Home) -> None:
    home.prepare({HONEST: gates.honest()})
    for asset in ("synthetic", "identity_risk"):
        assert home.materialize(asset, HONEST).success
        assert "run dossier first" in refused_to_release(home, HONEST)


def test_nothing_is_released_after_a_refusal_or_before_an_arrival(approved: Home) -> None:
    assert "run synthetic first" in refused_to_release(approved, "unheard-of")
    message = refused_to_release(approved, COPY)
    assert "refused" in message
    assert "singled out in both tables" in message
    assert "shows their work" in message and "shows their income" in message


def test_nothing_is_released_of_which_a_figure_is_missing(
    finished_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the measure to the release: what could not be computed is no approval."""
    shutil.rmtree(finished_home.path / "releases")
    measure = build_disclosure

    def without_repU(*arguments: Any, **families: Any) -> dp.Disclosure:  # noqa: N802
        result = measure(*arguments, **families)
        return replace(result, identity=result.identity.assign(repU=math.nan))

    monkeypatch.setattr(disclosure, "build_disclosure", without_repU)
    ran = finished_home.run_gate(HONEST)
    assert not ran.success
    check = checks(ran)["identity_risk:found_repU"]
    assert not check.passed and "value" not in check.metadata
    assert not checks(ran)["dossier:within_policy"].passed
    assert finished_home.dossier(HONEST)["decision"] == "undetermined"
    message = refused_to_release(finished_home, HONEST)
    assert "is undetermined: " in message
    assert "People singled out in both tables: could not be determined." in message


def test_nothing_is_measured_with_another_ground_truth_than_the_recorded_one(approved: Home) -> None:
    before = approved.record(HONEST, "figures.json").read_bytes()
    approved.write_ground_truth(gates.ground_truth().iloc[::-1])
    for asset in ("synthetic", "bins", "identity_risk", "release"):
        ran = approved.materialize(asset, HONEST)
        assert not ran.success
        assert "differs from the recorded one" in "".join(failures(ran).values())
    assert approved.record(HONEST, "figures.json").read_bytes() == before
    assert approved.nothing_published()


SNAPSHOT, DOSSIER = "snapshot.json", "dossier.json"


def record(name: str, change: Callable[[Path], object]) -> Change:
    return lambda home: change(home.record(HONEST, name))


def content(name: str, change: Callable[[Any], object]) -> Change:
    return record(name, lambda path: edit_json(path, change))


def first_file(**changes: object) -> Change:
    return content(SNAPSHOT, lambda content: content["files"][0].update(changes))


def of_the_copy(name: str) -> Change:
    return lambda home: shutil.copy(home.record(COPY, name), home.record(HONEST, name))


def truth(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Change:
    return lambda home: home.write_ground_truth(change(gates.ground_truth()))


TAMPERED: dict[str, Change] = {
    "stored bytes": lambda home: home.stored(HONEST).write_bytes(home.stored(COPY).read_bytes()),
    "stored bytes, one more record": lambda home: home.stored(HONEST).write_bytes(
        home.stored(HONEST).read_bytes() + b"f,20,office,500\n"
    ),
    "stored bytes are gone": lambda home: home.stored(HONEST).unlink(),
    "snapshot of another candidate": of_the_copy(SNAPSHOT),
    "files of another candidate in the snapshot": lambda home: edit_json(
        home.record(HONEST, SNAPSHOT),
        lambda content: content.update(files=read_json(home.record(COPY, SNAPSHOT))["files"]),
    ),
    "another name in the snapshot": first_file(name="other.csv"),
    "a name that leads out of the folder": first_file(name="../../../evil.csv"),
    "a wrong size in the snapshot": first_file(bytes=1),
    "the same table twice in the snapshot": content(
        SNAPSHOT, lambda content: content["files"].append(content["files"][0])
    ),
    "no files in the snapshot": content(SNAPSHOT, lambda content: content.update(files=[])),
    "no JSON in the snapshot": record(SNAPSHOT, lambda path: path.write_text("{")),
    "a list in the snapshot": record(SNAPSHOT, lambda path: path.write_text("[]")),
    "dossier of another candidate": of_the_copy(DOSSIER),
    "a figure in the dossier": content(
        DOSSIER, lambda content: content["figures"]["table"][0].update(value=0.5)
    ),
    "a clause missing in the dossier": content(DOSSIER, lambda content: content["clauses"].pop()),
    "a bound in the dossier": content(DOSSIER, lambda content: content["clauses"][0].update(bound=99.0)),
    "no dossier": record(DOSSIER, Path.unlink),
    "an empty dossier": record(DOSSIER, lambda path: path.write_bytes(b"")),
    "ground truth has a record less": truth(lambda table: table.iloc[1:]),
    "ground truth breaks its contract": truth(lambda table: table.assign(age=3)),
    "ground truth is gone": lambda home: (home.path / "ground_truth.csv").unlink(),
    "ground truth is damaged": lambda home: home.write_ground_truth(b"\xff\xfe"),
    "no record of the ground truth": lambda home: (home.store / "ground_truth.json").unlink(),
    "ground truth and its record changed": lambda home: (
        home.write_ground_truth(gates.ground_truth().iloc[1:]),
        home.run_ground_truth(),
    ),
    "figures, and the dossier made from them": lambda home: (
        edit_json(home.record(HONEST, "figures.json"), forge),
        home.materialize("dossier", HONEST),
    ),
}


@pytest.mark.parametrize("name", some_of(TAMPERED, part_in_ci=1))
def test_nothing_is_released_that_was_tampered_with(approved: Home, name: str) -> None:
    TAMPERED[name](approved)
    message = refused_to_release(approved, HONEST)
    assert "Unexpected" not in message


def test_forged_clauses_do_not_make_a_dossier(approved: Home) -> None:
    """The expectation suite finds that the figures beside them say something else."""
    figures = approved.record(COPY, "figures.json")
    exceeded = [clause["name"] for clause in read_json(figures)["clauses"] if clause["outcome"] == "exceeded"]
    edit_json(
        figures,
        lambda content: [
            clause.update(outcome="kept") for clause in content["clauses"] if clause["name"] in exceeded
        ],
    )
    (message,) = failures(approved.materialize("dossier", COPY)).values()
    assert f"disagree on {', '.join(exceeded)}." in message


def test_forged_figures_do_not_release_a_refused_candidate(approved: Home) -> None:
    """Even where the dossier and its check believe them."""
    edit_json(approved.record(COPY, "figures.json"), forge)
    dossier = approved.materialize("dossier", COPY)
    assert dossier.success
    assert approved.dossier(COPY)["decision"] == "approved"
    assert "refused" in refused_to_release(approved, COPY)


@pytest.mark.parametrize(
    ("candidate", "policy"),
    [
        (HONEST, {"repU": 0, "DiSCO": 0}),  # a stricter policy: refused
        # kept, but not by the dossier
        (HONEST, {"repU": 9, "DiSCO": {"at_most": 12, "targets": {"income": 10}}}),
        (COPY, {"repU": 100, "DiSCO": 100}),  # a laxer one: everything has to run again
    ],
)
def test_nothing_is_released_under_another_policy(approved: Home, candidate: str, policy: Any) -> None:
    changed = replace(approved, defs=gates.load(gates.definition(policy=policy)))
    message = refused_to_release(changed, candidate)
    assert "Unexpected" not in message
    assert changed.materialize("dossier", candidate).success is False


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.usefixtures("remembered_results")
def test_what_is_published_stays_untouched(finished_home: Home) -> None:
    folder = finished_home.published(HONEST)
    before = contents(folder), folder.stat().st_mtime_ns
    again = [finished_home.materialize("release", HONEST), finished_home.run_gate(HONEST)]
    assert all(ran.success for ran in again)
    assert (contents(folder), folder.stat().st_mtime_ns) == before
    event, listed = again[0].get_asset_materialization_events()
    assert [made.asset_key and made.asset_key.path[-1] for made in (event, listed)] == [
        "release",
        "candidates",
    ]
    assert event.materialization.metadata["published"].value == "before, with the same content"


@on_some_days
@pytest.mark.usefixtures("remembered_results")
@pytest.mark.parametrize("name", ["synthetic.csv", "second.csv"])
def test_a_published_name_is_not_given_to_other_content_or_more_files(finished_home: Home, name: str) -> None:
    before = contents(finished_home.published(HONEST))
    finished_home.deliver(HONEST, {name: gates.honest(seed=5)})
    ran = finished_home.run_gate(HONEST)
    assert not ran.success
    assert ran.get_failed_step_keys() == {f"{GATE}__release"}
    assert "already published with different content" in "".join(failures(ran).values())
    assert contents(finished_home.published(HONEST)) == before


def trust_another_key(home: Path) -> Path:
    made = keygen(home / "another")
    shutil.copy(made.public_key, home / "keys" / "public-key.pem")
    return made.signing_key


@pytest.mark.usefixtures("remembered_results")
@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "synthetic.parquet").write_bytes(b"x"),
        lambda folder: (folder / STATEMENT).unlink(),
        lambda folder: trust_another_key(folder.parents[2]),
    ],
)
def test_a_release_that_was_changed_afterwards_is_noticed(
    finished_home: Home, change: Callable[[Path], object]
) -> None:
    change(finished_home.published(HONEST))
    ran = finished_home.materialize("release", HONEST)
    assert not ran.success
    assert "Unexpected" not in "".join(failures(ran).values())


def test_a_release_that_is_interrupted_leaves_nothing_and_can_be_repeated(
    approved: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> NoReturn:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        assert not approved.materialize("release", HONEST).success
    assert approved.nothing_published()
    assert not approved.published(HONEST).exists()
    assert approved.materialize("release", HONEST).success
    assert {path.name for path in (approved.path / "releases" / GATE).iterdir()} == {HONEST}


def expired(home: Home, _: pytest.MonkeyPatch) -> None:
    key = home.path / "keys" / "public-key.pem"
    periods = {"valid_from": "2020-01-01T00:00:00Z", "valid_until": "2020-12-31T00:00:00Z"}
    key.write_text(json.dumps([{"public_key": key.read_text(), **periods}]))


UNSIGNED: dict[str, tuple[Callable[[Home, pytest.MonkeyPatch], object], str]] = {
    "no key": (lambda _, patch: patch.delenv(SIGNING_KEY), f"{SIGNING_KEY} is not set"),
    "no salt": (lambda _, patch: patch.delenv(SALT), f"{SALT} is not set"),
    "a key that the gate does not trust": (
        lambda home, patch: patch.setenv(SIGNING_KEY, str(keygen(home.path / "another").signing_key)),
        "not with a given one",
    ),
    "a trusted key is replaced": (
        lambda home, _: trust_another_key(home.path),
        "not with a given one",
    ),
    "no trusted key": (lambda home, _: (home.path / "keys" / "public-key.pem").unlink(), "cannot be read"),
    "a trusted key that expired": (expired, "outside the period of the key"),
}


@pytest.mark.parametrize("name", some_of(UNSIGNED, part_in_ci=1))
def test_nothing_is_published_without_a_signature_that_is_believed(
    approved: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    change, message = UNSIGNED[name]
    change(approved, monkeypatch)
    assert message in refused_to_release(approved, HONEST)


@on_some_days
def test_a_release_under_an_old_key_is_still_verified(
    finished_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are rotated: the old one is listed with the period in which it was used."""
    old = (finished_home.path / "keys" / "public-key.pem").read_text()
    made = keygen(finished_home.path / "new")
    now = datetime.now(timezone.utc)
    trusted = [
        {"public_key": old, "valid_from": "2020-01-01T00:00:00Z", "valid_until": now.isoformat()},
        {"public_key": made.public_key.read_text(), "valid_from": now.isoformat()},
    ]
    (finished_home.path / "keys" / "public-key.pem").write_text(json.dumps(trusted))
    monkeypatch.setenv(SIGNING_KEY, str(made.signing_key))
    before = contents(finished_home.published(HONEST))
    assert finished_home.materialize("release", HONEST).success
    assert contents(finished_home.published(HONEST)) == before
    finished_home.deliver("third", {"synthetic.csv": gates.honest(3)})
    ran = finished_home.run_gate("third")
    assert ran.success, failures(ran)
    keys = read_key_file(finished_home.path / "keys" / "public-key.pem")
    signed = {name: verify(finished_home.published(name), keys).keyid for name in (HONEST, "third")}
    assert signed[HONEST] != signed["third"]


# What is published can be read by everybody and written by its owner alone; names and formulas are right


def test_everybody_may_read_and_nobody_else_may_write(tmp_path: Path) -> None:
    stage, target = tmp_path / "stage", tmp_path / "published"
    stage.mkdir(mode=0o700)
    (stage / "table").touch(mode=0o600)
    publish(stage, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "table").stat().st_mode) == 0o644
    assert not stage.exists()


def test_every_table_is_written_under_a_name_of_its_own_and_formulas_are_quoted(tmp_path: Path) -> None:
    """In every format; a plain number is no formula."""
    delivered = [pd.DataFrame({"a": ["=HYPERLINK(A1)", "-5", "y"], "b": [i, 5, 6]}) for i in range(3)]
    with gate_steps.staged(tmp_path, gate_steps.definition_of_two_columns(csv=True), *delivered) as staged:
        files = staged.write_tables()
        folder = staged.stage.release
        tables = [pd.read_parquet(folder / f"synthetic_{i}.parquet") for i in (1, 2, 3)]
        texts = [pd.read_csv(folder / f"synthetic_{i}.csv", dtype={"a": str}) for i in (1, 2, 3)]
    names = [f"synthetic_{i}.{suffix}" for i in (1, 2, 3) for suffix in ("parquet", "csv")]
    assert [(file.name, file.records) for file in files] == [(name, 3) for name in names]
    for of_format in (tables, texts):
        assert all(set(table["a"]) == {"'=HYPERLINK(A1)", "-5", "y"} for table in of_format)
        assert {int(table["b"].min()) for table in of_format} == {0, 1, 2}


# Which dossiers are the newest


def test_the_newest_dossiers_come_first_and_damaged_ones_not_at_all(tmp_path: Path) -> None:
    folders = gate_steps.folders(tmp_path, gates.definition(), "auto", "ground_truth.csv")
    for age, name in enumerate(("newest", "cut", "broken", "older", "oldest")):
        path = folders.store.candidate_folder(name) / "dossier.json"
        path.parent.mkdir(parents=True)
        clauses = [{"name": "DiSCO"}] if name == "broken" else []
        dossier = {"candidate": name, "decision": "refused", "clauses": clauses, "figures": {"table": []}}
        path.write_text("{" if name == "cut" else json.dumps(dossier))
        os.utime(path, (10**9 - age, 10**9 - age))
    names = [dossier["candidate"] for dossier in read_newest_dossiers(folders, 2)]
    assert names == ["newest", "older"]
    assert len(read_newest_dossiers(folders, 9)) == 3


# What is said of a gate before a candidate comes: its folders, its environment, its packages


NOW = datetime(2024, 6, 1, tzinfo=timezone.utc)


@pytest.fixture
def folders(tmp_path: Path) -> GateFolders:
    gates.ground_truth().to_csv(tmp_path / "ground_truth.csv", index=False)
    return gate_steps.folders(tmp_path, gates.definition(), "auto", "ground_truth.csv")


def of_subject(folders: GateFolders, subject: str) -> list[Finding]:
    return [finding for finding in check_readiness(folders, NOW) if finding.subject == subject]


@pytest.mark.parametrize("attribute", ["incoming", "store", "releases"])
def test_a_folder_in_one_that_nobody_may_enter_is_no_crash(
    attribute: str, folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may enter every folder, so the system's refusal is played."""
    private = tmp_path / "private"
    place = private / "survey"
    place.mkdir(parents=True)

    def refuse_inside(ask: Callable[[Path], bool]) -> Callable[[Path], bool]:
        def answer(path: Path) -> bool:
            if private in path.parents:
                raise PermissionError(13, "Permission denied", str(path))
            return ask(path)

        return answer

    for name in ("exists", "is_dir", "is_file"):
        monkeypatch.setattr(Path, name, refuse_inside(getattr(Path, name)))
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != private)
    changed: dict[str, Any] = {attribute: Store(place) if attribute == "store" else place}
    elsewhere = replace(folders, **changed)
    problems = [finding for finding in of_subject(elsewhere, attribute) if finding.is_problem]
    assert any(str(place) in finding.sentence for finding in problems)


def test_the_home_is_said_to_be_set_up_where_it_is(
    folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assert_found(sentence: str, *, is_problem: bool) -> None:
        [finding] = of_subject(folders, "DAGSTER_HOME")
        assert sentence in finding.sentence and finding.is_problem == is_problem

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert_found("is not set", is_problem=True)
    monkeypatch.setenv("DAGSTER_HOME", "home")
    assert_found("needs an absolute path", is_problem=True)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "nowhere"))
    assert_found("not a folder", is_problem=True)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert_found("without a dagster.yaml", is_problem=False)
    (tmp_path / "dagster.yaml").touch()
    assert_found("set up by dagster.yaml", is_problem=False)


def test_packages_are_asked_for_only_where_they_are_needed(
    folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "find_spec", lambda package: None)
    extras = ("measures", "notify", "engine")
    assert not [finding for subject in extras for finding in of_subject(folders, subject)]
    definition = gates.definition(measures={"prediction": True})
    with_learner = gate_steps.folders(tmp_path, definition, "auto", "ground_truth.csv")
    [finding] = of_subject(with_learner, "measures")
    assert finding.is_problem and "disclosure-pipeline[prediction]" in finding.sentence
    from_database = replace(
        folders, ground_truth=dp.DuckDBSource(duckdb=str(tmp_path / "people.duckdb"), table="people")
    )
    sentences = [finding.sentence for finding in of_subject(from_database, "ground_truth")]
    assert "needs the package duckdb: install disclosure-pipeline[duckdb]" in sentences
    monkeypatch.setattr(readiness, "find_spec", lambda package: package)
    assert of_subject(with_learner, "measures") == []


@pytest.mark.parametrize("modes", [(True, False), (False, True)])
def test_a_folder_must_be_one_that_can_be_entered_and_written(
    modes: tuple[bool, bool], folders: GateFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user may do only one of both; root may do everything."""
    may_write, may_enter = modes

    def access(path: object, mode: int) -> bool:
        return (may_write or not mode & os.W_OK) and (may_enter or not mode & os.X_OK)

    monkeypatch.setattr(os, "access", access)
    assert [finding.is_problem for finding in of_subject(folders, "store")] == [True]


@pytest.mark.parametrize("name", TABLES)
def test_records_that_repeat_are_asked_whose_they_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates.with_keys(tmp_path, monkeypatch)
    make, unit, _, _ = TABLES[name]
    make(1).to_csv(tmp_path / "gt.csv", index=False)
    units = f"belong to {make(1)[unit].nunique():,} units"
    for with_unit, words in ((True, units), (False, "If people have several records")):
        gate = gate_steps.folders(tmp_path, gate_of(name, with_unit=with_unit), "memory", "gt.csv")
        [finding] = of_subject(gate, "unit")
        assert words in finding.sentence
        assert (finding.is_doubt, finding.is_problem) == (not with_unit, False)


def test_a_table_that_tells_no_one_apart_is_a_problem(
    folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates.with_keys(tmp_path, monkeypatch)
    [described] = of_subject(folders, "columns")
    assert not described.is_problem
    assert not of_subject(folders, "ground_truth")[0].is_problem
    assert of_subject(folders, "unit") == []  # nobody asks where records hardly repeat
    table = gates.ground_truth()
    table.iloc[[0] * len(table)].to_csv(tmp_path / "ground_truth.csv", index=False)
    [finding, *_] = of_subject(folders, "columns")
    assert finding.is_problem
    assert "100.0 % of the records equal another one in every column" in finding.sentence
