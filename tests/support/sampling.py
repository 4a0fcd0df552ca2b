"""What CI tries exhaustively, the everyday suite tries in part: a seeded tenth, the same one every day.

What takes long as a whole, and has smaller tests beside it, only CI runs.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable
from typing import TypeVar

import pytest
from hypothesis import settings

CI = bool(os.environ.get("CI"))
SEED = 20240501
# One case in so many is tried every day.
PART = 10
# Random examples of a test that asks for no other number.
EXAMPLES, EXAMPLES_IN_CI = 50, 200

Case = TypeVar("Case")


def some_of(cases: Iterable[Case], part: int = PART) -> list[Case]:
    """All cases in CI, otherwise one in `part` of them (at least one), drawn by the seed, in their order."""
    every = list(cases)
    if CI:
        return every
    drawn = random.Random(f"{SEED} {len(every)}").sample(range(len(every)), math.ceil(len(every) / part))
    return [every[number] for number in sorted(drawn)]


def examples(every_day: int, in_ci: int = EXAMPLES_IN_CI) -> settings:
    """So many random examples of a test that takes long with each."""
    return settings(max_examples=in_ci if CI else every_day)


def only_in_ci(what_takes_long: str) -> pytest.MarkDecorator:
    """A test that is skipped every day, and says what of it takes long: other tests are of its parts."""
    return pytest.mark.skipif(not CI, reason=f"{what_takes_long}: in CI only")
