"""Training of models on graphs or problems."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.api.data_sets import problems_of
from streamplace.errors import SettingError
from streamplace.io.datasets import DataSet, Reader, drawn, no_graph, split_of
from streamplace.learn.registry import MODELS
from streamplace.model.defaults import PRESET
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity
from streamplace.progress import tracked
from streamplace.settings.convert import ClusterLike, FilePath, is_path, path_of, wrong
from streamplace.settings.train import TrainSettings
from streamplace.training.run import (
    TRAINING_SPLIT,
    VALIDATION_SPLIT,
    TrainingProgress,
    TrainRequest,
    check_folder,
    run_training,
)
from streamplace.training.solutions import Track
from streamplace.training.trained import Trained

if TYPE_CHECKING:
    from streamplace.api.data_sets import GraphsLike
    from streamplace.learn.history import Watcher
    from streamplace.learn.reward import Measure


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
    track: Track = tracked,
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
        Where torch computes: ``cpu``, ``cuda``, ``cuda:1``, ``mps``, or ``auto`` for a GPU if there
        is one. On a GPU, results differ within noise.
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
    if not isinstance(model, str):
        raise wrong("model", model, "the name of a model, such as 'dream'")
    settings = TrainSettings.of(locals())
    command = command or f"streamplace.train({model!r}, …)"
    if len(settings.seed) > 1:
        raise SettingError("a training has one seed; call train for each of several")
    (request,) = training_requests(settings, model, graphs, path_of("out", out), command)
    return run_training(request, watcher=watcher or TrainingProgress(model), track=track)


def training_requests(
    settings: TrainSettings, model: str, graphs: GraphsLike, folder: Path, command: str
) -> tuple[TrainRequest, ...]:
    """Requests of settings, one for every seed, with the problems of some graphs."""
    MODELS[model]  # a wrong name is refused before torch is found to be missing
    several = len(settings.seed) > 1
    folders = {seed: folder / f"seed-{seed}" if several else folder for seed in settings.seed}
    for each in folders.values():
        check_folder(each, resume=settings.resume)
    reader = Reader(settings.machines())
    problems = _training_problems(graphs, reader, settings.split)
    if not problems:
        raise SettingError("there is no graph to train on; give at least one")
    return tuple(
        TrainRequest(
            model, tuple(drawn(problems, settings.limit, seed)), each, settings, seed, command
        )
        for seed, each in folders.items()
    )


def _training_problems(graphs: GraphsLike, reader: Reader, split: str | None) -> list[Problem]:
    """Problems of a split; without one, those of the training split, or all if there are none."""
    problems = list(problems_of(graphs, reader, split))
    if split is None:
        splits = [split_of(problem.graph.attributes) for problem in problems]
        used = (TRAINING_SPLIT, VALIDATION_SPLIT) if TRAINING_SPLIT in splits else splits
        return [p for p, split in zip(problems, splits, strict=True) if split in used]
    if not problems and is_path(graphs):
        path = path_of("graphs", graphs)
        raise no_graph(path, DataSet(path, split))
    return problems
