"""Progress of long work: bars and spinners on terminals and in notebooks, lines elsewhere."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any, TypeVar

from streamplace.model.message_text import printable

T = TypeVar("T")
_waiting = ContextVar("waiting", default=False)
"""Whether a spinner is shown already; one is enough."""


def shows_progress() -> bool:
    """Whether stderr is a terminal, or this is a notebook with widgets."""
    return (sys.stderr is not None and sys.stderr.isatty()) or (
        "IPython" in sys.modules and _in_notebook() and find_spec("ipywidgets") is not None
    )


def tracked(items: Iterable[T], title: str, total: int) -> Iterator[T]:
    """Yield items while a progress bar counts them."""
    with progress(title, total) as tick:
        yield from tick.over(items)


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator["Ticker"]:
    """Show a progress bar on a terminal or in a notebook."""
    if not shows_progress():
        yield Ticker()
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from streamplace.display.data_console import DataConsole

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=DataConsole(stderr=True),
        transient=True,
    )
    task = bars.add_task(printable(title), total=total, note="")
    with bars:
        yield Ticker(lambda note: bars.update(task, advance=1, note=printable(note)))


@contextmanager
def waiting(title: str, hint: str = "") -> Iterator[None]:
    """Show a spinner with the latest log message on a terminal or in a notebook.

    ``hint``, advice to the waiting user, is shown after the title until the first log message.
    """
    if _waiting.get() or not shows_progress():
        yield
        return
    from rich.status import Status
    from rich.text import Text

    from streamplace.display.data_console import DataConsole

    class LastMessage(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            status.update(Text(printable(f"{title}: {record.getMessage()}")))

    log, last = logging.getLogger("streamplace"), LastMessage()
    log.addHandler(last)
    token = _waiting.set(True)
    try:
        start = Text(printable(f"{title} ({hint})" if hint else title))
        with Status(start, console=DataConsole(stderr=True)) as status:
            yield
    finally:
        _waiting.reset(token)
        log.removeHandler(last)


@contextmanager
def heartbeat(
    every: float, sentence: Callable[[int], str], say: Callable[[str], None]
) -> Iterator[None]:
    """Say a sentence with the elapsed seconds every so often, if no bar or spinner shows them."""
    if shows_progress():
        yield
        return
    ended, began = Event(), time.monotonic()

    def beat() -> None:
        while not ended.wait(every):
            say(sentence(round(time.monotonic() - began)))

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Ticker:
    """Callback that advances a progress bar by one, with a note such as the best value so far."""

    def __init__(self, tick: Any = None) -> None:
        self._tick = tick

    def __call__(self, note: str = "") -> None:
        """Advance the bar by one."""
        if self._tick is not None:
            self._tick(note)

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, counting each."""
        for item in items:
            yield item
            self()


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"
