"""Whether the levels of a category look as if they had been renamed: every figure compares equal values.

This project's own. Distance from GT alone proves nothing, for bad synthesizers are far from it too. What
tells a disguise is a distance that is gone once levels are matched by how frequent they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.resemblance import Distance, ExpectedDistance, distance, resemblance
from disclosure_pipeline.measures.words import SHARE, Words

_MATCHED_SHARE = 0.5


@dataclass(frozen=True)
class Relabelling:
    """Shares of 1. TVD: total variation distance; TVD_expected: that of a fresh sample as large as SD, about.

    TVD_relabelled: the distance once levels are matched by their frequencies, missing with missing.
    looks_renamed: how far TVD is over the expected, where matching takes it to less than half; otherwise 0.
    """

    TVD: Distance
    TVD_expected: ExpectedDistance
    TVD_relabelled: Annotated[
        float,
        Words(
            "total variation distance by frequency alone",
            "The distance once values are matched by how frequent they are: small where values "
            "were only renamed.",
            unit=SHARE,
            denominator="",
            high_is="neither",
        ),
    ]
    looks_renamed: Annotated[
        float,
        Words(
            "looks renamed",
            "How far the values are from those of the confidential table where matching by "
            "frequency brings them near; 0 where it does not.",
            unit=SHARE,
            denominator="",
        ),
    ]


def relabelling(o: IntArray, s: IntArray) -> Relabelling:
    """From the numbers of GT and of SD records with each level, missing last; neither table is empty."""
    apart = resemblance(o, s)
    relabelled = distance(_by_frequency(o), _by_frequency(s))
    beyond = max(0.0, apart.TVD - apart.TVD_expected)
    renamed = beyond if relabelled < _MATCHED_SHARE * apart.TVD else 0.0
    return Relabelling(apart.TVD, apart.TVD_expected, relabelled, renamed)


def _by_frequency(counts: IntArray) -> IntArray:
    return np.append(np.sort(counts[:-1]), counts[-1])
