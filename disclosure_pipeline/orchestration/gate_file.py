"""A gate's own file, read strictly: what Dagster's loader took silently is refused here, with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.definition_reader import DefinitionError, Document, read_documents, read_file
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_reader import (
    find_gate_file,
    parse_written_gate,
    read_gate,
    validate_gate,
)
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.release.readiness import find_missing
from disclosure_pipeline.tables.files import is_remote
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, LinkedSource, Source, source_of

if TYPE_CHECKING:
    import dagster as dg


def folders_of(gate: Gate, waivers: Sequence[Waiver] = ()) -> GateFolders:
    """Return the gate with its folders; relative paths start at DAGSTER_HOME."""
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
    """Return the source of a confidential table; a relative path of this machine starts at DAGSTER_HOME."""
    source = source_of(declared)
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
            f"The path {path!r} is relative and DAGSTER_HOME, where it starts, is not set: set it or give "
            "an absolute path."
        )
    return Path(home) / path


_VARIABLE = re.compile(r"env\.([A-Za-z_][A-Za-z0-9_]*)")
_PATHS = ("ground_truth", "incoming", "store", "releases", "trusted_keys")


def fill_in_templates(gate: Gate, context: dg.ResolutionContext) -> Gate:
    """Return the gate with the templates in its paths filled in; nothing else is a template.

    A source of the ground truth that is no path has none: what it takes from the environment is taken
    when it is read, and is in no definition.
    """

    def resolve(path: Any) -> Any:
        if not isinstance(path, str):
            return path
        # Dagster takes a variable that is not set for the word None.
        is_filled = "{{" not in path or all(os.environ.get(name) for name in _VARIABLE.findall(path))
        return context.resolve_value(path, as_type=str) if is_filled else None

    resolved = {name: resolve(getattr(gate, name)) for name in _PATHS}
    resolved["confidential"] = {name: resolve(path) for name, path in gate.confidential.items()}
    if gate.events is not None:
        resolved["events"] = gate.events.model_dump() | {"ground_truth": resolve(gate.events.ground_truth)}
    return Gate.model_validate(gate.model_dump() | resolved)


def load_gate(path: Path) -> Gate:
    """Return the gate of a file, or of a folder with one, read strictly and without Dagster's loader.

    DefinitionError, with the place, where it cannot be taken as it is written.
    """
    file = (find_gate_file(path) or path) if path.is_dir() else path
    return _fill_in(read_gate(file), file)


def parse_gate(text: str, file: Path) -> Gate:
    """Return the gate of the text of a file. DefinitionError as `load_gate`."""
    return _fill_in(parse_written_gate(text, file), file)


def _fill_in(gate: Gate, file: Path) -> Gate:
    paths = [*(getattr(gate, name) for name in _PATHS), *gate.confidential.values()]
    paths += [] if gate.events is None else [gate.events.ground_truth]
    if not any(isinstance(path, str) and "{" in path for path in paths):
        # Dagster, which fills templates in, is slow to import. Defaults are read as in a file: 80 is 80.0.
        return Gate.model_validate(gate.model_dump())
    import dagster as dg
    from dagster.components.resolved.errors import ResolutionException

    try:
        return fill_in_templates(gate, dg.ResolutionContext.default())
    except (ValidationError, ResolutionException):
        problem = "a template in its paths has no value: set its environment variable"
        raise DefinitionError(f"{file}: {problem}.") from None


def require_as_written(gate: Gate, file: Path, position: int) -> None:
    """Raise DefinitionError unless a component of a file is what the file, read strictly, says.

    `position`: which document of the file the component is.
    """
    documents = read_documents(read_file(file), str(file))
    strict = validate_gate(documents[position], file) if position < len(documents) else None
    if strict is None or strict.policy_digest() != gate.policy_digest():
        raise DefinitionError(f"{file}: it was read differently before: load the definitions again.")


def require_prerequisites(gate: Gate, file: Path, position: int) -> None:
    """Raise DefinitionError, in one line with the places, where what the gate needs is missing.

    Only `dg check defs` (`dagster definitions validate`) asks for it: a web server or a run must not
    fail because a drive is away.
    """
    from disclosure_pipeline.orchestration.steps import now

    try:
        missing = find_missing(folders_of(gate), now())
    except DisclosurePipelineError as error:  # a path that cannot be resolved
        missing = [("ground_truth", str(error))]
    if missing:
        problems = place_problems(missing, file, position)
        raise DefinitionError("; ".join(" ".join(problem.split()) for problem in problems))


def place_problems(problems: Sequence[tuple[str, str]], file: Path, position: int = 0) -> list[str]:
    """Place problems of attributes at file:line; what is no attribute is placed at the first."""
    documents = read_documents(read_file(file), str(file))
    document = documents[position] if position < len(documents) else Document(None, {})
    return [f"{file}:{document.line(('attributes', name))}: {name}: {problem}" for name, problem in problems]


def is_validating() -> bool:
    """Return whether definitions are loaded for `dg check defs`: Dagster sets this variable for it."""
    return os.environ.get("DAGSTER_IS_DEFS_VALIDATION_CLI") == "1"
