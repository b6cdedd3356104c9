"""Names and amounts of the external resources that tell Flink where to put a slot.

Every TaskManager stands for one device and offers

- one resource of its own, ``dev-k``: a slot that asks for a unit of it can only be cut
  from this TaskManager. It pins whole operators;
- for every group index j and every device m a resource ``lim-j-m``: it bounds how many slots of
  group j this TaskManager can take, see `streamplace.engines.flink.spread`.
"""

import re
from collections.abc import Iterable

from streamplace.engines.names import resource

PIN_UNITS = 10_000
"""Slots that can be pinned to one TaskManager at a time, over all jobs."""
GROUPS = 32
"""Group indexes that a TaskManager offers unless told otherwise: spread groups alive at a time."""
MOST_LINES = 1_000_000
"""Settings of all devices together; larger clusters get as many groups as they need now."""
FUSED = " -> "
"""Between the names of operators that Flink fused into one task."""
_SUBTASK = re.compile(r"(.+?)#+(\d+)")


def limit_name(group: int, device: str) -> str:
    """Name of the resource that bounds the slots of a group on a device.

    >>> limit_name(2, "dev-3")
    'lim-2-dev-3'
    """
    return f"lim-{group}-{resource(device)}"


def groups_offered(devices: int, needed: int) -> int:
    """Group indexes that every TaskManager of a cluster of so many devices should offer.

    >>> groups_offered(5, needed=1), groups_offered(1000, needed=1)
    (32, 1)
    """
    return GROUPS if GROUPS * devices**2 <= MOST_LINES else needed


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
    known = names if isinstance(names, set | frozenset | dict) else set(names)
    return match[1] if all(f"{stem}{i}" in known for i in range(int(match[2]) + 1)) else None
