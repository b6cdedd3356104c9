"""Amount that each stream carries, from the inputs and outputs that tasks count."""

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Pair = tuple[str, str]
LEAST_REST = 0.1
"""Minimum remainder of a sum, relative to it, that is reliable; errors dominate smaller ones."""


class Shares(NamedTuple):
    """Amount of each stream by its number, and the streams whose amount is uncertain."""

    amounts: dict[int, float]
    # Streams that could not be separated; their common amount was divided among them.
    mixed: set[int]
    small: set[int]  # streams whose amount is the small difference of large ones
    from_sent: set[int]  # streams whose amount was derived from the output of their source


class _Sum(NamedTuple):
    """Sum of the amounts of the streams at one end of a task."""

    streams: list[int]
    total: float

    def rest(self, amounts: Mapping[int, float]) -> float:
        """Remaining amount for streams that are not known yet."""
        return max(0.0, self.total - sum(amounts.get(e, 0.0) for e in self.streams))


def shares(
    streams: Sequence[Pair],
    received: Mapping[str, float],
    sent: Mapping[str, float],
    weights: Mapping[int, float],
) -> Shares:
    """Amount of each stream, from sums over the inputs of tasks and over the outputs of tasks.

    A stream that is alone at one of its ends carries the sum there, and the last unknown stream of
    a sum carries its remainder. Streams that are still unknown share the remainder of their
    target's sum by weight.

    Parameters
    ----------
    received, sent
        Sums by task, without tasks whose sum is unknown.
    weights
        Weight of each stream, for streams that share a remainder.

    Examples
    --------
    >>> streams = [("src", "a"), ("src", "b"), ("a", "sink"), ("b", "sink")]
    >>> shares(streams, {"a": 9.0, "b": 8.0, "sink": 20.0}, {"a": 4.0}, {}).amounts
    {0: 9.0, 1: 8.0, 2: 4.0, 3: 16.0}
    """
    targets, senders = _sums(streams, received, end=1), _sums(streams, sent, end=0)
    answer = Shares({}, set(), set(), set())
    _solve(streams, targets, senders, answer)
    for task, numbers in _numbers(streams, end=1).items():
        left = [e for e in numbers if e not in answer.amounts]
        rest = _Sum(numbers, received.get(task, 0.0)).rest(answer.amounts)
        whole = sum(weights.get(e, 0.0) for e in left) or 1.0
        answer.amounts.update({e: rest * weights.get(e, 0.0) / whole for e in left})
        answer.mixed.update(left)
    return answer._replace(amounts=dict(sorted(answer.amounts.items())))


def _solve(
    streams: Sequence[Pair],
    targets: Mapping[str, _Sum],
    senders: Mapping[str, _Sum],
    answer: Shares,
) -> None:
    """Determine every stream that is alone at an end, or the last unknown one there, repeatedly.

    Streams that are alone come first, because a remainder has the errors of the others; then
    inputs, because Flink counts output by whole buffers.
    """
    sums = [*targets.values(), *senders.values()]
    ends: list[list[int]] = [[] for _ in streams]
    for i, one in enumerate(sums):
        for e in one.streams:
            ends[e].append(i)
    unknown = [len(one.streams) for one in sums]
    todo = [(1, i) for i, n in enumerate(unknown) if n == 1]  # a list in order is a heap
    while todo:
        at = heapq.heappop(todo)[1]
        one = sums[at]
        for e in [e for e in one.streams if e not in answer.amounts]:
            answer.amounts[e] = one.rest(answer.amounts)
            if len(one.streams) > 1 and answer.amounts[e] < LEAST_REST * one.total:
                answer.small.add(e)
            if at >= len(targets):
                answer.from_sent.add(e)
            for i in ends[e]:
                unknown[i] -= 1
                if unknown[i] == 1:
                    heapq.heappush(todo, (len(sums[i].streams), i))


def _sums(streams: Sequence[Pair], totals: Mapping[str, float], *, end: int) -> dict[str, _Sum]:
    numbers = _numbers(streams, end=end)
    return {task: _Sum(e, totals[task]) for task, e in numbers.items() if task in totals}


def _numbers(streams: Sequence[Pair], *, end: int) -> dict[str, list[int]]:
    """Numbers of the streams at each task."""
    numbers: dict[str, list[int]] = {}
    for e, stream in enumerate(streams):
        numbers.setdefault(stream[end], []).append(e)
    return numbers
