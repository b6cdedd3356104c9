"""Learned placers outside their training sets: topologies, sizes, devices and wrong costs.

Run ``python benchmarks/outside.py -o docs/assets``: it places what is not yet in ``outside.jsonl``
there, draws ``outside.svg``, and prints the tables. Five families are made here, which no model was
trained on; the others are of the package. The best known value of a problem is that of the best
placer here, ``auto`` with 0.3 s (of large graphs with 5 s) among them. Times are of CPU, in those
of METIS; a search's evaluations are those until its last improvement. Intervals are of 95 %, over
graphs.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from dream_graphs import MIPS, between, cluster_of
from streamsim._core import PilotState
from studies import Rows, append_row, dressed, markdown, read_rows

from streamplace.drawing.figures import PALETTE, add_title, new_figure, save
from streamplace.errors import StreamplaceError
from streamplace.evaluate.paired import half_interval
from streamplace.families.branched import STANDARD, Branched, branched
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.learn.models.pilot.features import DeviceFeature, PilotFeatures, features_of
from streamplace.model import Cluster, Problem, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

THROUGHPUT = OBJECTIVES["throughput"]
WRONG = 0.3
UNSEEN = (
    (2, 9), (3, 9), (4, 7), (5, 6), (6, 5), (6, 6), (7, 4), (8, 4), (9, 3), (10, 5)
)  # fmt: skip
"""Branches and stages that the forty topologies of the family branched do not have."""


def layered(n: int, rng: np.random.Generator) -> Rows:
    """Layers of two to eight; every operator has one to three inputs of the layer before."""
    rows, before, first = [], np.arange(1), 1
    while first < n:
        layer = np.arange(first, min(n, first + int(rng.integers(2, 9))))
        for v in layer:
            many = min(len(before), int(rng.integers(1, 4)))
            rows += [(u, v) for u in rng.choice(before, many, replace=False)]
        before, first = layer, int(layer[-1]) + 1
    return np.array(rows).T


def series_parallel(n: int, rng: np.random.Generator) -> Rows:
    """Streams of a stream that are split in two, or doubled by way of a new operator."""
    rows = [(0, 1)]
    for v in range(2, n):
        i = int(rng.integers(len(rows)))
        source, target = rows[i]
        if rng.random() < 0.5:
            rows[i] = source, v
        else:
            rows.append((source, v))
        rows.append((v, target))
    return sorted_by_depth(n, np.array(rows).T)


def diamonds(n: int, rng: np.random.Generator) -> Rows:
    """Diamonds one after another, each of two to six operators between two."""
    rows, top, first = [], 0, 1
    while first < n:
        middle = list(range(first, min(n, first + int(rng.integers(2, 7)))))
        rows += [(top, v) for v in middle]
        first = middle[-1] + 1
        if first < n:
            rows += [(v, first) for v in middle]
            top, first = first, first + 1
    return np.array(rows).T


def fans(n: int, rng: np.random.Generator) -> Rows:
    """A source, wide fans of chains of one to three operators, and a sink."""
    rows, ends, first = [], [], 1
    while first < n - 1:
        chain = list(range(first, min(n - 1, first + int(rng.integers(1, 4)))))
        rows += [(0, chain[0]), *pairwise(chain)]
        ends, first = [*ends, chain[-1]], chain[-1] + 1
    return np.array([*rows, *((v, n - 1) for v in ends)]).T


def preferential(n: int, rng: np.random.Generator) -> Rows:
    """One or two inputs each, from earlier operators in proportion to their streams."""
    ends, rows = [0], []
    for v in range(1, n):
        for u in {ends[int(rng.integers(len(ends)))] for _ in range(int(rng.integers(1, 3)))}:
            rows.append((u, v))
            ends += [u, v]
    return np.array(rows).T


def sorted_by_depth(n: int, rows: Rows) -> Rows:
    """Streams whose operators are numbered along them."""
    depth = np.zeros(n, np.int64)
    for _ in range(n):
        np.maximum.at(depth, rows[1], depth[rows[0]] + 1)
    number = np.empty(n, np.int64)
    number[np.argsort(depth, kind="stable")] = np.arange(n)
    return number[rows]


FAMILIES: dict[str, Callable[[int, np.random.Generator], Rows]] = {
    "layered": layered,
    "series-parallel": series_parallel,
    "diamonds": diamonds,
    "fans": fans,
    "preferential": preferential,
}


class Case(NamedTuple):
    """A problem to place, and the one by which placements are judged."""

    group: str
    family: str
    problem: Problem
    judge: Problem


def outside(
    family: str, n: int, devices: int, spread: float, rng: np.random.Generator, name: str
) -> Problem:
    """Return a problem of one of the families made here."""
    graph = dressed(
        FAMILIES[family](n, rng),
        n,
        rng,
        name=name,
        mips=MIPS * devices * between(0.5, 2, rng),
        links=n * between(0.03, 0.6, rng),
        skew=float(rng.choice([0, 1])),
    )
    return Problem(graph, cluster_of(devices, rng, spread=spread))


def cases(count: int) -> Iterator[Case]:
    """All cases, ``count`` of each family in the first groups."""
    assert not {(known.branches, known.depth) for known in STANDARD} & {*UNSEEN}
    names = list(FAMILIES)
    for number in range(count * len(names)):
        rng, family = np.random.default_rng((7, number)), names[number % len(names)]
        n, devices = round(between(12, 120, rng)), int(rng.integers(2, 13))
        problem = outside(family, n, devices, 1.0, rng, f"{family}-{number}")
        yield Case("other families", family, problem, problem)
        wrong = Problem(perturbed(problem.graph, rng), problem.cluster)
        yield Case("costs wrong by ±30 %", family, wrong, problem)
        problem = outside(family, n, devices, 3.0, rng, f"unequal-{number}")
        yield Case("unequal devices", family, problem, problem)
        problem = outside(family, n, int(rng.integers(16, 65)), 1.0, rng, f"many-{number}")
        yield Case("16 to 64 devices", family, problem, problem)
    for number in range(2 * count):
        rng = np.random.default_rng((8, number))
        branches, depth = UNSEEN[number % len(UNSEEN)]
        full = int(rng.integers(2, 1 + min(5, branches)))
        shape = Branched(branches, depth, full, copies=1)
        graph = next(branched(shape, seed=100 + number)).at_rate(float(rng.choice([1e4, 2e4])))
        problem = Problem(replace(graph, name=f"branched-{number}"), Cluster.uniform(5))
        yield Case("branched, other topologies", "branched", problem, problem)
        n, devices = round(between(12, 120, rng)), int(rng.integers(2, 13))
        shape = RandomDag(operators=n, devices=devices * between(0.5, 2, rng), network=n / 5)
        graph = replace(next(random_dag(shape, number)), name=f"random-dag-{number}")
        problem = Problem(graph, Cluster.uniform(devices))
        yield Case("random-dag", "random-dag", problem, problem)
    for n in (1000, 10_000):
        for number, family in enumerate(2 * names):
            rng = np.random.default_rng((9, n, number))
            problem = outside(family, n, 16, 1.0, rng, f"{family}-{n}-{number}")
            yield Case(f"{n:,} operators", family, problem, problem)


SMALL = ("other families", "branched, other topologies", "random-dag", "costs wrong by ±30 %")
OTHERS = ("unequal devices", "16 to 64 devices", "1,000 operators", "10,000 operators")


def perturbed(graph: StreamGraph, rng: np.random.Generator) -> StreamGraph:
    """Multiply all costs and payloads by factors between 0.7 and 1.3."""
    ipt, payload = 1 + WRONG * rng.uniform(-1, 1, (2, graph.n_operators))
    operators = graph.operators
    wrong = replace(operators, ipt=operators.ipt * ipt, payload=operators.payload * payload)
    return replace(graph, operators=wrong, streams=replace(graph.streams, operators=wrong))


class Answer(NamedTuple):
    """Devices of the operators, milliseconds, and placements that were evaluated."""

    devices: Any
    ms: float
    evaluations: int


def by_placer(text: str, seconds: float | None) -> Callable[[Problem], Answer]:
    """Return what places by a placer of the package within a budget."""
    placer = named_placer(text)

    def place(problem: Problem) -> Answer:
        start = time.process_time()
        result = placer.place(problem, THROUGHPUT, budget=Budget(seconds))
        ms = 1e3 * (time.process_time() - start)
        evaluations = max((step.evaluations for step in result.trace), default=1)
        return Answer(result.placement.index, ms, evaluations)

    return place


def put_greedily(features: PilotFeatures) -> Any:
    """Put every unit where the peak grows least, of equals where least flow is cut."""
    state = PilotState(features)
    for t, unit in enumerate(features.order.tolist()):
        devices, _, is_open = state.measure(unit, t)
        keys = devices[:, DeviceFeature.FLOW_CUT], devices[:, DeviceFeature.PEAK_GROWTH], ~is_open
        state.put(unit, int(np.lexsort(keys)[0]))
    return state.place


def greedily(problem: Problem) -> Answer:
    """Place by the features of pilot, without its network."""
    start = time.process_time()
    features = features_of(problem)
    devices = put_greedily(features)[features.unit_of]
    return Answer(devices, 1e3 * (time.process_time() - start), 0)


OF_PAPERS = ("giph", "giph-task-eft", "placeto", "hdp", "hsdag", "doppler")
AS_LONG = "anneal, as long as dream"
PLACED: dict[str, Callable[[Problem], Answer]] = {
    "metis": by_placer("metis", None),
    "greedy by pilot's features": greedily,
    **{name: by_placer(name, None) for name in ("encdec", "encdec-gnn", "dream", *OF_PAPERS)},
    "dream, best of 65": by_placer("dream:samples=64", None),
    "pilot, best of 6": by_placer("pilot:samples=0:refine=none", None),
    "pilot, 5 ms": by_placer("pilot", 0.005),
    "anneal, 1 ms": by_placer("anneal", 0.001),
    "anneal, 5 ms": by_placer("anneal", 0.005),
}
PLACERS = (*PLACED, AS_LONG, "auto")
LARGE = 500
"""Operators from which a search has `SEARCH_LARGE` seconds, and policies of papers are left out."""
SEARCH, SEARCH_LARGE, LEAST_SHARES = 0.3, 5.0, 5


def main() -> None:
    """Place what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=8, help="graphs of each family")
    given = parser.parse_args()
    torch.set_num_threads(1)
    stopwatch.clock = time.process_time
    given.output.mkdir(parents=True, exist_ok=True)
    rows = completed(given.output / "outside.jsonl", list(cases(given.count)))
    shares = shares_of(rows)
    draw(shares, given.output / "outside.svg")
    for groups, timed in ((SMALL, SMALL[0]), (OTHERS, OTHERS[-1])):
        facts, table = facts_of(rows, timed), []
        for name in PLACERS:
            cells = {group: interval(shares[group, name]) for group in groups}
            table.append({"": name, **cells, **facts[name]})
        print(markdown(table))


