"""`check`, `status` and `policy`: is a gate ready, where its candidates stand, its bounds and their power."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

import click

from disclosure_pipeline.cli.printing import (
    EXIT_CODES,
    ExitCode,
    Format,
    Report,
    Table,
    choose_format,
    echo,
    format_option,
    gate_argument,
    load_with_waivers,
    print_report,
    report_errors,
    show_step,
    stop,
)

_NEWEST = 3
_MOST_RECORDS = 40_000  # of the ground truth, whose halves say what a policy would notice


@click.group(epilog=EXIT_CODES, short_help="Draft the policy of a gate, or say what it would notice.")
def policy() -> None:
    """Draft the policy of a gate, or say what it would notice."""


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
@click.option(
    "--files", type=click.IntRange(min=1), help="How many a candidate has; by default as the newest one."
)
@click.option(
    "--records", type=click.IntRange(min=1), help="How many a file has; by default as the newest candidate's."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="How long to try what the bounds would notice; 0 leaves it out, 60 makes it surer.",
)
@report_errors(ExitCode.UNDETERMINED, writes_files=False)
def draft_policy(
    gate: Path, shown_as: Format | Literal["yaml"], files: int | None, records: int | None, seconds: float
) -> None:
    """Print a `policy:` for GATE (a gate's defs.yaml, or its folder), with a reason for every bound.

    The bounds follow from the ground truth alone: from what it has itself, from what other people's records
    would tell of each person, and from how far chance goes beyond that in as many files of as many records.
    None is taken from a candidate; the newest that were judged stand beside them for comparison. The draft
    ends with what the bounds would notice (see `policy power`), tried for --seconds. It tells figures of the
    ground truth, but no value, and does not count as an evaluation of it.
    """
    from disclosure_pipeline.candidates.measuring import measure_baselines, sample_ground_truth
    from disclosure_pipeline.candidates.power import measure_gate_power
    from disclosure_pipeline.evaluation.frames import LABELS
    from disclosure_pipeline.measures.words import BY_CHANCE, BY_ITSELF, BY_OTHERS
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.policy.bounds_draft import apply_draft, write_policy, write_power
    from disclosure_pipeline.policy.bounds_draft import draft_policy as draft_bounds
    from disclosure_pipeline.release.standing import read_newest_dossiers

    folders = folders_of(load_gate(gate))
    dossiers = read_newest_dossiers(folders, _NEWEST)
    newest = dossiers[0].get("figures", {}).get("N_s", []) if dossiers else []
    records = records or max(newest, default=None)
    with show_step("Measuring the ground truth against itself"):
        baselines = measure_baselines(folders, records)
    draft = draft_bounds(folders.gate, baselines.own, baselines.halves, files or max(1, len(newest)), records)
    text = write_policy(folders.gate, draft, dossiers)
    if shown_as == "yaml":
        click.echo(text, nl=False)  # for a file, as it is; the power takes longer than all of it
    power: list[str] = []
    if seconds:
        drafted = apply_draft(folders.gate, text)
        sampled, _ = sample_ground_truth(folders, _MOST_RECORDS)
        with show_step("Trying what the bounds would notice"):
            power = measure_gate_power(drafted, sampled, seconds).describe()
    if shown_as == "yaml":
        click.echo(write_power(power) if seconds else "", nl=False)
        return
    headings = {
        "measure": LABELS["measure"].heading,
        "target": LABELS["target"].heading,
        "own": BY_ITSELF,
        "others": BY_OTHERS,
        "chance": BY_CHANCE,
        "standard_errors": "3 standard errors",
    }
    bounds = [
        {"clause": bound.measure, "target": bound.column, "bound": bound.bound, "reason": bound.reason}
        for bound in draft.bounds
    ]
    tables = (
        Table(
            "baselines",
            "What the ground truth and other people's records show",
            tuple(headings),
            draft.baselines,
            headings,
        ),
        Table("bounds", "Bounds that follow", ("clause", "target", "bound", "reason"), bounds),
        *(
            [Table("power", "What they would notice", ("finding",), [{"finding": found} for found in power])]
            if power
            else []
        ),
    )
    print_report(Report(f"Gate {folders.gate.name}", {}, tables), shown_as)


@policy.command("power", epilog=EXIT_CODES, short_help="Say which share of copies the policy would notice.")
@gate_argument
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long to try. More tries make the answer surer.",
)
@format_option
@report_errors(ExitCode.UNDETERMINED, writes_files=False)
def show_power(gate: Path, seconds: float, shown_as: Format | None) -> None:
    """Say how often GATE (its defs.yaml, or its folder) refuses honest tables, and which copies it notices.

    In each try one random half of the ground truth, of at most 20,000 records, plays the ground truth, and
    the other a fresh table in which records of a share of the people of the first are planted: as they are,
    nearly, or among ten times as many records. The gate's own clauses decide. The answer is kept for `check`,
    dossiers and releases; it holds no value of the ground truth, and does not count as an evaluation of it.
    """
    from disclosure_pipeline.evidence.dossier import to_rows
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.release.readiness import measure_and_record_power

    folders = folders_of(load_gate(gate))
    with show_step("Reading the ground truth"):
        power = measure_and_record_power(folders, seconds)
    chosen = choose_format(shown_as)
    if chosen in {None, "table"}:
        echo(f"{folders.gate.name}:")
        for sentence in str(power).splitlines():
            echo(f"  {sentence}")
    if chosen is None:
        return
    table = Table(
        "power",
        "Tries that were refused",
        ("planted", "share", "refused", "tries", "percent", "low", "high"),
        to_rows(power.to_frame().round(1)),
        {"share": "% of people", "percent": "% refused", "low": "at least", "high": "at most"},
    )
    print_report(Report(f"Power of {folders.gate.name}", {"records": power.records}, (table,)), chosen)


@click.command(epilog=EXIT_CODES, short_help="Is a gate ready for a candidate, and what is in force?")
@gate_argument
@format_option
@report_errors(writes_files=False)
def check(gate: Path, shown_as: Format | None) -> None:
    """Say whether GATE (a gate's defs.yaml, or its folder) is ready for a candidate, and what is in force.

    The file is read strictly, and every clause is listed. It is then checked that the ground truth can be
    read and keeps its data dictionary, that keys and trusted keys fit together, that the folders can be read
    and written, and that the environment is set up. Nothing is recorded, and no folder is made. Relative
    paths start at DAGSTER_HOME. Exit code 1 where the gate is not ready.
    """
    from disclosure_pipeline.orchestration.gate_file import place_problems
    from disclosure_pipeline.policy.clauses import list_effective_clauses
    from disclosure_pipeline.release.readiness import check_readiness

    file, folders = load_with_waivers(gate)
    definition = folders.gate
    clauses = list_effective_clauses(definition.clauses())
    with show_step("Reading the ground truth"):
        findings = check_readiness(folders, datetime.now(timezone.utc))
    problems = [(finding.subject, finding.sentence) for finding in findings if finding.is_problem]
    heading = f"Gate {definition.name}, policy digest {definition.policy_digest()}"
    granted = [
        f"waiver {waiver.name}: {waiver.clause} may go to {waiver.ceiling:.4g} until "
        f"{waiver.expires.isoformat()}, approved by {waiver.approver}"
        for waiver in folders.waivers
    ]
    rows = [
        {"looked at": finding.subject, "ready": not finding.is_problem, "finding": finding.sentence}
        for finding in findings
    ]
    tables = (
        Table("findings", "Ready for a candidate", ("looked at", "ready", "finding"), rows),
        Table("clauses", "Clauses in force", ("clause",), [{"clause": line} for line in clauses + granted]),
    )
    facts = {"gate": definition.name, "ready": not problems}
    chosen = choose_format(shown_as)
    print_report(Report(heading, facts, tables, [f"  {line}" for line in clauses + granted]), chosen)
    for finding in findings if chosen is None else ():
        if not finding.is_problem:
            word = "warning" if finding.is_doubt else "ok"
            echo(f"{word}: {finding.subject}, {finding.sentence}", err=True)
    if problems:
        raise stop("\n".join(place_problems(problems, file)), ExitCode.REFUSED)


@click.command(epilog=EXIT_CODES, short_help="List the candidates of a gate, and where each stands.")
@gate_argument
@format_option
@report_errors()
def status(gate: Path, shown_as: Format | None) -> None:
    """List the candidates of GATE (a gate's defs.yaml, or its folder) and where each stands.

    It shows the verdict of each, when it was judged, the clause that stands most against it, its records, and
    whether it is published. A published candidate that its latest dossier would refuse today is marked.
    """
    from disclosure_pipeline.candidates.evaluation_records import count_recorded
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.release.standing import list_standings

    folders = folders_of(load_gate(gate))
    standings = list_standings(folders)
    evaluations, limit = count_recorded(folders.store), folders.gate.policy.evaluations_per_ground_truth
    heading = (
        f"Gate {folders.gate.name}, policy digest {folders.gate.policy_digest()}; its ground truth was asked "
        f"{evaluations} of at most {limit} times"
    )
    lines = [f"  {standing.candidate}: {standing}" for standing in standings]
    chosen = choose_format(shown_as)
    columns = ["candidate", "verdict", "judged at", "worst clause", "records", "published", "standing"]
    if chosen == "table":  # a terminal has little room, and the standing says both of the others
        columns = ["candidate", "standing", "worst clause", "records", "judged at"]
    rows = [
        {
            "candidate": standing.candidate,
            "verdict": standing.decision,
            "judged at": _write_time(standing.judged_at, chosen),
            "worst clause": standing.worst_clause,
            "records": standing.records,
            "published": standing.is_published,
            "standing": str(standing),
        }
        for standing in standings
    ]
    facts = {"gate": folders.gate.name, "asked": evaluations, "may_be_asked": limit}
    table = Table("candidates", "Candidates", tuple(columns), rows)
    print_report(Report(heading, facts, (table,), lines or ["  no candidate has arrived"]), chosen)


def _write_time(time: datetime | None, shown_as: Format | None) -> str | None:
    if time is None:
        return None
    return f"{time:%Y-%m-%d %H:%M} UTC" if shown_as == "table" else time.isoformat(timespec="seconds")
