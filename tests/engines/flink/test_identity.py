"""Names of a job's operators, from what Flink shows of it."""

import pytest

from streamplace.engines.flink.program.identity import TaskOperators, check_names, operators_of
from streamplace.engines.flink.rest.answers import JobVertex, PlanNode
from streamplace.engines.flink.rest.client import FlinkError


def found(*tasks: tuple[str, str, str, list[str]]) -> list[TaskOperators]:
    """Operators of tasks: id, name, description, inputs."""
    vertices: list[JobVertex] = [
        {"id": i, "name": name, "parallelism": 1, "status": "RUNNING"} for i, name, _, _ in tasks
    ]
    nodes: list[PlanNode] = [
        {"id": i, "description": text, "inputs": [{"id": one} for one in inputs]}
        for i, _, text, inputs in tasks
    ]
    return operators_of(vertices, nodes)


@pytest.mark.parametrize(
    ("task", "known", "expected"),
    [
        ("Source: lines", (), ["lines"]),
        ("a -> b", (), ["a", "b"]),
        ("a -> (b -> c, d)", (), ["a", "b", "c", "d"]),
        (
            "Source: a -> (b, c -> out: Writer -> out: Committer)",
            (),
            ["a", "b", "c", "out", "out: Committer"],
        ),
        ("Source: to, fro -> x", ("to, fro", "x"), ["to, fro", "x"]),
        ("f(x) -> g", ("f(x)", "g"), ["f(x)", "g"]),
    ],
)
def test_fused_operators_are_read_from_the_name_of_their_task(
    task: str, known: tuple[str, ...], expected: list[str]
) -> None:
    """What Flink puts around names goes; names that are known may hold anything."""
    vertex: JobVertex = {"id": "v", "name": task, "parallelism": 1, "status": "RUNNING"}
    assert operators_of([vertex], [], known)[0].names == tuple(expected)


def test_a_pinned_job_tells_which_of_its_namesakes_is_which() -> None:
    """In chains, too, whose operators' ids nobody knows."""
    tasks = found(
        ("v0", "Map -> Map", "any<br/>+- Map [namesake 3]<br/>", []),
        ("v1", "Map", "Map [namesake 2]<br/>", []),
    )
    assert [task.names for task in tasks] == [("Map", "Map (3)"), ("Map (2)",)]


def test_operators_of_sql_are_known_without_the_planners_numbers() -> None:
    """Numbered in their order; a name that only looks like one stays."""
    tasks = found(
        ("v0", "bids[11] -> Calc[12]", "[11]:Scan(x)<br/>+- [12]:Calc(x)<br/>", []),
        ("v1", "Calc[9] -> out[13]: Writer", "[9]:Calc(y)<br/>+- out[13]: Writer<br/>", []),
        ("v2", "part[3]", "part[3]<br/>", []),
    )
    names = [("bids", "Calc (2)"), ("Calc", "out"), ("part[3]",)]
    assert [task.names for task in tasks] == names
    assert [task.about for task in tasks] == [("Scan(x)", "Calc(x)"), ("Calc(y)", ""), ("",)]


def test_operators_of_one_name_in_several_tasks_are_refused_but_for_those_of_sql() -> None:
    """Flink calls operators Map that nobody has named; nobody can name those of the planner."""
    alike = [(one, "Map", "Map<br/>", list[str]()) for one in "ab"]
    assert [task.unsure for task in found(*alike)] == [("Map",), ("Map (2)",)]
    with pytest.raises(FlinkError, match=r"operators 'Map', 'Map \(2\)' share a name, so"):
        check_names(found(*alike))
    check_names(found(*alike[:1]))
    check_names(found(*alike, ("c", "Calc[9]", "[9]:Calc(y)<br/>", [])))


def test_the_order_of_namesakes_within_one_task_makes_no_difference() -> None:
    """They are placed together."""
    (task,) = found(("v0", "Map -> Map", "", []))
    assert task == TaskOperators(("Map", "Map"), ("Map", "Map (2)"), about=("", ""))
