"""Fixed parallelism: operators whose parallelism is set by the program, not by its submission."""

import html
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from streamplace.flink.program.jars import jar_copy
from streamplace.flink.program.operator_names import FUSED, LINE_END, operators_in, operators_of
from streamplace.flink.program.program import Program
from streamplace.flink.program.submission import unique_name, uploaded
from streamplace.flink.rest.answers import PlanNode
from streamplace.flink.rest.client import FlinkError, Rest
from streamplace.flink.rest.plan import FlinkTask
from streamplace.io.files import spot
from streamplace.model import StreamGraph
from streamplace.model.message_text import quoted

PARALLELISMS = (1, 2)
"""Default parallelisms of the two plans; maximum parallelisms above 1 allow both."""
_CHANGING = re.compile(r"^\[\d{1,8}\]:|(?<=\$\$Lambda)[$/][\w$/]*|@[0-9a-f]{1,16}\b")
"""Parts of names that change: numbers of the SQL planner, names of lambdas, and addresses."""
CHAINING = "pipeline.operator-chaining.enabled"


class PlannedProgram(NamedTuple):
    """Operators of a program, from its plans, without chaining, at two parallelisms."""

    name: Mapping[str, str]  # id of each operator → its name
    fixed: Mapping[str, int]  # id of each operator for which the program sets one → parallelism


def planned_twice(rest: Rest, program: Program) -> PlannedProgram:
    """Plan a program with two default parallelisms, and compare the plans; nothing runs.

    Operators are compared by their ids, because some names change with every plan: the SQL planner
    numbers operators, and windows are named after addresses of functions. Raises FlinkError if the
    program cannot be planned, or if its two plans have different operators.
    """
    program.check()
    name = unique_name(f"planned-{program.jar.name}")
    copy = jar_copy(program.jar, program.libraries, name)
    with copy as file, uploaded(rest, file) as jar:
        low, high = (_planned(rest, jar.id, program, number) for number in PARALLELISMS)
    if low.keys() != high.keys():
        raise FlinkError(
            "the program has other operators with another default parallelism, so it is unknown "
            "which parallelism the program sets; leave out JAR, and the plan may change the "
            "parallelism of every operator"
        )
    numbers = {id_: node.get("parallelism", 1) for id_, node in low.items()}
    fixed = {id_: n for id_, n in numbers.items() if n == high[id_].get("parallelism", 1)}
    names = dict(zip(low, _names([*low.values()]), strict=True))
    return PlannedProgram(names, fixed)


def tasks_fixed_by(
    planned: PlannedProgram, jar: Path, tasks: Sequence[FlinkTask]
) -> frozenset[str]:
    """Find the tasks of a running job whose parallelism a planned program sets.

    The jar is for messages. Flink may have chained the tasks of the job. Operators may share a name
    and have different numbers of subtasks. Raises FlinkError if the program sets another
    parallelism than the job has, because then it is not the program of the job.
    """
    free = {name for id_, name in planned.name.items() if id_ not in planned.fixed}
    fixed: dict[str, set[int]] = {}
    for id_, number in planned.fixed.items():
        if planned.name[id_] not in free:
            fixed.setdefault(planned.name[id_], set()).add(number)
    fixed_tasks = set[str]()
    for task in tasks:
        names = {task.name, *operators_in(task.name), *map(stable_name, task.texts)}
        for name in names & fixed.keys():
            if task.parallelism not in fixed[name]:
                numbers = " or ".join(map(str, sorted(fixed[name])))
                raise FlinkError(
                    f"{spot(jar)} sets parallelism {numbers} for operator "
                    f"{quoted(name)}, which runs with {task.parallelism}; give the jar and the "
                    "arguments that the job was submitted with, or leave them out"
                )
            fixed_tasks.add(task.name)
    return frozenset(fixed_tasks)


def with_loose_streams(graph: StreamGraph, fixed: Collection[str]) -> StreamGraph:
    """Return the graph without forwarding between fixed operators and others.

    Flink forwards such a stream if both ends have equally many subtasks, and rebalances it
    otherwise. If the program itself demands forwarding, it cannot be planned with two default
    parallelisms.
    """
    kinds = tuple(
        "rebalance"
        if stream.partitioning == "forward" and (stream.source in fixed) != (stream.target in fixed)
        else stream.partitioning
        for stream in graph.streams
    )
    return replace(graph, streams=replace(graph.streams, partitioning=kinds))


def stable_name(name: str) -> str:
    """Name or description of an operator without the parts that change with every plan.

    >>> stable_name("[21]:Calc(select=[a])")
    'Calc(select=[a])'
    >>> stable_name("Window(Count, Job$$Lambda$17/0x7f35@e2475c39)")
    'Window(Count, Job$$Lambda)'
    """
    return _CHANGING.sub("", name)


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


def _names(nodes: Sequence[PlanNode]) -> list[str]:
    """Name of each operator in placements, without the parts that change with every plan."""
    vertices: list[Any] = [
        {
            "id": node["id"],
            "name": html.unescape(node.get("description", "")).removesuffix(LINE_END),
        }
        for node in nodes
    ]
    operators = operators_of(vertices, nodes)
    return [stable_name(FUSED.join(operator.name for operator in task)) for task in operators]
