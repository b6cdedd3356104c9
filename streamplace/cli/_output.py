"""Printing: one JSON document for machines, tables and bars for people, progress on stderr."""

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def save_json(document: Any, path: Path) -> None:
    """Write one JSON document to a file."""
    from streamplace.io.files import write_text

    write_text(path, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def console() -> "Console":
    """Console on stdout, as wide as the terminal (100 columns where there is none)."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 100, soft_wrap=False)


def say(message: str) -> None:
    """Tell the user something beside the result, on stderr."""
    click.echo(message, err=True)


def percent(share: float) -> str:
    """Share as a percentage.

    >>> percent(0.97312), percent(1.184)
    ('97.3 %', '118.4 %')
    """
    return f"{100 * share:.1f} %"


def bar(load: float, width: int = 20) -> str:
    """Load as a bar with a mark where the capacity ends; half a width more for what exceeds it.

    >>> bar(0.5, 10), bar(1.3, 10), bar(9, 10)
    ('█████·····|     ', '██████████|▓▓▓  ', '██████████|▓▓▓▓▓')
    """
    full = round(min(load, 1.0) * width)
    over = min(round(max(load - 1.0, 0.0) * width), width // 2)
    return "█" * full + "·" * (width - full) + "|" + "▓" * over + " " * (width // 2 - over)


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator["Ticker"]:
    """Progress bar on stderr that appears after half a second; none without a terminal."""
    if not sys.stderr.isatty():
        yield Ticker()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=True,
    )
    task = bars.add_task(title, total=total, note="")
    with bars:
        yield Ticker(lambda note: bars.update(task, advance=1, note=note))


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """Spinner on stderr with the last thing that was logged; none without a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.status import Status

    class LastMessage(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            status.update(f"{title}: {record.getMessage()}")

    log, told = logging.getLogger("streamplace"), LastMessage(logging.INFO)
    level = log.level
    log.addHandler(told)
    log.setLevel(logging.INFO)
    try:
        with Status(
            f"{title} (Ctrl-C keeps the best so far)", console=Console(stderr=True)
        ) as status:
            yield
    finally:
        log.removeHandler(told)
        log.setLevel(level)


class Ticker:
    """Callback that moves a progress bar on by one, with a note such as the best value so far."""

    def __init__(self, tick: Any = None) -> None:
        self._tick = tick

    def __call__(self, note: str = "") -> None:
        """Count one more."""
        if self._tick is not None:
            self._tick(note)

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, counting each."""
        for item in items:
            yield item
            self()
