"""Progress of training on stderr, and its result for the terminal and as a JSON document."""

import sys
import time
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from streamplace.cli._output import counted, print_report, say
from streamplace.display.report import Heading, Report, Sheet, duration
from streamplace.model.units import exact_digits
from streamplace.training.run import TrainingProgress, step_line

if TYPE_CHECKING:
    from streamplace.evaluate.paired import Paired
    from streamplace.evaluate.results import Row
    from streamplace.learn.history import History
    from streamplace.learn.learner import StepReport
    from streamplace.training.trained import Answers, Trained


LEGEND = (
    "reward: mean of the sampled placements; best known: of the best ones so far;",
    "validation: of the model's own answers to the graphs held out; 1 is best",
)
SILENT_S = 60.0
"""Seconds after which a long epoch logs its step."""


class Display(TrainingProgress):
    """Shows the progress of training; without a terminal, as lines."""

    def begin(self, history: "History", steps: Sequence[int]) -> None:
        """Explain the numbers, and open the bar over the remaining steps."""
        self._steps, self._done = steps, 0
        self._spoke = time.monotonic()
        if len(history.epochs) < len(steps):
            for line in LEGEND:
                say(line)
        super().begin(history, steps)

    def step(self, epoch: int, report: "StepReport") -> None:
        """Advance the bar; without a terminal, print a line every minute."""
        super().step(epoch, report)
        self._done += 1
        if not sys.stderr.isatty() and time.monotonic() - self._spoke > SILENT_S:
            line = step_line(epoch, self._epochs, report)
            self._say(f"{line} (step {self._done} of {self._steps[epoch - 1]})")

    def epoch(self, history: "History") -> None:
        """Show the epoch until the next one ends."""
        super().epoch(history)
        self._done = 0
        if not sys.stderr.isatty():
            self._say(self._note + _time_left(history, self._epochs))

    def _say(self, line: str) -> None:
        say(line)
        self._spoke = time.monotonic()


def _time_left(history: "History", epochs: int) -> str:
    """Estimate the remaining time from the mean of the epochs so far."""
    done = [epoch.seconds for epoch in history.epochs]
    remaining = epochs - len(done)
    return f", about {duration(ceil(remaining * sum(done) / len(done)))} left" if remaining else ""


def as_document(trained: "Trained", answers: "Answers | None") -> dict[str, Any]:
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


def _answers_document(answers: "Answers") -> dict[str, Any]:
    from streamplace.training.trained import EVALUATIONS

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


def _row_document(row: "Row", pair: "Paired | None") -> dict[str, Any]:
    placed = row.failed < row.graphs
    return {
        "mean": row.mean if placed else None,
        "of_best": row.of_best[0] if placed else None,
        "better": None if pair is None else pair.better,
        "equal": None if pair is None else pair.equal,
        "worse": None if pair is None else pair.worse,
        "not_placed": row.failed,
    }


def show(trained: "Trained", answers: "Answers | None") -> None:
    """Print the values of the best weights and of other placers, and the weights file."""
    history = trained.history
    by_rate = trained.by_rate()
    if len(by_rate) > 1 or any(held.proven for held in by_rate.values()):
        print_report(trained.report())
    if answers is not None:
        _show_answers(answers)
    best = f"best after {history.best}" if history.best else "none better than the first weights"
    early = ", stopped early" if trained.stopped_early else ""
    epochs = f": {counted(len(history.epochs), 'epoch')} in {duration(trained.seconds)}"
    heading = Heading(trained.model, f"{epochs}, {best}{early}")
    beside = "Beside it: curve.png, summary.json, history.jsonl"
    print_report(Report((heading, f"Weights: {trained.weights}", beside)))


def _show_answers(answers: "Answers") -> None:
    """Print a table of the model's values without search, and of other placers' values."""
    from streamplace.evaluate.comparison import cell
    from streamplace.training.trained import EVALUATIONS

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
    print_report(Report((words, Sheet(head, tuple(rows)))))
