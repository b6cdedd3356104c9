"""Cooperative sensor fusion as it was measured: Tables 1 and 2 of the GiPH paper."""

from collections.abc import Sequence
from typing import NamedTuple

from streamplace.model.moving import Moving

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
NOTHING = Measured((0, 0, 0), 0, 0, (0, 0))
"""A sensor, or what else stays where it is."""
NEED_GPU = frozenset({"camera", "lidar"})


def type_tag(kind: str) -> str:
    """Tag of devices of a type."""
    return f"type-{kind}"


def moving(kinds: Sequence[str], types: Sequence[str]) -> Moving:
    """Table 2: what tasks of these kinds take along, and how long they start on these devices."""
    tasks = [MEASURED.get(kind, NOTHING) for kind in kinds]
    startup = [[task.startup_s(kind) for kind in types] for task in tasks]
    return Moving([task.message for task in tasks], startup)
