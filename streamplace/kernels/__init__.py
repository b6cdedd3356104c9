"""Compilation of the kernels that common commands need: once, in parallel, and announced.

The first command that has to compile a kernel first carries out all rehearsals: calls of `place`,
`plan` and `simulate` on small problems. Calls, rather than a list of kernels and signatures, cannot
contradict the code that they run. ``python -m streamplace.kernels`` does so on its own, during an
installation or while an image is built.
"""

import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamsim.kernel_cache import folder_of, turn

from streamplace import __version__
from streamplace.cores import available_cores
from streamplace.model.messages import counted

if TYPE_CHECKING:
    from streamplace import StreamGraph

LOG = logging.getLogger(__name__)
VERSION: Final = __version__
"""Among the constants of this module, so that it names the folder in which `_note` lies."""
EVALUATIONS: Final = 500
"""Enough for every part of a search, however busy the machine is."""
HEARTBEAT: Final = 8.0
"""Seconds after which a line tells how far compiling is, where there is no terminal."""
RULES: Final = ("metis", "metis-oracle", "fuser-oracle", "anneal", "pilot:refine=none")
LISTS: Final = ("peft", "cpop", "foresight")


def prepare_kernels() -> bool:
    """Compile what common commands need, unless this was done; return whether kernels are kept.

    Where they can be kept nowhere, none is compiled. A process waits for another one that does the
    same. One that ends too early leaves kernels, which the next one does not compile again.
    """
    note = _note()
    if note is None:
        return False
    if not note.exists():
        tell = partial(LOG.warning, "another process compiles the kernels; waiting for it …")
        with turn(prepare_kernels, tell):
            if not note.exists():
                _rehearse_all()
                note.touch()
    return True


