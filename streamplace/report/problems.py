"""Problems in the document of a page: graphs, devices, and placements with their values."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from streamplace.display.assumptions import assumptions
from streamplace.drawing.layout import LayeredLayout, Spacing, layered_layout
from streamplace.io.fields import plain
from streamplace.io.modules import chain_of
from streamplace.model.arrays import Floats, Ints
from streamplace.model.buffers import MessageLoads
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import counted, printable, shown
from streamplace.model.placement import Placement
from streamplace.model.prediction_intervals import PredictionErrors
from streamplace.model.problem import Problem
from streamplace.model.subtasks import operators_by_subtask
from streamplace.model.units import digits
from streamplace.objectives.makespan import KINDS, PassOptions, pass_schedule
from streamplace.objectives.registry import Objective
from streamplace.objectives.throughput.loads import limited_levels
from streamplace.report.document import (
    ChainPiece,
    ConstraintsPart,
    DevicesPart,
    ErrorsPart,
    GroupsPart,
    LayoutPart,
    LevelPart,
    LimitPart,
    LoadsPart,
    MarksPart,
    MessagesPart,
    NetworkPart,
    ObjectivePart,
    OperatorsPart,
    PassPart,
    PlacementPart,
    ProblemPart,
    ResourceKind,
    ResourcePart,
    StreamsPart,
    WindowPart,
    column,
    finite,
    numbers,
    rounded,
    texts,
)
from streamplace.report.limits import MAX_LINKS

HEIGHT, MIN_WIDTH, MAX_WIDTH = 34.0, 64.0, 230.0
"""Height, and minimum and maximum width, of a box in pixels."""
LETTER, AROUND_NAME = 6.8, 42.0
"""Width of a letter, and of a box without its name, in pixels."""
SPACING = Spacing(layers=56.0, boxes=16.0, bends=10.0, ports=6.0)


class Shown(NamedTuple):
    """A placement in a report."""

    name: str
    placement: Placement
    bound: float | None = None  # bound on the objective's value of any placement; None if unknown


def graph_part(
    graph: StreamGraph, places: Sequence[Ints] = (), unit: Ints | None = None
) -> ProblemPart:
    """Describe a graph without devices; no chain is on several devices in ``places``."""
    part = ProblemPart(
        name=graph.name,
        what_if="a graph alone has no devices",
        operators=operators_part(graph),
        streams=streams_part(graph),
        layout=layout_part(graph.operators.name, graph.streams.source, graph.streams.target),
        groups=groups_of(graph, places, unit),
        placements=[],
    )
    if (messages := graph.message_loads) is not None:
        part["operators"]["subtasks"] = column(graph.operators.parallelism)
        part["messages"] = messages_part(graph, messages)
    return part


def problem_part(problem: Problem, placements: Sequence[Shown], judge: Objective) -> ProblemPart:
    """Describe a problem with placements."""
    unit = None if problem.rules is None else problem.rules.unit
    places = [named.placement.index for named in placements]
    part = graph_part(problem.graph, places, unit)
    part["what_if"] = ""
    cluster = problem.cluster
    part["devices"] = devices_part(cluster)
    part["objective"] = objective_part(judge.on(problem))
    if assumed := assumptions(problem):
        part["assumptions"] = [printable(sentence) for sentence in assumed]
    group = _link_groups(cluster)
    if (int(group.max()) + 1) ** 2 <= MAX_LINKS:
        part["network"] = network_part(cluster, group)
    else:
        part["what_if"] = f"the cluster has {cluster.n_devices} devices with links of their own"
    if (rules := problem.rules) is not None:
        part["operators"]["unit"] = rules.unit.tolist()
        limited = np.flatnonzero(~rules.allowed.all(axis=1)).tolist()
        free = problem.unpinned.rules
        unpinned = np.ones_like(rules.allowed) if free is None else free.allowed
        pinned = np.flatnonzero((unpinned != rules.allowed).any(axis=1)).tolist()
        part["constraints"] = ConstraintsPart(
            allowed=[(u, np.flatnonzero(rules.allowed[u]).tolist()) for u in limited],
            unpinned=[
                (u, None if unpinned[u].all() else np.flatnonzero(unpinned[u]).tolist())
                for u in pinned
            ],
            apart=[(a, b) for a, b in rules.apart.tolist()],
        )
    if problem.seconds is not None:
        seconds = problem.instance.seconds
        part["seconds"] = [column(seconds[:, d]) for d in range(problem.n_devices)]
    part["placements"] = [placement_part(problem, named, judge) for named in placements]
    return part


def placement_part(problem: Problem, named: Shown, judge: Objective) -> PlacementPart:
    """Describe a placement with its values."""
    from streamsim import bottleneck, resource_loads, throughput_of
    from streamsim.overload import overloaded_shares

    placement, instance = named.placement, problem.instance
    place = placement.index
    loads = resource_loads(instance, place)
    top = bottleneck(loads)
    shares = dict(zip(instance.sources.tolist(), overloaded_shares(instance, place), strict=True))
    value = judge.value(problem, placement)
    a, b = np.nonzero(loads.links)
    picture = judge.pictured(problem, placement)
    part = PlacementPart(
        name=named.name,
        place=place.tolist(),
        throughput=plain(throughput_of(instance, place)),
        sources=[(int(v), plain(float(shares[int(v)]))) for v in problem.graph.sources],
        bottleneck=LimitPart(
            kind=cast(ResourceKind, top.kind), device=top.device, peer=top.peer, load=plain(top.use)
        ),
        loads=LoadsPart(
            devices=numbers(loads.devices),
            egress=numbers(loads.egress),
            ingress=numbers(loads.ingress),
            links=list(zip(a.tolist(), b.tolist(), rounded(loads.links[a, b]), strict=True)),
        ),
        value=plain(value),
        words=judge.format(value),
        marks=MarksPart(
            operators=np.flatnonzero(picture.operators).tolist(),
            streams=np.flatnonzero(picture.streams).tolist(),
        ),
    )
    levels = [*limited_levels(problem, place, loads)] if len(instance.sources) > 1 else []
    if levels:
        part["levels"] = [
            LevelPart(
                share=plain(level.share),
                sources=level.sources.tolist(),
                stuck=level.stuck.tolist(),
                limit=ResourcePart(
                    kind=cast(ResourceKind, full.kind), device=full.device, peer=full.peer
                ),
            )
            for level, full in levels
        ]
    if placement.priority is not None:
        part["priority"] = numbers(placement.priority)
        part["queue"] = placement.queue
    if len(instance.constant) and np.isfinite(top.load):
        part["pressure"] = plain(top.load)
    if named.bound is not None:
        part["bound"] = named.bound
    part["one_pass"] = _pass(problem, placement, judge)
    return part


def _pass(problem: Problem, placement: Placement, judge: Objective) -> PassPart:
    name, *texts = judge.plain.name.split(":")
    chosen = dict(text.split("=", 1) for text in texts) if name == "makespan" else {}
    options = PassOptions.of(chosen)
    rules, _ = options.rules_of(placement)
    schedule = pass_schedule(problem, placement, options)
    chain = schedule.chain
    times = numbers(chain.times)
    return PassPart(
        queue=rules.queue,
        network=rules.network,
        pause=rules.pause,
        makespan=plain(schedule.makespan),
        start=rounded(schedule.start),
        finish=rounded(schedule.finish),
        chain=[
            ChainPiece(what=KINDS[kind.name], operator=v, stream=e, begin=begin, end=end)
            for kind, v, e, begin, end in zip(
                chain.parts, chain.operator.tolist(), chain.stream.tolist(), times[:-1], times[1:],
                strict=True,
            )
        ],
    )  # fmt: skip


def layout_part(names: Sequence[str], source: Ints, target: Ints) -> LayoutPart:
    """Lay out a graph in layers from left to right; boxes are as wide as the longest name.

    >>> layout_part(("read", "a long name"), np.array([0]), np.array([1]))["x"]
    [58, 232]
    """
    n, longest = len(names), max(map(len, names), default=0)
    width = float(round(min(max(MIN_WIDTH, LETTER * longest + AROUND_NAME), MAX_WIDTH)))
    layout = layered_layout(source, target, np.full(n, HEIGHT), np.full(n, width), SPACING)
    part = LayoutPart(
        width=width,
        height=HEIGHT,
        layer=layout.layer.tolist(),
        x=_rounded(layout.along),
        y=_rounded(layout.across),
        extent=(round(layout.length), round(layout.breadth)),
    )
    bends = _bends(layout)
    if any(bends):
        part["bends"] = [points or 0 for points in bends]
    return part


def _bends(layout: LayeredLayout) -> list[list[int]]:
    """Points between the ends of every stream: the middle of each layer that it crosses."""
    return [
        _rounded(
            np.column_stack([(route[1:-1:2, 1] + route[2:-1:2, 1]) / 2, route[1:-1:2, 0]]).ravel()
        )
        for route in layout.routes
    ]


def _rounded(values: Floats) -> list[int]:
    rounded: list[int] = np.rint(values).astype(np.int64).tolist()
    return rounded


def placing_title(problem: Problem) -> str:
    """Graph, and the question where its operators run.

    >>> from streamplace.model import Cluster, Operator, Stream
    >>> ends = [Operator("read", rate=2e4), Operator("join")]
    >>> graph = StreamGraph.of("fraud", ends, [Stream("read", "join")])
    >>> placing_title(Problem(graph, Cluster.uniform(5)))
    'fraud: where do 2 operators run on 5 devices at 20,000 /s?'
    """
    graph = problem.graph
    subtasks = any(
        subtask != operator
        for subtask, operator in operators_by_subtask(graph.operators.name).items()
    )
    who = counted(graph.n_operators, "subtask" if subtasks else "operator")
    do = "does" if graph.n_operators == 1 else "do"
    rate = "" if graph.operators.fires_all.all() else f" at {_rate(graph.source_rate)}"
    devices = counted(problem.n_devices, "device")
    return f"{shown(graph.name)}: where {do} {who} run on {devices}{rate}?"


def planning_title(graph: StreamGraph, *rates: float) -> str:
    """Graph, and the question which machines carry a rate, or those between two."""
    return f"{shown(graph.name)}: which machines carry {' to '.join(map(_rate, rates))}?"


def _rate(tuples: float) -> str:
    return f"{tuples:,.0f} /s" if tuples >= 1000 else f"{digits(tuples)} /s"


def errors_part(errors: PredictionErrors) -> ErrorsPart:
    """Describe the errors of predictions."""
    return ErrorsPart(low=plain(errors.low), high=plain(errors.high), words=errors.words)


def operators_part(graph: StreamGraph) -> OperatorsPart:
    """Describe the operators of a graph."""
    operators = graph.operators
    part = OperatorsPart(
        name=list(operators.name),
        kind=texts(operators.kind),
        ipt=column(graph.charged_ipt),
        rate=column(operators.rate),
        parallelism=column(graph.flow.parallelism / operators.cores),
        joins=column(operators.fires_all.astype(np.int32)),
        memory=column(operators.memory),
    )
    if operators.constant.any():
        part["constant"] = column(operators.constant)
        part["subtasks"] = column(operators.parallelism)
    if (operators.cores > 1).any():
        part["cores"] = column(operators.cores)
    if operators.max_rate.any():
        part["max_rate"] = column(operators.max_rate)
    if operators.window:
        part["windows"] = [
            WindowPart(
                operator=row,
                size=window.size,
                advance=window.advance,
                base=window.base,
                factor=window.factor,
                limit=finite(window.limit),
            )
            for row, window in sorted(operators.window.items())
        ]
    return part


def streams_part(graph: StreamGraph) -> StreamsPart:
    """Describe the streams of a graph."""
    streams = graph.streams
    part = StreamsPart(
        source=streams.source.tolist(),
        target=streams.target.tolist(),
        selectivity=column(streams.selectivity),
        payload=column(streams.bytes_per_tuple()),
    )
    if (inputs := streams.inputs()) is not None:
        part["input"] = inputs.tolist()
    return part


def messages_part(graph: StreamGraph, messages: MessageLoads) -> MessagesPart:
    """Describe the CPU of the messages of a graph, at any rate."""
    flow, parallelism = graph.flow, graph.operators.parallelism
    channels = np.empty(graph.n_streams)
    channels[flow.stream_index] = messages.channels(parallelism)
    rate, contained = flow.input_rate, messages.contained
    return MessagesPart(
        ipt=messages.ipt,
        timeout=messages.timeout,
        channels=column(channels),
        contained=column(np.divide(contained, rate, out=np.zeros_like(rate), where=rate > 0)),
        mips=column(messages.more(parallelism) / 1e6),
    )


def devices_part(cluster: Cluster) -> DevicesPart:
    """Describe the devices of a cluster."""
    devices = cluster.devices
    limited = bool(np.isfinite(devices.memory).any())
    part = DevicesPart(
        name=list(devices.name),
        mips=column(devices.speed),
        cores=column(devices.cores),
        egress=column(8 / devices.egress),
        ingress=column(8 / devices.ingress),
        memory=[finite(size) for size in devices.memory.tolist()] if limited else None,
    )
    if devices.reserved.any():
        part["free_cores"] = column(cluster.platform.free_cores)
    return part


def network_part(cluster: Cluster, group: Ints) -> NetworkPart:
    """Describe the links of a cluster, by groups of devices with equal links."""
    part = NetworkPart(
        group=column(group),
        seconds_per_byte=_by_group(8 / cluster.bandwidth_bps, group),
        latency=_by_group(cluster.latency_s, group),
        overhead=plain(cluster.overhead_s),
        gap=plain(cluster.gap_s),
    )
    if cluster.overhead_s_per_byte > 0:
        part["overhead_per_byte"] = plain(cluster.overhead_s_per_byte)
    return part


def _link_groups(cluster: Cluster) -> Ints:
    """Group of every device; a single group if all links are equal."""
    away = ~np.eye(cluster.n_devices, dtype=np.bool_)
    matrices = (cluster.bandwidth_bps[away], cluster.latency_s[away])
    if all(len(np.unique(cells)) <= 1 for cells in matrices):
        return np.zeros(cluster.n_devices, np.int32)
    return cluster.interchangeable


def _by_group(matrix: Floats, group: Ints) -> list[list[float]]:
    """Off-diagonal cells of a matrix, by groups of rows and columns."""
    first = np.unique(group, return_index=True)[1]
    second = [int(np.flatnonzero(group == g)[-1]) for g in range(len(first))]
    table = matrix[np.ix_(first, first)]
    for g, (a, b) in enumerate(zip(first.tolist(), second, strict=True)):
        table[g, g] = matrix[a, b] if a != b else 0.0
    return [numbers(row) for row in table]


def objective_part(judge: Objective) -> ObjectivePart:
    """Describe an objective."""
    return ObjectivePart(name=judge.name, sense=judge.sense, unit=judge.unit)


def groups_of(graph: StreamGraph, places: Sequence[Ints], unit: Ints | None) -> list[GroupsPart]:
    """Groups by which a graph becomes smaller; a chain is on one device in every placement.

    Operators of one ``unit`` [N] share a device.
    """
    names = graph.operators.name
    groupings = [_subtasks(names), _groups("chains", names, chain_of(graph, places))]
    if unit is not None:
        groupings.append(_groups("units", names, unit))
    return [grouping for grouping in groupings if 1 < len(grouping["name"]) < graph.n_operators]


def _subtasks(names: tuple[str, ...]) -> GroupsPart:
    owners = [*operators_by_subtask(names).values()]
    number = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    return GroupsPart(by="subtasks", of=[number[owner] for owner in owners], name=list(number))


def _groups(by: str, names: tuple[str, ...], number: NDArray[np.integer[Any]]) -> GroupsPart:
    """Groups of operators with the same number, named after their first operator."""
    _, heads, of = np.unique(number, return_index=True, return_inverse=True)
    size = np.bincount(of)
    return GroupsPart(
        by=by,
        of=of.tolist(),
        name=[
            f"{names[head]} +{n - 1}" if n > 1 else names[head]
            for head, n in zip(heads.tolist(), size.tolist(), strict=True)
        ],
    )
