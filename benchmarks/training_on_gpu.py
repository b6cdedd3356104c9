"""Training on one GPU, checked and measured: ``python benchmarks/training_on_gpu.py``.

Checks: rewards, memories and gradients beside those of the CPU, captured steps beside eager ones,
and that one seed gives one result. Measures: problems/s by batch, on the GPU and on one thread of
the CPU. Every result is printed and written as soon as it is there; ``streamplace train dream
--device cuda`` trains.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from streamsim import throughput as simulated

from streamplace import Cluster, Problem
from streamplace.families.branched import Branched, branched
from streamplace.learn.config import Preset
from streamplace.learn.constructive.learner import ConstructiveLearner
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.shards import (
    BatchShard,
    batches,
    deterministic,
    gradient_of,
    one_thread,
    seed_of,
)
from streamplace.learn.tensors.draws import child
from streamplace.learn.tensors.memory import Outlines, random_placements
from streamplace.learn.tensors.rewards import Costs, throughput
from streamplace.learn.training_loop import built

RATES = (1e4, 2e4)
FIVE = Cluster.uniform(5)
BASE: dict[str, Any] = {
    "batch": 512,
    "learning_rate": 3e-3,
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


class Results:
    """Prints results, and writes them as they come."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._begun = folder / "results.jsonl", time.perf_counter()

    def add(self, name: str, **facts: Any) -> None:
        """One more result."""
        now = round(time.perf_counter() - self._begun, 2)
        line = json.dumps({"at": now, "result": name, **facts})
        print(line, flush=True)
        with self._file.open("a") as file:
            file.write(line + "\n")


def problems_of(seed: int, copies: int) -> tuple[Problem, ...]:
    """Graphs of the standard topologies, at both rates."""
    graphs = islice(branched(Branched(copies=copies), seed), 40 * copies)
    return tuple(Problem(graph.at_rate(rate), FIVE) for graph in graphs for rate in RATES)


def learner_of(
    setting: dict[str, Any], problems: tuple[Problem, ...], device: str
) -> tuple[ConstructiveLearner, dict[str, Any]]:
    """A learner with other options than the preset's, and these options."""
    options = {**BASE, **setting}
    preset = MODELS["dream"].presets["fast"]
    model = {k: v for k, v in options.items() if k in type(preset.model).model_fields}
    changed = Preset(preset.model.model_copy(update=model), preset.training)
    task = LearningTask(problems, (), options["seed"], device=device)
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

    def step(self) -> int:
        """One step; the number of its problems."""
        shard = next(self.shards)
        gradient = gradient_of(self.learner, shard).per_problem(len(shard.rows))
        for parameter, tensor in zip(self.parameters, gradient.tensors, strict=True):
            parameter.grad = tensor
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.adam.step()
        return len(shard.rows)


def waited(device: str) -> float:
    """Time when all work is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def check_rewards(device: str, results: Results) -> None:
    """Rewards on the device beside the simulator's."""
    problems = problems_of(seed=11, copies=1)
    outlines = Outlines.of(problems, device)
    keys = child(torch.tensor(3, device=device), torch.arange(len(problems), device=device))
    n = int(outlines.operators.max())
    placements = random_placements(keys, 64, n, outlines)
    found = throughput(Costs.of([p.instance for p in problems], device), placements).cpu().numpy()
    rows = placements.cpu().numpy().astype(np.int32)
    difference = max(
        np.abs(found[i] - simulated(p.instance, rows[i, :, : p.n_operators].copy())).max()
        for i, p in enumerate(problems)
    )
    on_cpu = random_placements(keys.cpu(), 64, n, Outlines.of(problems, "cpu"))
    same = bool((on_cpu.numpy() == placements.cpu().numpy()).all())
    results.add("rewards", largest_difference=float(difference), draws_equal=same)


