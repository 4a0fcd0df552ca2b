"""docs/command_line.md and the help texts are of the commands as they are."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from support.paths import ROOT

from disclosure_pipeline.cli.main import main
from disclosure_pipeline.cli.printing import EXIT_CODES, MEANINGS

PAGE = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, (*path, name))


COMMANDS = {" ".join(path): command for path, command in commands(main) if path}


@pytest.mark.parametrize("name", ["", "policy", "dictionary"])
def test_a_list_of_commands_cuts_no_sentence(name: str) -> None:
    shown = CliRunner().invoke(main, [*name.split(), "--help"]).output
    listed = shown.partition("Commands:\n")[2].partition("\n\n")[0]
    assert listed and "..." not in listed


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_says_what_a_command_does_and_how_it_ends(name: str) -> None:
    shown = CliRunner().invoke(main, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert max(map(len, shown.output.splitlines())) <= 80
    command = COMMANDS[name] if name else main
    assert command.help and command.help.strip()[0].isupper()
    if not isinstance(command, click.Group):
        assert command.epilog == EXIT_CODES
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help or parameter.name in {"groups"}, f"{name} --{parameter.name} has no help"


def test_the_exit_codes_are_those_of_the_table() -> None:
    table = dict(re.findall(r"^\| (\d) \| (.+) \|$", PAGE, re.MULTILINE))
    assert table == {str(int(code)): meaning for code, meaning in MEANINGS.items()}
