"""The annealing loop: rounds of proposals under a falling temperature.

A round starts at the best placement so far (every fourth at random) and cools from `HOT` to `COLD`,
in units of the squared load of a typical unit. The first round is short and each further one twice
as long, whatever the budget, so that a longer search continues a shorter one.
"""

from streamsim.jit import borrowing_kernel

from streamplace.model.arrays import ROUNDING, TIE
from streamplace.model.level import Level
from streamplace.placers.anneal.rate.walk import (
    BEST_PEAK,
    COOLING,
    COPIED,
    ENERGY,
    HEAT,
    LENGTH,
    ROUND,
    SLACK,
    STEP,
    TARGET,
    TEMPERATURE,
    TIGHTEN,
    UnitWalk,
    accepted,
    apart,
    choose,
    count_used,
    draw,
    energy,
    fill_loads,
    has_room,
    meets_rival,
    mix,
    move,
    peak,
    propose,
    take_room,
    undo,
)
from streamplace.placers.meter import Meter

FIRST_ROUND = 4000
LONGEST_ROUND = 2_000_000
USUAL_SLACK = 0.05
HOT, COLD = 0.06, 0.002
HOTTEST, COLDEST = 0.03, 1e-4
"""Upper limits of these temperatures, in units of the squared target."""
COOL_EVERY = 64
ENDLESS = 2**62
CHUNK = 2048
"""Proposals between two readings of the clock."""
FLAT = 600
"""Most units for a search without levels."""
ENOUGH = 1 + TIE
"""Largest peak at which every source runs at its full rate, with rounding."""
EVERY_COPY = 16
"""With U units, the best placement is copied at most every U / EVERY_COPY proposals."""


def proceed(level: Level, walk: UnitWalk, steps: int, meter: Meter, enough: float) -> None:
    """Continue the search for ``steps`` steps, or until the budget ends or the peak is enough."""
    meter.note(value_of(walk.numbers[BEST_PEAK]))
    while steps > 0 and walk.numbers[BEST_PEAK] > enough:
        chunk = min(steps, meter.chunk(CHUNK))
        if chunk == 0:
            return
        meter.spend(search(level, walk, chunk, enough))
        meter.note(value_of(walk.numbers[BEST_PEAK]))
        steps -= chunk


def value_of(peak: float) -> float:
    """Throughput of a single source under a peak."""
    return float(1 / max(peak, 1.0))


@borrowing_kernel
def search(level: Level, walk: UnitWalk, steps: int, enough: float) -> int:
    """Propose ``steps`` moves, or fewer if the peak falls to ``enough``; return their number."""
    counts, numbers = walk.counts, walk.numbers
    for step in range(steps):
        if numbers[BEST_PEAK] <= enough:
            return step
        if counts[STEP] == counts[LENGTH]:
            begin_round(level, walk)
        if counts[STEP] % COOL_EVERY == 0:
            numbers[TEMPERATURE] *= numbers[COOLING]
        counts[STEP] += 1
        n_moved, n_back, a, b = propose(level, walk)
        if n_moved == 0:
            continue
        log, gain = 0, 0.0
        for i in range(n_moved + n_back):
            to = b if i < n_moved else a
            log, more = move(level, walk, walk.moved[i], to, log)
            gain += more
        if accepted(walk.random, gain, numbers[TEMPERATURE]) and (
            len(level.rival_start) == 0 or apart(level, walk, n_moved + n_back)
        ):
            numbers[ENERGY] += gain
            take_room(level, walk, n_moved, n_back, a, b)
            if gain < 0:
                _notice(level, walk)
            continue
        for i in range(n_moved + n_back):
            walk.place[walk.moved[i]] = a if i < n_moved else b
        undo(walk, log)
    return steps


@borrowing_kernel
def begin(level: Level, walk: UnitWalk, first_round: int) -> None:
    """Evaluate the first placement."""
    fill_loads(level, walk.place, walk.loads)
    count_used(level, walk)
    walk.numbers[BEST_PEAK] = peak(level, walk)
    walk.numbers[HEAT] = _scale(level) ** 2
    walk.numbers[SLACK] = USUAL_SLACK
    walk.numbers[TIGHTEN] = 1.0
    mix(walk, 0.3, 0.2, 0.5)
    walk.counts[LENGTH] = first_round // 2
    walk.counts[STEP] = walk.counts[LENGTH]
    for _ in range(10):
        draw(walk.random)


