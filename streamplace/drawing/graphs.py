"""Drawings of graphs, alone or under placements side by side.

A box is an operator, or in large graphs a chain of them, and its colour the device; dashed streams
cross the network; the bottleneck or critical chain is red. Files, notebooks and reports share one
style.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamplace.display.report import Report, Sheet, duration, some
from streamplace.drawing import style
from streamplace.drawing.figures import (
    ACROSS,
    DEVICE_COLOURS,
    INK,
    INSIDE,
    LIMIT,
    MUTED,
    OUTLINE,
    PAPER,
    SHADES,
    svg_text,
)
from streamplace.drawing.layout import LayeredLayout, layered_layout
from streamplace.drawing.scene import (
    Arrowhead,
    Curve,
    Label,
    Point,
    Rectangle,
    Scene,
    Shape,
    as_svg,
)
from streamplace.drawing.style import Scale, cut_to, text_width
from streamplace.errors import SettingError
from streamplace.io.files import check_suffix, write_text
from streamplace.io.modules import chain_of
from streamplace.io.suffixes import DRAWINGS
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import shown
from streamplace.model.mixins import Displayed
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import format_bytes
from streamplace.objectives.registry import OBJECTIVES, Objective, suggested_by
from streamplace.placers.result import Result

MAX_OPERATORS = 5_000
MAX_SHOWN = 1000
"""Operators of a graph that notebooks draw by default."""
MAX_SINGLE = 200
"""Operators of a graph in which each has its own box."""
ASPECT = 1.5
"""Ratio of width to height that a layout approaches."""
BETWEEN, MIN_WIDTH, MAX_TITLE_WIDTH = 36.0, 250.0, 460.0
"""Gap between panels, and limits of the widths of panels and titles."""
ABOVE, BELOW = 46.0, 14.0
"""Space for the titles of a panel, and above its legend."""
MAX_DEVICE_WIDTH = 90.0
"""Width of names of devices; longer names are cut."""
INSET = 9.0
"""Space between the text of a box and its sides."""
ROW, SWATCH, GAP = 18.0, 12.0, 16.0
MAX_ENTRIES = 24
SAMPLE = 34.0
"""Length of the sample lines."""


@dataclass(frozen=True, slots=True)
class NamedPlacements(Displayed):
    """A problem, placements of it by name, and the objective that evaluates them."""

    problem: Problem
    placements: tuple[tuple[str, Placement], ...]
    judge: Objective

    def report(self) -> Report:
        """Value and bottleneck of every placement."""
        pictures = [
            self.judge.pictured(self.problem, placement) for _, placement in self.placements
        ]
        rows = tuple(
            (shown(name), picture.title, picture.subtitle)
            for (name, _), picture in zip(self.placements, pictures, strict=True)
        )
        sheet = Sheet(("placement", self.judge.name, ""), rows)
        return Report((sheet,), self.problem.graph.report().title, self)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished drawing; notebooks show it."""

    scene: Scene
    subject: StreamGraph | NamedPlacements

    def __repr__(self) -> str:
        return f"<Drawing of {self.scene.title}>"

    def svg(self) -> str:
        """SVG document."""
        return as_svg(self.scene)

    def save(self, name: str | Path) -> None:
        """Write a .svg file, or a report as .html, the same bytes every time."""
        path = Path(name)
        check_suffix(path, "a drawing", *DRAWINGS)
        if path.suffix == ".html":
            self.subject.report().save(path)
        else:
            write_text(path, self.svg())

    def _repr_svg_(self) -> str:
        return self.svg()


