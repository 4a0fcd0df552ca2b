"""The command line."""

from __future__ import annotations

from pathlib import Path

import click

from disclosure_pipeline.cli.gates import check, policy, status
from disclosure_pipeline.cli.init import dictionary, init, keygen
from disclosure_pipeline.cli.measure import measure
from disclosure_pipeline.cli.printing import EXIT_CODES, echo, report_errors, show_step
from disclosure_pipeline.cli.releases import prune, revoke, verify
from disclosure_pipeline.cli.verdicts import evaluate, report, run


@click.command(epilog=EXIT_CODES, short_help="Run a gate over two syntheses of an example survey.")
@click.option(
    "--records", default=5000, show_default=True, type=click.IntRange(min=1), help="Size of the ground truth."
)
@click.option("--seed", default=2024, show_default=True, help="Seed of the ground truth.")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("disclosure-pipeline-demo"),
    show_default=True,
    help="The demo's own folder, with a Dagster instance of its own.",
)
@report_errors()
def demo(records: int, seed: int, home: Path) -> None:
    """Run the gate over an honest and a leaky synthesis of an example survey."""
    from disclosure_pipeline.demo.run import run_demo

    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    with show_step("Making an example survey") as update:
        verdicts = run_demo(home, records, seed, update)
    echo(f"\n{'candidate':<20} {'verdict':<13} {'repU':>7}  clauses not kept")
    for verdict in verdicts:
        number = len(verdict.broken_clauses) or "-"
        echo(f"{verdict.candidate:<20} {verdict.decision:<13} {verdict.repU:>6.2f}%  {number}")
        for clause in verdict.broken_clauses:
            echo(f"  {clause}")
    for verdict in verdicts:
        publication = f"published in {verdict.folder}" if verdict.folder else "not published"
        echo(f"\n{verdict.candidate}: {publication}")
    echo(f"\nThe runs are in {home}: in a checkout, `make ui` shows them. Why, on a page for each:")
    for verdict in verdicts:
        echo(f"  {verdict.page}")


@click.group(epilog=EXIT_CODES)
@click.version_option(package_name="disclosure-pipeline")
def main() -> None:
    """Measure what synthetic tables disclose, and decide whether they may be released."""


for _command in (
    init,
    check,
    policy,
    evaluate,
    run,
    status,
    report,
    verify,
    revoke,
    prune,
    measure,
    dictionary,
    keygen,
    demo,
):
    main.add_command(_command)
