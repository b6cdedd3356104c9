"""On SAGA's kind of problems: in-trees, out-trees, chains, RIoTBench and WfCommons' recipes.

    python benchmarks/saga.py [--problems 5] [--saga PYTHON] [--keep FOLDER]

Trees, chains and networks are drawn as in PISA (Coleman and Krishnamachari, 2024). With an
interpreter that has SAGA (``pip install anrg-saga``, best in an environment of its own), its
generators add RIoTBench's graphs and WfCommons' recipes, and its schedulers are run as well. Values
are ratios to the best that anybody found.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

OURS = (
    ("heft", 1.0),
    ("heft:tries=10", 1.0),
    ("foresight", 1.0),
    ("min-min", 1.0),
    ("max-min", 1.0),
    ("sufferage", 1.0),
    ("duplex", 1.0),
    ("anneal", 0.001),
    ("auto", 1.0),
)
KNOWN = "anneal:evaluations=100000"
"""Search that supplements the table for the best known value."""
FAMILIES = ("in-trees", "out-trees", "chains")
RECIPES = ("montage", "epigenomics", "cycles", "seismology", "genome", "soykb", "blast", "bwa")
STREAMING = ("etl", "stats", "train", "predict")
LEFT_OUT = ("BruteForce", "SMT", "Hybrid")
"""Schedulers of SAGA that try everything, need a solver, or ask others."""
EQUAL = 1e-6
"""SAGA lets data that stays on a node take a billionth of a second per unit."""


def clipped(rng, size=None):
    """Weights of PISA: a normal distribution of mean 1 and deviation 1/3, within (0, 2]."""
    return np.clip(rng.normal(1.0, 1 / 3, size), 1e-9, 2.0)


def network(rng, least, most, scale=1.0):
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


def tree(rng):
    """Streams of an out-tree of 2 to 4 levels, which branches 2 or 3 times."""
    branches, levels = rng.integers(2, 4), rng.integers(2, 5)
    inner = sum(branches**level for level in range(levels - 1))
    return [(v, branches * v + i + 1) for v in range(inner) for i in range(branches)]


def parallel_chains(rng):
    """Streams of 2 to 5 chains of 2 to 5 tasks between a source and a sink."""
    count, length = rng.integers(2, 6, 2)
    pairs, sink = [], count * length + 1
    for c in range(count):
        rows = [0, *range(c * length + 1, (c + 1) * length + 1), sink]
        pairs += pairwise(rows)
    return pairs


def drawn(family, number):
    """Problem of a family of trees or chains."""
    rng = np.random.default_rng([FAMILIES.index(family), number])
    pairs = parallel_chains(rng) if family == "chains" else tree(rng)
    if family == "in-trees":
        pairs = [(b, a) for a, b in pairs]
    n = 1 + max(max(pair) for pair in pairs)
    sizes = clipped(rng, len(pairs)).tolist()
    return {
        "name": f"{family} {number}",
        "task_graph": {
            "tasks": [{"name": f"T{v}", "cost": float(clipped(rng))} for v in range(n)],
            "dependencies": [
                {"source": f"T{a}", "target": f"T{b}", "size": size}
                for (a, b), size in zip(pairs, sizes, strict=True)
            ],
        },
        "network": network(rng, 3, 5),
    }


def drawn_by_saga(count):
    """Problems of RIoTBench, by SAGA's own generators, and of the recipes of WfCommons."""
    import random

    from saga.schedulers.data import riotbench

    np.random.seed(0)  # noqa: NPY002 - SAGA draws from it
    random.seed(0)
    for name in STREAMING:
        for i, graph in enumerate(getattr(riotbench, f"get_{name}_task_graphs")(count)):
            (fog,) = riotbench.get_fog_networks(1, 12, 4, 3)
            machines = json.loads(fog.model_dump_json())
            yield document(f"{name} {i}", json.loads(graph.model_dump_json()), machines)
    for name in RECIPES:
        for i in range(count):
            graph, rng = workflow(name, i), np.random.default_rng([len(name), i])
            cost = np.mean([task["cost"] for task in graph["tasks"]])
            size = np.mean([stream["size"] for stream in graph["dependencies"]])
            ratio = rng.choice([0.2, 0.5, 1.0, 2.0])
            yield document(f"{name} {i}", graph, network(rng, 4, 8, size / cost / ratio))


def workflow(name, number):
    """Task graph of a recipe of WfCommons, with a first and a last task as SAGA adds them."""
    from saga.schedulers.data.wfcommons import get_num_task_range, recipes
    from wfcommons import WorkflowGenerator

    least, _ = get_num_task_range(name)
    made = WorkflowGenerator(recipes[name](num_tasks=least + 10 * number)).build_workflow()
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


def document(name, graph, machines):
    """Problem as SAGA writes it."""
    return {"name": name, "task_graph": graph, "network": machines}


