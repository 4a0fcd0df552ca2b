"""The command line."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.tables.levels import GROUND_TRUTH

if TYPE_CHECKING:
    import pandas as pd

    from disclosure_pipeline.result import Disclosure
    from disclosure_pipeline.tables.alignment import Grouping
    from disclosure_pipeline.tables.dictionary import Column


@click.group()
@click.version_option(package_name="disclosure-pipeline")
def main() -> None:
    """Measure what synthetic tables disclose, and decide whether they may be released."""


@main.command()
@click.option(
    "--records", default=5000, show_default=True, type=click.IntRange(min=1), help="Size of the ground truth."
)
@click.option("--seed", default=2024, show_default=True, help="Seed of the ground truth.")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: os.environ.get("DAGSTER_HOME", "dagster_home"),
    help="Folder of the Dagster instance.  [default: DAGSTER_HOME, else ./dagster_home]",
)
def demo(records: int, seed: int, home: Path) -> None:
    """Run the gate over an honest and a leaky synthesis of an example survey."""
    from disclosure_pipeline.demo.run import run_demo

    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    try:
        verdicts = run_demo(home, records, seed)
    except DisclosurePipelineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"\n{'candidate':<20} {'verdict':<13} {'repU':>7}  clauses not kept")
    for verdict in verdicts:
        against = ", ".join(verdict.against) or "-"
        click.echo(f"{verdict.candidate:<20} {verdict.decision:<13} {verdict.repU:>6.2f}%  {against}")
    for verdict in verdicts:
        click.echo(f"\n{verdict.candidate}: {_where(verdict.folder)}")
    click.echo("\nSee the runs, the lineage and the failing checks: make ui")


def _where(folder: Path | None) -> str:
    return f"published in {folder}" if folder else "not published"


@main.command()
@click.argument("ground_truth", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument(
    "synthetic", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True
)
@click.option(
    "--key", "keys", multiple=True, required=True, help="A column an intruder knows; repeat for more."
)
@click.option(
    "--target", "targets", multiple=True, help="A column to protect; by default all that are no keys."
)
@click.option("--groups", multiple=True, metavar="COLUMN=N", help="Put a numeric column into N groups.")
@click.option("--special", multiple=True, metavar="COLUMN=CODE", help="A code that stays a level of its own.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "memory", "partitioned"]),
    default="auto",
    show_default=True,
    help="Who counts; no figure depends on it. partitioned is for tables that do not fit into memory; auto "
    "chooses by their size and the memory that is free.",
)
@click.option(
    "--progress/--no-progress", default=None, help="Show how far the work is; by default on a terminal only."
)
def measure(
    ground_truth: Path,
    synthetic: tuple[Path, ...],
    keys: tuple[str, ...],
    targets: tuple[str, ...],
    groups: tuple[str, ...],
    special: tuple[str, ...],
    engine: str,
    progress: bool | None,
) -> None:
    """Print what one or more SYNTHETIC tables (CSV, Parquet, Arrow) disclose of the GROUND_TRUTH."""
    from disclosure_pipeline.tables.alignment import Grouping

    tables = [(GROUND_TRUTH, ground_truth), *((f"synthetic table {path.name!r}", path) for path in synthetic)]
    grouping = Grouping(dict(map(_whole, groups)), _grouped(special), "pooled")
    show = sys.stderr.isatty() if progress is None else progress
    try:
        result = _measured(tables, list(keys), list(targets) or None, grouping, engine, show)
    except DisclosurePipelineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(result)
    click.echo(f"Engine: {result.engine}", err=True)
    for warning in result.warnings:
        click.echo(f"Warning: {warning}", err=True)


def _measured(
    tables: Sequence[tuple[str, Path]],
    keys: list[str],
    targets: list[str] | None,
    grouping: Grouping,
    engine: str,
    progress: bool,
) -> Disclosure:
    """The measures of files (GT first), each beside its name in messages."""
    from disclosure_pipeline.elsewhere import chosen
    from disclosure_pipeline.evaluation import disclosure

    taken, told = chosen(engine, [path for _, path in tables])
    if taken == "partitioned":
        return _measured_in_batches(tables, keys, targets, grouping, told, progress)
    ground_truth, *syntheses = (_read(path, name, grouping) for name, path in tables)
    groups, special = grouping.groups, grouping.special_values
    found = disclosure(
        ground_truth, syntheses, keys, targets, groups=groups, special_values=special, progress=progress
    )
    return replace(found, engine=told)


def _measured_in_batches(
    tables: Sequence[tuple[str, Path]],
    keys: list[str],
    targets: list[str] | None,
    grouping: Grouping,
    told: str,
    progress: bool,
) -> Disclosure:
    """As `_measured`, of tables that need not fit into memory. Only columns that are measured are read."""
    from disclosure_pipeline.evaluation import ONE_WAY, TWO_WAY, count_elsewhere, figures
    from disclosure_pipeline.exclusions import Exclusions
    from disclosure_pipeline.progress import shown, silent
    from disclosure_pipeline.release.tables import elsewhere
    from disclosure_pipeline.tables.alignment import check_names
    from disclosure_pipeline.tables.contract import stream_canonical
    from disclosure_pipeline.tables.sources import columns_of

    known = tuple(columns_of(path, name) for name, path in tables)
    key_names, target_names = check_names(known, keys, targets, grouping)
    dictionary = _dictionary((*key_names, *target_names), grouping)
    with shown() if progress else nullcontext(silent) as show:
        streams = [stream_canonical(path, dictionary, name, (), False, show) for name, path in tables]
        given = replace(elsewhere(streams, told), columns=known)
        counts = count_elsewhere(given, keys, targets, grouping, Exclusions(), TWO_WAY[0], show)
        return replace(figures(counts, ONE_WAY, TWO_WAY), engine=told)


def _read(path: Path, table: str, grouping: Grouping) -> pd.DataFrame:
    from disclosure_pipeline.tables.contract import read_canonical
    from disclosure_pipeline.tables.sources import columns_of

    dictionary = _dictionary(columns_of(path, table), grouping)
    return read_canonical(path, dictionary, table, (), only_known=False).frame


def _dictionary(columns: Iterable[str], grouping: Grouping) -> dict[str, Column]:
    """Columns are categories, as they are written, but for those that are asked as numbers."""
    from disclosure_pipeline.tables.dictionary import Column

    numeric = {*grouping.groups, *grouping.special_values}
    return {name: Column(type="number" if name in numeric else "category") for name in columns}


@main.group()
def dictionary() -> None:
    """Write a data dictionary, and check the file of a gate in an editor."""


@dictionary.command("draft")
@click.argument("table", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--synthetic/--confidential", "synthetic", default=None, help="What the table is: one of them is needed."
)
@click.option(
    "--smallest-count",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    help="Levels that fewer records have are not written.",
)
def draft_dictionary(table: Path, synthetic: bool | None, smallest_count: int) -> None:
    """Print a first data dictionary of TABLE, to be completed by hand.

    No smallest or largest value and no rare level is written. All the same it tells of the table: it is
    made from a confidential one only if you say so.
    """
    from disclosure_pipeline.tables.draft import SMALLEST_COUNT, draft
    from disclosure_pipeline.tables.sources import read_raw

    if synthetic is None:
        raise click.UsageError(
            "Say what the table is: --synthetic, or --confidential if it is the ground truth and a draft is "
            "to be made from it all the same."
        )
    if not synthetic and smallest_count < SMALLEST_COUNT:
        raise click.UsageError(
            f"--smallest-count must be at least {SMALLEST_COUNT} for a confidential table."
        )
    try:
        click.echo(draft(read_raw(table, "the table"), smallest_count).to_yaml(), nl=False)
    except DisclosurePipelineError as error:
        raise click.ClickException(str(error)) from None


@dictionary.command("schema")
def dictionary_schema() -> None:
    """Print the JSON schema of a gate's file: editors complete and check the file by it."""
    import json

    from disclosure_pipeline.policy.schema import file_schema

    click.echo(json.dumps(file_schema(), indent=2, ensure_ascii=False))


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def keygen(folder: Path) -> None:
    """Write new keys into FOLDER: a private key that signs releases, its public key, and a salt."""
    from disclosure_pipeline.release.keys import SALT, SIGNING_KEY
    from disclosure_pipeline.release.keys import keygen as make_keys

    try:
        made = make_keys(folder.resolve())
    except DisclosurePipelineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{made.public_key} is for everyone who verifies a release.")
    click.echo("The other two are secret. The gate finds them by its environment:")
    click.echo(f"export {SIGNING_KEY}={shlex.quote(str(made.signing_key))}")
    click.echo(f"export {SALT}={shlex.quote(str(made.salt))}")


