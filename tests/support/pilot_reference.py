"""What devices look like to pilot, said literally: slow, plain Python, from the definitions.

A partial placement is a dict from operator to device; operators without a device are not in it.
Loads are in bytes and instructions alone: overhead and gap of single tuples are not looked at.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from streamplace.learn.models.pilot.features import MAX_FEATURE
from streamplace.model.devices import SLACK

Loads = dict[tuple[object, ...], float]


class Look(NamedTuple):
    """The features of every device by name, those of the step, and which devices are open."""

    devices: list[dict[str, float]]
    step: dict[str, float]
    open: list[bool]


def partial_loads(problem, place):
    """Load of every resource at full rate, of what has a device."""
    instance, loads = problem.instance, defaultdict[tuple[object, ...], float](float)
    for v, a in place.items():
        loads["device", a] += instance.full_load[v, instance.device_type[a]]
    for e, (u, v) in enumerate(zip(instance.source, instance.target, strict=True)):
        if u in place and v in place and place[u] != place[v]:
            for resource, cost in _way(problem, place[u], place[v]):
                loads[resource] += instance.traffic[e] * cost
    return loads


def look(problem, view, place, t, last):
    """See every device at decision t, for the unit that comes then.

    All other units that have a device are in ``place``; the decision before was for device ``last``
    (-1 at the first).
    """
    unit = view.order[t % len(view.order)]
    members = np.flatnonzero(view.unit_of == unit).tolist()
    y, d = view.yardstick, problem.n_devices
    room = [max(0.0, 1 - partial_loads(problem, place)["device", a] / y) for a in range(d)]
    homeless = {u for v, u in enumerate(view.unit_of.tolist()) if v not in place}
    coming = sum(_least_load(problem, view, u) for u in homeless) / y
    whole = sum(_least_load(problem, view, u) for u in view.order) / y
    step = {
        "coming": coming / (whole + 1e-9),
        "coming-over-room": min(MAX_FEATURE, coming / (sum(room) + 1e-3)),
        "peak": min(MAX_FEATURE, _peak(partial_loads(problem, place)) / y),
        "devices-used": len(set(place.values())) / d,
        "most-room": min(MAX_FEATURE, max(room)),
        "position": (t % len(view.order)) / len(view.order),
    }
    devices = [
        {
            **_of_loads(problem, view, place, members, a),
            **_of_flows(problem, view, place, members, a),
            **_of_unit(problem, view, unit, a),
            "empty": float(a not in place.values()),
            "last": float(a == last),
            "less-room-than-most": max(room) - room[a],
            "room-over-coming": _room_over_coming(problem, place, members, a, y, coming),
        }
        for a in range(d)
    ]
    return Look(devices, step, [_is_open(problem, place, members, a) for a in range(d)])


def _of_loads(problem, view, place, members, a):
    """Features that compare the loads before and after the unit came to device a."""
    y = view.yardstick
    before = partial_loads(problem, place)
    after = partial_loads(problem, {**place, **dict.fromkeys(members, a)})
    device = after["device", a] / y
    link = max((after[r] for r in _used(problem, place, members, a)), default=0.0) / y
    return {
        "load": min(MAX_FEATURE, before["device", a] / y),
        "load-after": min(MAX_FEATURE, device),
        "too-much-after": min(MAX_FEATURE, max(0.0, device - 1)),
        "misfit": min(MAX_FEATURE, abs(1 - device) * 10),
        "link-after": min(MAX_FEATURE, link),
        "link-too-much-after": min(MAX_FEATURE, max(0.0, link - 1)),
        "flow-cut": min(
            MAX_FEATURE,
            sum(after[r] - before[r] for r in _used(problem, place, members, a) if r[0] == "link")
            / y,
        ),
        "peak-growth": min(MAX_FEATURE, (_peak(after) - _peak(before)) / y),
        "fullest-link": min(
            MAX_FEATURE, max(before["link", b, c] for b, c in _pairs(problem) if a in (b, c)) / y
        ),
    }


def _of_flows(problem, view, place, members, a):
    """Features of the bytes/s between the unit and the rest."""
    instance = problem.instance
    wire = sum(instance.seconds_per_byte[a]) / max(1, problem.n_devices - 1) / view.yardstick
    home = flow = loose = 0.0
    for u, v, traffic in zip(instance.source, instance.target, instance.traffic, strict=True):
        if (u in members) != (v in members):
            other = u if v in members else v
            flow += traffic
            home += traffic if place.get(other) == a else 0.0
        if view.unit_of[u] != view.unit_of[v]:
            if place.get(u) == a and v not in place:
                loose += traffic
            if place.get(v) == a and u not in place:
                loose += traffic
    return {
        "share-at-home": home / flow if flow > 0 else 0.0,
        "flow-at-home": min(MAX_FEATURE, home * wire),
        "flow-loose": min(MAX_FEATURE, loose * wire),
        "neighbour": float(home > 0),
        "flow": min(MAX_FEATURE, flow * wire),
    }


def _of_unit(problem, view, unit, a):
    """Features of the unit on the device, whoever else is there."""
    own = _load(problem, view, unit, problem.instance.device_type[a])
    least = _least_load(problem, view, unit)
    return {"own": min(MAX_FEATURE, own / view.yardstick), "speed": least / own if own > 0 else 1.0}


def _room_over_coming(problem, place, members, a, y, coming):
    after = partial_loads(problem, {**place, **dict.fromkeys(members, a)})["device", a] / y
    return min(MAX_FEATURE, (1 - after) / (coming + 1e-3)) if after < 1 else 0.0


def _is_open(problem, place, members, a):
    """Allowed, no rival there, room enough, and not the same as an empty device before it."""
    classes, rules = problem.interchangeable, problem.rules
    empty = [b for b in range(problem.n_devices) if b not in place.values()]
    if a in empty and any(b < a and classes[b] == classes[a] for b in empty):
        return False
    if rules is None:
        return True
    unit = rules.unit[members[0]]
    rivals = {int(q) for pair in rules.apart.tolist() for q in pair if unit in pair and q != unit}
    there = [v for v, b in place.items() if b == a]
    met = {int(rules.unit[v]) for v in there}
    sizes = problem.graph.operators.memory
    room = problem.cluster.devices.memory[a] * (1 + SLACK)
    if sizes[members].sum() + sizes[there].sum() > room:
        return False
    return bool(rules.allowed[unit, a]) and not rivals & met


def _used(problem, place, members, a):
    """Links and NICs that carry anything between the unit on device a and what is placed."""
    instance, used = problem.instance, set[tuple[object, ...]]()
    after = {**place, **dict.fromkeys(members, a)}
    for u, v, traffic in zip(instance.source, instance.target, instance.traffic, strict=True):
        if (u in members) != (v in members) and u in after and v in after and traffic > 0:
            b, c = after[u], after[v]
            used |= {resource for resource, _ in _way(problem, b, c) if b != c}
    return used


def _way(problem, a, b):
    """What bytes from device a to device b pass, and seconds per byte there."""
    instance = problem.instance
    return [
        (("link", a, b), instance.seconds_per_byte[a, b]),
        (("egress", a), instance.egress[a]),
        (("ingress", b), instance.ingress[b]),
    ]


def _pairs(problem):
    return [(int(a), int(b)) for a, b in np.ndindex(problem.n_devices, problem.n_devices)]


def _peak(loads):
    return max(loads.values(), default=0.0)


def _load(problem, view, unit, kind):
    members = np.flatnonzero(view.unit_of == unit)
    return float(problem.instance.full_load[members, kind].sum())


def _least_load(problem, view, unit):
    kinds = range(problem.instance.load.shape[1])
    return min(_load(problem, view, unit, kind) for kind in kinds)
