"""Runs of placers and programs on entries of the library, one after the other on one core."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

from streamplace.errors import StreamplaceError
from streamplace.io.placements import read_placement
from streamplace.io.problems import write_problem
from streamplace.library.folder import Library, LibraryEntry
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES

PROGRAMS = Path(__file__).parent / "library_programs"
GRACE_S = 10.0
"""Time that a run may take in addition to its search, to start and to read and write files."""
ELAPSED_FACTOR = 10
"""Elapsed seconds per second of processor time, for machines with other work."""
MEMORY = 4 * 2**30
THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


@dataclass(frozen=True, slots=True)
class Method:
    """A placer or a program; {problem}, {answer} and others in its words are replaced."""

    name: str
    words: tuple[str, ...]
    is_placer: bool = False


@dataclass(frozen=True, slots=True)
class LibraryRun:
    """One run; the value is None without a legal answer, `seconds` are of the processor."""

    instance: str
    objective: str
    method: str
    limit: float
    value: float | None
    seconds: float

    @property
    def key(self) -> tuple[str, str, str, float]:
        """Key that identifies a run in a file of results."""
        return self.instance, self.objective, self.method, self.limit


def placer_method(name: str) -> Method:
    """Method of a registered placer, with options after colons."""
    options = ("{problem}", "{answer}", "{objective}", "{seconds}", "0")
    return Method(name, (sys.executable, str(PROGRAMS / "placer.py"), name, *options), True)


def read_runs(results: Path) -> dict[tuple[str, str, str, float], LibraryRun]:
    """Runs of a file of JSON lines by their keys; none if it is missing."""
    lines = results.read_text().splitlines() if results.exists() else ()
    return {run.key: run for run in (LibraryRun(**json.loads(line)) for line in lines)}


def runs(
    library: Library,
    entries: Sequence[LibraryEntry],
    methods: Sequence[Method],
    limits: Sequence[float],
    results: Path,
) -> Iterator[LibraryRun]:
    """Run what a file of results does not have yet; yield all runs."""
    present, compiled = read_runs(results), set[tuple[str, str]]()
    with results.open("a") as file:
        for entry in entries:
            problem = library.problem(entry.instance)
            for method in methods:
                for limit in limits:
                    key = entry.instance, entry.objective, method.name, limit
                    if key not in present:
                        if method.is_placer and (method.name, entry.objective) not in compiled:
                            run(problem, entry, method, 0.01)  # compiles and caches kernels
                            compiled.add((method.name, entry.objective))
                        present[key] = run(problem, entry, method, limit)
                        file.write(json.dumps(asdict(present[key])) + "\n")
                        file.flush()
                    yield present[key]


def run(problem: Problem, entry: LibraryEntry, method: Method, limit: float) -> LibraryRun:
    """Run a method once within limits of time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        file, answer = Path(folder) / "problem.json", Path(folder) / "answer.json"
        write_problem(problem, file)
        places = {"problem": file, "answer": answer, "objective": entry.objective, "seconds": limit}
        seconds = ceil(limit + GRACE_S)
        begin, value = spent(), None
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["taskset", "-c", str(max(os.sched_getaffinity(0))),
                 "prlimit", f"--cpu={seconds}", f"--as={MEMORY}",
                 *(word.format(**places) for word in method.words)],
                env={**os.environ, **THREADS}, timeout=ELAPSED_FACTOR * seconds,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        with suppress(StreamplaceError):  # no answer, or an illegal one
            placement = read_placement(answer, problem)
            problem.check(placement)
            value = float(OBJECTIVES[entry.objective].value(problem, placement))
    used = round(spent() - begin, 3)
    return LibraryRun(entry.instance, entry.objective, method.name, limit, value, used)


def spent() -> float:
    """Processor seconds of all processes that have ended and that this one waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
