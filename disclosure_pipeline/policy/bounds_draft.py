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

import yaml

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.long_table import FigureRow, tabulate_figures
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.chance import difference_by_chance, hits_by_chance
from disclosure_pipeline.measures.copies import HitCounts
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import BY_CHANCE, BY_ITSELF, BY_OTHERS
from disclosure_pipeline.policy.bounds import find_short_word
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import OVERLAPS

MATERIAL_EFFECT = 2.0
"""The drafted bound, in percentage points: good models cannot be told from a smaller difference."""

_DETECTED = 0.95  # share of the tables in which a difference is detected
_STEP = 0.5
_DRAFTED = ("unique_hits", "DiSCO", "DiSCO_any")


@dataclass(frozen=True)
class DraftedBound:
    """A bound with its reason: of a difference, or of an overlap. `column` is None for the whole table."""

    figure: str
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
    unique = {"own": float(own.identity["UiO"].iloc[0])}
    rows = [_describe_baseline(own, halves, "unique_hits", None) | unique]
    bounds = [_draft_beyond(own, halves, "unique_hits", None)]
    for target in gate.targets:
        bounds.append(_draft_beyond(own, halves, "DiSCO", target, len(gate.targets)))
        rows.append(_describe_baseline(own, halves, "DiSCO", target, len(gate.targets)))
    if files > 1:
        bounds += [_draft_any(own, halves, target, files, len(gate.targets)) for target in gate.targets]
    bounds += _draft_overlaps(gate, halves)
    return PolicyDraft(tuple(bounds), tuple(rows), files, records or own.N_d)


def _draft_beyond(
    own: Disclosure, halves: Sequence[Disclosure], figure: str, column: str | None, comparisons: int = 1
) -> DraftedBound:
    error = estimate_error(own, halves, figure, column)
    by_chance = _find_by_chance(own, halves, figure, column, comparisons)
    usual = min(0.0, _find_mean_of_halves(halves, figure, column))
    excess = f"in 100 {'people' if column is not None else 'synthetic records'} over other people's records"
    reason = _say_what_is_detected(error, by_chance, usual, excess)
    return DraftedBound(figure, column, MATERIAL_EFFECT, reason)


def _draft_any(
    own: Disclosure, halves: Sequence[Disclosure], target: str, files: int, comparisons: int
) -> DraftedBound:
    error = _estimate_error_of_any(own, halves, target, files)
    excess = f"in 100 people, in any of {files} files, over as many tables of other people's records"
    reason = _say_what_is_detected(error, difference_by_chance(error, comparisons), 0.0, excess)
    return DraftedBound("DiSCO_any", target, MATERIAL_EFFECT, reason)


def _estimate_error_of_any(own: Disclosure, halves: Sequence[Disclosure], target: str, files: int) -> float:
    """Return the standard error of DiSCO of any of several files beside that of fresh samples.

    By Good-Turing, a third of a file's variance is that of its own draw. The rest is GT's, the same in all
    files. Only people whom no other file discloses add to that of any.
    """
    [row] = _find_rows(own, "DiSCO", target)
    undisclosed = (1 - row.others / 100) ** (files - 1)
    error = estimate_error(own, halves, "DiSCO", target)
    return error * math.sqrt(files * (1 + 2 * files) / 3) * undisclosed


def _find_by_chance(
    own: Disclosure, halves: Sequence[Disclosure], figure: str, column: str | None, comparisons: int = 1
) -> float:
    """Return how far chance alone takes a figure in one file, from the halves."""
    error = estimate_error(own, halves, figure, column)
    by_chance = difference_by_chance(error, comparisons)
    if figure != "unique_hits" or not math.isfinite(error):
        return by_chance
    limits = [_find_hits_by_chance(half) for half in halves]
    of_few = math.fsum(limits) / len(limits) * math.sqrt(halves[0].N_d / max(1, own.N_d))
    return max(by_chance, of_few)


def _find_hits_by_chance(half: Disclosure) -> float:
    """Return how far chance alone takes the hits on one person if few pairs of people tell of them."""
    others, apart = (float(half.identity[f"unique_hits_{name}"].iloc[0]) for name in ("others", "apart"))
    counts = HitCounts(hits=0, pairs=others / 200 * half.N_d, triples=0)
    per_unit = half.N_d / int(half.units["units"].iloc[0]) if len(half.units) else 1.0
    limit = hits_by_chance(counts, Sizes(half.N_d, half.N_s[0]), apart, records_per_unit=per_unit)
    return limit - max(others, apart)


def _say_what_is_detected(error: float, by_chance: float, usual: float, excess: str) -> str:
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


def estimate_error(own: Disclosure, halves: Sequence[Disclosure], figure: str, column: str | None) -> float:
    """Return the standard error that a figure's difference has in one file, from those of the halves.

    They are brought to the number of people of the whole table. Infinite if a half has no finite error.
    """
    errors = [row.se for half in halves for row in _find_rows(half, figure, column)]
    if not errors or not all(map(math.isfinite, errors)):
        return math.inf
    size = halves[0].N_d / max(1, own.N_d)
    return math.sqrt(math.fsum(error**2 for error in errors) / len(errors) * size)


def _find_mean_of_halves(halves: Sequence[Disclosure], figure: str, column: str | None) -> float:
    """Return the mean of a figure that is the smaller of two differences; 0 for one difference."""
    rows = [row for half in halves for row in _find_rows(half, figure, column)]
    if not FIGURES[figure].place.permuted or not rows:
        return 0.0
    return math.fsum(min(row.beyond, row.value - row.permuted) for row in rows) / len(rows)


def _find_rows(measured: Disclosure, figure: str, column: str | None) -> list[FigureRow]:
    rows = tabulate_figures(measured, [FIGURES[figure]])
    return [row for row in rows if row.about == column and row.basis != "people" and not row.group]


