"""Names and amounts of the external resources that tell Flink where to put a slot.

Every TaskManager stands for one device and offers

- one resource of its own, ``dev-k``: a slot that asks for a unit of it can only be cut
  from this TaskManager. It pins whole operators;
- for every index j a resource ``lim-j``, and for every layer l and every device m a resource
  ``lim-l-m``: they bound how many slots of a spread group it can take, see
  `streamplace.engines.flink.spread`.
"""

import re
from collections.abc import Iterable

from streamplace.engines.names import resource

PIN_UNITS = 10_000
"""Slots that can be pinned to one TaskManager at a time, over all jobs."""
GROUPS = 32
"""Indexes that a TaskManager offers: spread groups alive on it at a time."""
MOST_LIMITS = 256
"""Limits of all layers that a TaskManager offers, as long as there is one layer."""
UNBORN = "new-"
"""How devices are called that the TaskManagers leave room for."""
FUSED = " -> "
"""Between the names of operators that Flink fused into one task."""
_SUBTASK = re.compile(r"(.+?)#+(\d+)")


def index_name(index: int) -> str:
    """Name of the resource that bounds the slots of a group on every device alike.

    >>> index_name(2)
    'lim-2'
    """
    return f"lim-{index}"


def limit_name(layer: int, pin: str) -> str:
    """Name of the resource that bounds the slots of a group further, where ``pin`` is offered.

    >>> limit_name(2, "dev-3")
    'lim-2-dev-3'
    """
    return f"lim-{layer}-{pin}"


def limited(layer: int, name: str) -> str | None:
    """Resource of the device whose slots are bounded by a resource of a layer; None for others.

    >>> limited(2, "lim-2-dev-3"), limited(2, "lim-22"), limited(2, "dev-3")
    ('dev-3', None, None)
    """
    start = limit_name(layer, "")
    return name.removeprefix(start) if name.startswith(start) else None


def layers_offered(devices: int) -> int:
    """Layers that every TaskManager of a cluster of so many devices should offer.

    >>> layers_offered(5), layers_offered(100), layers_offered(1000)
    (32, 2, 1)
    """
    return max(1, min(GROUPS, MOST_LIMITS // max(1, devices)))


def unborn(devices: Iterable[str], number: int) -> list[str]:
    """Names of devices that are not there yet.

    >>> unborn(["dev-0", "new-1"], 2)
    ['new-2', 'new-3']
    """
    taken = {resource(device) for device in devices}
    names: list[str] = []
    i = 1
    while len(names) < number:
        if resource(f"{UNBORN}{i}") not in taken:
            names.append(f"{UNBORN}{i}")
        i += 1
    return names


def operator_name(task: str) -> str:
    """Name of an operator as the job's author gave it, without what Flink puts around it.

    >>> operator_name("Source: lines"), operator_name("out: Writer"), operator_name("count")
    ('lines', 'out', 'count')
    """
    for prefix in ("Source: ", "Sink: "):
        task = task.removeprefix(prefix)
    return task.removesuffix(": Writer")


def subtask_owner(name: str, names: Iterable[str]) -> str | None:
    """Operator that a name such as ``join#2`` is a subtask of; None for an operator's own name.

    A name with a number is a subtask where all numbers below it are there too.

    >>> subtask_owner("join#1", {"join#0", "join#1"}), subtask_owner("join#1", {"join#1"})
    ('join', None)
    """
    match = _SUBTASK.fullmatch(name)
    if match is None:
        return None
    stem = name[: match.start(2)]
    every = names if isinstance(names, set | frozenset | dict) else set(names)
    return match[1] if all(f"{stem}{i}" in every for i in range(int(match[2]) + 1)) else None
