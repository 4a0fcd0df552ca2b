"""Run the demo: make example data, and let a real gate judge an honest and a leaky candidate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from disclosure_pipeline.candidates.store import MARKER
from disclosure_pipeline.demo.population import REGION, population
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evidence.dossier import describe_broken_clauses
from disclosure_pipeline.evidence.page.rendering import PAGE
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY, KeyFiles, keygen
from disclosure_pipeline.runtime.files import read_json, write_whole

if TYPE_CHECKING:
    import dagster as dg

GATE = "survey"
_DEFINITION = Path(__file__).parents[1] / "defs" / GATE / "defs.yaml"
_MARKER = Path("demo", ".made-by-the-demo")
HONEST, LEAKY = "conditional-model", "memorising-model"
# A second, small gate with weights and incomes: the demo writes its data but does not run it.
SALARIES, RAISED = "salaries", "raising-model"
_SAMPLE, _LARGE_REGIONS = 1500, 4


@dataclass(frozen=True)
class Verdict:
    """The gate's decision on one candidate, its reasons and its page; `folder` is its release, if any."""

    candidate: str
    decision: str
    reasons: tuple[str, ...]
    page: Path
    folder: Path | None


def run_demo(home: Path, records: int, seed: int, on_step: Callable[[str], object]) -> list[Verdict]:
    """Make the example data in `home`, and run the gate of this package on both candidates.

    The demo can be run again: it makes the same data, and verifies what is already published. `on_step` is
    called with the name of each step. Raise DisclosurePipelineError if `home` is not the demo's own folder,
    or a run ends before its verdict.
    """
    _require_own_folder(home)
    os.environ["DAGSTER_HOME"] = str(home)
    configuration = home / "dagster.yaml"
    if not configuration.exists():
        write_whole(configuration, b"telemetry:\n  enabled: false\n")

    import dagster as dg

    from disclosure_pipeline.orchestration.component import build_definitions, run_job
    from disclosure_pipeline.orchestration.gate_file import load_gate

    gate = build_definitions(load_gate(_DEFINITION))
    with dg.DagsterInstance.get() as instance:
        _require_own_instance(home, instance)
        make_data(home / "demo", records, seed)
        load_keys(home / "demo" / "keys")
        on_step("Checking the ground truth")
        ground_truth_run = run_job(gate, f"{GATE}_ground_truth", instance)
        _require_verdict(ground_truth_run, ground_truth_run.success)
        for candidate in (HONEST, LEAKY):
            on_step(f"Judging {candidate}")
            instance.add_dynamic_partitions(f"{GATE}_candidates", [candidate])
            gate_run = run_job(gate, f"{GATE}_gate", instance, candidate)
            _require_verdict(gate_run, _has_made_dossier(gate_run))
    return [read_verdict(home / "demo", candidate) for candidate in (HONEST, LEAKY)]


def _require_own_folder(home: Path) -> None:
    if (home / _MARKER).is_file():
        return
    others = sorted(path.name for path in home.iterdir()) if home.is_dir() else []
    if (home / "demo").exists() or (others and "dagster.yaml" not in others):
        raise DisclosurePipelineError(
            f"{home} has {others[0]!r}, which the demo did not make: choose a new folder with --home."
        )


def _require_own_instance(home: Path, instance: dg.DagsterInstance) -> None:
    if (home / _MARKER).is_file():
        return
    if any(key.path[0] == GATE for key in instance.all_asset_keys()):
        raise DisclosurePipelineError(
            f"The Dagster instance in {home} has another gate {GATE}: choose a new folder with --home."
        )
    write_whole(home / _MARKER, b"This folder was made by the demo, which writes into it again.\n")


def load_keys(folder: Path) -> None:
    """Set the environment to sign with the demo's own keys, generating them on first use."""
    if not folder.exists():
        keygen(folder)
    files = KeyFiles.in_folder(folder)
    os.environ |= {SIGNING_KEY: str(files.signing_key), SALT: str(files.salt)}


def _has_made_dossier(run: dg.ExecuteInProcessResult) -> bool:
    # An existing dossier may be of an earlier run.
    assets = [event.asset_key for event in run.get_asset_materialization_events()]
    return any(key is not None and key.path[-1] == "dossier" for key in assets)


def _require_verdict(run: dg.ExecuteInProcessResult, reached: bool) -> None:
    if not reached:
        failed = ", ".join(sorted(run.get_failed_step_keys()))
        raise DisclosurePipelineError(f"The run failed in {failed}, before the verdict.")


def make_data(folder: Path, records: int, seed: int) -> None:
    """Write each gate's ground truth and two complete candidates as CSV files, leaving equal files alone."""
    ground_truth = population(records, seed)
    tables: Mapping[str, pd.DataFrame] = {
        "ground_truth.csv": ground_truth,
        # With another seed: otherwise the leaky table would repeat records of the published one.
        f"incoming/{HONEST}/synthetic.csv": synthesise(ground_truth, seed=2),
        f"incoming/{LEAKY}/synthetic.csv": leak(synthesise(ground_truth), ground_truth),
        **_make_salaries(population(_SAMPLE, seed)),
    }
    for name, table in tables.items():
        content = table.to_csv(index=False).encode()
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            write_whole(path, content)
    for incoming in (path.parent for path in folder.glob("**/incoming/*/synthetic.csv")):
        marker = incoming / MARKER
        if not marker.exists():
            marker.touch()


def _make_salaries(sample: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return a sample with weights, an honest synthesis, and one with 2 in 5 people and 3 % more income."""
    columns = ["sex", "age", "region", "household", "income"]
    honest, other = (synthesise(sample, seed)[columns] for seed in (2, 0))
    is_large = sample["region"].isin(REGION[:_LARGE_REGIONS])
    copied = sample[columns].head(2 * len(sample) // 5)
    raised = copied["income"].where(
        copied["income"] < 0, (copied["income"] * 0.103).round().astype("Int64") * 10
    )
    copied = copied.assign(income=raised)
    return {
        f"{SALARIES}/ground_truth.csv": sample[columns].assign(weight=is_large.map({True: 40, False: 10})),
        f"{SALARIES}/incoming/{HONEST}/synthetic.csv": honest,
        f"{SALARIES}/incoming/{RAISED}/synthetic.csv": pd.concat([copied, other.iloc[len(copied) :]]),
    }


def read_verdict(folder: Path, candidate: str) -> Verdict:
    """Return the verdict in the dossier of a candidate, and its release."""
    evidence = folder / "store" / GATE / "candidates" / candidate
    dossier = read_json(evidence / "dossier.json", "the demo")
    published = folder / "releases" / GATE / candidate
    return Verdict(
        candidate=candidate,
        decision=dossier["decision"],
        reasons=tuple(describe_broken_clauses(dossier, dossier["smallest_count"])),
        page=evidence / PAGE,
        folder=published if published.is_dir() else None,
    )
