"""Decides, as a Dagster run, whether a synthetic version of a confidential table may be released.

The same engine is a library: `import disclosure_pipeline as dp; dp.disclosure(...)`. Its public names stand
in `__init__.pyi`; each is imported when it is first used.
"""

import lazy_loader

from disclosure_pipeline.runtime.machine import avoid_slow_sort

__version__ = "0.1.0"

avoid_slow_sort()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
