"""Against Flink's own placement: ``streamplace flink move`` beside NONE, SLOTS and TASKS.

    python benchmarks/against_flink.py --minutes 40
    python benchmarks/against_flink.py --page

The protocol is in docs/evidence.md. A line of ``assets/against-flink.jsonl`` is appended after
every run, so that a stopped command goes on; ``--page`` measures nothing and writes the page's
results. Needs Linux with cgroups of version 1, root, a JDK and an idle computer.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from against_cells import (
    JOBS,
    KINDS,
    REPLAY,
    STREAMPLACE,
    Cell,
    Row,
    arms,
    cells,
    on_one_computer,
    sessions,
)
from against_page import results
from against_runs import Session, session
from flink_jobs import ROOT, SOURCES
from measured_rows import append_row, read_rows

from streamplace.engines.flink.local.dist import Flink, find_flink
from streamplace.engines.flink.program.jars import build_jar
from streamplace.errors import StreamplaceError

MOST_OTHERS = 0.25
"""Cores that other processes may take while a run is measured."""
MOST_OF_MACHINE = 0.75
RUN_SECONDS, CLUSTER_SECONDS, BISECTION_SECONDS = 30.0, 30.0, 100.0
"""Approximate duration of a run, of starting a cluster, and of a bisection."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass
class Series:
    """The runs of the file, and those that this command tries.

    Attributes
    ----------
    measure
        ``saturated`` or ``sustained``: the kind of the runs that are made.
    deadline
        Moment after which no run begins.
    tried
        Runs that this command has begun: each once, also if it was disturbed.
    boot
        This start of this computer.
    """

    file: Path
    random: int
    measure: str
    deadline: float
    tried: set[tuple[Cell, str, str]] = field(default_factory=set)
    boot: str = field(default_factory=lambda: BOOT.read_text().strip())

    @property
    def rows(self) -> list[Row]:
        """Lines of the file, except those of earlier versions of the command."""
        return [row for row in read_rows(self.file) if "superseded" not in row]

    def pending(self, cell: Cell) -> list[tuple[str, list[str]]]:
        """Modes of the clusters that a cell still needs, with the arms that are missing."""
        own = self._own(cell)
        done = {row["arm"] for row in own if row["measure"] == self.measure}
        advice = next((row["mode"] for row in own if row["measure"] == "advice"), None)
        found = []
        for mode, names in sessions(cell, self.random):
            here = [name for name in names if advice is None or name != STREAMPLACE]
            here += [STREAMPLACE] if advice == mode else []
            found.append((mode, [arm for arm in here if arm not in done]))
        left = [(m, [a for a in names if (cell, m, a) not in self.tried]) for m, names in found]
        return [(mode, names) for mode, names in left if names]

    def _own(self, cell: Cell) -> list[Row]:
        """Runs of a cell on the computer on which it is complete, otherwise on this one."""
        rows = [row for row in self.rows if cell.has(row) and not row["disturbed"]]
        key = cell.job, cell.kind, cell.repeat, self.measure == "sustained"
        boots = on_one_computer(rows).get(key, {})
        for own in boots.values():
            if {row["arm"] for row in own if row["measure"] == self.measure}.issuperset(
                arms(self.random)
            ):
                return own
        return boots.get(self.boot, [])

    def run(self, made: Session, mode: str, names: Sequence[str]) -> None:
        """Make the runs of some arms on one cluster, as long as there is time."""
        for position, arm in enumerate(names):
            if time.monotonic() > self.deadline:
                return
            self.tried.add((made.cell, mode, arm))
            began = time.monotonic()
            try:
                facts = self._measured(made, mode, arm)
            except StreamplaceError as error:
                facts = {"measure": self.measure, "rate": 0.0, "failed": str(error)}
            facts = {"mode": mode} | facts
            self.append(
                made.cell,
                {"arm": arm, "position": position, "seconds": round(time.monotonic() - began, 1)}
                | {"disturbed": facts.get("others", 0.0) > MOST_OTHERS}
                | facts,
            )
            made.clear()

    def _measured(self, made: Session, mode: str, arm: str) -> dict[str, Any]:
        own = [row for row in self.rows if made.cell.has(row) and row["measure"] == "saturated"]
        own = [row for row in own if row.get("boot", "") == self.boot]
        if self.measure == "sustained":
            row = next((row for row in own if row["arm"] == arm and not row["disturbed"]), None)
            if row is None or not row["rate"]:
                raise StreamplaceError("there is no saturated run to begin with")
            return {"measure": "sustained"} | made.sustained(row)
        known = None
        if arm == REPLAY:
            slots = [row for row in own if row["arm"] == "SLOTS" and row["rate"]]
            if not slots:
                raise StreamplaceError("SLOTS has no layout that could be replayed")
            known = slots[-1]["layout"]
        facts = made.run(arm, known, mode != "NONE")
        if "rate" in facts:
            return {"measure": "saturated"} | facts
        return facts | {"measure": "advice", "mode": facts["advised"]}

    def append(self, cell: Cell, facts: dict[str, Any]) -> None:
        """Append a line to the file, and say so."""
        row = {"job": cell.job, "kind": cell.kind, "repeat": cell.repeat} | facts
        row["boot"] = self.boot
        append_row(self.file, row)
        told = row.get("failed") or f"{row.get('rate', 0):,.0f} tuples/s"
        if row["measure"] == "advice":
            told = f"advises {row['mode']}"
        note = ", disturbed" if row["disturbed"] else ""
        click.echo(f"{cell.job}, {cell.kind}, {row['arm']}: {told}{note} ({row['seconds']:.0f} s)")

    def seconds(self, todo: Sequence[Cell]) -> tuple[int, float]:
        """Number of runs that some cells lack, and how long they take about."""
        clusters = [names for cell in todo for _, names in self.pending(cell)]
        runs = sum(map(len, clusters))
        known = [row["seconds"] for row in self.rows if row["measure"] == self.measure]
        usual = BISECTION_SECONDS if self.measure == "sustained" else RUN_SECONDS
        each = sum(known) / len(known) if known else usual
        return runs, runs * each + len(clusters) * CLUSTER_SECONDS


