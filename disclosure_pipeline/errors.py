"""The errors of this package, and counts in words. No message ever holds a value of the ground truth."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

_FRAMES = 4


def write_count(number: int, noun: str, plural: str = "") -> str:
    """Write a number and what it counts; the plural is the noun with an s unless it is given.

    >>> write_count(1, "record"), write_count(1200, "record"), write_count(0, "try", "tries")
    ('1 record', '1,200 records', '0 tries')
    """
    return f"{number:,} {choose_form(number, noun, plural or f'{noun}s')}"


def choose_form(number: int, singular: str, plural: str) -> str:
    """Return the form of a word for a number of things.

    >>> f"1 of 19 risks {choose_form(1, 'is beyond its bound', 'are beyond their bounds')}"
    '1 of 19 risks is beyond its bound'
    """
    return singular if number == 1 else plural


class DisclosurePipelineError(Exception):
    """Base of every error that this package raises."""


class ComparabilityWarning(UserWarning):
    """The tables may be coded differently, so that risks read too low; the message names the column."""


class CopiesWarning(UserWarning):
    """A synthetic table holds people of the ground truth, whole or nearly; the message says how many."""


class HoldoutWarning(UserWarning):
    """The holdout shares records with the ground truth and so hides what the synthetic table leaks."""


class UnitWarning(UserWarning):
    """Records of the ground truth repeat: people may have several, and no `unit` column tells them apart."""


class InputError(DisclosurePipelineError, ValueError):
    """The tables or arguments cannot be measured; the message says what is wrong, where, and what to do."""


class StoreError(DisclosurePipelineError):
    """A file of the store is missing, damaged, or changed since it was measured."""


class RefusedError(DisclosurePipelineError):
    """The policy refuses the candidate; the message lists the reasons."""


class UndeterminedError(DisclosurePipelineError):
    """Nothing could be determined about the candidate; the message lists the reasons."""


def describe_unexpected(error: BaseException) -> str:
    """Describe an error of another library by its type and the last lines of code that it passed.

    Its message is withheld because it may quote a record; the system's words for a number of its own cannot.

    >>> describe_unexpected(KeyError("a value"))
    'Unexpected KeyError. Its message is withheld.'
    >>> describe_unexpected(OSError(errno.ENOSPC, "a value", "a file"))
    'Unexpected OSError (No space left on device). Its message is withheld.'
    """
    number = (isinstance(error, OSError) and error.errno) or 0
    reason = f" ({os.strerror(number)})" if number in errno.errorcode else ""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    place = f" at {places}" if places else ""
    return f"Unexpected {type(error).__name__}{reason}{place}. Its message is withheld."
