"""A day of a Flink job in minutes: its phases, its results under a watch, their tables and picture.

All of it is part of the protocol of the watched day in docs/results/evidence.md.
"""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamplace.drawing.figures import BLUE, GREY, ORANGE, new_figure, save

LAG_SECONDS = 10.0
"""Tuples that wait no longer than this are in time."""
LAST_SECONDS = 30.0
"""A phase is settled if the job was in time for this long at its end."""
STEP_SECONDS = 5.0
"""Time for which a rate that swings stays the same."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the day."""

    name: str
    rate: float  # tuples/s that arrive, relative to what four TaskManagers carried before
    share: float = 0.0  # of the tuples with one key
    work: float = 1.0  # factor of the work of the counting operator
    is_lost: bool = False  # a TaskManager that the job uses is killed at its beginning
    swing: float = 0.0  # the rate rises and falls by this share of it, as one period of a sine


DAY = (
    Phase("morning", 0.35),
    Phase("doubled", 0.70),
    Phase("halved", 0.35),
    Phase("a sine", 0.45, swing=0.5),
    Phase("one key is popular", 0.35, share=0.3),
    Phase("an operator is twice as slow", 0.35, work=2.0),
    Phase("a TaskManager is lost", 0.40, is_lost=True),
    Phase("night", 0.10),
)


class Moment(NamedTuple):
    """The job at one moment."""

    second: float  # since the beginning of the day
    read: float  # tuples that the source has read so far
    waits: float  # tuples that have arrived and were not read
    machines: int  # TaskManagers that the job uses; 0 while it does not run


class Move(NamedTuple):
    """A move, or a replacement of a TaskManager."""

    second: float  # when it was begun
    kind: str
    outage: float | None  # seconds for which the job did not run; None if unknown


class PhaseResult(NamedTuple):
    """What became of a phase."""

    name: str
    in_time: float  # share of the moments at which no tuple waited too long
    machines: float  # mean number of TaskManagers that the job used
    moves: int
    is_settled: bool  # whether it was in time at the end, after at most one move


@dataclass(frozen=True)
class Phases:
    """The day, with the length of a phase and the rate of 1.

    >>> day = Phases([Phase("noon", 0.5), Phase("night", 0.1, 0.3)], 60, 1000)
    >>> day.arrived(70.0), day.at(70.0).name
    (31000.0, 'night')
    """

    phases: Sequence[Phase]
    seconds: float
    capacity: float

    def text(self) -> str:
        """File that the job reads: a line for each rate, and one after which nothing arrives."""
        lines = [
            f"{begin:g} {rate:.6g} {self.at(begin).share:g} {self.at(begin).work:g}"
            for begin, _, rate in self.rates()
        ]
        return "\n".join([*lines, f"{self.end:g} 0 0 1"])

    def rates(self) -> Iterator[tuple[float, float, float]]:
        """Beginning, end and tuples/s of every part of the day with one rate."""
        for i, phase in enumerate(self.phases):
            step = STEP_SECONDS if phase.swing else self.seconds
            for begin in np.arange(0.0, self.seconds, step).tolist():
                end = min(begin + step, self.seconds)
                angle = math.pi * (begin + end) / self.seconds  # in the middle of the step
                rate = phase.rate * self.capacity * (1 + phase.swing * math.sin(angle))
                yield i * self.seconds + begin, i * self.seconds + end, rate

    def arrived(self, second: float) -> float:
        """Tuples that have arrived until a second of the day."""
        return sum(
            rate * min(max(second - begin, 0.0), end - begin) for begin, end, rate in self.rates()
        )

    def rate(self, second: float) -> float:
        """Tuples/s that arrive at a moment; of the last ones after the end."""
        begun = [rate for begin, _, rate in self.rates() if begin <= max(second, 0.0)]
        return begun[-1]

    def at(self, second: float) -> Phase:
        """The phase at a moment."""
        return self.phases[min(int(second / self.seconds), len(self.phases) - 1)]

    @property
    def end(self) -> float:
        """Seconds of the day."""
        return len(self.phases) * self.seconds

    @property
    def loss(self) -> float:
        """Second at which a TaskManager is killed."""
        losses = (i * self.seconds for i, phase in enumerate(self.phases) if phase.is_lost)
        return next(losses, -1.0)

    def results(self, moments: Sequence[Moment], moves: Sequence[Move]) -> list[PhaseResult]:
        """Judge every phase of a day that was measured."""
        results = []
        for i, phase in enumerate(self.phases):
            start, end = i * self.seconds, (i + 1) * self.seconds
            own = [moment for moment in moments if start <= moment.second < end]
            timely = [
                moment.waits <= LAG_SECONDS * self.rate(moment.second) and moment.machines > 0
                for moment in own
            ]
            pairs = zip(own, timely, strict=True)
            last = [fine for moment, fine in pairs if moment.second >= end - LAST_SECONDS]
            number = sum(start <= move.second < end for move in moves)
            results.append(
                PhaseResult(
                    phase.name,
                    float(np.mean(timely)) if timely else 0.0,
                    float(np.mean([moment.machines for moment in own])) if own else 0.0,
                    number,
                    bool(last) and all(last) and number <= 1,
                )
            )
        return results


