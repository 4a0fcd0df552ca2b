"""The command line: measuring files, and the demo."""

import html
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import gate_steps, gates
from support.figures import without_guards
from support.gates import run_command
from support.processes import fork
from support.sampling import on_some_days, only_in_ci, some_of
from support.small_batches import tiny_batches
from support.surveys import silc

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory import engine as memory
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.demo.run import HONEST, LEAKY
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.page import rendering
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.sources import read_raw

Tables = Callable[..., list[Path]]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    def write(*syntheses: pd.DataFrame, suffix: str = ".csv") -> list[Path]:
        paths = []
        for number, table in enumerate((gates.ground_truth(), *syntheses)):
            paths.append(tmp_path / f"table{number}{suffix}")
            gate_steps.write(paths[-1], table)
        return paths

    return write


ACCEPT = "--accept-doubts"
OPTIONS = ("--key", "sex", "--key", "age", "--groups", "income=5", "--special", "income=-8")


def disclosed(ground_truth: Any, syntheses: Any) -> dp.Disclosure:
    return dp.disclosure(
        ground_truth, syntheses, ["sex", "age"], groups={"income": 5}, special_values={"income": [-8]}
    )


@cache
def disclosed_as_text() -> dp.Disclosure:
    """What a copy of the ground truth beside a fresh table discloses, where ages are read as text."""
    as_text = [table.astype({"age": str}) for table in (gates.ground_truth(), gates.honest(1))]
    return disclosed(as_text[0], as_text[::-1])


@cache
def disclosed_by_two() -> dp.Disclosure:
    return disclosed(gates.ground_truth(), [gates.honest(1), gates.honest(2)])


@pytest.fixture
def unsearched() -> Iterator[None]:
    """Nobody looks for copies, which takes most of the time."""
    with without_guards():
        yield


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_measure_prints_what_the_library_finds(tables: Tables, suffix: str) -> None:
    paths = tables(gates.honest(1), gates.ground_truth(), suffix=suffix)
    shown = run_command("measure", *paths, *OPTIONS)
    assert shown.exit_code == 5, shown.output  # one of them is the ground truth
    assert shown.stdout == f"{disclosed_as_text()}\n"


ENGINES = ("auto", "memory", "partitioned")


def without_copies(output: str) -> str:
    """Without the line on copied people, who are not looked for outside memory."""
    lines = "^(?:Copied people were not looked for: .*|No copied people were found.*)\\n"
    return re.sub(lines, "", output, flags=re.MULTILINE)


@pytest.fixture
def in_parts() -> Iterator[None]:
    with tiny_batches(spill_part=50):
        yield


@on_some_days
@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize(
    ("suffix", "targets"),
    some_of(product([".csv", ".parquet", ".arrow"], [(), ("--target", "income")]), 3, part_in_ci=1),
)
def test_measure_finds_the_same_with_every_engine(
    tables: Tables, suffix: str, targets: tuple[str, ...]
) -> None:
    """The same on the standard output stream; on the other one, who counted."""
    paths = tables(gates.honest(1), gates.honest(2), suffix=suffix)
    shown = {name: run_command("measure", *paths, *OPTIONS, *targets, "--engine", name) for name in ENGINES}
    for name, outcome in shown.items():
        assert outcome.exit_code == 0, outcome.output
        assert "income" in outcome.stdout and ("work" in outcome.stdout) == (not targets)
        assert without_copies(outcome.stdout) == without_copies(shown["memory"].stdout)
        assert (outcome.stdout != shown["memory"].stdout) == (name == "partitioned")
        shown_names = re.findall("^Engine: (.*)$", outcome.stderr, re.MULTILINE)
        assert shown_names == [name] or (
            name == "auto" and shown_names[0].startswith("memory (about 0.0 GB are needed")
        )
    assert shown["memory"].stdout == run_command("measure", *paths, *OPTIONS, *targets).stdout


