"""The command line, with the commands that need no gate: `init`, `dictionary`, `keygen` and `demo`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from disclosure_pipeline.cli.gates import check, policy, status
from disclosure_pipeline.cli.measure import as_source, form_options, measure, parse_codes, parse_whole_number
from disclosure_pipeline.cli.printing import EXIT_CODES, echo, gate_argument, report_errors, show_step
from disclosure_pipeline.cli.verdicts import evaluate, prune, report, revoke, run, verify

if TYPE_CHECKING:
    from disclosure_pipeline.orchestration.gate_file import GateSetup
    from disclosure_pipeline.tables.descriptions import Description
    from disclosure_pipeline.tables.schemas import SchemaFormat


@click.group(short_help="Draft a data dictionary, or write it as a schema.")
def dictionary() -> None:
    """Draft a data dictionary, write it for another program, or print the JSON schema of a gate's file."""


@dictionary.command("draft", epilog=EXIT_CODES, short_help="Print a draft of a table's data dictionary.")
@click.argument("table", type=click.Path(exists=True, path_type=Path))
@click.option("--synthetic/--confidential", "synthetic", default=None, help="The kind of table; required.")
@click.option(
    "--smallest-count",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    help="Leave out levels with fewer records.",
)
@click.option(
    "--from",
    "described",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that describes the columns: of SPSS or Stata, with labels; metadata of SDV; a table schema "
    "of Frictionless; a schema of pandera.",
)
@form_options
@report_errors()
def draft_dictionary(
    table: Path,
    synthetic: bool | None,
    smallest_count: int,
    described: Path | None,
    form: dict[str, Any],
) -> None:
    """Print a draft of the data dictionary of TABLE, to be completed by hand.

    The draft has no smallest or largest values and no rare levels. It still reveals something of the table,
    so a confidential one is only read with --confidential. Descriptions of columns, which files of SPSS and
    Stata have themselves, are written in full; a comment says where the values contradict them.
    """
    from disclosure_pipeline.tables.inference import SMALLEST_COUNT, draft
    from disclosure_pipeline.tables.sources import read_descriptions, read_raw

    if synthetic is None:
        raise click.UsageError(
            "Give --synthetic, or --confidential to draft from the ground truth itself, of which the draft "
            "reveals something."
        )
    if not synthetic and smallest_count < SMALLEST_COUNT:
        raise click.UsageError(
            f"--smallest-count must be at least {SMALLEST_COUNT} for a confidential table."
        )
    source = as_source(table, form)
    raw = read_raw(source, "the table")
    descriptions = {**read_descriptions(source, "the table")}
    if described is not None:
        for name, description in _read_descriptions(described, list(map(str, raw.columns))).items():
            own = descriptions.get(name)
            descriptions[name] = description if own is None else description.complete(own)
    click.echo(draft(raw, smallest_count, descriptions=descriptions).to_yaml(), nl=False)  # exact bytes


def _read_descriptions(file: Path, names: Sequence[str]) -> Mapping[str, Description]:
    """Return the descriptions in a file, and say which columns only the file or only the table has."""
    from disclosure_pipeline.errors import InputError
    from disclosure_pipeline.tables.messages import listed
    from disclosure_pipeline.tables.schemas import SUFFIXES, read_schema
    from disclosure_pipeline.tables.sources import read_descriptions

    is_schema = file.suffix.lower() in SUFFIXES
    found = read_schema(file, names) if is_schema else read_descriptions(file, file.name)
    if not found:
        raise InputError(
            f"{file.name} says nothing of its columns: expected a file of SPSS, Stata or SAS, or a schema "
            f"({', '.join(SUFFIXES)})."
        )
    if others := [name for name in found if name not in names]:
        echo(f"{file.name} also describes {listed(others)}, which the table lacks.", err=True)
    if left := [name for name in names if name not in found]:
        echo(f"{file.name} does not describe {listed(left)}.", err=True)
    return found


