"""Parallel map over items, on the cores of this machine or on Ray, in order."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from typing import Any, TypeVar

from streamplace.errors import SettingError
from streamplace.evaluate.processes import available_cores, map_on_processes
from streamplace.evaluate.work import Lost

T = TypeVar("T")
R = TypeVar("R")

FEW = 15
"""Number of items up to which starting processes does not pay off."""


def parallel_map(
    function: Callable[[T], R],
    items: Iterable[T],
    jobs: int | None = None,
    on: str | None = None,
    *,
    lost: Lost[T, R] | None = None,
    few: int = FEW,
) -> Iterator[R]:
    """Results of a function for every item, in the order of the items.

    Items are read when they are needed, so neither they nor the results accumulate. Processes end
    with this one, even if it is killed, and when the iterator is closed. Messages that workers log
    are logged in this process. An item is lost if its worker is killed twice, the second time on
    this item alone; the others continue.

    Parameters
    ----------
    function
        A function that can be pickled; every process gets a copy once.
    jobs
        Processes of this machine; by default one for every core.
    on
        Compute on Ray instead: ``ray`` starts one on this machine, ``auto`` or an address names a
        running cluster.
    lost
        Result of an item that kills its worker; without it, such an item is an error.
    few
        Number of items up to which this process does the work alone.
    """
    if on is not None:
        if jobs is not None:
            raise SettingError("jobs are processes on this machine; drop them to compute on Ray")
        from streamplace.evaluate.on_ray import map_on_ray

        return map_on_ray(function, items, on, lost=lost)
    coming = iter(items)
    first = list(islice(coming, few + 1))
    if jobs == 1 or len(first) <= few:
        return map(function, chain(first, coming))
    return map_on_processes(function, chain(first, coming), jobs or available_cores(), lost)


def ray_connection(on: str | None) -> AbstractContextManager[Any]:
    """Stay connected to Ray within the block, for all work that is mapped there."""
    if on is None:
        return nullcontext()
    from streamplace.evaluate.on_ray import connected

    return connected(on)
