"""The errors of this package. No message ever holds a value of the ground truth."""

from __future__ import annotations

import traceback
from pathlib import Path

_FRAMES = 4


class DisclosurePipelineError(Exception):
    """Base of every error that this package raises by itself."""


class ComparabilityWarning(UserWarning):
    """The tables may not be coded alike, so that risks read too low: the message says in which column."""


class HoldoutWarning(UserWarning):
    """The holdout shares records with the ground truth, so that it hides what the synthetic table leaks."""


class UnitWarning(UserWarning):
    """Records of the ground truth repeat: people may have several, and no unit says whose each one is."""


class InputError(DisclosurePipelineError, ValueError):
    """The tables or arguments cannot be measured as asked: the message says what, where and what to do."""


class StoreError(DisclosurePipelineError):
    """Something in the store is missing, changed, or not what it was when it was measured."""


class RefusedError(DisclosurePipelineError):
    """The policy does not let the candidate pass; the message lists the reasons."""


class UndeterminedError(DisclosurePipelineError):
    """It could not be determined whether the candidate may be released; the message lists the reasons."""


def describe_unexpected(error: BaseException) -> str:
    """Describe an error that is not ours: its type and the last lines of code it came through.

    Its message is withheld, for it may quote a record.

    >>> describe_unexpected(KeyError("a value"))
    'Unexpected KeyError. Its message is withheld.'
    """
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    return f"Unexpected {type(error).__name__}{f' at {places}' if places else ''}. Its message is withheld."
