"""Pictures of plans: machines with their subtasks, and hours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamplace.drawing.charts import PALETTE, bar_style, finish, legend_text
from streamplace.drawing.figures import GREY, new_figure
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.planning.hours import HOUR, PlanHour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLAN, BOUND = PALETTE[0], PALETTE[1]
MOST_BARS = 24
"""Most machines that are drawn."""
LEAST_SHOWN = 1e-6


class PlanPicture(NamedTuple):
    """Contents of a picture of a plan."""

    # The graph at its rate and parallelisms, the machines, and the machine of every subtask.
    graph: StreamGraph
    cluster: Cluster
    placement: Placement
    title: str  # line below the name of the graph
    hours: Sequence[PlanHour]  # hours of a trace, drawn in a panel of their own; none for one rate
    # Cost of the plan, and its unit: "cost per hour" or "machines".
    cost: float
    unit: str


def draw_machines(plan: PlanPicture) -> "Figure":
    """Draw the CPU use of each machine by operator, and below it the hours of a trace."""
    use, names = _cpu_use(plan), plan.graph.operators.name
    busy = np.flatnonzero(use.sum(axis=1))[:MOST_BARS]
    figure, axes = new_figure(
        1, rows=2 if plan.hours else 1, width=6.4, height=1.2 + 0.22 * max(len(busy), 4)
    )
    bars, at, left = axes[0], np.arange(len(busy)), np.zeros(len(busy))
    for i, name in enumerate((*names, "sending and receiving")):
        width = use[busy, i]
        if width.max(initial=0.0) > LEAST_SHOWN:
            style = bar_style(i) if i < len(names) else {"color": GREY}
            bars.barh(at, width, left=left, height=0.75, label=legend_text(name), **style)
            left += width
    bars.set_yticks(at, [legend_text(plan.cluster.devices.name[d]) for d in busy.tolist()])
    bars.invert_yaxis()
    bars.axvline(1.0, color=GREY, linewidth=0.8)
    bars.set(xlim=(0, 1.02), xlabel="CPU in use")
    bars.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    if plan.hours:
        _draw_hours(axes[1], plan)
    return finish(figure, f"{legend_text(plan.graph.name)}\n{plan.title}")


def _cpu_use(plan: PlanPicture) -> Floats:
    """CPU use of each machine by operator, with streams in the last column, [D, N + 1]."""
    from streamsim import resource_loads

    expansion = expand(plan.graph)
    instance = Problem(expansion.graph, plan.cluster, known=plan.placement).instance
    place = plan.placement.index
    whole = resource_loads(instance, place).devices
    load = instance.full_load[np.arange(len(place)), instance.device_type[place]]
    use = np.zeros((len(plan.cluster.devices), plan.graph.n_operators + 1))
    np.add.at(use, (place, expansion.operator), load)
    use[:, -1] = np.maximum(0.0, whole - use.sum(axis=1))
    return use


def _draw_hours(axis: "Axes", plan: PlanPicture) -> None:
    """Draw the cost of each hour alone, and of the plan."""
    hours = plan.hours
    at = np.array([(hour.start - hours[0].start) / HOUR for hour in hours])
    cost = [np.nan if hour.cost is None else hour.cost for hour in hours]
    bound = [np.nan if hour.bound is None else float(hour.bound) for hour in hours]
    axis.bar(at, cost, width=1.0, align="edge", color=PLAN, alpha=0.35, label="each hour alone")
    axis.hlines(bound, at, at + 1, color=BOUND, linewidth=1.4, label="its proven bound")
    axis.axhline(plan.cost, color=PLAN, linewidth=1.6, label="the plan")
    axis.set(xlabel="hours", ylabel=plan.unit, ylim=(0, 1.08 * np.nanmax([plan.cost, *cost])))
