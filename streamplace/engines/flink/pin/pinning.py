"""Pinning: slot sharing groups and resources by which Flink carries out a placement.

Operators on the same device share a group, and Flink fuses operators within a group: a group is a
processing element. A parallel operator whose subtasks are placed on several devices has a spread
group, with a number of slots on each device; operators with equal placements share it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.pin.names import subtask_owner
from streamplace.engines.flink.pin.spread import SpreadLimits, pin_demand
from streamplace.engines.flink.program.chains import operators_in
from streamplace.errors import PlacementError
from streamplace.io.files import located, read_bytes, spot
from streamplace.io.placements import LARGEST_PLACEMENT, parse_document
from streamplace.model.messages import quoted

Vectors = Mapping[str, Sequence[str] | str]
"""Operator → device of each of its subtasks, or a single device for any number of subtasks."""


@dataclass(frozen=True, slots=True)
class Pinning:
    """Slot sharing groups and their operators.

    Examples
    --------
    >>> limits = SpreadLimits.untouched(["a", "b"])
    >>> answer = pinning({"src": "a", "map": ["a", "b", "b"]}, limits)
    >>> answer.operators, answer.parallelism
    ({'src': 'a', 'map': 'spread-0'}, {'map': 3})
    >>> answer.groups
    {'a': {'dev-a': 1}, 'spread-0': {'lim-0': 500000, 'lim-0-dev-a': 1000000}}
    >>> answer.spread
    {'spread-0': {'a': 1, 'b': 2}}
    """

    groups: dict[str, dict[str, int]]  # group → external resources that each of its slots requests
    operators: dict[str, str]  # operator → group
    parallelism: dict[str, int]  # operator → number of subtasks, if known
    # Group with slots on several devices → device → number of slots. The slots of any other group
    # are on the device of its name.
    spread: dict[str, dict[str, int]]


def pinning(vectors: Vectors, limits: SpreadLimits) -> Pinning:
    """Pin operators to the devices of a cluster.

    The indexes and layers of new spread groups are removed from ``limits``.
    """
    answer = Pinning({}, {}, {}, {})
    spread: dict[tuple[str, ...], str] = {}
    for operator, vector in vectors.items():
        used = tuple(devices_of(vector))
        if len(set(used)) == 1:
            group = used[0]
            answer.groups.setdefault(group, pin_demand(group))
        else:
            group = spread.get(used) or _spread(answer, used, limits)
            spread[used] = group
        if not isinstance(vector, str):
            answer.parallelism[operator] = len(vector)
        answer.operators[operator] = group
    return answer


def devices_of(vector: Sequence[str] | str) -> Sequence[str]:
    """Devices of an operator's subtasks, in order; only one if their number is unknown."""
    return [vector] if isinstance(vector, str) else vector


def all_devices(vectors: Vectors) -> set[str]:
    """Devices on which any subtask is placed."""
    return {device for vector in vectors.values() for device in devices_of(vector)}


def without_devices(vectors: Vectors, lost: Collection[str]) -> dict[str, list[str] | str]:
    """Return the vectors with the subtasks of lost devices on the others, evenly.

    There must be others. Operators that were on one device stay on one, as TaskManagers may be
    configured for whole operators only.
    """
    taken = Counter(d for vector in vectors.values() for d in devices_of(vector))
    left = sorted(all_devices(vectors).difference(lost))

    def elsewhere(device: str, number: int = 1) -> str:
        if device not in lost:
            return device
        found = min(left, key=lambda one: taken[one])
        taken[found] += number
        return found

    moved: dict[str, list[str] | str] = {}
    for name, vector in vectors.items():
        devices = devices_of(vector)
        if len(set(devices)) == 1:
            found = elsewhere(devices[0], len(devices))
            moved[name] = found if isinstance(vector, str) else [found] * len(devices)
        else:
            moved[name] = [elsewhere(device) for device in devices]
    return moved


def _spread(answer: Pinning, vector: Sequence[str], limits: SpreadLimits) -> str:
    """Create a spread group and return its name."""
    group = f"spread-{len(answer.spread)}"
    answer.spread[group] = counts(vector)
    answer.groups[group] = limits.take(answer.spread[group])
    return group


def counts(vector: Sequence[str]) -> dict[str, int]:
    """Number of subtasks on each device.

    >>> counts(["a", "b", "a"])
    {'a': 2, 'b': 1}
    """
    return dict(Counter(vector))


def vectors_of(
    assignment: Mapping[str, str], parallelism: Mapping[str, int] | None = None
) -> dict[str, list[str] | str]:
    """Operator → devices of its subtasks, from a placement of operators or of subtasks.

    ``parallelism`` has the operators with more than one subtask; None if it is unknown. Subtasks
    are ordered by their numbers, because the entries of a file may have been sorted by name.

    >>> vectors_of({"src -> trim": "a", "map#1": "b", "map#0": "a"})
    {'src': 'a', 'trim': 'a', 'map': ['a', 'b']}
    >>> vectors_of({"src#0": "a", "map": "b"}, {"map": 2})
    {'src#0': ['a'], 'map': ['b', 'b']}
    """
    subtasks: dict[str, list[tuple[int, str]]] = {}
    whole: dict[str, list[str] | str] = {}
    for name, device in assignment.items():
        owner = None if name in (parallelism or ()) else subtask_owner(name, assignment)
        if owner is not None and (parallelism is None or owner in parallelism):
            subtasks.setdefault(owner, []).append((int(name.rpartition("#")[2]), device))
        else:
            whole[name] = device if parallelism is None else [device] * parallelism.get(name, 1)
    split = {owner: [device for _, device in sorted(own)] for owner, own in subtasks.items()}
    _check_numbers(split, whole, parallelism or {})
    return by_operator({**whole, **split})


def _check_numbers(
    split: Vectors, whole: Mapping[str, object], parallelism: Mapping[str, int]
) -> None:
    """Raise PlacementError if a parallelism differs from the number of placed subtasks."""
    for name, number in parallelism.items():
        if name not in whole and len(split.get(name, ())) != number:
            raise PlacementError(
                f"operator {quoted(name)} has {len(split.get(name, ()))} placed subtasks, but the "
                f"placement sets its parallelism to {number}; place the job again"
            )


def read_vectors(path: Path) -> dict[str, list[str] | str]:
    """Operator → devices of its subtasks, from a placement file."""
    document = parse_document(read_bytes(path, LARGEST_PLACEMENT), spot(path))
    with located(spot(path)):
        return vectors_of(document["assignment"], document.get("parallelism"))


def deployment_vectors(deployment: Deployment) -> dict[str, list[str] | str]:
    """Operator → devices of its subtasks, from a deployment."""
    operators, placement = deployment.problem.graph.operators, deployment.placement
    if not deployment.is_split:
        numbers = zip(operators.name, operators.parallelism.tolist(), strict=True)
        return by_operator({name: [placement[name]] * number for name, number in numbers})
    subtasks = deployment.expansion.subtasks
    return by_operator({name: [placement[s] for s in subtasks(name)] for name in operators.name})


def by_operator(vectors: Vectors) -> dict[str, list[str] | str]:
    """Vectors with separate entries for operators that Flink fused in the measured job.

    >>> by_operator({"src -> trim": "a", "[in -> out]": ["a", "b"]})
    {'src': 'a', 'trim': 'a', 'in -> out': ['a', 'b']}
    """
    return {
        one: vector if isinstance(vector, str) else list(vector)
        for name, vector in vectors.items()
        for one in operators_in(name)
    }
