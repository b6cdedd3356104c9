"""What an objective marks in a drawing of a placement."""

from dataclasses import dataclass

from streamplace.model.arrays import Bools


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks of one placement.

    Attributes
    ----------
    title
        Its value, in a few words.
    subtitle
        What stands in small letters below, such as what limits.
    operators
        [N] operators with a red frame.
    streams
        [M] streams in red, in the graph's order.
    devices
        [D] what the legend says of every device; empty where there is nothing to say.
    """

    title: str
    subtitle: str
    operators: Bools
    streams: Bools
    devices: tuple[str, ...] = ()
