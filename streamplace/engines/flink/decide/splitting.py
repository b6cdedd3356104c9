"""Splitting: whether two tasks in place of a chain that limits the rate would pay.

A chain is one thread per subtask, on one device. As two tasks, it can use two threads and two
devices, but every tuple between them has to be sent. Where stacks were sampled, the share of each
operator in the CPU of the chain is known. Otherwise several divisions of the CPU are tried, and the
best of them is a bound of what splitting can gain. Flink does not count the tuples within a chain:
as many are assumed to pass from one task to the other as the chain reads or sends, whichever are
fewer, and as small.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

import numpy as np

from streamplace.engines.flink.decide.candidates import Judge, Question, names_of, searched
from streamplace.engines.flink.decide.decision import PREDICTED, Decision, interval
from streamplace.engines.flink.decide.held_back import rows_of, without
from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.measure.local_cost import ASSUMED_PER_BYTE, measured_work
from streamplace.engines.flink.measure.sending_cost import BYTES_OF_A_TUPLE
from streamplace.engines.flink.pin.names import FUSED
from streamplace.engines.flink.program.chains import operators_in
from streamplace.engines.live import Measurement
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted, shown
from streamplace.model.operators import Operator
from streamplace.model.streams import Stream
from streamplace.model.units import digits
from streamplace.placers.registry import USUAL_BUDGET, Budget

SHARES = (1 / 2, 1 / 4, 3 / 4)
"""Shares of the first task in the CPU of a chain that are tried if the shares are unknown."""
MOST_CUTS = 3
"""Number of cuts that are tried, those first that divide the CPU best."""


@dataclass(frozen=True, slots=True)
class Splitting:
    """A chain that would pay as two tasks."""

    chain: str  # its name
    # The operator that would begin the second task, or several if the CPU of each is unknown.
    before: tuple[str, ...]
    # Tuples/s of the chosen layout, and at best with the chain split.
    now: float
    carries: float
    is_measured: bool  # whether the CPU of its operators was measured

    def __str__(self) -> str:
        about = "about" if self.is_measured else "at most about"
        names = " or ".join(map(quoted, self.before))
        which = "," if len(self.before) == 1 else ", whichever divides its CPU time best,"
        return (
            f"the chain {shown(self.chain)} limits the job to {digits(self.now)} tuples/s; if it "
            f"is split in front of {names}{which} the job can be placed for {about} "
            f"{digits(self.carries)} tuples/s, {100 * (self.carries / self.now - 1):.0f} % more: "
            "in the program, call startNewChain() on that operator (disableChaining() on a sink), "
            "start the job again with its state, and give 'flink move' again"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the proposal as a JSON document."""
        return {
            "chain": self.chain,
            "before": [*self.before],
            "carries": self.carries,
            "measured": self.is_measured,
        }


class _Cut(NamedTuple):
    """Operators that may begin the second task, and the share of the first task in the CPU."""

    before: tuple[str, ...]
    share: float


def splitting(
    question: Question, answer: Decision, budget: Budget = USUAL_BUDGET
) -> Splitting | None:
    """Split the chain that limits the chosen layout in two, if at best that pays.

    It pays if the gain exceeds the error with which layouts of one job are compared. Of a layout
    that carries nothing by the model, no gain is known.
    """
    judge, measured = Judge(question), question.measured
    graph, now = measured.graph, answer.chosen.carries.value
    most = inf if judge.rate is None else judge.rate
    enough = interval([now], PREDICTED, [answer.chosen.kept]).high
    chain = _limiting_chain(judge, measured, answer.chosen.layout)
    if chain is None or not now or not question.free:
        return None
    if min(most, _at_most(judge, measured)) <= enough:
        return None
    best = None
    places = names_of(graph, question.present)[chain]
    for cut in _cuts(graph, chain):
        first, second = _halves(chain)
        asked = replace(
            question,
            measured=replace(
                measured,
                graph=_split(graph, chain, cut.share),
                shares=_split_shares(measured.shares, chain),
                held_back=frozenset(_split_names(measured.held_back if judge.kept else (), chain)),
            ),
            present={**names_of(graph, question.present), first: places, second: places},
        )
        apart = Judge(asked, judge.scale)
        carries = min(most, apart.carried_if_pinned(searched(asked, apart, budget)))
        if carries > (enough if best is None else best.carries):
            is_measured = bool(measured_work(graph, chain))
            best = Splitting(chain, cut.before, now, carries, is_measured)
    return best


