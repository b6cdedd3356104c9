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
        What stands in small letters below.
    operators
        [N] operators with a red ring.
    streams
        [M] streams in red, in the graph's order.
    """

    title: str
    subtitle: str
    operators: Bools
    streams: Bools
