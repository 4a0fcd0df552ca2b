"""Everyday runs try a tenth of long lists of cases, and CI a quarter of them: others each day.

Tests that take seconds run on one day in seven, in CI on one in two; those that take longer and have smaller
ones beside them, and those of Spark, in CI only, most of these on one day in two or three. Set SAMPLE_SEED to
try what another day would, and LONG_TESTS to run all that take seconds. QUICK_TESTS=1 draws no more than ten
random examples: what the core of the tests takes with other versions of the packages.
"""

import math
import os
import random
from collections.abc import Iterable
from datetime import date
from typing import TypeVar
from zlib import crc32

import pytest
from hypothesis import settings

CI = bool(os.environ.get("CI"))
QUICK = bool(os.environ.get("QUICK_TESTS"))
LONG_TESTS = bool(os.environ.get("LONG_TESTS"))
# The date on which the run began, kept in the environment for the processes that it starts.
SEED = int(os.environ.setdefault("SAMPLE_SEED", date.today().strftime("%Y%m%d")))
# One case in this many is tried: every day, and in CI.
PART, PART_IN_CI = 10, 4
# A test that takes seconds runs on one day in this many.
DAYS = 2 if CI else 7
# Random examples of a test that asks for no other number.
EXAMPLES, EXAMPLES_IN_CI = 10 if QUICK else 50, 100

# Spark takes ten seconds to start, and seconds for what the others do at once: in CI only.
DATABASES = ("duckdb", "postgres", "spark") if CI else ("duckdb", "postgres")

Case = TypeVar("Case")


def some_of(cases: Iterable[Case], part: int = PART, part_in_ci: int = PART_IN_CI) -> list[Case]:
    """Return one in `part` of the cases, in CI one in `part_in_ci`: drawn by the seed, kept in order."""
    every = list(cases)
    number = math.ceil(len(every) / (part_in_ci if CI else part))
    drawn = random.Random(f"{SEED} {len(every)}").sample(range(len(every)), number)
    return [every[number] for number in sorted(drawn)]


def examples(every_day: int, in_ci: int | None = None) -> settings:
    """Set the number of random examples of a test that takes long with each.

    CI draws twice as many, others each day, if it says no other number.
    """
    number = in_ci or min(EXAMPLES_IN_CI, 2 * every_day)
    return settings(max_examples=number if CI else min(every_day, EXAMPLES) if QUICK else every_day)


def is_for_today(name: str, days: int = DAYS) -> bool:
    """Return whether a test is run today, on one day in `days`: each that is skipped is run on another."""
    return LONG_TESTS or (crc32(name.encode()) + SEED) % days == 0


def only_in_ci(what_takes_long: str, days: int = 1) -> pytest.MarkDecorator:
    """Skip a test outside CI, saying what takes long; smaller tests cover its parts.

    CI runs it on one day in `days`.
    """
    when = f", on one day in {days}" if days > 1 else ""
    is_skipped = not (CI and is_for_today(what_takes_long, days))
    return pytest.mark.skipif(is_skipped, reason=f"{what_takes_long}: in CI only{when}")


# For tests that take seconds, and for modules of them: each test has days of its own.
on_some_days = pytest.mark.on_some_days
NOT_TODAY = f"takes seconds: on one day in {DAYS}, and with LONG_TESTS=1"
