"""Data sets as arguments of Python functions: one graph or several, objects or paths."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from streamplace.errors import SettingError
from streamplace.io.datasets import DataSet, Reader, drawn, graph_or_problem, split_of
from streamplace.io.given import GraphLike, converted, graph_of, problem_of
from streamplace.io.graphs import Document
from streamplace.io.lines import Line
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.paths import is_path, path_of, wrong
from streamplace.model.problem import Problem

GraphsLike = GraphLike | DataSet | Iterable[GraphLike]
"""A graph or a problem as for `place`, several, a `DataSet`, or the path of a folder of them."""
WANTED = "a StreamGraph or a Problem, several, or the path of a file or a folder of them"


def graphs_of(
    data: GraphsLike, split: str | None = None, limit: int | None = None
) -> Iterator[StreamGraph | Problem]:
    """Graphs of a split, or problems if their documents have a cluster."""
    for item in _drawn(data, split, limit, seed=0):
        document = Document.of(item) if isinstance(item, Line) else item
        yield graph_or_problem(document) if isinstance(document, Document) else document


def problems_of(
    data: GraphsLike,
    reader: Reader,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Iterator[Problem]:
    """Problems of a split; the reader's cluster and constraints are for problems without any."""
    for item in _drawn(data, split, limit, seed):
        if isinstance(item, Line):
            yield reader(item)
        else:
            yield problem_of(item, reader.cluster, reader.constraints)


def _drawn(
    data: GraphsLike, split: str | None, limit: int | None, seed: int
) -> Iterator[StreamGraph | Problem | Document | Line]:
    """Graphs and problems that are drawn; those in files are not parsed yet."""
    if limit is not None and limit < 1:
        raise SettingError(f"limit is {quoted(limit)}; it must be at least 1")
    every = (
        [item]
        if isinstance(item, StreamGraph | Problem | Document)
        else DataSet(item, split).lines()
        for item in _items(data, split)
    )
    return drawn(chain.from_iterable(every), limit, seed)


def _items(
    data: GraphsLike, split: str | None
) -> Iterator[StreamGraph | Problem | Document | Path]:
    """Graphs and problems of a split, and paths of files with more of them."""
    data = converted(data)
    if isinstance(data, StreamGraph | Problem | Document) or is_path(data):
        items: Iterable[Any] = [data]
    elif isinstance(data, Iterable):
        items = map(converted, data)
    else:
        raise wrong("data", data, WANTED)
    for item in items:
        if is_path(item):
            yield path_of("data", item)
        elif not isinstance(item, StreamGraph | Problem | Document):
            raise wrong("data", item, WANTED)
        else:
            graph = graph_of(item)
            if split in (None, split_of(graph.attributes)):
                yield item
