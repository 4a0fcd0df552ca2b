"""Decides, as a Dagster run, whether a synthetic version of a confidential table may be released.

The same engine is a library: `import disclosure_pipeline as dp; dp.disclosure(...)`. Its public names stand
in `__init__.pyi`; each is imported when it is first used.
"""

from typing import Any

import lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "remedies":  # a module, where the loader expects the name of one of its values
        from disclosure_pipeline.evaluation import remedies

        return remedies
    return _load(name)
