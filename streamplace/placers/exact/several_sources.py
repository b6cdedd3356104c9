"""The highest throughput of several groups of sources, proven order by order.

In the fair point of a placement, groups of sources stop at k levels, one after the other. All at
one level have at most 1 / the least peak, which `prover` proves. Every other order of at most four
groups is a search by itself (`fair_search`), which finds better placements or bounds the value.
After each round the prover goes on, and before each but the first an annealing looks for better
placements; their efforts grow until every order is closed.

More groups have too many orders. Their bound is a linear programme over the rates of the sources:
no operator can use more than its best device, or a core of it, all together no more than all
devices, shared flows no more than `prover` proves, and the slowest source 1 / the least peak.
"""

import operator
from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
from streamsim.equation import link_loads
from streamsim.filling import flow_shares
from streamsim.loads import limits_subtasks
from streamsim.topology import group_by

from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.placement_rules import joined
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.cpsat import new_solver
from streamplace.placers.exact.enumeration import MOST_PLACEMENTS, are_few, judge_all
from streamplace.placers.exact.fair_search import LevelLoads, Region, new_search, region_within, run
from streamplace.placers.exact.peak_bounds import powers
from streamplace.placers.exact.prover import (
    EXHAUSTED,
    IMPROVED,
    NODES,
    PAUSED,
    SLICE,
    SLICE_CELLS,
    Prover,
    refuted,
)
from streamplace.placers.exact.units import Units, merged, units_with
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Found, what_is_left

WHOLE = b""
"""Stands for units that are not merged."""
MOST_GROUPS = 4
"""Most groups of sources whose orders are searched: 2 of two groups, 12 of three, 74 of four."""
ABOVE = 1e-8
"""Share by which a placement must be better to be looked for."""
LEAST_RATE = 1e-9
"""Throughput below which a placement counts as carrying nothing, and none is looked for."""
FIRST_EFFORT, MOVES_FIRST, GROWTH = 100, 3_000, 4
"""Nodes of every order and moves of an annealing in the first round, and growth of the nodes."""
MANY_MOVES = 20_000
"""Moves of the annealing of many groups before all placements are tried."""
MANY_NODES, STEPS = 1_000, 20_000
"""Nodes of a round from which on an order is bounded from above, and the steps of that."""
SHARE = 0.3
"""Share of the distance between value and bound that is to be refuted first."""
SMALL = 0.1
"""Share of the rate of the largest source below which a source may be left out of a bound."""
MOST_SLOWEST = 30
"""Most sources of which each is tried as the slowest one."""
MOST_SHARES = 2_000_000
MOST_PRESSURE = 1e12
"""Largest pressure of constant loads that the solver receives."""


class FairIncumbent(Incumbent[Ints]):
    """The best placement of the units so far by the objective."""

    def __init__(self, problem: Problem, objective: Objective, meter: Meter) -> None:
        super().__init__(operator.gt, meter)
        self.problem, self.objective, self.unit = problem, objective, problem.unit

    def judge(self, batch: Ints) -> bool:
        """Evaluate legal placements [B, U]; keep the best if it is better, and say so."""
        values = self.objective.evaluate(self.problem, batch[:, self.unit])
        self.meter.spend(len(batch))
        return self.offer(batch[int(np.argmax(values))].copy(), float(values.max()))

    def found(self, bound: float | None = None) -> Found:
        """Answer of the search."""
        place = self.problem.canonical(self.solution[self.unit])
        return self.answer(self.problem.placement(place), bound)


