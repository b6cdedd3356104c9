"""Ray: a cluster that runs, or one that is started here, and the results of its tasks."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamplace.cores import available_cores
from streamplace.errors import SettingError
from streamplace.io.extras import extra
from streamplace.model.messages import quoted

LOCAL = "ray"
CONNECT_TIMEOUT_S = 5.0
PULSE_S = 0.2
"""Time between checks that a Ray started here still runs."""
MAX_TRIES = 3
"""Tries of Ray for a task whose worker or node died."""
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray reads it when it is imported; with 0, it listens on the loopback interface alone."""
_addresses: dict[str, Any] = {}
"""Where the processes of a Ray that was started here listen, by their names."""
_last_check = 0.0


@contextmanager
def connected(on: str) -> Iterator[Any]:
    """Connect to Ray; a Ray that was started here ends with the block, any other continues.

    If this process is connected to a cluster already, that cluster is used. Ray runs any code that
    it receives, so a Ray that is started here listens on the loopback interface alone. It requires
    the token in the user's home, unless RAY_AUTH_MODE is set.
    """
    if on == LOCAL and "ray" not in sys.modules:
        os.environ.setdefault(LOOPBACK, "0")
    ray = extra("ray")
    if ray.is_initialized():
        yield ray
        return
    if on == LOCAL and os.environ.get(LOOPBACK) != "0":
        raise SettingError(
            "Ray was imported before, and would listen on all interfaces if it was started here; "
            f"set {LOOPBACK}=0 before the import, or start Ray yourself and use on='auto'"
        )
    for unwanted in ("RAY_USAGE_STATS_ENABLED", "RAY_TQDM_PATCH_PRINT"):
        os.environ.setdefault(unwanted, "0")
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if on == LOCAL:
            _start(ray, **quiet)
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
        _addresses.clear()
        ray.shutdown()


def _start(ray: Any, **options: Any) -> None:
    """Start a Ray on this machine, and note where its processes listen."""
    context = ray.init("local", num_cpus=available_cores(), include_dashboard=False, **options)
    host, _, port = context.address_info["gcs_address"].rpartition(":")
    _addresses["gcs_server"] = host, int(port)
    _addresses["raylet"] = context.address_info["raylet_socket_name"]


def _missing(on: str, error: Exception) -> SettingError:
    if on == LOCAL:
        return SettingError(f"Ray cannot be started on this machine: {_first_line(error)}")
    return SettingError(
        f"no Ray cluster at {quoted(on)}: {_first_line(error)}; start one with `ray start --head`, "
        "or use --on ray"
    )


def result(ray: Any, under_way: Any) -> Any:
    """Wait for a task, and return its result or raise its error.

    Errors of Ray for dead workers are passed on to the caller.
    """
    try:
        while not ray.wait([under_way], timeout=PULSE_S, fetch_local=False)[0]:
            check_runs()
        check_runs()
        return ray.get(under_way)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except deaths(ray):
        raise
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise _stopped(_first_line(error)) from None


def check_runs() -> None:
    """Raise SettingError if a process of a Ray that was started here has ended.

    Ray would otherwise end this process, often without a message, when it next needs that process.
    """
    global _last_check
    if time.monotonic() < _last_check + PULSE_S:
        return
    _last_check = time.monotonic()
    for name, address in _addresses.items():
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        with socket.socket(family) as probe:
            try:
                probe.connect(address)
            except OSError:
                raise _stopped(f"its process {name} ended") from None


def _stopped(why: str) -> SettingError:
    return SettingError(
        f"the Ray cluster stopped working: {why}; saved results are not computed again"
    )


def deaths(ray: Any) -> tuple[type[Exception], ...]:
    """Errors of Ray for dead workers."""
    errors = ray.exceptions
    return errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError


def _first_line(error: Exception) -> str:
    """First line of a message, with the second one if it announces that."""
    first, *others = str(error).strip().splitlines() or [type(error).__name__]
    return f"{first} {others[0]}" if others and first.endswith(":") else first
