"""Rates that layouts of a measured job sustain, by max–min filling.

A *flow* is the output of a source, or of one of its subtasks. All flows rise together, in
proportion to their measured rates. When a resource is full, the flows that use it stop, and the
others rise further, up to their arrival rates. Sources that keep up come first: they need less than
a fair share of the CPU.

A full device stops only the flows that use it. Its threads have equal shares of the CPU, so while
its largest thread is a subtask of a source, only that subtask slows down: it yields CPU to the
threads that process tuples from other devices, until it is no larger than they are.

With x, each flow's multiple of its measured rate, L, its load of each resource as a fraction of the
capacity besides constant loads, and k, the factor of the costs of its source,

    L (k x) ≤ 1,    x ≤ 1 for sources that keep up,    and the layout carries rates · x.

A flow is

- all subtasks of a source with known shares of the input: it sustains the smallest (rate of a
  subtask / its share);
- each subtask of another source: none waits for the others, as in generators;
- all sources together if a total rate is requested, if all keep up, or if it is unknown which
  sources keep up: then the result is the largest multiple of the rate at which no subtask falls
  behind.

The factors k are such that each held-back source has its measured rate in the present layout. They
are 1 if the model is exact, and for sources that keep up.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from streamplace.flink.cpu.limits import MAX_RESERVED, TINY
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cluster import (
    Measurement,
    PlacedSubtasks,
    placed,
    possible_orders,
)
from streamplace.model import StreamGraph
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.profile_trust import Trust, profile_drift, trust_of
from streamplace.model.units import MAX_VALUE

NEGLIGIBLE_RATE = 1e-6
"""Share of the rate of all sources below which sources count as silent."""
MAX_LOAD = 1e15
"""Substitute for an infinite load, of a device whose constant loads exceed its capacity."""
MAX_STEPS = 30
"""Maximum number of iterations for the factors of costs."""


class Flows(NamedTuple):
    """Flows of a job in a layout: U flows, R resources (devices first), T threads.

    Threads are the subtasks, except for single senders, and the network threads of each device.
    """

    rates: Floats  # [U] measured tuples/s
    limit: Floats  # [U] multiple of the rate that arrives; infinite for held-back sources
    loads: Floats  # [U, R] as a fraction of the capacity besides constant loads
    source: Longs  # [U] row of the operator that sends it; any row for one flow of all sources
    sender: Floats  # [U] load of a device by the only subtask that sends it; 0 if several do
    device: Longs  # [U] device of that subtask
    threads: Floats  # [U, T] loads of the devices by threads
    thread_device: Longs  # [T] device of each thread

    def filled(self) -> Floats:
        """Multiple of its measured rate that each flow reaches, [U].

        >>> none, loads = np.zeros((2, 0)), np.array([[0.25, 0.0], [0.25, 0.5]])
        >>> flows = Flows(np.array([10.0, 20.0]), np.full(2, inf), loads, np.array([0, 1]),
        ...     np.zeros(2), np.zeros(2, int), none, np.zeros(0, int))
        >>> flows.filled().tolist(), flows._replace(limit=np.array([0.4, inf])).filled().tolist()
        ([2.0, 2.0], [0.4, 2.0])

        The second source is alone on the second device, where it yields to a reader of the first:

        >>> flows = flows._replace(sender=np.array([0.25, 0.5]), device=np.array([0, 1]),
        ...     loads=np.array([[0.25, 0.05], [0.0, 0.5]]), threads=np.array([[0.05], [0.0]]),
        ...     thread_device=np.array([1]))
        >>> flows.filled().round(9).tolist()
        [4.0, 1.6]
        """
        reached = np.zeros(len(self.rates))
        is_held_back = self.limit == inf
        for rising in (~is_held_back, is_held_back):
            self._raise(reached, rising.copy(), may_yield=is_held_back & (self.sender > 0))
        return reached

    def _raise(self, reached: Floats, rising: Bools, may_yield: Bools) -> None:
        """Raise some flows as far as possible, by straight lines from one event to the next.

        A flow that yields keeps its device full: the more the others need there, the less it gets.
        The events are: a flow has reached its arrival rate; a resource is full; a flow that yields
        is no larger than another thread of its device (it stops, and so do the flows that need the
        device); or a flow that rises there has become as large, and yields, too.
        """
        yielding = np.zeros(len(reached), np.bool_)
        while rising.any():
            slope = self._slopes(rising, yielding)
            to_full = _steps(1.0 - reached @ self.loads, slope @ self.loads)
            to_full[self.device[yielding]] = inf
            to_limit = _steps((self.limit - reached)[rising], slope[rising])
            to_no_larger, to_as_large = self._meetings(reached, slope, yielding, rising & may_yield)
            step = min(d.min(initial=inf) for d in (to_full, to_limit, to_no_larger, to_as_large))
            if step == inf:
                reached[rising] = inf
                return
            reached += step * slope
            now = step * (1 + TINY)
            rising &= (reached < self.limit * (1 - TINY)) & (to_as_large > now)
            yielding |= to_as_large <= now
            for resource in np.flatnonzero(to_full <= now):
                sources = np.where(
                    rising & may_yield & (self.device == resource), self.sender * reached, 0.0
                )
                thread = (reached @ self.threads)[self.thread_device == resource].max(initial=0.0)
                if sources.max() > (1 + TINY) * thread:
                    yielding |= sources >= sources.max() * (1 - TINY)
                    rising &= ~yielding
                else:
                    does_without = self.loads[:, resource] == 0
                    rising &= does_without
                    yielding &= does_without | (slope <= 0)
            for device in set(self.device[yielding & (to_no_larger <= now)].tolist()):
                rising &= self.loads[:, device] == 0
                yielding &= self.device != device

    def _slopes(self, rising: Bools, yielding: Bools) -> Floats:
        """Slopes of the flows; yielding flows fall equally on each full device."""
        slope = rising.astype(np.float64)
        rows = np.flatnonzero(yielding)
        if len(rows):
            full, column = np.unique(self.device[rows], return_inverse=True)
            by_device = np.zeros((len(slope), len(full)))
            by_device[rows, column] = 1 / self.sender[rows]
            loads = self.loads[:, full]
            slope += by_device @ np.linalg.lstsq(loads.T @ by_device, -(slope @ loads))[0]
        return slope

    def _meetings(
        self, reached: Floats, slope: Floats, yielding: Bools, rising: Bools
    ) -> tuple[Floats, Floats]:
        """Steps until threads have equal loads, [U] each; infinite if never.

        The first steps are of yielding flows, until another thread on their device is as large; the
        second of flows that rise on the same device, until they are as large as a yielding flow.
        """
        to_no_larger, to_as_large = np.full(len(slope), inf), np.full(len(slope), inf)
        size, change = self.sender * reached, self.sender * slope
        other, growth = reached @ self.threads, slope @ self.threads
        for u in np.flatnonzero(yielding):
            there = self.thread_device == self.device[u]
            gaps = _steps(size[u] - other[there], growth[there] - change[u])
            to_no_larger[u] = gaps.min(initial=inf)
            local = np.flatnonzero(rising & (self.device == self.device[u]))
            gaps = _steps(size[u] - size[local], change[local] - change[u])
            to_as_large[local] = np.minimum(to_as_large[local], gaps)
        return to_no_larger, to_as_large

    @property
    def total(self) -> float:
        """Tuples/s of all flows together."""
        return float(self.rates @ self.filled())

    def costing(self, factors: Floats) -> "Flows":
        """Return the same flows with costs multiplied by factors, by the row of their source."""
        times = factors[self.source]
        return self._replace(
            loads=self.loads * times[:, None],
            sender=self.sender * times,
            threads=self.threads * times[:, None],
        )


def _steps(distance: Floats, growth: Floats) -> Floats:
    """Steps until each distance is covered at its growth; infinite if never."""
    steps = np.full(len(distance), inf)
    np.divide(np.maximum(distance, 0.0), growth, out=steps, where=growth > 1 / MAX_LOAD)
    return steps


@dataclass(frozen=True, eq=False)
class JobRates:
    """Predicts the rates of a job's layouts."""

    measured: Measurement
    present: Layout  # measured layout, by tasks
    rate: float | None = None  # of all sources together; only its presence matters

    @property
    def is_open(self) -> bool:
        """Whether the held-back sources are maximised; otherwise all sources are one flow."""
        return self.rate is None and bool(self.measured.flow.held_back)

    @cached_property
    def kept(self) -> float:
        """Tuples/s of sources that keep up while others are held back; 0 if all are one flow."""
        if not self.is_open:
            return 0.0
        graph = self.measured.graph
        total, held = graph.source_rate, sum(graph.operators.rate[self._held_back].tolist())
        return total - held if NEGLIGIBLE_RATE < held / total < 1 - NEGLIGIBLE_RATE else 0.0

    @cached_property
    def sustained(self) -> Floats:
        """Measured tuples/s of each source that the present layout sustains, by its row."""
        operators = self.measured.graph.operators
        rates = operators.rate.copy()
        for name, source in self.measured.flow.sources.items():
            if source.is_limited and source.sustained is not None:
                rates[operators.index(name)] = source.sustained
        return rates

    @cached_property
    def factors(self) -> Floats:
        """Factor of the costs of each source, by its row."""
        measured = self.measured
        now, factors = self._flows(self.present), np.ones(measured.graph.n_operators)
        rates = self.sustained if self.is_open else np.full(len(factors), self.sustained.sum())
        for _ in range(MAX_STEPS):
            flows = now.costing(factors)
            carried = np.bincount(now.source, now.rates * flows.filled(), len(factors))
            is_wrong = (carried > TINY * rates) & (carried < inf)
            if not measured.flow.is_limited:  # it may carry more than it was offered
                is_wrong &= carried < rates
            off = np.where(is_wrong, carried / np.where(is_wrong, rates, 1.0), 1.0)
            factors = factors * off
            if abs(off - 1).max() <= TINY:
                break
        return factors

    @property
    def cost_factor(self) -> float:
        """Factor of all costs, or if there are several flows, of the costs of the first source."""
        return float(self.factors[0])

    def at_measured_costs(self, graph: StreamGraph) -> StreamGraph:
        """Return a graph with all costs multiplied by `cost_factor`."""
        operators = graph.operators
        return graph.with_operators(replace(operators, ipt=self.cost_factor * operators.ipt))

    @cached_property
    def contradiction(self) -> Trust | None:
        """How the model contradicts the measured rate; None if its predictions can be used.

        Profiles are checked by the CPU of this machine. For a job that is limited elsewhere, or by
        a network, the error is the predicted rate of the present layout relative to the measured
        one.
        """
        graph = self.measured.graph
        trust, modelled = trust_of(graph), self._flows(self.present).total
        error = modelled / self.sustained.sum() - 1 if modelled < inf else 0.0
        is_bound = self.measured.flow.is_limited or error < 0
        if is_bound and (trust is None or trust.error > abs(error)):
            trust = Trust(error, profile_drift(graph))
        return trust if trust is not None and trust.is_wrong else None

    def of(self, layout: Layout) -> float:
        """Tuples/s that a layout carries."""
        if layout not in self._carried:
            self._carried[layout] = self._flows(layout).costing(self.factors).total
        return self._carried[layout]

    @cached_property
    def _carried(self) -> dict[Layout, float]:
        """Cache of the rates of layouts."""
        return {}

    def if_pinned(self, layout: Layout) -> float:
        """Lowest tuples/s that a pinned layout carries, over the orders that Flink may choose."""
        return min(map(self.of, possible_orders(layout, self.measured.shares)))

    def at_rate(self, rate: float) -> StreamGraph:
        """Graph that the model must carry for a total rate; sources that keep up do not change."""
        graph, rates = self.measured.graph, self.measured.graph.operators.rate
        grows = self._held_back if self.is_open else np.ones(len(rates), np.bool_)
        more = (rate - self.kept) / (graph.source_rate - self.kept)
        factors = self.factors if self.is_open else self.cost_factor
        rates = np.minimum(np.where(grows, more, 1.0) * factors * rates, MAX_VALUE)
        return graph.with_operators(replace(graph.operators, rate=rates))

    @property
    def _held_back(self) -> Bools:
        """[N] whether more may arrive for an operator than it emits."""
        names, held_back = self.measured.graph.operators.name, self.measured.flow.held_back
        return np.array([name in held_back for name in names], np.bool_)

    def _flows(self, layout: Layout) -> Flows:
        from streamsim import flow_shares

        measured = self.measured
        job = placed(measured.graph, measured.cluster, layout, measured.shares)
        sources = job.problem.instance.sources
        rows = job.expansion.operator[sources]  # [S] operator of each subtask of a source
        flow = self._flow_of(rows)
        number = int(flow.max(initial=-1)) + 1
        rates, limit, source = np.zeros(number), np.full(number, inf), np.zeros(number, np.int64)
        np.add.at(rates, flow, job.problem.instance.rate[sources])
        if self.is_open:
            source[flow] = rows
            limit[flow[~self._held_back[rows]]] = 1.0
        parts = np.zeros((number, job.problem.n_operators))
        np.add.at(parts, flow, flow_shares(job.problem.instance))
        alone = sources[np.bincount(flow, minlength=number)[flow] == 1]
        return _with_loads(job, rates, limit, parts, source, alone)

    def _flow_of(self, rows: Ints) -> Longs:
        """[S] number of the flow of each subtask of a source, [S] rows of their operators."""
        if not self.is_open:
            return np.zeros(len(rows), np.int64)
        measured = self.measured
        lags = measured.flow.sources.items()
        read = {name for name, lag in lags if any(sub.arrived for sub in lag.subtasks)}
        names, tied = measured.graph.operators.name, read | measured.shares.keys()
        keys = [(row, 0 if names[row] in tied else i) for i, row in enumerate(rows.tolist())]
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        return np.array([number[key] for key in keys], np.int64)


