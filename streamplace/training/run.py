"""Training of a model on problems, into a folder: the work behind `streamplace.train`.

A `TrainRequest` becomes a `TrainingRun`, with everything read and checked. It finds the targets and
optima, builds the learner, and hands it to `streamplace.learn.training_loop.TrainingLoop`.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.errors import SettingError
from streamplace.evaluate.records import problem_hash
from streamplace.io.appending import claim_folder
from streamplace.io.extras import importing_torch
from streamplace.io.files import is_file, make_folder, read_bytes, spot
from streamplace.model.arrays import Floats
from streamplace.model.problem import Problem
from streamplace.objectives.registry import named_objective
from streamplace.training.request import REAL, SHIPPED, TrainRequest
from streamplace.training.solutions import Solver, Track, untracked
from streamplace.training.trained import Trained

if TYPE_CHECKING:
    from streamplace.io.weights import Weights
    from streamplace.learn.checkpoint import Checkpoint
    from streamplace.learn.config import Preset
    from streamplace.learn.learner import Learner
    from streamplace.learn.parameters import Arrays
    from streamplace.learn.registry import LearnedModel, LearningTask
    from streamplace.learn.reward import Measure
    from streamplace.learn.shards import GradientWorkers
    from streamplace.learn.watching import Watcher

LOG = logging.getLogger(__name__)
ONE_GRAPH = (
    "there is only one graph, so none is held out: nothing says how the model places other graphs; "
    "give several"
)
MEASURED = "measured"


def run_training(
    request: TrainRequest,
    *,
    watcher: "Watcher | None" = None,
    track: Track = untracked,
) -> Trained:
    """Train a model into a folder, or go on where training was stopped.

    ``track`` shows the progress of the work before training.
    """
    from streamplace.learn.registry import MODELS
    from streamplace.learn.training_loop import check_device

    MODELS[request.model].check(request.objective)
    check_device(request.device)
    run = TrainingRun.of(request)
    with ExitStack() as files:
        return run.train(run.checkpoint(files), watcher, track)


@contextmanager
def gradient_workers(
    request: TrainRequest, learner: "Learner", make: "Callable[[], Learner]"
) -> "Iterator[GradientWorkers]":
    """Compute for a learner that ``make`` built, on this machine or on Ray."""
    from streamplace.learn.shards import thread_workers

    if request.on is None:
        with thread_workers(learner, request.device) as threads:
            yield threads
        return
    from streamplace.training.ray_workers import ray_workers

    with ray_workers(request.on, learner, make) as workers:
        yield workers


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
    model: "LearnedModel"
    start: "Weights | None"
    preset: "Preset"
    training: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    settings: dict[str, Any]  # values that a resumed run must share with this one; fit for JSON

    @classmethod
    def of(cls, request: TrainRequest) -> "TrainingRun":
        """Read the weights to begin from and the options, and split the problems."""
        from streamplace.learn.config import configured
        from streamplace.learn.registry import MODELS
        from streamplace.learn.reward import JUDGES, check_measured, check_simulated

        model = MODELS[request.model]
        start, digest = _start(request)
        base = None if start is None else start.document["config"]
        preset = configured(
            model, request.preset, request.config, start=base, epochs=request.epochs
        )
        training, validation = map(request.at_rates, request.split(preset.training.validation))
        if preset.training.validation and not validation:
            LOG.warning("%s", ONE_GRAPH)
        objective = named_objective(request.objective)
        if request.reward in JUDGES:
            check_simulated(request.objective, str(request.reward))
        else:
            check_measured(request.objective)
        for problem in (*training, *validation):
            objective.check(problem)
        settings = {
            "model": model.name,
            "seed": request.seed,
            **request.objective_entry(),
            "reward": request.reward if isinstance(request.reward, str) else MEASURED,
            "rates": list(request.rates),
            "start": digest,
            "data": _digest(training, validation),
            **{f"training.{k}": v for k, v in preset.training.model_dump(mode="json").items()},
            **{f"model.{k}": v for k, v in preset.model.model_dump(mode="json").items()},
        }
        return cls(request, model, start, preset, training, validation, settings)

    def checkpoint(self, files: ExitStack) -> "Checkpoint | None":
        """Return the checkpoint to resume; no run is overwritten, none mixed with another.

        Until ``files`` are closed, no other process trains into the folder.
        """
        from streamplace.learn.checkpoint import check_settings, read_checkpoint

        folder = self.request.folder
        if self.request.resume:
            files.enter_context(claim_folder(folder))
            checkpoint = read_checkpoint(folder)
            check_settings(checkpoint, self.settings, folder)
            return checkpoint
        make_folder(folder)
        files.enter_context(claim_folder(folder))
        check_folder(folder, resume=False)
        return None

    def train(
        self, checkpoint: "Checkpoint | None", watcher: "Watcher | None", track: Track
    ) -> Trained:
        """Find the targets and the optima, then train."""
        from streamplace.learn.training_loop import FIRST, TrainingLoop, begin_from, built

        request = self.request
        solved = self._solutions(Solver(request, track))
        with self._judge() as judge:
            make = partial(built, self.model, self._task(solved, judge), self.preset)
            learner = make()
            if self.start is not None:
                begin_from(learner, self.start, str(request.start))
            with gradient_workers(request, learner, make) as workers:
                history = TrainingLoop(
                    learner,
                    workers,
                    config=self.preset.training,
                    folder=request.folder,
                    settings=self.settings,
                    origin=self._origin(),
                    optima=solved["optima"],
                ).run(self._watcher(solved["optima"], watcher), checkpoint)
        return Trained(
            self.model.name,
            request.folder,
            history,
            self.preset.training.epochs,
            request.rates_of(self.validation),
            solved["optima"],
            problems=self.validation or self.training,
            held_out=bool(self.validation),
            objective=request.objective,
            seed=request.seed,
            start=_start_path(request) or request.folder / FIRST,
        )

    def _solutions(self, solver: Solver) -> "Arrays":
        """Targets of the training problems by number, and optima of the validation problems."""
        targets = solver.targets(self.training) if self.model.supervised else ()
        by_number = {str(i): target for i, target in enumerate(targets) if target is not None}
        return {**by_number, "optima": self._optima(solver)}

    def _optima(self, solver: Solver) -> Floats:
        """Rewards of the optima of the validation problems, NaN for those that are unknown."""
        from streamplace.learn.reward import JUDGES, rewards_of_values

        if self.request.reward not in JUDGES or not solver.can_prove:
            return np.full(len(self.validation), np.nan)
        optima, objective = solver.optima(self.validation), self.request.objective
        for i in np.flatnonzero(~np.isnan(optima)):
            optima[i : i + 1] = rewards_of_values(objective, self.validation[i], optima[i : i + 1])
        return optima

    def _watcher(self, optima: Floats, watcher: "Watcher | None") -> "Watcher":
        """TensorBoard, the curve and the caller's watcher."""
        from streamplace.learn.watching import TensorBoardWatcher, WatcherList
        from streamplace.training.watchers import CurveFile

        folder = self.request.folder
        board = TensorBoardWatcher(folder / "tensorboard")
        curve = CurveFile(folder / "curve.png", optima, self.request.objective)
        return WatcherList(board, curve, *([watcher] if watcher else []))

    def _judge(self) -> "AbstractContextManager[str | Measure]":
        if self.request.reward != REAL:
            return nullcontext(self.request.reward)
        from streamplace.engines.ray.passes import RayPasses

        return RayPasses([*self.training, *self.validation])

    def _task(self, solved: "Arrays", judge: "str | Measure") -> "LearningTask":
        from streamplace.learn.registry import LearningTask

        targets = tuple(solved.get(str(i)) for i in range(len(self.training)))
        return LearningTask(
            training=self.training,
            validation=self.validation,
            seed=self.request.seed % 2**64,  # torch accepts no larger ones
            device=self.request.device,
            objective=self.request.objective,
            reward=judge,
            targets=targets if self.model.supervised else (),
            features=None if self.start is None else self.start.document["features"],
        )

    def _origin(self) -> dict[str, Any]:
        """Origin of the weights, for their file: this training, and that of its initial weights."""
        start = self.start
        return {
            "command": self.request.command.encode(errors="backslashreplace").decode(),
            **self.request.objective_entry(),
            "seed": self.request.seed,
            "data": self.settings["data"],
            "rates": list(self.request.rates),
            "problems": len(self.training),
            "start": start and {"sha256": self.settings["start"], **start.document["training"]},
            "streamplace": version("streamplace"),
        }


def _start(request: TrainRequest) -> "tuple[Weights | None, str | None]":
    """Weights to begin from and their digest, None if training begins from random ones."""
    from streamplace.io.weights import read_weights

    path = _start_path(request)
    if path is None:
        return None, None
    return read_weights(path, model=request.model), sha256(read_bytes(path)).hexdigest()


def _start_path(request: TrainRequest) -> Path | None:
    """File of the weights to begin from, None if training begins from random ones."""
    from streamplace.learn.loading import shipped

    if request.start is None:
        return None
    return shipped(request.model) if request.start == SHIPPED else Path(request.start)


def _digest(training: Sequence[Problem], validation: Sequence[Problem]) -> str:
    """Content hash of the data: equal if all placements have the same values."""
    text = "|".join(" ".join(map(problem_hash, part)) for part in (training, validation))
    return sha256(text.encode()).hexdigest()
