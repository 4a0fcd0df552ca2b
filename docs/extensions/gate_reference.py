"""The attributes of a gate's file, as a page in Markdown made from the JSON schema of its model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from disclosure_pipeline.measures.catalogue import BOUNDABLE
from disclosure_pipeline.measures.entry import Default
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.policy.gate_template import build_file_schema

_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
}


def page() -> str:
    """A table of attributes for the gate, then one for each kind of value that has attributes of its own."""
    models = build_file_schema()["$defs"]
    names = ["Gate", *sorted(name for name in models if name != "Gate")]
    return "\n\n".join(_section(name, models[name]) for name in names if "properties" in models[name]) + "\n"


def bounds_page() -> str:
    """A row for each figure that every gate bounds and a policy can: its name, default and description."""
    rows = [
        f"| `{name}` | {_default_bounds(default)} | {_cell(default.text)} |"
        for name, figure in BOUNDABLE.items()
        if (default := figure.default) is not None
    ]
    return "\n".join(["| figure | default | |", "|---|---|---|", *rows]) + "\n"


def _default_bounds(default: Default) -> str:
    ways = {way.replace(" ", "_"): default.find_bound(way) for way in WAYS if default.by_way}
    return ", ".join(
        f"`{word}: {bound:g}`" for word, bound in (ways or {default.statistic: default.bound}).items()
    )


def _section(name: str, model: Mapping[str, Any]) -> str:
    required = model.get("required", ())
    rows = []
    for attribute, schema in model["properties"].items():
        default = _default(schema, required=attribute in required)
        rows.append(f"| `{attribute}` | {_kind(schema)} | {default} | {_text(schema)} |")
    heading = "| attribute | value | default | |\n|---|---|---|---|"
    text = _cell(model.get("description", ""))
    return "\n\n".join(filter(None, [f"## {name}", text, "\n".join([heading, *rows])]))


def _anchor(model: str) -> str:
    return model.lower()


def _kind(schema: Mapping[str, Any]) -> str:
    kind = _kind_alone(schema)
    limits = [words.format(schema[name]) for name, words in _LIMITS.items() if name in schema]
    return _cell(", ".join([kind, *limits]))


def _kind_alone(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{_anchor(name)})"
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema.get("anyOf", schema.get("oneOf"))))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}" if "items" in schema else "list"
    if schema.get("type") == "object":
        of = schema.get("additionalProperties")
        return f"name: {_kind(of)}" if isinstance(of, Mapping) and of else "names and values"
    return {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "nothing"}.get(
        schema.get("type", "any"), schema.get("type", "anything")
    )


def _default(schema: Mapping[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    default = schema.get("default")
    if default in (None, "", [], {}) or isinstance(default, Mapping):
        return ""
    return _cell(f"`{json.dumps(default)}`")


def _text(schema: Mapping[str, Any]) -> str:
    return _cell(schema.get("description", ""))


def _cell(text: str) -> str:
    """Text for a table: one line, and no bar that would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def attributes() -> Iterator[tuple[str, str]]:
    """Every model and attribute that the page has to name."""
    for name, model in build_file_schema()["$defs"].items():
        for attribute in model.get("properties", ()):
            yield name, attribute
