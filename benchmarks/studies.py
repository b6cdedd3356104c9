"""Where a study computes: on the cores of this machine, or on Ray."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from streamplace.evaluate.parallel import parallel_map

Mapped = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def workers_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs`` and ``--on``."""
    parser.add_argument("--jobs", type=int, help="processes (all cores by default)")
    parser.add_argument("--on", help="'ray', 'auto' or the address of a Ray cluster")


def workers_of(given: argparse.Namespace) -> Mapped:
    """Return the parallel map that the options select."""
    return partial(parallel_map, jobs=given.jobs, on=given.on)
