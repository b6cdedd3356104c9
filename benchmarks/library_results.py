"""Results on the library: placers, plans and foreign programs; writes a page of tables.

    python benchmarks/library_results.py [--peers FOLDER] [--saga PYTHON] [--entries 12] [-o PAGE]

FOLDER has the packages kahip and mtkahypar (pip install --target FOLDER kahip mtkahypar), PYTHON
is an interpreter with anrg-saga; what is not given is left out. Results are added to
--results, so that the command continues where it was interrupted. Fewer entries are the first of
more entries.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from library_page import write_page
from library_plans import planner_runs
from library_runs import PROGRAMS, LibraryRun, Method, placer_method, runs

from streamplace.library import open_library
from streamplace.library.folder import Library, LibraryEntry
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

LEAST_OPERATORS = 7
"""Placements of fewer operators are found by everybody."""
SHOWN = (
    "anneal", "auto", "exact", "foresight", "giph", "heft", "metis", "min-min", "peft", "pilot",
    "placeto", "random",
)  # fmt: skip
SEARCHES = ("anneal", "auto", "exact", "CP-SAT")
"""Methods that use all of their time; they are measured with several limits."""
SECONDS, LIMITS = 1.0, (0.1, 0.3, 1.0, 3.0)
SAGA = (
    "BIL", "Cpop", "DPS", "Duplex", "ETF", "FCP", "FLB", "FastestNode", "GDL", "Hbmct", "Heft",
    "MCT", "MET", "MST", "MaxMin", "MinMin", "Msbc", "OLB", "Sufferage", "WBA",
)  # fmt: skip
"""Schedulers of SAGA, but for BruteForce, SMT and Hybrid, which enumerate or ask others."""
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Programs:
    """Where programs of other projects are: a folder of packages, and an interpreter with SAGA."""

    peers: str = ""
    saga: str = ""


def methods(objective: str, placers: Sequence[str], programs: Programs) -> Iterator[Method]:
    """Everything that places for an objective."""
    for name in placers:
        if PLACERS[name].judges(OBJECTIVES[objective]):
            yield placer_method(name)
    of_peers = ("env", f"PYTHONPATH={programs.peers}", sys.executable)
    if objective == "throughput":
        yield program("METIS", sys.executable, "partition.py", "metis")
        for name, word in (("KaHIP", "kahip"), ("Mt-KaHyPar", "mtkahypar")):
            if programs.peers:
                yield program(name, *of_peers, "partition.py", word)
    else:
        for word in SAGA if programs.saga else ():
            yield program(f"SAGA-{word}", programs.saga, "saga_schedulers.py", word)
    model = program("CP-SAT", sys.executable, "cpsat.py", objective)
    yield Method(model.name, (*model.words, "--seconds", "{seconds}"))


def program(name: str, *words: str) -> Method:
    """Method of a program of `library_programs`, which reads a problem and writes a placement."""
    called = (str(PROGRAMS / word) if word.endswith(".py") else word for word in words)
    return Method(name, (*called, "{problem}", "{answer}"))


def spread(library: Library, objective: str, count: int) -> list[LibraryEntry]:
    """Entries of an objective, evenly spread, without those that a glance solves.

    Fewer are the first of more: positions are ordered by multiples of the golden ratio.
    """
    entries = [
        entry
        for entry in library.entries
        if entry.objective == objective
        and entry.proof != "trivial"
        and (objective == "plan" or operators(library, entry) >= LEAST_OPERATORS)
    ]
    order = sorted(range(len(entries)), key=lambda i: i * GOLDEN % 1)
    return [entries[i] for i in order[:count]]


def operators(library: Library, entry: LibraryEntry) -> int:
    """Number of operators of an entry."""
    return library.instance(entry.instance).operators


def measured(
    library: Library, options: argparse.Namespace, programs: Programs
) -> Iterator[LibraryRun]:
    """Run everything that places; yield all results."""
    for objective in ("throughput", "makespan"):
        entries = spread(library, objective, options.entries)
        every = list(methods(objective, options.placers.split(","), programs))
        searches = [method for method in every if method.name in SEARCHES]
        others = [method for method in every if method.name not in SEARCHES]
        for some, limits in ((searches, LIMITS), (others, (SECONDS,))):
            yield from runs(library, entries, some, limits, options.results)


def planned(library: Library, options: argparse.Namespace) -> Iterator[LibraryRun]:
    """Run everything that plans; yield all results."""
    entries = spread(library, "plan", options.plans)
    yield from planner_runs(library, entries, options.results.with_suffix(".plans.jsonl"))


def main() -> None:
    """Run everything, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--placers", default=",".join(SHOWN), help="separated by commas")
    parser.add_argument("--peers", default="")
    parser.add_argument("--saga", default="")
    parser.add_argument("--entries", type=int, default=12, help="of throughput, and of makespan")
    parser.add_argument("--plans", type=int, default=1000, help="entries of plans")
    parser.add_argument("--results", type=Path, default=Path("library-results.jsonl"))
    parser.add_argument("-o", type=Path, default=Path("library-results.md"))
    options = parser.parse_args()
    library, records = open_library(), []
    for record in measured(library, options, Programs(options.peers, options.saga)):
        records.append(record)
        print(record.instance, record.method, record.limit, record.value, flush=True)
    write_page(options.o, library, [*records, *planned(library, options)])


if __name__ == "__main__":
    main()
