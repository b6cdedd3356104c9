"""The smallest learner of every model, its weights and its checkpoints."""

import tempfile
from functools import cache
from pathlib import Path

from problems import chain

from streamplace.learn.config import Preset
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.model import Cluster, Problem

SMALL = {"width": 4, "rounds": 1, "embedding": 2, "hops": 1, "places": 2}


@cache
def learner(name):
    """Learner of a model with as few parameters as its options allow."""
    import torch

    from streamplace.learn.training_loop import built

    torch.set_num_threads(1)
    model = MODELS[name]
    options = {key: value for key, value in SMALL.items() if key in model.config.model_fields}
    problems = tuple(Problem(chain(n), Cluster.uniform(3)) for n in (2, 3))
    task = LearningTask(training=problems, validation=(), seed=0, targets=(None,) * len(problems))
    return built(model, task, Preset(model.config(**options), model.presets["fast"].training))


@cache
def weights(name):
    """Weights file of the smallest learner."""
    from streamplace.io.weights import write_weights
    from streamplace.learn.parameters import arrays_of

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.safetensors"
        document = {"model": name, **learner(name).spec(), "training": {"seed": 0}}
        write_weights(path, document, arrays_of(learner(name).module))
        return path.read_bytes()


@cache
def checkpoints(name):
    """Checkpoint of a run that has not begun, and of one after a step and an epoch."""
    import torch

    from streamplace.learn.checkpoint import NAME, capture, write_checkpoint
    from streamplace.learn.history import Epoch, History

    begun = learner(name)
    adam, history, found = torch.optim.Adam(begun.module.parameters()), History(), []
    with tempfile.TemporaryDirectory() as folder:
        for step in range(2):
            if step:
                sum(p.sum() for p in begun.module.parameters()).backward()
                adam.step()
                epoch = Epoch(1, 0.5, 0.6, 0.1, 0.2, 0.3, 1e-3, 0.5, 9, 1.0)
                history.add(epoch, history.values)
            description = {"model": name, **begun.spec(), "training": {"seed": 0}}
            checkpoint = capture(begun, adam, history, {"seed": 0}, description)
            write_checkpoint(checkpoint, Path(folder))
            found.append((Path(folder) / NAME).read_bytes())
    return found


def resumed(name, path):
    """Take up a checkpoint, as training does."""
    import torch

    from streamplace.learn.checkpoint import check_settings, read_checkpoint, restore

    checkpoint = read_checkpoint(path.parent)
    check_settings(checkpoint, {"seed": 0}, path.parent)
    begun = learner(name)
    restore(checkpoint, begun, torch.optim.Adam(begun.module.parameters()))
