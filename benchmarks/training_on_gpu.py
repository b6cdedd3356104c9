"""Training on one GPU, checked and measured: ``python benchmarks/training_on_gpu.py``.

Checks: rewards, memories and gradients beside those of the CPU, captured steps beside eager ones,
and that one seed gives one result. Measures: problems/s by batch, on the GPU and on one thread of
the CPU. Trains `dream` from nothing on fresh graphs for so many seconds, and prints the
mean throughput of greedy placements against the seconds of training, for validation graphs and for
the 630 test graphs at both rates. Every result is printed and written as soon as it is there.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from streamsim import throughput as simulated
from studies import test_problems

from streamplace import Cluster, Problem
from streamplace.families.branched import Branched, branched
from streamplace.io.weights import write_weights
from streamplace.learn.config import Preset
from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.parameters import arrays_of
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


class Judge:
    """Mean throughput of greedy placements of some problems."""

    def __init__(self, problems: tuple[Problem, ...], device: str) -> None:
        self.problems, self.device = problems, device
        self.prepared: Any = None

    def of(self, learner: ConstructiveLearner) -> float:
        """Mean, by the simulator."""
        if self.prepared is None or self.module is not learner.module:
            self.prepared, self.module = learner.policy.on(self.problems), learner.module
        rows = self.prepared.greedy()
        pairs = zip(self.problems, rows, strict=True)
        return float(np.mean([simulated(p.instance, row[None])[0] for p, row in pairs]))


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
    _, _, tensors_too = learner.captured(rows, 0, 5)
    flat = torch.cat([t.flatten() for t in tensors_too]).cpu()
    results.add(
        "captured",
        gradient_equal=bool(torch.equal(flat, other)),
        memory_equal=bool(torch.equal(learner.memory.placements.cpu(), places_too)),
    )


def check_seed(device: str, results: Results, problems: tuple[Problem, ...]) -> None:
    """One seed gives one result, whatever was captured before."""
    weights = []
    for _ in range(2):
        training = Training(*learner_of({"batch": 64, "fresh": 640}, problems, device))
        for _ in range(25):
            training.step(0.1)
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
        training.step(0.0)
    middle = waited(device)
    count, memory = 0, 0.0
    while count < 3 or waited(device) - middle < 2.0:
        count += sum(training.step(0.0) for _ in range(max(1, steps // 3)))
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


def train(
    problems: tuple[Problem, ...],
    judges: dict[str, Judge],
    *,
    device: str,
    seconds: float,
    results: Results,
    folder: Path,
) -> None:
    """Train for so many seconds, captures included, and judge from time to time."""
    learner, options = learner_of({}, problems, device)
    training = Training(learner, options)
    spent, count, steps, marks = 0.0, 0, 0, list(np.linspace(0, 1, POINTS + 1)[1:])
    begun = waited(device)
    while True:
        count += training.step(spent / seconds)
        steps += 1
        if steps % 10 == 0:
            spent += waited(device) - begun
            begun = time.perf_counter()
        if spent / seconds >= marks[0]:
            final = len(marks) == 1
            marks.pop(0)
            some = judges if final else {k: v for k, v in judges.items() if not k.startswith("t")}
            values = {key: round(judge.of(learner), 5) for key, judge in some.items()}
            results.add("curve", seconds=round(spent, 1), steps=steps, problems=count, **values)
            if final:
                break
            begun = waited(device)
    document = {"model": "dream", **learner.spec(), "training": options}
    tensors = {k: v.astype(np.float16) for k, v in arrays_of(learner.module).items()}
    write_weights(folder / "dream.safetensors", document, tensors)


def main() -> None:
    """Check, measure, train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=40.0, help="of the training")
    parser.add_argument("--batches", type=int, nargs="*", default=[32, 512, 1024])
    options = parser.parse_args()
    device, results = options.device, Results(options.out)
    card = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    results.add("begun", card=card, torch=torch.__version__)
    problems = problems_of(seed=10, copies=5)
    results.add("problems", count=len(problems))
    checks: dict[str, Callable[[], None]] = {
        "rewards": partial(check_rewards, device, results),
        "steps": partial(check_steps, device, results),
        "seed": partial(check_seed, device, results, problems),
        "cpu": partial(measure, "cpu", results, problems, 32),
    }
    for batch in options.batches:
        checks[f"speed {batch}"] = partial(measure, device, results, problems, batch)
    with one_thread(), deterministic(device):
        for name, check in checks.items():
            try:
                check()
            except Exception as fault:
                results.add("failed", check=name, fault=f"{type(fault).__name__}: {fault}"[:2000])
        judges = {"validation": Judge(problems_of(seed=77, copies=4), device)}
        for rate in RATES:
            judges[f"test {rate:g}"] = Judge(tuple(test_problems(rate)), device)
        train(
            problems,
            judges,
            device=device,
            seconds=options.seconds,
            results=results,
            folder=options.out,
        )


if __name__ == "__main__":
    main()
