"""Placeto in six orders of visits, after the study of traversal orders.

Run ``python benchmarks/traversal.py -o out/``. A policy of its own is trained for every graph,
order and repeat, each episode from the best placement so far; the study does so for 50 episodes
with 32 graphs, three numbers of devices and 10 repeats. Runs are appended to ``runs.jsonl`` as they
end, so that a stopped command goes on. Writes ``traversal.md``, and prints the tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from studies import Mapped, append_row, markdown, output_options, read_rows, workers_of

from streamplace import Problem
from streamplace.families.registry import FAMILIES
from streamplace.learn.config import Preset
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.shards import one_thread
from streamplace.objectives.registry import named_objective
from streamplace.papers.families.neural import NeuralNets
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

OBJECTIVE = "makespan:preset=placeto"
ORDERS = (
    "lexicographic",
    "topological",
    "dfs-preorder",
    "reversed-topological",
    "dfs-postorder",
    "bfs",
)
UNTAUGHT = "topological, learning nothing"
SHOWN = (10, 50)
EPISODES = 50
GRAPHS = {"cifar10": 1, "nmt": 3}


@dataclass(frozen=True, slots=True)
class Run:
    """A training to be done."""

    family: str
    graph: int
    devices: int
    order: str
    repeat: int


def runs(families: Sequence[str], devices: int, repeats: int) -> Iterator[Run]:
    """All runs, the quick ones first."""
    for repeat, family in product(range(repeats), families):
        for graph, order in product(range(GRAPHS[family]), (*ORDERS, UNTAUGHT)):
            yield Run(family, graph, devices, order, repeat)


def network(family: str, graph: int, devices: int) -> Problem:
    """Graph of a number, on equal devices."""
    known = FAMILIES[family]
    asked: NeuralNets = known.parameters(count=graph + 1, devices=devices)
    return list(known.generate(asked, 0))[graph]


def trained(run: Run) -> dict[str, Any]:
    """Best makespan after every episode, in multiples of the bound."""
    import torch

    from streamplace.learn.training_loop import built

    preset, learning = MODELS["placeto"].presets["paper"], run.order != UNTAUGHT
    order = run.order if learning else "topological"
    options = preset.model.model_copy(update={"order": order, "devices": run.devices})
    problem = network(run.family, run.graph, run.devices)
    task = LearningTask((problem,), (), seed=run.repeat, objective=OBJECTIVE)
    learner = built(MODELS["placeto"], task, Preset(options, preset.training))
    parameters = list(learner.module.parameters())
    rate = preset.training.learning_rate if learning else 0.0
    adam, best = torch.optim.Adam(parameters, rate), []
    with one_thread():
        for episode in range(EPISODES):
            seed = 1000 * run.repeat + episode
            loss, report = learner.loss(np.zeros(1, np.int64), episode, seed)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, preset.training.clip)
            adam.step()
            best.append(1 / report.best)
    return asdict(run) | {"best": best}


def searched(family: str, count: int, devices: int) -> list[float]:
    """Makespans after a second of search for each graph, in multiples of the bound."""
    objective, found = named_objective(OBJECTIVE), []
    for graph in range(count):
        problem = network(family, graph, devices)
        result = named_placer("anneal").place(problem, objective, budget=Budget(1.0))
        found.append(result.value / float(objective.bound(problem) or 1.0))
    return found


def table(rows: list[dict[str, Any]], family: str) -> np.ndarray:
    """Best makespans [order, graph, episode], means over the repeats."""
    names = (*ORDERS, UNTAUGHT)
    graphs = sorted({row["graph"] for row in rows if row["family"] == family})
    return np.array(
        [
            [
                np.mean(
                    [
                        row["best"]
                        for row in rows
                        if (row["family"], row["order"], row["graph"]) == (family, name, graph)
                    ],
                    axis=0,
                )
                for graph in graphs
            ]
            for name in names
        ]
    )


def compared(rows: list[dict[str, Any]], family: str, devices: int) -> str:
    """Table of the orders beside each other."""
    best = table(rows, family)
    graphs = best.shape[1]
    repeats = len({row["repeat"] for row in rows if row["family"] == family})
    head = ("episodes", *ORDERS, UNTAUGHT, "anneal, 1 s")
    lines, least = [], np.array(searched(family, graphs, devices))
    for at in SHOWN:
        ratio = best[:, :, at - 1] / least
        error = ratio.std(axis=1, ddof=1) / np.sqrt(graphs) if graphs > 1 else np.zeros(len(ratio))
        means = [f"{m:.3f} ± {e:.3f}" for m, e in zip(ratio.mean(axis=1), error, strict=True)]
        cells = (str(at), *means, "1")
        lines.append(dict(zip(head, cells, strict=True)))
    title = f"{family}: {graphs} graphs, {devices} devices, {repeats} repeats"
    return markdown(lines, title)


def main(folder: Path, families: Sequence[str], devices: int, repeats: int, by: Mapped) -> None:
    """Make the missing runs, write and print the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "runs.jsonl"
    known = {tuple(list(row.values())[:-1]): row for row in read_rows(file)}
    asked = list(runs(families, devices, repeats))
    missing = [run for run in asked if tuple(asdict(run).values()) not in known]
    for row in by(trained, missing):
        append_row(file, row)
        known[tuple(list(row.values())[:-1])] = row
    rows = [known[tuple(asdict(run).values())] for run in asked]
    text = "\n".join(compared(rows, family, devices) for family in families)
    (folder / "traversal.md").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    parser = output_options(
        __doc__,
        devices=(5, "equal devices of every problem"),
        repeats=(1, "trainings of every graph and order"),
    )
    parser.add_argument("--families", nargs="+", choices=list(GRAPHS), default=list(GRAPHS))
    given = parser.parse_args()
    main(given.output, given.families, given.devices, given.repeats, workers_of(given))
