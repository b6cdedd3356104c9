"""The JSON document of a report page: what Python writes, and what the page reads.

A `Column` is a list with a value per row, or a single value that every row has. Times are in
seconds, sizes in bytes, rates in tuples/s. Operators, devices and streams are told by their rows.
Where a quantity is unlimited, or has no value, the document has null.
"""

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from streamplace.report.results_document import (
    ComparisonPart,
    MovePart,
    ObjectivePart,
    PlanPart,
    TrainingPart,
)

VERSION = 1
Column: TypeAlias = list[float] | float
Texts: TypeAlias = list[str] | str
ResourceKind = Literal["device", "core", "link", "egress", "ingress"]


class TablePart(TypedDict):
    """A table of the words; a cell is a text, or a load to draw as a bar (1 is full)."""

    head: list[str]
    rows: list[list[str | float]]


class WordsPart(TypedDict):
    """What the terminal prints: texts, headings (a name that stands out, and the rest), tables."""

    title: str
    parts: list[str | tuple[str, str] | TablePart]


class WindowPart(TypedDict):
    """Window of an operator: every ``advance`` s it emits min(limit, base + factor · count)."""

    operator: int
    size: float
    advance: float
    base: float
    factor: float
    limit: float | None


class OperatorsPart(TypedDict):
    """Operators [N] as columns.

    Attributes
    ----------
    ipt
        Instructions per input tuple, with those that its streams cost on every device.
    rate
        Tuples/s that a source generates, 0 for others.
    parallelism
        Subtasks, such that 1 / parallelism is the share of the busiest one; need not be whole.
    joins
        1 where the operator fires once per set of one tuple from every input ("all").
    memory
        Bytes on its device.
    unit
        Number of the unit: operators of one unit share a device. Absent where each is its own.
    constant, subtasks
        MIPS that the operator uses at any rate, and the subtasks that share them equally. Absent
        where no operator uses any.
    work
        Million instructions per second at full rate. Present only where rows are units, of which
        nothing can be computed.
    """

    name: list[str]
    kind: Texts
    ipt: Column
    rate: Column
    parallelism: Column
    joins: Column
    memory: Column
    windows: NotRequired[list[WindowPart]]
    unit: NotRequired[list[int]]
    constant: NotRequired[Column]
    subtasks: NotRequired[Column]
    work: NotRequired[list[float]]


class StreamsPart(TypedDict):
    """Streams [M] as columns, in the order of the graph.

    Attributes
    ----------
    selectivity
        Tuples on the stream per output tuple of its source.
    payload
        Bytes per tuple.
    input
        Streams into one joining operator with the same number are one input. Absent where every
        stream is an input of its own.
    traffic
        Bytes per second at full rate. Present only where rows of operators are units.
    """

    source: list[int]
    target: list[int]
    selectivity: Column
    payload: Column
    input: NotRequired[list[int]]
    traffic: NotRequired[list[float]]


class DevicesPart(TypedDict):
    """Devices [D] as columns.

    Attributes
    ----------
    mips
        Million instructions per second of a core.
    egress, ingress
        Seconds per byte that the network card sends and receives; 0 where only links limit.
    memory
        Bytes; null where unlimited.
    price
        Price per hour; absent where machines have none.
    """

    name: list[str]
    mips: Column
    cores: Column
    egress: Column
    ingress: Column
    memory: list[float | None] | None
    price: NotRequired[Column]


class NetworkPart(TypedDict):
    """Links between devices.

    Attributes
    ----------
    group
        [D] Devices of one group have the same links.
    seconds_per_byte, latency
        By groups: sender × receiver. Between two devices of one group, the entry of the diagonal
        counts; within a device, sending is free.
    overhead
        Core seconds that each remote tuple costs at both ends.
    overhead_per_byte
        Core seconds that each remote byte costs at both ends; absent where it costs none.
    gap
        Link seconds that each remote tuple costs besides its bytes.
    """

    group: Column
    seconds_per_byte: list[list[float]]
    latency: list[list[float]]
    overhead: float
    overhead_per_byte: NotRequired[float]
    gap: float


class ConstraintsPart(TypedDict):
    """What makes a placement legal; units are those of the operators.

    Attributes
    ----------
    allowed
        Pairs of a unit and the devices that it may use; other units may use all.
    apart
        Pairs of units that must not share a device.
    """

    allowed: list[tuple[int, list[int]]]
    apart: list[tuple[int, int]]


