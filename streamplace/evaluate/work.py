"""Work on a list of items, cut into chunks: a function, and what it logs in the worker's place."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Lost = Callable[[T, str], R]
"""Makes the result of an item whose worker was killed; the text says why it was."""

LOG = logging.getLogger("streamplace")
LARGEST_CHUNK = 16
AHEAD = 3
"""Chunks under way for every worker."""
KILLED = "its worker process was killed, perhaps because memory ran out"


class LogMessage(NamedTuple):
    """A message that a worker logged."""

    logger: str
    level: int
    text: str


class FinishedWork(NamedTuple, Generic[R]):
    """Results of a chunk, and the messages that its worker logged."""

    results: list[R]
    messages: list[LogMessage]


@dataclass(frozen=True, slots=True)
class Work(Generic[T, R]):
    """A function for chunks of items, and the level from which its messages are collected."""

    function: Callable[[T], R]
    level: int

    def __call__(self, chunk: list[T]) -> FinishedWork[R]:
        """Results of the items of a chunk."""
        with _collected_messages(self.level) as messages:
            return FinishedWork([self.function(item) for item in chunk], messages)


def chunks(items: Iterator[T], jobs: int) -> Iterator[list[T]]:
    """Items in lists that grow, so that few items are shared out evenly too."""
    sent = 0
    while chunk := list(islice(items, min(LARGEST_CHUNK, 1 + sent // (4 * jobs)))):
        sent += len(chunk)
        yield chunk


def log_level() -> int:
    """Level from which this process logs."""
    return LOG.getEffectiveLevel()


def relog(finished: FinishedWork[R]) -> list[R]:
    """Log the messages of a chunk's worker in this process; return the chunk's results."""
    for logger, level, text in finished.messages:
        logging.getLogger(logger).log(level, "%s", text)
    return finished.results


@contextmanager
def _collected_messages(level: int) -> Iterator[list[LogMessage]]:
    """Collect what is logged within the block, because nobody reads the log of a worker."""
    messages: list[LogMessage] = []
    handler = _CollectingHandler(messages)
    before = LOG.level, LOG.propagate
    LOG.addHandler(handler)
    LOG.setLevel(level)
    LOG.propagate = False
    try:
        yield messages
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before[0])
        LOG.propagate = before[1]


class _CollectingHandler(logging.Handler):
    """Appends messages to a list."""

    def __init__(self, messages: list[LogMessage]) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        """Append one message."""
        self._messages.append(LogMessage(record.name, record.levelno, record.getMessage()))
