"""Networks of the literal transcription of a pass: who may send at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passes_reference import Simulation

TIE = 1e-12


class Free:
    """All transfers at once, every stream by itself."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    def post(self, e: int) -> None:
        """Take over the output that stream e carries."""
        self.simulation.depart([e], self.simulation.now)

    def settle(self) -> bool:
        """Decide at the end of an instant who sends; whether anything changed."""
        return False

    def upcoming(self) -> list[float]:
        """When something will happen that no step in the heap says."""
        return []


class Link(Free):
    """One transfer at a time on every channel, in the order in which they are posted."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self.until: dict[Any, float] = defaultdict(float)

    def channel(self, transfer: list[int]) -> Any:
        """What a transfer needs to itself."""
        return self.simulation.ends(transfer[0])

    def transfers(self, e: int) -> list[list[int]]:
        """Transfers that carry the output of stream e."""
        return self.simulation.remote(e)

    def post(self, e: int) -> None:
        """Let the output that stream e carries begin as soon as its channel is free."""
        simulation = self.simulation
        for transfer in self.transfers(e):
            channel = self.channel(transfer)
            begin = max(simulation.now, self.until[channel])
            simulation.depart(transfer, begin)
            self.until[channel] = begin + simulation.held(transfer) + simulation.rules.spacing
            simulation.at(self.until[channel], lambda: None)


class Sender(Link):
    """One transfer at a time out of a device, to all who need it."""

    def channel(self, transfer: list[int]) -> Any:
        """What a transfer needs to itself."""
        return self.simulation.ends(transfer[0])[0]

    def transfers(self, e: int) -> list[list[int]]:
        """Transfers that carry the output of stream e."""
        return [sorted(i for streams in self.simulation.remote(e) for i in streams)]


class Port(Free):
    """One transfer out of a device and one into it at a time."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self.busy: set[tuple[str, int]] = set()
        self.line: list[list[int]] = []
        self.changed = False

    def ports(self, transfer: list[int]) -> set[tuple[str, int]]:
        """What a transfer needs to itself."""
        a, b = self.simulation.ends(transfer[0])
        return {("out", a), ("in", b)}

    def post(self, e: int) -> None:
        """Let the output that stream e carries wait in line."""
        self.line += self.simulation.remote(e)
        self.changed = True

    def clear(self, transfer: list[int]) -> None:
        """A transfer has left its ports."""
        self.busy -= self.ports(transfer)
        self.changed = True

    def settle(self) -> bool:
        """Go through the line at the end of an instant; whether anything changed."""
        changed, self.changed = self.changed, False
        for transfer in list(self.line) if changed else []:
            if not self.ports(transfer) & self.busy:
                self.busy |= self.ports(transfer)
                self.line.remove(transfer)
                simulation = self.simulation
                simulation.depart(transfer, simulation.now)
                through = simulation.now + simulation.held(transfer) + simulation.rules.spacing
                simulation.at(through, self.clear, transfer)
        return changed


@dataclass
class Flow:
    """A transfer under way in the shared network."""

    streams: list[int]
    alone: float
    uses: Mapping[tuple[str, int, int], float]
    left: float = 1.0
    share: float = 0.0
    due: float = float("inf")


class Shared(Free):
    """Transfers share links and cards: all gain until something they use is full."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self.flows: list[Flow] = []
        self.changed, self.settled = False, 0.0

    def post(self, e: int) -> None:
        """Take over the output that stream e carries."""
        simulation = self.simulation
        for streams in simulation.remote(e):
            for i in streams:
                simulation.departure[i] = simulation.now
            flow = Flow(streams, simulation.held(streams), self.uses(streams[0]))
            if flow.alone == 0:
                self.deliver(flow)
            else:
                self.flows.append(flow)
                self.changed = True

    def uses(self, e: int) -> dict[tuple[str, int, int], float]:
        """What full speed takes of a link and two cards."""
        task, (a, b) = self.simulation.task, self.simulation.ends(e)
        problem, (size, tuples) = task.problem, task.flows[e]
        alone = task.alone(e, a, b) or 1.0
        return {
            ("link", a, b): (size * problem.seconds_per_byte[a][b] + tuples * problem.gap) / alone,
            ("out", a, -1): size * problem.egress[a] / alone,
            ("in", b, -1): size * problem.ingress[b] / alone,
        }

    def deliver(self, flow: Flow) -> None:
        """All streams of a transfer arrive."""
        simulation = self.simulation
        for e in flow.streams:
            besides = simulation.task.besides(e, *simulation.ends(e))
            simulation.at(simulation.now + besides, simulation.came, e)

    def settle(self) -> bool:
        """Decide at the end of an instant who sends; whether anything changed."""
        if not self.changed and self.simulation.now not in self.upcoming():
            return False
        now, self.changed = self.simulation.now, False
        for flow in self.flows:
            flow.left -= flow.share * (now - self.settled) / flow.alone
        self.settled = now
        through = [flow for flow in self.flows if flow.due <= now or flow.left <= TIE]
        self.flows = [flow for flow in self.flows if flow not in through]
        for flow in through:
            self.deliver(flow)
        self.fill()
        for flow in self.flows:
            flow.due = now + flow.left * flow.alone / flow.share
        return True

    def fill(self) -> None:
        """Raise all shares together."""
        gaining, used = list(self.flows), defaultdict(float)
        while gaining:
            demand: dict[Any, float] = defaultdict(float)
            for flow in gaining:
                for resource, use in flow.uses.items():
                    demand[resource] += use
            levels = {r: max(0.0, 1 - used[r]) / total for r, total in demand.items() if total}
            level = min([1.0, *levels.values()])
            full = {r for r, limit in levels.items() if limit <= level * (1 + TIE)}
            stays = [
                flow
                for flow in gaining
                if level >= 1 or any(use and r in full for r, use in flow.uses.items())
            ]
            for flow in stays:
                flow.share = level
                for resource, use in flow.uses.items():
                    used[resource] += use * level
            gaining = [flow for flow in gaining if flow not in stays]

    def upcoming(self) -> list[float]:
        """When something will happen that no step in the heap says."""
        return [min(flow.due for flow in self.flows)] if self.flows else []


NETWORKS = {"free": Free, "sender": Sender, "link": Link, "port": Port, "shared": Shared}
