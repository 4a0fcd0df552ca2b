"""The public names of the library and the modules that define them."""

from .candidates.power import power
from .errors import DisclosurePipelineError, InputError
from .evaluation.arguments import Exclusions, Pair
from .evaluation.copies import copies, replicated_uniques
from .evaluation.disclosure import disclosure
from .evaluation.found import found
from .evaluation.nearest import nearest
from .evaluation.resemblance import TablesResemblance, resemblance
from .evaluation.result import Disclosure
from .evidence.saving import save
from .families.compared_remedies import compare_remedies
from .families.individual import IndividualAttribution, individual_attribution
from .families.key_sets import disclosure_of_key_sets
from .families.prediction import PredictionRisk, prediction_risk
from .families.protection import DisclosureProtection, disclosure_protection
from .families.remedies import Remedy
from .families.subgroups import subgroups
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
    "Pair",
    "PredictionRisk",
    "Remedy",
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
    "save",
    "subgroups",
]
