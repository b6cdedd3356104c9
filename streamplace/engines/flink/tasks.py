"""Vertices of a running job: what Flink fused, how often it runs, and where."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

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


def read_vertices(rest: Rest, job: str, document: dict[str, Any]) -> list[Vertex]:
    """Vertices of a job with the devices of their subtasks."""
    return [
        Vertex(row["id"], row["name"], row["parallelism"], _devices(rest, job, row["id"]))
        for row in document["vertices"]
    ]


def _devices(rest: Rest, job: str, vertex: str) -> dict[str, int]:
    subtasks = rest.get(f"/jobs/{quote(job, safe='')}/vertices/{vertex}")["subtasks"]
    found: dict[str, int] = {}
    for subtask in subtasks:
        device = str(subtask.get("taskmanager-id") or "(unassigned)")
        found[device] = found.get(device, 0) + 1
    return dict(sorted(found.items()))


def members(task: str, known: Iterable[str]) -> list[str]:
    """Operators fused in a task, by its name; names that are known win over how they look.

    >>> members("Source: lines -> split -> (count, out: Writer)", ())
    ['lines', 'split', 'count', 'out']
    >>> members("Source: a, b -> c", ["a, b", "c"])
    ['a, b', 'c']
    """
    found: list[str] = []
    rest = task
    longest = sorted(known, key=len, reverse=True)
    while rest:
        rest = rest.removeprefix("Source: ").removeprefix("Sink: ")
        name = next((n for n in longest if _starts(rest, n)), None) or _first(rest)
        found.append(operator_name(name))
        rest = rest[len(name) :].removeprefix(": Writer").lstrip("),").strip()
        rest = rest.removeprefix("->").strip().lstrip("(")
    return list(dict.fromkeys(found))


def _starts(text: str, name: str) -> bool:
    after = text.removeprefix(name)
    return text.startswith(name) and (
        not after or after.startswith((" -> ", ", ", ")", ": Writer"))
    )


def _first(text: str) -> str:
    """Text up to the next sign that Flink puts between chained operators."""
    ends = [at for at in map(text.find, (" -> ", ", ", ")")) if at > 0]
    return text[: min(ends, default=len(text))]