def their_values(folder):
    """Makespans of SAGA's schedulers by problem, as far as they answer and it holds."""
    from saga import Network, TaskGraph, schedulers

    chosen = {
        name.removesuffix("Scheduler"): getattr(schedulers, name)
        for name in schedulers.__all__
        if name.removesuffix("Scheduler") not in LEFT_OUT
    }
    for path in sorted(folder.glob("*.json")):
        made, values = json.loads(path.read_text()), {}
        graph = TaskGraph.model_validate(made["task_graph"])
        machines = Network.model_validate(made["network"])
        for name, kind in chosen.items():
            try:
                schedule = kind().schedule(machines, graph)
                if holds(schedule, graph, machines):
                    values[name] = float(schedule.makespan)
                else:
                    print(f"{path.stem}: {name}: breaks its own rules", file=sys.stderr)
            except Exception as error:
                print(f"{path.stem}: {name}: {error!r}", file=sys.stderr)
        print(json.dumps([made["name"], values]), flush=True)


def holds(schedule, graph, machines):
    """Whether a schedule of SAGA's runs every task on time, one at a time, after all it needs."""
    run = {task.name: task for tasks in schedule.mapping.values() for task in tasks}
    if set(run) != {task.name for task in graph.tasks}:
        return False
    for task in graph.tasks:
        mine = run[task.name]
        ready = [0.0]
        for stream in graph.in_edges(task.name):
            other = run[stream.source]
            link = machines.get_edge(other.node, mine.node).speed
            ready.append(other.end + stream.size / link)
        seconds = task.cost / machines.get_node(mine.node).speed
        late = EQUAL * max(1.0, mine.end)
        if mine.start < max(ready) - late or mine.end < mine.start + seconds - late:
            return False
    for tasks in schedule.mapping.values():
        ordered = sorted(tasks, key=lambda task: (task.start, task.end))
        if any(b.start < a.end - EQUAL * max(1.0, a.end) for a, b in pairwise(ordered)):
            return False
    return True


def our_values(folder):
    """Makespans of streamplace's placers by problem, and the best of a long search."""
    from streamplace.io.registry import FORMATS
    from streamplace.objectives.registry import OBJECTIVES
    from streamplace.placers.named import named_placer
    from streamplace.placers.registry import Budget

    judge = OBJECTIVES["makespan"]
    for number, problem in enumerate(FORMATS["saga"].read(folder)):
        for name, seconds in (*OURS, (KNOWN, None)) if number else OURS:  # the first one compiles
            named_placer(name).place(problem, judge, budget=Budget(seconds))
        values = {
            f"{name} in {1000 * seconds:g} ms" if name == "anneal" else name: named_placer(name)
            .place(problem, judge, budget=Budget(seconds))
            .value
            for name, seconds in (*OURS, (KNOWN, None))
        }
        yield problem.graph.name, values


def written(folder, count, saga):
    """Write the problems into a folder."""
    made = [drawn(family, i) for family in FAMILIES for i in range(count)]
    if saga:
        lines = by_saga(saga, "--make", str(count)).splitlines()
        made += map(json.loads, lines)
    for one in made:
        (folder / f"{one['name'].replace(' ', '-')}.json").write_text(json.dumps(one))


def by_saga(python, *arguments):
    """Output of this file under SAGA's interpreter."""
    command = [python, "-P", __file__, *arguments]  # this folder has a saga.py, too
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def table(ours, theirs):
    """Print ratios to the best known, and how often somebody of SAGA's is better than auto."""
    names = [name for name in next(iter(ours.values())) if name != KNOWN]
    families = list(dict.fromkeys(name.rsplit(" ", 1)[0] for name in ours))
    best = {
        name: min([*values.values(), *theirs.get(name, {}).values()])
        for name, values in ours.items()
    }
    everyone = {**{name: ours for name in names}}
    for name in sorted({name for values in theirs.values() for name in values}):
        everyone[name] = theirs
    print("| scheduler | mean | worst | at the best | answers |")
    print("|---|---|---|---|---|")
    for name, source in everyone.items():
        ratio = np.array([source[p][name] / best[p] for p in best if name in source.get(p, {})])
        at_best = (ratio <= 1 + EQUAL).mean()
        print(f"| {name} | {ratio.mean():.4f} | {ratio.max():.3f} | {at_best:.0%} | {len(ratio)} |")
    for family in families:
        rows = [p for p in best if p.rsplit(" ", 1)[0] == family]
        ratio = np.array([ours[p]["anneal in 1 ms"] / best[p] for p in rows])
        print(f"{family}: anneal in 1 ms {ratio.mean():.4f}, worst {ratio.max():.3f}")
    above = [
        (p, name)
        for p, values in theirs.items()
        for name, value in values.items()
        if ours[p]["auto"] > value * (1 + EQUAL)
    ]
    print(f"auto above one of SAGA's: {len(above)} of {len(theirs)} problems {above or ''}")


def main():
    """Make the problems, run everybody, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=5, help="of each family")
    parser.add_argument("--saga", default="", help="interpreter that has SAGA")
    parser.add_argument("--keep", default="", help="folder for the problems")
    parser.add_argument("--make", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.make:
        for one in drawn_by_saga(asked.make):
            print(json.dumps(one))
        return
    if asked.judge:
        their_values(asked.judge)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.keep or temporary)
        folder.mkdir(exist_ok=True)
        written(folder, asked.problems, asked.saga)
        ours = dict(our_values(folder))
        lines = by_saga(asked.saga, "--judge", str(folder)).splitlines() if asked.saga else []
        table(ours, dict(map(json.loads, lines)))


if __name__ == "__main__":
    main()
