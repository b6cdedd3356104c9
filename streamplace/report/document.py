"""The JSON document of a report page, which Python writes and the page reads.

A `Column` is a list with a value per row, or a single value for all rows. Times are in seconds,
sizes in bytes, rates in tuples/s. Operators, devices and streams are numbered by row. Quantities
without a limit or a value are null.
"""

from math import isfinite
from typing import Any, Literal, NotRequired, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import TypedDict

from streamplace.io.fields import plain

VERSION = 1
Column: TypeAlias = list[float] | float
Texts: TypeAlias = list[str] | str
ResourceKind = Literal["device", "core", "link", "egress", "ingress"]


class WindowPart(TypedDict):
    """Window of an operator: every ``advance`` s it emits min(limit, base + factor · count)."""

    operator: int
    size: float
    advance: float
    base: float
    factor: float
    limit: float | None


class OperatorsPart(TypedDict):
    """Operators [N] as columns."""

    name: list[str]
    kind: Texts
    ipt: Column  # instructions per input tuple, including those of its streams on every device
    rate: Column  # tuples/s that a source generates, 0 for others
    # 1 / share of the busiest subtask; possibly fractional.
    parallelism: Column
    joins: Column  # 1 if the operator fires once per set of one tuple from every input ("all")
    memory: Column  # bytes on its device
    windows: NotRequired[list[WindowPart]]
    # Number of the unit: operators of one unit share a device. Absent if each is its own unit.
    unit: NotRequired[list[int]]
    # MIPS that the operator uses at any rate; absent if no operator uses any.
    constant: NotRequired[Column]
    # Number of subtasks that share these MIPS, and those of messages, equally; absent without both.
    subtasks: NotRequired[Column]
    cores: NotRequired[Column]  # cores that one subtask uses at most; absent if all use one
    # Tuples/s that one subtask reads (a source: emits) at most, 0 without a limit. Absent if none
    # has one.
    max_rate: NotRequired[Column]


class StreamsPart(TypedDict):
    """Streams [M] as columns, in the order of the graph."""

    source: list[int]
    target: list[int]
    selectivity: Column  # tuples on the stream per output tuple of its source
    payload: Column  # bytes per tuple
    # Number of the input of a joining operator; streams with equal numbers are one input. Absent if
    # every stream is an input of its own.
    input: NotRequired[list[int]]


class MessagesPart(TypedDict):
    """CPU of messages between subtasks that the ``ipt`` of operators does not contain."""

    ipt: float  # instructions per message, half of them at each end
    timeout: float  # seconds after which a buffer is sent although it is not full
    channels: Column  # [M] channels between the subtasks at both ends of a stream; 0 in a chain
    contained: Column  # [N] part of an operator's ``ipt`` that is for messages
    mips: Column  # [N] CPU of messages at the rate of the graph


class DevicesPart(TypedDict):
    """Devices [D] as columns."""

    name: list[str]
    mips: Column  # MIPS of a core, less the reserved share
    cores: Column
    free_cores: NotRequired[Column]  # cores less the reserved ones; absent if none are reserved
    # Seconds per byte that the network card sends and receives; 0 if only links limit.
    egress: Column
    ingress: Column
    memory: list[float | None] | None  # bytes; null if unlimited
    price: NotRequired[Column]  # price per hour; absent if machines have none


class NetworkPart(TypedDict):
    """Links between devices."""

    group: Column  # [D] group of every device; devices of one group have the same links
    # By groups: sender × receiver. The diagonal is for two devices of one group; within a device,
    # sending is free.
    seconds_per_byte: list[list[float]]
    latency: list[list[float]]
    overhead: float  # core seconds that each remote tuple costs at both ends
    # Core seconds that each remote byte costs at both ends; absent if it costs none.
    overhead_per_byte: NotRequired[float]
    gap: float  # link seconds that each remote tuple costs in addition to its bytes