def carry_out(series: Series, todo: Sequence[Cell], flink: Flink, folder: Path) -> None:
    """Make the runs that are missing, cell after cell."""
    jar = folder / "jobs.jar"
    build_jar(flink, sorted(java for f in SOURCES for java in f.glob("*.java")), jar)
    for number, (cell, mode, names) in enumerate(_sessions(series, todo)):
        saved = folder / f"saved-{number}"
        saved.mkdir()
        try:
            with session(flink, jar, cell, mode, saved) as made:
                series.run(made, mode, names)
        except StreamplaceError as error:
            click.echo(f"{cell.job}, {cell.kind}: the cluster of {mode} ends: {error}", err=True)
            series.tried |= {(cell, mode, arm) for arm in names}


def _sessions(series: Series, todo: Sequence[Cell]) -> Iterator[tuple[Cell, str, list[str]]]:
    """Clusters that are needed; what a run has advised can add one."""
    for cell in todo:
        while time.monotonic() < series.deadline and (pending := series.pending(cell)):
            yield (cell, *pending[0])


@click.command()
@click.option("--minutes", type=click.FloatRange(0), help="No run begins after so long.")
@click.option("--page", is_flag=True, help="Measure nothing, and print all tables.")
@click.option("--jobs", help=f"Such as sales,alarms, of {len(JOBS)}.")
@click.option("--kinds", help=f"Of {', '.join(KINDS)}.")
@click.option("--random", type=click.IntRange(0), default=1, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=1, show_default=True)
@click.option("--measure", type=click.Choice(["saturated", "sustainable"]), default="saturated")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "docs")
def main(
    minutes: float | None,
    page: bool,
    jobs: str | None,
    kinds: str | None,
    random: int,
    repeats: int,
    measure: str,
    output: Path,
) -> None:
    """Measure what is missing, or print the tables."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    file = output / "assets" / "against-flink.jsonl"
    if page:
        click.echo(results(read_rows(file), cells(repeats), arms(random)))
        return
    for name, kind in KINDS.items():
        if sum(kind.cores) > MOST_OF_MACHINE * (os.cpu_count() or 1):
            raise click.ClickException(f"the TaskManagers of {name} need more of this machine")
    file.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + (60 * minutes if minutes is not None else float("inf"))
    kind_of_run = "sustained" if measure == "sustainable" else measure
    series = Series(file, random, kind_of_run, deadline)
    todo = [
        cell
        for cell in cells(repeats)
        if (not jobs or cell.job in jobs.split(","))
        and (not kinds or cell.kind in kinds.split(","))
    ]
    runs, seconds = series.seconds(todo)
    click.echo(f"{runs} runs are missing, which take about {seconds / 60:.0f} minutes")
    with tempfile.TemporaryDirectory() as folder:
        carry_out(series, todo, find_flink(None), Path(folder))
    runs, seconds = series.seconds(todo)
    click.echo(f"{runs} runs are missing, which take about {seconds / 60:.0f} minutes")


if __name__ == "__main__":
    main()
