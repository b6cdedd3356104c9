"""Spreading the slots of one group over TaskManagers in given counts, on a running cluster.

Flink knows no "two here, one there". What it does know is that a slot fits a TaskManager only if
every resource it asks for is left there. TaskManager k offers ``lim-j-k`` = A, and ``lim-j-m`` = H
for all m ≠ k, for every group index j. Each slot of group j with counts c asks, for **every** m,

    lim-j-m = ⌊A / c_m⌋  where c_m > 0,    A + 1  where c_m = 0.

Then TaskManager m holds at most c_m slots of the group; and as Σ c_m is their number, whatever
order Flink fills them in ends with exactly c. Live groups must have different indexes.
"""

from collections.abc import Mapping, Sequence

from streamplace.engines.flink.names import GROUPS, PIN_UNITS, limit_name
from streamplace.engines.names import resource
from streamplace.errors import PlacementError
from streamplace.model.messages import quoted

OFFER = 10**6
PLENTY = 10**12
MOST_SLOTS = 999
"""Slots of one group on one device: beyond, ⌊A / c⌋ would leave room for another."""


def offers(device: str, devices: Sequence[str], groups: int = GROUPS) -> dict[str, int]:
    """Amount of every external resource that the TaskManager of a device offers.

    >>> offers("a", ["a", "b"], groups=1)
    {'dev-a': 10000, 'lim-0-dev-a': 1000000, 'lim-0-dev-b': 1000000000000}
    """
    limits = {
        limit_name(j, other): OFFER if other == device else PLENTY
        for j in range(groups)
        for other in devices
    }
    return {resource(device): PIN_UNITS, **limits}


def pin_demand(device: str) -> dict[str, int]:
    """Resources that a slot asks for to be cut from the TaskManager of a device."""
    return {resource(device): 1}


def spread_demand(counts: Mapping[str, int], devices: Sequence[str], group: int) -> dict[str, int]:
    """Resources that every slot of a group asks for, to be spread in these counts.

    >>> spread_demand({"a": 2, "b": 1}, ["a", "b", "c"], group=0)
    {'lim-0-dev-a': 500000, 'lim-0-dev-b': 1000000, 'lim-0-dev-c': 1000001}
    """
    if unknown := set(counts).difference(devices):
        raise PlacementError(
            f"{quoted(min(unknown))} is no device of the cluster, yet subtasks are placed on it"
        )
    if crowded := [d for d in devices if counts.get(d, 0) > MOST_SLOTS]:
        raise PlacementError(
            f"{counts[crowded[0]]} subtasks of one operator on {quoted(crowded[0])}; "
            f"Flink can be told at most {MOST_SLOTS}, spread them"
        )
    return {limit_name(group, d): _demand(counts.get(d, 0)) for d in devices}


def _demand(count: int) -> int:
    return OFFER // count if count else OFFER + 1