class ConstraintsPart(TypedDict):
    """Rules that make a placement legal; units are those of the operators."""

    # Pairs of a unit and the devices that it may use; other units may use all.
    allowed: list[tuple[int, list[int]]]
    # Pairs of a pinned unit and the devices that it may use without its pin; null for all.
    unpinned: list[tuple[int, list[int] | None]]
    apart: list[tuple[int, int]]  # pairs of units that must not share a device


class LayoutPart(TypedDict):
    """Positions of boxes: layers from left to right, centres in pixels."""

    # Size of a box.
    width: float
    height: float
    # [N] layer and centre of every operator.
    layer: list[int]
    x: list[int]
    y: list[int]
    # [M] points (x, y, x, y, …) of a stream between its ends; 0 if there are none. Absent if no
    # stream has any.
    bends: NotRequired[list[list[int] | Literal[0]]]
    extent: tuple[int, int]  # width and height of the picture


class GroupsPart(TypedDict):
    """A way to group operators for display."""

    # "units" (which share a device), "subtasks" (of one operator), "chains" (of operators that feed
    # only the next).
    by: str
    of: list[int]  # [N] group of every operator
    name: list[str]  # names of the groups


class LimitPart(TypedDict):
    """The fullest resource; ``peer`` is the receiving device of a link, else -1."""

    kind: ResourceKind
    device: int
    peer: int
    load: float


class LoadsPart(TypedDict):
    """Loads at the full rate of the sources; 1 is full. Links are (from, to, load), in use only."""

    devices: list[float]
    egress: list[float]
    ingress: list[float]
    links: list[tuple[int, int, float]]


class ChainPiece(TypedDict):
    """A part of the critical chain of a pass; ``stream`` is -1 for parts on a device."""

    what: str
    operator: int
    stream: int
    begin: float
    end: float


class PassPart(TypedDict):
    """One pass, as in `streamsim.passes`."""

    # Rules of the pass. The default ones are "fifo", "free" and 0.
    queue: str
    network: str
    pause: float
    makespan: float
    # [N] times of the operators.
    start: list[float]
    finish: list[float]
    chain: list[ChainPiece]


class MarksPart(TypedDict):
    """Marks of the objective for the bottleneck."""

    operators: list[int]
    streams: list[int]


class ResourcePart(TypedDict):
    """A resource; ``peer`` is the receiving device of a link, else -1."""

    kind: ResourceKind
    device: int
    peer: int


class LevelPart(TypedDict):
    """Sources that can all run at a share of their rates at once, and the full resource there."""

    share: float
    sources: list[int]
    stuck: list[int]  # operators that keep every placement from a higher share of these sources
    limit: ResourcePart


class PlacementPart(TypedDict):
    """A placement, with values that Python computed."""

    name: str
    place: list[int]  # [N] device of every operator
    # [N] order in which devices serve operators; absent for the default order.
    priority: NotRequired[list[float]]
    queue: NotRequired[str]  # discipline of that order, as in placement files
    throughput: float  # relative throughput
    sources: list[tuple[int, float]]  # (operator, sustained share of its rate) of every source
    # Of several sources, the levels below their full rates; absent if there are none.
    levels: NotRequired[list[LevelPart]]
    bottleneck: LimitPart
    # Load of the bottleneck relative to its capacity without constant loads; absent without any.
    pressure: NotRequired[float]
    loads: LoadsPart
    value: float  # value by the objective of the problem, as a number and in words
    words: str
    bound: NotRequired[float]
    marks: MarksPart
    one_pass: NotRequired[PassPart]


class ErrorsPart(TypedDict):
    """Errors of predictions for a measured graph: ends of measured / predicted, their origin."""

    low: float
    high: float
    words: str


class ObjectivePart(TypedDict):
    """The objective of placements."""

    name: str
    sense: Literal["max", "min"]
    unit: str


