"""A profile checked against itself: what the model says of the placement that was measured."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.cluster import FRAMING, HEADROOM, slowness
from streamplace.engines.flink.helpers import COMPILERS, GARBAGE, JAVA, NETWORK
from streamplace.engines.flink.limits import FULL, whole_cores
from streamplace.engines.flink.sending_cost import SendingCost
from streamplace.io.clusters import cluster_from_tables
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

WIDE = 1e12
"""Bandwidth in bps where it is not known: only CPU is checked."""
ALIKE = 0.05
"""Rates that differ by less agree."""
LEAST_RATE = 60.0
"""Tuples/s that an operator takes in at least for its rate to be known well."""
_NOT_OPERATORS = (NETWORK, GARBAGE, COMPILERS, JAVA)
MOST_ERROR = 1e6
"""Stands for the error where nothing was measured."""
NOTABLE = 0.03
"""Part of a TaskManager's CPU from which on what takes it is told."""


class Usage(NamedTuple):
    """What a TaskManager may take of CPU, and what it took while it was watched.

    Attributes
    ----------
    limit
        In cores.
    kinds
        Cores by what the threads do.
    throttled
        Part of the periods of its quota in which it was held back.
    """

    limit: float
    kinds: Mapping[str, float]
    throttled: float

    @property
    def load(self) -> float:
        """Part of its CPU that was taken."""
        return sum(self.kinds.values()) / self.limit

    @property
    def is_full(self) -> bool:
        """Whether it had no CPU left."""
        return self.load >= FULL


class Present(NamedTuple):
    """The placement that was measured.

    Attributes
    ----------
    devices
        Operator → TaskManagers of its subtasks, in their order.
    usage
        By TaskManager; those that are not on this machine are missing.
    java
        Cores that Java takes of each TaskManager for itself.
    sending
        What remote tuples cost; None where none were seen.
    """

    devices: Mapping[str, Sequence[str]]
    usage: Mapping[str, Usage]
    java: float
    sending: SendingCost | None = None


class Consistency(NamedTuple):
    """What was predicted and measured of one placement, in tuples/s that the sources let in.

    Attributes
    ----------
    is_saturated
        Whether the placement carried as much as it could; else it may carry more than was measured.
    causes
        What takes part in the difference.
    culprit
        Operator whose figure is the likely cause of a difference.
    """

    predicted: float
    measured: float
    is_saturated: bool
    causes: tuple[str, ...] = ()
    culprit: str = ""

    @property
    def error(self) -> float:
        """Predicted over measured, less 1; at most `MOST_ERROR`."""
        if self.predicted >= (1 + MOST_ERROR) * self.measured:
            return MOST_ERROR
        return self.predicted / self.measured - 1

    @property
    def agrees(self) -> bool:
        """Whether the prediction can be true."""
        return abs(self.error) <= ALIKE or (not self.is_saturated and self.error > 0)

    def __str__(self) -> str:
        if not self.is_saturated and self.error > ALIKE:
            return (
                f"the job was not saturated: {self.measured:,.0f} tuples/s were measured while "
                f"CPU was left, and the model predicts at most {self.predicted:,.0f} for the "
                "present placement; measure at a higher rate to check the model"
            )
        numbers = f"{self.predicted:,.0f} tuples/s, measured are {self.measured:,.0f}"
        if not self.is_saturated:
            numbers += " while there was CPU left"
        text = f"of the present placement the model predicts {numbers} ({self.error:+.0%})"
        return text if self.agrees or not self.causes else f"{text}: {'; '.join(self.causes)}"


