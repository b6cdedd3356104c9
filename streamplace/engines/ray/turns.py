"""Turns: devices run operators by priority, or in a fixed order.

Ray itself runs tasks in the order in which they become ready. Here the driver submits an operator
to Ray when its inputs are available, a core of its device is free, and its turn has come.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem, check_lines


def start_order(problem: Problem, placement: Placement) -> list[int]:
    """Operators in the order in which devices start them, for a placement with priorities."""
    from streamsim.passes import lines

    assert placement.priority is not None
    if placement.queue == "order":
        check_lines(problem.one_pass, placement)
        return list(lines(problem.one_pass, placement.priority[None])[0].tolist())
    return list(np.argsort(-placement.priority, kind="stable").tolist())


class Turns:
    """Queues of the operators that wait on every device.

    Examples
    --------
    >>> turns = Turns([0, 1], [0, 0], [1], held=True)
    >>> list(turns.ready(1)), list(turns.ready(0)), list(turns.free(0))
    ([], [0], [1])
    """

    def __init__(
        self, order: Sequence[int], place: Sequence[int], cores: Sequence[int], held: bool
    ) -> None:
        self._place, self._held = place, held
        self._cores, self._ready = list(cores), set[int]()
        self._lines: list[list[int]] = [[] for _ in cores]
        for v in order:
            self._lines[place[v]].append(v)

    @classmethod
    def of(cls, problem: Problem, placement: Placement) -> "Turns":
        """Turns of a placement with priorities."""
        order, held = start_order(problem, placement), placement.queue == "order"
        cores = problem.one_pass.devices["cores"].tolist()
        return cls(order, placement.index.tolist(), cores, held)

    def ready(self, v: int) -> Iterator[int]:
        """Operators to start, now that the inputs of one are available."""
        self._ready.add(v)
        return self._starting(self._place[v])

    def free(self, device: int) -> Iterator[int]:
        """Operators to start, now that a core of a device is free."""
        self._cores[device] += 1
        return self._starting(device)

    def _starting(self, device: int) -> Iterator[int]:
        while self._cores[device] and (v := self._next(device)) >= 0:
            self._cores[device] -= 1
            self._lines[device].remove(v)
            yield v

    def _next(self, device: int) -> int:
        """Operator whose turn it is; -1 if the device has to wait."""
        line = self._lines[device]
        waiting = (v for v in (line[:1] if self._held else line) if v in self._ready)
        return next(waiting, -1)


class TurnedPass:
    """A pass on Ray whose driver starts operators in their turns.

    ``inputs`` are the stream and the sender of every input, by operator. A message is sent once to
    every device. ``run`` starts an operator with its inputs, and returns its result and the times
    of its run; ``send`` starts the transfer of a result for a stream, and returns its times.
    """

    def __init__(
        self,
        inputs: Sequence[Sequence[tuple[int, int]]],
        message: Sequence[int],
        place: Sequence[int],
        turns: Turns,
        run: Callable[[int, list[Any]], tuple[Any, Any]],
        send: Callable[[int, int, Any], Any],
    ) -> None:
        self._inputs, self._message, self._place = inputs, message, place
        self._turns, self._run, self._send = turns, run, send
        self._missing = [len(into) for into in inputs]
        self._outputs: list[list[tuple[int, int]]] = [[] for _ in inputs]
        for v, into in enumerate(inputs):
            for e, u in into:
                self._outputs[u].append((e, v))
        self._data: dict[int, Any] = {}
        self._going: dict[Any, Callable[[], None]] = {}
        self._receivers: dict[tuple[int, int], list[int]] = {}
        self._times: list[Any] = []

    def times(self, ray: Any) -> list[Any]:
        """Run the pass; return the times of all operators and transfers."""
        for v, missing in enumerate(self._missing):
            if missing == 0:
                self._start(self._turns.ready(v))
        while self._going:
            done, _ = ray.wait(list(self._going), num_returns=1)
            self._going.pop(done[0])()
        return self._times

    def _start(self, operators: Iterable[int]) -> None:
        for v in operators:
            fetched = [self._data[u] for _, u in self._inputs[v]]
            self._data[v], done = self._run(v, fetched)
            self._times.append(done)
            self._going[done] = partial(self._ran, v)

    def _ran(self, v: int) -> None:
        """Pass on the results of an operator, and free its core."""
        device = self._place[v]
        for e, w in self._outputs[v]:
            if self._place[w] == device:
                self._arrived(w)
                continue
            transfer = self._message[e], self._place[w]
            if transfer not in self._receivers:
                done = self._send(e, self._place[w], self._data[v])
                self._times.append(done)
                self._going[done] = partial(self._sent, transfer)
            self._receivers.setdefault(transfer, []).append(w)
        self._start(self._turns.free(device))

    def _sent(self, transfer: tuple[int, int]) -> None:
        for w in self._receivers[transfer]:
            self._arrived(w)

    def _arrived(self, v: int) -> None:
        self._missing[v] -= 1
        if self._missing[v] == 0:
            self._start(self._turns.ready(v))
