"""``-v``: streamplace's log on stderr."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import click

from streamplace.cli._output import say

F = TypeVar("F", bound=Callable[..., Any])


class _Echo(logging.Handler):
    """Writes messages to the current stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        say(record.getMessage())


def _verbose(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Log to stderr, for this command only."""
    if not wanted:
        return
    log, echo = logging.getLogger("streamplace"), _Echo(logging.INFO)
    level = log.level
    log.addHandler(echo)
    log.setLevel(logging.INFO)
    context.call_on_close(lambda: log.removeHandler(echo))
    context.call_on_close(lambda: log.setLevel(level))


def verbose(function: F) -> F:
    """``-v``, which prints streamplace's log on stderr."""
    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_verbose,
        help="Log progress to stderr.",
    )(function)
