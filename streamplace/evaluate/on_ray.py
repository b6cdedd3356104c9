"""Computing on a Ray cluster: the same results in the same order as on this machine.

Ray itself does again what was under way on a node that is lost. Items are sent as they are needed,
a few for every core, so that neither they nor the results pile up in its object store.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from socket import create_connection
from typing import Any, Generic, TypeVar

from streamplace.errors import SettingError
from streamplace.evaluate.chores import Chore, Done, log_level, relogged
from streamplace.evaluate.workers import AHEAD, KILLED, Lost, available_cores, chunks
from streamplace.io.extras import extra
from streamplace.model.messages import quoted

T = TypeVar("T")
R = TypeVar("R")

LOCAL = "ray"
PATIENCE_S = 5.0
TRIES = 3
"""How often Ray does again what its worker or node died with."""


def mapped_on_ray(
    function: Callable[[T], R], items: Iterable[T], on: str, *, lost: Lost[T, R] | None = None
) -> Iterator[R]:
    """Results of a function for every item, in the order of the items.

    Parameters
    ----------
    function
        What can be pickled; every machine gets a copy once. All machines have this streamplace.
    on
        ``ray`` for a Ray on this machine, started and stopped here; ``auto`` or an address for one
        that runs. Where this process is connected already, that is what computes.
    lost
        Result of an item whose workers die with it again and again, also when it is alone; without
        it, such an item is an error.
    """
    with connected(on) as ray:
        crew = _Crew(ray, ray.put(Chore(function, log_level())), lost or _refused)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        under_way: deque[tuple[list[T], Any]] = deque()
        for chunk in chunks(iter(items), cores):
            under_way.append((chunk, crew.begun(chunk)))
            if len(under_way) == AHEAD * cores:
                yield from crew.ended(*under_way.popleft())
        while under_way:
            yield from crew.ended(*under_way.popleft())


@dataclass(frozen=True, slots=True)
class _Crew(Generic[T, R]):
    """Those on Ray that work by one chore."""

    ray: Any
    chore: Any
    lost: Lost[T, R]

    def begun(self, chunk: list[T]) -> Any:
        """Begin with a chunk; Ray does it again where it is lost, some times."""
        work = self.ray.remote(max_retries=TRIES, num_cpus=1)(_work)
        return work.remote(self.chore, chunk)

    def ended(self, chunk: list[T], under_way: Any) -> Iterator[R]:
        """Results of a chunk; item by item where its workers die, so that one takes none along."""
        errors = self.ray.exceptions
        try:
            done: Done[R] = result(self.ray, under_way)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError):
            if len(chunk) == 1:
                yield self.lost(chunk[0], KILLED)
                return
            for item in chunk:
                yield from self.ended([item], self.begun([item]))
            return
        yield from relogged(done)


def result(ray: Any, under_way: Any) -> Any:
    """Result of what was sent to a worker; its error is an error here.

    That a worker died with its work, more often than it may, is for others to answer.
    """
    errors = ray.exceptions
    try:
        return ray.get(under_way)
    except errors.RayTaskError as error:
        raise error.cause from None
    except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError):
        raise
    except (errors.RayError, ConnectionError) as error:
        raise SettingError(
            f"the Ray cluster could not go on: {_first_line(error)}; results that were kept are "
            "not computed again"
        ) from None


def _work(chore: Chore[T, R], chunk: list[T]) -> Done[R]:
    return chore(chunk)


def _refused(item: Any, why: str) -> Any:
    raise SettingError(
        "the workers of the Ray cluster were killed again and again, perhaps for want of memory; "
        "give them more (results that were kept are not computed again)"
    )


@contextmanager
def connected(on: str) -> Iterator[Any]:
    """Ray, connected; a Ray of our own ends with the block, any other goes on.

    Ray runs whatever is sent to it, so one of our own listens on the loopback interface alone. It
    wants the token that Ray keeps in the user's home, unless RAY_AUTH_MODE says otherwise.
    """
    ray = extra("ray")
    if ray.is_initialized():
        yield ray
        return
    _check_answers(on)
    for left_out in ("RAY_USAGE_STATS_ENABLED", "RAY_TQDM_PATCH_PRINT"):
        os.environ.setdefault(left_out, "0")
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if on == LOCAL:
            with _on_loopback():
                ray.init("local", num_cpus=available_cores(), include_dashboard=False, **quiet)
        else:
            ray.init(on, **quiet)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise _missing(on, error) from None
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Have a Ray that is started here listen on the loopback interface, as it does on macOS."""
    from ray._private import ray_constants

    name, enabled = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    before = os.environ.get(name)
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = enabled
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _check_answers(on: str) -> None:
    """Raise SettingError where nobody listens at an address; Ray itself tries for minutes."""
    host, colon, port = on.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        try:
            create_connection((host, int(port)), PATIENCE_S).close()
        except (OSError, OverflowError) as error:
            raise _missing(on, error) from None


def _missing(on: str, error: Exception) -> SettingError:
    return SettingError(
        f"no Ray cluster at {quoted(on)}: {_first_line(error)}; start one with `ray start --head`, "
        "or take --on ray"
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
