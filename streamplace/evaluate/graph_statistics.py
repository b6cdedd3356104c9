"""Statistics of graphs: sizes, CPU utilisation of operators, saturation of streams, histograms."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from streamsim.passes.sending import fixed_times, sending_times

from streamplace.display.report import Report, Sheet
from streamplace.drawing.figures import PALETTE, finish, new_figure
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.defaults import BPS, MIPS
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import counted
from streamplace.model.mixins import Displayed, data_frame
from streamplace.model.problem import Problem
from streamplace.model.units import Stated, bandwidth_bps, digits, format_bandwidth, mips

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

SPLIT = "split"
MIN_BINS, MAX_BINS = 10, 40
"""Bins of a histogram; their number grows with the number of values."""
MAX_INTEGER_BINS = 60
"""Bins of one integer each; for more integers, bins are wider."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, quartiles, mean and maximum of some numbers."""

    min: float
    q1: float
    median: float
    mean: float
    q3: float
    max: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Spread of numbers, zeros if there are none."""
        column = np.fromiter(values, np.float64)
        column = column if len(column) else np.zeros(1)
        least, q1, median, q3, most = np.quantile(column, (0, 0.25, 0.5, 0.75, 1)).tolist()
        return cls(least, q1, median, float(column.mean()), q3, most)


LABELS = {
    "operators": ("operators", "operators per graph"),
    "streams": ("streams", "streams per graph"),
    "sources": ("sources", "sources per graph"),
    "sinks": ("sinks", "sinks per graph"),
    "cpu": ("CPU (devices)", "CPU per graph"),
    "utilisation": ("", "CPU per operator"),
    "saturation": ("", "traffic per stream"),
    "devices": ("devices", "devices per problem"),
    "ccr": ("communication / computation", "communication / computation"),
}
"""Labels of the numbers in a table of one graph, and in one of several."""


@dataclass(frozen=True, slots=True)
class GraphStatistics(Displayed):
    """Statistics of a set of graphs, at the sources' full rate."""

    operators: tuple[int, ...]
    streams: tuple[int, ...]
    sources: tuple[int, ...]
    sinks: tuple[int, ...]
    cpu: tuple[float, ...]  # [G] CPU that each graph needs, in devices
    utilisation: Floats  # CPU of every operator of every graph, in devices
    saturation: Floats  # traffic of every stream, as a share of one link
    splits: dict[str, int]
    devices: tuple[int, ...]  # number of devices of every problem that has a cluster
    # Communication to computation of these problems: mean transfer between two devices / mean time
    # of an operator.
    ccr: tuple[float, ...]
    # Speed of the device and bandwidth of the link that are the units of CPU and traffic.
    mips: float
    bandwidth_bps: float

    def spreads(self) -> dict[str, Spread]:
        """Spreads of the numbers by name."""
        columns = ("operators", "streams", "sources", "sinks", "cpu", "utilisation", "saturation")
        of_problems = ("devices", "ccr") if self.devices else ()
        return {name: Spread.of(getattr(self, name)) for name in (*columns, *of_problems)}

    @property
    def units(self) -> str:
        """Units of CPU and traffic, in words."""
        link = "without a limit"
        if np.isfinite(self.bandwidth_bps):
            link = f"of {format_bandwidth(self.bandwidth_bps)}"
        return f"CPU in devices of {digits(self.mips, 6)} MIPS, traffic in links {link}"

    def report(self) -> Report:
        """Splits, sizes of one graph, and statistics."""
        spreads, sizes = self.spreads(), list[Sheet]()
        if len(self.operators) == 1:
            names = [name for name in spreads if LABELS[name][0]]
            rows = tuple((LABELS[n][0], f"{spreads.pop(n).mean:.4g}") for n in names)
            sizes.append(Sheet(("", ""), rows))
        table = tuple(
            (LABELS[name][1], *(f"{value:.4g}" for value in asdict(spread).values()))
            for name, spread in spreads.items()
        )
        return Report(
            (
                *(f"  {name}: {count}" for name, count in self.splits.items()),
                *sizes,
                Sheet(("", "min", "q1", "median", "mean", "q3", "max"), table),
                self.units,
            ),
            counted(len(self.operators), "graph"),
        )

    def to_pandas(self) -> "DataFrame":
        """Table with a row for every graph."""
        columns = ("operators", "streams", "sources", "sinks", "cpu")
        return data_frame({name: getattr(self, name) for name in columns})

    def __repr__(self) -> str:
        return f"<GraphStatistics of {counted(len(self.operators), 'graph')}>"


