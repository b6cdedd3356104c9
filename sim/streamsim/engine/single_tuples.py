"""Times of single tuples: each is followed from queue to queue, event by event.

The loop over ticks moves amounts of tuples, which have no time of service and come evenly. Here a
tuple waits until a core of its device is free, first come first served, and is then processed for
its seconds; it holds network cards and link in turn, and travels for the latency. Alone in the
cluster it takes the seconds of `streamsim.latency`. An operator alone on a device of one core is an
M/D/1 queue if arrivals are random, and an M/M/1 queue if times of service are random as well.
Queues have no limit, so the times exist only while every resource carries its load.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints, Words
from streamsim.engine.plan import Plan, plan_run
from streamsim.engine.runs import source_equivalents
from streamsim.engine.settings import RANDOMNESS, Randomness, Settings
from streamsim.engine.wiring import DYNAMIC, Wiring, wire
from streamsim.flow import window_output
from streamsim.instance import Instance
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel
from streamsim.loads import core_constant, slowdown, wire_between
from streamsim.steady import throughput

NOTHING, ARRIVALS, ALL = range(3)

VISITS = (200_000, 8_000_000, 8_000_000)  # of tuples to operators in a run, by randomness
MOST_VISITS = 8_000_000  # in a run that lasts longer, for its windows
WARM = 0.2  # share of a run before tuples count
ADVANCES = 20  # of each window in a run, at least
MOST_WAITING = 1 << 20  # tuples in all queues, above which a run is given up
NO_TIME = -1.0  # of admission, before a source takes a tuple in
GENERATE, ARRIVE, SEND, COLLECT, FREE, ADVANCE = range(6)


class TupleEvents(NamedTuple):
    """A binary heap of events by time; of those at one time, earlier kinds come first."""

    time: Floats  # [places]
    kind: Ints
    subject: Ints  # source, stream, operator or window
    generated: Floats
    admitted: Floats
    size: Ints  # [1]


class TupleQueues(NamedTuple):
    """Tuples that wait for a subtask (N queues) or for the other ports of a join, as lists."""

    first: Ints
    last: Ints
    size: Ints
    next: Ints  # of a place; of the unused ones too, from place 0 on
    tuples: Floats  # [places, 3] generation, admission, core seconds for receiving


class Servers(NamedTuple):
    """Cores by device, or with fixed shares by operator; and slots of subtasks by operator."""

    of: Ints  # [N] row of ``free``
    free: Floats  # [G, cores] time from which a core is free
    cores: Ints  # [G]
    stretch: Floats  # [G] seconds that a core is taken for a second of work
    slots: Ints  # [N] 0 without a limit
    hold: Floats  # [N] seconds that a slot is taken for a second of work
    least_hold: Floats  # [N] seconds that a slot is taken for a tuple, at least
    busy: Ints  # [N] slots taken
    link: Floats  # [D, D] time from which a link is free
    egress: Floats  # [D] a network card
    ingress: Floats  # [D]


class TuplesUnderWay(NamedTuple):
    """Where all tuples are, and what will happen to them."""

    events: TupleEvents
    random: Words  # [1] state of the generator

    instance: Instance
    wiring: Wiring
    plan: Plan
    servers: Servers
    queues: TupleQueues
    panes: Floats  # [3, K, panes] tuples taken in per advance, a ring; sums of their stamps
    advanced: Floats  # [K] advances of the window
    credit: Floats  # [M] parts of tuples that a stream has still to carry
    weights: Floats  # [N] source tuples that an input tuple of a sink represents


def tuple_times(
    instance: Instance,
    placement: Ints,
    settings: Settings,
    random: Randomness = "nothing",
    *,
    seed: int = 0,
    duration: float | None = None,
) -> Floats | None:
    """Seconds since generation and since admission, and weights, of tuples at sinks, [3, tuples].

    None if a resource is too full to carry the rate, so that queues grow without end, or if windows
    are too long for a run of single tuples.

    Examples
    --------
    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[1, 0], seconds=[[0], [0.5]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> tuple_times(instance, np.array([0, 0], np.int32), Settings())[0].mean()
    np.float64(0.5)
    """
    word = RANDOMNESS.index(random)
    visits = float(instance.input_rate.sum())  # per second
    needed = ADVANCES * float(instance.windows[:, 1:3].max(initial=0.0))
    horizon = max(VISITS[word] / visits, needed) if duration is None else duration
    horizon = min(horizon, MOST_VISITS / visits)
    if horizon < needed or throughput(instance, placement[None])[0] < 1.0:
        return None
    times = np.empty((3, int(horizon * visits) + MOST_WAITING))
    state = np.random.default_rng(seed).integers(1, 2**63, 1, np.uint64)
    wiring, weights = wire(instance, settings), source_equivalents(instance)
    n = _times(instance, wiring, placement, weights, state, horizon, word, times)
    return times[:, :n] if n > 0 else None


def mean_service(instance: Instance, placement: Ints) -> float:
    """Mean seconds that a tuple is processed on its way to a sink, over all source tuples.

    Examples
    --------
    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[1, 0], seconds=[[0.25], [0.5]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> mean_service(instance, np.array([0, 0], np.int32))
    0.75
    """
    amount, total = instance.rate.copy(), np.zeros(instance.n_operators)
    emitted = np.bincount(instance.source, instance.tuples, instance.n_operators)
    ended = 0.0
    for v in instance.order:
        total[v] += amount[v] * instance.seconds[v, instance.device_type[placement[v]]]
        if emitted[v] == 0.0:
            ended += total[v]
        for e in range(instance.out_start[v], instance.out_end[v]) if emitted[v] else ():
            part, u = instance.tuples[e] / emitted[v], instance.target[e]
            amount[u] += amount[v] * part
            total[u] += total[v] * part
    return float(ended / instance.rate.sum())


@kernel
def _servers(instance: Instance, wiring: Wiring, plan: Plan) -> Servers:
    """All servers, free."""
    n, d = len(plan.placement), len(instance.cores)
    by_device = wiring.policy == DYNAMIC
    of = plan.placement.copy() if by_device else np.arange(n).astype(np.int32)
    held = np.empty(d if by_device else n)
    if by_device:
        held[plan.devices] = plan.budget / wiring.slice_seconds
    else:
        held[:] = plan.share / wiring.slice_seconds
    cores = np.maximum(np.ceil(held - 1e-9), 1.0).astype(np.int32)
    if by_device:
        cores = np.maximum(np.ceil(instance.cores - 1e-9), 1.0).astype(np.int32)
    slots, hold, least_hold = np.zeros(n, np.int32), np.ones(n), np.zeros(n)
    for v in range(n):
        if plan.most[v] < np.inf:
            slots[v] = max(1, ceil(instance.parallelism[v] - 1e-9))
            hold[v] = slots[v] / instance.parallelism[v]
            hold[v] /= max(1.0 - core_constant(instance, v, plan.placement[v]), 1e-9)
            if len(instance.max_rate):
                least_hold[v] = slots[v] / (instance.parallelism[v] * instance.max_rate[v])
    return Servers(
        of,
        np.zeros((len(held), cores.max())),
        cores,
        cores / np.maximum(held, 1e-300),
        slots,
        hold,
        least_hold,
        np.zeros(n, np.int32),
        np.zeros((d, d)),
        np.zeros(d),
        np.zeros(d),
    )


@inlined_kernel
def _start(servers: Servers, v: int, now: float, work: float) -> float:
    """Take the core of an operator that is free first, for some core seconds; return when."""
    if work == 0.0:
        return now
    g = servers.of[v]
    core = 0
    for c in range(1, servers.cores[g]):
        if servers.free[g, c] < servers.free[g, core]:
            core = c
    start = max(now, servers.free[g, core])
    servers.free[g, core] = start + work * servers.stretch[g]
    return float(start)


@inlined_kernel
def _put(queues: TupleQueues, q: int, generated: float, admitted: float, receiving: float) -> None:
    """Put a tuple at the end of a queue."""
    unused = len(queues.first) - 1
    place = queues.first[unused]
    queues.first[unused] = queues.next[place]
    queues.size[unused] += 1
    queues.tuples[place, 0] = generated
    queues.tuples[place, 1] = admitted
    queues.tuples[place, 2] = receiving
    queues.next[place] = -1
    if queues.size[q] == 0:
        queues.first[q] = place
    else:
        queues.next[queues.last[q]] = place
    queues.last[q] = place
    queues.size[q] += 1


@inlined_kernel
def _taken(queues: TupleQueues, q: int) -> tuple[float, float, float]:
    """Take the first tuple out of a queue."""
    unused = len(queues.first) - 1
    place = queues.first[q]
    queues.first[q] = queues.next[place]
    queues.size[q] -= 1
    queues.next[place] = queues.first[unused]
    queues.first[unused] = place
    queues.size[unused] -= 1
    found = queues.tuples[place]
    return found[0], found[1], found[2]


@inlined_kernel
def _precedes(events: TupleEvents, i: int, j: int) -> bool:
    """Whether event i comes before event j."""
    if events.time[i] != events.time[j]:
        return bool(events.time[i] < events.time[j])
    return bool(events.kind[i] < events.kind[j])


@inlined_kernel
def _swap(events: TupleEvents, i: int, j: int) -> None:
    events.time[i], events.time[j] = events.time[j], events.time[i]
    events.kind[i], events.kind[j] = events.kind[j], events.kind[i]
    events.subject[i], events.subject[j] = events.subject[j], events.subject[i]
    events.generated[i], events.generated[j] = events.generated[j], events.generated[i]
    events.admitted[i], events.admitted[j] = events.admitted[j], events.admitted[i]


@borrowing_kernel
def _plan(
    events: TupleEvents, at: float, kind: int, index: int, generated: float, admitted: float
) -> None:
    """Add an event, unless there are too many."""
    i = events.size[0]
    if i >= MOST_WAITING:
        return
    events.size[0] += 1
    events.time[i], events.kind[i], events.subject[i] = at, kind, index
    events.generated[i], events.admitted[i] = generated, admitted
    while i > 0 and _precedes(events, i, (i - 1) >> 1):
        _swap(events, i, (i - 1) >> 1)
        i = (i - 1) >> 1


@borrowing_kernel
def _next(events: TupleEvents) -> tuple[float, int, int, float, float]:
    """Take the next event."""
    first = (
        events.time[0], int(events.kind[0]), int(events.subject[0]), events.generated[0],
        events.admitted[0],
    )  # fmt: skip
    events.size[0] -= 1
    n, i = events.size[0], 0
    _swap(events, 0, n)
    while True:
        child = 2 * i + 1
        if child >= n:
            return first
        if child + 1 < n and _precedes(events, child + 1, child):
            child += 1
        if not _precedes(events, child, i):
            return first
        _swap(events, child, i)
        i = child


@inlined_kernel
def _uniform(random: Words) -> float:
    """Draw a number above 0 and below 1, by xorshift."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return (float(x >> np.uint64(11)) + 0.5) / 9007199254740992.0


@inlined_kernel
def _handling(run: TuplesUnderWay, e: int, v: int) -> float:
    """Core seconds in which operator v sends or receives a tuple of stream e."""
    instance = run.instance
    handling = instance.overhead + instance.overhead_per_byte * instance.payload[e]
    return float(handling * slowdown(instance, run.plan.placement[v]))


@inlined_kernel
def _cross(run: TuplesUnderWay, e: int, now: float) -> float:
    """Send a tuple through network card, link and network card; return when it arrives."""
    instance, servers = run.instance, run.servers
    a, b = run.plan.placement[instance.source[e]], run.plan.placement[instance.target[e]]
    size = instance.payload[e]
    out = max(now, servers.egress[a])
    servers.egress[a] = out + size * instance.egress[a]
    on = max(out, servers.link[a, b])
    servers.link[a, b] = on + instance.gap + size * instance.seconds_per_byte[a, b]
    into = max(on, servers.ingress[b])
    servers.ingress[b] = into + size * instance.ingress[b]
    alone = now + instance.gap + size * wire_between(instance, a, b)
    last = max(servers.egress[a], servers.link[a, b], servers.ingress[b], alone)
    return float(last + instance.latency[a, b])


@kernel
def _no_tuples(
    instance: Instance, wiring: Wiring, plan: Plan, weights: Floats, random: Words
) -> TuplesUnderWay:
    """Return a run before its first event."""
    lists, k = len(plan.placement) + len(instance.port) + len(wiring.sources) + 1, len(wiring.panes)
    widest = 1
    for panes in wiring.panes:
        widest = max(widest, panes)
    queues = TupleQueues(
        np.zeros(lists, np.int32),
        np.zeros(lists, np.int32),
        np.zeros(lists, np.int32),
        np.arange(1, MOST_WAITING + 1).astype(np.int32),
        np.empty((MOST_WAITING, 3)),
    )
    events = TupleEvents(
        np.empty(MOST_WAITING),
        np.empty(MOST_WAITING, np.int32),
        np.empty(MOST_WAITING, np.int32),
        np.empty(MOST_WAITING),
        np.empty(MOST_WAITING),
        np.zeros(1, np.int32),
    )
    return TuplesUnderWay(
        events,
        random,
        instance,
        wiring,
        plan,
        _servers(instance, wiring, plan),
        queues,
        np.zeros((3, k, widest)),
        np.zeros(k),
        np.zeros(len(instance.source)),
        weights,
    )


@kernel
def _times(
    instance: Instance,
    wiring: Wiring,
    placement: Ints,
    weights: Floats,
    random: Words,
    horizon: float,
    word: int,
    times: Floats,
) -> int:
    """Follow tuples under a placement; the only kernel of this file that Python calls.

    Every other one would be compiled to unpack the same tuples of arrays again.
    """
    plan = plan_run(instance, wiring, placement)
    if plan.most.min() <= 0.0 or plan.budget.min() <= 0.0:
        return -1
    return int(_follow(_no_tuples(instance, wiring, plan, weights, random), horizon, word, times))


@borrowing_kernel
def _follow(run: TuplesUnderWay, horizon: float, random: int, times: Floats) -> int:
    """Follow all tuples until the horizon; return how many were written, -1 if too many wait."""
    _begin(run)
    written, used = 0, len(run.queues.size) - 1
    while run.events.size[0] < MOST_WAITING and run.queues.size[used] < MOST_WAITING - 1:
        now, kind, index, generated, admitted = _next(run.events)
        if now > horizon:
            return written
        if kind == SEND:
            at = _cross(run, index, now)
            _plan(run.events, at, ARRIVE, index, generated, admitted)
        elif kind == COLLECT:
            _collect(run, index, generated, admitted)
        elif kind == ADVANCE:
            _advance(run, index, now)
        else:
            if kind == GENERATE:
                _generate(run, index, now, random)
            v, generated, admitted, receiving = _ready(run, kind, index, generated, admitted)
            if v >= 0:
                factor = -np.log(_uniform(run.random)) if random == ALL else 1.0
                at, admitted = _serve(run, v, now, factor, receiving, generated, admitted)
                written += _write(run, v, at, generated, admitted, WARM * horizon, written, times)
    return -1


@inlined_kernel
def _begin(run: TuplesUnderWay) -> None:
    """Plan the first tuples of the sources, and the first advances of the windows."""
    for s in range(len(run.wiring.sources)):
        rate = run.instance.rate[run.wiring.sources[s]]
        if rate > 0.0:
            at = _uniform(run.random) / rate
            _plan(run.events, at, GENERATE, s, at, NO_TIME)
    for k in range(len(run.advanced)):
        _plan(run.events, run.instance.windows[k, 2], ADVANCE, k, 0.0, 0.0)


@inlined_kernel
def _generate(run: TuplesUnderWay, s: int, now: float, random: int) -> None:
    """Plan the next tuple of a source."""
    gap = 1.0 if random == NOTHING else -np.log(_uniform(run.random))
    at = now + gap / run.instance.rate[run.wiring.sources[s]]
    _plan(run.events, at, GENERATE, s, at, NO_TIME)


@inlined_kernel
def _write(
    run: TuplesUnderWay,
    v: int,
    at: float,
    generated: float,
    admitted: float,
    since: float,
    row: int,
    times: Floats,
) -> int:
    """Write the times of a tuple that a sink has processed; return how many were written."""
    if run.weights[v] <= 0.0 or generated < since or row >= times.shape[1]:
        return 0
    times[0, row], times[1, row], times[2, row] = at - generated, at - admitted, run.weights[v]
    return 1


@inlined_kernel
def _ready(
    run: TuplesUnderWay, kind: int, index: int, generated: float, admitted: float
) -> tuple[int, float, float, float]:
    """Operator that can process a tuple now, -1 if it waits; its stamps and receiving seconds."""
    instance, queues, servers = run.instance, run.queues, run.servers
    receiving = 0.0
    if kind == FREE:
        v = index
        servers.busy[v] -= 1
        if queues.size[v] == 0:
            return -1, generated, admitted, receiving
        generated, admitted, receiving = _taken(queues, v)
        return v, generated, admitted, receiving
    if kind == GENERATE:
        v = int(run.wiring.sources[index])
    else:
        v = int(instance.target[index])
        receiving = run.plan.remote[index] * _handling(run, index, v)
        if run.wiring.joins[v]:
            n, ports = len(servers.of), instance.port_start
            _put(queues, n + instance.port[index], generated, admitted, receiving)
            for port in range(ports[v], ports[v + 1]):
                if queues.size[n + port] == 0:
                    return -1, generated, admitted, receiving
            receiving = 0.0
            for port in range(ports[v], ports[v + 1]):
                made, let_in, seconds = _taken(queues, n + port)
                generated, admitted = min(generated, made), min(admitted, let_in)
                receiving += seconds
    if 0 < servers.slots[v] <= servers.busy[v]:
        _put(queues, v, generated, admitted, receiving)
        return -1, generated, admitted, receiving
    return v, generated, admitted, receiving


@inlined_kernel
def _serve(
    run: TuplesUnderWay,
    v: int,
    now: float,
    factor: float,
    receiving: float,
    generated: float,
    admitted: float,
) -> tuple[float, float]:
    """Process a tuple when a core is free; return when it is done, and when it was admitted."""
    plan, servers, is_window = run.plan, run.servers, run.wiring.window_of[v] >= 0
    own = run.instance.seconds[v, run.instance.device_type[plan.placement[v]]] + receiving
    work = factor * (own if is_window else own + plan.send_cost[v])
    start = _start(servers, v, now, work)
    at = start + factor * own
    admitted = start if admitted == NO_TIME else admitted
    if servers.slots[v] > 0:
        servers.busy[v] += 1
        freed = start + max(work * servers.hold[v], servers.least_hold[v])
        _plan(run.events, freed, FREE, v, 0.0, 0.0)
    if is_window:
        _plan(run.events, at, COLLECT, v, generated, admitted)
    else:
        _emit(run, v, 1.0, at, generated, admitted)
    return at, admitted


@inlined_kernel
def _emit(
    run: TuplesUnderWay,
    v: int,
    amount: float,
    at: float,
    generated: float,
    admitted: float,
) -> None:
    """Put the results of an operator on its streams; of parts of tuples, the sums when whole."""
    for e in range(run.instance.out_start[v], run.instance.out_end[v]):
        run.credit[e] += amount * run.instance.selectivity[e]
        whole = np.floor(run.credit[e] + 1e-9)
        run.credit[e] -= whole
        kind = SEND if run.plan.remote[e] else ARRIVE
        out = at + run.plan.remote[e] * _handling(run, e, v)
        for _ in range(int(whole)):
            _plan(run.events, out, kind, e, generated, admitted)


@inlined_kernel
def _collect(run: TuplesUnderWay, v: int, generated: float, admitted: float) -> None:
    """Put a tuple into the open pane of a window."""
    k = run.wiring.window_of[v]
    pane = int(run.advanced[k]) % run.wiring.panes[k]
    run.panes[0, k, pane] += 1.0
    run.panes[1, k, pane] += generated
    run.panes[2, k, pane] += admitted


@inlined_kernel
def _advance(run: TuplesUnderWay, k: int, now: float) -> None:
    """Evaluate a window, and open its next pane; results have the mean stamps of its tuples."""
    windows, spans = run.instance.windows, run.wiring.panes[k]
    count, made, let_in = 0.0, 0.0, 0.0
    for pane in range(spans):
        count += run.panes[0, k, pane]
        made += run.panes[1, k, pane]
        let_in += run.panes[2, k, pane]
    if count > 0.0:
        v, size, advance = int(windows[k, 0]), windows[k, 1], windows[k, 2]
        emitted = window_output(windows[k], count * size / (spans * advance))
        at = _start(run.servers, v, now, emitted * run.plan.send_cost[v])
        _emit(run, v, emitted, at, made / count, let_in / count)
    run.advanced[k] += 1.0
    for i in range(3):
        run.panes[i, k, int(run.advanced[k]) % spans] = 0.0
    _plan(run.events, (run.advanced[k] + 1.0) * windows[k, 2], ADVANCE, k, 0.0, 0.0)