def _limiting_chain(
    judge: Judge, measured: Measurement, layout: dict[str, list[str]]
) -> str | None:
    """Chain with the most CPU where a layout is limited; None if none can be split there.

    The chains of SQL have no operators that a program could name.
    """
    operators = measured.graph.operators
    rows = zip(judge.limit(layout).cpu.tolist(), operators.name, operators.about, strict=True)
    chains = [(load, name) for load, name, about in rows if load and not about]
    chains = [(load, name) for load, name in chains if len(operators_in(name)) > 1]
    return max(chains)[1] if chains else None


def _at_most(judge: Judge, measured: Measurement) -> float:
    """Tuples/s for which all CPUs together are enough."""
    graph, devices = measured.graph, measured.cluster.devices
    work = _work(graph)
    constant = 1e6 * float(graph.operators.constant.sum())
    free = max(0.0, 1e6 * float((devices.speed * devices.cores).sum()) - constant)
    if judge.kept:
        others = _work(without(graph, rows_of(graph, measured.held_back)))
        held = graph.source_rate - judge.kept
        more = (judge.scale * free - others) / (work - others) if work > others else inf
        return judge.kept + held * more
    return judge.scale * graph.source_rate * (free / work if work else inf)


def _work(graph: StreamGraph) -> float:
    """Instructions per second of a graph at its rate."""
    return float((graph.charged_ipt * graph.input_rate).sum())


def _cuts(graph: StreamGraph, chain: str) -> Iterator[_Cut]:
    """Cuts of a chain to try."""
    names = operators_in(chain)
    shares = measured_work(graph, chain)
    if not shares:
        yield from (_Cut(tuple(names[1:]), share) for share in SHARES)
        return
    begun = [share / sum(shares) for share in accumulate(shares)][:-1]
    cuts = [_Cut((name,), share) for name, share in zip(names[1:], begun, strict=True)]
    yield from sorted(cuts, key=lambda cut: abs(cut.share - 1 / 2))[:MOST_CUTS]


def _halves(chain: str) -> tuple[str, str]:
    """Names of the two tasks, which are not taken for those of chains."""
    name = chain.replace(FUSED, " + ")
    return f"{name} (first task)", f"{name} (second task)"


def _split_shares(shares: Shares, chain: str) -> Shares:
    """Shares of subtasks if two tasks take the place of a chain."""
    return {half: own for name, own in shares.items() for half in _split_names([name], chain)}


def _split_names(names: Iterable[str], chain: str) -> list[str]:
    """Names of tasks if two take the place of a chain."""
    halves = {chain: _halves(chain)}
    return [half for name in names for half in halves.get(name, (name,))]


def _split(graph: StreamGraph, chain: str, share: float) -> StreamGraph:
    """Graph in which two tasks take the place of a chain."""
    names, whole = _halves(chain), graph.operators[chain]
    sizes = zip(graph.streams, graph.streams.bytes_per_tuple().tolist(), strict=True)
    beside = [size for stream, size in sizes if chain in (stream.source, stream.target)]
    sent = [stream.selectivity for stream in graph.streams if stream.source == chain]
    passed = min(1.0, max(sent, default=1.0)) or 1.0
    payload = min(beside, default=whole.payload)
    first = replace(
        whole,
        name=names[0],
        ipt=share * whole.ipt,
        payload=payload,
        constant=share * whole.constant,
    )
    second = replace(
        whole,
        name=names[1],
        ipt=(1 - share) * whole.ipt / passed,
        rate=0.0,
        constant=(1 - share) * whole.constant,
    )
    operators: list[Operator] = []
    for one in graph.operators:
        operators += (first, second) if one.name == chain else (one,)
    between = Stream(*names, passed, None, "forward", ipt=_local_ipt(graph, payload))
    streams = [_redirected(stream, chain, passed) for stream in graph.streams]
    return StreamGraph.of(graph.name, operators, [*streams, between], graph.attributes)


def _redirected(stream: Stream, chain: str, passed: float) -> Stream:
    """Stream that ends at the first task or begins at the second one, instead of the chain."""
    first, second = _halves(chain)
    if stream.source == chain:
        return replace(stream, source=second, selectivity=stream.selectivity / passed)
    return replace(stream, target=first) if stream.target == chain else stream


def _local_ipt(graph: StreamGraph, payload: float) -> float:
    """Instructions per tuple between two threads, at both ends, as on the cheapest stream."""
    sizes = graph.streams.bytes_per_tuple() + BYTES_OF_A_TUPLE
    costs = (graph.streams.ipt / sizes)[graph.streams.ipt > 0]
    assumed = 2 * ASSUMED_PER_BYTE * 1e6 * float(graph.attributes.get("mips", 0.0))
    return (float(np.min(costs)) if len(costs) else assumed) * (payload + BYTES_OF_A_TUPLE)
