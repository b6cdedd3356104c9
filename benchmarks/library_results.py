"""Results on the library: placers, plans and foreign programs; writes a table.

    python benchmarks/library_results.py [--entries 12] [-o PAGE]

Methods of others take part where their packages are installed: ``pip install --no-deps kahip
mtkahypar anrg-saga pysmt``. Results are added to --results, so that the command continues where it
was interrupted. Fewer entries are the first of more entries.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from math import ceil, exp, log
from pathlib import Path
from typing import NamedTuple

from library_documents import BITS_PART
from library_method import SAGA
from library_proofs import check, value_of
from plan import AUTOSCALER
from studies import append_row, read_rows, table

from streamplace import Offer, Operator, Stream, StreamGraph, plan
from streamplace.errors import StreamplaceError
from streamplace.io.placements import read_placement
from streamplace.io.problems import write_problem
from streamplace.library import open_library
from streamplace.library.documents import BITS
from streamplace.library.folder import Library, LibraryEntry
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.registry import PLACERS, Budget
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.search import first_fit_machines

PROGRAM = Path(__file__).parent / "library_method.py"
SECONDS = 1.0
"""Processor time of a search."""
GRACE_S = 10.0
"""Time that a run may take in addition to its search, to start and to read and write files."""
ELAPSED_FACTOR = 10
"""Elapsed seconds per second of processor time, for machines with other work."""
MEMORY = 4 * 2**30
THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


@dataclass(frozen=True, slots=True)
class LibraryRun:
    """One run; the value is None without a legal answer, `seconds` are of the processor."""

    instance: str
    objective: str
    method: str
    value: float | None
    seconds: float

    @property
    def key(self) -> tuple[str, str, str]:
        """Key that identifies a run in a file of results."""
        return self.instance, self.objective, self.method


def runs(
    entries: Sequence[LibraryEntry],
    methods: Iterable[str],
    run: Callable[[LibraryEntry, str], LibraryRun],
    results: Path,
) -> Iterator[LibraryRun]:
    """Run what a file of results does not have yet; yield all runs.

    The first run of a method counts for nothing: it compiles and caches kernels.
    """
    present = {row.key: row for row in (LibraryRun(**row) for row in read_rows(results))}
    compiled = set[tuple[str, str]]()
    for entry, method in product(entries, methods):
        key = entry.instance, entry.objective, method
        if key not in present:
            if (method, entry.objective) not in compiled:
                run(entry, method)
                compiled.add((method, entry.objective))
            present[key] = run(entry, method)
            append_row(results, asdict(present[key]))
        yield present[key]


def placer_run(library: Library, entry: LibraryEntry, method: str) -> LibraryRun:
    """Place once, within limits of time and memory."""
    problem = library.problem(entry.instance)
    with tempfile.TemporaryDirectory() as folder:
        file, answer = Path(folder) / "problem.json", Path(folder) / "answer.json"
        write_problem(problem, file)
        seconds = ceil(SECONDS + GRACE_S)
        begin, value = spent(), None
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["taskset", "-c", str(max(os.sched_getaffinity(0))),
                 "prlimit", f"--cpu={seconds}", f"--as={MEMORY}",
                 sys.executable, PROGRAM, method, file, answer, entry.objective, str(SECONDS)],
                env={**os.environ, **THREADS}, timeout=ELAPSED_FACTOR * seconds,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        with suppress(StreamplaceError):  # no answer, or an illegal one
            placement = read_placement(answer, problem)
            problem.check(placement)
            value = float(OBJECTIVES[entry.objective].value(problem, placement))
    used = round(spent() - begin, 3)
    return LibraryRun(entry.instance, entry.objective, method, value, used)


def spent() -> float:
    """Processor seconds of all processes that have ended and that this one waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


MIPS = 2500.0
Machines = list[list]
Planner = Callable[[StreamGraph, Catalogue], Machines]


def graph_and_offers(document: dict) -> tuple[StreamGraph, Catalogue]:
    """Graph and offers of an instance, whose kinds differ in price and limits alone."""
    rows, kinds, second = document["operators"], document["kinds"], document["second"]
    targets = {v for _, v, _ in document["streams"]}
    operators = [
        Operator(
            f"v{v}",
            ipt=row["pieces"] * next(x for x in row["work"] if x is not None) / second * MIPS * 1e6,
            memory=row["memory"] * row["pieces"],
            rate=0.0 if v in targets else 1.0,
            parallelism=row["pieces"],
            max_parallelism=row["pieces"],
        )
        for v, row in enumerate(rows)
    ]
    streams = [
        Stream(
            f"v{u}",
            f"v{v}",
            payload=bits * rows[u]["pieces"] * rows[v]["pieces"] / BITS_PART / BITS,
            partitioning="hash",
        )
        for u, v, bits in document["streams"]
    ]
    offers = [
        Offer(
            f"k{k}",
            kind["price"],
            mips=MIPS,
            cores=kind["cpu"] // second,
            memory=kind.get("memory", float("inf")),
            slots=kind.get("slots", float("inf")),
            egress=kind.get("out", float("inf")) / BITS_PART,
            ingress=kind.get("in", float("inf")) / BITS_PART,
            at_most=kind["at_most"],
        )
        for k, kind in enumerate(kinds)
    ]
    graph = StreamGraph.of(document["name"], operators, streams, fires="all")
    return graph, Catalogue.of(offers)


