"""The command line."""

from __future__ import annotations

import click

from disclosure_pipeline.cli.demo import demo
from disclosure_pipeline.cli.dictionary import dictionary
from disclosure_pipeline.cli.exit_codes import EXIT_CODES
from disclosure_pipeline.cli.gates import check, status
from disclosure_pipeline.cli.init import init
from disclosure_pipeline.cli.keys import keygen
from disclosure_pipeline.cli.measure import measure
from disclosure_pipeline.cli.policy import policy
from disclosure_pipeline.cli.releases import prune, revoke, verify
from disclosure_pipeline.cli.verdicts import evaluate, report


@click.group(epilog=EXIT_CODES)
@click.version_option(package_name="disclosure-pipeline")
def main() -> None:
    """Measure what synthetic tables disclose, and decide whether they may be released."""


for _command in (
    init,
    check,
    policy,
    evaluate,
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
