"""Drawings of graphs, alone or under placements side by side.

A box is an operator and its colour the device; dashed streams cross the network; the bottleneck or
critical chain is red. Files, notebooks and reports share one style.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from pathlib import Path

import numpy as np

from streamplace.drawing import style
from streamplace.drawing.boxes import Boxes, boxes_of
from streamplace.drawing.panel import (
    Key,
    Legend,
    Look,
    Skeleton,
    arranged,
    box_widths,
    key,
    legend_height,
    legend_shapes,
    shapes_of,
    shortened,
)
from streamplace.drawing.scene import Label, Scene, Shape, as_svg
from streamplace.drawing.style import cut_to, text_width
from streamplace.errors import SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.display import Displayed
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import shown
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import Report, Sheet, quantity
from streamplace.model.units import format_bytes
from streamplace.objectives.registry import OBJECTIVES, Objective, suggested_by

MOST_OPERATORS = 5_000
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
        from streamplace.drawing.figures import check_suffix, save
        from streamplace.drawing.scene import as_figure
        from streamplace.io.files import write_text

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
    legend: Legend


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
    panel = Panel(look, shown(graph.name), size, legend)
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
    legend = tuple((colours[d], text) for d, text in zip(used, labels, strict=True))
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
    skeleton: Skeleton, panels: Sequence[Panel], columns: int, lines: Key, title: str,
    subject: StreamGraph | NamedPlacements,
) -> Drawing:  # fmt: skip
    """Arrange panels in rows and columns, with the key of lines below them."""
    width = max(
        skeleton.size[0], LEAST_WIDTH, *(min(_title_width(panel), WIDEST_TITLE) for panel in panels)
    )
    legends = [shortened(panel.legend) for panel in panels]
    below = max(legend_height(legend, width) for legend in legends)
    height = ABOVE + skeleton.size[1] + BELOW + below
    shapes: list[Shape] = []
    for i, (panel, legend) in enumerate(zip(panels, legends, strict=True)):
        left = style.MARGIN + (i % columns) * (width + BETWEEN)
        top = style.MARGIN + (i // columns) * (height + BETWEEN / 2)
        shapes += _titles(panel, left, top, width)
        middle = left + (width - skeleton.size[0]) / 2
        shapes += shapes_of(skeleton, panel.look, middle, top + ABOVE)
        shapes += legend_shapes(legend, left, top + ABOVE + skeleton.size[1] + BELOW, width)
    rows = -(-len(panels) // columns)
    whole = columns * (width + BETWEEN) - BETWEEN
    bottom = style.MARGIN + rows * (height + BETWEEN / 2)
    shapes += lines.shapes(style.MARGIN, bottom - BETWEEN / 4, whole)
    bottom += lines.height(whole)
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