@borrowing_kernel
def begin_round(level: Level, walk: UnitWalk) -> None:
    """Start the next round: set its placement, length and temperature."""
    counts, numbers = walk.counts, walk.numbers
    settle(level, walk)
    counts[ROUND] += 1
    counts[LENGTH] = max(counts[LENGTH], min(2 * counts[LENGTH], LONGEST_ROUND))
    counts[STEP] = 0
    for u in range(len(walk.place)):
        walk.place[u] = walk.best[u]
    count_used(level, walk)
    if counts[ROUND] % 4 == 0:
        scatter(level, walk)
    if counts[ROUND] > 1:
        numbers[SLACK] = max(numbers[SLACK] * numbers[TIGHTEN], min(numbers[SLACK], USUAL_SLACK))
    fill_loads(level, walk.place, walk.loads)
    aim(level, walk)
    most = numbers[TARGET] * numbers[TARGET]
    hot = min(HOT * numbers[HEAT], HOTTEST * most)
    cold = min(COLD * numbers[HEAT], COLDEST * most)
    numbers[TEMPERATURE] = hot
    numbers[COOLING] = (cold / hot) ** (COOL_EVERY / counts[LENGTH])


@borrowing_kernel
def settle(level: Level, walk: UnitWalk) -> None:
    """Keep the current placement if it is the best."""
    if walk.counts[ROUND] > 0 and peak(level, walk) < walk.numbers[BEST_PEAK] * (1.0 - ROUNDING):
        _keep(level, walk)


@borrowing_kernel
def aim(level: Level, walk: UnitWalk) -> None:
    """Set the target from the best peak, and the energy from the target."""
    walk.numbers[TARGET] = max(walk.numbers[BEST_PEAK] * (1.0 - walk.numbers[SLACK]), 1e-300)
    walk.numbers[ENERGY] = energy(level, walk, walk.numbers[TARGET])


@borrowing_kernel
def _keep(level: Level, walk: UnitWalk) -> None:
    for u in range(len(walk.place)):
        walk.best[u] = walk.place[u]
    walk.numbers[BEST_PEAK] = peak(level, walk)
    walk.counts[COPIED] = walk.counts[STEP]


@borrowing_kernel
def _notice(level: Level, walk: UnitWalk) -> None:
    """Keep the placement if its peak is the best; the energy gives a cheap necessary condition."""
    ceiling = walk.numbers[BEST_PEAK] - walk.numbers[TARGET]
    resources = len(walk.loads) + (len(walk.place) if len(level.core) else 0)
    if walk.numbers[ENERGY] > resources * ceiling * ceiling:
        return
    since = walk.counts[STEP] - walk.counts[COPIED]
    if 0 <= since * EVERY_COPY < len(walk.place):
        return
    if peak(level, walk) < walk.numbers[BEST_PEAK] * (1.0 - ROUNDING):
        _keep(level, walk)
        aim(level, walk)


@borrowing_kernel
def scatter(level: Level, walk: UnitWalk) -> None:
    """Move every unit to a random device, if the rules allow it."""
    for u in range(len(walk.place)):
        old, b = walk.place[u], choose(walk.random, len(level.device_type))
        walk.moved[0] = u
        if b == old or not level.allowed[level.kind[u], b]:
            continue
        if len(level.memory) and not has_room(level, walk, 1, 0, old, b):
            continue
        walk.place[u] = b
        if len(level.rival_start) and meets_rival(level, walk, u):
            walk.place[u] = old
        else:
            take_room(level, walk, 1, 0, old, b)


@borrowing_kernel
def _scale(level: Level) -> float:
    """Mean over the units of the largest load that each can cause."""
    total, types = 0.0, level.load.shape[1]
    wire = 0.0
    for a in range(len(level.wire)):
        for b in range(len(level.wire)):
            wire = max(wire, level.wire[a, b])
    for u in range(len(level.load)):
        heaviest = 0.0
        for c in range(types):
            heaviest = max(heaviest, level.load[u, c])
        for e in range(level.start[u], level.start[u + 1]):
            heaviest = max(heaviest, level.sent[e] * wire)
        total += heaviest
    return max(total / len(level.load), 1e-300)
