"""HSDAG's Tables 2 and 3 on a cost model, beside the results and bounds of search.

Run ``python benchmarks/hsdag.py -o out/`` with the extra ``openvino`` installed (half an hour on
two cores; ``--epochs 20 --seconds 1`` for a look). The networks are those of the paper, as OpenVINO
represents them, with its co-location; times of single operators, which were never published, are
estimated so that the totals of CPU and GPU are the published ones. Writes ``hsdag.json`` and
``hsdag.md``, and prints the tables.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from hsdag_networks import NETWORKS
from studies import markdown

from streamplace import Cluster, Device, Problem, Stream, StreamGraph, train
from streamplace.io.modules import chained
from streamplace.io.registry import FORMATS
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

MAKESPAN = OBJECTIVES["makespan"]
CPU, IGPU, GPU = range(3)
NAMES = ("CPU", "GPU.0", "GPU.1")
FLOPS = np.array([1.0e12, 0.8e12, 16e12])
"""FLOP/s of an i9-12900K, its UHD 770 and a Flex 170."""
MEMORY = np.array([75e9, 75e9, 576e9])
"""Bytes/s from and to memory."""
LAUNCH = np.array([2e-6, 10e-6, 10e-6])
"""Seconds to begin a kernel; element by element, what follows one is part of it."""
LINKS = np.array([[np.inf, 35e9, 25e9], [35e9, np.inf, 25e9], [25e9, 25e9, np.inf]]) * 8
LATENCY = np.array([[0, 10e-6, 20e-6], [10e-6, 0, 20e-6], [20e-6, 20e-6, 0]])
FUSED = frozenset(
    {"Add", "Multiply", "Subtract", "Divide", "Power", "Relu", "Gelu", "Tanh", "Convert", "Reshape"}
    | {"Unsqueeze", "Constant", "Parameter", "Result", "ShapeOf", "Range"}
)
PAPER = {
    "Inception-v3": {"CPU": 12.8, "GPU": 12.0, "hdp": 12.8, "hsdag": 10.5},
    "ResNet-50": {"CPU": 16.0, "GPU": 7.81, "hdp": 8.75, "hsdag": 7.66},
    "BERT": {"CPU": 6.38, "GPU": 2.77, "hsdag": 2.67},
}
"""Milliseconds of Table 2; the RNN placer ran out of memory on BERT."""
TABLE_3 = {
    "output": {"Inception-v3": 11.7, "ResNet-50": 7.68, "BERT": 2.78},
    "position": {"Inception-v3": 11.7, "ResNet-50": 7.68, "BERT": 2.79},
    "structure": {"Inception-v3": 10.9, "ResNet-50": 7.66, "BERT": 2.68},
}
TRAITS = ("kind", "structure", "position", "output")
SAMPLES = 100
"""Placements drawn from a trained policy, of which the best counts."""


def held_rows(graph: StreamGraph) -> set[int]:
    """Rows of the operations that depend on no input: weights, and operations on weights alone."""
    feeders: dict[int, list[int]] = {}
    for u, v in zip(graph.streams.source.tolist(), graph.streams.target.tolist(), strict=True):
        feeders.setdefault(v, []).append(u)
    held: set[int] = set()
    for v in graph.order.tolist():
        alone = v in feeders and held.issuperset(feeders[v])
        if alone or graph.operators.kind[v] == "Constant":
            held.add(v)
    return held


def imported(name: str, folder: Path) -> StreamGraph:
    """A network as OpenVINO represents it; weights are on their devices before a pass begins."""
    import openvino

    model, example = NETWORKS[name]()
    inputs = example if isinstance(example, tuple) else (example,)
    file = folder / f"{name}.xml"
    shapes = [list(tensor.shape) for tensor in inputs]
    openvino.save_model(openvino.convert_model(model, example_input=example, input=shapes), file)
    (graph,) = FORMATS["openvino"].read(file)
    file.with_suffix(".bin").unlink()
    assert isinstance(graph, StreamGraph)
    held = {graph.operators.name[row] for row in held_rows(graph)}
    streams = [
        Stream(s.source, s.target, payload=0.0 if s.source in held else s.payload)
        for s in graph.streams
    ]
    return StreamGraph.of(name, graph.operators, streams, fires="all")


def seconds(graph: StreamGraph, cpu: float, gpu: float) -> np.ndarray:
    """Seconds [N, 3] of every operator, so that all of them take ``cpu`` or ``gpu`` in a row."""
    works = graph.operators.ipt > 0
    size = graph.streams.bytes_per_tuple()
    moved = np.bincount(graph.streams.source, size, graph.n_operators)
    moved += np.bincount(graph.streams.target, size, graph.n_operators)
    busy = graph.operators.ipt[:, None] / FLOPS + moved[:, None] / MEMORY
    begun = np.array([kind not in FUSED for kind in graph.operators.kind])[:, None] * LAUNCH
    busy, begun = np.where(works[:, None], (busy, begun), 0.0)
    scale = (np.array([cpu, np.nan, gpu]) - begun.sum(axis=0)) / busy.sum(axis=0)
    scale[IGPU] = scale[CPU]  # nothing was published of the integrated GPU alone
    assert (scale > 0).all()
    return busy * scale + begun


def problem_of(name: str, folder: Path) -> Problem:
    """A network on the three devices of the paper, with its co-location."""
    graph = imported(name, folder)
    devices = [Device(device) for device in NAMES]
    cluster = Cluster.of(devices, bandwidth=LINKS, latency=LATENCY)
    published_ms = PAPER[name]
    costs = seconds(graph, published_ms["CPU"] / 1e3, published_ms["GPU"] / 1e3)
    return Problem(graph, cluster, chained(graph).constraints, costs)


def learned(model: str, problem: Problem, folder: Path, epochs: int, options: str = "") -> float:
    """Makespan of the best placement by a model that was trained on this problem alone."""
    config = folder.with_suffix(".toml")
    config.write_text(f"[model]\ndevices = 3\n{options}\n[training]\nvalidation = 0.0\n")
    done = train(
        model,
        [problem],
        folder,
        objective="makespan",
        config=config,
        epochs=epochs,
        resume=(folder / "last.safetensors").exists(),
    )
    placer = named_placer(f"{model}:weights={done.weights}:samples={SAMPLES}")
    return placer.place(problem, MAKESPAN, budget=Budget(None, SAMPLES + 1)).value


def ablated(left_out: str) -> str:
    """Options of HSDAG without some traits."""
    traits = [trait for trait in TRAITS if trait != left_out]
    return f"traits = {json.dumps(traits)}"


def row_of(name: str, folder: Path, epochs: int, budget: float) -> dict[str, object]:
    """Milliseconds of every method on one network, and the highest bound."""
    problem = problem_of(name, folder)
    results, bound = {}, 0.0
    for device, title in ((CPU, "CPU-only"), (GPU, "GPU-only")):
        alone = np.full((1, problem.n_operators), device, np.int32)
        results[title] = float(MAKESPAN.values(problem, alone)[0])
    for title in ("heft", "anneal", "auto", "exact:workers=2"):
        result = named_placer(title).place(problem, MAKESPAN, budget=Budget(budget))
        results[title.partition(":")[0]] = result.value
        bound = max(bound, result.bound or 0.0)
    if epochs:
        results |= trained(problem, folder / name, epochs)
    size = problem.graph.n_operators, problem.graph.n_streams
    ms = {method: 1e3 * value for method, value in results.items()}
    nodes = size[0] if problem.rules is None else problem.rules.n_units
    return {"network": name, "size": size, "nodes": nodes, "bound": 1e3 * bound, "ms": ms}


def trained(problem: Problem, run: Path, epochs: int) -> dict[str, float]:
    """Makespans by every model that was trained on one network."""

    def best_of(model: str, what: str, options: str = "") -> float:
        return learned(model, problem, run.with_name(f"{run.name}-{what}"), epochs, options)

    results = {"hdp": best_of("hdp", "hdp"), "hsdag": best_of("hsdag", "hsdag", ablated(""))}
    results["hsdag with work"] = best_of("hsdag", "work")
    for trait in TABLE_3:
        results[f"hsdag without {trait}"] = best_of("hsdag", f"no-{trait}", ablated(trait))
    return results


def published(method: str, network: str) -> float | None:
    """Milliseconds in the paper's tables."""
    if method.startswith("hsdag without "):
        return TABLE_3[method.removeprefix("hsdag without ")][network]
    return PAPER[network].get(method.removesuffix("-only"))


def table(rows: list[dict]) -> str:
    """Methods down, networks across; milliseconds, in brackets the paper's."""
    lines = []
    for method in rows[0]["ms"]:
        cells = {}
        for row in rows:
            theirs = published(method, row["network"])
            ms = f"{row['ms'][method]:.2f}"
            cells[row["network"]] = ms if theirs is None else f"{ms} ({theirs:g})"
        lines.append({"ms, in brackets the paper's": method, **cells})
    bounds = {row["network"]: f"{row['bound']:.2f}" for row in rows}
    return markdown([*lines, {"ms, in brackets the paper's": "proven bound", **bounds}])


def main() -> None:
    """Place all three networks; write and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--epochs", type=int, default=200, help="of every training; 0 for none")
    parser.add_argument("--seconds", type=float, default=10.0, help="of every search")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in NETWORKS:
        rows.append(row_of(name, options.output, options.epochs, options.seconds))
        print(rows[-1], flush=True)
    (options.output / "hsdag.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    (options.output / "hsdag.md").write_text(table(rows), "utf-8")
    print(table(rows), end="")


if __name__ == "__main__":
    main()
