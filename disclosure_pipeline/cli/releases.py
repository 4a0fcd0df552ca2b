"""`verify` and `prune`: what was published, and what is no longer needed."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import click

from disclosure_pipeline.errors import DisclosurePipelineError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A public key (PEM), or a YAML list of them with their periods; repeat for more.",
)
def verify(folder: Path, keys: tuple[Path, ...]) -> None:
    """Say what was approved of a published FOLDER, or what is wrong with it (exit code 1).

    Nothing is needed but the folder and the public key.
    """
    from disclosure_pipeline.policy.trust import read_trusted
    from disclosure_pipeline.release.verifying import verify as verified

    try:
        approval = verified(folder, [key for path in keys for key in read_trusted(path)])
    except DisclosurePipelineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(approval)


@click.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--releases",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder in which the gate publishes: RELEASES/GATE.",
)
@click.option(
    "--older-than", "days", required=True, type=click.IntRange(1, 36500), help="Age in days from which on."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def prune(store: Path, releases: Path, days: int, dry_run: bool) -> None:
    """Remove the old bytes of candidates that were refused or never decided from STORE, a gate's store/GATE.

    Bytes of what is published or approved stay, and so do all records.
    """
    from disclosure_pipeline.candidates.store import Store
    from disclosure_pipeline.release.pruning import prune as pruned

    try:
        pruning = pruned(
            Store(store), releases, timedelta(days=days), datetime.now(timezone.utc), dry_run=dry_run
        )
    except (DisclosurePipelineError, OSError) as error:
        raise click.ClickException(str(error)) from None
    for path in pruning.removed:
        click.echo(f"{'would remove' if dry_run else 'removed'} {path}")
    click.echo(f"{len(pruning.removed)} files, {pruning.bytes} bytes")
    if pruning.unclear:
        reasons = "".join(f"\n- {reason}" for reason in pruning.unclear)
        raise click.ClickException(
            f"All stored tables were kept, for it is not clear what is needed:{reasons}"
        )
