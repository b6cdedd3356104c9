"""Work on chunks of items by parallel workers: a function, with the messages that they log."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Lost = Callable[[T, str], R]
"""Function from an item whose worker was killed, and the reason, to its result."""

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
    """A function for chunks of items, and the level of the messages that are collected."""

    function: Callable[[T], R]
    level: int

    def __call__(self, chunk: list[T]) -> FinishedWork[R]:
        """Results of the items of a chunk."""
        with _collected_messages(self.level) as messages:
            return FinishedWork([self.function(item) for item in chunk], messages)


def chunks(items: Iterator[T], jobs: int) -> Iterator[list[T]]:
    """Cut items into chunks of growing sizes, so that few items are distributed evenly, too."""
    sent = 0
    while chunk := list(islice(items, min(LARGEST_CHUNK, 1 + sent // (4 * jobs)))):
        sent += len(chunk)
        yield chunk


def log_level() -> int:
    """Level of this process's log."""
    return LOG.getEffectiveLevel()


def relog(finished: FinishedWork[R]) -> list[R]:
    """Log the messages of a chunk's worker in this process, and return the chunk's results."""
    for logger, level, text in finished.messages:
        logging.getLogger(logger).log(level, "%s", text)
    return finished.results


@contextmanager
def _collected_messages(level: int) -> Iterator[list[LogMessage]]:
    """Collect messages of the block, as the log of a worker is not read."""
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
