"""Who trains: this process, those that torchrun started with it, or a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamplace.errors import SettingError
from streamplace.io.extras import importing_torch

if TYPE_CHECKING:
    from streamplace.learn.workers import Workers


@contextmanager
def workers_on(on: str | None) -> "Iterator[Workers]":
    """Workers for a training; all its processes end together.

    Parameters
    ----------
    on
        ``ray`` for a Ray on this machine, ``auto`` or an address for a cluster that runs; None for
        this process, or all processes where torchrun started it.
    """
    with importing_torch():
        from streamplace.learn.processes import joined, launched

    if on is None:
        with joined() as workers:
            yield workers
        return
    if launched():
        raise SettingError("torchrun has started several processes; leave out --on, or torchrun")
    from streamplace.training.ray_workers import RayWorkers

    yield RayWorkers(on)