def prove_sources(
    best: FairIncumbent, prover: Prover, meter: Meter, seed: int, tractable: bool
) -> Found:
    """Prove or bound the throughput if sources may reach different rates."""
    problem = best.problem
    together = not len(problem.instance.constant)  # or else an order by itself
    if not (tractable and _have_orders(problem)):
        return _bound_rates(best, prover, meter, seed)
    orders = _orders(problem, prover.units)

    def bound() -> float:
        bounds = [best.value, *(order.bound for order in orders)]
        return min(1.0, max([*bounds, 1 / prover.least] if together else bounds))

    effort, moves = FIRST_EFFORT, MOVES_FIRST
    with handing_on(lambda: best.found(bound())):
        while bound() > max(best.value * (1 + 2 * ABOVE), LEAST_RATE) and not meter.over:
            if effort > FIRST_EFFORT:  # an annealing takes longer than to close easy orders
                _search(best, meter, seed, moves)
            for order in orders:
                order.close(best, min(1.0, 1 / prover.least), effort)
            if together and 1 / prover.least > best.value and not meter.over:
                prover.close(effort)
                best.judge(prover.place[None])
            effort, moves, seed = effort * GROWTH, 2 * moves, seed + 1
        for order in orders:
            if order.bound > best.value * (1 + 2 * ABOVE):
                order.relax(best, min(1.0, 1 / prover.least))
    return best.found(bound())


def _search(best: FairIncumbent, meter: Meter, seed: int, moves: int | None) -> None:
    """Anneal from the best placement."""
    problem = best.problem
    start = problem.placement(best.solution[best.unit])
    search = PLACERS["anneal"].with_options(start=(start,))
    part = what_is_left(meter.seconds, meter.evaluations) if moves is None else meter.up_to(moves)
    answer = search.attempt(problem, best.objective, seed=seed, budget=part)
    meter.spend(part.evaluations or 0)
    best.judge(answer.placement.index[None, problem.first_operator])


