"""Printing: JSON documents for machines, reports for people, progress and log on stderr."""

import io
import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from streamplace.model.message_text import counted as counted
from streamplace.model.message_text import grouped_notes, printable
from streamplace.progress import heartbeat
from streamplace.progress import progress as progress
from streamplace.progress import waiting as spinner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamplace.display.report import Report

VERBOSE = "streamplace.verbose"
HEARTBEAT_S = 25.0
"""Seconds between two messages of a waiting command without a terminal."""


def print_utf_8() -> None:
    """Print in UTF-8, whatever the locale; names may hold any characters."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")


def print_json(document: Any) -> None:
    """Print one JSON document on stdout; unprintable characters are escaped."""
    text = _json(document)
    if not text.replace("\n", "").isprintable():
        text = _json(document, escaped=True).replace("\x7f", "\\u007f")
    click.echo(text)


def say_written(what: str, path: Path) -> None:
    """Name a written file or folder on stderr, unless it is a pipe or a terminal."""
    from streamplace.io.files import is_special

    if not is_special(path):
        say(f"{what} → {path}")


def print_file(text: str) -> None:
    """Print the content of a file; on a terminal, unprintable characters are escaped."""
    if sys.stdout.isatty():
        text = "\n".join(map(printable, text.split("\n")))
    sys.stdout.write(text)


def print_line(text: str) -> None:
    """Print one line on stdout."""
    click.echo(printable(text))


def say(message: str) -> None:
    """Print a message in addition to the result, as one line on stderr."""
    with suppress(OSError):  # the terminal may be closed while a move is undone
        click.echo(printable(message), err=True)


@contextmanager
def waiting(title: str) -> "Iterator[None]":
    """Show a spinner; without a terminal, say from time to time that the command waits."""
    with spinner(title), heartbeat(HEARTBEAT_S, lambda seconds: f"{title} ({seconds} s) …", say):
        yield


def say_report(report: "Report") -> None:
    """Print the sentences and tables of a report in addition to the result, on stderr."""
    for line in str(report).splitlines():
        say(line)


def print_report(report: "Report") -> None:
    """Print a report as wide as the terminal, or 80 columns without one; details with ``-v``."""
    from streamplace.display.console import WIDTH, lines_of

    context = click.get_current_context(silent=True)
    is_verbose = context is not None and context.meta.get(VERBOSE)
    parts = report.all_parts if is_verbose else report.main_parts
    if sys.stdout.isatty():
        for line in lines_of(parts, get_terminal_size().columns, _bold):
            click.echo(line)
    else:
        for line in lines_of(parts, WIDTH):
            click.echo(line)


def _bold(text: str) -> str:
    return text if os.environ.get("TERM") in ("dumb", "unknown") else click.style(text, bold=True)


def with_command(report: "Report", graph: Path, options: Mapping[str, Any]) -> "Report":
    """Add the command that simulates a placement of GRAPH, read from stdin, to a report.

    ``options`` are options of ``simulate`` by name. No command is added if a file cannot be read
    again, like a pipe, or if a name or a table cannot be typed on a terminal.
    """
    from dataclasses import replace

    files = [graph, *(value for value in options.values() if isinstance(value, Path))]
    file = f"./{graph}" if str(graph).startswith("-") else str(graph)  # not an option
    words = ["streamplace", "simulate", file, "/dev/stdin"]
    for name, value in options.items():
        for single in value if isinstance(value, tuple | list) else (value,):
            words += [f"--{name}", str(single)]
    if any(isinstance(value, Mapping) for value in options.values()):
        return report
    if not all(file.is_file() for file in files) or not all(map(str.isprintable, words)):
        return report
    return replace(report, command=" ".join(map(quote, words)))


def say_notes(notes: "Iterable[str]") -> None:
    """Print each note once; notes that differ in a name alone share a line."""
    for line in grouped_notes(notes):
        say(line)


def _json(document: Any, *, escaped: bool = False) -> str:
    return json.dumps(document, indent=1, ensure_ascii=escaped, allow_nan=False)


class _Echo(logging.Handler):
    """Writes messages to the current stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        say(record.getMessage())


def _verbose(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Log to stderr, for this command only."""
    if not wanted:
        return
    context.meta[VERBOSE] = True
    log, echo = logging.getLogger("streamplace"), _Echo()
    level = log.level
    log.addHandler(echo)
    log.setLevel(logging.INFO)
    context.call_on_close(lambda: log.removeHandler(echo))
    context.call_on_close(lambda: log.setLevel(level))


verbose = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_verbose,
    help="Print all details, and log progress to stderr.",
)
