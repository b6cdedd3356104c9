"""An example of the document with every part."""

import json
from typing import Any

from pydantic import TypeAdapter

from streamplace import Cluster, Constraints, Operator, Problem, Stream, StreamGraph, Window
from streamplace.model.devices import Device, Devices
from streamplace.objectives.registry import OBJECTIVES
from streamplace.report.document import (
    VERSION,
    ComparedPart,
    ComparisonPart,
    CurvePart,
    MachinesPart,
    ObjectivePart,
    PlanPart,
    ReportDocument,
)
from streamplace.report.problems import Shown, problem_part

_DESCRIBED = TypeAdapter(ReportDocument)
RATE = ObjectivePart(name="throughput", sense="max", unit="")


def check_document(text):
    """Return the document of a text whose fields are all described and of their types."""
    document: dict[str, Any] = json.loads(text)
    described = _DESCRIBED.validate_json(text, strict=True)
    assert _DESCRIBED.dump_python(described, mode="json") == document
    return document


def example_problem():
    """Two sources, a window, a join of subtasks, and unequal devices and links."""
    graph = StreamGraph.of(
        "clicks",
        [
            Operator("clicks", ipt=4e4, payload=400, rate=2e4, kind="source"),
            Operator("orders", ipt=6e4, payload=900, rate=5e3, kind="source"),
            Operator("parse", ipt=1e5, payload=300, kind="map"),
            Operator("count", ipt=5e4, payload=60, window=Window(10, 2, 1, 0.01), memory=2e9),
            Operator("join#0", ipt=2e5, payload=700, memory=1e9),
            Operator("join#1", ipt=2e5, payload=700, memory=1e9),
            Operator("sink <script>", ipt=3e4, kind="sink"),
        ],
        [
            Stream("clicks", "parse"),
            Stream("parse", "count", 0.8),
            Stream("parse", "join#0", 0.5),
            Stream("parse", "join#1", 0.5),
            Stream("orders", "join#0", 0.5),
            Stream("orders", "join#1", 0.5),
            Stream("join#0", "sink <script>", 0.3),
            Stream("join#1", "sink <script>", 0.3),
            Stream("count", "sink <script>"),
        ],
    )
    devices = Devices.of(
        [
            Device("edge", 1000, memory="4 GB"),
            Device("m0", 2500, 2, memory="8 GB", egress="500 Mbps"),
            Device("m1", 2500, 2, memory="8 GB", egress="500 Mbps"),
            Device("big", 3000, 4),
        ]
    )
    mbps = [[0, 50, 50, 20], [50, 0, 1000, 100], [50, 1000, 0, 100], [20, 100, 100, 0]]
    ms = [[0, 5, 5, 20], [5, 0, 0.2, 8], [5, 0.2, 0, 8], [20, 8, 8, 0]]
    cluster = Cluster(
        devices,
        [[1e6 * x or 1 for x in row] for row in mbps],
        [[x / 1e3 for x in row] for row in ms],
        overhead_s=1e-6,
    )
    rules = Constraints(pin={"clicks": "edge"}, exlocate=[{"join#0", "join#1"}])
    return Problem(graph, cluster, rules)


def example():
    """Document about a problem, with made-up numbers in the other parts."""
    problem = example_problem()
    placed = [
        Shown("auto", problem.placement([0, 1, 1, 1, 1, 2, 2]), 1.0),
        Shown("metis", problem.placement([0, 0, 3, 3, 1, 2, 3])),
    ]
    part = problem_part(problem, placed, OBJECTIVES["throughput"])
    part["command"] = "streamplace simulate graph.json /dev/stdin --cluster cluster.toml"
    return ReportDocument(
        version=VERSION,
        made_by="streamplace 0.1.0",
        title="clicks",
        notes=["This is an example."],
        problems=[part],
        comparison=_comparison(),
        plan=_plan(),
    )


def _comparison():
    paired = {
        "graphs": 2, "better": 2, "equal": 0, "worse": 0, "sign_test": 0.5,
        "signed_rank_test": 0.5, "ratio": 1.1952, "interval": None,
    }  # fmt: skip
    rows = [
        {"placer": "metis", "mean": 0.8, "min": 0.7, "ms_per_graph": 1.2},
        {"placer": "auto", "mean": 0.95, "min": 0.9, "ms_per_graph": 900.0,
         "paired": {"metis": paired}},
    ]  # fmt: skip
    compared = ComparedPart(
        objective=RATE,
        rate=None,
        placers=["metis", "auto"],
        rows=rows,
        values=[[0.7, 0.9], [0.9, 1.0]],
        milliseconds=[[1.0, 1.4], [880.0, 920.0]],
        optimum=[None, 1.0],
    )
    return ComparisonPart(
        graphs=["clicks", "other"],
        problem=[0, None],
        reference="metis",
        aliases={"mine": "pilot:weights=best.safetensors"},
        results=[compared],
        failures={"third": "no placement fits into memory"},
    )


def _plan():
    return PlanPart(
        rate=25000,
        cost=0.6,
        bound=0.55,
        gap=0.0909,
        cheapest=False,
        priced=True,
        machines=[MachinesPart(name="small", number=3, price=0.2, contents="parse 2, count")],
        free={"cpu": 0.2, "memory": 0.6},
        carries=26000,
        curve=[
            CurvePart(at=20000, cost=0.4, bound=0.4, gap=0, machines={"small": 2}),
            CurvePart(at=25000, cost=0.6, bound=0.55, gap=0.0909, machines={"small": 3}),
        ],
    )