def check_steps(device: str, results: Results) -> None:
    """A step beside that of the CPU, and captured beside eager."""
    problems = problems_of(seed=12, copies=1)
    setting = {"fresh": 0, "near": 0.5, "exploration": 64.0}
    rows = np.arange(0, len(problems), 2)
    found = {}
    for where in ("cpu", device):
        learner = learner_of(setting, problems, where)[0]
        loss, report = learner.loss(rows, 0, 5)
        tensors = torch.autograd.grad(loss, list(learner.module.parameters()))
        flat = torch.cat([t.flatten() for t in tensors]).cpu()
        found[where] = flat, learner.memory.placements.cpu(), learner.memory.rewards.cpu(), report
    (one, places, rewards, _), (other, places_too, rewards_too, report) = found.values()
    results.add(
        "one step",
        gradient=float((one - other).norm() / one.norm()),
        memories_equal=bool((places == places_too).double().mean() == 1),
        places_equal=float((places == places_too).double().mean()),
        rewards=float((rewards - rewards_too).abs().max()),
        reward=report.mean.reward,
    )
    learner = learner_of(setting, problems, device)[0]
    if learner.captured is None:
        return
    for number in (1, 2):
        _, _, tensors_too = learner.captured(rows, 0, 5)
        flat = torch.cat([t.flatten() for t in tensors_too]).cpu()
        equal = bool(torch.equal(flat, other)) if number == 1 else None
        memory = bool(torch.equal(learner.memory.placements.cpu(), places_too))
        results.add("captured", run=number, gradient_equal=equal, memory_equal=memory)


def check_seed(device: str, results: Results, problems: tuple[Problem, ...]) -> None:
    """One seed gives one result, whatever was captured before."""
    weights = []
    for _ in range(2):
        training = Training(*learner_of({"batch": 64, "fresh": 640}, problems, device))
        for _ in range(25):
            training.step()
        weights.append(torch.cat([p.detach().flatten() for p in training.parameters]).cpu())
    results.add("one seed", equal=bool(torch.equal(*weights)), norm=float(weights[0].norm()))


def measure(device: str, results: Results, problems: tuple[Problem, ...], batch: int) -> None:
    """Problems per second; the first steps of every shape capture it and do not count."""
    fresh = max(40 * batch, 2000) if device == "cuda" else 640
    training = Training(*learner_of({"batch": batch, "fresh": fresh}, problems, device))
    begun = waited(device)
    steps = len(batches(training.learner.sizes, batch, 0, 0)) if device == "cuda" else 3
    shapes = len(
        {
            int(training.learner.sizes[s.rows].max())
            for s in islice(steps_of(training.learner, batch, 0), steps)
        }
    )
    for _ in range(steps):
        training.step()
    middle = waited(device)
    count, memory = 0, 0.0
    while count < 3 or waited(device) - middle < 2.0:
        count += sum(training.step() for _ in range(max(1, steps // 3)))
    seconds = waited(device) - middle
    if device == "cuda":
        memory = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
    results.add(
        "speed",
        device=device,
        batch=batch,
        problems_per_s=round(count / seconds),
        ms_per_step=round(1000 * seconds * batch / count, 2),
        first_epoch_s=round(middle - begun, 2),
        shapes=shapes,
        gib=round(memory, 2),
    )


def main() -> None:
    """Check and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=int, nargs="*", default=[32, 512, 1024])
    parser.add_argument("--skip", nargs="*", default=[])
    asked = parser.parse_args()
    results = Results(asked.out)
    card = torch.cuda.get_device_name() if asked.device == "cuda" else "CPU"
    results.add("begun", card=card, torch=torch.__version__)
    problems = problems_of(seed=10, copies=5)
    results.add("problems", count=len(problems))
    checks: dict[str, Callable[[], None]] = {
        "rewards": partial(check_rewards, asked.device, results),
        "steps": partial(check_steps, asked.device, results),
        "seed": partial(check_seed, asked.device, results, problems),
        "cpu": partial(measure, "cpu", results, problems, 32),
    }
    for batch in asked.batches:
        checks[f"speed {batch}"] = partial(measure, asked.device, results, problems, batch)
    with one_thread(), deterministic(asked.device):
        for name, check in checks.items():
            if name in asked.skip:
                continue
            try:
                check()
            except Exception as fault:
                results.add("failed", check=name, fault=f"{type(fault).__name__}: {fault}"[:2000])


if __name__ == "__main__":
    main()
