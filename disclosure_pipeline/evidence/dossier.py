"""The dossier of a candidate: figures, a verdict per clause, and hashes of their sources."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

import pandas as pd

from disclosure_pipeline.errors import choose_form, write_count
from disclosure_pipeline.evaluation.frames import list_names_and_rows
from disclosure_pipeline.evaluation.long_table import ROW_COLUMNS, name_group, tabulate_figures, view_frame
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.entry import QUESTIONS, Figure, Question
from disclosure_pipeline.policy.gate import Gate, list_documentation
from disclosure_pipeline.policy.reviewed_files import Waiver
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import (
    Judgement,
    RefusedWaiver,
    decide,
    order_judgements,
    read_judgements,
    round_judgements,
)
from disclosure_pipeline.tables.messages import escape_markdown

_WITHHELD = "(too few records to name)"


def collect_figures(
    result: Disclosure, smallest_count: int, entries: Iterable[Figure] | None = None
) -> dict[str, Any]:
    """Return the long table, without flagged levels of fewer than `smallest_count` GT records.

    `entries`: by default those that a gate bounds or shows.
    """
    publishable = withhold_rare_levels(result, smallest_count)
    bands = result.bands.reset_index()
    return {
        "keys": [str(key) for key in result.keys],
        "targets": [str(target) for target in result.targets],
        "N_d": result.N_d,
        "N_s": list(result.N_s),
        **({"N_holdout": result.N_holdout} if result.N_holdout else {}),
        **(
            {"within": dict(zip(map(str, bands["target"]), bands["within"], strict=True))}
            if len(bands)
            else {}
        ),
        "table": [row.to_record() for row in tabulate_figures(publishable, entries)],
    }


def withhold_rare_levels(result: Disclosure, smallest_count: int) -> Disclosure:
    """Return the result without names of flagged levels of fewer than `smallest_count` GT records."""

    def withhold(flags: pd.DataFrame, **counted_by: str) -> pd.DataFrame:
        names = {
            level: flags[level].where(flags[count] >= smallest_count, _WITHHELD)
            for level, count in counted_by.items()
        }
        return flags.assign(**names)

    return replace(
        result,
        one_way=withhold(result.one_way, level="n_level_disclosive"),
        two_way=withhold(result.two_way, target_level="key_target_total", key_level="key_total"),
    )


def to_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame, named index first, as plain Python values; NaN and infinity become None."""
    names, rows = list_names_and_rows(frame)
    return [dict(zip(names, map(_to_plain, row), strict=True)) for row in rows]


def _to_plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_markdown_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Return a markdown table; `columns` maps the rows' keys to headings. Floats have 4 digits."""
    lines = [f"| {' | '.join(columns.values())} |", f"|{'---|' * len(columns)}"]
    format_once = lru_cache(maxsize=None, typed=True)(format_cell)  # most cells of a long table are alike
    lines += [f"| {' | '.join(format_once(row.get(name)) for name in columns)} |" for row in rows]
    return "\n".join(lines)


