"""The page of the study follows from its table, and the study can be made again in parts."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from support.paths import DOCS, ROOT
from support.sampling import on_some_days, only_in_ci, some_of
from synthesizers import candidates, findings, generate, page, public_tables, results, study
from synthesizers.judging import write_gate

from disclosure_pipeline.cli.main import main
from disclosure_pipeline.policy.gate import Gate

ENVIRONMENTS = ROOT / "benchmarks" / "synthesizers" / "environments"
SMALLEST = "acs12"
KNOWN = ["fresh", "copies_30", "trees_100"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return results.read()


def make_study(folder: Path, *arguments: str) -> pd.DataFrame:
    """Run `make study` in an empty folder, or in one that it has begun; return the table that it writes."""
    with pytest.MonkeyPatch.context() as patch:
        output = folder / "results.tsv"
        patch.setattr(sys, "argv", ["study", "--work", str(folder), "--output", str(output), *arguments])
        study.main()
    return results.read(output)


def test_the_page_shows_every_picture_and_number_of_the_table(table: pd.DataFrame) -> None:
    """`python -m synthesizers.page`, with `benchmarks` on the path, draws the pictures anew."""
    text = page.write_page(table)
    pictures = re.findall(r"\]\((images/[\w.]+)\)", text)
    assert pictures
    assert not [name for name in pictures if not (DOCS / name).is_file()]
    assert f"All {len(table):,} candidates" in text
    assert "nan" not in text


def test_the_table_has_every_kind_of_candidate(table: pd.DataFrame) -> None:
    assert set(table["candidate"]) <= {*candidates.CONTROLS, *candidates.SYNTHESIZERS}
    assert set(table["table"]) == set(public_tables.TABLES)
    of_known = table[table["candidate"].isin(candidates.CONTROLS)]
    expected = len(candidates.SEEDS_OF_FRESH) + len(candidates.SEEDS) * (len(candidates.CONTROLS) - 1)
    assert set(of_known.groupby("table").size()) == {expected}
    assert not table.duplicated(results.KEY).any()


@pytest.mark.parametrize("name", some_of(public_tables.TABLES))
def test_the_gate_is_the_one_that_init_writes(name: str, tmp_path: Path) -> None:
    of = public_tables.TABLES[name]
    whole = of.read()
    of.without_unit(whole).to_parquet(tmp_path / "table.parquet", index=False)
    arguments = ["init", str(tmp_path / "gate"), "--name", "study"]
    arguments += ["--table", str(tmp_path / "table.parquet"), "--ground-truth", "ground_truth.parquet"]
    ran = CliRunner().invoke(main, [*arguments, *(part for key in of.keys for part in ("--key", key))])
    assert ran.exit_code == 0, ran.output
    [file] = (tmp_path / "gate").rglob("defs.yaml")
    written = yaml.safe_load(file.read_text(encoding="utf-8"))["attributes"]
    known = {name: written[name] for name in written if name in Gate.model_fields} | {"unit": of.unit}
    assert Gate.model_validate(known).policy_digest() == write_gate(of, whole).policy_digest()


@only_in_ci("a part of the study", days=2)
def test_a_part_is_made_again_from_an_empty_folder(
    table: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--tables", SMALLEST, "--candidates", ",".join(KNOWN)]
    made = make_study(tmp_path, *arguments)
    recorded = table[(table["table"] == SMALLEST) & table["candidate"].isin(KNOWN)]
    stable = [
        *results.KEY,
        "identity.repU",
        "attribute.DiSCO",
        "guards.unique_copies",
        "guards.people_copied",
    ]
    of_known = recorded[recorded["candidate"].isin(candidates.CONTROLS)]
    again = made[made["candidate"].isin(candidates.CONTROLS)]
    pd.testing.assert_frame_equal(
        again[stable].reset_index(drop=True), of_known[stable].reset_index(drop=True), rtol=1e-3
    )
    outcomes = findings.name_outcomes(made)
    assert set(outcomes[made["candidate"] == "copies_30"]) == {findings.BY_GUARDS}
    assert findings.BY_GUARDS not in set(outcomes[made["candidate"] != "copies_30"])
    assert findings.describe_defaults(made)["fresh"].notna().all()  # the page finds each figure
    # What is done is not done again.
    rows = {path: path.stat().st_mtime_ns for path in (tmp_path / SMALLEST).glob("*.json")}
    capsys.readouterr()
    assert make_study(tmp_path, *arguments).equals(made)
    assert f"{len(rows)} candidates, of which {len(rows)} are done." in capsys.readouterr().out
    assert rows == {path: path.stat().st_mtime_ns for path in rows}


@on_some_days
def test_a_synthesizer_of_ones_own_stands_beside_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "synthesizers.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    own = tmp_path / "my.py"
    own.write_text(code, encoding="utf-8")
    before = results.TABLE.read_bytes()
    made = make_study(tmp_path / "work", "--tables", SMALLEST, "--own", str(own))
    assert list(made["candidate"]) == ["my"] * len(candidates.SEEDS)
    assert set(findings.name_outcomes(made)) == {findings.BY_GUARDS}  # it is a bootstrap
    printed = capsys.readouterr().out
    assert re.search(r"^my +3 ", printed, re.MULTILINE)
    assert re.search(r"^columns drawn apart ", printed, re.MULTILINE)
    assert results.TABLE.read_bytes() == before


@on_some_days
def test_a_synthesizer_that_fails_ends_nothing_and_runs_again_once_it_is_mended(tmp_path: Path) -> None:
    own = tmp_path / "broken.py"
    arguments = ["--tables", SMALLEST, "--own", str(own)]
    own.write_text("def synthesize(table, seed):\n    raise ValueError(seed)\n", encoding="utf-8")
    made = make_study(tmp_path / "work", *arguments)
    assert list(made["decision"]) == [results.FAILED] * len(candidates.SEEDS)
    own.write_text("def synthesize(table, seed):\n    return table\n", encoding="utf-8")
    made = make_study(tmp_path / "work", *arguments)
    assert set(findings.name_outcomes(made)) == {findings.BY_GUARDS}


def test_a_synthesizer_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    own = tmp_path / "slow.py"
    own.write_text("def synthesize(table, seed):\n    while True:\n        pass\n", encoding="utf-8")
    ground_truth = tmp_path / "ground_truth.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(ground_truth)
    job = {"candidate": "slow", "own": str(own), "ground_truth": str(ground_truth), "seed": 1, "seconds": 0.2}
    with generate.end_in_time(), pytest.raises(TimeoutError):
        generate.make({**job, "output": str(tmp_path / "made.parquet")})
    assert not (tmp_path / "made.parquet").exists()


def test_a_file_without_the_function_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "empty.py"
    own.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="has no function synthesize"):
        generate.read_own(own)


@pytest.mark.parametrize("lock", sorted(ENVIRONMENTS.glob("*.lock")), ids=lambda path: path.name)
def test_locks_have_names_versions_and_hashes_alone(lock: Path) -> None:
    line = re.compile(r"[\w.-]+==[\w.+]+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    lines = lock.read_text(encoding="utf-8").splitlines()
    assert not [text for text in lines if not line.fullmatch(text)]
