"""What a worker does with a chunk: results, and what was logged on the way to be logged again."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")

LOG = logging.getLogger("streamplace")


class Message(NamedTuple):
    """Something that was logged."""

    logger: str
    level: int
    text: str


class Done(NamedTuple, Generic[R]):
    """Results of a chunk, and what was logged meanwhile."""

    results: list[R]
    told: list[Message]


@dataclass(frozen=True, slots=True)
class Chore(Generic[T, R]):
    """A function for chunks of items, with what is to be logged of it."""

    function: Callable[[T], R]
    level: int

    def __call__(self, chunk: list[T]) -> Done[R]:
        """Results of the items of a chunk."""
        with _listening(self.level) as told:
            return Done([self.function(item) for item in chunk], told)


def log_level() -> int:
    """Level from which this process logs."""
    return LOG.getEffectiveLevel()


def relogged(done: Done[R]) -> list[R]:
    """Results of a chunk, after logging what its worker did."""
    for logger, level, text in done.told:
        logging.getLogger(logger).log(level, "%s", text)
    return done.results


@contextmanager
def _listening(level: int) -> Iterator[list[Message]]:
    """Collect what is logged in a block instead of telling it here, where nobody listens."""
    told: list[Message] = []
    listener = _Listener(told)
    before = LOG.level, LOG.propagate
    LOG.addHandler(listener)
    LOG.setLevel(level)
    LOG.propagate = False
    try:
        yield told
    finally:
        LOG.removeHandler(listener)
        LOG.setLevel(before[0])
        LOG.propagate = before[1]


class _Listener(logging.Handler):
    """Keeps messages."""

    def __init__(self, told: list[Message]) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one message."""
        self._told.append(Message(record.name, record.levelno, record.getMessage()))