@dictionary.command("export", epilog=EXIT_CODES, short_help="Write a gate's dictionary as a schema.")
@gate_argument
@click.option(
    "--to",
    "kind",
    required=True,
    type=click.Choice(["sdv", "frictionless", "pandera"]),
    help="Metadata of SDV or a table schema of Frictionless, as JSON; a schema of pandera, as YAML.",
)
@report_errors()
def export_dictionary(gate: Path, kind: SchemaFormat) -> None:
    """Print the data dictionary of GATE (a gate's defs.yaml, or its folder) for another program.

    Entries that the other format does not have are named.
    """
    from disclosure_pipeline.orchestration.gate_file import load_gate
    from disclosure_pipeline.tables.schemas import list_left_out, write_schema

    definition = load_gate(gate)
    text = write_schema(definition.columns, definition.name, kind)
    click.echo(text, nl=False)  # exact bytes
    if left_out := list_left_out(definition.columns, text):
        echo(f"Left out, as the format has no such entry: {', '.join(left_out)}.", err=True)


@dictionary.command("schema", epilog=EXIT_CODES, short_help="Print the JSON schema of a gate's file.")
@report_errors()
def dictionary_schema() -> None:
    """Print the JSON schema of a gate's file, with which editors complete and check it."""
    import json

    from disclosure_pipeline.policy.gate_template import build_file_schema

    echo(json.dumps(build_file_schema(), indent=2, ensure_ascii=False))


