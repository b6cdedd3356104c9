"""Latency: the time of a tuple on the longest path, without queueing.

``latency(A->B)`` is the time on the longest path from one operator to another.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamplace.display.report import duration
from streamplace.errors import SettingError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.message_text import quoted, suggestion
from streamplace.model.mixins import kept
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import operators_by_subtask
from streamplace.objectives.registry import OBJECTIVES, Objective, objective

if TYPE_CHECKING:
    from streamsim import Instance

ARROW = "->"
MAX_PATH_NAMES = 8
"""Operators of a path that a sentence names."""
MAX_CELLS = 20_000_000
"""Streams times pairs of devices, above which the bound leaves out the network."""


class Between(NamedTuple):
    """The operators and streams on all paths from one operator to another."""

    rows: Ints  # [K] operators of the problem
    instance: "Instance"


@kept
def _part(problem: Problem, path: str) -> Between:
    """Part of a problem between the ends of a path; the whole problem without a path."""
    from streamsim.flow import flow_of
    from streamsim.instance import instance_of

    whole = problem.instance
    if not path:
        return Between(np.arange(problem.n_operators, dtype=np.int32), whole)
    first, last = _ends(problem, path)
    source, target, payload = whole.source, whole.target, whole.payload
    after, before = first.copy(), last.copy()
    for e in range(len(source)):  # in topological order of the sources
        after[target[e]] |= after[source[e]]
    for e in reversed(range(len(source))):
        before[source[e]] |= before[target[e]]
    between = after & before
    if not between.any():
        start, _, end = path.partition(ARROW)
        raise SettingError(f"no path leads from {quoted(start.strip())} to {quoted(end.strip())}")
    row = np.cumsum(between) - 1
    kept = between[source] & between[target]
    flow = flow_of(
        (first & between)[between].astype(float),
        row[source[kept]],
        row[target[kept]],
        payload=payload[kept],
    )
    part = instance_of(
        flow, whole.platform, seconds=whole.seconds[between], device_type=whole.device_type
    )
    return Between(np.flatnonzero(between).astype(np.int32), part)


def _ends(problem: Problem, path: str) -> tuple[Bools, Bools]:
    """Operators, or all of their subtasks, at both ends of a path; names may contain arrows."""
    operators = operators_by_subtask(problem.graph.operators.name)
    parts = path.split(ARROW)
    splits = [(ARROW.join(parts[:i]), ARROW.join(parts[i:])) for i in range(1, len(parts))]
    for split in splits:
        start, end = (
            np.array([name.strip() in pair for pair in operators.items()]) for name in split
        )
        if start.any() and end.any():
            return start, end
    known = {*operators, *operators.values()}
    names = [name.strip() for name in splits[0]]
    unknown = next(name for name in names if name not in known)
    raise SettingError(f"it has no operator {quoted(unknown)}{suggestion(unknown, sorted(known))}")


def _refusal(problem: Problem, path: str) -> str | None:
    try:
        _part(problem, path)
    except SettingError as error:
        return str(error)
    return None


def _transfers(instance: "Instance") -> tuple[Floats, Floats]:
    """Seconds to send a tuple from device to device, and per byte of the tuple, [D, D]."""
    fixed = instance.latency + (instance.gap + 2 * instance.overhead)
    per_byte = instance.platform.wire + 2 * instance.overhead_per_byte
    for matrix in (fixed, per_byte):
        np.fill_diagonal(matrix, 0.0)
    return fixed, per_byte


@kept
def bound(problem: Problem, path: str = "") -> float:
    """Latency of the longest path if the operators of each path were placed for it alone.

    T(v, d), the least latency up to v on device d, is s(v, d) + max over streams (u, v) of min over
    devices c of (T(u, c) + transfer(c, d)), with the devices on which u and v may run.
    """
    part, rules = _part(problem, path), problem.rules
    instance = part.instance
    cost = instance.seconds[:, instance.device_type]
    if rules is not None:
        cost = np.where(rules.allowed[rules.unit[part.rows]], cost, np.inf)
    fixed, per_byte = _transfers(instance)
    is_small = instance.n_streams * fixed.size <= MAX_CELLS
    arrival = np.zeros_like(cost)
    for v in instance.order.tolist():
        done = arrival[v] + cost[v]
        for e in range(instance.out_start[v], instance.out_end[v]):
            w = instance.target[e]
            if is_small:
                at = (done[:, None] + (fixed + instance.payload[e] * per_byte)).min(axis=0)
            else:
                at = done.min()
            arrival[w] = np.maximum(arrival[w], at)
    return float((arrival + cost).min(axis=1).max())


def culprit(problem: Problem, placement: Placement, path: str = "") -> tuple[str, str]:
    """Return the longest path with its seconds, and the resource that takes most, in words."""
    part = _part(problem, path)
    instance, place = part.instance, placement.index[part.rows]
    fixed, per_byte = _transfers(instance)
    cost = instance.seconds[np.arange(len(place)), instance.device_type[place]]
    arrival, stream = np.zeros(len(place)), np.full(len(place), -1)
    for v in instance.order.tolist():
        for e in range(instance.out_start[v], instance.out_end[v]):
            w, ends = instance.target[e], (place[v], place[instance.target[e]])
            at = arrival[v] + cost[v] + fixed[ends] + instance.payload[e] * per_byte[ends]
            if stream[w] < 0 or at > arrival[w]:
                arrival[w], stream[w] = at, e
    chain = [int(np.argmax(arrival + cost))]
    while (e := stream[chain[0]]) >= 0:
        chain.insert(0, int(instance.source[e]))
    taken_by, devices = dict[str, float](), placement.devices
    for v in chain:
        name = f"CPU of {devices[place[v]]}"
        taken_by[name] = taken_by.get(name, 0.0) + cost[v]
    for v, w in pairwise(chain):
        if place[v] != place[w]:
            name = f"link {devices[place[v]]}–{devices[place[w]]}"
            size = instance.payload[stream[w]]
            transfer = fixed[place[v], place[w]] + size * per_byte[place[v], place[w]]
            taken_by[name] = taken_by.get(name, 0.0) + transfer
    slowest = max(taken_by, key=taken_by.__getitem__)
    total = float(arrival[chain[-1]] + cost[chain[-1]])
    names = [placement.operators[part.rows[v]] for v in chain]
    if len(names) > MAX_PATH_NAMES:
        n_hidden = len(names) - MAX_PATH_NAMES + 1
        names = [*names[: MAX_PATH_NAMES - 2], f"{n_hidden} more", names[-1]]
    path_words = f"{' → '.join(names)} takes {duration(total)}"
    return path_words, f"{slowest} {duration(taken_by[slowest])} of it"


def _variant(options: Mapping[str, str]) -> Objective:
    """Latency from one operator to another."""
    path = options.get("path", "")
    ends = [end.strip() for end in path.split(ARROW)]
    if {*options} != {"path"} or len(ends) < 2 or not (ends[0] and ends[-1]):
        raise SettingError("the ends of a path cannot be read; write latency(FROM->TO)")
    return replace(
        OBJECTIVES["latency"],
        evaluate=partial(latency, path=path),
        refuses=partial(_refusal, path=path),
        bound=partial(bound, path=path),
        culprit=partial(culprit, path=path),
    )


@objective(
    "latency",
    sense="min",
    unit="s",
    guide="makespan",
    bound=bound,
    culprit=culprit,
    variant=_variant,
)
def latency(problem: Problem, placements: Ints, path: str = "") -> Floats:
    """Seconds that a tuple takes on the longest path from a source to a sink, without load.

    Per operator, the core seconds of one tuple; per stream between devices, its latency, the time
    of its bytes on the slowest of the link and the two network cards, and of its overhead at both
    ends. With ``path``, as in ``camera->alarm``, only paths from one operator to another count.
    """
    from streamsim.latency import latencies

    part = _part(problem, path)
    return latencies(part.instance, np.atleast_2d(placements)[:, part.rows])
