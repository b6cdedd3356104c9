"""Training of a model on problems, into a folder: the work behind `streamplace.train`.

A `TrainRequest` becomes a `TrainingRun`, with everything read and checked. It finds the targets,
builds the learner, and hands it to `streamplace.learn.training_loop.TrainingLoop`. Optima are
proven after it.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.cores import available_cores
from streamplace.errors import SettingError
from streamplace.evaluate.parallel import ray_connection
from streamplace.evaluate.records import problem_hash
from streamplace.evaluate.trained_on import described, graph_number
from streamplace.io.extras import importing_torch
from streamplace.io.files import claim_folder, is_file, make_folder, read_bytes, spot
from streamplace.io.weights import Weights, read_weights
from streamplace.learn.config import DEFAULT_PRESET, Preset
from streamplace.learn.history import Epoch, History, TensorBoardWatcher, Watcher
from streamplace.learn.learner import Learner, StepReport
from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import MODELS, LearnedModel, LearningTask, configured
from streamplace.learn.reward import JUDGES, Measure, check_reward, rewards_of_values
from streamplace.model.arrays import Floats, Ints
from streamplace.model.message_text import counted, quoted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import DEFAULT, named_objective
from streamplace.progress import Ticker, progress, tracked
from streamplace.training.solutions import Solver, Track
from streamplace.training.trained import PICTURE, Trained, write_picture

if TYPE_CHECKING:
    from streamplace.learn.checkpoint import Checkpoint
    from streamplace.learn.shards import GradientWorkers

LOG = logging.getLogger(__name__)
ONE_GRAPH = (
    "there is only one graph, so none is held out: nothing says how the model places other graphs; "
    "give several"
)
MEASURED = "measured"
REAL, SHIPPED = "ray", "shipped"
REWARDS = ("steady", "engine", REAL)
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """A training as it was asked for, from the command line or from Python."""

    model: str
    problems: tuple[Problem, ...]
    folder: Path  # folder of the run: weights, checkpoint, history and curve
    rates: tuple[float, ...] = ()  # of the sources: a problem at two counts as two; empty: its own
    preset: str = DEFAULT_PRESET
    config: Path | None = None  # TOML file that changes options of the preset
    epochs: int | None = None  # number of epochs; None for the preset's
    device: str = "cpu"
    objective: str = DEFAULT  # by name; `streamplace.learn.reward` makes rewards of its values
    reward: str | Measure = "steady"  # ``ray`` measures passes, as does a function
    seed: int = 0
    start: str | None = None  # weights file, or ``shipped``
    resume: bool = False  # all other values must then be as they were
    on: str | None = None  # address of the Ray that computes; None for the cores of this machine
    command: str = ""  # command that the user typed; it is recorded in the weights file

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("reward", self.reward, REWARDS),
            ("device", self.device, DEVICES),
        ):
            if isinstance(value, str) and value not in choices:
                raise SettingError(f"{name} is {quoted(value)}; it must be {' or '.join(choices)}")
        if self.on is not None and self.device != "cpu":
            raise SettingError(
                f"training on Ray uses CPUs, not {self.device}; drop the device, or train without "
                "--on"
            )
        if self.on is not None and self.reward not in JUDGES:
            raise SettingError(
                "real passes (the reward ray, or a function) are measured one after the other on "
                "one machine; train without --on"
            )
        if not self.problems:
            raise SettingError("there is no graph to train on; give at least one")

    def at_rates(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Every problem at every rate."""
        return tuple(
            problem if rate is None else problem.at_rate(rate)
            for problem in problems
            for rate in self.rates or (None,)
        )

    def rates_of(self, problems: Sequence[Problem]) -> tuple[float, ...]:
        """Rate of every problem of `at_rates`, as asked for: scaled rates are rounded."""
        if self.rates:
            return self.rates * (len(problems) // len(self.rates))
        is_pass = named_objective(self.objective).kind == "pass"  # which has no rate
        return tuple(1.0 if is_pass else problem.graph.source_rate for problem in problems)

    def objective_entry(self) -> dict[str, str]:
        """The objective as an entry of a document, which the default objective leaves out."""
        return {} if self.objective == DEFAULT else {"objective": self.objective}

    def split(self, share: float) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
        """Problems to train on, and those of a share of the graphs, which the seed holds out."""
        numbers: dict[int, int] = {}  # of graphs, each of which may be on several clusters
        graph = [numbers.setdefault(graph_number(p.graph), len(numbers)) for p in self.problems]
        n = len(numbers)
        count = min(n - 1, max(1, round(share * n))) if share > 0 else 0
        random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(0, 0, 0, 0)))
        chosen = np.zeros(n, bool)
        chosen[random.permutation(n)[:count]] = True
        out = chosen[graph]
        return (
            tuple(compress(self.problems, ~out)),
            tuple(compress(self.problems, out)),
        )


