"""Real passes on this machine: a local Ray whose nodes are the devices, with their limits emulated.

Every operator is a Ray task that requests a core of its device's node, every transfer a Ray task
that requests the channel between two nodes, and Ray runs all tasks that are ready: a
work-conserving system with real delays and randomness. Limits and speeds are emulated:

- A task multiplies matrices, but only for its device's share of the machine's cores, and sleeps in
  between, as under a CPU quota. It takes the seconds of the problem, times a factor.
- A transfer fetches real bytes from another node, fewer than in the problem, and holds its channel
  for the time that the bytes of the problem take at the channel's bandwidth, times the factor.

The factor stretches every pass to about a second, so that Ray's own milliseconds per task matter
but do not dominate. Results are in seconds of the problem.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from streamsim.passes.sending import fixed_times, sending_times

from streamplace.cores import available_cores
from streamplace.errors import SettingError
from streamplace.io.extras import quiet_ray
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

PASS_S = 1.0
"""Minimum stretched duration of a pass, by its bound."""
MAX_BYTES = 1 << 20
"""Size of the largest transferred result; other results are scaled in proportion."""
PERIOD_S = 0.005
"""A task sleeps if it is ahead of its share by this time."""
MAX_TASK_SHARE = 0.5
"""Share of the machine's cores for tasks; Ray needs the rest."""
WARM_S = 0.3
UNITS = 10_000
"""Parts of a resource that Ray distinguishes."""
MAX_DEVICES = 16
STORE_BYTES = 96 * 2**20
"""Memory of a node's object store."""


class RayPasses:
    """Measures passes while its block runs: seconds [B] of placements [B, N] of a problem.

    Ray gets as many nodes and cores as the largest of the problems needs. The shortest possible
    pass of every problem is stretched to ``pass_s`` seconds.
    """

    def __init__(self, problems: Sequence[Problem], pass_s: float = PASS_S) -> None:
        self.devices = max(problem.n_devices for problem in problems)
        self.cores = int(max(problem.cluster.devices.cores.max() for problem in problems))
        if self.devices > MAX_DEVICES:
            raise SettingError(
                f"a local Ray represents at most {MAX_DEVICES} devices, not {self.devices}; use a "
                "smaller cluster"
            )
        self._pass_s = pass_s
        self._share = MAX_TASK_SHARE * available_cores() / self.devices
        self._running = ExitStack()
        self._ray: Any = None
        self._compute: Any = None
        self._fetch: Any = None

    def __enter__(self) -> Self:
        """Start Ray and all of its workers, which takes some seconds for each device."""
        try:
            offers = [self._offer(device) for device in range(self.devices)]
            self._ray = self._running.enter_context(_local_ray(offers))
            self._compute = self._ray.remote(num_returns=2, num_cpus=1)(compute)
            self._fetch = self._ray.remote(num_cpus=1)(fetch)
            self._warm_up()
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        """Stop Ray and all of its processes."""
        self._running.close()

    def __call__(self, problem: Problem, placements: Ints) -> Floats:
        """Seconds of one pass under each placement, measured one after the other."""
        tasks = StretchedPass.of(problem, self._pass_s)
        return np.array([self._pass(tasks, place) for place in np.atleast_2d(placements)])

    def _pass(self, tasks: "StretchedPass", place: Ints) -> float:
        """Seconds of one pass, in the time of the problem."""
        data: dict[int, Any] = {}
        done: dict[int, Any] = {}
        sent: dict[tuple[int, int], Any] = {}
        times: list[Any] = []
        for v in tasks.order:
            device, fetched, flags = int(place[v]), [], []
            for e, u in tasks.inputs[v]:
                fetched.append(data[u])
                if place[u] == device:
                    flags.append(done[u])
                    continue
                message = int(tasks.message[e]), device
                if message not in sent:
                    sent[message] = self._send(tasks, e, int(place[u]), device, data[u], done[u])
                    times.append(sent[message])
                flags.append(sent[message])
            if not tasks.inputs[v] and tasks.work[v, device] == 0:
                data[v], done[v] = self._ray.put(np.zeros(tasks.bytes_out[v], np.uint8)), None
                continue
            data[v], done[v] = self._run(tasks, v, device, fetched, flags)
            times.append(done[v])
        spans = np.array(self._ray.get(times))  # the begin and the end of each task
        return float(np.ptp(spans) / tasks.factor) if len(spans) else 0.0

    def _run(
        self, tasks: "StretchedPass", v: int, device: int, fetched: list[Any], flags: list[Any]
    ) -> Any:
        core = {f"device-{device}": part_of_device(int(tasks.cores[device]))}
        task = self._compute.options(resources=core)
        seconds = float(tasks.work[v, device])
        return task.remote(seconds, self._share, int(tasks.bytes_out[v]), fetched, *flags)

    def _send(self, tasks: "StretchedPass", e: int, a: int, b: int, data: Any, done: Any) -> Any:
        task = self._fetch.options(resources={f"channel-{a}-{b}": 1})
        return task.remote(float(tasks.sending(e, a, b)), [data], done)

    def _offer(self, device: int) -> dict[str, Any]:
        """Resources of the node of a device: its cores, and the channels that lead to it."""
        others = [other for other in range(self.devices) if other != device]
        channels = {f"channel-{other}-{device}": 1 for other in others}
        return {
            "num_cpus": self.cores + len(others),  # keeps as many workers alive
            "resources": {f"device-{device}": 1, f"place-{device}": 1000, **channels},
        }

    def _warm_up(self) -> None:
        """Run a task on every worker once."""
        waiting = []
        for device in range(self.devices):
            task = self._compute.options(resources={f"place-{device}": 1})
            workers = self.cores + self.devices - 1
            waiting += [task.remote(WARM_S, self._share, 0, [])[1] for _ in range(workers)]
        self._ray.get(waiting)


