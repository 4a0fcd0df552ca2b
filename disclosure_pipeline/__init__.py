"""Decides, as a Dagster run, whether a synthetic version of a confidential table may be released.

The same engine is a library: `import disclosure_pipeline as dp; dp.disclosure(...)`.
"""

from typing import TYPE_CHECKING, Any

from disclosure_pipeline.comparison import exact_copies
from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.evaluation import (
    ReplicatedUniques,
    disclosure,
    key_overlap,
    remove_uniques,
    replicated_uniques,
)
from disclosure_pipeline.exclusions import Exclusions, Pair
from disclosure_pipeline.individual import individual_attribution, weap
from disclosure_pipeline.key_sets import KeySets, disclosure_of_key_sets
from disclosure_pipeline.plots import plot_cap_distributions, plot_individual_cap
from disclosure_pipeline.prediction import PredictionRisk, prediction_risk
from disclosure_pipeline.protection import (
    DisclosureProtection,
    DisclosureProtectionEstimate,
    disclosure_protection,
    disclosure_protection_estimate,
)
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, SqlSource

if TYPE_CHECKING:
    from disclosure_pipeline.orchestration.component import DisclosureGate

__version__ = "0.1.0"

__all__ = [
    "Disclosure",
    "DisclosureGate",
    "DisclosurePipelineError",
    "DisclosureProtection",
    "DisclosureProtectionEstimate",
    "DuckDBSource",
    "Exclusions",
    "FileSource",
    "InputError",
    "KeySets",
    "Pair",
    "PredictionRisk",
    "ReplicatedUniques",
    "SqlSource",
    "disclosure",
    "disclosure_of_key_sets",
    "disclosure_protection",
    "disclosure_protection_estimate",
    "exact_copies",
    "individual_attribution",
    "key_overlap",
    "plot_cap_distributions",
    "plot_individual_cap",
    "prediction_risk",
    "remove_uniques",
    "replicated_uniques",
    "weap",
]


def __getattr__(name: str) -> Any:
    """The gate is imported when it is asked for: Dagster takes seconds, and the library does not need it."""
    if name == "DisclosureGate":
        from disclosure_pipeline.orchestration.component import DisclosureGate

        return DisclosureGate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Everything public, the gate included: Dagster's tools find components by it."""
    return [*globals(), "DisclosureGate"]
