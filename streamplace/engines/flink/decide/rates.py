"""Rates that layouts of a measured job sustain, by max–min filling.

A *flow* is what a source sends, or one of its subtasks. The flows rise together, relative to what
they sent when they were measured. Where a resource is full, those that use it stop, and the others
rise further, up to what arrives for them (as in `streamsim.filling`, where nothing arrives but what
was measured). Sources that keep up come first: they need less than a fair share of the CPU.

With x, the multiple of its measured rate that each flow reaches, L, its load of each resource as a
fraction of what constant loads leave, and k, the factor of the costs of its source,

    L (k x) ≤ 1,    x ≤ 1 for sources that keep up,    and the layout carries rates · x.

What one flow is follows from what a rate says of the job:

- Subtasks of a source with known shares of the input are one flow: it lasts at the smallest of
  (rate of a subtask / its share).
- Each subtask of another source is a flow of its own: none waits for the others, as in generators.
- All sources are one flow if a total rate is asked for, or if they keep up, or if it is not known
  which do: then the question is up to which multiple of it no subtask falls behind.

The factors k are those with which each held-back source carries in the present layout what was
measured there: 1 if the model is exact, and for sources that keep up.
"""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.measurement import (
    Measurement,
    PlacedSubtasks,
    placed,
    possible_orders,
)
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.graph import StreamGraph
from streamplace.model.trust import Trust, profile_drift, trust_of
from streamplace.model.units import LARGEST

LOG = logging.getLogger(__name__)
TINY = 1e-9
"""Relative difference that rounding may make of levels, rates and factors of costs."""
STUCK = 1e15
"""Load that stands for an infinite one: a device that constant loads exceed carries nothing."""
STEPS = 30
"""Most steps in which factors of costs are found."""


class Flows(NamedTuple):
    """Flows of a job in a layout: U flows, R resources."""

    rates: Floats  # [U] tuples/s when they were measured
    most: Floats  # [U] largest multiple of them that arrives; infinite for held-back sources
    loads: Floats  # [U, R] as a fraction of what constant loads leave
    source: Longs  # [U] row of the operator that sends it; of one flow of all, any

    def filled(self) -> Floats:
        """Multiple of its measured rate that each flow reaches, [U].

        >>> loads = np.array([[0.25, 0.0], [0.25, 0.5]])
        >>> flows = Flows(np.array([10.0, 20.0]), np.full(2, inf), loads, np.array([0, 1]))
        >>> flows.filled().tolist(), flows._replace(most=np.array([0.4, inf])).filled().tolist()
        ([2.0, 2.0], [0.4, 2.0])
        """
        reached, used = np.zeros(len(self.rates)), np.zeros(self.loads.shape[1])
        for first in (self.most < inf, self.most == inf):
            rising = first.copy()
            while rising.any():
                slope = self.loads[rising].sum(axis=0)
                levels = np.full(len(slope), inf)
                np.divide(np.maximum(1.0 - used, 0.0), slope, out=levels, where=slope > 0)
                level = min(levels.min(initial=inf), self.most[rising].min())
                if level == inf:
                    reached[rising] = inf
                    break
                full = levels <= level * (1 + TINY)
                stops = rising & ((self.loads[:, full] > 0).any(axis=1) | (self.most <= level))
                reached[stops] = level
                used += level * self.loads[stops].sum(axis=0)
                rising &= ~stops
        return reached

    @property
    def total(self) -> float:
        """Tuples/s of all flows together."""
        return float(self.rates @ self.filled())

    def costing(self, factors: Floats) -> "Flows":
        """Return the same flows with so many times the costs, by the row of their source."""
        return self._replace(loads=self.loads * factors[self.source][:, None])