class ProblemPart(TypedDict):
    """A graph, the devices, and placements of the graph on them."""

    name: str
    what_if: str  # reason why operators cannot be moved, in a sentence; "" if they can
    operators: OperatorsPart
    streams: StreamsPart
    # Absent if messages cost nothing.
    messages: NotRequired[MessagesPart]
    layout: LayoutPart
    groups: list[GroupsPart]
    # Absent for a graph alone.
    devices: NotRequired[DevicesPart]
    network: NotRequired[NetworkPart]
    constraints: NotRequired[ConstraintsPart]
    # [D] columns [N] of core seconds per tuple, if they differ from ipt / (mips · 10⁶).
    seconds: NotRequired[list[Column]]
    objective: NotRequired[ObjectivePart]
    # Shell command that simulates a placement, read from standard input; absent if there is none.
    command: NotRequired[str]
    errors: NotRequired[ErrorsPart]  # errors of predictions; absent if the graph was not measured
    # Assumptions for facts that nobody stated, such as the devices; absent without any.
    assumptions: NotRequired[list[str]]
    placements: list[PlacementPart]


class ComparedPart(TypedDict):
    """Results of a comparison by one objective at one rate (null: the rate of each graph)."""

    objective: ObjectivePart
    rate: float | None
    placers: list[str]
    # A row for each placer with ``placer`` and the numbers of ``streamplace compare --json``.
    rows: list[dict[str, Any]]
    # Values of each placer [P] on each graph [G]; null without a placement.
    values: list[list[float | None]]
    milliseconds: list[list[float]]  # time of each placer [P] on each graph [G]
    optimum: list[float | None]  # [G] proven optimum; null if unknown


class ComparisonPart(TypedDict):
    """A comparison of placers."""

    graphs: list[str]  # [G] names of the graphs
    problem: list[int | None]  # [G] number of the graph in ``problems``; null if the page omits it
    reference: str
    aliases: dict[str, str]  # alias → placer, for the aliases in the tables
    results: list[ComparedPart]
    failures: dict[str, str]


class MachinesPart(TypedDict):
    """Machines of one type in a plan; ``price`` is per hour, null if unknown."""

    name: str
    number: int
    price: float | None
    contents: str


class CurvePart(TypedDict):
    """A plan of a curve; ``at`` is its rate."""

    at: float
    cost: float
    bound: float
    gap: float
    machines: dict[str, int]


class PlanPart(TypedDict):
    """A plan, which is also the first of ``problems``; of a curve, the one of the highest rate."""

    rate: float
    cost: float
    bound: float
    gap: float
    cheapest: bool  # whether no plan costs less
    priced: bool
    machines: list[MachinesPart]
    free: dict[str, float]  # free share of each resource
    carries: float | None  # largest rate with this placement; null if no resource is used
    curve: list[CurvePart]  # plans for a range of rates, ascending; empty for a single plan


class ReportDocument(TypedDict):
    """A complete report."""

    version: int  # version of this format: 1
    made_by: str  # "streamplace" and its version
    title: str
    notes: list[str]  # notes for readers, such as parts that the report omits
    problems: list[ProblemPart]
    comparison: NotRequired[ComparisonPart]
    plan: NotRequired[PlanPart]


def column(values: ArrayLike) -> Column:
    """Numbers by row, or a single number if all rows are equal.

    >>> column([1.0, 2.5]), column([3.0, 3.0])
    ([1, 2.5], 3)
    """
    array = np.asarray(values)
    if len(array) and bool((array == array[0]).all()):
        return plain(float(array[0]))
    return numbers(array)


def numbers(values: ArrayLike) -> list[float]:
    """Convert an array to numbers; whole ones become integers, which are shorter.

    >>> numbers([0.5, 2.0, 1e20])
    [0.5, 2, 1e+20]
    """
    return [plain(value) for value in np.asarray(values).tolist()]


def rounded(values: ArrayLike) -> list[float]:
    """Round to twelve digits, which are enough for pictures and for comparisons to 1e-9.

    >>> rounded([0.1 + 0.2])
    [0.3]
    """
    return [plain(float(f"{value:.12g}")) for value in np.asarray(values).tolist()]


def finite(value: float) -> float | None:
    """Number, or None if it is infinite or NaN."""
    return plain(value) if isfinite(value) else None


def texts(values: tuple[str, ...]) -> Texts:
    """Texts by row, or a single text if all rows are equal."""
    return values[0] if len(set(values)) == 1 else list(values)
