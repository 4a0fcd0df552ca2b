"""The public names of the library, and where they stand."""

from .analyses.anonymity_loss import anonymity_loss
from .analyses.cap_plots import plot_cap_distributions, plot_individual_cap
from .analyses.exposure import Exposure, exposure
from .analyses.individual import individual_attribution, weap
from .analyses.key_sets import KeySets, disclosure_of_key_sets
from .analyses.nearest_guess import NearestGuess, nearest_guess
from .analyses.over_releases import disclosure_over_releases
from .candidates.power import power
from .errors import (
    ComparabilityWarning,
    DisclosurePipelineError,
    HoldoutWarning,
    InputError,
    UnitWarning,
)
from .evaluation import remedies
from .evaluation.compared_remedies import RemediedTables, RemedyComparison, compare_remedies
from .evaluation.copies import copies
from .evaluation.disclosure import disclosure, key_overlap
from .evaluation.exclusions import Exclusions, Pair
from .evaluation.nearest import nearest
from .evaluation.plots.drawing import save_plot
from .evaluation.power import GatePower
from .evaluation.prediction import PredictionRisk, prediction_risk
from .evaluation.protection import disclosure_protection
from .evaluation.protection_estimate import disclosure_protection_estimate
from .evaluation.protection_result import (
    DisclosureProtection,
    DisclosureProtectionEstimate,
)
from .evaluation.replicated_uniques import (
    ReplicatedUniques,
    remove_uniques,
    replicated_uniques,
)
from .evaluation.resemblance import TablesResemblance, resemblance
from .evaluation.result import Disclosure
from .evaluation.subgroups import subgroups
from .orchestration.component import DisclosureGate
from .tables.sources import DuckDBSource, FileSource, SqlSource

__version__: str

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
    "GatePower",
    "HoldoutWarning",
    "InputError",
    "KeySets",
    "NearestGuess",
    "Pair",
    "PredictionRisk",
    "RemediedTables",
    "RemedyComparison",
    "ReplicatedUniques",
    "SqlSource",
    "TablesResemblance",
    "UnitWarning",
    "anonymity_loss",
    "compare_remedies",
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
    "power",
    "prediction_risk",
    "remedies",
    "remove_uniques",
    "replicated_uniques",
    "resemblance",
    "save_plot",
    "subgroups",
    "weap",
]
