"""Entry point: finds and runs a command, and turns errors into one line and a status."""

import importlib
import logging
import sys
from collections.abc import Sequence
from functools import cache
from pkgutil import resolve_name

import click
from click.exceptions import NoArgsIsHelpError
from streamsim._core import SOURCES

from streamplace import __version__
from streamplace.cli._command import CommandGroup, refusal
from streamplace.cli._printing import print_utf_8
from streamplace.cli._process import failed, finish, open_streams
from streamplace.cli._table import TABLE
from streamplace.progress import shows_progress
from streamplace.registry import plugins
from streamplace.rooms import absent, extensions, how_to_install, modules_of, reason


class CommandFiles(CommandGroup):
    """A group of the commands in `TABLE`, and of commands in modules, which it imports for use.

    Modules are in this package, in `cli` of the optional rooms, and in entry points of other
    packages.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted({*TABLE, *_modules(), *_modules_of_others()})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command of a name; a broken one refuses with the reason."""
        if name in TABLE:
            from streamplace.cli._verbs import command_of

            verb, summary, example = TABLE[name]
            return command_of(resolve_name(verb), name, summary, example)
        module = _modules().get(name)
        if module is None and name in absent():
            return refusal(name, how_to_install(name))
        if (module := module or _modules_of_others().get(name)) is None:
            return None
        try:
            command = importlib.import_module(module).command
        except Exception as error:
            if module.startswith("streamplace.cli."):
                raise
            return refusal(name, f"{module} cannot be used: {reason(error)}")
        assert isinstance(command, click.Command)
        return command


@cache
def _modules() -> dict[str, str]:
    """Module of each command of streamplace and its rooms."""
    return {
        module.name.rstrip("_").replace("_", "-"): f"{package}.{module.name}"
        for package in ("streamplace.cli", *extensions("cli"))
        for module in modules_of(package)
        if not module.name.startswith("_") and module.name != "main"
    }


def _modules_of_others() -> dict[str, str]:
    return {point.name: point.module for point in plugins() if point.group == "streamplace.cli"}


@click.group(
    cls=CommandFiles,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: streamplace demo",
)
@click.version_option(f"{__version__} (core {SOURCES})", prog_name="streamplace")
@click.pass_context
def cli(context: click.Context) -> None:
    """Decide where every operator of a stream-processing graph runs.

    Generate benchmarks, simulate and explain placements, and find better ones. Every command has
    an example in its --help. With --json, almost all print one JSON document.
    """
    if shows_progress():  # spinners show log messages; a program that imports us sets its level
        log = logging.getLogger("streamplace")
        level = log.level
        log.setLevel(logging.INFO)
        context.call_on_close(lambda: log.setLevel(level))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    open_streams()
    print_utf_8()
    try:
        sys.exit(_status(arguments))
    finally:
        finish()


def _status(arguments: Sequence[str] | None) -> int:
    """Run a command line, and return its exit status."""
    try:
        typed = list(sys.argv[1:] if arguments is None else arguments)
        status = cli.main(typed, "streamplace", standalone_mode=False, obj=typed) or 0
        sys.stdout.flush()
    except NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        return 0
    except BaseException as error:
        return failed(error)
    return int(status)
