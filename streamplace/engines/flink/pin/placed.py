"""The hook of PyFlink programs: ``placed(env, "placement.json").execute()``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamplace.engines.flink.pin.fitting import check_cluster, fitted
from streamplace.engines.flink.pin.hook import PlacedEnvironment
from streamplace.engines.flink.pin.pinning import pinning, read_vectors, vectors_of
from streamplace.engines.flink.pin.spread import SpreadLimits
from streamplace.engines.flink.rest.client import Rest


def placed(
    env: Any,
    placement: str | Path | Mapping[str, str],
    *,
    rest: str | None = None,
    devices: Sequence[str] = (),
) -> PlacedEnvironment:
    """Environment of a PyFlink program that runs its job with a placement.

    Parameters
    ----------
    env
        The program's StreamExecutionEnvironment. SQL statements are added to it by
        ``statement_set.attach_as_datastream()``.
    placement
        A file written by ``streamplace place``, or operator (or subtask) → device.
    rest
        Address of the cluster; if given, its devices and free group indexes are read from it.
    devices
        All devices of the cluster, in any order, if ``rest`` is not given; only placements that
        spread the subtasks of an operator need them.
    """
    managed: dict[str, int] = {}
    if isinstance(placement, Mapping):
        vectors = vectors_of(placement)
    else:
        vectors = read_vectors(Path(placement))
    if rest is None:
        answer = pinning(vectors, SpreadLimits.untouched(devices))
    else:
        cluster = Rest(rest)
        check_cluster(cluster, vectors)
        cluster.wait_released()
        answer, managed = fitted(cluster, vectors)
    return PlacedEnvironment(
        env, answer.operators, answer.parallelism, answer.groups, answer.spread, managed
    )
