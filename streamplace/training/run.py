"""Training of a model on problems, into a folder: the work behind `streamplace.train`.

`TrainingRun.of` reads and checks everything that a `TrainRequest` names. The run finds the targets,
builds the learner, trains it (`streamplace.learn.training_loop.TrainingLoop`), and proves optima.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.cores import available_cores
from streamplace.errors import SettingError
from streamplace.evaluate.on_ray import connected
from streamplace.evaluate.records import problem_hash
from streamplace.evaluate.solutions import Solver, Track
from streamplace.evaluate.trained_on import CHOSEN_BY, TRAINED_ON, described
from streamplace.evaluate.training_answers import PICTURE, write_picture
from streamplace.io.extras import importing
from streamplace.io.files import claim_folder, is_file, make_folder, read_bytes, spot
from streamplace.io.weights import Weights, read_weights
from streamplace.learn.config import MemoryConfig, Preset
from streamplace.learn.history import History, Watcher
from streamplace.learn.learner import Learner
from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import MODELS, LearnedModel, LearningTask, configured
from streamplace.learn.reward import SIMULATED, Measure, check_reward, rewards_of_values
from streamplace.learn.trained import Trained
from streamplace.model.arrays import Floats, Ints
from streamplace.model.defaults import PRESET
from streamplace.model.message_text import counted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import DEFAULT, named_objective, suggested_by_all
from streamplace.progress import tracked
from streamplace.training.held_out import held_out, warn_of_few

if TYPE_CHECKING:
    import torch

    from streamplace.learn.checkpoint import Checkpoint
    from streamplace.learn.shards import GradientWorkers

LOG = logging.getLogger(__name__)
MEASURED = "measured"
RAY, SHIPPED = "ray", "shipped"


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """A training of a model on problems."""

    model: str
    problems: tuple[Problem, ...]
    folder: Path  # folder of the run: weights, checkpoint, history and curve
    preset: str = PRESET
    config: Path | None = None  # TOML file that changes the preset
    epochs: int | None = None  # None for the preset's
    rate: tuple[float, ...] = ()  # rates of every problem; empty for the rate of its graph
    objective: str = ""  # empty for the graphs' own
    reward: str | Measure = "steady"
    device: str = "auto"
    on: str | None = None  # address of the Ray that computes
    start: str | None = None  # weights to begin from
    resume: bool = False
    seed: int = 0
    is_first: bool = True  # whether it is the first of several seeds; only it warns of few graphs
    command: str = ""  # command line of the user, for the weights file

    def __post_init__(self) -> None:
        objective = self.objective or suggested_by_all(p.graph for p in self.problems)
        object.__setattr__(self, "objective", objective)

    def at_rates(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Every problem at every rate."""
        rates = self.rate or (None,)
        return tuple(problem.at_rate(rate) for problem in problems for rate in rates)

    def rates_of(self, problems: Sequence[Problem]) -> tuple[float, ...]:
        """Requested rate of every problem of `at_rates`, whose own rates are rounded."""
        if rates := self.rate:
            return rates * (len(problems) // len(rates))
        is_pass = named_objective(self.objective).kind == "pass"  # a pass has no rate
        return tuple(1.0 if is_pass else problem.graph.source_rate for problem in problems)

    def objective_entry(self) -> dict[str, str]:
        """The objective as an entry of a document; empty for the default objective."""
        return {} if self.objective == DEFAULT else {"objective": self.objective}


def run_training(
    request: TrainRequest, *, watcher: Watcher | None = None, track: Track = tracked
) -> Trained:
    """Train a model into a folder, or continue a training that was stopped.

    ``track`` shows the progress of the work before training.
    """
    MODELS[request.model].check(request.objective)
    run = TrainingRun.of(request)
    make_folder(request.folder)
    with claim_folder(request.folder):
        return run.train(watcher, track)


def gradient_workers(
    ray: Any, learner: Learner, make: Callable[[], Learner]
) -> "AbstractContextManager[GradientWorkers]":
    """Compute for a learner that ``make`` built, on Ray, or on this machine where that is None."""
    if ray is None:
        from streamplace.learn.shards import thread_workers

        return thread_workers(learner)
    from streamplace.training.ray_workers import RayWorkers

    return nullcontext(RayWorkers(ray, learner, make))


def check_folder(folder: Path, *, resume: bool) -> None:
    """Raise SettingError if a model was trained into the folder, unless that run is resumed.

    Raise MissingPackageError if torch is missing.
    """
    with importing("learn"):
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
    fixed: dict[str, Any]  # values that a resumed run must share, for JSON

    @classmethod
    def of(cls, request: TrainRequest) -> "TrainingRun":
        """Read the weights to begin from and the options, and split the problems."""
        model, objective = MODELS[request.model], request.objective
        path = _start_path(request)
        start = None if path is None else read_weights(path, model=request.model)
        preset = configured(
            model,
            request.preset,
            request.config,
            start=None if start is None else start.document["config"],
            epochs=request.epochs,
        )
        training, validation = map(
            request.at_rates, held_out(request.problems, preset.training.validation, request.seed)
        )
        check_reward(objective, request.reward)
        for problem in (*training, *validation):
            named_objective(objective).check(problem)
        fixed = {
            "model": model.name,
            "seed": request.seed,
            **request.objective_entry(),
            "reward": request.reward if isinstance(request.reward, str) else MEASURED,
            "rates": list(request.rate),
            "start": None if path is None else sha256(read_bytes(path)).hexdigest(),
            "data": _digest(training, validation),
            **{f"training.{k}": v for k, v in preset.training.model_dump(mode="json").items()},
            **{f"model.{k}": v for k, v in preset.model.model_dump(mode="json").items()},
        }
        run = cls(request, model, start, preset, training, validation, fixed)
        LOG.info("training on %s", run.device)
        return run

    def checkpoint(self) -> "Checkpoint | None":
        """Checkpoint to resume, None for a new run; SettingError if the folder has another run."""
        from streamplace.learn.checkpoint import NAME, check_settings, read_checkpoint

        folder = self.request.folder
        check_folder(folder, resume=self.request.resume)
        if not self.request.resume:
            return None
        if not is_file(folder / NAME):  # stopped before its first checkpoint
            LOG.warning("%s: holds no run to resume; a new one begins", spot(folder))
            return None
        checkpoint = read_checkpoint(folder)
        check_settings(checkpoint, self.fixed, folder)
        return checkpoint

    def train(self, watcher: Watcher | None, track: Track) -> Trained:
        """Find the targets, then train, and prove the optima to compare with."""
        from streamplace.learn.training_loop import FIRST, TrainingLoop, begin_from, built

        checkpoint = self.checkpoint()
        if self.request.is_first:
            warn_of_few(self._graphs(self.validation), wanted=self.preset.training.validation > 0)
        request, folder = self.request, self.request.folder
        solver = Solver(request.objective, request.seed, folder, request.on, track)
        targets: tuple[Ints | None, ...] = ()
        options = self.preset.model
        if self.model.supervised:
            targets = solver.targets(self.training)
        elif isinstance(options, MemoryConfig) and options.searched:
            targets = solver.searched(self.training, options.searched)
        history, optima = History(), np.full(len(self.validation), np.nan)
        with connected(request.on) as ray, self._reward() as reward:
            make = partial(built, self.model, self._task(targets, reward), self.preset)
            learner = make()
            if self.start is not None:
                begin_from(learner, self.start, str(request.start))
            with gradient_workers(ray, learner, make) as workers:
                loop = TrainingLoop(
                    learner,
                    workers,
                    config=self.preset.training,
                    folder=folder,
                    settings=self.fixed,
                    origin=self._origin(),
                    chosen_by=described(CHOSEN_BY, (one.graph for one in self.validation)),
                    validation=len(self.validation),
                )
                try:
                    loop.run(watcher, checkpoint)
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
    def device(self) -> "torch.device":
        """Device that torch computes on; workers of Ray compute on CPUs."""
        from streamplace.learn.device import named_device

        return named_device(self.request.device if self.request.on is None else "cpu")

    @property
    def trained_on(self) -> str:
        """Number of training graphs, in words."""
        return counted(self._graphs(self.training), "graph")

    def _graphs(self, problems: Sequence[Problem]) -> int:
        return len(problems) // max(1, len(self.request.rate))

    def _optima(self, solver: Solver) -> Floats:
        """Rewards of the validation optima, NaN for unknown ones."""
        if self.request.reward not in SIMULATED or not solver.can_prove:
            return np.full(len(self.validation), np.nan)
        optima, objective = solver.optima(self.validation), self.request.objective
        for i in np.flatnonzero(~np.isnan(optima)):
            value = optima[i : i + 1]
            optima[i : i + 1] = rewards_of_values(objective, self.validation[i], value)
        return optima

    def _reward(self) -> AbstractContextManager[str | Measure]:
        if self.request.reward != RAY:
            return nullcontext(self.request.reward)
        from streamplace.engines.ray.passes import RayPasses

        return RayPasses([*self.training, *self.validation])

    def _task(self, targets: tuple[Ints | None, ...], reward: str | Measure) -> LearningTask:
        return LearningTask(
            training=self.training,
            validation=self.validation,
            seed=self.request.seed % 2**64,  # the limit of torch
            device=str(self.device),
            threads=available_cores() if self.request.on is None else 1,
            objective=self.request.objective,
            reward=reward,
            targets=targets,
            features=None if self.start is None else self.start.document["features"],
        )

    def _origin(self) -> dict[str, Any]:
        """Origin of the weights, for their file: this training, and its start."""
        start = self.start
        return {
            "command": self.request.command.encode(errors="backslashreplace").decode(),
            **self.request.objective_entry(),
            "seed": self.request.seed,
            "data": self.fixed["data"],
            "rates": list(self.request.rate),
            "problems": len(self.training),
            "start": start and {"sha256": self.fixed["start"], **start.document["training"]},
            "streamplace": version("streamplace"),
            **described(TRAINED_ON, (problem.graph for problem in self.training)),
        }


def _start_path(request: TrainRequest) -> Path | None:
    """File of the weights to begin from, None if training begins from random ones."""
    start = request.start
    if start is None:
        return None
    return shipped(request.model) if start == SHIPPED else Path(start)


def _digest(training: Sequence[Problem], validation: Sequence[Problem]) -> str:
    """Content hash of the data: equal if all placements have the same values."""
    text = "|".join(" ".join(map(problem_hash, part)) for part in (training, validation))
    return sha256(text.encode()).hexdigest()
