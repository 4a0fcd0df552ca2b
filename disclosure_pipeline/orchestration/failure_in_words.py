"""A failure of which Dagster records the words, and not the lines of code that it came through.

A refusal is an answer: a stack of Dagster's own frames below it explains nothing, and Dagster has no setting
for that. It reads an exception by Python's `traceback.TracebackException`, which takes no frames while
`sys.tracebacklimit` is 0 and asks for the text just after that. That Dagster does it so is not its public
interface; it is relied on nowhere else.
"""

from __future__ import annotations

import sys

import dagster as dg

_stacks_are_left_out: list[bool] = []


class FailureInWords(dg.Failure):
    """A failure that `in_words` made: once its text is read, stacks are taken again."""

    def __str__(self) -> str:
        restore_stacks()
        return super().__str__()


def in_words(failure: dg.Failure) -> dg.Failure:
    """The same failure, to be raised at once out of a step of Dagster's: it is recorded without a stack."""
    without_stack = FailureInWords(failure.description, failure.metadata, failure.allow_retries)
    if not hasattr(sys, "tracebacklimit"):  # whoever set a limit keeps it
        sys.tracebacklimit = 0
        _stacks_are_left_out.append(True)
    return without_stack


def restore_stacks() -> None:
    """Let exceptions have their stacks again, if a failure took them."""
    while _stacks_are_left_out:
        _stacks_are_left_out.pop()
        if hasattr(sys, "tracebacklimit"):
            del sys.tracebacklimit