@click.command(epilog=EXIT_CODES, short_help="Generate keys to sign and verify releases, and a salt.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@report_errors()
def keygen(folder: Path) -> None:
    """Generate keys in FOLDER: a private key that signs releases, its public key, and a salt."""
    from disclosure_pipeline.release.keys import SALT, SIGNING_KEY
    from disclosure_pipeline.release.keys import keygen as make_keys

    keys = make_keys(folder.resolve())
    echo(f"{keys.public_key} is for everyone who verifies a release.")
    echo("The other two are secret. The gate finds them through environment variables:")
    echo(f"export {SIGNING_KEY}={shlex.quote(str(keys.signing_key))}")
    echo(f"export {SALT}={shlex.quote(str(keys.salt))}")


@click.command(epilog=EXIT_CODES, short_help="Set up a new gate: its file, keys and folders.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option("--name", help="Name of the gate, such as survey.")
@click.option(
    "--table",
    type=click.Path(exists=True, path_type=Path),
    help="A synthetic or invented table with the columns of the confidential one, never that one itself.",
)
@click.option("--ground-truth", help="Location of the confidential table, which is not read.")
@click.option("--key", "keys", multiple=True, help="A column that an intruder may know; repeat for more.")
@click.option("--target", "targets", multiple=True, help="A column to protect; by default all but the keys.")
@click.option("--groups", multiple=True, metavar="COLUMN=N", help="Put a numeric column into N groups.")
@click.option(
    "--special", multiple=True, metavar="COLUMN=CODE", help="A numeric code that is a level of its own."
)
@form_options
@report_errors()
def init(
    folder: Path,
    name: str | None,
    table: Path | None,
    ground_truth: str | None,
    keys: tuple[str, ...],
    targets: tuple[str, ...],
    groups: tuple[str, ...],
    special: tuple[str, ...],
    form: dict[str, Any],
) -> None:
    """Set up a gate in FOLDER: a commented defs.yaml, keys that sign releases, and folders.

    FOLDER is empty or a Dagster project. On a terminal, missing options are prompted for. Folders and keys
    are created in DAGSTER_HOME, or in FOLDER/home, so that nobody else can enter them (mode 0700), and
    environment variables are written to FOLDER/.env. The new gate is then ready for `check` and for Dagster.
    """
    from disclosure_pipeline.orchestration.gate_file import require_other_table, set_up_gate, set_up_project
    from disclosure_pipeline.policy.gate_template import describe_table, require_gate_name
    from disclosure_pipeline.tables.sources import FileSource, read_descriptions, read_raw

    name = require_gate_name(
        name or _ask("Name of the gate (lower-case letters, digits, _)", "--name", "survey")
    )
    table = table or Path(_ask("A synthetic or invented table with the same columns", "--table"))
    read_from = as_source(table, form)
    raw = read_raw(read_from, "the table")
    if not keys:
        echo(f"Columns: {', '.join(map(str, raw.columns))}", err=True)
        keys = _ask_columns("Columns that an intruder may know (comma-separated)", "--key")
        targets = targets or _ask_columns(
            "Columns to protect (comma-separated; Enter for all others)", "--target", ""
        )
    ground_truth = ground_truth or _ask("Location of the confidential table", "--ground-truth")
    require_other_table(table, ground_truth)
    schema = describe_table(
        raw,
        keys,
        targets,
        dict(map(parse_whole_number, groups)),
        parse_codes(special),
        read_descriptions(read_from, "the table"),
    )
    if "://" not in ground_truth and "$" not in ground_truth:
        ground_truth = str(Path(ground_truth).resolve())
    source = FileSource(path=ground_truth, **form) if form else ground_truth
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    setup = set_up_gate(name, set_up_project(folder) / name, folder, source, schema)
    _print_next_steps(setup, folder, name)


def _ask(question: str, option: str, default: str | None = None) -> str:
    """Return the answer to a prompt. Raise UsageError if there is no terminal."""
    if not _is_interactive():
        raise click.UsageError(f"Give {option}: without a terminal it cannot be prompted for.")
    answer: Any = click.prompt(question, default=default, err=True)
    return str(answer)


def _ask_columns(question: str, option: str, default: str | None = None) -> tuple[str, ...]:
    if default is not None and not _is_interactive():
        return ()
    return tuple(part.strip() for part in _ask(question, option, default).split(",") if part.strip())


def _is_interactive() -> bool:
    return sys.stdin.isatty()


def _find_documents() -> Path:
    """Return the folder of the documents: in the package where it was installed, else in the checkout."""
    package = Path(__file__).parents[1]
    return package / "docs" if (package / "docs").is_dir() else package.parent / "docs"


def _print_next_steps(setup: GateSetup, folder: Path, name: str) -> None:
    from disclosure_pipeline.release.readiness import describe_open
    from disclosure_pipeline.runtime.files import is_open_to_others

    gate = shlex.quote(str(setup.file.parent))
    variables = shlex.quote(str(setup.environment_file))
    echo(f"The gate {name} is defined in {setup.file}, with comments: read it through.")
    echo(f"The documents that it cites as docs/… are in {_find_documents()}.")
    echo(f"Its folders and keys are in {setup.home}: the private key and the salt are secret.")
    echo("Dagster and the store keep exact figures there: new folders have mode 0700, for you alone.")
    if is_open_to_others(setup.home):
        echo(f"warning: {describe_open(setup.home)}", err=True)
    echo("\nNext:")
    for command, purpose in (
        (f"set -a; . {variables}; set +a", "set the environment, in every new shell"),
        (f"disclosure-pipeline check {gate}", "check that everything is ready"),
        (f"disclosure-pipeline policy draft {gate}", "draft bounds from the ground truth"),
        (f"disclosure-pipeline evaluate {gate} FOLDER", "judge synthetic tables, without a run"),
        (f"cd {shlex.quote(str(folder))} && dg dev", "start Dagster, which decides and publishes"),
    ):
        echo(f"  {command}\n      {purpose}")
    echo(f"\nPut each candidate into a folder of its own in {setup.incoming}; add a file _SUCCESS last.")


@click.command(epilog=EXIT_CODES, short_help="Run a gate on two syntheses of an example survey.")
@click.option(
    "--records", default=5000, show_default=True, type=click.IntRange(min=1), help="Size of the ground truth."
)
@click.option(
    "--seed", default=2024, show_default=True, type=click.IntRange(min=0), help="Seed of the ground truth."
)
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("disclosure-pipeline-demo"),
    show_default=True,
    help="The demo's own folder and Dagster instance.",
)
@report_errors()
def demo(records: int, seed: int, home: Path) -> None:
    """Run a gate on an honest and a leaky synthesis of an example survey."""
    from disclosure_pipeline.demo.run import run_demo
    from disclosure_pipeline.runtime.files import make_private

    home = home.resolve()
    make_private(home)
    with show_step("Making an example survey") as update:
        verdicts = run_demo(home, records, seed, update)
    for verdict in verdicts:
        echo(f"\n{verdict.candidate}: {verdict.decision}")
        for reason in verdict.reasons:
            echo(f"- {reason}")
        if verdict.folder:
            echo(f"Published in {verdict.folder}")
        echo(f"Page: {verdict.page}")
    echo(f"\nThe runs are in {home}; in a checkout, `make ui` shows them.")


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
