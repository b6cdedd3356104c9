"""Planted instances, which are built around a known optimum.

Every machine of the planted solution is full, so no solution is better: all operators together
have as much work as all machines can do. Streams are drawn such that the planted solution respects
every limit.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamplace.errors import SettingError
from streamplace.library.documents import SECOND
from streamplace.model.arrays import Longs

SHARE = 4, 5
"""Planted throughput of 4/5: the work on a device is 5/4 of its capacity."""
LATENCY = SECOND // 1000
PER_BIT = 10**6
"""Units of time per bit of planted makespans, for 1 Gbit/s."""


class PlantedInstance(NamedTuple):
    """An instance, its optimal solution, and the proof of the bound."""

    document: dict[str, Any]
    solution: dict[str, Any]
    bound: str
    proof: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlantedShape:
    """Size and difficulty of a planted instance."""

    # Numbers of operators and devices.
    operators: int
    devices: int
    # Share of the streams that join operators of different devices; the larger, the harder it is to
    # recognise the groups.
    mixing: float = 0.2
    # Number of large operators of each device, which share nine tenths of its work; 0 for none. A
    # small number is hard to distribute evenly.
    large: int = 0
    inputs: int = 2  # streams into an operator

    def __post_init__(self) -> None:
        if not 1 <= self.devices <= self.operators // (self.large + 1):
            raise SettingError(
                f"{self.operators} operators are too few for {self.devices} devices; ask for more"
            )
        if not 0 <= self.mixing <= 1:
            raise SettingError(f"mixing is {self.mixing}; it must be 0 to 1")


def planted_throughput(shape: PlantedShape, seed: int) -> PlantedInstance:
    """Build an instance whose optimal throughput is 4/5.

    Examples
    --------
    >>> planted = planted_throughput(PlantedShape(operators=12, devices=3), seed=0)
    >>> len(planted.document["operators"]), planted.bound
    (12, '0.8')
    """
    rng = np.random.default_rng([seed, shape.operators, shape.devices])
    place = rng.permutation(np.arange(shape.operators) % shape.devices)
    filled = SECOND // SHARE[0] * SHARE[1]
    work = _parts_of_devices(place, shape, filled, rng)
    source, target = _streams(place, shape, rng)
    bits = rng.integers(1, 1001, len(source)) * 1000
    far = place[source] != place[target]
    out = np.bincount(place[source[far]], bits[far], shape.devices)
    into = np.bincount(place[target[far]], bits[far], shape.devices)
    pair = place[source[far]].astype(np.int64) * shape.devices + place[target[far]]
    link = np.bincount(pair, bits[far], 1)
    busiest = int(link.max(initial=0.0)) or 1
    document = {
        "name": f"planted-{shape.operators}-{shape.devices}-{seed}",
        "objective": "throughput",
        "second": SECOND,
        "kinds": [{"cpu": SECOND, "out": _enough(out), "in": _enough(into)}],
        "devices": [0] * shape.devices,
        "links": [[[SECOND * SHARE[1] // SHARE[0] // busiest, 0]]],
        "operators": [{"pieces": 1, "memory": 0, "work": [x]} for x in work.tolist()],
        "streams": np.stack([source, target, bits], axis=1).tolist(),
    }
    proof = {"order": list(range(shape.operators)), "weights": [1]}
    return PlantedInstance(document, {"place": place.tolist()}, "0.8", proof)


def planted_makespan(shape: PlantedShape, seed: int) -> PlantedInstance:
    """Build an instance whose optimal schedule takes one second and leaves no device idle."""
    rng = np.random.default_rng([seed, shape.operators, shape.devices, 1])
    place = rng.permutation(np.arange(shape.operators) % shape.devices)
    work = _parts_of_devices(place, shape, SECOND, rng)
    start = np.zeros(shape.operators, np.int64)
    for d in range(shape.devices):
        mine = rng.permutation(np.flatnonzero(place == d))
        start[mine] = np.r_[0, np.cumsum(work[mine])[:-1]]
    order = np.lexsort((place, start))
    place, work, start = place[order], work[order], start[order]
    end = start + work
    streams = []
    for v in range(shape.operators):
        before = np.flatnonzero(end[:v] <= start[v])
        before = before[(place[before] == place[v]) | (end[before] + LATENCY <= start[v])]
        for u in rng.permutation(before)[: shape.inputs].tolist():
            room = int(start[v] - end[u] - LATENCY) if place[u] != place[v] else SECOND
            most = int(room if rng.random() < shape.mixing else room * rng.random())
            streams.append([u, v, min(max(0, most), SECOND // 4) // PER_BIT])
    document = {
        "name": f"planted-pass-{shape.operators}-{shape.devices}-{seed}",
        "objective": "makespan",
        "second": SECOND,
        "kinds": [{"cpu": SECOND}],
        "devices": [0] * shape.devices,
        "links": [[[PER_BIT, LATENCY]]],
        "operators": [{"pieces": 1, "memory": 0, "work": [x]} for x in work.tolist()],
        "streams": sorted(streams),
    }
    solution = {"place": place.tolist(), "order": list(range(shape.operators))}
    return PlantedInstance(document, solution, "1", {"weights": [1]})


def planted_plan(shape: PlantedShape, seed: int) -> PlantedInstance:
    """Build an instance whose cheapest plan fills every machine, of two kinds.

    Machines of the second kind are twice as large and twice as expensive. One operator in four has
    several pieces, on different machines.
    """
    if shape.operators - shape.operators // 4 < shape.devices:
        raise SettingError(
            f"of {shape.operators} operators, too few have a single piece to fill "
            f"{shape.devices} machines; ask for more"
        )
    rng = np.random.default_rng([seed, shape.operators, shape.devices, 2])
    kinds = rng.integers(0, 2, shape.devices)
    contents, work = _full_machines(shape, kinds, rng)
    pieces, memory = contents.sum(axis=1), rng.integers(1, 1000, shape.operators)
    source, target = _streams(contents.argmax(axis=1), shape, rng)
    bits = rng.integers(1, 1001, len(source))
    out = bits @ (contents[source] * (pieces[target, None] - contents[target]))
    into = bits @ (contents[target] * (pieces[source, None] - contents[source]))
    rows = [
        {"pieces": p, "memory": m, "work": [w, w]}
        for p, m, w in zip(pieces.tolist(), memory.tolist(), work.tolist(), strict=True)
    ]
    capacities = [
        {
            "price": 10 * (k + 1),
            "at_most": shape.devices,
            "cpu": SECOND * (k + 1),
            "memory": int((memory @ contents)[kinds == k].max(initial=1)),
            "out": int(out[kinds == k].max(initial=1)),
            "in": int(into[kinds == k].max(initial=1)),
        }
        for k in range(2)
    ]
    document = {
        "name": f"planted-plan-{shape.operators}-{shape.devices}-{seed}",
        "objective": "plan",
        "second": SECOND,
        "kinds": capacities,
        "devices": [],
        "links": [],
        "operators": rows,
        "streams": np.stack([source, target, bits], axis=1).tolist(),
    }
    machines = [
        [k, [[v, 1] for v in np.flatnonzero(contents[:, d]).tolist()]]
        for d, k in enumerate(kinds.tolist())
    ]
    bound = str(sum(10 * (int(k) + 1) for k in kinds))
    return PlantedInstance(document, {"machines": machines}, bound, _proof_by_work(document))


def _full_machines(
    shape: PlantedShape, kinds: Longs, rng: np.random.Generator
) -> tuple[Longs, Longs]:
    """Pieces of each operator on each machine, all of which are full, and the work of a piece."""
    shared = shape.operators // 4
    contents = np.zeros((shape.operators, shape.devices), np.int64)
    work = np.zeros(shape.operators, np.int64)
    for v in range(shared):
        contents[v, rng.permutation(shape.devices)[: rng.integers(2, 5)]] = 1
        work[v] = rng.integers(1, SECOND // (2 * shared))
    alone = np.arange(shared, shape.operators)
    place = rng.permutation(np.arange(len(alone)) % shape.devices)
    contents[alone, place] = 1
    for d in range(shape.devices):
        left = SECOND * (1 + int(kinds[d])) - int(work[:shared] @ contents[:shared, d])
        mine = alone[place == d]
        work[mine] = _parts(left, rng.integers(500, 1501, len(mine)))
    hidden = rng.permutation(shape.operators)
    return contents[hidden], work[hidden]


def _proof_by_work(document: dict[str, Any]) -> dict[str, Any]:
    """Build the proof that machines cannot do more than the work of all pieces."""
    work = [row["work"][0] for row in document["operators"]]
    return {"worth": work, "weights": [{"cpu": 1} for _ in document["kinds"]]}


def _parts(total: int, sizes: Longs) -> Longs:
    """Divide a total into whole numbers in proportion to sizes."""
    reached = np.array([total * x // int(sizes.sum()) for x in np.cumsum(sizes).tolist()], np.int64)
    return np.diff(reached, prepend=0)


def _parts_of_devices(
    place: Longs, shape: PlantedShape, total: int, rng: np.random.Generator
) -> Longs:
    """Work of every operator, with the same total on each device."""
    work = np.zeros(len(place), np.int64)
    for d in range(shape.devices):
        mine = np.flatnonzero(place == d)
        large, small = mine[: shape.large], mine[shape.large :]
        share = total // 10 * 9 if shape.large else 0
        if shape.large:
            work[large] = _parts(share, rng.integers(500, 1501, len(large)))
        work[small] = _parts(total - share, rng.integers(500, 1501, len(small)))
    return work


def _streams(place: Longs, shape: PlantedShape, rng: np.random.Generator) -> tuple[Longs, Longs]:
    """Ends of streams into each operator, from earlier ones of its group or of any group."""
    n, groups = len(place), int(place.max()) + 1
    by_group = np.argsort(place, kind="stable")
    first = np.searchsorted(place[by_group], np.arange(groups))
    rank = np.empty(n, np.int64)  # number of earlier operators in the same group
    rank[by_group] = np.arange(n) - first[place[by_group]]
    target = np.repeat(np.arange(n), shape.inputs)
    mixed = (rng.random(len(target)) < shape.mixing) | (rank[target] == 0)
    among = np.where(mixed, target, rank[target])
    drawn = (rng.random(len(target)) * among).astype(np.int64)
    near = by_group[first[place[target]] + np.where(mixed, 0, drawn)]
    source = np.where(mixed, drawn, near)
    ends = np.unique(np.stack([source, target], axis=1)[target > 0], axis=0)
    return ends[:, 0], ends[:, 1]


def _enough(load: Longs) -> int:
    """Smallest limit that a load respects at the planted share of the rate."""
    return max(1, -(-int(load.max()) * SHARE[0] // SHARE[1]))
