"""The JSON schema of a gate's file, for editors."""

from __future__ import annotations

from typing import Any

from disclosure_pipeline.policy.gate import Gate

COMPONENT = "disclosure_pipeline.DisclosureGate"


def file_schema() -> dict[str, Any]:
    """The schema of a whole file: the type of the component, and the gate as its attributes."""
    gate = Gate.model_json_schema()
    definitions = gate.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A gate",
        "type": "object",
        "properties": {
            "type": {"const": COMPONENT},
            "attributes": {"$ref": "#/$defs/Gate"},
        },
        "required": ["type", "attributes"],
        "$defs": {**definitions, "Gate": gate},
    }