def consistency(
    graph: StreamGraph, present: Present, tuples: Mapping[str, float], *, is_blocked: bool
) -> Consistency | None:
    """Compare what the model predicts for a placement with what was measured there.

    Parameters
    ----------
    graph
        As it was measured.
    tuples
        Operator → tuples/s that it took in, or generated.
    is_blocked
        Whether a source was held back.

    Returns
    -------
    None where not all TaskManagers of the job are on this machine, or it takes no CPU.
    """
    from streamsim import bottleneck, resource_loads

    needed = {device for devices in present.devices.values() for device in devices}
    if not needed <= present.usage.keys() or not graph.source_rate:
        return None
    split = expand(graph)
    assignment = {
        subtask: device
        for operator, devices in present.devices.items()
        for subtask, device in zip(split.subtasks(operator), devices, strict=True)
    }
    cluster = _cluster(present, float(graph.attributes["mips"]))
    names = split.graph.operators.name
    placement = Placement.of(names, cluster.devices.name, assignment)
    loads = resource_loads(Problem(split.graph, cluster).instance, placement.index)
    load = bottleneck(loads).load
    if not load:
        return None
    shares = _shares(graph, tuples)
    slowest, fastest = min(shares, default=1.0), max(shares, default=1.0)
    full = [device for device in needed if present.usage[device].is_full]
    return Consistency(
        graph.source_rate / load,
        graph.source_rate * slowest,
        is_blocked or bool(full),
        (*_unsteady(slowest, fastest), *_causes({d: present.usage[d] for d in needed})),
        _culprit(graph, tuples),
    )


def _culprit(graph: StreamGraph, tuples: Mapping[str, float]) -> str:
    """Operator whose CPU the model has most wrong; where it has all of it, the dearest one.

    The model charges every operator for the tuples that selectivities make of those of the sources,
    which may be more or fewer than it took in.
    """
    names, each = graph.operators.name, graph.charged_ipt
    constant = 1e6 * graph.operators.constant
    charged = each * graph.input_rate + constant
    taken = each * np.array([tuples[name] for name in names], np.float64) + constant
    wrong = np.abs(charged - taken)
    figures = wrong if wrong.max() > NOTABLE * taken.sum() else charged
    return names[int(figures.argmax())]


def _shares(graph: StreamGraph, tuples: Mapping[str, float]) -> list[float]:
    """What operators took in, over what they would in the steady state of the sources' rates."""
    expected = zip(graph.operators.name, graph.input_rate.tolist(), strict=True)
    return [tuples[name] / rate for name, rate in expected if rate >= LEAST_RATE]


def _cluster(present: Present, mips: float) -> Cluster:
    """Devices as they were; what compilers took of them was not there for operators."""
    devices = []
    for name, usage in present.usage.items():
        cores, share = whole_cores(usage.limit)
        besides = present.java + usage.kinds.get(COMPILERS, 0.0)
        reserved = min(besides, 0.9 * usage.limit) * mips
        devices.append({"name": name, "mips": share * mips, "cores": cores, "reserved": reserved})
    factor = slowness([one.limit for one in present.usage.values()])
    sending = (present.sending or SendingCost(0.0, 0.0)).slower(factor)
    return cluster_from_tables(
        {
            "bandwidth": WIDE,
            "framing": FRAMING,
            "headroom": HEADROOM,
            "overhead": sending.per_tuple,
            "overhead_per_byte": sending.per_byte,
            "devices": devices,
        }
    )


def _unsteady(slowest: float, fastest: float) -> list[str]:
    if fastest <= (1 + 2 * ALIKE) * slowest:
        return []
    if slowest <= 0:
        return ["an operator took in nothing of what was sent to it; watch for longer"]
    return [
        f"queues filled or drained, operators differ by {fastest / slowest - 1:.0%}; watch for "
        "longer"
    ]


def _causes(usage: Mapping[str, Usage]) -> list[str]:
    """What is known of the fullest TaskManager that the model does not have, in words."""
    device, top = max(usage.items(), key=lambda pair: pair[1].load)
    text = f"{quoted(device)} took {top.load:.0%} of its CPU"
    parts = {kind: top.kinds.get(kind, 0.0) / top.limit for kind in _NOT_OPERATORS}
    shares = [f"{kind} {part:.0%}" for kind, part in parts.items() if part >= NOTABLE]
    causes = [f"{text}, of which {', '.join(shares)}" if shares else text]
    if top.throttled >= NOTABLE:
        causes.append(f"its quota throttled it in {top.throttled:.0%} of its periods")
    if top.load < FULL:
        causes.append("so something else than CPU limits, or it comes in bursts")
    return causes
