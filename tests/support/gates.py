"""A small gate with its tables, candidates and runs, for the tests of all that lies around the statistics.

The ground truth holds values that are its own and easy to find again (`CANARIES`): wherever one turns up
outside the ground truth and the candidates, it leaked.
"""

import copy
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn
from unittest.mock import patch

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result
from dagster.components.testing import create_defs_folder_sandbox

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import arrival
from disclosure_pipeline.candidates.evaluation import Evaluation, evaluate
from disclosure_pipeline.candidates.evaluation_records import SKETCHES
from disclosure_pipeline.candidates.measuring import measure_tables
from disclosure_pipeline.candidates.snapshot import Snapshot, take_snapshot
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.cli.main import main
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import read_key_file
from disclosure_pipeline.policy.verdict import Judgement, judge
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY, keygen
from disclosure_pipeline.release.predicate import Predicate
from disclosure_pipeline.release.verifying import verify
from disclosure_pipeline.tables.alignment import as_frames
from support import event_stores

GATE = "small"
HONEST, COPY = "honest", "copy"
MARKER = "_SUCCESS"

# A rare level of a target, and values of a grouped column: one record each, and no quantile. They are so
# long that no clock or digest shows one by chance.
CANARIES = ("Xylophonist-4711", "902104357", "911779846")
# An amount of other people's, and what of it stands in however it is written, as 8.12340917E8 too.
AMOUNT, CANARY_AMOUNT = 812340917, "12340917"

_DEFINITION: dict[str, Any] = {
    "name": GATE,
    "ground_truth": "ground_truth.csv",
    "incoming": "incoming",
    "store": "store",
    "releases": "releases",
    "trusted_keys": "keys/public-key.pem",
    "columns": {
        "sex": {"type": "category", "levels": ["f", "m"]},
        "age": {"type": "integer", "range": [20, 99]},
        "work": {"type": "category"},
        "income": {"type": "integer", "special_values": [-8], "groups": 5},
    },
    "keys": ["sex", "age"],
    "targets": ["work", "income"],
    "policy": {
        "repU": {"at_most": 8, "at_most_share": 0.6},
        "DiSCO": {"at_most": 12, "targets": {"income": 10}},
    },
    "power_seconds": 0,
    "remedies": False,
}


def definition(**changes: Any) -> dict[str, Any]:
    """The attributes of the small gate, some of them replaced (None: left out)."""
    attributes = copy.deepcopy(_DEFINITION) | changes
    if isinstance(attributes.get("policy"), dict):
        # So few people hide copies, which most tests are not about.
        attributes["policy"] = attributes["policy"] | {
            "detection_limit": attributes["policy"].get("detection_limit", 60)
        }
    return {name: value for name, value in attributes.items() if value is not None}


def ground_truth(records: int = 300) -> pd.DataFrame:
    """People whose keys often single them out; it ends with the two of the canaries."""
    random = np.random.default_rng(11)
    frame = pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], records),
            "age": 20 + np.minimum(random.exponential(25, records).astype(int), 70),
            "work": random.choice(["office", "field", "none"], records),
            "income": np.where(random.random(records) < 0.1, -8, random.integers(0, 1000, records)),
        }
    )
    frame.loc[records - 2, ["work", "income"]] = [CANARIES[0], int(CANARIES[1])]
    frame.loc[records - 1, "income"] = int(CANARIES[2])
    return frame


def evaluate_copy(folders: GateFolders) -> Evaluation:
    """Record the ground truth of the small gate, however it is written, and evaluate a plain copy of it."""
    folder = folders.incoming / "copy"
    folder.mkdir(parents=True)
    ground_truth().to_csv(folder / "synthetic.csv", index=False)
    (folder / MARKER).touch()
    recorded = arrival.record_ground_truth(folders)
    assert (recorded.records, recorded.violations) == (300, ())
    assert arrival.receive(folders, "copy").violations == ()
    return evaluate(folders, "copy", datetime.now(timezone.utc))


def honest(seed: int = 1) -> pd.DataFrame:
    """A synthesis in which the columns are drawn independently: the small gate approves it."""
    random = np.random.default_rng(seed)
    source = ground_truth().iloc[:-2]
    return pd.DataFrame({name: random.choice(source[name].to_numpy(), len(source)) for name in source})


