"""Waivers: a reviewed file lets one clause pass, up to a ceiling, for one content and until a day."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.bounds import Finite

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


class WaiverError(DisclosurePipelineError, ValueError):
    """A waiver's file cannot be taken as it is."""


class Waiver(BaseModel):
    """One clause that may be broken, up to a ceiling, by one candidate's content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(description="The name of its file, without .yaml")]
    gate: Text
    snapshot: Annotated[Digest, Field(description="sha256 of the candidate's content: synthetic shows it")]
    policy_digest: Annotated[Digest, Field(description="Digest of the policy: the dossier shows it")]
    clause: Annotated[Text, Field(description="Name of the clause, such as DiSCO[income]")]
    ceiling: Annotated[
        Finite,
        Field(description="How far the value may go, in its own unit: how high, or how low with at_least"),
    ]
    reason: Text
    approver: Annotated[Text, Field(description="Who answers for it")]
    expires: Annotated[AwareDatetime, Field(description="From this moment on it is void")]

    def problem(self, gate: str, policy_digest: str, clauses: Iterable[str], now: datetime) -> str | None:
        """Why it can apply to no content at all, or None. `clauses` are those that can be waived."""
        if self.gate != gate:
            return f"it is for gate {self.gate}, not {gate}"
        if self.policy_digest != policy_digest:
            return "it was given under another policy"
        if self.clause not in clauses:
            return f"the policy has no clause {self.clause} that can be waived"
        if now >= self.expires:
            return f"it expired at {self.expires.isoformat()}"
        return None


def read_waivers(folder: Path) -> tuple[Waiver, ...]:
    """Every waiver in a folder of YAML files, in order of their names; none where there is no folder.

    WaiverError where anything but a complete waiver lies there: one that is not read would not be missed.
    """
    if not folder.is_dir():
        return ()
    return tuple(_read(path) for path in sorted(folder.iterdir()))


def _read(path: Path) -> Waiver:
    if path.suffix != ".yaml" or path.is_symlink() or not path.is_file():
        raise WaiverError(f"{path.name} among the waivers is no file NAME.yaml: remove it.")
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or "name" in content:
            raise ValueError
        return Waiver(name=path.stem, **content)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}" for problem in error.errors()
        )
    except (ValueError, TypeError, yaml.YAMLError):
        expected = ", ".join(name for name in Waiver.model_fields if name != "name")
        wrong = f"expected a mapping with {expected}"
    raise WaiverError(f"Waiver {path.name}: {wrong}.")
