"""Computation on a Ray cluster, with the same results in the same order as on this machine.

Ray repeats the tasks of lost nodes. Items are sent when they are needed, a few per core, so that
neither they nor the results accumulate in the object store.
"""

import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import create_connection
from typing import Any, Generic, TypeVar

from streamplace.cores import available_cores
from streamplace.errors import SettingError
from streamplace.evaluate.work import (
    AHEAD,
    KILLED,
    FinishedWork,
    Lost,
    Work,
    chunks,
    log_level,
    relog,
)
from streamplace.io.extras import extra
from streamplace.model.messages import quoted

T = TypeVar("T")
R = TypeVar("R")

LOCAL = "ray"
PATIENCE_S = 5.0
PULSE_S = 0.2
"""Seconds between checks that a Ray started here still runs."""
TRIES = 3
"""Tries of Ray for a task whose worker or node died, and of a client for a server."""
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray reads it when it is imported; with 0, it listens on the loopback interface alone."""
NOT_SERVED = "Initialization failure from server"
"""Ray's words where the server for a client does not start."""


def map_on_ray(
    function: Callable[[T], R], items: Iterable[T], on: str, *, lost: Lost[T, R] | None = None
) -> Iterator[R]:
    """Results of a function for every item, as those of `streamplace.evaluate.parallel`.

    Every machine gets a copy of the function once, and needs this version of streamplace. If this
    process is connected to a cluster already, that cluster is used.
    """
    with connected(on) as ray:
        task = ray.remote(max_retries=TRIES, num_cpus=1)(_work)
        tasks = _RayTasks(ray, task, ray.put(Work(function, log_level())), lost or _refuse)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        under_way: deque[tuple[list[T], Any]] = deque()
        for chunk in chunks(iter(items), cores):
            under_way.append((chunk, tasks.submit(chunk)))
            if len(under_way) == AHEAD * cores:
                yield from tasks.results(*under_way.popleft())
        while under_way:
            yield from tasks.results(*under_way.popleft())


@dataclass(frozen=True, slots=True)
class _RayTasks(Generic[T, R]):
    """Tasks of Ray that do the same work on chunks of items."""

    ray: Any
    # The remote function, which is sent to Ray's store once; if the store ends, Ray would wait for
    # it for a minute and then end this process.
    task: Any
    work: Any
    lost: Lost[T, R]

    def submit(self, chunk: list[T]) -> Any:
        """Start the task of a chunk; Ray repeats it a few times if its worker is lost."""
        _check_runs()
        return self.task.remote(self.work, chunk)

    def results(self, chunk: list[T], under_way: Any) -> Iterator[R]:
        """Results of a chunk; if its workers die, each item is tried in a separate task."""
        errors = self.ray.exceptions
        try:
            finished: FinishedWork[R] = result(self.ray, under_way)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError):
            if len(chunk) == 1:
                yield self.lost(chunk[0], KILLED)
                return
            for item in chunk:
                yield from self.results([item], self.submit([item]))
            return
        yield from relog(finished)


def result(ray: Any, under_way: Any) -> Any:
    """Wait for a task, and return its result or raise its error.

    Errors of Ray for dead workers are passed on to the caller.
    """
    errors = ray.exceptions
    try:
        finished: list[Any] = []
        while not finished:
            finished, _ = ray.wait([under_way], timeout=PULSE_S, fetch_local=False)
            _check_runs()
        return ray.get(under_way)
    except errors.RayTaskError as error:
        raise error.cause from None
    except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError):
        raise
    except (errors.RayError, ConnectionError) as error:
        raise _stopped(_first_line(error)) from None


def _stopped(why: str) -> SettingError:
    return SettingError(
        f"the Ray cluster stopped working: {why}; saved results are not computed again"
    )


@dataclass(slots=True)
class _Started:
    """The processes of a Ray that was started here, by the addresses at which they listen."""

    addresses: dict[str, Any] = field(default_factory=dict)
    checked: float = 0.0  # time of the last check


_started = _Started()


def _check_runs() -> None:
    """Raise SettingError if a process of a Ray that was started here has ended.

    Ray would otherwise end this process without a message when it next needs that process.
    """
    if time.monotonic() < _started.checked + PULSE_S:
        return
    _started.checked = time.monotonic()
    for name, address in _started.addresses.items():
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        with socket.socket(family) as probe:
            try:
                probe.connect(address)
            except OSError:
                raise _stopped(f"its process {name} ended") from None


def _work(work: Work[T, R], chunk: list[T]) -> FinishedWork[R]:
    return work(chunk)


def _refuse(item: Any, why: str) -> Any:
    raise SettingError(
        "the workers of the Ray cluster were killed repeatedly, perhaps because memory ran out; "
        "give them more memory (saved results are not computed again)"
    )


@contextmanager
def connected(on: str) -> Iterator[Any]:
    """Connect to Ray; a Ray that was started here ends with the block, any other continues.

    Ray runs any code that it receives, so a Ray that is started here listens on the loopback
    interface alone. It requires the token in the user's home, unless RAY_AUTH_MODE is set.
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
    _check_answers(on)
    for left_out in ("RAY_USAGE_STATS_ENABLED", "RAY_TQDM_PATCH_PRINT"):
        os.environ.setdefault(left_out, "0")
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if on == LOCAL:
            _start(ray, **quiet)
        else:
            _join(ray, on, **quiet)
    except Exception as error:  # Ray raises bare exceptions if a start takes too long
        raise _missing(on, error) from None
    try:
        yield ray
    finally:
        _started.addresses.clear()
        ray.shutdown()


def _start(ray: Any, **options: Any) -> None:
    """Start a Ray on this machine, and note where its processes listen."""
    context = ray.init("local", num_cpus=available_cores(), include_dashboard=False, **options)
    host, _, port = context.address_info["gcs_address"].rpartition(":")
    _started.addresses["gcs_server"] = host, int(port)
    if hasattr(socket, "AF_UNIX"):
        _started.addresses["raylet"] = context.address_info["raylet_socket_name"]


def _join(ray: Any, on: str, **options: Any) -> None:
    """Connect to a Ray that runs; a server that it starts for a client sometimes dies at once."""
    for left in reversed(range(TRIES)):
        try:
            ray.init(on, **options)
            return
        except ConnectionError as error:
            if not left or NOT_SERVED not in str(error):
                raise


def _check_answers(on: str) -> None:
    """Raise SettingError if an address does not accept connections; Ray would try for minutes."""
    host, colon, port = on.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        try:
            create_connection((host, int(port)), PATIENCE_S).close()
        except (OSError, OverflowError) as error:
            raise _missing(on, error) from None


def _missing(on: str, error: Exception) -> SettingError:
    if on == LOCAL:
        return SettingError(f"Ray cannot be started on this machine: {_first_line(error)}")
    return SettingError(
        f"no Ray cluster at {quoted(on)}: {_first_line(error)}; start one with `ray start --head`, "
        "or use --on ray"
    )


def _first_line(error: Exception) -> str:
    """First line of a message, with the second one if it announces that."""
    first, *others = str(error).strip().splitlines() or [type(error).__name__]
    return f"{first} {others[0]}" if others and first.endswith(":") else first
