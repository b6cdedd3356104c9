"""Training on one GPU, measured: ``python benchmarks/training_on_gpu.py``.

Measures problems/s by batch, on the GPU and on one thread of the CPU. Trains `dream` from nothing
on fresh graphs for so many seconds, and prints the mean throughput of greedy placements: now and
then of validation graphs, and in the end of the 630 test graphs at both rates.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from streamsim import throughput as simulated
from studies import test_problems

from streamplace import Cluster, Problem
from streamplace.families.branched import Branched, branched
from streamplace.learn.config import Preset
from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.shards import (
    BatchShard,
    batches,
    deterministic,
    gradient_of,
    one_thread,
    seed_of,
)
from streamplace.learn.training_loop import built

RATES = (1e4, 2e4)
FIVE = Cluster.uniform(5)
POINTS = 5
"""Moments of a training at which it is judged."""
BASE: dict[str, Any] = {
    "batch": 512,
    "learning_rate": 3e-3,
    "final_learning_rate": 1e-5,
    "on_policy": 8,
    "replayed": 1,
    "places": 2,
    "exploration": 16.0,
    "exploration_decay": 0.0,
    "near": 1.0,
    "entropy": 0.003,
    "fresh": 51_200,
    "seed": 0,
}


def tell(name: str, **facts: Any) -> None:
    """Print a result as a line of JSON."""
    print(json.dumps({"result": name, **facts}), flush=True)


def problems_of(seed: int, copies: int) -> tuple[Problem, ...]:
    """Graphs of the standard topologies, at both rates."""
    graphs = islice(branched(Branched(copies=copies), seed), 40 * copies)
    return tuple(Problem(graph.at_rate(rate), FIVE) for graph in graphs for rate in RATES)


def learner_of(
    setting: dict[str, Any],
    problems: tuple[Problem, ...],
    device: str,
    validation: tuple[Problem, ...] = (),
) -> tuple[ConstructiveLearner, dict[str, Any]]:
    """A learner with other options than the preset's, and these options."""
    options = {**BASE, **setting}
    preset = MODELS["dream"].presets["fast"]
    model = {k: v for k, v in options.items() if k in type(preset.model).model_fields}
    changed = Preset(preset.model.model_copy(update=model), preset.training)
    task = LearningTask(problems, validation, options["seed"], device=device)
    learner = built(MODELS["dream"], task, changed)
    assert isinstance(learner, ConstructiveLearner)
    return learner, options


def steps_of(learner: ConstructiveLearner, batch: int, seed: int) -> Iterator[BatchShard]:
    """Batches for ever."""
    epoch = 0
    while True:
        for step, rows in enumerate(batches(learner.sizes, batch, seed, epoch)):
            yield BatchShard(rows, epoch, seed_of(seed, epoch, step, 0))
        epoch += 1


class Training:
    """Steps of Adam on a learner, as the training loop makes them."""

    def __init__(self, learner: ConstructiveLearner, options: dict[str, Any]) -> None:
        self.learner, self.options = learner, options
        self.shards = steps_of(learner, options["batch"], options["seed"])
        self.parameters = list(learner.module.parameters())
        self.adam = torch.optim.Adam(self.parameters, options["learning_rate"])

    def step(self, done: float) -> int:
        """One step, when this share of the training is done; the number of its problems."""
        shard = next(self.shards)
        gradient = gradient_of(self.learner, shard)
        for parameter, tensor in zip(self.parameters, gradient.tensors, strict=True):
            parameter.grad = None if tensor is None else tensor / len(shard.rows)
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        first, last = self.options["learning_rate"], self.options["final_learning_rate"]
        rate = last + (first - last) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        return len(shard.rows)


def waited(device: str) -> float:
    """Time when all work is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def greedy_mean(learner: ConstructiveLearner, problems: tuple[Problem, ...]) -> float:
    """Mean throughput of greedy placements, by the simulator."""
    pairs = zip(problems, learner.policy.on(problems).greedy(), strict=True)
    return float(np.mean([simulated(p.instance, row[None])[0] for p, row in pairs]))


def measure(device: str, problems: tuple[Problem, ...], batch: int) -> None:
    """Problems per second; the first steps of every shape capture it and do not count."""
    fresh = max(40 * batch, 2000) if device == "cuda" else 640
    training = Training(*learner_of({"batch": batch, "fresh": fresh}, problems, device))
    begun = waited(device)
    steps = len(batches(training.learner.sizes, batch, 0, 0)) if device == "cuda" else 3
    for _ in range(steps):
        training.step(0.0)
    middle = waited(device)
    count, memory = 0, 0.0
    while count < 3 or waited(device) - middle < 2.0:
        count += sum(training.step(0.0) for _ in range(max(1, steps // 3)))
    seconds = waited(device) - middle
    if device == "cuda":
        memory = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
    tell(
        "speed",
        device=device,
        batch=batch,
        problems_per_s=round(count / seconds),
        ms_per_step=round(1000 * seconds * batch / count, 2),
        first_epoch_s=round(middle - begun, 2),
        gib=round(memory, 2),
    )


def train(problems: tuple[Problem, ...], device: str, seconds: float) -> None:
    """Train for so many seconds, captures included, and judge from time to time."""
    validation = problems_of(seed=77, copies=4)
    learner, options = learner_of({}, problems, device)
    training = Training(learner, options)
    spent, count, steps, marks = 0.0, 0, 0, list(np.linspace(0, 1, POINTS + 1)[1:])
    begun = waited(device)
    while marks:
        count += training.step(spent / seconds)
        steps += 1
        if steps % 10 == 0:
            spent += waited(device) - begun
            begun = time.perf_counter()
        if spent / seconds >= marks[0]:
            marks.pop(0)
            mean = greedy_mean(learner, validation)
            tell("curve", seconds=round(spent, 1), steps=steps, problems=count, mean=mean)
            begun = waited(device)
    means = {f"{rate:g}": greedy_mean(learner, tuple(test_problems(rate))) for rate in RATES}
    tell("test graphs", **means)


def main() -> None:
    """Measure, train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=40.0, help="of the training")
    parser.add_argument("--batches", type=int, nargs="*", default=[32, 512, 1024])
    options = parser.parse_args()
    device, problems = options.device, problems_of(seed=10, copies=5)
    card = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    tell("begun", card=card, torch=torch.__version__)
    with one_thread(), deterministic(device):
        measure("cpu", problems, 32)
        for batch in options.batches:
            measure(device, problems, batch)
        train(problems, device, options.seconds)


if __name__ == "__main__":
    main()
