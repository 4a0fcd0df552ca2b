"""The sentence on a clause: its figure, what other people's records would show, and what is allowed.

Page, checks, notices and command line say the same of a clause, in words that stand beside its figure
(`measures/words.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.found import BY_RECORDS_FINDING
from disclosure_pipeline.measures.words import (
    CONFIDENTIAL,
    COUNT,
    PERCENT,
    POINTS,
    RECORDS,
    SHARE,
    SYNTHETIC,
    Words,
)
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import ADVISED, Judgement
from disclosure_pipeline.tables.levels import name_level
from disclosure_pipeline.tables.messages import capitalized, quote_name, replace_quoted

MISSING = "\N{EN DASH}"

Content = Mapping[str, Any]
"""A dossier as plain data; for a sentence alone, the `labels` of columns are enough."""

_NOTHING: Content = {}
_SUFFIXES: Mapping[str, str] = {
    PERCENT: " %",
    POINTS: " points",
    RECORDS: "",
    COUNT: "",
    SHARE: "",
    "standard errors": " standard errors",
}
_NOISE = 1e-6


def write_figure(value: Any, words: Words | None) -> str:
    """Write a figure with its unit, or a dash if it is missing.

    Example:
        >>> write_figure(10.123, Words("a", "b")), write_figure(-0.01, Words("a", "b"))
        ('10.1 %', '0.0 %')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return MISSING if value is None else str(value)
    unit = words.unit if words else ""
    if unit in {PERCENT, POINTS}:
        return f"{round(value, 1) + 0.0:.1f}{_SUFFIXES[unit]}"  # 0.0, not -0.0
    if unit in {RECORDS, COUNT} and float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.3g}{_SUFFIXES.get(unit, '')}"


def write_rounded(value: Any, words: Words | None, content: Content) -> str:
    """Write a figure with its unit; in the edition for publication, as the limit that it is rounded to.

    Example:
        >>> write_rounded(0.2, Words("a", "b"), {"is_rounded": True}), write_rounded(0.2, Words("a", "b"), {})
        ('at most 0.2 %', '0.2 %')
    """
    written = write_figure(value, words)
    is_share = words is not None and words.unit in {PERCENT, POINTS, SHARE, RECORDS}
    if words is None or not content.get("is_rounded") or value is None or not is_share:
        return written
    return f"{'at least' if words.high_is == 'safe' else 'at most'} {written}"


def write_bound(judgement: Judgement) -> str:
    """Write the bound of a clause, such as "at most 8.0 %"."""
    clause, limit = judgement.clause, judgement.limit
    if limit is None:
        return MISSING
    bound = f"{clause.side} {write_figure(limit, clause.words)}"
    if clause.share_of:
        bound += f" ({clause.bound:g} of {clause.share_of})"
    return bound if clause.loosened_from is None else f"{bound}, loosened from {clause.loosened_from:g}"


def name_column(column: str | None, content: Content) -> str:
    """Return the label of a column, or its name if it has none; of a level, after the label of its column.

    >>> name_column("hiv: positive", {"labels": {"hiv": "HIV status"}})
    'HIV status: positive'
    """
    labels = content.get("labels", {})
    name, is_level, level = (column or "keys").partition(": ")
    if column not in labels and is_level and name in labels:
        return name_level(labels[name], level)
    return str(labels.get(column, column or "keys"))


def name_quoted(text: str, content: Content) -> str:
    """Return a sentence with the labels of the columns that it quotes.

    >>> name_quoted('with "age" and "nettfa" alike', {"labels": {"nettfa": "net wealth"}})
    'with age and net wealth alike'
    """
    return replace_quoted(text, lambda name: name_column(name, content) if name else quote_name(name))


def write_subject(judgement: Judgement, content: Content = _NOTHING) -> str:
    """Write the people or records that a clause is about, for charts and headlines.

    Example:
        >>> write_subject(Judgement(Clause("repU", "at_most_share", 0.3), None, None, "undetermined"))
        'people singled out in both tables (of UiO)'
    """
    clause, words, column = judgement.clause, judgement.clause.words, judgement.column
    column = None if column is None else name_column(column, content)
    if words.subject:
        # Not by format(): the column's name may contain braces.
        subject = (column or "keys").join(words.subject.split("{column}"))
        column = None if "{column}" in words.subject else column
    else:
        subject = words.title.removesuffix(": where beyond chance")
    share = clause.share_of if judgement.value is not None or judgement.rounded_to is None else None
    notes = [column, share and f"of {share}", *_list_bases(judgement)]
    noted = ", ".join(note for note in notes if note)
    return f"{subject} ({noted})" if noted else subject


