"""Readers of placements in formats that can be read back."""

from collections.abc import Mapping
from pathlib import Path

from streamplace.errors import FormatError
from streamplace.io.files import located, read_bytes, spot
from streamplace.io.graphs import documents, only
from streamplace.io.placements import parse_document, placement_of
from streamplace.io.problems import problem_from
from streamplace.io.suffixes import EXPORTED
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import named_problem


def read_assignment(path: Path) -> Mapping[str, str]:
    """Operator → device from a file in the format of its suffix (``.json``, ``.csv``, …)."""
    return assignment_of(read_bytes(path), path)


def assignment_of(content: bytes, path: Path) -> Mapping[str, str]:
    """Operator → device from the content of a file."""
    from streamplace.engines.registry import EXPORTS

    readers = {e.suffix: e.read for e in map(EXPORTS.__getitem__, EXPORTS) if e.read}
    if (read := readers.get(path.suffix)) is None:
        raise FormatError(
            f"{spot(path)}: is not a placement file that can be read; its name must end in "
            f"{', '.join(readers)}"
        )
    return read(content, spot(path))


def read_placed(path: Path, problem: Problem) -> tuple[Problem, Placement]:
    """Placement of a problem's operators or of their subtasks, with the problem of these."""
    if path.suffix in EXPORTED:
        from streamplace.engines.deployment import Deployment

        assignment = read_assignment(path)
        with located(spot(path)):
            deployment = Deployment.of(problem, assignment)
        return deployment.unit_problem, deployment.placement
    document = parse_document(read_bytes(path), spot(path))
    unit_problem = named_problem(problem, document["assignment"])
    return unit_problem, placement_of(document, spot(path), unit_problem)


def read_problem_for(
    path: Path,
    assignment: Mapping[str, str],
    cluster: Cluster | None,
    constraints: Constraints | None,
) -> Problem:
    """Problem of a file with one graph, by default on the devices that a placement names."""
    document = only(documents(path), path, "graph")
    if cluster is None and "cluster" not in document.parts:
        cluster = implied_cluster(document.graph(), assignment)
    return problem_from(document, cluster, constraints)


def implied_cluster(graph: StreamGraph, assignment: Mapping[str, str]) -> Cluster:
    """Cluster of the devices of a placement, each with the tags that its operators require.

    >>> from streamplace.model import Operator
    >>> graph = StreamGraph.of("g", [Operator("a", rate=1, requires={"gpu"})])
    >>> devices = implied_cluster(graph, {"a": "node10", "b": "node9"}).devices
    >>> devices.name, devices["node10"].tags
    (('node9', 'node10'), frozenset({'gpu'}))
    """
    tags: dict[str, set[str]] = {device: set() for device in assignment.values()}
    operators = graph.operators
    from streamplace.model.expansion import expand

    subtasks = expand(graph)
    for name, device in assignment.items():
        if name in operators:
            tags[device] |= operators[name].requires
        elif name in subtasks.graph.operators:
            tags[device] |= subtasks.graph.operators[name].requires
    ordered = sorted(tags, key=lambda name: (len(name), name))
    return Cluster.of(Device(name, tags=frozenset(tags[name])) for name in ordered)
