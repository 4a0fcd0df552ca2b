"""A gate's file: read strictly, with the place of each problem, and written for a new gate.

A new gate also gets folders, keys, the settings of Dagster and an environment file.
"""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_template import (
    Schema,
    find_gate_file,
    is_gate,
    parse_gate_file,
    read_gate,
    require_gate_name,
    validate_gate,
    write_definition,
)
from disclosure_pipeline.policy.reviewed_files import (
    DefinitionError,
    Document,
    Waiver,
    read_documents,
    read_file,
)
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY, KeyFiles, keygen
from disclosure_pipeline.release.readiness import find_missing
from disclosure_pipeline.runtime.files import make_private, write_whole
from disclosure_pipeline.tables.files import is_remote, require_usable_path
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, LinkedSource, Source, as_source

if TYPE_CHECKING:
    import dagster as dg


def folders_of(gate: Gate, waivers: Sequence[Waiver] = ()) -> GateFolders:
    """Return the folders of a gate; relative paths start at DAGSTER_HOME."""
    return GateFolders(
        gate=gate,
        ground_truth=_source(gate.ground_truth)
        if gate.events is None
        else LinkedSource(_source(gate.ground_truth), _source(gate.events.ground_truth)),
        incoming=_resolve(gate.incoming),
        store=Store(_resolve(gate.store) / gate.name),
        releases=_resolve(gate.releases) / gate.name,
        waivers=tuple(waivers),
        confidential={name: _source(declared) for name, declared in gate.confidential.items()},
        trusted_keys=_resolve(gate.trusted_keys) if isinstance(gate.trusted_keys, str) else gate.trusted_keys,
    )


def _source(declared: str | Source) -> Source:
    """Return the source of a confidential table; relative local paths start at DAGSTER_HOME."""
    source = as_source(declared)
    if isinstance(source, FileSource) and not is_remote(source.path) and not source.path.startswith("${"):
        return source.model_copy(update={"path": str(_resolve(source.path))})
    if isinstance(source, DuckDBSource) and not source.duckdb.startswith("${"):
        return source.model_copy(update={"duckdb": str(_resolve(source.duckdb))})
    return source


def _resolve(path: str) -> Path:
    if Path(path).is_absolute():
        return Path(path)
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        raise DisclosurePipelineError(
            f"The path {path!r} is relative to DAGSTER_HOME, which is not set: set it or give an absolute "
            "path."
        )
    if not Path(home).is_absolute():  # links in the store would lead astray
        raise DisclosurePipelineError(f"DAGSTER_HOME is {home}: Dagster needs an absolute path.")
    return Path(home) / path


_VARIABLE = re.compile(r"env\.([A-Za-z_][A-Za-z0-9_]*)")
_PATHS = ("ground_truth", "incoming", "store", "releases", "trusted_keys")


def fill_in_templates(gate: Gate, context: dg.ResolutionContext) -> Gate:
    """Return the gate with the templates in its paths filled in; sources other than paths have none."""

    def resolve(path: Any) -> Any:
        if not isinstance(path, str):
            return path
        # Dagster reads an unset variable as the word None.
        is_filled = "{{" not in path or all(os.environ.get(name) for name in _VARIABLE.findall(path))
        return context.resolve_value(path, as_type=str) if is_filled else None

    resolved = {name: resolve(getattr(gate, name)) for name in _PATHS}
    resolved["confidential"] = {name: resolve(path) for name, path in gate.confidential.items()}
    if gate.events is not None:
        resolved["events"] = gate.events.model_dump() | {"ground_truth": resolve(gate.events.ground_truth)}
    return Gate.model_validate(gate.model_dump() | resolved)


def load_gate(path: Path) -> Gate:
    """Read a gate strictly from a file or its folder. Raise DefinitionError with the place of a problem."""
    file = (find_gate_file(path) or path) if path.is_dir() else path
    return _fill_in(read_gate(file), file)


def parse_gate(text: str, file: Path) -> Gate:
    """Read a gate from the text of a file. Raise DefinitionError as `load_gate` does."""
    return _fill_in(parse_gate_file(text, file), file)


def _fill_in(gate: Gate, file: Path) -> Gate:
    paths = [*(getattr(gate, name) for name in _PATHS), *gate.confidential.values()]
    paths += [] if gate.events is None else [gate.events.ground_truth]
    if not any(isinstance(path, str) and "{" in path for path in paths):
        # Dagster, which fills in templates, is slow to import. Validated again so that a default 80 is 80.0.
        return Gate.model_validate(gate.model_dump())
    import dagster as dg
    from dagster.components.resolved.errors import ResolutionException

    try:
        return fill_in_templates(gate, dg.ResolutionContext.default())
    except (ValidationError, ResolutionException):
        raise DefinitionError(
            f"{file}: a template in its paths has no value: set its environment variable."
        ) from None


def require_as_written(gate: Gate, file: Path, position: int) -> None:
    """Raise DefinitionError unless the gate is what the document at `position`, read strictly, says."""
    documents = read_documents(read_file(file), str(file))
    strict = validate_gate(documents[position], file) if position < len(documents) else None
    if strict is None or strict.policy_digest() != gate.policy_digest():
        raise DefinitionError(f"{file} was read differently before: load the definitions again.")


def require_prerequisites(gate: Gate, file: Path, position: int, now: datetime) -> None:
    """Raise DefinitionError, with places, if tables or keys of the gate are missing; for `dg check defs`."""
    try:
        missing = find_missing(folders_of(gate), now)
    except DisclosurePipelineError as error:  # a path that cannot be resolved
        missing = [("ground_truth", str(error))]
    if missing:
        problems = place_problems(missing, file, position)
        raise DefinitionError("; ".join(" ".join(problem.split()) for problem in problems))


