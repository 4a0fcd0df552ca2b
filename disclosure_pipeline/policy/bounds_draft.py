"""Bounds that follow from the ground truth and from other people's records, each with its reason.

A bound that a candidate happens to keep says nothing of people. So none is taken from a candidate: all follow
from what the ground truth has itself and from what halves of it, which share nobody, show of each other.
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
from disclosure_pipeline.policy.registry import BEYOND_BOTH, SMALLER_OF, values

# Points beyond other people's records that a bound leaves at least: less is hard to tell from good models.
LEAST = 2.0
# Standard errors of chance that a bound leaves room for, of one file.
_WIDTH = 3.0
_STEP = 0.5
# Shares of records that tables must have in common: half of what other people's records share is enough.
_OVERLAPS = {"key_overlap": "key_overlap", "target_overlap": "target_overlap"}
_DRAFTED = ("unique_hits_beyond", "DiSCO", "DiSCO_any_beyond")


@dataclass(frozen=True)
class DraftedBound:
    """A bound with its reason: `at` is where it stands, such as ("DiSCO", "income")."""

    measure: str
    column: str | None
    bound: float
    reason: str


@dataclass(frozen=True)
class PolicyDraft:
    """The bounds, and what they follow from: a row for each figure of a target, or of the whole table.

    `files`: of a candidate, each of so many `records`.
    """

    bounds: tuple[DraftedBound, ...]
    baselines: tuple[dict[str, Any], ...]
    files: int
    records: int


def draft_policy(
    gate: Gate, own: Disclosure, halves: Sequence[Disclosure], files: int = 1, records: int | None = None
) -> PolicyDraft:
    """Draft bounds for a gate, from its ground truth as its own synthesis, and from halves of it.

    Identity disclosure and DiSCO of every target are bounded by what goes beyond other people's records: by
    three standard errors of chance for tables of these sizes, two points at least; by more for the worst of
    several files and all of them together. Several files are bounded as one release, too: by what as many
    fresh samples disclose at most beyond draws of other people's records. Overlaps that other people's
    records do not reach are lowered to half of what they share. `records`: of a file, None for as many as GT
    has; the halves are of such tables
    (`measure_baselines`).
    """
    rows = [_row_of(own, halves, "unique_hits", None, "UiO", "unique_hits_others")]
    bounds = [_draft_beyond(own, halves, "unique_hits_beyond", None, files)]
    measure = BEYOND_BOTH["DiSCO"] if gate.measures.chance else "DiSCO_beyond"
    for target in gate.targets:
        bounds.append(_draft_beyond(own, halves, measure, target, files))
        rows.append(_row_of(own, halves, "DiSCO", target, "Dorig", "DiSCO_others"))
    if files > 1:
        bounds += [_draft_any(own, halves, target, files) for target in gate.targets]
    bounds += _draft_overlaps(gate, halves)
    return PolicyDraft(tuple(bounds), tuple(rows), files, records or own.N_d)


def _draft_beyond(
    own: Disclosure, halves: Sequence[Disclosure], measure: str, column: str | None, files: int
) -> DraftedBound:
    chance = measure_chance(own, halves, measure, column, files)
    bound = round_up(max(LEAST, chance))
    of_files = "" if files == 1 else f" and {files} files"
    room = f"chance alone reaches {max(chance, 0):.2g} points with {own.N_d:,} people{of_files}"
    rest = "" if chance >= LEAST else f", and {LEAST:g} leave room for a good model"
    share = f"{math.floor(own.N_d * bound / 100):,} people"
    if column is None:
        share = "so many of a hundred synthetic records"
    reason = f"Only what goes beyond other people's records counts; {room}{rest}; {bound:g} are {share}"
    return DraftedBound(measure, column, bound, reason)


def _draft_any(own: Disclosure, halves: Sequence[Disclosure], target: str, files: int) -> DraftedBound:
    [others] = values(own, "DiSCO_others", target)
    error = math.sqrt(files) * measure_chance(own, halves, "DiSCO_beyond", target)
    chance = any_of_fresh_samples([others] * files) - others + error
    bound = round_up(max(LEAST, chance))
    reason = (
        f"{files} fresh samples and chance go {chance:.2g} points beyond draws of other people's records, at "
        f"most; {bound:g} are {math.floor(own.N_d * bound / 100):,} people"
    )
    return DraftedBound("DiSCO_any_beyond", target, bound, reason)


def measure_chance(
    own: Disclosure, halves: Sequence[Disclosure], measure: str, column: str | None, files: int = 1
) -> float:
    """Return three standard errors of a figure that is 0 for other people's records, for such a table.

    Those of the halves, which are smaller: an error falls with the root of the number of people. Of several
    files, and of all together, the worst goes further. The smaller of what goes beyond others and beyond
    chance stays as far below 0 as it is on the halves. Infinite where a half has no finite error.
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