def last_year(records: int) -> pd.DataFrame:
    """Other people than those of the ground truth, one of whom has an amount of their own."""
    random = np.random.default_rng(5)
    others = pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], records),
            "age": random.choice(ground_truth()["age"], records),
            "work": random.choice(["office", "field", "none"], records),
            "income": random.integers(0, 1000, records),
        }
    )
    others.loc[0, "income"] = AMOUNT
    return others


def gate(**changes: Any) -> Gate:
    """Return the small gate, some of its attributes replaced (None: left out)."""
    return Gate.model_validate(definition(**changes))


def resolve(attributes: Mapping[str, Any]) -> dp.DisclosureGate:
    with quiet():
        return dp.DisclosureGate.resolve_from_yaml(yaml.safe_dump(dict(attributes), sort_keys=False))


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder for an instance on disk: in memory where that can be, for its databases wait for the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def with_keys(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Make a home the DAGSTER_HOME, with a key that the small gate trusts to sign its releases."""
    patch.setenv("DAGSTER_HOME", str(home))
    folder = home / "keys"
    if not folder.is_dir():
        keygen(folder)
    patch.setenv(SIGNING_KEY, str(folder / "signing-key.pem"))
    patch.setenv(SALT, str(folder / "salt"))


def stated(folder: Path, public_key: Path | None = None) -> Predicate:
    """Read the statement of a published folder, verified with the key of its home."""
    key = public_key or folder.parents[2] / "keys" / "public-key.pem"
    return verify(folder, read_key_file(key)).predicate


def published_records(folder: Path) -> list[tuple[str, ...]]:
    """The records of the one table in a published folder, as text and sorted: their order tells nothing."""
    return sorted_records(pd.read_parquet(folder / "synthetic.parquet"))


def sorted_records(table: pd.DataFrame) -> list[tuple[str, ...]]:
    in_order = table[sorted(map(str, table.columns))]
    filled = in_order.astype(object).where(in_order.notna(), "")
    return sorted(tuple(map(str, record)) for record in filled.itertuples(index=False))


@contextmanager
def instance_on_disk(home: Path) -> Iterator[dg.DagsterInstance]:
    event_stores.keep_engines()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with event_stores.kept_connections(), dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


def load(attributes: Mapping[str, Any], waivers: Mapping[str, str] | None = None) -> dg.Definitions:
    """The definitions of a gate, loaded from a defs folder as Dagster does, with waivers next to its file."""
    event_stores.keep_engines()
    with quiet(), create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(dp.DisclosureGate, defs_yaml_contents=_component(attributes))
        for name, text in (waivers or {}).items():
            (path / "waivers").mkdir(exist_ok=True)
            (path / "waivers" / name).write_text(text, encoding="utf-8")
        with sandbox.load_component_and_build_defs(path) as (component, defs):
            assert isinstance(component, dp.DisclosureGate)
            return defs


def _component(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "disclosure_pipeline.DisclosureGate", "attributes": dict(attributes)}


def write_definition(folder: Path, attributes: Mapping[str, Any]) -> Path:
    """Write the file of a gate into a folder, whose path is returned."""
    folder.mkdir(exist_ok=True)
    (folder / "defs.yaml").write_text(yaml.safe_dump(_component(attributes)))
    return folder


def write_gate(home: "Home", **changes: Any) -> Path:
    """Write the file of the small gate, some attributes replaced, into a folder of a home; return that."""
    return write_definition(home.path / "definition", definition(**changes))


def run_command(*arguments: object, answers: str = "") -> Result:
    # Before 8.2, Click mixes stderr into stdout unless told not to.
    apart: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
    with patch.dict(os.environ):  # the demo sets the home of its process
        return CliRunner(**apart).invoke(main, [str(argument) for argument in arguments], input=answers)


@contextmanager
def home_in_memory(path: Path, defs: dg.Definitions, patch: pytest.MonkeyPatch) -> Iterator["Home"]:
    with_keys(path, patch)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Home(path, defs, instance)


@contextmanager
def home_on_disk(path: Path, defs: dg.Definitions, patch: pytest.MonkeyPatch) -> Iterator["Home"]:
    with_keys(path, patch)
    with instance_on_disk(path) as instance:
        yield Home(path, defs, instance)


@contextmanager
def copied_home(template: Path, defs: dg.Definitions, patch: pytest.MonkeyPatch) -> Iterator["Home"]:
    """A copy of a home on disk, with all that its instance knows of the runs."""
    with quick_folder() as folder:
        path = shutil.copytree(template, folder / "home")  # what surrounds it is nobody else's
        with home_on_disk(path, defs, patch) as home:
            yield home


@dataclass(frozen=True)
class Home:
    """A DAGSTER_HOME with a gate in it. `defs` can be of another definition of the same gate."""

    path: Path
    defs: dg.Definitions
    instance: dg.DagsterInstance

    @property
    def store(self) -> Path:
        return self.path / "store" / GATE

    def record(self, candidate: str, name: str) -> Path:
        """A record of a candidate: snapshot.json, figures.json, dossier.json or dossier.md."""
        return self.store / "candidates" / candidate / name

    def dossier(self, candidate: str) -> Any:
        return read_json(self.record(candidate, "dossier.json"))

    def outcomes(self, candidate: str) -> dict[str, str]:
        """Return the outcome of each clause of the dossier, by its name."""
        return {clause["name"]: clause["outcome"] for clause in self.dossier(candidate)["clauses"]}

    def stored(self, candidate: str) -> Path:
        (file,) = read_json(self.record(candidate, "snapshot.json"))["files"]
        return self.store / "objects" / f"{file['sha256']}.csv"

    def published(self, candidate: str) -> Path:
        return self.path / "releases" / GATE / candidate

    def nothing_published(self) -> bool:
        """Return whether no file is under releases or staged for them, not even a partial one."""
        folders = [self.path / "releases", self.path / "releases-staging"]
        return not any(path.is_file() for folder in folders for path in folder.rglob("*"))

    def deliver(
        self, candidate: str, tables: Mapping[str, pd.DataFrame | bytes], *, complete: bool = True
    ) -> Path:
        folder = self.path / "incoming" / candidate
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            content = table if isinstance(table, bytes) else table.to_csv(index=False).encode()
            (folder / name).write_bytes(content)
        if complete:
            (folder / MARKER).touch()
        return folder

    def write_ground_truth(self, table: pd.DataFrame | bytes) -> Path:
        content = table if isinstance(table, bytes) else table.to_csv(index=False).encode()
        path = self.path / "ground_truth.csv"
        path.write_bytes(content)
        return path

    def prepare(self, candidates: Mapping[str, pd.DataFrame | bytes] = MappingProxyType({})) -> None:
        self.write_ground_truth(ground_truth())
        for candidate, table in candidates.items():
            self.deliver(candidate, {"synthetic.csv": table})
        assert self.run_ground_truth().success

    def tick(self, cursor: str | None = None) -> dg.SensorResult:
        """Return what the sensor of arrivals asks for: nothing where it skips."""
        sensor = self.defs.resolve_sensor_def(f"{GATE}_arrivals")
        result = sensor(dg.build_sensor_context(instance=self.instance, cursor=cursor))
        if isinstance(result, dg.SkipReason):
            return dg.SensorResult(skip_reason=result, cursor=cursor)
        assert isinstance(result, dg.SensorResult)
        return result

    def run_ground_truth(self) -> dg.ExecuteInProcessResult:
        return self._run(f"{GATE}_ground_truth", None)

    def run_gate(self, candidate: str) -> dg.ExecuteInProcessResult:
        self.instance.add_dynamic_partitions(f"{GATE}_candidates", [candidate])
        return self._run(f"{GATE}_gate", candidate)

    def materialize(self, asset: str, candidate: str) -> dg.ExecuteInProcessResult:
        """Run the step of one asset of the gate alone."""
        both = ("identity_risk", "attribute_risk")
        return self._materialize(both if asset in both else [asset], candidate)

    def decide(self, candidate: str) -> dg.ExecuteInProcessResult:
        """Run everything of the gate up to the dossier, but not the release."""
        steps = ("synthetic", "bins", "identity_risk", "attribute_risk", "dossier")
        return self._materialize(steps, candidate)

    def _materialize(self, assets: Sequence[str], candidate: str) -> dg.ExecuteInProcessResult:
        self.instance.add_dynamic_partitions(f"{GATE}_candidates", [candidate])
        keys = (dg.AssetKey([GATE, name]) for name in assets)
        return self.materialize_all(dg.AssetSelection.assets(*keys), candidate)

    def materialize_all(
        self, selection: dg.AssetSelection, candidate: str | None = None
    ) -> dg.ExecuteInProcessResult:
        """Run the steps of any assets of the definitions."""
        with quiet():
            return dg.materialize(
                list(self.defs.resolve_asset_graph().assets_defs),
                selection=selection,
                partition_key=candidate,
                instance=self.instance,
                raise_on_error=False,
                run_config=SILENT,
            )

    def _run(self, job: str, candidate: str | None) -> dg.ExecuteInProcessResult:
        with quiet():
            return self.defs.resolve_job_def(job).execute_in_process(
                instance=self.instance, partition_key=candidate, raise_on_error=False, run_config=SILENT
            )


SILENT = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def finish(home: Home) -> None:
    """Record the ground truth and run the gate over an honest candidate and over a copy of GT."""
    home.prepare({HONEST: honest(), COPY: ground_truth()})
    assert home.run_gate(HONEST).success
    assert not home.run_gate(COPY).success


def checks(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """Every check that a run evaluated, by "asset:check"."""
    return {
        f"{check.asset_key.path[-1]}:{check.check_name}": check
        for check in result.get_asset_check_evaluations()
    }


def materialized(result: dg.ExecuteInProcessResult) -> set[str]:
    return {
        event.asset_key.path[-1] for event in result.get_asset_materialization_events() if event.asset_key
    }


def metadata_of(result: dg.ExecuteInProcessResult, asset: str) -> list[dict[str, Any]]:
    """The metadata of each materialisation of an asset."""
    return [
        dict(event.materialization.metadata)
        for event in result.get_asset_materialization_events()
        if event.asset_key and event.asset_key.path[-1] == asset
    ]


def rows(table: dg.MetadataValue) -> list[dict[str, Any]]:
    assert isinstance(table, dg.TableMetadataValue)
    return [dict(record.data) for record in table.records]


def failures(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """Step -> what its failure says."""
    return {
        str(event.step_key): str(event.step_failure_data.user_failure_data.description)
        for event in result.all_events
        if event.is_step_failure and event.step_failure_data.user_failure_data
    }


def everything_logged(instance: dg.DagsterInstance) -> str:
    records = [entry for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
    return "\n".join(f"{dg.serialize_value(entry)}\n{entry}" for entry in records)


def files_with(folder: Path, texts: Sequence[str], leaving_out: Sequence[str]) -> dict[str, list[str]]:
    """Which files under a folder contain one of the texts; `leaving_out` are first parts of their paths."""
    hits_by_file = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).parts[0] not in leaving_out:
            content = path.read_bytes()
            hits = [text for text in texts if text.encode() in content]
            if hits:
                hits_by_file[str(path.relative_to(folder))] = hits
    return hits_by_file


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return the bytes of all that lies in a folder, by its path; of folders None."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def take(folder: Path, root: Path) -> Snapshot:
    return take_snapshot(folder, folder.name, Store(root))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def edit_json(path: Path, change: Callable[[Any], object]) -> int:
    content = read_json(path)
    change(content)
    return path.write_text(json.dumps(content), encoding="utf-8")


def crash(*_: Any, **__: Any) -> NoReturn:
    """Stand for a function that breaks: its errors tell canaries, also where they are in a local variable."""
    local = CANARIES[1]
    try:
        raise KeyError(local)
    except KeyError as error:
        raise ValueError(f"could not convert {CANARIES[0]!r}") from error


def spoil(column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what writes a value into the first five records of a column."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        table = table.astype({column: object})
        table.loc[table.index[:5], column] = value
        return table

    return change


def share_key(store: Path) -> Path:
    """Give a store the key that others in the tests have, so that all draw the same people."""
    (store / SKETCHES).mkdir(parents=True, exist_ok=True)
    (store / SKETCHES / "sketch_key").write_bytes(bytes(32))
    (store / SKETCHES / "sketch_key").chmod(0o600)
    return store


def run_demo(home: Path) -> str:
    event_stores.keep_engines()
    share_key(home / "demo" / "store" / "survey")
    (home / "demo" / ".made-by-the-demo").touch()
    with quiet():
        ran = run_command("demo", "--home", home)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def measured(gate: Gate, ground_truth: pd.DataFrame, syntheses: Sequence[pd.DataFrame]) -> Disclosure:
    opened = FramesInMemory(as_frames(ground_truth, syntheses), "memory")
    return measure_tables(gate, opened, "memory")


def judged(gate: Gate, result: Disclosure) -> dict[str, Judgement]:
    return {judgement.clause.name: judgement for judgement in judge(gate.clauses(), result)}
