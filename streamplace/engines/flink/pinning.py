"""Pinning: what Flink must be told to carry out a placement, in slot sharing groups.

Operators that share a device share a group, and Flink fuses what it can within it: a group is a
processing element. A parallel operator whose subtasks are placed on several devices has a group
that is spread in counts; parallel operators whose subtasks are placed alike share it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.chains import unfused
from streamplace.engines.flink.names import GROUPS, subtask_owner
from streamplace.engines.flink.spread import pin_demand, spread_demand
from streamplace.errors import PlacementError
from streamplace.io.files import read_bytes, spot
from streamplace.io.placements import LARGEST_PLACEMENT, parse_document

Vectors = Mapping[str, Sequence[str]]
"""Operator → the device of each of its subtasks, or one device for however many there are."""


@dataclass(frozen=True, slots=True)
class Pinning:
    """Groups and who belongs to them.

    Attributes
    ----------
    groups
        Group → the external resources that each of its slots asks for.
    operators
        Operator → its group.
    parallelism
        Spread operator → its number of subtasks, which the counts are made for.

    Examples
    --------
    >>> answer = pinning({"src": ["a"], "map": ["a", "b", "b"]}, ["a", "b"])
    >>> answer.operators, answer.parallelism
    ({'src': 'a', 'map': 'spread-0'}, {'map': 3})
    >>> answer.groups
    {'a': {'dev-a': 1}, 'spread-0': {'lim-0-dev-a': 1000000, 'lim-0-dev-b': 500000}}
    """

    groups: dict[str, dict[str, int]]
    operators: dict[str, str]
    parallelism: dict[str, int]

    @property
    def spread_groups(self) -> set[str]:
        """Groups whose slots are on several devices."""
        return {self.operators[operator] for operator in self.parallelism}


def pinning(
    vectors: Vectors, devices: Sequence[str], free: Iterable[int] = range(GROUPS)
) -> Pinning:
    """Pinning of operators on the devices of a cluster.

    Parameters
    ----------
    free
        Indexes that no other spread group alive on the cluster uses.
    """
    answer, indexes = Pinning({}, {}, {}), iter(free)
    spread: dict[tuple[str, ...], str] = {}
    for operator, vector in vectors.items():
        if len(set(vector)) == 1:
            group = vector[0]
            answer.groups.setdefault(group, pin_demand(group))
        else:
            group = spread.get(tuple(vector)) or _spread(answer, vector, devices, indexes)
            spread[tuple(vector)] = group
            answer.parallelism[operator] = len(vector)
        answer.operators[operator] = group
    return answer


def _spread(
    answer: Pinning, vector: Sequence[str], devices: Sequence[str], indexes: Iterable[int]
) -> str:
    """Name of a new spread group with the next free index."""
    index = next(iter(indexes), None)
    if index is None:
        raise PlacementError(
            "more operators are spread over several devices than the cluster has free group "
            "indexes; end other jobs, place some operators whole, or start the TaskManagers "
            "with more groups"
        )
    group = f"spread-{index}"
    answer.groups[group] = spread_demand(counts(vector), devices, index)
    return group


def counts(vector: Sequence[str]) -> dict[str, int]:
    """Subtasks by device.

    >>> counts(["a", "b", "a"])
    {'a': 2, 'b': 1}
    """
    found: dict[str, int] = {}
    for device in vector:
        found[device] = found.get(device, 0) + 1
    return found


def vectors_of(assignment: Mapping[str, str]) -> dict[str, list[str]]:
    """Operator → devices of its subtasks, from a placement of operators or of subtasks.

    >>> vectors_of({"src -> trim": "a", "map#0": "a", "map#1": "b"})
    {'src': ['a'], 'trim': ['a'], 'map': ['a', 'b']}
    """
    found: dict[str, list[str]] = {}
    for name, device in assignment.items():
        found.setdefault(subtask_owner(name, assignment) or name, []).append(device)
    return _unfused(found)


def read_vectors(path: Path) -> dict[str, list[str]]:
    """Operator → devices of its subtasks, from a placement file."""
    return vectors_of(parse_document(read_bytes(path, LARGEST_PLACEMENT), spot(path))["assignment"])


def deployment_vectors(deployment: Deployment) -> dict[str, list[str]]:
    """Operator → devices of its subtasks, where the application is known."""
    names = deployment.problem.graph.operators.name
    if not deployment.is_split:
        return _unfused({name: [deployment.placement[name]] for name in names})
    subtasks = deployment.expansion.subtasks
    return _unfused({name: [deployment.placement[s] for s in subtasks(name)] for name in names})


def _unfused(vectors: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Operators that Flink had fused when they were measured, each by itself."""
    return {one: vector for name, vector in vectors.items() for one in unfused(name)}
