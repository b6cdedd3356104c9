"""Chunks of items that workers compute: their sizes, and the messages that come back with them."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Lost = Callable[[T, str], R]
"""Function from an item whose worker was killed, and the reason, to its result."""
Finished = tuple[list[R], list[tuple[str, int, str]]]
"""Results of a chunk, and the messages of its worker: logger, level, text."""

LOG = logging.getLogger("streamplace")
LARGEST_CHUNK = 16
AHEAD = 3
"""Chunks under way for every worker."""
KILLED = "its worker process was killed, perhaps because memory ran out"


@dataclass(frozen=True, slots=True)
class Work(Generic[T, R]):
    """A function for chunks of items; the messages that a worker logs are collected."""

    function: Callable[[T], R]
    level: int = field(default_factory=LOG.getEffectiveLevel)  # of the messages

    def __call__(self, chunk: list[T]) -> Finished[R]:
        """Results of the items of a chunk, and messages."""
        collector, before = _Collector(), (LOG.level, LOG.propagate)
        LOG.addHandler(collector)
        LOG.setLevel(self.level)
        LOG.propagate = False
        try:
            return [self.function(item) for item in chunk], collector.messages
        finally:
            LOG.removeHandler(collector)
            LOG.setLevel(before[0])
            LOG.propagate = before[1]


class _Collector(logging.Handler):
    """Collects messages, as the log of a worker is not read."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Collect one message."""
        self.messages.append((record.name, record.levelno, record.getMessage()))


def chunks(items: Iterator[T], jobs: int) -> Iterator[list[T]]:
    """Cut items into chunks of growing sizes, so that few items are distributed evenly, too."""
    sent = 0
    while chunk := list(islice(items, min(LARGEST_CHUNK, 1 + sent // (4 * jobs)))):
        sent += len(chunk)
        yield chunk


def relog(finished: Finished[R]) -> list[R]:
    """Log the messages of a chunk's worker in this process, and return the chunk's results."""
    results, messages = finished
    for logger, level, text in messages:
        logging.getLogger(logger).log(level, "%s", text)
    return results
