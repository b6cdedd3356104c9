"""Cooperative sensor fusion as it was measured: Tables 1 and 2 of the GiPH paper."""

from collections.abc import Mapping
from typing import NamedTuple

from streamplace.errors import PlacementError
from streamplace.model.messages import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

TYPES = ("a", "b", "c")
"""Jetson Nano, Jetson TX2, and a Core i7 7700K with a GTX1080."""


class Measured(NamedTuple):
    """A task as it was measured.

    Attributes
    ----------
    ms
        Mean running time on each type of device.
    message
        Bytes that have to be sent when it moves, taken for what it puts out, too.
    static
        Bytes that a device holds to run it.
    startup_ms
        Time that starting takes on types a and c; b, which was not measured, is taken for an a.
    """

    ms: tuple[float, float, float]
    message: int
    static: int
    startup_ms: tuple[float, float]

    def startup_s(self, kind: str) -> float:
        """Seconds that starting takes on a type."""
        return self.startup_ms[1 if kind == "c" else 0] / 1e3


MEASURED = {
    "camera": Measured((53, 36, 9), 11_494, 72_173_525, (4273.73, 794.66)),
    "lidar": Measured((14, 7, 3), 560, 24_576, (60.98, 9.26)),
    "cav-fusion": Measured((35, 35, 11), 11_796, 38_110, (0.39, 0.11)),
    "rsu-fusion": Measured((250, 250, 28), 20_907, 38_950, (2.83, 1.00)),
}
"""What there is to place, by its kind; the first two need a GPU."""
NEED_GPU = frozenset({"camera", "lidar"})


def type_tag(kind: str) -> str:
    """Tag of devices of a type."""
    return f"type-{kind}"


def relocation_s(problem: Problem, before: Mapping[str, str], placement: Placement) -> float:
    """Seconds that it takes to move from another placement to this one, one task after the other.

    What moves is started anew and sends its data, if the device that it was on is still there. GiPH
    divides this by the frequency of the pipeline.

    Parameters
    ----------
    before
        Device of every operator that ran before; others start without any cost.
    """
    devices, total = problem.cluster.devices, 0.0
    for row, operator in enumerate(placement.operators):
        task, target = MEASURED.get(problem.graph.operators.kind[row]), placement[operator]
        origin = before.get(operator, target)
        if task is None or origin == target:
            continue
        total += task.startup_s(_type_of(problem, target))
        if origin in devices:
            link = devices.index(origin), devices.index(target)
            total += 8 * task.message / float(problem.cluster.bandwidth_bps[link])
    return total


def _type_of(problem: Problem, device: str) -> str:
    for kind in TYPES:
        if type_tag(kind) in problem.cluster.devices[device].tags:
            return kind
    raise PlacementError(f"device {quoted(device)} is of no type that was measured")
