"""The step of an asset: its results, its failure in words, and the settings that the steps of a gate share.

Clauses on the same figure are one check, which fails if any of them is not kept. Dagster sorts checks by
name: they stand in the order of the page's questions, copied, found, learned, trusted.

A private class of Dagster is imported here, of errors whose words and stack are not read from a traceback.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property, wraps
from importlib.metadata import version
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import dagster as dg
from dagster._core.errors import DagsterUserCodeProcessError
from dagster_shared.error import SerializableErrorInfo

from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import DisclosurePipelineError, RefusedError, describe_unexpected
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.policy.clauses import KEY_OVERLAPS, Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import Waiver
from disclosure_pipeline.policy.sentences import describe_bound
from disclosure_pipeline.runtime.progress import listen, log_progress, report_progress
from disclosure_pipeline.tables.dictionary import ContractError
from disclosure_pipeline.tables.messages import capitalized


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(timezone.utc)


P = ParamSpec("P")
T = TypeVar("T")

# A policy or contract is not kept, nothing can be determined, or the gate failed.
RunOutcome = Literal["refused", "undetermined", "crashed"]

FOR_NOTICES = "for_notices"
"""The metadata of a failure with the reasons for notices: no exact figure of GT."""


CLAUSES = "clauses"
"""The metadata of a failure with the names of the clauses that its reasons are on."""


def redact_errors(body: Callable[P, T]) -> Callable[P, T]:
    """Turn any error of a body into a `Failure` without retries and without a chained error.

    This package's errors keep their message, which holds no value of GT. Of any other error only the type and
    the lines of code in its traceback are kept: its message may quote a record. The metadata has the
    `outcome` (refused, undetermined or crashed) and the reasons `for_notices`.
    """

    @wraps(body)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        outcome: RunOutcome
        try:
            return body(*args, **kwargs)
        except DisclosurePipelineError as error:
            outcome = "refused" if isinstance(error, RefusedError) else "undetermined"
            description = for_notices = str(error)
            if isinstance(error, ContractError):
                for_notices = "; ".join(violation.without_numbers for violation in error.violations)
        except Exception as error:  # its message must not reach the event log
            outcome = "crashed"
            description = for_notices = describe_unexpected(error)
        # Outside the except block, so that no context is logged with the failure.
        metadata = {"outcome": outcome, FOR_NOTICES: for_notices}
        raise dg.Failure(description=description, metadata=metadata, allow_retries=False)

    return wrapper


class StepFailedError(DagsterUserCodeProcessError, dg.Failure):
    """A failure that Dagster records with its verdict and its words, without a stack.

    A refusal is no fault of a program, but of any other error Dagster records each line of code, and its only
    setting against that takes the words, too. An error of another process it records as that described it.
    """

    def __init__(self, failure: dg.Failure) -> None:
        verdict = _read_verdict(failure)
        words = f"{verdict}: {failure.description}".replace(f" is {verdict}:", ":", 1)
        super().__init__(  # type: ignore[no-untyped-call]  # its signature has no types
            failure.description,
            failure.metadata,
            failure.allow_retries,
            user_code_process_error_infos=[SerializableErrorInfo(f"{words}\n", [], verdict)],
        )


Verdict = Literal["approved", "refused", "undetermined", "crashed"]
VERDICT = "verdict"
"""The tag of a run with its verdict, for people; it only decides whether a crashed run is tried again."""

StepResult = dg.MaterializeResult | dg.AssetCheckResult | dg.AssetMaterialization


@dataclass(frozen=True)
class StepOutcome:
    """The ordered results of a step; the failure that ends it, or the run's verdict and last words."""

    results: Sequence[StepResult]
    failure: dg.Failure | None = None
    verdict: Verdict | None = None
    last_words: str = ""


def refuse(
    outcome: RunOutcome,
    sentence: str,
    reasons: Mapping[str, str],
    checks: Sequence[str],
    clauses: Sequence[str] = (),
) -> dg.Failure:
    r"""Return the failure of a step whose blocking `checks` (names) failed.

    `reasons`: sentence for custodians -> sentence for notices. `clauses`: the names of
    those that they are on.

    >>> reasons = {"repU: 10.9 breaks the bound": "repU breaks the bound"}
    >>> refuse("refused", "Candidate 'a' is refused", reasons, ["within_policy"])
    Failure("Candidate 'a' is refused:\n- repU: 10.9 breaks the bound")
    """
    return dg.Failure(
        description="\n- ".join([f"{sentence}:", *reasons]),
        metadata={
            "outcome": outcome,
            "failed_checks": ", ".join(checks),
            CLAUSES: dg.MetadataValue.json(list(clauses)),
            "reasons": dg.MetadataValue.json(list(reasons)),
            FOR_NOTICES: dg.MetadataValue.json(list(dict.fromkeys(reasons.values()))),
        },
        allow_retries=False,
    )


