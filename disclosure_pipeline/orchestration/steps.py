"""The step of an asset: what it hands to Dagster, the verdict of its run, and how it fails in words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, get_args

import dagster as dg

from disclosure_pipeline.orchestration.failure_in_words import in_words, restore_stacks
from disclosure_pipeline.orchestration.presentation import FOR_ANYBODY
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


def refuse(
    outcome: RunOutcome, sentence: str, reasons: Mapping[str, str], checks: Sequence[str]
) -> dg.Failure:
    r"""The failure of a step whose blocking checks (by name) did not pass, with the reasons, a sentence each.

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
            FOR_ANYBODY: dg.MetadataValue.json(list(dict.fromkeys(reasons.values()))),
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
        def start(*args: Any, **kwargs: Any) -> StepOutcome:
            restore_stacks()
            return body(*args, **kwargs)

        redacted = redact_errors(start)

        def hand_over(args: Any, kwargs: Any) -> Iterator[StepResult]:
            """All results, once all are there; then the failure or the last words."""
            results: Sequence[StepResult] = ()
            verdict: Verdict | None = None
            last_words = ""
            failure: dg.Failure | None = None
            try:
                outcome = redacted(*args, **kwargs)
                results, failure = outcome.results, outcome.failure
                verdict, last_words = outcome.verdict, outcome.last_words
            except dg.Failure as error:
                failure = error
            yield from results
            # What is told at the end changes nothing: a release that is published is no failed one.
            with suppress(Exception):
                context = dg.AssetExecutionContext.get()
                ended = verdict if failure is None else _read_verdict(failure)
                if ended is not None:
                    tag_run(context.instance, context.run.run_id, ended)
                if last_words:
                    context.log.info(last_words)
            if failure is not None:
                with suppress(Exception):
                    failure = in_words(failure)
                raise failure

        @wraps(body)
        def within(*args: Any, **kwargs: Any) -> Iterator[StepResult]:
            return hand_over(args, kwargs)

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
    """Let a run carry its verdict."""
    instance.add_run_tags(run_id, {VERDICT: verdict})
