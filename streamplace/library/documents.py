"""Instances and solutions as the checker reads them."""

from typing import Any

import numpy as np

from streamplace.errors import ProblemError
from streamplace.io.fields import plain
from streamplace.io.problems import problem_to_dict
from streamplace.model.arrays import Floats
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective

OPERATOR = ("name", "ipt", "payload", "rate", "memory", "fires")
STREAM = ("from", "to", "selectivity", "payload")
CLUSTER = ("devices", "links", "bandwidth", "latency", "overhead", "gap")
DEVICE = ("name", "mips", "cores", "memory", "egress", "ingress")
LINK = ("from", "to", "bandwidth", "latency")


def instance_document(problem: Problem) -> dict[str, Any]:
    """Document of a problem in the part of the native format that the checker knows.

    Pins, required tags and allowed devices become allowed devices. A window becomes a selectivity:
    what it emits at full rate, as the closed form has it.

    Raises
    ------
    ProblemError
        When the problem has what the checker does not know.
    """
    native = problem_to_dict(problem)
    graph, instance = native["graph"], problem.instance
    if any("input" in stream for stream in graph["streams"]):
        raise ProblemError("streams share an input, which library instances cannot express")
    if problem.graph.streams.ipt.any() or problem.graph.streams.chained().any():
        raise ProblemError("streams cost CPU or are chained, which an instance cannot express")
    if instance.overhead_per_byte:
        raise ProblemError("remote bytes cost CPU, which library instances cannot express")
    parallelism = _whole(instance.parallelism)
    operators = [_part(row, OPERATOR) for row in graph["operators"]]
    for row, subtasks in zip(operators, parallelism, strict=True):
        row |= {"parallelism": subtasks} if subtasks != 1 else {}
    streams = [_part(row, STREAM) for row in graph["streams"]]
    for k in instance.windows[:, 0].astype(int).tolist():
        received = float(instance.input_rate[k])
        emitted = float(instance.output_rate[k]) / received if received else 0.0
        for row in streams:
            if row["from"] == operators[k]["name"]:
                row["selectivity"] = plain(row.get("selectivity", 1) * emitted)
    fires = {"fires": graph["fires"]} if "fires" in graph else {}
    document = {
        "graph": {"name": graph["name"], **fires, "operators": operators, "streams": streams},
        "cluster": _cluster(native["cluster"]),
    }
    if rules := _rules(problem):
        document["constraints"] = rules
    return document | ({"seconds": native["seconds"]} if "seconds" in native else {})


def solution_document(
    problem: Problem, placement: Placement, objective: Objective, value: float, placer: str
) -> dict[str, Any]:
    """Document of a placement, which is a native placement file as well."""
    document: dict[str, Any] = {
        "graph": problem.graph.name,
        "placer": placer,
        "objective": objective.name,
        "value": value,
        "assignment": placement.as_dict(),
    }
    if objective.kind == "pass":
        document |= {"queue": "order", "priority": _line(problem, placement)}
    return document


def _line(problem: Problem, placement: Placement) -> dict[str, int]:
    """Priorities by which every device starts its operators as the pass of a placement does."""
    from streamsim.passes import schedule

    from streamplace.objectives.makespan.options import PassOptions

    if placement.priority is not None and placement.queue == "order":
        start = -np.asarray(placement.priority)
    else:
        rules, priorities = PassOptions().rules_of(placement)
        start = schedule(problem.one_pass, placement.index, rules, priorities=priorities).start
    position = np.empty(problem.n_operators, np.int64)
    position[problem.instance.order] = np.arange(problem.n_operators)
    ranked = np.lexsort((position, start)).tolist()
    names = problem.graph.operators.name
    return {names[v]: problem.n_operators - i for i, v in enumerate(ranked)}


def _whole(parallelism: Floats) -> list[int]:
    if (parallelism != np.rint(parallelism)).any():
        raise ProblemError("subtasks have unequal shares, which library instances cannot express")
    return [int(subtasks) for subtasks in parallelism]


def _part(row: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {key: row[key] for key in fields if key in row}


def _cluster(tables: dict[str, Any]) -> dict[str, Any]:
    cluster = _part(tables, CLUSTER)
    cluster["devices"] = [_part(row, DEVICE) for row in tables["devices"]]
    if "links" in tables:
        cluster["links"] = [_part(row, LINK) for row in tables["links"]]
    speeds = [
        row["bandwidth"] for row in (cluster, *cluster.get("links", ())) if "bandwidth" in row
    ]
    if not np.isfinite(np.array(speeds, np.float64)).all():
        raise ProblemError("a link has no limit, which library instances cannot express")
    return cluster


def _rules(problem: Problem) -> dict[str, Any]:
    """Constraints: devices that each operator may use, and groups together or apart."""
    rules = problem.rules
    if rules is None:
        return {}
    names, devices = problem.graph.operators.name, problem.cluster.devices.name
    allowed = rules.allowed[rules.unit]
    tables = {
        "allowed": {
            names[v]: [devices[d] for d in np.flatnonzero(allowed[v]).tolist()]
            for v in np.flatnonzero(~allowed.all(axis=1)).tolist()
        },
        "colocate": [sorted(group) for group in problem.constraints.colocate],
        "exlocate": [sorted(group) for group in problem.constraints.exlocate],
    }
    return {key: table for key, table in tables.items() if table}
