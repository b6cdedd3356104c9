"""The page of results on the library, and its figure."""

import argparse
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from streamplace.drawing.figures import finish, line_style, panels, svg_text
from streamplace.library.folder import Library, LibraryEntry, ObjectiveName
from streamplace.library.runs import GRACE_S, LibraryRun
from streamplace.library.tables import (
    SAME,
    MethodSummary,
    as_markdown,
    current_runs,
    summaries,
    table_report,
)
from streamplace.placers.registry import PLACERS

FIGURE = Path("assets/library-results.svg")
OBJECTIVES: tuple[ObjectiveName, ...] = ("throughput", "makespan", "plan")
SECONDS = 1.0
"""Time limit by which the introduction compares."""
LABELLED = 1
"""Best of the other methods, own and foreign, that have a name in the figure."""
LEAST_SHOWN, TICKS = 1e-4, (0.1, 0.3, 1.0, 3.0)
PAGE = """\
Every entry of [the library](library.md) has a best known solution and a proven bound. So this page
can say how far a method is from the best, not only which of two methods is better. It compares the
placers and the planner of streamplace with METIS, KaHIP, Mt-KaHyPar, a model in OR-tools (CP-SAT),
the schedulers of SAGA and other programs, on {throughput} entries of throughput, {makespan} of
makespan and {plan} of plans.

{verdicts}

![Gap to the best known solution over processor time]({figure})

The figure shows the mean gap to the best known solution over processor time; lower is better. Lines
are methods that were measured with several time limits. Points are the others, at the time that
they used, which includes about a second in which Python starts. A gap below 0.01 % is drawn as
0.01 %, and an entry without an answer counts as a gap of 100 %.
{better}
## How it was measured

- **Entries.** {entries} of {all_entries} entries: all plans, and placements that are spread evenly
  over the instances of at least seven operators. {closed} of the {entries} are closed: their best
  known solution is proven to be the best possible.
- **Limits.** One core ({processor}), one thread, seed 0, {memory}. A method has {limits} s of
  processor time for its search, and is ended {grace:g} s later with its start and its reading.
- **Values.** The value is computed from the placement that a method writes, and by the checker for
  plans. Nothing depends on what a program states.
- **Cost.** All runs took {minutes:.0f} minutes of processor time. The placements of all
  {placements} entries of throughput and makespan would take about {hours:.1f} hours.

## Methods

Placers are named as in [the reference](reference/placers.md). METIS, KaHIP and Mt-KaHyPar cut the
graph into parts as large as the devices are fast; they know neither links nor an order. SAGA's
schedulers are those of its package, but for the three that enumerate or ask others; they assume
that a device is as fast for all operators. HEFT-0.1.1 is the package `heft` of PyPI, to which the
time of each operator on each device is given. CP-SAT is a plain model with a variable for every
operator and device and for every stream and pair of devices. These programs are in
`benchmarks/library_programs`. They only read and write files, and move an operator that may not run
where they put it to the device that is fastest for it.

`plan` is [the planner](how-to/plan.md), and every key group is a subtask. First fit packs the
subtasks by dot product onto the cheapest machines of one type. The autoscaler's rule does so for
1.595 times the rate, which Flink's autoscaler provides by default. Both are re-implemented. They
have no plan where machines of one type are too few, or where a key group is too much for a core at
that rate. The best known plans come from the column generation that also makes the certificates.
The planner, first fit and the rule run in one process, and its start is not counted. `streamplace
library run` measures what places, so plans are no part of it. ODRP's integer program gives a cost
without a plan that the checker could value;
[Evidence](evidence.md#plans-against-bounds-and-rules) compares with it.

## Tables

"""


def write_page(
    options: argparse.Namespace, library: Library, records: Sequence[LibraryRun]
) -> None:
    """Write the page and its figure."""
    covered = {(run.instance, run.objective) for run in records}
    entries = [e for e in library.entries if (e.instance, e.objective) in covered]
    counts = {name: sum(e.objective == name for e in entries) for name in OBJECTIVES}
    placed = [run for run in records if run.objective != "plan"]
    placements = sum(entry.objective != "plan" for entry in library.entries)
    spent, limits = sum(run.seconds for run in placed), sorted({run.limit for run in placed})
    text = as_markdown(table_report(library, records), "Results on the library")
    title, _, tables = text.partition("\n\n")
    introduction = PAGE.format(
        **counts,
        entries=len(entries),
        all_entries=len(library.entries),
        closed=sum(entry.closed for entry in entries),
        verdicts="\n".join(verdict(library, records, name) for name in OBJECTIVES if counts[name]),
        figure=FIGURE.as_posix(),
        better=improvements(records, entries),
        processor=processor(),
        memory="4 GiB",
        limits=" or ".join(f"{limit:g}" for limit in limits),
        grace=GRACE_S,
        minutes=sum(run.seconds for run in records) / 60,
        placements=placements,
        hours=spent / max(1, counts["throughput"] + counts["makespan"]) * placements / 3600,
    )
    options.o.write_text(f"{title}\n\n{introduction}{tables}\n{provenance(library, options)}")
    draw(library, records, options.o.parent / FIGURE)


