"""Draft the bounds of a policy from the ground truth, each with its reason.

No bound is derived from a candidate: that a candidate keeps a bound does not show that people are safe. The
bounds follow from the ground truth's own risk, and from what disjoint halves of it disclose of each other.
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

from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.together import any_of_fresh_samples
from disclosure_pipeline.measures.words import BY_CHANCE, BY_ITSELF, BY_OTHERS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.registry import BEYOND_BOTH, SMALLER_OF, find_figures

# The smallest bound, in percentage points: good models cannot be told from a smaller difference.
SMALLEST_BOUND = 2.0
# Width of the margin for chance, in standard errors of one file.
_WIDTH = 3.0
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

    Identity disclosure and DiSCO of each target are bounded by their excess over other people's records:
    three standard errors of chance for tables of these sizes, but at least two points, and more for the worst
    of several files. Several files are also bounded as one release, by the largest excess of as many fresh
    samples over draws of other people's records. An overlap that other people's records do not reach is
    lowered to half of what they share.

    `own` is the disclosure of GT as its own synthesis, `halves` that of disjoint halves of tables of this
    size (`measure_baselines`).
    """
    rows = [_describe_baseline(own, halves, "unique_hits", None, "UiO", "unique_hits_others")]
    bounds = [_draft_beyond(own, halves, "unique_hits_beyond", None, files)]
    measure = BEYOND_BOTH["DiSCO"] if gate.measures.chance else "DiSCO_beyond"
    for target in gate.targets:
        bounds.append(_draft_beyond(own, halves, measure, target, files))
        rows.append(_describe_baseline(own, halves, "DiSCO", target, "Dorig", "DiSCO_others"))
    if files > 1:
        bounds += [_draft_any(own, halves, target, files) for target in gate.targets]
    bounds += _draft_overlaps(gate, halves)
    return PolicyDraft(tuple(bounds), tuple(rows), files, records or own.N_d)


def _draft_beyond(
    own: Disclosure, halves: Sequence[Disclosure], measure: str, column: str | None, files: int
) -> DraftedBound:
    chance = measure_chance(own, halves, measure, column, files)
    bound = round_up_bound(max(SMALLEST_BOUND, chance))
    in_files = "" if files == 1 else f" and {files} files"
    margin = f"chance alone reaches {max(chance, 0):.2g} points with {own.N_d:,} people{in_files}"
    if chance < SMALLEST_BOUND:
        margin += f", and {SMALLEST_BOUND:g} points leave room for a good model"
    share = f"{math.floor(own.N_d * bound / 100):,} people"
    if column is None:
        share = f"{bound:g} in 100 synthetic records"
    reason = f"Only the excess over other people's records counts; {margin}; {bound:g} points are {share}"
    return DraftedBound(measure, column, bound, reason)


def _draft_any(own: Disclosure, halves: Sequence[Disclosure], target: str, files: int) -> DraftedBound:
    [others] = find_figures(own, "DiSCO_others", target)
    error = math.sqrt(files) * measure_chance(own, halves, "DiSCO_beyond", target)
    chance = any_of_fresh_samples([others] * files) - others + error
    bound = round_up_bound(max(SMALLEST_BOUND, chance))
    reason = (
        f"{files} fresh samples and chance go at most {chance:.2g} points beyond draws of other people's "
        f"records; {bound:g} points are {math.floor(own.N_d * bound / 100):,} people"
    )
    return DraftedBound("DiSCO_any_beyond", target, bound, reason)


def measure_chance(
    own: Disclosure, halves: Sequence[Disclosure], measure: str, column: str | None, files: int = 1
) -> float:
    """Return the largest excess that chance explains: three standard errors of a figure whose mean is 0.

    The errors are those of the halves, scaled by the square root of the number of people, and widened for the
    worst of several files and all of them together. A figure that is the smaller of two differences has the
    mean that it has on the halves, if that is below 0. Infinite if a half has no finite error.
    """
    differences = SMALLER_OF.get(measure, (measure,))
    errors = [error for half in halves for error in _list_figures(half, f"{differences[0]}_se", column)]
    if not errors or not all(map(math.isfinite, errors)):
        return math.inf
    size = halves[0].N_d / max(1, own.N_d)
    error = math.sqrt(math.fsum(error**2 for error in errors) / len(errors) * size)
    comparisons = files + (files > 1)
    width = NormalDist().inv_cdf(1 - NormalDist().cdf(-_WIDTH) / comparisons)
    if len(differences) == 1:
        return width * error
    figures = [_list_figures(half, name, column) for half in halves for name in differences]
    smaller = np.minimum(*(np.concatenate(figures[place :: len(differences)]) for place in (0, 1)))
    return min(0.0, float(smaller.mean())) + width * error


def _list_figures(half: Disclosure, name: str, column: str | None) -> list[float]:
    frame = half.identity if column is None else half.attribute.xs(column, level="target")
    return [float(figure) for figure in frame[name]]


def round_up_bound(bound: float) -> float:
    """Round a bound up to half a point, at most to 50.

    >>> round_up_bound(2.01), round_up_bound(2), round_up_bound(math.inf)
    (2.5, 2.0, 50.0)
    """
    return 50.0 if bound > 50 else math.ceil(bound / _STEP - 1e-9) * _STEP  # noqa: PLR2004


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
    own: Disclosure, halves: Sequence[Disclosure], name: str, column: str | None, original: str, others: str
) -> dict[str, Any]:
    def first(measure: str) -> float | None:
        figures = find_figures(own, measure, column)
        return figures[0] if figures else None

    return {
        "measure": name,
        "target": column or "",
        "own": first(original),
        "others": first(others),
        "chance": first("DiSCO_chance") if column and "DiSCO_chance" in own.attribute.columns else None,
        "standard_errors": measure_chance(own, halves, f"{name}_beyond", column),
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
        f"# For candidates of {files} with {draft.records:,} records; otherwise use --files and --records.",
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
    lines += ["  # Chance is not measured (measures.chance), so these bounds include what others disclose."]
    lines += ["  DiSCO:", "    targets:"]
    others = {row["target"]: row["others"] for row in draft.baselines}
    for drafted in target_bounds:
        at_most = min(99.5, round_up_bound((others[drafted.column or ""] or 0) + drafted.bound))
        lines += _comment(f"{drafted.reason}, in addition to what other people's records disclose", 6)
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
