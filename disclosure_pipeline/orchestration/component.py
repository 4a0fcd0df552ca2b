"""`DisclosureGate`: a gate's YAML file as assets, checks, jobs, sensors and a schedule; and a new gate.

A new gate gets its file, folders and keys, the settings of Dagster, and the environment.
"""

import logging
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from pydantic import BaseModel, Field

from disclosure_pipeline.candidates.files import write_whole
from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.orchestration.arrivals import arrivals_sensor, ground_truth_schedule
from disclosure_pipeline.orchestration.decision_assets import candidates_asset, dossier_asset, release_asset
from disclosure_pipeline.orchestration.failures import failures_sensor
from disclosure_pipeline.orchestration.gate_file import (
    fill_in_templates,
    is_validating,
    parse_gate,
    require_as_written,
    require_prerequisites,
)
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.measuring_assets import (
    bins_asset,
    disclosure_assets,
    ground_truth_asset,
    synthetic_asset,
)
from disclosure_pipeline.policy.clauses import list_effective_clauses
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_reader import find_gate_file
from disclosure_pipeline.policy.gate_template import (
    EXAMPLE,
    Schema,
    describe_table,
    require_gate_name,
    write_definition,
)
from disclosure_pipeline.policy.waivers import Waiver, read_waivers
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY, KeyFiles, keygen
from disclosure_pipeline.tables.sources import read_raw

HOME = "DAGSTER_HOME"
_SETTINGS = Path(__file__).with_name("dagster.yaml")
_PROJECT = """\
[project]
name = "gates"
version = "0"

[tool.dg]
directory_type = "project"

[tool.dg.cli.telemetry]
enabled = false

[tool.dg.project]
root_module = "gates"
"""
_IGNORED = "# Nothing of these belongs into a repository.\n.env\nhome/\n"
_DEFINITIONS = '''\
"""Every gate in `defs/`, for Dagster."""

from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    """All gates; steps run in one process, where they take less than a second each."""
    gates = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(gates, dg.Definitions(executor=dg.in_process_executor))
'''


@dataclass(frozen=True)
class GateSetup:
    """A new gate: its file, DAGSTER_HOME, and the variables that everything needs."""

    file: Path
    home: Path
    incoming: Path
    environment: dict[str, str]
    environment_file: Path


def set_up_project(folder: Path) -> Path:
    """Make a folder a project of Dagster unless it is one; return the folder of its definitions.

    DisclosurePipelineError where it has a pyproject.toml that is none.
    """
    settings = folder / "pyproject.toml"
    if settings.exists():
        return _find_definitions(folder, settings.read_text(encoding="utf-8"))
    write_whole(settings, _PROJECT.encode())
    for name, text in {
        ".gitignore": _IGNORED,
        "gates/__init__.py": "",
        "gates/definitions.py": _DEFINITIONS,
    }.items():
        if not (folder / name).exists():
            write_whole(folder / name, text.encode())
    return folder / "gates" / "defs"


def _find_definitions(folder: Path, settings: str) -> Path:
    """Return the folder `defs` of a project, as its root module says."""
    lines = [line.partition("=") for line in settings.splitlines() if line.strip().startswith("root_module")]
    module = lines[0][2].strip().strip("\"'").replace(".", "/") if len(lines) == 1 else ""
    for root in (folder / "src", folder):
        if module and (root / module).is_dir():
            return root / module / "defs"
    raise DisclosurePipelineError(
        f"{folder / 'pyproject.toml'} is of no Dagster project with a root_module: give an empty folder, or "
        "one that `create-dagster project` made."
    )


def require_other_table(table: Path, ground_truth: str) -> None:
    """Raise InputError if the table that is to describe a gate is the confidential one."""
    if Path(ground_truth).exists() and table.samefile(Path(ground_truth)):
        raise InputError(
            f"{table} is the confidential table itself: give a synthetic or an invented table with the same "
            "columns."
        )


def set_up_gate(
    name: str, definition_folder: Path, project: Path, ground_truth: str, schema: Schema
) -> GateSetup:
    """Write the file of a gate, and make folders and keys where they are not there yet.

    They lie in DAGSTER_HOME where that is set, else in the folder `home` of the project; keys are made once
    for all gates of a home. Errors as `write_gate`.
    """
    file = write_gate(name, definition_folder, ground_truth, schema)
    home = Path(os.environ.get(HOME) or project / "home").resolve()
    for folder in ("incoming", "store", "releases"):
        (home / name / folder).mkdir(parents=True, exist_ok=True)
    keys = KeyFiles.in_folder(home / "keys")
    if not keys.public_key.exists():
        keygen(home / "keys")
    if not (home / "dagster.yaml").exists():
        write_whole(home / "dagster.yaml", _SETTINGS.read_bytes())
    environment = {HOME: str(home), SIGNING_KEY: str(keys.signing_key), SALT: str(keys.salt)}
    environment_file = project / ".env"
    _add_variables(environment_file, environment)
    return GateSetup(file, home, home / name / "incoming", environment, environment_file)


def write_gate(name: str, definition_folder: Path, ground_truth: str, schema: Schema) -> Path:
    """Write the file of a gate alone; return its path.

    DefinitionError, and nothing is written, where it cannot be loaded; DisclosurePipelineError where there is
    one already.
    """
    require_gate_name(name)
    file = definition_folder / "defs.yaml"
    if file.exists():
        raise DisclosurePipelineError(f"{file} is there already: give another name, or remove it.")
    text = write_definition(name, ground_truth, schema)
    parse_gate(text, file)
    write_whole(file, text.encode())
    return file


