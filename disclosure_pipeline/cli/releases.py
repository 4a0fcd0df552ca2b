"""`verify`, `revoke` and `prune`: what was published, what is taken back, what is no longer needed."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import click

from disclosure_pipeline.cli.printing import EXIT_CODES, echo, report_errors
from disclosure_pipeline.errors import DisclosurePipelineError

_KEY = click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A public key (PEM), or a YAML list of them with their periods; repeat for more.",
)


def _parse_moment(text: str) -> datetime:
    from disclosure_pipeline.policy.trust import TrustError, parse_moment

    try:
        return parse_moment(text)
    except TrustError as error:
        raise click.BadParameter(str(error)) from None


@click.command(epilog=EXIT_CODES, short_help="Check a published release, with nothing but a public key.")
@click.argument("folder", type=click.Path(path_type=Path))
@_KEY
@click.option("--gate", help="The gate that it must be a release of.")
@click.option("--candidate", help="The candidate that it must be.")
@click.option("--policy-digest", help="The digest of the policy that it must have been held against.")
@click.option(
    "--not-before",
    callback=lambda _context, _option, text: None if text is None else _parse_moment(text),
    help="A time with an offset, before which it must not have been published.",
)
@click.option(
    "--revocations",
    type=click.Path(path_type=Path),
    help="A file of signed revocations, as `revoke` writes it, none of which may concern it.",
)
@report_errors()
def verify(
    folder: Path,
    keys: tuple[Path, ...],
    gate: str | None,
    candidate: str | None,
    policy_digest: str | None,
    not_before: datetime | None,
    revocations: Path | None,
) -> None:
    """Say what was approved of a published FOLDER, or what is wrong with it (exit code 1).

    Nothing is needed but the folder and the public key. What was approved is printed; with an option, the
    release must be the one that it names.
    """
    from disclosure_pipeline.policy.trust import read_trusted
    from disclosure_pipeline.release.verifying import Expected
    from disclosure_pipeline.release.verifying import verify as verify_release

    expected = Expected(gate, candidate, policy_digest, not_before)
    trusted_keys = [key for path in keys for key in read_trusted(path)]
    echo(verify_release(folder, trusted_keys, expected, revocations))


@click.command(epilog=EXIT_CODES, short_help="Write a signed revocation of a release.")
@click.argument("folder", type=click.Path(path_type=Path))
@_KEY
@click.option("--reason", required=True, help="Why it is no longer stood by; everyone who verifies sees it.")
@click.option(
    "--revocations",
    type=click.Path(path_type=Path),
    help="The file that the signed revocation is added to, which is made if it is not there; by default "
    "RELEASES/GATE.revocations, where the gate that published it reads it.",
)
@report_errors(expected=(DisclosurePipelineError, OSError))
def revoke(folder: Path, keys: tuple[Path, ...], reason: str, revocations: Path | None) -> None:
    """Write a signed revocation of the release in FOLDER, for everyone who verifies it.

    It is signed with the gate's key (DISCLOSURE_PIPELINE_SIGNING_KEY). The release itself is not touched:
    hand the file of revocations to its recipients. The same table is not published again, in whatever order,
    format or release.
    """
    from disclosure_pipeline.policy.trust import read_trusted
    from disclosure_pipeline.release.keys import load_signer
    from disclosure_pipeline.release.revoking import locate_revocations
    from disclosure_pipeline.release.revoking import revoke as write_revocation

    revocations = revocations or locate_revocations(folder.absolute().parent)
    trusted_keys = [key for path in keys for key in read_trusted(path)]
    now = datetime.now(timezone.utc)
    revocation = write_revocation(folder, revocations, reason, trusted_keys, load_signer(), now)
    echo(f"{revocation}\nAdded to {revocations}: hand it to whoever has the release.")


@click.command(epilog=EXIT_CODES, short_help="Remove old bytes of candidates that were not released.")
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--releases",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder in which the gate publishes: RELEASES/GATE.",
)
@click.option(
    "--older-than",
    "days",
    required=True,
    type=click.IntRange(1, 36500),
    help="How many days old they are at least.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@report_errors(expected=(DisclosurePipelineError, OSError))
def prune(store: Path, releases: Path, days: int, dry_run: bool) -> None:
    """Remove the old bytes of candidates that were refused or never decided from STORE, a gate's store/GATE.

    Bytes of what is published or approved stay, and so do all records.
    """
    from disclosure_pipeline.candidates.store import Store
    from disclosure_pipeline.release.pruning import prune as prune_store

    age, now = timedelta(days=days), datetime.now(timezone.utc)
    pruning = prune_store(Store(store), releases, age, now, dry_run=dry_run)
    for path in pruning.removed:
        echo(f"{'would remove' if dry_run else 'removed'} {path}")
    echo(f"{len(pruning.removed)} files, {pruning.bytes} bytes")
    if pruning.unclear:
        reasons = "".join(f"\n- {reason}" for reason in pruning.unclear)
        raise click.ClickException(
            f"All stored tables were kept, for it is not clear what is needed:{reasons}"
        )