def provenance(library: Library, options: argparse.Namespace) -> str:
    """Date, library and command of the results."""
    manifest = hashlib.sha256((library.folder / "manifest.json").read_bytes()).hexdigest()
    return (
        f"Made on {datetime.now(UTC).date().isoformat()} by this command, with the library whose "
        f"manifest has the SHA-256 `{manifest[:16]}…`:\n\n```text\npython "
        "benchmarks/library_results.py --peers PEERS --saga PYTHON --entries "
        f"{options.entries}\n```\n"
    )


def verdict(library: Library, records: Sequence[LibraryRun], objective: ObjectiveName) -> str:
    """Sentence about the best method of an objective within a second, and the best other one."""
    chosen = [run for run in records if run.objective == objective and run.limit == SECONDS]
    rows = summaries(library, current_runs(library, chosen))
    ours, other = (next((row for row in rows if is_own(row) == own), None) for own in (True, False))
    words = [
        f"`{row.method}` is at the best known solution on {row.solved:.0%} of the entries, with a "
        f"mean gap of {100 * row.gap_to_best:.2g} %"
        for row in (ours, other)
        if row is not None
    ]
    names = {"throughput": "Throughput", "makespan": "Makespan", "plan": "Cost of plans"}
    end = "the other methods" if objective == "plan" else "the other programs"
    return f"- **{names[objective]}.** Within {SECONDS:g} s, {words[0]}. Of {end}, {words[1]}."


def is_own(row: MethodSummary) -> bool:
    """Whether a method is part of streamplace."""
    return row.method in PLACERS or row.method == "plan"


def improvements(records: Sequence[LibraryRun], entries: Sequence[LibraryEntry]) -> str:
    """Sentence about runs that are better than the best known value; empty without any."""
    better = []
    for entry in entries:
        key = entry.instance, entry.objective
        answers = [r for r in records if (r.instance, r.objective) == key and r.value is not None]
        best = max(answers, key=lambda run: entry.sense * (run.value or 0.0), default=None)
        if best is None or best.value is None:
            continue
        if entry.sense * (best.value - entry.value) > SAME * abs(entry.value):
            better.append(f"{best.value:.6g} by `{best.method}` for {entry.name}")
    if not better:
        return ""
    return (
        "\nThe best known value of an open entry need not be the best possible. These runs found a "
        f"better one, which counts as no gap: {'; '.join(better)}.\n"
    )


def draw(library: Library, records: Sequence[LibraryRun], path: Path) -> None:
    """Draw gaps over time: lines for methods with several limits, points for the others."""
    titles = {"throughput": "Throughput", "makespan": "Makespan"}
    figure, axes = panels(titles.values())
    for axis, objective in zip(axes, titles, strict=True):
        chosen = current_runs(library, [run for run in records if run.objective == objective])
        rows = summaries(library, chosen)
        names = sorted({row.method for row in rows if row.limit != SECONDS})
        for i, name in enumerate(names):
            line = sorted((row.limit, shown(row)) for row in rows if row.method == name)
            axis.plot(*zip(*line, strict=True), label=name, marker="o", **line_style(i))
        others = [row for row in rows if row.method not in names]
        points = [(row.seconds, shown(row)) for row in others]
        axis.scatter(*zip(*points, strict=True), s=14, color="#777777", label="other methods")
        for own in (True, False):
            for row in [row for row in others if is_own(row) == own][:LABELLED]:
                place, offset = (row.seconds, shown(row)), (5, 4 if own else -9)
                axis.annotate(
                    row.method, place, fontsize=7.5, xytext=offset, textcoords="offset points"
                )
        axis.set(xscale="log", yscale="log", xlabel="processor seconds")
        axis.set_ylabel("mean gap to the best known")
        axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(lambda y, _: f"{100 * y:g} %")
    finish(figure, "Gap to the best known solution over time")
    path.write_text(svg_text(figure))


def shown(row: MethodSummary) -> float:
    """Mean gap as it is drawn: a logarithmic axis has no zero."""
    return max(row.gap_to_best, LEAST_SHOWN)


def processor() -> str:
    """Name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