def format_cell(value: Any) -> str:
    """Format a value for a markdown table."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else escape_markdown(str(value))


_PACKAGES = (
    "disclosure-pipeline",
    "dagster",
    "great-expectations",
    "numpy",
    "pandas",
    "pandera",
    "pyarrow",
    "pydantic",
    "securesystemslib",
)


def build_dossier(
    gate: Gate,
    candidate: str,
    measured: Mapping[str, str],
    result: Disclosure,
    judgements: Sequence[Judgement],
    refused_waivers: Sequence[RefusedWaiver] = (),
) -> dict[str, Any]:
    """Return the dossier as plain data; equal evaluations give equal dossiers.

    `measured`: the name of each measured source -> its hash.
    """
    measurement = build_measurement(result, gate.policy.smallest_count)
    subgroups = view_frame(measurement["figures"], "subgroups")
    groups = dict.fromkeys((row["column"], row["group"]) for row in subgroups)
    declared = [list(group) for group in groups if gate.declares_level(*group)]
    return measurement | {
        "gate": gate.name,
        "candidate": candidate,
        "decision": decide(judgements, refused_waivers),
        "policy_digest": gate.policy_digest(),
        "measured": dict(measured),
        "clauses": [judgement.to_row() for judgement in judgements],
        "waivers": [
            *(_to_waiver_row(judgement.waiver) for judgement in judgements if judgement.waiver),
            *(_to_waiver_row(refused.waiver, refused.problem) for refused in refused_waivers),
        ],
        "figures": measurement["figures"] | {"declared_groups": declared},
        "columns": gate.describe_columns(),
        "labels": gate.labels,
        "documentation": list_documentation(gate.documentation),
    }


def build_measurement(result: Disclosure, smallest_count: int = 10) -> dict[str, Any]:
    """Return a measurement without a gate in the form of a dossier, without a decision."""
    return {
        "gate": None,
        "candidate": None,
        "decision": None,
        "policy_digest": None,
        "measured": {},
        "clauses": [],
        "waivers": [],
        "figures": collect_figures(result, smallest_count),
        "exact_copies": to_rows(result.exact_copies),
        "ledger": [asdict(change) for change in result.ledger],
        "warnings": list(result.warnings),
        "smallest_count": smallest_count,
        "columns": "",
        "labels": {},
        "documentation": {},
    }


def _to_waiver_row(waiver: Waiver, problem: str | None = None) -> dict[str, Any]:
    return {**waiver.model_dump(mode="json"), "problem": problem}


def read_versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that compute."""
    return {"python": platform.python_version()} | {package: _read_version(package) for package in _PACKAGES}


@cache
def _read_version(package: str) -> str:
    # Cached: a package that is upgraded meanwhile is not imported again.
    return version(package)


def count_kept(clauses: Sequence[Mapping[str, Any]]) -> str:
    """Describe how many of the deciding clauses are kept, and how many of the warning ones are not.

    Example:
        >>> count_kept([{"warns": False, "outcome": "kept"}, {"warns": True, "outcome": "exceeded"}])
        '1 of 1 clause that decides is kept; 1 of 1 that only warns is not'
    """
    deciding = [clause["outcome"] for clause in clauses if not clause["warns"]]
    warning = [clause["outcome"] for clause in clauses if clause["warns"]]
    kept, waived = deciding.count("kept"), deciding.count("waived")
    decide = choose_form(len(deciding), "decides", "decide")
    text = (
        f"{kept} of {write_count(len(deciding), 'clause')} that {decide} "
        f"{choose_form(kept, 'is', 'are')} kept"
    )
    text += f", {waived} waived" if waived else ""
    broken = len(warning) - warning.count("kept")
    if not broken:
        return text
    warn = choose_form(len(warning), "warns", "warn")
    return f"{text}; {broken} of {len(warning)} that only {warn} {choose_form(broken, 'is', 'are')} not"


def list_broken_clauses(content: Mapping[str, Any]) -> list[str]:
    """Return the names of the clauses and refused waivers that forbid a release, the gravest first."""
    return [
        *(judgement.clause.name for judgement in _list_broken(read_judgements(content))),
        *(f"waiver {waiver['name']}" for waiver in content["waivers"] if waiver["problem"]),
    ]


