"""Names of operators, which do not depend on how a job is submitted, chained and placed.

A task is one operator, or several that Flink chained (fused). The pinning class
(``java/PlacedIds.java``) names operators in the same way. The number that the SQL planner gives to
an operator is removed, because it changes with every submission. Operators that then share a name
are numbered in the order of the planner: ``Calc``, ``Calc (2)``. The plan of a pinned job contains
these numbers. In other programs, operators of one name are numbered in the order of the tasks; the
pinning class may see them in another order, so these numbers are not reliable.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from streamplace.flink.pin.hook import stem_of
from streamplace.flink.rest.answers import JobVertex, PlanNode

FUSED = " -> "
"""Separator of the names of operators that Flink fused into one task."""
BESIDE = ", "
"""Separator of the branches of a chain, in brackets: ``a -> (b, c -> d)``."""
LINE_END = "<br/>"
"""End of each line of a task's description in Flink's plan."""
_INDEX = re.compile(r"^\[vertex-\d+\]")
"""Prefix of task names that ``pipeline.vertex-name-include-index-prefix`` adds."""
_BRANCH = re.compile(r"^(?::  |   )*(?::- |\+- )")
"""Prefix of an operator in the plan, which draws a chain as a tree with one operator per line."""
_NAMESAKE = re.compile(r" \[namesake (\d{1,8})\]$")
"""Suffix that the pinning class adds to the description of an operator with namesakes."""
_PLANNED = re.compile(r"\[\d{1,8}\]:(.+)", re.DOTALL)
"""Number and description of an operator, as the SQL planner writes them."""


@dataclass(slots=True)
class TaskOperator:
    """An operator of a task; its name is set when all operators of the job are known."""

    task: int
    shown: str  # name that Flink shows, such as ``Source: bids[1]``
    text: str  # text in the plan, if it is not the shown name
    number: int  # number among operators of one name, if the plan contains it; otherwise 0
    planned: int = 0  # number by the SQL planner; otherwise 0
    name: str = ""  # name in placements, such as ``bids``
    is_sure: bool = True  # False if the name may belong to an operator of another task

    @property
    def about(self) -> str:
        """Description by the SQL planner; empty if there is none."""
        return match[1] if (match := _PLANNED.fullmatch(self.text)) else ""


def operators_of(
    vertices: Sequence[JobVertex], nodes: Sequence[PlanNode]
) -> list[list[TaskOperator]]:
    """Operators of each task of a job, in order; ``nodes`` are the nodes of its plan."""
    plan = {node["id"]: html.unescape(node.get("description", "")) for node in nodes}
    tasks = [_fused(i, v["name"], plan.get(v["id"], "")) for i, v in enumerate(vertices)]
    namesakes: dict[str, list[TaskOperator]] = {}
    for vertex, operators in zip(vertices, tasks, strict=True):
        for operator in operators:
            stem, operator.planned = stem_of(operator.shown, plan.get(vertex["id"], ""))
            namesakes.setdefault(stem, []).append(operator)
    for stem, operators in namesakes.items():
        is_sure = True
        if len({o.task for o in operators}) == 1 or any(o.number > 1 for o in operators):
            operators.sort(key=lambda operator: operator.number or 1)
        elif all(operator.planned for operator in operators):
            operators.sort(key=lambda operator: operator.planned)
        else:
            is_sure = False
        for n, operator in enumerate(operators, 1):
            number = operator.number or n
            operator.name = f"{stem} ({number})" if number > 1 else stem
            operator.is_sure = is_sure
    return tasks


def _fused(task: int, name: str, tree: str) -> list[TaskOperator]:
    """Operators of a task, from its name, with their texts in the plan if it has one for each."""
    names = operators_in(name)
    texts = [_BRANCH.sub("", row) for row in tree.removesuffix(LINE_END).split(LINE_END)]
    if len(texts) != len(names):
        texts = names
    numbers = [int(match[1]) if (match := _NAMESAKE.search(text)) else 0 for text in texts]
    texts = [_NAMESAKE.sub("", text) for text in texts]
    return [
        TaskOperator(task, shown, text if text != shown else "", number)
        for shown, text, number in zip(names, texts, numbers, strict=True)
    ]


def operators_in(task: str) -> list[str]:
    """Operators of a task, from its name in Flink, in a graph, or in a placement.

    Arrows and commas within brackets belong to names, and so do commas outside of the brackets of
    branches.

    >>> operators_in("Source: a, b -> Calc(select=[x -> y, z]) -> (c, d -> e)")
    ['Source: a, b', 'Calc(select=[x -> y, z])', 'c', 'd', 'e']
    """
    task = _INDEX.sub("", task)
    names: list[str] = []
    partner, lists = _brackets(task)
    ends: list[int] = []  # of the branches of chains that have begun
    start = at = 0
    while at < len(task):
        if ends and at == ends[-1]:
            step = 1
            ends.pop()
        elif task.startswith(FUSED, at):
            step = len(FUSED)
        elif ends and task.startswith(BESIDE, at):
            step = len(BESIDE)
        else:
            at = partner.get(at, at) + 1
            continue
        names.append(task[start:at])
        start = at = at + step
        # A bracket opens branches, and is not part of a name, if it closes at the end of its part.
        if step == len(FUSED) and at in lists and at in partner and task[at] == "(":
            end = partner[at] + 1
            if end == (ends[-1] if ends else len(task)) or (ends and task.startswith(BESIDE, end)):
                ends.append(partner[at])
                start = at = at + 1
    return [name for name in [*names, task[start:]] if name]


def _brackets(text: str) -> tuple[dict[int, int], set[int]]:
    """Position of each opening bracket → of its closing bracket, and the brackets with a list."""
    opened: list[int] = []
    partner: dict[int, int] = {}
    lists = set()
    for i, letter in enumerate(text):
        if letter in "([{":
            opened.append(i)
        elif letter in ")]}" and opened:
            partner[opened.pop()] = i
        elif opened and text.startswith(BESIDE, i):
            lists.add(opened[-1])
    return partner, lists