def _list_bases(judgement: Judgement) -> list[str]:
    return [
        *(["mean"] if judgement.clause.over == "mean" else []),
        *(["weighted"] if judgement.row is not None and judgement.row.basis == "people" else []),
    ]


def write_sentence(judgement: Judgement, content: Content = _NOTHING) -> str:
    """Return the whole sentence on a clause: figure, others, what is allowed, and what lets it pass.

    Example:
        >>> write_sentence(Judgement(Clause("DiSCO", "at_most", 8, ("work",)), 10.86, 8, "exceeded"))
        'For 10.9 % of the people the table correctly shows their work; at most 8 % is allowed.'
    """
    clause, waiver = judgement.clause, judgement.waiver
    sentence = state(judgement, content)
    if judgement.note and clause.figure in ADVISED:
        sentence = f"{sentence}. {name_quoted(judgement.note, content)}"
    if waiver is not None:
        sentence += f"; waived until {waiver.expires.isoformat()} by {waiver.approver}: {waiver.reason}"
    if clause.warns and judgement.outcome == "exceeded":
        sentence += "; this only warns"
    return f"{capitalized(sentence).rstrip('.')}."


def state(judgement: Judgement, content: Content = _NOTHING) -> str:
    """State the figure of a clause, what others would show, and what is allowed, without a full stop."""
    if judgement.value is None or _lacks_limit(judgement) or _is_explained(judgement):
        return compare(judgement, content)
    return f"{compare(judgement, content)}; {_write_allowed(judgement)}"


def compare(judgement: Judgement, content: Content = _NOTHING) -> str:
    """State the figure of a clause, and what other people's records would show."""
    clause = judgement.clause
    text = _compare(judgement, content)
    if not clause.is_of_further_table or clause.column is None:
        return text
    name = clause.column.rpartition(" of ")[2]
    return f"of the confidential table {name}: {text}"


def _compare(judgement: Judgement, content: Content) -> str:
    clause, row, value = judgement.clause, judgement.row, judgement.value
    entry = clause.entry
    if _is_explained(judgement):
        return name_quoted(judgement.note, content)
    if value is None or _lacks_limit(judgement):
        return _state_without_figure(judgement, content)
    bases = "".join(f", {basis}" for basis in _list_bases(judgement))
    is_difference = clause.statistic == "beyond"
    if entry is None or row is None or not math.isfinite(row.others) or not math.isfinite(row.value):
        return f"{_fill_in(judgement, content)}{bases}"
    words = entry.words
    if row.basis == SYNTHETIC:
        words = replace(words, finding=BY_RECORDS_FINDING, denominator=SYNTHETIC)
    shown = row.value if is_difference else value
    subject = name_quoted(row.where, content) or judgement.column
    limit = None if is_difference else judgement.limit
    sentence = write_finding(words, shown, subject, content, limit) + bases
    as_many = row.at_n if is_difference and row.is_larger and math.isfinite(row.at_n) else shown
    if write_figure(as_many, words) != write_figure(shown, words):
        sentence += f" ({write_rounded(as_many, words, content)} by as many records as there are people)"
    others = write_others(entry, row.others, judgement.column, content)
    if is_difference and row.permuted > row.others:
        others += f", and chance for {write_rounded(row.permuted, words, content)}"
    if is_difference and value <= 0 and write_figure(as_many, words) != write_figure(row.others, words):
        others += ": no more than chance explains" if as_many > row.others else ""
    return f"{sentence}; {others}"


def write_others(entry: Figure, value: float, column: str | None, content: Content) -> str:
    """State what other people's records would show of a figure."""
    others = entry.place.others if isinstance(entry.place.others, str) else entry.place.others[0]
    words = COLUMNS[entry.place.frame].get(others)
    if words is not None and words.finding:
        return write_finding(words, value, column, content)
    return f"by as many records of other people {write_rounded(value, entry.words, content)}"


def describe_limits(limits: Mapping[str, float]) -> list[str]:
    """Describe the detection limits that would hold for a candidate, without full stops.

    >>> describe_limits({"detection_limit": 2.94})
    ['the gate would have noticed if 2.9 % of the people were in the table']
    """
    words = {name: FIGURES[name].words for name in limits}
    return [write_finding(words[name], value, None, {}) for name, value in limits.items()]


def _fill_in(judgement: Judgement, content: Content) -> str:
    """State the very figure that is judged; one that was rounded for publication says so."""
    if judgement.rounded_to is not None:
        content = {"is_rounded": True, **content}
    text = write_finding(judgement.clause.words, judgement.value, judgement.column, content, judgement.limit)
    if judgement.rounded_to is None:
        return text
    way = "down" if judgement.clause.at_least else "up"
    return f"{text} (rounded {way} to {write_count(judgement.rounded_to, 'record')})"


