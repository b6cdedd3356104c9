"""Speed of single passes, beside the same pass in SimPy in the same run.

Times are CPU seconds of one thread, so that waiting for a busy machine does not count.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
import simpy
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture
from streamsim import build_instance
from streamsim.passes import Pass, Rules, compile_pass, makespans, schedule

pytestmark = pytest.mark.benchmark(timer=time.process_time)

Ints = NDArray[np.int32]
Case = tuple[Pass, Ints]

BATCH = 2000
DEVICES = 20


def layered(seed: int, size: int, alpha: float, connect: float) -> Case:
    """Tasks in layers on 20 devices of five kinds, with the parameters of GiPH's generator."""
    rng = np.random.default_rng(seed)
    depth = int(np.ceil(rng.uniform(0.8, 1.2) * np.sqrt(size) / alpha)) + 2
    widths = [
        1,
        *(int(np.ceil(rng.uniform(0, 2 * alpha * np.sqrt(size)))) for _ in range(depth - 2)),
    ]
    layer = np.repeat(np.arange(len(widths) + 1), [*(max(1, w) for w in widths), 1])
    n = len(layer)
    edges = [
        (u, v)
        for v in range(1, n)
        for u in range(v)
        if layer[u] < layer[v] and (rng.random() < connect or u == parent(rng, layer, v))
    ]
    kind = rng.integers(0, 5, n)
    has = rng.random((DEVICES, 5)) < 0.2
    has[:5] |= np.eye(5, dtype=bool)
    compute, speed = rng.uniform(80, 120, n), rng.uniform(3, 7, DEVICES)
    instance = build_instance(
        rate=np.ones(n),
        seconds=compute[:, None] / speed,
        source=[u for u, _ in edges],
        target=[v for _, v in edges],
        payload=rng.uniform(80, 120, len(edges)),
        device_type=np.arange(DEVICES),
        seconds_per_byte=rng.uniform(0.006, 0.014, (DEVICES, DEVICES)),
        latency=rng.uniform(0, 20, (DEVICES, DEVICES)),
    )
    once = np.ones(n)
    m = len(edges)
    instance = instance._replace(input_rate=once, tuples=np.ones(m), traffic=instance.payload)
    may = [np.flatnonzero(has[:, kind[v]]) for v in range(n)]
    batch = np.stack([rng.choice(devices, BATCH) for devices in may], axis=1)
    return compile_pass(instance), np.ascontiguousarray(batch, np.int32)


def parent(rng: np.random.Generator, layer: NDArray[np.int64], v: int) -> int:
    """One operator of the layer before, so that nothing hangs in the air."""
    return int(rng.choice(np.flatnonzero(layer == layer[v] - 1)))


def cases() -> list[Case]:
    return [
        layered(seed, size, alpha, connect)
        for seed, (size, alpha, connect) in enumerate(
            (size, alpha, connect)
            for size in (10, 15)
            for alpha in (0.1, 0.2, 0.3)
            for connect in (0.1, 0.2)
        )
    ]


CASES = cases()


def large(n: int, devices: int) -> Case:
    """Every operator but the first has two inputs, from anywhere before it."""
    rng = np.random.default_rng(0)
    target = np.arange(1, n)
    source = (rng.random(2 * n - 2) * np.concatenate([target, target])).astype(np.int32)
    instance = build_instance(
        rate=np.ones(n),
        seconds=rng.random((n, 1)),
        source=source,
        target=np.concatenate([target, target]),
        payload=rng.random(2 * n - 2),
        device_type=np.zeros(devices),
        seconds_per_byte=np.full((devices, devices), 1.0),
    )
    once = np.ones(2 * n - 2)
    instance = instance._replace(
        input_rate=np.ones(n), tuples=once, traffic=instance.payload.copy()
    )
    return compile_pass(instance), rng.integers(0, devices, (1, n), dtype=np.int32)


class Plain(NamedTuple):
    """A pass in Python's own numbers, so that SimPy is not slowed down by ours."""

    target: list[int]
    outputs: list[range]
    work: list[list[float]]  # by operator and device
    seconds: list[list[list[float]]]  # by stream and devices
    cores: list[int]

    @staticmethod
    def of(one: Pass) -> "Plain":
        """Convert a pass."""
        links, size = one.links, one.streams["size"][:, None, None]
        starts, ends = one.operators["out_start"].tolist(), one.operators["out_end"].tolist()
        return Plain(
            one.streams["target"].tolist(),
            [range(a, b) for a, b in zip(starts, ends, strict=True)],
            one.work[:, one.devices["type"]].tolist(),
            (links["latency"] + size * links["link"]).tolist(),
            one.devices["cores"].tolist(),
        )


