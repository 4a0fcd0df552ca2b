"""What a command ends with: its exit code, and errors in our words."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from disclosure_pipeline.errors import DisclosurePipelineError, describe_unexpected
from disclosure_pipeline.tables.messages import escape_unseen_in_lines

if TYPE_CHECKING:
    from disclosure_pipeline.candidates.store import GateFolders

P = ParamSpec("P")
T = TypeVar("T")


class ExitCode(IntEnum):
    """The exit codes of every command."""

    APPROVED = 0
    REFUSED = 1
    USAGE = 2
    UNDETERMINED = 3
    CRASHED = 4


MEANINGS = {
    ExitCode.APPROVED: "approved; or done, and nothing is wrong",
    ExitCode.REFUSED: "refused: a clause is not kept, or what was given cannot be taken as it is",
    ExitCode.USAGE: "the command was called wrongly",
    ExitCode.UNDETERMINED: "could not be determined, which is never an approval",
    ExitCode.CRASHED: "crashed: this program failed, and has decided nothing",
}

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in MEANINGS.items())
"""The table for the help of every command."""


def code_of(decision: str | None) -> ExitCode:
    """Return the exit code of a verdict; that of an undetermined one where there is none.

    >>> code_of("refused")
    <ExitCode.REFUSED: 1>
    >>> code_of(None)
    <ExitCode.UNDETERMINED: 3>
    """
    codes = {"approved": ExitCode.APPROVED, "refused": ExitCode.REFUSED}
    return codes.get(decision or "", ExitCode.UNDETERMINED)


def stop(message: str, code: ExitCode) -> click.ClickException:
    """Return the exception that ends a command with a message and an exit code."""
    exception = click.ClickException(escape_unseen_in_lines(message))
    exception.exit_code = int(code)  # type: ignore[misc]  # click means it to be set
    return exception


def report_errors(code: ExitCode = ExitCode.REFUSED) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Print our own errors and end the command with `code`; all others count as a crash.

    Of an error that is not ours only its type and the lines it came through are told: its message may quote
    a record. Errors that say by themselves whether they refuse or leave undetermined end with that.
    """

    def decorate(command: Callable[P, T]) -> Callable[P, T]:
        @wraps(command)
        def within(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return command(*args, **kwargs)
            except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                raise
            except DisclosurePipelineError as error:
                ending = stop(str(error), _code_of_error(error, code))
            except Exception as error:  # of whatever library
                ending = stop(describe_unexpected(error), ExitCode.CRASHED)
            # Outside the except block: no other error hangs on to it.
            raise ending

        return within

    return decorate


def _code_of_error(error: DisclosurePipelineError, otherwise: ExitCode) -> ExitCode:
    from disclosure_pipeline.candidates.store import RefusedError, UndeterminedError

    if isinstance(error, RefusedError):
        return ExitCode.REFUSED
    return ExitCode.UNDETERMINED if isinstance(error, UndeterminedError) else otherwise


gate_argument = click.argument("gate", type=click.Path(exists=True, path_type=Path))


def load_with_waivers(gate: Path) -> tuple[Path, GateFolders]:
    """Load the gate with the waivers beside its file; return that file, and the gate's folders."""
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.policy.gate_reader import find_gate_file
    from disclosure_pipeline.policy.waivers import read_waivers

    file = (find_gate_file(gate) or gate) if gate.is_dir() else gate
    return file, folders_of(load_gate(file), read_waivers(file.parent / "waivers"))
