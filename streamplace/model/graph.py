"""StreamGraph: operators and the streams between them, a directed acyclic graph."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.columns import Floats, Ints, frozen, is_text, same_fields
from streamplace.model.messages import quoted, shown
from streamplace.model.operators import Operator, Operators
from streamplace.model.streams import Stream, Streams
from streamplace.model.units import LARGEST

if TYPE_CHECKING:
    from streamplace.model.expansion import Expansion

LARGEST_RATE = 1e18
LARGEST_WHOLE = 2**63 - 1
LONGEST_CYCLE = 10
Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class StreamGraph:
    """A stream-processing application.

    Any number of sources and sinks and parallel streams are allowed; cycles are refused, and so is
    an operator that no source feeds.

    Attributes
    ----------
    attributes
        Free facts about the graph ("split", "family", …) that travel with it through files.
    order
        Rows of the operators in topological (breadth-first) order.
    input_rate
        Tuples/s that each operator takes in when the sources run at full rate, λ.

    Examples
    --------
    >>> graph = StreamGraph.of(
    ...     "pipe",
    ...     [Operator("src", ipt=100, payload=50, rate=1000), Operator("sink", ipt=200)],
    ...     [Stream("src", "sink", selectivity=0.5)],
    ... )
    >>> graph.input_rate.tolist()
    [1000.0, 500.0]
    """

    name: str
    operators: Operators
    streams: Streams
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    order: Ints = field(init=False, repr=False, compare=False)
    input_rate: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not is_text(self.name):
            raise GraphError(f"a graph is called {quoted(self.name)}; its name must be a text")
        put(self, "attributes", MappingProxyType(_checked_attributes(self.attributes)))
        if self.streams.operators is not self.operators:
            raise GraphError("the streams belong to the operators of another graph")
        put(self, "order", frozen(self._checked_order()))
        self._check_sources()
        put(self, "input_rate", frozen(self._checked_rates()))

    @classmethod
    def of(
        cls,
        name: str,
        operators: Iterable[Operator],
        streams: Iterable[Stream] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> "StreamGraph":
        """Graph from single operators and streams."""
        columns = Operators.of(operators)
        return cls(name, columns, Streams.of(columns, list(streams)), attributes or {})

    @property
    def n_operators(self) -> int:
        """Number of operators, N."""
        return len(self.operators)

    @property
    def n_streams(self) -> int:
        """Number of streams, M."""
        return len(self.streams)

    @property
    def sources(self) -> Ints:
        """Rows of the operators that generate tuples."""
        return np.flatnonzero(self.operators.rate > 0).astype(np.int32)

    @property
    def sinks(self) -> Ints:
        """Rows of the operators that feed nobody."""
        return np.flatnonzero(self._degree(self.streams.source) == 0).astype(np.int32)

    @property
    def source_rate(self) -> float:
        """Tuples/s of all sources together."""
        return float(self.operators.rate.sum())

    def at_rate(self, rate: float) -> "StreamGraph":
        """Return the same graph with its sources' rates scaled to a total of ``rate`` tuples/s."""
        if not 0 < rate <= LARGEST:
            raise GraphError(f"a rate of {quoted(rate)}; it must be > 0 and at most {LARGEST:g}")
        scaled = self.operators.rate * (rate / self.source_rate)
        operators = replace(self.operators, rate=scaled)
        return replace(
            self, operators=operators, streams=replace(self.streams, operators=operators)
        )

    def expand(self) -> "Expansion":
        """Return the graph of subtasks: parallelism p becomes p operators of 1/p of the load."""
        from streamplace.model.expansion import expand

        return expand(self)

    def __reduce__(self) -> tuple[object, ...]:
        return StreamGraph, (self.name, self.operators, self.streams, dict(self.attributes))

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash((self.name, self.operators, self.streams))

    def _degree(self, ends: Ints) -> Ints:
        return np.bincount(ends, minlength=self.n_operators).astype(np.int32)

    def _checked_order(self) -> Ints:
        from streamsim.instance import writable
        from streamsim.topology import topological_order

        ends = writable(self.streams.source), writable(self.streams.target)
        order = topological_order(self.n_operators, *ends)
        if len(order) < self.n_operators:
            cycle = [shown(self.operators.name[v]) for v in self._cycle(order)]
            if len(cycle) > LONGEST_CYCLE:
                cycle[LONGEST_CYCLE // 2 : -LONGEST_CYCLE // 2] = ["…"]
            raise GraphError(
                f"graph {quoted(self.name)} has the cycle {' → '.join(cycle)}; "
                "a stream graph has none, remove one of these streams"
            )
        return order

    def _cycle(self, order: Ints) -> list[int]:
        """Walk back along streams among the operators that no topological order reaches."""
        left = np.ones(self.n_operators, bool)
        left[order] = False
        inside = left[self.streams.source] & left[self.streams.target]
        feeder = dict(
            zip(
                self.streams.target[inside].tolist(),
                self.streams.source[inside].tolist(),
                strict=True,
            )
        )
        seen: dict[int, int] = {}
        v = next(iter(feeder))
        while v not in seen:
            seen[v] = len(seen)
            v = feeder[v]
        backwards = [u for u, at in seen.items() if at >= seen[v]]
        return [v, *reversed(backwards)]

    def _check_sources(self) -> None:
        fed = self._degree(self.streams.target) > 0
        rated = self.operators.rate > 0
        wrong = np.flatnonzero(fed == rated)
        if not len(wrong):
            return
        v = int(wrong[0])
        name = quoted(self.operators.name[v])
        if fed[v]:
            raise GraphError(
                f"operator {name} has rate {self.operators.rate[v]:g} but also takes in streams; "
                "only sources have a rate, drop it"
            )
        raise GraphError(
            f"operator {name} is fed by no stream and has no rate, so nothing reaches it; "
            "give it a rate if it is a source, else connect or remove it"
        )

    def _checked_rates(self) -> Floats:
        from streamsim.topology import propagate_rates

        position = np.empty(self.n_operators, np.int32)
        position[self.order] = np.arange(self.n_operators, dtype=np.int32)
        by_source = np.argsort(position[self.streams.source], kind="stable")
        rates, _, _ = propagate_rates(
            self.operators.rate.copy(),
            self.streams.source[by_source],
            self.streams.target[by_source],
            self.streams.selectivity[by_source],
            self.window_rows(),
        )
        fine = rates <= LARGEST_RATE
        if not fine.all():
            v = int(self.order[np.argmin(fine[self.order])])
            raise GraphError(
                f"operator {quoted(self.operators.name[v])} would take in {rates[v]:g} tuples/s; "
                f"lower the selectivities before it (at most {LARGEST_RATE:g})"
            )
        return rates

    def window_rows(self) -> Floats:
        """Windows as rows of (operator, size, advance, base, factor, limit)."""
        rows = [
            (v, w.size, w.advance, w.base, w.factor, w.limit)
            for v, w in sorted(self.operators.window.items())
        ]
        return np.array(rows, np.float64).reshape(-1, 6)


def _checked_attributes(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Attributes as plain values; what no file could hold is refused."""
    plain: dict[str, Attribute] = {}
    for name, given in attributes.items():
        value = given.item() if isinstance(given, np.generic) else given
        fine = is_text(name) and (
            is_text(value)
            or (isinstance(value, int) and abs(value) <= LARGEST_WHOLE)
            or (isinstance(value, float) and np.isfinite(value))
        )
        if not fine:
            raise GraphError(
                f"attribute {quoted(name)} is {quoted(value)}; "
                "it must be a text, a finite number or a truth value"
            )
        plain[name] = value
    return plain