def _with_loads(
    job: PlacedSubtasks, rates: Floats, limit: Floats, parts: Floats, source: Longs, alone: Longs
) -> Flows:
    """Flows with their loads of devices, links, network cards and cores, and by thread.

    ``parts``: share of each flow in the full input of each subtask, [U, N].
    ``alone``: subtasks of sources that are the only senders of their flow.
    """
    from streamsim import loads_of_parts, pressures

    instance, place = job.problem.instance, job.placement
    subtasks, d = np.arange(len(place)), instance.n_devices
    kind = instance.device_type[place]
    loads = loads_of_parts(instance, place, parts)
    threads = parts * instance.load[subtasks, kind]
    if len(instance.constant):
        constants = np.bincount(place, instance.constant[subtasks, kind], d).astype(np.float64)
        constants = np.minimum(constants, MAX_RESERVED)  # starved threads wake up less often
        loads[:, :d] = pressures(loads[:, :d], constants)
        threads = pressures(threads, constants[place])
        constants = np.minimum(instance.core_constant[subtasks, kind], MAX_RESERVED)
        loads[:, -len(place) :] = pressures(loads[:, -len(place) :], constants)
    loads, threads = np.minimum(loads, MAX_LOAD), np.minimum(threads, MAX_LOAD)
    sender, device = np.zeros(len(parts)), np.zeros(len(parts), np.int64)
    flow = parts[:, alone].argmax(axis=0)
    sender[flow], device[flow] = threads[flow, alone], place[alone]
    threads[flow, alone] = 0.0
    network = loads[:, :d].copy()  # threads that send and receive
    np.subtract.at(network.T, place, threads.T)
    network[flow, device[flow]] -= sender[flow]
    is_used = loads.any(axis=0) | (np.arange(loads.shape[1]) < d)
    threads = np.hstack([threads, network])
    thread_device = np.concatenate([place, np.arange(d)]).astype(np.int64)
    loads = loads[:, is_used]
    return Flows(rates, limit, loads, source, sender, device, threads, thread_device)
