"""The watched day of docs/results/evidence.md: its tables and its picture."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from watched_day import LAG_SECONDS, Moment, Move, Phase, Phases, outage_quantile, results_of

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
    told = ["## Results\n"]
    for row in days:
        phases = [Phase(**one) for one in row["phases"]]
        moments = moments_of(row)
        moves = [Move(*one) for one in row["moves"]]
        found = results_of(phases, row["seconds"], row["capacity"], moments, moves)
        outage = outage_quantile(moves)
        known = row["read"] is not None and row["counted"] is not None
        lost = f"{row['read'] - row['counted']:,.0f}" if known else "unknown"
        told += [
            f"### {row['arm']}\n",
            f"| phase | in time ({LAG_SECONDS:g} s) | TaskManagers | moves and replacements | "
            "settled |",
            "|---|---:|---:|---:|---|",
            *(
                f"| {one.name} | {one.in_time:.1%} | {one.machines:.2f} | {one.moves} | "
                f"{'yes' if one.is_settled else 'no'} |"
                for one in found
            ),
            "",
            f"- Settled after at most one move: {sum(one.is_settled for one in found)} of "
            f"{len(found)} phases.",
            "- Outage, 95th percentile: " + ("no move" if outage is None else f"{outage:.1f} s."),
            f"- Tuples that were read and not counted once at the end: {lost}.\n",
        ]
    return "\n".join(told)


def moments_of(row: Row) -> list[Moment]:
    """Moments of an arm.

    Fewer tuples than before are those of some subtasks alone: Flink does not tell all of them in
    the seconds after a start.
    """
    found, read = list[Moment](), 0.0
    for one in map(Moment._make, row["moments"]):
        read = max(read, one.read)
        found.append(one._replace(read=read, waits=max(0.0, one.waits - (read - one.read))))
    return found


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw what was read, what was used and how late tuples were over the day, by arm."""
    days = [row for row in rows if "moments" in row]
    figure, axes = new_figure(1, rows=3, width=8.0, height=1.9)
    for row in days:
        phases = Phases([Phase(**one) for one in row["phases"]], row["seconds"], row["capacity"])
        moments = [one for one in moments_of(row) if 0 <= one.second <= phases.end]
        minutes = [one.second / 60 for one in moments]
        pairs = list(zip(moments, moments[STEP:], strict=False))
        rates = [(b.read - a.read) / (b.second - a.second) for a, b in pairs]
        style = {"label": row["arm"], "linewidth": 1.2, **STYLES[row["arm"]]}
        axes[0].plot([(a.second + b.second) / 120 for a, b in pairs], rates, **style)
        axes[1].step(minutes, [one.machines for one in moments], where="post", **style)
        arrives = [row["capacity"] * phases.at(one.second).rate for one in moments]
        late = [one.waits / rate for one, rate in zip(moments, arrives, strict=True)]
        axes[2].plot(minutes, late, **style)
    for i, one in enumerate(phases.phases if days else ()):
        begin = i * phases.seconds / 60
        rate = phases.capacity * one.rate
        axes[0].hlines(rate, begin, begin + phases.seconds / 60, color=GREY, linestyle=":")
        name = textwrap.fill(one.name, 18)
        axes[0].annotate(name, (begin, 1.02), xycoords=("data", "axes fraction"), fontsize=7)
        for axis in axes:
            axis.axvline(begin, color=GREY, linewidth=0.5)
    axes[2].axhline(LAG_SECONDS, color=GREY, linestyle=":")
    for axis, label in zip(axes, ("tuples/s read", "TaskManagers", "seconds late"), strict=True):
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[1].legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0.06, 0.0))
    axes[2].set_xlabel("minutes")
    save(figure, path)