def gate_step(
    returns: Any = dg.MaterializeResult,
) -> Callable[[Callable[..., StepOutcome]], Callable[..., Iterator[StepResult]]]:
    """Make an asset's body yield its results, redact its errors and tag the run with its verdict.

    `returns` is the return annotation that Dagster reads.
    """

    def decorate(body: Callable[..., StepOutcome]) -> Callable[..., Iterator[StepResult]]:
        def start(*args: Any, **kwargs: Any) -> StepOutcome:
            with ExitStack() as stack:
                with suppress(Exception):  # there is no log without a run
                    log = dg.AssetExecutionContext.get().log
                    stack.enter_context(listen(log_progress(log.info)))
                report_progress(f"Working on the {body.__name__.replace('_', ' ').strip()}", 0, 0)
                return body(*args, **kwargs)

        redacted = redact_errors(start)

        @wraps(body)
        def wrapper(*args: Any, **kwargs: Any) -> Iterator[StepResult]:
            try:
                outcome = redacted(*args, **kwargs)
            except dg.Failure as error:
                outcome = StepOutcome((), error)
            yield from outcome.results
            failure = outcome.failure
            # No error here may change the outcome: a published release has not failed.
            with suppress(Exception):
                context = dg.AssetExecutionContext.get()
                verdict = outcome.verdict if failure is None else _read_verdict(failure)
                if verdict is not None:
                    context.instance.add_run_tags(context.run.run_id, {VERDICT: verdict})
                if outcome.last_words:
                    context.log.info(outcome.last_words)
            if failure is not None:
                raise StepFailedError(failure)

        signature = inspect.signature(body).replace(return_annotation=returns)
        wrapper.__signature__ = signature  # type: ignore[attr-defined]
        wrapper.__annotations__ = dict(body.__annotations__) | {"return": returns}
        return wrapper

    return decorate


def _read_verdict(failure: dg.Failure) -> Verdict:
    outcome = failure.metadata.get("outcome")
    return next(
        (word for word in get_args(RunOutcome) if outcome is not None and outcome.value == word), "crashed"
    )


@dataclass(frozen=True)
class ClauseCheck:
    """A check of an asset and its clauses."""

    name: str
    asset: str
    clauses: tuple[Clause, ...]
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """Describe the check and its bounds."""
        words = self.clauses[0].words
        bounds = "; ".join(_list_bounds(self.clauses, self.labels))
        return f"{capitalized(words.title)}. {words.sentence} Allowed: {bounds}."


def group_clauses(
    clauses: Sequence[Clause], labels: Mapping[str, str] | None = None
) -> tuple[ClauseCheck, ...]:
    """Group clauses to the checks of `identity_risk` and `attribute_risk`, in order of their first clauses.

    Clauses on key overlaps are omitted: they are a check of `synthetic`.

    >>> clauses = [Clause("repU", "at_most", 8), *(Clause("DiSCO", "at_most", 9, (name,)) for name in "ab")]
    >>> [(check.name, check.asset, len(check.clauses)) for check in group_clauses(clauses)]
    [('found_repU', 'identity_risk', 1), ('learned_DiSCO', 'attribute_risk', 2)]
    """
    by_check: dict[tuple[str, str], list[Clause]] = {}
    for clause in clauses:
        if clause.figure not in KEY_OVERLAPS:
            of_target = clause.entry is not None and clause.entry.about in {"target", "level"}
            asset = "attribute_risk" if of_target else "identity_risk"
            by_check.setdefault((asset, name_check(clause)), []).append(clause)
    return tuple(
        ClauseCheck(name, asset, tuple(members), labels or {}) for (asset, name), members in by_check.items()
    )


def _list_bounds(clauses: Sequence[Clause], labels: Mapping[str, str]) -> list[str]:
    columns_by_bound: dict[str, list[str]] = {}
    for clause in clauses:
        names = [labels.get(column, column) for column in clause.about]
        columns_by_bound.setdefault(describe_bound(clause), []).extend(names)
    return [
        f"{bound}, for each of {', '.join(columns)}" if columns else bound
        for bound, columns in columns_by_bound.items()
    ]


def name_check(clause: Clause) -> str:
    """Return the name of a clause's check: its question, by which Dagster sorts, and its figure.

    >>> name_check(Clause("repU", "at_most_share", 0.3)), name_check(Clause("found", "beyond", 7, ("whole",)))
    ('found_repU', 'copied_found')
    """
    assert clause.entry is not None, "a gate's clauses are on figures of this version"
    return f"{clause.entry.question}_{clause.entry.shown_with or clause.figure}"


@dataclass(frozen=True)
class GateGraph:
    """The keys, checks and settings that the assets of a gate share; `candidates` are its partitions."""

    gate: Gate
    candidates: dg.PartitionsDefinition[str]
    waivers: tuple[Waiver, ...] = ()

    @property
    def folders(self) -> GateFolders:
        """The gate's folders in the present environment."""
        return folders_of(self.gate, self.waivers)

    def key(self, name: str) -> dg.AssetKey:
        """Return the key of one of the gate's assets."""
        return dg.AssetKey([self.gate.name, name])

    @cached_property
    def clause_checks(self) -> tuple[ClauseCheck, ...]:
        """The checks of the clauses. They do not block, so that all figures are always there."""
        return group_clauses(self.gate.clauses(), self.gate.labels)

    def attributes(self, description: str, kinds: set[str]) -> dict[str, Any]:
        """Return the settings of an asset of the gate; editing the policy makes it stale."""
        return {
            "group_name": self.gate.name,
            "description": description,
            "owners": list(self.gate.owners),
            "kinds": kinds,
            "tags": {"disclosure_pipeline/gate": self.gate.name},
            "code_version": f"{version('disclosure-pipeline')}-{self.gate.policy_digest()[:12]}",
        }

    def check(self, name: str, asset: str, description: str, *, blocking: bool = True) -> dg.AssetCheckSpec:
        """Return a check of an asset, with a result per candidate except for the ground truth."""
        partitions = None if asset == "ground_truth" else self.candidates
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.PreviewWarning)
            return dg.AssetCheckSpec(
                name,
                asset=self.key(asset),
                description=description,
                blocking=blocking,
                partitions_def=partitions,
            )
