"""Memory that the TaskManagers of a job needed, and its checkpoints.

The heap is full of garbage before each collection, so its content in a window is the minimum of its
use there. The rest of a process, such as network buffers and metaspace, keeps its present size.
"""

from collections.abc import Iterator
from typing import NamedTuple

from streamplace.display.report import duration
from streamplace.model.units import format_bytes

RESERVE = 0.5
"""Free heap, relative to its largest content; judgement: with less, collection never stops."""


class MemoryUse(NamedTuple):
    """Largest memory use of a TaskManager, and the sizes of its memory, in bytes."""

    heap: float  # largest content
    heap_size: float
    managed: float = 0.0  # largest use of managed memory
    managed_size: float = 0.0

    @property
    def heap_needed(self) -> float:
        """Largest content of the heap with the reserve."""
        return (1 + RESERVE) * self.heap

    def process(self, present: float) -> float:
        """Memory that a process of ``present`` bytes needs for the same work, at most ``present``.

        A heap that is too small is in the notes.

        >>> MemoryUse(100.0, 400.0, 50.0, 80.0).process(1000.0)
        720.0
        """
        saved = max(0.0, self.heap_size - self.heap_needed)
        return present - saved - max(0.0, self.managed_size - self.managed)

    def notes(self) -> Iterator[str]:
        """Sentences on the use."""
        use = f"the heap of a TaskManager held up to {format_bytes(self.heap)} "
        use += f"of {format_bytes(self.heap_size)}"
        if self.managed:
            use += f", its managed memory {format_bytes(self.managed)}"
            use += f" of {format_bytes(self.managed_size)}"
        yield use
        if self.heap_needed > self.heap_size:
            yield f"that is too much: a heap should have {format_bytes(self.heap_needed)}"


class Checkpoints(NamedTuple):
    """Extremes of the checkpoints of a job."""

    longest: float  # seconds
    largest: float  # bytes
    interval: float | None  # seconds; None without periodic checkpoints

    def notes(self) -> Iterator[str]:
        """Sentences on the checkpoints.

        >>> [*Checkpoints(90.0, 2e9, 60.0).notes()][1]
        'that is longer than their interval of 1 min, so checkpoints are late'
        """
        size = format_bytes(self.largest)
        yield f"checkpoints took up to {duration(self.longest)}, and had up to {size}"
        if self.interval is not None and self.longest > self.interval:
            yield (
                f"that is longer than their interval of {duration(self.interval)}, so checkpoints "
                "are late"
            )
