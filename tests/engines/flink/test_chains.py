"""Names of a job's operators, from what Flink shows of it."""

import pytest

from streamplace.engines.flink.program.chains import TaskOperators, check_names, operators_of
from streamplace.engines.flink.rest.answers import JobVertex, PlanNode
from streamplace.engines.flink.rest.client import FlinkError


def found(*tasks: tuple[str, str]) -> list[TaskOperators]:
    """Operators of tasks: name, description."""
    vertices: list[JobVertex] = [
        {"id": f"v{i}", "name": name, "parallelism": 1, "status": "RUNNING"}
        for i, (name, _) in enumerate(tasks)
    ]
    nodes: list[PlanNode] = [
        {"id": f"v{i}", "description": text} for i, (_, text) in enumerate(tasks)
    ]
    return operators_of(vertices, nodes)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Source: lines", ["lines"]),
        ("[vertex-3]a -> (b -> c, d)", ["a", "b", "c", "d"]),
        (
            "Source: a -> (b, c -> out: Writer -> out: Committer)",
            ["a", "b", "c", "out", "out: Committer"],
        ),
        ("Source: to, fro -> f(x)", ["to, fro", "f(x)"]),
    ],
)
def test_fused_operators_are_read_from_the_name_of_their_task(
    task: str, expected: list[str]
) -> None:
    """What Flink puts around names goes."""
    assert found((task, ""))[0].names == tuple(expected)


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        # a pinned job tells which of its namesakes is which, in chains, too
        (
            [("Map -> Map", "any<br/>+- Map [namesake 3]<br/>"), ("Map", "Map [namesake 2]<br/>")],
            [("Map", "Map (3)"), ("Map (2)",)],
        ),
        # those of SQL are numbered in the order of the planner
        (
            [
                ("bids[11] -> Calc[12]", "[11]:Scan(x)<br/>+- [12]:Calc(x)<br/>"),
                ("Calc[9] -> out[13]: Writer", "[9]:Calc(y)<br/>+- out[13]: Writer<br/>"),
                ("part[3]", "part[3]<br/>"),  # only looks like one of SQL
            ],
            [("bids", "Calc (2)"), ("Calc", "out"), ("part[3]",)],
        ),
        # within one task their order makes no difference: they are placed together
        ([("Map -> Map", "")], [("Map", "Map (2)")]),
    ],
)
def test_operators_that_share_a_name_are_numbered(
    tasks: list[tuple[str, str]], names: list[tuple[str, ...]]
) -> None:
    assert [task.names for task in found(*tasks)] == names
    check_names(found(*tasks))


def test_texts_of_the_planner_are_kept() -> None:
    (task,) = found(("bids[1] -> out[2]: Writer", "[1]:Scan(&lt;x&gt;)<br/>+- out[2]: Writer<br/>"))
    assert task.shown == ("bids[1]", "out[2]: Writer")
    assert task.about == ("Scan(<x>)", "")
    assert task.texts == ("[1]:Scan(<x>)",)


def test_operators_of_one_name_in_several_tasks_are_refused_but_for_those_of_sql() -> None:
    """Flink calls operators Map that nobody has named; nobody can name those of the planner."""
    alike = [("Map", "Map<br/>")] * 2
    assert [task.unsure for task in found(*alike)] == [("Map",), ("Map (2)",)]
    with pytest.raises(FlinkError, match=r"operators 'Map', 'Map \(2\)' share a name, so"):
        check_names(found(*alike))
    check_names(found(*alike, ("Calc[9]", "[9]:Calc(y)<br/>")))
