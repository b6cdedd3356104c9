"""Memory that the TaskManagers of a job needed, and the time of its checkpoints.

The heap is full of garbage before each collection, so what it holds in a window is its least use
there. The rest of a process, such as network buffers and metaspace, is as large as it is now.
"""

from collections.abc import Iterator
from typing import NamedTuple

from streamplace.display.report import duration
from streamplace.model.units import format_bytes

RESERVE = 0.5
"""Share of its largest content by which a heap is larger; judgement: less, and it is collected all
the time."""


class MemoryUse(NamedTuple):
    """Largest use of memory by a TaskManager, and the sizes that it has, in bytes."""

    heap: float
    heap_size: float
    managed: float = 0.0
    managed_size: float = 0.0

    @property
    def heap_needed(self) -> float:
        """Heap with the reserve."""
        return (1 + RESERVE) * self.heap

    def process(self, present: float) -> float:
        """Memory that a process with as much work needs, of which one has ``present`` bytes.

        It is never more than that: what is too small now is a note.

        >>> MemoryUse(100.0, 400.0, 50.0, 80.0).process(1000.0)
        720.0
        """
        saved = max(0.0, self.heap_size - self.heap_needed)
        return present - saved - max(0.0, self.managed_size - self.managed)

    def notes(self) -> Iterator[str]:
        """Sentence on what was used."""
        what = f"the heap of a TaskManager held up to {format_bytes(self.heap)} "
        what += f"of {format_bytes(self.heap_size)}"
        if self.managed:
            what += f", its managed memory {format_bytes(self.managed)}"
            what += f" of {format_bytes(self.managed_size)}"
        yield what
        if self.heap_needed > self.heap_size:
            yield f"that is too much: a heap should have {format_bytes(self.heap_needed)}"


class Checkpoints(NamedTuple):
    """The longest checkpoint in seconds, the largest in bytes, and their interval in seconds."""

    longest: float
    largest: float
    interval: float | None  # None if there is none

    def notes(self) -> Iterator[str]:
        """Sentences on them.

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
