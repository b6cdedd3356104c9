"""Names of operators that do not depend on how a job is submitted, chained and placed.

The pinning class (``java/PlacedIds.java``) names operators in the same way. The number that the SQL
planner gives to an operator is removed, because it changes with every submission. Operators that
then share a name are numbered in the order of the planner, else of the job's stream graph: ``Map``,
``Map (2)``. The plan of a pinned job contains the numbers. For any other job, positions in the
stream graph follow from Flink's ids, because an operator's id is a hash of its position.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, product
from typing import NamedTuple

from streamplace.engines.flink.pin.hook import stem_of
from streamplace.engines.flink.program.chains import Fused, fused_operators
from streamplace.engines.flink.program.hashes import id_bytes, place_hash, unmixed
from streamplace.engines.flink.rest.answer_shapes import JobVertex, PlanNode

MOST_OUTPUTS, MOST_INPUTS = 8, 4
"""Limits of the search for the position of an operator."""


class TaskOperators(NamedTuple):
    """Operators of a task."""

    shown: tuple[str, ...]  # their names as Flink shows them, such as ``Source: bids[1]``, in order
    names: tuple[str, ...]  # their names in placements, such as ``bids``
    unsure: tuple[str, ...] = ()  # names with a number that may belong to another operator
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

    Parameters
    ----------
    nodes
        Plan of the job.
    expected
        Names that operators are expected to have; they may contain any characters.
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
    has_namesakes = any(len(group) > 1 for group in bearers.values())
    return _named(bearers, fused, _places(vertices, plan, fused) if has_namesakes else {})


def _named(
    bearers: Mapping[str, list[_Bearer]],
    fused: Sequence[Sequence[Fused]],
    places: Mapping[int, int],
) -> list[TaskOperators]:
    names = [[""] * len(operators) for operators in fused]
    unsure: list[list[str]] = [[] for _ in fused]
    for stem, group in bearers.items():
        is_sure = _number(group, places)
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


def _number(group: list[_Bearer], places: Mapping[int, int]) -> bool:
    """Sort the operators that share a name; return whether their order is certain."""
    tasks = {bearer.task for bearer in group}
    if len(tasks) == 1 or any(bearer.numbered > 1 for bearer in group):
        group.sort(key=lambda bearer: bearer.numbered or 1)
    elif all(bearer.planned for bearer in group):
        group.sort(key=lambda bearer: bearer.planned)
    elif all(bearer.place == 0 and bearer.task in places for bearer in group):
        group.sort(key=lambda bearer: places[bearer.task])
    else:
        return False
    return True


def _places(
    vertices: Sequence[JobVertex],
    plan: Mapping[str, PlanNode],
    fused: Sequence[Sequence[Fused]],
) -> dict[int, int]:
    """Task → position of its first operator in the stream graph, as far as it follows from ids.

    The id of a chain is that of its first operator; positions after longer chains are unknown.
    """
    most = sum(map(len, fused))
    place_of = {
        place_hash(place, chained): place
        for place, chained in product(range(most), range(MOST_OUTPUTS + 1))
    }
    single = {v["id"] for v, operators in zip(vertices, fused, strict=True) if len(operators) == 1}
    places = {}
    for i, vertex in enumerate(vertices):
        inputs = [row["id"] for row in plan.get(vertex["id"], {"id": ""}).get("inputs", ())]
        if len(inputs) > MOST_INPUTS or not single.issuperset(inputs):
            continue
        for order in permutations(map(id_bytes, inputs)):
            own = unmixed(id_bytes(vertex["id"]), order)
            if own in place_of:
                places[i] = place_of[own]
    return places
