"""The table of results on the library."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import exp, log
from typing import NamedTuple

from library_runs import LibraryRun

from streamplace.library.folder import Library, LibraryEntry

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


def table(library: Library, runs: Iterable[LibraryRun]) -> Iterator[str]:
    """Rows of the table of all methods."""
    yield "| class | method | solved | shifted gap | seconds |"
    yield "|---|---|---:|---:|---:|"
    for objective in ("throughput", "makespan", "plan"):
        for row in summaries(library, runs, objective):
            cells = f"{row.solved:.0%} | {row.gap:.1%} | {row.seconds:.1f}"
            yield f"| {objective} | {row.method} | {cells} |"
