"""`evaluate`, `report`, `status`, `check`: verdicts as of a run, and nothing kept but the question."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import gate_steps, gates
from support.gates import COPY, GATE, HONEST, Home, contents, run_command, write_gate

from disclosure_pipeline.candidates.rehearsal import REHEARSALS
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY


def deliver(home: Home, table: pd.DataFrame | bytes) -> Path:
    folder = home.path / "elsewhere" / "trial"
    folder.mkdir(parents=True, exist_ok=True)
    gate_steps.write(folder / "synthetic.csv", table)
    return folder


def test_the_verdict_is_that_of_a_run(finished_home: Home) -> None:
    """To the last digit; and of all that it did, only the question is kept, once for a content."""
    home = finished_home
    gate = write_gate(home)
    before = contents(home.path)
    for candidate, code in ((HONEST, 0), (COPY, 1)):
        shown = run_command("evaluate", gate, home.path / "incoming" / candidate, "--format", "json")
        assert shown.exit_code == code, shown.output
        document = json.loads(shown.stdout)
        dossier = home.dossier(candidate)
        assert document["decision"] == dossier["decision"]
        ours = {row["clause"]: (row["value"], row["outcome"]) for row in document["clauses"]}
        assert ours == {row["name"]: (row["value"], row["outcome"]) for row in dossier["clauses"]}
        assert all(row["meaning"] for row in document["clauses"])
    shutil.rmtree(home.path / "store" / GATE / REHEARSALS)
    assert contents(home.path) == before  # a run had asked the same


@pytest.mark.usefixtures("remembered_results")
def test_only_the_question_is_recorded(home: Home) -> None:
    home.write_ground_truth(gates.ground_truth())
    folder, gate = deliver(home, gates.honest()), write_gate(home)
    before = contents(home.path)
    shown = run_command("evaluate", gate, folder)
    assert shown.exit_code == 0, shown.output
    page = home.path / "store" / GATE / REHEARSALS / "trial.html"
    assert shown.stdout == f"trial: approved\n  4 of 4 columns are measured and released\nPage: {page}\n"
    assert "<h1>" in page.read_text()
    shutil.rmtree(page.parent)
    new = set(contents(home.path)) - set(before)
    sketches = {name for name in new if name.startswith(f"store/{GATE}/sketches")}
    assert len([name for name in sketches if name.endswith(".json")]) == 1  # of what was asked about
    new -= sketches
    (question,) = [name for name in new if (home.path / name).is_file()]
    assert question.startswith(f"store/{GATE}/evaluations/")
    assert {name for name in new if (home.path / name).is_dir()} <= {
        str(folder) for folder in Path(question).parents
    }
    assert run_command("evaluate", gate, folder).exit_code == 0
    shutil.copytree(folder, folder.with_name("again"))
    assert run_command("evaluate", gate, folder.with_name("again")).exit_code == 0
    assert len([name for name in contents(home.path) if "evaluations" in name]) == 3  # 2 folders, 1 question
    assert "1 of at most 500 candidates was measured" in run_command("status", gate).stdout


def test_it_knows_the_waivers_of_the_gate(home: Home) -> None:
    """One for another content is none; a waiver that does not apply refuses, as in a run."""
    home.write_ground_truth(gates.ground_truth())
    folder, gate = deliver(home, gates.honest()), write_gate(home)
    (gate / "waivers").mkdir()
    (gate / "waivers" / "x.yaml").write_text("gate: small\n")
    shown = run_command("evaluate", gate, folder)
    assert shown.exit_code == 3
    assert "Waiver x.yaml" in shown.stderr


UNDECIDED: dict[str, tuple[Callable[[Home], object], int, str]] = {
    "another level": (
        lambda home: deliver(home, gates.honest().assign(sex="x")),
        *(1, "is not among the declared levels"),
    ),
    "a column too few": (
        lambda home: deliver(home, gates.honest().drop(columns="work")),
        *(1, "the column is not in the table"),
    ),
    "semicolons": (
        lambda home: deliver(home, gates.honest().to_csv(index=False, sep=";").encode()),
        *(1, "expected separator"),
    ),
    "a header alone": (lambda home: deliver(home, gates.honest().head(0)), 1, "the table has no records"),
    "an empty file": (lambda home: deliver(home, b""), 3, "cannot be read: it is empty"),
    "UTF-16": (
        lambda home: deliver(home, gates.honest().to_csv(index=False).encode("utf-16")),
        *(3, "of another encoding"),
    ),
    "no shared key": (lambda home: deliver(home, gates.honest().assign(age=98)), 3, "key_overlap"),
    "no ground truth": (
        lambda home: (home.path / "ground_truth.csv").unlink(),
        *(3, "The ground truth is not at the location"),
    ),
    "GT out of range": (
        lambda home: home.write_ground_truth(b"sex,age,work,income\nf,500,office,1\n"),
        *(3, "outside the range"),
    ),
    "an empty ground truth": (lambda home: home.write_ground_truth(b""), 3, "cannot be read: it is empty"),
}


@pytest.mark.parametrize("what", UNDECIDED)
def test_what_cannot_be_approved(what: str, home: Home) -> None:
    break_it, code, message = UNDECIDED[what]
    home.write_ground_truth(gates.ground_truth())
    folder = deliver(home, gates.honest())
    break_it(home)
    shown = run_command("evaluate", write_gate(home), folder)
    assert shown.exit_code == code, shown.output
    assert message in shown.output
    assert ("nothing was measured" in shown.stdout) == (code == 1)
    assert not [canary for canary in gates.CANARIES if canary in shown.output]
    assert not list((home.path / "store" / GATE).glob(".rehearsal*"))


def test_a_crash_ends_with_4(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write_ground_truth(gates.ground_truth())
    monkeypatch.setattr("disclosure_pipeline.candidates.rehearsal.measure", gates.crash)
    shown = run_command("evaluate", write_gate(home), deliver(home, gates.honest()))
    assert shown.exit_code == 4
    assert "Unexpected ValueError" in shown.stderr and gates.CANARIES[0] not in shown.output
    assert not list((home.path / "store" / GATE).glob(".rehearsal*"))


@pytest.mark.usefixtures("remembered_results")
def test_formats_of_a_verdict(finished_home: Home) -> None:
    gate, folder = write_gate(finished_home), finished_home.path / "incoming" / COPY
    as_table = run_command("evaluate", gate, folder, "--format", "table")
    assert max(map(len, as_table.stdout.splitlines())) <= 80
    assert "copy: refused" in as_table.stdout and "exceeded" in as_table.stdout
    assert "; at most 12 % is allowed." in " ".join(as_table.stdout.split())
    rows = list(csv.DictReader(io.StringIO(run_command("evaluate", gate, folder, "--format", "csv").stdout)))
    assert {"clause", "value", "bound", "outcome", "if not kept", "name", "unit", "meaning"} == set(rows[0])
    assert rows[0]["clause"] == "equal_content" and rows[-1]["outcome"] == "kept"
    assert rows[1]["outcome"] == "exceeded"
    consequences = {row["clause"]: row["if not kept"] for row in rows}
    assert consequences["repU"] == "refuses"
    doubtful = ("key_overlap", "whole_key_overlap", "relabelled", "controls")
    assert {consequences[name] for name in doubtful} == {"undetermined"}
    assert run_command("evaluate", gate, folder, "--format", "html").stdout.startswith("<!DOCTYPE html>")


def test_formats_of_a_verdict_without_figures(home: Home) -> None:
    home.write_ground_truth(gates.ground_truth())
    folder, gate = deliver(home, gates.honest().assign(another=1)), write_gate(home)
    shown = {
        form: run_command("evaluate", gate, folder, "--format", form)
        for form in ("table", "json", "csv", "html")
    }
    assert {form: ran.exit_code for form, ran in shown.items()} == dict.fromkeys(shown, 1)
    assert all("is not in the data dictionary" in " ".join(ran.output.split()) for ran in shown.values())
    assert json.loads(shown["json"].stdout)["clauses"] == []
    assert shown["csv"].stdout == "clause,value,bound,outcome,if not kept,name,unit,meaning\n"
    assert "<table" not in shown["html"].stdout


def test_the_dossier_of_a_candidate(finished_home: Home, tmp_path: Path) -> None:
    home, gate = finished_home, write_gate(finished_home)
    for candidate, code in ((HONEST, 0), (COPY, 1)):
        shown = run_command("report", gate, candidate, "--format", "json")
        assert shown.exit_code == code
        assert shown.stdout == home.record(candidate, "dossier.json").read_text()
        assert run_command("report", gate, candidate).stdout.startswith(f"{candidate}: ")
    rows = list(csv.DictReader(io.StringIO(run_command("report", gate, COPY, "--format", "csv").stdout)))
    assert len(rows) == len(home.dossier(COPY)["clauses"])
    file = tmp_path / "dossier.html"
    written = run_command("report", gate, COPY, "--format", "html", "--output", file)
    assert (written.exit_code, written.stdout) == (1, "")
    assert "<html" in file.read_text() and "refused" in file.read_text()
    missing = run_command("report", gate, "nobody")
    assert missing.exit_code == 3 and "run the gate for candidate 'nobody' first" in missing.stderr
    assert run_command("report", gate, "../../evil").exit_code == 3


def test_a_damaged_dossier_is_called_so(finished_home: Home) -> None:
    gate = write_gate(finished_home)
    gates.edit_json(finished_home.record(COPY, "dossier.json"), lambda content: content.pop("clauses"))
    for shown_as in ("table", "json", "csv", "html"):
        shown = run_command("report", gate, COPY, "--format", shown_as)
        assert shown.exit_code == 3 and "dossier.json is damaged: run the gate for" in shown.stderr


def test_every_candidate_and_where_it_stands(finished_home: Home) -> None:
    gate = write_gate(finished_home)
    document = json.loads(run_command("status", gate, "--format", "json").stdout)
    rows = {row["candidate"]: row for row in document["candidates"]}
    assert set(rows) == {HONEST, COPY} and document["asked"] == 2
    honest, copied = rows[HONEST], rows[COPY]
    assert (honest["verdict"], honest["published"], honest["records"]) == ("approved", True, 298)
    assert (copied["verdict"], copied["published"], copied["records"]) == ("refused", False, 300)
    assert "allowed" in honest["reason"] and "other table" not in honest["reason"]
    assert copied["reason"].startswith("One table holds every record of the other")
    assert honest["judged at"].endswith("+00:00")
    lines = list(csv.DictReader(io.StringIO(run_command("status", gate, "--format", "csv").stdout)))
    assert [line["candidate"] for line in lines] == sorted(rows)
    shown = run_command("status", gate, "--format", "table").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "<table>" in run_command("status", gate, "--format", "html").stdout


def test_folders_that_are_ignored_because_of_their_names_are_named(home: Home) -> None:
    gate = write_gate(home)
    assert run_command("status", gate).stdout.splitlines()[1:] == ["  no candidate has arrived"]
    home.deliver("wave 2", {"synthetic.csv": gates.honest()})
    home.deliver("not,complete", {"synthetic.csv": gates.honest()}, complete=False)
    home.deliver("A,B", {"synthetic.csv": gates.honest()})
    first, second = run_command("status", gate).stdout.splitlines()[1:]
    assert first == "  no candidate has arrived"
    assert second.startswith(
        "  2 folders are ignored because of their names, 'wave 2', 'A,B': expected at most"
    )
    document = json.loads(run_command("status", gate, "--format", "json").stdout)
    assert "'wave 2', 'A,B'" in document["ignored"]
    assert "A,B" in run_command("status", gate, "--format", "table").stdout
    for number in range(100):
        home.deliver(f"{number} {'x' * 120}", {"synthetic.csv": gates.honest()})
    [last] = run_command("status", gate).stdout.splitlines()[2:]
    assert " and 97 more: expected" in last and len(last) < 1000


def ready(home: Home) -> Path:
    home.write_ground_truth(gates.ground_truth())
    (home.path / "incoming").mkdir(exist_ok=True)
    return write_gate(home)


def test_a_gate_that_is_ready(home: Home) -> None:
    gate = ready(home)
    before = contents(home.path)
    shown = run_command("check", gate, "--format", "json")
    assert shown.exit_code == 0, shown.output
    document = json.loads(shown.stdout)
    assert document["ready"] is True
    looked_at = {row["looked at"]: row["finding"] for row in document["findings"]}
    folders = {"incoming", "store", "releases", "DAGSTER_HOME"}
    assert set(looked_at) == {"ground_truth", "policy", "trusted_keys", "columns", *folders}
    assert looked_at["columns"] == "4 of 4 columns are measured and released"
    assert "policy power" in looked_at["policy"]
    assert looked_at["ground_truth"].startswith("300 records that keep the data dictionary, not yet recorded")
    assert len(document["clauses"]) == len(gates.resolve(gates.definition()).gate.clauses())
    assert contents(home.path) == before
    assert max(map(len, run_command("check", gate, "--format", "table").stdout.splitlines())) <= 80


@pytest.mark.usefixtures("remembered_results")
def test_columns_that_are_left_out_are_named(home: Home) -> None:
    """With them, another verdict may come out: what is not published is not measured either."""
    ready(home)
    shown = run_command("check", write_gate(home, targets=["work"], policy={"repU": 50, "DiSCO": 50}))
    assert shown.exit_code == 0, shown.output
    told = "3 of 4 columns are measured and released; left out: income"
    assert f"  columns: {told}\n" in shown.stdout
    gate = write_gate(home, targets=["work"], policy={"repU": 50, "DiSCO": 50})
    folder = deliver(home, gates.honest().drop(columns="income"))
    assert told in run_command("evaluate", gate, folder).stdout.splitlines()[1]
    assert json.loads(run_command("evaluate", gate, folder, "--format", "json").stdout)["columns"] == told
    assert told in " ".join(run_command("evaluate", gate, folder, "--format", "table").stdout.split())


NOT_READY: dict[str, tuple[Callable[[Home, pytest.MonkeyPatch], Any], str]] = {
    "GT breaks its contract": (
        lambda home, _: home.write_ground_truth(gates.ground_truth().assign(age=500)),
        "ground_truth: the ground truth, column 'age': is outside the range",
    ),
    "GT lacks a key": (
        lambda home, _: home.write_ground_truth(gates.ground_truth().drop(columns="sex")),
        "ground_truth: the ground truth, column 'sex': the column is not in the table",
    ),
    "GT is cut off": (
        lambda home, _: home.write_ground_truth(b"sex,age,work,income\nf,30\n"),
        "cannot be read: it is damaged",
    ),
    "no incoming folder": (lambda home, _: (home.path / "incoming").rmdir(), "incoming: "),
    "a file for a store": (lambda home, _: (home.path / "store").write_text(""), "store: "),
    "a file for releases": (lambda home, _: (home.path / "releases").write_text(""), "releases: "),
    "no signing key": (lambda _, patch: patch.delenv(SIGNING_KEY), f"{SIGNING_KEY} is not set"),
    "no salt": (lambda _, patch: patch.delenv(SALT), f"{SALT} is not set"),
    "no DAGSTER_HOME": (
        lambda _, patch: patch.delenv("DAGSTER_HOME"),
        "relative to DAGSTER_HOME, which is not set",
    ),
    "a relative DAGSTER_HOME": (
        lambda _, patch: patch.setenv("DAGSTER_HOME", "home"),
        "DAGSTER_HOME is home: Dagster needs an absolute path.",
    ),
}


@pytest.mark.parametrize("what", NOT_READY)
def test_a_gate_that_is_not_ready(what: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = ready(home)
    change, message = NOT_READY[what]
    change(home, monkeypatch)
    shown = run_command("check", gate)
    assert shown.exit_code == 1, shown.output
    assert message in shown.stderr
    assert not [canary for canary in gates.CANARIES if canary in shown.output]
