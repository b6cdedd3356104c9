"""StreamGraph: operators and the streams between them, a directed acyclic graph."""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.buffers import MessageLoads, check_messages
from streamplace.model.columns import checked_rows, frozen, is_text
from streamplace.model.message_text import counted, quoted, shown
from streamplace.model.mixins import Caching, Pictured, data_frame, kept, same_fields
from streamplace.model.operators import ALL, EACH, Operator, Operators
from streamplace.model.streams import RESCALE, Stream, Streams
from streamplace.model.units import MAX_VALUE, Quantity, digits, format_rate, total_rate

if TYPE_CHECKING:
    from networkx import MultiDiGraph
    from pandas import DataFrame
    from streamsim.flow import Flow

NETWORKX = "streamplace.io.networkx"
"""Module that converts graphs. It imports this one, so it is loaded by name."""
MAX_INPUT_RATE, MAX_WHOLE, MAX_CYCLE = 1e18, 2**63 - 1, 10
Attribute = str | int | float | bool

CPU_OF = "cpu of "
"""Prefix of the attributes that tell how an operator's CPU was estimated if not measured."""
CPU_ORIGIN = "cpu per operator"
"""Attribute that tells where the CPU of all operators comes from, and how far off it may be."""
CPU_ERROR = "cpu error"
"""Attribute with the expected relative error of the CPU of an operator."""
KEEPS_PARALLELISM = "keeps parallelism of "
"""Prefix of the attributes that tell why plans keep the parallelism of an operator."""
CONSISTENCY = "consistency"
"""Attribute that describes how well the model agrees with the measured placement."""
CONSISTENCY_ERROR = "consistency error"
"""Attribute with the relative error of the model for that placement, predicted / measured - 1."""
PROFILE_WINDOWS = "profile windows"
"""Attribute of a measured graph with the number of observation windows."""
PROFILE_SPREAD = "profile spread"
"""Attribute with the coefficient of variation of the CPU per tuple over the windows."""
PROFILE_DRIFT = "profile drift"
"""Attribute with the relative change of the CPU per tuple of a job that was not warm."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamGraph(Caching, Pictured):
    """A stream-processing application.

    Several sources and sinks and parallel streams are allowed; cycles and operators that no source
    feeds are refused. ``len`` is the number of operators, and iterating yields their names.

    Attributes
    ----------
    attributes
        Metadata of the graph ("split", "family", …), kept in its files.
    flow
        Order, adjacency and rates as arrays, for sources at full rate.

    Examples
    --------
    >>> graph = StreamGraph.of(
    ...     "pipe",
    ...     [Operator("src", ipt=100, payload=50, rate=1000), Operator("sink", ipt=200)],
    ...     [Stream("src", "sink", selectivity=0.5)],
    ... )
    >>> graph.input_rate.tolist()
    [1000.0, 500.0]
    >>> len(graph), list(graph), "sink" in graph
    (2, ['src', 'sink'], True)
    """

    name: str
    operators: Operators
    streams: Streams
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    flow: "Flow" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not is_text(self.name):
            raise GraphError(f"the name of a graph is {quoted(self.name)}; it must be a string")
        put(self, "attributes", MappingProxyType(_checked_attributes(self.attributes)))
        check_messages(self.attributes)
        if self.streams.operators is not self.operators:
            raise GraphError("the streams belong to the operators of another graph")
        put(self, "flow", self._flow())
        self._check_sources()
        self._check_rates()

    @classmethod
    def of(
        cls,
        name: str,
        operators: Iterable[Operator],
        streams: Iterable[Stream] = (),
        attributes: Mapping[str, Attribute] | None = None,
        fires: str = EACH,
    ) -> "StreamGraph":
        """Graph from single operators and streams.

        Parameters
        ----------
        fires
            Default firing rule of its operators: "each" or "all". A graph that fires "all" is a
            task graph: its sources have a rate of 1 per second unless they state another.

        Examples
        --------
        >>> tasks = map(Operator, ("load", "left", "right", "add"))
        >>> ways = [("load", "left"), ("load", "right"), ("left", "add"), ("right", "add")]
        >>> graph = StreamGraph.of("tasks", tasks, [Stream(*ends) for ends in ways], fires="all")
        >>> graph.input_rate.tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        if not isinstance(name, str):
            raise GraphError(
                f"the name of a graph is {quoted(name)}; it must be a string, and comes first"
            )
        columns = Operators.of(checked_rows(operators, Operator, "Operator('a')"), fires)
        rows = Streams.of(columns, checked_rows(streams, Stream, "Stream('a', 'b')"))
        if fires == ALL:
            columns, rows = rated(columns, rows)
        return cls(name, columns, rows, attributes or {})

    def __len__(self) -> int:
        """Number of operators."""
        return len(self.operators)

    def __iter__(self) -> Iterator[str]:
        """Names of the operators."""
        return iter(self.operators.name)

    def __contains__(self, name: object) -> bool:
        return name in self.operators

    @property
    def n_operators(self) -> int:
        """Number of operators, N."""
        return len(self.operators)

    @property
    def n_streams(self) -> int:
        """Number of streams, M."""
        return len(self.streams)

    @property
    def order(self) -> Ints:
        """Rows of the operators in topological (breadth-first) order."""
        return frozen(self.flow.order.view())

    @property
    def input_rate(self) -> Floats:
        """Tuples (or sets) per second that each operator receives at full rate, λ."""
        return frozen(self.flow.input_rate.view())

    @property
    @kept
    def charged_ipt(self) -> Floats:
        """Instructions per input tuple of each operator, with its part of the streams' ``ipt``."""
        streams, flow, ipt = self.streams, self.flow, self.operators.ipt
        if not streams.ipt.any():
            return ipt
        each = np.where(streams.chained(), 0.0, streams.ipt)[flow.stream_index]
        half = 0.5 * flow.tuples * each
        work = np.bincount(flow.source, half, self.n_operators)
        work += np.bincount(flow.target, half, self.n_operators)
        more = np.divide(work, flow.input_rate, out=np.zeros_like(work), where=flow.input_rate > 0)
        return frozen(np.asarray(ipt + more, np.float64))

    @property
    def message_loads(self) -> MessageLoads | None:
        """CPU of messages between subtasks; None if attributes do not say what one costs."""
        return MessageLoads.of(
            self.attributes, self.operators, self.streams, self.flow, self.charged_ipt
        )

    @property
    @kept
    def charged_constant(self) -> Floats:
        """MIPS of each operator that tuples do not take: its constant load, and messages.

        Messages at the graph's rate and parallelism count unless the operator's ``ipt`` contains
        them; see `streamplace.model.buffers`.
        """
        messages, constant = self.message_loads, self.operators.constant
        if messages is None:
            return constant
        return frozen(constant + messages.more(self.operators.parallelism) / 1e6)

    @property
    def sources(self) -> Ints:
        """Rows of the operators that generate tuples."""
        return np.flatnonzero(self.operators.rate > 0).astype(np.int32)

    @property
    def sinks(self) -> Ints:
        """Rows of the operators without output streams."""
        return np.flatnonzero(self._degree(self.streams.source) == 0).astype(np.int32)

    @property
    def source_rate(self) -> float:
        """Tuples/s of all sources together."""
        return float(self.operators.rate.sum())

    @property
    def kept_parallelism(self) -> list[str]:
        """Operators whose parallelism plans keep, as attributes say."""
        names = self.operators.name
        return [name for name in names if self.attributes.get(KEEPS_PARALLELISM + name)]

    def at_rate(self, rate: Quantity) -> "StreamGraph":
        """Return the same graph with its sources' rates scaled to a total rate.

        Parameters
        ----------
        rate
            Tuples/s, or a text such as ``"10 k/s"``.
        """
        total = total_rate(rate) if isinstance(rate, str) else rate
        # the rates of several sources may add up to a little more
        if not isinstance(total, Real) or not 0 < total <= MAX_VALUE * (1 + 1e-9):
            raise GraphError(
                f"the rate is {quoted(rate)}; it must be above 0 and at most {MAX_VALUE:g}"
            )
        scaled = np.minimum(self.operators.rate * (total / self.source_rate), MAX_VALUE)
        return self.with_operators(replace(self.operators, rate=scaled))

    def with_operators(self, operators: Operators) -> "StreamGraph":
        """Return the same graph with other columns of its operators."""
        return replace(
            self, operators=operators, streams=replace(self.streams, operators=operators)
        )

    @property
    def title(self) -> str:
        """Name and size in one line."""
        rate = "" if self.operators.fires_all.all() else f", {format_rate(self.source_rate)}"
        return (
            f"{shown(self.name)}: {counted(self.n_operators, 'operator')}, "
            f"{counted(self.n_streams, 'stream')}{rate}"
        )

    def to_pandas(self) -> "DataFrame":
        """Table of the operators, one row each; ``input_rate`` is that at full rate."""
        columns = ("kind", "ipt", "payload", "rate", "parallelism", "memory")
        return data_frame(
            {
                "operator": self.operators.name,
                **{name: getattr(self.operators, name) for name in columns},
                "input_rate": self.input_rate.tolist(),
            }
        )

    def to_networkx(self) -> "MultiDiGraph[str]":
        """Convert to a directed multigraph of networkx, as `streamplace.to_networkx`."""
        result: MultiDiGraph[str] = importlib.import_module(NETWORKX).to_networkx(self)
        return result

    def __repr__(self) -> str:
        return f"<StreamGraph {self.title}>"

    def __reduce__(self) -> tuple[object, ...]:
        return StreamGraph, (self.name, self.operators, self.streams, dict(self.attributes))

    __eq__ = same_fields

    def __hash__(self) -> int:
        return hash((self.name, self.operators, self.streams))

    def _degree(self, ends: Ints) -> Ints:
        return np.bincount(ends, minlength=self.n_operators).astype(np.int32)

    def _flow(self) -> "Flow":
        from streamsim.flow import CycleError, flow_of

        operators, streams = self.operators, self.streams
        try:
            flow = flow_of(
                operators.rate,
                streams.source,
                streams.target,
                selectivity=streams.selectivity,
                windows=operators.window_rows(),
                joins=operators.fires_all,
                inputs=streams.inputs(),
                parallelism=operators.parallelism * operators.cores,
                payload=streams.bytes_per_tuple(),
            )
        except CycleError as error:
            raise self._cyclic(error.order) from None
        groups, subtasks = operators.max_parallelism, operators.parallelism
        if not groups.any() and RESCALE not in streams.partitioning:
            return flow
        from streamplace.model.key_groups import balanced_parallelism

        ways = streams.distribution()[flow.stream_index]
        parts = balanced_parallelism(groups, subtasks, ways, flow)
        return flow._replace(parallelism=parts * operators.cores)

    def _check_rates(self) -> None:
        from streamsim.flow import unequal_inputs

        operators, streams, flow = self.operators, self.streams, self.flow
        fine = flow.input_rate <= MAX_INPUT_RATE
        if not fine.all():
            v = int(flow.order[np.argmin(fine[flow.order])])
            raise GraphError(
                f"operator {quoted(operators.name[v])} would receive {flow.input_rate[v]:g} "
                f"tuples/s; lower the selectivities before it (at most {MAX_INPUT_RATE:g})"
            )
        if unequal := unequal_inputs(flow):
            e, f, more, less = unequal
            name = quoted(operators.name[streams.target[e]])
            raise GraphError(
                f"operator {name} fires once per set of one tuple from every input, but "
                f"{streams.label(e)} brings {digits(more, 6)} tuples/s and {streams.label(f)} "
                f"{digits(less, 6)}; "
                "give them the same rate, by their selectivities, or let it fire 'each'"
            )

    def _cyclic(self, order: Ints) -> GraphError:
        cycle = [shown(self.operators.name[v]) for v in self.streams.cycle(order)]
        if len(cycle) > MAX_CYCLE:
            cycle[MAX_CYCLE // 2 : -MAX_CYCLE // 2] = ["…"]
        return GraphError(
            f"graph {quoted(self.name)} has the cycle {' → '.join(cycle)}; a stream graph must "
            "not have cycles; remove one of these streams"
        )

    def _check_sources(self) -> None:
        fed, sends = (self._degree(ends) > 0 for ends in (self.streams.target, self.streams.source))
        rated = self.operators.rate > 0
        is_silent = ~fed & ~rated & sends & rated.any()  # a source without a rate beside others
        wrong = np.flatnonzero((fed == rated) & ~is_silent)
        if not len(wrong):
            return
        v = int(wrong[0])
        name = quoted(self.operators.name[v])
        if fed[v]:
            raise GraphError(
                f"operator {name} has rate {self.operators.rate[v]:g} but also input streams; "
                "only sources have a rate, remove it"
            )
        raise GraphError(
            f"operator {name} has neither input streams nor a rate above 0, so no tuples "
            "reach it; give it a rate if it is a source, else connect or remove it"
        )


def rated(operators: Operators, streams: Streams) -> tuple[Operators, Streams]:
    """Set a rate of 1 tuple/s for operators without input streams or a rate."""
    fed = np.bincount(streams.target, minlength=len(operators)) > 0
    rate = np.where(fed | (operators.rate > 0), operators.rate, 1.0)
    columns = replace(operators, rate=rate)
    return columns, replace(streams, operators=columns)


def _checked_attributes(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Convert attributes to plain values; raise GraphError for values that no file can hold."""
    plain: dict[str, Attribute] = {}
    for name, raw in attributes.items():
        value = raw.item() if isinstance(raw, np.generic) else raw
        fine = is_text(name) and (
            is_text(value)
            or (isinstance(value, int) and abs(value) <= MAX_WHOLE)
            or (isinstance(value, float) and np.isfinite(value))
        )
        if not fine:
            raise GraphError(
                f"attribute {quoted(name)} is {quoted(value)}; it must be a string, a finite "
                "number or a boolean"
            )
        plain[name] = value
    return plain
