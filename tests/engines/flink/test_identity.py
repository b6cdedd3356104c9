"""Names of a job's operators, from what Flink shows of it."""

import pytest

from streamplace.engines.flink.program.identity import TaskOperators, operators_of, place_hash
from streamplace.engines.flink.rest.answers import JobVertex, PlanNode


def identifier(place: int, *inputs: str, chained: int = 0) -> str:
    """Id that Flink gives an operator at a place of the stream graph."""
    own = place_hash(place, chained)
    for other in inputs:
        own = bytes((a * 37 & 255) ^ b for a, b in zip(own, bytes.fromhex(other), strict=True))
    return own.hex()


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


SOURCE = identifier(0)
FIRST, SECOND = identifier(1, SOURCE), identifier(2, SOURCE)


@pytest.mark.parametrize("chained", [0, 2], ids=["unchained", "as it was chained before"])
def test_namesakes_are_numbered_by_their_place_in_the_stream_graph(chained: int) -> None:
    """However Flink lists them."""
    join = identifier(3, SECOND, FIRST, chained=chained)
    tasks = found(
        (SOURCE, "Source: in", "Source: in<br/>", []),
        (SECOND, "Map", "Map<br/>", [SOURCE]),
        (FIRST, "Map", "Map<br/>", [SOURCE]),
        (join, "Map", "Map<br/>", [FIRST, SECOND]),
    )
    assert [task.names for task in tasks] == [("in",), ("Map (2)",), ("Map",), ("Map (3)",)]
    assert not any(task.unsure for task in tasks)


def test_a_pinned_job_tells_which_of_its_namesakes_is_which() -> None:
    """In chains, too, whose operators' ids nobody knows."""
    tasks = found(
        ("v0", "Map -> Map", "any<br/>+- Map [namesake 3]<br/>", []),
        ("v1", "Map", "Map [namesake 2]<br/>", []),
    )
    assert [task.names for task in tasks] == [("Map", "Map (3)"), ("Map (2)",)]
    assert not any(task.unsure for task in tasks)


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


@pytest.mark.parametrize(
    "ids", [("ab" * 16, FIRST), ("no id", "another")], ids=["ids by uid", "no ids"]
)
def test_namesakes_whose_place_is_not_known_are_told(ids: tuple[str, str]) -> None:
    tasks = found(*((one, "Map", "Map<br/>", []) for one in ids))
    assert [task.unsure for task in tasks] == [("Map",), ("Map (2)",)]


def test_the_order_of_namesakes_within_one_task_makes_no_difference() -> None:
    """They are placed together."""
    (task,) = found(("v0", "Map -> Map", "", []))
    assert task == TaskOperators(("Map", "Map"), ("Map", "Map (2)"), about=("", ""))