def run_training(
    request: TrainRequest,
    *,
    watcher: Watcher | None = None,
    track: Track = tracked,
) -> Trained:
    """Train a model into a folder, or go on where training was stopped.

    ``track`` shows the progress of the work before training.
    """
    from streamplace.learn.training_loop import check_device

    MODELS[request.model].check(request.objective, request.device)
    check_device(request.device)
    run = TrainingRun.of(request)
    with ExitStack() as files:
        return run.train(run.checkpoint(files), watcher, track)


def gradient_workers(
    request: TrainRequest, learner: Learner, make: Callable[[], Learner]
) -> "AbstractContextManager[GradientWorkers]":
    """Compute for a learner that ``make`` built, on this machine or on Ray."""
    if request.on is None:
        from streamplace.learn.shards import thread_workers

        return thread_workers(learner, request.device)
    from streamplace.training.ray_workers import ray_workers

    return ray_workers(request.on, learner, make)


def check_folder(folder: Path, *, resume: bool) -> None:
    """Raise SettingError if a model was trained into the folder, unless that run is resumed.

    Raise MissingPackageError if torch is missing.
    """
    with importing_torch():
        from streamplace.learn.checkpoint import NAME

    if not resume and is_file(folder / NAME):
        raise SettingError(
            f"{spot(folder)}: holds a run already; continue it with --resume, or name another "
            "folder"
        )


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRun:
    """A request with everything read and checked."""

    request: TrainRequest
    model: LearnedModel
    start: Weights | None
    preset: Preset
    training: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    settings: dict[str, Any]  # values that a resumed run must share with this one; fit for JSON

    @classmethod
    def of(cls, request: TrainRequest) -> "TrainingRun":
        """Read the weights to begin from and the options, and split the problems."""
        model = MODELS[request.model]
        path = _start_path(request)
        start = None if path is None else read_weights(path, model=request.model)
        preset = configured(
            model,
            request.preset,
            request.config,
            start=None if start is None else start.document["config"],
            epochs=request.epochs,
            device=request.device,
        )
        training, validation = map(request.at_rates, request.split(preset.training.validation))
        if preset.training.validation and not validation:
            LOG.warning("%s", ONE_GRAPH)
        objective = named_objective(request.objective)
        check_reward(request.objective, request.reward)
        for problem in (*training, *validation):
            objective.check(problem)
        settings = {
            "model": model.name,
            "seed": request.seed,
            **request.objective_entry(),
            "reward": request.reward if isinstance(request.reward, str) else MEASURED,
            "rates": list(request.rates),
            "start": None if path is None else sha256(read_bytes(path)).hexdigest(),
            "data": _digest(training, validation),
            **{f"training.{k}": v for k, v in preset.training.model_dump(mode="json").items()},
            **{f"model.{k}": v for k, v in preset.model.model_dump(mode="json").items()},
        }
        return cls(request, model, start, preset, training, validation, settings)

    def checkpoint(self, files: ExitStack) -> "Checkpoint | None":
        """Return the checkpoint to resume; no run is overwritten, none mixed with another.

        Until ``files`` are closed, no other process trains into the folder.
        """
        from streamplace.learn.checkpoint import NAME, check_settings, read_checkpoint

        folder = self.request.folder
        make_folder(folder)
        files.enter_context(claim_folder(folder))
        check_folder(folder, resume=self.request.resume)
        if not self.request.resume:
            return None
        if not is_file(folder / NAME):  # it was stopped before its first checkpoint
            LOG.warning("%s: holds no run to resume; a new one begins", spot(folder))
            return None
        checkpoint = read_checkpoint(folder)
        check_settings(checkpoint, self.settings, folder)
        return checkpoint

    def train(
        self, checkpoint: "Checkpoint | None", watcher: Watcher | None, track: Track
    ) -> Trained:
        """Find the targets, then train, and prove the optima to compare with."""
        from streamplace.learn.training_loop import FIRST, TrainingLoop, begin_from, built

        request, folder = self.request, self.request.folder
        solver = Solver(request.objective, request.seed, folder, request.on, track)
        targets = solver.targets(self.training) if self.model.supervised else ()
        board = TensorBoardWatcher(folder / "tensorboard")
        history, optima = History(), np.full(len(self.validation), np.nan)
        with ray_connection(request.on), self._judge() as judge:
            make = partial(built, self.model, self._task(targets, judge), self.preset)
            learner = make()
            if self.start is not None:
                begin_from(learner, self.start, str(request.start))
            with gradient_workers(request, learner, make) as workers:
                loop = TrainingLoop(
                    learner,
                    workers,
                    config=self.preset.training,
                    folder=folder,
                    settings=self.settings,
                    origin=self._origin(),
                    validation=len(self.validation),
                )
                try:
                    loop.run([board, *([watcher] if watcher else [])], checkpoint)
                    optima = self._optima(solver)
                finally:
                    history = loop.history
                    title = f"{self.model.name}, trained on {self.trained_on}"
                    write_picture(history, optima, request.objective, title, folder / PICTURE)
        return Trained(
            self.model.name,
            folder,
            history,
            self.preset.training.epochs,
            request.rates_of(self.validation),
            optima,
            problems=self.validation or self.training,
            held_out=bool(self.validation),
            objective=request.objective,
            seed=request.seed,
            start=_start_path(request) or folder / FIRST,
            trained_on=self.trained_on,
        )

    @property
    def trained_on(self) -> str:
        """What the model is trained on, in words."""
        if self._makes_graphs:
            return "new graphs in every step"
        return counted(len(self.training) // max(1, len(self.request.rates)), "graph")

    @property
    def _makes_graphs(self) -> bool:
        return bool(getattr(self.preset.model, "fresh", 0))

    def _optima(self, solver: Solver) -> Floats:
        """Rewards of the validation optima, NaN for unknown ones."""
        if self.request.reward not in JUDGES or not solver.can_prove:
            return np.full(len(self.validation), np.nan)
        optima, objective = solver.optima(self.validation), self.request.objective
        for i in np.flatnonzero(~np.isnan(optima)):
            value = optima[i : i + 1]
            optima[i : i + 1] = rewards_of_values(objective, self.validation[i], value)
        return optima

    def _judge(self) -> AbstractContextManager[str | Measure]:
        if self.request.reward != REAL:
            return nullcontext(self.request.reward)
        from streamplace.engines.ray.passes import RayPasses

        return RayPasses([*self.training, *self.validation])

    def _task(self, targets: tuple[Ints | None, ...], judge: str | Measure) -> LearningTask:
        return LearningTask(
            training=self.training,
            validation=self.validation,
            seed=self.request.seed % 2**64,  # torch accepts no larger ones
            device=self.request.device,
            threads=available_cores() if self.request.on is None else 1,
            objective=self.request.objective,
            reward=judge,
            targets=targets,
            features=None if self.start is None else self.start.document["features"],
        )

    def _origin(self) -> dict[str, Any]:
        """Origin of the weights, for their file: this training, and that of its initial weights."""
        start = self.start
        made = self._makes_graphs  # which no later data set has
        graphs = () if made else (problem.graph for problem in self.training)
        return {
            "command": self.request.command.encode(errors="backslashreplace").decode(),
            **self.request.objective_entry(),
            "seed": self.request.seed,
            "data": self.settings["data"],
            "rates": list(self.request.rates),
            "problems": len(self.training),
            "start": start and {"sha256": self.settings["start"], **start.document["training"]},
            "streamplace": version("streamplace"),
            **described(graphs),
        }


def _start_path(request: TrainRequest) -> Path | None:
    """File of the weights to begin from, None if training begins from random ones."""
    if request.start is None:
        return None
    return shipped(request.model) if request.start == SHIPPED else Path(request.start)


def _digest(training: Sequence[Problem], validation: Sequence[Problem]) -> str:
    """Content hash of the data: equal if all placements have the same values."""
    text = "|".join(" ".join(map(problem_hash, part)) for part in (training, validation))
    return sha256(text.encode()).hexdigest()


class TrainingProgress(Watcher):
    """Shows the progress of training; the remaining time is estimated from the steps so far."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._bar = ExitStack()
        self._tick = Ticker()
        self._epochs = 0
        self._note = ""

    def begin(self, history: History, epochs: int, steps: int) -> None:
        """Open the bar over the remaining steps."""
        done = len(history.epochs)
        self._epochs = epochs
        self._note = _epoch_line(history.epochs[-1], epochs) if done else ""
        bar = progress(f"training {self._model}", (epochs - done) * steps)
        self._tick = self._bar.enter_context(bar)

    def step(self, epoch: int, report: StepReport) -> None:
        """Move the bar on by one."""
        self._tick(self._note or step_line(epoch, self._epochs, report))

    def epoch(self, history: History) -> None:
        """Show the epoch until the next one is complete."""
        self._note = _epoch_line(history.epochs[-1], self._epochs)

    def end(self) -> None:
        """Close the bar."""
        self._bar.close()


def step_line(epoch: int, epochs: int, report: StepReport) -> str:
    """Summary of a step in one line; a GPU is not waited for."""
    if getattr(report.reward, "is_cuda", False):
        return f"epoch {epoch}/{epochs}"
    now = f"reward {report.mean.reward:.3f}, best known {report.mean.best:.3f}"
    return f"epoch {epoch}/{epochs}: {now}"


def _epoch_line(epoch: Epoch, epochs: int) -> str:
    """Summary of an epoch in one line."""
    held = "" if epoch.validation is None else f", validation {epoch.validation:.3f}"
    line = f"epoch {epoch.epoch}/{epochs}: reward {epoch.reward:.3f}, best known {epoch.best:.3f}"
    return line + held