def in_simpy(plain: Plain, place: list[int]) -> float:
    """Makespan under ``fifo`` and ``free``, with a resource per device and a process per task."""
    environment = simpy.Environment()
    devices = [simpy.Resource(environment, cores) for cores in plain.cores]
    arrivals = [environment.event() for _ in plain.target]
    inputs: list[list[simpy.Event]] = [[] for _ in plain.work]
    for arrival, v in zip(arrivals, plain.target, strict=True):
        inputs[v].append(arrival)
    last = 0.0

    def transfer(e: int, seconds: float) -> Iterator[simpy.Event]:
        yield environment.timeout(seconds)
        arrivals[e].succeed()

    def task(v: int) -> Iterator[simpy.Event]:
        nonlocal last
        yield environment.all_of(inputs[v])
        d = place[v]
        with devices[d].request() as core:
            yield core
            yield environment.timeout(plain.work[v][d])
        last = max(last, environment.now)
        for e in plain.outputs[v]:
            environment.process(transfer(e, plain.seconds[e][d][place[plain.target[e]]]))

    for v in range(len(place)):
        environment.process(task(v))
    environment.run()
    return last


PLAIN = [Plain.of(one) for one, _ in CASES]


def seconds_in_simpy() -> float:
    """CPU seconds of a pass in SimPy, mean over the graphs."""
    times = []
    for plain, (_, batch) in zip(PLAIN, CASES, strict=True):
        begin = time.process_time()
        for place in batch[:10].tolist():
            in_simpy(plain, place)
        times.append((time.process_time() - begin) / 10)
    return statistics.mean(times)


def test_simpy_says_the_same() -> None:
    for plain, (one, batch) in zip(PLAIN, CASES, strict=True):
        answers = [in_simpy(plain, place) for place in batch[:5].tolist()]
        np.testing.assert_allclose(answers, makespans(one, batch[:5]), rtol=1e-9)


@pytest.fixture
def report(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> Callable[[int], None]:
    """Note and print how many passes per second, beside those of SimPy."""

    def of(passes: int) -> None:
        rate = passes / benchmark.stats.stats.median
        ratio = rate * seconds_in_simpy()
        benchmark.extra_info.update({"passes/s": rate, "ratio to SimPy": ratio})
        with capsys.disabled():
            print(
                f"\n{benchmark.name}: {rate / 1e3:.4g} thousand passes/s (median;"
                f" {1e6 / rate:.3g} µs each; {ratio:.0f} × SimPy, which takes"
                f" {1e3 * ratio / rate:.2g} ms a pass)"
            )

    return of


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(Rules(queue, network), id=f"{queue}-{network}")  # type: ignore[arg-type]
        for queue, network in [
            ("fifo", "free"),
            ("priority", "free"),
            ("order", "free"),
            ("fifo", "link"),
            ("fifo", "sender"),
            ("fifo", "port"),
            ("fifo", "shared"),
        ]
    ],
)
def test_batch(benchmark: BenchmarkFixture, report: Callable[[int], None], rules: Rules) -> None:
    """Twelve graphs of the sizes of GiPH's, 2,000 random placements each."""

    def all_cases() -> None:
        for one, batch in CASES:
            makespans(one, batch, rules)

    all_cases()
    benchmark.pedantic(all_cases, rounds=7)
    report(BATCH * len(CASES))


def test_one_schedule(benchmark: BenchmarkFixture) -> None:
    """With everything that happens, and the critical chain."""
    one, batch = CASES[0]
    schedule(one, batch[0])
    benchmark(schedule, one, batch[0])


@pytest.mark.parametrize("network", ["free", "link"])
def test_a_million_operators(benchmark: BenchmarkFixture, network: str) -> None:
    """And two million streams, on 16 devices."""
    one, batch = large(1_000_000, 16)
    rules = Rules(network=network)  # type: ignore[arg-type]
    makespans(one, batch, rules)
    benchmark.pedantic(makespans, (one, batch, rules), rounds=3)


def test_compiling_a_million_operators(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(large, (1_000_000, 16), rounds=1)
