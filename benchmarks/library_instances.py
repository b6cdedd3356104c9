"""Instances of datasets/library, class by class; `library.py` makes the files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from library_documents import instance_document, plan_document
from library_planted import (
    PlantedInstance,
    PlantedShape,
    planted_makespan,
    planted_plan,
    planted_throughput,
)

from streamplace import Cluster, Offer, Operator, Problem, Stream, StreamGraph, generate
from streamplace.io.problems import read_problems
from streamplace.model import Device
from streamplace.objectives.registry import OBJECTIVES
from streamplace.planning.offers import Catalogue

ROOT = Path(__file__).parents[1]
APPLICATIONS = sorted((ROOT / "datasets/applications").glob("*.json"))
CORE = 2.5e9
"""Instructions per second of a core."""


@dataclass(frozen=True)
class NamedInstance:
    """An instance, where it comes from, and its solution and proof where they come with it."""

    name: str
    origin: str
    document: dict
    planted: PlantedInstance | None = field(default=None, repr=False)


def instances(seed: int) -> Iterator[NamedInstance]:
    """All instances."""
    yield from branched(seed)
    yield from applications()
    yield from random_graphs(seed)
    yield from giph(seed)
    yield from programs(seed)
    yield from plans()
    yield from slots()
    yield from planted(seed)


def of_problem(name: str, origin: str, problem: Problem, objective: str) -> NamedInstance:
    """Return a problem as an instance."""
    document = instance_document(problem, OBJECTIVES[objective]) | {"name": name}
    return NamedInstance(name, origin, document)


def branched(seed: int) -> Iterator[NamedInstance]:
    """Topologies of the standard benchmark, small enough for a search."""
    shapes = [(2, 2), (3, 2), (2, 3), (4, 2), (3, 3), (2, 4)]
    for i, (branches, depth) in enumerate(shapes):
        shape = {"branches": branches, "depth": depth, "devices": 2, "copies": 5, "rate": 2e4}
        for k, graph in enumerate(list(generate("branched", seed=seed, **shape))[:5]):
            problem = Problem(graph.at_rate(2e4), Cluster.uniform(3))
            origin = f"family branched, {shape}, on three devices"
            yield of_problem(f"branched-{5 * i + k:02}", origin, problem, "throughput")


def applications() -> Iterator[NamedInstance]:
    """The applications at rates whose work fills so many devices, on as many and more."""
    clusters = {
        "even": [2500, 2500, 2500],
        "uneven": [3500, 2500, 1500],
        "four": [2500, 2500, 2500, 2500],
    }
    for path in APPLICATIONS:
        (application,) = read_problems(path)
        for kind, speeds in clusters.items():
            devices = [Device(f"d{d}", mips) for d, mips in enumerate(speeds)]
            problem = Problem(plain(application.graph), Cluster.of(devices))
            work = float((problem.graph.input_rate * problem.graph.operators.ipt).sum())
            rate = problem.graph.source_rate * 1.1e6 * sum(speeds) / work
            origin = f"datasets/applications/{path.name} at {rate:.3g} tuples/s"
            name = f"application-{path.stem}-{kind}"
            problem = problem.at_rate(float(f"{rate:.3g}"))
            yield of_problem(name, origin, problem, "throughput")


def plain(graph: StreamGraph) -> StreamGraph:
    """Return the graph with one subtask per operator."""
    operators = replace(graph.operators, parallelism=graph.operators.parallelism * 0 + 1)
    return replace(graph, operators=operators, streams=replace(graph.streams, operators=operators))


def random_graphs(seed: int) -> Iterator[NamedInstance]:
    """Random graphs on equal and unequal devices, for throughput and for one pass."""
    for i in range(48):
        shape = {"operators": 6 + i // 6, "devices": 3.3, "network": 2.0, "layers": 3}
        (graph,) = generate("random-dag", seed=seed + i, **shape)
        speeds = [2500, 2500, 2500] if i % 2 else [3000, 2500, 1500]
        devices = [Device(f"d{d}", mips) for d, mips in enumerate(speeds)]
        problem, origin = Problem(graph, Cluster.of(devices)), f"family random-dag, {shape}"
        yield of_problem(f"random-{i:02}", origin, problem, "throughput")
        if i < 36:
            yield of_problem(f"random-pass-{i:02}", origin, problem, "makespan")


def giph(seed: int) -> Iterator[NamedInstance]:
    """GiPH's problems: the wider grid by size, and its default setting."""
    grid = read_problems(ROOT / "datasets/giph-grid.jsonl.gz")
    for i, problem in enumerate(sorted(grid, key=lambda p: p.n_operators)[:20]):
        origin = f"giph-grid, {problem.graph.name}"
        yield of_problem(f"giph-{i:02}", origin, problem, "makespan")
    default = list(first(generate("giph", seed=seed), 6))
    for i, problem in enumerate(default):
        yield of_problem(f"giph-default-{i:02}", "family giph", problem, "makespan")


