"""Walk: placements of units, moves between them, and the annealing that lowers the energy.

The largest load alone has plateaus: most moves do not change it. The energy

    E = Σ_r max(0, load_r - target)²      over devices, links, NICs and single cores

with a target a little below the best peak so far has a slope wherever a resource is too full, is
zero exactly if the target is met, and depends only on the loads that a move changes.

A round of annealing starts at the best placement so far (every fourth at random) and cools from
`HOT` to `COLD`, in units of the squared load of a typical unit. The first round is short and each
further one twice as long, whatever the budget, so that a longer search continues a shorter one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from streamsim.equation import egress_at, ingress_at, link_at, link_load, n_resources
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel
from streamsim.loads import add_flow, flow_loads, handling

from streamplace.model.arrays import ROUNDING, TIE, Floats, Ints, Longs, Words
from streamplace.model.coarsening import Level
from streamplace.model.packing import meets_rival
from streamplace.model.placement import Placement
from streamplace.model.placement_rules import PlacementRules
from streamplace.model.problem import Problem
from streamplace.placers.meter import Meter

GROW = 0.5
"""Probability that a neighbour on the same device moves along."""
MOST_MOVED, MOST_ENTRIES = 128, 256
"""Most units of a move besides the first, and most neighbours of them to examine."""
MEMORY_SLACK = 1e-10
"""Share of a device's memory; smaller than the tolerance for legal placements."""
RUNS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256)
"""Numbers of devices of the first placements."""
FEWEST_IN_RUNS = 64
FEW_UNITS = 2000
"""Most units for which repairing a placement one by one is cheap."""
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

# Indices of `UnitWalk.counts`: the step in this round and its length, the round, the number of the
# last neighbourhood move, the step at which `best` was copied, 1 + next unit of a sweep (or 0)
STEP, LENGTH, ROUND, STAMP, COPIED, SWEEP = range(6)
# Indices of `UnitWalk.numbers`: HEAT is the unit of temperatures; CLUSTERS, SWAPS and BESIDE are
# shares of moves; WIDTH is the target's distance from the best peak, TIGHTEN its factor per round
ENERGY, TARGET, BEST_PEAK, TEMPERATURE, COOLING, HEAT, CLUSTERS, SWAPS, BESIDE, WIDTH, TIGHTEN = (
    range(11)
)


class UnitWalk(NamedTuple):
    """State of the search; the kernels change it in place (U units, R resources)."""

    place: Ints  # [U]
    best: Ints  # [U]
    used: Floats  # [D] bytes of memory, if limited
    loads: Floats  # [R] devices, links and, unless the level is plain, outgoing and incoming NICs
    moved: Ints  # [MOST_MOVED + 1] units of the move under trial
    mark: Longs  # [U] number of the last move with each unit
    undo_resource: Longs  # resources whose loads the move under trial changed, in order
    undo_load: Floats  # their loads before
    random: Words  # [1] state of the generator
    counts: Longs  # [6]
    numbers: Floats  # [11]


def new_walk(level: Level, place: Ints, seed: int) -> UnitWalk:
    """Build a walk that starts at a legal placement of the units."""
    n, d = level.n_units, len(level.device_type)
    widest = int(np.diff(level.start).max(initial=0))
    entries = min(2 * len(level.peer), (MOST_MOVED + 1) * widest)
    log = (4 if level.plain else 20) * entries + 2 * (MOST_MOVED + 1)
    return UnitWalk(
        place=place.copy(),
        best=place.copy(),
        used=np.zeros(d),
        loads=np.zeros(_size(level)),
        moved=np.zeros(MOST_MOVED + 1, np.int32),
        mark=np.zeros(n, np.int64),
        undo_resource=np.zeros(log, np.int64),
        undo_load=np.zeros(log),
        random=np.array([scrambled(seed)], np.uint64),
        counts=np.zeros(6, np.int64),
        numbers=np.zeros(11),
    )


@inlined_kernel
def _size(level: Level) -> int:
    """Length of the load vector, which omits NICs if they are unlimited."""
    d = len(level.device_type)
    return egress_at(d, 0) if level.plain else n_resources(d)


