"""Fixed parallelism: operators whose parallelism is set by the program, not by its submission."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from streamplace.engines.flink.pin.fitting import check_upload
from streamplace.engines.flink.program.chains import unfused
from streamplace.engines.flink.program.identity import operators_of
from streamplace.engines.flink.program.jars import jar_copy
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.uploads import own_name, uploaded
from streamplace.engines.flink.rest.answer_shapes import PlanNode
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.io.files import spot
from streamplace.model.messages import quoted

TRIED = (1, 2)
"""Default parallelisms that the job is planned with; maximum parallelisms above 1 allow both."""
CHAINING = "pipeline.operator-chaining.enabled"


def fixed_parallelism(rest: Rest, program: Program) -> dict[str, int]:
    """Operator → parallelism, for operators whose parallelism the program sets.

    The JobManager plans the program with two default parallelisms, without chaining; nothing runs.

    Raises
    ------
    FlinkError
        When the program cannot be planned, or its two plans have different operators.
    """
    nodes = planned_twice(rest, program).fixed
    return dict(zip(_names(nodes), (node.get("parallelism", 1) for node in nodes), strict=True))


class PlannedProgram(NamedTuple):
    """Differences between the plans of a program, without chaining, at two parallelisms.

    Attributes
    ----------
    fixed
        Nodes whose parallelism the program sets.
    loose
        Ids of both ends of the streams that Flink forwards only where both ends have equally many
        subtasks.
    """

    fixed: list[PlanNode]
    loose: set[tuple[str, str]]


def planned_twice(rest: Rest, program: Program) -> PlannedProgram:
    """Plan a program with two default parallelisms, and compare the plans.

    Operators are compared by their ids, because some names change with every plan: the SQL planner
    numbers operators, and windows are named after addresses of functions.
    """
    program.check()
    check_upload(rest)
    name = own_name(f"planned-{program.jar.name}")
    with uploaded(rest, lambda: jar_copy(program.jar, program.libraries, name)) as jar:
        low, high = (_planned(rest, jar.id, program, number) for number in TRIED)
    if low.keys() != high.keys():
        raise FlinkError(
            "the program has other operators with another parallelism, so that which of them have "
            "a parallelism of their own cannot be told"
        )
    fixed = [
        node
        for id_, node in low.items()
        if node.get("parallelism", 1) == high[id_].get("parallelism", 1)
    ]
    return PlannedProgram(fixed, _forwarded(low) - _forwarded(high))


def _forwarded(plan: Mapping[str, PlanNode]) -> set[tuple[str, str]]:
    """Ids of both ends of the streams that a plan forwards."""
    return {
        (row["id"], target)
        for target, node in plan.items()
        for row in node.get("inputs", ())
        if row.get("ship_strategy") == "FORWARD"
    }


def fixed_tasks(rest: Rest, program: Program, tasks: Mapping[str, int]) -> frozenset[str]:
    """Tasks of a running job whose parallelism its program sets; Flink may have chained them.

    Parameters
    ----------
    tasks
        Name of each task, as in a profile, → its parallelism.

    Raises
    ------
    FlinkError
        When the program sets another parallelism than the job has, and so is not the job's program.
    """
    fixed, found = fixed_parallelism(rest, program), set[str]()
    for task, parallelism in tasks.items():
        for name in {task, *unfused(task, fixed)} & fixed.keys():
            if fixed[name] != parallelism:
                raise FlinkError(
                    f"{spot(program.jar)} sets parallelism {fixed[name]} for operator "
                    f"{quoted(name)}, which runs with {parallelism}; give the jar and the "
                    "arguments that the job was submitted with"
                )
            found.add(task)
    return frozenset(found)


def _planned(rest: Rest, jar: str, program: Program, parallelism: int) -> Mapping[str, PlanNode]:
    """Operators by their ids, as the JobManager plans a program."""
    request: dict[str, Any] = {
        "entryClass": program.entry,
        "programArgsList": [*program.arguments],
        "parallelism": parallelism,
        "flinkConfiguration": program.flink_settings({CHAINING: "false"}),
    }
    answer = rest.post(f"/jars/{quote(jar, safe='')}/plan", request)
    nodes: list[PlanNode] = answer["plan"]["nodes"]
    return {node["id"]: node for node in nodes}


def _names(nodes: list[PlanNode]) -> list[str]:
    """Name of each operator, as placements call it."""
    vertices: list[Any] = [
        {"id": node["id"], "name": node.get("description", "").removesuffix("<br/>")}
        for node in nodes
    ]
    return [operators.names[0] for operators in operators_of(vertices, nodes)]
