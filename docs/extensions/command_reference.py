"""The command line, as a page in Markdown made from what its commands say with --help."""

from __future__ import annotations

from collections.abc import Iterator

import click

from disclosure_pipeline.cli.main import main

_PROGRAM = "disclosure-pipeline"
_EXIT_CODES = "\n\n  Exit codes:"


def page() -> str:
    """Each command, with what `--help` prints of it; the exit codes are told once, before them."""
    helps = ((name, help_text.partition(_EXIT_CODES)[0]) for name, help_text in commands())
    return "\n\n".join(f"### {name}\n\n```text\n{help_text}\n```" for name, help_text in helps) + "\n"


def commands() -> Iterator[tuple[str, str]]:
    """Full name and help of the program and of every command, those within others included."""
    yield from _below(main, _PROGRAM, None)


def _below(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=name if parent is None else command.name, parent=parent)
    context.max_content_width = context.terminal_width = 100
    yield name, _without_colours(command.get_help(context))
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            child = command.get_command(context, inner)
            if child is not None and not child.hidden:
                yield from _below(child, f"{name} {inner}", context)


def _without_colours(text: str) -> str:
    return click.unstyle(text).rstrip()