def _note() -> Path | None:
    """The file that says that kernels are compiled, for this processor and these versions."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    folder = folder_of(__name__)
    processor = numba.config.CPU_NAME or get_host_cpu_name()  # type: ignore[attr-defined]
    name = f"prepared-{sys.implementation.cache_tag}-{numba.__version__}-{processor}"
    return None if folder is None else folder / name


def _rehearse_all() -> None:
    """Announce the rehearsals, and carry them out in one process per core."""
    from streamplace.evaluate.parallel import parallel_map
    from streamplace.progress import heartbeat, progress, set_aside

    jobs = min(available_cores(), len(REHEARSALS))
    LOG.warning("compiling kernels (once per installation) on %s …", counted(jobs, "core"))
    ready: list[str] = []

    def so_far(seconds: int) -> str:
        return f"  {seconds} s, {len(ready)} of {len(REHEARSALS)} groups of kernels …"

    with (
        set_aside(),
        heartbeat(HEARTBEAT, so_far, LOG.warning),
        progress("compiling", len(REHEARSALS)) as tick,
    ):
        done = parallel_map(_rehearse, REHEARSALS, jobs, lost=lambda *_: False, few=0)
        for name, complete in zip(REHEARSALS, tick.over(done), strict=True):
            ready.append(name)
            if not complete:
                LOG.warning("kernels of %s are compiled when they are needed", name)


def _rehearse(name: str) -> bool:
    """Carry out a rehearsal without a word, and without patience; return whether it succeeded."""
    from streamsim.jit import compile_at_once

    before = logging.root.manager.disable
    logging.disable()
    compile_at_once()
    try:
        REHEARSALS[name]()
    except Exception:
        return False
    finally:
        logging.disable(before)
    return True


def _branches(seed: int = 12, number: int = 0) -> "StreamGraph":
    """Source, three branches of three operators, and sink."""
    from streamplace import StreamGraph
    from streamplace.families.registry import FAMILIES

    family = FAMILIES["branched"]
    parameters = family.parameters(branches=3, depth=3, devices=3, copies=number + 1)
    *_, graph = family.generate(parameters, seed=seed)
    assert isinstance(graph, StreamGraph)
    return graph


def _tasks() -> "StreamGraph":
    from streamplace import Operator, Stream, StreamGraph

    operators = [Operator(name, ipt=1e9 * (2 + i), payload=1e6) for i, name in enumerate("abcd")]
    ends = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    return StreamGraph.of("rehearsal", operators, [Stream(*pair) for pair in ends], fires="all")


def _pipelines() -> "StreamGraph":
    """Two sources whose tuples never meet; three devices do not carry their full rates."""
    from streamplace import Operator, Stream, StreamGraph

    operators = [Operator(name, ipt=1e5 * (1 + i), payload=1e3) for i, name in enumerate("abcdef")]
    operators += [Operator(name, ipt=1e4, payload=1e3, rate=1e4) for name in ("one", "two")]
    ends = [("one", "a"), ("a", "b"), ("b", "c"), ("two", "d"), ("d", "e"), ("e", "f")]
    return StreamGraph.of("rehearsal", operators, [Stream(*pair) for pair in ends])


def _place(graph: "Callable[[], StreamGraph]", *placers: str, objective: str = "") -> None:
    from streamplace import Budget, place

    budget = Budget(evaluations=EVALUATIONS)
    for name in placers:
        place(graph(), 3, placer=name, objective=objective, budget=budget).report()


def _sources() -> None:
    """A search that takes turns between the peak and the throughput, on devices of several cores.

    The first turn of the peak alone takes a thousand of a part of the evaluations.
    """
    from streamplace import Budget, Cluster, place

    place(_pipelines(), Cluster.uniform(3, cores=2), budget=Budget(evaluations=5000)).report()


def _objectives() -> None:
    from streamplace import Budget, place

    graph, budget = _branches(), Budget(evaluations=EVALUATIONS)
    place(graph, 3, objective="devices", require="throughput>=0.5", budget=budget)
    place(graph, 3, objective="latency", budget=budget)


def _rule() -> None:
    """Operators that share a device, that must not, and that may not run on all of them."""
    from streamplace import Budget, Constraints, place

    graph = _branches()
    a, b, c, d, *_ = graph.operators.name
    rules = Constraints(
        colocate=[[a, b]], exlocate=[[c, d]], allowed={c: ["d0", "d1"], a: ["d0", "d2"]}
    )
    place(graph, 3, placer="anneal", constraints=rules, budget=Budget(evaluations=EVALUATIONS))


def _prove() -> None:
    """A proof that has to branch; the clock ends it only on a very slow machine."""
    from streamplace import place

    place(_branches(seed=1, number=1), 3, placer="exact", rate=1e4, budget="30 s")


def _advise() -> None:
    """A placement that single moves improve."""
    from streamplace import place, simulate

    found = place(_branches(), 3, placer="round-robin")
    simulate(found.problem, found.placement).report()


def _queues() -> None:
    """Both forms of the engine: without a record of the ticks, and with one."""
    from streamplace import place, simulate_queues

    found = place(_branches(), 3, placer="round-robin")
    simulate_queues(found.problem, found.placement)


def _plan() -> None:
    from streamplace import Budget, Offer, plan

    offers = [Offer("small", 0.1, cores=4, egress=1e9), Offer("large", 0.36, cores=16, egress=5e9)]
    plan(_branches(), rate=3e4, offers=offers, budget=Budget(evaluations=EVALUATIONS)).report()


REHEARSALS: Final[dict[str, Callable[[], object]]] = {
    "queues": _queues,
    "tasks": partial(_place, _tasks, "auto", "exact"),
    "auto": partial(_place, _branches, "auto"),
    "makespan": partial(_place, _branches, "auto", objective="makespan"),
    "plan": _plan,
    "exact": _prove,
    "sources": _sources,
    "advice": _advise,
    "heft": partial(_place, _tasks, "heft"),
    "lists": partial(_place, _tasks, *LISTS),
    "pilot": partial(_place, _branches, "pilot"),
    "rules": partial(_place, _branches, *RULES),
    "constraints": _rule,
    "objectives": _objectives,
}
"""Calls by name, the longest first."""
