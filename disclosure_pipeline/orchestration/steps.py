"""The step of an asset: what it hands to Dagster, the verdict of its run, and how it fails in words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, get_args

import dagster as dg

from disclosure_pipeline.orchestration.failure_in_words import fail_in_words, restore_stacks
from disclosure_pipeline.orchestration.redaction import RunOutcome, redact_errors

Verdict = Literal["approved", "refused", "undetermined", "crashed"]
VERDICT = "verdict"
"""The tag that a run carries; it is for people: nothing reads it again."""

StepResult = dg.MaterializeResult | dg.AssetCheckResult | dg.AssetMaterialization


@dataclass(frozen=True)
class StepOutcome:
    """What a step hands to Dagster, in this order; then it ends in words.

    `failure` ends the run; with `verdict` the run is over, and `last_words` are the last that it says.
    """

    results: Sequence[StepResult]
    failure: dg.Failure | None = None
    verdict: Verdict | None = None
    last_words: str = ""


def refuse(outcome: RunOutcome, sentence: str, reasons: Sequence[str], checks: Sequence[str]) -> dg.Failure:
    r"""The failure of a step whose blocking checks (by name) did not pass, with the reasons, a sentence each.

    >>> refuse("refused", "Candidate 'a' is refused", ["repU: 10.9 breaks the bound"], ["within_policy"])
    Failure("Candidate 'a' is refused:\n- repU: 10.9 breaks the bound")
    """
    return dg.Failure(
        description="\n- ".join([f"{sentence}:", *reasons]),
        metadata={
            "outcome": outcome,
            "failed_checks": ", ".join(checks),
            "reasons": dg.MetadataValue.json(list(reasons)),
        },
        allow_retries=False,
    )


def gate_step(
    returns: Any = dg.MaterializeResult,
) -> Callable[[Callable[..., StepOutcome]], Callable[..., Iterator[StepResult]]]:
    """Around the body of an asset: errors are redacted, its run is tagged with the verdict that ends it.

    `returns`: the annotation that Dagster reads.
    """

    def decorate(body: Callable[..., StepOutcome]) -> Callable[..., Iterator[StepResult]]:
        redacted = redact_errors(body)

        @wraps(body)
        def within(*args: Any, **kwargs: Any) -> Iterator[StepResult]:
            return _hand_over(lambda: redacted(*args, **kwargs))

        signature = inspect.signature(body).replace(return_annotation=returns)
        within.__signature__ = signature  # type: ignore[attr-defined]
        within.__annotations__ = dict(body.__annotations__) | {"return": returns}
        return within

    return decorate


def _hand_over(compute: Callable[[], StepOutcome]) -> Iterator[StepResult]:
    """All results, once all are there; then the failure or the last words."""
    restore_stacks()
    context = dg.AssetExecutionContext.get()
    try:
        outcome = compute()
    except dg.Failure as error:
        outcome = StepOutcome((), failure=error)
    yield from outcome.results
    verdict = outcome.verdict if outcome.failure is None else _read_verdict(outcome.failure)
    if verdict is not None:
        tag_run(context.instance, context.run.run_id, verdict)
    if outcome.failure is not None:
        fail_in_words(outcome.failure)
    if outcome.last_words:
        context.log.info(outcome.last_words)


def _read_verdict(failure: dg.Failure) -> Verdict:
    said = failure.metadata.get("outcome")
    return next((word for word in get_args(RunOutcome) if said is not None and said.value == word), "crashed")


def tag_run(instance: dg.DagsterInstance, run_id: str, verdict: Verdict) -> None:
    """Let a run carry its verdict."""
    instance.add_run_tags(run_id, {VERDICT: verdict})