def completed(path: Path, every: list[Case]) -> list[dict[str, Any]]:
    """Rows of a file, to which those that it lacks are added."""
    rows = read_rows(path)
    for place in PLACED.values():  # which compiles, and reads weights
        with suppress(StreamplaceError):
            place(every[0].problem)
    there = {(row["group"], row["graph"], row["placer"]): row.get("ms", 0.0) for row in rows}
    for case in every:
        graph, large = case.problem.graph.name, case.problem.n_operators >= LARGE
        for name in PLACERS:
            if (case.group, graph, name) in there or (large and name in OF_PAPERS):
                continue
            if name == AS_LONG:
                if not (ms := there[case.group, graph, "dream"]):
                    continue  # refused
                place = by_placer("anneal", ms / 1e3)
            elif name == "auto":
                place = by_placer("auto", SEARCH_LARGE if large else SEARCH)
            else:
                place = PLACED[name]
            row = {"group": case.group, "family": case.family, "graph": graph, "placer": name}
            try:
                answer = place(case.problem)
                value = THROUGHPUT.value(case.judge, case.judge.placement(answer.devices))
                row |= {"value": round(value, 6), "ms": round(answer.ms, 3)}
                row["evaluations"] = answer.evaluations
            except StreamplaceError as error:
                row |= {"refusal": str(error)}
            rows.append(row)
            there[case.group, graph, name] = row.get("ms", 0.0)
            append_row(path, row)
        print(case.group, graph, file=sys.stderr)
    return rows


