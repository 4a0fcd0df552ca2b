"""The claims that a delivery makes about itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.policy.reviewed_files import DefinitionError, read_definition

CLAIMS = "claims.yaml"
MOST_BYTES = 4096


@dataclass(frozen=True)
class Claims:
    """The ε and δ of differential privacy that are claimed for the candidate's generator."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise ValueError("Epsilon must be above 0, delta at least 0 and below 1.")


def read_claims(content: bytes) -> Claims:
    """Return the claims in the content of a file. Raise StoreError if it holds anything else.

    >>> read_claims(b"claims: {epsilon: 1, delta: 1e-6}")
    Claims(epsilon=1.0, delta=1e-06)
    """
    written = None
    with suppress(DefinitionError, UnicodeDecodeError):  # their messages quote the file
        if len(content) <= MOST_BYTES:
            written = read_definition(content.decode(), CLAIMS, exponents=True)
    claims = written.get("claims") if isinstance(written, Mapping) and set(written) == {"claims"} else None
    if isinstance(claims, Mapping) and {"epsilon"} <= set(claims) <= {"epsilon", "delta"}:
        with suppress(ValueError, OverflowError):
            return Claims(_to_number(claims["epsilon"]), _to_number(claims.get("delta", 0)))
    raise StoreError(
        f"{CLAIMS} must hold only a claim, such as claims: {{epsilon: 1, delta: 1e-6}}: an epsilon above 0, "
        "and a delta of at least 0 and below 1."
    )


def _to_number(value: Any) -> float:
    """Return the value as a number, or NaN."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else math.nan
