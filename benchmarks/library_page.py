"""The table of results on the library, and its figure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from library_runs import LibraryRun

from streamplace.drawing.figures import finish, line_style, panels, svg_text
from streamplace.library.folder import Library, LibraryEntry
from streamplace.placers.registry import PLACERS

FIGURE = "library-results.svg"
OBJECTIVES = ("throughput", "makespan", "plan")
SECONDS = 1.0
"""Time limit of the table."""
LABELLED = 1
"""Best of the other methods, own and foreign, that have a name in the figure."""
LEAST_SHOWN, TICKS = 1e-4, (0.1, 0.3, 1.0, 3.0)
SHIFT = 0.01
"""Shift of gaps in their geometric mean, so that gaps of 0 count."""
SOLVED = 1e-6
"""Gap to the best known value up to which an entry counts as solved."""


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """Results of a method with a time limit; an entry without an answer has gap 1."""

    method: str
    limit: float
    solved: float  # share of the entries on which it reaches the best known value
    gap: float  # shifted geometric mean of the gaps to the best known values
    seconds: float  # mean processor time


def gap(entry: LibraryEntry, value: float | None) -> float:
    """Distance of a value from the best known one, as a share of the larger one."""
    if value is None:
        return 1.0
    sign = 1 if entry.objective == "throughput" else -1
    largest = max(abs(value), abs(entry.value))
    return min(1.0, max(0.0, sign * (entry.value - value) / largest)) if largest else 0.0


def summaries(library: Library, runs: Iterable[LibraryRun], objective: str) -> list[MethodSummary]:
    """Summaries of methods and time limits for an objective, best first."""
    entries = {e.instance: e for e in library.entries if e.objective == objective}
    groups: dict[tuple[str, float], list[LibraryRun]] = defaultdict(list)
    for run in runs:
        if run.objective == objective:
            groups[run.method, run.limit].append(run)
    rows = []
    for (method, limit), group in groups.items():
        gaps = [gap(entries[run.instance], run.value) for run in group]
        solved = sum(x <= SOLVED for x in gaps) / len(gaps)
        mean = exp(sum(log(x + SHIFT) for x in gaps) / len(gaps)) - SHIFT
        seconds = sum(run.seconds for run in group) / len(group)
        rows.append(MethodSummary(method, limit, solved, mean, seconds))
    return sorted(rows, key=lambda row: (row.gap, row.limit, row.method))


def write_page(path: Path, library: Library, records: Sequence[LibraryRun]) -> None:
    """Write the table of all methods within a second, and the figure of all limits."""
    lines = [
        "| class | method | solved | shifted gap | seconds |",
        "|---|---|---:|---:|---:|",
    ]
    for objective in OBJECTIVES:
        lines += (
            f"| {objective} | {row.method} | {row.solved:.0%} | {row.gap:.1%} | {row.seconds:.1f} |"
            for row in summaries(library, records, objective)
            if row.limit == SECONDS
        )
    path.write_text("\n".join(lines) + "\n")
    draw(library, records, path.with_name(FIGURE))


def draw(library: Library, records: Sequence[LibraryRun], path: Path) -> None:
    """Draw gaps over time: lines for methods with several limits, points for the others."""
    titles = {"throughput": "Throughput", "makespan": "Makespan"}
    figure, axes = panels(titles.values())
    for axis, objective in zip(axes, titles, strict=True):
        rows = summaries(library, records, objective)
        names = sorted({row.method for row in rows if row.limit != SECONDS})
        for i, name in enumerate(names):
            line = sorted((row.limit, shown(row)) for row in rows if row.method == name)
            axis.plot(*zip(*line, strict=True), label=name, marker="o", **line_style(i))
        others = [row for row in rows if row.method not in names]
        points = [(row.seconds, shown(row)) for row in others]
        axis.scatter(*zip(*points, strict=True), s=14, color="#777777", label="other methods")
        for own in (True, False):
            for row in [row for row in others if (row.method in PLACERS) == own][:LABELLED]:
                place, offset = (row.seconds, shown(row)), (5, 4 if own else -9)
                axis.annotate(
                    row.method, place, fontsize=7.5, xytext=offset, textcoords="offset points"
                )
        axis.set(xscale="log", yscale="log", xlabel="processor seconds")
        axis.set_ylabel("gap to the best known")
        axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(lambda y, _: f"{100 * y:g} %")
    finish(figure, "Gap to the best known solution over time")
    path.write_text(svg_text(figure))


def shown(row: MethodSummary) -> float:
    """Mean gap as it is drawn: a logarithmic axis has no zero."""
    return max(row.gap, LEAST_SHOWN)
