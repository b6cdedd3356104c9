"""Against Flink's own placement: ``streamplace flink move`` beside NONE, SLOTS and TASKS.

    python benchmarks/against_flink.py --minutes 90
    python benchmarks/against_flink.py --page

See docs/results/evidence.md. A line of the file is appended after every run, so that a stopped
command goes on; ``--page`` measures nothing and prints the page's tables. Needs Linux with cgroups
of version 1, root, a JDK and an idle computer; for the jobs that read Kafka, the jars in the folder
of STREAMPLACE_KAFKA (CONTRIBUTING.md).
"""

import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from against_cells import ARMS, KINDS, MOVE, Cell, Row, cells, sessions
from against_page import results
from against_runs import Session, session
from flink_jars import build_jar
from flink_jobs import ROOT, SOURCES
from kafka import kafka_flink, kafka_jars, kafka_jobs
from measured_rows import append_row, read_rows

from streamplace.errors import StreamplaceError
from streamplace.flink.local.session import Flink, find_flink

FILE = ROOT / "docs/assets/against-flink.jsonl"
MOST_OTHERS = 0.25
"""Cores that other processes may take while a run is measured."""
MOST_OF_MACHINE = 0.75
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass
class Series:
    """The runs of the file, and those that this command tries.

    Attributes
    ----------
    deadline
        Moment after which no run begins.
    tried
        Runs that this command has begun: each once, also if it was disturbed.
    boot
        This start of this computer; runs of others are not compared with its own.
    """

    file: Path
    deadline: float
    tried: set[tuple[Cell, str]] = field(default_factory=set)
    boot: str = field(default_factory=lambda: BOOT.read_text().strip())

    def pending(self, cell: Cell) -> list[tuple[str, list[str]]]:
        """Modes of the clusters that a cell still needs, with the arms that are missing.

        A cell is measured on one computer: what was begun on another one is made again as a whole.
        """
        by_boot: dict[str, set[str]] = {}
        for row in read_rows(self.file):
            if cell.has(row) and not row["disturbed"]:
                by_boot.setdefault(row["boot"], set()).add(row["arm"])
        if any(done.issuperset(ARMS) for done in by_boot.values()):
            return []
        done = by_boot.get(self.boot, set()) | {arm for own, arm in self.tried if own == cell}
        found = [(mode, [arm for arm in own if arm not in done]) for mode, own in sessions(cell)]
        return [(mode, names) for mode, names in found if names]

    def run(self, made: Session, mode: str, names: Sequence[str]) -> None:
        """Make the runs of some arms on one cluster, as long as there is time."""
        for arm in names:
            if time.monotonic() > self.deadline:
                return
            self.tried.add((made.cell, arm))
            began = time.monotonic()
            try:
                facts = made.moved() if arm == MOVE else made.placed_by_flink()
            except StreamplaceError as error:
                facts = {"rate": 0.0, "failed": str(error)}
            is_disturbed = facts.get("others", 0.0) > MOST_OTHERS
            seconds = round(time.monotonic() - began, 1)
            self.append(
                made.cell,
                {"arm": arm, "mode": mode, "seconds": seconds, "disturbed": is_disturbed} | facts,
            )
            made.clear()

    def append(self, cell: Cell, facts: dict[str, Any]) -> None:
        """Append a line to the file, and say so."""
        row: Row = {"job": cell.job, "kind": cell.kind, "repeat": cell.repeat} | facts
        append_row(self.file, {**row, "boot": self.boot})
        told = row.get("failed") or f"{row['rate']:,.0f} tuples/s"
        note = ", disturbed" if row["disturbed"] else ""
        click.echo(f"{cell.job}, {cell.kind}, {row['arm']}: {told}{note} ({row['seconds']:.0f} s)")


def carry_out(series: Series, todo: Sequence[Cell], flink: Flink, folder: Path) -> None:
    """Make the runs that are missing, cell after cell."""
    jar, kafka_jar = folder / "jobs.jar", folder / "kafka.jar"
    build_jar(flink, sorted(java for f in SOURCES for java in f.glob("*.java")), jar)
    if any(KINDS[cell.kind].partitions for cell in todo):
        flink = kafka_flink(flink, folder / "flink")
        kafka_jobs(flink, kafka_jar)
    for cell in todo:
        own = kafka_jar if KINDS[cell.kind].partitions else jar
        for mode, names in series.pending(cell):
            if time.monotonic() > series.deadline:
                return
            saved = Path(tempfile.mkdtemp(dir=folder))
            try:
                with session(flink, own, cell, mode, saved) as made:
                    series.run(made, mode, names)
            except StreamplaceError as error:
                click.echo(f"{cell.job}, {cell.kind}: the cluster of {mode} ends: {error}")


@click.command()
@click.option("--minutes", type=click.FloatRange(0), help="No run begins after so long.")
@click.option("--page", is_flag=True, help="Measure nothing, and print all tables.")
@click.option("--jobs", help="Such as sales,alarms.")
@click.option("--kinds", help=f"Of {', '.join(KINDS)}.")
@click.option("--file", type=click.Path(path_type=Path), default=FILE)
def main(
    minutes: float | None, page: bool, jobs: str | None, kinds: str | None, file: Path
) -> None:
    """Measure what is missing, or print the tables."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if page:
        click.echo(results(read_rows(file)))
        return
    for name, kind in KINDS.items():
        if sum(kind.cores) > MOST_OF_MACHINE * (os.cpu_count() or 1):
            raise click.ClickException(f"the TaskManagers of {name} need more of this machine")
    file.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + (60 * minutes if minutes is not None else float("inf"))
    todo = [
        cell
        for cell in cells(1)
        if (not jobs or cell.job in jobs.split(","))
        and (not kinds or cell.kind in kinds.split(","))
        and (kafka_jars() or not KINDS[cell.kind].partitions)
    ]
    series = Series(file, deadline)
    with tempfile.TemporaryDirectory() as folder:
        carry_out(series, todo, find_flink(None), Path(folder))
    missing = sum(len(names) for cell in todo for _, names in series.pending(cell))
    click.echo(f"{missing} runs are missing")


if __name__ == "__main__":
    main()
