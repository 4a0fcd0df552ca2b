"""Which clauses a waiver may let pass: every kind of clause, and every measure that a policy can bound."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from support.gates import definition

from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.registry import CONTROLS, DOUBTS, GUARDS, MEASURES
from disclosure_pipeline.policy.verdict import can_be_waived, decide, hold, waive
from disclosure_pipeline.policy.waivers import Waiver

NOW = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)

# One clause of each kind, two figures that do not keep it (of the measure, and of what its bound is a share
# of), and whether a waiver may let it pass.
KINDS: dict[str, tuple[Clause, float, float | None, bool]] = {
    "measure of the table": (Clause("repU", None, 5), 6, None, True),
    "measure of a target": (Clause("DiSCO", "work", 5), 6, None, True),
    "mean of the syntheses": (Clause("DiSCO", "work", 5, over="mean"), 6, None, True),
    "share of GT's own risk": (Clause("repU", None, 0.5, share_of="UiO"), 6, 10, True),
    "share of GT's own risk of a target": (Clause("DiSCO", "work", 0.5, share_of="Dorig"), 6, 10, True),
    "records that are excluded": (Clause("excluded", "work", 50), 60, None, False),
    "people found": (Clause("people_copied_beyond", None, 2.5), 3, None, False),
    "copies": (Clause("unique_copies_beyond", None, 2.5), 3, None, False),
    "near copies": (Clause("partial_copies_beyond", None, 7), 8, None, False),
    "nearest records": (Clause("nearer", None, 70), 71, None, False),
    "renamed values": (Clause("relabelled", None, 0.15), 0.2, None, False),
    "missing values": (Clause("missing_beyond", None, 20), 30, None, False),
    "people alike": (Clause("alike", None, 97.5), 98, None, False),
    "equal content": (Clause("equal_content", None, 0), 1, None, False),
    "measure that is safe when high": (Clause("cap__score", "work", 0.5, at_least=True), 0.4, None, True),
    "flags that refuse": (Clause("one_way_flags", "work", 0), 1, None, True),
    "flags that warn": (Clause("two_way_flags", "work", 0, warns=True), 1, None, True),
    "overlap of a key": (Clause("key_overlap", "sex", 80, at_least=True), 70, None, False),
    "overlap of the whole key": (Clause("key_overlap", None, 5, at_least=True), 4, None, False),
    "overlap of a target": (Clause("target_overlap", "work", 50, at_least=True), 40, None, False),
    "warnings that refuse": (Clause("warnings", None, 0), 1, None, False),
    "warnings that warn": (Clause("warnings", None, 0, warns=True), 1, None, False),
    "control of identity disclosure": (
        Clause("copy_repU", None, 1, share_of="copy_UiO", at_least=True, control=True), 9, 10, False),
    "control of attribute disclosure": (
        Clause("copy_DiSCO", "work", 1, share_of="copy_Dorig", at_least=True, control=True), 9, 10, False),
    "control of chance": (Clause("permuted_deviation", "work", 6, control=True), 7, None, False),
    "control of halves": (Clause("half_deviation", "work", 6, control=True), 7, None, False),
    "control of a copy's figures": (Clause("copy_difference", "work", 0, control=True), 1, None, False),
}  # fmt: skip


@pytest.mark.parametrize(("clause", "figure", "original", "waivable"), KINDS.values(), ids=KINDS)
def test_every_kind_of_clause(clause: Clause, figure: float, original: float | None, waivable: bool) -> None:
    """As a waiver for exactly this clause finds it, whose ceiling allows the figure."""
    assert can_be_waived(clause) is waivable
    broken = hold(clause, [figure], 1, None if original is None else [original])
    assert broken.outcome in {"exceeded", "undetermined"}
    waiver = Waiver(
        name="agreed",
        gate="survey",
        snapshot="a" * 64,
        policy_digest="c" * 64,
        clause=clause.name,
        ceiling=figure,
        reason="Agreed for the pilot",
        approver="review board",
        expires=NOW + timedelta(days=1),
    )
    (judgement,), refused = waive(
        [broken], [waiver], gate="survey", snapshot="a" * 64, policy_digest="c" * 64, now=NOW
    )
    assert (judgement.outcome == "waived") is waivable
    assert [problem.problem for problem in refused] == (
        [] if waivable else [f"the policy has no clause {clause.name} that can be waived"]
    )
    assert (decide([judgement, hold(Clause("iS", None, 5), [1.0], 1)], refused) == "approved") is waivable


@pytest.mark.parametrize("consequence", ["warn", "refuse"])
def test_no_clause_of_a_gate_is_of_another_kind(consequence: str) -> None:
    bounds: dict[str, dict[str, Any]] = {
        name: {"at_least": 0.5} if measure.high_is_safe else {"at_most": min(5, measure.largest or 5)}
        for name, measure in MEASURES.items()
    }
    for name, over in (("repU", "worst"), ("DiSCO", "mean")):
        bounds[name] |= {"at_most_share": 0.5, "over": over}
    bounds["DiSCO"] |= {"worst": 8, "beyond": 3}
    measures = {"protection": {"methods": ["cap", "zero_cap", "generalized_cap"]}, "prediction": True}
    flags = {"one_way": consequence, "two_way": consequence}
    exclusions = {"missing_targets": True}
    everything = definition(
        columns=definition()["columns"] | {"income": {"type": "integer", "within": 0.02}},
        measures=measures,
        policy=bounds | flags,
        exclusions=exclusions,
        weight="people",
        people="weighted",
        confidential={"others": "others.csv"},
        holdout="others",
    )
    clauses = Gate.model_validate(everything).clauses()
    assert {clause.measure for clause in clauses if can_be_waived(clause)} == {
        *MEASURES,
        "DiSCO_beyond_both",
        "DiSCO_beyond_both_weighted",
        "one_way_flags",
        "two_way_flags",
    }
    bounded_controls = {"copy_repU", "copy_DiSCO", "copy_difference", "permuted_deviation", "half_deviation"}
    assert bounded_controls <= set(CONTROLS)
    assert {clause.measure for clause in clauses if not can_be_waived(clause)} == {
        "key_overlap",
        "target_overlap",
        *DOUBTS,
        *GUARDS,
        "warnings",
        *bounded_controls,
    }
