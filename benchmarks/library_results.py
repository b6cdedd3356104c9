"""Results on the library: placers, plans and foreign programs; writes a table.

    python benchmarks/library_results.py [--entries 12] [-o PAGE]

Methods of others take part where their packages are installed: ``pip install --no-deps kahip
mtkahypar anrg-saga pysmt``. Results are added to --results, so that the command continues where it
was interrupted. Fewer entries are the first of more entries.
"""

import argparse
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from library_method import SAGA
from library_page import table
from library_plans import METHODS, planner_run
from library_runs import LibraryRun, placer_run, runs

from streamplace.library import open_library
from streamplace.library.folder import Library, LibraryEntry
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.registry import PLACERS

LEAST_OPERATORS = 7
"""Placements of fewer operators are found by everybody."""
SHOWN = "auto,exact,heft,metis"
SCHEDULERS = (
    "BIL", "Cpop", "DPS", "Duplex", "ETF", "FCP", "FLB", "FastestNode", "GDL", "Hbmct", "Heft",
    "MCT", "MET", "MST", "MaxMin", "MinMin", "Msbc", "OLB", "Sufferage", "WBA",
)  # fmt: skip
"""Schedulers of SAGA, but for BruteForce, SMT and Hybrid, which enumerate or ask others."""
GOLDEN = (5**0.5 - 1) / 2


def methods(objective: str, placers: list[str]) -> Iterator[str]:
    """Everything that places for an objective."""
    yield from (name for name in placers if PLACERS[name].judges(OBJECTIVES[objective]))
    yield "CP-SAT"
    if objective == "makespan":
        yield from (SAGA + name for name in SCHEDULERS if find_spec("saga"))
    else:
        partitioners = {"kahip": "KaHIP", "mtkahypar": "Mt-KaHyPar"}
        yield from (name for package, name in partitioners.items() if find_spec(package))


def spread(library: Library, objective: str, count: int) -> list[LibraryEntry]:
    """Entries of an objective, evenly spread, without those that a glance solves.

    Fewer are the first of more: positions are ordered by multiples of the golden ratio.
    """
    entries = [
        entry
        for entry in library.entries
        if entry.objective == objective
        and entry.proof != "trivial"
        and (objective == "plan" or library.instance(entry.instance).operators >= LEAST_OPERATORS)
    ]
    order = sorted(range(len(entries)), key=lambda i: i * GOLDEN % 1)
    return [entries[i] for i in order[:count]]


def measured(library: Library, options: argparse.Namespace) -> Iterator[LibraryRun]:
    """Run everything that places and plans; yield all results."""
    for objective in ("throughput", "makespan"):
        entries = spread(library, objective, options.entries)
        placing = methods(objective, options.placers.split(","))
        yield from runs(entries, list(placing), partial(placer_run, library), options.results)
    plans = spread(library, "plan", options.plans)
    yield from runs(plans, METHODS, partial(planner_run, library), options.results)


def main() -> None:
    """Run everything, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--placers", default=SHOWN, help="separated by commas")
    parser.add_argument("--entries", type=int, default=12, help="of throughput, and of makespan")
    parser.add_argument("--plans", type=int, default=1000, help="entries of plans")
    parser.add_argument("--results", type=Path, default=Path("library-results.jsonl"))
    parser.add_argument("-o", type=Path, default=Path("library-results.md"))
    options = parser.parse_args()
    stopwatch.clock = time.process_time
    library, records = open_library(), []
    for record in measured(library, options):
        records.append(record)
        print(record.instance, record.method, record.value, flush=True)
    options.o.write_text("\n".join(table(library, records)) + "\n")


if __name__ == "__main__":
    main()