def _list_broken(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Return the judgements that forbid a release; one that only warns must still be determined."""
    passing = {True: {"kept", "waived", "exceeded"}, False: {"kept", "waived"}}
    return [
        judgement
        for judgement in order_judgements(judgements)
        if judgement.outcome not in passing[judgement.clause.warns]
    ]


def describe_broken_clauses(content: Mapping[str, Any], smallest_count: int) -> dict[str, str]:
    """Return a sentence on each with exact figures -> the sentence for readers who may not see those."""
    judgements = read_judgements(content)
    records = [content["figures"]["N_d"], *content["figures"]["N_s"]]
    labels = {"labels": content.get("labels", {})}
    public = dict(
        zip(map(id, judgements), round_judgements(judgements, records, smallest_count), strict=True)
    )
    sentences = {
        write_sentence(judgement, content): write_sentence(public[id(judgement)], labels)
        for judgement in _list_broken(judgements)
    }
    for waiver in content["waivers"]:
        if waiver["problem"]:
            sentence = f"Waiver {waiver['name']} is refused: {waiver['problem']}."
            sentences[sentence] = sentence
    return sentences


def to_markdown(content: Mapping[str, Any]) -> str:
    """Return every clause and figure of the dossier as markdown."""
    figures = content["figures"]
    parts = [
        f"# All figures of candidate {format_cell(content['candidate'])}",
        f"{count_kept(content['clauses'])}.",
        "## Clauses",
        _to_clauses_table(read_judgements(content)),
        *(
            f"- {format_cell(row['name'])}: {format_cell(row['note'])}."
            for row in content["clauses"]
            if row["note"]
        ),
        *(
            f"- Guard {format_cell(row['name'])} is loosened: {format_cell(row['bound'])} instead of "
            f"{format_cell(row['loosened_from'])}."
            for row in content["clauses"]
            if row["loosened_from"] is not None
        ),
        *(f"- Waiver {escape_markdown(_describe_waiver(waiver))}" for waiver in content["waivers"]),
        *(part for question in QUESTIONS for part in _list_figures(question, figures["table"])),
        "## Copies",
        "Synthetic records that are exact copies of a GT record in all shared columns:",
        _to_table(content["exact_copies"]),
        *(f"- {escape_markdown(warning)}" for warning in content["warnings"]),
        "## Controls (% of records; deviations: standard errors)",
        "An exact copy of GT must give repU = UiO and DiSCO = Dorig. The candidate with a permuted target "
        "must give the DiSCO expected by chance.",
        _to_table(view_frame(figures, "control_identity")),
        _to_table(view_frame(figures, "control_attribute")),
        "## What was measured",
        f"{figures['N_d']} GT records; synthetic records: {', '.join(map(str, figures['N_s']))}.",
        "\n".join(f"- {format_cell(name)}: `{digest}`" for name, digest in content["measured"].items()),
        f"Policy digest: `{content['policy_digest']}`",
        "## Changes made to compare the tables",
        _to_table(content["ledger"]) if content["ledger"] else "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _describe_waiver(waiver: Mapping[str, Any]) -> str:
    if waiver["problem"]:
        return f"{waiver['name']} is refused: {waiver['problem']}."
    return (
        f"{waiver['name']}: {waiver['clause']} may go to {format_cell(waiver['ceiling'])} until "
        f"{waiver['expires']}. Reason: {waiver['reason']} Approved by {waiver['approver']}."
    )


def _list_figures(question: Question, table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the figures that answer a question, with the columns of the long table that they fill."""
    rows = [
        {
            **row,
            "figure": f"{row['figure']} ({FIGURES[row['figure']].words.unit})",
            "group": name_group(row.get("group", ())),
        }
        for row in table
        if row["figure"] in FIGURES and FIGURES[row["figure"]].question == question
    ]
    names = [name for name in ROW_COLUMNS if name != "is_larger"]
    filled = [name for name in names if any(row.get(name) not in {None, ""} for row in rows)]
    return [f"## {question.capitalize()}", to_markdown_table(rows, dict(zip(filled, filled, strict=True)))]


def _to_clauses_table(judgements: Sequence[Judgement]) -> str:
    rows = [
        {
            "clause": judgement.subject,
            "over": judgement.clause.over,
            "value": judgement.value,
            "bound": judgement.limit_text,
            "outcome": judgement.outcome,
            "if not kept": judgement.clause.consequence,
        }
        for judgement in judgements
    ]
    return _to_table(rows)


def _to_table(rows: Sequence[Mapping[str, Any]]) -> str:
    return to_markdown_table(rows, {name: format_cell(name) for name in rows[0]} if rows else {})
