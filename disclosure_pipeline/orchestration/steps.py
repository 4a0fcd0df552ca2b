"""The step of an asset: what it hands to Dagster, the verdict of its run, and how it fails in words."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import dagster as dg

from disclosure_pipeline.candidates.store import RefusedError
from disclosure_pipeline.errors import DisclosurePipelineError, describe_unexpected
from disclosure_pipeline.runtime.progress import listen, log_progress, report_progress
from disclosure_pipeline.tables.contract import ContractError


def now() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(timezone.utc)


P = ParamSpec("P")
T = TypeVar("T")

# A policy or contract was not kept, nothing can be said, or the gate is broken.
RunOutcome = Literal["refused", "undetermined", "crashed"]

FOR_NOTICES = "for_notices"
"""The metadata of a failure that a notice may repeat: no exact figure of GT."""


def redact_errors(body: Callable[P, T]) -> Callable[P, T]:
    """Turn whatever a body raises into a `Failure` that is not retried and carries no other error.

    Our own errors keep their message, which holds no GT value. Of any other error only its type and the
    lines of code it came through are repeated: its message may quote a record. `outcome` in the metadata
    tells a refusal from what could not be determined and from a crash; `for_notices` is what a notice says.
    """

    @wraps(body)
    def within(*args: P.args, **kwargs: P.kwargs) -> T:
        outcome: RunOutcome
        for_notices: str | None = None
        try:
            return body(*args, **kwargs)
        except RefusedError as error:
            outcome, description = "refused", str(error)
        except ContractError as error:
            outcome, description = "undetermined", str(error)
            for_notices = "; ".join(violation.without_numbers for violation in error.violations)
        except DisclosurePipelineError as error:
            outcome, description = "undetermined", str(error)
        except Exception as error:  # nothing may reach the event log as it is
            outcome = "crashed"
            description = describe_unexpected(error)
        # Outside the except block, so that the failure has no context that is logged with it.
        metadata = {"outcome": outcome, FOR_NOTICES: description if for_notices is None else for_notices}
        raise dg.Failure(description=description, metadata=metadata, allow_retries=False)

    return within


_stacks_are_left_out: list[bool] = []


class _FailureInWords(dg.Failure):
    """A failure to be raised at once out of a step: Dagster records its words alone, then stacks again."""

    def __init__(self, failure: dg.Failure) -> None:
        super().__init__(failure.description, failure.metadata, failure.allow_retries)
        if not hasattr(sys, "tracebacklimit"):  # whoever set a limit keeps it
            sys.tracebacklimit = 0
            _stacks_are_left_out.append(True)

    def __str__(self) -> str:
        _restore_stacks()
        # Python writes the name of the class before it, which is the verdict.
        return super().__str__().replace(f" is {type(self).__name__}:", ":", 1)


def _name_by_verdict(failure: dg.Failure) -> _FailureInWords:
    """Return a failure of a class with the verdict's name: Dagster's pages show that before its words."""
    named = type(_read_verdict(failure), (_FailureInWords,), {"__module__": "builtins"})
    return named(failure)


def _restore_stacks() -> None:
    if _stacks_are_left_out and hasattr(sys, "tracebacklimit"):
        del sys.tracebacklimit
    _stacks_are_left_out.clear()


Verdict = Literal["approved", "refused", "undetermined", "crashed"]
VERDICT = "verdict"
"""The tag that a run carries; it is for people: nothing reads it again."""

StepResult = dg.MaterializeResult | dg.AssetCheckResult | dg.AssetMaterialization


@dataclass(frozen=True)
class StepOutcome:
    """The results of a step, handed to Dagster in this order, and how it ends.

    `failure` ends the run; with `verdict` the run is over, and `last_words` are the last that it says.
    """

    results: Sequence[StepResult]
    failure: dg.Failure | None = None
    verdict: Verdict | None = None
    last_words: str = ""


def refuse(
    outcome: RunOutcome, sentence: str, reasons: Mapping[str, str], checks: Sequence[str]
) -> dg.Failure:
    r"""Return the failure of a step whose blocking checks (by name) did not pass, with the reasons.

    `reasons`: each as custodians read it, and as a notice may say it.

    >>> reasons = {"repU: 10.9 breaks the bound": "repU breaks the bound"}
    >>> refuse("refused", "Candidate 'a' is refused", reasons, ["within_policy"])
    Failure("Candidate 'a' is refused:\n- repU: 10.9 breaks the bound")
    """
    return dg.Failure(
        description="\n- ".join([f"{sentence}:", *reasons]),
        metadata={
            "outcome": outcome,
            "failed_checks": ", ".join(checks),
            "reasons": dg.MetadataValue.json(list(reasons)),
            FOR_NOTICES: dg.MetadataValue.json(list(dict.fromkeys(reasons.values()))),
        },
        allow_retries=False,
    )


def gate_step(
    returns: Any = dg.MaterializeResult,
) -> Callable[[Callable[..., StepOutcome]], Callable[..., Iterator[StepResult]]]:
    """Run the body of an asset: redact its errors, and tag its run with the verdict that ends it.

    `returns`: the annotation that Dagster reads.
    """

    def decorate(body: Callable[..., StepOutcome]) -> Callable[..., Iterator[StepResult]]:
        def start(*args: Any, **kwargs: Any) -> StepOutcome:
            _restore_stacks()
            with ExitStack() as stack:
                with suppress(Exception):  # without a run there is no log
                    log = dg.AssetExecutionContext.get().log
                    stack.enter_context(listen(log_progress(log.info)))
                report_progress(f"Working on the {body.__name__.replace('_', ' ').strip()}", 0, 0)
                return body(*args, **kwargs)

        redacted = redact_errors(start)

        @wraps(body)
        def within(*args: Any, **kwargs: Any) -> Iterator[StepResult]:
            try:
                outcome = redacted(*args, **kwargs)
            except dg.Failure as error:
                outcome = StepOutcome((), error)
            yield from outcome.results
            failure = outcome.failure
            # No error here changes the outcome: a release that is published has not failed.
            with suppress(Exception):
                context = dg.AssetExecutionContext.get()
                ended = outcome.verdict if failure is None else _read_verdict(failure)
                if ended is not None:
                    tag_run(context.instance, context.run.run_id, ended)
                if outcome.last_words:
                    context.log.info(outcome.last_words)
            if failure is not None:
                with suppress(Exception):
                    failure = _name_by_verdict(failure)
                raise failure

        signature = inspect.signature(body).replace(return_annotation=returns)
        within.__signature__ = signature  # type: ignore[attr-defined]
        within.__annotations__ = dict(body.__annotations__) | {"return": returns}
        return within

    return decorate


def _read_verdict(failure: dg.Failure) -> Verdict:
    outcome = failure.metadata.get("outcome")
    return next(
        (word for word in get_args(RunOutcome) if outcome is not None and outcome.value == word), "crashed"
    )


def tag_run(instance: dg.DagsterInstance, run_id: str, verdict: Verdict) -> None:
    """Tag a run with its verdict."""
    instance.add_run_tags(run_id, {VERDICT: verdict})
