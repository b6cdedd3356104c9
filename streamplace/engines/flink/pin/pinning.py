"""Pinning: slot sharing groups and resources by which Flink carries out a placement.

Operators on the same device share a group, and Flink fuses operators within a group: a group is a
processing element. A parallel operator whose subtasks are placed on several devices has a spread
group, with a number of slots on each device; operators with equal placements share it.
"""

from dataclasses import dataclass

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin.spread import SpreadLimits, pin_demand


@dataclass(frozen=True, slots=True)
class Pinning:
    """Slot sharing groups and their operators.

    Examples
    --------
    >>> limits = SpreadLimits.untouched(["a", "b"])
    >>> answer = pinning(Layout.of({"src": "a", "map": ["a", "b", "b"]}), limits)
    >>> answer.operators, answer.parallelism
    ({'src': 'a', 'map': 'spread-0'}, {'map': 3})
    >>> answer.groups
    {'a': {'dev-a': 1}, 'spread-0': {'lim-0': 500000, 'lim-0-dev-a': 1000000}}
    >>> answer.spread
    {'spread-0': {'a': 1, 'b': 2}}
    """

    groups: dict[str, dict[str, int]]  # group → external resources that each of its slots requests
    operators: dict[str, str]  # operator → group
    parallelism: dict[str, int]  # operator → number of subtasks, if known
    # Group with slots on several devices → device → number of slots. The slots of any other group
    # are on the device of its name.
    spread: dict[str, dict[str, int]]


def pinning(layout: Layout, limits: SpreadLimits) -> Pinning:
    """Pin operators to the devices of a cluster.

    The indexes and layers of new spread groups are removed from ``limits``.
    """
    answer = Pinning({}, {}, {}, {})
    spread: dict[tuple[str, ...], str] = {}
    for operator, devices in layout.items():
        if len(set(devices)) == 1:
            group = devices[0]
            answer.groups.setdefault(group, pin_demand(group))
        else:
            group = spread.get(devices) or f"spread-{len(answer.spread)}"
            if devices not in spread:
                answer.spread[group] = layout.counts(operator)
                answer.groups[group] = limits.take(answer.spread[group])
            spread[devices] = group
        if operator not in layout.uncounted:
            answer.parallelism[operator] = len(devices)
        answer.operators[operator] = group
    return answer