class Entry(NamedTuple):
    """An entry of a legend: its width, and its shapes at the position of its upper left corner."""

    width: float
    shapes: Callable[[float, float], Iterator[Shape]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph with its title and legend, and how its boxes and streams look."""

    title: str
    subtitle: str
    legend: list[Entry]
    # Colour of every box, and the text below its name.
    fills: tuple[str, ...]
    notes: tuple[str, ...]
    # Boxes and streams of the bottleneck.
    limits: Bools
    stream_limits: Bools
    across: Bools  # streams that cross the network


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Layout of a graph: boxes with names and sizes, streams with widths."""

    layout: LayeredLayout
    scale: Scale
    labels: tuple[str, ...]
    hints: tuple[str, ...]
    stream_hints: tuple[str, ...]
    widths: Floats
    traffic: Floats
    downwards: bool  # whether streams run down rather than to the right

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the graph without titles and legends."""
        breadth, length = self.layout.breadth, self.layout.length
        return (breadth, length) if self.downwards else (length, breadth)

    def point(self, across: float, along: float) -> Point:
        """Convert coordinates of the layout to those of the page."""
        return (across, along) if self.downwards else (along, across)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of a graph, and the streams between them."""

    of: Ints  # [N] box of every operator
    members: list[list[int]]  # operators of every box, in topological order
    streams: Ints  # rows of the streams between different boxes
    # Boxes at the ends of these streams.
    source: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.members)


def boxes_of(graph: StreamGraph, places: Sequence[Ints] = ()) -> Boxes:
    """Boxes of a graph.

    Above 200 operators, chains share a box (see `chain_of`), unless a placement of ``places``
    separates their operators.
    """
    if graph.n_operators > MAX_OPERATORS:
        raise SettingError(
            f"the graph has {graph.n_operators} operators; a drawing shows at most {MAX_OPERATORS}"
        )
    single = graph.n_operators <= MAX_SINGLE
    first = np.arange(graph.n_operators) if single else chain_of(graph, places)
    streams = graph.streams
    heads, of = np.unique(first, return_inverse=True)
    members: list[list[int]] = [[] for _ in heads]
    for v in graph.order.tolist():
        members[of[v]].append(v)
    source, target = of[streams.source], of[streams.target]
    crossing = np.flatnonzero(source != target).astype(np.int32)
    return Boxes(
        of.astype(np.int32), members, crossing,
        source[crossing].astype(np.int32), target[crossing].astype(np.int32),
    )  # fmt: skip


def draw_graph(graph: StreamGraph) -> Drawing:
    """Draw a graph alone; darker boxes need more CPU.

    Examples
    --------
    >>> from streamplace.model import Operator, Stream
    >>> pipe = StreamGraph.of("pipe", [Operator("read", rate=1e4), Operator("count", ipt=2e5)],
    ...                       [Stream("read", "count")])
    >>> draw_graph(pipe).svg().count("<rect") > 2
    True
    """
    boxes = boxes_of(graph)
    tasks = bool(graph.operators.fires_all.all())
    work = graph.charged_ipt * (1.0 if tasks else graph.input_rate)
    work = work if tasks else work + 1e6 * graph.charged_constant
    cpu = np.bincount(boxes.of, work, len(boxes))
    unit = "M instructions" if tasks else "MIPS"
    notes = tuple(f"{_rounded(mega)} {unit}" if mega else "" for mega in (cpu / 1e6).tolist())
    most = float(cpu.max(initial=0.0))
    shades = np.ceil(cpu / (most or 1.0) * (len(SHADES) - 1)).astype(int)
    nothing = np.zeros(len(boxes.streams), np.bool_)
    legend = (
        ((SHADES[0], f"CPU 0 {unit}"), (SHADES[-1], f"CPU {_rounded(most / 1e6)} {unit}"))
        if most
        else ()
    )
    size = f"{graph.n_operators} operators, {graph.n_streams} streams"
    fills = tuple(SHADES[s] for s in shades)
    panel = Panel(
        shown(graph.name), size, device_legend(legend), fills, notes,
        np.zeros(len(boxes), np.bool_), nothing, nothing,
    )  # fmt: skip
    skeleton, _ = _best_skeleton(graph, boxes, (panel,))
    return _composed(skeleton, (panel,), 1, key(tasks, placed=False), shown(graph.name), graph)


