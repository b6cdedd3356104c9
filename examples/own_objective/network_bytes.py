"""Network bytes: what all links together carry, and which streams it is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace import Placement, Problem
from streamplace.display.report import Report, Sheet, quantity
from streamplace.objectives.explanation import Picture
from streamplace.objectives.registry import objective


@dataclass(frozen=True)
class Carried:
    """What the links carry under a placement, the heaviest streams first."""

    value: float
    streams: dict[str, float]

    @property
    def words(self) -> str:
        """The value in words."""
        return f"the network carries {quantity(self.value, 'B/s')}"

    @property
    def verdict(self) -> str:
        """What carries most."""
        heaviest = next(iter(self.streams), None)
        return self.words if heaviest is None else f"{self.words}, most of it by {heaviest}"

    def headline(self) -> dict[str, Any]:
        """How many streams leave their device."""
        return {"remote_streams": len(self.streams)}

    def document(self) -> dict[str, Any]:
        """All facts, for a machine."""
        return {"network-bytes": self.value, "streams": self.streams}

    def brief(self) -> Report:
        """The heaviest streams."""
        rows = tuple((name, quantity(carried, "B/s")) for name, carried in self.streams.items())
        return Report((Sheet(("stream", "carries"), rows),))

    def report(self) -> Report:
        """The same, with the value."""
        return Report(self.brief().parts, self.words)


def explain(problem: Problem, placement: Placement) -> Carried:
    """Streams between devices, the heaviest first."""
    traffic, remote = _traffic(problem), _remote(problem, placement.index)
    heaviest = sorted(np.flatnonzero(remote).tolist(), key=lambda e: -traffic[e])
    label = problem.graph.streams.label
    return Carried(
        float(traffic[remote].sum()), {label(e): float(traffic[e]) for e in heaviest[:8]}
    )


def picture(problem: Problem, placement: Placement) -> Picture:
    """Mark the streams between devices."""
    told, remote = explain(problem, placement), _remote(problem, placement.index)
    nothing = np.zeros(problem.n_operators, np.bool_)
    return Picture(quantity(told.value, "B/s"), "what the network carries in red", nothing, remote)


@objective(
    "network-bytes",
    sense="min",
    unit="B/s",
    bound=lambda problem: 0.0,
    explain=explain,
    picture=picture,
)
def network_bytes(problem: Problem, placements: NDArray[np.int32]) -> NDArray[np.float64]:
    """Bytes/s over all links, at the sources' full rate."""
    carried: NDArray[np.float64] = _remote(problem, np.atleast_2d(placements)) @ _traffic(problem)
    return carried


def _traffic(problem: Problem) -> NDArray[np.float64]:
    """Bytes/s of every stream, in the graph's order."""
    instance = problem.instance
    traffic = np.empty(problem.graph.n_streams)
    traffic[instance.stream_index] = instance.traffic
    return traffic


def _remote(problem: Problem, place: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each stream leaves its device."""
    streams = problem.graph.streams
    return place[..., streams.source] != place[..., streams.target]