def shares_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[float]]:
    """Shares of the best known value by group and placer, of the graphs that it does not refuse."""
    best: dict[str, float] = defaultdict(float)
    for row in rows:
        best[row["graph"]] = max(best[row["graph"]], row.get("value", 0.0))
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if "value" in row:
            shares[row["group"], row["placer"]].append(row["value"] / best[row["graph"]])
    return shares


def facts_of(rows: list[dict[str, Any]], group: str) -> dict[str, dict[str, str]]:
    """Median time in those of METIS, and number of evaluations, on the graphs of a group."""
    facts, metis = dict[str, dict[str, str]](), 0.0
    for name in PLACERS:
        own = [r for r in rows if r["placer"] == name and r["group"] == group and "value" in r]
        if own:
            ms, evaluations = (np.median([r[key] for r in own]) for key in ("ms", "evaluations"))
            metis = metis or ms
            times = f"{ms / metis:,.0f}" if ms >= 10 * metis else f"{ms / metis:.2g}"
            facts[name] = {"time": times, "evaluations": f"{evaluations:,.0f}"}
        else:
            facts[name] = {"time": "–", "evaluations": "–"}
    return facts


def interval(shares: list[float]) -> str:
    """Mean with its 95 % interval; none where a placer refuses nearly all graphs."""
    if len(shares) < LEAST_SHARES:
        return "–"
    return f"{np.mean(shares):.3f}±{half_interval(np.array(shares)):.3f}"


def draw(shares: Mapping[tuple[str, str], list[float]], path: Path) -> None:
    """Draw means with their intervals, a panel for each group."""
    groups = (*SMALL, *OTHERS)
    figure, axes = new_figure(4, rows=2, width=3.0, height=3.6)
    for axis, group in zip(axes, groups, strict=True):
        for i, name in enumerate(reversed(PLACERS)):
            values = np.array(shares[group, name])
            if len(values) >= LEAST_SHARES:
                colour = PALETTE["anneal" in name or name == "auto"]
                axis.errorbar(
                    values.mean(),
                    i,
                    xerr=half_interval(values),
                    fmt="o",
                    color=colour,
                    markersize=3,
                )
        axis.set_title(group, fontsize=9)
        axis.set(xlim=(0, 1.02), yticks=range(len(PLACERS)))
        shown = PLACERS[::-1] if axis in (axes[0], axes[4]) else [""] * len(PLACERS)
        axis.set_yticklabels(shown, fontsize=8)
        axis.grid(visible=True, axis="x", alpha=0.3)
    add_title(figure, "Share of the best known throughput, with 95 % intervals (searches: orange)")
    save(figure, path)


if __name__ == "__main__":
    main()
