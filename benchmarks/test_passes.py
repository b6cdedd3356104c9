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
from makespan_cases import giph
from pytest_benchmark.fixture import BenchmarkFixture
from streamsim.passes import Pass, Rules, compile_pass, makespans, schedule

from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model.cluster import Cluster
from streamplace.model.problem import Problem, random_placements

pytestmark = pytest.mark.benchmark(timer=time.process_time)

BATCH = 2000

CASES = [
    (problem.one_pass, random_placements(problem, BATCH, np.random.default_rng(0)))
    for problem in giph(12)
]


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
    """Twelve problems of GiPH's benchmark, 2,000 random placements each."""

    def all_cases() -> None:
        for one, batch in CASES:
            makespans(one, batch, rules)

    all_cases()
    benchmark(all_cases)
    report(BATCH * len(CASES))


def test_one_schedule(benchmark: BenchmarkFixture) -> None:
    """With everything that happens, and the critical chain."""
    one, batch = CASES[0]
    schedule(one, batch[0])
    benchmark(schedule, one, batch[0])


@pytest.fixture(scope="module")
def million() -> Problem:
    """A million operators and two million streams, on 16 devices."""
    parameters = RandomDag(operators=1_000_000, streams=2_000_000)
    return Problem(next(iter(random_dag(parameters, 0))), Cluster.uniform(16))


@pytest.mark.slow
@pytest.mark.parametrize("network", ["free", "link"])
def test_a_million_operators(benchmark: BenchmarkFixture, network: str, million: Problem) -> None:
    batch = np.random.default_rng(0).integers(0, 16, (1, million.n_operators), dtype=np.int32)
    one, rules = million.one_pass, Rules(network=network)  # type: ignore[arg-type]
    makespans(one, batch, rules)
    benchmark.pedantic(makespans, (one, batch, rules), rounds=3)


@pytest.mark.slow
def test_compiling_a_million_operators(benchmark: BenchmarkFixture, million: Problem) -> None:
    benchmark.pedantic(compile_pass, (million.instance,), rounds=1)
