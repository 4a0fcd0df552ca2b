"""Draft the bounds of a policy, each with what it detects in tables of these sizes.

A bound is the smallest difference that matters: its clause allows for chance by itself, so none is added. No
bound is derived from a candidate: that a candidate keeps a bound does not show that people are safe. What a
clause detects follows from what disjoint halves of the ground truth disclose of each other.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import yaml

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.chance import difference_by_chance
from disclosure_pipeline.measures.together import any_beyond_by_chance, any_of_fresh_samples
from disclosure_pipeline.measures.words import BY_CHANCE, BY_ITSELF, BY_OTHERS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.registry import BEYOND_BOTH, SMALLER_OF, find_figures

MATERIAL_EFFECT = 2.0
"""The drafted bound, in percentage points: good models cannot be told from a smaller difference."""

_DETECTED = 0.95  # share of the tables in which a difference is detected
_STEP = 0.5
_OVERLAPS = ("key_overlap", "whole_key_overlap", "target_overlap")
_DRAFTED = ("unique_hits_beyond", "DiSCO", "DiSCO_any_beyond")


@dataclass(frozen=True)
class DraftedBound:
    """A bound with its reason; `column` is None for the whole table."""

    measure: str
    column: str | None
    bound: float
    reason: str


@dataclass(frozen=True)
class PolicyDraft:
    """Bounds for candidates of `files` files with `records` records each, and the baselines behind them.

    `baselines` has one row per figure of a target, or of the whole table.
    """

    bounds: tuple[DraftedBound, ...]
    baselines: tuple[dict[str, Any], ...]
    files: int
    records: int


def draft_policy(
    gate: Gate, own: Disclosure, halves: Sequence[Disclosure], files: int = 1, records: int | None = None
) -> PolicyDraft:
    """Draft bounds for a gate, for candidates of `files` files of `records` records (by default, of GT's).

    Identity disclosure and DiSCO of each target are bounded by their excess over other people's records, and
    several files also as one release: by `MATERIAL_EFFECT`. The reason of each bound says which excess its
    clause detects. An overlap that other people's records do not reach is lowered to half of what they
    share.

    `own` is the disclosure of GT as its own synthesis, `halves` that of disjoint halves of tables of this
    size (`measure_baselines`).
    """
    rows = [_describe_baseline(own, halves, "unique_hits", None, "UiO", "unique_hits_others")]
    bounds = [_draft_beyond(own, halves, "unique_hits_beyond", None)]
    measure = BEYOND_BOTH["DiSCO"] if gate.measures.chance else "DiSCO_beyond"
    for target in gate.targets:
        bounds.append(_draft_beyond(own, halves, measure, target, len(gate.targets)))
        rows.append(
            _describe_baseline(own, halves, "DiSCO", target, "Dorig", "DiSCO_others", len(gate.targets))
        )
    if files > 1:
        bounds += [_draft_any(own, halves, target, files, len(gate.targets)) for target in gate.targets]
    bounds += _draft_overlaps(gate, halves)
    return PolicyDraft(tuple(bounds), tuple(rows), files, records or own.N_d)


def _draft_beyond(
    own: Disclosure, halves: Sequence[Disclosure], measure: str, column: str | None, comparisons: int = 1
) -> DraftedBound:
    error = estimate_error(own, halves, SMALLER_OF.get(measure, (measure,))[0], column)
    usual = min(0.0, _find_mean_of_halves(halves, measure, column))
    excess = f"in 100 {'people' if column is not None else 'synthetic records'} over other people's records"
    by_chance = difference_by_chance(error, comparisons)
    return DraftedBound(
        measure, column, MATERIAL_EFFECT, _say_what_is_detected(by_chance, error, usual, excess)
    )


def _draft_any(
    own: Disclosure, halves: Sequence[Disclosure], target: str, files: int, comparisons: int
) -> DraftedBound:
    [others] = find_figures(own, "DiSCO_others", target)
    error = math.sqrt(files) * estimate_error(own, halves, "DiSCO_beyond", target)
    by_chance = any_beyond_by_chance(any_of_fresh_samples([others] * files) - others, error, comparisons)
    excess = f"in 100 people, in any of {files} files, over as many draws of other people's records"
    return DraftedBound(
        "DiSCO_any_beyond", target, MATERIAL_EFFECT, _say_what_is_detected(by_chance, error, 0.0, excess)
    )


def _say_what_is_detected(by_chance: float, error: float, usual: float, excess: str) -> str:
    """Say which excess a clause detects, if honest tables have an excess of `usual` on average."""
    detected = find_detected_excess(MATERIAL_EFFECT, by_chance, error, usual)
    if not detected < 100:  # noqa: PLR2004 (percent; NaN, too)
        return "In tables of this size chance explains every excess: the bound detects nothing"
    return (
        f"Detects, in 19 of 20 tables, an excess of {detected:.2g} {excess}; in tables of this size, chance "
        f"explains up to {by_chance:.2g}"
    )


def find_detected_excess(bound: float, by_chance: float, error: float, usual: float = 0.0) -> float:
    """Return the smallest excess, in percentage points, that breaks a clause in 19 of 20 tables.

    A clause is broken if a figure exceeds its bound and what chance explains. `usual`: the figure's average
    in honest tables, `error`: its standard error.

    >>> round(find_detected_excess(2, 3.7, 1.0), 2), find_detected_excess(2, 0, 0)
    (5.34, 2.0)
    """
    return max(bound, by_chance) + NormalDist().inv_cdf(_DETECTED) * error - usual


def estimate_error(
    own: Disclosure, halves: Sequence[Disclosure], difference: str, column: str | None
) -> float:
    """Return the standard error that a difference has in one file, from those of the halves.

    They are brought to the number of people of the whole table. Infinite if a half has no finite error.
    """
    errors = [error for half in halves for error in _list_figures(half, f"{difference}_se", column)]
    if not errors or not all(map(math.isfinite, errors)):
        return math.inf
    size = halves[0].N_d / max(1, own.N_d)
    return math.sqrt(math.fsum(error**2 for error in errors) / len(errors) * size)


def _find_mean_of_halves(halves: Sequence[Disclosure], measure: str, column: str | None) -> float:
    """Return the mean of a figure that is the smaller of two differences; 0 for one difference."""
    if measure not in SMALLER_OF or not halves:
        return 0.0
    first, second = (
        np.concatenate([_list_figures(half, name, column) for half in halves]) for name in SMALLER_OF[measure]
    )
    return float(np.minimum(first, second).mean())


def _list_figures(half: Disclosure, name: str, column: str | None) -> list[float]:
    frame = half.identity if column is None else half.attribute.xs(column, level="target")
    return [float(figure) for figure in frame[name]]


def round_up_bound(bound: float) -> float:
    """Round a bound up to half a point, at most to 99.5.

    >>> round_up_bound(2.01), round_up_bound(2), round_up_bound(math.inf)
    (2.5, 2.0, 99.5)
    """
    return 99.5 if bound > 99.5 else math.ceil(bound / _STEP - 1e-9) * _STEP  # noqa: PLR2004


def _draft_overlaps(gate: Gate, halves: Sequence[Disclosure]) -> list[DraftedBound]:
    """Lower the overlaps that other people's records do not reach."""
    overlaps: list[tuple[str, str, float, Sequence[str | None]]] = [
        ("key_overlap", "key_overlap", gate.policy.key_overlap, gate.keys),
        ("whole_key_overlap", "key_overlap", gate.policy.whole_key_overlap, [None]),
        ("target_overlap", "target_overlap", gate.policy.target_overlap, gate.targets),
    ]
    drafted = []
    for name, measure, bound, columns in overlaps:
        shares = [
            share for half in halves for column in columns for share in find_figures(half, measure, column)
        ]
        finite = [share for share in shares if math.isfinite(share)]
        lowest = min(finite, default=math.inf)
        if lowest < bound:
            lower = max(0.5, math.floor(lowest / 2 / _STEP) * _STEP)
            reason = (
                f"Other people's records share only {lowest:.3g} %, so {bound:g} would refuse any table; "
                "half of that still detects tables that are coded differently"
            )
            drafted.append(DraftedBound(name, None, lower, reason))
    return drafted


def _describe_baseline(
    own: Disclosure,
    halves: Sequence[Disclosure],
    name: str,
    column: str | None,
    original: str,
    others: str,
    comparisons: int = 1,
) -> dict[str, Any]:
    def first(measure: str) -> float | None:
        figures = find_figures(own, measure, column)
        return figures[0] if figures else None

    by_others, apart = first(others), first(f"{name}_apart") if column is None else None
    return {
        "measure": name,
        "target": column or "",
        "own": first(original),
        "others": by_others if by_others is None or apart is None else max(by_others, apart),
        "chance": first("DiSCO_chance") if column and "DiSCO_chance" in own.attribute.columns else None,
        "beyond_by_chance": difference_by_chance(
            estimate_error(own, halves, f"{name}_beyond", column), comparisons
        ),
    }


def write_policy(gate: Gate, draft: PolicyDraft, candidates: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the draft as the `policy:` section of the gate's file, with the reasons as comments.

    The rest of the gate's policy is kept. `candidates` are dossiers, listed for comparison only. Raise
    ValueError if the draft does not load.
    """
    lines = [*_comment_baselines(draft), "policy:", *_write_bounds(gate, draft), *_write_kept(gate, draft)]
    lines += _comment_candidates(draft, candidates)
    text = "\n".join(lines) + "\n"
    apply_draft(gate, text)
    return text


def write_power(sentences: Sequence[str]) -> str:
    """Return what a drafted policy would detect, as comments to follow it."""
    comments = [f"# {_join_lines(sentence)}" for sentence in sentences]
    return "\n".join(["", "# What this policy would detect:", *comments, ""])


def apply_draft(gate: Gate, text: str) -> Gate:
    """Return the gate with a policy that `write_policy` wrote. Raise ValueError if it does not load."""
    return Gate.model_validate(gate.model_dump() | {"policy": yaml.safe_load(text)["policy"]})


def _comment_baselines(draft: PolicyDraft) -> list[str]:
    files = "one file" if draft.files == 1 else f"{draft.files} files"
    lines = [
        "# Drafted from the ground truth alone: its own risk, what other people's records would tell about",
        "# each person, and how far chance alone goes beyond that. In percent of the people, but",
        "# unique_hits in percent of the synthetic records.",
        f"# For candidates of {files} with {write_count(draft.records, 'record')}; otherwise use "
        "--files and --records.",
        "#",
        f"# {'figure':<30} {BY_ITSELF:>25} {BY_OTHERS:>22} {BY_CHANCE:>8}",
    ]
    for row in draft.baselines:
        name = f"{row['measure']}{' of ' + row['target'] if row['target'] else ''}"
        cells = [(row["own"], 25), (row["others"], 22), (row["chance"], 8)]
        shown = [f"{'-' if cell is None else f'{cell:.2f}':>{width}}" for cell, width in cells]
        lines.append(f"# {_join_lines(name):<30} {' '.join(shown)}")
    return lines


def _write_bounds(gate: Gate, draft: PolicyDraft) -> list[str]:
    lines = []
    any_bounds = [drafted for drafted in draft.bounds if drafted.measure == "DiSCO_any_beyond"]
    target_bounds = [
        drafted for drafted in draft.bounds if drafted.column is not None and drafted not in any_bounds
    ]
    for drafted in draft.bounds:
        if drafted.column is None:
            lines += [*_comment(drafted.reason, 2), f"  {drafted.measure}: {drafted.bound:g}"]
    if any_bounds:
        lines += ["  DiSCO_any_beyond:", "    targets:"]
    for drafted in any_bounds:
        lines += [*_comment(drafted.reason, 6), f"      {_quote_name(drafted.column)}: {drafted.bound:g}"]
    if not target_bounds:
        return lines
    if gate.measures.chance:
        common = min(drafted.bound for drafted in target_bounds)
        lines += ["  DiSCO:", f"    beyond: {common:g}", "    targets:"]
        for drafted in target_bounds:
            lines += _comment(drafted.reason, 6)
            lines.append(f"      {_quote_name(drafted.column)}: {{beyond: {drafted.bound:g}}}")
        return lines
    lines += [
        "  # Chance is not measured (measures.chance), so these bounds include what others disclose, and",
        "  # what chance adds to it.",
        "  DiSCO:",
        "    targets:",
    ]
    baselines = {row["target"]: row for row in draft.baselines}
    for drafted in target_bounds:
        row = baselines[drafted.column]
        at_most = round_up_bound((row["others"] or 0) + max(drafted.bound, row["beyond_by_chance"]))
        lines += _comment(drafted.reason, 6)
        lines.append(f"      {_quote_name(drafted.column)}: {{at_most: {at_most:g}}}")
    return lines


def _write_kept(gate: Gate, draft: PolicyDraft) -> list[str]:
    drafted = {bound.measure for bound in draft.bounds} | set(_DRAFTED)
    content = gate.policy.model_dump(mode="json", exclude_defaults=True)
    kept = {name: value for name, value in content.items() if name not in drafted}
    if not kept:
        return []
    text = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, default_flow_style=False, width=100)
    return ["  # Already in the gate.", *(f"  {line}" for line in text.splitlines())]


def _comment_candidates(draft: PolicyDraft, candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    if not candidates:
        return []
    lines = ["", "# Candidates judged before, for comparison: no bound follows from them."]
    for dossier in candidates:
        values_of = {(row["measure"], row["column"]): row["value"] for row in dossier["clauses"]}
        figures = []
        for bound in draft.bounds:
            value = values_of.get((bound.measure, bound.column))
            if value is not None and bound.measure not in _OVERLAPS:
                name = bound.measure if bound.column is None else f"{bound.measure}[{bound.column}]"
                figures.append(f"{name} {value:.3g} {'<=' if value <= bound.bound else '>'} {bound.bound:g}")
        lines.append(
            f"# {dossier['candidate']} ({dossier['decision']}): {'; '.join(figures) or 'not measured'}"
        )
    return [_join_lines(line) for line in lines]


def _comment(sentence: str, indent: int) -> list[str]:
    margin = " " * indent + "# "
    return textwrap.wrap(f"{sentence}.", 100, initial_indent=margin, subsequent_indent=margin)


def _quote_name(column: str | None) -> str:
    return yaml.safe_dump(column, default_style='"', width=10_000, allow_unicode=True).strip()


def _join_lines(text: str) -> str:
    return " ".join(text.split()) if "\n" in text or "\r" in text else text