@pytest.mark.usefixtures("in_parts")
def test_measure_chooses_its_engine_and_tells_how_far_it_is(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("measure", *tables(gates.honest()), *OPTIONS)
    monkeypatch.setattr("disclosure_pipeline.counting.opening.available_memory", lambda: 1000)
    scarce = run_command(*command, "--progress")
    assert "Engine: partitioned (about 0.0 GB are needed in memory, 0.0 GB are free)" in scarce.stderr
    assert "Reading the ground truth" in scarce.stderr and "Measuring" in scarce.stderr
    assert without_copies(scarce.stdout) == without_copies(run_command(*command, "--engine", "memory").stdout)
    assert run_command(*command, "--engine", "spark").exit_code == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda sd: sd.assign(sex=["female", "male"] * 149),
        lambda sd: sd.assign(work=None),
        lambda sd: sd.drop(columns="age"),
        lambda sd: sd.assign(note="n"),
        lambda sd: sd.assign(income="much"),
        lambda sd: sd.assign(income=float("inf")),
        lambda sd: sd.head(0),
    ],
)
def test_measure_warns_and_refuses_alike(
    change: Callable[[pd.DataFrame], pd.DataFrame], tables: Tables
) -> None:
    paths = tables(change(gates.honest()))
    in_memory, in_batches = (
        run_command("measure", *paths, *OPTIONS, "--engine", name) for name in ENGINES[1:]
    )
    in_memory_text, in_batches_text = (
        without_copies(re.sub("^Engine: .*\n", "", shown.output, flags=re.MULTILINE))
        for shown in (in_memory, in_batches)
    )
    assert in_batches_text == in_memory_text
    assert in_batches.exit_code == in_memory.exit_code
    assert "Warning" in in_memory.output or in_memory.exit_code == 1


@pytest.mark.parametrize("shown_as", ["json", "csv"])
def test_measure_writes_every_figure(tables: Tables, shown_as: str) -> None:
    """For several syntheses that includes what at least one discloses, which is in no mean."""
    paths = tables(gates.honest(1), gates.honest(2))
    shown = run_command("measure", *paths, *OPTIONS, "--format", shown_as)
    assert shown.exit_code == 0, shown.output
    if shown_as == "json":
        rows = pd.DataFrame(json.loads(shown.stdout)["figures"])
    else:
        rows = pd.read_csv(io.StringIO(shown.stdout), float_precision="round_trip")
    result = disclosed_by_two()
    for name in ("identity", "together_identity", "attribute", "together", "cap", "key_overlap"):
        written = rows.loc[rows["frame"] == name, "value"].astype(float)
        assert len(written) and written.tolist() == pytest.approx(
            result.frame(name).to_numpy(float).ravel().tolist(), rel=0, abs=0, nan_ok=True
        )
    assert rows["meaning"].fillna("").astype(bool).all()


@pytest.mark.usefixtures("unsearched")
@pytest.mark.parametrize("shown_as", ["text", "html"])
def test_tables_that_may_not_be_coded_alike_are_doubted(tables: Tables, shown_as: str) -> None:
    """A risk near 0 may mean just that."""
    changed = gates.honest().assign(sex=["female", "male"] * 149)
    command = ("measure", *tables(changed), *OPTIONS, *(("--format", "html") if shown_as == "html" else ()))
    doubted, accepted = run_command(*command), run_command(*command, ACCEPT)
    assert (doubted.exit_code, accepted.exit_code) == (3, 0)
    assert accepted.stdout == doubted.stdout
    assert "Column 'sex': the tables share few values." in html.unescape(doubted.stdout)
    assert shown_as == "html" or doubted.stdout.startswith("Warning: Column 'sex'")
    assert ACCEPT in doubted.stderr and ACCEPT not in accepted.stderr


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_the_page_of_two_tables_has_copies_nearness_and_groups(tables: Tables, engine: str) -> None:
    """As the page of a candidate, but for what only a gate has."""
    ground_truth, synthetic = tables(gates.ground_truth())
    shown = run_command("measure", ground_truth, synthetic, *OPTIONS, "--engine", engine, "--format", "html")
    assert shown.stdout.startswith("<!DOCTYPE html>")
    page = " ".join(re.sub(r"<[^>]+>", " ", shown.stdout).split())
    assert "100.0 % of the records of synthetic table 1 equal a confidential record" in page
    assert "of the people are in synthetic table 1" in page
    assert "Most exposed are people with" in page
    groups = dp.subgroups(gates.ground_truth(), gates.ground_truth(), ["sex", "age"], "work", by="sex")
    for sex, figures in groups.droplevel(["target", "synthesis"]).iterrows():
        assert f"sex: {sex} {figures['records']:.0f} {figures['DiSCO']:.1f} %" in page
    assert "of the gate" not in page and "Risk and utility" not in page


