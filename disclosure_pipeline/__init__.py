"""Decides, as a Dagster run, whether a synthetic version of a confidential table may be released.

The same engine is a library: `import disclosure_pipeline as dp; dp.disclosure(...)`.
"""

from typing import TYPE_CHECKING, Any

from disclosure_pipeline.analyses.anonymity_loss import anonymity_loss
from disclosure_pipeline.analyses.cap_plots import plot_cap_distributions, plot_individual_cap
from disclosure_pipeline.analyses.exposure import Exposure, exposure
from disclosure_pipeline.analyses.individual import individual_attribution, weap
from disclosure_pipeline.analyses.key_sets import KeySets, disclosure_of_key_sets
from disclosure_pipeline.analyses.nearest_guess import NearestGuess, nearest_guess
from disclosure_pipeline.analyses.over_releases import disclosure_over_releases
from disclosure_pipeline.errors import (
    ComparabilityWarning,
    DisclosurePipelineError,
    HoldoutWarning,
    InputError,
    UnitWarning,
)
from disclosure_pipeline.evaluation import remedies
from disclosure_pipeline.evaluation.copies import copies
from disclosure_pipeline.evaluation.disclosure import disclosure, key_overlap
from disclosure_pipeline.evaluation.exclusions import Exclusions, Pair
from disclosure_pipeline.evaluation.nearest import nearest
from disclosure_pipeline.evaluation.plots.drawing import save_plot
from disclosure_pipeline.evaluation.prediction import PredictionRisk, prediction_risk
from disclosure_pipeline.evaluation.protection import disclosure_protection
from disclosure_pipeline.evaluation.protection_estimate import disclosure_protection_estimate
from disclosure_pipeline.evaluation.protection_result import (
    DisclosureProtection,
    DisclosureProtectionEstimate,
)
from disclosure_pipeline.evaluation.remedy import RemediedTables, Remedies, remedy
from disclosure_pipeline.evaluation.replicated_uniques import (
    ReplicatedUniques,
    remove_uniques,
    replicated_uniques,
)
from disclosure_pipeline.evaluation.resemblance import TablesResemblance, resemblance
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evaluation.subgroups import subgroups
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, SqlSource

if TYPE_CHECKING:
    from disclosure_pipeline.orchestration.component import DisclosureGate

__version__ = "0.1.0"

__all__ = [
    "ComparabilityWarning",
    "Disclosure",
    "DisclosureGate",
    "DisclosurePipelineError",
    "DisclosureProtection",
    "DisclosureProtectionEstimate",
    "DuckDBSource",
    "Exclusions",
    "Exposure",
    "FileSource",
    "HoldoutWarning",
    "InputError",
    "KeySets",
    "NearestGuess",
    "Pair",
    "PredictionRisk",
    "RemediedTables",
    "Remedies",
    "ReplicatedUniques",
    "SqlSource",
    "TablesResemblance",
    "UnitWarning",
    "anonymity_loss",
    "copies",
    "disclosure",
    "disclosure_of_key_sets",
    "disclosure_over_releases",
    "disclosure_protection",
    "disclosure_protection_estimate",
    "exposure",
    "individual_attribution",
    "key_overlap",
    "nearest",
    "nearest_guess",
    "plot_cap_distributions",
    "plot_individual_cap",
    "prediction_risk",
    "remedies",
    "remedy",
    "remove_uniques",
    "replicated_uniques",
    "resemblance",
    "save_plot",
    "subgroups",
    "weap",
]


def __getattr__(name: str) -> Any:
    """The gate is imported when it is asked for: Dagster takes seconds, and the library does not need it."""
    if name == "DisclosureGate":
        from disclosure_pipeline.orchestration.component import DisclosureGate

        return DisclosureGate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, the gate included: Dagster's tools find components by it."""
    return __all__