@contextmanager
def _local_ray(offers: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Start Ray and a node for each offer; yield the module ``ray``, connected to them.

    This takes some seconds for each node. Ray and all of its processes end with the block. An offer
    has the arguments of ``ray.cluster_utils.Cluster.add_node``.
    """
    ray = quiet_ray(is_local=True)
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster()
    try:
        for number, offer in enumerate(offers):
            head = {} if number else {"include_dashboard": False}
            cluster.add_node(
                include_log_monitor=False, object_store_memory=STORE_BYTES, **offer, **head
            )
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        cluster.wait_for_nodes()
        yield ray
    finally:
        ray.shutdown()
        cluster.shutdown()


@dataclass(frozen=True, slots=True)
class StretchedPass:
    """A problem's pass with all times multiplied by a factor (N tasks, E streams, D devices)."""

    factor: float
    order: list[int]
    inputs: list[list[tuple[int, int]]]  # stream and sender of every input of each task
    message: Ints  # [E] streams with the same message are sent once to every device
    work: Floats  # [N, D]
    latency: Floats  # [D, D]
    wire: Floats  # [D, D] seconds per byte
    size: Floats  # [E] bytes
    fixed_s: Floats  # [E] seconds of every transfer, whatever the link
    bytes_out: Ints  # [N] transferred
    cores: Ints  # [D]

    @classmethod
    def of(cls, problem: Problem, pass_s: float) -> "StretchedPass":
        """Stretch a problem's pass."""
        from streamplace.objectives.registry import OBJECTIVES

        compiled, streams = problem.one_pass, problem.one_pass.streams
        bound = OBJECTIVES["makespan"].bound(problem) or pass_s
        factor = pass_s / bound
        size = np.array(streams["size"])
        largest = np.zeros(problem.n_operators)
        np.maximum.at(largest, streams["source"], size)
        scale = MAX_BYTES / max(float(size.max(initial=0.0)), 1.0)
        inputs: list[list[tuple[int, int]]] = [[] for _ in range(problem.n_operators)]
        for e, (u, v) in enumerate(zip(streams["source"], streams["target"], strict=True)):
            inputs[int(v)].append((e, int(u)))
        return cls(
            factor,
            problem.graph.order.tolist(),
            inputs,
            np.array(streams["first"]),
            factor * compiled.work[:, compiled.devices["type"]],
            factor * compiled.links["latency"],
            factor * compiled.links["seconds_per_byte"],
            size,
            factor * fixed_times(compiled),
            np.ceil(largest * min(scale, 1.0)).astype(np.int64),
            np.array(compiled.devices["cores"]),
        )

    def sending(self, e: int, a: int, b: int) -> float:
        """Seconds that a stream takes from one device to another."""
        latency, wire = self.latency[a, b], self.wire[a, b]
        return float(sending_times(latency, self.size[e], wire, self.fixed_s[e]))


def part_of_device(cores: int) -> float:
    """Part of a device's resource for a core in ten thousandths, to which Ray rounds parts up.

    >>> part_of_device(6)
    0.1666
    """
    return UNITS // cores / UNITS


def compute(seconds: float, share: float, size: int, fetched: list[Any], *flags: Any) -> Any:
    """Compute on a node for some time at a share of a core; return a result, and begin and end."""
    import ray

    begin, spent = time.monotonic(), time.thread_time()
    ray.get(fetched)
    matrix = np.full((48, 48), 0.5)
    while (remaining := seconds - (time.monotonic() - begin)) > 0:
        ahead = (time.thread_time() - spent) / share - (seconds - remaining)
        if ahead > PERIOD_S:
            time.sleep(min(ahead, remaining))
        else:
            matrix @ matrix
    return np.zeros(size, np.uint8), (begin, time.monotonic())


def fetch(seconds: float, data: list[Any], done: Any) -> tuple[float, float]:
    """Fetch a result on a node, and hold the channel for some time; return begin and end."""
    import ray

    begin = time.monotonic()
    ray.get(data)
    time.sleep(max(0.0, seconds - (time.monotonic() - begin)))
    return begin, time.monotonic()
