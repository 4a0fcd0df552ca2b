"""Errors on their way into Dagster's event log: said in our words, without the value that caused them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import dagster as dg

from disclosure_pipeline.errors import DisclosurePipelineError

T = TypeVar("T")


def guarded(work: Callable[[], T]) -> T:
    """Call `work`; whatever it raises becomes a `Failure` that is not retried and carries no other error.

    Our own errors keep their message, which holds no GT value. Of any other error only its type and the
    lines of code it came through are told: its message may quote a record.
    """
    try:
        return work()
    except DisclosurePipelineError as error:
        description = str(error)
    except Exception as error:  # nothing may reach the event log as it is
        description = f"Unexpected {type(error).__name__} at {_places(error)}. Its message is withheld."
    # Outside the except block, so that the failure has no context that is logged with it.
    raise dg.Failure(description=description, allow_retries=False)


def _places(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