def first(items: Iterable, count: int) -> Iterator:
    """First items."""
    return (item for _, item in zip(range(count), items, strict=False))


def programs(seed: int) -> Iterator[NamedInstance]:
    """Sharded programs, neural networks and workflows of connected vehicles."""
    for family in ("chainmm", "ffnn", "cifar10", "cav"):
        for i, problem in enumerate(first(generate(family, seed=seed), 2)):
            yield of_problem(f"{family}-{i}", f"family {family}", problem, "makespan")


def hashed(graph: StreamGraph, pieces: int, rate: float) -> StreamGraph:
    """Return a graph whose operators have so many key groups each, all streams hashed."""
    operators = [
        Operator(
            o.name,
            o.ipt,
            o.payload,
            o.rate,
            memory=2**28,
            max_parallelism=pieces,
            window=o.window,
            constant=o.constant,
        )
        for o in graph.operators
    ]
    streams = [Stream(s.source, s.target, s.selectivity, s.payload, "hash") for s in graph.streams]
    return StreamGraph.of(graph.name, operators, streams).at_rate(rate)


def plans() -> Iterator[NamedInstance]:
    """Plans of the applications: rates by price lists."""
    lists = {
        "one": [Offer("m2", 10, cores=2, memory="8 GB")],
        "three": [Offer(f"m{c}", p, cores=c, memory=f"{4 * c} GB") for c, p in PRICES],
        "net": [Offer(f"n{c}", p, cores=c, egress=3e9, ingress=3e9) for c, p in PRICES[:2]],
    }
    for path in APPLICATIONS:
        (application,) = read_problems(path)
        graph = application.graph
        if graph.n_operators > MOST_PLANNED:
            continue
        work = float((graph.input_rate * graph.operators.ipt).sum())
        for kind, offers in lists.items():
            for cores in (2.7, 5.3):
                rate = float(f"{graph.source_rate * cores * CORE / work:.3g}")
                asked = hashed(graph, 4, rate)
                origin = f"datasets/applications/{path.name} at {rate:g} tuples/s, {offers}"
                name = f"plan-{path.stem}-{kind}-{cores:.0f}"
                document = plan_document(asked, Catalogue.of(offers)) | {"name": name}
                yield NamedInstance(name, origin, document)


MOST_PLANNED = 9
"""Operators of an application that is planned."""
PRICES = [(2, 10), (4, 19), (8, 36)]


def slots() -> Iterator[NamedInstance]:
    """Jobs of unequal subtasks on workers of eight slots."""
    offers = [
        Offer("worker", 10, cores=4, slots=8, memory="16 GB"),
        Offer("large", 18, cores=8, slots=16, memory="32 GB"),
    ]
    for i in range(12):
        stages, pieces = 3 + i % 3, 4 + i // 3
        operators = [
            Operator(
                f"v{v}",
                ipt=1e5 * (1 + (7 * i + 5 * v) % 11),
                payload=100,
                rate=8e3 if v == 0 else 0.0,
                memory=1e9 * (1 + (3 * i + v) % 5),
                max_parallelism=pieces,
            )
            for v in range(stages)
        ]
        streams = [Stream(f"v{v}", f"v{v + 1}", partitioning="hash") for v in range(stages - 1)]
        graph = StreamGraph.of(f"slots-{i:02}", operators, streams)
        origin = f"pipeline of {stages} stages of {pieces} pieces, {offers}"
        document = plan_document(graph, Catalogue.of(offers))
        yield NamedInstance(f"plan-slots-{i:02}", origin, document)


def planted(seed: int) -> Iterator[NamedInstance]:
    """Instances that are built around their optimum, from easy to hard."""
    made = {"throughput": planted_throughput, "makespan": planted_makespan, "plan": planted_plan}
    sizes = {
        "throughput": [(40, 4), (200, 8), (1000, 16), (5000, 32)],
        "makespan": [(20, 2), (40, 4), (100, 5), (300, 10)],
        "plan": [(16, 3), (32, 6), (64, 10), (128, 16)],
    }
    for objective, make in made.items():
        for operators, devices in sizes[objective]:
            for i, (mixing, large) in enumerate([(0.1, 0), (0.1, 3), (0.3, 0), (0.3, 3), (0.5, 3)]):
                shape = PlantedShape(operators, devices, mixing, large)
                instance = make(shape, seed + i)
                name = f"planted-{objective}-{operators}-{i}"
                document = instance.document | {"name": name}
                yield NamedInstance(name, f"{make.__name__}, {shape}", document, instance)
