"""Whether values are missing from SD that GT has: what is left of a record can still be all true.

This project's own. A record with holes equals none, and is near to none: no other figure sees it.
"""

from __future__ import annotations

from disclosure_pipeline.measures.exact import IntArray


def missing_beyond(o: IntArray, s: IntArray) -> float:
    """Percentage points by which more SD records than GT records have no value in a column.

    `o`, `s`: the numbers of GT and of SD records with each level, missing last; neither table is empty.

    >>> import numpy as np
    >>> missing_beyond(np.array([6, 3, 1]), np.array([2, 2, 4]))
    40.0
    """
    return 100 * (float(s[-1] / s.sum()) - float(o[-1] / o.sum()))
