"""From a frame to a verdict with SDV, MOSTLY AI, scikit-learn and synthpop, where they are installed."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gates import run_command
from support.paths import DOCS
from support.processes import run_program
from support.sampling import on_some_days, only_in_ci
from support.services import absent
from synthesizers import study

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.orchestration.gate_file import HOME
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY

pytestmark = on_some_days

HOW_TO = DOCS / "how_to"
TITLE = "# How to judge tables of SDV, MOSTLY AI and scikit-learn"


def code(page: str, heading: str) -> str:
    section = (HOW_TO / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    found = re.search(r"^```(?:python|r)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found, f"no code below {heading}"
    return found[1]


def find_sdv() -> str:
    """Return the Python that has SDV: its environment is made, if its packages are there."""
    place = study.Place(study.WORK)
    list(study.install(["sdv"], place))
    if not (place.environments / "sdv" / "ready").exists():
        pytest.skip("the packages of SDV are not there")
    return place.python("sdv")


def find_mostly_ai() -> str:
    pytest.importorskip("mostlyai.sdk", reason="needs mostlyai[local], which takes 3 GB")
    return sys.executable


def find_r(package: str) -> str | None:
    rscript = shutil.which("Rscript")
    script = f"quit(status = !requireNamespace('{package}', quietly = TRUE))"
    return None if rscript is None or run_program([rscript, "-e", script]).returncode else rscript


PROGRAMS: dict[str, Callable[[], str]] = {
    "sdv": find_sdv,
    "mostly": find_mostly_ai,
    "candidate": lambda: find_r("synthpop") or pytest.skip("needs R with synthpop"),
    "trees": lambda: sys.executable,
}


@pytest.mark.parametrize(
    ("page", "heading", "candidate"),
    [
        pytest.param(
            *("common_synthesizers.md", "## SDV", "sdv"),
            marks=only_in_ci("makes an environment with SDV", days=3),
        ),
        ("common_synthesizers.md", "## MOSTLY AI", "mostly"),
        ("common_synthesizers.md", "## A model of scikit-learn", "trees"),
        ("from_r.md", "# How to judge a synthesis from R", "candidate"),
    ],
)
def test_from_a_frame_to_a_verdict(
    page: str, heading: str, candidate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAMS[candidate]()
    for name in (HOME, SIGNING_KEY, SALT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    exec(compile(code("common_synthesizers.md", TITLE), "page", "exec"), {})
    option = "-e" if candidate == "candidate" else "-c"
    run = run_program([program, option, code(page, heading)], cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    text = (HOW_TO / page).read_text(encoding="utf-8")
    commands = re.findall(r"^\$ disclosure-pipeline (.*)$", text, re.MULTILINE)
    init = next(command for command in commands if command.startswith("init "))
    made = run_command(*init.split())
    assert made.exit_code == 0, made.output
    for line in (tmp_path / "project" / ".env").read_text().splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    evaluate = next(command for command in commands if command.endswith(f" {candidate}"))
    judged = run_command(*evaluate.split())
    # With another release of a synthesizer, chance may draw a table that is refused; never one unreadable.
    assert judged.exit_code in {0, 1}, judged.output
    assert re.match(rf"{candidate}: (approved|refused)\n  8 of 8 columns are measured", judged.stdout)


def test_tables_and_figures_pass_between_r_and_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What syn() would return is written by R, missing values too, and measured from R as from Python."""
    rscript = find_r("reticulate") or absent("R's package reticulate (r-cran-reticulate)")
    if sys.prefix == sys.base_prefix:
        pytest.skip("needs a virtual environment")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name, seed in (("survey", 1), ("one", 2), ("two", 3)):
        population(600, seed).to_csv(f"{name}.csv", index=False)
    assert "NA" not in Path("one.csv").read_text() and population(600, 2).isna().any().any()
    synthesised = 's <- list(m = 2, syn = lapply(c("one.csv", "two.csv"), read.csv, na.strings = ""))\n'
    written = code("from_r.md", "# How to judge a synthesis from R").partition("\ntables <- ")
    measured = code("from_r.md", "## Figures in R")
    run = run_program([rscript, "-e", synthesised + "".join(written[1:]) + measured], cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    result = dp.disclosure(
        "survey.csv", ["one.csv", "two.csv"], ["sex", "age"], "income", groups={"income": 20}
    )
    assert result.headline in run.stdout
    lines = [line.split() for line in run.stdout.splitlines()]
    shown = [line for line in lines if line[1:2] == ["income"]]
    for row, figures in zip(shown, result.attribute.to_dict("records"), strict=True):
        names = ["DiSCO", "DiSCO_others", "DiSCO_beyond"]
        assert [float(value) for value in row[2:]] == pytest.approx(
            [figures[name] for name in names], rel=1e-4
        )
    assert (tmp_path / "report.html").is_file()
