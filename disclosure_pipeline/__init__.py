"""Decides, as a Dagster run, whether a synthetic version of a confidential table may be released.

The same engine is a library: `import disclosure_pipeline as dp; dp.disclosure(...)`.
"""

from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.evaluation import ReplicatedUniques, disclosure, remove_uniques, replicated_uniques
from disclosure_pipeline.exclusions import Exclusions, Pair
from disclosure_pipeline.result import Disclosure

__version__ = "0.1.0"

__all__ = [
    "Disclosure",
    "DisclosurePipelineError",
    "Exclusions",
    "InputError",
    "Pair",
    "ReplicatedUniques",
    "disclosure",
    "remove_uniques",
    "replicated_uniques",
]
