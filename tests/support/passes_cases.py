"""Passes for the tests: task graphs by hand, golden cases, and random problems for hypothesis."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from passes_reference import Task
from streamsim import build_instance
from streamsim.pass_rules import Network
from streamsim.passes import Pass, compile_pass, stream_records
from streamsim_strategies import Description, descriptions

NETWORKS: list[Network] = ["free", "sender", "link", "port", "shared"]
networks = st.sampled_from(NETWORKS)
GOLDEN = Path(__file__).parents[1] / "streamsim" / "passes" / "golden"


def tasks(seconds, edges, size=0.0, *, devices=2, wire=1.0, **more):
    """Every operator fires once: its seconds (per device type), and bytes on its streams."""
    cost = np.asarray(seconds, float)
    cost = cost[:, None] if cost.ndim == 1 else cost
    m = len(edges)
    full: dict[str, Any] = {
        "device_type": np.zeros(devices),
        "seconds_per_byte": np.broadcast_to(np.asarray(wire, float), (devices, devices)),
    }
    instance = build_instance(
        rate=np.ones(len(cost)),
        seconds=cost,
        source=[u for u, _ in edges],
        target=[v for _, v in edges],
        payload=np.broadcast_to(np.asarray(size, float), m),
        **(full | more),
    )
    once = np.ones(len(cost))
    return instance._replace(input_rate=once, tuples=np.ones(m), traffic=instance.payload)


def golden(name):
    """The problems of one golden file."""
    with (GOLDEN / f"{name}.jsonl").open() as lines:
        yield from map(json.loads, lines)


def giph(problem):
    """Compile a problem of GiPH's; its units are taken for seconds and bytes."""
    compute = np.array([task["compute"] for task in problem["tasks"]])
    rate = np.array(problem["comp_rate"])
    instance = tasks(
        compute[:, None] * rate,
        [(u, v) for u, v, _ in problem["edges"]],
        [size for *_, size in problem["edges"]],
        devices=len(rate),
        wire=problem["inv_bw"],
        latency=problem["delay"],
        device_type=np.arange(len(rate)),
    )
    return compile_pass(instance)


def placeto(problem):
    """Compile a graph of Placeto's in seconds, and the task of each row.

    Its simulator breaks ties by names, which are texts, so that is the order of our rows.
    """
    n = len(problem["cost"])
    task = sorted(range(n), key=lambda i: f"n{i}")
    row = {i: k for k, i in enumerate(task)}
    links = [(u, o, v) for v, inputs in enumerate(problem["inputs"]) for u, o in inputs]
    instance = tasks(
        np.array([problem["cost"][i] for i in task]) * 1e-6,
        [(row[u], row[v]) for u, _, v in links],
        [problem["out_bytes"][u][o] for u, o, _ in links],
        devices=problem["devices"],
        wire=1e-6 / 7600,
    )
    output = np.unique([1000 * u + o for u, o, _ in links], return_inverse=True)[1]
    return compile_pass(instance, streams=stream_records(instance, message=output)), task


@dataclass(frozen=True)
class Delayed(Description):
    """A problem with latencies."""

    latency: Any = None


@dataclass(frozen=True)
class Situation:
    """A pass, a batch of placements, and the same for the literal transcription."""

    compiled: Pass
    placements: NDArray[np.int32]
    work_factors: NDArray[np.float64]
    send_factors: NDArray[np.float64]
    problem: Delayed
    message: list[int]
    rests: bool  # whether cores and channels pause

    def task(self, i):
        """What the transcription takes for placement i."""
        compiled, back = self.compiled, np.argsort(self.compiled.stream_index)
        streams, instance = compiled.streams[back], self.problem.instance
        span = 1 / instance.rate.max()
        return Task(
            problem=self.problem,
            flows=tuple(zip(streams["size"].tolist(), streams["tuples"].tolist(), strict=True)),
            inputs=tuple((span * instance.input_rate).tolist()),
            message=tuple(self.message),
            priority=tuple(compiled.operators["priority"].tolist()),
            work_factor=tuple(self.work_factors[i].tolist()),
            send_factor=tuple(self.send_factors[i].tolist()),
            along=tuple(compiled.order.tolist()),
        )


@st.composite
def situations(draw, count=3):
    """Random problems with placements, noise and outputs that are shared."""
    plain = draw(descriptions(max_operators=8, max_devices=3))
    n, m, d = plain.n_operators, len(plain.source), plain.n_devices

    def some(values, size):
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    latency = [some([0.0, 0.0, 0.01], d) for _ in range(d)] if draw(st.booleans()) else None
    problem = Delayed(**vars(plain), latency=latency)
    compiled = compile_pass(problem.instance)
    message = _outputs(compiled) if draw(st.booleans()) else list(range(m))
    streams = stream_records(problem.instance, message=message)
    compiled = compile_pass(problem.instance, streams=streams)
    if draw(st.booleans()):
        compiled.operators["priority"] = some([0.0, 1.0, 2.0], n)
    place = st.lists(st.integers(0, d - 1), min_size=n, max_size=n)
    noise = [1.0, 1.0, 0.5, 1.25] if draw(st.booleans()) else [1.0]
    return Situation(
        compiled=compiled,
        placements=np.array(draw(st.lists(place, min_size=count, max_size=count)), np.int32),
        work_factors=np.array([some(noise, n) for _ in range(count)]),
        send_factors=np.array([some(noise, m) for _ in range(count)]).reshape(count, m),
        problem=problem,
        message=message,
        rests=draw(st.booleans()),
    )


def _outputs(compiled):
    """Number streams alike that could carry one output: equal in operator, bytes and tuples."""
    numbers: dict[tuple[float, ...], int] = {}
    streams = compiled.streams[np.argsort(compiled.stream_index)]
    keys = zip(*(streams[k].tolist() for k in ("source", "size", "tuples")), strict=True)
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def tied(rng):
    """A task graph whose times are small whole numbers, so that nearly all is tied."""
    n, d = 14, 3
    edges = [(u, v) for v in range(n) for u in range(v) if rng.random() < 0.25]
    source, target = zip(*(edges[i] for i in rng.permutation(len(edges))), strict=True)
    work, size = rng.integers(0, 3, n).astype(float), rng.integers(0, 3, len(edges)).astype(float)
    joins = tuple(v in target for v in range(n))
    problem = Delayed(
        rate=[float(not is_fed) for is_fed in joins],
        seconds=work[:, None].tolist(),
        source=[*source],
        target=[*target],
        selectivity=[1.0] * len(edges),
        payload=size.tolist(),
        parallelism=[1] * n,
        device_type=[0] * d,
        cores=[int(rng.integers(1, 3))] * d,
        seconds_per_byte=[[1.0] * d] * d,
        egress=[0.0] * d,
        ingress=[0.0] * d,
        overhead=0.0,
        gap=0.0,
        joins=joins,
    )
    return Situation(
        compiled=compile_pass(problem.instance),
        placements=rng.integers(0, d, (1, n), np.int32),
        work_factors=np.ones((1, n)),
        send_factors=np.ones((1, len(edges))),
        problem=problem,
        message=list(range(len(edges))),
        rests=False,
    )
