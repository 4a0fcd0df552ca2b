"""A gate, where its tables, records and releases lie, and why a candidate is not released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from disclosure_pipeline.candidates.store import Store
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.trust import TrustedKey
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.tables.sources import Source


class RefusedError(DisclosurePipelineError):
    """The policy does not let the candidate pass; the message lists the reasons."""


class UndeterminedError(DisclosurePipelineError):
    """It could not be determined whether the candidate may be released; the message lists the reasons."""


@dataclass(frozen=True)
class GateFolders:
    """A gate and where its tables, records and releases lie."""

    gate: Gate
    ground_truth: Source
    incoming: Path
    store: Store
    releases: Path
    waivers: tuple[Waiver, ...]
    trusted_keys: Path | tuple[TrustedKey, ...]
    confidential: Mapping[str, Source] = field(default_factory=dict)

    @property
    def staging(self) -> Path:
        """Where a release is made before it is published: beside the releases, never among them."""
        releases = self.releases.parent
        return releases.with_name(f"{releases.name}-staging") / self.releases.name
