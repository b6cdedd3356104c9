"""Ray: connection to a running cluster or to one that is started here, and results of tasks."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamplace.cores import available_cores
from streamplace.errors import SettingError
from streamplace.io.extras import LOOPBACK, quiet_ray
from streamplace.model.message_text import quoted

LOCAL = "ray"
CONNECT_TIMEOUT_S = 5.0
MAX_TRIES = 3
"""Tries of Ray for a task whose worker or node died."""


@contextmanager
def connected(on: str | None) -> Iterator[Any]:
    """Connect to Ray; do nothing for None.

    A Ray that is started here ends with the block, any other continues. If this process is
    connected to a cluster already, that cluster is used. Ray runs any code that it receives, so a
    Ray that is started here listens on the loopback interface alone. It requires the token in the
    user's home, unless RAY_AUTH_MODE is set.
    """
    if on is None:
        yield
        return
    ray = quiet_ray(is_local=on == LOCAL and "ray" not in sys.modules)
    if ray.is_initialized():
        yield ray
        return
    if on == LOCAL and os.environ.get(LOOPBACK) != "0":
        raise SettingError(
            "Ray was imported before, and a Ray started here would listen on all interfaces; "
            f"set {LOOPBACK}=0 before the import, or start Ray yourself and use on='auto'"
        )
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if on == LOCAL:
            ray.init("local", num_cpus=available_cores(), include_dashboard=False, **quiet)
        else:
            host, colon, port = on.removeprefix("ray://").rpartition(":")
            if colon and port.isdecimal():  # without a server, Ray would try for minutes
                socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
            ray.init(on, **quiet)
    except Exception as error:  # Ray raises bare exceptions if a start takes too long
        raise _missing(on, error) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _missing(on: str, error: Exception) -> SettingError:
    if on == LOCAL:
        return SettingError(f"Ray cannot be started on this machine: {_first_line(error)}")
    return SettingError(
        f"no Ray cluster at {quoted(on)}: {_first_line(error)}; start one with `ray start --head`, "
        "or use --on ray"
    )


def result(ray: Any, task: Any) -> Any:
    """Wait for a task, and return its result or raise its error.

    Errors of Ray for dead workers are raised unchanged.
    """
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except deaths(ray):
        raise
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise SettingError(
            f"the Ray cluster stopped working: {_first_line(error)}; "
            "saved results are not computed again"
        ) from None


def deaths(ray: Any) -> tuple[type[Exception], ...]:
    """Errors of Ray for dead workers."""
    errors = ray.exceptions
    return errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError


def _first_line(error: Exception) -> str:
    """First line of a message, with the second one if the first ends in a colon."""
    first, *others = str(error).strip().splitlines() or [type(error).__name__]
    return f"{first} {others[0]}" if others and first.endswith(":") else first
