"""Advice on parallelism, for operators of which a single subtask fills a core.

A subtask uses at most one core, however many its device has. More subtasks use more cores of the
same device; if these are full as well, subtasks move to other devices. Where a subtask is limited
by its operator's ``max_rate``, more subtasks help on one core, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from streamsim.equation import pressures

from streamplace.display.report import percent
from streamplace.errors import StreamplaceError
from streamplace.model.arrays import ROUNDING, Floats, Ints, Longs
from streamplace.model.expansion import expand, with_parallelism
from streamplace.model.graph import StreamGraph
from streamplace.model.key_groups import busiest_parts
from streamplace.model.problem import Problem
from streamplace.model.streams import HASHED
from streamplace.objectives.throughput.loads import filling_core, shares_of_max_rate

if TYPE_CHECKING:
    from streamsim.incremental import Incremental
    from streamsim.steady import Bottleneck

MOST_SUBTASKS = 64
"""Most subtasks of one operator that are tried;"""
MOST_EXPANDED = 20_000
"""most subtasks of a graph in which some are moved to other devices;"""
MOST_MOVES = 4096
"""and most moves that are tried."""
_SUBTASK = re.compile(r"(.+#)\d+")


@dataclass(frozen=True, slots=True)
class ParallelismAdvice:
    """Operators to split into more subtasks, and the resulting relative throughput."""

    operators: tuple[str, ...]  # which fill a core, and those that need the same parallelism
    parallelism: int  # number of subtasks of each of them
    devices: Mapping[str, int]  # subtasks on each device; the first ones run on the first device
    relative_throughput: float

    @property
    def words(self) -> str:
        """Advice in words, with the resulting throughput."""
        who = " and ".join(self.operators)
        where = ""
        if len(self.devices) > 1:
            parts = (f"{number} on {name}" for name, number in self.devices.items())
            where = f" ({', '.join(parts)})"
        then = percent(self.relative_throughput)
        return f"Parallelism: {self.parallelism} for {who}{where} would give {then}"


def more_subtasks(problem: Problem, place: Ints, top: "Bottleneck") -> ParallelismAdvice | None:
    """Return the parallelism that helps if a core is the bottleneck; None if none helps.

    The operators stay on their devices if that helps as much. Constraints and ``max_parallelism``
    are respected.
    """
    if top.kind != "core":
        return None
    rows = _to_split(problem, place, top)
    if any(_is_subtask(problem.graph, int(v)) for v in rows):
        return None  # the original operator is unknown
    least, best = _throughput(problem, place), None
    for advice in (_here(problem, place, rows), _spread(problem, place, rows)):
        if advice is not None and advice.relative_throughput > least * (1 + ROUNDING):
            least, best = advice.relative_throughput, advice
    return best


def _to_split(problem: Problem, place: Ints, top: "Bottleneck") -> Ints:
    """Operators that fill the core, and those that streams force to the same parallelism."""
    streams, chosen = problem.graph.streams, filling_core(problem, place, top)
    straight = streams.straight()
    source, target = streams.source[straight], streams.target[straight]
    size = 0
    while size < chosen.sum():
        size = int(chosen.sum())
        chosen[source[chosen[target]]] = True
        chosen[target[chosen[source]]] = True
    return np.flatnonzero(chosen).astype(np.int32)


def _is_subtask(graph: StreamGraph, v: int) -> bool:
    """Whether an operator is itself one of several subtasks of an expanded graph."""
    named = _SUBTASK.fullmatch(graph.operators.name[v])
    return (
        named is not None
        and f"{named[1]}0" in graph.operators
        and f"{named[1]}1" in graph.operators
    )


def _here(problem: Problem, place: Ints, rows: Ints) -> ParallelismAdvice | None:
    """Split the operators, with all subtasks on their operators' devices."""
    cores = int(problem.instance.cores[place[rows]].min())
    cpu = _loads_without(problem, place, rows)
    number = _parallelism(problem, place, rows, cpu, _most(problem, place, rows, cores))
    if number is None:
        return None
    split = _split(problem, rows, number)
    names, counts = np.unique(place[rows], return_counts=True)
    return ParallelismAdvice(
        _names(problem, rows),
        number,
        _by_device(problem, dict(zip(names.tolist(), (number * counts).tolist(), strict=True))),
        _throughput(split, place),
    )


def _spread(problem: Problem, place: Ints, rows: Ints) -> ParallelismAdvice | None:
    """Split the operators, and move subtasks as long as that lowers the peak load.

    None if that needs no additional device.
    """
    from streamsim.incremental import Incremental

    most = _most(problem, place, rows, int(problem.instance.cores.sum()))
    number = _parallelism(problem, place, rows, 1.0, most)
    if number is None or number * len(rows) * problem.n_devices > MOST_MOVES:
        return None
    split = _split(problem, rows, number)
    if split.graph.operators.parallelism.sum() > MOST_EXPANDED:
        return None
    try:
        expansion = expand(split.graph)
        expanded = expansion.problem(split)
    except StreamplaceError:  # other operators or constraints cannot be divided
        return None
    state = Incremental(expanded.instance, place[expansion.operator])
    moved = np.flatnonzero(np.isin(expansion.operator, rows))
    where = place[expansion.operator].astype(np.int32)
    for s in moved.tolist():
        where[s] = _best_device(expanded, state, where, s)
    for v in rows.tolist():  # in the order of the devices, so that counts per device are enough
        where[expansion.operator == v] = np.sort(where[expansion.operator == v])
    counts = np.bincount(where[moved], minlength=problem.n_devices)
    used = {d: int(counts[d]) for d in np.flatnonzero(counts).tolist()}
    if len(used) == 1 or not expanded.legal(where)[0]:
        return None
    reached = _throughput(expanded, where)
    return ParallelismAdvice(_names(problem, rows), number, _by_device(problem, used), reached)


