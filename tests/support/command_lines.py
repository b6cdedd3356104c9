"""The commands that there are, and files for their ``--settings``."""

import json

import click

from streamplace.cli.main import cli


def commands():
    """Every command and subcommand, as the words that call it."""
    found: list[list[str]] = []

    def walk(command, words):
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


def settings_file(folder, **fields):
    """Write a file for ``--settings``; returns the words that name it."""
    file = folder / f"{'-'.join(fields)}.toml"
    lines = (f"{name} = {json.dumps(value)}" for name, value in fields.items())
    file.write_text("\n".join(lines) + "\n")
    return "--settings", str(file)
