"""Histories of predictions and of watches: coverage of intervals, moves, and decisions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any

from streamplace.display.report import MAX_ROWS, Heading, Part, Report, Sheet, percent
from streamplace.flink.watches import WatchDecision, WatchRecord
from streamplace.io.ledger import LedgerEntry
from streamplace.model.message_text import counted
from streamplace.model.mixins import Displayed, Pictured
from streamplace.model.units import digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MAX_DRAWN_WATCHES = 6
"""Maximum number of watches in a picture; the last ones are drawn."""
PANEL_HEIGHT = 1.5
"""Height of the panel of rates, as a multiple of the largest rate; intervals may exceed it."""
HOUR = 3600.0
HELD = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, slots=True)
class PredictionHistory(Displayed):
    """Predicted and measured rates, in the order of measurement."""

    entries: Sequence[LedgerEntry]  # runs of a ledger
    job: str | None = None  # name of the job to show; None for all jobs

    @property
    def runs(self) -> list[LedgerEntry]:
        """Runs to show."""
        return [entry for entry in self.entries if self.job in (None, entry.job)]

    @property
    def judged(self) -> list[LedgerEntry]:
        """Runs of which it is known whether their interval held."""
        return [entry for entry in self.runs if entry.held is not None]

    def report(self) -> Report:
        """Table of the runs, and the coverage of their intervals."""
        runs = self.runs
        if not runs:
            return Report(("No run has been recorded yet.",))
        rows = tuple(map(_row, runs))
        head = ("job", "when", "predicted", "interval", "measured", "of predicted", "held")
        parts: list[Part] = [Sheet(head, rows, names=0)]
        if judged := self.judged:
            held = sum(entry.held is True for entry in judged)
            aims = [entry.confidence for entry in judged if entry.confidence is not None]
            aim = f", whose median confidence was {percent(median(aims))}" if aims else ""
            parts.append(f"{held} of {counted(len(judged), 'interval')} held{aim}.")
        return Report(tuple(parts))

    def to_json(self) -> dict[str, Any]:
        """Return the runs and their coverage as a JSON document."""
        judged = self.judged
        held = sum(entry.held is True for entry in judged)
        return {
            "runs": [asdict(entry) | {"held": entry.held} for entry in self.runs],
            "judged": len(judged),
            "coverage": held / len(judged) if judged else None,
        }


def _row(entry: LedgerEntry) -> tuple[str, ...]:
    bounds = "—" if entry.interval is None else entry.interval.ends
    suffix = "" if entry.is_limited else " or more"
    return (
        entry.job,
        entry.when.replace("T", " ")[:16],
        digits(entry.predicted),
        bounds,
        f"{digits(entry.measured)}{suffix}",
        percent(entry.measured / entry.predicted),
        HELD[entry.held],
    )


@dataclass(frozen=True, slots=True)
class WatchHistory(Pictured):
    """Watches of jobs."""

    records: Sequence[WatchRecord]  # watches with their rounds and decisions, the oldest first

    def report(self) -> Report:
        """Last rounds and all decisions of every watch."""
        return Report(tuple(part for record in self.records for part in _parts(record)))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the watches as a JSON document."""
        return [asdict(record) for record in self.records]

    def figure(self) -> "Figure":
        """Return a picture of rate, capacity, moves and TaskManagers over time."""
        from streamplace.drawing.figures import HEADING, finish, legend_text, new_figure

        drawn = [record for record in self.records if record.rounds][-MAX_DRAWN_WATCHES:]
        figure, axes = new_figure(2, rows=max(1, len(drawn)), width=5.0, height=2.8)
        for number, record in enumerate(drawn):
            rates, machines = axes[2 * number : 2 * number + 2]
            _draw(record, rates, machines)
            name = legend_text(record.name)
            rates.set_title(f"{name}: rate and capacity", fontsize=HEADING)
            machines.set_title(f"{name}: TaskManagers", fontsize=HEADING)
        return finish(figure, "watched jobs")


def _parts(record: WatchRecord) -> list[Part]:
    """Sentences and tables about one watch."""
    moves = sum(decision.state == "moved" for decision in record.decisions)
    counts = f"{counted(len(record.rounds), 'round')}, {counted(moves, 'move')}"
    since = f" (job {record.job}), watched since {_moment(record.since)}: {counts}"
    parts: list[Part] = [Heading(record.name, since)]
    if record.rounds:
        last = tuple((_moment(row.at), row.words) for row in record.rounds[-MAX_ROWS:])
        parts.append(Sheet(("round", "state and decision"), last))
    if record.decisions:
        columns = ("decision", "what", "predicted", "measured", "outcome", "reason")
        parts.append(Sheet(columns, tuple(map(_decision_row, record.decisions))))
    return parts


def _decision_row(decision: WatchDecision) -> tuple[str, ...]:
    before, after = decision.machines
    outcome = f"{decision.state}: {decision.outcome}" if decision.outcome else decision.state
    carries = decision.carries
    return (
        _moment(decision.at),
        f"{decision.kind}, {before} → {after}",
        "—" if carries is None else f"{digits(carries.value)} ({carries.ends})",
        "—" if decision.measured is None else digits(decision.measured),
        outcome,
        decision.reason,
    )


def _draw(record: WatchRecord, rates: "Axes", machines: "Axes") -> None:
    """Draw one watch into two panels."""
    from streamplace.drawing.figures import PALETTE

    first = datetime.fromisoformat(record.rounds[0].at)
    span = datetime.fromisoformat(record.rounds[-1].at) - first
    unit, name = (HOUR, "hours") if span.total_seconds() >= 2 * HOUR else (60.0, "minutes")

    def since(at: str) -> float:
        return (datetime.fromisoformat(at) - first).total_seconds() / unit

    times = [since(row.at) for row in record.rounds]
    rates.plot(times, [row.arriving for row in record.rounds], color=PALETTE[7], label="rate")
    top = max(row.arriving for row in record.rounds)
    predicted = [(since(row.at), *row.carries) for row in record.rounds if row.carries is not None]
    if predicted:
        at, low, values, high = zip(*predicted, strict=True)
        top = max(top, *values)
        rates.step(at, values, where="post", color=PALETTE[0], label="capacity")
        rates.fill_between(
            at, low, high, step="post", alpha=0.2, color=PALETTE[0], label="its interval"
        )
    numbers = [row.machines for row in record.rounds]
    machines.step(times, numbers, where="post", color=PALETTE[2], label="TaskManagers")
    for axis in (rates, machines):
        for decision in record.decisions:
            axis.axvline(since(decision.at), color=PALETTE[1], linestyle=":", label="decision")
        axis.set(xlabel=name, ylim=(0, None))
    rates.set(ylabel="tuples/s", ylim=(0, PANEL_HEIGHT * top or None))
    machines.set(ylabel="number")


def _moment(at: str) -> str:
    return at.replace("T", " ")[:19]
