"""Table 1 of the DREAM paper: its three models trained with the preset ``paper`` to the end.

``python benchmarks/dream_paper.py -o out/ --seeds 0 1 2`` trains B, B+F1 and B+F1&F2 at each rate
on the training graphs of the standard benchmark, a run per seed, each on one core, as many at once
as ``--jobs`` says. A run that was stopped goes on after its last epoch. The throughputs of the test
graphs under its greedy placements become a line of ``docs/assets/dream-paper.jsonl``, and runs that
are there are not made again. Prints the mean with two 95 % intervals, over graphs (of their means
over the seeds) and over seeds (of their means over the graphs), and the mean that the paper has.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from streamsim import throughput
from studies import DATA, markdown, test_problems, workers_options

from streamplace import Cluster, read_graphs, train
from streamplace.evaluate.paired import half_interval
from streamplace.evaluate.parallel import parallel_map
from streamplace.io.datasets import drawn
from streamplace.learn.history import History, Watcher
from streamplace.learn.registry import MODELS
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer

RUNS = DATA.parents[1] / "docs/assets/dream-paper.jsonl"
VARIANTS = {"encdec": "B", "encdec-gnn": "B+F1", "dream": "B+F1&F2"}
OF_PAPER = {
    10_000: {"metis": 0.81, "encdec": 0.82, "encdec-gnn": 0.87, "dream": 0.91},
    20_000: {"metis": 0.48, "encdec": 0.45, "encdec-gnn": 0.48, "dream": 0.53},
}


class Run(NamedTuple):
    """One training."""

    model: str
    rate: int
    seed: int


class Epochs(Watcher):
    """Prints every epoch of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def epoch(self, history: History) -> None:
        """Print the last epoch."""
        model, rate, seed = self._run
        last = history.epochs[-1]
        where = f"{VARIANTS[model]}, {rate:,} tuples/s, seed {seed}, epoch {last.epoch}"
        print(f"{where}: reward {last.reward:.4f}, {last.seconds:.0f} s", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is not complete, place, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the trainings")
    parser.add_argument("--runs", type=Path, default=RUNS, help="file of the complete ones")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rates", type=int, nargs="+", default=list(OF_PAPER), choices=OF_PAPER)
    parser.add_argument("--models", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--limit", type=int, help="only so many graphs of either split")
    parser.add_argument("--epochs", type=int, help="instead of the paper's 40")
    workers_options(parser)
    given = parser.parse_args(arguments)
    runs = [Run(m, r, s) for s in given.seeds for r in given.rates for m in given.models]
    found = recorded(given.runs)
    missing = [run for run in runs if run not in found]
    function = partial(judged, folder=given.output, limit=given.limit, epochs=given.epochs)
    made = parallel_map(function, missing, given.jobs, given.on, few=1)
    for run, values in zip(missing, made, strict=True):
        found[run] = values
        row = {**run._asdict(), "throughputs": values.round(4).tolist()}
        with given.runs.open("a") as file:
            file.write(json.dumps(row) + "\n")
    rows = []
    for rate in given.rates:
        metis = metis_values(rate, given.limit)
        rows.append(row_of(rate, "metis", "METIS", metis[None], metis))
        for model in given.models:
            values = np.array([found[Run(model, rate, seed)] for seed in given.seeds])
            rows.append(row_of(rate, model, VARIANTS[model], values, metis))
    print(markdown(rows))


def recorded(path: Path) -> dict[Run, Floats]:
    """Throughputs of the test graphs by complete run."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {Run(r["model"], r["rate"], r["seed"]): np.array(r["throughputs"]) for r in rows}


def judged(run: Run, folder: Path, limit: int | None, epochs: int | None) -> Floats:
    """Throughput of the test graphs under a training, which is completed first."""
    path = folder / f"{run.model}-{run.rate}-{run.seed}"
    graphs = (g for g in read_graphs(DATA) if g.attributes["split"] == "train")
    train(
        run.model,
        list(drawn(graphs, limit, seed=0)),
        path,
        rate=[run.rate],
        cluster=Cluster.uniform(5),
        preset="paper",
        epochs=epochs,
        seed=run.seed,
        resume=(path / "last.safetensors").exists(),
        watcher=Epochs(run),
        track=lambda items, *_: items,
    )
    allocator = MODELS[run.model].allocator
    assert allocator is not None
    problems = list(drawn(test_problems(run.rate), limit, seed=0))
    placements = allocator(path / "best.safetensors").place_many(problems)
    pairs = zip(problems, placements, strict=True)
    return np.array([float(throughput(problem.instance, p.index[None])[0]) for problem, p in pairs])


def metis_values(rate: int, limit: int | None) -> Floats:
    """Throughput of the test graphs under METIS."""
    metis, objective = named_placer("metis"), OBJECTIVES["throughput"]
    problems = drawn(test_problems(rate), limit, seed=0)
    return np.array([metis.place(problem, objective).value for problem in problems])


def row_of(rate: int, model: str, title: str, values: Floats, metis: Floats) -> dict[str, str]:
    """Row of a model from its throughputs [seeds, graphs]."""
    of_graphs, of_seeds = values.mean(axis=0), values.mean(axis=1)
    return {
        "tuples/s": f"{rate:,}",
        "": title,
        "mean": f"{values.mean():.3f}",
        "over graphs": f"± {half_interval(of_graphs):.3f}",
        "over seeds": f"± {half_interval(of_seeds):.3f}" if len(of_seeds) > 1 else "–",
        "first quartile": f"{np.quantile(values, 0.25):.3f}",
        "median": f"{np.median(values):.3f}",
        "better than METIS": f"{np.mean(values > metis + 1e-9):.0%}",
        "the paper's mean": f"{OF_PAPER[rate][model]:.2f}",
    }


if __name__ == "__main__":
    main()
