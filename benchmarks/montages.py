"""Workflows of WfCommons' Montage recipe as SAGA's problems, a JSON line each.

Runs under an interpreter that has SAGA (``pip install anrg-saga``), without streamplace:
``PYTHON benchmarks/montages.py COUNT``. Networks are drawn as in PISA (Coleman and Krishnamachari,
2024).
"""

import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
from saga.schedulers.data import riotbench
from saga.schedulers.data.wfcommons import get_num_task_range, recipes
from wfcommons import WorkflowGenerator

RECIPE = "montage"


def clipped(rng, size=None):
    """Weights of PISA: a normal distribution of mean 1 and deviation 1/3, within (0, 2]."""
    return np.clip(rng.normal(1.0, 1 / 3, size), 1e-9, 2.0)


def network(rng, least, most, scale):
    """Complete network of some nodes."""
    names = [f"N{i}" for i in range(rng.integers(least, most + 1))]
    return {
        "nodes": [{"name": name, "speed": float(max(clipped(rng), 0.1))} for name in names],
        "edges": [
            {"source": a, "target": b, "speed": 1e9 if a == b else scale * link}
            for i, a in enumerate(names)
            for b, link in zip(names[i:], np.maximum(clipped(rng, len(names)), 0.1), strict=False)
        ],
    }


def workflow(number):
    """Task graph of the recipe, with a first and a last task as SAGA adds them."""
    least, _ = get_num_task_range(RECIPE)
    made = WorkflowGenerator(recipes[RECIPE](num_tasks=least + 10 * number)).build_workflow()
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        made.write_json(Path(file.name))
        written = json.load(file)["workflow"]
    seconds = {run["id"]: run["runtimeInSeconds"] for run in written["execution"]["tasks"]}
    size = {file["id"]: file["sizeInBytes"] for file in written["specification"]["files"]}
    rows = {task["id"]: task for task in written["specification"]["tasks"]}
    streams = [
        (a, b, sum(size[file] for file in {*rows[a]["outputFiles"]} & {*rows[b]["inputFiles"]}))
        for a in rows
        for b in rows[a]["children"]
    ]
    streams += [("SRC", a, 0) for a in rows if not rows[a]["parents"]]
    streams += [(a, "DST", 0) for a in rows if not rows[a]["children"]]
    costs = {**{a: seconds[a] for a in rows}, "SRC": 0, "DST": 0}
    return {
        "tasks": [{"name": a, "cost": max(cost, 1e-9)} for a, cost in costs.items()],
        "dependencies": [
            {"source": a, "target": b, "size": max(bytes_, 1e-9)} for a, b, bytes_ in streams
        ],
    }


def main(count):
    """Print the problems."""
    np.random.seed(0)  # noqa: NPY002 - WfCommons draws from it, and so does what comes before
    random.seed(0)
    for name in ("etl", "stats", "train", "predict"):
        for _ in getattr(riotbench, f"get_{name}_task_graphs")(count):
            riotbench.get_fog_networks(1, 12, 4, 3)
    for number in range(count):
        graph, rng = workflow(number), np.random.default_rng([len(RECIPE), number])
        cost = np.mean([task["cost"] for task in graph["tasks"]])
        size = np.mean([stream["size"] for stream in graph["dependencies"]])
        ratio = rng.choice([0.2, 0.5, 1.0, 2.0])
        machines = network(rng, 4, 8, size / cost / ratio)
        made = {"name": f"{RECIPE} {number}", "task_graph": graph, "network": machines}
        print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
