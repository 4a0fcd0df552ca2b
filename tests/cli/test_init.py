"""`init` and `dg scaffold`: a gate that is ready at once, from a table that is not confidential."""

import datetime
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from support import gate_steps, gates
from support.distributions import PROJECT, run_dg
from support.gates import run_command
from support.paths import ROOT
from support.sampling import examples, only_in_ci
from support.surveys import TABLES, panel

from disclosure_pipeline.candidates.arrival import record_ground_truth
from disclosure_pipeline.candidates.store import Store
from disclosure_pipeline.orchestration.gate_file import HOME, load_gate, parse_gate
from disclosure_pipeline.policy.gate_template import EXAMPLE, Schema, describe_table, write_definition
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY
from disclosure_pipeline.tables.dictionary import Column
from disclosure_pipeline.tables.sources import read_raw


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (HOME, SIGNING_KEY, SALT):
        monkeypatch.delenv(name, raising=False)
    gates.ground_truth().to_csv(tmp_path / "confidential.csv", index=False)
    gates.honest().to_csv(tmp_path / "synthetic.csv", index=False)
    return tmp_path


@pytest.fixture
def open_folder(tables: Path) -> Iterator[Path]:
    """A folder that everybody can enter, under the usual umask: those of pytest are private."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        assert can_be_entered(folder)
        yield folder
    os.umask(before)


def can_be_entered(path: Path) -> bool:
    """Whether somebody else reaches a folder, or a file in it."""
    folders = path.parents if path.is_file() else (path, *path.parents)
    return all(folder.stat().st_mode % 2 for folder in folders)


def options(tables: Path) -> list[str]:
    return [
        *("--name", "people", "--table", str(tables / "synthetic.csv")),
        *("--ground-truth", str(tables / "confidential.csv"), "--key", "sex", "--key", "age"),
        *("--special", "income=-8"),
    ]


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    lines = (folder / ".env").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def test_the_range_of_a_column_is_noted_as_people_write_it() -> None:
    table = pd.DataFrame({"age": [18, 67] * 20, "share": [0.12, 0.65] * 20, "sex": ["f", "m"] * 20})
    notes = describe_table(table, ["sex"], ["age", "share"]).notes
    assert "set its range, here [10, 70]," in notes["age"]
    assert "set its range, here [0.1, 0.7]," in notes["share"]


def accept_few_people(file: Path) -> None:
    """Loosen the bound of the detection limit: among 300 people nearly 11 % could hide."""
    file.write_text(file.read_text().replace("      at_most: 10 #", "      at_most: 20 #"))


def test_a_new_gate_is_ready_at_once(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `check`; it approves an honest table and refuses GT itself."""
    project = tables / "project"
    made = run_command("init", project, *options(tables))
    assert made.exit_code == 0, made.output
    gate = project / "gates" / "defs" / "people"
    enter(project, monkeypatch)
    small = run_command("check", gate)
    assert small.exit_code == 0 and "every candidate stays undetermined" in small.output, small.output
    accept_few_people(gate / "defs.yaml")
    checked = run_command("check", gate)
    assert checked.exit_code == 0 and "undetermined" not in checked.output, checked.output
    loaded = load_gate(gate)
    assert (loaded.keys, loaded.targets) == (("sex", "age"), ("work", "income"))
    assert loaded.columns["income"].groups == 20 and loaded.columns["income"].special_values == (-8,)
    assert loaded.columns["work"].levels is None  # those of GT hold
    for name in ("signing-key.pem", "salt"):
        assert stat.S_IMODE((project / "home" / "keys" / name).stat().st_mode) == 0o600
    assert f"check {gate}" in made.stdout and f". {project / '.env'}" in made.stdout
    for table, code in (("synthetic.csv", 0), ("confidential.csv", 1)):
        folder = tables / f"candidate-{code}"
        folder.mkdir()
        (folder / "table.csv").write_bytes((tables / table).read_bytes())
        judged = run_command("evaluate", gate, folder)
        assert judged.exit_code == code, judged.output


