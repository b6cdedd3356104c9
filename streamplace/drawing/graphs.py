"""Drawings of graphs, alone or under placements side by side.

A box is an operator, or in large graphs a chain of them, and its colour the device; dashed streams
cross the network; the bottleneck or critical chain is red. Files, notebooks and reports share one
style.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from streamplace.display.report import Report, Sheet, quantity
from streamplace.drawing import style
from streamplace.drawing.figures import check_suffix, save, svg_text
from streamplace.drawing.panel import (
    Entry,
    Look,
    Skeleton,
    arranged,
    box_widths,
    device_legend,
    entries_height,
    entries_shapes,
    key,
    shapes_of,
)
from streamplace.drawing.scene import Label, Scene, Shape, as_figure, as_svg
from streamplace.drawing.style import cut_to, text_width
from streamplace.errors import SettingError
from streamplace.io.files import write_text
from streamplace.model.arrays import Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import shown
from streamplace.model.objects import Displayed
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import format_bytes
from streamplace.objectives.registry import OBJECTIVES, Objective, suggested_by
from streamplace.placers.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_OPERATORS = 5_000
MOST_SHOWN = 1000
"""Most operators of a graph that notebooks draw by default."""
MOST_SINGLE = 200
"""Most operators of a graph in which each is a box."""
MOST_NAMED = 12
"""Most operators of a box that its hint names."""
ASPECT = 1.5
"""Ratio of width to height that a layout approaches."""
BETWEEN, LEAST_WIDTH, WIDEST_TITLE = 36.0, 250.0, 460.0
"""Gap between panels, their least width, and the greatest width of a title."""
ABOVE, BELOW = 46.0, 14.0
"""Space for the titles of a panel, and above its legend."""
WIDEST_DEVICE = 90.0
"""Width at which names of devices are cut."""


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
        sheet = Sheet(("placement", self.judge.name, ""), rows, names=0)
        return Report((sheet,), self.problem.graph.report().title, self)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished drawing; notebooks show it.

    Attributes
    ----------
    subject
        Graph or placements that are drawn.
    """

    scene: Scene
    subject: StreamGraph | NamedPlacements

    def __repr__(self) -> str:
        return f"<Drawing of {self.scene.title}>"

    def svg(self) -> str:
        """SVG document."""
        return as_svg(self.scene)

    def save(self, name: str | Path) -> None:
        """Write a .svg, .png or .pdf file, or a report as .html, the same bytes every time."""
        path = Path(name)
        if path.suffix == ".html":
            self.subject.report().save(path)
            return
        check_suffix(path, ".html")
        if path.suffix == ".svg":
            write_text(path, self.svg())
        else:
            save(as_figure(self.scene), path)

    def _repr_svg_(self) -> str:
        return self.svg()


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph with its title and legend."""

    look: Look
    title: str
    subtitle: str
    legend: list[Entry]


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

    def label(self, graph: StreamGraph, box: int) -> str:
        """Name of a box."""
        names, rows = graph.operators.name, self.members[box]
        if len(rows) == 1:
            return shown(names[rows[0]])
        return f"{shown(names[rows[0]])} +{len(rows) - 1}"

    def hint(self, graph: StreamGraph, box: int) -> str:
        """Full names of the operators of a box."""
        names, rows = graph.operators.name, self.members[box]
        listed = ", ".join(shown(names[v]) for v in rows[:MOST_NAMED])
        return listed + (f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else "")


def boxes_of(graph: StreamGraph, places: Sequence[Ints] = ()) -> Boxes:
    """Boxes of a graph.

    Above 200 operators, chains share a box: an operator with its only consumer, if it is the only
    input of that and no placement of ``places`` separates the two.
    """
    single = graph.n_operators <= MOST_SINGLE
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


def chain_of(graph: StreamGraph, places: Sequence[Ints] = ()) -> NDArray[np.intp]:
    """First operator of the chain of every operator, [N].

    In a chain, each operator feeds only the next one, which has no other input. No placement of
    ``places`` separates two operators of a chain.
    """
    n, streams = graph.n_operators, graph.streams
    first = np.arange(n)
    outs = np.bincount(streams.source, minlength=n)
    ins = np.bincount(streams.target, minlength=n)
    merged = (outs[streams.source] == 1) & (ins[streams.target] == 1)
    for place in places:
        merged &= place[streams.source] == place[streams.target]
    feeder = dict(zip(streams.target[merged].tolist(), streams.source[merged].tolist(),
                      strict=True))  # fmt: skip
    for v in graph.order.tolist():
        first[v] = first[feeder[v]] if v in feeder else v
    return first


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
    boxes = _checked_boxes(graph)
    tasks = bool(graph.operators.fires_all.all())
    work = graph.charged_ipt * (1.0 if tasks else graph.input_rate)
    work = work if tasks else work + 1e6 * graph.charged_constant
    cpu = np.bincount(boxes.of, work, len(boxes))
    unit = "M instructions" if tasks else "MIPS"
    notes = tuple(f"{_rounded(mega)} {unit}" if mega else "" for mega in (cpu / 1e6).tolist())
    most = float(cpu.max(initial=0.0))
    shades = np.ceil(cpu / (most or 1.0) * (len(style.SHADES) - 1)).astype(int)
    nothing = np.zeros(len(boxes.streams), np.bool_)
    look = Look(
        tuple(style.SHADES[s] for s in shades), notes, np.zeros(len(boxes), np.bool_),
        nothing, nothing,
    )  # fmt: skip
    legend = (
        (
            (style.SHADES[0], f"CPU 0 {unit}"),
            (style.SHADES[-1], f"CPU {_rounded(most / 1e6)} {unit}"),
        )
        if most
        else ()
    )
    size = f"{graph.n_operators} operators, {graph.n_streams} streams"
    panel = Panel(look, shown(graph.name), size, device_legend(legend))
    skeleton, _ = _best_skeleton(graph, boxes, (look,))
    return _composed(skeleton, (panel,), 1, key(tasks, placed=False), shown(graph.name), graph)


def draw_placements(
    problem: Problem,
    placements: Sequence[tuple[str, Placement]],
    objective: Objective | None = None,
) -> Drawing:
    """Draw several placements of one graph side by side, each titled by its value.

    The bottleneck or critical chain of the objective, by default the graph's, is red.
    """
    judge = objective or OBJECTIVES[suggested_by(problem.graph)]
    indices = [placement.index for _, placement in placements]
    boxes = _checked_boxes(problem.graph, indices)
    colours = device_colours(problem.n_devices, indices)
    panels = tuple(
        _panel(problem, boxes, name, placement, judge, colours) for name, placement in placements
    )
    looks = tuple(panel.look for panel in panels)
    skeleton, columns = _best_skeleton(problem.graph, boxes, looks)
    tasks = bool(problem.graph.operators.fires_all.all())
    title = f"{shown(problem.graph.name)}: " + ", ".join(panel.title for panel in panels)
    named = NamedPlacements(problem, tuple(placements), judge)
    return _composed(skeleton, panels, columns, key(tasks, placed=True), title, named)


def device_colours(n_devices: int, places: Sequence[Ints]) -> dict[int, str]:
    """Colours of the devices; those in use differ while there are enough colours.

    >>> device_colours(20, [np.array([17, 3])])[17] == style.DEVICES[1]
    True
    """
    used = np.unique(np.concatenate([*places])).tolist()
    rows = range(n_devices) if n_devices <= len(style.DEVICES) else used
    return {d: style.DEVICES[i % len(style.DEVICES)] for i, d in enumerate(rows)}


def _checked_boxes(graph: StreamGraph, places: Sequence[Ints] = ()) -> Boxes:
    if graph.n_operators > MOST_OPERATORS:
        raise SettingError(
            f"the graph has {graph.n_operators} operators; a drawing shows at most {MOST_OPERATORS}"
        )
    return boxes_of(graph, places)


def _panel(
    problem: Problem, boxes: Boxes, name: str, placement: Placement, judge: Objective,
    colours: dict[int, str],
) -> Panel:  # fmt: skip
    """Build the panel of one placement."""
    picture, place = judge.pictured(problem, placement), placement.index
    device = place[[members[0] for members in boxes.members]]
    names = [cut_to(shown(text), style.SMALL, WIDEST_DEVICE) for text in placement.devices]
    load = problem.instance.full_load[np.arange(len(place)), problem.instance.device_type[place]]
    share = np.bincount(boxes.of, load, len(boxes)).tolist()
    tell = _seconds if problem.graph.operators.fires_all.all() else _share
    streams, rows = problem.graph.streams, boxes.streams
    limits = np.bincount(boxes.of, picture.operators, len(boxes)) > 0
    look = Look(
        fills=tuple(colours[d] for d in device.tolist()),
        notes=tuple(f"{names[d]} · {tell(s)}" for d, s in zip(device.tolist(), share, strict=True)),
        limits=limits,
        stream_limits=picture.streams[rows],
        across=(place[streams.source] != place[streams.target])[rows],
    )
    used = np.unique(place).tolist()
    labels = [f"{names[d]} {picture.devices[d] if picture.devices else ''}".strip() for d in used]
    legend = device_legend([(colours[d], text) for d, text in zip(used, labels, strict=True)])
    return Panel(look, f"{shown(name)}: {picture.title}", shown(picture.subtitle), legend)


def _rounded(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def _share(load: float) -> str:
    return f"{100 * load:.0f} %" if load >= 0.005 or not load else "<1 %"


def _seconds(load: float) -> str:
    return quantity(load, "s")


def _best_skeleton(
    graph: StreamGraph, boxes: Boxes, looks: tuple[Look, ...]
) -> tuple[Skeleton, int]:
    """Direction and number of columns for which all panels are closest to the best shape."""
    best: tuple[float, Skeleton | None, int] = (inf, None, 1)
    for downwards in (False, True):
        skeleton = _laid_out(graph, boxes, looks, downwards)
        width, height = skeleton.size
        for columns in range(1, len(looks) + 1):
            rows = -(-len(looks) // columns)
            shape = columns * max(width, LEAST_WIDTH) / (rows * (height + 110))
            badness = abs(log(shape / ASPECT)) + 0.2 * (rows * columns - len(looks))
            if badness < best[0]:
                best = badness, skeleton, columns
    assert best[1] is not None
    return best[1], best[2]


def _laid_out(
    graph: StreamGraph, boxes: Boxes, looks: tuple[Look, ...], downwards: bool
) -> Skeleton:
    """Lay out boxes that are wide enough for the longest of their notes."""
    scale = style.scale_of(len(boxes))
    labels = tuple(
        cut_to(boxes.label(graph, box), scale.font, scale.widest) for box in range(len(boxes))
    )
    widths = np.max([box_widths(labels, look.notes, scale) for look in looks], axis=0)
    traffic, hints = _traffic(graph, boxes)
    return Skeleton(
        layout=arranged(boxes.source, boxes.target, widths, scale, downwards),
        scale=scale,
        labels=labels,
        hints=tuple(boxes.hint(graph, box) for box in range(len(boxes))),
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
    width = max(
        skeleton.size[0], LEAST_WIDTH, *(min(_title_width(panel), WIDEST_TITLE) for panel in panels)
    )
    below = max(entries_height(panel.legend, width) for panel in panels)
    height = ABOVE + skeleton.size[1] + BELOW + below
    shapes: list[Shape] = []
    for i, panel in enumerate(panels):
        left = style.MARGIN + (i % columns) * (width + BETWEEN)
        top = style.MARGIN + (i // columns) * (height + BETWEEN / 2)
        shapes += _titles(panel, left, top, width)
        middle = left + (width - skeleton.size[0]) / 2
        shapes += shapes_of(skeleton, panel.look, middle, top + ABOVE)
        shapes += entries_shapes(panel.legend, left, top + ABOVE + skeleton.size[1] + BELOW, width)
    rows = -(-len(panels) // columns)
    whole = columns * (width + BETWEEN) - BETWEEN
    bottom = style.MARGIN + rows * (height + BETWEEN / 2)
    shapes += entries_shapes(lines, style.MARGIN, bottom - BETWEEN / 4, whole)
    bottom += entries_height(lines, whole)
    return Drawing(Scene(whole + 2 * style.MARGIN, bottom + 4, title, tuple(shapes)), subject)


def _title_width(panel: Panel) -> float:
    title = text_width(panel.title, style.TITLE, bold=True)
    return max(title, text_width(panel.subtitle, style.SMALL))


def _titles(panel: Panel, left: float, top: float, width: float) -> list[Shape]:
    """Title and subtitle above a panel."""
    title = cut_to(panel.title, style.TITLE, width, bold=True)
    subtitle = cut_to(panel.subtitle, style.SMALL, width)
    return [
        Label(left, top + style.TITLE, title, style.TITLE, style.INK, bold=True),
        Label(left, top + style.TITLE + 17, subtitle, style.SMALL, style.GREY),
    ]


class Plotted(Protocol):
    """Object that draws itself."""

    def figure(self) -> "Figure":
        """Draw the object."""
        ...


def svg_of(item: StreamGraph | Problem | Result | Plotted) -> str | None:
    """Render an object that draws itself, a graph, or a placement, as SVG.

    None if the graph is too large to be legible.
    """
    if not isinstance(item, StreamGraph | Problem | Result):
        return svg_text(item.figure())
    if isinstance(item, Result):
        graph = item.problem.graph
    else:
        graph = item.graph if isinstance(item, Problem) else item
    if graph.n_operators > MOST_SHOWN:
        return None
    return drawing_of(item).svg() if isinstance(item, Result) else draw_graph(graph).svg()


def drawing_of(result: Result) -> Drawing:
    """Draw the placement of a result, however large the graph is."""
    placed = [(result.placer, result.placement)]
    return draw_placements(result.problem, placed, result.judge)