def draw_placements(
    problem: Problem,
    placements: Sequence[tuple[str, Placement]],
    objective: Objective | None = None,
) -> Drawing:
    """Draw several placements of one graph side by side, each titled by its value.

    The bottleneck or critical chain by the objective, by default that of the graph, is red.
    """
    judge = objective or OBJECTIVES[suggested_by(problem.graph)]
    indices = [placement.index for _, placement in placements]
    boxes = boxes_of(problem.graph, indices)
    colours = device_colours(problem.n_devices, indices)
    panels = tuple(
        _panel(problem, boxes, name, placement, judge, colours) for name, placement in placements
    )
    skeleton, columns = _best_skeleton(problem.graph, boxes, panels)
    tasks = bool(problem.graph.operators.fires_all.all())
    title = f"{shown(problem.graph.name)}: " + ", ".join(panel.title for panel in panels)
    named = NamedPlacements(problem, tuple(placements), judge)
    return _composed(skeleton, panels, columns, key(tasks, placed=True), title, named)


def device_colours(n_devices: int, places: Sequence[Ints]) -> dict[int, str]:
    """Colours of the devices; devices in use differ while there are enough colours.

    >>> device_colours(20, [np.array([17, 3])])[17] == DEVICE_COLOURS[1]
    True
    """
    used = np.unique(np.concatenate([*places])).tolist()
    rows = range(n_devices) if n_devices <= len(DEVICE_COLOURS) else used
    return {d: DEVICE_COLOURS[i % len(DEVICE_COLOURS)] for i, d in enumerate(rows)}


def _panel(
    problem: Problem, boxes: Boxes, name: str, placement: Placement, judge: Objective,
    colours: dict[int, str],
) -> Panel:  # fmt: skip
    """Build the panel of one placement."""
    picture, place = judge.pictured(problem, placement), placement.index
    device = place[[members[0] for members in boxes.members]]
    names = [cut_to(shown(text), style.SMALL, MAX_DEVICE_WIDTH) for text in placement.devices]
    load = problem.instance.full_load[np.arange(len(place)), problem.instance.device_type[place]]
    share = np.bincount(boxes.of, load, len(boxes)).tolist()
    as_text = duration if problem.graph.operators.fires_all.all() else _share
    streams, rows = problem.graph.streams, boxes.streams
    limits = np.bincount(boxes.of, picture.operators, len(boxes)) > 0
    used = np.unique(place).tolist()
    labels = [f"{names[d]} {picture.devices[d] if picture.devices else ''}".strip() for d in used]
    legend = device_legend([(colours[d], text) for d, text in zip(used, labels, strict=True)])
    return Panel(
        title=f"{shown(name)}: {picture.title}",
        subtitle=shown(picture.subtitle),
        legend=legend,
        fills=tuple(colours[d] for d in device.tolist()),
        notes=tuple(
            f"{names[d]} · {as_text(s)}" for d, s in zip(device.tolist(), share, strict=True)
        ),
        limits=limits,
        stream_limits=picture.streams[rows],
        across=(place[streams.source] != place[streams.target])[rows],
    )