@pytest.mark.usefixtures("unsearched")
@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_measure_tells_amounts_within_a_band(tables: Tables, engine: str) -> None:
    command = ("measure", *tables(gates.honest()), "--key", "sex", "--key", "age", "--within", "income=0.05")
    command = (*command, "--engine", engine, "--accept-doubts")
    result = dp.disclosure(gates.ground_truth(), gates.honest(), ["sex", "age"], within={"income": 0.05})
    told = float(result.bands["DiSCO_within"].item())
    shown = run_command(*command).stdout
    assert "Amounts disclosed to within their band" in shown and f"{told:.2f}" in shown
    figures = json.loads(run_command(*command, "--format", "json").stdout)["figures"]
    of_bands = {row["measure"]: row["value"] for row in figures if row["frame"] == "bands"}
    assert (of_bands["within"], of_bands["DiSCO_within"]) == ("5 %", told)
    page = run_command(*command, "--format", "html").stdout
    assert f"Table 1 shows the income of {told:.1f} % of the people to within 5 %" in page


def test_the_page_of_two_tables_opens_and_codes_them_once(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    coded: list[str] = []
    code = FramesInMemory.code

    def note_table(location: Any, table: str) -> pd.DataFrame:
        read.append(table)
        return read_raw(location, table)

    def note_columns(opened: FramesInMemory, columns: Sequence[Any], *arguments: Any) -> list[CodedColumn]:
        coded.extend(columns)
        return code(opened, columns, *arguments)

    monkeypatch.setattr(memory, "read_raw", note_table)
    monkeypatch.setattr(FramesInMemory, "code", note_columns)
    paths = tables(gates.honest())
    shown = run_command("measure", *paths, *OPTIONS, "--engine", "memory", "--format", "html")
    assert shown.exit_code == 0, shown.output
    assert len(read) == len(set(read)) == len(paths)
    assert sorted(coded) == sorted(gates.honest().columns)


def test_the_page_of_several_tables_tells_what_the_library_finds(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every frame of `disclosure()` that the page is made of, of each table and of all of them as one."""
    rendered: list[Disclosure] = []
    monkeypatch.setattr(rendering, "render_result", rendered.append)
    paths = tables(gates.honest(1), gates.ground_truth())
    assert run_command("measure", *paths, *OPTIONS, "--format", "html").exit_code == 5
    [result] = rendered
    expected = disclosed(paths[0], paths[1:])
    assert (result.N_s, result.warnings, result.ledger) == (expected.N_s, expected.warnings, expected.ledger)
    assert result.stacked is not None and expected.stacked is not None
    for name in ("identity", "together_identity", "attribute", "together", "cap", "key_overlap", "one_way"):
        pd.testing.assert_frame_equal(result.frame(name), expected.frame(name))
        pd.testing.assert_frame_equal(result.stacked.frame(name), expected.stacked.frame(name))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--key"),
        (("--key", "sx"), "Did you mean 'sex'?"),
        (("--key", "sex", "--key", "sex"), "more than once"),
        (("--key", "sex", "--target", "sex"), "key and a target"),
        (("--key", "sex", "--groups", "income"), "COLUMN=NUMBER"),
        (("--key", "sex", "--groups", "income=many"), "COLUMN=NUMBER"),
        (("--key", "sex", "--groups", "income=2.7"), "2.7"),
        (("--key", "sex", "--groups", "income=nan"), "nan"),
        (("--key", "sex", "--groups", "income=inf"), "inf"),
        (("--key", "sex", "--groups", "income=1"), "from 2 to 1,000"),
        (("--key", "sex", "--groups", "income=100000000"), "from 2 to 1,000"),
        (("--key", "sex", "--groups", "work=3"), "'work'"),
        (("--key", "sex", "--special", "income=none"), "COLUMN=NUMBER"),
        (("--key", "sex", "--within", "income=-0.1"), "from 0"),
        (("--key", "sex", "--within", "income=nan"), "from 0"),
        (("--key", "sex", "--within", "income=0.1", "--groups", "income=5"), "needs no groups"),
        (("--key", "sex", "--within", "work=0.1"), "only numbers have a band"),
    ],
)
def test_measure_refuses(tables: Tables, options: tuple[str, ...], message: str, engine: str) -> None:
    """With a message, not with a traceback, and without a value of the tables."""
    shown = run_command("measure", *tables(gates.honest()), *options, "--engine", engine)
    assert shown.exit_code != 0
    assert isinstance(shown.exception, SystemExit)
    assert message in shown.output
    assert not [canary for canary in gates.CANARIES if canary in shown.output]


def test_measure_refuses_damaged_files(tables: Tables, tmp_path: Path) -> None:
    (path, good) = tables(gates.honest())
    for content in (b"", b"sex,age\nf\n", b"\xff\xfe", b"sex,age,work,income\n"):
        (tmp_path / "damaged.csv").write_bytes(content)
        for given in ((path, tmp_path / "damaged.csv"), (tmp_path / "damaged.csv", good)):
            for engine in ENGINES:
                shown = run_command("measure", *given, *OPTIONS, "--engine", engine)
                assert shown.exit_code == 1
                assert isinstance(shown.exception, SystemExit)
    assert run_command("measure", path, tmp_path / "missing.csv", *OPTIONS).exit_code == 2
    assert run_command("measure", path, *OPTIONS).exit_code == 2


def test_measure_counts_people_of_a_unit(tmp_path: Path) -> None:
    paths = [tmp_path / "gt.parquet", tmp_path / "sd.parquet"]
    silc(1).to_parquet(paths[0])
    silc(2).drop(columns="household").to_parquet(paths[1])
    keys = ["region", "size", "age"]
    command = ("measure", *paths, *(part for key in keys for part in ("--key", key)), "--target", "income")
    rows = json.loads(run_command(*command, "--unit", "household", "--format", "json").stdout)["figures"]
    figures = {(row["frame"], row["measure"]): row["value"] for row in rows}
    result = dp.disclosure(paths[0], paths[1], keys, "income", unit="household")
    assert figures["units", "units"] == 900
    assert figures["units", "household_risk"] == pytest.approx(result.units["household_risk"].item())
    assert figures["attribute", "DiSCO_others"] == pytest.approx(result.attribute["DiSCO_others"].item())
    page = run_command(*command, "--unit", "household", "--format", "html").stdout
    assert "% of their units." in page
    assert "% of their units." not in run_command(*command, "--format", "html").stdout
    without = json.loads(run_command(*command, "--format", "json").stdout)["figures"]
    assert "units" not in {row["frame"] for row in without}
    refused = run_command(*command, "--unit", "person")
    assert refused.exit_code != 0 and "not a column of the ground truth" in refused.stderr


def test_the_demo_shows_both_verdicts(demo: tuple[Path, str]) -> None:
    home, shown = demo
    honest, leaky = (shown[shown.index(name) :] for name in (f"{HONEST}: approved\n", f"{LEAKY}: refused\n"))
    assert honest.splitlines()[1] == f"Published in {home / 'demo/releases/survey' / HONEST}"
    first, *others = [line for line in leaky.splitlines() if line.startswith("- ")]
    assert re.match(r"- 30\.\d % of the synthetic records copy one person each, whole; ", first)
    singled_out = "singled out in both tables by what an intruder knows of them; at most 8 % is allowed."
    assert any(line.endswith(singled_out) for line in others)
    assert "Published" not in leaky and "make ui" in leaky
    pages = [Path(path).read_text(encoding="utf-8") for path in re.findall("^Page: (.*)$", shown, re.M)]
    for page, (candidate, verdict) in zip(pages, ((HONEST, "Approved"), (LEAKY, "Refused")), strict=True):
        assert candidate in page and verdict in page


@only_in_ci("runs the whole demo")
def test_the_demo_can_be_run_twice(demo: tuple[Path, str]) -> None:
    """The second time it finds the same, and what it published stays as it is."""
    home, shown = demo
    folder = home / "demo/releases/survey" / HONEST
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    again = fork(gates.run_demo, home).result()
    assert again == shown
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == [HONEST]


@on_some_days
def test_the_demo_says_when_a_run_ends_before_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a message."""
    monkeypatch.setenv("DAGSTER_HOME", "restored after the test")
    monkeypatch.setattr("disclosure_pipeline.demo.run.synthesise", lambda table, seed=1: table.assign(age=-1))
    monkeypatch.setattr("disclosure_pipeline.orchestration.assets.summarize_gate_power", lambda *_: "none")
    with gates.quick_folder() as home, gates.quiet():
        shown = run_command("demo", "--records", "200", "--home", home)
    assert shown.exit_code == 1
    assert isinstance(shown.exception, SystemExit)
    assert "survey__synthetic" in shown.output
