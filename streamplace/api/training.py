"""``train``: a model learns on graphs or problems."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from streamplace.errors import SettingError
from streamplace.model.defaults import PRESET
from streamplace.model.message_text import counted
from streamplace.model.paths import FilePath, is_path, path_of, wrong
from streamplace.settings.convert import Whole, in_tuple
from streamplace.settings.option import HOW_LONG, KEYS, OUTPUT, WHERE, argument, option
from streamplace.settings.searches import DataSetOptions, RateOptions
from streamplace.settings.shared import DeviceOptions
from streamplace.settings.verb import SILENT, Progress, Verb

if TYPE_CHECKING:
    from streamplace.display.report import Report
    from streamplace.evaluate.solutions import Track
    from streamplace.evaluate.training_answers import Answers
    from streamplace.io.datasets import Reader
    from streamplace.io.given import ClusterLike
    from streamplace.io.given_sets import GraphsLike
    from streamplace.learn.history import Watcher
    from streamplace.learn.reward import Measure
    from streamplace.learn.trained import Trained
    from streamplace.model.problem import Problem
    from streamplace.model.units import Quantity
    from streamplace.training.run import TrainRequest

WRITTEN = {
    "best.safetensors": KEYS,
    "first.safetensors": KEYS,
    "last.safetensors": KEYS,
    "history.jsonl": frozenset({"epoch"}),
    "solutions.jsonl": KEYS,
    "summary.json": frozenset({"best_epoch"}),
    "curve.png": KEYS,
}
"""Files of a training, with fields by which those with JSON are recognised."""


class Train(RateOptions, DataSetOptions, DeviceOptions, Verb):
    """Train MODEL on graphs or problems.

    A tenth of the graphs is held out for validation. The folder --out then holds the weights that
    place these graphs best (best.safetensors; use them with --placer MODEL:weights=FILE),
    history.jsonl, curve.png, and the last weights with all that --resume needs (last.safetensors):
    a training that was stopped or killed then continues as if it had never stopped.
    """

    model: Any = argument(is_file=False)
    graphs: Any = option(
        "--data FILE", "Graphs to train on: a data set, a graph or a folder.", is_needed=True
    )
    out: Path = option(
        "--out FILE", "Folder of the run; an existing one needs --resume.", OUTPUT, is_needed=True
    )
    preset: str = option(
        "--preset NAME", "Set of options; each model below lists its own.", default=PRESET
    )
    config: Path | None = option(
        "--config FILE", "TOML file whose tables [training] and [model] change the preset."
    )
    epochs: Whole | None = option(
        "--epochs N", "Number of epochs.  [default: that of the preset]", HOW_LONG
    )
    objective: str = option(
        "--objective NAME", "What to learn.  [default: that of the graphs]", default=""
    )
    reward: Literal["steady", "engine", "ray"] | Callable[..., Any] = option(
        "--reward NAME",
        "How placements are evaluated: steady simulates the steady state, engine simulates queues "
        "and is slower, ray measures real passes on a local Ray (for makespan; seconds each).",
        default="steady",
    )
    device: str = option(
        "--device NAME",
        "Where torch computes: cpu, cuda, cuda:1, or auto for a GPU if there is one.",
        WHERE,
        default="auto",
    )
    seed: Annotated[tuple[Whole, ...], BeforeValidator(in_tuple)] = option(
        "--seed N…",
        "Results depend on it, not on the number of cores or workers; several train one after the "
        "other, into folders seed-N of --out.  [default: 0]",
        HOW_LONG,
        default=(0,),
    )
    start: Annotated[str, BeforeValidator(str)] | None = option(
        "--start FILE",
        "Weights to begin from: a file, or 'shipped' for the weights that come with streamplace.",
    )
    resume: bool = option("--resume", "Continue the run in --out that was stopped.", HOW_LONG)
    watcher: Any = None
    track: Any = None
    command: str = ""

    def check(self) -> None:
        """Refuse repeated seeds, and rewards on Ray that only one machine can measure."""
        super().check()
        if not self.seed or len(set(self.seed)) < len(self.seed):
            raise SettingError(f"{self.name('seed')} must name different seeds, at least one")
        if self.on is not None and self.reward not in ("steady", "engine"):
            raise SettingError(
                "real passes (the reward ray, or a function) are measured one after the other on "
                f"one machine; train without {self.name('on')}"
            )

    def run(self, progress: Progress = SILENT) -> Trainings:
        """Train with every seed, and compare the weights with other placers."""
        from streamplace.evaluate.training_answers import (
            CURVES,
            PICTURE,
            answers_of,
            training_document,
            write_curves,
            write_picture,
        )
        from streamplace.io.files import json_text, write_text
        from streamplace.learn.training_progress import TrainingProgress
        from streamplace.training.run import run_training

        requests = self.requests()
        if len(requests) > 1:
            progress.spare_others(self.out / CURVES, option="--out")
        for request in requests:
            for name, keys in WRITTEN.items():
                progress.spare_others(request.folder / name, keys=keys, option="--out")
        runs: list[tuple[Trained, Answers | None]] = []
        title = ""
        for request in requests:
            trained = run_training(request, watcher=TrainingProgress(self.model, progress.say))
            answers = answers_of(trained)
            document = json_text(training_document(trained, answers))
            write_text(trained.folder / "summary.json", document)
            title = f"{trained.model}, trained on {trained.trained_on} of {self.graphs.name}"
            write_picture(
                trained.history, trained.optima, trained.objective, title,
                trained.folder / PICTURE, answers,
            )  # fmt: skip
            runs.append((trained, answers))
        if len(runs) > 1:
            histories = [trained.history for trained, _ in runs]
            write_curves(histories, runs[0][0].objective, title, self.out / CURVES)
            progress.say(f"figure → {self.out / CURVES}")
            for line in _over_seeds([trained for trained, _ in runs]):
                progress.suggest(line)
        return Trainings(tuple(runs))

    def when_stopped(self, progress: Progress) -> int:
        """Say how to resume."""
        from streamplace.learn.checkpoint import NAME, read_checkpoint

        begun = [folder for folder in self.folders().values() if (folder / NAME).exists()]
        if begun:
            folder = max(begun, key=lambda each: (each / NAME).stat().st_mtime)
            done = len(read_checkpoint(folder).history.epochs)
            progress.say(f"stopped; {counted(done, 'epoch')} saved in {folder}/")
        else:
            progress.say("stopped before training began")
        progress.say(f"continue with: {self.command}{'' if self.resume else ' --resume'}")
        return 130

    def folders(self) -> dict[int, Path]:
        """Folder of the training with each seed."""
        if len(self.seed) == 1:
            return {self.seed[0]: self.out}
        return {seed: self.out / f"seed-{seed}" for seed in self.seed}

    def requests(self) -> tuple[TrainRequest, ...]:
        """Requests for trainings, one for every seed."""
        from streamplace.io.datasets import Reader, drawn
        from streamplace.learn.registry import MODELS
        from streamplace.training.run import TrainRequest, check_folder

        MODELS[self.model]  # refuses a wrong name, even without torch
        for folder in self.folders().values():
            check_folder(folder, resume=self.resume)
        problems = _training_problems(self.graphs, Reader(self.machines()), self.split)
        if not problems:
            raise SettingError("there is no graph to train on; give at least one")
        return tuple(
            self.part(
                TrainRequest,
                problems=tuple(drawn(problems, self.limit, seed)),
                folder=folder,
                seed=seed,
                is_first=seed == self.seed[0],
            )
            for seed, folder in self.folders().items()
        )


@dataclass(frozen=True, slots=True)
class Trainings:
    """Trainings, one per seed, each with the answers of its weights and of other placers."""

    runs: tuple[tuple[Trained, Answers | None], ...]

    def report(self) -> Report:
        """Report the trainings one after the other."""
        from streamplace.display.report import Report
        from streamplace.evaluate.training_answers import training_report

        return Report(tuple(part for run in self.runs for part in training_report(*run).parts))

    def to_json(self) -> Any:
        """Return the document of a training, or the documents of several."""
        from streamplace.evaluate.training_answers import training_document

        documents = [training_document(*run) for run in self.runs]
        return documents if len(documents) > 1 else documents[0]


def _over_seeds(runs: list[Trained]) -> Iterator[str]:
    """Yield the mean over trainings, and the command that compares them on other graphs."""
    import numpy as np

    from streamplace.evaluate.paired import half_interval

    scores = np.array([trained.history.score for trained in runs])
    noun = "validation" if runs[0].held_out else "reward"
    mean = f"{scores.mean():.3f} ± {half_interval(scores):.3f} (95 % interval of the mean)"
    ends = f"{scores.min():.3f} to {scores.max():.3f}"
    yield f"{runs[0].model}, {len(runs)} seeds: {noun} {mean}, {ends}"
    placers = ",".join(f"{trained.model}:weights={trained.weights}" for trained in runs)
    yield f"Compare them: streamplace compare DATA --placers {shlex.quote(placers)}"


def train(
    model: str,
    graphs: GraphsLike,
    out: FilePath,
    *,
    cluster: ClusterLike | None = None,
    rate: Quantity | Iterable[Quantity] = (),
    split: str | None = None,
    limit: int | None = None,
    preset: str = PRESET,
    config: FilePath | None = None,
    epochs: int | None = None,
    objective: str = "",
    reward: str | Measure = "steady",
    device: str = "auto",
    seed: int = 0,
    start: FilePath | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
    track: Track | None = None,
    on: str | None = None,
    command: str = "",
) -> Trained:
    """Train a model on graphs or problems, like ``streamplace train``.

    Parameters
    ----------
    model
        Name of the model, such as ``dream`` or ``pilot``.
    graphs
        Graphs or problems, or the path of a file or a folder of them.
    out
        Folder of the run; an existing one needs ``resume``.
    cluster
        Cluster of the graphs, as for `place`.
    rate
        Total rate of the sources, or several; every graph is learned at each of them. Empty
        for the graph's own rate.
    split, limit
        Only graphs with this attribute ``split``, and only this number of them, which ``seed``
        draws. By default those of the splits ``train`` and ``validation``, or all if there are
        none.
    preset
        Preset of options: ``fast``, or ``paper`` for those of the model's paper.
    config
        TOML file whose tables ``[training]`` and ``[model]`` change the preset.
    epochs
        Number of epochs; by default that of the preset.
    objective
        Objective to learn; by default that of the graphs.
    reward
        Source of rewards: simulation, ``steady`` or ``engine``, real passes on a local ``ray``, or
        a function from a problem and placements [B, N] to the seconds [B] of one pass.
    device
        Where torch computes: ``cpu``, ``cuda``, ``cuda:1``, or ``auto`` for a GPU if there is one.
        On a GPU, results differ within noise.
    seed
        Random seed; results do not depend on the number of cores or workers.
    start
        Weights file to start from, or ``shipped`` for the weights that come with streamplace.
    resume
        Whether to continue the interrupted run in ``out``; other arguments must not change.
    watcher
        Called after every step and epoch; by default, a progress bar on terminals and in
        notebooks.
    track
        Function that shows the progress of the work before training: it passes items on, with a
        title and their number. By default, as above.
    on
        Compute on Ray: ``ray`` starts one on this machine, ``auto`` or an address names a running
        cluster. Results do not depend on it.
    command
        Command to record in the weights file; by default the call of this function.

    Returns
    -------
    Trained
        Result with ``weights``, the file for a learned placer, and the ``history``.
    """
    from streamplace.learn.training_progress import TrainingProgress
    from streamplace.progress import tracked
    from streamplace.training.run import run_training

    if not isinstance(model, str):
        raise wrong("model", model, "the name of a model, such as 'dream'")
    command = command or f"streamplace.train({model!r}, …)"
    request = Train.of(locals())
    if len(request.seed) > 1:
        raise SettingError("a training has one seed; call train for each of several")
    (training,) = request.requests()
    return run_training(
        training, watcher=watcher or TrainingProgress(model), track=track or tracked
    )


def _training_problems(graphs: GraphsLike, reader: Reader, split: str | None) -> list[Problem]:
    """Problems of a split; without one, those of the training split, or all if there are none."""
    from streamplace.io.datasets import DataSet, no_graph, split_of
    from streamplace.io.given_sets import problems_of
    from streamplace.training.held_out import TRAINING_SPLIT, VALIDATION_SPLIT

    problems = list(problems_of(graphs, reader, split))
    if split is None:
        splits = [split_of(problem.graph.attributes) for problem in problems]
        used = (TRAINING_SPLIT, VALIDATION_SPLIT) if TRAINING_SPLIT in splits else splits
        return [p for p, split in zip(problems, splits, strict=True) if split in used]
    if not problems and is_path(graphs):
        path = path_of("graphs", graphs)
        raise no_graph(path, DataSet(path, split))
    return problems
