"""Training of a model on problems, into a folder: the work behind `streamplace.train`."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.errors import FormatError, SettingError
from streamplace.evaluate.records import problem_hash
from streamplace.io.appending import claim_folder
from streamplace.io.files import is_file, read_bytes, spot
from streamplace.model.arrays import Floats
from streamplace.model.problem import Problem
from streamplace.objectives.registry import named_objective
from streamplace.training.run import REAL, SHIPPED, TrainingRun
from streamplace.training.solutions import Solver, Track, untracked
from streamplace.training.trained import Trained

if TYPE_CHECKING:
    from streamplace.io.weights import Weights
    from streamplace.learn.checkpoint import Checkpoint
    from streamplace.learn.config import Preset
    from streamplace.learn.registry import LearnedModel, LearningTask
    from streamplace.learn.reward import Measure
    from streamplace.learn.watching import Watcher
    from streamplace.learn.workers import Arrays, Workers

LOG = logging.getLogger(__name__)
ONE_GRAPH = (
    "there is only one graph, so none is held out: nothing says how the model places other graphs; "
    "give several"
)
SOLUTIONS = "solutions.jsonl"
MEASURED = "measured"


def train_run(
    run: TrainingRun,
    folder: Path,
    *,
    resume: bool = False,
    watcher: "Watcher | None" = None,
    track: Track = untracked,
    workers: "Workers | None" = None,
) -> Trained:
    """Train a model into a folder, or go on where training was stopped.

    Parameters
    ----------
    workers
        Processes that compute; this one by default.
    track
        Wraps the work that comes before training, to show progress.
    """
    from streamplace.learn.building import take_device
    from streamplace.learn.registry import MODELS
    from streamplace.learn.workers import LocalWorkers

    workers = workers or LocalWorkers()
    model = MODELS[run.model]
    model.check(run.objective)
    take_device(run.device)
    if run.reward == REAL and not isinstance(workers, LocalWorkers):
        raise SettingError(
            "real passes (the reward ray) are measured one after the other on one machine; train "
            "in one process, on this machine"
        )
    prepared = PreparedRun.of(run, model, folder, workers)
    with ExitStack() as files:
        return prepared.train(prepared.checkpoint(resume, files), watcher, track)


def check_no_run(folder: Path) -> None:
    """Raise SettingError where a model was trained into the folder."""
    from streamplace.learn.checkpoint import NAME

    if is_file(folder / NAME):
        raise SettingError(
            f"{spot(folder)}: holds a run already; continue it with --resume, or name another "
            "folder"
        )


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRun:
    """A run with everything read and checked."""

    run: TrainingRun
    model: "LearnedModel"
    folder: Path
    workers: "Workers"
    start: "Weights | None"
    preset: "Preset"
    training: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    settings: dict[str, Any]

    @classmethod
    def of(
        cls, run: TrainingRun, model: "LearnedModel", folder: Path, workers: "Workers"
    ) -> "PreparedRun":
        """Read and check what the run names."""
        from streamplace.learn.config import configured

        start, digest = _start(run)
        base = None if start is None else start.document["config"]
        preset = configured(model, run.preset, run.config, start=base, epochs=run.epochs)
        training, validation = map(run.at_rates, run.split(preset.training.validation))
        if preset.training.validation and not validation:
            LOG.warning("%s", ONE_GRAPH)
        judge = named_objective(run.objective)
        for problem in (*training, *validation):
            judge.check(problem)
        settings = {
            "model": model.name,
            "seed": run.seed,
            **run.named_objective(),
            "reward": run.reward if isinstance(run.reward, str) else MEASURED,
            "rates": list(run.rates),
            "start": digest,
            "data": _digest(training, validation),
            **{f"training.{k}": v for k, v in preset.training.model_dump(mode="json").items()},
            **{f"model.{k}": v for k, v in preset.model.model_dump(mode="json").items()},
        }
        return cls(run, model, folder, workers, start, preset, training, validation, settings)

    def checkpoint(self, resume: bool, files: ExitStack) -> "Checkpoint | None":
        """Return the checkpoint to go on from, as the leading process finds it.

        Until ``files`` are closed, no other process trains into the folder.
        """
        from streamplace.learn.checkpoint import as_arrays, of_arrays

        def read() -> "Arrays":
            return as_arrays(self._open(resume, files), self.settings)

        checkpoint, settings = of_arrays(self.workers.shared(read))
        if settings != self.settings:
            raise SettingError(
                "this process was started with other options or on other data than the first one; "
                "start all processes with the same command"
            )
        return checkpoint

    def _open(self, resume: bool, files: ExitStack) -> "Checkpoint | None":
        """Open the folder; no run is overwritten, none mixed with another."""
        from streamplace.learn.checkpoint import check_settings, read_checkpoint

        if resume:
            files.enter_context(claim_folder(self.folder))
            checkpoint = read_checkpoint(self.folder)
            check_settings(checkpoint, self.settings, self.folder)
            return checkpoint
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise FormatError(
                f"{spot(self.folder)}: cannot create the folder: "
                f"{getattr(error, 'strerror', error)}"
            ) from None
        files.enter_context(claim_folder(self.folder))
        check_no_run(self.folder)
        return None

    def train(
        self, checkpoint: "Checkpoint | None", watcher: "Watcher | None", track: Track
    ) -> Trained:
        """Find the targets and the optima, then train."""
        from streamplace.learn.building import begin_from, built
        from streamplace.learn.training import FIRST, TrainingSchedule, train

        run, config, workers = self.run, self.preset.training, self.workers
        solver = Solver(run, self.folder / SOLUTIONS, track, workers.on)
        solved = workers.shared(partial(self._solutions, solver))
        optima = solved["optima"]
        schedule = TrainingSchedule(
            config=config,
            seed=run.seed,
            folder=self.folder if workers.leads else None,
            model=self.model.name,
            settings=self.settings,
            origin=self._origin(),
            optima=optima,
            trained=self.start is not None,
        )
        watchers = self._watchers(optima, watcher)
        with self._judge() as judge:
            make = partial(built, self.model, self._task(solved, judge), self.preset)
            learner = make()
            if self.start is not None:
                begin_from(learner, self.start, str(run.start))
            with workers.gradient_workers(learner, make, run.device) as gradient_workers:
                history = train(learner, schedule, gradient_workers, watchers, checkpoint)
        rates = tuple(problem.graph.source_rate for problem in self.validation)
        return Trained(
            self.model.name,
            self.folder,
            history,
            config.epochs,
            rates,
            optima,
            problems=self.validation or self.training,
            held_out=bool(self.validation),
            objective=run.objective,
            seed=run.seed,
            start=_start_path(run) or self.folder / FIRST,
        )

    def _solutions(self, solver: Solver) -> "Arrays":
        """Targets of the training problems by number, and optima of the validation problems."""
        targets = solver.targets(self.training) if self.model.supervised else ()
        by_number = {str(i): target for i, target in enumerate(targets) if target is not None}
        return {**by_number, "optima": self._optima(solver)}

    def _optima(self, solver: Solver) -> Floats:
        """Rewards of the optima of the validation problems, NaN for those that are unknown."""
        from streamplace.learn.reward import JUDGES, rewards_of_values

        if self.run.reward not in JUDGES or not solver.can_prove:
            return np.full(len(self.validation), np.nan)
        optima, objective = solver.optima(self.validation), self.run.objective
        for i in np.flatnonzero(~np.isnan(optima)):
            optima[i : i + 1] = rewards_of_values(objective, self.validation[i], optima[i : i + 1])
        return optima

    def _watchers(self, optima: Floats, watcher: "Watcher | None") -> "Watcher":
        """Watchers of the training; the leading process alone has any."""
        from streamplace.learn.watching import Board, Several, Silent
        from streamplace.training.curve import CurveFile

        if not self.workers.leads:
            return Silent()
        board = Board(self.folder / "tensorboard")
        curve = CurveFile(self.folder / "curve.png", optima, self.run.objective)
        return Several(board, curve, watcher or Silent())

    def _judge(self) -> "AbstractContextManager[str | Measure]":
        """The judge of sampled placements, for as long as the training takes."""
        if self.run.reward != REAL:
            return nullcontext(self.run.reward)
        from streamplace.engines.ray.passes import RayPasses
        from streamplace.learn.reward import check_measured

        check_measured(self.run.objective)
        return RayPasses([*self.training, *self.validation])

    def _task(self, solved: "Arrays", judge: "str | Measure") -> "LearningTask":
        """The task of the learner: its problems, targets and reward."""
        from streamplace.learn.registry import LearningTask

        targets = tuple(solved.get(str(i)) for i in range(len(self.training)))
        return LearningTask(
            training=self.training,
            validation=self.validation,
            seed=self.run.seed,
            device=self.run.device,
            objective=self.run.objective,
            reward=judge,
            targets=targets if self.model.supervised else (),
            features=None if self.start is None else self.start.document["features"],
        )

    def _origin(self) -> dict[str, Any]:
        """Facts that the weights file holds about this training and about that of its start."""
        start = self.start
        return {
            "command": self.run.command,
            **self.run.named_objective(),
            "seed": self.run.seed,
            "data": self.settings["data"],
            "rates": list(self.run.rates),
            "problems": len(self.training),
            "start": start and {"sha256": self.settings["start"], **start.document["training"]},
            "streamplace": version("streamplace"),
        }


def _start(run: TrainingRun) -> "tuple[Weights | None, str | None]":
    """Weights to begin from and their digest, None if training begins from random ones."""
    from streamplace.io.weights import read_weights

    path = _start_path(run)
    if path is None:
        return None, None
    return read_weights(path, model=run.model), sha256(read_bytes(path)).hexdigest()


def _start_path(run: TrainingRun) -> Path | None:
    """File of the weights to begin from, None if training begins from random ones."""
    from streamplace.learn.loading import shipped

    if run.start is None:
        return None
    return shipped(run.model) if run.start == SHIPPED else Path(run.start)


def _digest(training: Sequence[Problem], validation: Sequence[Problem]) -> str:
    """Content hash of the data: equal where every placement of every problem is worth the same."""
    text = "|".join(" ".join(map(problem_hash, part)) for part in (training, validation))
    return sha256(text.encode()).hexdigest()
