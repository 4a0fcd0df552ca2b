"""The public names of the library and the modules that define them."""

from .analyses.individual import IndividualAttribution, individual_attribution
from .analyses.key_sets import KeySets, disclosure_of_key_sets
from .candidates.power import power
from .errors import DisclosurePipelineError, InputError
from .evaluation.arguments import Exclusions, Pair
from .evaluation.compared_remedies import compare_remedies
from .evaluation.copies import ReplicatedUniques, copies, replicated_uniques
from .evaluation.disclosure import disclosure
from .evaluation.found import found
from .evaluation.nearest import nearest
from .evaluation.plots.drawing import save_plot
from .evaluation.prediction import PredictionRisk, prediction_risk
from .evaluation.protection import DisclosureProtection, disclosure_protection
from .evaluation.remedies import Remedy
from .evaluation.resemblance import TablesResemblance, resemblance
from .evaluation.result import Disclosure
from .evaluation.subgroups import subgroups
from .orchestration.component import DisclosureGate
from .tables.sources import DuckDBSource, FileSource, SqlSource

__version__: str

__all__ = [
    "Disclosure",
    "DisclosureGate",
    "DisclosurePipelineError",
    "DisclosureProtection",
    "DuckDBSource",
    "Exclusions",
    "FileSource",
    "IndividualAttribution",
    "InputError",
    "KeySets",
    "Pair",
    "PredictionRisk",
    "Remedy",
    "ReplicatedUniques",
    "SqlSource",
    "TablesResemblance",
    "compare_remedies",
    "copies",
    "disclosure",
    "disclosure_of_key_sets",
    "disclosure_protection",
    "found",
    "individual_attribution",
    "nearest",
    "power",
    "prediction_risk",
    "replicated_uniques",
    "resemblance",
    "save_plot",
    "subgroups",
]