def place_problems(problems: Sequence[tuple[str, str]], file: Path, position: int = 0) -> list[str]:
    """Prefix problems of attributes with file:line; for anything else the line is the first."""
    documents = read_documents(read_file(file), str(file))
    document = documents[position] if position < len(documents) else Document(None, {})
    return [f"{file}:{document.line(('attributes', name))}: {name}: {problem}" for name, problem in problems]


def copy_policy(file: Path) -> list[str]:
    """Return the lines of a gate's file that are its policy, as they are written but not indented."""
    text = read_file(file)
    documents = read_documents(text, str(file))
    [gate] = filter(is_gate, documents)
    policy = ("attributes", "policy")
    start = gate.line(policy)
    following = [
        line
        for document in documents
        for path, (line, _) in document.places.items()
        if line > start and not (document is gate and path[:2] == policy)
    ]
    lines = text.splitlines()[start - 1 : min(following) - 1 if following else None]
    while not lines[-1].strip() or lines[-1].lstrip().startswith(("#", "---")):
        lines.pop()
    return textwrap.dedent("\n".join(lines)).splitlines()


HOME = "DAGSTER_HOME"
_SETTINGS = Path(__file__).with_name("dagster.yaml")
_DEFINITIONS = Path(__file__).parents[1] / "definitions.py"  # finds the gates beside itself
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
_IGNORED = "# Keep these out of the repository.\n.env\nhome/\n"


@dataclass(frozen=True)
class GateSetup:
    """The places of a new gate."""

    file: Path
    home: Path
    incoming: Path
    environment_file: Path


def set_up_project(folder: Path) -> Path:
    """Make a folder a Dagster project unless it is one; return the folder of its definitions."""
    settings = folder / "pyproject.toml"
    if settings.exists():
        return _find_definitions(folder, settings.read_text(encoding="utf-8"))
    write_whole(settings, _PROJECT.encode())
    for name, text in {
        ".gitignore": _IGNORED,
        "gates/__init__.py": "",
        "gates/definitions.py": _DEFINITIONS.read_text(encoding="utf-8"),
    }.items():
        if not (folder / name).exists():
            write_whole(folder / name, text.encode())
    return folder / "gates" / "defs"


def _find_definitions(folder: Path, settings: str) -> Path:
    """Return the folder `defs` in a project's root module."""
    lines = [line.partition("=") for line in settings.splitlines() if line.strip().startswith("root_module")]
    module = lines[0][2].strip().strip("\"'").replace(".", "/") if len(lines) == 1 else ""
    for root in (folder / "src", folder):
        if module and (root / module).is_dir():
            return root / module / "defs"
    raise DisclosurePipelineError(
        f"{folder / 'pyproject.toml'} does not belong to a Dagster project with a root_module: give an empty "
        "folder, or one that `create-dagster project` made."
    )


def require_other_table(table: Path, ground_truth: str) -> None:
    """Raise InputError if the table that describes a new gate is the confidential one."""
    require_usable_path(ground_truth, "the ground truth")
    if Path(ground_truth).exists() and table.samefile(Path(ground_truth)):
        raise InputError(
            f"{table} is the confidential table itself: give a synthetic or invented table with the same "
            "columns."
        )


def set_up_gate(
    name: str, definition_folder: Path, project: Path, ground_truth: str | FileSource, schema: Schema
) -> GateSetup:
    """Write the file of a gate, and make missing folders and keys in DAGSTER_HOME.

    If that is not set, it is the folder `home` of the project. All gates of a home share its keys. Others can
    enter neither a home that is made here, where Dagster keeps exact figures, nor incoming, store and keys.
    Errors as of `write_gate`.
    """
    file = write_gate(name, definition_folder, ground_truth, schema)
    home = Path(os.environ.get(HOME) or project / "home").resolve()
    make_private(home)
    for folder in ("incoming", "store"):
        make_private(home / name / folder)
    (home / name / "releases").mkdir(exist_ok=True)  # for others, where the home lets them in
    keys = KeyFiles.in_folder(home / "keys")
    if not keys.public_key.exists():
        keygen(home / "keys")
    if not (home / "dagster.yaml").exists():
        write_whole(home / "dagster.yaml", _SETTINGS.read_bytes())
    environment = {HOME: str(home), SIGNING_KEY: str(keys.signing_key), SALT: str(keys.salt)}
    environment_file = project / ".env"
    _add_variables(environment_file, environment)
    return GateSetup(file, home, home / name / "incoming", environment_file)


def write_gate(name: str, definition_folder: Path, ground_truth: str | FileSource, schema: Schema) -> Path:
    """Write the file of a gate. Raise an error, and write nothing, if it exists or could not be loaded."""
    require_gate_name(name)
    file = definition_folder / "defs.yaml"
    if file.exists():
        raise DisclosurePipelineError(f"{file} exists already: give another name, or remove it.")
    text = write_definition(name, ground_truth, schema)
    parse_gate(text, file)
    write_whole(file, text.encode())
    return file


def _add_variables(file: Path, environment: dict[str, str]) -> None:
    """Add missing variables to a file; present ones stay."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    present = {line.partition("=")[0].removeprefix("export ").strip() for line in text.splitlines()}
    lines = [f"{name}={shlex.quote(value)}" for name, value in environment.items() if name not in present]
    if lines:
        write_whole(file, "\n".join([*text.splitlines(), *lines, ""]).encode())
