"""Where a release's predicate contradicts itself or the released files, by the rules of the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from disclosure_pipeline.policy.clauses import Clause, find_unbounded
from disclosure_pipeline.policy.public_figures import has_public_value
from disclosure_pipeline.policy.verdict import can_be_waived, hold
from disclosure_pipeline.release.predicate import ClauseStated, Predicate


def find_contradictions(predicate: Predicate, files: Mapping[str, str]) -> list[str]:
    """Sentences that say where a predicate does not fit itself or the released files (name -> sha256).

    The rules are those of the verdict: only finite values within their limits pass.
    """
    return [
        *_find_in_tables(predicate, files),
        *_find_in_clauses(predicate),
        *_find_in_waivers(predicate),
        *_find_in_times(predicate),
    ]


def _find_in_tables(predicate: Predicate, files: Mapping[str, str]) -> Iterator[str]:
    names = [table.name for table in predicate.synthetic]
    page = set() if predicate.page is None else {predicate.page.name}
    if {*names, *page} != set(files) or len({*names, *page}) < len(names) + len(page):
        yield "the synthetic tables that it counts are not the released ones"
    records = {table.name: table.records for table in predicate.synthetic}
    for name in names:
        other = name.removesuffix(".csv") + ".parquet"
        if name.endswith(".csv") and records.get(other, records[name]) != records[name]:
            yield f"{name} does not have as many records as {other}"


def _find_in_clauses(predicate: Predicate) -> Iterator[str]:
    all_clauses = [*predicate.clauses, *predicate.controls]
    repeated = [name for name, count in Counter(clause.name for clause in all_clauses).items() if count > 1]
    if repeated:
        yield f"it has more than one clause {', '.join(repeated)}"
    bounded = {(clause.measure, clause.column) for clause in predicate.clauses if not clause.warns}
    for unbounded in find_unbounded(bounded, predicate.policy.targets):
        yield f"it has no bound on {unbounded}"
    for stated in all_clauses:
        clause = _to_clause(stated, control=stated in predicate.controls)
        if stated.name != clause.name:
            yield f"clause {stated.name} is named for another measure than {clause.name}"
        if stated.loosened_from != clause.loosened_from:
            yield f"clause {stated.name} does not say right from which default it is loosened"
        if stated.outcome == "undetermined":
            yield f"clause {stated.name} could not be determined"
            continue
        yield from _find_in_figures(stated, clause)
        if (clause.control and stated.outcome != "kept") or (
            stated.outcome == "exceeded" and not stated.warns
        ):
            yield f"clause {stated.name} stands against an approval: {stated.words}"


def _find_in_figures(stated: ClauseStated, clause: Clause) -> Iterator[str]:
    """Where value and limit of a clause do not fit its outcome, or are there where they must not be."""
    if stated.share_of is not None and stated.limit is not None:
        yield f"clause {stated.name} tells the limit of a share, which is a figure of the ground truth"
    if stated.share_of is None and stated.limit != stated.bound:
        yield f"clause {stated.name} has another limit than its bound"
    if has_public_value(stated.measure, stated.share_of) != (stated.value is not None):
        has_to = "does not tell its value" if stated.value is None else "tells a value that is no share"
        yield f"clause {stated.name} {has_to}"
    elif stated.value is not None and stated.limit is not None:
        outcome = hold(_to_clause(stated, bound=stated.limit), [stated.value], 1).outcome
        if outcome != ("exceeded" if stated.outcome == "waived" else stated.outcome):
            yield (
                f"clause {stated.name} is said to be {stated.outcome}, but by value and limit it is {outcome}"
            )


def _to_clause(stated: ClauseStated, bound: float | None = None, *, control: bool = False) -> Clause:
    return Clause(
        measure=stated.measure,
        column=stated.column,
        bound=stated.bound if bound is None else bound,
        over=stated.over,
        share_of=stated.share_of,
        at_least=stated.at_least,
        warns=stated.warns,
        control=control,
    )


def _find_in_waivers(predicate: Predicate) -> Iterator[str]:
    waived = {clause.name: clause for clause in predicate.clauses if clause.outcome == "waived"}
    if sorted(waived) != sorted(waiver.clause for waiver in predicate.waivers):
        yield "its waivers are not those of the clauses that are waived"
        return
    for waiver in predicate.waivers:
        clause = waived[waiver.clause]
        if not can_be_waived(_to_clause(clause)):
            yield f"clause {clause.name} cannot be waived"
        limited = _to_clause(clause, bound=waiver.ceiling)
        if clause.value is not None and hold(limited, [clause.value], 1).outcome != "kept":
            yield f"clause {clause.name} is beyond the ceiling of waiver {waiver.name}"
        if waiver.expires <= predicate.published_at:
            yield f"waiver {waiver.name} had expired when the candidate was published"


def _find_in_times(predicate: Predicate) -> Iterator[str]:
    if predicate.published_at < predicate.measured_at:
        yield "it was published before it was measured"
