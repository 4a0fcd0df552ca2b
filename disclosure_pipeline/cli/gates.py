"""`check`, `status` and `policy`: the readiness of a gate, its candidates, its bounds and their power."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

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
    make_ending,
    print_report,
    report_errors,
    show_step,
)
from disclosure_pipeline.errors import choose_form, write_count

_NEWEST = 3
_TOLD = ("columns", "policy")  # findings of `check` that matter although they are in order


@click.group(epilog=EXIT_CODES, short_help="Draft the policy of a gate, or measure its power.")
def policy() -> None:
    """Draft the policy of a gate, or measure its power."""


@policy.command("draft", epilog=EXIT_CODES, short_help="Draft bounds from the ground truth.")
@gate_argument
@click.option(
    "--format",
    "shown_as",
    type=click.Choice(["yaml", "table", "json", "csv", "html"]),
    default="yaml",
    show_default=True,
    help="The policy as YAML, or the figures behind it.",
)
@click.option(
    "--files", type=click.IntRange(1, 1000), help="Files per candidate; by default as in the newest one."
)
@click.option(
    "--records", type=click.IntRange(min=1), help="Records per file; by default as in the newest candidate."
)
@report_errors(ExitCode.UNDETERMINED, writes_files=False)
def draft_policy(
    gate: Path, shown_as: Format | Literal["yaml"], files: int | None, records: int | None
) -> None:
    """Print a `policy:` for GATE (a gate's defs.yaml, or its folder), with a reason for every bound.

    Each bound is the smallest difference from other people's records that matters; its clause allows for
    chance by itself. From the ground truth alone follows the difference that it detects in files of this
    number and size. The newest candidates are shown for comparison only. The draft ends with the share of the
    people from which on copies would be noticed (`policy power` simulates it). It has figures of the ground
    truth, but no values, and does not count as an evaluation.
    """
    from disclosure_pipeline.candidates.measuring import measure_baselines
    from disclosure_pipeline.evaluation.frames import LABELS
    from disclosure_pipeline.measures.words import BY_CHANCE, BY_ITSELF, BY_OTHERS
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.policy.bounds_draft import draft_policy as draft_bounds
    from disclosure_pipeline.policy.bounds_draft import write_limits, write_policy
    from disclosure_pipeline.policy.sentences import describe_limits
    from disclosure_pipeline.release.standing import read_newest_dossiers
    from disclosure_pipeline.tables.messages import capitalized

    folders = folders_of(load_gate(gate))
    dossiers = read_newest_dossiers(folders, _NEWEST)
    newest = dossiers[0].get("figures", {}).get("N_s", []) if dossiers else []
    records = records or max(newest, default=None)
    with show_step("Measuring the ground truth against itself"):
        baselines = measure_baselines(folders, records)
    draft = draft_bounds(folders.gate, baselines.own, baselines.halves, files or max(1, len(newest)), records)
    text = write_policy(folders.gate, draft, dossiers)
    noticed = [f"{capitalized(sentence)}." for sentence in describe_limits(baselines.limits)]
    if shown_as == "yaml":
        click.echo(text + write_limits(noticed), nl=False)
        return
    headings = {
        "figure": LABELS["measure"].heading,
        "target": LABELS["target"].heading,
        "own": BY_ITSELF,
        "others": BY_OTHERS,
        "chance": BY_CHANCE,
        "beyond_by_chance": "beyond, by chance",
    }
    bounds = [
        {"clause": bound.figure, "target": bound.column, "bound": bound.bound, "reason": bound.reason}
        for bound in draft.bounds
    ]
    tables = (
        Table(
            "baselines",
            "Figures of the ground truth and of other people's records",
            tuple(headings),
            draft.baselines,
            headings,
        ),
        Table("bounds", "Bounds that follow", ("clause", "target", "bound", "reason"), bounds),
        Table("noticed", "What they would notice", ("finding",), [{"finding": text} for text in noticed]),
    )
    print_report(Report(f"Gate {folders.gate.name}", {}, tables), shown_as)


@policy.command("power", epilog=EXIT_CODES, short_help="Measure what share of copies the policy detects.")
@gate_argument
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Time to spend; more tries give a more precise answer.",
)
@format_option
@report_errors(ExitCode.UNDETERMINED, writes_files=False)
def show_power(gate: Path, seconds: float, shown_as: Format | None) -> None:
    """Measure how often GATE (a gate's defs.yaml, or its folder) refuses honest tables, or detects copies.

    In each try one random half of the ground truth, of at most 20,000 records, plays the ground truth, and
    the other half a fresh table into which records of a share of the first half's people are planted: exact
    copies, near copies, or copies among ten times as many records. The gate's own clauses decide. The result
    is kept for `check`, dossiers and releases; it has no value of the ground truth, and does not count as an
    evaluation.
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
        "Refused tries",
        ("planted", "share", "refused", "tries", "percent", "low", "high"),
        to_rows(power.to_frame().round(1)),
        {"share": "% of people", "percent": "% refused", "low": "at least", "high": "at most"},
    )
    print_report(Report(f"Power of {folders.gate.name}", {"records": power.records}, (table,)), chosen)


@click.command(epilog=EXIT_CODES, short_help="Check that a gate is ready for a candidate.")
@gate_argument
@format_option
@click.option(
    "--all", "show_all", is_flag=True, help="Also show what is in order, and every clause in force."
)
@report_errors(writes_files=False)
def check(gate: Path, shown_as: Format | None, show_all: bool) -> None:
    """Check that GATE (a gate's defs.yaml, or its folder) is ready for a candidate, and show its policy.

    The command reads the file strictly and checks that the ground truth is readable and fits the data
    dictionary, that the signing key is among the trusted keys, that folders are readable and writable, and
    that the environment is set up. It records nothing and creates no folders. Relative paths start at
    DAGSTER_HOME. The exit code is 1 if the gate is not ready.
    """
    from disclosure_pipeline.orchestration.gate_file import copy_policy, place_problems
    from disclosure_pipeline.policy.clauses import list_effective_clauses
    from disclosure_pipeline.release.readiness import check_readiness

    file, folders = load_with_waivers(gate)
    definition = folders.gate
    clauses = list_effective_clauses(definition.clauses())
    with show_step("Reading the ground truth"):
        findings = check_readiness(folders, datetime.now(timezone.utc))
    problems = [(finding.subject, finding.sentence) for finding in findings if finding.is_problem]
    granted = [
        f"waiver {waiver.name}: {waiver.clause} may go to {waiver.ceiling:.4g} until "
        f"{waiver.expires.isoformat()}, approved by {waiver.approver}"
        for waiver in folders.waivers
    ]
    if problems:
        heading = f"Gate {definition.name} is not ready: {write_count(len(problems), 'problem')}, named below"
    else:
        heading = f"Gate {definition.name} is ready for a candidate"
    lines = [
        f"  {finding.subject}: {finding.sentence}"
        for finding in findings
        if not finding.is_problem and not finding.is_doubt and (show_all or finding.subject in _TOLD)
    ]
    if show_all:
        lines += [f"  policy digest {definition.policy_digest()}", *(f"  {line}" for line in clauses)]
    else:
        lines += [f"  {line}" for line in copy_policy(file)]
        lines.append(f"  In force are {write_count(len(clauses), 'clause')}: --all lists them")
    rows = [
        {"looked at": finding.subject, "ready": not finding.is_problem, "finding": finding.sentence}
        for finding in findings
    ]
    tables = (
        Table("findings", "Ready for a candidate", ("looked at", "ready", "finding"), rows),
        Table("clauses", "Clauses in force", ("clause",), [{"clause": line} for line in clauses + granted]),
    )
    facts = {
        "gate": definition.name,
        "ready": not problems,
        "policy digest": definition.policy_digest(),
    }
    lines += [f"  {line}" for line in granted]
    print_report(Report(heading, facts, tables, lines), shown_as)
    for finding in findings if shown_as is None else ():
        if finding.is_doubt and not finding.is_problem:
            echo(f"warning: {finding.subject}: {finding.sentence}", err=True)
    if problems:
        raise make_ending("\n".join(place_problems(problems, file)), ExitCode.REFUSED)


@click.command(epilog=EXIT_CODES, short_help="List the candidates of a gate and their verdicts.")
@gate_argument
@format_option
@click.option("--open", "opens", is_flag=True, help="Open the page of the newest dossier.")
@report_errors()
def status(gate: Path, shown_as: Format | None, opens: bool) -> None:
    """List the candidates of GATE (a gate's defs.yaml, or its folder) and their verdicts.

    For each candidate: the verdict and its time, its reason, the number of records, whether it is
    published, and the page of its dossier. A published candidate that would be refused today is marked.
    Folders in incoming that are ignored because of their names, or cannot be read, are named.
    """
    from disclosure_pipeline.candidates.evaluation import link_to_page, locate_page
    from disclosure_pipeline.candidates.evaluation_records import count_recorded_evaluations
    from disclosure_pipeline.candidates.store import find_complete_candidates, list_published
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.release.standing import list_standings

    folders = folders_of(load_gate(gate))
    incoming = find_complete_candidates(folders.incoming)
    standings = list_standings(folders)
    evaluations = count_recorded_evaluations(folders.store)
    limit = folders.gate.policy.evaluations_per_ground_truth
    heading = (
        f"Gate {folders.gate.name}, policy digest {folders.gate.policy_digest()}; {evaluations} of at most "
        f"{write_count(limit, 'candidate')} {choose_form(evaluations, 'was', 'were')} measured against its "
        "ground truth"
    )
    pages = {
        standing.candidate: page
        for standing in standings
        if (page := locate_page(folders, standing.candidate)).is_file()
    }
    links = {name: link_to_page(folders.gate, folders.store.root, page) for name, page in pages.items()}
    lines = []
    for standing in standings:
        lines.append(f"  {standing.candidate}: {standing}")
        if standing.reason is not None:
            lines.append(f"    {standing.reason}")
        if standing.candidate in links:
            lines.append(f"    Page: {links[standing.candidate]}")
    skipped = list_published(folders.releases).note
    chosen = choose_format(shown_as)
    columns = [
        "candidate",
        "verdict",
        "judged at",
        "reason",
        "records",
        "published",
        "standing",
        "page",
    ]
    if chosen == "table":  # the standing includes the verdict and whether the candidate is published
        columns = ["candidate", "standing", "reason", "records", "judged at"]
    rows = [
        {
            "candidate": standing.candidate,
            "verdict": standing.decision,
            "judged at": _write_time(standing.judged_at, chosen),
            "reason": standing.reason,
            "records": standing.records,
            "published": standing.is_published,
            "standing": str(standing),
            "page": links.get(standing.candidate),
        }
        for standing in standings
    ]
    lines = lines or ["  no candidate has arrived"]
    facts: dict[str, Any] = {"gate": folders.gate.name, "asked": evaluations, "may_be_asked": limit}
    if ignored := incoming.describe_ignored():
        facts["ignored"] = ignored
        lines = [*lines, f"  {ignored}"]
    table = Table("candidates", "Candidates", tuple(columns), rows)
    print_report(Report(heading, facts, (table,), lines), chosen)
    for link in links.values() if chosen == "table" else ():
        echo(f"Page: {link}")
    if opens and pages:
        click.launch(max(pages.values(), key=lambda page: page.stat().st_mtime).absolute().as_uri())
    if skipped:
        echo(skipped, err=True)


def _write_time(time: datetime | None, shown_as: Format | None) -> str | None:
    if time is None:
        return None
    return f"{time:%Y-%m-%d %H:%M} UTC" if shown_as == "table" else time.isoformat(timespec="seconds")
