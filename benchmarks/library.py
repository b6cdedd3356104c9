"""Make datasets/library: instances with solutions, and bounds that the checker has accepted.

    python benchmarks/library.py [--seed 0] [--split public|hidden] [-o datasets/library]

The same seed gives the same files, but for dates and seconds; the manifest of a hidden split does
not state it. What exists already is not made again. Solutions of the annealer are improved by the
checker's search, which may take --nodes nodes. With --only, the instances are made whose names
contain one of the words.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from library_certificates import PlanColumns, plan_cut, plan_proof, proof
from library_documents import instance_document, plan_document
from library_planted import (
    PlantedInstance,
    PlantedShape,
    planted_makespan,
    planted_plan,
    planted_throughput,
)
from library_proofs import best_bound, is_proven, searched, value_of

from streamplace import (
    Budget,
    Cluster,
    Offer,
    Operator,
    Problem,
    Stream,
    StreamGraph,
    generate,
    place,
)
from streamplace.io.problems import read_problems
from streamplace.library.documents import library_problem, solution_document
from streamplace.library.folder import BEST, MANIFEST, LibraryEntry
from streamplace.model import Device
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
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
    for i, problem in enumerate(islice(generate("giph", seed=seed), 6)):
        yield of_problem(f"giph-default-{i:02}", "family giph", problem, "makespan")


def programs(seed: int) -> Iterator[NamedInstance]:
    """Sharded programs, neural networks and workflows of connected vehicles."""
    for family in ("chainmm", "ffnn", "cifar10", "cav"):
        for i, problem in enumerate(islice(generate(family, seed=seed), 2)):
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


CLOSED = Fraction(1, 10**8)
EVALUATIONS = 20_000
MADE = "made.json"
"""Line of an instance whose files are there; removed in the end."""
NODE_WORK = 300_000_000
"""Streams by pairs of kinds that all nodes of a search may look at."""


@dataclass(frozen=True, slots=True)
class MadeEntry:
    """Solution, bound and proof of an instance; who made them, and in how many seconds.

    `proof_seconds` are of the proof that closes it, None where it is open.
    """

    solution: dict
    bound: Fraction
    proof: dict
    by: str
    seconds: float
    proof_seconds: float | None


def solved(instance: NamedInstance, nodes: int, seconds: float) -> MadeEntry:
    """Solve an instance that took so many seconds to make."""
    document, begin = instance.document, time.process_time()
    if instance.planted is not None:
        bound, proof_ = Fraction(instance.planted.bound), instance.planted.proof
        if not is_proven(document, bound, proof_, nodes):
            raise RuntimeError(f"{instance.name}: the planted bound is not proven")
        spent = time.process_time() - begin
        return MadeEntry(instance.planted.solution, bound, proof_, "construction", seconds, spent)
    return (planned if document["objective"] == "plan" else placed)(document, nodes)


def placed(document: dict, nodes: int) -> MadeEntry:
    """Place by annealing and by the checker's search; prove that it is the best, or a bound."""
    problem, objective = library_problem(document), OBJECTIVES[document["objective"]]
    begin = stopwatch.now()
    budget = Budget(None, EVALUATIONS)
    result = place(problem, placer="anneal", objective=objective.name, budget=budget)
    first, proof_ = solution_document(problem, result.placement, objective), proof(document)
    nodes = min(nodes, NODE_WORK // (1 + len(document["streams"]) * len(document["kinds"]) ** 2))
    last = searched(document, first, proof_, nodes)
    seconds = stopwatch.now() - begin - last.seconds
    by = f"streamplace anneal, {EVALUATIONS} evaluations"
    if last.solution != first:
        by += ", and a search"
    bound = value_of(document, last.solution)
    if not last.is_best:
        bound = best_bound(document, bound, proof_, max(1, nodes // 50))
    spent = last.seconds if last.is_best else None
    return MadeEntry(last.solution, bound, proof_, by, seconds, spent)


def planned(document: dict, nodes: int) -> MadeEntry:
    """Plan by column generation; the proof is the dual solution that proves most."""
    begin = time.process_time()
    columns = PlanColumns(document)
    columns.solve()
    solution = {"machines": columns.plan()}
    seconds = time.process_time() - begin
    cost = value_of(document, solution)
    best = Fraction(0), plan_proof(document, [0] * len(document["operators"]))
    for cut in columns.cuts:
        proof_ = plan_proof(document, cut.worth)
        columns.cuts = [plan_cut(document, proof_)]
        bound = Fraction(columns.least_cost())
        if best[0] < min(bound, cost) and is_proven(document, bound, proof_, nodes):
            best = bound, proof_
    by, spent = "streamplace, column generation", time.process_time() - begin
    return MadeEntry(solution, *best, by, seconds, spent)


def as_text(x: Fraction) -> str:
    """Write a number exactly, as a decimal where that is short."""
    decimal = f"{float(x):.17f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == x else str(x)


def write(path: Path, document: object) -> None:
    """Write a document in one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")


def make(out: Path, instance: NamedInstance, nodes: int, seconds: float) -> dict[str, Any]:
    """Write the files of an instance; return its line of the table."""
    folder, objective = out / instance.name, instance.document["objective"]
    done = folder / MADE
    if not done.exists():
        made = solved(instance, nodes, seconds)
        certificate = {"bound": as_text(made.bound), "proof": made.proof}
        write(folder / "instance.json", instance.document)
        write(folder / f"{objective}.solution.json", made.solution)
        write(folder / f"{objective}.certificate.json", certificate)
        write(done, line_of(instance, made))
    return json.loads(done.read_text())


def line_of(instance: NamedInstance, made: MadeEntry) -> dict[str, Any]:
    """Line of an instance in the table."""
    value, bound = value_of(instance.document, made.solution), made.bound
    objective = instance.document["objective"]
    closed = abs(value - bound) <= CLOSED * value
    return LibraryEntry(
        instance.name,
        objective,
        float(value),
        float(bound),
        closed,
        "trivial" if objective == "throughput" and bound >= 1 else "search",
        made.by,
        round(made.seconds, 3),
        datetime.now(UTC).date().isoformat(),
        round(made.proof_seconds, 3) if closed and made.proof_seconds is not None else None,
    ).document()


def timed(items: Iterable[NamedInstance]) -> Iterator[tuple[NamedInstance, float]]:
    """Instances, and the processor seconds that each took to make."""
    begin = time.process_time()
    for item in items:
        yield item, time.process_time() - begin
        begin = time.process_time()


def main() -> None:
    """Make the whole library."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=["public", "hidden"], default="public")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("-o", type=Path, default=ROOT / "datasets/library")
    options = parser.parse_args()
    lines, origins = [], {}
    stopwatch.clock = time.process_time
    for instance, seconds in timed(instances(options.seed)):
        if not any(word in instance.name for word in options.only):
            continue
        lines.append(make(options.o, instance, options.nodes, seconds))
        size = {
            "operators": len(instance.document["operators"]),
            "devices": len(instance.document["devices"]) or len(instance.document["kinds"]),
        }
        origins[instance.name] = {"origin": instance.origin, **size}
        print(*lines[-1].values(), flush=True)
    if options.only != [""]:
        return
    (options.o / BEST).write_text("".join(json.dumps(line) + "\n" for line in lines))
    for path in options.o.rglob(MADE):
        path.unlink()
    split = {"split": "hidden"} if options.split == "hidden" else {"seed": options.seed}
    sums = {
        path.relative_to(options.o).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(options.o.rglob("*.json*"))
        if path.name != MANIFEST
    }
    manifest = json.dumps({**split, "instances": origins, "sha256": sums}, indent=1)
    (options.o / MANIFEST).write_text(manifest + "\n")


if __name__ == "__main__":
    main()
