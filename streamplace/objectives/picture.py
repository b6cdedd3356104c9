"""Marks of an objective in a drawing of a placement."""

from dataclasses import dataclass

from streamplace.model.arrays import Bools


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks of one placement.

    Attributes
    ----------
    title
        Value in a few words.
    subtitle
        Smaller text below the title, such as the bottleneck.
    operators
        [N] operators with a red frame.
    streams
        [M] streams in red, in the graph's order.
    devices
        [D] text of the legend for every device; empty without any.
    """

    title: str
    subtitle: str
    operators: Bools
    streams: Bools
    devices: tuple[str, ...] = ()
