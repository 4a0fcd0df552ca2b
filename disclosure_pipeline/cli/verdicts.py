"""`evaluate`, `run` and `report`: the verdict on tables, without a run and by one, and the dossier."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from disclosure_pipeline.cli.printing import (
    EXIT_CODES,
    ExitCode,
    Format,
    Report,
    Table,
    choose_format,
    code_of,
    echo,
    format_option,
    gate_argument,
    load_with_waivers,
    print_report,
    print_sentences,
    report_errors,
    show_step,
)

_CLAUSE_COLUMNS = ("clause", "value", "bound", "outcome", "if not kept")
_WORDS = ("name", "unit", "meaning")


@click.command(epilog=EXIT_CODES, short_help="What would a gate decide on a folder of synthetic tables?")
@gate_argument
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@format_option("table", "json", "csv", "html")
@click.option("--all", "show_all", is_flag=True, help="Show the clauses that are kept, too, in plain lines.")
@report_errors(ExitCode.UNDETERMINED)
def evaluate(gate: Path, folder: Path, shown_as: Format | None, show_all: bool) -> None:
    """Say what GATE would decide on the synthetic tables in FOLDER, without a run and without publishing.

    GATE is a gate's defs.yaml, or its folder. FOLDER holds one candidate; a file _SUCCESS is not needed. The
    engine, the data dictionary, the guards and the clauses are those of a run. Nothing is kept of it but that
    the ground truth was asked: the same content counts once, here and in a run together
    (policy.evaluations_per_ground_truth).
    """
    from disclosure_pipeline.candidates.evaluation import rehearse
    from disclosure_pipeline.orchestration import steps

    _, folders = load_with_waivers(gate)
    with show_step("Measuring the candidate"):
        rehearsal = rehearse(folders, folder.resolve(), steps.now())
    clauses = rehearsal.dossier.get("clauses", [])
    name = folder.resolve().name
    chosen = choose_format(shown_as)
    if chosen is None:
        _print_lines(name, rehearsal.decision, rehearsal.reasons, clauses if show_all else [])
    else:
        facts: dict[str, Any] = {
            "gate": folders.gate.name,
            "candidate": name,
            "decision": rehearsal.decision,
        }
        if chosen != "table":
            facts["reasons"] = list(rehearsal.reasons)
        print_report(Report(f"{name}: {rehearsal.decision}", facts, _show_clauses(clauses, chosen)), chosen)
        if chosen == "table":
            print_sentences(rehearsal.reasons)
    sys.exit(code_of(rehearsal.decision))


@click.command(epilog=EXIT_CODES, short_help="Run a gate over a candidate, to its release or refusal.")
@gate_argument
@click.argument("candidate")
@report_errors(ExitCode.UNDETERMINED)
def run(gate: Path, candidate: str) -> None:
    """Run GATE (a gate's defs.yaml, or its folder) over a CANDIDATE in its folder of incoming ones.

    It is the run that Dagster's sensor would start, without a daemon: the ground truth is recorded where it
    is new or changed, the candidate measured, judged, and published or refused. Dagster shows it like any
    other. The exit code is that of the verdict.
    """
    from disclosure_pipeline.orchestration.running import run_gate

    _, folders = load_with_waivers(gate)
    ended = run_gate(folders, candidate, show_step)
    echo(f"{candidate}: {ended.verdict}")
    if ended.words:
        echo(ended.words)
    elif ended.verdict == "approved":
        echo(f"Published in {folders.releases / candidate}")
    echo(f"Run {ended.run_id}", err=True)
    sys.exit(ExitCode.CRASHED if ended.verdict == "crashed" else code_of(ended.verdict))


@click.command(epilog=EXIT_CODES, short_help="Show the verdict on a candidate, and every clause.")
@gate_argument
@click.argument("candidate")
@format_option("table", "json", "csv", "html")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it into this file instead of printing it.",
)
@report_errors(ExitCode.UNDETERMINED)
def report(gate: Path, candidate: str, shown_as: Format | None, output: Path | None) -> None:
    """Show the dossier of a CANDIDATE that a run of GATE has judged: the verdict, and every clause.

    json is the whole dossier, html the page that a run made of it. The exit code is that of its verdict.
    """
    from disclosure_pipeline.candidates.files import read_json
    from disclosure_pipeline.candidates.filing import list_broken_clauses
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate

    store = folders_of(load_gate(gate)).store
    path = store.candidate_folder(candidate) / "dossier.json"
    dossier = read_json(path, f"the gate for candidate {candidate!r}")
    chosen = choose_format(shown_as)
    text = _render(dossier, path, chosen)
    if output is not None:
        output.write_text(text, encoding="utf-8")
        echo(f"Written to {output}", err=True)
    elif chosen == "table":
        print_report(_summarise(dossier, "table"), "table")
    elif chosen is None:
        _print_lines(candidate, dossier["decision"], list_broken_clauses(dossier), dossier["clauses"])
    else:
        echo(text, nl=False)
    sys.exit(code_of(dossier["decision"]))


def _render(dossier: Mapping[str, Any], path: Path, shown_as: Format | None) -> str:
    """Return the dossier as the text of a file: its own JSON, page or text, or its clauses as CSV."""
    from disclosure_pipeline.cli.printing import to_csv, to_html
    from disclosure_pipeline.evidence.dossier import to_markdown

    if shown_as == "json":
        return path.read_text(encoding="utf-8")
    if shown_as == "csv":
        return to_csv(_summarise(dossier, "csv"))
    if shown_as == "html":
        page = path.with_suffix(".html")
        return page.read_text(encoding="utf-8") if page.is_file() else to_html(_summarise(dossier, "html"))
    return to_markdown(dossier)


def _summarise(dossier: Mapping[str, Any], shown_as: Format) -> Report:
    facts = {
        "gate": dossier["gate"],
        "candidate": dossier["candidate"],
        "decision": dossier["decision"],
        "policy digest": dossier["policy_digest"],
    }
    heading = f"{dossier['candidate']}: {dossier['decision']}"
    return Report(heading, facts, _show_clauses(dossier["clauses"], shown_as))


def _list_clauses(clauses: Sequence[Mapping[str, Any]], *, with_meaning: bool = True) -> Table:
    """Return the clauses of a dossier as a table, those first that are not kept."""
    rows = [
        {
            "clause": clause["name"],
            "value": clause["value"],
            "bound": _describe_bound(clause),
            "outcome": clause["outcome"],
            "if not kept": "warns" if clause["warns"] else "undetermined" if clause["control"] else "refuses",
            **_find_words(clause),
        }
        for clause in sorted(clauses, key=lambda clause: clause["outcome"] == "kept")
    ]
    columns = (*_CLAUSE_COLUMNS, *_WORDS) if with_meaning else _CLAUSE_COLUMNS
    return Table("clauses", "Clauses of the policy", columns, rows)


def _list_meanings(clauses: Sequence[Mapping[str, Any]]) -> Table:
    """Return what the clauses that are not kept are about, each measure once."""
    broken = {clause["measure"]: clause for clause in clauses if clause["outcome"] != "kept"}
    rows = [{"not kept": name, **_find_words(clause)} for name, clause in broken.items()]
    return Table("meanings", "What is not kept", ("not kept", *_WORDS), rows)


def _show_clauses(clauses: Sequence[Mapping[str, Any]], shown_as: Format) -> tuple[Table, ...]:
    """Return the clauses as one table for programs; for readers with the meanings apart, so that both fit."""
    if shown_as != "table":
        return (_list_clauses(clauses),)
    return _list_clauses(clauses, with_meaning=False), _list_meanings(clauses)


def _describe_bound(clause: Mapping[str, Any]) -> str:
    if clause["limit"] is None:
        return ""
    return f"{'at least' if clause['at_least'] else 'at most'} {clause['limit']:.4g}"


def _find_words(clause: Mapping[str, Any]) -> dict[str, str]:
    """Name, unit and meaning of what the clause is about; its own note, if it has one, is the meaning."""
    from disclosure_pipeline.policy.clauses import words_of

    words = words_of(clause["measure"])
    meaning = str(clause["note"]) if clause.get("note") else words.sentence
    return dict(zip(_WORDS, (words.title, words.unit_and_denominator, meaning), strict=True))


def _print_lines(
    candidate: str, decision: str, reasons: Sequence[str], clauses: Sequence[Mapping[str, Any]]
) -> None:
    """Return the verdict, then a line for each clause that is asked for, then the reasons."""
    echo(f"{candidate}: {decision}")
    for row in _list_clauses(clauses).rows:
        value = "" if row["value"] is None else f" {row['value']:.4g}"
        echo(f"  {row['clause']}:{value} ({row['bound'] or 'no bound'}), {row['outcome']}")
    for reason in reasons:
        echo(f"- {reason}")
