"""What graphs look like: sizes, CPU utilisation of operators and saturation of streams."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from streamsim.passes.sending import fixed_times, sending_times

from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.problem import Problem

SPLIT = "split"
MOST_CLASSES = 100


@dataclass(frozen=True, slots=True)
class Spread:
    """Smallest, mean and largest of some numbers, and the quartiles between."""

    min: float
    q1: float
    median: float
    mean: float
    q3: float
    max: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Spread of the given numbers, zeros where there are none."""
        column = np.fromiter(values, np.float64)
        if not len(column):
            return cls(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        q1, median, q3 = (float(q) for q in np.quantile(column, (0.25, 0.5, 0.75)))
        return cls(float(column.min()), q1, median, float(column.mean()), q3, float(column.max()))


@dataclass(frozen=True, slots=True)
class GraphClass:
    """Graphs that share their attributes (apart from the split), and the devices they need."""

    attributes: dict[str, Attribute]
    graphs: int
    cpu: Spread


@dataclass(frozen=True, slots=True)
class Profile:
    """Statistics of a set of graphs, at the sources' full rate.

    Attributes
    ----------
    cpu
        [G] devices' worth of CPU that each graph needs.
    utilisation
        Devices' worth of CPU of every operator of every graph.
    saturation
        Traffic of every stream as a share of one link.
    devices
        Devices of every problem that brings a cluster of its own.
    ccr
        Of the same, communication to computation: the mean transfer between two devices / the mean
        time of an operator.
    classes
        Graphs grouped by attributes; empty where there are more than a hundred groups.
    """

    operators: tuple[int, ...]
    streams: tuple[int, ...]
    sources: tuple[int, ...]
    sinks: tuple[int, ...]
    cpu: tuple[float, ...]
    utilisation: Floats
    saturation: Floats
    splits: dict[str, int]
    devices: tuple[int, ...]
    ccr: tuple[float, ...]
    classes: tuple[GraphClass, ...]


def profile(
    given: Iterable[StreamGraph | Problem], *, mips: float, bandwidth_bps: float
) -> Profile:
    """Measure graphs against devices of a speed and links of a bandwidth.

    Of problems, also what their own clusters are like.
    """
    sizes: list[tuple[int, int, int, int]] = []
    cpu: list[float] = []
    utilisation: list[Floats] = []
    saturation: list[Floats] = []
    splits: Counter[str] = Counter()
    classes: defaultdict[tuple[tuple[str, Attribute], ...], list[float]] = defaultdict(list)
    devices: list[int] = []
    ccr: list[float] = []
    for item in given:
        if isinstance(item, Problem):
            devices.append(item.n_devices)
            ccr.append(_ccr(item))
        graph = item.graph if isinstance(item, Problem) else item
        sizes.append((graph.n_operators, graph.n_streams, len(graph.sources), len(graph.sinks)))
        instance = Problem(graph, _one_device(graph, mips)).instance
        utilisation.append(instance.load[:, 0])
        saturation.append(8 * instance.traffic / bandwidth_bps)
        cpu.append(float(utilisation[-1].sum()))
        if SPLIT in graph.attributes:
            splits[str(graph.attributes[SPLIT])] += 1
        if len(classes) <= MOST_CLASSES:
            attributes = tuple(item for item in graph.attributes.items() if item[0] != SPLIT)
            classes[attributes].append(cpu[-1])
    operators, streams, sources, sinks = zip(*sizes, strict=True) if sizes else ((), (), (), ())
    return Profile(
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
        _classes(classes),
    )


def mean_device_and_link(cluster: Cluster) -> tuple[float, float]:
    """MIPS of a cluster's mean device, of all its cores, and bit/s of its mean link.

    Links without a limit are left out, unless there is no other.
    """
    remote = cluster.bandwidth_bps[~np.eye(cluster.n_devices, dtype=bool)]
    limited = remote[np.isfinite(remote)]
    mips = float((cluster.devices.mips * cluster.devices.cores).mean())
    return mips, float(limited.mean()) if len(limited) else np.inf


def _one_device(graph: StreamGraph, mips: float) -> Cluster:
    """One device that has all that operators require."""
    return Cluster.of([Device("d0", mips, tags=frozenset().union(*graph.operators.requires))])


def _ccr(problem: Problem) -> float:
    """Mean seconds of a transfer between two devices / mean seconds of an operator."""
    tasks = problem.one_pass
    computing = float(tasks.work[:, problem.instance.device_type].mean())
    remote = ~np.eye(problem.n_devices, dtype=bool)
    size, fixed_s = 0.0, 0.0
    if problem.graph.n_streams:
        size = float(tasks.streams["size"].mean())
        fixed_s = float(fixed_times(tasks.streams["tuples"], tasks.gap, tasks.overhead).mean())
    latency, wire = tasks.links["latency"][remote], tasks.links["seconds_per_byte"][remote]
    sending = sending_times(latency, size, wire, fixed_s)
    return float(sending.mean()) / computing if computing and remote.any() else 0.0


def _classes(
    loads_by_class: dict[tuple[tuple[str, Attribute], ...], list[float]],
) -> tuple[GraphClass, ...]:
    if len(loads_by_class) > MOST_CLASSES or not any(loads_by_class):
        return ()
    return tuple(
        GraphClass(dict(key), len(loads), Spread.of(loads)) for key, loads in loads_by_class.items()
    )
