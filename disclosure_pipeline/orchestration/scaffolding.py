"""`dg scaffold defs disclosure_pipeline.DisclosureGate NAME`: a new gate, as `init` makes one."""

import re

import dagster as dg
from pydantic import BaseModel, Field

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.orchestration.gate_setup import set_up_gate, write_gate
from disclosure_pipeline.policy.gate_template import EXAMPLE, describe_table
from disclosure_pipeline.tables.sources import read_raw


class GateParams(BaseModel):
    """What a new gate is made from. Without a table it describes invented columns, to be replaced."""

    table: str | None = Field(None, description="A synthetic or invented table with the columns of GT")
    ground_truth: str | None = Field(None, description="Where the confidential table is")
    key: list[str] = Field([], description="A column that somebody may know; repeat for more")
    target: list[str] = Field([], description="A column to protect; without any all that are no keys")


class GateScaffolder(dg.Scaffolder[GateParams]):
    """Writes a gate's file, makes its folders and keys, and adds what the environment needs to `.env`."""

    @classmethod
    def get_scaffold_params(cls) -> type[GateParams]:
        """The parameters of the command."""
        return GateParams

    def scaffold(self, request: dg.ScaffoldRequest[GateParams]) -> None:
        """Write the gate into the folder that Dagster names. InputError where that cannot be done.

        Folders and keys are made for a project, whose `.env` names them; outside of one the file is all.
        """
        if request.scaffold_format != "yaml" or request.append:
            raise InputError("A gate is written as YAML, in a folder of its own.")
        name, params = _derive_name(request.target_path.name), request.params
        schema = EXAMPLE
        if params.table is not None:
            if not params.key:
                raise InputError("Say which columns somebody may know: --key COLUMN, once for each.")
            schema = describe_table(read_raw(params.table, "the table"), params.key, params.target)
        elif params.key or params.target:
            raise InputError("Keys and targets are columns of a table: give --table FILE beside them.")
        ground_truth = params.ground_truth or f"{name}/ground_truth.csv"
        project = request.project_root
        if project is not None and (project / "pyproject.toml").is_file():
            set_up_gate(name, request.target_path, project, ground_truth, schema)
        else:
            write_gate(name, request.target_path, ground_truth, schema)


def _derive_name(folder: str) -> str:
    """The name of a gate from that of its folder: small letters, digits and '_', a letter first."""
    name = re.sub(r"[^a-z0-9_]", "_", folder.casefold())[:50]
    return name if name[:1].isalpha() else f"g{name}"[:50]
