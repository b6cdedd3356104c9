"""Data sets: problems of a file, a folder or shards, parsed by whoever works on them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from streamplace.errors import FormatError
from streamplace.io.files import spot
from streamplace.io.graphs import Document
from streamplace.io.lines import Line, lines_of
from streamplace.io.problems import problem_beside
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.messages import quoted, shown, suggestion
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes problems of lines, with what is known beside them."""

    cluster: Cluster | None = None
    constraints: Constraints | None = None

    def __call__(self, line: Line) -> Problem:
        """Problem of a line."""
        return problem_beside(Document.of(*line), self.cluster, self.constraints)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Problems that are read from files on every iteration, so that memory does not grow.

    Attributes
    ----------
    source
        A file, a folder, or the name or the pattern of shards (see `streamplace.io.lines`); or
        lines that were read already.
    split
        Only graphs whose attribute ``split`` is this.
    limit
        Only the first so many.

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

    def __iter__(self) -> Iterator[Problem]:
        return map(self.reader, self.lines())

    def lines(self) -> Iterator[Line]:
        """Problems as lines of their files."""
        every = lines_of(self.source) if isinstance(self.source, Path) else iter(self.source)
        return islice((line for line in every if self._wants(line)), self.limit)

    def rereadable(self) -> "DataSet":
        """Return this data set as one that can be read more than once, as a pipe cannot."""
        path = self.source
        if not isinstance(path, Path) or not path.exists() or path.is_dir() or path.is_file():
            return self
        return replace(self, source=tuple(lines_of(path)))

    def _wants(self, line: Line) -> bool:
        """Whether a line is of the split; what is no document is, so that it is told of."""
        if self.split is None:
            return True
        try:
            document = from_json(line.content)
            return bool(split_of(document.get("graph", document)) == self.split)
        except (ValueError, AttributeError):
            return True


def split_of(graph: dict[str, Any]) -> str | None:
    """Split that the document of a graph says it belongs to."""
    split: str | None = graph.get("attributes", {}).get("split")
    return split


def no_graph(path: Path, data: DataSet) -> FormatError:
    """Error of a data set at a path that holds no graph, or none of its split."""
    everything = replace(data, split=None, limit=None)
    graphs = [Document.of(*line).parts["graph"] for line in everything.lines()]
    if data.split is None or not graphs:
        return FormatError(f"{spot(path)} holds no graph; name another file")
    splits = sorted({str(name) for name in map(split_of, graphs) if name is not None})
    if splits:
        remedy = f"{suggestion(data.split, splits) or '.'} Splits: {', '.join(map(shown, splits))}"
    else:
        remedy = "; its graphs have no split, so drop --split"
    return FormatError(f"{spot(path)} holds no graph of split {quoted(data.split)}{remedy}")
