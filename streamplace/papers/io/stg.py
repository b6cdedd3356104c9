"""Files of the Standard Task Graph set: tasks by number, each with a time and its predecessors.

A cost beside a predecessor is the time that its result takes to another processor. Times have no
unit; here one is a second, on a device of 2500 MIPS and over a link of 1 Gbps.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streamplace.errors import FormatError
from streamplace.io.files import located, read_lines, spot
from streamplace.io.foreign import BYTES_PER_SECOND, INSTRUCTIONS_PER_SECOND, files_with
from streamplace.io.lines import name_of
from streamplace.io.parsing import utf8
from streamplace.io.registry import reader
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import shown
from streamplace.model.operators import ALL, Operator
from streamplace.model.streams import Stream

NUMBER = re.compile(rb"\d{1,15}(\.\d{0,30})?([eE][+-]?\d{1,2})?")


class Word(NamedTuple):
    """A number of a file, with its line."""

    value: float
    line: int


class StgTask(NamedTuple):
    """A task: its time, and its predecessors with their transfer times."""

    time: float
    before: list[tuple[int, float]]


@reader("stg")
def read_stg(path: Path) -> Iterator[StreamGraph]:
    """Standard Task Graph files, with or without communication costs, or a folder of ``.stg``."""
    for file in files_with(path, ".stg"):
        words = list(_words(file))
        with located(spot(file)):
            tasks = list(enumerate(_tasks(words)))
            operators = [Operator(str(i), ipt=t.time * INSTRUCTIONS_PER_SECOND) for i, t in tasks]
            streams = [
                Stream(str(u), str(i), payload=cost * BYTES_PER_SECOND)
                for i, task in tasks
                for u, cost in task.before
            ]
            yield StreamGraph.of(name_of(file), operators, streams, fires=ALL)


def _words(path: Path) -> Iterator[Word]:
    """Numbers of a file, without comments and other text that follows a comment."""
    is_commented = False
    for number, line in read_lines(path):
        text, mark, _ = utf8(line, spot(path)).partition(b"#")
        for word in text.split():
            if not NUMBER.fullmatch(word) and is_commented:
                return
            if not NUMBER.fullmatch(word):
                quote = shown(word.decode(errors="replace"))
                raise FormatError(f"{spot(path)}:{number}: {quote} is not a number; correct it")
            yield Word(float(word), number)
        is_commented |= bool(mark)


def _tasks(words: list[Word]) -> list[StgTask]:
    """Parse the tasks; the first number counts them, in most files without the first and last."""
    if not words:
        raise FormatError(
            "contains no number; name an STG file, which begins with the number of tasks"
        )
    tasks, fault = _split(words[1:], 1)
    if without_costs := fault:  # there may be a cost beside each predecessor
        tasks, fault = _split(words[1:], 2)
    if fault:
        fault = max(fault, without_costs)  # of the form that the file has
        raise FormatError(
            f"line {fault}: must be a task number, a time, the number of predecessors and the "
            "predecessors"
        )
    stated = words[0].value
    if len(tasks) not in (stated, stated + 2):
        raise FormatError(
            f"has {len(tasks)} tasks; by its first number it must have {stated:g}, or "
            f"{stated + 2:g} with the first and the last one; download or generate it again"
        )
    return tasks


def _split(words: list[Word], width: int) -> tuple[list[StgTask], int]:
    """Tasks with one or two numbers per predecessor, and the line that has no task, else 0."""
    tasks: list[StgTask] = []
    at = 0
    while at < len(words):
        head = words[at : at + 3]
        inputs = head[2].value if len(head) == 3 else math.inf
        end = at + 3 + width * inputs
        if head[0].value != len(tasks) or end > len(words) or not inputs.is_integer():
            return tasks, head[0].line
        rest = [word.value for word in words[at + 3 : int(end)]]
        if not all(number.is_integer() for number in rest[::width]):
            return tasks, head[0].line
        costs = rest[1::2] if width == 2 else [0.0] * len(rest)
        before = [(int(u), cost) for u, cost in zip(rest[::width], costs, strict=True)]
        tasks.append(StgTask(head[1].value, before))
        at = int(end)
    return tasks, 0