def _best_device(problem: Problem, state: "Incremental", where: Ints, s: int) -> int:
    """Move a subtask to the device that lowers the peak load most, and return that device."""
    best, least = int(where[s]), state.peak * (1 - ROUNDING)
    for d in range(problem.n_devices):
        tried = where.copy()
        tried[s] = d
        if problem.rules is not None and not problem.legal(tried)[0]:
            continue
        state.move(s, d)
        if state.peak < least:
            best, least = d, state.peak
    state.move(s, best)
    return best


def _most(problem: Problem, place: Ints, rows: Ints, cores: int) -> int:
    """Most subtasks to try: as many as cores, unless an operator is at its largest rate."""
    instance = problem.instance
    core = instance.core_pressure[rows, instance.device_type[place[rows]]]
    share = shares_of_max_rate(instance)[rows]
    return MOST_SUBTASKS if ((share > 0) & (share >= (1 - ROUNDING) * core)).any() else cores


def _parallelism(problem: Problem, place: Ints, rows: Ints, cpu: float, most: int) -> int | None:
    """Fewest subtasks whose cores are no fuller than ``cpu``, else the number that fills least."""
    operators, instance = problem.graph.operators, problem.instance
    groups = operators.max_parallelism[rows]
    least = int(operators.parallelism[rows].max())
    most = min([most, MOST_SUBTASKS, *groups[groups > 0].tolist()])
    if most <= least:
        return None
    numbers = np.arange(least + 1, most + 1)
    parts = _parts(problem, rows, numbers)
    core = instance.core_load[rows, instance.device_type[place[rows]]]
    each = (core * instance.parallelism[rows])[:, None] / parts
    if len(instance.constant):
        constant = instance.core_constant[rows, instance.device_type[place[rows]]]
        each = pressures(each, (constant * operators.parallelism[rows])[:, None] / numbers[None, :])
    waiting = shares_of_max_rate(instance)[rows] * instance.parallelism[rows]
    fullest = np.maximum(each, waiting[:, None] / parts).max(axis=0)
    enough = np.flatnonzero(fullest <= cpu * (1 + ROUNDING))
    return int(numbers[enough[0] if len(enough) else np.argmin(fullest)])


def _parts(problem: Problem, rows: Ints, numbers: Longs) -> Floats:
    """Number by which the busiest subtask divides its operator's tuples, at each parallelism.

    Only hashed tuples, and those of sources, are divided by key groups. Straight streams bring the
    parts of their senders, which are among the rows.
    """
    operators, streams = problem.graph.operators, problem.graph.streams
    straight = streams.straight()
    hashed = streams.target[streams.distribution() == HASHED]
    is_keyed = (operators.rate[rows] > 0) | np.isin(rows, hashed)
    groups = np.where(is_keyed, operators.max_parallelism[rows], 0)
    numbers = np.broadcast_to(numbers, (len(rows), len(numbers)))
    parts = busiest_parts(groups[:, None], numbers)
    parts[np.isin(rows, streams.target[straight])] = parts.min(axis=0)
    return parts


def _loads_without(problem: Problem, place: Ints, rows: Ints) -> float:
    """Highest load of all other resources, at least 1."""
    from streamsim import resource_loads

    instance = problem.instance
    loads = resource_loads(instance, place)
    core = instance.core_pressure[np.arange(len(place)), instance.device_type[place]].copy()
    core[rows] = 0.0
    others: list[Floats] = [loads.pressures, loads.links, loads.egress, loads.ingress, core]
    return max(1.0, *(float(column.max()) for column in others))


def _split(problem: Problem, rows: Ints, number: int) -> Problem:
    """Return the problem with this number of subtasks of some operators."""
    parallelism = problem.graph.operators.parallelism.copy()
    parallelism[rows] = number
    graph = with_parallelism(problem.graph, parallelism)
    return Problem(graph, problem.cluster, problem.constraints, problem.seconds, problem.moving)


def _throughput(problem: Problem, place: Ints) -> float:
    from streamsim import throughput

    return float(throughput(problem.instance, place[None, :])[0])


def _names(problem: Problem, rows: Ints) -> tuple[str, ...]:
    return tuple(problem.graph.operators.name[v] for v in rows.tolist())


def _by_device(problem: Problem, counts: Mapping[int, int]) -> dict[str, int]:
    return {problem.cluster.devices.name[d]: number for d, number in counts.items()}
