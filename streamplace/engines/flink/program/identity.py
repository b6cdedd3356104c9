"""Names of operators that do not depend on how a job is submitted, chained and placed.

The pinning class (``java/PlacedIds.java``) names operators in the same way. The number that the SQL
planner gives to an operator is removed, because it changes with every submission. Operators that
then share a name are numbered in the order of the planner: ``Calc``, ``Calc (2)``. The plan of a
pinned job contains the numbers. Other programs must give each operator a name of its own.
"""

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streamplace.engines.flink.pin.hook import stem_of
from streamplace.engines.flink.program.chains import fused_operators
from streamplace.engines.flink.rest.answers import JobVertex, PlanNode
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.messages import listed


class TaskOperators(NamedTuple):
    """Operators of a task."""

    shown: tuple[str, ...]  # their names as Flink shows them, such as ``Source: bids[1]``, in order
    names: tuple[str, ...]  # their names in placements, such as ``bids``
    unsure: tuple[str, ...] = ()  # names that may belong to operators of other tasks instead
    about: tuple[str, ...] = ()  # description of each by the SQL planner, or an empty text
    texts: tuple[str, ...] = ()  # texts of operators in the plan that are not their names


class _Bearer(NamedTuple):
    """An operator with a certain name: its task, its position there, and its numbers."""

    task: int
    place: int
    planned: int
    numbered: int


def operators_of(
    vertices: Sequence[JobVertex], nodes: Sequence[PlanNode], expected: Iterable[str] = ()
) -> list[TaskOperators]:
    """Operators of each task of a job.

    ``nodes`` are those of the plan of the job. Names in ``expected`` may contain any characters.
    """
    plan = {node["id"]: node for node in nodes}
    texts = [plan[v["id"]].get("description", "") if v["id"] in plan else "" for v in vertices]
    fused = [
        fused_operators(vertex["name"], text, expected)
        for vertex, text in zip(vertices, texts, strict=True)
    ]
    bearers: dict[str, list[_Bearer]] = {}
    for i, operators in enumerate(fused):
        text = html.unescape(texts[i])
        for k, (shown, numbered, *_) in enumerate(operators):
            stem, planned = stem_of(shown, text)
            bearers.setdefault(stem, []).append(_Bearer(i, k, planned, numbered))
    names = [[""] * len(operators) for operators in fused]
    unsure: list[list[str]] = [[] for _ in fused]
    for stem, group in bearers.items():
        is_sure = _sort(group)
        for n, bearer in enumerate(group, 1):
            number = bearer.numbered or n
            name = f"{stem} ({number})" if number > 1 else stem
            names[bearer.task][bearer.place] = name
            if not is_sure:
                unsure[bearer.task].append(name)
    return [
        TaskOperators(
            tuple(one.shown for one in operators),
            tuple(own),
            tuple(doubtful),
            tuple(one.about for one in operators),
            tuple(one.text for one in operators if one.text),
        )
        for operators, own, doubtful in zip(fused, names, unsure, strict=True)
    ]


def check_names(tasks: Sequence[TaskOperators]) -> None:
    """Raise FlinkError if operators of several tasks share a name, and nothing tells them apart.

    A job of SQL is accepted, because nobody can name what its planner adds.
    """
    unsure = [name for task in tasks for name in task.unsure]
    if unsure and not any(text for task in tasks for text in task.about):
        raise FlinkError(
            f"operators {listed(unsure)} share a name, so they cannot be told apart; give each a "
            "name of its own in the program, with name(), and start the job again"
        )


def _sort(group: list[_Bearer]) -> bool:
    """Sort the operators that share a name; return whether their order is known."""
    tasks = {bearer.task for bearer in group}
    if len(tasks) == 1 or any(bearer.numbered > 1 for bearer in group):
        group.sort(key=lambda bearer: bearer.numbered or 1)
    elif all(bearer.planned for bearer in group):
        group.sort(key=lambda bearer: bearer.planned)
    else:
        return False
    return True