class LayoutPart(TypedDict):
    """Where boxes are: layers from left to right, centres in pixels.

    Attributes
    ----------
    width, height
        Of a box.
    layer, x, y
        [N] of every operator.
    bends
        [M] points (x, y, x, y, …) through which a stream goes between its ends; 0 where there are
        none. Absent where no stream has any.
    extent
        Width and height of the whole.
    """

    width: float
    height: float
    layer: list[int]
    x: list[int]
    y: list[int]
    bends: NotRequired[list[list[int] | Literal[0]]]
    extent: tuple[int, int]


class GroupsPart(TypedDict):
    """A way to collapse operators.

    Attributes
    ----------
    by
        "units" (that share a device), "subtasks" (of one operator), "chains" (one feeds only the
        next).
    of
        [N] group of every operator.
    name
        Names of the groups.
    """

    by: str
    of: list[int]
    name: list[str]


class LimitPart(TypedDict):
    """The fullest resource; ``peer`` is the receiving device of a link, else -1."""

    kind: ResourceKind
    device: int
    peer: int
    load: float


class LoadsPart(TypedDict):
    """Loads at the full rate of the sources; 1 is full. Links are (from, to, load), in use only."""

    devices: list[float]
    cores: list[float]
    egress: list[float]
    ingress: list[float]
    links: list[tuple[int, int, float]]


class ChainPiece(TypedDict):
    """A piece of the critical chain of a pass; ``stream`` is -1 for what an operator does."""

    what: str
    operator: int
    stream: int
    begin: float
    end: float


class PassPart(TypedDict):
    """One pass, as `streamsim.passes` has it.

    Attributes
    ----------
    queue, network, pause, spacing
        Rules of the pass. The usual ones are "fifo", "free", 0 and 0.
    start, finish
        [N] of operators.
    departure, arrival
        [M] of streams. Absent with the network "free", where a stream departs when its source
        finishes, and arrives latency + size · seconds per byte + tuples · (gap + 2 · overhead)
        + size · 2 · overhead per byte later.
    """

    queue: str
    network: str
    pause: float
    spacing: float
    makespan: float
    start: list[float]
    finish: list[float]
    departure: NotRequired[list[float]]
    arrival: NotRequired[list[float]]
    chain: list[ChainPiece]


class MarksPart(TypedDict):
    """What the objective marks as the limit, and its value in words."""

    title: str
    subtitle: str
    operators: list[int]
    streams: list[int]


class PlacementPart(TypedDict):
    """A placement, and what Python says of it.

    Attributes
    ----------
    place
        [N] device of every operator.
    priority
        [N] order in which devices serve operators; absent for the usual order.
    throughput
        Relative throughput.
    sources
        (operator, share of its rate that it reaches) of every source.
    value
        Value by the objective of the problem, and in words.
    """

    name: str
    place: list[int]
    priority: NotRequired[list[float]]
    throughput: float
    sources: list[tuple[int, float]]
    bottleneck: LimitPart
    loads: LoadsPart
    value: float
    words: str
    bound: NotRequired[float]
    marks: MarksPart
    one_pass: NotRequired[PassPart]


class ProblemPart(TypedDict):
    """A graph, the devices, and placements of the one on the others.

    Attributes
    ----------
    level
        What the rows of ``operators`` are: "operators", or in a graph of too many "units", each of
        them a row with the work of all its operators; ``count`` says of how many.
    what_if
        Why operators cannot be moved, in a sentence; "" where they can.
    seconds
        [D] columns [N] of core seconds per tuple, where they are not ipt / (mips · 10⁶).
    devices, network, constraints
        Absent for a graph alone.
    command
        Command for a shell that simulates a placement, which it reads from its standard input;
        absent where there is none.
    """

    name: str
    level: Literal["operators", "units"]
    count: list[int] | int
    what_if: str
    operators: OperatorsPart
    streams: StreamsPart
    layout: LayoutPart
    groups: list[GroupsPart]
    devices: NotRequired[DevicesPart]
    network: NotRequired[NetworkPart]
    constraints: NotRequired[ConstraintsPart]
    seconds: NotRequired[list[Column]]
    objective: NotRequired[ObjectivePart]
    command: NotRequired[str]
    placements: list[PlacementPart]


class ReportDocument(TypedDict):
    """A whole report.

    Attributes
    ----------
    version
        Of this format: 1.
    made_by
        "streamplace" and its version.
    notes
        What a reader must know, such as what the report leaves out.
    """

    version: int
    made_by: str
    title: str
    words: WordsPart
    notes: list[str]
    problems: list[ProblemPart]
    comparison: NotRequired[ComparisonPart]
    plan: NotRequired[PlanPart]
    training: NotRequired[TrainingPart]
    moves: NotRequired[list[MovePart]]
