"""Entry point: finds a command's file, runs it, and turns errors into one line and exit code 2."""

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import click

import streamplace.cli
from streamplace import __version__
from streamplace.cli._output import replace_what_stdout_cannot_encode, say
from streamplace.cli._streams import ReaderGone, finish, guard
from streamplace.errors import StreamplaceError


class CommandFiles(click.Group):
    """A group whose commands are the modules of this package, loaded when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        modules = pkgutil.iter_modules(streamplace.cli.__path__)
        names = (module.name for module in modules if not module.name.startswith("_"))
        return sorted(name.rstrip("_").replace("_", "-") for name in names if name != "main")

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of a name, from the file of that name."""
        if name not in self.list_commands(ctx):
            return None
        module = name.replace("-", "_") + ("_" if name == "import" else "")
        command = importlib.import_module(f"streamplace.cli.{module}").command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=CommandFiles,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: streamplace generate branched --branches 3 --depth 2 --devices 2 "
    "--copies 1 -o g.jsonl",
)
@click.version_option(__version__, prog_name="streamplace")
def cli() -> None:
    """Decide where every operator of a stream-processing graph runs.

    Generate benchmarks, simulate and explain placements, and find better ones. Every command
    answers --help with an example, and --json with one JSON document for machines.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    guard()
    replace_what_stdout_cannot_encode()
    try:
        sys.exit(_status(arguments))
    finally:
        finish()


def _status(arguments: Sequence[str] | None) -> int:
    """Exit status of a command line that was run."""
    try:
        status = cli.main(arguments, "streamplace", standalone_mode=False) or 0
        sys.stdout.flush()
    except StreamplaceError as error:
        return _failed(str(error))
    except click.ClickException as error:
        return _failed(_usage(error))
    except MemoryError:
        return _failed("not enough memory for this input")
    except (KeyboardInterrupt, click.Abort):
        return _failed("interrupted", status=130)
    except SystemError as error:  # compiled code that was being loaded wraps a Ctrl-C
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return _failed("interrupted", status=130)
    except ReaderGone:
        return 141
    return int(status)


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"{error.format_message().rstrip('.')}{hint}"


def _failed(message: str, status: int = 2) -> int:
    say(f"error: {' '.join(message.split())}")
    return status
