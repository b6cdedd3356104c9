"""Benchmarks as data sets of torch-geometric."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import nan
from pathlib import Path
from typing import NamedTuple, Protocol

from streamplace.errors import FormatError
from streamplace.io.datasets import DataSet, Reader, split_of
from streamplace.io.extras import importing
from streamplace.io.lines import lines_of
from streamplace.io.placements import fields_of, is_refusal, parse_document
from streamplace.io.problems import usual_cluster
from streamplace.io.torch_geometric import to_torch_geometric
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.problem import Problem

with importing("torch-geometric"):
    import torch
    from torch_geometric.data import Data, InMemoryDataset

Transform = Callable[[Data], Data]


class LabelledPlacement(Protocol):
    """A placement and its value, such as the result of `place`."""

    @property
    def placement(self) -> Mapping[str, str]:
        """Device of every operator."""

    @property
    def value(self) -> float:
        """Value of the objective."""


class StoredPlacement(NamedTuple):
    """A placement of a file."""

    placement: Mapping[str, str]
    value: float


class PlacementDataset(InMemoryDataset):  # type: ignore[misc]  # Any to the type checker
    """Problems of a benchmark as graphs of torch-geometric, with placements as labels.

    Parameters
    ----------
    source
        File, folder or shards of graphs or problems, or an iterable of them. Graphs are placed on
        ``cluster``.
    split
        Only graphs whose attribute ``split`` is this, such as ``train``.
    cluster
        Cluster of graphs that bring none; by default five equal devices.
    placements
        File that ``streamplace place SOURCE -o FILE.jsonl`` wrote, or results of `place` by the
        names of the graphs. The devices become the labels ``y`` [N] of the operators, and the value
        of the placement the label ``value`` [1] of the graph.
    transform
        Is applied to every graph when it is read.

    Examples
    --------
    >>> from streamplace import Operator, StreamGraph
    >>> graphs = [StreamGraph.of(name, [Operator("a", ipt=2e5, rate=1e4)]) for name in ("g", "h")]
    >>> dataset = PlacementDataset(graphs)
    >>> len(dataset), dataset.num_node_features, dataset[1].name
    (2, 4, 'h')
    """

    def __init__(
        self,
        source: str | Path | Iterable[StreamGraph | Problem],
        split: str | None = None,
        *,
        cluster: Cluster | None = None,
        placements: str | Path | Mapping[str, "LabelledPlacement"] | None = None,
        transform: Transform | None = None,
    ) -> None:
        super().__init__(None, transform)
        labels = _labels(placements) if isinstance(placements, str | Path) else placements or {}
        every = [_data(problem, labels) for problem in _problems(source, split, cluster)]
        if not every:
            raise FormatError("the data set holds no graph; name another file or split")
        self.data, self.slices = self.collate(every)


def _problems(
    source: str | Path | Iterable[StreamGraph | Problem], split: str | None, cluster: Cluster | None
) -> Iterator[Problem]:
    if isinstance(source, str | Path):
        yield from DataSet(Path(source), split, reader=Reader(cluster))
        return
    for item in source:
        problem = item if isinstance(item, Problem) else Problem(item, cluster or usual_cluster())
        if split is None or split_of(problem.graph.attributes) == split:
            yield problem


def _labels(path: str | Path) -> dict[str, StoredPlacement]:
    """Placements of a file by the names of their graphs."""
    labels: dict[str, StoredPlacement] = {}
    for line in lines_of(path):
        if is_refusal(fields_of(line.content)):
            continue
        document = parse_document(line.content, line.where)
        name = document.get("graph", "")
        if name in labels:
            raise FormatError(f"{line.where}: graph {quoted(name)} has two placements; remove one")
        labels[name] = StoredPlacement(document["assignment"], document.get("value", nan))
    return labels


def _data(problem: Problem, labels: Mapping[str, LabelledPlacement]) -> Data:
    """Graph of torch-geometric with its name, and its labels where there are any."""
    name = problem.graph.name
    if labels and name not in labels:
        raise FormatError(
            f"graph {quoted(name)} has no placement; place all graphs of the data set"
        )
    data = to_torch_geometric(problem, labels[name].placement if labels else None)
    data.name = name
    if labels:
        data.value = torch.tensor([labels[name].value], dtype=torch.float64)
    return data
