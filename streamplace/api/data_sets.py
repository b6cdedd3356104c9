"""Data sets: made by a family, read from foreign formats, described in numbers."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from streamplace.api.arguments import ClusterLike, FilePath, cluster_of, is_path, path_of, wrong
from streamplace.errors import SettingError
from streamplace.io.datasets import DataSet
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity, bandwidth_bps
from streamplace.model.units import mips as speed

if TYPE_CHECKING:
    from streamplace.evaluate.profile import Profile
    from streamplace.io.problems import Draft

MIPS, BANDWIDTH = 2500.0, 1e9
"""Units of CPU and traffic where none are given."""
GraphsLike = StreamGraph | Problem | FilePath | DataSet | Iterable[StreamGraph | Problem | FilePath]
"""A graph or a problem, several, a `DataSet`, or the path of a file or a folder of them."""


def generate(
    family: str, /, *, seed: int = 0, **parameters: int | float | str | bool
) -> list[StreamGraph | Problem]:
    """Generate benchmark graphs or problems of a family.

    `streamplace.families.dataset.write_dataset` writes data sets that do not fit into memory.

    Parameters
    ----------
    family
        Name of the family, such as ``branched``.
    seed
        Equal seeds and parameters give equal graphs.
    parameters
        Parameters of the family by name; those left out have their defaults.

    Examples
    --------
    >>> graphs = generate("branched", branches=2, depth=3, devices=2, copies=3)
    >>> len(graphs), graphs[0].name
    (3, 'b2x3-v2-000')
    """
    from streamplace.families.parameters import parameters_of
    from streamplace.families.registry import FAMILIES

    if not isinstance(family, str):
        raise wrong("family", family, f"one of {', '.join(FAMILIES)}")
    chosen = FAMILIES[family]
    return list(chosen.generate(parameters_of(chosen.parameters, parameters), seed))


def import_graphs(
    format: str, source: FilePath, *, options: Iterable[str] = ()
) -> "Iterator[StreamGraph | Problem | Draft]":
    """Read graphs of a foreign format, one after the other.

    Parameters
    ----------
    format
        Name of the format, such as ``dream`` or ``onnx``.
    source
        File or folder; a PyTorch model is named as ``package.module:function``.
    options
        What the reader does on request; see ``streamplace import --help``.
    """
    from streamplace.io.registry import FORMATS

    if not isinstance(format, str):
        raise wrong("format", format, f"one of {', '.join(FORMATS)}")
    return FORMATS[format].with_options(options).read(path_of("source", source))


def describe(
    data: GraphsLike,
    *,
    cluster: ClusterLike | None = None,
    mips: Quantity | None = None,
    bandwidth: Quantity | None = None,
    split: str | None = None,
    limit: int | None = None,
) -> "Profile":
    """Describe graphs in numbers: sizes, CPU of operators, traffic of streams.

    Parameters
    ----------
    data
        A graph, a problem, several, or the path of a file or a folder of them.
    cluster
        Cluster whose mean device and link are the units of CPU and traffic.
    mips, bandwidth
        Speed and bandwidth of these units, where no cluster is given; by default 2500 MIPS and
        1000 Mbps.
    split
        Only graphs whose attribute ``split`` is this.
    limit
        Only the first so many graphs.

    Examples
    --------
    >>> graphs = generate("branched", branches=2, depth=3, devices=2, copies=3)
    >>> describe(graphs).operators
    (8, 8, 8)
    """
    from streamplace.evaluate.profile import mean_device_and_link, profile

    graphs, devices = graphs_of(data, split, limit), cluster_of(cluster)
    if devices is None:
        units = speed(mips or MIPS), bandwidth_bps(bandwidth or BANDWIDTH)
    elif mips is None and bandwidth is None:
        units = mean_device_and_link(devices)
    else:
        raise SettingError("a cluster has its own units; drop mips and bandwidth, or the cluster")
    return profile(graphs, mips=units[0], bandwidth_bps=units[1])


def graphs_of(
    data: GraphsLike, split: str | None = None, limit: int | None = None
) -> Iterator[StreamGraph | Problem]:
    """Graphs of a split, and problems where the documents have a cluster."""
    if limit is not None and limit < 1:
        raise SettingError(f"limit is {quoted(limit)}; it must be at least 1")
    return islice((item for item in _every(data) if _is_of(item, split)), limit)


def _every(data: GraphsLike) -> Iterator[StreamGraph | Problem]:
    if isinstance(data, StreamGraph | Problem):
        yield data
    elif is_path(data):
        yield from _stored(data)
    elif isinstance(data, Iterable):
        for item in data:
            if isinstance(item, StreamGraph | Problem):
                yield item
            elif is_path(item):
                yield from _stored(item)
            else:
                raise wrong("data", item, WANTED)
    else:
        raise wrong("data", data, WANTED)


def _stored(path: FilePath) -> Iterator[StreamGraph | Problem]:
    """Problems of a file where its documents have a cluster; otherwise graphs."""
    from streamplace.io.graphs import documents
    from streamplace.io.problems import problem_of

    for document in documents(path_of("data", path)):
        own = "cluster" in document.parts
        yield problem_of(document, None, None) if own else document.graph()


def _is_of(item: StreamGraph | Problem, split: str | None) -> bool:
    graph = item.graph if isinstance(item, Problem) else item
    return split is None or graph.attributes.get("split") == split


WANTED = "a StreamGraph or a Problem, several, or the path of a file or a folder of them"