def round_up(bound: float) -> float:
    """Return a bound rounded up to half a point, at most 50.

    >>> round_up(2.01), round_up(2), round_up(math.inf)
    (2.5, 2.0, 50.0)
    """
    return 50.0 if bound > 50 else math.ceil(bound / _STEP - 1e-9) * _STEP  # noqa: PLR2004


def _draft_overlaps(gate: Gate, halves: Sequence[Disclosure]) -> list[DraftedBound]:
    """Lower overlaps where other people's records do not reach those of the gate."""
    overlaps: list[tuple[str, str, float, Sequence[str | None]]] = [
        ("key_overlap", "key_overlap", gate.policy.key_overlap, gate.keys),
        ("whole_key_overlap", "key_overlap", gate.policy.whole_key_overlap, [None]),
        ("target_overlap", "target_overlap", gate.policy.target_overlap, gate.targets),
    ]
    drafted = []
    for name, measure, bound, columns in overlaps:
        shares = [share for half in halves for column in columns for share in values(half, measure, column)]
        finite = [share for share in shares if math.isfinite(share)]
        lowest = min(finite, default=math.inf)
        if lowest < bound:
            lower = max(0.5, math.floor(lowest / 2 / _STEP) * _STEP)
            reason = (
                f"Other people's records share only {lowest:.3g} %, so {bound:g} would refuse any table; half"
                " of it still shows tables that are coded differently"
            )
            drafted.append(DraftedBound(name, None, lower, reason))
    return drafted


def _row_of(
    own: Disclosure, halves: Sequence[Disclosure], name: str, column: str | None, original: str, others: str
) -> dict[str, Any]:
    def first(measure: str) -> float | None:
        figures = values(own, measure, column)
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
    """Write the draft as the `policy:` of this gate's file, with its reasons as comments.

    What the gate's policy has beside these bounds stays as it is. `candidates`: dossiers, cited for
    comparison only. ValueError where the draft does not load.
    """
    lines = [*_comment_baselines(draft), "policy:", *_write_bounds(gate, draft), *_write_kept(gate, draft)]
    lines += _comment_candidates(draft, candidates)
    text = "\n".join(lines) + "\n"
    apply_draft(gate, text)
    return text


def write_power(sentences: Sequence[str]) -> str:
    """Write what a drafted policy would notice as comments that follow it."""
    return "\n".join(
        ["", "# What this policy would notice:", *(f"# {_one_line(each)}" for each in sentences), ""]
    )


def apply_draft(gate: Gate, text: str) -> Gate:
    """Return the gate with a policy that `write_policy` wrote. ValueError where it does not load."""
    return Gate.model_validate(gate.model_dump() | {"policy": yaml.safe_load(text)["policy"]})


def _comment_baselines(draft: PolicyDraft) -> list[str]:
    files = "one file" if draft.files == 1 else f"{draft.files} files"
    lines = [
        "# Drafted from the ground truth alone: what it has itself, what other people's records would tell",
        "# of each person, and how far chance alone goes beyond that. Percent of the people, but for",
        "# unique_hits: percent of the synthetic records.",
        f"# For candidates of {files} of {draft.records:,} records: else see --files and --records.",
        "#",
        f"# {'figure':<30} {BY_ITSELF:>25} {BY_OTHERS:>22} {BY_CHANCE:>8}",
    ]
    for row in draft.baselines:
        name = f"{row['measure']}{' of ' + row['target'] if row['target'] else ''}"
        cells = [(row["own"], 25), (row["others"], 22), (row["chance"], 8)]
        shown = [f"{'-' if cell is None else f'{cell:.2f}':>{width}}" for cell, width in cells]
        lines.append(f"# {_one_line(name):<30} {' '.join(shown)}")
    return lines


