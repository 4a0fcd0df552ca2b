"""A gate's own file, read strictly; templates in its paths stay as they are written."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from disclosure_pipeline.policy.definition_reader import DefinitionError, Document, read_documents, read_file
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_template import COMPONENT

_NAMES = ("defs.yaml", "component.yaml")
_COMPONENT_NAME = f".{COMPONENT.rpartition('.')[2]}"


def find_gate_file(folder: Path) -> Path | None:
    """Return the file in a folder that Dagster reads components from; None where there is none."""
    return next((folder / name for name in _NAMES if (folder / name).is_file()), None)


def read_gate(path: Path) -> Gate:
    """Return the gate of a file, or of a folder with one.

    DefinitionError, with the place, where it cannot be taken as it is written.
    """
    file = find_gate_file(path) if path.is_dir() else path
    if file is None:
        raise DefinitionError(f"{path}: it holds no {' and no '.join(_NAMES)}.")
    return parse_written_gate(read_file(file), file)


def parse_written_gate(text: str, file: Path) -> Gate:
    """Return the gate of the text of a file. DefinitionError as `read_gate`."""
    gates = [document for document in read_documents(text, str(file)) if _is_gate(document)]
    if len(gates) != 1:
        raise DefinitionError(f"{file}: it holds {len(gates)} gates (type: {COMPONENT}), expected is one.")
    return validate_gate(gates[0], file)


def _is_gate(document: Document) -> bool:
    content = document.content
    return isinstance(content, dict) and str(content.get("type")).endswith(_COMPONENT_NAME)


def validate_gate(document: Document, file: Path) -> Gate:
    """Return the gate that a document of a file defines. DefinitionError with the places of all problems."""
    attributes = document.content.get("attributes") if isinstance(document.content, dict) else None
    try:
        return Gate.model_validate(attributes)
    except ValidationError as error:
        problems = [
            f"{file}:{document.line(('attributes', *problem['loc']))}: "
            f"{'.'.join(map(str, problem['loc'])) or 'attributes'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
    raise DefinitionError("; ".join(problems))