@dataclass(frozen=True, eq=False)
class JobRates:
    """Predicts the rates of a job's layouts."""

    measured: Measurement
    present: Layout  # operator → devices of its subtasks when it was measured
    asked: float | None = None  # tuples/s of all sources together; None for as much as possible

    @property
    def is_open(self) -> bool:
        """Whether as much as possible is wanted of the held-back sources; else all are one flow."""
        return self.asked is None and self.measured.is_limited and bool(self.measured.held_back)

    @cached_property
    def kept(self) -> float:
        """Tuples/s of sources that keep up while others are held back; 0 if all are one flow."""
        return self.measured.kept_rate if self.is_open else 0.0

    @cached_property
    def sustained(self) -> Floats:
        """Tuples/s of each source that the present layout was measured to sustain, by its row."""
        operators, flow = self.measured.graph.operators, self.measured.flow
        rates = operators.rate.copy()
        for name, one in flow.sources.items() if flow is not None else ():
            if one.is_limited and one.sustained is not None:
                rates[operators.index(name)] = one.sustained
        return rates

    @cached_property
    def factors(self) -> Floats:
        """Factor of the costs of each source, by its row."""
        measured = self.measured
        now, answer = self._flows(self.present), np.ones(measured.graph.n_operators)
        rates = self.sustained if self.is_open else np.full(len(answer), self.sustained.sum())
        for _ in range(STEPS):
            flows = now.costing(answer)
            carried = np.bincount(now.source, now.rates * flows.filled(), len(answer))
            known = (carried > TINY * rates) & (carried < inf)
            if not measured.is_limited:  # it may carry more than it was offered
                known &= carried < rates
            off = np.where(known, carried / np.where(known, rates, 1.0), 1.0)
            answer = answer * off
            if abs(off - 1).max() <= TINY:
                break
        LOG.debug("factors of the costs of sources: %s", answer[np.unique(now.source)].tolist())
        return answer

    @cached_property
    def contradiction(self) -> str | None:
        """How the model contradicts the measured rate; None if its predictions can be used.

        Profiles are checked by the CPU of this machine. For a job that is limited elsewhere, or by
        a network, the error is the predicted rate of the present layout relative to the measured
        one. It carries nothing if constant loads alone exceed a device.
        """
        graph = self.measured.graph
        trust, modelled = trust_of(graph), self._flows(self.present).total
        error = modelled / self.sustained.sum() - 1 if modelled < inf else 0.0
        if 1 + error < TINY:
            trust = Trust(-1.0)
        elif self.measured.is_limited and (trust is None or trust.error > abs(error)):
            trust = Trust(error, profile_drift(graph))
        return str(trust) if trust is not None and trust.is_wrong else None

    def of(self, layout: Layout) -> float:
        """Tuples/s that a layout carries."""
        return self._flows(layout).costing(self.factors).total

    def if_pinned(self, layout: Layout) -> float:
        """Tuples/s that a layout carries at least, whichever of its subtasks Flink puts where."""
        return min(map(self.of, possible_orders(layout, self.measured.shares)))

    def at_rate(self, rate: float) -> StreamGraph:
        """Graph that the model must carry for a total rate; what keeps up has its own rate."""
        graph, rates = self.measured.graph, self.measured.graph.operators.rate
        grows = self._held_back if self.is_open else np.ones(len(rates), np.bool_)
        more = (rate - self.kept) / (graph.source_rate - self.kept)
        factors = self.factors if self.is_open else self.factors[0]
        rates = np.minimum(np.where(grows, more, 1.0) * factors * rates, LARGEST)
        return graph.with_operators(replace(graph.operators, rate=rates))

    @property
    def _held_back(self) -> Bools:
        """[N] whether more may arrive for an operator than it emits."""
        names = self.measured.graph.operators.name
        return np.array([name in self.measured.held_back for name in names], np.bool_)

    def _flows(self, layout: Layout) -> Flows:
        from streamsim.filling import flow_shares

        measured = self.measured
        job = placed(measured.graph, measured.cluster, layout, measured.shares)
        sources = job.problem.instance.sources
        rows = job.expansion.operator[sources]  # [S] operator of each subtask of a source
        flow = self._flow_of(rows)
        number = int(flow.max(initial=-1)) + 1
        rates, most, source = np.zeros(number), np.full(number, inf), np.zeros(number, np.int64)
        np.add.at(rates, flow, job.problem.instance.rate[sources])
        if self.is_open:
            source[flow] = rows
            most[flow[~self._held_back[rows]]] = 1.0
        parts = np.zeros((number, job.problem.n_operators))
        np.add.at(parts, flow, flow_shares(job.problem.instance))
        return Flows(rates, most, _loads(job, parts), source)

    def _flow_of(self, rows: Ints) -> Longs:
        """[S] number of the flow of each subtask of a source, [S] rows of their operators."""
        if not self.is_open:
            return np.zeros(len(rows), np.int64)
        measured, flow = self.measured, self.measured.flow
        lags = {} if flow is None else flow.sources
        known = {name for name, one in lags.items() if any(sub.arrived for sub in one.subtasks)}
        names, tied = measured.graph.operators.name, known | measured.shares.keys()
        keys = [(row, 0 if names[row] in tied else i) for i, row in enumerate(rows.tolist())]
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        return np.array([number[key] for key in keys], np.int64)


def _loads(job: PlacedSubtasks, parts: Floats) -> Floats:
    """Load of each device, link, network card and core by each flow, [U, R].

    ``parts``: part of the full input of each subtask that comes from each flow, [U, N].
    """
    from streamsim.equation import n_resources, pressures
    from streamsim.loads import full_rate_loads, limits_subtasks

    instance, place = job.problem.instance, job.placement
    subtasks, d = np.arange(len(place)), instance.n_devices
    kind = instance.device_type[place]
    loads = np.zeros((len(parts), n_resources(d)))
    for part, own in zip(parts, loads, strict=True):
        sent = part[instance.source]
        alone = instance._replace(
            load=instance.load * part[:, None],
            tuples=instance.tuples * sent,
            traffic=instance.traffic * sent,
        )
        full_rate_loads(alone, place, own)
    if len(instance.constant):
        constants = np.bincount(place, instance.constant[subtasks, kind], d).astype(np.float64)
        loads[:, :d] = pressures(loads[:, :d], constants)
    if limits_subtasks(instance):
        cores = parts * instance.core_load[subtasks, kind]
        if len(instance.constant):
            cores = pressures(cores, instance.core_constant[subtasks, kind])
        loads = np.hstack([loads, cores])
    return np.minimum(loads[:, loads.any(axis=0)], STUCK)
