"""The command line."""

from __future__ import annotations

import click

from disclosure_pipeline.cli.demo import demo
from disclosure_pipeline.cli.dictionary import dictionary
from disclosure_pipeline.cli.gates import check, status
from disclosure_pipeline.cli.keys import keygen
from disclosure_pipeline.cli.measure import measure
from disclosure_pipeline.cli.releases import prune, revoke, verify


@click.group()
@click.version_option(package_name="disclosure-pipeline")
def main() -> None:
    """Measure what synthetic tables disclose, and decide whether they may be released."""


for _command in (demo, measure, dictionary, check, status, keygen, verify, revoke, prune):
    main.add_command(_command)