def statistics_of(
    items: Iterable[StreamGraph | Problem], cluster: Cluster | None = None
) -> GraphStatistics:
    """Measure graphs in usual devices and links, or in those of a cluster.

    The clusters of problems are measured, too.
    """
    unit_mips, unit_bps = _units(cluster)
    sizes: list[tuple[int, int, int, int]] = []
    cpu: list[float] = []
    utilisation: list[Floats] = []
    saturation: list[Floats] = []
    splits: Counter[str] = Counter()
    devices: list[int] = []
    ccr: list[float] = []
    for item in items:
        if isinstance(item, Problem):
            devices.append(item.n_devices)
            ccr.append(_ccr(item))
        graph = item.graph if isinstance(item, Problem) else item
        sizes.append((graph.n_operators, graph.n_streams, len(graph.sources), len(graph.sinks)))
        able = Device("d0", Stated(unit_mips), tags=frozenset().union(*graph.operators.requires))
        instance = Problem(graph, Cluster.of([able])).instance
        utilisation.append(instance.full_load[:, 0])
        saturation.append(8 * instance.traffic / unit_bps)
        cpu.append(float(utilisation[-1].sum()))
        if SPLIT in graph.attributes:
            splits[str(graph.attributes[SPLIT])] += 1
    operators, streams, sources, sinks = zip(*sizes, strict=True) if sizes else ((), (), (), ())
    return GraphStatistics(
        operators,
        streams,
        sources,
        sinks,
        tuple(cpu),
        np.concatenate(utilisation or [np.empty(0)]),
        np.concatenate(saturation or [np.empty(0)]),
        dict(splits),
        tuple(devices),
        tuple(ccr),
        unit_mips,
        unit_bps,
    )


def _units(cluster: Cluster | None) -> tuple[float, float]:
    """MIPS and bit/s that are the units of CPU and traffic, by default of the default cluster.

    A cluster has the units of its mean device, with all cores, and of its mean link. Links without
    a limit are ignored, unless there are no others.
    """
    if cluster is None:
        return mips(MIPS), bandwidth_bps(BPS)
    remote = cluster.bandwidth_bps[~np.eye(cluster.n_devices, dtype=bool)]
    limited = remote[np.isfinite(remote)]
    mean = float((cluster.devices.speed * cluster.devices.cores).mean())
    return mean, float(limited.mean()) if len(limited) else np.inf


def _ccr(problem: Problem) -> float:
    """Mean seconds of a transfer between two devices / mean seconds of an operator."""
    tasks = problem.one_pass
    computing = float(tasks.work[:, problem.instance.device_type].mean())
    remote = ~np.eye(problem.n_devices, dtype=bool)
    size, fixed_s = 0.0, 0.0
    if problem.graph.n_streams:
        size = float(tasks.streams["size"].mean())
        fixed_s = float(fixed_times(tasks).mean())
    latency, wire = tasks.links["latency"][remote], tasks.links["seconds_per_byte"][remote]
    sending = sending_times(latency, size, wire, fixed_s)
    return float(sending.mean()) / computing if computing and remote.any() else 0.0


def draw_statistics(statistics: GraphStatistics, data: str) -> "Figure":
    """Draw Figure 4 of DREAM's paper: operators per graph, CPU per operator, saturation per stream.

    The title names the data and the units.
    """
    sizes = set(statistics.operators)
    figure, axes = new_figure(3 if len(sizes) > 1 else 2, width=4.2, height=3.2)
    if len(sizes) > 1:
        numbers = np.array(statistics.operators, float)
        bins = np.arange(numbers.min(), numbers.max() + 2) - 0.5  # around integers, or wider
        if len(bins) > MAX_INTEGER_BINS:
            bins = np.linspace(bins[0], bins[-1], MAX_BINS + 1)
        _histogram(axes[0], numbers, bins, "operators per graph", "graphs")
        axes[0].locator_params("x", integer=True)
    elif sizes:
        each = " each" if len(statistics.operators) > 1 else ""
        data += f", {sizes.pop()} operators{each}"
    cpu, network = axes[-2:]
    load, traffic = statistics.utilisation, statistics.saturation
    _histogram(cpu, load, _bins(load), "CPU of an operator (devices)", "operators")
    _histogram(network, traffic, _bins(traffic), "traffic of a stream (links)", "streams")
    return finish(figure, f"{data}\n{statistics.units}")


def _bins(values: Floats) -> Floats:
    """Edges of bins from 0 to the largest value."""
    top = max(float(values.max(initial=0.0)), 1e-9)
    n_bins = int(np.clip(2 * len(values) ** 0.5, MIN_BINS, MAX_BINS))
    return np.linspace(0.0, top * 1.0001, n_bins + 1)


def _histogram(axis: "Axes", values: Floats, bins: Floats, x: str, y: str) -> None:
    axis.margins(y=0.12)
    axis.hist(values, bins=bins.tolist(), color=PALETTE[0], edgecolor="white", linewidth=0.4)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.locator_params("y", integer=True)
