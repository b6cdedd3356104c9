"""Results of placers on problems: one line of a JSONL file each, appended as they come."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from streamplace.errors import FormatError
from streamplace.io.files import spot
from streamplace.io.schema import STRICT, Finite, parse_as
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.problem import Problem

PROVEN = 1e-6
"""A value this close to its bound is the optimum."""


@dataclass(frozen=True, slots=True)
class Record:
    """What one placer did on one problem.

    Attributes
    ----------
    problem
        Content hash of the problem.
    budget
        The budget and seed it was given, as a text; another budget is another record.
    rate
        Total rate of the sources; None for the graph's own.
    value
        Relative throughput, None where the placer could not place.
    devices
        Device row of every operator.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    problem: str
    graph: str
    rate: Finite | None
    placer: str
    budget: str
    value: Finite | None
    bound: Finite | None
    milliseconds: Finite
    devices: tuple[Annotated[int, Field(ge=0, lt=MOST_DEVICES)], ...]
    error: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes a record a repetition of another."""
        return (self.problem, self.placer, self.budget)

    @property
    def devices_used(self) -> int:
        """Number of different devices."""
        return len(set(self.devices))

    @property
    def proven(self) -> bool:
        """Whether the value is proven to be the best possible."""
        return (
            self.value is not None and self.bound is not None and self.value >= self.bound - PROVEN
        )


class RecordFile:
    """A JSONL file of records that survives being cut off at any byte.

    Examples
    --------
    >>> import tempfile
    >>> file = RecordFile(Path(tempfile.mkdtemp()) / "results.jsonl")
    >>> file.append([Record("p", "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))])
    >>> [record.value for record in file]
    [0.8]
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Record]:
        for line in self._whole_lines():
            try:
                yield parse_as(Record, line, spot(self._path))
            except FormatError:
                raise FormatError(
                    f"{spot(self._path)}: holds a line that is no result; remove the file to "
                    "start anew"
                ) from None

    def append(self, records: Iterable[Record]) -> None:
        """Add records, after cutting off a last line that was never finished."""
        lines = [json.dumps(asdict(r), ensure_ascii=False, separators=(",", ":")) for r in records]
        try:
            with self._path.open("ab") as file:
                file.write("".join(f"{line}\n" for line in lines).encode())
        except OSError as error:
            raise FormatError(f"{self._path}: cannot be written: {error.strerror}") from None

    def mend(self) -> None:
        """Cut off a last line that a kill left unfinished."""
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with self._path.open("r+b") as file:
                file.truncate(whole)

    def _whole_lines(self) -> Iterator[bytes]:
        if self._path.exists():
            with self._path.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n"))


def problem_hash(problem: Problem) -> str:
    """Content hash of a problem: equal for problems that every placement values alike.

    >>> from streamplace import Cluster, Operator, StreamGraph
    >>> graph = StreamGraph.of("g", [Operator("a", ipt=1e5, rate=1e4)])
    >>> problem_hash(Problem(graph, Cluster.uniform(2))) == problem_hash(
    ...     Problem(StreamGraph("other", graph.operators, graph.streams), Cluster.uniform(2)))
    True
    """
    digest = sha256()
    arrays = [np.asarray(column) for column in problem.instance]
    if problem.rules is not None:
        arrays += [problem.rules.unit, problem.rules.allowed, problem.rules.apart]
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
