"""`check` and `status`: what a gate's definition means, and where its candidates stand."""

from __future__ import annotations

from pathlib import Path

import click

from disclosure_pipeline.errors import DisclosurePipelineError


@click.command()
@click.argument("gate", type=click.Path(exists=True, path_type=Path))
def check(gate: Path) -> None:
    """List the clauses that are in force in GATE (a gate's defs.yaml, or its folder), read strictly.

    Exit code 1 where the definition cannot be taken as it is written, or where its ground truth, keys or
    trusted keys are not there. Relative paths start at DAGSTER_HOME.
    """
    from disclosure_pipeline.orchestration.gate_file import find_gate_file, list_missing, load_gate
    from disclosure_pipeline.policy.effective_clauses import list_effective_clauses
    from disclosure_pipeline.policy.waivers import read_waivers

    try:
        file = (find_gate_file(gate) or gate) if gate.is_dir() else gate
        definition = load_gate(file)
        waivers = read_waivers(file.parent / "waivers")
        missing = list_missing(definition, file)
    except DisclosurePipelineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Gate {definition.name}, policy digest {definition.policy_digest()}")
    for clause in list_effective_clauses(definition.clauses()):
        click.echo(f"  {clause}")
    policy = definition.policy
    click.echo(
        f"  at most {policy.evaluations_per_ground_truth} contents are measured against one ground truth, "
        f"and none that differs from another in fewer than {policy.smallest_count} records"
    )
    for waiver in waivers:
        click.echo(f"  waiver {waiver.name}: {waiver.clause} may go to {waiver.ceiling:.4g} ", nl=False)
        click.echo(f"until {waiver.expires.isoformat()}, approved by {waiver.approver}")
    if missing:
        raise click.ClickException("\n".join(missing))


@click.command()
@click.argument("gate", type=click.Path(exists=True, path_type=Path))
def status(gate: Path) -> None:
    """List the candidates of GATE (a gate's defs.yaml, or its folder) and where each stands.

    Told are candidates that are published and would be refused today, by their latest dossier.
    """
    from disclosure_pipeline.candidates.asked import count_recorded
    from disclosure_pipeline.orchestration.folders import folders_of
    from disclosure_pipeline.orchestration.gate_file import load_gate
    from disclosure_pipeline.release.standing import list_standings

    try:
        folders = folders_of(load_gate(gate))
        standings = list_standings(folders)
    except DisclosurePipelineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(
        f"Gate {folders.gate.name}, policy digest {folders.gate.policy_digest()}; its ground truth was asked "
        f"{count_recorded(folders.store)} of at most {folders.gate.policy.evaluations_per_ground_truth} times"
    )
    for standing in standings:
        click.echo(f"  {standing.candidate}: {standing}")
    if not standings:
        click.echo("  no candidate has arrived")
