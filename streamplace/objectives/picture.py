"""Marks of an objective in a drawing of a placement."""

from dataclasses import dataclass

from streamplace.model.arrays import Bools


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks of one placement."""

    title: str  # value in a few words
    subtitle: str  # smaller text below the title, such as the bottleneck
    operators: Bools  # [N] operators with a red frame
    streams: Bools  # [M] streams in red, in the graph's order
    devices: tuple[str, ...] = ()  # [D] text of the legend for every device; empty without any
