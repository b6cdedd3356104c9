"""Vertices of a running job: what Flink fused, how often it runs, and where."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.answers import Job
from streamplace.engines.flink.chains import unfused
from streamplace.engines.flink.names import operator_name
from streamplace.engines.flink.rest import Rest


@dataclass(frozen=True, slots=True)
class Vertex:
    """One task of a job: an operator, or several that Flink chained.

    Attributes
    ----------
    name
        As Flink shows it, such as ``Source: lines -> split``.
    devices
        Device → number of subtasks that it runs.
    """

    id: str
    name: str
    parallelism: int
    devices: dict[str, int]


def read_vertices(rest: Rest, job: str, document: Job) -> list[Vertex]:
    """Vertices of a job with the devices of their subtasks."""
    return [
        Vertex(row["id"], row["name"], row["parallelism"], _devices(rest, job, row["id"]))
        for row in document["vertices"]
    ]


def _devices(rest: Rest, job: str, vertex: str) -> dict[str, int]:
    subtasks = rest.get(f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}")[
        "subtasks"
    ]
    found: dict[str, int] = {}
    for subtask in subtasks:
        device = str(subtask.get("taskmanager-id") or "(unassigned)")
        found[device] = found.get(device, 0) + 1
    return dict(sorted(found.items()))


def members(task: str, known: Iterable[str]) -> list[str]:
    """Operators fused in a task, by its name; names that are known win over how they look.

    >>> members("Source: lines -> split -> (count, out: Writer)", ())
    ['lines', 'split', 'count', 'out']
    >>> members("a -> b -> c", ["a -> b", "c"])
    ['a -> b', 'c']
    """
    return list(dict.fromkeys(map(operator_name, unfused(task, known))))