def _write_bounds(gate: Gate, draft: PolicyDraft) -> list[str]:
    lines = []
    of_any = [drafted for drafted in draft.bounds if drafted.measure == "DiSCO_any_beyond"]
    of_targets = [drafted for drafted in draft.bounds if drafted.column is not None and drafted not in of_any]
    for drafted in draft.bounds:
        if drafted.column is None:
            lines += [*_comment(drafted.reason, 2), f"  {drafted.measure}: {drafted.bound:g}"]
    if of_any:
        lines += ["  DiSCO_any_beyond:", "    targets:"]
    for drafted in of_any:
        lines += [*_comment(drafted.reason, 6), f"      {_name(drafted.column)}: {drafted.bound:g}"]
    if not of_targets:
        return lines
    if gate.measures.chance:
        common = min(drafted.bound for drafted in of_targets)
        lines += ["  DiSCO:", f"    beyond: {common:g}", "    targets:"]
        for drafted in of_targets:
            lines += _comment(drafted.reason, 6)
            lines.append(f"      {_name(drafted.column)}: {{beyond: {drafted.bound:g}}}")
        return lines
    lines += ["  # Chance is not measured (measures.chance), so DiSCO is bounded by what others show, too."]
    lines += ["  DiSCO:", "    targets:"]
    others = {row["target"]: row["others"] for row in draft.baselines}
    for drafted in of_targets:
        at_most = min(99.5, round_up((others[drafted.column or ""] or 0) + drafted.bound))
        lines += _comment(f"{drafted.reason}, beside what other people's records tell", 6)
        lines.append(f"      {_name(drafted.column)}: {{at_most: {at_most:g}}}")
    return lines


def _write_kept(gate: Gate, draft: PolicyDraft) -> list[str]:
    drafted = {bound.measure for bound in draft.bounds} | set(_DRAFTED)
    content = gate.policy.model_dump(mode="json", exclude_defaults=True)
    kept = {name: value for name, value in content.items() if name not in drafted}
    if not kept:
        return []
    text = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, default_flow_style=False, width=100)
    return ["  # As it is in the gate already.", *(f"  {line}" for line in text.splitlines())]


def _comment_candidates(draft: PolicyDraft, candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how the candidates that were judged stand to the bounds: a comparison, and no reason for any."""
    if not candidates:
        return []
    lines = ["", "# What was judged before, for comparison: no bound was taken from it."]
    for dossier in candidates:
        values_of = {(row["measure"], row["column"]): row["value"] for row in dossier["clauses"]}
        figures = []
        for bound in draft.bounds:
            value = values_of.get((bound.measure, bound.column))
            if value is not None and bound.measure not in {*_OVERLAPS, "whole_key_overlap"}:
                name = bound.measure if bound.column is None else f"{bound.measure}[{bound.column}]"
                figures.append(f"{name} {value:.3g} {'<=' if value <= bound.bound else '>'} {bound.bound:g}")
        lines.append(
            f"# {dossier['candidate']} ({dossier['decision']}): {'; '.join(figures) or 'not measured'}"
        )
    return [_one_line(line) for line in lines]


def _comment(sentence: str, indent: int) -> list[str]:
    margin = " " * indent + "# "
    return textwrap.wrap(f"{sentence}.", 100, initial_indent=margin, subsequent_indent=margin)


def _name(column: str | None) -> str:
    return yaml.safe_dump(column, default_style='"', width=10_000, allow_unicode=True).strip()


def _one_line(text: str) -> str:
    return " ".join(text.split()) if "\n" in text or "\r" in text else text
