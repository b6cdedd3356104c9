"""Check that devices which hold an order can finish a pass."""

from typing import TYPE_CHECKING

from streamplace.errors import PlacementError
from streamplace.model.messages import quoted
from streamplace.model.placement import Placement

if TYPE_CHECKING:
    from streamsim.passes import Pass


def check_lines(one_pass: "Pass", placement: Placement) -> None:
    """Raise PlacementError if devices that hold the order would wait for ever."""
    from streamsim.passes import conflict

    if placement.priority is None:
        return
    pair = conflict(one_pass, placement.index, placement.priority)
    if pair is None:
        return
    first, second = (quoted(placement.operators[v]) for v in pair)
    device = quoted(placement.devices[placement.index[pair.first]])
    raise PlacementError(
        f"the order of device {device} puts {first} before {second}, but {first} waits for "
        f"{second}; correct their priorities, or set the queue to priority"
    )