def scrambled(seed: int) -> int:
    """Initial generator state for a seed (splitmix64), never 0."""
    x = (seed + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return (x ^ (x >> 31)) | 1


@inlined_kernel
def excess(load: float, target: float) -> float:
    """Energy of one resource."""
    over = max(load - target, 0.0)
    return over * over


@borrowing_kernel
def fill_loads(level: Level, place: Ints, loads: Floats) -> None:
    """Compute the load of every resource from scratch."""
    d, platform = len(level.device_type), level.platform
    loads[:] = 0.0
    for u in range(len(place)):
        a = place[u]
        loads[a] += level.load[u, level.device_type[a]]
        for e in range(level.start[u], level.start[u + 1]):
            b, sent = place[level.peer[e]], level.sent[e]
            if a == b:
                continue
            if level.plain:
                wire = platform.seconds_per_byte[a, b]
                loads[link_at(d, a, b)] += link_load(sent, 0.0, wire, 0.0)
            else:
                tuples = level.sent_tuples[e] if len(level.sent_tuples) else 0.0
                add_flow(platform, loads, a, b, tuples, sent)


@kernel
def peak_of(level: Level, place: Ints) -> float:
    """Peak of a placement of the units, from scratch."""
    loads = np.zeros(_size(level))
    fill_loads(level, place, loads)
    return peak(level, place, loads)


@borrowing_kernel
def energy(level: Level, walk: UnitWalk, target: float) -> float:
    """Energy of the placement, from its loads."""
    total = 0.0
    for r in range(len(walk.loads)):
        total += excess(walk.loads[r], target)
    if len(level.core):
        for u in range(len(walk.place)):
            total += excess(level.core[u, level.device_type[walk.place[u]]], target)
    return total


@inlined_kernel
def peak(level: Level, place: Ints, loads: Floats) -> float:
    """Load of the fullest resource or single core."""
    worst = 0.0
    for r in range(len(loads)):
        worst = max(worst, loads[r])
    if len(level.core):
        for u in range(len(place)):
            worst = max(worst, level.core[u, level.device_type[place[u]]])
    return worst


@inlined_kernel
def shift(
    loads: Floats, log: Longs, old_loads: Floats, i: int, r: int, change: float, target: float
) -> float:
    """Change one load, log the old one at i, and return the change of the energy."""
    old = loads[r]
    log[i] = r
    old_loads[i] = old
    loads[r] = old + change
    return excess(old + change, target) - excess(old, target)


@inlined_kernel
def move(level: Level, walk: UnitWalk, u: int, to: int, log: int) -> tuple[int, float]:
    """Move unit u to another device; return the new end of the log and the change of the energy."""
    d, a, b, target = len(level.device_type), walk.place[u], to, walk.numbers[TARGET]
    loads, undone, old = walk.loads, walk.undo_resource, walk.undo_load
    type_a, type_b = level.device_type[a], level.device_type[b]
    gain = shift(loads, undone, old, log, a, -level.load[u, type_a], target)
    gain += shift(loads, undone, old, log + 1, b, level.load[u, type_b], target)
    log += 2
    walk.place[u] = b
    if not level.plain:
        return _reroute(level, walk, u, a, log, gain)
    wire = level.platform.seconds_per_byte
    for e in range(level.start[u], level.start[u + 1]):
        c = walk.place[level.peer[e]]
        for way in range(2):  # streams out of u, then into u
            rate = level.taken[e] if way else level.sent[e]
            if rate > 0:
                for end in range(2):  # the old device of u, then the new one
                    mine = b if end else a
                    if mine != c:
                        x, y = (c, mine) if way else (mine, c)
                        flow = link_load(rate, 0.0, wire[x, y], 0.0)
                        r = link_at(d, x, y)
                        gain += shift(loads, undone, old, log, r, flow if end else -flow, target)
                        log += 1
    return log, gain


@borrowing_kernel
def _reroute(
    level: Level, walk: UnitWalk, u: int, a: int, log: int, gain: float
) -> tuple[int, float]:
    """Reroute the streams of unit u from its old to its new device, and update all loads."""
    b, target = walk.place[u], walk.numbers[TARGET]
    if len(level.core):
        gain += excess(level.core[u, level.device_type[b]], target)
        gain -= excess(level.core[u, level.device_type[a]], target)
    for e in range(level.start[u], level.start[u + 1]):
        c = walk.place[level.peer[e]]
        for way in range(2):
            for end in range(2):
                mine = b if end else a
                if mine != c:
                    x, y = (c, mine) if way else (mine, c)
                    sign = 1.0 if end else -1.0
                    log, more = _flow(level, walk, e, x, y, way, sign, log)
                    gain += more
    return log, gain


@inlined_kernel
def _flow(
    level: Level, walk: UnitWalk, e: int, a: int, b: int, way: int, sign: float, log: int
) -> tuple[int, float]:
    """Add an entry's bytes and tuples to the loads between devices a and b."""
    d, target, platform = len(level.device_type), walk.numbers[TARGET], level.platform
    loads, undone, old = walk.loads, walk.undo_resource, walk.undo_load
    rate = sign * (level.taken[e] if way else level.sent[e])
    tuples = 0.0
    if len(level.sent_tuples):
        tuples = sign * (level.taken_tuples[e] if way else level.sent_tuples[e])
    link, egress, ingress = flow_loads(platform, tuples, rate, a, b)
    gain = shift(loads, undone, old, log, link_at(d, a, b), link, target)
    gain += shift(loads, undone, old, log + 1, egress_at(d, a), egress, target)
    gain += shift(loads, undone, old, log + 2, ingress_at(d, b), ingress, target)
    if platform.overhead == 0 and platform.overhead_per_byte == 0:
        return log + 3, gain
    sender, receiver = handling(platform, tuples, rate, a), handling(platform, tuples, rate, b)
    gain += shift(loads, undone, old, log + 3, a, sender, target)
    gain += shift(loads, undone, old, log + 4, b, receiver, target)
    return log + 5, gain


@inlined_kernel
def undo(walk: UnitWalk, log: int) -> None:
    """Restore every load exactly, in reverse order."""
    for i in range(log - 1, -1, -1):
        walk.loads[walk.undo_resource[i]] = walk.undo_load[i]


@borrowing_kernel
def count_used(level: Level, walk: UnitWalk) -> None:
    """Sum the memory of the units by device."""
    walk.used[:] = 0.0
    for u in range(len(level.memory)):
        walk.used[walk.place[u]] += level.memory[u]


@borrowing_kernel
def has_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> bool:
    """Whether both devices have enough memory for the move under trial, from a to b and back."""
    change = _change(level, walk, n_moved, n_back)
    on_a, on_b = walk.used[a] - change, walk.used[b] + change
    fits_a = change >= 0 or on_a <= level.room[a] * (1 + MEMORY_SLACK)
    return fits_a and (change <= 0 or on_b <= level.room[b] * (1 + MEMORY_SLACK))


@borrowing_kernel
def take_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> None:
    """Update the used memory after a move."""
    if len(level.memory) == 0:
        return
    change = _change(level, walk, n_moved, n_back)
    walk.used[a] -= change
    walk.used[b] += change


@borrowing_kernel
def _change(level: Level, walk: UnitWalk, n_moved: int, n_back: int) -> float:
    change = 0.0
    for i in range(n_moved + n_back):
        size = level.memory[walk.moved[i]]
        change += size if i < n_moved else -size
    return change


@borrowing_kernel
def mix(walk: UnitWalk, clusters: float, swaps: float, beside: float) -> None:
    """Set the shares of neighbourhood moves, of swaps, and of moves to a neighbour's device."""
    walk.numbers[CLUSTERS] = clusters
    walk.numbers[SWAPS] = swaps
    walk.numbers[BESIDE] = beside


@inlined_kernel
def propose(level: Level, walk: UnitWalk) -> tuple[int, int, int, int]:
    """Draw a move, legal except for rivals: numbers of units from a to b and back, and a and b.

    The units are in ``walk.moved``. If the first number is 0, there is no move.
    """
    u = walk.counts[SWEEP] - 1
    if u < 0:
        u = choose(walk.random, len(walk.place))
    else:
        walk.counts[SWEEP] = u + 2 if u + 1 < len(walk.place) else 1
    a, n_moved, n_back = walk.place[u], 1, 0
    walk.moved[0] = u
    sort, clusters = uniform(walk.random), walk.numbers[CLUSTERS]
    if sort < clusters:
        n_moved = _grow(level, walk, u)
    if clusters <= sort < clusters + walk.numbers[SWAPS]:
        v = choose(walk.random, len(walk.place))
        walk.moved[1], n_back = v, 1
        b = walk.place[v]
    else:
        b = _destination(level, walk, n_moved)
    if (
        a == b
        or (level.ruled and not _allowed(level, walk, n_moved, n_back, a, b))
        or (len(level.memory) and not has_room(level, walk, n_moved, n_back, a, b))
    ):
        n_moved = 0
    return n_moved, n_back, a, b


@inlined_kernel
def accepted(random: Words, gain: float, temperature: float) -> bool:
    """Whether annealing accepts a step that raises the energy by ``gain``."""
    return gain <= 0 or uniform(random) < np.exp(-gain / temperature)


@borrowing_kernel
def _grow(level: Level, walk: UnitWalk, u: int) -> int:
    """Add neighbours on the same device, and theirs, to a move; return the number of units."""
    walk.counts[STAMP] += 1
    stamp, a = walk.counts[STAMP], walk.place[u]
    walk.mark[u] = stamp
    n_moved, done, entries = 1, 0, 0
    while done < n_moved and entries < MOST_ENTRIES:
        v = walk.moved[done]
        done += 1
        entries += level.start[v + 1] - level.start[v]
        for e in range(level.start[v], level.start[v + 1]):
            w = level.peer[e]
            if walk.mark[w] == stamp or walk.place[w] != a or n_moved == MOST_MOVED:
                continue
            if uniform(walk.random) < GROW:
                walk.mark[w] = stamp
                walk.moved[n_moved] = w
                n_moved += 1
    return n_moved


@inlined_kernel
def _destination(level: Level, walk: UnitWalk, n_moved: int) -> int:
    """Draw a device: that of a neighbour of the moved units, or any."""
    if uniform(walk.random) < walk.numbers[BESIDE]:
        v = walk.moved[choose(walk.random, n_moved)]
        beside = level.start[v + 1] - level.start[v]
        if beside > 0:
            return walk.place[level.peer[level.start[v] + choose(walk.random, beside)]]
    return choose(walk.random, len(level.device_type))


@borrowing_kernel
def _allowed(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> bool:
    for i in range(n_moved + n_back):
        if not level.allowed[level.kind[walk.moved[i]], b if i < n_moved else a]:
            return False
    return True


@borrowing_kernel
def apart(level: Level, walk: UnitWalk, n: int) -> bool:
    """Whether no moved unit shares its device with a rival."""
    for i in range(n):
        u = walk.moved[i]
        if meets_rival(walk.place, level.rival_start, level.rival, u, walk.place[u]):
            return False
    return True


@inlined_kernel
def draw(random: Words) -> np.uint64:
    """Next number of xorshift64."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return x


@inlined_kernel
def uniform(random: Words) -> float:
    """Random number in [0, 1)."""
    return float(draw(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined_kernel
def choose(random: Words, n: int) -> int:
    """Random integer in 0 … n - 1."""
    return int(np.int64(((draw(random) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)))


def first_place(problem: Problem, level: Level, start: Sequence[Placement]) -> Ints:
    """Device of every unit in the best of ``start`` and a few obvious placements."""
    starts = places_of(problem, start)
    if problem.rules is None:
        return best_place(level, starts + obvious_places(level))
    return best_place(level, starts + _legal_places(level, problem.rules))


def places_of(problem: Problem, placements: Sequence[Placement]) -> list[Ints]:
    """Device of every unit in each of these placements."""
    return [placement.index[problem.first_operator] for placement in placements]


def best_place(level: Level, candidates: Sequence[Ints]) -> Ints:
    """Return the first candidate with the lowest peak."""
    places = [np.array(place, np.int32) for place in candidates]
    return places[int(np.argmin([peak_of(level, place) for place in places]))]


def obvious_places(level: Level) -> list[Ints]:
    """All units on the fastest device; on large levels also equal runs on 2, 3, … devices."""
    totals = np.maximum(level.load.sum(axis=0)[level.device_type], 1e-300)
    if level.n_units <= FEWEST_IN_RUNS:
        return [np.full(level.n_units, np.argmin(totals), np.int32)]
    devices = np.argsort(totals, kind="stable").astype(np.int32)
    weight = level.load.mean(axis=1) + 1e-300
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    places = []
    for k in (*(n for n in RUNS if n < len(devices)), len(devices)):
        ends = np.cumsum(1 / totals[devices[:k]])
        run = np.minimum(np.searchsorted(ends / ends[-1], middle), k - 1)
        places.append(devices[run])
    return places


def _legal_places(level: Level, rules: PlacementRules) -> list[Ints]:
    """Return the rules' witness and, if that is cheap, repaired versions of obvious placements."""
    if rules.n_units > FEW_UNITS:
        return [rules.witness]
    first = rules.first_operator
    return [
        rules.witness,
        *(rules.repaired(place[rules.unit])[first] for place in obvious_places(level)),
    ]


def placement_of(problem: Problem, place: Ints) -> Placement:
    """Placement of the operators from the devices of their units."""
    return problem.placement(place[problem.unit])


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
def begin_search(level: Level, walk: UnitWalk, first_round: int) -> None:
    """Evaluate the first placement."""
    fill_loads(level, walk.place, walk.loads)
    count_used(level, walk)
    walk.numbers[BEST_PEAK] = peak(level, walk.place, walk.loads)
    walk.numbers[HEAT] = _scale(level) ** 2
    walk.numbers[WIDTH] = USUAL_SLACK
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
    restart(level, walk, LONGEST_ROUND, 4)
    if counts[ROUND] > 1:
        numbers[WIDTH] = max(numbers[WIDTH] * numbers[TIGHTEN], min(numbers[WIDTH], USUAL_SLACK))
    fill_loads(level, walk.place, walk.loads)
    aim(level, walk)
    squared = numbers[TARGET] * numbers[TARGET]
    hot = min(HOT * numbers[HEAT], HOTTEST * squared)
    cold = min(COLD * numbers[HEAT], COLDEST * squared)
    numbers[TEMPERATURE] = hot
    numbers[COOLING] = (cold / hot) ** (COOL_EVERY / counts[LENGTH])


@borrowing_kernel
def restart(level: Level, walk: UnitWalk, longest: int, random_every: int) -> None:
    """Double the length of the round; start at the best placement, in every so many at random."""
    counts = walk.counts
    counts[ROUND] += 1
    counts[LENGTH] = max(counts[LENGTH], min(2 * counts[LENGTH], longest))
    counts[STEP] = 0
    for u in range(len(walk.place)):
        walk.place[u] = walk.best[u]
    count_used(level, walk)
    if counts[ROUND] % random_every == 0:
        scatter(level, walk)


@borrowing_kernel
def settle(level: Level, walk: UnitWalk) -> None:
    """Keep the current placement if it is the best."""
    if walk.counts[ROUND] > 0 and peak(level, walk.place, walk.loads) < walk.numbers[BEST_PEAK] * (
        1.0 - ROUNDING
    ):
        _keep(level, walk)


@borrowing_kernel
def aim(level: Level, walk: UnitWalk) -> None:
    """Set the target from the best peak, and the energy from the target."""
    walk.numbers[TARGET] = max(walk.numbers[BEST_PEAK] * (1.0 - walk.numbers[WIDTH]), 1e-300)
    walk.numbers[ENERGY] = energy(level, walk, walk.numbers[TARGET])


@borrowing_kernel
def _keep(level: Level, walk: UnitWalk) -> None:
    for u in range(len(walk.place)):
        walk.best[u] = walk.place[u]
    walk.numbers[BEST_PEAK] = peak(level, walk.place, walk.loads)
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
    if peak(level, walk.place, walk.loads) < walk.numbers[BEST_PEAK] * (1.0 - ROUNDING):
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
        rivals = level.rival_start
        if len(rivals) and meets_rival(walk.place, rivals, level.rival, u, b):
            walk.place[u] = old
        else:
            take_room(level, walk, 1, 0, old, b)


@borrowing_kernel
def _scale(level: Level) -> float:
    """Mean over the units of the largest load that each can cause."""
    total, types = 0.0, level.load.shape[1]
    wire = 0.0
    for row in level.platform.seconds_per_byte:
        for per_byte in row:
            wire = max(wire, per_byte)
    for u in range(len(level.load)):
        heaviest = 0.0
        for c in range(types):
            heaviest = max(heaviest, level.load[u, c])
        for e in range(level.start[u], level.start[u + 1]):
            heaviest = max(heaviest, level.sent[e] * wire)
        total += heaviest
    return max(total / len(level.load), 1e-300)
