"""Results of placers on problems: one line of a JSONL file each, appended as they come."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b, sha256
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from streamplace.errors import FormatError
from streamplace.evaluate.verdict import proven
from streamplace.io.files import spot
from streamplace.io.locks import lock_at_once, wait_for_lock
from streamplace.io.schema import STRICT, Finite, parse_as
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.problem import Problem

Key = tuple[str, str, str, str]


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
        What it reaches by the objective, None where the placer could not place.
    devices
        Device row of every operator.
    objective
        What was asked for, conditions included; files of older versions know throughput alone.
    priority
        Of every operator, where the placer answered an order too.
    measures
        Further numbers by name: those of the objective, and values by other objectives.
    steps
        After how many evaluations what value was reached, where the placer told.
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
    objective: str = "throughput"
    priority: tuple[Finite, ...] | None = None
    measures: dict[str, Finite] = field(default_factory=dict)
    steps: tuple[tuple[Annotated[int, Field(ge=1)], Finite], ...] = ()

    @property
    def key(self) -> Key:
        """What makes a record a repetition of another."""
        return (self.problem, self.objective, self.placer, self.budget)

    @property
    def devices_used(self) -> int:
        """Number of different devices."""
        return len(set(self.devices))

    @property
    def proven(self) -> bool:
        """Whether the value is proven to be the best possible."""
        return self.value is not None and proven(self.value, self.bound)


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
        self.path = path

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self.located())

    def located(self) -> Iterator[tuple[int, Record]]:
        """Records with the byte at which each begins; a last line without an end is none."""
        at = 0
        for line in self._lines():
            if line.endswith(b"\n"):
                yield at, self._parsed(line)
            at += len(line)

    def at(self, byte: int) -> Record:
        """Record that begins at a byte."""
        with self._reading() as file:
            file.seek(byte)
            return self._parsed(file.readline())

    def append(self, records: Iterable[Record]) -> None:
        """Add records, when no other process is adding any."""
        with self._opened() as file:
            wait_for_lock(file)
            self._mend(file)
            self._add(file, records)

    def drop_damaged(self) -> None:
        """Remove lines that hold no record, when no other process is adding any."""
        try:
            with self.path.open("r+b") as file, self.path.open("rb") as lines:
                wait_for_lock(file)
                for line in lines:
                    if self._holds_record(line):
                        file.write(line)
                file.truncate()
        except OSError as error:
            raise self._unwritable(error) from None

    @contextmanager
    def claimed(self) -> Iterator[Callable[[Iterable[Record]], None]]:
        """Add records by what the block is given, while no other process may add any."""
        with self._opened() as file:
            try:
                lock_at_once(file)
            except BlockingIOError:
                raise FormatError(
                    f"{spot(self.path)}: another process is adding results to it; wait until it "
                    "has ended, or choose another folder"
                ) from None
            except OSError:
                pass  # no locks here
            self._mend(file)
            yield partial(self._add, file)

    def _lines(self) -> Iterator[bytes]:
        if self.path.exists():
            with self._reading() as file:
                yield from file

    @contextmanager
    def _reading(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise FormatError(f"{spot(self.path)}: cannot be read: {error.strerror}") from None

    def _opened(self) -> FileIO:
        try:
            return self.path.open("a+b", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from None

    def _add(self, file: FileIO, records: Iterable[Record]) -> None:
        """Write records to the end of a locked file."""
        rows = [json.dumps(asdict(r), ensure_ascii=False, separators=(",", ":")) for r in records]
        left = "".join(f"{row}\n" for row in rows).encode()
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise self._unwritable(error) from None

    def _mend(self, file: FileIO) -> None:
        """Cut off a last line that a kill left unfinished."""
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        try:
            with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
                whole = content.rfind(b"\n") + 1
            if whole < size:
                file.truncate(whole)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> FormatError:
        return FormatError(f"{spot(self.path)}: cannot be written: {error.strerror}")

    def _holds_record(self, line: bytes) -> bool:
        try:
            self._parsed(line)
        except FormatError:
            return False
        return line.endswith(b"\n")

    def _parsed(self, line: bytes) -> Record:
        try:
            return parse_as(Record, line, spot(self.path))
        except FormatError:
            raise FormatError(
                f"{spot(self.path)}: holds a line that is no result; remove the file to start anew"
            ) from None


JOINING = ("group", "n_groups", "joins", "port_start", "port", "intake")
"""Columns that say nothing new where no operator joins."""


def problem_hash(problem: Problem) -> str:
    """Content hash of a problem: equal for problems that every placement values alike.

    >>> from streamplace import Cluster, Operator, StreamGraph
    >>> graph = StreamGraph.of("g", [Operator("a", ipt=1e5, rate=1e4)])
    >>> problem_hash(Problem(graph, Cluster.uniform(2))) == problem_hash(
    ...     Problem(StreamGraph("other", graph.operators, graph.streams), Cluster.uniform(2)))
    True
    """
    digest = sha256()
    columns = problem.instance._asdict()
    if not problem.instance.joins.any():
        columns = {name: column for name, column in columns.items() if name not in JOINING}
    arrays = [np.asarray(column) for column in columns.values()]
    if problem.rules is not None:
        arrays += [problem.rules.unit, problem.rules.allowed, problem.rules.apart]
        arrays += [
            limit for limit in (problem.rules.memory, problem.rules.room) if limit is not None
        ]
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def numbered(*texts: str) -> int:
    """Texts as one number of eight bytes; that two of a million agree is as good as impossible."""
    return int.from_bytes(blake2b("\0".join(texts).encode(), digest_size=8).digest(), "big")