def test_nobody_else_reads_what_a_new_gate_writes(
    tables: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster's own databases hold exact figures, and are files that everybody may read."""
    made = run_command("init", open_folder / "project", *options(tables))
    assert "new folders have mode 0700, for you alone" in made.stdout and made.stderr == ""
    home = open_folder / "project" / "home"
    for folder in (home, home / "people" / "incoming", home / "people" / "store", home / "keys"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # What is published is for others: they need a way to it, or a copy.
    assert stat.S_IMODE((home / "people" / "releases").stat().st_mode) == 0o755
    enter(open_folder / "project", monkeypatch)
    with gates.quiet(), dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("people_candidates", ["first"])
    databases = list(home.rglob("*.db"))
    assert any(stat.S_IMODE(database.stat().st_mode) & 0o004 for database in databases)
    written = [path for path in home.rglob("*") if path.is_file()]
    assert set(databases) < set(written) and not any(map(can_be_entered, written))
    checked = run_command("check", open_folder / "project" / "gates" / "defs" / "people")
    assert checked.exit_code == 0 and "others on this machine" not in checked.output


@pytest.mark.parametrize("opened", ["home", "store elsewhere", "both", "below a closed folder"])
def test_folders_that_others_can_enter_are_warned_of(
    opened: str, tables: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, store = open_folder / "own", open_folder / "own" / "people" / "store"
    home.mkdir(mode=0o755)
    monkeypatch.setenv(HOME, str(home))
    made = run_command("init", open_folder / "project", *options(tables))
    assert made.exit_code == 0 and f"run `chmod 700 {home}`" in made.stderr
    assert stat.S_IMODE(home.stat().st_mode) == 0o755  # somebody chose it
    enter(open_folder / "project", monkeypatch)
    file = open_folder / "project" / "gates" / "defs" / "people" / "defs.yaml"
    if opened == "store elsewhere":
        store = open_folder / "evidence"
        store.mkdir()
        file.write_text(file.read_text().replace("store: people/store", f"store: {store}"))
    (store / "people").mkdir(mode=0o755)
    home.chmod(0o711 if opened in {"home", "both"} else 0o700)  # enough to read a file of a known name
    store.chmod(0o700 if opened == "home" else 0o755)
    accept_few_people(file)
    checked = run_command("check", file.parent)
    assert checked.exit_code == 0
    warned = [line for line in checked.stderr.splitlines() if line.startswith("warning: ")]
    of_home = f"warning: {HOME}: others on this machine can read {home}, which is for exact figures"
    of_store = (
        f"warning: store: others on this machine can read {store / 'people'}, which is for exact figures"
    )
    expected = {"home": [of_home], "both": [of_store, of_home], "store elsewhere": [of_store]}.get(opened, [])
    assert [line.partition(" of the ground truth")[0] for line in warned] == expected


def test_the_home_of_the_demo_is_for_nobody_else(
    tables: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disclosure_pipeline.demo.run.run_demo", lambda *_: [])
    assert run_command("demo", "--home", open_folder / "demo").exit_code == 0
    assert stat.S_IMODE((open_folder / "demo").stat().st_mode) == 0o700


def test_a_gate_makes_its_own_store_for_nobody_else(tables: Path, open_folder: Path) -> None:
    store = open_folder / "gates" / "store"
    gate = replace(
        gate_steps.folders(tables, gates.definition(), "memory", "confidential.csv"), store=Store(store)
    )
    assert not record_ground_truth(gate).violations
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert not can_be_entered(store / "ground_truth.json")


@only_in_ci("starts Dagster's command")
def test_dagster_finds_a_new_gate_ready(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tables / "project"
    assert run_command("init", project, *options(tables)).exit_code == 0
    by_dagster = run_dg("check", "defs", folder=project, **enter(project, monkeypatch))
    assert by_dagster.returncode == 0, by_dagster.stdout + by_dagster.stderr
    assert "All definitions loaded successfully" in by_dagster.stdout + by_dagster.stderr


@pytest.mark.parametrize("linked", [False, True])
def test_the_confidential_table_does_not_describe_the_gate(linked: bool, tables: Path) -> None:
    """Types and notes of the file come from the given table: the confidential one is refused by any name."""
    table = tables / "confidential.csv"
    if linked:
        table = tables / "link.csv"
        table.symlink_to(tables / "confidential.csv")
    refused = run_command("init", tables / "project", *options(tables), "--table", table)
    assert refused.exit_code == 1
    assert f"{table} is the confidential table itself" in refused.stderr
    assert not (tables / "project").exists()


def test_a_person_is_asked(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("disclosure_pipeline.cli.main._is_interactive", lambda: True)
    lines = ["", str(tables / "synthetic.csv"), "sex, age", "work", str(tables / "confidential.csv"), ""]
    made = run_command("init", tables / "project", answers="\n".join(lines))
    assert made.exit_code == 0, made.output
    assert "Columns: sex, age, work, income" in made.stderr
    loaded = yaml.safe_load((tables / "project/gates/defs/survey/defs.yaml").read_text())["attributes"]
    assert (loaded["keys"], loaded["targets"]) == (["sex", "age"], ["work"])
    assert loaded["ground_truth"] == str(tables / "confidential.csv")


@pytest.mark.parametrize("missing", ["--name", "--table", "--key", "--ground-truth"])
def test_a_script_is_told_which_option_is_missing(missing: str, tables: Path) -> None:
    given = options(tables)
    while missing in given:
        place = given.index(missing)
        del given[place : place + 2]
    refused = run_command("init", tables / "project", *given)
    assert refused.exit_code == 2
    assert f"Give {missing}: without a terminal it cannot be prompted for" in refused.stderr
    assert not (tables / "project").exists()


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--key", "sx"], 1, "Did you mean 'sex'?"),
        (["--target", "sex"], 1, "cannot be both a key and a target"),
        (["--groups", "work=5"], 1, "groups are for numbers"),
        (["--groups", "income=x"], 2, "COLUMN=NUMBER"),
        (["--name", "My Gate"], 1, "A gate cannot be named 'My Gate'"),
        (["--table", "nowhere.csv"], 2, "does not exist"),
    ],
)
def test_what_cannot_be_a_gate_writes_nothing(
    change: list[str], code: int, message: str, tables: Path
) -> None:
    refused = run_command("init", tables / "project", *options(tables), *change)
    assert refused.exit_code == code, refused.output
    assert message in refused.stderr
    assert not list((tables / "project").rglob("defs.yaml"))
    assert not (tables / "project" / "home").exists()


def test_an_identifier_is_no_key(tables: Path) -> None:
    table = gates.honest().assign(person=[f"p{i}" for i in range(298)])
    table.to_csv(tables / "synthetic.csv", index=False)
    refused = run_command("init", tables / "project", *options(tables), "--key", "person")
    assert (
        refused.exit_code == 1 and "Column 'person' has a different value in every record" in refused.stderr
    )
    made = run_command("init", tables / "project", *options(tables))
    assert made.exit_code == 0
    text = (tables / "project/gates/defs/people/defs.yaml").read_text()
    attributes = yaml.safe_load(text)["attributes"]
    assert attributes["columns"]["person"] == {"type": "text identifier"}
    assert attributes["targets"] == ["work", "income"]


def test_a_few_invented_records_are_enough() -> None:
    """All of so few may differ by chance, in a key as in a target."""
    invented = pd.DataFrame(
        {"sex": ["f", "m", "f"], "age": ["30", "40", "50"], "illness": ["flu", "cold", "gout"]}
    )
    schema = describe_table(invented, ["sex", "age"], [])
    assert schema.targets == ("illness",)
    assert [column.type for column in schema.columns.values()] == ["category", "integer", "category"]


def test_a_second_gate_shares_the_keys(tables: Path) -> None:
    """And nothing that is there is written again."""
    project = tables / "project"
    assert run_command("init", project, *options(tables)).exit_code == 0
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    again = run_command("init", project, *options(tables))
    assert again.exit_code == 1 and "exists already" in again.stderr
    assert run_command("init", project, *options(tables), "--name", "second").exit_code == 0
    assert {path: path.read_bytes() for path in before} == before
    assert (project / "gates/defs/second/defs.yaml").is_file()


def test_a_home_that_is_set_is_taken(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME, str(tables / "mine"))
    (tables / "confidential.csv").unlink()  # nothing of it is read: it need not even be there
    assert run_command("init", tables / "project", *options(tables)).exit_code == 0
    assert (tables / "mine" / "people" / "incoming").is_dir()
    assert not (tables / "project" / "home").exists()


def test_another_project_is_not_touched(tables: Path) -> None:
    (tables / "pyproject.toml").write_text('[project]\nname = "other"\n')
    refused = run_command("init", tables, *options(tables))
    assert refused.exit_code == 1 and "does not belong to a Dagster project" in refused.stderr
    assert not (tables / "gates").exists() and not (tables / "home").exists()


def test_the_settings_of_dagster_are_those_of_this_project() -> None:
    ours = ROOT / "disclosure_pipeline" / "orchestration" / "dagster.yaml"
    assert ours.read_bytes() == (ROOT / "dagster_home" / "dagster.yaml").read_bytes()


@only_in_ci("starts Dagster's command twice")
def test_dagster_scaffolds_the_same_gate(tables: Path) -> None:
    """In a project of Dagster's own form, with a `src` folder; also without a table, from an invented one."""
    project = tables / "project"
    assert run_command("init", project, *options(tables), "--target", "work").exit_code == 0
    by_init = (project / "gates/defs/people/defs.yaml").read_text()
    other = tables / "other"
    (other / "src" / "custodian" / "defs").mkdir(parents=True)
    (other / "src" / "custodian" / "__init__.py").touch()
    (other / "pyproject.toml").write_text(PROJECT)
    scaffold = ("scaffold", "defs", "disclosure_pipeline.DisclosureGate")
    given = ("--table", str(tables / "synthetic.csv"), "--key", "sex", "--key", "age", "--target", "work")
    place = ("--ground-truth", str(tables / "confidential.csv"))
    made = run_dg(*scaffold, "people", *given, *place, folder=other)
    assert made.returncode == 0, made.stdout + made.stderr
    by_dagster = (other / "src/custodian/defs/people/defs.yaml").read_text()
    assert by_dagster == by_init.replace(", special_values: [-8]", "")
    assert (other / "home" / "keys" / "public-key.pem").is_file() and (other / ".env").is_file()
    plain = run_dg(*scaffold, "example", folder=other)
    assert plain.returncode == 0, plain.stdout + plain.stderr
    file = other / "src/custodian/defs/example/defs.yaml"
    assert parse_gate(file.read_text(), file).keys == EXAMPLE.keys


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


# What YAML takes for something else.
STRANGE = ["no", "yes", "on", "null", "true", "1:30", "0100", "1e5", "a: b", "a #b", "-", "~"]


@examples(10)
@given(st.lists(names.filter(str.strip), min_size=2, max_size=5, unique=True))
@example(STRANGE)
@example(STRANGE[::-1])
def test_every_name_is_read_as_it_is(columns: list[str]) -> None:
    keys, targets = tuple(columns[: len(columns) // 2]), tuple(columns[len(columns) // 2 :])
    schema = Schema({name: Column(type="category") for name in columns}, {}, keys, targets)
    gate = parse_gate(write_definition("g", "/data/x: #1.csv", schema), Path("defs.yaml"))
    assert (list(gate.columns), gate.keys, gate.targets) == (columns, keys, targets)
    assert gate.ground_truth == "/data/x: #1.csv"


def test_numbers_with_many_values_are_grouped() -> None:
    table = pd.DataFrame({"k": ["a", "b"] * 100, "x": range(200), "y": [1, 2, 3, 4] * 50}).assign(
        x=lambda frame: frame["x"] // 2
    )
    columns: dict[str, Any] = dict(describe_table(table, ["k"], []).columns)
    assert (columns["x"].groups, columns["y"].groups) == (20, None)
    columns = dict(describe_table(table, ["x"], [], {"y": 3}).columns)
    assert (columns["x"].groups, columns["y"].groups) == (20, 3)


@pytest.mark.parametrize("name", ["panel", "survey of living conditions", "couples"])
def test_the_column_that_says_whose_each_record_is_is_proposed(name: str) -> None:
    make, unit, keys, _ = TABLES[name]
    schema = describe_table(make(1), keys, [])
    assert schema.unit == unit
    gate = parse_gate(write_definition("g", "gt.csv", schema), Path("defs.yaml"))
    assert gate.unit == unit
    assert unit not in {*gate.columns, *gate.targets}
    assert describe_table(make(1), [*keys, unit], []).unit is None
    assert describe_table(make(1).drop(columns=unit), keys, []).unit is None


def test_a_unit_is_proposed_where_half_of_the_columns_change_from_visit_to_visit() -> None:
    random = np.random.default_rng(1)
    stays = panel(1)
    for name in ("ward", "days", "costs"):
        stays[name] = random.integers(0, 500, len(stays))
    assert describe_table(stays, ["c0"], []).unit == "person"
    # A place of which some columns follow is nobody.
    places = stays.drop(columns="person").assign(place=random.integers(0, 400, len(stays)))
    places = places.assign(city=places["place"] // 2, county=places["place"] // 20)
    assert describe_table(places, ["c0"], []).unit is None


def test_a_category_of_few_levels_is_no_unit_of_a_small_coarse_table() -> None:
    """Most of the records of 200 people in three columns repeat, and two of these tell the third."""
    random = np.random.default_rng(1)
    district = random.integers(0, 12, 200)
    table = pd.DataFrame({"district": district, "sex": random.integers(0, 2, 200), "owner": district % 3})
    assert describe_table(table.astype(str), ["district", "sex"], []).unit is None


BIRTHS = [datetime.date(1950, 1, 1), datetime.date(1960, 1, 1), None]


@pytest.mark.parametrize(
    "births",
    [
        pa.array(BIRTHS),
        pa.array(BIRTHS).cast(pa.timestamp("us")),
        pa.array([Decimal("1.5"), Decimal(2), None]),
    ],
    ids=["dates", "times", "decimals"],
)
def test_a_unit_is_proposed_beside_dates_and_decimals_that_some_lack(
    births: pa.Array, tmp_path: Path
) -> None:
    """They are Arrow dictionaries, of which pandas makes no texts."""
    make, unit, keys, _ = TABLES["panel"]
    people = make(1)
    of_people = births.take(pa.array(pd.factorize(people[unit])[0] % len(BIRTHS)))
    pq.write_table(pa.Table.from_pandas(people).append_column("born", of_people), tmp_path / "table.parquet")
    assert describe_table(read_raw(tmp_path / "table.parquet", "the table"), keys, []).unit == unit


def test_no_unit_is_proposed_where_records_hardly_repeat() -> None:
    assert describe_table(gates.ground_truth(), ["sex", "age"], []).unit is None
    assert parse_gate(write_definition("g", "gt.csv", EXAMPLE), Path("defs.yaml")).unit is None
