"""Which judgement is named first: the one that stands most against a release."""

from typing import Any

import pytest

from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import Judgement, Outcome, find_worst_judgement


def judgement(
    measure: str, value: float | None, limit: float = 10.0, outcome: Outcome = "kept", **clause: Any
) -> Judgement:
    return Judgement(Clause(measure, None, limit, **clause), value, limit, outcome)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (judgement("a", 9.0), judgement("b", 8.0)),
        (judgement("a", 1e9, outcome="exceeded"), judgement("b", None, outcome="undetermined")),
        (judgement("a", None, outcome="undetermined"), judgement("b", 11.0, outcome="waived")),
        (judgement("a", 11.0, outcome="exceeded"), judgement("b", 10.0)),
        (judgement("a", 30.0, outcome="exceeded"), judgement("b", 20.0, outcome="exceeded")),
        (judgement("a", 11.0, outcome="waived"), judgement("b", 10.0)),
        (judgement("a", 11.0, at_least=True), judgement("b", 20.0, at_least=True)),
        (judgement("a", 0.0), judgement("b", 1e9, outcome="exceeded", warns=True)),
        (judgement("a", 0.0), judgement("b", 10.0, control=True)),
        (judgement("a", 10.1, outcome="exceeded", control=True), judgement("b", 1e9, outcome="exceeded")),
        (judgement("a", 0.1, 0.0, outcome="exceeded"), judgement("b", 1e9, outcome="exceeded")),
        (judgement("a", 0.1), judgement("b", 0.0, 0.0)),
        (judgement("a", 0.1), judgement("key_overlap", 11.0, at_least=True)),
        (judgement("key_overlap", 9.0, outcome="exceeded", at_least=True), judgement("b", 9.9)),
    ],
)
def test_the_worst_stands_most_against_a_release(worse: Judgement, better: Judgement) -> None:
    assert find_worst_judgement([worse, better]) is worse
    assert find_worst_judgement([better, worse]) is worse


def test_of_those_that_take_nothing_of_their_bounds_the_first_is_named() -> None:
    judgements = [judgement("a", 0.0, 0.0), judgement("b", 0.0), judgement("c", -1.0)]
    assert find_worst_judgement(judgements) is judgements[0]
    assert find_worst_judgement(judgements[::-1]) is judgements[-1]
    assert find_worst_judgement([]) is None
