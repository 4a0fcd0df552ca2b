"""`dictionary`: drafts of a data dictionary, and the schema of a gate's file."""

from __future__ import annotations

from pathlib import Path

import click

from disclosure_pipeline.cli.exit_codes import EXIT_CODES, report_errors


@click.group(short_help="Draft a data dictionary; the JSON schema of a gate.")
def dictionary() -> None:
    """Write a data dictionary, and check the file of a gate in an editor."""


@dictionary.command("draft", epilog=EXIT_CODES, short_help="Print a first data dictionary of a table.")
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
@report_errors()
def draft_dictionary(table: Path, synthetic: bool | None, smallest_count: int) -> None:
    """Print a first data dictionary of TABLE, to be completed by hand.

    No smallest or largest value and no rare level is written. All the same it tells of the table: it is
    made from a confidential one only if you say so.
    """
    from disclosure_pipeline.tables.inference import SMALLEST_COUNT, draft
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
    click.echo(draft(read_raw(table, "the table"), smallest_count).to_yaml(), nl=False)


@dictionary.command("schema", epilog=EXIT_CODES, short_help="Print the JSON schema of a gate's file.")
@report_errors()
def dictionary_schema() -> None:
    """Print the JSON schema of a gate's file: editors complete and check the file by it."""
    import json

    from disclosure_pipeline.policy.gate_template import file_schema

    click.echo(json.dumps(file_schema(), indent=2, ensure_ascii=False))
