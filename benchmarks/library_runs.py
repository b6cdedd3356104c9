"""Runs of placers and programs on entries of the library, one after the other on one core."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from math import ceil
from pathlib import Path

from streamplace.errors import StreamplaceError
from streamplace.io.placements import read_placement
from streamplace.io.problems import write_problem
from streamplace.library.folder import Library, LibraryEntry
from streamplace.objectives.registry import OBJECTIVES

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
    lines = results.read_text().splitlines() if results.exists() else ()
    present = {row.key: row for row in (LibraryRun(**json.loads(line)) for line in lines)}
    compiled = set[tuple[str, str]]()
    with results.open("a") as file:
        for entry, method in product(entries, methods):
            key = entry.instance, entry.objective, method
            if key not in present:
                if (method, entry.objective) not in compiled:
                    run(entry, method)
                    compiled.add((method, entry.objective))
                present[key] = run(entry, method)
                file.write(json.dumps(asdict(present[key])) + "\n")
                file.flush()
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