class Order:
    """Placements whose groups of sources stop in one order, and an upper bound of their values."""

    def __init__(self, loads: Callable[[bytes], LevelLoads], level: Ints, weight: Floats) -> None:
        """``loads`` are those of merged units, by group; ``level`` [G] is from 1 on."""
        at = np.concatenate(([0], level))[:, None] == np.arange(1 + level.max())
        self.bound = 1.0
        self._loads, self._at = loads, at.astype(np.float64)
        self._weight = np.concatenate(([0.0], weight)) @ at
        self._whole = self._merged(WHOLE)
        self._rows = _rows_anywhere(self._whole)

    def _merged(self, group: bytes) -> LevelLoads:
        """Loads of merged units by level."""
        loads, at = self._loads(group), self._at
        units, load = loads.units, loads.load @ at
        scaled = np.where(loads.allowed[:, :, None], load * loads.power[:, None], np.inf)
        work = scaled.min(axis=1)
        work[~loads.allowed.any(axis=1)] = 0.0
        ends = np.concatenate((units.source, units.target))
        around = np.bincount(ends, np.tile(units.traffic, 2), minlength=units.n_units)
        return loads._replace(
            load=load,
            core=loads.core @ at,
            traffic=loads.traffic @ at,
            tuples=loads.tuples @ at,
            work=work,
            rank=work.sum(axis=1) + loads.wire * around,
        )

    def relax(self, best: FairIncumbent, cap: float) -> None:
        """Bound the value by what holds in every placement, with the first level at most a cap."""
        goal = max(best.value, LEAST_RATE)
        if self.bound > goal:
            search = new_search(self._whole, self._region(goal, cap))
            is_open = run(self._whole, search, 0) == PAUSED
            rates = search.region.corners[0, : search.region.size[0]]
            most = float((rates @ self._weight).max()) if is_open else goal
            self.bound = min(self.bound, most * (1 + ROUNDING))

    def _region(self, goal: float, cap: float) -> Region:
        """Rates that may have a value above a goal."""
        rows = np.zeros((3, len(self._weight)))
        rows[0], rows[0, 0] = -self._weight / goal, 2.0
        rows[1], rows[2, 1] = self._weight / self.bound, 1 / cap
        return region_within(np.vstack((rows, self._rows)))

    def close(self, best: FairIncumbent, cap: float, effort: int) -> None:
        """Search for better placements and lower the bound, with so many nodes for either."""
        nodes = effort
        while nodes > 0 and not best.meter.over:
            goal = max(best.value * (1 + ABOVE), LEAST_RATE)
            if self.bound <= goal:
                return
            nodes -= self._look_above(goal, best, cap, nodes)
        if effort >= MANY_NODES and not best.meter.over:
            self.relax(best, cap)
            goal = max(best.value, LEAST_RATE) + SHARE * (self.bound - best.value)
            self._look_above(goal, best, cap, effort)

    def _look_above(self, goal: float, best: FairIncumbent, cap: float, most: int) -> int:
        """Find a placement above the goal, or prove that there is none; return the nodes."""
        meter, search = best.meter, new_search(self._whole, self._region(goal, cap))
        contracted = None
        if run(self._whole, search, 0) == PAUSED:
            contracted = self._contracted(search.region)
        if contracted is None:
            self.bound = goal
            return 1
        (flows, group), outcome = contracted, PAUSED
        search = new_search(flows, search.region)
        cells = search.loads[0].size + len(flows.load) + len(flows.traffic)
        most_at_once = min(SLICE, max(1, SLICE_CELLS // cells))
        while search.clock[NODES] < most and not meter.over:
            before = int(search.clock[NODES])
            outcome = run(flows, search, meter.at_most(min(most - before, most_at_once)))
            meter.spend(int(search.clock[NODES]) - before)
            if outcome == EXHAUSTED or (
                outcome == IMPROVED and best.judge(search.place[group][None])
            ):
                break
        if outcome == PAUSED and refuted(_least(flows, search.region), 1 + 2 * ROUNDING, STEPS):
            outcome = EXHAUSTED
        if outcome == EXHAUSTED:
            self.bound = goal
        return int(search.clock[NODES]) + 1

    def _contracted(self, region: Region) -> tuple[LevelLoads, Ints] | None:
        """Units merged whose stream alone would overload every link; None if that is impossible."""
        flows = self._whole
        units, group = flows.units, np.arange(flows.units.n_units, dtype=np.int32)
        platform, corners = units.platform, region.corners[0, : region.size[0]]
        quickest = units.quickest
        while np.isfinite(quickest):
            loads = link_loads(
                flows.traffic @ corners.T, flows.tuples @ corners.T, quickest, platform.gap
            )
            heavy = (loads > 1 + 2 * ROUNDING).all(axis=1)
            if not heavy.any():
                break
            units = flows.units
            ends = zip(units.source[heavy].tolist(), units.target[heavy].tolist(), strict=True)
            group = joined(units.n_units, ends)[group]
            flows = self._merged(group.tobytes())
        apart = flows.units.apart
        alone = (apart[:, 0] != apart[:, 1]).all()
        return (flows, group) if alone and flows.allowed.any(axis=1).all() else None


def _loads_by_group(problem: Problem, units: Units, shares: Floats) -> LevelLoads:
    """Loads of the units with constant loads and a column for each group, by its shares [G, N]."""
    instance, unit = problem.instance, problem.unit
    flow = np.concatenate((np.zeros((1, len(unit))), shares)).T
    load, core = (x[:, :, None] * flow[:, None] for x in (instance.load, instance.core_load))
    if len(instance.constant):
        load[:, :, 0], core[:, :, 0] = instance.constant, instance.core_constant
    rows = np.arange(len(unit) + 1, dtype=np.int32)
    if not limits_subtasks(instance):
        core, rows = core[:0], 0 * rows
    alone = units._replace(source=instance.source, target=instance.target)
    return _merged_loads(
        LevelLoads(
            units=alone,
            load=load[:, instance.device_type],
            allowed=np.isfinite(units.load)[unit],
            core=core,
            core_start=rows,
            device_type=instance.device_type,
            traffic=instance.traffic[:, None] * flow[instance.source],
            tuples=instance.tuples[:, None] * flow[instance.source],
            power=np.zeros(0),
            work=np.zeros(0),
            rank=np.zeros(0),
            wire=float(units.platform.seconds_per_byte.max()),
        ),
        units,
        unit,
    )


def _merged_loads(flows: LevelLoads, units: Units, group: Ints) -> LevelLoads:
    """Loads of merged units, of which ``group`` has the number for each of the present ones."""
    n, k = units.n_units, flows.load.shape[2]
    load = np.zeros((n, units.n_devices, k))
    np.add.at(load, group, flows.load)
    allowed = np.isfinite(units.load)
    load[~allowed] = 0.0
    tail, head = group[flows.units.source].astype(np.int64), group[flows.units.target]
    outside = tail != head
    _, row = np.unique((tail * n + head)[outside], return_inverse=True)
    traffic, tuples = np.zeros((2, len(units.source), k))
    np.add.at(traffic, row, flows.traffic[outside])
    np.add.at(tuples, row, flows.tuples[outside])
    owner = group[np.repeat(np.arange(len(group)), np.diff(flows.core_start))]
    start, member = group_by(owner, n)
    return flows._replace(
        units=units,
        load=load,
        allowed=allowed,
        core=flows.core[member],
        core_start=start,
        traffic=traffic,
        tuples=tuples,
        power=powers(units)[0],
    )


def _have_orders(problem: Problem) -> bool:
    """Whether there are few orders, and constant loads never fill a device or core alone."""
    instance = problem.instance
    if instance.n_groups > MOST_GROUPS:
        return False
    if not len(instance.constant):
        return True
    return bool(instance.constant.sum(axis=0).max() <= 1 and instance.core_constant.max() <= 1)


def _orders(problem: Problem, units: Units) -> list[Order]:
    """All orders; that of one level only beside constant loads, as the peak bounds it otherwise."""
    instance, n = problem.instance, problem.instance.n_groups
    shares, weight = np.zeros((n, instance.n_operators)), np.zeros(n)
    np.add.at(shares, instance.group, flow_shares(instance))
    rate = instance.rate[instance.sources]
    np.add.at(weight, instance.group, rate / rate.sum())
    whole = _loads_by_group(problem, units, shares)

    @cache
    def loads(group: bytes) -> LevelLoads:
        """Loads of units merged by their numbers as bytes."""
        if group == WHOLE:
            return whole
        merging = np.frombuffer(group, np.int32)
        return _merged_loads(whole, merged(units, merging), merging)

    fewest = 1 if len(instance.constant) else 2
    levels = (np.array(level) for level in product(range(1, n + 1), repeat=n))
    return [
        Order(loads, level, weight)
        for level in levels
        if fewest <= level.max() == len(np.unique(level))
    ]


def _rows_anywhere(flows: LevelLoads) -> Floats:
    """Rows of single units on their best devices and cores, and of all on all devices."""
    open_to = flows.allowed[:, :, None]
    units = np.min(flows.load, axis=1, initial=np.inf, where=open_to)
    cores = flows.core[:, flows.device_type]
    owner = np.repeat(np.arange(len(units)), np.diff(flows.core_start))
    cores = np.min(cores, axis=1, initial=np.inf, where=open_to[owner])
    rows = np.vstack((flows.work.sum(axis=0)[None] / flows.power.sum(), units, cores))
    return rows[rows.sum(axis=1) > 1]


def _least(flows: LevelLoads, region: Region) -> Units:
    """Units with the least loads that they have anywhere in the region at the root."""
    corners = region.corners[0, : region.size[0]].T
    load = (flows.load @ corners).min(axis=2)
    core = np.zeros_like(load)
    if len(flows.core):
        each = (flows.core @ corners).min(axis=2)[:, flows.device_type]
        owner = np.repeat(np.arange(len(load)), np.diff(flows.core_start))
        np.maximum.at(core, owner, each)
    load[~flows.allowed] = np.inf
    return flows.units._replace(
        load=load,
        core=core,
        traffic=(flows.traffic @ corners).min(axis=1),
        tuples=(flows.tuples @ corners).min(axis=1),
    )


def _bound_rates(best: FairIncumbent, prover: Prover, meter: Meter, seed: int) -> Found:
    """Search, and bound the throughput of many groups by linear programmes over their rates."""
    instance = best.problem.instance
    weight = instance.rate[instance.sources] / instance.rate.sum()
    rows = np.zeros((0, len(weight)))
    if len(weight) * best.problem.n_operators <= MOST_SHARES:
        rows = _rows_of_rates(best, prover)
        for least in (0.0, SMALL * weight.max()):
            rows = np.vstack(
                (rows, _row_of_shared(best.problem, weight * (weight > least), prover))
            )

    def bound() -> float:
        slowest = np.eye(len(weight)) * prover.least  # one source has at most this rate
        programmes = [np.vstack((rows, row)) for row in slowest if len(weight) <= MOST_SLOWEST]
        return max(best.value, *(_programme(weight, use) for use in programmes or [rows]))

    with handing_on(lambda: best.found(bound())):
        _search(best, meter, seed, MANY_MOVES)
        few = are_few(prover.units, MOST_PLACEMENTS)
        if few and judge_all(prover.units, meter, best.judge):
            return best.found(best.value)
        if not meter.over:
            _search(best, meter, seed + 1, None)
    return best.found(bound())


def _row_of_shared(problem: Problem, weight: Floats, prover: Prover) -> Floats:
    """Row u with u·x ≤ 1, in proportion to the weights of some sources.

    An operator with the shares a of the sources in its flow has at least min(a / u) · u·x of its
    load, so a placement has at most u·x = 1 / peak, where the peak is that of these loads.
    """
    instance, u = problem.instance, weight / weight.sum()
    part = np.min(flow_shares(instance)[u > 0] / u[u > 0, None], axis=0)
    none = np.zeros((0, instance.load.shape[1]))
    units = units_with(
        problem,
        instance._replace(
            load=instance.load * part[:, None],
            core_load=instance.core_load * part[:, None],
            tuples=instance.tuples * part[instance.source],
            traffic=instance.traffic * part[instance.source],
            constant=none,
            core_constant=none,
        ),
    )
    return np.asarray(u * prover.least_of(units))


def _rows_of_rates(best: FairIncumbent, prover: Prover) -> Floats:
    """Rows u with u·x ≤ 1 for the rates x of the sources, by single operators and by all."""
    instance, units, unit = best.problem.instance, prover.units, best.unit
    shares, types = flow_shares(instance).T, instance.device_type
    open_to = np.isfinite(units.load)[unit]
    power, _ = powers(units)
    work = np.where(open_to, instance.load[:, types] * power, np.inf).min(axis=1)
    together = work @ shares / power.sum()
    pressure = np.maximum(instance.pressure, instance.core_pressure)[:, types]
    least = np.where(open_to, pressure, np.inf).min(axis=1)
    alone = shares * np.minimum(least, MOST_PRESSURE)[:, None]
    rows = np.vstack((together, alone))
    return np.unique(rows[rows.sum(axis=1) > 0], axis=0)


def _programme(weight: Floats, use: Floats) -> float:
    """Upper bound of max weight·x with use·x ≤ 1 and 0 ≤ x ≤ 1, valid for any solver precision.

    For any prices y ≥ 0 of the resources, Σ y + Σ max(0, weight - y·use) is an upper bound.
    """
    solver = new_solver()
    x = [solver.NumVar(0.0, 1.0, "") for _ in weight]
    rows = [solver.Add(sum(c * v for c, v in zip(row, x, strict=True)) <= 1) for row in use]
    solver.Maximize(sum(c * v for c, v in zip(weight, x, strict=True)))
    solver.Solve()
    price = np.array([max(0.0, row.dual_value()) for row in rows])
    return float(min(1.0, price.sum() + np.maximum(0.0, weight - price @ use).sum()))
