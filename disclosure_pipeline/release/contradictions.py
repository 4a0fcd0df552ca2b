"""Where a release's predicate contradicts itself or the released files, by the rules of the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from disclosure_pipeline.policy.clauses import Clause, find_unbounded
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
        if stated.value is None or stated.limit is None:
            yield f"clause {stated.name} could not be determined"
            continue
        if stated.share_of is None and stated.limit != stated.bound:
            yield f"clause {stated.name} has another limit than its bound"
        limited = _to_clause(stated, bound=stated.limit, control=clause.control)
        outcome = hold(limited, [stated.value], 1).outcome
        if outcome != ("exceeded" if stated.outcome == "waived" else stated.outcome):
            yield (
                f"clause {stated.name} is said to be {stated.outcome}, but by value and limit it is {outcome}"
            )
        elif (
            outcome != "kept" and stated.outcome != "waived" and not (outcome == "exceeded" and stated.warns)
        ):
            yield f"clause {stated.name} stands against an approval: {stated.words}"


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
        value = [] if clause.value is None else [clause.value]
        if hold(_to_clause(clause, bound=waiver.ceiling), value, 1).outcome != "kept":
            yield f"clause {clause.name} is beyond the ceiling of waiver {waiver.name}"
        if waiver.expires <= predicate.published_at:
            yield f"waiver {waiver.name} had expired when the candidate was published"


def _find_in_times(predicate: Predicate) -> Iterator[str]:
    if predicate.published_at < predicate.measured_at:
        yield "it was published before it was measured"