def _rounded(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def _share(load: float) -> str:
    return f"{100 * load:.0f} %" if load >= 0.005 or not load else "<1 %"


def _best_skeleton(
    graph: StreamGraph, boxes: Boxes, panels: Sequence[Panel]
) -> tuple[Skeleton, int]:
    """Direction and number of columns for which all panels together are closest to `ASPECT`."""
    tried: list[tuple[float, Skeleton, int]] = []
    for downwards in (False, True):
        skeleton = _laid_out(graph, boxes, panels, downwards)
        width, height = skeleton.size
        for columns in range(1, len(panels) + 1):
            rows = -(-len(panels) // columns)
            shape = columns * max(width, MIN_WIDTH) / (rows * (height + 110))
            badness = abs(log(shape / ASPECT)) + 0.2 * (rows * columns - len(panels))
            tried.append((badness, skeleton, columns))
    _, skeleton, columns = min(tried, key=itemgetter(0))
    return skeleton, columns


def _laid_out(
    graph: StreamGraph, boxes: Boxes, panels: Sequence[Panel], downwards: bool
) -> Skeleton:
    """Lay out boxes that are wide enough for the longest of their notes."""
    scale, names = style.scale_of(len(boxes)), graph.operators.name
    labels = tuple(
        cut_to(
            shown(names[rows[0]]) + (f" +{len(rows) - 1}" if len(rows) > 1 else ""),
            scale.font,
            scale.max_width,
        )
        for rows in boxes.members
    )
    widths = np.max([box_widths(labels, panel.notes, scale) for panel in panels], axis=0)
    traffic, hints = _traffic(graph, boxes)
    heights = np.full(len(widths), scale.height)
    breadth, length = (widths, heights) if downwards else (heights, widths)
    return Skeleton(
        layout=layered_layout(boxes.source, boxes.target, breadth, length, scale.spacing),
        scale=scale,
        labels=labels,
        hints=tuple(some([names[v] for v in rows], shown, ", ") for rows in boxes.members),
        stream_hints=hints,
        widths=widths,
        traffic=traffic,
        downwards=downwards,
    )


def _traffic(graph: StreamGraph, boxes: Boxes) -> tuple[Floats, tuple[str, ...]]:
    """Traffic of every stream relative to the largest, and in words."""
    flow, streams = graph.flow, graph.streams
    tuples = np.empty(graph.n_streams)
    tuples[flow.stream_index] = flow.tuples
    traffic = (tuples * streams.bytes_per_tuple())[boxes.streams]
    unit = "" if graph.operators.fires_all.all() else "/s"
    hints = tuple(
        f"{shown(streams.label(e))}: {format_bytes(amount)}{unit}"
        for e, amount in zip(boxes.streams.tolist(), traffic.tolist(), strict=True)
    )
    return traffic / (float(traffic.max(initial=0.0)) or 1.0), hints


def _composed(
    skeleton: Skeleton, panels: Sequence[Panel], columns: int, lines: list[Entry], title: str,
    subject: StreamGraph | NamedPlacements,
) -> Drawing:  # fmt: skip
    """Arrange panels in rows and columns, with the key of lines below them."""
    width = max(skeleton.size[0], MIN_WIDTH)
    for panel in panels:
        title_width = text_width(panel.title, style.TITLE, bold=True)
        subtitle_width = text_width(panel.subtitle, style.SMALL)
        width = max(width, min(max(title_width, subtitle_width), MAX_TITLE_WIDTH))
    below = max(entries_height(panel.legend, width) for panel in panels)
    height = ABOVE + skeleton.size[1] + BELOW + below
    shapes: list[Shape] = []
    for i, panel in enumerate(panels):
        left = style.MARGIN + (i % columns) * (width + BETWEEN)
        top = style.MARGIN + (i // columns) * (height + BETWEEN / 2)
        shapes += _titles(panel, left, top, width)
        middle = left + (width - skeleton.size[0]) / 2
        shapes += shapes_of(skeleton, panel, middle, top + ABOVE)
        shapes += entries_shapes(panel.legend, left, top + ABOVE + skeleton.size[1] + BELOW, width)
    rows = -(-len(panels) // columns)
    whole = columns * (width + BETWEEN) - BETWEEN
    bottom = style.MARGIN + rows * (height + BETWEEN / 2)
    shapes += entries_shapes(lines, style.MARGIN, bottom - BETWEEN / 4, whole)
    bottom += entries_height(lines, whole)
    return Drawing(Scene(whole + 2 * style.MARGIN, bottom + 4, title, tuple(shapes)), subject)


def _titles(panel: Panel, left: float, top: float, width: float) -> list[Shape]:
    """Title and subtitle above a panel."""
    title = cut_to(panel.title, style.TITLE, width, bold=True)
    subtitle = cut_to(panel.subtitle, style.SMALL, width)
    return [
        Label(left, top + style.TITLE, title, style.TITLE, INK, bold=True),
        Label(left, top + style.TITLE + 17, subtitle, style.SMALL, MUTED),
    ]


def box_widths(labels: tuple[str, ...], notes: tuple[str, ...], scale: Scale) -> Floats:
    """Width of every box, large enough for both of its texts."""
    if not scale.font:
        return np.full(len(labels), scale.max_width)
    texts = [
        max(text_width(label, scale.font), text_width(note, scale.note) if scale.note else 0.0)
        for label, note in zip(labels, notes, strict=True)
    ]
    return np.maximum(np.array(texts) + 2 * INSET, scale.height)


def shapes_of(skeleton: Skeleton, panel: Panel, left: float, top: float) -> Iterator[Shape]:
    """Shapes of a graph at the position of its upper left corner: first streams, then boxes."""
    order = np.lexsort((np.arange(len(panel.across)), panel.across, panel.stream_limits))
    for e in order.tolist():
        yield from _stream(skeleton, panel, e, left, top)
    for box in range(len(skeleton.labels)):
        yield from _box(skeleton, panel, box, left, top)


def _box(skeleton: Skeleton, panel: Panel, box: int, left: float, top: float) -> Iterator[Shape]:
    scale, limit, note = skeleton.scale, bool(panel.limits[box]), panel.notes[box]
    across, along = skeleton.point(skeleton.layout.across[box], skeleton.layout.along[box])
    width, height = float(skeleton.widths[box]), scale.height
    x, y = left + (across - width / 2), top + (along - height / 2)
    hint = skeleton.hints[box] + (f" ({note})" if note else "")
    yield Rectangle(
        x, y, width, height, panel.fills[box], LIMIT if limit else OUTLINE,
        3.0 if limit else 0.8, min(5.0, height / 4), hint,
    )  # fmt: skip
    middle, two = x + width / 2, bool(scale.note and note)
    if scale.font:
        base = y + height / 2 + scale.font * (-0.12 if two else 0.36)
        yield Label(middle, base, skeleton.labels[box], scale.font, INK, centred=True)
    if two:
        base = y + height / 2 + scale.note * 1.18
        yield Label(middle, base, note, scale.note, INK, centred=True)


def _stream(skeleton: Skeleton, panel: Panel, e: int, left: float, top: float) -> Iterator[Shape]:
    across, limit = bool(panel.across[e]), bool(panel.stream_limits[e])
    colour = LIMIT if limit else ACROSS if across else INSIDE
    width = style.THIN + (style.WIDE - style.THIN) * float(skeleton.traffic[e])
    head = min(style.HEAD, skeleton.scale.spacing.layers / 2) + width
    route = skeleton.layout.routes[e].copy()
    tip = tuple(route[-1])
    route[-1, 1] -= head * 0.9
    points = [
        (left + x, top + y)
        for x, y in (skeleton.point(float(a), float(b)) for a, b in _smooth(route))
    ]
    yield Curve(tuple(points), colour, width, across, skeleton.stream_hints[e])
    wing = head * 0.45
    triangle = [
        skeleton.point(float(a), float(b))
        for a, b in (tip, (tip[0] - wing, tip[1] - head), (tip[0] + wing, tip[1] - head))
    ]
    first, second, third = ((left + x, top + y) for x, y in triangle)
    yield Arrowhead((first, second, third), colour)


def _smooth(route: Floats) -> list[tuple[float, float]]:
    """Points of cubic Bézier curves through a route, with ends in the direction of the layers."""
    (across, along), *rest = route.tolist()
    points = [(across, along)]
    for a, b in rest:
        middle = (along + b) / 2
        points += [(across, middle), (a, middle), (a, b)]
        across, along = a, b
    return points


def device_legend(devices: Sequence[tuple[str, str]]) -> list[Entry]:
    """Colours of devices with their names, at most 24; the last entry counts further devices."""
    if len(devices) > MAX_ENTRIES:
        more = len(devices) - MAX_ENTRIES + 1
        devices = [*devices[: MAX_ENTRIES - 1], (PAPER, f"and {more} more devices")]
    return [_swatch(colour, text) for colour, text in devices]


def key(tasks: bool, placed: bool) -> list[Entry]:
    """Meanings of the lines of task graphs or other graphs, with or without placements."""
    lines = [_sample(INSIDE, False, "inside a device" if placed else "stream")]
    if placed:
        limit = "on the critical chain" if tasks else "limits the rate"
        lines += [_sample(ACROSS, True, "crosses the network"), _sample(LIMIT, False, limit)]
    text = f"width: bytes{'' if tasks else '/s'}"

    def note(x: float, y: float) -> Iterator[Shape]:
        yield Label(x, y + SWATCH - 2, text, style.SMALL, MUTED)

    return [*lines, Entry(text_width(text, style.SMALL), note)]


def _swatch(colour: str, text: str) -> Entry:
    def shapes(x: float, y: float) -> Iterator[Shape]:
        outline = "none" if colour == PAPER else OUTLINE
        yield Rectangle(x, y, SWATCH, SWATCH, colour, outline, 0.6, 2.5)
        yield Label(x + SWATCH + 6, y + SWATCH - 2, text, style.SMALL, INK)

    return Entry(SWATCH + 6 + text_width(text, style.SMALL), shapes)


def _sample(colour: str, dashed: bool, text: str) -> Entry:
    def shapes(x: float, y: float) -> Iterator[Shape]:
        middle, tip, third = y + SWATCH / 2, x + SAMPLE, SAMPLE / 3
        points = ((x, middle), (x + third, middle), (x + 2 * third, middle), (tip - 6, middle))
        yield Curve(points, colour, 2.0, dashed)
        yield Arrowhead(((tip, middle), (tip - 8, middle - 4), (tip - 8, middle + 4)), colour)
        yield Label(tip + 6, y + SWATCH - 2, text, style.SMALL, MUTED)

    return Entry(SAMPLE + 6 + text_width(text, style.SMALL), shapes)


def entries_height(entries: Sequence[Entry], widest: float) -> float:
    """Height of entries in rows of a width."""
    return ROW * len(wrapped([entry.width + GAP for entry in entries], widest + GAP))


def entries_shapes(
    entries: Sequence[Entry], left: float, top: float, widest: float
) -> Iterator[Shape]:
    """Shapes of entries in rows of a width."""
    widths = [entry.width + GAP for entry in entries]
    for row, numbers in enumerate(wrapped(widths, widest + GAP)):
        x = left
        for i in numbers:
            yield from entries[i].shapes(x, top + row * ROW)
            x += widths[i]


def wrapped(widths: Sequence[float], widest: float) -> list[list[int]]:
    """Distribute entries over rows, as many in each as fit.

    >>> wrapped([40, 40, 40], 100)
    [[0, 1], [2]]
    """
    rows: list[list[int]] = []
    free = -1.0
    for i, width in enumerate(widths):
        if not rows or width > free:
            rows.append([])
            free = widest
        rows[-1].append(i)
        free -= width
    return rows


def svg_of(item: Any) -> str | None:
    """Render an object that draws itself, a graph, or a placement, as SVG.

    None if the graph is too large to be legible.
    """
    if not isinstance(item, StreamGraph | Problem | Result):
        return svg_text(item.figure())
    problem = item.problem if isinstance(item, Result) else item
    graph = problem if isinstance(problem, StreamGraph) else problem.graph
    if graph.n_operators > MAX_SHOWN:
        return None
    return drawing_of(item).svg() if isinstance(item, Result) else draw_graph(graph).svg()


def drawing_of(result: Result) -> Drawing:
    """Draw the placement of a result, however large the graph is."""
    placed = [(result.placer, result.placement)]
    return draw_placements(result.problem, placed, result.judge)
