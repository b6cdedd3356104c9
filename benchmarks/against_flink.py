"""Against Flink's own placement: ``streamplace flink move`` beside NONE, SLOTS and TASKS.

    python benchmarks/against_flink.py --minutes 90
    python benchmarks/against_flink.py --page

See docs/results/evidence.md. A line of the file is appended after every run, so that a stopped
command goes on; ``--page`` measures nothing and prints the page's tables. Needs Linux with cgroups
of version 1, root, a JDK and an idle computer; for the jobs that read Kafka, the jars in the folder
of STREAMPLACE_KAFKA (CONTRIBUTING.md).
"""

import math
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import click
import numpy as np
from against_cells import AGAIN, ARMS, FLINK, KINDS, MOVE, SEED, Cell, Row, cells, sessions
from against_runs import Session, session
from flink_jobs import ROOT, jobs_jar
from kafka import kafka_flink, kafka_jars, kafka_jobs
from studies import append_row, read_rows

from streamplace.errors import StreamplaceError
from streamplace.flink.local.session import Flink, find_flink

DRAWS = 10_000
FLOOR, LOSS = 0.1, 0.97
"""Least value of a ratio in geometric means, and ratio below which a cell may be a loss."""


class Compared(NamedTuple):
    """A cell in which all arms were measured on one computer."""

    cell: Cell
    rates: dict[str, float]
    run: Row  # of the command

    @property
    def best(self) -> float:
        """The best rate of Flink's own placements."""
        return max(self.rates[mode] for mode in FLINK)

    @property
    def gain(self) -> float:
        """Rate after the command, relative to the best of Flink's own."""
        return self.rates[MOVE] / self.best if self.best else math.inf

    @property
    def trials(self) -> list[Row]:
        """Layouts that the command measured, the one before first."""
        return trials_of(self.run)

    @property
    def first(self) -> float:
        """Gain that one try has: the better one of the layout before and the first tried one."""
        rates = [trial["measured"] or 0.0 for trial in self.trials[:2]]
        return max(rates, default=self.rates[MOVE]) / self.best

    @property
    def last(self) -> float | None:
        """Rate that the command reported at the end, relative to what was measured afterwards."""
        reported, rate = decision_of(self.run).get("measured"), self.rates[MOVE]
        return reported / rate if reported and rate else None


def decision_of(run: Row) -> Row:
    """What a run of the command says of its decision; empty where it has failed."""
    answer = run.get("answer")
    decision: Row = answer.get("decision") or {} if isinstance(answer, dict) else {}
    return decision


def trials_of(run: Row) -> list[Row]:
    """Layouts that a run of the command measured, the one before first."""
    return list(decision_of(run).get("trials", ()))


def compared(rows: Iterable[Row]) -> list[Compared]:
    """Complete cells, of the computer that measured them last."""
    runs: dict[tuple[Cell, str], dict[str, Row]] = {}
    for row in rows:
        if not row["disturbed"]:
            cell = Cell(row["job"], row["kind"], row["repeat"])
            runs.setdefault((cell, row["boot"]), {})[row["arm"]] = row
    complete = {cell: own for (cell, _), own in runs.items() if own.keys() >= {*ARMS}}
    return [
        Compared(cell, {arm: row["rate"] for arm, row in own.items()}, own[MOVE])
        for cell, own in complete.items()
    ]


def results(rows: Sequence[Row]) -> str:
    """All tables."""
    cells = compared(rows)
    if not cells:
        return "No cell is complete yet."
    disturbed = sum(row["disturbed"] for row in rows)
    head = f"{len(cells)} cells; {disturbed} runs were disturbed and do not count."
    parts = [head, "\n".join(_by_kind(cells)), "\n".join(_facts(cells))]
    return "\n\n".join(parts)


def _by_kind(cells: Sequence[Compared]) -> Iterator[str]:
    yield (
        "| clusters | jobs | geometric mean | 95 % interval | one try | worst | best | "
        f"{' | '.join(f'to {mode}' for mode in FLINK)} |"
    )
    yield "|---|---:|---:|---|---:|---|---|---:|---:|---:|"
    for kind in KINDS:
        own = [cell for cell in cells if cell.cell.kind == kind]
        if not own:
            continue
        low, high = interval([cell.gain for cell in own])
        worst, best = min(own, key=lambda cell: cell.gain), max(own, key=lambda cell: cell.gain)
        alone = [
            geometric(cell.rates[MOVE] / max(cell.rates[mode], 1e-9) for cell in own)
            for mode in FLINK
        ]
        yield (
            f"| {kind} | {len(own)} | {geometric(cell.gain for cell in own):.2f} | {low:.2f} to "
            f"{high:.2f} | {geometric(cell.first for cell in own):.2f} | {worst.cell.job} "
            f"{worst.gain:.2f} | {best.cell.job} {best.gain:.2f} | "
            f"{' | '.join(f'{ratio:.2f}' for ratio in alone)} |"
        )


