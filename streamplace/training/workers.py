"""Processes of a training: this one, those that torchrun started, or a Ray cluster."""

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
        ``ray`` starts a Ray on this machine, ``auto`` or an address names a running cluster; None
        takes this process, or all processes that torchrun started.
    """
    with importing_torch():
        from streamplace.learn.processes import joined, launched

    if on is None:
        with joined() as workers:
            yield workers
        return
    if launched():
        raise SettingError(
            "torchrun has already started several processes; use either --on or torchrun"
        )
    from streamplace.training.ray_workers import RayWorkers

    yield RayWorkers(on)
