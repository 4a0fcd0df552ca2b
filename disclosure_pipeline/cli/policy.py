"""`policy draft`: bounds that follow from the ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from disclosure_pipeline.cli.exit_codes import EXIT_CODES, ExitCode, report_errors
from disclosure_pipeline.cli.gate_argument import gate_argument
from disclosure_pipeline.cli.printing import Format, Report, Table, print_report, show_step
from disclosure_pipeline.evaluation.glossary import LABELS
from disclosure_pipeline.measures.words import BY_CHANCE, BY_ITSELF, BY_OTHERS

_NEWEST = 3
_HEADINGS = {
    "measure": LABELS["measure"].heading,
    "target": LABELS["target"].heading,
    "own": BY_ITSELF,
    "others": BY_OTHERS,
    "chance": BY_CHANCE,
    "standard_errors": "3 standard errors",
}


@click.group(epilog=EXIT_CODES, short_help="Draft the policy of a gate from its ground truth.")
def policy() -> None:
    """Draft the policy of a gate."""


@policy.command("draft", epilog=EXIT_CODES, short_help="Print bounds that follow from the ground truth.")
@gate_argument
@click.option(
    "--format",
    "shown_as",
    type=click.Choice(["yaml", "table", "json", "csv", "html"]),
    default="yaml",
    show_default=True,
    help="The policy as YAML, or the figures that it follows from.",
)
@report_errors(ExitCode.UNDETERMINED)
def draft_policy(gate: Path, shown_as: Format | Literal["yaml"]) -> None:
    """Print a `policy:` for GATE (a gate's defs.yaml, or its folder), with a reason for every bound.

    The bounds follow from the ground truth alone: from what it has itself, from what other people's records
    would tell of each person, and from how far chance goes beyond that. None is taken from a candidate; the
    newest that were judged stand beside them for comparison. It tells figures of the ground truth, but no
    value, and does not count as an evaluation of it.
    """
    from disclosure_pipeline.candidates.measuring import measure_baselines
    from disclosure_pipeline.orchestration.folders import folders_of
    from disclosure_pipeline.orchestration.gate_file import load_gate
    from disclosure_pipeline.policy.bounds_draft import draft_policy as draft_bounds
    from disclosure_pipeline.policy.bounds_draft import write_policy
    from disclosure_pipeline.release.standing import read_newest_dossiers

    folders = folders_of(load_gate(gate))
    with show_step("Measuring the ground truth against itself"):
        baselines = measure_baselines(folders)
    draft = draft_bounds(folders.gate, baselines.own, baselines.halves)
    if shown_as == "yaml":
        dossiers = read_newest_dossiers(folders, _NEWEST)
        click.echo(write_policy(folders.gate, draft, dossiers), nl=False)
        return
    bounds = [
        {"clause": bound.measure, "target": bound.column, "bound": bound.bound, "reason": bound.reason}
        for bound in draft.bounds
    ]
    tables = (
        Table(
            "baselines",
            "What the ground truth and other people's records show",
            tuple(_HEADINGS),
            draft.baselines,
            _HEADINGS,
        ),
        Table("bounds", "Bounds that follow", ("clause", "target", "bound", "reason"), bounds),
    )
    print_report(Report(f"Gate {folders.gate.name}", {}, tables), shown_as)