@main.command()
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


@main.command()
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
    from disclosure_pipeline.release.pruning import prune as pruned
    from disclosure_pipeline.release.store import Store

    try:
        done = pruned(
            Store(store), releases, timedelta(days=days), datetime.now(timezone.utc), dry_run=dry_run
        )
    except (DisclosurePipelineError, OSError) as error:
        raise click.ClickException(str(error)) from None
    for path in done.removed:
        click.echo(f"{'would remove' if dry_run else 'removed'} {path}")
    click.echo(f"{len(done.removed)} files, {done.bytes} bytes")
    if done.unclear:
        listed = "".join(f"\n- {each}" for each in done.unclear)
        raise click.ClickException(
            f"All stored tables were kept, for it is not clear what is needed:{listed}"
        )


def _pair(text: str) -> tuple[str, float]:
    column, _, number = text.partition("=")
    try:
        return column, float(number)
    except ValueError:
        raise click.UsageError(f"{text!r}: expected COLUMN=NUMBER, such as income=20.") from None


def _whole(text: str) -> tuple[str, int]:
    column, number = _pair(text)
    if not number.is_integer():
        raise click.UsageError(f"{text!r}: expected COLUMN=NUMBER, a whole number such as income=20.")
    return column, int(number)


def _grouped(special: tuple[str, ...]) -> dict[str, list[float]]:
    codes: dict[str, list[float]] = {}
    for column, code in map(_pair, special):
        codes.setdefault(column, []).append(code)
    return codes
