"""Speed of single passes, beside the same pass in SimPy in the same run.

Times are CPU seconds of one thread, so that waiting for a busy machine does not count.
"""

import statistics
import time
from collections.abc import Callable, Iterator

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


def in_simpy(one: Pass, place: Ints) -> float:
    """Makespan under ``fifo`` and ``free``, with a resource per device and a process per task."""
    environment = simpy.Environment()
    devices = [simpy.Resource(environment, int(cores)) for cores in one.devices["cores"]]
    arrivals = [environment.event() for _ in range(one.n_streams)]
    into: list[list[simpy.Event]] = [[] for _ in range(one.n_operators)]
    for e, v in enumerate(one.streams["target"].tolist()):
        into[v].append(arrivals[e])
    last = 0.0

    def transfer(e: int, seconds: float) -> Iterator[simpy.Event]:
        yield environment.timeout(seconds)
        arrivals[e].succeed()

    def task(v: int) -> Iterator[simpy.Event]:
        nonlocal last
        yield environment.all_of(into[v])
        d = int(place[v])
        with devices[d].request() as core:
            yield core
            yield environment.timeout(float(one.work[v, one.devices["type"][d]]))
        last = max(last, environment.now)
        for e in range(one.operators["out_start"][v], one.operators["out_end"][v]):
            link = one.links[d, place[one.streams["target"][e]]]
            away = d != place[one.streams["target"][e]]
            seconds = link["latency"] + one.streams["size"][e] * link["link"] if away else 0.0
            environment.process(transfer(e, float(seconds)))

    for v in range(one.n_operators):
        environment.process(task(v))
    environment.run()
    return last


def seconds_in_simpy() -> float:
    """CPU seconds of a pass in SimPy, median over the graphs."""
    times = []
    for one, batch in CASES:
        begin = time.process_time()
        for place in batch[:5]:
            in_simpy(one, place)
        times.append((time.process_time() - begin) / 5)
    return statistics.median(times)


def test_simpy_says_the_same() -> None:
    for one, batch in CASES:
        answers = [in_simpy(one, place) for place in batch[:5]]
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