def _facts(cells: Sequence[Compared]) -> Iterator[str]:
    within = noise(cells)
    yield f"- The same layout twice (A/A): the 90th percentile of |ln| is {within:.3f}."
    losses = [cell for cell in cells if cell.gain < min(LOSS, math.exp(-within))]
    named = [f"{cell.cell.job} on {cell.cell.kind} ({cell.gain:.2f})" for cell in losses]
    yield f"- Losses beyond the noise: {', '.join(named) or 'none'}."
    seconds = [cell.run["command_seconds"] for cell in cells if "command_seconds" in cell.run]
    if seconds:
        yield (
            f"- The command took {median(seconds):.0f} s in the median, at most "
            f"{max(seconds):.0f} s."
        )
    reported = [abs(cell.last - 1) for cell in cells if cell.last is not None]
    if reported:
        yield (
            "- The rate that it reported differs from what was measured afterwards by "
            f"{_quantiles(reported)}."
        )
    tries = [trial for cell in cells for trial in cell.trials[1:] if trial["measured"]]
    announced = [trial for trial in tries if trial.get("predicted")]
    if announced:
        errors = [abs(trial["predicted"]["value"] / trial["measured"] - 1) for trial in announced]
        held = mean(
            trial["predicted"]["low"]
            <= trial["measured"]
            <= (trial["predicted"]["high"] or math.inf)
            for trial in announced
        )
        yield (
            f"- Predictions of {len(announced)} tries are off by {_quantiles(errors)}; "
            f"{held:.0%} of the intervals contain what was measured."
        )
    interrupted = [
        trial for trial in tries if trial.get("interruption") and trial.get("expected_interruption")
    ]
    if interrupted:
        ratios = [
            abs(math.log(trial["expected_interruption"] / trial["interruption"]))
            for trial in interrupted
        ]
        yield f"- Interruptions told differ from those measured by a factor of {_factors(ratios)}."
    failed = [cell for cell in cells if cell.run.get("code") or "failed" in cell.run]
    for cell in failed:
        reason = " ".join((cell.run.get("failed") or cell.run["told"]).split())[-300:]
        yield f"- {cell.cell.job} on {cell.cell.kind}: {reason}"


def _quantiles(errors: Sequence[float]) -> str:
    middle, most = np.quantile(errors, [0.5, 0.9])
    return f"{middle:.1%} in the median and {most:.1%} at the 90th percentile"


def _factors(logs: Sequence[float]) -> str:
    middle, most = np.exp(np.quantile(logs, [0.5, 0.9]))
    return f"{middle:.2f} in the median and {most:.2f} at the 90th percentile"


def geometric(ratios: Iterable[float]) -> float:
    """Geometric mean; a ratio counts as at least 0.1.

    >>> round(geometric([0.0, 10.0]), 6)
    1.0
    """
    return math.exp(mean(math.log(max(FLOOR, ratio)) for ratio in ratios))


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """95 % interval of a geometric mean, by a bootstrap."""
    logs: Any = np.log([max(FLOOR, ratio) for ratio in ratios])
    rng = np.random.default_rng(SEED)
    means = logs[rng.integers(len(logs), size=(DRAWS, len(logs)))].mean(axis=1)
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    return float(low), float(high)


def noise(cells: Sequence[Compared]) -> float:
    """90th percentile of |ln| of two runs of SLOTS."""
    pairs = [(cell.rates[AGAIN], cell.rates["SLOTS"]) for cell in cells]
    logs = [abs(math.log(a / b)) for a, b in pairs if a and b]
    return float(np.quantile(logs, 0.9)) if logs else 0.0


FILE = ROOT / "docs/assets/against-flink.jsonl"
MOST_OTHERS = 0.25
"""Cores that other processes may take while a run is measured."""
MOST_OF_MACHINE = 0.75
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass
class Series:
    """The runs of the file, and those that this command tries."""

    file: Path
    deadline: float  # moment after which no run begins
    # Runs that this command has begun: each once, also if it was disturbed.
    tried: set[tuple[Cell, str]] = field(default_factory=set)
    # This start of this computer; runs of others are not compared with its own.
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
    jobs_jar(flink, jar)
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