def write_finding(
    words: Words, value: Any, column: str | None, content: Content, limit: float | None = None
) -> str:
    """State a figure of a column in the sentence of its words, with digits that tell it from its limit."""
    written = write_rounded(value, words, content)
    if limit is not None and value != limit and write_figure(value, words) == write_figure(limit, words):
        texts = (f"{value:.{digits}f}" for digits in range(2, 18))
        apart = next((text for text in texts if float(text) != limit), f"{value:.1f}")
        written = written.replace(write_figure(value, words), f"{apart}{_SUFFIXES.get(words.unit, '')}")
    if "{value} of the " in words.finding and _is_smallest(value, words, content):
        written = f"at most {content['smallest_count']}"
    if not words.finding:
        of = f" of {name_column(column, content)}" if column else ""
        return f"{words.title}{of}: {written}"
    more = "no" if value <= 0 else written.removesuffix(_SUFFIXES[POINTS]).removesuffix(".0")
    # Not by format(): the column's name may contain braces.
    parts = words.finding.split("{column}")
    filled = [part.replace("{value}", written).replace("{more}", f"{more} more") for part in parts]
    return name_column(column, content).join(filled)


def _is_smallest(value: Any, words: Words, content: Content) -> bool:
    """Return True if a share is rounded up to the smallest number of people or records that is published."""
    if (
        not content.get("is_rounded")
        or "figures" not in content
        or words.unit != PERCENT
        or words.high_is == "safe"
    ):
        return False
    figures = content["figures"]
    records = {CONFIDENTIAL: figures["N_d"], SYNTHETIC: max(figures["N_s"])}.get(words.denominator, math.inf)
    return float(value * records / 100) <= content["smallest_count"] + _NOISE


def _is_explained(judgement: Judgement) -> bool:
    """Return True if a note says what a broken bound means, instead of the figure."""
    return bool(judgement.note) and judgement.clause.figure not in ADVISED


def _lacks_limit(judgement: Judgement) -> bool:
    """Return True if nobody can tell the limit; that of a share of GT's own risk is not published."""
    return judgement.limit is None and judgement.rounded_to is None and judgement.clause.share_of is None


def _state_without_figure(judgement: Judgement, content: Content) -> str:
    """State the outcome of a clause whose figure is withheld, or that has none."""
    subject = write_subject(judgement, content)
    is_withheld = judgement.rounded_to is not None or content.get("is_rounded")
    if judgement.outcome == "undetermined" or not is_withheld:
        return f"{subject}: could not be determined"
    less = "less" if judgement.clause.at_least else "more"
    kept = f"no {less} than allowed" if judgement.outcome == "kept" else f"{less} than allowed"
    return f"{subject}: {kept} ({describe_bound(judgement.clause)})"


def write_bound_of(bound: float, words: Words) -> str:
    """Write a bound as a policy has it, with its unit.

    >>> write_bound_of(2.5, Words("a", "b")), write_bound_of(3.0, Words("a", "b", POINTS))
    ('2.5 %', '3 points')
    """
    suffix = _SUFFIXES.get(words.unit, "")
    return f"{bound:g}{suffix.removesuffix('s') if bound == 1 else suffix}"


def describe_bound(clause: Clause) -> str:
    """Describe what a clause allows, without a figure.

    >>> describe_bound(Clause("repU", "at_most", 8)), describe_bound(Clause("DiSCO", "beyond", 3, ("work",)))
    ('at most 8 %', "at most 3 points more than other people's records show")
    """
    text = f"{clause.side} {write_bound_of(clause.bound, clause.words)}"
    if clause.share_of:
        text = f"{clause.side} {clause.bound:g} of what the confidential table itself shows"
    elif clause.statistic == "beyond":
        text += " more than other people's records show"
    text += " on average over the files" if clause.over == "mean" else ""
    text += "" if clause.loosened_from is None else f" (loosened from {clause.loosened_from:g})"
    return f"{text}; more only warns" if clause.warns else text


def _write_allowed(judgement: Judgement) -> str:
    clause, limit, words = judgement.clause, judgement.limit, judgement.clause.words
    if clause.share_of:
        own = "what" if judgement.row is None else f"the {write_figure(judgement.row.own, words)} that"
        return f"at most {clause.bound:g} of {own} the confidential table itself shows is allowed"
    bound = clause.bound if limit is None else limit
    written = write_bound_of(bound, words)
    loosened = "" if clause.loosened_from is None else f" (loosened from {clause.loosened_from:g})"
    if clause.at_least:
        return f"at least {written} is needed{loosened}"
    if words.unit == POINTS:
        are = "is" if bound == 1 else "are"
        return f"{written} more {are} allowed{loosened}" if bound else f"no more is allowed{loosened}"
    return f"at most {written} is allowed{loosened}" if bound else f"none is allowed{loosened}"
