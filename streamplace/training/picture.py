"""Picture of a training: the model before and after it beside other placers, and its epochs."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.figures import BLUE, GREY, ORANGE, finish, new_figure, save
from streamplace.learn.history import History
from streamplace.model.arrays import Floats
from streamplace.model.messages import counted
from streamplace.objectives.registry import named_objective
from streamplace.training.answers import AFTER, BEFORE, EVALUATIONS, Answers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALE = "#8fbbd9"
LEAST_RANGE = 0.1
"""Shortest axis of the epochs; smaller differences look small."""
LABELS = {
    BEFORE: "the model, before",
    AFTER: "the model, after",
    "metis": "METIS",
    "heft": "HEFT",
    "auto": f"search (auto,\n{EVALUATIONS:,} evaluations)",
}
COLOURS = {BEFORE: PALE, AFTER: BLUE}


def write_picture(
    history: History,
    optima: Floats,
    objective: str,
    title: str,
    path: Path,
    answers: Answers | None = None,
) -> None:
    """Draw the epochs, and the means of other placers on the graphs held out if they are known."""
    if not history.epochs:
        return
    figure, axes = new_figure(1 if answers is None else 2, width=5.4, height=3.4)
    _epochs(axes[-1], history, optima, objective)
    if answers is not None:
        _answers(axes[0], answers)
    save(finish(figure, title), path)


def _answers(axis: "Axes", answers: Answers) -> None:
    """Bars of the means of all placers on the same graphs."""
    judge = answers.objective
    rows = {name: row.mean for name, row in answers.rows.items() if np.isfinite(row.mean)}
    scale = 100 if judge.is_share else 1
    bars = axis.barh(
        [LABELS.get(name, name) for name in rows],
        [scale * mean for mean in rows.values()],
        height=0.62,
        color=[COLOURS.get(name, GREY) for name in rows],
    )
    axis.bar_label(bars, [judge.format(mean) for mean in rows.values()], padding=4, fontsize=9)
    axis.invert_yaxis()
    axis.margins(x=0.2)
    axis.locator_params("x", nbins=4)
    if not judge.is_share:
        axis.xaxis.set_major_formatter(lambda value, _: judge.format(value))
    where = "held out" if answers.held_out else "of the training"
    what = "share of the full rate carried, %" if judge.is_share else judge.quantity
    better = "" if judge.sense == "max" else "; less is better"
    graphs = counted(answers.problems, "graph")
    axis.set_xlabel(f"{what}: mean of {graphs} {where}{better}", fontsize=9)
    axis.set_title("The model by itself, beside other placers", fontsize=10, loc="left")


def _epochs(axis: "Axes", history: History, optima: Floats, objective: str) -> None:
    """Curves of the graphs held out and of those of the training."""
    epochs = [epoch.epoch for epoch in history.epochs]
    reward = [epoch.reward for epoch in history.epochs]
    axis.plot(epochs, reward, color=ORANGE, linewidth=1.4, label="training graphs: what it tries")
    judged = [(e.epoch, e.validation) for e in history.epochs if e.validation is not None]
    if history.before is not None:
        judged.insert(0, (0, history.before))
    values = [*reward, *(value for _, value in judged)]
    if judged:
        label = "graphs held out: its own answer"
        axis.plot(*zip(*judged, strict=True), color=BLUE, linewidth=1.8, label=label)
        label = "the weights that are kept"
        axis.plot(history.best, history.score, "o", color=BLUE, markersize=6, label=label)
    if len(optima) and not np.isnan(optima).any():
        optimum = float(optima.mean())
        axis.axhline(
            optimum, color="black", linewidth=0.9, linestyle=":", label="graphs held out: optimum"
        )
        values.append(optimum)
    middle, half = (max(values) + min(values)) / 2, (max(values) - min(values)) / 2
    half = max(1.1 * half, LEAST_RANGE / 2)
    axis.set_ylim(middle - half, middle + half)
    is_rate = named_objective(objective).kind == "rate"
    axis.set_ylabel("mean share of the full rate" if is_rate else "mean reward (1 is best)")
    axis.set_xlabel("epoch")
    axis.set_title("Epoch by epoch", fontsize=10, loc="left")
    axis.margins(x=0.02)
    axis.locator_params("x", integer=True)
