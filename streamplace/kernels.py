"""Compilation of the kernels that common commands need, ahead and in parallel.

``python -m streamplace.kernels`` does so while an image is built, or before a sweep. Otherwise each
kernel is compiled when a command first needs it. All rehearsals are carried out: calls of `place`,
`plan` and `simulate` on small problems. Calls, rather than a list of kernels and signatures, cannot
contradict the code that they run.
"""

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from streamsim import jit
from streamsim.kernel_cache import folder_of

from streamplace.cores import available_cores
from streamplace.model.message_text import counted

if TYPE_CHECKING:
    from streamplace import StreamGraph

LOG = logging.getLogger(__name__)


def compile_kernels() -> None:
    """Log that kernels are compiled, and carry out the rehearsals in one process per core."""
    from streamplace.evaluate.parallel import parallel_map
    from streamplace.progress import progress, set_aside

    jobs = min(available_cores(), len(REHEARSALS))
    LOG.warning("compiling kernels on %s …", counted(jobs, "core"))
    with set_aside(), progress("compiling", len(REHEARSALS)) as tick:
        done = parallel_map(_rehearse, REHEARSALS, jobs, lost=lambda *_: False, few=0)
        for name, complete in zip(REHEARSALS, tick.over(done), strict=True):
            if not complete:
                LOG.warning("kernels of %s are compiled when they are needed", name)


def _rehearse(name: str) -> bool:
    """Carry out a rehearsal with logging disabled; return whether it succeeded."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        REHEARSALS[name]()
    except Exception:
        return False
    finally:
        logging.disable(before)
    return True


def _branches(seed: int = 12, copies: int = 1) -> "StreamGraph":
    """Source, three branches of three operators, and sink."""
    from streamplace.families.registry import FAMILIES, graph_of

    family = FAMILIES["branched"]
    parameters = family.parameters(branches=3, depth=3, devices=3, copies=copies)
    *_, graph = family.generate(parameters, seed=seed)
    return graph_of(graph)


def _tasks() -> "StreamGraph":
    from streamplace import StreamGraph

    graph = _branches()
    return StreamGraph.of("rehearsal", graph.operators, graph.streams, fires="all")


def _pipelines() -> "StreamGraph":
    """Two sources whose tuples never meet; three devices do not carry their full rates."""
    from streamplace import Operator, Stream, StreamGraph

    operators = [
        Operator(f"{pipe}{i}", ipt=1e5 * (1 + i), payload=1e3, rate=1e4 * (i == 0))
        for pipe in "ab"
        for i in range(4)
    ]
    streams = [Stream(f"{pipe}{i}", f"{pipe}{i + 1}") for pipe in "ab" for i in range(3)]
    return StreamGraph.of("rehearsal", operators, streams)


def _place(
    graph: "Callable[[], StreamGraph]", *placers: str, evaluations: int = 500, **options: Any
) -> None:
    """Place by every part of a search, however busy the machine is."""
    from streamplace import Budget, place

    for placer in placers:
        given: dict[str, Any] = {"budget": Budget(evaluations=evaluations), **options}
        place(graph(), 3, placer=placer, **given).report()


def _rules() -> None:
    """Operators that share a device, that must not, and that may not run on all of them."""
    from streamplace import Constraints

    a, b, c, d, *_ = _branches().operators.name
    allowed = {c: ["d0", "d1"], a: ["d0", "d2"]}
    rules = Constraints(colocate=[[a, b]], exlocate=[[c, d]], allowed=allowed)
    _place(_branches, "anneal", constraints=rules)


def _simulate() -> None:
    """A placement that single moves improve; queues without a record of the ticks, and with one."""
    from streamplace import place, simulate, simulate_queues

    found = place(_branches(), 3, placer="round-robin")
    simulate(found.problem, found.placement).report()
    simulate_queues(found.problem, found.placement)


def _plan() -> None:
    from streamplace import Budget, Offer, plan

    offers = [Offer("small", 0.1, cores=4, egress=1e9), Offer("large", 0.36, cores=16, egress=5e9)]
    plan(_branches(), rate=3e4, offers=offers, budget=Budget(evaluations=500)).report()


REHEARSALS: Final[dict[str, Callable[[], object]]] = {
    "simulations": _simulate,
    "tasks": partial(_place, _tasks, "auto", "exact"),
    "auto": partial(_place, _branches, "auto"),
    "makespan": partial(_place, _branches, "auto", objective="makespan"),
    "plan": _plan,
    # A proof that has to branch; the clock ends it only on a very slow machine.
    "exact": partial(_place, partial(_branches, 1, 2), "exact", rate=1e4, budget="30 s"),
    # The first turn of the peak alone takes a thousand of a part of the evaluations.
    "sources": partial(_place, _pipelines, "auto", evaluations=5000),
    "heft": partial(_place, _tasks, "heft"),
    "lists": partial(_place, _tasks, "peft", "cpop", "foresight"),
    "pilot": partial(_place, _branches, "pilot"),
    "cuts": partial(_place, _branches, "metis", "fuser-oracle", "anneal", "pilot:refine=none"),
    "rules": _rules,
    "devices": partial(_place, _branches, "auto", objective="devices", require="throughput>=0.5"),
    "latency": partial(_place, _branches, "auto", objective="latency"),
}
"""Calls by name, the longest first."""

if __name__ == "__main__":
    if folder_of(jit.__name__) is None:
        sys.exit(
            "error: kernels can be kept nowhere: neither beside the code nor in the cache folder of"
            " the user; name a folder that only you can write to by NUMBA_CACHE_DIR"
        )
    compile_kernels()
