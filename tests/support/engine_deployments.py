"""Named deployments that every export meets."""

import itertools

from problems import PROBLEMS, fork_join

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import EXPORTS
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph

GENERAL = [name for name in EXPORTS if not EXPORTS[name].of]
"""Exports that take any graph."""
ODD_NAMES = (
    "plain",
    "two words",
    "größe → 大",
    "q\"uo'te",
    "back\\slash\\u000a",
    "a,b;c:d",
    "{brace} $(x) ${y} %s",
    "*/ --> <b>&amp;</b> #1",
    "node",
    " padded ",
    "\\",
    "=1+1",
    "esac",
)
ODD_GRAPH = "o'd\"d {0} */ \\u000a } static { System.exit(3); } // \\user"


def shop():
    """Two sources, tags, groups, an operator of two subtasks, devices of several kinds."""
    operators = [
        Operator("clicks", ipt=5e3, payload=300, rate=2e4, kind="source"),
        Operator("parse", ipt=6e4, payload=120, kind="map"),
        Operator("orders", ipt=8e3, payload=1200, rate=500, kind="source"),
        Operator("join", ipt=9e4, payload=400, parallelism=2, kind="join"),
        Operator("score", ipt=4e5, payload=64, requires={"gpu"}),
        Operator("sink", ipt=3e3),
    ]
    streams = [
        Stream("clicks", "parse"),
        Stream("parse", "join", 0.25, partitioning="hash"),
        Stream("orders", "join", partitioning="hash"),
        Stream("join", "score"),
        Stream("score", "sink"),
        Stream("score", "sink", 0.1, payload=9000),
    ]
    devices = [Device("box0"), Device("box1", cores=2, memory=8e9), Device("gpu", tags={"gpu"})]
    rules = Constraints(
        pin={"clicks": "box0"}, colocate=[{"clicks", "parse"}], exlocate=[{"join", "score"}]
    )
    return Problem(StreamGraph.of("shop", operators, streams), Cluster.of(devices), rules)


def odd():
    """A chain of operators, and devices, that are called whatever no format likes."""
    operators = [Operator(name, ipt=1e4, payload=1e3) for name in ODD_NAMES]
    operators[0] = Operator(ODD_NAMES[0], rate=100.0)
    streams = [Stream(a, b) for a, b in itertools.pairwise(ODD_NAMES)]
    cluster = Cluster.of([Device(name, tags={name}) for name in ODD_NAMES])
    problem = Problem(StreamGraph.of(ODD_GRAPH, operators, streams), cluster)
    return Deployment(problem, problem.placement(range(len(ODD_NAMES))))


def legal(name):
    """A legal placement of one of the named problems."""
    problem = PROBLEMS[name]
    rows = [v % problem.n_devices for v in range(problem.n_operators)]
    return Deployment(problem, problem.placement(problem.repaired(rows)))


def spread():
    """Six operators on five devices, neighbours apart."""
    problem = Problem(fork_join(2), Cluster.uniform(5))
    return Deployment(problem, problem.placement([v % 5 for v in range(6)]))


def tasks():
    """A task graph: two tasks between two, one of them where there is a GPU."""
    operators = [
        Operator("load", ipt=1e6, payload=4e6),
        Operator("left", ipt=2e6, payload=1e6, requires={"gpu"}),
        Operator("right", ipt=3e6, payload=1e6),
        Operator("add", ipt=1e6),
    ]
    ways = [("load", "left"), ("load", "right"), ("left", "add"), ("right", "add")]
    graph = StreamGraph.of("tasks", operators, [Stream(*ends) for ends in ways], fires="all")
    cluster = Cluster.of([Device("cpu", cores=3), Device("gpu", tags={"gpu"})])
    return Deployment.of(Problem(graph, cluster), TASKS)


def schedule():
    """The same task graph with an order that its devices hold."""
    problem, placement = tasks().problem, tasks().placement
    return Deployment(problem, problem.placement(placement.index, [4, 2, 3, 1], "order"))


TASKS = {"load": "cpu", "left": "gpu", "right": "cpu", "add": "cpu"}
WHOLE = {
    "clicks": "box0",
    "parse": "box0",
    "orders": "box1",
    "join": "box1",
    "score": "gpu",
    "sink": "box1",
}
SPLIT = {name: device for name, device in WHOLE.items() if name != "join"} | {
    "join#0": "box0",
    "join#1": "box1",
}
DEPLOYMENTS = {
    "spread over five": spread(),
    "shop": Deployment.of(shop(), WHOLE),
    "shop by subtasks": Deployment.of(shop(), SPLIT),
    "odd names": odd(),
    "tasks": tasks(),
    "schedule": schedule(),
    **{name: legal(name) for name in ("lone", "parallel streams", "many sources", "constrained")},
}
