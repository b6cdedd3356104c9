"""Computing on a Ray cluster: the same results in the same order as on this machine.

Ray itself does again what was under way on a node that is lost. Items are sent as they are needed,
a few for every core, so that neither they nor the results pile up in its object store.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socket import create_connection
from typing import Any, TypeVar

from streamplace.errors import SettingError
from streamplace.evaluate.workers import AHEAD, available_cores, chunks
from streamplace.io.extras import extra
from streamplace.model.messages import quoted

T = TypeVar("T")
R = TypeVar("R")

LOCAL = "ray"
PATIENCE_S = 5.0


def mapped_on_ray(function: Callable[[T], R], items: Iterable[T], on: str) -> Iterator[R]:
    """Results of a function for every item, in the order of the items.

    Parameters
    ----------
    function
        What can be pickled; every machine gets a copy once. All machines have this streamplace.
    on
        ``ray`` for a Ray on this machine, started and stopped here; ``auto`` or an address for one
        that runs.
    """
    with connected(on) as ray:
        work = ray.remote(max_retries=-1, num_cpus=1)(_work)
        shared, cores = ray.put(function), int(ray.cluster_resources().get("CPU", 1))
        under_way: deque[Any] = deque()
        for chunk in chunks(iter(items), cores):
            under_way.append(work.remote(shared, chunk))
            if len(under_way) == AHEAD * cores:
                yield from result(ray, under_way.popleft())
        while under_way:
            yield from result(ray, under_way.popleft())


def _work(function: Callable[[T], R], chunk: list[T]) -> list[R]:
    return [function(item) for item in chunk]


def result(ray: Any, under_way: Any) -> Any:
    """Result of what was sent to a worker; its error is an error here."""
    try:
        found = ray.get(under_way)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        told = str(error).strip().splitlines()[0]
        raise SettingError(
            f"the Ray cluster could not go on: {told}; results that were kept are not computed "
            "again"
        ) from None
    return found


@contextmanager
def connected(on: str) -> Iterator[Any]:
    """Ray, connected; a Ray of our own ends with the block, any other goes on."""
    ray = extra("ray")
    _check_answers(on)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if on == LOCAL:
            ray.init("local", num_cpus=available_cores(), include_dashboard=False, **quiet)
        else:
            ray.init(on, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _missing(on, error) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(on: str) -> None:
    """Raise SettingError where nobody listens at an address; Ray itself tries for minutes."""
    host, colon, port = on.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        try:
            create_connection((host, int(port)), PATIENCE_S).close()
        except (OSError, OverflowError) as error:
            raise _missing(on, error) from None


def _missing(on: str, error: Exception) -> SettingError:
    told = str(error).strip().splitlines()[0]
    return SettingError(
        f"no Ray cluster at {quoted(on)}: {told}; start one with `ray start --head`, or take "
        "--on ray"
    )
