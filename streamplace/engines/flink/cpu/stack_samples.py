"""Work of the threads of tasks, by samples of their stacks: own work, or passing tuples on.

A task writes tuples to buffers below Flink's record writer, and reads them below its network input.
A chain saves both, with one exception: unless objects are reused, it copies every tuple, which
reads and sets each field as writing and reading do. So samples inside serializers of composite
types are counted separately from those inside serializers of single values.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

EVENT = "jdk.ExecutionSample {"
_STACK, _END_OF_STACK, _END = "  stackTrace = [", "  ]", "}"
_THREAD = re.compile(r"\(javaThreadId = (\d{1,18})\)$")
_STREAMING = "org.apache.flink.streaming.runtime."
_WRITING = (
    f"{_STREAMING}io.RecordWriterOutput.",
    "org.apache.flink.runtime.io.network.api.writer.",
)
_READING = f"{_STREAMING}io.AbstractStreamTaskNetworkInput.emitNext"
_WORKING = (f"{_STREAMING}io.AbstractStreamTaskNetworkInput.processElement",)
_WORKING_ENDS = ("NetworkOutput.emitRecord",)
_SERIALIZER = re.compile(r"([\w.$]+Serializer)\.(?:de)?serialize")
_VALUES = "org.apache.flink.api.common.typeutils.base."
_COMPOSITE = ("ListSerializer", "MapSerializer", "SetSerializer", "GenericArraySerializer")
_ELEMENT = f"{_STREAMING}streamrecord.StreamElementSerializer"


class StackCounts(NamedTuple):
    """Samples of the stack of a thread, by kind of work."""

    total: int = 0
    # Samples in which it wrote tuples to buffers, and in which it read them.
    written: int = 0
    read: int = 0
    # Samples among these in which it read or set the fields of a composite tuple.
    fields_written: int = 0
    fields_read: int = 0

    def saved_by_chains(self, *, reuses_objects: bool) -> tuple[int, int]:
        """Samples at the sending and at the receiving end that a chain would not have.

        Unless objects are reused, a chain copies tuples, which reads and sets their fields as well.
        """
        if reuses_objects:
            return self.written, self.read
        return self.written - self.fields_written, self.read - self.fields_read

    def plus(self, other: "StackCounts") -> "StackCounts":
        """Sum of the samples of two threads."""
        return StackCounts(*map(sum, zip(self, other, strict=True)))


def read_stacks(lines: Iterable[str]) -> dict[int, StackCounts]:
    """Thread number → samples, from the execution samples in the output of ``jfr print``."""
    counts: dict[int, StackCounts] = {}
    number, frames, is_stack = 0, list[str](), False
    for line in lines:
        if line == EVENT:
            number, frames, is_stack = 0, [], False
        elif is_stack:
            is_stack = line != _END_OF_STACK
            frames.append(line.strip().partition("(")[0])
        elif line == _STACK:
            is_stack = True
        elif line == _END and number:
            counts[number] = counts.get(number, StackCounts()).plus(counted(frames))
            number = 0
        elif match := _THREAD.search(line):
            number = int(match[1])
    return counts


def counted(frames: Sequence[str]) -> StackCounts:
    """Classify one sample by the methods of its stack, the innermost first.

    >>> base = "org.apache.flink.api.common.typeutils.base"
    >>> stack = [f"{base}.StringSerializer.serialize"]
    >>> stack += ["org.apache.flink.streaming.runtime.io.RecordWriterOutput.collect", "my.Map.map"]
    >>> counted(stack)
    StackCounts(total=1, written=1, read=0, fields_written=0, fields_read=0)
    """
    is_field: bool | None = None
    for frame in frames:
        match = _SERIALIZER.fullmatch(frame) if is_field is None else None
        if match is not None:
            is_field = not _is_of_value(match[1])
        if frame.startswith(_WRITING):
            return StackCounts(1, written=1, fields_written=int(bool(is_field)))
        if frame.startswith(_WORKING) or frame.endswith(_WORKING_ENDS):
            break
        if frame == _READING:
            return StackCounts(1, read=1, fields_read=int(bool(is_field)))
    return StackCounts(1)


def _is_of_value(serializer: str) -> bool:
    """Whether a serializer writes a single value, which chains copy by reference."""
    if serializer.startswith(_VALUES):
        return not serializer.endswith(_COMPOSITE)
    return serializer == _ELEMENT
