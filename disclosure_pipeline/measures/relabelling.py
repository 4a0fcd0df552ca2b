"""Whether the levels of a category look as if they had been renamed: every figure compares equal values.

This project's own. Distance from GT alone proves nothing, for bad synthesizers are far from it too. What
tells a disguise is a distance that is gone once levels are matched by how frequent they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.resemblance import distance, resemblance

_GONE = 0.5


@dataclass(frozen=True)
class Relabelling:
    """Shares of 1. TVD: total variation distance; TVD_expected: that of a fresh sample as large as SD, about.

    TVD_relabelled: the distance once levels are matched by their frequencies, missing with missing.
    looks_renamed: how far TVD is over the expected, where matching takes it to less than half; otherwise 0.
    """

    TVD: float
    TVD_expected: float
    TVD_relabelled: float
    looks_renamed: float


def relabelling(o: IntArray, s: IntArray) -> Relabelling:
    """From the numbers of GT and of SD records with each level, missing last; neither table is empty."""
    apart = resemblance(o, s)
    relabelled = distance(_by_frequency(o), _by_frequency(s))
    beyond = max(0.0, apart.TVD - apart.TVD_expected)
    renamed = beyond if relabelled < _GONE * apart.TVD else 0.0
    return Relabelling(apart.TVD, apart.TVD_expected, relabelled, renamed)


def _by_frequency(counts: IntArray) -> IntArray:
    return np.append(np.sort(counts[:-1]), counts[-1])