def outage_quantile(moves: Sequence[Move], quantile: float = 0.95) -> float | None:
    """Quantile of the known outages; None if none is known."""
    known = [move.outage for move in moves if move.outage is not None]
    return float(np.quantile(known, quantile)) if known else None


STYLES: Mapping[str, Mapping[str, Any]] = {
    "Flink alone": {"color": BLUE},
    "watch": {"color": ORANGE},
}
STEP = 5
"""Moments over which a rate is drawn."""
Row = Mapping[str, Any]


def page_text(rows: Sequence[Row]) -> str:
    """Results of all arms."""
    days = [row for row in rows if "moments" in row]
    if not days:
        return "## Results\n\nNothing has been measured yet.\n"
    parts = ["## Results\n"]
    for row in days:
        moments = moments_of(row)
        moves = [Move(*move) for move in row["moves"]]
        results = phases_of(row).results(moments, moves)
        outage = outage_quantile(moves)
        is_known = row["read"] is not None and row["counted"] is not None
        missing = f"{row['read'] - row['counted']:,.0f}" if is_known else "unknown"
        parts += [
            f"### {row['arm']}\n",
            f"| phase | in time ({LAG_SECONDS:g} s) | TaskManagers | moves and replacements | "
            "settled |",
            "|---|---:|---:|---:|---|",
            *(
                f"| {phase.name} | {phase.in_time:.1%} | {phase.machines:.2f} | {phase.moves} | "
                f"{'yes' if phase.is_settled else 'no'} |"
                for phase in results
            ),
            "",
            f"- Settled after at most one move: {sum(phase.is_settled for phase in results)} of "
            f"{len(results)} phases.",
            "- Outage, 95th percentile: " + ("no move" if outage is None else f"{outage:.1f} s."),
            f"- Tuples that were read and not counted once at the end: {missing}.\n",
        ]
    return "\n".join(parts)


def phases_of(row: Row) -> Phases:
    """The day of an arm."""
    return Phases([Phase(**phase) for phase in row["phases"]], row["seconds"], row["capacity"])


def moments_of(row: Row) -> list[Moment]:
    """Moments of an arm.

    Fewer tuples than before are those of some subtasks alone: Flink does not tell all of them in
    the seconds after a start.
    """
    moments, read = list[Moment](), 0.0
    for moment in map(Moment._make, row["moments"]):
        read = max(read, moment.read)
        moments.append(
            moment._replace(read=read, waits=max(0.0, moment.waits - (read - moment.read)))
        )
    return moments


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw what was read, what was used and how late tuples were over the day, by arm."""
    days = [row for row in rows if "moments" in row]
    figure, axes = new_figure(1, rows=3, width=8.0, height=1.9)
    for row in days:
        phases = phases_of(row)
        moments = [moment for moment in moments_of(row) if 0 <= moment.second <= phases.end]
        minutes = [moment.second / 60 for moment in moments]
        pairs = list(zip(moments, moments[STEP:], strict=False))
        rates = [(b.read - a.read) / (b.second - a.second) for a, b in pairs]
        style = {"label": row["arm"], "linewidth": 1.2, **STYLES[row["arm"]]}
        axes[0].plot([(a.second + b.second) / 120 for a, b in pairs], rates, **style)
        axes[1].step(minutes, [moment.machines for moment in moments], where="post", **style)
        arrives = [phases.rate(moment.second) for moment in moments]
        late = [moment.waits / rate for moment, rate in zip(moments, arrives, strict=True)]
        axes[2].plot(minutes, late, **style)
    for i, phase in enumerate(phases.phases if days else ()):
        begin = i * phases.seconds / 60
        name = textwrap.fill(phase.name, 14)
        axes[0].annotate(name, (begin, 1.02), xycoords=("data", "axes fraction"), fontsize=7)
        for axis in axes:
            axis.axvline(begin, color=GREY, linewidth=0.5)
    for begin, end, rate in phases.rates() if days else ():
        axes[0].hlines(rate, begin / 60, end / 60, color=GREY, linestyle=":")
    axes[2].axhline(LAG_SECONDS, color=GREY, linestyle=":")
    for axis, label in zip(axes, ("tuples/s read", "TaskManagers", "seconds late"), strict=True):
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[1].legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0.06, 0.0))
    axes[2].set_xlabel("minutes")
    save(figure, path)