def _add_variables(file: Path, environment: dict[str, str]) -> None:
    """Add what a file of variables lacks; what it has stays as it is."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    present = {line.partition("=")[0].removeprefix("export ").strip() for line in text.splitlines()}
    lines = [f"{name}={shlex.quote(value)}" for name, value in environment.items() if name not in present]
    if lines:
        write_whole(file, "\n".join([*text.splitlines(), *lines, ""]).encode())


class GateParams(BaseModel):
    """The parameters of a new gate. Without a table it describes invented columns, to be replaced."""

    table: str | None = Field(None, description="A synthetic or invented table with the columns of GT")
    ground_truth: str | None = Field(None, description="Where the confidential table is")
    key: list[str] = Field([], description="A column that somebody may know; repeat for more")
    target: list[str] = Field([], description="A column to protect; without any all that are no keys")


class GateScaffolder(dg.Scaffolder[GateParams]):
    """Writes a gate's file, makes its folders and keys, and adds what the environment needs to `.env`."""

    @classmethod
    def get_scaffold_params(cls) -> type[GateParams]:
        """Return the parameters of the command."""
        return GateParams

    def scaffold(self, request: dg.ScaffoldRequest[GateParams]) -> None:
        """Write the gate into the folder that Dagster names. InputError where that cannot be done.

        Folders and keys are made for a project, whose `.env` names them; outside of one the file is all.
        """
        if request.scaffold_format != "yaml" or request.append:
            raise InputError("A gate is written as YAML, in a folder of its own.")
        folder_name = re.sub(r"[^a-z0-9_]", "_", request.target_path.name.casefold())
        name, params = (folder_name if folder_name[:1].isalpha() else f"g{folder_name}")[:50], request.params
        schema = EXAMPLE
        if params.table is not None:
            if not params.key:
                raise InputError("Say which columns somebody may know: --key COLUMN, once for each.")
            if params.ground_truth is not None:
                require_other_table(Path(params.table), params.ground_truth)
            schema = describe_table(read_raw(params.table, "the table"), params.key, params.target)
        elif params.key or params.target:
            raise InputError("Keys and targets are columns of a table: give --table FILE beside them.")
        ground_truth = params.ground_truth or f"{name}/ground_truth.csv"
        project = request.project_root
        if project is not None and (project / "pyproject.toml").is_file():
            set_up_gate(name, request.target_path, project, ground_truth, schema)
        else:
            write_gate(name, request.target_path, ground_truth, schema)


_LOG = logging.getLogger(__name__)


@dg.scaffold_with(GateScaffolder)
class DisclosureGate(dg.Component, dg.Resolvable):
    """Decides for one data set, under one policy, which synthetic versions of it may be released.

    The attributes are those of `Gate`; paths may be templates such as "{{ env.GROUND_TRUTH }}". The policy
    is part of the file, never of a run: nothing of it can be changed in the launchpad.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what tools show of the component."""
        return dg.ComponentTypeSpec(
            description="A gate that measures what synthetic tables disclose, and releases or refuses them",
            tags=["statistical disclosure control", "synthetic data"],
        )

    @classmethod
    def model(cls) -> type[BaseModel]:
        """The file is read as a `Gate`: unknown and contradictory attributes are refused with their place."""
        return Gate

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> "DisclosureGate":
        """Fill in templates in the paths; nothing else is a template."""
        return cls(fill_in_templates(Gate.model_validate(model.model_dump()), context))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the gate's definitions, if its file, read strictly, says what Dagster took from it."""
        file = find_gate_file(context.path)
        if file is not None:
            key = context.component_path.instance_key
            position = key if isinstance(key, int) else 0
            require_as_written(self.gate, file, position)
            if is_validating():
                require_prerequisites(self.gate, file, position)
        return build_definitions(self.gate, read_waivers(context.path / "waivers"))


def build_definitions(gate: Gate, waivers: Sequence[Waiver] = ()) -> dg.Definitions:
    """Return the assets and checks of a gate; a job for GT and one for a candidate; sensors and schedule."""
    for clause in list_effective_clauses(gate.clauses()):
        _LOG.info("Gate %s: %s", gate.name, clause)
    graph = GateGraph(gate, tuple(waivers))
    assets = [
        ground_truth_asset(graph),
        synthetic_asset(graph),
        bins_asset(graph),
        disclosure_assets(graph),
        dossier_asset(graph),
        release_asset(graph),
        candidates_asset(graph),
    ]
    ground_truth_job = dg.define_asset_job(
        f"{gate.name}_ground_truth",
        selection=dg.AssetSelection.assets(graph.key("ground_truth")),
        description="Checks and records the ground truth",
        executor_def=dg.in_process_executor,
    )
    gate_job = dg.define_asset_job(
        f"{gate.name}_gate",
        # Each run lists the candidates at its end, also where it refuses.
        selection=dg.AssetSelection.groups(gate.name)
        - dg.AssetSelection.assets(graph.key("ground_truth"), graph.key("candidates")),
        partitions_def=graph.candidates,
        description="Measures one candidate and releases or refuses it",
        executor_def=dg.in_process_executor,
    )
    return dg.Definitions(
        assets=assets,
        jobs=[ground_truth_job, gate_job],
        sensors=[
            arrivals_sensor(gate, graph.candidates, ground_truth_job, gate_job),
            failures_sensor(
                gate,
                [check.key for asset in assets for check in asset.check_specs],
                [ground_truth_job, gate_job],
            ),
        ],
        schedules=[ground_truth_schedule(gate, graph.candidates, gate_job)],
    )
