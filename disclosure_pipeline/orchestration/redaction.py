"""Errors on their way into Dagster's event log: said in our words, without the value that caused them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

import dagster as dg

from disclosure_pipeline.candidates.store import RefusedError
from disclosure_pipeline.errors import DisclosurePipelineError, describe_unexpected
from disclosure_pipeline.orchestration.presentation import FOR_ANYBODY
from disclosure_pipeline.tables.contract import ContractError

P = ParamSpec("P")
T = TypeVar("T")

# How a run failed: a policy or contract was not kept, nothing can be said, or the gate is broken.
RunOutcome = Literal["refused", "undetermined", "crashed"]


def redact_errors(body: Callable[P, T]) -> Callable[P, T]:
    """Around a whole body: whatever it raises becomes a `Failure` that is not retried and carries no other.

    Our own errors keep their message, which holds no GT value. Of any other error only its type and the
    lines of code it came through are repeated: its message may quote a record. `outcome` in the metadata
    tells a refusal from what could not be determined and from a crash; `for_anybody` is what a notice says.
    """

    @wraps(body)
    def within(*args: P.args, **kwargs: P.kwargs) -> T:
        outcome: RunOutcome
        for_anybody: str | None = None
        try:
            return body(*args, **kwargs)
        except RefusedError as error:
            outcome, description = "refused", str(error)
        except ContractError as error:
            outcome, description = "undetermined", str(error)
            for_anybody = "; ".join(violation.without_numbers for violation in error.violations)
        except DisclosurePipelineError as error:
            outcome, description = "undetermined", str(error)
        except Exception as error:  # nothing may reach the event log as it is
            outcome = "crashed"
            description = describe_unexpected(error)
        # Outside the except block, so that the failure has no context that is logged with it.
        metadata = {"outcome": outcome, FOR_ANYBODY: description if for_anybody is None else for_anybody}
        raise dg.Failure(description=description, metadata=metadata, allow_retries=False)

    return within
