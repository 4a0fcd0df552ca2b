"""The privacy that is claimed for a candidate: a small file that may come with its tables."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import yaml

from disclosure_pipeline.candidates.files import StoreError

CLAIMS = "claims.yaml"
MOST_BYTES = 4096

# YAML 1.1 takes 1e-6, which has no point, for text.
_EXPONENT = re.compile(r"[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


@dataclass(frozen=True)
class Claims:
    """The ε and δ that what made the candidate is claimed to keep. ValueError where they are none."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise ValueError("An epsilon is above 0, a delta from 0 to below 1.")

    @property
    def as_pair(self) -> tuple[float, float]:
        """Both of them."""
        return self.epsilon, self.delta


def read_claims(content: bytes) -> Claims:
    """Return what the file claims, such as `claims: {epsilon: 1, delta: 1e-6}`. StoreError where it is none.

    >>> read_claims(b"claims: {epsilon: 1, delta: 1e-6}")
    Claims(epsilon=1.0, delta=1e-06)
    """
    written = _read_yaml(content)
    claims = written.get("claims") if isinstance(written, Mapping) and set(written) == {"claims"} else None
    if isinstance(claims, Mapping) and {"epsilon"} <= set(claims) <= {"epsilon", "delta"}:
        with suppress(ValueError):
            return Claims(_to_number(claims["epsilon"]), _to_number(claims.get("delta", 0)))
    raise StoreError(
        f"{CLAIMS} must hold nothing but a claim, such as claims: {{epsilon: 1, delta: 1e-6}}: an epsilon "
        "above 0, and a delta from 0 to below 1."
    )


def _read_yaml(content: bytes) -> Any:
    """Return the content of YAML; None where it is none, or names something twice."""
    if len(content) > MOST_BYTES:
        return None
    try:
        text = content.decode()
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if _names_twice(node) else yaml.safe_load(text)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return None


def _names_twice(node: yaml.Node | None) -> bool:
    if not isinstance(node, yaml.MappingNode):
        return False
    names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    return len(set(names)) < len(names) or any(_names_twice(value) for _, value in node.value)


def _to_number(value: Any) -> float:
    """Return the number that is written, NaN where there is none."""
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        return float(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else math.nan
