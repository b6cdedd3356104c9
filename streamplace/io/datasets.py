"""Data sets: problems in a file, a folder or shards, parsed on iteration."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from streamplace.errors import FormatError
from streamplace.io.files import is_special, spot
from streamplace.io.graphs import Document
from streamplace.io.lines import Line, lines_of
from streamplace.io.parsing import untyped
from streamplace.io.problems import problem_from
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted, shown, suggestion
from streamplace.model.mixins import call_of
from streamplace.model.problem import Problem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reader:
    """Parses lines to problems; its cluster and constraints are for problems without any."""

    cluster: Cluster | None = None
    constraints: Constraints | None = None

    def __call__(self, line: Line) -> Problem:
        """Problem of a line."""
        return problem_from(Document.of(line), self.cluster, self.constraints)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Problems read from files on every iteration, so that memory does not grow.

    Attributes
    ----------
    source
        A file, a folder, or the name or pattern of shards (see `streamplace.io.lines`); or lines
        that are already in memory.
    split
        Value of the attribute ``split`` that selects graphs.
    limit, seed
        Maximum number of problems, which the seed draws; see `drawn`.

    Examples
    --------
    >>> import tempfile
    >>> from streamplace import Operator, StreamGraph, write_graphs
    >>> folder = Path(tempfile.mkdtemp())
    >>> graph = StreamGraph.of("one", [Operator("a", rate=1.0)])
    >>> for shard in range(2):
    ...     _ = write_graphs([graph], folder / f"set-0000{shard}-of-00002.jsonl")
    >>> len(list(DataSet(folder / "set.jsonl")))
    2
    """

    source: Path | tuple[Line, ...]
    split: str | None = None
    limit: int | None = None
    reader: Reader = Reader()
    seed: int = 0

    __repr__ = call_of

    def __iter__(self) -> Iterator[Problem]:
        return map(self.reader, self.lines())

    def lines(self) -> Iterator[Line]:
        """Problems as lines of their files."""
        every = lines_of(self.source) if isinstance(self.source, Path) else iter(self.source)
        return drawn((line for line in every if self._wants(line)), self.limit, self.seed)

    def graphs_and_problems(self) -> Iterator[StreamGraph | Problem]:
        """Problems of the documents with a cluster, and graphs of the others."""
        return map(graph_or_problem, map(Document.of, self.lines()))

    def rereadable(self) -> "DataSet":
        """Return the data set with its lines in memory if its source is a pipe."""
        path = self.source
        if not isinstance(path, Path) or not is_special(path):
            return self
        return replace(self, source=tuple(lines_of(path)))

    def _wants(self, line: Line) -> bool:
        """Whether a line belongs to the split; invalid documents do, so that they raise errors."""
        if self.split is None:
            return True
        try:
            document = untyped(line.content)
            graph = document.get("graph", document)
            return split_of(graph.get("attributes", {})) == self.split
        except (ValueError, AttributeError):
            return True


def drawn(items: Iterable[T], limit: int | None, seed: int) -> Iterator[T]:
    """At most ``limit`` items, in their order; the others are not kept in memory.

    Every item gets a random number, and the items with the smallest numbers are drawn. So a larger
    limit adds items to those of a smaller one.

    >>> [list(drawn("abcdefgh", limit, seed=1)) for limit in (2, 3)]
    [['c', 'e'], ['c', 'e', 'h']]
    """
    if limit is None:
        return iter(items)
    random = np.random.default_rng(seed).random
    numbered = ((random(), i, item) for i, item in enumerate(items))
    return (item for _, item in sorted((i, item) for _, i, item in nsmallest(limit, numbered)))


def graph_or_problem(document: Document) -> StreamGraph | Problem:
    """Problem of a document with a cluster, graph of any other."""
    is_problem = "cluster" in document.parts
    return problem_from(document, None, None) if is_problem else document.graph()


def split_of(attributes: Mapping[str, Any]) -> str | None:
    """Split that a graph with these attributes belongs to, as text; None if it has none."""
    split = attributes.get("split")
    return None if split is None else str(split)


def no_graph(path: Path, data: DataSet) -> FormatError:
    """Error for a data set without graphs, or without graphs of its split."""
    everything = replace(data, split=None, limit=None)
    documents = [Document.of(line).parts["graph"] for line in everything.lines()]
    if data.split is None or not documents:
        return FormatError(f"{spot(path)} holds no graph; name another file")
    names = {split_of(document.get("attributes", {})) for document in documents}
    splits = sorted(name for name in names if name is not None)
    if splits:
        remedy = f"{suggestion(data.split, splits) or '.'} Splits: {', '.join(map(shown, splits))}"
    else:
        remedy = "; its graphs have no split, so drop --split"
    return FormatError(f"{spot(path)} holds no graph of split {quoted(data.split)}{remedy}")
