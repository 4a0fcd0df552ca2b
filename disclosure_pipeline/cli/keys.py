"""`keygen`: the keys that releases are signed with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from disclosure_pipeline.cli.exit_codes import EXIT_CODES, report_errors


@click.command(epilog=EXIT_CODES, short_help="Write new keys: to sign, to verify, and a salt.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@report_errors()
def keygen(folder: Path) -> None:
    """Write new keys into FOLDER: a private key that signs releases, its public key, and a salt."""
    from disclosure_pipeline.release.keys import SALT, SIGNING_KEY
    from disclosure_pipeline.release.keys import keygen as make_keys

    keys = make_keys(folder.resolve())
    click.echo(f"{keys.public_key} is for everyone who verifies a release.")
    click.echo("The other two are secret. The gate finds them by its environment:")
    click.echo(f"export {SIGNING_KEY}={shlex.quote(str(keys.signing_key))}")
    click.echo(f"export {SALT}={shlex.quote(str(keys.salt))}")
