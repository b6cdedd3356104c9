"""The watched day of docs/results/evidence.md: its tables and its picture."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from watched_day import LAG_SECONDS, Moment, Move, Phase, Phases, outage_quantile

from streamplace.drawing.figures import BLUE, GREY, ORANGE, new_figure, save

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
