"""CPU that other jobs, which stay where they are, use on each device."""

from collections.abc import Iterable

from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.tasks import read_vertices


def cores_taken(rest: Rest, jobs: Iterable[str], seconds: float) -> dict[str, float]:
    """Device → core seconds per second of the tasks of some running jobs.

    The CPU of an operator is divided evenly among its subtasks. Each job takes about ``seconds``.
    """
    taken: dict[str, float] = {}
    for job in jobs:
        cpu = profile(rest, job, seconds).cpu
        for vertex in read_vertices(rest, job, rest.running_job(job)):
            for device, subtasks in vertex.devices.items():
                share = cpu[vertex.id].cores * subtasks / vertex.parallelism
                taken[device] = taken.get(device, 0.0) + share
    return taken
