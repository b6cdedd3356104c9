"""The answers of a trained model beside those of other placers: report, document, pictures."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.display.report import Heading, Report, Sheet, duration
from streamplace.drawing.figures import BLUE, GREY, ORANGE, PALE_BLUE, finish, new_figure, save
from streamplace.errors import StreamplaceError
from streamplace.evaluate.comparison import cell
from streamplace.evaluate.paired import Paired
from streamplace.evaluate.records import Record, problem_hash, with_result
from streamplace.evaluate.results import ObjectiveResults, Row
from streamplace.learn.history import History
from streamplace.learn.trained import Trained
from streamplace.model.arrays import Floats
from streamplace.model.message_text import counted
from streamplace.model.problem import Problem
from streamplace.model.units import exact_digits
from streamplace.objectives.registry import Objective, named_objective
from streamplace.placers.registry import PLACERS, USUAL_BUDGET, Budget, Placer
from streamplace.progress import tracked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE, CURVES = "curve.png", "curves.pdf"
"""Files of the picture of a training in its folder, and of several trainings in theirs."""
BEFORE, AFTER = "greedy before", "greedy after"
NO_SEARCH = {"samples": 0, "refine": "none"}
"""Options by which a learned placer does not search; unsupported options are ignored."""
MAX_PROBLEMS = 20
EVALUATIONS = 1000
"""Evaluations of `auto` for a problem."""
MIN_RANGE = 0.1
"""Minimum length of the axis of rewards, so that small differences look small."""
LABELS = {
    BEFORE: "the model, before",
    AFTER: "the model, after",
    "metis": "METIS",
    "heft": "HEFT",
    "auto": f"search (auto,\n{EVALUATIONS:,} evaluations)",
}
COLOURS = {BEFORE: PALE_BLUE, AFTER: BLUE}


@dataclass(frozen=True, slots=True)
class Answers:
    """Results of the model and of other placers on the same problems."""

    objective: Objective
    held_out: bool  # whether the problems were held out; otherwise the model was trained on them
    problems: int  # number of problems that were placed
    total: int  # number of problems that were held out, or trained on
    reference: str  # placer that the others are compared with: METIS, or HEFT for one pass
    rows: dict[str, Row]  # row of a table by placer
    paired: dict[str, dict[str, Paired]]  # comparisons of a placer with the others, by their names


def answers_of(trained: Trained) -> Answers | None:
    """Place at most twenty problems that were held out, or were trained on if none were.

    None if no placer has the name of the model.
    """
    if trained.model not in PLACERS:
        return None
    objective = named_objective(trained.objective)
    reference = "heft" if objective.kind == "pass" else "metis"
    placers = {
        **_without_search(trained),
        reference: (PLACERS[reference], USUAL_BUDGET),
        "auto": (PLACERS["auto"], Budget(evaluations=EVALUATIONS)),
    }
    chosen = trained.problems[:MAX_PROBLEMS]
    results = ObjectiveResults(objective)
    for problem in tracked(chosen, "comparing with other placers", len(chosen)):
        results.add(_records(problem, objective, placers, trained.seed))
    (rows,), (pairs,) = results.table.values(), results.paired.values()
    numbers = len(chosen), len(trained.problems)
    return Answers(objective, trained.held_out, *numbers, reference, rows, pairs)


def _without_search(trained: Trained) -> dict[str, tuple[Placer, Budget]]:
    """The model's placer with the weights before and after training."""
    placer = PLACERS[trained.model]
    options = {name: value for name, value in NO_SEARCH.items() if name in placer.defaults()}
    weights: dict[str, Path] = {BEFORE: trained.start, AFTER: trained.weights}
    return {
        name: (placer.with_options(**options, weights=str(path)), Budget(None))
        for name, path in weights.items()
        if path.is_file()
    }


def _records(
    problem: Problem, objective: Objective, placers: dict[str, tuple[Placer, Budget]], seed: int
) -> Iterator[Record]:
    digest = problem_hash(problem)
    for name, (placer, budget) in placers.items():
        record = Record(
            problem=digest, graph="", rate=None, placer=name, budget="", objective=objective.name,
            value=None, bound=None, milliseconds=0.0, devices=(),
        )  # fmt: skip
        with suppress(StreamplaceError):
            result = placer.place(problem, objective, seed=seed, budget=budget)
            record = with_result(record, result)
        yield record


def training_document(trained: Trained, answers: Answers | None) -> dict[str, Any]:
    """Convert the result of a training to a JSON document."""
    history = trained.history
    last = history.epochs[-1]
    return {
        "model": trained.model,
        "folder": str(trained.folder),
        "weights": str(trained.weights),
        "epochs": len(history.epochs),
        "best_epoch": history.best,
        "stopped_early": trained.stopped_early,
        "seconds": trained.seconds,
        "reward": last.reward,
        "best_known": last.best,
        "validation": {
            exact_digits(rate): held._asdict() for rate, held in trained.by_rate().items()
        },
        "answers": None if answers is None else _answers_document(answers),
    }