def round_up_bound(bound: float) -> float:
    """Round a bound up to half a point, at most to 99.5.

    >>> round_up_bound(2.01), round_up_bound(2), round_up_bound(math.inf)
    (2.5, 2.0, 99.5)
    """
    return 99.5 if bound > 99.5 else math.ceil(bound / _STEP - 1e-9) * _STEP  # noqa: PLR2004


def _draft_overlaps(gate: Gate, halves: Sequence[Disclosure]) -> list[DraftedBound]:
    """Lower the overlaps that other people's records do not reach."""
    overlaps: Mapping[str, Sequence[str | None]] = {
        "key_overlap": gate.keys,
        "whole_key_overlap": [None],
        "target_overlap": gate.targets,
    }
    drafted = []
    for figure, columns in overlaps.items():
        bound = gate.policy.find_bound(figure)
        shares = [
            row.value for half in halves for column in columns for row in _find_rows(half, figure, column)
        ]
        finite = [share for share in shares if math.isfinite(share)]
        lowest = min(finite, default=math.inf)
        if lowest < bound:
            lower = max(0.5, math.floor(lowest / 2 / _STEP) * _STEP)
            reason = (
                f"Other people's records share only {lowest:.3g} %, so {bound:g} would refuse any table; "
                "half of that still detects tables that are coded differently"
            )
            drafted.append(DraftedBound(figure, None, lower, reason))
    return drafted


def _describe_baseline(
    own: Disclosure, halves: Sequence[Disclosure], figure: str, column: str | None, comparisons: int = 1
) -> dict[str, Any]:
    rows = _find_rows(own, figure, column)

    def first(name: str) -> float | None:
        value = getattr(rows[0], name) if rows else math.nan
        return value if math.isfinite(value) else None

    return {
        "figure": figure,
        "target": column or "",
        "own": first("own"),
        "others": first("others"),
        "chance": first("permuted"),
        "beyond_by_chance": _find_by_chance(own, halves, figure, column, comparisons),
    }


def write_policy(gate: Gate, draft: PolicyDraft, candidates: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the draft as the `policy:` section of the gate's file, with the reasons as comments.

    The rest of the gate's policy is kept. `candidates` are dossiers, listed for comparison only. Raise
    ValueError if the draft does not load.
    """
    lines = [*_comment_baselines(draft), "policy:", *_write_bounds(gate, draft), *_write_kept(gate, draft)]
    lines += _comment_candidates(draft, candidates)
    text = "\n".join(lines) + "\n"
    Gate.model_validate(gate.model_dump() | {"policy": yaml.safe_load(text)["policy"]})
    return text


def write_limits(sentences: Sequence[str]) -> str:
    """Return which copies a drafted policy would notice, as comments to follow it."""
    return "\n".join(["", *(f"# {sentence}" for sentence in sentences), ""])


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
        name = f"{row['figure']}{' of ' + row['target'] if row['target'] else ''}"
        cells = [(row["own"], 25), (row["others"], 22), (row["chance"], 8)]
        shown = [f"{'-' if cell is None else f'{cell:.2f}':>{width}}" for cell, width in cells]
        lines.append(f"# {_join_lines(name):<30} {' '.join(shown)}")
    return lines


def _write_bounds(gate: Gate, draft: PolicyDraft) -> list[str]:
    lines = []
    of_any = [drafted for drafted in draft.bounds if drafted.figure == "DiSCO_any"]
    of_targets = [drafted for drafted in draft.bounds if drafted.figure == "DiSCO"]
    for drafted in draft.bounds:
        if drafted.column is None:
            word = find_short_word(FIGURES[drafted.figure])
            lines += _comment(drafted.reason, 2)
            lines.append(f"  {drafted.figure}: {{{word}: {drafted.bound:g}}}")
    if of_any:
        lines += ["  DiSCO_any:", *_write_targets({of: f"beyond: {of.bound:g}" for of in of_any})]
    if gate.measures.chance:
        lines += ["  DiSCO:", f"    beyond: {min(of.bound for of in of_targets):g}"]
        return lines + _write_targets({of: f"beyond: {of.bound:g}" for of in of_targets})
    lines += [
        "  # Chance is not measured (measures.chance), so these bounds include what others disclose, and",
        "  # what chance adds to it.",
        "  DiSCO:",
    ]
    baselines = {row["target"]: row for row in draft.baselines}
    bounds = {}
    for drafted in of_targets:
        row = baselines[drafted.column]
        at_most = round_up_bound((row["others"] or 0) + max(drafted.bound, row["beyond_by_chance"]))
        bounds[drafted] = f"at_most: {at_most:g}"
    return lines + _write_targets(bounds)


def _write_targets(bounds: Mapping[DraftedBound, str]) -> list[str]:
    lines = ["    targets:"]
    for drafted, bound in bounds.items():
        lines += _comment(drafted.reason, 6)
        lines.append(f"      {_quote_name(drafted.column)}: {{{bound}}}")
    return lines


def _write_kept(gate: Gate, draft: PolicyDraft) -> list[str]:
    drafted = {bound.figure for bound in draft.bounds} | set(_DRAFTED)
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
        clauses = [Clause.from_row(row) for row in dossier["clauses"]]
        values_of = {
            (clause.figure, clause.column): row["value"]
            for clause, row in zip(clauses, dossier["clauses"], strict=True)
            if clause.statistic == "beyond"
        }
        figures = []
        for bound in draft.bounds:
            value = values_of.get((bound.figure, bound.column))
            if value is not None and bound.figure not in OVERLAPS:
                name = bound.figure if bound.column is None else f"{bound.figure}[{bound.column}]"
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
