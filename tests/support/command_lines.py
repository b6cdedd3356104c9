"""The commands that there are."""

import click

from streamplace.cli.main import cli


def commands() -> list[list[str]]:
    """Every command and subcommand, as the words that call it."""
    found: list[list[str]] = []

    def walk(command: click.Command, words: list[str]) -> None:
        if words:
            found.append(words)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                walk(child, [*words, name])

    walk(cli, [])
    return found