def _answers_document(answers: Answers) -> dict[str, Any]:
    return {
        "objective": answers.objective.name,
        "held_out": answers.held_out,
        "problems": answers.problems,
        "of": answers.total,
        "auto_evaluations": EVALUATIONS,
        "reference": answers.reference,
        "placers": {
            name: _row_document(row, answers.paired[name].get(answers.reference))
            for name, row in answers.rows.items()
        },
    }


def _row_document(row: Row, pair: Paired | None) -> dict[str, Any]:
    placed = row.failed < row.graphs
    return {
        "mean": row.mean if placed else None,
        "of_best": row.of_best[0] if placed else None,
        **{name: getattr(pair, name, None) for name in ("better", "equal", "worse")},
        "not_placed": row.failed,
    }


def training_report(trained: Trained, answers: Answers | None) -> Report:
    """Report the values of the best weights and of other placers, and the weights file."""
    history, by_rate = trained.history, trained.by_rate()
    is_table = len(by_rate) > 1 or any(held.proven for held in by_rate.values())
    best = f"best after {history.best}" if history.best else "none better than the first weights"
    early = ", stopped early" if trained.stopped_early else ""
    epochs = f": {counted(len(history.epochs), 'epoch')} in {duration(trained.seconds)}"
    return Report(
        (
            *(trained.report().parts if is_table else ()),
            *(() if answers is None else _answers_parts(answers)),
            Heading(trained.model, f"{epochs}, {best}{early}"),
            f"Weights: {trained.weights}",
            "Beside it: curve.png, summary.json, history.jsonl",
        )
    )


def _answers_parts(answers: Answers) -> tuple[str, Sheet]:
    """Table of the model's values without search, and of other placers' values, with its title."""
    judge = answers.objective
    where = "held out" if answers.held_out else "of the training, because none is held out"
    of = f" of {answers.total}" if answers.problems < answers.total else ""
    graphs = counted(answers.problems, "graph")
    words = f"Mean {judge.name} on {graphs}{of} {where}; greedy: the model without search"
    head, rows = ("placer", "mean", "/ best", f"vs {answers.reference} +/=/−"), []
    for name, row in answers.rows.items():
        searched = f" ({EVALUATIONS} evaluations)" if name == "auto" else ""
        failed = f" ({row.failed} not placed)" if row.failed else ""
        pair = answers.paired[name].get(answers.reference)
        rows.append(
            (
                f"{name}{searched}",
                cell(row.mean, judge.format) + failed,
                cell(row.of_best[0], "{:.3f}"),
                "—" if pair is None else f"{pair.better} / {pair.equal} / {pair.worse}",
            )
        )
    return words, Sheet(head, tuple(rows))


def write_picture(
    history: History,
    optima: Floats,
    objective: str,
    title: str,
    path: Path,
    answers: Answers | None = None,
) -> None:
    """Draw the epochs, and the answers if there are any."""
    if not history.epochs:
        return
    figure, axes = new_figure(1 if answers is None else 2, width=5.4, height=3.4)
    _epochs(axes[-1], history, optima, objective)
    if answers is not None:
        _answers(axes[0], answers)
    save(finish(figure, title), path)


def write_curves(histories: Sequence[History], objective: str, title: str, path: Path) -> None:
    """Draw the means over several trainings epoch by epoch, in bands from minimum to maximum.

    The curves end with the shortest training.
    """
    figure, (axis,) = new_figure(1, width=5.4, height=3.4)
    epochs = range(1, 1 + min(len(history.epochs) for history in histories))
    for label, colour, name in (
        ("training graphs: what it tries", ORANGE, "reward"),
        ("graphs held out: its own answer", BLUE, "validation"),
    ):
        rows = [[getattr(history.epochs[e - 1], name) for e in epochs] for history in histories]
        values = np.array(rows, np.float64)  # [trainings, epochs], NaN where none are held out
        if np.isfinite(values).all():
            axis.plot(epochs, values.mean(axis=0), color=colour, label=label)
            low, high = values.min(axis=0), values.max(axis=0)
            axis.fill_between(epochs, low, high, color=colour, alpha=0.25, linewidth=0)
    _label_epochs(axis, objective)
    seeds = f"mean and range of {counted(len(histories), 'seed')}"
    save(finish(figure, f"{title}\n{seeds}"), path)


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
    half = max(1.1 * half, MIN_RANGE / 2)
    axis.set_ylim(middle - half, middle + half)
    axis.set_title("Epoch by epoch", fontsize=10, loc="left")
    _label_epochs(axis, objective)


def _label_epochs(axis: "Axes", objective: str) -> None:
    is_rate = named_objective(objective).kind == "rate"
    axis.set_ylabel("mean share of the full rate" if is_rate else "mean reward (1 is best)")
    axis.set_xlabel("epoch")
    axis.margins(x=0.02)
    axis.locator_params("x", integer=True)
