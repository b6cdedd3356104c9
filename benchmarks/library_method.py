"""A placer of streamplace or of other projects as a program, which places an entry of the library.

    python library_method.py NAME PROBLEM ANSWER OBJECTIVE SECONDS

Searches are limited in processor time, as the machine may do other work. Partitioners need their
packages (kahip, mtkahypar), schedulers of SAGA need anrg-saga and pysmt.
"""

import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import large
import library_cpsat
import numpy as np

from streamplace import Budget, Problem
from streamplace.io.placements import write_placement
from streamplace.io.problems import read_problem
from streamplace.model.placement import Placement
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.named import named_placer
from streamplace.scheduling.tasks import tasks_of, transfer

SAGA = "SAGA-"
LEAST = 1e-12
"""Least work and data that SAGA takes."""


def placed(name: str, problem: Problem, objective: str, seconds: float) -> Placement:
    """Place by a method."""
    if name == "CP-SAT":
        place, starts = library_cpsat.place(problem, objective, seconds)
        return problem.placement(place) if starts is None else in_order(problem, place, starts)
    if name == "KaHIP":
        return large.kahip(problem, is_thorough=True).placement
    if name == "Mt-KaHyPar":
        return large.mt_kahypar(problem, is_thorough=True).placement
    if name.startswith(SAGA):
        return scheduled(problem, name.removeprefix(SAGA))
    judge, budget = OBJECTIVES[objective], Budget(seconds)
    return named_placer(name).place(problem, judge, seed=0, budget=budget).placement


def scheduled(problem: Problem, scheduler: str) -> Placement:
    """Schedule by a scheduler of SAGA.

    SAGA's networks have a speed for every node and link, so times of devices are those of the mean
    operator, and latencies become part of the data.
    """
    from saga import Network, TaskGraph, schedulers

    tasks, operators = tasks_of(problem), problem.graph.operators.name
    devices = problem.cluster.devices.name
    work = problem.one_pass.work[:, problem.instance.device_type]
    speed = 1 / np.maximum(work.mean(axis=0), 1e-300)
    cost, size = (work * speed).mean(axis=1), np.asarray(tasks.size)
    links = [
        (devices[a], devices[b], float(size.sum() / between) if between else 1e18)
        for a, b in combinations(range(len(devices)), 2)
        for between in [
            sum(transfer(tasks, e, a, b) + transfer(tasks, e, b, a) for e in range(len(size))) / 2
        ]
    ]
    ends = zip(tasks.source.tolist(), tasks.target.tolist(), strict=True)
    streams = [
        (operators[u], operators[v], max(float(x), LEAST))
        for (u, v), x in zip(ends, size, strict=True)
    ]
    costs = [max(float(x), LEAST) for x in cost]
    graph = TaskGraph.create(list(zip(operators, costs, strict=True)), streams)
    network = Network.create(list(zip(devices, speed.tolist(), strict=True)), links)
    schedule = getattr(schedulers, f"{scheduler}Scheduler")().schedule(network, graph)
    runs: dict[str, Any] = {run.name: run for line in schedule.mapping.values() for run in line}
    place = [devices.index(runs[name].node) for name in operators]
    return in_order(problem, place, [runs[name].start for name in operators])


def in_order(problem: Problem, place: list[int], starts: list[float]) -> Placement:
    """Placement whose operators run in the order of their starts, and of the graph among equals."""
    position = np.empty(problem.n_operators)
    position[problem.instance.order] = np.arange(problem.n_operators)
    priority = np.empty(problem.n_operators)
    priority[np.lexsort((position, starts))] = -np.arange(problem.n_operators)
    return problem.placement(problem.repaired(place), priority, "order")


if __name__ == "__main__":
    stopwatch.clock = time.process_time
    name, problem, answer, objective, seconds = sys.argv[1:]
    write_placement(placed(name, read_problem(Path(problem)), objective, float(seconds)), answer)