def planned(graph: StreamGraph, catalogue: Catalogue) -> Machines:
    """Plan of streamplace."""
    result = plan(graph, offers=catalogue, keep_parallelism=True, budget=Budget(SECONDS))
    contents: dict[str, Counter] = {name: Counter() for name in result.cluster.devices.name}
    for operator, places in result.subtasks().items():
        for machine, count in places.items():
            contents[machine][int(operator[1:])] += count
    return [
        [int(name.partition("-")[0][1:]), [[v, a] for v, a in sorted(on.items())]]
        for name, on in contents.items()
    ]


def first_fit(graph: StreamGraph, catalogue: Catalogue) -> Machines:
    """First fit decreasing by dot product, on the cheapest machines of one type."""
    packed = first_fit_machines(demand_of(graph, fixed=True), catalogue)
    if packed is None:
        return []
    return [
        [kind, [[v, a] for v, a in enumerate(row) if a]]
        for kind, row in zip(packed.kinds.tolist(), packed.rows.tolist(), strict=True)
    ]


def autoscaler(graph: StreamGraph, catalogue: Catalogue) -> Machines:
    """First fit for the rate that Flink's autoscaler provides."""
    return first_fit(graph.at_rate(graph.source_rate * AUTOSCALER), catalogue)


METHODS: dict[str, Planner] = {
    "plan": planned,
    "first fit": first_fit,
    "autoscaler's rule": autoscaler,
}


def planner_run(library: Library, entry: LibraryEntry, method: str) -> LibraryRun:
    """Make a plan, and have the checker value it."""
    document = json.loads(library.instance_file(entry.instance).read_bytes())
    question = graph_and_offers({**document, "name": entry.instance})
    machines, value, begin = [], None, time.process_time()
    with suppress(StreamplaceError):  # no plan within the budget
        machines = METHODS[method](*question)
    seconds = round(time.process_time() - begin, 3)
    with suppress(check.RefusedError):
        value = float(value_of(document, {"machines": machines}))
    return LibraryRun(entry.instance, "plan", method, value, seconds)


SHIFT = 0.01
"""Shift of gaps in their geometric mean, so that gaps of 0 count."""
SOLVED = 1e-6
"""Gap to the best known value up to which an entry counts as solved."""


class MethodSummary(NamedTuple):
    """Results of a method; an entry without an answer has gap 1."""

    gap: float  # shifted geometric mean of the gaps to the best known values
    method: str
    solved: float  # share of the entries on which it reaches the best known value
    seconds: float  # mean processor time


def gap(entry: LibraryEntry, value: float | None) -> float:
    """Distance of a value from the best known one, as a share of the larger one."""
    if value is None:
        return 1.0
    sign = 1 if entry.objective == "throughput" else -1
    largest = max(abs(value), abs(entry.value))
    return min(1.0, max(0.0, sign * (entry.value - value) / largest)) if largest else 0.0


def summaries(library: Library, runs: Iterable[LibraryRun], objective: str) -> list[MethodSummary]:
    """Summaries of methods for an objective, best first."""
    entries = {e.instance: e for e in library.entries if e.objective == objective}
    groups: dict[str, list[LibraryRun]] = defaultdict(list)
    for run in runs:
        if run.objective == objective:
            groups[run.method].append(run)
    rows = []
    for method, group in groups.items():
        gaps = [gap(entries[run.instance], run.value) for run in group]
        solved = sum(x <= SOLVED for x in gaps) / len(gaps)
        mean = exp(sum(log(x + SHIFT) for x in gaps) / len(gaps)) - SHIFT
        seconds = sum(run.seconds for run in group) / len(group)
        rows.append(MethodSummary(mean, method, solved, seconds))
    return sorted(rows)


def page(library: Library, runs: Iterable[LibraryRun]) -> str:
    """Table of all methods."""
    lines = [
        (objective, row.method, f"{row.solved:.0%}", f"{row.gap:.1%}", f"{row.seconds:.1f}")
        for objective in ("throughput", "makespan", "plan")
        for row in summaries(library, runs, objective)
    ]
    return table(("class", "method", "solved", "shifted gap", "seconds"), lines, texts=2)


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
    options.o.write_text(page(library, records))


if __name__ == "__main__":
    main()
