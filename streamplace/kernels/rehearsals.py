"""Calls that together compile what common commands need, on small problems.

Calls, rather than a list of kernels and signatures, cannot contradict the code that they run. As a
process, this module carries out the rehearsals whose names it reads, and tells of every kernel.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from streamplace.model.graph import StreamGraph

SEED: Final = 12
EVALUATIONS: Final = 500
"""Enough for every part of a search, however busy the machine is."""
DONE: Final = "done"
"""Line that the process prints after a rehearsal; every kernel before it prints an empty line."""
RULES: Final = ("metis", "metis-oracle", "fuser-oracle", "anneal", "pilot:refine=none")
LISTS: Final = ("peft", "cpop", "foresight")


class Rehearsal(NamedTuple):
    """A call, and the approximate CPU seconds of the kernels that no longer rehearsal compiles."""

    call: Callable[[], None]
    seconds: float


def _branches(seed: int = SEED, number: int = 0) -> "StreamGraph":
    """Source, three branches of three operators, and sink."""
    from streamplace.families.registry import FAMILIES
    from streamplace.model.graph import StreamGraph

    family = FAMILIES["branched"]
    parameters = family.parameters(branches=3, depth=3, devices=3, copies=number + 1)
    *_, graph = family.generate(parameters, seed=seed)
    assert isinstance(graph, StreamGraph)
    return graph


def _tasks() -> "StreamGraph":
    from streamplace.model.graph import StreamGraph
    from streamplace.model.operators import Operator
    from streamplace.model.streams import Stream

    operators = [Operator(name, ipt=1e9 * (2 + i), payload=1e6) for i, name in enumerate("abcd")]
    ends = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    return StreamGraph.of("rehearsal", operators, [Stream(*pair) for pair in ends], fires="all")


def _pipelines() -> "StreamGraph":
    """Two sources whose tuples never meet; three devices do not carry their full rates."""
    from streamplace.model.graph import StreamGraph
    from streamplace.model.operators import Operator
    from streamplace.model.streams import Stream

    operators = [Operator(name, ipt=1e5 * (1 + i), payload=1e3) for i, name in enumerate("abcdef")]
    operators += [Operator(name, ipt=1e4, payload=1e3, rate=1e4) for name in ("one", "two")]
    ends = [("one", "a"), ("a", "b"), ("b", "c"), ("two", "d"), ("d", "e"), ("e", "f")]
    return StreamGraph.of("rehearsal", operators, [Stream(*pair) for pair in ends])


def _place(graph: "Callable[[], StreamGraph]", *placers: str, objective: str = "") -> None:
    from streamplace.api import place
    from streamplace.placers.registry import Budget

    budget = Budget(evaluations=EVALUATIONS)
    for name in placers:
        place(graph(), 3, placer=name, objective=objective, budget=budget).report()


def _rule() -> None:
    """Operators that share a device, that must not, and that may not run on all of them."""
    from streamplace.api import place
    from streamplace.model.constraints import Constraints
    from streamplace.placers.registry import Budget

    graph = _branches()
    a, b, c, d, *_ = graph.operators.name
    rules = Constraints(
        colocate=[[a, b]], exlocate=[[c, d]], allowed={c: ["d0", "d1"], a: ["d0", "d2"]}
    )
    place(graph, 3, placer="anneal", constraints=rules, budget=Budget(evaluations=EVALUATIONS))


def _prove() -> None:
    """A proof that has to branch; the clock ends it only on a very slow machine."""
    from streamplace.api import place

    place(_branches(seed=1, number=1), 3, placer="exact", rate=1e4, budget="30 s")


def _advise() -> None:
    """A placement that single moves improve."""
    from streamplace.api import place, simulate

    found = place(_branches(), 3, placer="round-robin")
    simulate(found.problem, found.placement).report()


def _queues() -> None:
    """Both forms of the engine: without a record of the ticks, and with one."""
    from streamplace.api import place, simulate_queues

    found = place(_branches(), 3, placer="round-robin")
    simulate_queues(found.problem, found.placement)


def _plan() -> None:
    from streamplace.api import plan
    from streamplace.placers.registry import Budget
    from streamplace.planning.offers import Offer

    offers = [Offer("small", 0.1, cores=4, egress=1e9), Offer("large", 0.36, cores=16, egress=5e9)]
    plan(_branches(), rate=3e4, offers=offers, budget=Budget(evaluations=EVALUATIONS)).report()


REHEARSALS: Final[dict[str, Rehearsal]] = {
    "queues": Rehearsal(_queues, 60),
    "tasks": Rehearsal(partial(_place, _tasks, "auto", "exact"), 36),
    "auto": Rehearsal(partial(_place, _branches, "auto"), 32),
    "makespan": Rehearsal(partial(_place, _branches, "auto", objective="makespan"), 28),
    "plan": Rehearsal(_plan, 16),
    "exact": Rehearsal(_prove, 8),
    "sources": Rehearsal(partial(_place, _pipelines, "auto"), 8),
    "advice": Rehearsal(_advise, 3),
    "heft": Rehearsal(partial(_place, _tasks, "heft"), 3),
    "lists": Rehearsal(partial(_place, _tasks, *LISTS), 3),
    "pilot": Rehearsal(partial(_place, _branches, "pilot"), 3),
    "rules": Rehearsal(partial(_place, _branches, *RULES), 3),
    "constraints": Rehearsal(_rule, 2),
}
"""Rehearsals by name, the longest first."""


def main() -> None:
    """Carry out the rehearsals of stdin, one per line, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    logging.disable()
    from numba.core import event
    from streamsim.jit import compile_at_once

    class Counter(event.Listener):
        def on_start(self, event: Any) -> None: ...

        def on_end(self, event: Any) -> None:
            _tell("")

    event.register("numba:compile", Counter())  # type: ignore[no-untyped-call]
    compile_at_once()
    for line in sys.stdin:
        REHEARSALS[line.strip()].call()
        _tell(DONE)


def _tell(word: str) -> None:
    try:
        print(word, flush=True)
    except OSError:  # the parent was killed
        os._exit(1)


if __name__ == "__main__":
    main()
